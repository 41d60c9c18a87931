"""A sequence in, at most so many of it out, evenly spread: a file may be sorted, its beginning like nothing else."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def evenly(many: Sequence[T], most: int) -> list[T]:
    """All of them, in order, where they are no more than `most`."""
    if len(many) <= most:
        return list(many)
    return [many[len(many) * place // most] for place in range(most)]
