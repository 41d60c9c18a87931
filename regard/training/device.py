"""Settings in, where and in which numbers to compute out."""

from contextlib import AbstractContextManager, nullcontext

import torch

from regard.config import Train
from regard.errors import ConfigError


def device(t: Train) -> torch.device:
    """`auto` takes a GPU where there is one."""
    if t.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(t.device)
    except RuntimeError:
        raise ConfigError(f"train.device: {t.device!r} is not a device; expected auto, cpu or cuda") from None
    if found.type not in ("cpu", "cuda"):
        raise ConfigError(f"train.device: {t.device!r} is not supported here; expected auto, cpu or cuda")
    if found.type == "cuda" and (found.index or 0) >= max(1, torch.cuda.device_count()):
        raise ConfigError(f"train.device: {t.device!r}: this machine has {torch.cuda.device_count()} such device(s)")
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError("train.device: cuda was asked for, and this machine has none; auto or cpu will do")
    return found


def precision(t: Train, where: torch.device) -> AbstractContextManager[object]:
    """bf16 where it is asked for, or by `auto` on a GPU; the weights themselves stay fp32."""
    wanted = t.precision == "bf16" or (t.precision == "auto" and where.type == "cuda")
    return torch.autocast(where.type, torch.bfloat16) if wanted else nullcontext()
