"""Vectors that find each other: the nearest, ranks with ties, recall and reciprocal rank."""

import numpy as np
import pytest

from regard.score.retrieval import RETRIEVAL, nearest, ranks, retrieved


def unit(rows: list[list[float]]) -> np.ndarray:
    found = np.array(rows, np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


CORPUS = unit([[1, 0], [0, 1], [1, 1], [-1, 0]])


def test_the_nearest_come_first_with_their_cosines() -> None:
    numbers, cosines = nearest(unit([[1, 0.1], [0, 1]]), CORPUS, 2)
    assert numbers.tolist() == [[0, 2], [1, 2]]
    assert cosines[1].tolist() == pytest.approx([1.0, 2**-0.5])
    assert nearest(CORPUS, CORPUS, 100)[0].shape == (4, 4)


def test_among_equals_the_first_comes_first() -> None:
    assert nearest(unit([[1, 0]]), unit([[0, 1], [1, 0], [1, 0]]), 3)[0].tolist() == [[1, 2, 0]]


def test_ranks_count_from_one_and_ties_are_no_luck() -> None:
    assert ranks(unit([[1, 0.1], [1, 0.1]]), CORPUS, [0, 3]).tolist() == [1, 4]
    same = np.ones((5, 1), np.float32)
    assert ranks(same, same, range(5)).tolist() == [5] * 5


def test_portions_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    queries, corpus = (unit(draw.normal(size=(11, 4)).tolist()) for _ in range(2))
    whole = ranks(queries, corpus, range(11)), nearest(queries, corpus, 3)[0]
    monkeypatch.setattr("regard.score.retrieval.PORTION", 4)
    assert np.array_equal(ranks(queries, corpus, range(11)), whole[0])
    assert np.array_equal(nearest(queries, corpus, 3)[0], whole[1])


def test_recall_and_reciprocal_rank_by_hand() -> None:
    found = retrieved(np.array([1, 2, 5, 20]), 30)
    assert tuple(found) == RETRIEVAL
    assert [found[name].value for name in RETRIEVAL] == pytest.approx(
        [100 * (1 + 1 / 2 + 1 / 5 + 1 / 20) / 4, 25, 75, 75]
    )
    assert all(each.low is not None and each.low <= each.value <= (each.high or 0) for each in found.values())
    assert "among:30" in found["recall_at_1"].signature
    assert retrieved(np.array([1, 2]), 2, samples=0)["mrr"].low is None


def test_a_perfect_reciprocal_rank_has_a_width() -> None:
    found = retrieved(np.ones(20, np.int64), 20)["mrr"]
    assert found.low is not None
    assert found.low < 90 < found.value == found.high
