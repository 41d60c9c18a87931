"""One position in, the same position out: two layers with a bend between them."""

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional as F

from regard.layers.dropout import Dropout

BENDS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}


class FeedForward(nn.Module):
    """W₂ bend(W₁ x), or gated: W₂ (bend(W₁ x) ⊙ W₃ x) (Shazeer 2020)."""

    def __init__(self, width: int, inner: int, activation: str, gated: bool, dropout: Dropout) -> None:
        super().__init__()
        self.inner = nn.Linear(width, inner)
        self.gate = nn.Linear(width, inner) if gated else None
        self.outer = nn.Linear(inner, width)
        self.bend = BENDS[activation]
        self.dropout = dropout

    def forward(self, x_BTD: Tensor) -> Tensor:
        inner_BTF = self.inner(x_BTD)
        if self.gate is not None:
            inner_BTF = self.dropout(self.bend(inner_BTF) * self.gate(x_BTD))
        elif self.bend is F.relu:
            inner_BTF = self.dropout.rectified(inner_BTF)
        else:
            inner_BTF = self.dropout(self.bend(inner_BTF))
        found_BTD: Tensor = self.outer(inner_BTF)
        return found_BTD
