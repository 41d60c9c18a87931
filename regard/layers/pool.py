"""States of a text in, one vector out: their mean, their maximum, the state of a token of its own, or attention."""

import torch
from torch import Tensor, nn


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
        hidden_BT1 = ~mask_BT[..., None]
        if self.kind == "max":
            found_BD: Tensor = states_BTD.masked_fill(hidden_BT1, -torch.inf).amax(1)
            return found_BD
        if self.kind == "class":
            last_B = mask_BT.long().cumsum(1).argmax(1)
            return states_BTD[torch.arange(len(states_BTD), device=last_B.device), last_B]
        score_BT1 = torch.zeros_like(states_BTD[..., :1]) if self.weight is None else states_BTD @ self.weight[:, None]
        share_BT1 = score_BT1.masked_fill(hidden_BT1, -torch.inf).softmax(1)
        return (share_BT1 * states_BTD).sum(1)
