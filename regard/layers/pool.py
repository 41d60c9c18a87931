"""States of texts in, one vector for each out: their mean, their maximum, the state of one token, or attention."""

import torch
from torch import Tensor, nn

from regard.layers.tap import listening


class Pool(nn.Module):
    """One vector for each row, from its real positions alone.

    class       the state at the last position, where a token stands that means nothing else
    attention   the mean under weights softmax(w · h), w learnt (Lin et al. 2017, with one hop)
    """

    def __init__(self, kind: str, width: int) -> None:
        super().__init__()
        self.kind = kind
        self.weight = nn.Parameter(torch.zeros(width)) if kind == "attention" else None

    def forward(self, states_BTD: Tensor, mask_BT: Tensor) -> Tensor:
        return self.flat(states_BTD[mask_BT], mask_BT.sum(1))

    def flat(self, states_ND: Tensor, count_B: Tensor) -> Tensor:
        """The same of rows that are laid one after the other, with how many states each has.

        A row is summed on its own, one state after the other: what stands beside it changes no bit of it.
        """
        if self.kind == "class":
            return states_ND[count_B.cumsum(0) - 1]
        if self.weight is None:
            return segments(states_ND, count_B, self.kind)
        score_N1 = (states_ND * self.weight).sum(1, keepdim=True)
        highest_N1 = segments(score_N1, count_B, "max").repeat_interleave(count_B, 0)
        share_N1 = (score_N1 - highest_N1.detach()).exp()
        sum_B1 = segments(share_N1, count_B, "sum")
        if tap := listening():
            shares_N1 = share_N1 / sum_B1.repeat_interleave(count_B, 0)
            for share in torch.split(shares_N1, count_B.tolist()):
                tap.hear(self, share.view(1, 1, 1, -1))
        return segments(share_N1 * states_ND, count_B, "sum") / sum_B1


def segments(states_ND: Tensor, count_B: Tensor, how: str) -> Tensor:
    """Sum, mean or maximum of each run of `count_B` states."""
    found_BD: Tensor = torch.segment_reduce(states_ND, how, lengths=count_B, axis=0, unsafe=True)
    return found_BD
