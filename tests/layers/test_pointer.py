"""What is written and what is copied, mixed: against the mixture of probabilities, and where nothing can be copied."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.data.tokens import PAD
from regard.layers.pointer import Copied, Offer, Pointer, mixed
from regard.layers.tap import Off, Tap

Same = Callable[[Tensor, Tensor], None]

COPIES = [PAD, PAD, PAD, 5, 6, 7, PAD]  # of seven source tokens: three signs, three that the target has, one it has not
SOURCE = torch.tensor([[3, 4, 3, 6, 2, PAD], [4, 5, 2, PAD, PAD, PAD], [6, 6, 6, 2, PAD, PAD]])


def drawn(dtype: torch.dtype = torch.float64) -> tuple[Pointer, Offer, Tensor]:
    """A pointer, three sources of which the last has nothing to copy, and states of four positions."""
    torch.manual_seed(0)
    pointer = Pointer(8, 6, COPIES).to(dtype)
    offer = pointer.offer(torch.randn(3, 6, 6, dtype=dtype), SOURCE, SOURCE != PAD)
    return pointer, offer, torch.randn(3, 4, 8, dtype=dtype)


def probabilities(copied: Copied, logits_BTV: Tensor) -> Tensor:
    """The mixture as the papers write it, token by token."""
    gate_BT = torch.where(copied.weight_BTS.sum(-1) > 0, torch.sigmoid(copied.gate_BT), 1.0)
    found_BTV = gate_BT[..., None] * logits_BTV.softmax(-1)
    for token in range(logits_BTV.shape[-1]):
        there_BS = (copied.token_BS == token).to(logits_BTV.dtype)
        found_BTV[..., token] += (1 - gate_BT) * torch.einsum("bts,bs->bt", copied.weight_BTS, there_BS)
    return found_BTV


def test_logits_are_the_logarithm_of_the_mixture(dtype: torch.dtype, same: Same) -> None:
    pointer, offer, states_BTD = drawn(dtype)
    logits_BTV = torch.randn(3, 4, 9, dtype=dtype)
    copied = pointer(states_BTD, offer)
    found_BTV = copied.mix(logits_BTV)
    same(found_BTV.exp(), probabilities(copied, logits_BTV))
    same(found_BTV.exp().sum(-1), torch.ones(3, 4, dtype=dtype))
    same(found_BTV, found_BTV.log_softmax(-1))


def test_only_what_the_target_has_is_pointed_at() -> None:
    pointer, offer, states_BTD = drawn()
    weight_BTS = pointer(states_BTD, offer).weight_BTS
    assert (weight_BTS > 0).any(1).tolist() == [
        [True, True, True, False, False, False],  # neither what the target has not, nor the sign, nor padding
        [True, True, False, False, False, False],
        [False] * 6,
    ]
    torch.testing.assert_close(weight_BTS.sum(-1)[:2], torch.ones(2, 4, dtype=torch.float64))


def test_where_nothing_can_be_copied_all_is_written() -> None:
    pointer, offer, states_BTD = drawn()
    logits_BTV = torch.randn(3, 4, 9, dtype=torch.float64)
    copied = pointer(states_BTD, offer)
    assert torch.equal(copied.mix(logits_BTV)[2], logits_BTV.log_softmax(-1)[2])
    assert copied.share_BT[2].tolist() == [0.0] * 4
    assert bool((copied.share_BT[:2] > 0).all())
    assert torch.equal(mixed(logits_BTV, None), logits_BTV)


def test_an_empty_source_has_nothing_to_copy() -> None:
    pointer, _, states_BTD = drawn()
    nothing_BS = torch.zeros(3, 0, dtype=torch.long)
    copied = pointer(states_BTD, pointer.offer(torch.zeros(3, 0, 6, dtype=torch.float64), nothing_BS, nothing_BS > 0))
    logits_BTV = torch.randn(3, 4, 9, dtype=torch.float64)
    assert torch.equal(copied.mix(logits_BTV), logits_BTV.log_softmax(-1))


@pytest.mark.parametrize("gate", [-1000.0, 0.0, 1000.0])
def test_gradients_are_finite_however_sure_the_gate_is(gate: float) -> None:
    pointer, offer, states_BTD = drawn(torch.float32)
    with torch.no_grad():
        pointer.gate.bias.fill_(gate)
    logits_BTV = (100 * torch.randn(3, 4, 9)).requires_grad_()
    copied = pointer(states_BTD.requires_grad_(), offer)
    found_BTV = copied.mix(logits_BTV)
    beside = copied.log_label(torch.tensor([[5, 6, 8, 2], [6, 5, 4, 2], [7, 7, 7, 2]]))
    assert bool(found_BTV.isfinite().all())
    assert all(bool(each_BT.isfinite().all()) for each_BT in beside)
    torch.autograd.backward(found_BTV.sum() + sum(each_BT.sum() for each_BT in beside))
    for tensor in (logits_BTV, states_BTD, *pointer.parameters()):
        assert tensor.grad is not None
        assert bool(tensor.grad.isfinite().all())


def test_gradients_are_those_of_the_mixture() -> None:
    pointer, _, states_BTD = drawn()
    logits_BTV = torch.randn(3, 4, 9, dtype=torch.float64, requires_grad=True)
    memory_BSM = torch.randn(3, 6, 6, dtype=torch.float64, requires_grad=True)
    label_BT1 = torch.tensor([[5, 6, 8, 2], [6, 5, 7, 2], [7, 7, 8, 2]])[..., None]
    given = (logits_BTV, memory_BSM, *pointer.parameters())
    copied = pointer(states_BTD, pointer.offer(memory_BSM, SOURCE, SOURCE != PAD))
    plainly = probabilities(copied, logits_BTV).gather(-1, label_BT1).log().sum()
    wanted = torch.autograd.grad(plainly, given, retain_graph=True)
    found = torch.autograd.grad(copied.mix(logits_BTV).gather(-1, label_BT1).sum(), given)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=0.0, atol=1e-10)


def test_what_a_label_has_is_what_the_mixture_gives_it() -> None:
    pointer, offer, states_BTD = drawn()
    logits_BTV = torch.randn(3, 4, 9, dtype=torch.float64)
    label_BT = torch.tensor([[5, 6, 8, 2], [6, 5, 7, 2], [7, 7, 8, 2]])
    copied = pointer(states_BTD, offer)
    written_BT, copied_BT = copied.log_label(label_BT)
    alone_BT = logits_BTV.log_softmax(-1).gather(-1, label_BT[..., None])[..., 0]
    found_BT = torch.logaddexp(written_BT + alone_BT, copied_BT)
    torch.testing.assert_close(found_BT, copied.mix(logits_BTV).gather(-1, label_BT[..., None])[..., 0])


def test_single_positions_are_rows() -> None:
    pointer, offer, states_BTD = drawn()
    copied = pointer(states_BTD, offer)
    logits_BTV = torch.randn(3, 4, 9, dtype=torch.float64)
    row_N, column_N = torch.tensor([0, 2, 1, 0]), torch.tensor([3, 0, 2, 1])
    found = copied.at(row_N, column_N).mix(logits_BTV[row_N, column_N][:, None])[:, 0]
    torch.testing.assert_close(found, copied.mix(logits_BTV)[row_N, column_N])


def test_a_tap_hears_the_weights_and_can_switch_them_off() -> None:
    pointer, offer, states_BTD = drawn()
    logits_BTV = torch.randn(3, 4, 9, dtype=torch.float64)
    outer = torch.nn.ModuleDict({"copy": pointer})
    quiet_BTV = pointer(states_BTD, offer).mix(logits_BTV)
    with Tap(outer) as tap:
        heard_BTV = pointer(states_BTD, offer).mix(logits_BTV)
    assert torch.equal(quiet_BTV, heard_BTV)
    assert torch.equal(tap.maps["copy"][0][:, 0], pointer(states_BTD, offer).weight_BTS)
    with Off(outer, [("copy", 0)]):
        assert torch.equal(pointer(states_BTD, offer).mix(logits_BTV), F.log_softmax(logits_BTV, -1))
