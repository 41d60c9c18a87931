"""A table in place of a model: sources and tokens in, logits out, with nothing learnt behind the step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from regard.data.tokens import SPECIALS, START

PASTS = 997  # rows of the table for one source; different pasts may share one, which changes nothing
TEXT = 4  # tokens beside the special ones


@dataclass(frozen=True)
class Past:
    """What was read so far as one number; `name` is no tensor, and a search must leave it alone."""

    hash_R: Tensor
    name: str = "past"


State = tuple[Tensor, tuple[Past, int]]


class Table:
    """Logits that depend on the source and on every token before; `coarse` makes many of them equal."""

    def __init__(self, sources: int, seed: int, coarse: bool = False) -> None:
        draw = torch.Generator().manual_seed(seed)
        logits = 2.0 * torch.randn(sources, PASTS, len(SPECIALS) + TEXT, generator=draw)
        self.logits = logits.round() if coarse else logits

    def state(self, sources: Sequence[int] | None = None) -> State:
        source_R = torch.arange(len(self.logits)) if sources is None else torch.tensor(sources)
        return source_R, (Past(torch.zeros_like(source_R)), 7)

    def step(self, token_R: Tensor, state: State) -> tuple[Tensor, State]:
        source_R, (past, seven) = state
        assert (past.name, seven) == ("past", 7)
        hash_R = (past.hash_R * 37 + token_R + 1) % PASTS
        return self.logits[source_R, hash_R], (source_R, (Past(hash_R), seven))

    def logs(self, source: int, tokens: Sequence[int], first: int = START) -> list[Tensor]:
        """The log probabilities of everything that may follow each part of a text, the empty part first."""
        found, hashed = [], 0
        for token in (first, *tokens):
            hashed = (hashed * 37 + token + 1) % PASTS
            found.append(self.logits[source, hashed].double().log_softmax(-1))
        return found


@pytest.fixture(scope="session")
def make_table() -> Callable[..., Table]:
    """Tables by number of sources and seed."""
    return Table
