"""A step in, the learning rate and the share of forced tokens out."""

import math

from regard.config import Train


def learning_rate(t: Train, step: int) -> float:
    """Rises in a line over the warm-up, then falls; steps count from 1."""
    warmup = t.warmup_steps
    if step <= warmup:
        return t.learning_rate * step / warmup
    match t.schedule:
        case "inverse-sqrt":
            return t.learning_rate * math.sqrt(max(warmup, 1) / step)
        case "cosine":
            done = (step - 1 - warmup) / max(1, t.steps - warmup)
            return t.learning_rate * 0.5 * (1.0 + math.cos(math.pi * min(done, 1.0)))
        case "constant":
            return t.learning_rate


def forcing(t: Train, step: int) -> float:
    """How often a decoder is fed the true token: from `forcing` in a line to `forcing_end`."""
    if t.forcing_end is None:
        return t.forcing
    return t.forcing + (t.forcing_end - t.forcing) * (step - 1) / max(1, t.steps - 1)
