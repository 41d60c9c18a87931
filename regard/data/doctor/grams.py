"""Texts in, hashes of all their runs of characters out, as flat arrays: likeness at the speed of numpy."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.data.ragged import Ragged

Hashes = NDArray[np.uint64]

BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, and far from any pattern: the golden ratio in 64 bits
STIR = np.uint64(0xBF58476D1CE4E5B9)
HALF = np.uint64(32)


def grams(texts: Sequence[str], size: int, bits: int = 62) -> Ragged:
    """Every run of `size` characters of each text, its ends marked, as a number of so many bits.

    A text has at least one, however short it is: it is filled up with marks of its end.
    """
    marked = "".join("\x02" + text + "\x03" * max(1, size - 1 - len(text)) for text in texts)
    codes = np.frombuffer(marked.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    lengths = np.fromiter((1 + len(text) + max(1, size - 1 - len(text)) for text in texts), np.int64, len(texts))
    counts = lengths - size + 1
    starts = np.cumsum(lengths) - lengths
    places = np.arange(counts.sum()) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
    hashed = np.zeros(len(places), np.uint64)
    for offset in range(size):
        hashed = (hashed + codes[places + offset] + np.uint64(1)) * BASE
        hashed ^= hashed >> HALF
    return Ragged((stirred(hashed, STIR) >> np.uint64(64 - bits)).astype(np.int64), counts)


def stirred(hashed: Hashes, factor: np.uint64) -> Hashes:
    """The same numbers in an order of which nothing is known."""
    mixed = hashed * factor
    mixed ^= mixed >> HALF
    return mixed * BASE
