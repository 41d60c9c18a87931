"""One frozen record of what was written for a source and what each token looked at; its views, and its files."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.images import png
from regard.data.plain import json_text
from regard.data.read import escape
from regard.data.tokens import CLASS
from regard.errors import MissingError, RegardError, UsageError
from regard.tasks.task import Answer, Token
from regard.view import plot
from regard.view.change import Change
from regard.view.html import page
from regard.view.signs import labels

Map = NDArray[np.float32]  # heads × queries × keys; or queries × keys
AXES = ("source", "target", "written", "row")
Axes = tuple[str, str]  # what the queries of a map are, and its keys: two of these

POINTER = "decoder.copy"  # the map of a copy head

FORMAT = 1  # of a record as JSON
FEW = 4  # numbers of a vector that are shown
CLASSES = 10  # … and classes
LONGEST = 24  # … and characters of a word


@dataclass(frozen=True)
class Other:
    """What could have stood in a token's place."""

    text: str
    id: int
    probability: float


@dataclass(frozen=True)
class Node:
    """A token that a beam search held for a while."""

    parent: int  # number of the node before it; −1 = it is a first token
    token: str
    id: int
    step: int
    log: float  # probability of this token
    sum: float  # … and of all up to it
    ended: bool
    kept: bool  # something was written after it, or it ended
    best: bool  # on the way to the output


@dataclass(frozen=True)
class Picture:
    """A picture as it was read, and how many places it was cut into."""

    pixels: NDArray[np.float32]  # channels × height × width
    rows: int
    columns: int


@dataclass(frozen=True)
class Word:
    """A piece of a text that became a vector, and how far the vector moves without it: 1 − the cosine of the two."""

    start: int
    end: int
    weight: float


@dataclass(frozen=True)
class Derived:
    """What more passes through the model tell: tables are target × source."""

    erasure: Map  # log probability that a target token loses when a source token is erased
    gradient: Map  # share of a source token in gradient × input
    rollout: Map | None  # attention followed through all layers; none = what reads the source has no self-attention
    entropy: Mapping[str, tuple[float, ...]]  # bits of each head of a map
    importance: Mapping[str, tuple[float, ...]]  # mean log probability lost without a head
    agreement: Mapping[str, float | None]  # of attention with erasure and with the gradient: rank correlation, −1 to 1


