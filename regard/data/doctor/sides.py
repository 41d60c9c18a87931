"""Pairs in, those that look wrong out: copied, swapped, on the wrong side, or of an odd length for their other half.

Which side a text belongs to is told by its runs of two characters, counted over the whole file (naive Bayes). Where
the sides can not be told apart, or where many pairs are "wrong", nothing is said: then the data are like that.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.doctor.finding import Finding, Sight, lines_of, pair
from regard.data.doctor.grams import grams
from regard.data.ragged import Numbers
from regard.data.read import Example

FEWEST = 50  # pairs from which anything usual can be told
SIZE, BITS = 2, 18
PORTION = 10_000  # texts at a time, so that memory grows little with the file
KNOWN = 5  # times that a run must have been seen to speak for a side
APART = 0.97  # of the texts are found on their own side
SURE, DENSE = 8.0, 0.4  # log odds of a text that belongs elsewhere: altogether, and for each of its runs
FEW = 0.02  # of the pairs: more are no slips but the nature of the data …
LESS = 0.4  # … unless both halves say that they were swapped, up to where none knows which are the wrong ones
OFTEN = 0.2  # of the pairs, copied: a task whose outputs repeat inputs
FACTOR, DEVIATIONS, CHARACTERS = 3.0, 6.0, 10  # by how much a length must be out of proportion

Floats = NDArray[np.float64]


def find_sides(sight: Sight) -> Iterator[Finding | None]:
    """Everything about how the two halves of pairs fit."""
    if not sight.writes:
        return
    yield copied(sight)
    if len(sight) >= FEWEST:
        yield from misplaced(sight)
        yield lengths(sight)


def made(kind: str, level: str, hits: Sequence[Example], sight: Sight, said: str, cure: str) -> Finding | None:
    if not hits:
        return None
    return Finding(kind, level, len(hits), len(sight), lines_of(hits), said, pair(hits[0]), cure)


def is_copy(example: Example) -> bool:
    return example.source == (example.target,)


def copied(sight: Sight) -> Finding | None:
    hits = [example for example in sight.examples if is_copy(example)]
    if len(hits) > OFTEN * len(sight):
        return made("copied", "remark", hits, sight, "with their source as target, as is usual here",
                    "judge a score against the baseline that copies")  # fmt: skip
    return made("copied", "doubt", hits, sight, "with their source as target",
                "leave out what nobody translated; names and numbers may stay")  # fmt: skip


# ── which side ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Belonging:
    """Of each text, the log odds that it is a source, altogether and for each run of characters that speaks."""

    total: Floats
    mean: Floats

    @property
    def like_source(self) -> NDArray[np.bool_]:
        return (self.total > SURE) & (self.mean > DENSE)

    @property
    def like_target(self) -> NDArray[np.bool_]:
        return (self.total < -SURE) & (self.mean < -DENSE)


def belonging(sources: Sequence[str], targets: Sequence[str]) -> tuple[Belonging, Belonging]:
    """Where the texts of both columns belong, by what is usual in either."""
    parts = [runs(texts) for texts in (sources, targets)]
    counts = [np.sum([np.bincount(ids, minlength=1 << BITS) for ids, _ in part], axis=0) for part in parts]
    shares = [(count + 0.5) / (count.sum() + 0.5 * len(count)) for count in counts]
    odds = np.where(counts[0] + counts[1] >= KNOWN, np.log(shares[0] / shares[1]), 0.0)
    made = []
    for part in parts:
        total = np.concatenate([np.add.reduceat(odds[ids], starts) for ids, starts in part])
        speaking = np.concatenate(
            [np.add.reduceat((odds[ids] != 0).astype(np.float64), starts) for ids, starts in part]
        )
        made.append(Belonging(total, total / np.maximum(speaking, 1)))
    return made[0], made[1]


def runs(texts: Sequence[str]) -> list[tuple[NDArray[np.int32], Numbers]]:
    """The runs of some texts at a time, in little room, and where each text begins among them."""
    found = (grams(texts[first : first + PORTION], SIZE, BITS) for first in range(0, len(texts), PORTION))
    return [(part.ids.astype(np.int32), part.starts) for part in found]


def misplaced(sight: Sight) -> Iterator[Finding | None]:
    """Pairs the wrong way round, and pairs with both texts of one side."""
    pairs = [("\t".join(example.source), example.target or "") for example in sight.examples]
    own = np.array([is_copy(example) for example in sight.examples])
    source, target = belonging(*zip(*pairs, strict=True))
    swapped = source.like_target & target.like_source & ~own
    if swapped.any():  # what is usual is counted again without them
        pairs = [pair[::-1] if turned else pair for pair, turned in zip(pairs, swapped.tolist(), strict=True)]
        source, target = belonging(*zip(*pairs, strict=True))
    if min((source.total > 0).mean(), (target.total < 0).mean()) < APART:
        return
    foreign_target = target.like_source & ~swapped & ~own
    foreign_source = source.like_target & ~swapped & ~own
    for kind, found, said, cure in (
        ("swapped", swapped, "with source and target in each other's place, by their letters",
         "swap the two columns of these lines"),
        ("target on the wrong side", foreign_target, "with a target that is written like a source",
         "translate or leave out what was not"),
        ("source on the wrong side", foreign_source, "with a source that is written like a target",
         "leave it out, or write its source"),
    ):  # fmt: skip
        hits = [sight.examples[number] for number in np.flatnonzero(found).tolist()]
        if len(hits) <= (LESS if kind == "swapped" else FEW) * len(sight):
            yield made(kind, "trouble" if kind == "swapped" else "doubt", hits, sight, said, cure)


# ── lengths ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def lengths(sight: Sight) -> Finding | None:
    """Targets that are far too long or short for their source, by what is usual in this file."""
    sizes = np.array([[sum(map(len, each.source)), len(each.target or "")] for each in sight.examples], np.float64)
    ratio = np.log((sizes[:, 1] + 1) / (sizes[:, 0] + 1))
    usual = float(np.median(ratio))
    spread = 1.4826 * float(np.median(np.abs(ratio - usual))) + 0.05  # as the standard deviation of a bell would be
    excess = np.abs(sizes[:, 1] - sizes[:, 0] * math.exp(usual))
    odd = (np.abs(ratio - usual) > max(math.log(FACTOR), DEVIATIONS * spread)) & (excess > CHARACTERS)
    hits = [sight.examples[number] for number in np.argsort(-np.abs(ratio - usual)).tolist() if odd[number]]
    if len(hits) > FEW * len(sight):
        return None
    return made("odd length", "doubt", hits, sight, f"with a target out of proportion (usual: "
                f"{math.exp(usual):.2g} characters for each of the source)",
                "look whether a part is missing, or lines have slipped")  # fmt: skip
