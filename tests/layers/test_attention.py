"""Attention with projections against nn.MultiheadAttention with the same weights."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from regard.layers.attention import Attention, Held, Sight, after, join, split
from regard.layers.scores import Score
from regard.layers.tap import Tap

Same = Callable[[Tensor, Tensor], None]

WIDTH, HEADS = 12, 3


def pair(memory_width: int, dtype: torch.dtype) -> tuple[Attention, nn.MultiheadAttention]:
    """Ours, and torch's with our weights; torch keeps the three in one table when all widths agree."""
    own = Attention(WIDTH, memory_width, HEADS, Score((WIDTH // HEADS) ** -0.5)).to(dtype)
    other = nn.MultiheadAttention(WIDTH, HEADS, kdim=memory_width, vdim=memory_width, batch_first=True, dtype=dtype)
    linears = [layer for layer in (own.query, own.key, own.value, own.output) if isinstance(layer, nn.Linear)]
    tables = [layer.weight.detach() for layer in linears]
    with torch.no_grad():
        if memory_width == WIDTH:
            other.in_proj_weight.copy_(torch.cat(tables[:3]))
        else:
            for name, table in zip(("q", "k", "v"), tables, strict=False):
                getattr(other, f"{name}_proj_weight").copy_(table)
        other.in_proj_bias.copy_(torch.cat([layer.bias for layer in linears[:3]]))
        other.out_proj.weight.copy_(tables[3])
        other.out_proj.bias.copy_(linears[3].bias)
    return own, other.eval()


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_self_attention(causal: bool, dtype: torch.dtype, same: Same) -> None:
    own, other = pair(WIDTH, dtype)
    x = torch.randn(3, 5, WIDTH, dtype=dtype)
    real = torch.arange(5) < torch.tensor([5, 3, 1])[:, None]
    past = torch.ones(5, 5, dtype=torch.bool).tril()
    mask = real[:, None, None, :] & past if causal else real[:, None, None, :]
    with Tap(nn.ModuleDict({"self_attention": own})) as tap:
        found = own(x, own.hold(x), Sight(mask))
    expected, weights = other(
        x, x, x, key_padding_mask=~real, attn_mask=~past if causal else None, average_attn_weights=False
    )
    same(found, expected)
    same(tap.maps["self"][0], weights)


@pytest.mark.parametrize("memory_width", [WIDTH, 7])
def test_attention_to_a_memory(memory_width: int, dtype: torch.dtype, same: Same) -> None:
    own, other = pair(memory_width, dtype)
    x = torch.randn(2, 4, WIDTH, dtype=dtype, requires_grad=True)
    memory = torch.randn(2, 6, memory_width, dtype=dtype, requires_grad=True)
    real = torch.arange(6) < torch.tensor([6, 2])[:, None]
    found = own(x, own.hold(memory), Sight(real[:, None, None, :]))
    expected, _ = other(x, memory, memory, key_padding_mask=~real)
    same(found, expected)
    up = torch.randn_like(found)
    for own_gradient, other_gradient in zip(
        torch.autograd.grad(found, (x, memory), up), torch.autograd.grad(expected, (x, memory), up), strict=True
    ):
        same(own_gradient, other_gradient)
    assert (
        torch.autograd.grad(own(x, own.hold(memory), Sight(real[:, None, None, :])).sum(), memory)[0][1, 2:] == 0
    ).all()


def test_without_projections_the_vectors_are_compared_as_they_are(dtype: torch.dtype, same: Same) -> None:
    own = Attention(WIDTH, WIDTH, 1, Score(), projections=False)
    assert not list(own.parameters())
    x, memory = torch.randn(2, 4, WIDTH, dtype=dtype), torch.randn(2, 6, WIDTH, dtype=dtype)
    expected = (x @ memory.transpose(1, 2)).softmax(-1) @ memory
    same(own(x, own.hold(memory), Sight()), expected)


def test_keys_held_piece_by_piece_are_the_keys_held_at_once(dtype: torch.dtype, same: Same) -> None:
    own, _ = pair(WIDTH, dtype)
    x = torch.randn(2, 5, WIDTH, dtype=dtype)
    held: Held | None = None
    for piece in torch.split(x, [2, 1, 2], 1):
        held = after(held, own.hold(piece))
    assert held is not None
    same(held.key_BHSK, own.hold(x).key_BHSK)
    same(held.value_BHSK, own.hold(x).value_BHSK)


def test_heads_are_cut_side_by_side_and_joined_again() -> None:
    x = torch.arange(2 * 3 * WIDTH).view(2, 3, WIDTH)
    heads = split(x, HEADS)
    assert heads.shape == (2, HEADS, 3, WIDTH // HEADS)
    assert heads[1, 2, 0].equal(x[1, 0, 8:])
    assert join(heads).equal(x)