@dataclass(frozen=True)
class Record:
    """One source, what was written, how sure each token was, and every attention map by its name."""

    text: str
    source: tuple[Token, ...]
    output: str
    target: tuple[Token, ...]
    probabilities: tuple[float, ...]  # one for each target token
    maps: dict[str, Map]
    kind: str = "pair"  # an encoder and a decoder; "row": source and target in one row; "read": no decoder
    written: tuple[Token, ...] = ()  # what a decoder is fed: a sign, or the last of a prompt, and the target so far
    alternatives: tuple[tuple[Other, ...], ...] = ()
    at: tuple[tuple[int, int], ...] | None = None  # first and last source token that each target token belongs to
    answer: Answer = field(default_factory=lambda: Answer("", 0.0, 1.0))
    picture: Picture | None = None
    beam: tuple[Node, ...] | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    # Name, task, preset, parameters, and the precision of the search: weights and probabilities are always of fp32.
    model: Mapping[str, object] = field(default_factory=dict)
    change: Change | None = None
    derived: Derived | None = None
    copied: tuple[float, ...] | None = None  # how much of each target token was left to copying, of models that copy
    carried: tuple[Word, ...] = ()  # of a vector: what each word of the text is worth to it

    # ── maps ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def axes(self, name: str) -> Axes:
        """What the queries and the keys of a map are: source, target, written, or the row of all."""
        if name == POINTER:
            return "target", "source"
        if self.kind == "row":
            return "row", "row"
        if self.kind == "read" or name.startswith("encoder"):
            return ("target" if name == "head" else "source"), "source"
        return "target", "source" if name.endswith("cross") else "written"

    @property
    def row(self) -> tuple[Token, ...]:
        """Of a model without an encoder: all that it reads, in one row."""
        return (*self.source, *self.written)

    @property
    def first(self) -> int:
        """The place in the row from which the first target token is foreseen."""
        return len(self.row) - len(self.target)

    def tokens(self, axis: str) -> tuple[Token, ...]:
        return {"source": self.source, "target": self.target, "written": self.written, "row": self.row}[axis]

    def alignment(self) -> Map | None:
        """Target × source, the mean over heads and layers of what looked at the source; none = nothing did.

        In a row that holds both, a copy head alone looks from one to the other.
        """
        alone = self.kind == "row" and POINTER in self.maps
        found = [self.aligned(name, map.mean(0)) for name, map in self.maps.items() if name == POINTER or not alone]
        crossing = [each for each in found if each is not None]
        if not crossing or not self.target:
            return None
        mean: Map = np.mean(crossing, 0)
        return mean

    def aligned(self, name: str, map: Map) -> Map | None:
        """Target × source of one map, queries × keys; none = it looks elsewhere."""
        match self.axes(name):
            case "target", "source":
                return map
            case "row", "row":
                return map[self.first :, : len(self.source)]
            case "source", "source" if self.kind == "read" and "head" not in self.maps:
                return self.labelled(map)
        return None

    def labelled(self, map: Map) -> Map:
        """Where the tokens that an answer is read off looked: those it stands at, the sign for the whole, or all."""
        if self.at is not None:
            return map[[last for _, last in self.at]]
        if self.source[-1].id == CLASS:
            return np.repeat(map[-1:], len(self.target), 0)
        return np.repeat(map.mean(0, keepdims=True), len(self.target), 0)

    def bertviz(self) -> dict[str, Any]:
        """Arguments for BertViz's `head_view` and `model_view`: a map (1, heads, queries, keys) for each layer."""
        sides: dict[Axes, list[Map]] = {}
        for name, map in self.maps.items():
            if name != POINTER:  # it wants as many heads in every layer
                sides.setdefault(self.axes(name), []).append(map[None])
        texts = {axis: [token.text for token in self.tokens(axis)] for axis in ("source", "written", "row")}
        if self.kind != "pair":
            axis = "row" if self.kind == "row" else "source"
            return {"attention": sides.get((axis, axis), []), "tokens": texts[axis]}
        return {
            "encoder_attention": sides.get(("source", "source"), []),
            "decoder_attention": sides.get(("target", "written"), []),
            "cross_attention": sides.get(("target", "source"), []),
            "encoder_tokens": texts["source"],
            "decoder_tokens": texts["written"],
        }

    # ── out ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def as_json(self, packed: bool = False) -> dict[str, Any]:
        """Plain values; maps as lists, or packed as base64 of their bytes."""
        return {
            "kind": "record",
            "format": FORMAT,
            "model": dict(self.model),
            "structure": self.kind,
            "text": self.text,
            "picture": None if self.picture is None else drawn(self.picture),
            "source": [plain(token) for token in self.source],
            "output": self.output,
            "target": [plain(token) for token in self.target],
            "written": [plain(token) for token in self.written],
            "first": self.first if self.kind == "row" else 0,
            "at": None if self.at is None else [list(pair) for pair in self.at],
            "probabilities": list(self.probabilities),
            "copied": None if self.copied is None else list(self.copied),
            "alternatives": [[plain(other) for other in place] for place in self.alternatives],
            "confidence": self.answer.confidence,
            "score": self.answer.score,
            "answers": [{"text": each.text, "score": each.score, "confidence": each.confidence}
                        for each in self.answer.alternatives or (self.answer,)],
            "chances": [list(pair) for pair in self.answer.chances],
            "maps": [{"name": name, "queries": self.axes(name)[0], "keys": self.axes(name)[1], "heads": len(map),
                      "weights": numbers(map, packed)} for name, map in self.maps.items()],
            "beam": None if self.beam is None else [plain(node) for node in self.beam],
            "seconds": dict(self.seconds),
            "change": None if self.change is None else self.change.as_json(),
            "derived": None if self.derived is None else derived_json(self.derived),
            "carried": [plain(word) for word in self.carried],
        }  # fmt: skip

    def save(self, path: str | Path) -> None:
        """To a file of the kind its name says: .html for any browser, .png and .svg for pictures, .json for numbers."""
        place = Path(path)
        if not place.parent.is_dir():
            raise MissingError(f"{path}: no folder {place.parent}; make it first")
        match place.suffix.lower():
            case ".json":
                write(place, json_text(self.as_json()) + "\n")
            case ".html":
                write(place, page(self.as_json(packed=True), f"{self.text} → {self.said}"))
            case ".png" | ".svg":
                self.draw(place)
            case other:
                raise UsageError(f"{path}: expected a name that ends in .html, .png, .svg or .json, found {other!r}")

    @property
    def said(self) -> str:
        """The output in one line for a person: of a vector its first numbers, and how many there are."""
        if self.model.get("task") != "embed":
            return self.output
        numbers = json.loads(self.output)
        head = ", ".join(f"{number:.3f}" for number in numbers[:FEW])
        return f"[{head}, …], a vector of {len(numbers)} numbers and length 1"

    def draw(self, path: Path) -> None:
        """The picture that says most: who looked at what; where nobody did, how sure each token was."""
        weights, title = self.alignment(), plot.Title(escape(self.text), escape(self.said))
        if self.picture is not None and weights is not None:
            grids = weights.reshape(-1, self.picture.rows, self.picture.columns)
            plot.overlays(self.picture.pixels, grids, labels(self.target, self.output), path)
            return
        signs = {axis: self.labels(axis) for axis in AXES}
        heat = None if weights is None else plot.Sheet("", weights[None], signs["target"], signs["source"])
        sheets = [plot.Sheet(name, map, *(signs[axis] for axis in self.axes(name)))
                  for name, map in self.maps.items()]  # fmt: skip
        alone = sum(map(len, self.maps.values())) <= 1
        plot.looked(title, self.bars(), heat, [] if alone or heat is None else sheets, path)

    def bars(self) -> plot.Bars | None:
        """What is told beside attention, or in its place: each class, each word of a vector, each token."""
        if self.answer.chances:
            found = self.answer.chances[:CLASSES]
            more = len(self.answer.chances) - len(found)
            told = f"probability of each class{f', {more} less likely ones left out' if more else ''}"
            return plot.Bars([escape(label) for label, _ in found], [chance for _, chance in found], told)
        if self.carried:
            words = [escape(self.text[word.start : word.end])[:LONGEST] for word in self.carried]
            told = "1 − cosine with the whole, when the word is erased"
            return plot.Bars(words, [word.weight for word in self.carried], told, None)
        if self.target and self.alignment() is None:
            return plot.Bars(self.labels("target"), self.probabilities, "probability of each token")
        return None

    def labels(self, axis: str) -> list[str]:
        """The tokens of an axis in a few signs each."""
        if axis == "row":
            return [*self.labels("source"), *self.labels("written")]
        return labels(self.tokens(axis), self.text if axis == "source" else self.output)


def plain(each: Any) -> dict[str, Any]:
    return dict(vars(each))


def numbers(map: Map, packed: bool) -> Any:
    if not packed:
        return map.tolist()
    return {"shape": list(map.shape), "float32": base64.b64encode(map.astype("<f4").tobytes()).decode()}


def derived_json(derived: Derived) -> dict[str, Any]:
    tables = {"erasure": derived.erasure, "gradient": derived.gradient, "rollout": derived.rollout}
    heads = {"entropy": derived.entropy, "importance": derived.importance}
    return {
        **{name: None if map is None else map.tolist() for name, map in tables.items()},
        **{
            name: [{"name": map, "heads": list(values)} for map, values in each.items()] for name, each in heads.items()
        },
        "agreement": dict(derived.agreement),
    }


def write(path: Path, text: str) -> Path:
    """Where the text is now."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RegardError(f"{path}: {error.strerror or error}") from None
    return path


def drawn(picture: Picture) -> dict[str, Any]:
    """A picture as a PNG in a data address."""
    height, width = picture.pixels.shape[1:]
    data = "data:image/png;base64," + base64.b64encode(png(picture.pixels)).decode()
    return {"data": data, "width": width, "height": height, "rows": picture.rows, "columns": picture.columns}
