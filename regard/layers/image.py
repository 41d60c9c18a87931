"""Pictures in, a row of vectors out, one for each place: a convolutional grid or flat patches."""

from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional as F


def keep_size(convolution: nn.Module) -> None:
    """Weights under which a signal keeps its size through a relu (He et al. 2015); else positions would drown it."""
    assert isinstance(convolution, nn.Conv2d)
    nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
    assert convolution.bias is not None
    nn.init.zeros_(convolution.bias)


class Grid(nn.Module):
    """Convolutions that halve the picture until a place is `patch` pixels wide (Xu et al. 2015 read such a grid)."""

    def __init__(self, channels: int, width: int, patch: int, layers: int, dropout: nn.Module) -> None:
        super().__init__()
        self.dropout = dropout
        halvings = patch.bit_length() - 1
        widths = [channels, *[max(8, width >> (halvings - i)) for i in range(1, halvings)], width]
        steps = [2] * halvings if halvings else [1]
        self.halves = nn.ModuleList(
            nn.Conv2d(a, b, 3, stride=step, padding=1) for (a, b), step in zip(pairwise(widths), steps, strict=True)
        )
        self.layers = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(layers))
        for each in (*self.halves, *self.layers):
            keep_size(each)

    def forward(self, pixels_BCYX: Tensor) -> Tensor:
        x = 2 * pixels_BCYX - 1
        for half in self.halves:
            x = F.relu(half(x))
        for layer in self.layers:
            x = x + F.relu(layer(x))
        places_BSD: Tensor = self.dropout(x.flatten(2).transpose(1, 2))
        return places_BSD


class Patches(nn.Module):
    """Each square of `patch` pixels through one projection (Dosovitskiy et al. 2021)."""

    def __init__(self, channels: int, width: int, patch: int) -> None:
        super().__init__()
        self.project = nn.Conv2d(channels, width, patch, stride=patch)

    def forward(self, pixels_BCYX: Tensor) -> Tensor:
        found: Tensor = self.project(2 * pixels_BCYX - 1)
        return found.flatten(2).transpose(1, 2)
