"""Gated convolution against torch's own functions, and the padding that its callers do."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.layers.convolution import GatedConvolution, last_real, pad_both
from regard.layers.plain import plain

Same = Callable[[Tensor, Tensor], None]


@pytest.mark.parametrize("kernel", [1, 3, 4])
def test_a_convolution_times_its_gate(kernel: int, dtype: torch.dtype, same: Same) -> None:
    own = GatedConvolution(6, kernel).to(dtype)
    x = torch.randn(2, 7, 6, dtype=dtype)
    weight, bias = own.convolution.weight, own.convolution.bias
    found = own(x)
    same(found, F.glu(F.conv1d(x.transpose(1, 2), weight, bias), 1).transpose(1, 2))
    assert found.shape == (2, 7 - kernel + 1, 6)


def test_the_gate_by_hand(dtype: torch.dtype, same: Same) -> None:
    """One position, written out: a ⊙ σ(b) with a and b the two halves of Σ W_j x(t + j)."""
    own = GatedConvolution(4, 3).to(dtype)
    x = torch.randn(1, 3, 4, dtype=dtype)
    assert own.convolution.bias is not None
    total = own.convolution.bias + sum(own.convolution.weight[:, :, j] @ x[0, j] for j in range(3))
    same(own(x)[0, 0], total[:4] * torch.sigmoid(total[4:]))


@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_padding_on_both_sides_keeps_the_length(kernel: int) -> None:
    x = torch.randn(2, 4, 6)
    padded = pad_both(x, kernel)
    side = kernel // 2
    assert padded[:, side : side + 4].equal(x)
    assert (padded[:, :side] == 0).all()
    assert (padded[:, side + 4 :] == 0).all()
    assert GatedConvolution(6, kernel)(padded).shape == x.shape


def test_the_last_real_positions() -> None:
    """Two positions of the past stand before five new ones, of which each row has its own number of real ones."""
    x = torch.arange(21.0).view(3, 7, 1)
    mask = torch.arange(5) < torch.tensor([5, 2, 0])[:, None]
    assert last_real(x, 2, None)[..., 0].tolist() == [[5.0, 6.0], [12.0, 13.0], [19.0, 20.0]]
    assert last_real(x, 2, mask)[..., 0].tolist() == [[5.0, 6.0], [9.0, 10.0], [14.0, 15.0]]


@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_one_product_is_the_convolution_of_torch(kernel: int, dtype: torch.dtype) -> None:
    own = GatedConvolution(6, kernel).to(dtype)
    padded = torch.randn(3, 7, 6, dtype=dtype, requires_grad=True)
    with plain():
        expected = own(padded)
    found = own(padded)
    torch.testing.assert_close(found, expected)
    wanted = torch.autograd.grad(expected.square().sum(), [padded, *own.parameters()])
    given = torch.autograd.grad(found.square().sum(), [padded, *own.parameters()])
    for one, other in zip(given, wanted, strict=True):
        torch.testing.assert_close(one, other)
