"""Tensors of a training step in, tensors out: what onepass.cpp computes in one pass, with the way back of each.

Each function here stands beside one in torch that takes several passes, and comes to the same but for rounding; who
calls asks `fits` first. Where the library was not built, on other devices and in other numbers nothing fits, and
torch computes. Nothing is drawn element by element: a number from torch's generator is the seed of a whole mask, which
is made again on the way back instead of being kept.
"""

import ctypes
from collections.abc import Callable
from ctypes import POINTER, c_float, c_int32, c_int64, c_uint32, c_void_p
from functools import cache
from pathlib import Path
from platform import machine
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

from regard.layers.plain import is_plain

KINDS = (torch.float32, torch.bfloat16)
MOST = 1 << 32  # numbers in a tensor, beyond which places would be drawn for twice
# Queries or keys, up to which attention is computed here; beyond, torch is as fast or faster.
SHORT = {torch.float32: 16, torch.bfloat16: 64}
LANES = 8  # floats in a register, with fewer of which torch is the faster one on the processors that have more
VERSION = 1  # of the functions, as onepass.cpp has it


class Chance(ctypes.Structure):
    """As onepass.cpp has it."""

    _fields_: ClassVar = [("low", c_uint32), ("high", c_uint32), ("cut", c_uint32), ("scale", c_float)]


class Rows(ctypes.Structure):
    """As onepass.cpp has it."""

    _fields_: ClassVar = [("batch", c_int64), ("time", c_int64), ("head", c_int64), ("angle_batch", c_int64),
                          ("length", c_int32), ("heads", c_int32), ("width", c_int32)]  # fmt: skip


LOOKED_AT = ("query", "key", "value", "gradient")


class Shape(ctypes.Structure):
    """As onepass.cpp has it."""

    _fields_: ClassVar = [
        *((f"{of}_{step}", c_int64) for of in LOOKED_AT for step in ("batch", "time", "head")),
        *((f"mask_{step}", c_int64) for step in ("batch", "query", "key")),
        *((name, c_int32) for name in ("batch", "heads", "queries", "keys", "width")), ("scale", c_float),
    ]  # fmt: skip


HERE = c_void_p  # where a tensor lies
SIGNATURES = {
    "drop": [HERE, HERE, c_int32, c_int64, POINTER(Chance), c_int32, c_int32],
    "onto": [HERE, HERE, HERE, c_int32, c_int64, POINTER(Chance), c_int32],
    "rectified_back": [HERE, HERE, HERE, c_int32, c_int64, c_float, c_int32],
    "norm": [HERE, HERE, HERE, HERE, HERE, c_int32, c_int64, c_int32, c_float, c_int32],
    "norm_back": [HERE, HERE, HERE, HERE, HERE, HERE, c_int32, c_int64, c_int32, c_int32],
    "turn": [HERE, HERE, HERE, HERE, POINTER(Rows), c_int64, c_int32, c_float, c_int32],
    "look": [HERE, HERE, HERE, HERE, HERE, HERE, POINTER(Shape), c_int32, c_int32],
    "look_back": [HERE, HERE, HERE, HERE, HERE, HERE, HERE, HERE, POINTER(Shape), c_int32, c_int32],
    "log_sums": [HERE, HERE, c_int32, c_int64, c_int64, c_int32],
    "slopes": [HERE, HERE, HERE, HERE, HERE, HERE, c_int32, c_int64, c_int64, c_int32],
}


@cache
def library() -> ctypes.CDLL | None:
    """What `pip install` built beside this file, if it could."""
    for path in sorted(Path(__file__).parent.glob("onepass*.so")):
        try:
            loaded = ctypes.CDLL(str(path))
            theirs = (c_int32 * 4)()
            loaded.onepass_sizes(theirs)
            if list(theirs) != [*(ctypes.sizeof(each) for each in (Chance, Rows, Shape)), VERSION]:
                continue
            if loaded.onepass_lanes() < LANES and machine() in ("x86_64", "AMD64"):
                continue
            for name, arguments in SIGNATURES.items():
                function = getattr(loaded, f"onepass_{name}")
                function.argtypes, function.restype = arguments, None
        except (OSError, AttributeError):  # of another machine or another version: as if there were none
            continue
        return loaded
    return None


def fits(*tensors: Tensor) -> bool:
    """Whether these can be computed with here."""
    return (
        all(each.device.type == "cpu" and each.dtype in KINDS and each.numel() < MOST for each in tensors)
        and not is_plain()
        and library() is not None
    )


