"""Token ids in, vectors out; and the way back, states in, logits out."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Embedding(nn.Module):
    """A table of vectors, scaled by the square root of their width so that positions do not drown them.

    In training a share of `unseen` tokens has no vector at all (Gal & Ghahramani 2016): what they were is to be told by
    the others.
    """

    def __init__(self, vocabulary: int, width: int, scale: bool, dropout: nn.Module, unseen: float = 0.0) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.scale = math.sqrt(width) if scale else 1.0
        self.dropout = dropout
        self.unseen = unseen
        nn.init.normal_(self.table.weight, std=1 / math.sqrt(width))

    def forward(self, ids_BT: Tensor) -> Tensor:
        vectors_BTD: Tensor = self.dropout(self.table(ids_BT) * self.scale)
        if not self.training or not self.unseen:
            return vectors_BTD
        seen_BT = torch.rand(ids_BT.shape, device=ids_BT.device) >= self.unseen
        return vectors_BTD * seen_BT[..., None]


class Output(nn.Module):
    """States to logits over the vocabulary, by weights of its own or, tied, by an embedding's (Press & Wolf 2017)."""

    def __init__(self, vocabulary: int, width: int, tied: Embedding | None = None) -> None:
        super().__init__()
        linear = nn.Linear(width, vocabulary)
        if tied is not None:
            linear.weight = tied.table.weight
        self.weight = linear.weight
        self.bias = nn.Parameter(linear.bias.detach().zero_())

    def forward(self, states_BTD: Tensor) -> Tensor:
        return F.linear(states_BTD, self.weight, self.bias)
