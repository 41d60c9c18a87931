"""At most so many, evenly spread."""

from itertools import pairwise

import pytest

from regard.data.evenly import evenly


@pytest.mark.parametrize(("count", "most"), [(0, 3), (2, 3), (3, 3), (4, 3), (7, 3), (1000, 7), (150, 100)])
def test_as_many_as_there_may_be_with_no_gap_much_wider_than_another(count: int, most: int) -> None:
    found = evenly(range(count), most)
    assert len(found) == min(count, most)
    gaps = {after - before for before, after in pairwise([*found, count])}
    assert not gaps or max(gaps) - min(gaps) <= 1
    assert found[:1] == [0][: len(found)]
