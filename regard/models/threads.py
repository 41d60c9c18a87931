"""A model and the tokens that it meets at once in, the number of threads that suit them out.

Two threads make a small recurrent model a sixth faster on an idle machine, and more than twice as slow as soon as
anything else wants one of the cores, because they wait for each other after each of thousands of small operations
(docs/decisions.md has the figures). So a small model computes on one thread, wherever it runs, unless it learns from
large batches: a loop of 256 makes 1.35 to 1.58 times as many steps of 4,096 tokens on two.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from regard.models.model import Model

SMALL = 2_000_000  # parameters …
USUAL = 2048  # … that meet so many tokens


@contextmanager
def threads(model: Model, wanted: int | None = None, tokens: int = USUAL) -> Iterator[int]:
    """While this is open torch uses `wanted` threads, or as many as suit the model; afterwards as many as before."""
    before = torch.get_num_threads()
    count = wanted or (1 if model.size * max(tokens, USUAL) < SMALL * USUAL else before)
    torch.set_num_threads(count)
    try:
        yield count
    finally:
        torch.set_num_threads(before)
