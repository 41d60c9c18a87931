"""What passes between the halves of a model: what is read (Memory), and what a search carries (Reading)."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from regard.layers.attention import Held, Sight
from regard.layers.pointer import Offer
from regard.layers.recurrent import Cells
from regard.layers.rows import rows


@dataclass(frozen=True)
class Memory:
    """What a decoder reads and never changes: encoder states, and the keys made from them once."""

    states_BSM: Tensor
    mask_BS: Tensor  # True where a real token is
    last_BM: Tensor  # the state after the last real token
    source_BS: Tensor | None = None  # the tokens that were read; none = a picture
    final: tuple[Cells, ...] = ()  # of a recurrent encoder: the last state of each layer
    keys: tuple[Held, ...] = ()  # of each attention that reads this memory
    offer: Offer | None = None  # what a copy head can point at
    begun: Any = None  # the state of a decoder that has read the source already, to be pointed into

    def sight(self) -> Sight:
        return Sight(self.mask_BS[:, None, None, :])

    def mean_BM(self) -> Tensor:
        share_BS = self.mask_BS / self.mask_BS.sum(1, keepdim=True).clamp(min=1)
        return torch.einsum("bs,bsm->bm", share_BS.to(self.states_BSM.dtype), self.states_BSM)


@dataclass(frozen=True)
class Reading:
    """One row of a search: the memory of its source and the decoder's state so far."""

    memory: Memory
    state: Any
    source_R: Tensor  # the source each row belongs to

    def rows(self, index_R: Tensor) -> "Reading":
        """The memory is never reordered within a source: rows of one source read the same."""
        source_R = self.source_R[index_R]
        same = torch.equal(source_R, self.source_R)
        return replace(
            self,
            memory=self.memory if same else rows(self.memory, index_R),
            state=rows(self.state, index_R),
            source_R=source_R,
        )


@dataclass(frozen=True)
class Read:
    """What a head reads: a state at each position, which positions are real, and what was looked up on the way."""

    states_BTD: Tensor
    mask_BT: Tensor
    memory: Memory


def last_real_state(states_BSM: Tensor, mask_BS: Tensor) -> Tensor:
    """The state at the last real position of each row; zeros where there are no positions at all."""
    if not mask_BS.shape[1]:
        return states_BSM.new_zeros(states_BSM.shape[0], states_BSM.shape[2])
    at_S = torch.arange(mask_BS.shape[1], device=mask_BS.device)
    last_B = (at_S * mask_BS).amax(1)
    return states_BSM[torch.arange(len(states_BSM), device=mask_BS.device), last_B]
