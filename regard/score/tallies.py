"""What is known of each example in, mean scores of several runs, their intervals and paired tests out; numpy only.

A tally is one metric of one run, example by example. Resampling draws examples anew, the same ones for every run, and
where there are several runs the runs too: so an interval covers what other examples and other seeds would have given.
Paired bootstrap: Koehn (2004); several p-values: Holm (1979); right and wrong: McNemar (1947).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from regard.score.intervals import (
    Bootstrap,
    FloatArray,
    paired_interval,
    paired_p_value,
    rate_interval,
    resample,
)

Numbers = Sequence[int] | NDArray[np.int64]


class Tally(Protocol):
    """One metric of one run, example by example: enough for its score, its score in resamples, and parts of it."""

    @property
    def rows(self) -> FloatArray: ...  # (examples, counts)

    @property
    def value(self) -> float: ...  # the score of the corpus as it is

    def resampled(self, bootstrap: Bootstrap) -> FloatArray: ...  # its score in every resample

    def part(self, numbers: Numbers) -> Self: ...  # of some of the examples


@dataclass(frozen=True)
class Statistics:
    """Counts of each example, (examples, counts), and the scores of sums of them, (samples, counts) to (samples,)."""

    rows: FloatArray
    score: Callable[[FloatArray], FloatArray]
    signature: str

    @property
    def value(self) -> float:
        return float(self.score(self.rows.sum(axis=0, keepdims=True))[0])

    def resampled(self, bootstrap: Bootstrap) -> FloatArray:
        return self.score(resample(self.rows, bootstrap))

    def part(self, numbers: Numbers) -> "Statistics":
        return replace(self, rows=self.rows[np.asarray(numbers, np.int64)])


@dataclass(frozen=True)
class Paired:
    """Score of the first system minus score of the second, on the same examples.

    There is no interval for a single example, nor where all examples say the same and it is not known how much another
    could change.
    """

    difference: float
    p_value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Drawn:
    """The mean score of some runs of one system, and what it is in every resample."""

    value: float
    scores: FloatArray  # (samples,)
    rows: FloatArray  # mean counts of each example

    @property
    def interval(self) -> tuple[float, float] | tuple[None, None]:
        """95 %; one example says nothing about spread."""
        return rate_interval(self.scores, len(self.rows)) if len(self.rows) > 1 else (None, None)


def drawn(runs: Sequence[Tally], bootstrap: Bootstrap, system: int = 0) -> Drawn:
    """Examples drawn anew, the same for all systems; with several runs, runs too, for each `system` its own.

    k runs drawn out of k lie closer together than k new ones would, by (k − 1) / k of the variance: that is put right.
    """
    value, rows = float(np.mean([run.value for run in runs])), np.mean([run.rows for run in runs], axis=0)
    scores = np.stack([run.resampled(bootstrap) for run in runs], 1)
    mean, count = scores.mean(1), len(runs)
    if count == 1:
        return Drawn(value, mean, rows)
    chosen = np.random.default_rng([bootstrap.seed, system + 1]).integers(count, size=scores.shape)
    apart = np.take_along_axis(scores, chosen, 1).mean(1) - mean
    return Drawn(value, mean + math.sqrt(count / (count - 1)) * apart, rows)


def compare(first: Drawn, second: Drawn, share: bool) -> Paired:
    """The difference of two scores, both resampled with the same draws of examples; `share` = of right ones."""
    differences, observed = first.scores - second.scores, first.value - second.value
    differing = int((first.rows != second.rows).any(axis=1).sum())
    count = len(first.rows)
    low, high = paired_interval(differences, count, share) if count > 1 else (None, None)
    return Paired(observed, paired_p_value(differences, observed, differing), low, high)


def holm(p_values: Sequence[float]) -> list[float]:
    """The same p-values, corrected for their number: p · m for the least, p · (m − 1) for the next, never falling."""
    corrected, least = [0.0] * len(p_values), 0.0
    for place, number in enumerate(sorted(range(len(p_values)), key=lambda number: p_values[number])):
        least = max(least, min(1.0, (len(p_values) - place) * p_values[number]))
        corrected[number] = least
    return corrected


@dataclass(frozen=True)
class Rights:
    """How many examples both, one alone, or neither of two systems has right (McNemar's table)."""

    both: int
    first: int
    second: int
    neither: int

    @property
    def p_value(self) -> float:
        """Exact and two-sided: of n that one alone has right, each is as likely the one's as the other's."""
        n, fewer = self.first + self.second, min(self.first, self.second)
        ways = (math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in range(fewer + 1))
        return min(1.0, 2.0 * sum(math.exp(each - n * math.log(2.0)) for each in ways))


def rights(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> Rights:
    """From whether each example is right."""
    both, neither = int((first & second).sum()), int((~first & ~second).sum())
    return Rights(both, int(first.sum()) - both, int(second.sum()) - both, neither)


def all_right(tally: Tally) -> NDArray[np.bool_]:
    """Whether all that was counted of an example is right, of a metric that is a share: counts are (right, all)."""
    found: NDArray[np.bool_] = tally.rows[:, 0] >= tally.rows[:, 1]
    return found
