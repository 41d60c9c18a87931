"""A text that became a vector in, how much of the vector each of its words carries out: by erasing them one by one."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch

from regard.data.vocabulary import Vocabulary
from regard.layers.tap import Off
from regard.models.model import Model
from regard.tasks.embed import Embed, gathered
from regard.tasks.task import Item, Token
from regard.view.change import SIGNS, erased
from regard.view.record import Word

WORD = re.compile(r"\S+")
MOST = 500  # words that are erased; of a longer text the first


@dataclass(frozen=True)
class Without:
    """A word of a text by its place, and what is left to read without it."""

    start: int
    end: int
    item: Item


def word_by_word(vocabulary: Vocabulary, item: Item, source: Sequence[Token], text: str) -> Iterator[Without]:
    """The text without each of its words that were read, one at a time: its tokens are erased, the rest closes up.

    A text that is one word, or is written without spaces, goes by its tokens; of one token nothing would be left.
    """
    real = [place for place, token in enumerate(source) if token.id not in SIGNS]
    spans = [found.span() for found in WORD.finditer(text)]
    words = [[place for place in real if start <= source[place].start < end] for start, end in spans]
    words = [places for places in words if places]
    if len(words) < 2:
        words = [[place] for place in real if source[place].start < source[place].end]
    if len(words) < 2:
        return
    for places in words:
        left = erased(item, places, vocabulary, "embed", (1, 1))
        yield Without(source[places[0]].start, source[places[-1]].end, left)


@torch.inference_mode()
def carried(
    task: Embed, model: Model, item: Item, source: Sequence[Token], text: str, off: Sequence[tuple[str, int]] = ()
) -> tuple[Word, ...]:
    """For each word 1 − the cosine of the text's vector with that of the text without the word."""
    words = list(islice(word_by_word(task.vocabulary, item, source, text), MOST))
    if not words:
        return ()
    with Off(model, off):
        whole, *without = gathered(task.vectors, model, [item.source, *(word.item.source for word in words)])
    return tuple(Word(word.start, word.end, 1.0 - float(np.dot(whole, each)))
                 for word, each in zip(words, without, strict=True))  # fmt: skip
