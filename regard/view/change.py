"""What if: a source, heads and a beginning in, the same with some of it erased, switched off or given out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from regard.data.tokens import CLASS, END, MASK, SEPARATOR, START, UNKNOWN
from regard.data.vocabulary import Vocabulary
from regard.errors import UsageError
from regard.layers.attention import Attention
from regard.layers.pointer import Pointer
from regard.layers.tap import short
from regard.models.model import Model
from regard.tasks.task import Item, Token

SIGNS = (END, CLASS, SEPARATOR, START, MASK)  # of which no text is lost
STAYING = ("tag", "fill", "extract")  # tasks that answer at places of the source: an erased token leaves its place


@dataclass(frozen=True)
class Change:
    """What is intervened on: source tokens by number, heads by the name of their map, tokens the output begins with."""

    erase: tuple[int, ...] = ()
    off: tuple[tuple[str, int], ...] = ()
    begin: tuple[int, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {"erase": list(self.erase), "off": [list(pair) for pair in self.off], "begin": list(self.begin)}

    def check(self, model: Model, source: Sequence[Token]) -> None:
        """Everything that is named is there."""
        heads = head_counts(model)
        for place in self.erase:
            if not 0 <= place < len(source):
                raise UsageError(f"erase {place}: expected the number of a source token, from 0 to {len(source) - 1}")
            if source[place].id in SIGNS:
                raise UsageError(f"erase {place}: {source[place].text} is a sign of the model and not of the text")
        for name, head in self.off:
            if name not in heads:
                raise UsageError(f"off {name}: no such attention; there are {', '.join(heads) or 'none'}")
            if not 0 <= head < heads[name]:
                raise UsageError(f"off {name} {head}: expected the number of a head, from 0 to {heads[name] - 1}")


def head_counts(model: Model) -> dict[str, int]:
    """How many heads each attention has, by the name of its map."""
    return {short(name): module.heads for name, module in model.named_modules()
            if isinstance(module, Attention | Pointer)}  # fmt: skip


def erased(item: Item, places: Sequence[int], vocabulary: Vocabulary, task: str, grid: tuple[int, int]) -> Item:
    """The item without some of its source tokens.

    Where answers stand at tokens of the source, the unknown token takes the place of an erased one; of a picture, the
    mean colour takes the place of its pixels; else what is left closes up.
    """
    if not places:
        return item
    if item.picture is not None:
        return replace(item, picture=greyed(item.picture, places, grid))
    heads = [*vocabulary.source.heads(item.source), len(item.source)]
    kept: list[int] = []
    for place, (start, end) in enumerate(pairwise(heads)):
        gone = place in places
        kept += ((UNKNOWN,) if task in STAYING else ()) if gone else item.source[start:end]
    return replace(item, source=tuple(kept), passage=None if task not in STAYING else item.passage)


def greyed(picture: Any, places: Sequence[int], grid: tuple[int, int]) -> Any:
    """A picture with some fields of its grid in its mean colour."""
    found = picture.copy()
    mean = picture.mean((1, 2), keepdims=True)
    edges = [
        np.linspace(0, size, count + 1).round().astype(int) for size, count in zip(picture.shape[1:], grid, strict=True)
    ]
    for place in places:
        row, column = divmod(place, grid[1])
        found[:, edges[0][row] : edges[0][row + 1], edges[1][column] : edges[1][column + 1]] = mean
    return found
