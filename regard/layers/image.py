"""Pictures in, a row of vectors out, one for each place: a convolutional grid or flat patches."""

from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional as F


class Grid(nn.Module):
    """Convolutions that halve the picture until a place is `patch` pixels wide (Xu et al. 2015 read such a grid)."""

    def __init__(self, channels: int, width: int, patch: int, layers: int) -> None:
        super().__init__()
        halvings = patch.bit_length() - 1
        widths = [max(8, width >> (halvings - i)) for i in range(halvings)] + [width]
        self.first = nn.Conv2d(channels, widths[0], 3, padding=1)
        self.halves = nn.ModuleList(nn.Conv2d(a, b, 3, stride=2, padding=1) for a, b in pairwise(widths))
        self.layers = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(layers))

    def forward(self, pixels_BCYX: Tensor) -> Tensor:
        x: Tensor = F.relu(self.first(pixels_BCYX))
        for half in self.halves:
            x = F.relu(half(x))
        for layer in self.layers:
            x = x + F.relu(layer(x))
        return x.flatten(2).transpose(1, 2)


class Patches(nn.Module):
    """Each square of `patch` pixels through one projection (Dosovitskiy et al. 2021)."""

    def __init__(self, channels: int, width: int, patch: int) -> None:
        super().__init__()
        self.project = nn.Conv2d(channels, width, patch, stride=patch)

    def forward(self, pixels_BCYX: Tensor) -> Tensor:
        found: Tensor = self.project(pixels_BCYX)
        return found.flatten(2).transpose(1, 2)
