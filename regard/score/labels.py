"""Labels and what they should have been in, accuracy, macro F1 and the table of confusions out; no torch."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.score.intervals import Bootstrap, rate_interval, wilson_interval
from regard.score.metrics import Metric

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
    metrics = {
        "accuracy": Metric("accuracy", 100.0 * right / max(len(pairs), 1), low, high, True, "interval:wilson"),
        "macro_f1": macro_f1(pairs, len(labels), Bootstrap(seed, samples)),
    }
    confusion = Confusion(labels, tuple(tuple(row) for row in table.tolist()))
    return Labelled(metrics, confusion, 100.0 * max(counts.values(), default=0) / max(len(pairs), 1))


def macro_f1(pairs: Counts, size: int, bootstrap: Bootstrap) -> Metric:
    """The mean of F1 = 2 · right / (given + true) over the labels that occur among the true ones."""
    value, low, high, signature = mean_f1(pairs, size), None, None, "f1:macro"
    if bootstrap.samples > 0 and len(pairs) > 1:
        draw = np.random.default_rng(bootstrap.seed)
        drawn = [mean_f1(pairs[draw.integers(len(pairs), size=len(pairs))], size) for _ in range(bootstrap.samples)]
        low, high = rate_interval(np.array(drawn), len(pairs))
        signature += f"|bs:{bootstrap.samples}|seed:{bootstrap.seed}"
    return Metric("macro_f1", value, low, high, True, signature)


def mean_f1(pairs: Counts, size: int) -> float:
    """Numbers of true and given labels, of so many kinds, to a score in percent."""
    right = np.bincount(pairs[pairs[:, 0] == pairs[:, 1], 0], minlength=size)
    true, given = (np.bincount(column, minlength=size) for column in pairs.T)
    occurs = true > 0
    scores = 2.0 * right[occurs] / (true + given)[occurs]
    return 100.0 * float(scores.mean()) if len(scores) else 0.0
