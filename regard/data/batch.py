"""Token ids in, padded batches out; which examples meet in a batch is a pure function of (seed, epoch)."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.data.tokens import PAD


@dataclass(frozen=True)
class Batch:
    """Examples side by side. What is padded in a source is False in its mask; in labels it is PAD and never counts."""

    source: Tensor  # ids (B, S), or pictures (B, C, Y, X)
    source_mask_BS: Tensor | None  # none = no padding, as in pictures
    target_BT: Tensor | None  # what the decoder is fed; none = there is no decoder
    label_BT: Tensor  # what is to be predicted at each position
    index: tuple[int, ...] = ()  # numbers of the examples

    def to(self, device: torch.device) -> "Batch":
        mask, target = self.source_mask_BS, self.target_BT
        return Batch(
            self.source.to(device),
            None if mask is None else mask.to(device),
            None if target is None else target.to(device),
            self.label_BT.to(device),
            self.index,
        )


def mix(*words: int | str) -> int:
    """A 63-bit number that depends on every word and on nothing else: the root of all random draws."""
    digest = hashlib.blake2b("\x1f".join(map(str, words)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def pad(sequences: Sequence[Sequence[int]]) -> Tensor:
    """Ids side by side, PAD after the shorter ones: (B, T)."""
    longest = max(len(ids) for ids in sequences)
    table = np.full((len(sequences), longest), PAD, dtype=np.int64)
    for row, ids in enumerate(sequences):
        table[row, : len(ids)] = ids
    return torch.from_numpy(table)


def plan(lengths: Sequence[int], tokens: int, seed: int, epoch: int) -> list[list[int]]:
    """The batches of one epoch as example numbers: similar lengths together, at most `tokens` padded tokens each.

    An example longer than `tokens` gets a batch of its own.
    """
    draw = np.random.default_rng(mix(seed, "order", epoch))
    shuffled = draw.permutation(len(lengths))
    ordered = shuffled[np.argsort(np.asarray(lengths)[shuffled], kind="stable")]
    found = cut(ordered.tolist(), lengths, tokens)
    return [found[i] for i in draw.permutation(len(found))]


def cut(order: Sequence[int], lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """`order` cut into runs whose longest length × count stays within `tokens`."""
    batches: list[list[int]] = []
    longest = 0
    for number in order:
        longest = max(longest, lengths[number])
        if not batches or longest * (len(batches[-1]) + 1) > tokens:
            batches.append([])
            longest = lengths[number]
        batches[-1].append(number)
    return batches
