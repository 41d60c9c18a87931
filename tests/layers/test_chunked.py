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
