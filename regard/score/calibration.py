"""How sure outputs looked and whether they were right in, a rule out that says how likely an output is right.

The rule is a logistic regression (Platt 1999) on three numbers that every output has: the log odds of its probability,
the log odds of its least sure token, and the logarithm of its length. It is fitted with a prior that says "the
probability is right as it stands" (a weight of 1 for the first, 0 for all others), so that few examples change little
and examples that are all right, or all wrong, change no more than they can prove.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.score.intervals import FloatArray

FEWEST = 20  # examples; from fewer nothing is learnt
FOLDS = 5
BINS = 10  # of equal width, for the expected calibration error
STEEPEST = 10.0  # log odds: beyond 0.99995 probabilities differ by rounding more than by what they know
PRIOR = np.array([0.0, 1.0, 0.0, 0.0])
SPREAD = 1.0  # standard deviation of the prior, for each weight

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Look:
    """How sure one output looks: its probability, that of its least sure token, and how many tokens it has."""

    probability: float
    lowest: float
    length: int


@dataclass(frozen=True)
class Quality:
    """How well confidences fit what came true: Brier score and expected calibration error, 0 is best for both."""

    brier: float
    error: float


@dataclass(frozen=True)
class Calibration:
    """The chance that an output is right: 1 ÷ (1 + exp(−bias − weights · what it looks like))."""

    bias: float
    probability: float
    lowest: float
    length: float
    examples: int  # that it was learnt from
    right: int  # of them
    before: Quality  # of the raw probabilities of these examples
    after: Quality  # of confidences that were learnt without the example they are for

    def confidence(self, look: Look) -> float:
        weights = (self.bias, self.probability, self.lowest, self.length)
        odds = sum(weight * number for weight, number in zip(weights, row(look), strict=True))
        return 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, odds))))


def calibrate(looks: Sequence[Look], right: Sequence[bool]) -> Calibration | None:
    """The rule that these examples teach; none where they are too few."""
    if len(looks) < FEWEST:
        return None
    features, outcomes = described(looks), np.array(right)
    raw = np.array([look.probability for look in looks])
    held = held_out(features, outcomes)
    bias, probability, lowest, length = (round(float(weight), 6) + 0.0 for weight in fit(features, outcomes))
    before, after = quality(raw, outcomes), quality(held, outcomes)
    return Calibration(bias, probability, lowest, length, len(looks), int(outcomes.sum()), before, after)


def described(looks: Sequence[Look]) -> FloatArray:
    """One row for each output: 1 and its three numbers."""
    return np.array([row(look) for look in looks], dtype=np.float64)


def row(look: Look) -> tuple[float, ...]:
    return 1.0, log_odds(look.probability), log_odds(look.lowest), math.log1p(look.length)


def log_odds(probability: float) -> float:
    if probability <= 0.0 or probability >= 1.0:
        return STEEPEST if probability >= 1.0 else -STEEPEST
    return max(-STEEPEST, min(STEEPEST, math.log(probability) - math.log1p(-probability)))


def logistic(odds: FloatArray) -> FloatArray:
    found: FloatArray = 1.0 / (1.0 + np.exp(-np.clip(odds, -50.0, 50.0)))
    return found


# ── fitting ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def fit(features: FloatArray, right: Bools) -> FloatArray:
    """The likeliest weights; what looks surer is never less likely right, so those two weights are not negative."""
    middle = np.array([0.0, 0.0, 0.0, features[:, 3].mean()])  # so that the bias is that of a usual length
    free = np.array([True, True, True, True])
    weights = newton(features - middle, right, free)
    while weights[1:3].min() < 0.0:
        free[1 + int(weights[1:3].argmin())] = False
        weights = newton(features - middle, right, free)
    weights[0] -= weights[3] * middle[3]
    return weights


def newton(features: FloatArray, right: Bools, free: Bools) -> FloatArray:
    """The greatest posterior of the free weights, the others 0; concave, so every step that is not too long helps."""
    weights = np.where(free, PRIOR, 0.0)
    chosen = features[:, free]
    for _ in range(100):
        sure = logistic(chosen @ weights[free])
        slope = chosen.T @ (right - sure) - (weights - PRIOR)[free] / SPREAD**2
        curve = (chosen * (sure * (1.0 - sure))[:, None]).T @ chosen + np.eye(int(free.sum())) / SPREAD**2
        step = np.linalg.solve(curve, slope)
        step *= min(1.0, 1.0 / max(float(np.abs(step).max()), 1e-12))
        weights[free] += step
        if float(np.abs(step).max()) < 1e-10:
            break
    return weights


def held_out(features: FloatArray, right: Bools) -> FloatArray:
    """For each example the confidence by a rule that was learnt from the other folds."""
    fold = np.arange(len(right)) % FOLDS
    found = np.empty(len(right))
    for number in range(FOLDS):
        mine = fold == number
        found[mine] = logistic(features[mine] @ fit(features[~mine], right[~mine]))
    return found


# ── judging ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def quality(sure: Sequence[float] | FloatArray, true: Sequence[bool] | Bools) -> Quality:
    """Brier: the mean squared difference. Error: how far the mean in a bin of like confidences is from the truth."""
    confidence, right = np.asarray(sure, dtype=np.float64), np.asarray(true, dtype=np.bool_)
    brier = float(np.mean((confidence - right) ** 2))
    which = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    gaps = [abs(float((confidence[which == each] - right[which == each]).sum())) for each in range(BINS)]
    return Quality(round(brier, 6), round(sum(gaps) / len(right), 6))
