"""How the minutes of a search are spent."""

import pytest

from regard.tune.budget import FEWEST, LONGEST, MOST, SHORT, budget


@pytest.mark.parametrize(("minutes", "trials", "each"), [(30, 10, 1.5), (10, 6, 0.833), (4, 6, 0.333), (120, 12, 5.0)])
def test_about_half_goes_to_trials(minutes: float, trials: int, each: float) -> None:
    found = budget(minutes)
    assert (found.trials, found.each) == (trials, each)
    assert found.last >= 0.49 * minutes


@pytest.mark.parametrize("minutes", [0.05, 0.5, 1, 2, 3, 4, 7, 15, 30, 45, 60, 240, 1000])
def test_trials_are_neither_too_short_nor_too_long_where_there_is_time(minutes: float) -> None:
    found = budget(minutes)
    assert found.trials * found.each + found.last == pytest.approx(minutes, abs=0.02)
    assert found.each <= LONGEST
    assert 2 <= found.trials <= MOST
    if minutes >= 4:
        assert found.trials >= FEWEST
        assert not found.is_short
    assert found.is_short is (found.each < SHORT or minutes < 3.96)


def test_no_trial_begins_that_would_take_the_time_of_the_final_run() -> None:
    assert budget(10).allows(4 * 60, 60)
    assert not budget(10).allows(5.5 * 60, 60)
