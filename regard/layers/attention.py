"""Queries, keys and values in, what was looked up out: one attention for every model.

A dictionary with soft keys: a query is compared with every key, and the weights mix the values
(Bahdanau et al. 2015; Vaswani et al. 2017).
"""

from dataclasses import dataclass

from torch import Tensor, cat, finfo, inf, nn, where
from torch.nn import functional as F

from regard.layers.positions import Position
from regard.layers.scores import Score
from regard.layers.tap import listening


@dataclass(frozen=True)
class Held:
    """Keys, as a score prepared them, and values: made once, looked up many times."""

    key_BHSK: Tensor
    value_BHSK: Tensor


@dataclass(frozen=True)
class Sight:
    """What one call of an attention may see, and from where: the same for all layers of a stack.

    `mask` and `bias` broadcast to (B, H, T, S); the positions are those of the queries.
    """

    mask: Tensor | None = None
    bias: Tensor | None = None
    position: Position | None = None
    at_BT: Tensor | None = None

    def turn(self, x_BHTK: Tensor) -> Tensor:
        return x_BHTK if self.position is None or self.at_BT is None else self.position.turn(x_BHTK, self.at_BT)


def weigh(scores_BHTS: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax over what may be looked at; the rest is exactly 0, and so is a row in which nothing may be."""
    if mask is None:
        return scores_BHTS.softmax(-1)
    lowest = finfo(scores_BHTS.dtype).min
    weights_BHTS = scores_BHTS.masked_fill(~mask, lowest).softmax(-1)
    return where(mask, weights_BHTS, 0.0)


def weights(query_BHTK: Tensor, held: Held, score: Score, sight: Sight) -> Tensor:
    """How much each query looks at each key, explicitly: (B, H, T, S), rows sum to 1."""
    scores_BHTS = score(query_BHTK, held.key_BHSK)
    return weigh(scores_BHTS if sight.bias is None else scores_BHTS + sight.bias.to(scores_BHTS.dtype), sight.mask)


def lookup(query_BHTK: Tensor, held: Held, score: Score, sight: Sight) -> Tensor:
    """Σ weight · value for each query: by the fused kernel where the score is a product, else explicitly."""
    if not score.product:
        return weights(query_BHTK, held, score, sight) @ held.value_BHSK
    mask, allowed = sight.mask, sight.mask
    if sight.bias is not None:
        allowed = sight.bias.to(query_BHTK.dtype)
        allowed = allowed if mask is None else allowed.masked_fill(~mask, -inf)
    return F.scaled_dot_product_attention(
        query_BHTK, held.key_BHSK, held.value_BHSK, attn_mask=allowed, scale=score.scale
    )


class Attention(nn.Module):
    """Multi-head attention from queries of one width to a memory of another, with any score and any position.

    Without projections, queries, keys and values are the vectors themselves, cut into heads.
    """

    def __init__(self, width: int, memory_width: int, heads: int, score: Score, projections: bool = True) -> None:
        super().__init__()
        self.heads = heads
        self.score = score
        self.query = nn.Linear(width, width) if projections and score.compares else nn.Identity()
        self.key = nn.Linear(memory_width, width) if projections and score.compares else nn.Identity()
        self.value = nn.Linear(memory_width, width) if projections else nn.Identity()
        self.output = nn.Linear(width, width) if projections else nn.Identity()

    def hold(self, states_BSM: Tensor, sight: Sight | None = None) -> Held:
        """Keys and values of a memory, made once."""
        value_BHSK = split(self.value(states_BSM), self.heads)
        key_BHSK = split(self.key(states_BSM), self.heads) if self.score.compares else value_BHSK
        key_BHSK = key_BHSK if sight is None else sight.turn(key_BHSK)
        return Held(self.score.prepare_keys(key_BHSK), value_BHSK)

    def forward(self, x_BTD: Tensor, held: Held, sight: Sight) -> Tensor:
        """What each position of `x_BTD` finds in what is held."""
        query_BHTK = sight.turn(split(self.query(x_BTD), self.heads))
        prepared = self.score.prepare_queries(query_BHTK)  # a score may change their width
        if tap := listening():
            tap.hear(self, weights(prepared, held, self.score, sight))
        found_BHTK = lookup(prepared, held, self.score, sight)
        found_BTD: Tensor = self.output(join(tap.change(self, found_BHTK) if tap else found_BHTK))
        return found_BTD


def split(x_BTD: Tensor, heads: int) -> Tensor:
    """Width cut into heads: (B, T, D) to (B, H, T, K)."""
    batch, length, width = x_BTD.shape
    return x_BTD.view(batch, length, heads, width // heads).transpose(1, 2)


def join(x_BHTK: Tensor) -> Tensor:
    """Heads side by side: (B, H, T, K) to (B, T, D)."""
    return x_BHTK.transpose(1, 2).flatten(2)


def after(past: Held | None, new: Held) -> Held:
    """Keys and values of the past with the new ones after them."""
    if past is None:
        return new
    return Held(cat([past.key_BHSK, new.key_BHSK], 2), cat([past.value_BHSK, new.value_BHSK], 2))
