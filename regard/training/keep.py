"""Weights and scores in, the best and the mean of the last few out."""

import math
from collections import deque
from dataclasses import dataclass

import torch

from regard.errors import DivergedError
from regard.folder import Weights
from regard.models.model import Model

PERFECT = 100.0  # per cent
ENOUGH = 3  # validations after a perfect one
DEARER = 1.1  # times the loss of the last weights, beyond which a mean is of weights that do not belong together


def snapshot(model: Model) -> Weights:
    """A copy of the weights; of weights that are no numbers any more nothing is kept."""
    for name, weight in model.named_parameters():
        if not bool(torch.isfinite(weight).all()):
            raise DivergedError(f"{name} is not finite any more; a lower train.learning_rate may help")
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def restore(model: Model, weights: Weights) -> None:
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(weights[name])


@dataclass(frozen=True)
class Best:
    """The best validation so far."""

    step: int
    value: float
    weights: Weights
    loss: float = math.nan


@dataclass(frozen=True)
class Kept:
    """All that a keeper knows; what is in here never changes, so a checkpoint needs no copy of it."""

    best: Best | None = None
    since_best: int = 0
    window: tuple[tuple[int, Weights], ...] = ()  # step and weights, the oldest first


class Keeper:
    """Keeps the best weights by one metric, and the last few for averaging. Steps alone decide what is kept."""

    def __init__(self, metric: str, average: int, kept: Kept | None = None) -> None:
        kept = kept or Kept()
        self.metric = metric
        self.sign = -1.0 if metric in ("loss", "cer", "wer", "ter") else 1.0
        self.best = kept.best
        self.since_best = kept.since_best
        self.window = deque(kept.window, maxlen=average)
        self.loss = math.nan  # of the weights that were offered last

    @property
    def kept(self) -> Kept:
        return Kept(self.best, self.since_best, tuple(self.window))

    def offer(self, model: Model, step: int, value: float, loss: float = math.nan) -> bool:
        """A validated model; true if it is better than all before.

        Of equals the newer is kept, which was trained for longer; but patience counts it as nothing better. Where
        nothing is right, the lower loss tells.
        """
        before = None if self.best is None else self.worth(self.best.value)
        better = before is None or self.worth(value) > before
        dearer = value == 0 and self.best is not None and loss > self.best.loss
        if better or (self.worth(value) == before and not dearer):
            self.best = Best(step, value, snapshot(model), loss)
        self.loss = loss
        self.since_best = 0 if better else self.since_best + 1
        return better

    def prefer(self, model: Model, step: int, value: float, noise: float, loss: float = math.nan) -> bool:
        """The mean, validated; true if it takes the place of the best: unless it is worse by more than the noise.

        The best of many validations owes some of its score to chance, above all where few examples judge; a mean owes
        it nothing (docs/decisions.md has what was measured). Where it has both a lower score and a higher loss than
        the last weights, the checkpoints of a short run still differ too much to be averaged.
        """
        if self.best is not None:
            less = self.worth(value) - self.worth(self.best.value)
            if not less >= -noise or (less < 0 and loss > DEARER * self.loss):
                return False
        self.best = Best(step, value, snapshot(model), loss)
        return True

    def patience(self, most: int) -> int:
        """Validations that may bring nothing better; after a perfect score none can, and a few make it believed."""
        return min(most, ENOUGH) if self.is_perfect else most

    @property
    def is_perfect(self) -> bool:
        """Whether the best made no mistake."""
        return self.best is not None and self.sign > 0 and self.best.value >= PERFECT

    def is_done(self, step: int, validations: int | None) -> bool:
        """Whether so many validations have passed from the first without a mistake to this one, which made none."""
        if validations is None or self.best is None or not self.is_perfect:
            return False
        return self.best.step == step and self.since_best + 1 >= validations

    def worth(self, value: float) -> float:
        """The higher the better; a score that is not a number is worth less than any."""
        return -math.inf if math.isnan(value) else self.sign * value

    def remember(self, model: Model, step: int) -> None:
        """For the mean, if one is wanted. A step that is in the window already is not taken twice."""
        if self.window.maxlen and all(step != known for known, _ in self.window):
            self.window.append((step, snapshot(model)))

    def mean(self) -> Weights | None:
        """The mean of the last few, if there are at least two."""
        if len(self.window) < 2:
            return None
        last = [weights for _, weights in self.window]
        return {name: torch.stack([weights[name].cpu() for weights in last]).mean(0) for name in last[0]}
