"""Vectors of queries and of a corpus in, the nearest and how well the right ones are found out; no torch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.score.intervals import Bootstrap, rate_interval, resample, wilson_interval
from regard.score.metrics import Metric

Vectors = NDArray[np.float32]
Ranks = NDArray[np.int64]

RECALLS = (1, 5, 10)
RETRIEVAL = ("mrr", *(f"recall_at_{most}" for most in RECALLS))
PORTION = 1024  # queries that are compared with the whole corpus at a time


@dataclass(frozen=True)
class Hit:
    """One text of a corpus, by its number from 0, and the cosine with what was asked."""

    number: int
    text: str
    score: float


def nearest(queries: Vectors, corpus: Vectors, count: int) -> tuple[Ranks, Vectors]:
    """The numbers of the nearest vectors of the corpus for each query, best first, and their cosines.

    Vectors are of length 1, so their product is the cosine. Among equals the first of the corpus comes first.
    """
    count = min(count, len(corpus))
    numbers, cosines = np.empty((len(queries), count), np.int64), np.empty((len(queries), count), np.float32)
    for start in range(0, len(queries), PORTION):
        found = queries[start : start + PORTION] @ corpus.T
        order = np.argsort(-found, axis=1, kind="stable")[:, :count]
        numbers[start : start + PORTION] = order
        cosines[start : start + PORTION] = np.take_along_axis(found, order, 1)
    return numbers, cosines


def ranks(queries: Vectors, corpus: Vectors, right: Sequence[int]) -> Ranks:
    """The place, from 1, of the right vector of the corpus for each query; equals stand before it.

    So a model that gives all texts one vector finds nothing.
    """
    found = np.empty(len(queries), np.int64)
    for start in range(0, len(queries), PORTION):
        cosines = queries[start : start + PORTION] @ corpus.T
        own = np.asarray(right[start : start + PORTION], np.int64)
        found[start : start + PORTION] = (cosines >= np.take_along_axis(cosines, own[:, None], 1)).sum(1)
    return found


def retrieved(found: Ranks, corpus: int, samples: int = 1000, seed: int = 0) -> dict[str, Metric]:
    """Mean reciprocal rank with the bootstrap's interval, and recall at some depths with Wilson's, in percent."""
    among = f"among:{corpus}"
    metrics = {"mrr": mean_reciprocal(found, Bootstrap(seed, samples), among)}
    for most in RECALLS:
        right = int((found <= most).sum())
        low, high = wilson_interval(right, max(len(found), 1))
        value, name = 100.0 * right / max(len(found), 1), f"recall_at_{most}"
        metrics[name] = Metric(name, value, low, high, True, f"{among}|interval:wilson")
    return metrics


def mean_reciprocal(found: Ranks, bootstrap: Bootstrap, among: str) -> Metric:
    """MRR = mean of 1 / rank (Voorhees 1999)."""
    rows = 100.0 / found[:, None].astype(np.float64)
    low, high, signature = None, None, among
    if bootstrap.samples > 0 and len(rows) > 1:
        low, high = rate_interval(resample(rows, bootstrap)[:, 0] / len(rows), len(rows))
        signature += f"|bs:{bootstrap.samples}|seed:{bootstrap.seed}"
    return Metric("mrr", float(rows.mean()) if len(rows) else 0.0, low, high, True, signature)
