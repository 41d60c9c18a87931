"""Feed-forward, plain and gated, against its formula; dropout against what it promises."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from regard.layers.dropout import Dropout
from regard.layers.feedforward import BENDS, FeedForward

Same = Callable[[Tensor, Tensor], None]

FORMULAE: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": lambda x: x.clamp(min=0),
    "gelu": lambda x: x * (1 + torch.erf(x / 2**0.5)) / 2,
    "silu": lambda x: x / (1 + torch.exp(-x)),
}


@pytest.mark.parametrize("gated", [False, True], ids=["plain", "gated"])
@pytest.mark.parametrize("activation", list(BENDS))
def test_feedforward(activation: str, gated: bool, dtype: torch.dtype, same: Same) -> None:
    own = FeedForward(6, 10, activation, gated, Dropout(0.0)).to(dtype)
    x = torch.randn(2, 3, 6, dtype=dtype)
    inner = FORMULAE[activation](x @ own.inner.weight.T + own.inner.bias)
    if gated:
        assert own.gate is not None
        inner = inner * (x @ own.gate.weight.T + own.gate.bias)
    same(own(x), inner @ own.outer.weight.T + own.outer.bias)


def test_dropout_zeroes_a_share_and_scales_the_rest() -> None:
    torch.manual_seed(0)
    part, x = Dropout(0.25), torch.ones(100, 100)
    dropped = part(x)
    assert dropped.unique().tolist() == [0.0, pytest.approx(4 / 3)]
    assert (dropped == 0).float().mean().item() == pytest.approx(0.25, abs=0.02)
    assert part.eval()(x).equal(x)
    torch.manual_seed(0)
    assert part.train()(x).equal(dropped)
