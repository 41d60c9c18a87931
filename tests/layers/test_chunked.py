"""The loss in chunks against torch's own, with its gradients; and the logits of a batch, which never exist."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from regard.layers import chunked
from regard.layers.chunked import chunked_loss

Same = Callable[[Tensor, Tensor], None]


def drawn(count: int, width: int, vocabulary: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(5)
    states = torch.randn(count, width, generator=draw, dtype=dtype).requires_grad_()
    weight = torch.randn(vocabulary, width, generator=draw, dtype=dtype).requires_grad_()
    bias = torch.randn(vocabulary, generator=draw, dtype=dtype).requires_grad_()
    return states, weight, bias, torch.randint(vocabulary, (count,), generator=draw)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("count", [1, 7, 8, 20])
def test_loss_and_gradients_are_torchs(
    smoothing: float, count: int, dtype: torch.dtype, same: Same, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunked, "ROWS", 8)
    states, weight, bias, label = drawn(count, 6, 11, dtype)
    expected = F.cross_entropy(F.linear(states, weight, bias), label, reduction="sum", label_smoothing=smoothing)
    wanted = torch.autograd.grad(3 * expected, (states, weight, bias))
    found = chunked_loss(states, weight, bias, label, smoothing)
    same(found, expected)
    for one, other in zip(torch.autograd.grad(3 * found, (states, weight, bias)), wanted, strict=True):
        same(one, other)


def test_weights_tied_to_an_embedding_get_both_gradients(dtype: torch.dtype, same: Same) -> None:
    _, weight, bias, label = drawn(9, 6, 11, dtype)
    logits = F.linear(weight[label] * 2, weight, bias)
    wanted = torch.autograd.grad(F.cross_entropy(logits, label, reduction="sum"), weight)
    found = torch.autograd.grad(chunked_loss(weight[label] * 2, weight, bias, label, 0.0), weight)
    same(found[0], wanted[0])


def test_labels_that_are_far_too_unlikely_have_a_finite_loss() -> None:
    states = torch.tensor([[1000.0]], requires_grad=True)
    weight = torch.tensor([[1.0], [-1.0]])
    loss = chunked_loss(states, weight, torch.zeros(2), torch.tensor([1]), 0.0)
    assert float(loss) == pytest.approx(2000.0)


def test_no_rows_are_no_loss() -> None:
    states, weight, bias, _ = drawn(0, 6, 11, torch.float32)
    loss = chunked_loss(states, weight, bias, torch.zeros(0, dtype=torch.int64), 0.1)
    loss.backward()  # type: ignore[no-untyped-call]
    assert float(loss.detach()) == 0.0
    assert weight.grad is not None
    assert not weight.grad.any()


def test_bf16_is_near_and_its_gradients_are_as_wide_as_the_weights() -> None:
    states, weight, bias, label = drawn(40, 32, 50, torch.float32)
    expected = F.cross_entropy(F.linear(states, weight, bias), label, reduction="sum", label_smoothing=0.1)
    wanted = torch.autograd.grad(expected, (states, weight, bias))
    with torch.autocast("cpu", torch.bfloat16):
        found = chunked_loss(states, weight, bias, label, 0.1)
    given = torch.autograd.grad(found, (states, weight, bias))
    assert float(found) == pytest.approx(float(expected), rel=1e-2)
    for one, other in zip(given, wanted, strict=True):
        assert one.dtype == torch.float32
        assert (one - other).norm() < 0.02 * other.norm()


class Largest(TorchDispatchMode):
    """The number of elements of the largest tensor that any kernel made."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for each in made if isinstance(made, tuple | list) else (made,):
            self.size = max(self.size, each.numel() if isinstance(each, Tensor) else 0)
        return made


def test_the_logits_of_a_batch_never_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked, "ROWS", 16)
    states, weight, bias, label = drawn(400, 8, 100, torch.float32)
    with Largest() as seen:
        chunked_loss(states, weight, bias, label, 0.1).backward()  # type: ignore[no-untyped-call]
    assert seen.size == 400 * 8  # the states themselves; logits would be 40 000


