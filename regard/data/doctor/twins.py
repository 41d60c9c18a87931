"""Sources in, those that are nearly the same out: but for case, spaces and punctuation, or but for a few characters.

The first by a key, the second by signatures that are alike when texts are (MinHash: Broder 1997) and by comparing only
those that share a part of theirs. One pass each; the time grows with the size of the file and no faster.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.doctor.finding import Finding, Sight, around, lines_of
from regard.data.doctor.grams import BASE, grams, stirred
from regard.data.read import Example

SIZE = 4  # characters of a run
SHORTEST = 30  # characters of a text that is near another if it differs in a few; shorter ones are other words
BANDS, ROWS = 8, 3  # texts are compared that share one of 8 parts of their signatures
ALIKE = 0.8  # of the runs of both texts are common (Jaccard)
PORTION = 10_000  # texts at a time, so that memory does not grow with the file
MANY = 0.2  # of the sources: then likeness is the nature of the data

BETWEEN = re.compile(r"[\W_]+")
Source = tuple[str, ...]


@dataclass(frozen=True)
class Twin:
    """A text and an earlier one that it resembles, by their numbers."""

    number: int
    earlier: int


def key(source: Source) -> str:
    """What is left of a source without case, accents' spelling, kinds of spaces and punctuation.

    What stands between words is one space, so that 1/11 is not 11/1. A text without any letter or digit is its own key.
    """
    text = "\t".join(source)
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return BETWEEN.sub(" ", plain.casefold()).strip() or text


def near(texts: Sequence[str], known: int | None = None) -> list[Twin]:
    """Each text that is long enough, with an earlier one that it is nearly the same as, if there is one.

    With `known`, only the first so many count as earlier ones, and only the others are asked about.
    """
    long = np.array([number for number, text in enumerate(texts) if len(text) >= SHORTEST], np.int64)
    if len(long) < 2:
        return []
    signatures = np.concatenate([signed([texts[number] for number in part]) for part in
                                 np.array_split(long, -(-len(long) // PORTION))])  # fmt: skip
    is_known = np.ones(len(long), bool) if known is None else long < known
    asked = np.ones(len(long), bool) if known is None else ~is_known
    best, likeness = np.full(len(long), -1), np.zeros(len(long))
    for band in range(BANDS):
        before = bucket_mates(signatures[:, band * ROWS : (band + 1) * ROWS], is_known)
        alike = np.where(before >= 0, (signatures == signatures[before]).mean(1), 0.0)
        better = asked & (alike > likeness)
        best[better], likeness[better] = before[better], alike[better]
    # The signature is an estimate: whatever comes near is compared in full.
    likely = np.flatnonzero(likeness >= ALIKE - 0.15)
    pairs = [Twin(int(long[number]), int(long[best[number]])) for number in likely]
    return [twin for twin in pairs if jaccard(texts[twin.number], texts[twin.earlier]) >= ALIKE]


def signed(texts: Sequence[str]) -> NDArray[np.uint32]:
    """For each text the smallest of its runs' hashes, in as many orders as a signature has places."""
    found = grams(texts, SIZE)
    hashed, starts = found.ids.astype(np.uint64), found.starts
    made = np.empty((len(texts), BANDS * ROWS), np.uint32)
    factor = BASE
    with np.errstate(over="ignore"):
        for place in range(BANDS * ROWS):
            factor = factor * BASE + np.uint64(2)
            mixed = (stirred(hashed, factor) >> np.uint64(32)).astype(np.uint32)
            made[:, place] = np.minimum.reduceat(mixed, starts)
    return made


