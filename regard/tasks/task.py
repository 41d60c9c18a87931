"""What all tasks promise, and the records that pass between them, the training loop and the verbs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard import config
from regard.data.batch import Batch, cut
from regard.data.read import Columns, Example
from regard.data.shards import Rows
from regard.data.tokens import Encoding
from regard.data.vocabulary import Vocabulary
from regard.engine.engine import Engine
from regard.errors import UsageError
from regard.models.model import Model
from regard.score import Metric
from regard.score.labels import Confusion
from regard.score.tallies import Tally
from regard.search.write import Sampling
from regard.stop import go_on


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that answers are cut from, and where in it the tokens of a source stand."""

    text: str
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Item:
    """One example as numbers."""

    source: tuple[int, ...]  # empty where the source is a picture
    target: tuple[int, ...]
    picture: NDArray[np.float32] | None = None
    passage: Passage | None = None  # of a question whose answer is a piece of its source

    @property
    def length(self) -> int:
        """Of the longer side, the end included: what a batch pays for."""
        return max(len(self.source), len(self.target)) + 1


@dataclass(frozen=True)
class Loss:
    """A sum and a count: divided once, after accumulation."""

    total: Tensor
    count: int


@dataclass(frozen=True)
class Token:
    """A token as it is shown, where it stands in its text, and its number."""

    text: str
    start: int
    end: int
    id: int = -1  # none, where no vocabulary has it


@dataclass(frozen=True)
class Foresight:
    """How likely the model finds all that could stand at each place of an answer, given the rest of it."""

    log_TV: Tensor
    chosen: tuple[int, ...]  # what does stand there: a column of each row
    at: tuple[int, ...] | None = None  # the token of the source that each belongs to, of tasks that label or fill it
    copied_T: Tensor | None = None  # how much of each place was left to copying, of models that copy

    @property
    def given_T(self) -> Tensor:
        """The log probability of what stands there."""
        index_T1 = torch.tensor(self.chosen, dtype=torch.long, device=self.log_TV.device)[:, None]
        return self.log_TV.gather(1, index_T1)[:, 0]


Alignment = tuple[tuple[float, ...], ...]  # for each target token, how much it looked at each source token


@dataclass(frozen=True)
class Answer:
    """One output with the score that ranked it, how sure it is, and all the n best, itself the first of them.

    `confidence` is the chance that the whole output is right, where the model has learnt to tell; else `probability`.
    """

    text: str
    score: float
    confidence: float
    tokens: tuple[int, ...] = ()
    alternatives: tuple["Answer", ...] = ()
    probability: float = 1.0  # of the whole output, as the model sees it
    lowest: float = 1.0  # probability of its least sure token
    alignment: Alignment | None = None  # where it was wished for, and something looked at the source
    chances: tuple[tuple[str, float], ...] = ()  # of all that could have been answered, where that is a short list
    places: tuple[int, int] | None = None  # of an answer that is a piece of its source: its first and last token there

    def __str__(self) -> str:
        return self.text


def require(name: str, value: int, least: int) -> None:
    if not isinstance(value, int) or value < least:
        raise UsageError(f"{name}={value!r}: expected a whole number, at least {least}")


@dataclass(frozen=True)
class Wish:
    """How answers are to be found."""

    beam: int = 1
    n_best: int = 1
    batch: int = 64  # sources decoded side by side
    length_penalty: float = 1.0
    sampling: Sampling | None = None
    min_length: int = 0
    max_length: int | None = None  # none = from the source's length
    no_repeat: int = 0
    banned: tuple[str, ...] = ()  # texts that are never written
    prefix: str | tuple[int, ...] = ""  # text every output begins with, or its tokens
    pattern: str = ""  # a regular expression that every output matches as a whole
    choices: tuple[str, ...] = ()  # texts, one of which every output is
    required: tuple[str, ...] = ()  # texts that every output holds
    align: bool = False  # tell what each token looked at; one more pass through the model

    def __post_init__(self) -> None:
        """Whoever wishes from Python is told as whoever wishes on the command line is."""
        for name, least in (("beam", 1), ("n_best", 1), ("batch", 1), ("min_length", 0), ("no_repeat", 0)):
            require(name, getattr(self, name), least)
        require("max_length", 1 if self.max_length is None else self.max_length, 1)
        if not 0.0 <= self.length_penalty <= 10.0:
            raise UsageError(f"length_penalty={self.length_penalty}: expected a number from 0 to 10")
        for name in ("banned", "choices", "required"):
            texts = getattr(self, name)
            if not isinstance(texts, tuple) or not all(isinstance(text, str) for text in texts):
                raise UsageError(f"{name}: expected a tuple of texts, found {texts!r:.60}")

    @property
    def constrained(self) -> bool:
        return bool(self.pattern or self.choices or self.required)

    @property
    def is_simple(self) -> bool:
        """Nothing that has to be asked of every text as it is written: a whole search needs no Python."""
        return self.sampling is None and not (self.no_repeat or self.banned or self.constrained)


