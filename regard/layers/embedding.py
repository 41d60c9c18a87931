"""Token ids in, vectors out; and the way back, states in, logits out."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.layers.ngrams import NGrams


class Embedding(nn.Module):
    """A table of vectors, scaled by the square root of their width so that positions do not drown them.

    In training a share of `unseen` tokens has no vector at all. With `ngrams`, those of the runs that a token stands in
    are added to its own.
    """

    def __init__(
        self, vocabulary: int, width: int, scale: bool, dropout: nn.Module, unseen: float = 0.0,
        ngrams: NGrams | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.scale = math.sqrt(width) if scale else 1.0
        self.dropout = dropout
        self.unseen = unseen
        nn.init.normal_(self.table.weight, std=1 / math.sqrt(width))
        self.ngrams = ngrams

    def forward(self, ids_BT: Tensor) -> Tensor:
        vectors_BTD: Tensor = self.table(ids_BT)
        if self.ngrams is not None:
            vectors_BTD = vectors_BTD + self.ngrams(ids_BT)
        vectors_BTD = self.dropout(vectors_BTD * self.scale)
        return drop_tokens(vectors_BTD, self.unseen) if self.training else vectors_BTD


def drop_tokens(vectors_BTD: Tensor, share: float) -> Tensor:
    """The same with the whole vectors of a share of the tokens zeroed, and the others as they are: word dropout, as in
    Iyyer et al. 2015 and, in a decoder, Bowman et al. 2016 (https://arxiv.org/abs/1511.06349)."""
    if not share:
        return vectors_BTD
    seen_BT = torch.rand(vectors_BTD.shape[:2], device=vectors_BTD.device) >= share
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
