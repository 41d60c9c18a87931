"""Cells and loops against nn.RNN, nn.GRU and nn.LSTM with the same weights: states, last states, gradients."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard import config
from regard.layers.recurrent import CELLS, Cell, Cells, Loop, turn_round
from regard.models.build import encoder
from regard.models.encoders import RecurrentEncoder

Same = Callable[[Tensor, Tensor], None]

INPUT, WIDTH, BATCH, LENGTH = 5, 6, 4, 7
LENGTHS = torch.tensor([4, 7, 1, 5])
MASK = torch.arange(LENGTH) < LENGTHS[:, None]
NAMES = list(CELLS)
KINDS: dict[str, Callable[..., nn.RNNBase]] = {"elman": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}

each_cell = pytest.mark.parametrize("name", NAMES)
each_length = pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "packed"])


def reference(name: str, layers: list[list[Cell]], input_width: int, dtype: torch.dtype) -> nn.RNNBase:
    """torch's network with the weights of ours: for each layer one cell, or one for each direction."""
    width, both = layers[0][0].width, len(layers[0]) == 2
    other = KINDS[name](input_width, width, len(layers), batch_first=True, bidirectional=both, dtype=dtype)
    for number, directions in enumerate(layers):
        for cell, end in zip(directions, ("", "_reverse"), strict=False):
            for torch_name, part in (("ih", cell.input), ("hh", cell.hidden)):
                other.get_parameter(f"weight_{torch_name}_l{number}{end}").data.copy_(part.weight.data)
                other.get_parameter(f"bias_{torch_name}_l{number}{end}").data.copy_(part.bias.data)
    return other


def run_reference(
    other: nn.RNNBase, x: Tensor, lengths: Tensor | None, start: Cells | None = None
) -> tuple[Tensor, Cells]:
    """States (B, T, D) and last states, each (layers × directions, B, D)."""
    first = None if start is None else tuple(part[None] for part in start)
    given = first[0] if first is not None and not isinstance(other, nn.LSTM) else first
    if lengths is None:
        out, last = other(x, given)
    else:
        packed, last = other(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False), given)
        out, _ = pad_packed_sequence(packed, batch_first=True, total_length=x.shape[1])
    return out, last if isinstance(last, tuple) else (last,)


def drawn(dtype: torch.dtype) -> Tensor:
    return torch.randn(BATCH, LENGTH, INPUT, dtype=dtype, requires_grad=True)


def state_of(cell: Cell, dtype: torch.dtype) -> Cells:
    return tuple(torch.randn(BATCH, WIDTH, dtype=dtype, requires_grad=True) for _ in range(cell.parts))


def cells_of(loop: nn.Module) -> list[Cell]:
    assert isinstance(loop, Loop)
    return [cell for cell in (loop.forward_cell, loop.backward_cell) if cell is not None]