@dataclass(frozen=True)
class Evaluation:
    """Scores over a set of examples, and what was answered."""

    metrics: dict[str, Metric]
    outputs: tuple[str, ...] = ()
    facts: dict[str, float] = field(default_factory=dict)  # loss, perplexity, forced and free token accuracy, …
    answers: tuple[Answer, ...] = ()  # the outputs with how sure they are, of tasks that know right from wrong
    confusion: Confusion | None = None  # of tasks whose outputs are labels
    mute: dict[str, str] = field(default_factory=dict)  # metrics that say nothing here, and why; they are not shown
    tallies: Mapping[str, Tally] = field(default_factory=dict, compare=False)  # the metrics example by example

    @property
    def telling(self) -> list[Metric]:
        """The metrics that say something of these examples."""
        return [metric for name, metric in self.metrics.items() if name not in self.mute]


class Task(Protocol):
    """A head, a loss, a metric and the columns it reads."""

    scores: tuple[str, ...]  # by which a run can be judged; the first decides unless another is asked for
    config: config.Config
    vocabulary: Vocabulary
    any_length: bool  # texts may be as long as they like, or empty; else data.max_source and data.max_target hold

    def columns(self) -> Columns: ...

    def encode(self, example: Example, folder: str) -> Item: ...

    def encode_all(self, examples: Sequence[Example], folder: str) -> Rows: ...

    def ask(self, columns: Sequence[str], folder: str) -> Item: ...

    def batch(self, items: Sequence[Item], numbers: Sequence[int], epoch: int) -> Batch: ...

    def loss(self, model: Model, batch: Batch, forcing: float, seed: int) -> Loss: ...

    def answer(self, model: Model | Engine, items: Sequence[Item], wish: Wish,
               numbers: Sequence[int]) -> list[Answer]: ...  # fmt: skip

    def evaluate(self, model: Model, items: Sequence[Item], examples: Sequence[Example], wish: Wish,
                 intervals: bool = True, precision: str = "fp32") -> Evaluation: ...  # fmt: skip

    def is_right(self, text: str, target: str) -> bool: ...

    def encoded(self, columns: Sequence[str]) -> Encoding: ...  # what is read, and where in the columns it stands

    def foresee(self, model: Model, items: Sequence[Item], answers: Sequence[Answer]) -> list[Foresight]: ...

    def token(self, item: Item, column: int) -> str: ...  # what a column of a foresight stands for

    def pieces(self, item: Item, answer: Answer) -> tuple[Token, ...]: ...  # of an answer, one for each place foreseen


class Exact:
    """What is right where a task does not say otherwise: the target as it stands."""

    def is_right(self, text: str, target: str) -> bool:
        return text == target


MOST = 2**24  # pairs of places that look at each other, in a run


def runs(items: Sequence[Item], size: int) -> Iterator[list[int]]:
    """Item numbers in runs of `size`, similar source lengths together; of long ones fewer, for attention is squares."""
    order = sorted(range(len(items)), key=lambda i: len(items[i].source))
    squares = [max(len(item.source), len(item.target)) ** 2 for item in items]
    for run in cut(order, [max(1, -(-square * size // MOST)) for square in squares], size):
        go_on()  # what is read and not searched stops between two runs
        yield run
