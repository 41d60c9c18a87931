"""The six position schemes against their formulae, and where tokens stand."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from regard.errors import RegardError
from regard.layers.attention import Attention, Sight
from regard.layers.positions import (
    Alibi,
    Anchored,
    Learned,
    Position,
    Relative,
    Rotary,
    Sinusoidal,
    SinusoidalGrid,
    places,
    waves,
)
from regard.layers.scores import Score

Same = Callable[[Tensor, Tensor], None]

CPU = torch.device("cpu")


def wave(position: int, width: int) -> list[float]:
    """Vaswani et al. 2017, sines in the first half and cosines in the second, in the precision of Python."""
    angles = [position / 10000 ** (2 * i / width) for i in range(width // 2)]
    return [math.sin(angle) for angle in angles] + [math.cos(angle) for angle in angles]


def test_sinusoidal(dtype: torch.dtype, same: Same) -> None:
    at = torch.tensor([[0, 1, 2, 30], [5, 100, 511, 4000]])
    x = torch.randn(2, 4, 8, dtype=dtype)
    expected = torch.tensor([[wave(p, 8) for p in row] for row in at.tolist()], dtype=torch.float64)
    same(Sinusoidal().add(x, at), (x.double() + expected).to(dtype))


def test_sinusoidal_of_odd_width_only_lacks_a_cosine() -> None:
    at = torch.arange(5)[None]
    assert waves(at, 7).equal(waves(at, 8)[..., :7])


def test_sinusoidal_grid_is_rows_then_columns(dtype: torch.dtype, same: Same) -> None:
    found = SinusoidalGrid(3).add(torch.zeros(1, 9, 8, dtype=dtype), torch.arange(9)[None])
    expected = [wave(place // 3, 4) + wave(place % 3, 4) for place in range(9)]
    same(found[0], torch.tensor(expected, dtype=dtype))


def test_learned_adds_the_row_of_the_position(dtype: torch.dtype) -> None:
    own = Learned(6, 4).to(dtype)
    x = torch.randn(2, 3, 4, dtype=dtype)
    found = own.add(x, torch.tensor([[0, 1, 2], [3, 4, 5]]))
    assert found.equal(x + own.table.view(2, 3, 4))


@pytest.mark.parametrize("at", [[[4, 5, 6]], [[0, 1, 9]]])
def test_learned_ends_with_an_error_one_can_use(at: list[list[int]]) -> None:
    with pytest.raises(RegardError, match=rf"position {at[0][-1] + 1}: learned positions end at 6; raise data\.max_"):
        Learned(6, 4).add(torch.zeros(1, 3, 4), torch.tensor(at))


def turned_product(own: Position, query: Tensor, key: Tensor, at: int, other: int) -> Tensor:
    """The scores of one head after both were turned to their places."""
    return (own.turn(query, torch.tensor([[at]])) * own.turn(key, torch.tensor([[other]]))).sum(-1)


@pytest.mark.parametrize("apart", [-7, 0, 3])
def test_rotary_products_know_only_the_distance(apart: int, dtype: torch.dtype, same: Same) -> None:
    own = Rotary()
    query, key = torch.randn(2, 3, 1, 8, dtype=dtype), torch.randn(2, 3, 1, 8, dtype=dtype)
    expected = turned_product(own, query, key, 10, 10 + apart)
    for at in (7, 50, 90):
        same(turned_product(own, query, key, at, at + apart), expected)
    assert not torch.allclose(turned_product(own, query, key, 10, 12 + apart), expected, atol=1e-3)


def test_rotary_is_a_rotation_of_pairs(dtype: torch.dtype, same: Same) -> None:
    x = torch.randn(1, 1, 2, 6, dtype=dtype)
    found = Rotary().turn(x, torch.tensor([[0, 23]]))
    assert found[:, :, 0].equal(x[:, :, 0])
    for i in range(3):
        angle = 23 / 10000 ** (i / 3)
        left, right = x[0, 0, 1, i], x[0, 0, 1, i + 3]
        same(found[0, 0, 1, i], left * math.cos(angle) - right * math.sin(angle))
        same(found[0, 0, 1, i + 3], left * math.sin(angle) + right * math.cos(angle))


def test_rotary_reaches_attention(dtype: torch.dtype, same: Same) -> None:
    """Moving a whole sequence changes nothing, moving its tokens apart does."""
    own, x = Attention(8, 8, 2, Score(0.5)).to(dtype), torch.randn(2, 4, 8, dtype=dtype)

    def found(at: Tensor) -> Tensor:
        sight = Sight(position=Rotary(), at_BT=at)
        result, _ = own.within(x, None, sight)
        return result

    near = torch.arange(4)[None]
    same(found(near + 40), found(near))
    assert not torch.allclose(found(near * 3), found(near), atol=1e-3)


def test_both_ways_at_once(dtype: torch.dtype, same: Same) -> None:
    at = torch.tensor([[0, 23]])
    x, heads = torch.randn(1, 2, 6, dtype=dtype), torch.randn(1, 1, 2, 6, dtype=dtype)
    same(Anchored().add(x, at), Sinusoidal().add(x, at))
    same(Anchored().turn(heads, at), Rotary().turn(heads, at))


def test_alibi_slopes_of_eight_heads() -> None:
    one_apart = Alibi(8).bias(torch.tensor([[1]]), torch.tensor([[0]]))
    assert one_apart.flatten().tolist() == [-(2.0**-power) for power in range(1, 9)]


def test_alibi_falls_with_the_distance(dtype: torch.dtype, same: Same) -> None:
    found = Alibi(4).to(dtype).bias(torch.tensor([[3, 4]]), torch.arange(5)[None])
    rates = [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8]
    expected = [[[[-rate * abs(t - s) for s in range(5)] for t in (3, 4)] for rate in rates]]
    assert found is not None
    same(found.to(dtype), torch.tensor(expected, dtype=dtype))


def test_the_relative_bias_is_clipped(dtype: torch.dtype) -> None:
    own = Relative(2, reach=3).to(dtype)
    own.table.data.normal_()
    at = torch.arange(10)[None]
    found = own.bias(at, at)
    assert found.shape == (1, 2, 10, 10)
    for t in range(10):
        for s in range(10):
            assert found[0, :, t, s].equal(own.table[min(3, max(-3, s - t)) + 3])
    assert found[0, 0, 0, 9] == found[0, 0, 0, 3] != found[0, 0, 3, 0]


@pytest.mark.parametrize("own", [Position(), Rotary(), Relative(2), Alibi(2)])
def test_what_acts_inside_attention_adds_nothing(own: Position) -> None:
    x = torch.randn(1, 3, 4)
    assert own.add(x, torch.arange(3)[None]).equal(x)


def test_a_position_that_is_none_does_nothing() -> None:
    x = torch.randn(1, 2, 3, 4)
    at = torch.arange(3)[None]
    assert Position().turn(x, at).equal(x)
    assert Position().bias(at, at) is None


def test_places_without_padding() -> None:
    at, following = places(4, 3, None, CPU)
    assert at.tolist() == [[4, 5, 6]]
    assert following == 7
    at, rows = places(torch.tensor([2, 0]), 2, None, CPU)
    assert at.tolist() == [[2, 3], [0, 1]]
    assert isinstance(rows, Tensor)
    assert rows.tolist() == [4, 2]


def test_places_with_padding_which_takes_none() -> None:
    mask = torch.tensor([[True, True, True], [True, False, False]])
    at, following = places(0, 3, mask, CPU)
    assert at[mask].tolist() == [0, 1, 2, 0]
    assert isinstance(following, Tensor)
    assert following.tolist() == [3, 1]
    at, following = places(following, 3, mask, CPU)
    assert at[mask].tolist() == [3, 4, 5, 1]
    assert isinstance(following, Tensor)
    assert following.tolist() == [6, 2]
