"""Counts of examples in, 95 % intervals and p-values out; numpy only.

Bootstrap: Efron (1979); for translation, Koehn (2004). Proportions: Wilson (1927).

Where every example is perfect, or none has anything right, all resamples are the same and the bootstrap would claim to
know the score exactly, however few examples there are. There Wilson's bound for so many examples takes its place: as
many faults as may well have been missed, each counted as a whole example. So it is never narrower than it should be.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.errors import UsageError

FloatArray = NDArray[np.float64]

NORMAL_95 = 1.959963984540054  # the normal quantile that leaves 2.5 % on each side

ROUNDING = 1e-9  # percent; a perfect score may be off by as much


@dataclass(frozen=True)
class Bootstrap:
    """How often examples are drawn anew, and from which seed; the same two numbers give the same draws."""

    seed: int = 0
    samples: int = 1000

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UsageError(f"seed: found {self.seed}, expected 0 or more")
        if self.samples < 0:
            raise UsageError(f"samples: found {self.samples}, expected 0 (no interval) or more; 1000 is usual")


def resample(rows: FloatArray, bootstrap: Bootstrap) -> FloatArray:
    """The column sums of `rows` in every resample of the examples: (examples, counts) to (samples, counts).

    One resample at a time, so that memory does not grow with samples times examples.
    """
    generator = np.random.default_rng(bootstrap.seed)
    examples = len(rows)
    totals = np.empty((bootstrap.samples, rows.shape[1]))
    for sample in range(bootstrap.samples):
        times_drawn = np.bincount(generator.integers(examples, size=examples), minlength=examples)
        totals[sample] = times_drawn @ rows
    return totals


def percentile_interval(scores: FloatArray) -> tuple[float, float]:
    """The bounds that leave one resample in forty outside on each side.

    Order statistics and not interpolated quantiles: then seed and samples give sacrebleu's own bounds.
    """
    ordered = np.sort(scores)
    outside = len(ordered) // 40
    return float(ordered[outside]), float(ordered[-1 - outside])


def rate_interval(scores: FloatArray, count: int) -> tuple[float, float]:
    """The same of a score in percent, of `count` examples; has a width where all resamples are 0 % or all 100 %."""
    low, high = percentile_interval(scores)
    if abs(low - 100) < ROUNDING and abs(high - 100) < ROUNDING:  # an error rate may well be above 100
        return wilson_interval(count, count)[0], high
    return low, wilson_interval(0, count)[1] if high < ROUNDING else high


def wilson_interval(successes: float, count: float) -> tuple[float, float]:
    """The 95 % interval of a share, in percent; has a width at 0 % and 100 % too, where the bootstrap has none.

    centre ± half, with centre = (p + z²/2n) / (1 + z²/n), half = z √(p(1−p)/n + z²/4n²) / (1 + z²/n)
    """
    share, extra = successes / count, NORMAL_95**2 / count
    centre = (share + extra / 2) / (1 + extra)
    half = math.sqrt(extra * (share * (1 - share) + extra / 4)) / (1 + extra)
    # At 0 % and 100 % one bound is the share itself; rounding must not carry it past.
    return 100 * min(share, max(0.0, centre - half)), 100 * max(share, min(1.0, centre + half))


def paired_interval(differences: FloatArray, count: int, share: bool) -> tuple[float, float] | tuple[None, None]:
    """The 95 % interval of a difference between two systems on `count` examples, from its resamples, in per cent.

    Where all resamples are the same, because no example differs or all differ alike, they tell nothing of how far off
    that may be. Of a share of right ones it is known how much one example can change: as many others as may well have
    been missed, each as far off as can be. Of other metrics it is not, and there is no interval.
    """
    low, high = percentile_interval(differences)
    if high - low > ROUNDING:
        return low, high
    if not share:
        return None, None
    missed = wilson_interval(0, count)[1] / 100
    return low - missed * (low + 100), high + missed * (100 - high)


def paired_p_value(differences: FloatArray, observed: float, differing: int) -> float:
    """How often chance alone would give a difference as large as `observed`, in either direction.

    The resampled differences, moved so that their centre is "no difference", are compared with the observed one.
    """
    # The tolerance keeps ties, common with whole counts, from being decided by rounding.
    as_large = np.abs(differences - observed) >= abs(observed) - 1e-9
    resampled = float((1 + as_large.sum()) / (1 + len(differences)))
    # m examples that differ can be swapped between the systems in 2^m ways, two of them as extreme as what was seen:
    # no paired test may claim less. The bootstrap alone would call two lucky examples significant.
    smallest = min(1.0, 0.5 ** (differing - 1))
    return max(resampled, smallest)
