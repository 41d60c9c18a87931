"""Token ids in, padded batches out; which examples meet in a batch is a pure function of (seed, epoch)."""

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.ragged import Numbers, Ragged, ragged
from regard.data.tokens import PAD

PAGE = 1024  # neighbouring examples that stay in one window, so that what is read together lies together …
WINDOW = 1 << 17  # … and examples that are shuffled and sorted at a time
BLUR = 1.0  # tokens by which lengths are taken as alike, so that an example meets others in another epoch


@dataclass(frozen=True)
class Batch:
    """Examples side by side. What is padded in a source is False in its mask; in labels it is PAD and never counts."""

    source: Tensor  # ids (B, S), or pictures (B, C, Y, X)
    source_mask_BS: Tensor | None  # none = no padding, as in pictures
    target_BT: Tensor | None  # what the decoder is fed; none = there is no decoder
    label_BT: Tensor  # what is to be predicted at each position
    index: tuple[int, ...] = ()  # numbers of the examples

    def to(self, device: torch.device) -> "Batch":
        return self.mapped(lambda tensor: tensor.to(device), self.index)

    def part(self, start: int, stop: int) -> "Batch":
        """Some of its rows, as wide as they were."""
        return self.mapped(lambda tensor: tensor[start:stop], self.index[start:stop])

    def twice(self) -> "Batch":
        """All its rows, and all of them again."""
        return self.mapped(lambda tensor: torch.cat([tensor, tensor]), (*self.index, *self.index))

    def mapped(self, act: Callable[[Tensor], Tensor], index: tuple[int, ...]) -> "Batch":
        """The same with every tensor as `act` makes it."""
        mask, target = self.source_mask_BS, self.target_BT
        return Batch(
            act(self.source),
            None if mask is None else act(mask),
            None if target is None else act(target),
            act(self.label_BT),
            index,
        )

    def idle(self) -> "Batch":
        """The same rows with nothing to predict: they are computed and count for nothing."""
        return replace(self, label_BT=torch.full_like(self.label_BT, PAD))


def mix(*words: int | str) -> int:
    """A 63-bit number that depends on every word and on nothing else: the root of all random draws."""
    digest = hashlib.blake2b("\x1f".join(map(str, words)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def scattered(root: int, numbers: Numbers, places: Numbers) -> NDArray[np.float64]:
    """A draw from [0, 1) for each place of each example, a pure function of these: splitmix64 (Steele et al. 2014)."""
    steps = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1342543DE82EF95))  # odd, so that no two places fall together
    found = _stirred(np.uint64(root) + numbers.astype(np.uint64) * steps[0])
    return (_stirred(found + places.astype(np.uint64) * steps[1]) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _stirred(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


# ── padding ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def pad(sequences: Collection[Sequence[int]] | Ragged) -> Tensor:
    """Ids side by side, PAD after the shorter ones: (B, T)."""
    rows = sequences if isinstance(sequences, Ragged) else ragged(sequences)
    longest = int(rows.lengths.max(initial=0))
    table = np.full((len(rows), longest), PAD, dtype=np.int64)
    table[np.arange(longest) < rows.lengths[:, None]] = rows.ids
    return torch.from_numpy(table)


# ── who meets whom ───────────────────────────────────────────────────────────────────────────────────────────────────


class Lengths(Protocol):
    """Lengths of source and target, (examples, 2): an array, or what reads them from disk as they are asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, wanted: slice, /) -> Numbers: ...


def plan(lengths: Lengths, tokens: int, seed: int, epoch: int) -> Iterator[Numbers]:
    """The batches of one epoch as example numbers: similar lengths together, at most `tokens` padded tokens each.

    Pages of neighbours are shuffled and put into windows of equal size; within a window everything is shuffled, sorted
    by length, cut, and the batches shuffled. A file that fits one window is thus shuffled as a whole, and of a larger
    one no more than a window is in memory. An example longer than `tokens` gets a batch of its own.
    """
    count = len(lengths)
    pages = np.random.default_rng(mix(seed, "pages", epoch)).permutation(-(-count // PAGE))
    for number, some in enumerate(np.array_split(pages, -(-len(pages) * PAGE // WINDOW)) if count else []):
        spans = [slice(page * PAGE, min((page + 1) * PAGE, count)) for page in some.tolist()]
        numbers = np.concatenate([np.arange(span.start, span.stop) for span in spans])
        sizes = np.concatenate([lengths[span] for span in spans])
        yield from window(numbers, sizes, tokens, np.random.default_rng(mix(seed, "order", epoch, number)))


def window(numbers: Numbers, sizes: Numbers, tokens: int, draw: np.random.Generator) -> Iterator[Numbers]:
    """The batches of one window, in an order of their own.

    Sorted by the longer side; among equals by the difference of the sides, upwards and downwards in turn, so that
    neighbours are alike in both.
    """
    longer = sizes.max(1) + 1  # the end included: what a batch pays for
    difference = sizes[:, 0] - sizes[:, 1] + draw.uniform(-BLUR, BLUR, len(sizes))
    order = np.lexsort((np.where(longer % 2, difference, -difference), longer))
    found = np.split(numbers[order], cuts(longer[order], tokens)[:-1])
    for place in draw.permutation(len(found)):
        yield found[place]


def cuts(lengths: Numbers, tokens: int) -> list[int]:
    """Where to end batches so that in each its longest length × its count stays within `tokens`."""
    ends: list[int] = []
    start = 0
    while start < len(lengths):
        most = max(1, tokens // max(1, int(lengths[start])))
        longest = np.maximum.accumulate(lengths[start : start + most])
        fits = longest * np.arange(1, len(longest) + 1) <= tokens
        start += max(1, int(fits.argmin()) if not fits.all() else len(fits))
        ends.append(start)
    return ends


def cut(order: Sequence[int], lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """`order` cut into runs whose longest length × count stays within `tokens`."""
    ends = cuts(np.array([lengths[number] for number in order], np.int64), tokens)
    return [list(order[start:end]) for start, end in zip([0, *ends], ends, strict=False)]
