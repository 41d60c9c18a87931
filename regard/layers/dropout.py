"""Numbers in, the same with some of them dropped out, while training.

Draws come from torch's default generator, which the training loop seeds anew for each step from (seed, step, rank):
so a mask is a pure function of the step and there is nothing to save.

torch draws one number for each element, one after the other; on a CPU that took an eighth of a training step. Where
`quick` was built, one draw is the seed of a mask. Elsewhere one draw of 64 bits serves eight elements (four, where
eight bits would miss the share by more than 2 %), and the mask is kept as bytes. On other devices torch's own kernel is
the quick one.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import Function, once_differentiable
from torch.nn import functional as F

from regard.layers import quick
from regard.layers.plain import is_plain

CLOSE = 0.02  # how far the share may be missed, as a part of it


class Dropout(nn.Module):
    """Zeroes a share of the numbers and scales up the rest (Srivastava et al. 2014)."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.share:
            return x
        if x.device.type != "cpu" or is_plain():
            return F.dropout(x, self.share)
        if quick.fits(x):
            return quick.dropped(x, self.share)
        mask, scale = draw(x, self.share)
        dropped: Tensor = Dropped.apply(x, mask, scale)  # type: ignore[no-untyped-call]
        return dropped

    def onto(self, x: Tensor, found: Tensor) -> Tensor:
        """x + dropped `found`: a residual, in one pass."""
        if not self.training or not self.share:
            return x + found
        if x.device.type != "cpu" or is_plain() or x.shape != found.shape:
            return x + self.forward(found)
        if x.dtype == torch.float32 and quick.fits(x, found):
            return quick.residual(x, found, self.share)
        mask, scale = draw(found, self.share)
        summed: Tensor = Residual.apply(x, found, mask, scale)  # type: ignore[no-untyped-call]
        return summed

    def rectified(self, x: Tensor) -> Tensor:
        """relu(x), dropped: the widest tensor of a block, so it is made once and kept once."""
        if not self.training or not self.share or x.device.type != "cpu" or is_plain():
            return self.forward(F.relu(x))
        if quick.fits(x):
            return quick.rectified(x, self.share)
        mask, scale = draw(x, self.share)
        found: Tensor = Rectified.apply(x, mask, scale)  # type: ignore[no-untyped-call]
        return found


def draw(x: Tensor, share: float) -> tuple[Tensor, float]:
    """Which elements stay, as 0 and 1 in small integers, and what they are multiplied by."""
    kind, cut = grain(share)
    bits = torch.iinfo(kind).bits
    words = torch.empty((x.numel() * bits + 63) // 64, dtype=torch.int64).random_(-(1 << 63), None)
    chance = words.view(kind)[: x.numel()].view(x.shape)
    kept = torch.ge(chance, torch.iinfo(kind).min + cut, out=torch.empty_like(chance))
    return kept, (1 << bits) / ((1 << bits) - cut)


def grain(share: float) -> tuple[torch.dtype, int]:
    """The narrowest integers that come close to a share, and how many of their values mean "dropped"."""
    eighth = round(share * 256)
    if eighth < 256 and abs(eighth / 256 - share) <= CLOSE * share:
        return torch.int8, eighth
    return torch.int16, min(max(round(share * 65536), 1), 65535)


class Dropped(Function):
    """x · mask · scale; the gradient takes the same way."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.scale = scale
        return times(x, mask, scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (mask,) = ctx.saved_tensors
        return times(gradients[0], mask, ctx.scale), None, None


class Residual(Function):
    """x + found · mask · scale."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, found: Tensor, mask: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.scale, ctx.kind = scale, found.dtype
        return torch.addcmul(x, found.to(x.dtype), mask.to(x.dtype), value=scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (mask,) = ctx.saved_tensors
        return gradients[0], times(gradients[0], mask, ctx.scale).to(ctx.kind), None, None


class Rectified(Function):
    """relu(x) · mask · scale. Where the result is 0 so is the gradient, so the mask need not be kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: Tensor, scale: float) -> Tensor:
        found = times(x, mask, scale).clamp_min_(0)
        ctx.save_for_backward(found)
        ctx.scale = scale
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (found,) = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(gradients[0], found, 0).mul_(ctx.scale), None, None


def times(x: Tensor, mask: Tensor, scale: float) -> Tensor:
    return mask.to(x.dtype).mul_(scale).mul_(x)
