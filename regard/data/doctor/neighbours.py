"""Texts to remember in; for any other, the one that shares most of its rare runs of characters out.

Cosine of vectors that have, for each run of three characters that stands in a text, the logarithm of how rare it is
(Spärck Jones 1972). The index is a list of texts for each run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.data.doctor.grams import grams

SIZE = 3
BITS = 40  # of a run: with the number of a text it fits 64
LONG = 1000  # characters of a text that are looked at: of many long ones all would not fit into memory


@dataclass(frozen=True)
class Neighbour:
    """The number of a remembered text, and how near it is: 1 is the same."""

    number: int
    cosine: float


class Neighbours:
    """Remembers texts; finding one's neighbour costs as much as its runs of characters are frequent."""

    def __init__(self, texts: Sequence[str]) -> None:
        found = grams([text[:LONG] for text in texts], SIZE, BITS)
        owner = np.repeat(np.arange(len(texts)), found.lengths)
        both = np.unique(found.ids * len(texts) + owner)  # by run, then by text; a run counts once in a text
        runs, self.owners = both // len(texts), both % len(texts)
        self.runs, starts = np.unique(runs, return_index=True)
        self.starts = np.append(starts, len(runs))
        self.rarity = np.log1p(len(texts) / np.diff(self.starts))
        squares = np.bincount(self.owners, np.repeat(self.rarity, np.diff(self.starts)) ** 2, len(texts))
        self.norms = np.sqrt(np.maximum(squares, 1e-12))
        self.size = len(texts)

    def nearest(self, text: str) -> Neighbour:
        """Of equally near ones the first."""
        wanted = np.unique(grams([text[:LONG]], SIZE, BITS).ids)
        places = np.minimum(np.searchsorted(self.runs, wanted), len(self.runs) - 1)
        runs = places[self.runs[places] == wanted]
        new = (len(wanted) - len(runs)) * np.log1p(self.size) ** 2  # as rare as can be
        weights = self.rarity[runs] ** 2
        lengths = self.starts[runs + 1] - self.starts[runs]
        every = np.arange(lengths.sum()) + np.repeat(self.starts[runs] - (np.cumsum(lengths) - lengths), lengths)
        shared = np.bincount(self.owners[every], np.repeat(weights, lengths), self.size)
        cosines = shared / (self.norms * np.sqrt(weights.sum() + new))
        best = int(cosines.argmax())
        return Neighbour(best, min(float(cosines[best]), 1.0))