def bucket_mates(part: NDArray[np.uint32], is_known: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each row the last known one before it that is the same; -1 where there is none."""
    order = np.lexsort((np.arange(len(part)), *part.T))
    ordered = part[order]
    new = np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(1)])
    first = np.maximum.accumulate(np.where(new, np.arange(len(part)), 0))
    known = np.maximum.accumulate(np.where(is_known[order], np.arange(len(part)), -1))
    before = np.concatenate([[-1], known[:-1]])
    mates = np.full(len(part), -1, np.int64)
    mates[order] = np.where(before >= first, order[before], -1)
    return mates


def jaccard(first: str, second: str) -> float:
    one, other = ({text[at : at + SIZE] for at in range(len(text) - SIZE + 1)} for text in (first, second))
    return len(one & other) / max(len(one | other), 1)


# ── within a file ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Likeness:
    """Different sources of a file, and those among them that have an earlier twin."""

    sources: tuple[Example, ...]  # the first example of each
    same: tuple[Twin, ...]  # but for case, spaces and punctuation
    near: tuple[Twin, ...]  # but for a few characters


def likeness(sight: Sight) -> Likeness:
    first: dict[Source, Example] = {}
    for example in sight.examples:
        first.setdefault(example.source, example)
    sources = tuple(first.values())
    keys = [key(example.source) for example in sources]
    seen: dict[str, int] = {}
    same = [Twin(number, seen[text]) for number, text in enumerate(keys) if seen.setdefault(text, number) != number]
    repeated = {twin.number for twin in same}
    fresh = [number for number in range(len(sources)) if number not in repeated]
    close = [Twin(fresh[twin.number], fresh[twin.earlier]) for twin in near([keys[number] for number in fresh])]
    return Likeness(sources, tuple(same), tuple(close))


def find_twins(found: Likeness) -> Iterable[Finding]:
    """Sources that are nearly the same as an earlier one."""
    total = len(found.sources)
    if found.same:
        torn = sum(found.sources[twin.number].target != found.sources[twin.earlier].target for twin in found.same)
        told = f"; {torn:,} with another target" if torn else ""
        yield finding("alike but for case or punctuation", found.same, found.sources,
                      f"sources equal to an earlier one but for that{told}",
                      "write them one way if that means nothing; held-out twins flatter the score")  # fmt: skip
    if found.near and len(found.near) > MANY * total:
        yield finding("alike by nature", found.near, found.sources,
                      "sources a few characters away from an earlier one",
                      "a random split only asks for what lies between; hold out whole kinds (longer ones, new "
                      "combinations) in a file of their own to measure more", "remark")  # fmt: skip
    elif found.near:
        yield finding("near duplicates", found.near, found.sources,
                      "sources a few characters away from an earlier one",
                      "keep such groups together in a validation file of your own: held-out twins flatter")  # fmt: skip


def finding(
    kind: str, twins: Sequence[Twin], sources: Sequence[Example], said: str, cure: str, level: str = "doubt"
) -> Finding:
    rarely = "remark" if len(twins) < 0.01 * len(sources) else level
    one, other = sources[twins[0].earlier], sources[twins[0].number]
    first, second = (" ⇥ ".join(example.source) for example in (one, other))
    at = next((place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), len(first))
    example = f"{around(second, at)} beside {around(first, at)} (line {one.line:,})"
    return Finding(kind, rarely, len(twins), len(sources), lines_of(sources[twin.number] for twin in twins), said,
                   example, cure)  # fmt: skip


# ── between two files ────────────────────────────────────────────────────────────────────────────────────────────────


def near_overlap(here: Sight, there: Sight) -> list[tuple[Example, Example]]:
    """Examples of a second file whose source is not in the first, but nearly; each with its twin."""
    known = {example.source: example for example in here.examples}
    keyed = {key(source): example for source, example in known.items()}
    new = [example for example in there.examples if example.source not in known]
    same = [(example, keyed[text]) for example in new if (text := key(example.source)) in keyed]
    rest = [example for example in new if key(example.source) not in keyed]
    firsts, texts = list(keyed.values()), list(keyed)
    close = near([*texts, *(key(example.source) for example in rest)], len(texts))
    return same + [(rest[twin.number - len(texts)], firsts[twin.earlier]) for twin in close]
