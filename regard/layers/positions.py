"""Where a token stands, brought into a network in one of three places.

Positions are numbers `at_BT`; B is 1 where all rows agree.
"""

import math

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.layers import quick


class Position(nn.Module):
    """Where a token stands can act in three places; a scheme overrides what it needs and leaves the rest."""

    def add(self, x_BTD: Tensor, at_BT: Tensor) -> Tensor:
        """Onto embeddings."""
        return x_BTD

    def turn(self, x_BHTK: Tensor, at_BT: Tensor) -> Tensor:
        """Queries and keys of self-attention."""
        return x_BHTK

    def bias(self, at_BT: Tensor, at_BS: Tensor) -> Tensor | None:
        """Scores of self-attention: (B, H, T, S)."""
        return None


class Sinusoidal(Position):
    """Sines and cosines of falling frequency (Vaswani et al. 2017)."""

    def add(self, x_BTD: Tensor, at_BT: Tensor) -> Tensor:
        return x_BTD + waves(at_BT, x_BTD.shape[-1]).to(x_BTD.dtype)


class SinusoidalGrid(Position):
    """Sines and cosines of the row in one half of the width, of the column in the other: for places in a picture."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def add(self, x_BTD: Tensor, at_BT: Tensor) -> Tensor:
        width = x_BTD.shape[-1]
        row = waves(at_BT // self.side, width // 2)
        column = waves(at_BT % self.side, width - width // 2)
        return x_BTD + torch.cat([row, column], -1).to(x_BTD.dtype)


class Learned(Position):
    """A vector for each position up to a longest length (Gehring et al. 2017)."""

    def __init__(self, longest: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(nn.init.normal_(torch.empty(longest, width), std=0.02))

    def add(self, x_BTD: Tensor, at_BT: Tensor) -> Tensor:
        if x_BTD.shape[1] > len(self.table) or int(at_BT.max()) >= len(self.table):
            raise beyond(int(at_BT.max()) + 1, len(self.table))
        return x_BTD + self.table[at_BT]


class Rotary(Position):
    """Pairs of numbers turned by an angle that grows with the position (Su et al. 2021): products know the distance."""

    def turn(self, x_BHTK: Tensor, at_BT: Tensor) -> Tensor:
        half = x_BHTK.shape[-1] // 2
        rate = 10000.0 ** (-torch.arange(half, device=x_BHTK.device, dtype=torch.float64) / half)
        if x_BHTK.requires_grad and x_BHTK.shape[-1] % 2 == 0 and quick.fits(x_BHTK):
            angles = at_BT[..., None] * rate
            return quick.turned(x_BHTK, angles.cos().float(), angles.sin().float())
        angle = at_BT[:, None, :, None] * rate
        cosine, sine = angle.cos().to(x_BHTK.dtype), angle.sin().to(x_BHTK.dtype)
        left, right = x_BHTK[..., :half], x_BHTK[..., half:]
        return torch.cat([left * cosine - right * sine, left * sine + right * cosine], -1)


class Anchored(Sinusoidal, Rotary):
    """Both: a vector knows its place, and a product the distance."""


class Relative(Position):
    """A learnt bias for each distance, clipped (Shaw et al. 2018, in the form of Raffel et al. 2020)."""

    def __init__(self, heads: int, reach: int = 32) -> None:
        super().__init__()
        self.reach = reach
        self.table = nn.Parameter(torch.zeros(2 * reach + 1, heads))

    def bias(self, at_BT: Tensor, at_BS: Tensor) -> Tensor:
        apart_BTS = (at_BS[:, None, :] - at_BT[:, :, None]).clamp(-self.reach, self.reach)
        return self.table[apart_BTS + self.reach].permute(0, 3, 1, 2)


class Alibi(Position):
    """A penalty that grows with the distance, at a fixed rate for each head (Press et al. 2022)."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def bias(self, at_BT: Tensor, at_BS: Tensor) -> Tensor:
        apart_BTS = (at_BS[:, None, :] - at_BT[:, :, None]).abs()
        rate_H = 2.0 ** (-8.0 * torch.arange(1, self.heads + 1, device=at_BT.device) / self.heads)
        return -rate_H[:, None, None] * apart_BTS[:, None]


def beyond(position: int, most: int) -> RegardError:
    return RegardError(f"position {position}: learned positions end at {most}; "
                       "raise data.max_source and data.max_target, or choose another position")  # fmt: skip


def waves(at_BT: Tensor, width: int) -> Tensor:
    """Sines in the first half, cosines in the second, of each position: (B, T, width)."""
    half = (width + 1) // 2
    rate = torch.exp(-math.log(10000.0) * torch.arange(half, device=at_BT.device, dtype=torch.float64) / half)
    angle = at_BT[..., None] * rate
    return torch.cat([angle.sin(), angle.cos()], -1)[..., :width]


def places(at: int | Tensor, length: int, mask_BT: Tensor | None, device: torch.device) -> tuple[Tensor, int | Tensor]:
    """Positions of `length` further tokens after `at`, and where the next one will stand.

    `at` is a number while all rows agree; a mask (False = padding, which takes no place) makes it one for each row.
    """
    if mask_BT is not None:
        start_B = at if isinstance(at, Tensor) else torch.full((len(mask_BT),), at, device=device)
        count_BT = mask_BT.long().cumsum(1)
        return start_B[:, None] + (count_BT - 1).clamp(min=0), start_B + count_BT[:, -1]
    further = torch.arange(length, device=device)
    return (at[:, None] + further if isinstance(at, Tensor) else (at + further)[None]), at + length
