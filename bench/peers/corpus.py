"""A folder with the tokenised corpus in, lists of ids and batches out: what every system is given to read.

The folder holds `train.json` (ids of both sides, and which of them pad, start and end); `train.source`, `train.target`
and the same of `valid` (the ids as words, `p17` for the piece 17, one example a line); `vocabulary.txt` (all pieces as
such words, one a line).
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from bench.peers.gate import Counts

Pair = tuple[list[int], list[int]]


@dataclass(frozen=True)
class Corpus:
    """Examples as ids, no special token among them."""

    size: int  # of the vocabulary, special tokens included
    pad: int
    start: int
    end: int
    pairs: list[Pair]

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")


def load(folder: str) -> Corpus:
    found = json.loads((Path(folder) / "train.json").read_text(encoding="utf-8"))
    pairs = [(source, target) for source, target in found.pop("pairs")]
    return Corpus(pairs=pairs, **found)


def words(ids: Sequence[int]) -> str:
    """Ids as words, for systems that want to read text."""
    return " ".join(f"p{each}" for each in ids)


@dataclass(frozen=True)
class Batch:
    """Padded ids: the source with its end, the target as it is fed and as it is to be predicted."""

    source_BS: Tensor
    target_BT: Tensor
    label_BT: Tensor
    counts: Counts


def batches(corpus: Corpus, tokens: int, seed: int) -> Iterator[Batch]:
    """Without end, as a careful user would write it: similar lengths together, a new mixture in each epoch."""
    draw = random.Random(seed)
    while True:
        order = list(corpus.pairs)
        draw.shuffle(order)
        order.sort(key=lambda pair: (max(map(len, pair)), len(pair[1])))
        epoch = cut(order, tokens)
        draw.shuffle(epoch)
        yield from (collate(corpus, pairs) for pairs in epoch)


def cut(order: Sequence[Pair], tokens: int) -> list[list[Pair]]:
    """Runs whose longest length, the end included, times their count stays within `tokens`."""
    found: list[list[Pair]] = []
    for pair in order:
        longest = max(map(len, pair)) + 1  # they come sorted
        if not found or longest * (len(found[-1]) + 1) > tokens:
            found.append([])
        found[-1].append(pair)
    return found


def collate(corpus: Corpus, pairs: Sequence[Pair]) -> Batch:
    source_BS = padded([[*source, corpus.end] for source, _ in pairs], corpus.pad)
    target_BT = padded([[corpus.start, *target] for _, target in pairs], corpus.pad)
    label_BT = padded([[*target, corpus.end] for _, target in pairs], corpus.pad)
    return Batch(source_BS, target_BT, label_BT, counted(source_BS, label_BT, corpus.pad))


def counted(source_BS: Tensor, label_BT: Tensor, pad: int) -> Counts:
    """The tokens of one padded batch."""
    target, source = int((label_BT != pad).sum()), int((source_BS != pad).sum())
    return Counts(target, source, label_BT.numel() + source_BS.numel())


def padded(rows: Sequence[Sequence[int]], pad: int) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[pad] * (longest - len(row))] for row in rows])
