"""Each of the seven scores against its textbook formula, written out for one query and one key at a time."""

import math
from collections.abc import Callable
from typing import Any, get_args

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from regard import config
from regard.layers.attention import Held, Sight, lookup, weights
from regard.layers.scores import Additive, Bilinear, ReducedRank, Score
from regard.models.build import score

Same = Callable[[Tensor, Tensor], None]

NAMES = get_args(config.ScoreName)
BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 2, 3, 5, 4


def made(name: Any, dtype: torch.dtype) -> Score:
    return score(config.Lookup(score=name, heads=HEADS, rank=3), WIDTH).to(dtype)


def drawn(length: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(BATCH, HEADS, length, WIDTH, dtype=dtype)


def textbook(name: str, part: Score, head: int, q: Tensor, k: Tensor) -> Tensor:
    """How well one query fits one key."""
    match name:
        case "dot":
            return q @ k
        case "scaled":
            return q @ k / math.sqrt(WIDTH)
        case "bilinear":
            assert isinstance(part, Bilinear)
            return q @ part.weight[head] @ k
        case "reduced-rank":
            assert isinstance(part, ReducedRank)
            u, v = part.query_weight[head].T, part.key_weight[head].T
            assert u.shape == v.shape == (3, WIDTH)
            return q @ u.T @ v @ k
        case "additive":
            assert isinstance(part, Additive)
            w1, w2 = part.key_weight[head].T, part.query_weight[head].T
            return part.vector[head] @ torch.tanh(w1 @ k + w2 @ q)
        case "distance":
            return -((q - k) ** 2).sum() / (2 * math.sqrt(WIDTH))
        case _:
            return torch.zeros_like(q[0])


def by_loops(name: str, part: Score, query: Tensor, key: Tensor, mask: Tensor, bias: Tensor) -> Tensor:
    """Weights (B, H, T, S), each row a softmax over what may be seen."""
    found = query.new_zeros(BATCH, HEADS, QUERIES, KEYS)
    for b, h, t in torch.cartesian_prod(torch.arange(BATCH), torch.arange(HEADS), torch.arange(QUERIES)).tolist():
        seen = [s for s in range(KEYS) if mask[b, 0, t, s]]
        scores = [textbook(name, part, h, query[b, h, t], key[b, h, s]) + bias[0, h, t, s] for s in seen]
        found[b, h, t, seen] = torch.stack(scores).softmax(0)
    return found


@pytest.mark.parametrize("biased", [False, True], ids=["plain", "bias"])
@pytest.mark.parametrize("masked", [False, True], ids=["open", "mask"])
@pytest.mark.parametrize("name", NAMES)
def test_weights_and_what_they_find_equal_the_formula(
    name: str, masked: bool, biased: bool, dtype: torch.dtype, same: Same
) -> None:
    part = made(name, dtype)
    query, key, value = drawn(QUERIES, dtype), drawn(KEYS, dtype), drawn(KEYS, dtype)
    mask = torch.rand(BATCH, 1, QUERIES, KEYS) < (0.6 if masked else 2.0)
    mask[..., 0] = True
    bias = torch.randn(1, HEADS, QUERIES, KEYS, dtype=dtype) * biased
    expected = by_loops(name, part, query, key, mask, bias)
    held, sight = Held(part.prepare_keys(key), value), Sight(mask if masked else None, bias if biased else None)
    query = part.prepare_queries(query)
    found = weights(query, held, part, sight)
    same(found, expected)
    same(found.sum(-1), torch.ones(BATCH, HEADS, QUERIES, dtype=dtype))
    assert (found.masked_select(~mask) == 0).all()
    same(lookup(query, held, part, sight), expected @ value)


@pytest.mark.parametrize("biased", [False, True], ids=["plain", "bias"])
@pytest.mark.parametrize("name", NAMES)
def test_a_row_that_may_see_nothing_finds_zeros(name: str, biased: bool, dtype: torch.dtype) -> None:
    part = made(name, dtype)
    query, key, value = (drawn(length, dtype).requires_grad_() for length in (QUERIES, KEYS, KEYS))
    mask = torch.ones(BATCH, 1, QUERIES, KEYS, dtype=torch.bool)
    mask[0] = False  # a whole example
    mask[1, 0, 2] = False  # and a single query
    bias = torch.randn(1, HEADS, QUERIES, KEYS, dtype=dtype, requires_grad=True) if biased else None
    held, sight = Held(part.prepare_keys(key), value), Sight(mask, bias)
    prepared = part.prepare_queries(query)
    explicit, quick = weights(prepared, held, part, sight), lookup(prepared, held, part, sight)
    for found in (explicit, quick):
        assert (found[0] == 0).all()
        assert (found[1, :, 2] == 0).all()
        assert (found[1, :, :2] != 0).any(-1).all()
    torch.autograd.backward(explicit.square().sum() + quick.square().sum())
    leaves = [leaf for leaf in (query, key, value, bias, *part.parameters()) if leaf is not None]
    assert all(leaf.grad is None or leaf.grad.isfinite().all() for leaf in leaves)
    assert value.grad is not None
    assert (value.grad[0] == 0).all()
    assert (value.grad[1] != 0).all()


@pytest.mark.parametrize("shape", [(BATCH, 1, 1, KEYS), (1, 1, QUERIES, KEYS), (BATCH, HEADS, QUERIES, KEYS)])
@pytest.mark.parametrize("biased", [False, True], ids=["plain", "bias"])
@pytest.mark.parametrize("name", ["dot", "scaled"])
def test_products_equal_the_reference(
    name: str, biased: bool, shape: tuple[int, ...], dtype: torch.dtype, same: Same
) -> None:
    """Masks and biases of every shape that broadcasts; the two paths and torch's function are one."""
    part = made(name, dtype)
    query, key, value = drawn(QUERIES, dtype), drawn(KEYS, dtype), drawn(KEYS, dtype)
    mask = torch.rand(shape) < 0.6
    mask[..., 0] = True
    bias = torch.randn(1, HEADS, QUERIES, KEYS, dtype=dtype) if biased else None
    added = torch.zeros(1, dtype=dtype) if bias is None else bias
    allowed = torch.where(mask, added, -torch.inf).expand(BATCH, HEADS, QUERIES, KEYS)
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed, scale=part.scale)
    held, sight = Held(key, value), Sight(mask, bias)
    same(lookup(query, held, part, sight), expected)
    same(weights(query, held, part, sight) @ value, expected)


def test_the_reduced_rank_score_is_a_bilinear_one_of_that_rank(dtype: torch.dtype, same: Same) -> None:
    low, full = made("reduced-rank", dtype), made("bilinear", dtype)
    assert isinstance(low, ReducedRank)
    assert isinstance(full, Bilinear)
    full.weight.data = low.query_weight.data @ low.key_weight.data.transpose(-2, -1)
    query, key = drawn(QUERIES, dtype), drawn(KEYS, dtype)
    same(low(low.prepare_queries(query), low.prepare_keys(key)), full(query, full.prepare_keys(key)))
    assert torch.linalg.matrix_rank(full.weight.data).tolist() == [3, 3]
