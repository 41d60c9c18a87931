"""Token ids in, for each place the sum of what the runs of tokens are worth that it stands in.

A letter alone says little, the letters around it say nearly all of how it is spoken or rewritten. Every run of two to
`longest` tokens that covers a place has a vector, hashed into a table of a fixed size as in fastText (Bojanowski et al.
2017, https://arxiv.org/abs/1607.04606): looked up and added, it costs next to nothing beside the products that would
have to find it out. Where a text ends, runs go on with padding, so that padding changes nothing.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

SPREAD, BLEND, BITS = 1_000_003, 1_640_531_527, 2**31 - 1  # native.cpp has the same


class NGrams(nn.Module):
    """Vectors of the runs around each place, with `buckets` of them for each length and place within a run.

    They begin at zero: what a run means beyond its tokens has to be learnt.
    """

    def __init__(self, longest: int, buckets: int, width: int) -> None:
        super().__init__()
        self.longest = longest
        self.buckets = buckets
        self.table = nn.Embedding(buckets * len(windows(longest)), width)
        nn.init.zeros_(self.table.weight)

    def forward(self, ids_BS: Tensor) -> Tensor:
        vectors_BSD: Tensor = self.table(self.places(ids_BS)).sum(-2)  # a bag's gradient takes three times as long
        return vectors_BSD

    def places(self, ids_BS: Tensor) -> Tensor:
        """The row of the table for each window on each place: (B, S, windows)."""
        around = self.longest - 1
        padded = F.pad(ids_BS, (around, around))
        length = ids_BS.shape[1]
        rows = []
        for number, (start, count) in enumerate(windows(self.longest)):
            hashed = torch.full_like(ids_BS, count)
            for offset in range(start + around, start + around + count):
                hashed = ((hashed * SPREAD) ^ (padded[:, offset : offset + length] + 1)) & BITS
            hashed = ((hashed ^ (hashed >> 15)) * BLEND) & BITS
            rows.append((hashed ^ (hashed >> 13)) % self.buckets + number * self.buckets)
        return torch.stack(rows, dim=-1)


def windows(longest: int) -> list[tuple[int, int]]:
    """Where each run begins, seen from the place that it covers, and how many tokens it has."""
    return [(start, count) for count in range(2, longest + 1) for start in range(1 - count, 1)]