@each_cell
@each_length
def test_a_whole_sequence(name: str, lengths: Tensor | None, dtype: torch.dtype, same: Same) -> None:
    cell = CELLS[name](INPUT, WIDTH).to(dtype)
    other = reference(name, [[cell]], INPUT, dtype)
    x, start = drawn(dtype), state_of(cell, dtype)
    found, last = cell.run(x, start, lengths)
    expected, expected_last = run_reference(other, x, lengths, start)
    same(found, expected)
    for part, expected_part in zip(last, expected_last, strict=True):
        same(part, expected_part[0])
    up = [torch.randn_like(found), *(torch.randn_like(part) for part in last)]
    own_leaves = [x, *start, cell.input.weight, cell.hidden.weight, cell.input.bias, cell.hidden.bias]
    other_leaves = [
        x,
        *start,
        *(other.get_parameter(f"{w}_l0") for w in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")),
    ]
    gradients = torch.autograd.grad((found, *last), own_leaves, up)
    expected_up = [up[0], *(part[None] for part in up[1:])]
    expected_gradients = torch.autograd.grad((expected, *expected_last), other_leaves, expected_up)
    for own, wanted in zip(gradients, expected_gradients, strict=True):
        same(own, wanted)


@each_cell
def test_step_by_step_is_the_whole_sequence(name: str, dtype: torch.dtype, same: Same) -> None:
    """Against torch's kernel: forward, and the gradient through all steps."""
    cell = CELLS[name](INPUT, WIDTH).to(dtype)
    x, start = drawn(dtype), state_of(cell, dtype)
    state, states = start, []
    for step in x.unbind(1):
        state = cell.step(step, state)
        states.append(state[0])
    found = torch.stack(states, 1)
    expected, expected_last = run_reference(reference(name, [[cell]], INPUT, dtype), x, None, start)
    same(found, expected)
    for part, expected_part in zip(state, expected_last, strict=True):
        same(part, expected_part[0])
    up = torch.randn_like(found)
    for own, wanted in zip(
        torch.autograd.grad(found, (x, *start), up, allow_unused=True),
        torch.autograd.grad(expected, (x, *start), up, allow_unused=True),
        strict=True,
    ):
        same(own, wanted)


@each_cell
def test_an_empty_state_is_torchs_default(name: str, dtype: torch.dtype, same: Same) -> None:
    cell = CELLS[name](INPUT, WIDTH).to(dtype)
    x = drawn(dtype)
    expected, _ = run_reference(reference(name, [[cell]], INPUT, dtype), x, None)
    same(cell.run(x, cell.empty(BATCH), None)[0], expected)
    assert len(cell.empty(BATCH)) == (2 if name == "lstm" else 1)


@each_cell
@each_length
def test_one_layer_in_both_directions(name: str, lengths: Tensor | None, dtype: torch.dtype, same: Same) -> None:
    loop = Loop(CELLS[name], INPUT, WIDTH, "both").to(dtype)
    x = drawn(dtype)
    found, last = loop(x, None if lengths is None else MASK)
    expected, expected_last = run_reference(reference(name, [cells_of(loop)], INPUT, dtype), x, lengths)
    same(found, expected)
    for part, expected_part in zip(last, expected_last, strict=True):
        same(part, torch.cat([expected_part[0], expected_part[1]], -1))


@each_cell
def test_one_layer_from_back_to_front(name: str, dtype: torch.dtype, same: Same) -> None:
    """Row by row: the real part turned round, through torch's forward network, turned round again."""
    loop = Loop(CELLS[name], INPUT, WIDTH, "backward").to(dtype)
    other = reference(name, [cells_of(loop)], INPUT, dtype)
    x = drawn(dtype)
    found, last = loop(x, MASK)
    for row, length in enumerate(LENGTHS.tolist()):
        expected, expected_last = run_reference(other, x[row : row + 1, :length].flip(1), None)
        same(found[row, :length], expected[0].flip(0))
        assert (found[row, length:] == 0).all()
        for part, expected_part in zip(last, expected_last, strict=True):
            same(part[row], expected_part[0, 0])


@each_cell
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("directions", ["forward", "both"])
@each_length
def test_an_encoder_built_from_a_config(
    name: Any, layers: int, directions: Any, lengths: Tensor | None, dtype: torch.dtype, same: Same
) -> None:
    side = config.RecurrentEncoder(cell=name, layers=layers, width=WIDTH, embedding=INPUT, directions=directions)
    own = encoder(config.Config(encoder=side)).to(dtype)
    assert isinstance(own, RecurrentEncoder)
    other = reference(name, [cells_of(loop) for loop in own.layers], INPUT, dtype)
    x = drawn(dtype)
    memory = own(x, torch.ones_like(MASK) if lengths is None else MASK)
    expected, expected_last = run_reference(other, x, lengths)
    same(memory.states_BSM, expected)
    ways = 2 if directions == "both" else 1
    for number, state in enumerate(memory.final):
        for part, expected_part in zip(state, expected_last, strict=True):
            same(part, torch.cat(list(expected_part[number * ways : (number + 1) * ways]), -1))
    same(memory.last_BM, memory.final[-1][0])
    up = torch.randn_like(expected)
    own_gradient, other_gradient = (torch.autograd.grad(y, x, up)[0] for y in (memory.states_BSM, expected))
    same(own_gradient, other_gradient)


def test_turning_round_leaves_padding_where_it_is() -> None:
    x = torch.arange(1.0, 11.0).view(2, 5, 1)
    turned = turn_round(x, torch.tensor([3, 5]))
    assert turned[..., 0].tolist() == [[3.0, 2.0, 1.0, 4.0, 5.0], [10.0, 9.0, 8.0, 7.0, 6.0]]
    assert turn_round(turned, torch.tensor([3, 5])).equal(x)
    assert turn_round(x, None)[0, :, 0].tolist() == [5.0, 4.0, 3.0, 2.0, 1.0]
