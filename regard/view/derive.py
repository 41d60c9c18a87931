"""A record, or a few more passes through a model, in; what attention alone does not tell out.

Attention is what a model looked at, not why it answered (Jain & Wallace 2019, https://arxiv.org/abs/1902.10186). So
beside it stand what is lost when a token is erased, gradient × input, and how far they agree.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.layers.tap import Off
from regard.models.model import Model
from regard.tasks.task import Answer, Item, Task
from regard.view.change import SIGNS, erased, head_counts
from regard.view.record import POINTER, Derived, Map, Record

Numbers = NDArray[np.floating]

BATCH = 64  # erasures that are tried side by side
FAINT = 0.05  # of the most in a row, below which nothing is noticed


def derive(record: Record, task: Task, model: Model, item: Item, answer: Answer) -> Derived:
    """All of it; takes as many passes as there are source tokens, target tokens and heads."""
    with torch.inference_mode():
        before = given(task, model, [item], answer)[0]
    lost = erasure(record, task, model, item, answer, before)
    moved = gradient(record, task, model, item, answer)
    looked = record.alignment()
    return Derived(
        lost,
        moved,
        rollout(record),
        {name: entropy(map) for name, map in record.maps.items()},
        importance(record, task, model, item, answer, before),
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
def erasure(record: Record, task: Task, model: Model, item: Item, answer: Answer, before: Map) -> Map:
    """Log probability that each target token loses when one source token is erased; signs are never erased."""
    found = np.zeros((len(record.target), len(record.source)), np.float32)
    places = [place for place, token in enumerate(record.source) if token.id not in SIGNS]
    if not record.target or len(places) < 2:  # of one token nothing would be left to read
        return found
    for start in range(0, len(places), BATCH):
        some = places[start : start + BATCH]
        items = [without(record, task, item, [place]) for place in some]
        found[:, some] = np.stack([before - after for after in given(task, model, items, answer)], 1)
    return found


def without(record: Record, task: Task, item: Item, places: Sequence[int]) -> Item:
    grid = (record.picture.rows, record.picture.columns) if record.picture else (1, 1)
    return erased(item, places, task.vocabulary, task.config.task, grid)


def given(task: Task, model: Model, items: Sequence[Item], answer: Answer) -> list[Map]:
    """The log probability of each token of an answer, for each of the items."""
    return [found.given_T.float().cpu().numpy() for found in task.foresee(model, items, [answer] * len(items))]


def gradient(record: Record, task: Task, model: Model, item: Item, answer: Answer) -> Map:
    """|gradient · vector| of each source token, as shares of each target token's sum."""
    found = np.zeros((len(record.target), len(record.source)), np.float32)
    if not record.target:
        return found
    vectors: list[Tensor] = []
    listener = model.source_embedding.register_forward_hook(lambda module, given, made: vectors.append(made))
    try:
        with torch.enable_grad():
            given_T = task.foresee(model, [item], [answer])[0].given_T
    finally:
        listener.remove()
    for place, each in enumerate(given_T):
        (moved,) = torch.autograd.grad(each, vectors[0], retain_graph=True)
        row = (moved * vectors[0]).sum(-1).abs()[0].detach().float().cpu().numpy()
        found[place, : len(row)] = row[: len(record.source)]
    made: Map = found / np.maximum(found.sum(-1, keepdims=True), 1e-12)
    return made


@torch.inference_mode()
def importance(
    record: Record, task: Task, model: Model, item: Item, answer: Answer, before: Map
) -> dict[str, tuple[float, ...]]:
    """For each head the mean log probability that the answer loses without it."""
    if not record.target:
        return {}
    found = {}
    for name, count in head_counts(model).items():
        lost = []
        for head in range(count):
            with Off(model, [(name, head)]):
                lost.append(float((before - given(task, model, [item], answer)[0]).mean()))
        found[name] = tuple(lost)
    return found
