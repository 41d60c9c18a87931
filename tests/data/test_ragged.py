"""Sequences laid flat: nothing is lost, and rows are joined side by side."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.ragged import Ragged, join, ragged, repeated

ROWS = st.lists(st.lists(st.integers(0, 9), max_size=5), min_size=1, max_size=8)


def rows(flat: Ragged) -> list[list[int]]:
    return [flat.ids[start : start + length].tolist() for start, length in zip(flat.starts, flat.lengths, strict=True)]


@settings(max_examples=50, deadline=None, database=None, derandomize=True)
@given(first=ROWS, data=st.data())
def test_joined_row_by_row(first: list[list[int]], data: st.DataObject) -> None:
    second = [data.draw(st.lists(st.integers(0, 9), max_size=3)) for _ in first]
    assert rows(ragged(first)) == first
    assert rows(join(ragged(first), repeated(7, len(first)), ragged(second))) == [
        [*a, 7, *b] for a, b in zip(first, second, strict=True)
    ]


@settings(max_examples=50, deadline=None, database=None, derandomize=True)
@given(given_rows=ROWS, data=st.data())
def test_chosen_rows_stay(given_rows: list[list[int]], data: st.DataObject) -> None:
    chosen = [data.draw(st.booleans()) for _ in given_rows]
    expected = [row for row, keep in zip(given_rows, chosen, strict=True) if keep]
    assert rows(ragged(given_rows).rows(np.array(chosen, bool))) == expected


def test_nothing_at_all() -> None:
    assert rows(ragged([])) == []
    assert rows(join(ragged([()]), ragged([()]))) == [[]]
