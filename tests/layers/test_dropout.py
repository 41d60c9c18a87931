"""Dropout: its share, its scale, its gradient, and that a seed decides it."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.layers import quick
from regard.layers.dropout import Dropout, grain
from regard.layers.plain import plain

SHARES = [0.001, 0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 0.9, 0.999]


@pytest.fixture(autouse=True, params=["in one pass", "by torch"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "by torch":
        monkeypatch.setattr(quick, "library", lambda: None)
    elif quick.library() is None:
        pytest.skip("onepass was not built")
    found: str = request.param
    return found


@pytest.mark.parametrize("share", SHARES)
def test_the_share_is_close(share: float, way: str) -> None:
    kind, cut = grain(share)
    true = share if way == "in one pass" else cut / (1 << torch.iinfo(kind).bits)
    assert abs(true - share) <= 0.02 * share
    torch.manual_seed(0)
    found = Dropout(share)(torch.ones(400_000))
    dropped = float((found == 0).float().mean())
    assert abs(dropped - true) < 5 * (true * (1 - true) / 400_000) ** 0.5
    assert float(found.max()) == pytest.approx(1 / (1 - true))


@pytest.mark.parametrize("share", [0.1, 0.003])
def test_neighbours_and_calls_are_independent(share: float) -> None:
    """Eight elements share a draw of 64 bits: each pair of them must be dropped together as rarely as any two."""
    torch.manual_seed(1)
    dropout = Dropout(share)
    first, second = ((dropout(torch.ones(100_000, 8)) == 0).double() for _ in range(2))
    together = (first.T @ first / 100_000).fill_diagonal_(share * share)
    assert (together - share * share).abs().max() < 0.003
    assert abs(float((first * second).mean()) - share * share) < 0.003


def test_a_seed_decides() -> None:
    def drawn(seed: int) -> Tensor:
        torch.manual_seed(seed)
        found: Tensor = Dropout(0.3)(torch.ones(7, 11))
        return found

    assert torch.equal(drawn(4), drawn(4))
    assert not torch.equal(drawn(4), drawn(5))


def test_it_rests_when_nothing_is_learnt() -> None:
    x = torch.randn(5, 3)
    dropout = Dropout(0.5).eval()
    assert dropout(x) is x
    assert torch.equal(dropout.onto(x, x), x + x)
    assert torch.equal(dropout.rectified(x), F.relu(x))
    assert Dropout(0.0)(x) is x


def composed(dropout: Dropout, x: Tensor, found: Tensor, way: str) -> Tensor:
    """The same by the plain road: the mask is read off a tensor of ones."""
    mask: Tensor = dropout(torch.ones_like(found))
    return x + found * mask if way == "onto" else F.relu(found) * mask


@pytest.mark.parametrize("way", ["onto", "rectified"])
@pytest.mark.parametrize("shape", [(3,), (2, 5), (2, 3, 7)])
def test_what_is_fused_is_what_it_is_made_of(way: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    dropout = Dropout(0.4)
    x, found, weight = (torch.randn(shape, dtype=dtype, requires_grad=True) for _ in range(3))
    torch.manual_seed(9)
    expected = composed(dropout, x, found, way)
    torch.manual_seed(9)
    own = dropout.onto(x, found) if way == "onto" else dropout.rectified(found)
    torch.testing.assert_close(own, expected)
    wanted = torch.autograd.grad((expected * weight.detach()).sum(), (x, found), allow_unused=True)
    given = torch.autograd.grad((own * weight.detach()).sum(), (x, found), allow_unused=True)
    for one, other in zip(given, wanted, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other)


def test_gradients_pass_where_numbers_did() -> None:
    x = torch.randn(50, 4, requires_grad=True)
    found = Dropout(0.5)(x)
    found.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad != 0, found != 0)


def test_the_plain_way_is_torchs_own() -> None:
    x = torch.randn(20, 8)
    with plain():
        torch.manual_seed(3)
        found = Dropout(0.3)(x)
    torch.manual_seed(3)
    assert torch.equal(found, nn.Dropout(0.3)(x))
