"""What is computed in one pass: the same as torch's own operations, forwards and back, in both kinds of numbers."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.layers import quick
from regard.layers.chunked import chunked_loss
from regard.layers.plain import plain

pytestmark = pytest.mark.skipif(quick.library() is None, reason="onepass was not built")
KINDS = [torch.float32, torch.bfloat16]
CLOSE = {torch.float32: 1e-5, torch.bfloat16: 2e-2}


def both(ways: Sequence[Callable[..., Tensor]], *given: Tensor) -> list[list[Tensor]]:
    """Of each way what comes out, and the gradients of what goes in."""
    found = []
    for way in ways:
        own = [each.detach().clone().requires_grad_() for each in given]
        out = way(*own)
        torch.manual_seed(1)
        out.backward(torch.randn(*out.shape).to(out.dtype))
        found.append([out.detach().float(), *(each.grad.float() for each in own if each.grad is not None)])
    return found


def assert_close(found: list[list[Tensor]], kind: torch.dtype) -> None:
    mine, theirs = found
    assert len(mine) == len(theirs)
    for own, other in zip(mine, theirs, strict=True):
        assert (own - other).abs().max() <= CLOSE[kind] * (1 + other.abs().max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "sizes", [(3, 2, 5, 7, 8), (2, 4, 16, 16, 64), (1, 1, 1, 33, 5), (2, 2, 64, 64, 32), (70, 1, 3, 3, 4)]
)
def test_attention(sizes: tuple[int, ...], kind: torch.dtype) -> None:
    batch, heads, queries, keys, width = sizes
    torch.manual_seed(0)
    given = [torch.randn(batch, length, heads * width).to(kind) for length in (queries, keys, keys)]
    mask = torch.rand(batch, 1, queries, keys) > 0.3
    mask[0, 0, 0] = False  # a query that may look at nothing finds nothing

    def cut(x: Tensor) -> Tensor:
        return x.view(batch, -1, heads, width).transpose(1, 2)

    def mine(*own: Tensor) -> Tensor:
        return quick.looked(*map(cut, own), mask, 0.3)

    def theirs(*own: Tensor) -> Tensor:
        query, key, value = (cut(each).float() for each in own)
        scores = (query @ key.transpose(-1, -2) * 0.3).masked_fill(~mask, -1e30)
        return (torch.where(mask, scores.softmax(-1), 0.0) @ value).to(kind)

    assert_close(both([mine, theirs], *given), kind)


@pytest.mark.parametrize("shape", [(1, 1, 1, 6), (3, 1, 1, 6), (1, 1, 5, 6)])
def test_masks_may_be_broadcast(shape: tuple[int, ...]) -> None:
    query, key, value = (torch.randn(3, 2, length, 4) for length in (5, 6, 6))
    mask = torch.rand(shape) > 0.4
    mask[..., 0] = True
    found = quick.looked(query, key, value, mask, 0.5)
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=0.5)
    assert torch.allclose(found, expected, atol=1e-6)
    everything = quick.looked(query, key, value, None, 0.5)
    assert torch.allclose(everything, F.scaled_dot_product_attention(query, key, value, scale=0.5), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [3, 16, 45, 256])
def test_layer_norm(width: int, kind: torch.dtype) -> None:
    torch.manual_seed(0)
    given = torch.randn(9, 7, width), torch.randn(width), torch.randn(width)

    def mine(*own: Tensor) -> Tensor:
        return quick.norm(*own, 1e-5, kind)

    def theirs(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.layer_norm(x, (width,), weight, bias, 1e-5).to(kind)

    assert_close(both([mine, theirs], *given), kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 3])
def test_vectors_are_turned(rows: int, kind: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 5, 2 * 12).to(kind)
    angle = torch.randn(rows, 5, 6)

    def mine(own: Tensor) -> Tensor:
        return quick.turned(own.view(3, 5, 2, 12).transpose(1, 2), angle.cos(), angle.sin())

    def theirs(own: Tensor) -> Tensor:
        left, right = own.view(3, 5, 2, 12).transpose(1, 2).float().chunk(2, -1)
        c, s = angle.cos()[:, None], angle.sin()[:, None]
        return torch.cat([left * c - right * s, left * s + right * c], -1).to(kind)

    assert_close(both([mine, theirs], x), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_residual_drops_what_dropping_out_drops(kind: torch.dtype) -> None:
    x, found = torch.randn(31, 45), torch.randn(31, 45).to(kind)
    torch.manual_seed(3)
    dropped = quick.dropped(found, 0.3)
    torch.manual_seed(3)
    assert torch.allclose(
        quick.residual(x, found, 0.3), x + dropped.float(), atol=3e-2 if kind == torch.bfloat16 else 1e-6
    )
    torch.manual_seed(3)
    assert torch.equal(quick.rectified(found, 0.3), dropped.clamp_min(0))


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_dropped_has_no_gradient(kind: torch.dtype) -> None:
    x = torch.randn(1000, 33).to(kind)
    for way in (quick.dropped, quick.rectified):
        own = x.clone().requires_grad_()
        out = way(own, 0.3)
        out.backward(torch.ones_like(out))
        assert own.grad is not None
        assert torch.equal(own.grad != 0, out != 0)
        assert torch.allclose(own.grad[own.grad != 0].float(), torch.tensor(1 / 0.7), rtol=1e-2)


def test_masks_do_not_depend_on_threads_and_are_not_alike() -> None:
    before = torch.get_num_threads()
    try:
        masks = []
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            torch.manual_seed(0)
            masks.append(quick.dropped(torch.ones(100_000), 0.5))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(masks[0], masks[1])
    assert torch.equal(masks[0], masks[2])
    other = quick.dropped(torch.ones(100_000), 0.5)
    assert abs(float(((masks[0] - 1) * (other - 1)).mean())) < 0.015
    for apart in (1, 2, 3, 4, 8, 16, 17, 64, 256):
        assert abs(float(((other[apart:] - 1) * (other[:-apart] - 1)).mean())) < 0.015


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_torchs(smoothing: float, kind: torch.dtype) -> None:
    torch.manual_seed(0)
    label = torch.randint(0, 103, (300,))
    given = torch.randn(300, 16), torch.randn(103, 16) * 0.5, torch.randn(103)

    def mine(*own: Tensor) -> Tensor:
        with torch.autocast("cpu", kind, enabled=kind == torch.bfloat16):
            return chunked_loss(*own, label, smoothing)

    def theirs(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.cross_entropy(F.linear(states, weight, bias), label, reduction="sum", label_smoothing=smoothing)

    found = []
    for way in (mine, theirs):
        own = [each.clone().requires_grad_() for each in given]
        way(*own).backward()
        found.append([each.grad for each in own if each.grad is not None])
    assert_close(found, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_logits_far_apart_and_none_that_are_numbers(kind: torch.dtype) -> None:
    logits = torch.zeros(3, 50, dtype=kind)
    logits[0, 3] = 3000.0
    logits[1] = -3000.0
    assert torch.allclose(quick.log_sums(logits), logits.float().logsumexp(1))
    for place in (0, 40):  # in whole registers, and after them
        wrong = torch.zeros(2, 45, dtype=kind)
        wrong[0, place] = float("nan")
        found = quick.log_sums(wrong)
        assert not torch.isfinite(found[0])
        assert torch.isfinite(found[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_what_is_not_finite_stays_so(wrong: float, kind: torch.dtype) -> None:
    x = torch.ones(4, 64).to(kind)
    x[1, 3] = float("nan")
    assert not torch.isfinite(quick.rectified(x, 1e-9)[1, 3])
    for place in range(3):
        query, key, value = (torch.randn(2, 1, 5, 8).to(kind) for _ in range(3))
        (query, key, value)[place][0, 0, 2, 1] = wrong
        found = quick.looked(query, key, value, None, 1.0)
        assert not torch.isfinite(found[0]).all()
        assert torch.isfinite(found[1]).all()


def test_nothing_fits_that_is_plain_or_of_another_kind() -> None:
    assert quick.fits(torch.ones(2))
    assert not quick.fits(torch.ones(2, dtype=torch.float64))
    with plain():
        assert not quick.fits(torch.ones(2))
    for kind, short in quick.SHORT.items():
        long = torch.ones(1, 1, short + 1, 4, dtype=kind)
        assert not quick.looks(long, long, long, None)
        assert quick.looks(long[:, :, 1:], long[:, :, 1:], long[:, :, 1:], None)


def test_heads_are_not_broadcast_and_a_mask_is_boolean() -> None:
    query, one = torch.randn(4, 2, 3, 8), torch.randn(4, 1, 5, 8)
    assert not quick.looks(query, one, one, None)
    keys = one.expand(4, 2, 5, 8)
    assert quick.looks(query, keys, keys, torch.ones(4, 1, 1, 5, dtype=torch.bool))
    assert not quick.looks(query, keys, keys, torch.ones(4, 1, 1, 5))
    assert not quick.looks(query, keys, keys, torch.ones(5, dtype=torch.bool))
    assert not quick.looks(query, keys[..., :4], keys[..., :4], None)
