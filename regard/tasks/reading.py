"""Sources in, the states of a body at their tokens out; and what all tasks share that answer from these alone."""

from collections import Counter
from collections.abc import Container, Iterable, Sequence

import torch
from torch import Tensor

from regard import config
from regard.data.batch import Batch, pad
from regard.data.ragged import join, ragged, repeated
from regard.data.read import Columns, Example, quote
from regard.data.shards import Rows
from regard.data.tokens import CLASS, END, PAD, UNKNOWN, Encoding
from regard.data.vocabulary import Vocabulary
from regard.engine.engine import Engine
from regard.errors import UsageError
from regard.layers.pool import Pool
from regard.models.model import Model
from regard.stop import go_on
from regard.tasks.task import Answer, Exact, Foresight, Item, Token, Wish

SHOWN = 8  # labels that a note names
APPLIES = "only --n-best, --batch, --json, --min-confidence, --precision and what is said of columns"  # to `run`


def read_states(model: Model | Engine, sources: Sequence[Sequence[int]]) -> list[Tensor]:
    """The states at each token of each source."""
    return model.states(sources) if isinstance(model, Engine) else model.read(sources)


def best_rows(log_TV: Tensor, few: int, count: int) -> list[tuple[tuple[int, ...], tuple[float, ...]]]:
    """The `count` likeliest combinations of one token for each place, best first; `few` of each place are tried."""
    logs, tokens = (each.tolist() for each in log_TV.topk(few, -1))
    sums = [0.0]  # of the best so far
    steps: list[list[tuple[int, int]]] = []  # at each place: which of those before it goes on, and with what rank
    for log in logs:
        go_on()
        # Both are sorted: of the i-th best so far only the first count / i continuations can be among the best.
        longer = [(sum + log[rank], before, rank) for before, sum in enumerate(sums)
                  for rank in range(min(few, count // (before + 1)))]  # fmt: skip
        kept = sorted(longer, key=lambda each: -each[0])[:count]
        sums = [sum for sum, _, _ in kept]
        steps.append([(before, rank) for _, before, rank in kept])
    ways = [way(steps, last) for last in range(len(sums))]
    return [(tuple(token[rank] for token, rank in zip(tokens, ranks, strict=True)),
             tuple(log[rank] for log, rank in zip(logs, ranks, strict=True))) for ranks in ways]  # fmt: skip


def way(steps: Sequence[Sequence[tuple[int, int]]], last: int) -> list[int]:
    """The ranks on the way to the `last` of the final place, followed back from it."""
    ranks = []
    for step in reversed(steps):
        last, rank = step[last]
        ranks.append(rank)
    return ranks[::-1]


def refuse_search(wish: Wish, task: str, why: str) -> None:
    """Wishes that only a search could fulfil."""
    if (
        wish.sampling is not None
        or wish.prefix
        or wish.banned
        or wish.no_repeat
        or wish.min_length
        or wish.max_length
        or wish.constrained
    ):
        raise UsageError(f"{why}: {APPLIES} apply to the task {task}")


def strangers(known: Container[str], labels: Counter[str], what: str) -> str:
    """Which of the labels, of so many examples or tokens, are not known; nothing where all are."""
    new = Counter({label: count for label, count in labels.items() if label not in known})
    if not new:
        return ""
    shown = ", ".join(quote(label, 24) for label, _ in new.most_common(SHOWN))
    return (f"{new.total():,} {what} have labels that no training example has, and count as wrong: {shown}"
            f"{' …' if len(new) > SHOWN else ''}")  # fmt: skip


class Reads(Exact):
    """A body that has read the source, and an answer from its states. Each task says what it labels, and how."""

    why = "the answer is read off the source"  # … so that nothing is searched for
    any_length = False
    counted = "examples"  # what has a label, where something has
    beyond = ""  # what is answered for the rest of a text that was cut, where there is something to be answered

    def __init__(self, c: config.Config, vocabulary: Vocabulary) -> None:
        self.config = c
        self.vocabulary = vocabulary
        self.last = CLASS if c.task in ("classify", "embed") and c.head.pool == "class" else END

    def columns(self) -> Columns:
        return Columns(self.config.data.source, self.config.data.target)

    def encode(self, example: Example, folder: str) -> Item:
        source = (*self.vocabulary.encode_source(example.source).ids, self.last)
        return Item(source, self.vocabulary.target.encode(example.target or "").ids)

    def encode_all(self, examples: Sequence[Example], folder: str) -> Rows:
        """What `encode` gives for each, sooner."""
        source = self.vocabulary.encode_sources([example.source for example in examples])
        target = self.vocabulary.target.encode_flat([example.target or "" for example in examples])
        return Rows(join(source, repeated(self.last, len(examples))), target)

    def remarks(self, train: Iterable[Example], valid: Iterable[Example]) -> list[str]:
        """What is to be said of the data before anything is learnt from them; an error where nothing can be."""
        return []

    def labels_of(self, example: Example) -> list[str]:
        """The labels of an example, where a task has them."""
        return []

    def strangers(self, examples: Iterable[Example]) -> str:
        """Names the labels that training never saw, and that can not be given; nothing where there are none."""
        labels = Counter(label for example in examples for label in self.labels_of(example))
        known = {label for label in labels if self.vocabulary.target.encode(label).ids != (UNKNOWN,)}
        return strangers(known, labels, self.counted)

    def ask(self, columns: Sequence[str], folder: str) -> Item:
        return Item((*self.encoded(columns).ids, self.last), ())

    def batch(self, items: Sequence[Item], numbers: Sequence[int], epoch: int) -> Batch:
        source_BS = pad([item.source for item in items])
        return Batch(source_BS, source_BS != PAD, None, self.labels(items), tuple(numbers))

    def labels(self, items: Sequence[Item]) -> Tensor:
        """What is to be predicted; one row for each item, PAD where nothing is."""
        return pad([item.target for item in items])

    def smoothing(self, model: Model) -> float:
        return self.config.train.label_smoothing if model.training else 0.0

    # ── looking in ───────────────────────────────────────────────────────────────────────────────────────────────────

    def encoded(self, columns: Sequence[str]) -> Encoding:
        return self.vocabulary.encode_source(columns)

    def foresee(self, model: Model, items: Sequence[Item], answers: Sequence[Answer]) -> list[Foresight]:
        """Nothing is foreseen, unless a task says what."""
        nothing_TV = torch.zeros(0, 1, device=model.device)
        return [Foresight(nothing_TV, ()) for _ in items]

    def token(self, item: Item, column: int) -> str:
        return self.vocabulary.target.token(column)

    def pieces(self, item: Item, answer: Answer) -> tuple[Token, ...]:
        return ()

    def refuse_search(self, wish: Wish) -> None:
        refuse_search(wish, self.config.task, self.why)

    def pooled(self, model: Model | Engine, items: Sequence[Item]) -> Tensor:
        """One vector for each item, as the head makes it of the states of that item alone."""
        body = model.model if isinstance(model, Engine) else model
        assert isinstance(body.head, Pool)
        states = read_states(model, [item.source for item in items])
        return body.head.flat(torch.cat(states), torch.tensor([len(each) for each in states], device=body.device))


class ReadsPlaces(Reads):
    """A task whose answers stand at places of the source, which are found text by text."""

    def encode_all(self, examples: Sequence[Example], folder: str) -> Rows:
        items = [self.encode(example, folder) for example in examples]
        return Rows(ragged([item.source for item in items]), ragged([item.target for item in items]))
