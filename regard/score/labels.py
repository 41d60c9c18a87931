"""Labels and what they should have been in, accuracy, macro F1 and the table of confusions out; no torch."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from regard.score.intervals import Bootstrap, FloatArray, rate_interval, wilson_interval
from regard.score.metrics import Metric, describe, ratio
from regard.score.tallies import Numbers, Statistics, Tally

Counts = NDArray[np.int64]

MOST_SHOWN = 30  # labels in a table for a person


@dataclass(frozen=True)
class Confusion:
    """How often each label, in the order of `labels`, was given each: true labels are rows, given ones columns."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    def as_dict(self) -> dict[str, object]:
        return {"labels": list(self.labels), "counts": [list(row) for row in self.counts]}

    def render(self) -> str:
        """A table; columns go by the number of their row."""
        shown = self.labels[:MOST_SHOWN]
        width = max(map(len, shown), default=0)
        wide = [max(len(str(place + 1)), *(len(str(row[place])) for row in self.counts)) for place in range(len(shown))]
        head = " ".join(f"{place + 1:>{wide[place]}}" for place in range(len(shown)))
        lines = [f"{'true label':>{width + 4}}  given: {head}"]
        for place, label in enumerate(shown):
            cells = " ".join(f"{self.counts[place][i] or '·':>{wide[i]}}" for i in range(len(shown)))
            lines.append(f"{place + 1:>3} {label:>{width}}         {cells}")
        more = len(self.labels) - len(shown)
        return "\n".join(lines + ([f"… and {more} labels more"] if more else []))


@dataclass(frozen=True)
class Labelled:
    """All that is said of a classification."""

    metrics: dict[str, Metric]
    confusion: Confusion
    majority: float  # accuracy, in percent, of always giving the most frequent label
    tallies: dict[str, Tally] = field(compare=False)


@dataclass(frozen=True)
class LabelPairs:
    """Numbers of the true and of the given label of each example, (examples, 2), of so many kinds of labels.

    Macro F1 goes by counts of every label; a row of them for each example would be wide and nearly empty.
    """

    pairs: Counts
    size: int

    @property
    def rows(self) -> FloatArray:
        return self.pairs.astype(np.float64)

    @property
    def value(self) -> float:
        return mean_f1(self.pairs, self.size)

    def resampled(self, bootstrap: Bootstrap) -> FloatArray:
        draw, count = np.random.default_rng(bootstrap.seed), len(self.pairs)
        drawn = [mean_f1(self.pairs[draw.integers(count, size=count)], self.size) for _ in range(bootstrap.samples)]
        return np.array(drawn)

    def part(self, numbers: Numbers) -> "LabelPairs":
        return replace(self, pairs=self.pairs[np.asarray(numbers, np.int64)])


def classified(given: Sequence[str], true: Sequence[str], samples: int = 1000, seed: int = 0) -> Labelled:
    """Accuracy with Wilson's interval, and the mean of the classes' F1 with the bootstrap's."""
    counts = Counter(true)
    labels = tuple(sorted({*true, *given}, key=lambda label: (-counts[label], label)))
    place = {label: number for number, label in enumerate(labels)}
    pairs = np.array([(place[a], place[b]) for a, b in zip(true, given, strict=True)], np.int64).reshape(-1, 2)
    table = np.zeros((len(labels), len(labels)), np.int64)
    np.add.at(table, (pairs[:, 0], pairs[:, 1]), 1)
    right = int(np.trace(table))
    low, high = wilson_interval(right, max(len(pairs), 1))
    of_labels, signature = LabelPairs(pairs, len(labels)), "interval:wilson"
    metrics = {
        "accuracy": Metric("accuracy", 100.0 * right / max(len(pairs), 1), low, high, True, signature),
        "macro_f1": macro_f1(of_labels, Bootstrap(seed, samples)),
    }
    rows = np.stack([pairs[:, 0] == pairs[:, 1], np.ones(len(pairs))], 1).astype(np.float64)
    tallies: dict[str, Tally] = {"accuracy": Statistics(rows, ratio, signature), "macro_f1": of_labels}
    confusion = Confusion(labels, tuple(tuple(row) for row in table.tolist()))
    return Labelled(metrics, confusion, 100.0 * max(counts.values(), default=0) / max(len(pairs), 1), tallies)


def macro_f1(tally: LabelPairs, bootstrap: Bootstrap) -> Metric:
    """The mean of F1 = 2 · right / (given + true) over the labels that occur among the true ones."""
    low, high, signature = None, None, "f1:macro"
    if bootstrap.samples > 0 and len(tally.pairs) > 1:
        low, high = rate_interval(tally.resampled(bootstrap), len(tally.pairs))
        signature += describe(bootstrap)
    return Metric("macro_f1", tally.value, low, high, True, signature)


def mean_f1(pairs: Counts, size: int) -> float:
    """Numbers of true and given labels, of so many kinds, to a score in percent."""
    right = np.bincount(pairs[pairs[:, 0] == pairs[:, 1], 0], minlength=size)
    true, given = (np.bincount(column, minlength=size) for column in pairs.T)
    occurs = true > 0
    scores = 2.0 * right[occurs] / (true + given)[occurs]
    return 100.0 * float(scores.mean()) if len(scores) else 0.0
