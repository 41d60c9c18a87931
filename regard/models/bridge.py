"""A Memory in, the first state of a recurrent decoder out."""

import torch
from torch import Tensor, nn

from regard.layers.recurrent import Cells
from regard.models.memory import Memory


def summary(memory: Memory, kind: str) -> Tensor:
    """The source as one vector: the mean of its states, or the last of them."""
    return memory.mean_BM() if kind == "mean" else memory.last_BM


class Bridge(nn.Module):
    """tanh(W · summary) for each layer; or the encoder's own last states (`copy`); or nothing (`zero`)."""

    def __init__(self, kind: str, memory_width: int, width: int, layers: int, parts: int) -> None:
        super().__init__()
        self.kind, self.width, self.layers, self.parts = kind, width, layers, parts
        made = kind in ("last", "mean")
        self.project = nn.Linear(memory_width, layers * parts * width) if made else None

    def forward(self, memory: Memory) -> tuple[Cells, ...]:
        if self.kind == "copy":
            return memory.final
        if self.project is None:
            made = memory.states_BSM.new_zeros(len(memory.mask_BS), self.layers * self.parts * self.width)
        else:
            made = torch.tanh(self.project(summary(memory, self.kind)))
        pieces = made.chunk(self.layers * self.parts, -1)
        return tuple(pieces[i : i + self.parts] for i in range(0, len(pieces), self.parts))
