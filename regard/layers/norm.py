"""Vectors in, the same with mean 0 and deviation 1 out, in the numbers in which the next product computes."""

import torch
from torch import Tensor, nn

from regard.layers import quick


def normed(norm: nn.Module, x_BTD: Tensor) -> Tensor:
    """What the norm makes of vectors that go into a product; in training a layer norm takes one pass each way."""
    if (
        isinstance(norm, nn.LayerNorm)
        and norm.bias is not None
        and x_BTD.requires_grad
        and x_BTD.dtype == norm.weight.dtype == torch.float32
        and quick.fits(x_BTD)
    ):
        kind = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
        if kind in quick.KINDS:
            return quick.norm(x_BTD, norm.weight, norm.bias, norm.eps, kind)
    found_BTD: Tensor = norm(x_BTD)
    return found_BTD
