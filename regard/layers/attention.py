"""Queries, keys and values in, what was looked up out: one attention for every model.

A dictionary with soft keys: a query is compared with every key, and the weights mix the values
(Bahdanau et al. 2015; Vaswani et al. 2017).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, bfloat16, cat, finfo, inf, nn, where
from torch.nn import functional as F

from regard.layers import quick
from regard.layers.plain import is_plain
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
    """Σ weight · value for each query: of short texts in one pass while learning, else by the fused kernel.

    Where the score is no product it is computed explicitly.
    """
    if score.product and sight.bias is None and query_BHTK.requires_grad:
        given = query_BHTK, held.key_BHSK, held.value_BHSK, sight.mask
        if quick.looks(*given):
            return quick.looked(*given, score.scale)
    if not score.product or is_slow(query_BHTK):
        return weights(query_BHTK, held, score, sight) @ held.value_BHSK
    mask, allowed = sight.mask, sight.mask
    if sight.bias is not None:
        allowed = sight.bias.to(query_BHTK.dtype)
        allowed = allowed if mask is None else allowed.masked_fill(~mask, -inf)
    return F.scaled_dot_product_attention(
        query_BHTK, held.key_BHSK, held.value_BHSK, attn_mask=allowed, scale=score.scale
    )


def is_slow(query_BHTK: Tensor) -> bool:
    """On a CPU the backward pass of the fused kernel in bf16 takes a third of a training step."""
    return query_BHTK.device.type == "cpu" and query_BHTK.dtype == bfloat16 and query_BHTK.requires_grad


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

    def hold(self, states_BSM: Tensor) -> Held:
        """Keys and values of a memory, made once."""
        key, value = together(states_BSM, self.key, self.value)
        return self.held(key, value, Sight())

    def forward(self, x_BTD: Tensor, held: Held, sight: Sight, query_BTD: Tensor | None = None) -> Tensor:
        """What each position of `x_BTD` finds in what is held; its queries may have been made already."""
        asked_BHTK = split(self.query(x_BTD) if query_BTD is None else query_BTD, self.heads)
        prepared = self.score.prepare_queries(sight.turn(asked_BHTK))  # a score may change their width
        if tap := listening():
            tap.hear(self, weights(prepared, held, self.score, sight))
        found_BHTK = lookup(prepared, held, self.score, sight)
        found_BTD: Tensor = self.output(join(tap.change(self, found_BHTK) if tap else found_BHTK))
        return found_BTD

    def within(self, x_BTD: Tensor, past: Held | None, sight: Sight) -> tuple[Tensor, Held]:
        """Self-attention: what each position finds in the past and in its own sequence, and both as they are held."""
        query_BTD, key_BTD, value_BTD = together(x_BTD, self.query, self.key, self.value)
        held = after(past, self.held(key_BTD, value_BTD, sight))
        found_BTD: Tensor = self(x_BTD, held, sight, query_BTD)
        return found_BTD, held

    def held(self, key: Tensor, value: Tensor, sight: Sight) -> Held:
        """Keys and values cut into heads; a score that compares nothing is given the values for keys."""
        value_BHSK = split(value, self.heads)
        key_BHSK = sight.turn(split(key, self.heads)) if self.score.compares else value_BHSK
        return Held(self.score.prepare_keys(key_BHSK), value_BHSK)


def together(x_BTD: Tensor, *parts: nn.Module) -> Sequence[Tensor]:
    """Several projections of the same vectors; of a whole sequence in one product.

    A single token goes through one after the other: putting the weights together would cost more than it saves.
    """
    linear = [part for part in parts if isinstance(part, nn.Linear)]
    if len(linear) < len(parts) or x_BTD.shape[1] == 1 or is_plain():
        return [part(x_BTD) for part in parts]
    return F.linear(x_BTD, cat([p.weight for p in linear]), cat([p.bias for p in linear])).chunk(len(parts), -1)


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