def call(name: str, *arguments: Any) -> None:
    """A function of the library, with the places of tensors and the threads that torch uses."""
    places = (each.data_ptr() if isinstance(each, Tensor) else each for each in arguments)
    getattr(library(), f"onepass_{name}")(*places, torch.get_num_threads())


def half(x: Tensor) -> int:
    return int(x.dtype == torch.bfloat16)


# ── dropping out ─────────────────────────────────────────────────────────────────────────────────────────────────────


def chance_of(share: float) -> Chance:
    """A fresh mask in which this share is dropped."""
    seed = int(torch.empty((), dtype=torch.int64).random_(-(1 << 63), None))
    cut = min(round(share * MOST), MOST - 1)
    return Chance(seed & (MOST - 1), (seed >> 32) & (MOST - 1), cut, MOST / (MOST - cut))


def masked(x: Tensor, chance: Chance, kind: torch.dtype, rectified: bool = False) -> Tensor:
    out = torch.empty_like(x, dtype=kind)
    call("drop", out, x, half(x) + 2 * half(out), x.numel(), chance, rectified)
    return out


class Dropped(Function):
    """x · mask · scale; the gradient takes the same way."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, share: float) -> Tensor:
        ctx.chance = chance_of(share)
        return masked(x.contiguous(), ctx.chance, x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return masked(gradients[0].contiguous(), ctx.chance, gradients[0].dtype), None


class Residual(Function):
    """x + found · mask · scale."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, found: Tensor, share: float) -> Tensor:
        ctx.chance, ctx.kind = chance_of(share), found.dtype
        x, found = x.contiguous(), found.contiguous()
        out = torch.empty_like(x)
        call("onto", out, x, found, half(found), x.numel(), ctx.chance)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        return gradients[0], masked(gradients[0].contiguous(), ctx.chance, ctx.kind), None


