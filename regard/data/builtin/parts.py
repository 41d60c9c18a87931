"""A source in, the part it belongs to out; and a way to draw different rows that all belong to one part.

The part is a hash of the source alone. Neither seed nor count comes into it, so a training set made today and a test
set made tomorrow with another seed share nothing.
"""

import random
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from hashlib import blake2b
from typing import TypeVar

from regard.errors import UsageError

PARTS = ("train", "valid", "test")
SHARES = ("train",) * 8 + ("valid", "test")  # out of ten sources
PATIENCE = 100_000  # draws in a row that bring nothing new: then there is nothing new

Drawn = TypeVar("Drawn")


def number(*words: str) -> int:
    """The same 64 bits for the same words, on every machine and in every process."""
    return int.from_bytes(blake2b("\x1f".join(words).encode(), digest_size=8).digest(), "big")


def part_of(task: str, source: str) -> str:
    """The only part in which this source may appear."""
    return SHARES[number("part", task, source) % len(SHARES)]


def generator(*words: str) -> random.Random:
    """A generator of its own for these words; Python's own, because its stream is the same in every version."""
    return random.Random(number("draw", *words))


def distinct(
    draw: Callable[[], Drawn], source: Callable[[Drawn], str], task: str, part: str, count: int
) -> list[Drawn]:
    """`count` draws that belong to the part, no two with the same source, in the order in which they came."""
    found: dict[str, Drawn] = {}
    misses = 0
    while len(found) < count:
        drawn = draw()
        key = source(drawn)
        if key not in found and part_of(task, key) == part:
            found[key] = drawn
            misses = 0
        elif (misses := misses + 1) > PATIENCE:
            raise too_few(task, part, count, len(found))
    return list(found.values())


def too_few(task: str, part: str, count: int, there: int) -> UsageError:
    """The error for a count that the part can not give."""
    return UsageError(f"{task}: asked for {count} rows of the {part} part, it has {there}; ask for at most {there}")


def nearest(name: str, names: Iterable[str]) -> str:
    """` (did you mean x?)` when some known name is close, else nothing."""
    close = get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f" (did you mean {close[0]}?)" if close else ""
