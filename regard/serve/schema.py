"""What is asked and what is answered, as records: the form of every request and of every answer, with its limits."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from regard.search.write import HOTTEST
from regard.serve import limits
from regard.view.record import Record


def whole(value: Any) -> Any:
    """JSON has one kind of number: 2.0 is as whole as 2."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(whole)
Words = Annotated[str, StringConstraints(max_length=limits.MOST_TEXT)]
Text = Words | Annotated[list[Words], Field(min_length=1, max_length=limits.MOST_COLUMNS)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=limits.MOST_NAME)]
Picture = Annotated[
    str,
    StringConstraints(max_length=limits.MOST_PICTURE, pattern=r"^data:image/(png|jpeg);base64,[A-Za-z0-9+/]+={0,2}$"),
]
Beam = Annotated[int, Field(ge=1, le=limits.MOST_BEAM), WHOLE]
Length = Annotated[int, Field(ge=1, le=limits.MOST_LENGTH), WHOLE]
Number = Annotated[int, Field(ge=0, le=limits.MOST_SEARCHED * limits.MOST_TEXT), WHOLE]  # of a token
Head = Annotated[tuple[Name, Number], Field(strict=False)]  # JSON has lists only


class Asked(BaseModel):
    """Nothing is taken that is not known, and nothing is turned into another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Sample(Asked):
    """Draw at random instead of searching."""

    temperature: float = Field(1.0, ge=0.01, le=HOTTEST)
    top_k: Annotated[int, Field(ge=0, le=1_000_000), WHOLE] = Field(
        0, description="Draw from the k likeliest; 0 = all."
    )
    top_p: float = Field(1.0, ge=0.0, le=1.0, description="Draw from the likeliest that together reach p.")
    seed: Annotated[int, Field(ge=0, le=2**53 - 1), WHOLE] = Field(0, description="The same seed draws the same texts.")


def one_of(*names: str) -> dict[str, Any]:
    """In the schema: just one of these fields is there, and not null."""
    return {"oneOf": [{"required": [name], "properties": {name: {"not": {"type": "null"}}}} for name in names]}


def refuse_both(sample: object, width: object) -> None:
    if sample is not None and width is not None:
        raise ValueError("sample draws one output for each text; beam and n_best belong to searching")


class RunRequest(Asked):
    """Texts, or pictures for a model that describes them."""

    model_config = ConfigDict(json_schema_extra=one_of("texts", "pictures") | {"not": {"anyOf": [
        {"required": ["sample", name], "properties": {each: {"not": {"type": "null"}} for each in ("sample", name)}}
        for name in ("beam", "n_best")]}})  # fmt: skip

    texts: list[Text] | None = Field(None, min_length=1, max_length=limits.MOST_TEXTS)
    pictures: list[Picture] | None = Field(None, min_length=1, max_length=limits.MOST_PICTURES)
    model: Name | None = None
    beam: Beam | None = Field(None, description="Width of the beam; 1 = greedy.")
    n_best: Beam | None = Field(None, description="Outputs for each text; the beam is as wide.")
    sample: Sample | None = None
    max_length: Length | None = Field(None, description="Tokens at most.")
    prefix: Words | None = Field(None, description="Every output begins with this.")

    @model_validator(mode="after")
    def fits(self) -> "RunRequest":
        refuse_both(self.sample, self.beam or self.n_best)
        if (self.texts is None) == (self.pictures is None):
            raise ValueError("expected either texts or pictures")
        return self


class Change(Asked):
    """What is changed inside the model while it answers."""

    erase: list[Number] = Field([], max_length=limits.MOST_CHANGES, description="Source tokens, by number.")
    off: list[Head] = Field([], max_length=limits.MOST_CHANGES, description="Heads: name of a map, number of the head.")
    begin: Annotated[list[Number], Field(max_length=limits.MOST_CHANGES)] | Words = Field(
        [], description="The first target tokens: their ids, or the text that they spell."
    )


class LookRequest(Asked):
    """A text; or a picture, for a model that describes them, and its name as the text."""

    model_config = ConfigDict(json_schema_extra={"anyOf": one_of("text", "picture")["oneOf"], "not": {
        "required": ["sample", "beam"],
        "properties": {each: {"not": {"type": "null"}} for each in ("sample", "beam")}}})  # fmt: skip

    text: Text | None = None
    picture: Picture | None = None
    model: Name | None = None
    beam: Beam | None = None
    sample: Sample | None = None
    change: Change | None = None
    derive: bool = Field(False, description="Erasure, gradient, rollout and more: takes several passes.")
    packed: bool = Field(False, description="Weights as base64 of float32 instead of nested lists.")

    @model_validator(mode="after")
    def fits(self) -> "LookRequest":
        refuse_both(self.sample, self.beam)
        if self.text is None and self.picture is None:
            raise ValueError("expected a text or a picture")
        return self


class SearchRequest(Asked):
    """A text, and others among which the nearest are looked for."""

    query: Annotated[Words, StringConstraints(min_length=1)]
    texts: list[Words] = Field(min_length=1, max_length=limits.MOST_SEARCHED)
    model: Name | None = None
    count: Annotated[int, Field(ge=1, le=limits.MOST_HITS), WHOLE] = 5


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Said(BaseModel):
    """What is answered; frozen, with these fields and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Alternative(Said):
    text: str
    score: float | None  # none where a score is no finite number, or nothing was asked
    confidence: float | None


class Result(Alternative):
    alternatives: list[Alternative]
    chances: list[tuple[str, float]]
    cut: int = Field(description="Tokens at the end of the text that were left out: it was too long for the model.")
    empty: bool = Field(description="The text was empty: nothing was asked, so there is nothing to be sure of.")


class RunAnswer(Said):
    model: str
    results: list[Result]


class Word(Said):
    """A word of a hit, and how much of the cosine is lost without it."""

    start: int
    end: int
    weight: float


class HitAnswer(Said):
    number: int
    text: str
    cosine: float
    words: list[Word]


class SearchAnswer(Said):
    model: str
    hits: list[HitAnswer]


class ModelAnswer(Said):
    name: str
    task: str
    preset: str
    parameters: int
    reads: str = Field(pattern="^(text|picture)$")
    columns: int
    names: list[str]  # of the columns, where the file that it learnt from named them
    beam: int
    loaded: bool
    examples: list[str]


class ModelsAnswer(Said):
    models: list[ModelAnswer]
    lesson: bool  # whether /v1/lesson has one


class HealthAnswer(Said):
    status: str


class Fault(Said):
    code: str
    message: str
    field: str | None


class ErrorAnswer(Said):
    error: Fault


RECORD_FIELDS = tuple(Record("", (), "", (), (), {}).as_json())
