"""Weights and scores in, the best, the last and the mean of the last few out."""

import math
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.folder import weights_bytes, write_file
from regard.models.model import Model

Weights = dict[str, Tensor]


def snapshot(model: Model) -> Weights:
    """A copy of the weights; of weights that are no numbers any more nothing is kept."""
    for name, weight in model.named_parameters():
        if not bool(torch.isfinite(weight).all()):
            raise RegardError(f"{name} is not finite any more; a lower train.learning_rate may help")
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


class Keeper:
    """Keeps the best weights by one metric, and the last few for averaging; both on disk too if there is a folder."""

    def __init__(self, metric: str, average: int, folder: Path | None) -> None:
        self.metric = metric
        self.sign = -1.0 if metric in ("loss", "cer", "wer", "ter") else 1.0
        self.best: Best | None = None
        self.since_best = 0
        self.last: deque[Weights] = deque(maxlen=average or 1)
        self.folder = folder / "checkpoints" if folder else None
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)

    def offer(self, model: Model, step: int, value: float) -> bool:
        """A validated model; true if it is the best so far."""
        if self.best is not None and self.worth(value) <= self.worth(self.best.value):
            self.since_best += 1
            return False
        self.best = Best(step, value, snapshot(model))
        self.since_best = 0
        self.write(model, "best.safetensors")
        return True

    def worth(self, value: float) -> float:
        """The higher the better; a score that is not a number is worth less than any."""
        return -math.inf if math.isnan(value) else self.sign * value

    def checkpoint(self, model: Model) -> None:
        self.last.append(snapshot(model))
        self.write(model, "last.safetensors")

    def mean(self) -> Weights | None:
        """The mean of the last checkpoints, if there are at least two and averaging is wanted."""
        if (self.last.maxlen or 0) < 2 or len(self.last) < 2:
            return None
        return {name: torch.stack([weights[name] for weights in self.last]).mean(0) for name in self.last[0]}

    def write(self, model: Model, name: str) -> None:
        if self.folder is not None:
            write_file(self.folder / name, weights_bytes(model))
