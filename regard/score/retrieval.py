"""Vectors of queries and of a corpus in, the nearest and how well the right ones are found out; no torch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.score.intervals import Bootstrap, FloatArray
from regard.score.metrics import Metric, describe, measured, ratio
from regard.score.tallies import Statistics

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
    bootstrap = Bootstrap(seed, samples)
    return measured(rank_tallies(found, corpus, bootstrap), bootstrap)


def rank_tallies(found: Ranks, corpus: int, bootstrap: Bootstrap) -> dict[str, Statistics]:
    """Of each query: 1 / rank, whose mean is MRR (Voorhees 1999), and whether the right text is among the first."""
    drawn = describe(bootstrap) if len(found) > 1 else ""
    tallies = {"mrr": Statistics(counted(1.0 / found.astype(np.float64)), ratio, f"among:{corpus}{drawn}")}
    for most in RECALLS:
        signature = f"among:{corpus}|interval:wilson"
        tallies[f"recall_at_{most}"] = Statistics(counted((found <= most).astype(np.float64)), ratio, signature)
    return tallies


def counted(values: FloatArray) -> FloatArray:
    """One for each query, and the one query that it is."""
    return np.stack([values, np.ones(len(values))], 1)
