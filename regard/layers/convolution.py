"""A sequence in, a sequence out that knows its neighbours: gated convolution (Dauphin et al. 2017)."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.layers.plain import is_plain


class GatedConvolution(nn.Module):
    """a ⊙ σ(b), both a convolution of the input over `kernel` positions. The caller pads."""

    def __init__(self, width: int, kernel: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.kernel = kernel
        self.convolution = nn.Conv1d(width, 2 * width, kernel)
        # A gate halves the signal; this start keeps its size through many layers (Gehring et al. 2017, §3.5).
        nn.init.normal_(self.convolution.weight, std=math.sqrt(4 * (1 - dropout) / (kernel * width)))
        assert self.convolution.bias is not None
        nn.init.zeros_(self.convolution.bias)

    def forward(self, padded_BTD: Tensor) -> Tensor:
        """kernel − 1 positions fewer come out than go in.

        On a CPU as one matrix product over neighbours laid side by side: two thirds of the time of torch's convolution.
        """
        if padded_BTD.device.type != "cpu" or is_plain():
            return F.glu(self.convolution(padded_BTD.transpose(1, 2)), 1).transpose(1, 2)
        length = padded_BTD.shape[1] - self.kernel + 1
        side_by_side = torch.cat([padded_BTD[:, at : at + length] for at in range(self.kernel)], -1)
        weight = self.convolution.weight.transpose(1, 2).flatten(1)
        return F.glu(F.linear(side_by_side, weight, self.convolution.bias), -1)


def pad_both(x_BTD: Tensor, kernel: int) -> Tensor:
    """Zeros on both sides, so that position t sees as far back as ahead."""
    return F.pad(x_BTD, (0, 0, kernel // 2, kernel // 2))


def last_real(seen_BSD: Tensor, count: int, mask_BT: Tensor | None) -> Tensor:
    """The last `count` real positions of each row; the first `count` positions of `seen_BSD` count as real."""
    length = seen_BSD.shape[1]
    if mask_BT is None:
        return seen_BSD[:, length - count :]
    end_B = mask_BT.sum(1) + count
    index = end_B[:, None] - count + torch.arange(count, device=seen_BSD.device)
    return seen_BSD.gather(1, index[..., None].expand(-1, -1, seen_BSD.shape[-1]))
