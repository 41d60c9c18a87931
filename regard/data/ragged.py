"""Sequences of different lengths in, one flat array out, with the length of each: shards and batches are made of it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Ragged:
    """Sequences of ids, one after another in one array."""

    ids: Numbers
    lengths: Numbers

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def starts(self) -> Numbers:
        """Where each sequence begins in `ids`."""
        return np.cumsum(self.lengths) - self.lengths

    def rows(self, chosen: NDArray[np.bool_]) -> "Ragged":
        """The sequences that are chosen."""
        return Ragged(self.ids[np.repeat(chosen, self.lengths)], self.lengths[chosen])


def ragged(sequences: Collection[Sequence[int]]) -> Ragged:
    """Python's sequences, laid flat."""
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
    return Ragged(np.fromiter(chain.from_iterable(sequences), np.int64, int(lengths.sum())), lengths)


def repeated(id: int, count: int) -> Ragged:
    """One and the same token, `count` times a sequence of its own."""
    return Ragged(np.full(count, id, np.int64), np.ones(count, np.int64))


def join(*parts: Ragged) -> Ragged:
    """Sequence by sequence, what stands in each part, one after another."""
    lengths: Numbers = np.sum([part.lengths for part in parts], axis=0, dtype=np.int64)
    ids = np.empty(int(lengths.sum()), np.int64)
    begins = np.cumsum(lengths) - lengths
    for part in parts:
        ids[np.arange(len(part.ids)) + np.repeat(begins - part.starts, part.lengths)] = part.ids
        begins = begins + part.lengths
    return Ragged(ids, lengths)
