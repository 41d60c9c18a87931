"""A step in, the learning rate and the share of forced tokens out.

Both end with the `last` step: the one that is planned now, where minutes bound a run; none = that of the config.
"""

import math

from regard.config import Train


def learning_rate(t: Train, step: int, last: int | None = None) -> float:
    """Rises in a line over the warm-up, then falls; steps count from 1.

    Of a run that the minutes make short the warm-up is a quarter at most, or a tenth where none was said.
    """
    last = last or t.steps
    most = t.warmup_steps if last >= t.steps else last // 4
    warmup = min(t.warmup_steps, last // 10 if t.warmup is None else most)
    if step <= warmup:
        return t.learning_rate * step / warmup
    match t.schedule:
        case "inverse-sqrt":
            return t.learning_rate * math.sqrt(max(warmup, 1) / step)
        case "cosine":
            done = (step - 1 - warmup) / max(1, last - warmup)
            return t.learning_rate * 0.5 * (1.0 + math.cos(math.pi * min(done, 1.0)))
        case "constant":
            return t.learning_rate


def forcing(t: Train, step: int, last: int | None = None) -> float:
    """How often a decoder is fed the true token: from `forcing` in a line to `forcing_end`."""
    if t.forcing_end is None:
        return t.forcing
    return t.forcing + (t.forcing_end - t.forcing) * min(1.0, (step - 1) / max(1, (last or t.steps) - 1))
