"""Source vectors and their mask in, a Memory out: recurrent, convolutional, attention, or places in a picture."""

import math

import torch
from torch import Tensor, nn

from regard.layers.attention import Sight
from regard.layers.convolution import GatedConvolution, pad_both
from regard.layers.positions import Position, places
from regard.layers.recurrent import Cells
from regard.models.memory import Memory, last_real_state


class Encoder(nn.Module):
    """Adds positions, then reads. This one reads nothing: its memory is the source itself, place by place."""

    def __init__(self, position: Position, width: int) -> None:
        super().__init__()
        self.position = position
        self.width = width  # of the states it makes

    def forward(self, x_BSE: Tensor, mask_BS: Tensor) -> Memory:
        at_BS, _ = places(0, x_BSE.shape[1], None, x_BSE.device)
        return self.read(self.position.add(x_BSE, at_BS), at_BS, mask_BS)

    def read(self, x_BSE: Tensor, at_BS: Tensor, mask_BS: Tensor) -> Memory:
        return Memory(x_BSE, mask_BS, last_real_state(x_BSE, mask_BS))


class RecurrentEncoder(Encoder):
    """Loops over the source, one above the other; remembers the last state of each."""

    def __init__(self, position: Position, width: int, layers: nn.ModuleList, dropout: nn.Module) -> None:
        super().__init__(position, width)
        self.layers = layers
        self.dropout = dropout

    def read(self, x_BSE: Tensor, at_BS: Tensor, mask_BS: Tensor) -> Memory:
        final: list[Cells] = []
        x = x_BSE  # its width changes after the first layer
        for layer in self.layers:
            x, last = layer(x, mask_BS)
            x = self.dropout(x)
            final.append(last)
        return Memory(x, mask_BS, final[-1][0], final=tuple(final))


class ConvolutionalEncoder(Encoder):
    """Gated convolutions with residuals; padding is zero before each, so that it is never seen."""

    def __init__(self, position: Position, width: int, layers: nn.ModuleList, dropout: nn.Module) -> None:
        super().__init__(position, width)
        self.layers = layers
        self.dropout = dropout

    def read(self, x_BSE: Tensor, at_BS: Tensor, mask_BS: Tensor) -> Memory:
        for layer in self.layers:
            assert isinstance(layer, GatedConvolution)
            padded = pad_both(self.dropout(x_BSE) * mask_BS[..., None], layer.kernel)
            x_BSE = (x_BSE + layer(padded)) * math.sqrt(0.5)
        return Memory(x_BSE, mask_BS, last_real_state(x_BSE, mask_BS))


class AttentionEncoder(Encoder):
    """Blocks of self-attention: every position sees every other in one step."""

    def __init__(self, position: Position, width: int, layers: nn.ModuleList, norm: nn.Module) -> None:
        super().__init__(position, width)
        self.layers = layers
        self.norm = norm

    def read(self, x_BSE: Tensor, at_BS: Tensor, mask_BS: Tensor) -> Memory:
        sight = Sight(mask_BS[:, None, None, :], self.position.bias(at_BS, at_BS), self.position, at_BS)
        for layer in self.layers:
            x_BSE, _ = layer(x_BSE, sight, None, None, sight)
        x_BSE = self.norm(x_BSE)
        return Memory(x_BSE, mask_BS, last_real_state(x_BSE, mask_BS))


def everywhere(x_BSE: Tensor) -> Tensor:
    """The mask of a source without padding, such as a picture."""
    return torch.ones(x_BSE.shape[:2], dtype=torch.bool, device=x_BSE.device)
