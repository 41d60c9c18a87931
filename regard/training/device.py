"""Settings in, where and in which numbers to compute out."""

from contextlib import AbstractContextManager, nullcontext

import torch

from regard.config import Train
from regard.errors import ConfigError

LARGE = 1_000_000  # parameters from which on bf16 is worth its rounding


def device(t: Train, local: int = 0) -> torch.device:
    """`auto` takes a GPU where there is one; of several processes on a machine each takes its own."""
    if t.device == "auto":
        return torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
    try:
        found = torch.device(t.device)
    except RuntimeError:
        raise ConfigError(f"train.device: {t.device!r} is not a device; expected auto, cpu or cuda") from None
    if found.type not in ("cpu", "cuda"):
        raise ConfigError(f"train.device: {t.device!r} is not supported here; expected auto, cpu or cuda")
    if found.type == "cuda" and found.index is None and torch.cuda.is_available():
        found = torch.device("cuda", local)
    if found.type == "cuda" and (found.index or 0) >= max(1, torch.cuda.device_count()):
        raise ConfigError(f"train.device: {t.device!r}: this machine has {torch.cuda.device_count()} such device(s)")
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError("train.device: cuda was asked for, and this machine has none; auto or cpu will do")
    return found


def native_bf16(where: torch.device) -> bool:
    """Whether this processor computes bf16 itself. It is asked, not timed, so it always answers the same."""
    if where.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    known = torch.cpu.get_capabilities()
    return bool(known.get("avx512_bf16") or known.get("amx_bf16"))


def precision(t: Train, where: torch.device, parameters: int) -> str:
    """fp32 or bf16: what was asked for, or by `auto` bf16 where it is native and the model large enough to gain by it.

    A loop of 256 makes 1.3 times as many steps in bf16 and learns as much; one of 64 is no faster, and one run of
    three did not learn to reverse. What is small is so the same on every machine.
    """
    if t.precision == "auto":
        return "bf16" if parameters >= LARGE and native_bf16(where) else "fp32"
    return t.precision


def autocast(numbers: str, where: torch.device) -> AbstractContextManager[object]:
    """Products in these numbers; the weights themselves stay fp32."""
    return torch.autocast(where.type, torch.bfloat16) if numbers == "bf16" else nullcontext()
