"""Target vectors, a Memory and a State in; decoder states and the next State out.

The same call serves teacher forcing (all of the target at once) and generation (one token and the state so far).
Nothing is kept on a module. `mask_BT` is given only where the tokens have padding after them and more will follow:
when a decoder without an encoder reads the source as its prefix.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.layers.attention import Attention, Held, Sight
from regard.layers.convolution import GatedConvolution, last_real
from regard.layers.pointer import Pointer
from regard.layers.positions import Position, places
from regard.layers.recurrent import Cell, Cells, real_lengths
from regard.models.bridge import Bridge, summary
from regard.models.memory import Memory


class Decoder(nn.Module):
    """What all decoders promise: `read` a memory once, `start` a state from it, then `forward` as often as needed.

    `copy` is a head that points into the source; the model mixes what it says with the output layer.
    """

    def __init__(self) -> None:
        super().__init__()
        self.copy: Pointer | None = None

    def attentions(self) -> list[Attention]:
        """The attentions that look at the memory."""
        return [module for name, module in self.named_modules()
                if isinstance(module, Attention) and name.endswith("cross_attention")]  # fmt: skip

    def read(self, memory: Memory) -> Memory:
        """The memory with the keys and values that this decoder will look up."""
        return replace(memory, keys=tuple(attention.hold(memory.states_BSM) for attention in self.attentions()))

    def start(self, memory: Memory) -> Any:
        raise NotImplementedError

    def forward(self, x_BTE: Tensor, memory: Memory, state: Any, mask_BT: Tensor | None = None) -> tuple[Tensor, Any]:
        raise NotImplementedError


# ── recurrent ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class RecurrentState:
    """The cells of each layer, what is fed back, and how many tokens were read."""

    cells: tuple[Cells, ...]
    fed_BD: Tensor | None = None
    at: int | Tensor = 0


class RecurrentDecoder(Decoder):
    """A loop over the target; `context` says how it sees the source (see config.RecurrentDecoder)."""

    def __init__(
        self,
        cells: nn.ModuleList,
        bridge: Bridge,
        context: str,
        cross_attention: Attention | None,
        position: Position,
        dropout: nn.Module,
    ) -> None:
        super().__init__()
        width = bridge.width
        self.cells = cells
        self.bridge = bridge
        self.context = context
        self.cross_attention = cross_attention
        self.joined = nn.Linear(2 * width, width) if cross_attention is not None else None
        self.position = position
        self.dropout = dropout

    def start(self, memory: Memory) -> RecurrentState:
        cells = self.bridge(memory)
        return RecurrentState(cells, torch.zeros_like(cells[-1][0]) if self.context == "feed" else None)

    def forward(
        self, x_BTE: Tensor, memory: Memory, state: RecurrentState, mask_BT: Tensor | None = None
    ) -> tuple[Tensor, RecurrentState]:
        at_BT, following = places(state.at, x_BTE.shape[1], mask_BT, x_BTE.device)
        x_BTE = self.position.add(x_BTE, at_BT)
        if self.context in ("feed", "input"):
            states_BTD, state = self.step_by_step(x_BTE, memory, state)
        else:
            states_BTD, state = self.all_at_once(x_BTE, memory, state, mask_BT)
        return states_BTD, replace(state, at=following)

    def all_at_once(
        self, x_BTE: Tensor, memory: Memory, state: RecurrentState, mask_BT: Tensor | None
    ) -> tuple[Tensor, RecurrentState]:
        """The source is not read inside the loop, so each layer runs over the whole target in one call."""
        x = x_BTE  # its width changes from layer to layer
        if self.context == "fixed":
            fixed_BTM = summary(memory, self.bridge.kind)[:, None].expand(-1, x_BTE.shape[1], -1)
            x = torch.cat([x, fixed_BTM], -1)
        cells = []
        for number, (cell, old) in enumerate(zip(self.cells, state.cells, strict=True)):
            assert isinstance(cell, Cell)
            x, new = cell.run(self.dropout(x) if number else x, old, real_lengths(mask_BT))
            cells.append(new)
        if self.cross_attention is not None:
            x = self.join(x, self.cross_attention(x, memory.keys[0], memory.sight()))
        return self.dropout(x), replace(state, cells=tuple(cells))

    def step_by_step(self, x_BTE: Tensor, memory: Memory, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """What was looked up goes into the next step, so there is no way but one step after the other."""
        assert self.cross_attention is not None
        found = []
        for x_BE in x_BTE.unbind(1):
            if self.context == "input":
                looked_BD = self.look(state.cells[-1][0], memory)
                cells = self.climb(torch.cat([x_BE, looked_BD], -1), state.cells)
                out_BD = self.join(cells[-1][0], looked_BD)
                state = replace(state, cells=cells)
            else:
                assert state.fed_BD is not None
                cells = self.climb(torch.cat([x_BE, state.fed_BD], -1), state.cells)
                out_BD = self.join(cells[-1][0], self.look(cells[-1][0], memory))
                state = replace(state, cells=cells, fed_BD=out_BD)
            found.append(out_BD)
        return self.dropout(torch.stack(found, 1)), state

    def climb(self, x: Tensor, state: tuple[Cells, ...]) -> tuple[Cells, ...]:
        """One step of every layer, from the lowest to the highest."""
        cells: list[Cells] = []
        for number, (cell, old) in enumerate(zip(self.cells, state, strict=True)):
            assert isinstance(cell, Cell)
            cells.append(cell.step(self.dropout(x) if number else x, old))
            x = cells[-1][0]
        return tuple(cells)

    def look(self, query_BD: Tensor, memory: Memory) -> Tensor:
        assert self.cross_attention is not None
        found_BTD: Tensor = self.cross_attention(query_BD[:, None], memory.keys[0], memory.sight())
        return found_BTD[:, 0]

    def join(self, state: Tensor, looked: Tensor) -> Tensor:
        """tanh(W [h; c]): the output D(h, c)."""
        assert self.joined is not None
        return torch.tanh(self.joined(torch.cat([state, looked], -1)))


# ── convolutional ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ConvolutionalState:
    """For each layer its last kernel − 1 inputs, and how many tokens were read."""

    past: tuple[Tensor, ...]
    at: int | Tensor = 0


class ConvolutionalLayer(nn.Module):
    """A gated convolution over the past, attention to the source, a residual round both (Gehring et al. 2017)."""

    def __init__(self, convolution: GatedConvolution, cross_attention: Attention | None, dropout: nn.Module) -> None:
        super().__init__()
        self.convolution = convolution
        self.cross_attention = cross_attention
        self.dropout = dropout

    def forward(self, x_BTD: Tensor, past_BSD: Tensor, memory: Held | None, sight: Sight) -> tuple[Tensor, Tensor]:
        """The new states, and past and present inputs in one row."""
        seen = torch.cat([past_BSD, self.dropout(x_BTD)], 1)
        found_BTD = self.convolution(seen)
        if self.cross_attention is not None and memory is not None:
            found_BTD = found_BTD + self.cross_attention(found_BTD + x_BTD, memory, sight)
        return (x_BTD + found_BTD) * math.sqrt(0.5), seen


class ConvolutionalDecoder(Decoder):
    """Causal convolutions over the target."""

    def __init__(self, position: Position, layers: nn.ModuleList, width: int, dropout: nn.Module) -> None:
        super().__init__()
        self.position = position
        self.layers = layers
        self.width = width
        self.dropout = dropout

    def start(self, memory: Memory) -> ConvolutionalState:
        states = memory.states_BSM
        return ConvolutionalState(tuple(
            states.new_zeros(len(states), layer.convolution.kernel - 1, self.width)
            for layer in self.layers if isinstance(layer, ConvolutionalLayer)
        ))  # fmt: skip

    def forward(
        self, x_BTE: Tensor, memory: Memory, state: ConvolutionalState, mask_BT: Tensor | None = None
    ) -> tuple[Tensor, ConvolutionalState]:
        at_BT, following = places(state.at, x_BTE.shape[1], mask_BT, x_BTE.device)
        x_BTE = self.position.add(x_BTE, at_BT)
        keys = memory.keys or (None,) * len(self.layers)
        past = []
        for layer, old, held in zip(self.layers, state.past, keys, strict=True):
            x_BTE, seen = layer(x_BTE, old, held, memory.sight())
            past.append(last_real(seen, old.shape[1], mask_BT))
        return self.dropout(x_BTE), ConvolutionalState(tuple(past), following)


# ── attention ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class AttentionState:
    """For each layer the keys and values so far; a mask only where a prefix had padding."""

    held: tuple[Held | None, ...]
    length: int = 0
    mask_BS: Tensor | None = None


class AttentionDecoder(Decoder):
    """Blocks of causal self-attention, with attention to the source if there is an encoder."""

    def __init__(self, position: Position, layers: nn.ModuleList, norm: nn.Module) -> None:
        super().__init__()
        self.position = position
        self.layers = layers
        self.norm = norm

    def start(self, memory: Memory) -> AttentionState:
        return AttentionState((None,) * len(self.layers))

    def forward(
        self, x_BTE: Tensor, memory: Memory, state: AttentionState, mask_BT: Tensor | None = None
    ) -> tuple[Tensor, AttentionState]:
        mask_BS = longer_mask(state, x_BTE, mask_BT)
        sight, at_BT = self.sight(state.length, x_BTE, mask_BS)
        x_BTE = self.position.add(x_BTE, at_BT)
        keys = memory.keys or (None,) * len(self.layers)
        held = []
        for layer, past, key in zip(self.layers, state.held, keys, strict=True):
            x_BTE, new = layer(x_BTE, sight, past, key, memory.sight())
            held.append(new)
        return self.norm(x_BTE), AttentionState(tuple(held), state.length + x_BTE.shape[1], mask_BS)

    def sight(self, past: int, x_BTE: Tensor, mask_BS: Tensor | None) -> tuple[Sight, Tensor]:
        """Each new token sees all tokens up to itself."""
        length = x_BTE.shape[1]
        at_BS, _ = places(0, past + length, mask_BS, x_BTE.device)
        at_BT = at_BS[:, past:]
        mask = None
        if length > 1:
            mask = torch.ones(length, past + length, dtype=torch.bool, device=x_BTE.device).tril(past)[None, None]
        if mask_BS is not None:
            real = mask_BS[:, None, None, :]
            mask = real if mask is None else real & mask
        return Sight(mask, self.position.bias(at_BT, at_BS), self.position, at_BT), at_BT


def longer_mask(state: AttentionState, x_BTE: Tensor, mask_BT: Tensor | None) -> Tensor | None:
    """The mask over all tokens so far, or None while nothing is padded."""
    if state.mask_BS is None and mask_BT is None:
        return None
    batch, length = x_BTE.shape[:2]
    real = torch.ones(batch, max(length, state.length), dtype=torch.bool, device=x_BTE.device)
    past = real[:, : state.length] if state.mask_BS is None else state.mask_BS
    return torch.cat([past, real[:, :length] if mask_BT is None else mask_BT], 1)
