"""A sequence and a state in, a state for each position and the last one out: Elman, GRU and LSTM.

Each cell is written out as its equation (`step`); a whole sequence goes through torch's kernel with the same weights
(`run`). A test holds the two together.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

Cells = tuple[Tensor, ...]  # the state of one cell: (h,) or (h, c), each (B, D)


class Cell(nn.Module):
    """Elman's cell: h' = tanh(W x + U h) (Elman 1990). Gated cells override the equation."""

    gates = 1
    parts = 1  # tensors in a state

    def __init__(self, input_width: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.input = nn.Linear(input_width, self.gates * width)
        self.hidden = nn.Linear(width, self.gates * width)
        for weight in self.parameters():
            nn.init.uniform_(weight, -1 / math.sqrt(width), 1 / math.sqrt(width))

    def empty(self, batch: int) -> Cells:
        zeros_BD = self.hidden.weight.new_zeros(batch, self.width)
        return (zeros_BD,) * self.parts

    def step(self, x_BE: Tensor, state: Cells) -> Cells:
        return (torch.tanh(self.input(x_BE) + self.hidden(state[0])),)

    whole: Callable[..., tuple[Tensor, ...]] = staticmethod(torch.rnn_tanh)

    def kernel(self, x: Tensor, sizes: Tensor | None, state: Cells) -> tuple[Tensor, ...]:
        """torch's kernel over a padded batch, or over a packed one when `sizes` are given."""
        weights = [self.input.weight, self.hidden.weight, self.input.bias, self.hidden.bias]
        start = state[0][None] if self.parts == 1 else [part[None].contiguous() for part in state]
        if sizes is None:
            return self.whole(x, start, weights, True, 1, 0.0, False, False, True)
        return self.whole(x, sizes, start, weights, True, 1, 0.0, False, False)

    def run(self, x_BTE: Tensor, state: Cells, lengths_B: Tensor | None) -> tuple[Tensor, Cells]:
        """States of all positions, and the state after the last real one; beyond a row's length all is 0."""
        if lengths_B is None:
            out_BTD, *last = self.kernel(x_BTE, None, state)
            return out_BTD, tuple(part[0] for part in last)
        # A row without a token can not be packed; it goes through one step, and its state is put back.
        lengths = lengths_B.clamp(min=1).cpu()
        packed = pack_padded_sequence(x_BTE, lengths, batch_first=True, enforce_sorted=False)
        assert packed.sorted_indices is not None
        assert packed.unsorted_indices is not None
        ordered = tuple(part[packed.sorted_indices] for part in state)
        data, *last = self.kernel(packed.data, packed.batch_sizes, ordered)
        packed = PackedSequence(data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
        out_BTD, _ = pad_packed_sequence(packed, batch_first=True, total_length=x_BTE.shape[1])
        new = tuple(part[0][packed.unsorted_indices] for part in last)
        kept_B1 = (lengths_B > 0)[:, None]
        return out_BTD, tuple(torch.where(kept_B1, a, b) for a, b in zip(new, state, strict=True))


class Gru(Cell):
    """h' = (1 − z) n + z h, with a reset gate inside n (Cho et al. 2014)."""

    gates = 3
    whole = staticmethod(torch.gru)

    def step(self, x_BE: Tensor, state: Cells) -> Cells:
        h_BD = state[0]
        xr, xz, xn = self.input(x_BE).chunk(3, -1)
        hr, hz, hn = self.hidden(h_BD).chunk(3, -1)
        reset, update = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
        new_BD = torch.tanh(xn + reset * hn)
        return (new_BD + update * (h_BD - new_BD),)


class Lstm(Cell):
    """c' = f c + i g, h' = o tanh(c') (Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000)."""

    gates = 4
    parts = 2
    whole = staticmethod(torch.lstm)

    def step(self, x_BE: Tensor, state: Cells) -> Cells:
        h_BD, c_BD = state
        i, f, g, o = (self.input(x_BE) + self.hidden(h_BD)).chunk(4, -1)
        c_BD = torch.sigmoid(f) * c_BD + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c_BD), c_BD


CELLS: dict[str, type[Cell]] = {"elman": Cell, "gru": Gru, "lstm": Lstm}


class Loop(nn.Module):
    """One layer over a sequence, in one direction or both; both split the width between them."""

    def __init__(self, cell: type[Cell], input_width: int, width: int, directions: str = "forward") -> None:
        super().__init__()
        both = directions == "both"
        self.forward_cell = cell(input_width, width // 2 if both else width) if directions != "backward" else None
        self.backward_cell = cell(input_width, width // 2 if both else width) if directions != "forward" else None

    def forward(self, x_BTE: Tensor, mask_BT: Tensor | None) -> tuple[Tensor, Cells]:
        """From an empty state; the last state of both directions side by side."""
        lengths_B = real_lengths(mask_BT)
        outs, lasts = [], []
        if self.forward_cell is not None:
            out_BTD, last = self.forward_cell.run(x_BTE, self.forward_cell.empty(len(x_BTE)), lengths_B)
            outs.append(out_BTD)
            lasts.append(last)
        if self.backward_cell is not None:
            turned_BTE = turn_round(x_BTE, lengths_B)
            out_BTD, last = self.backward_cell.run(turned_BTE, self.backward_cell.empty(len(x_BTE)), lengths_B)
            outs.append(turn_round(out_BTD, lengths_B))
            lasts.append(last)
        return torch.cat(outs, -1), tuple(torch.cat(parts, -1) for parts in zip(*lasts, strict=True))


def real_lengths(mask_BT: Tensor | None) -> Tensor | None:
    """Tokens in each row, or None where nothing is padded (then the quicker kernel runs)."""
    if mask_BT is None or bool(mask_BT.all()):
        return None
    return mask_BT.sum(1)


def turn_round(x_BTD: Tensor, lengths_B: Tensor | None) -> Tensor:
    """Each row's real part from back to front; padding stays where it is."""
    if lengths_B is None:
        return x_BTD.flip(1)
    at_T = torch.arange(x_BTD.shape[1], device=x_BTD.device)
    back_BT = lengths_B[:, None] - 1 - at_T
    back_BT = torch.where(back_BT < 0, at_T, back_BT)
    return x_BTD.gather(1, back_BT[..., None].expand_as(x_BTD))
