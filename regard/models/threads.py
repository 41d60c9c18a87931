"""A model in, the number of threads that suit it out.

Two threads make a small recurrent model a sixth faster on an idle machine, and more than twice as slow as soon as
anything else wants one of the cores, because they wait for each other after each of thousands of small operations
(docs/decisions.md has the figures). So a small model computes on one thread, wherever it runs.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from regard.models.model import Model

SMALL = 2_000_000  # parameters


@contextmanager
def threads(model: Model, wanted: int | None = None) -> Iterator[int]:
    """While this is open torch uses `wanted` threads, or as many as suit the model; afterwards as many as before."""
    before = torch.get_num_threads()
    count = wanted or (1 if model.size < SMALL else before)
    torch.set_num_threads(count)
    try:
        yield count
    finally:
        torch.set_num_threads(before)