class Rectified(Function):
    """relu(x) · mask · scale. Where the result is 0 so is the gradient, so the mask need not be made again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, share: float) -> Tensor:
        chance = chance_of(share)
        ctx.scale = chance.scale
        found = masked(x.contiguous(), chance, x.dtype, rectified=True)
        ctx.save_for_backward(found)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (found,) = ctx.saved_tensors
        out = torch.empty_like(found)
        call("rectified_back", out, gradients[0].contiguous(), found, half(found), found.numel(), ctx.scale)
        return out, None


# ── layer norm ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Norm(Function):
    """(x − mean) / deviation · weight + bias, in the numbers in which it will be multiplied."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, epsilon: float, kind: torch.dtype) -> Tensor:
        x, width = x.contiguous(), x.shape[-1]
        out, moments = torch.empty_like(x, dtype=kind), x.new_empty(x.numel() // width, 2)
        call("norm", out, moments, x, weight, bias, half(out), len(moments), width, epsilon)
        ctx.save_for_backward(x, weight, moments)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, moments = ctx.saved_tensors
        given = gradients[0].contiguous()
        out, sums = torch.empty_like(x), x.new_zeros(torch.get_num_threads(), 2, x.shape[-1])
        call("norm_back", out, sums, given, x, moments, weight, half(given), len(moments), x.shape[-1])
        return out, *sums.sum(0), None, None


# ── turning by an angle ──────────────────────────────────────────────────────────────────────────────────────────────


class Turned(Function):
    """The halves of each vector turned with each other, by angles (1 or B, T, K/2) given as cosine and sine."""

    @staticmethod
    def forward(ctx: Any, x_BHTK: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        cosine, sine = cosine.contiguous(), sine.contiguous()
        ctx.save_for_backward(cosine, sine)
        return turn(x_BHTK, cosine, sine, 1.0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        cosine, sine = ctx.saved_tensors
        return turn(gradients[0], cosine, sine, -1.0), None, None


def turn(x_BHTK: Tensor, cosine: Tensor, sine: Tensor, way: float) -> Tensor:
    x_BHTK = in_rows(x_BHTK)
    batch, heads, length, width = x_BHTK.shape
    out_BTHK = x_BHTK.new_empty(batch, length, heads, width)
    angles = length if len(cosine) > 1 else 0
    rows = Rows(*(x_BHTK.stride(axis) for axis in (0, 2, 1)), angles, length, heads, width)
    call("turn", out_BTHK, x_BHTK, cosine, sine, rows, batch, half(out_BTHK), way)
    return out_BTHK.transpose(1, 2)


def in_rows(x: Tensor) -> Tensor:
    """The same with the numbers of a vector side by side."""
    return x if x.stride(-1) == 1 else x.contiguous()


# ── attention over short sequences ───────────────────────────────────────────────────────────────────────────────────


class Looked(Function):
    """Σ softmax(scale · q · k) v for each query, over the keys that the mask (B or 1, 1, T or 1, S) allows."""

    @staticmethod
    def forward(
        ctx: Any, query_BHTK: Tensor, key_BHSK: Tensor, value_BHSK: Tensor, mask: Tensor | None, scale: float
    ) -> Tensor:
        given = [in_rows(each) for each in (query_BHTK, key_BHSK, value_BHSK)]
        (batch, heads, queries, width), keys = query_BHTK.shape, key_BHSK.shape[2]
        seen = (torch.ones(1, dtype=torch.bool) if mask is None else mask).expand(batch, 1, queries, keys)
        shape = Shape(batch=batch, heads=heads, queries=queries, keys=keys, width=width, scale=scale)
        for name, each in zip(LOOKED_AT, given, strict=False):
            steps(shape, name, each)
        shape.mask_batch, _, shape.mask_query, shape.mask_key = seen.stride()
        out_BTHK = query_BHTK.new_empty(batch, queries, heads, width)
        weights = query_BHTK.new_empty(batch, heads, queries, columns(keys), dtype=torch.float32)
        call("look", out_BTHK, weights, *given, seen, shape, half(out_BTHK))
        ctx.save_for_backward(*given, weights)
        ctx.shape = shape
        return out_BTHK.transpose(1, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        *given, weights = ctx.saved_tensors
        gradient = in_rows(gradients[0])
        steps(ctx.shape, "gradient", gradient)
        found = [each.new_empty(each.shape[0], each.shape[2], each.shape[1], each.shape[3]) for each in given]
        call("look_back", *found, gradient, weights, *given, ctx.shape, half(gradient))
        return *(each.transpose(1, 2) for each in found), None, None


@cache
def columns(keys: int) -> int:
    """Whole registers that hold a weight for each key."""
    loaded = library()
    assert loaded is not None
    lanes: int = loaded.onepass_lanes()
    return -(-keys // lanes) * lanes


def steps(shape: Shape, name: str, x_BHTK: Tensor) -> None:
    """How far apart the parts of this tensor lie."""
    for place, axis in enumerate(("batch", "head", "time")):
        setattr(shape, f"{name}_{axis}", x_BHTK.stride(place))


def looks(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> bool:
    """Whether this attention can be computed here, and should be; values of some scores are wider than their keys."""
    return (
        key.dtype == query.dtype == value.dtype
        and key.shape == value.shape
        and (key.shape[:2], key.shape[3]) == (query.shape[:2], query.shape[3])
        and (mask is None or (mask.dtype == torch.bool and mask.ndim == 4 and mask.shape[1] == 1))
        and fits(query)
        and max(query.shape[2], key.shape[2]) <= SHORT[query.dtype]
    )


# ── softmax over a vocabulary ────────────────────────────────────────────────────────────────────────────────────────


def log_sums(logits_RV: Tensor) -> Tensor:
    """log Σ exp of each row."""
    out_R = logits_RV.new_empty(len(logits_RV), dtype=torch.float32)
    call("log_sums", out_R, logits_RV, half(logits_RV), *logits_RV.shape)
    return out_R


def slopes(
    logits_RV: Tensor, log_sum_R: Tensor, times_R: Tensor, pull_R: Tensor, label_R: Tensor, sum_V: Tensor
) -> None:
    """Logits become times · softmax, less the pull at the label, where they stand; the sum over the rows is added."""
    sums = sum_V.new_zeros(torch.get_num_threads(), len(sum_V))
    call("slopes", logits_RV, log_sum_R, times_R, pull_R, label_R, sums, half(logits_RV), *logits_RV.shape)
    sum_V += sums.sum(0)


# ── what others call ─────────────────────────────────────────────────────────────────────────────────────────────────


def function(made: type[Function]) -> Callable[..., Tensor]:
    """A function of tensors that autograd goes back through."""
    return made.apply


dropped, residual, rectified = function(Dropped), function(Residual), function(Rectified)
norm, turned, looked = function(Norm), function(Turned), function(Looked)
