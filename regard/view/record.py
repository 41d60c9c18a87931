"""A model and one source in, one frozen record of what it wrote and where it looked out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from regard.data.tokens import END
from regard.layers.tap import Tap
from regard.models.model import Model
from regard.tasks.task import Answer, Item
from regard.tasks.transduce import Transduce

Map = NDArray[np.float32]  # heads × queries × keys


@dataclass(frozen=True)
class Token:
    """A token as it is shown, and where it stands in its text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Record:
    """One source, what was written, how sure each token was, and every attention map by its name."""

    text: str
    source: tuple[Token, ...]
    output: str
    target: tuple[Token, ...]
    probabilities: tuple[float, ...]  # one for each target token, the end included
    maps: dict[str, Map]

    def alignment(self) -> Map | None:
        """Target × source, the mean over heads and layers of what looked at the source; none = nothing did."""
        crossing = [map.mean(0) for name, map in self.maps.items() if name.endswith("cross")]
        if not crossing:
            crossing = [map.mean(0)[len(self.source) :, : len(self.source)]
                        for name, map in self.maps.items() if name.startswith("decoder")]  # fmt: skip
        if not crossing:
            return None
        mean: Map = np.mean(crossing, 0)
        return mean


@torch.inference_mode()
def record(task: Transduce, model: Model, item: Item, source: Sequence[Token], text: str, answer: Answer) -> Record:
    """Goes through `answer` once more, token by token given, while a tap listens: the same numbers, now heard."""
    batch = task.batch([Item(item.source, answer.tokens, item.picture)], [0], 0).to(model.device)
    with Tap(model) as tap:
        log_BTV = model.output(model(batch).states_BTD).float().log_softmax(-1)
    chosen = log_BTV.gather(-1, batch.label_BT[..., None]).exp().flatten().tolist()
    maps = {name: whole(calls) for name, calls in tap.maps.items()}
    return Record(text, tuple(source), answer.text, spelled(task, answer.tokens), tuple(chosen), maps)


def whole(calls: Sequence[Tensor]) -> Map:
    """The calls of one attention below each other; a call that saw fewer keys saw nothing of the later ones."""
    longest = max(call.shape[-1] for call in calls)
    rows = [F.pad(call[0], (0, longest - call.shape[-1])) for call in calls]
    joined: Map = torch.cat(rows, 1).float().cpu().numpy()
    return joined


def spelled(task: Transduce, ids: Sequence[int]) -> tuple[Token, ...]:
    """Target tokens with their places in the output text."""
    decode = task.vocabulary.target.decode
    ends = [len(decode(ids[: i + 1])) for i in range(len(ids))]
    starts = [0, *ends][: len(ids)]
    shown = [Token(task.vocabulary.target.token(id), a, b) for id, a, b in zip(ids, starts, ends, strict=True)]
    last = ends[-1] if ends else 0
    return (*shown, Token(task.vocabulary.target.token(END), last, last))
