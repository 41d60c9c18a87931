"""A record, or a few more passes through a model, in; what attention alone does not tell out.

Attention is what a model looked at, not why it answered (Jain & Wallace 2019, https://arxiv.org/abs/1902.10186). So
beside it stand what is lost when a token is erased, gradient × input, and how far they agree.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.layers.tap import without
from regard.models.model import Model
from regard.stop import go_on
from regard.tasks.task import Answer, Item, Task
from regard.view.change import SIGNS, erased, head_counts
from regard.view.record import POINTER, Derived, Map, Record

Numbers = NDArray[np.floating]

BATCH = 64  # erasures that are tried side by side
FAINT = 0.05  # of the most in a row, below which nothing is noticed


@dataclass(frozen=True)
class Passes:
    """What goes through a model again and again: an answer, given, while the heads that were off stay off."""

    task: Task
    model: Model
    item: Item
    answer: Answer
    off: tuple[tuple[str, int], ...] = ()

    def given(self, items: Sequence[Item]) -> list[Tensor]:
        """The log probability of each token of the answer, for each of the items."""
        with without(self.model, self.off):
            return [found.given_T for found in self.task.foresee(self.model, items, [self.answer] * len(items))]


def derive(record: Record, task: Task, model: Model, item: Item) -> Derived:
    """All of it; takes as many passes as there are source tokens, target tokens and heads.

    It is about the answer of the record, and about the model as it gave it: with the same heads off.
    """
    passes = Passes(task, model, item, record.answer, () if record.change is None else record.change.off)
    with torch.inference_mode():
        before = numbers(passes.given([item])[0])
    lost = erasure(record, passes, before)
    moved = gradient(record, passes)
    looked = record.alignment()
    return Derived(
        lost,
        moved,
        rollout(record),
        {name: entropy(map) for name, map in record.maps.items()},
        importance(record, passes, before),
        {"erasure": agreement(record, looked, lost, lost), "gradient": agreement(record, looked, moved, lost)},
    )


# ── of the record alone ──────────────────────────────────────────────────────────────────────────────────────────────


def entropy(map: Map) -> tuple[float, ...]:
    """Bits of each head, the mean over its queries: 0 = one key, log₂ of their number = all alike."""
    bits = -(map * np.log2(np.where(map > 0, map, 1.0))).sum(-1)
    return tuple(bits.mean(-1).tolist()) if map.shape[1] else (0.0,) * len(map)


def rollout(record: Record) -> Map | None:
    """Attention through all layers: half of each position is itself, half is what it looked at, layer by layer.

    Abnar & Zuidema (2020), https://arxiv.org/abs/2005.00928; the decoder's layers look at what the encoder's became.
    """
    within = [name for name in record.maps if record.axes(name) in (("source", "source"), ("row", "row"))]
    if not within or not record.target:
        return None
    size = len(record.row if record.kind == "row" else record.source)
    read = through([record.maps[name].mean(0) for name in within], np.eye(size, dtype=np.float32))
    if record.kind != "pair":
        return shares(record.maps["head"].mean(0) @ read if "head" in record.maps else record.aligned(within[0], read))
    count = len(record.target)
    written = np.hstack([np.eye(count, dtype=np.float32), np.zeros((count, size), np.float32)])
    source = np.hstack([np.zeros((size, count), np.float32), read])
    for name, map in record.maps.items():
        if record.axes(name)[0] == "target" and name != POINTER:  # which adds to no state
            below = source if record.axes(name)[1] == "source" else written
            written = half(written, map.mean(0) @ below)
    return shares(written[:, count:])


def through(maps: Sequence[Map], start: Map) -> Map:
    for map in maps:
        start = half(start, map @ start)
    return start


def half(a: Map, b: Map) -> Map:
    return ((a + b) / np.float32(2)).astype(np.float32)


def shares(table: Map | None) -> Map | None:
    """Rows that sum to 1."""
    return None if table is None else table / np.maximum(table.sum(-1, keepdims=True), 1e-12)


def agreement(record: Record, looked: Map | None, other: Map, worth: Map) -> float | None:
    """How alike two tables order the source tokens: Spearman's rank correlation, the mean over target tokens.

    What is far below the most of its row counts as nothing, or the order of what hardly matters would decide; and a
    target token counts by what it loses with its source, for one that loses nothing goes by none of it.
    """
    real = [place for place, token in enumerate(record.source) if token.id not in SIGNS]
    if looked is None or len(real) < 3:
        return None
    found = [(spearman(noticeable(a[real]), noticeable(b[real])), float(lost[real].clip(0).max()))
             for a, b, lost in zip(looked, other, worth, strict=True)]  # fmt: skip
    total = sum(weight for rank, weight in found if rank is not None)
    return sum(rank * weight for rank, weight in found if rank is not None) / total if total > 0 else None


def noticeable(row: Map) -> Map:
    """The row with all that is far below its most at zero."""
    return np.where(row < FAINT * row.max(), np.float32(0), row)


def spearman(a: Numbers, b: Numbers) -> float | None:
    """The correlation of two rankings, equal values sharing their mean rank; none = one of them ranks nothing."""
    a, b = ranks(a), ranks(b)
    spread = float(a.std() * b.std())
    return float(((a - a.mean()) * (b - b.mean())).mean() / spread) if spread > 0 else None


def ranks(values: Numbers) -> Numbers:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    found: Numbers = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return found


# ── by more passes ───────────────────────────────────────────────────────────────────────────────────────────────────


@torch.inference_mode()
def erasure(record: Record, passes: Passes, before: Map) -> Map:
    """Log probability that each target token loses when one source token is erased; signs are never erased."""
    found = np.zeros((len(record.target), len(record.source)), np.float32)
    places = [place for place, token in enumerate(record.source) if token.id not in SIGNS]
    if not record.target or len(places) < 2:  # of one token nothing would be left to read
        return found
    for start in range(0, len(places), BATCH):
        go_on()
        some = places[start : start + BATCH]
        items = [left(record, passes, place) for place in some]
        found[:, some] = np.stack([before - numbers(after) for after in passes.given(items)], 1)
    return found


def left(record: Record, passes: Passes, place: int) -> Item:
    """What is left to read when one source token is erased."""
    grid = (record.picture.rows, record.picture.columns) if record.picture else (1, 1)
    return erased(passes.item, [place], passes.task.vocabulary, passes.task.config.task, grid)


def numbers(given_T: Tensor) -> Map:
    made: Map = given_T.detach().float().cpu().numpy()
    return made


def gradient(record: Record, passes: Passes) -> Map:
    """|gradient · vector| of each source token, as shares of each target token's sum."""
    found = np.zeros((len(record.target), len(record.source)), np.float32)
    if not record.target:
        return found
    with torch.enable_grad(), embedded(passes.model) as vectors:
        given_T = passes.given([passes.item])[0]
    for place, each in enumerate(given_T):
        go_on()
        moved = torch.autograd.grad(each, vectors, retain_graph=True, allow_unused=True, materialize_grads=True)
        row = torch.cat([(a * b).sum(-1).abs()[0] for a, b in zip(moved, vectors, strict=True)])
        found[place] = numbers(row)[: len(record.source)]
    made: Map = found / np.maximum(found.sum(-1, keepdims=True), 1e-12)
    return made


@contextmanager
def embedded(model: Model) -> Iterator[list[Tensor]]:
    """The vectors of all that a model is fed, in that order: the source comes first.

    The last token of a prompt is no exception, though it is fed as the first of what is written.
    """
    vectors: list[Tensor] = []
    modules = dict.fromkeys(each for each in (model.source_embedding, model.target_embedding) if each is not None)
    listeners = [module.register_forward_hook(lambda *heard: vectors.append(heard[-1])) for module in modules]
    try:
        yield vectors
    finally:
        for listener in listeners:
            listener.remove()


@torch.inference_mode()
def importance(record: Record, passes: Passes, before: Map) -> dict[str, tuple[float, ...]]:
    """For each head the mean log probability that the answer loses without it."""
    if not record.target:
        return {}
    found = {}
    for name, count in head_counts(passes.model).items():
        lost = []
        for head in range(count):
            go_on()
            missing = replace(passes, off=(*passes.off, (name, head)))
            lost.append(float((before - numbers(missing.given([missing.item])[0])).mean()))
        found[name] = tuple(lost)
    return found
