"""Sources in, those to be held out: chosen by a hash, so that the data alone decide, and the doctor and the training
hold out the same ones."""

import hashlib
import heapq

from regard.errors import DataError

HELD_OUT = 0.1  # of the sources, where no validation file is given …
FEWEST, MOST = 75, 1000  # … but within these bounds, and never more than a fifth
ENOUGH = int(MOST / HELD_OUT) + 1  # different sources beyond which as many are held out, whatever their number


class Division:
    """Sources in, those to be held out: the smallest by a hash, so that the data alone decide, and not their order.

    Remembers no more than `MOST` sources with their counts, and short digests of the first `ENOUGH` different ones.
    """

    def __init__(self) -> None:
        self.smallest: list[tuple[int, tuple[str, ...]]] = []  # a heap, the largest hash (with its sign changed) first
        self.counts: dict[tuple[str, ...], int] = {}
        self.different: set[bytes] = set()
        self.examples = 0

    def add(self, source: tuple[str, ...]) -> None:
        self.examples += 1
        if source in self.counts:
            self.counts[source] += 1
            return
        if len(self.different) < ENOUGH:
            self.different.add(hashlib.blake2b("\0".join(source).encode(), digest_size=16).digest())
        entry = (-int.from_bytes(rank(source), "big"), source)
        if len(self.smallest) < MOST:
            heapq.heappush(self.smallest, entry)
        elif entry < self.smallest[0]:
            return
        else:
            del self.counts[heapq.heapreplace(self.smallest, entry)[1]]
        self.counts[source] = 1

    def held(self, path: str) -> dict[tuple[str, ...], int]:
        """The sources to hold out, and how many examples each has."""
        different = len(self.different)
        if different < 2:
            raise DataError(f"{path}: found {self.examples} example(s) with {different} distinct source, too few to "
                            "train and validate; expected at least two, or a validation file")  # fmt: skip
        wanted = min(max(int(HELD_OUT * different), FEWEST), MOST, max(1, different // 5))
        ranked, room = [source for _, source in sorted(self.smallest, reverse=True)], max(1, self.examples // 2)
        chosen: dict[tuple[str, ...], int] = {}
        for source in ranked:  # one with so many examples that hardly any would be left to learn from is passed over
            if len(chosen) < wanted and self.counts[source] <= room:
                chosen[source] = self.counts[source]
                room -= self.counts[source]
        return chosen or {(least := min(ranked, key=lambda each: self.counts[each])): self.counts[least]}


def rank(source: tuple[str, ...]) -> bytes:
    return hashlib.blake2b("\t".join(source).encode(), digest_size=8).digest()