# ── one part of a mixture ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("count", [1, 7, 20])
def test_a_mixture_and_its_gradients_are_those_of_the_plain_one(
    smoothing: float, count: int, dtype: torch.dtype, same: Same, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is smoothed is the softmax alone."""
    monkeypatch.setattr(chunked, "ROWS", 8)
    states, weight, bias, label = drawn(count, 6, 11, dtype)
    gate, mass = (torch.randn(count, dtype=dtype, requires_grad=True) for _ in range(2))
    beside = F.logsigmoid(gate), F.logsigmoid(-gate) + mass.sigmoid().log()
    log = F.linear(states, weight, bias).log_softmax(-1)
    both = gate.sigmoid() * log.exp()[torch.arange(count), label] + (1 - gate.sigmoid()) * mass.sigmoid()
    expected = -(1 - smoothing) * both.log().sum() - smoothing * log.mean(1).sum()
    given = (states, weight, bias, gate, mass)
    wanted = torch.autograd.grad(3 * expected, given, retain_graph=True)
    found = chunked_loss(states, weight, bias, label, smoothing, beside)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-10)
    for one, other in zip(torch.autograd.grad(3 * found, given), wanted, strict=True):
        same(one, other)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_mixture_with_nothing_beside_is_the_loss_itself(smoothing: float, dtype: torch.dtype, same: Same) -> None:
    states, weight, bias, label = drawn(9, 6, 11, dtype)
    nothing = torch.zeros(9, dtype=dtype), torch.full((9,), -80.0, dtype=dtype)
    given = (states, weight, bias)
    wanted = torch.autograd.grad(alone := chunked_loss(*given, label, smoothing), given)
    found = torch.autograd.grad(mixture := chunked_loss(*given, label, smoothing, nothing), given)
    same(mixture, alone)
    for one, other in zip(found, wanted, strict=True):
        same(one, other)


def test_a_label_that_only_copying_could_give_is_finite() -> None:
    states = torch.tensor([[1000.0]], requires_grad=True)
    beside = torch.tensor([-0.7], requires_grad=True), torch.tensor([-0.7], requires_grad=True)
    loss = chunked_loss(states, torch.tensor([[1.0], [-1.0]]), torch.zeros(2), torch.tensor([1]), 0.0, beside)
    loss.backward()  # type: ignore[no-untyped-call]
    assert float(loss.detach()) == pytest.approx(0.7)
    assert [float(each.grad) for each in (states, *beside) if each.grad is not None] == [0.0, 0.0, -1.0]


def test_the_logits_of_a_mixture_never_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked, "ROWS", 16)
    states, weight, bias, label = drawn(400, 8, 100, torch.float32)
    beside = torch.full((400,), -1.0, requires_grad=True), torch.full((400,), -2.0, requires_grad=True)
    with Largest() as seen:
        chunked_loss(states, weight, bias, label, 0.1, beside).backward()  # type: ignore[no-untyped-call]
    assert seen.size == 400 * 8


def test_a_mixture_in_bf16_is_near() -> None:
    states, weight, bias, label = drawn(40, 32, 50, torch.float32)
    beside = torch.full((40,), -0.5, requires_grad=True), torch.full((40,), -2.0, requires_grad=True)
    given = (states, weight, bias, *beside)
    wanted = torch.autograd.grad(expected := chunked_loss(states, weight, bias, label, 0.1, beside), given)
    with torch.autocast("cpu", torch.bfloat16):
        found = chunked_loss(states, weight, bias, label, 0.1, beside)
    assert float(found) == pytest.approx(float(expected), rel=1e-2)
    for one, other in zip(torch.autograd.grad(found, given), wanted, strict=True):
        assert (one - other).norm() < 0.02 * other.norm()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("count", [2, 8, 22])
def test_pairs_that_are_to_agree_have_torchs_divergence_and_gradients(
    smoothing: float, count: int, dtype: torch.dtype, same: Same, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunked, "ROWS", 8)
    states, weight, bias, _ = drawn(count, 6, 11, dtype)
    label = torch.arange(count) // 2
    logits = F.linear(states, weight, bias)
    log = logits.log_softmax(-1)
    one, other = log[0::2], log[1::2]
    divergences = [F.kl_div(*pair, reduction="sum", log_target=True) for pair in ((one, other), (other, one))]
    expected = F.cross_entropy(logits, label, reduction="sum", label_smoothing=smoothing) + 3.0 / 2 * sum(divergences)
    wanted = torch.autograd.grad(expected, (states, weight, bias))
    found = chunked_loss(states, weight, bias, label, smoothing, agreement=3.0)
    same(found / 100, expected / 100)  # large sums, which fp32 rounds
    for mine, torchs in zip(torch.autograd.grad(found, (states, weight, bias)), wanted, strict=True):
        same(mine, torchs)
