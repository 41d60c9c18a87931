"""Queries and keys in, how well each query fits each key out: the seven scores, each one word in a config.

A score prepares keys once (they are kept while a target is written), prepares queries at each step, and compares the
two. All but the additive score compare by a scaled dot product of what they prepared, which the fused kernel takes.
"""

import math

import torch
from torch import Tensor, nn


class Score(nn.Module):
    """q · k: `dot`. Others change how queries and keys are prepared, or the scale."""

    product = True  # compared by a dot product times `scale`
    compares = True  # looks at queries and keys at all

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale

    def prepare_keys(self, key_BHSK: Tensor) -> Tensor:
        return key_BHSK

    def prepare_queries(self, query_BHTK: Tensor) -> Tensor:
        return query_BHTK

    def forward(self, query_BHTK: Tensor, key_BHSK: Tensor) -> Tensor:
        """Scores (B, H, T, S) of prepared queries and prepared keys."""
        return query_BHTK @ key_BHSK.transpose(-2, -1) * self.scale


def drawn(shape: tuple[int, ...], spread: float) -> nn.Parameter:
    """Fresh weights from a normal distribution of this spread."""
    return nn.Parameter(nn.init.normal_(torch.empty(shape), std=spread))


def by_head(x_BHTK: Tensor, weight_HKR: Tensor) -> Tensor:
    """Each head's vectors times its own weights: one product a head, not one for each head of each row."""
    batch, heads, length, width = x_BHTK.shape
    found = x_BHTK.transpose(0, 1).reshape(heads, batch * length, width) @ weight_HKR
    return found.view(heads, batch, length, -1).transpose(0, 1)


class Bilinear(Score):
    """qᵀ W k, one W for each head (Luong et al. 2015, "general")."""

    def __init__(self, heads: int, width: int) -> None:
        super().__init__()
        self.weight = drawn((heads, width, width), 1 / width)

    def prepare_keys(self, key_BHSK: Tensor) -> Tensor:
        return by_head(key_BHSK, self.weight.transpose(-2, -1))


class ReducedRank(Score):
    """qᵀ Uᵀ V k with U and V of rank r: a bilinear score that costs 2 r d weights in place of d²."""

    def __init__(self, heads: int, width: int, rank: int) -> None:
        super().__init__()
        self.query_weight = drawn((heads, width, rank), width**-0.5)
        self.key_weight = drawn((heads, width, rank), (width * rank) ** -0.5)

    def prepare_keys(self, key_BHSK: Tensor) -> Tensor:
        return by_head(key_BHSK, self.key_weight)

    def prepare_queries(self, query_BHTK: Tensor) -> Tensor:
        return by_head(query_BHTK, self.query_weight)


class Distance(Score):
    """−|q − k|² / 2√d: weights fall with the squared distance.

    |q|² is the same for every key and leaves the softmax alone, so the rest is a product: (q, 1) · (k, −|k|²/2).
    """

    def __init__(self, width: int) -> None:
        super().__init__(1 / math.sqrt(width))

    def prepare_keys(self, key_BHSK: Tensor) -> Tensor:
        return torch.cat([key_BHSK, key_BHSK.square().sum(-1, keepdim=True) / -2], -1)

    def prepare_queries(self, query_BHTK: Tensor) -> Tensor:
        return torch.cat([query_BHTK, torch.ones_like(query_BHTK[..., :1])], -1)


class Mean(Score):
    """No query at all: every key counts the same. The baseline that attention improves on."""

    compares = False

    def prepare_keys(self, key_BHSK: Tensor) -> Tensor:
        return torch.zeros_like(key_BHSK[..., :1])

    def prepare_queries(self, query_BHTK: Tensor) -> Tensor:
        return torch.zeros_like(query_BHTK[..., :1])


class Additive(Score):
    """vᵀ tanh(W₁ k + W₂ q) (Bahdanau et al. 2015). Not a product: it always takes the explicit path."""

    product = False

    def __init__(self, heads: int, width: int) -> None:
        super().__init__()
        self.key_weight = drawn((heads, width, width), width**-0.5)
        self.query_weight = drawn((heads, width, width), width**-0.5)
        self.vector = drawn((heads, width), width**-0.5)

    def prepare_keys(self, key_BHSK: Tensor) -> Tensor:
        return by_head(key_BHSK, self.key_weight)

    def prepare_queries(self, query_BHTK: Tensor) -> Tensor:
        return by_head(query_BHTK, self.query_weight)

    def forward(self, query_BHTK: Tensor, key_BHSK: Tensor) -> Tensor:
        fit_BHTSK = torch.tanh(query_BHTK[..., :, None, :] + key_BHSK[..., None, :, :])
        return by_head(fit_BHTSK.flatten(2, 3), self.vector[..., None]).view(fit_BHTSK.shape[:-1])
