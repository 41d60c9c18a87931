"""Text in, text out: a model together with its tokens and its task, loaded from a folder or fresh from training."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import torch

from regard import config, folder
from regard.data.read import Columns, Example, Table, escape, read
from regard.data.tokens import END
from regard.data.vocabulary import Vocabulary
from regard.engine.engine import Engine, check_precision, engine
from regard.errors import DataError, RegardError, UsageError
from regard.models.model import Model
from regard.models.threads import threads
from regard.search.write import Sampling
from regard.tasks.choose import task
from regard.tasks.task import Answer, Evaluation, Item, Wish
from regard.tasks.transduce import Transduce
from regard.view.record import Record, Token, record

Text = str | tuple[str, ...]  # a source: one text, or one for each source column (in one string: tabs between them)


class Trained:
    """A model that answers: `model(text)`, `model.run(texts)`, `model.score(file)`, `model.look(text)`."""

    def __init__(self, c: config.Config, vocabulary: Vocabulary, model: Model, precision: str = "fp32") -> None:
        self.config = c
        self.vocabulary = vocabulary
        self.model = model
        self.precision = precision
        self.task = task(c, vocabulary)

    @classmethod
    def load(cls, path: str | Path, precision: str = "fp32") -> "Trained":
        """A saved model; it decodes in `fp32` or, sooner and a little less exactly, in `int8`."""
        check_precision(precision)
        saved = folder.load(Path(path))
        return cls(saved.config, saved.vocabulary, saved.model, precision)

    @cached_property
    def decoding(self) -> Model | Engine:
        """What decodes: an engine made of the weights as they are at the first use, or the model itself."""
        return engine(self.model.eval(), self.precision)

    def save(self, path: str | Path, others: dict[str, bytes] | None = None) -> None:
        folder.save(Path(path), self.config, self.vocabulary, self.model, others or {})

    def __call__(self, text: Text, beam: int | None = None) -> str:
        return self.run([text], beam=beam)[0].text

    def run(
        self, texts: Iterable[Text], beam: int | None = None, wish: Wish | None = None, first_number: int = 0
    ) -> list[Answer]:
        """One answer for each text, in order. An empty text has an empty answer; a text that is too long is cut."""
        if isinstance(texts, str):
            raise UsageError("run takes a list of texts; for one text say model(text)")
        wanted = wish or self.wish(beam)
        given = list(texts)
        items = {number: self.item(text, number) for number, text in enumerate(given, first_number)
                 if any(columns(text))}  # fmt: skip
        with threads(self.model):
            answers = self.task.answer(self.decoding, list(items.values()), wanted, list(items))
        found = dict(zip(items, answers, strict=True))
        nothing = Answer("", 0.0, 1.0)
        return [found.get(number, nothing) for number in range(first_number, first_number + len(given))]

    def likelihood(self, texts: Sequence[Text], targets: Sequence[str]) -> list[Answer]:
        """How likely the model finds each target for its text: `.confidence` is its probability."""
        if not isinstance(self.task, Transduce):
            raise UsageError(f"the task {self.config.task} writes no target that could be rated")
        items = [replace(self.item(text, number), target=self.vocabulary.target.encode(target).ids)
                 for number, (text, target) in enumerate(zip(texts, targets, strict=True))]  # fmt: skip
        with threads(self.model):
            return self.task.likelihood(self.decoding, items, self.wish())

    def wish(self, beam: int | None = None, sampling: Sampling | None = None) -> Wish:
        """What the config says about searching, or another beam."""
        return Wish(
            beam=self.config.search.beam if beam is None else beam,
            length_penalty=self.config.search.length_penalty,
            sampling=sampling,
        )

    def item(self, text: Text, number: int = 0) -> Item:
        """A source as numbers, cut with a warning where it is longer than the model was made for."""
        parts = columns(text)
        if len(parts) != len(self.vocabulary.is_tags):
            raise DataError(f"text {number + 1}: expected {len(self.vocabulary.is_tags)} source columns with tabs "
                            f"between them, found {len(parts)}: {escape(' ⇥ '.join(parts))[:60]!r}")  # fmt: skip
        return self.fitting(self.task.ask(parts, "."), f"text {number + 1}")

    def fitting(self, item: Item, where: str) -> Item:
        """The item with a source of at most data.max_source tokens, its end not counted."""
        longest = self.config.data.max_source
        end = (END,) if item.source[-1:] == (END,) else ()
        count = len(item.source) - len(end)
        if count <= longest:
            return item
        warnings.warn(f"{where}: {count} tokens, cut to {longest} (data.max_source)", stacklevel=2)
        return replace(item, source=item.source[:longest] + end)

    def score(
        self, path: str | Path, beam: int | None = None, skip_bad: bool = False, columns: Columns | None = None
    ) -> Evaluation:
        """Scores on a file with the columns that this model was trained on, or others of the same number."""
        table = read(str(path), columns or self.task.columns(), skip_bad or self.config.data.skip_bad)
        if len(table.source_names) != len(self.vocabulary.is_tags):
            raise DataError(f"{path}: {len(table.source_names)} source columns, the model reads "
                            f"{len(self.vocabulary.is_tags)}")  # fmt: skip
        for line in table.notes:
            warnings.warn(line, stacklevel=2)
        items = [self.read_item(example, table) for example in table.examples]
        with threads(self.model):
            return self.task.evaluate(
                self.model.eval(), items, table.examples, self.wish(beam), precision=self.precision
            )

    def read_item(self, example: Example, table: Table) -> Item:
        """An example of a file as numbers; what is wrong with it is told with file and line."""
        where = f"{table.path}:{example.line}"
        try:
            item = self.task.encode(example, table.folder)
        except RegardError as error:
            raise DataError(f"{where}: {error}") from None
        longest = self.config.data.max_target
        if len(item.target) > longest:
            warnings.warn(f"{where}: a target of {len(item.target)} tokens, more than data.max_target={longest}; "
                          "it can not be written, and only its beginning is foreseen", stacklevel=3)  # fmt: skip
        return self.fitting(replace(item, target=item.target[:longest]), where)

    def look(self, text: Text, beam: int | None = None) -> Record:
        """What was written for a text, and what each token looked at."""
        if not isinstance(self.task, Transduce):
            raise UsageError(f"the task {self.config.task} writes no target, so there is nothing to align")
        if not any(columns(text)):
            raise UsageError("there is nothing to look at in an empty text")
        item = self.item(text)
        source, shown = self.source_tokens(text, item), "\t".join(columns(text))
        with threads(self.model):
            answer = self.task.answer(self.decoding, [item], self.wish(beam), [0])[0]
            return record(self.task, self.model, item, source, shown, answer)

    def source_tokens(self, text: Text, item: Item) -> list[Token]:
        """The tokens a map's columns stand for: pieces of the text, or places of a picture."""
        if item.picture is not None:
            with torch.inference_mode():
                count = self.model.encode(torch.from_numpy(item.picture[None])).mask_BS.shape[1]
            side = round(count**0.5)
            return [Token(f"{place // side},{place % side}", 0, 0) for place in range(count)]
        spans = self.vocabulary.encode_source(columns(text)).spans
        end = len("\t".join(columns(text)))
        places = [*spans, *[(end, end)] * len(item.source)][: len(item.source)]
        names = [self.vocabulary.source.token(id) for id in item.source]
        return [Token(name, *place) for name, place in zip(names, places, strict=True)]


def columns(text: Text) -> tuple[str, ...]:
    return tuple(text.split("\t")) if isinstance(text, str) else text
