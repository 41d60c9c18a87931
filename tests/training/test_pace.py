"""How long the rest will take, with a clock that stands still until it is moved."""

import pytest

from regard.training.pace import Pace, Plan, about
from regard.training.stop import Clock
from regard.view.terminal import digits


class Standing(Clock):
    """A clock that is moved by hand."""

    def __init__(self, now: float = 0.0) -> None:
        super().__init__()
        self.now = now

    def seconds(self) -> float:
        return self.now


def after(clock: Standing, pace: Pace, steps: range, each: float, first: float = 0.0) -> None:
    for step in steps:
        clock.now += each + (first if step == 1 else 0.0)
        pace.stepped(step)


PLAN = Plan(steps=100, validate_steps=25, guess=4.0, scoring=3.0)


def test_nothing_is_known_before_the_first_step() -> None:
    pace = Pace(PLAN, Standing())
    assert (pace.step_seconds(), pace.left(0), pace.measured, pace.ending()) == (0.0, 0.0, 0.0, 0.0)


def test_the_slow_first_step_does_not_count() -> None:
    clock = Standing()
    pace = Pace(PLAN, clock)
    after(clock, pace, range(1, 2), 2.0, first=50.0)
    assert pace.step_seconds() == 52.0  # all that is known
    assert pace.ending() == 0.0  # too little to keep time back for
    after(clock, pace, range(2, 6), 2.0)
    assert pace.step_seconds() == 2.0
    assert pace.ending() == 5 * 8.0


def test_validations_and_scoring_are_in_the_estimate() -> None:
    clock = Standing()
    pace = Pace(PLAN, clock)
    after(clock, pace, range(1, 6), 2.0)
    assert pace.left(5) == 95 * 2.0 + (4 + 3) * 8.0  # a validation is taken for four steps
    pace.validated(25, 20.0)
    assert pace.left(25) == 75 * 2.0 + (3 + 3) * 20.0
    pace.validated(100, 20.0)
    assert pace.left(100) == 3 * 20.0
    pace.validated(100, 20.0)  # the mean, at the same step
    assert pace.left(100) == 3 * 20.0


def test_time_that_was_not_spent_on_steps_is_left_out() -> None:
    clock = Standing()
    pace = Pace(PLAN, clock)
    after(clock, pace, range(1, 4), 2.0)
    clock.now += 1000.0
    pace.pause(1000.0)
    after(clock, pace, range(4, 6), 2.0)
    assert pace.step_seconds() == 2.0


def test_a_busy_hour_is_forgotten() -> None:
    clock = Standing()
    pace = Pace(Plan(1000, 100), clock)
    after(clock, pace, range(1, 50), 9.0)
    after(clock, pace, range(50, 61), 2.0)
    assert pace.step_seconds() == 2.0


def test_first_steps_are_judged_by_their_median() -> None:
    clock = Standing()
    pace = Pace(Plan(1000, 100), clock)
    for step, seconds in enumerate([50.0, 9.0, 1.0, 1.0, 1.0, 20.0, 1.0], 1):
        clock.now += seconds
        pace.stepped(step, first=True)
    assert (pace.step_seconds(), pace.measured) == (1.0, 33.0)
    pace.stepped(7)  # told once more, as a mark among others
    assert pace.step_seconds() == 1.0
    after(clock, pace, range(8, 10), 3.0)
    assert pace.step_seconds() == 3.0


@pytest.mark.parametrize(("step", "validations"), [(1, 4), (24, 4), (25, 4), (26, 3), (75, 2), (100, 1)])
def test_a_resumed_run_knows_which_validations_are_left(step: int, validations: int) -> None:
    """A checkpoint stands before the validation of its step."""
    pace = Pace(PLAN, Standing(2.0 * step), step, validation=10.0)
    assert pace.left(step) == (100 - step) * 2.0 + (validations + 3) * 10.0


def test_a_resumed_run_is_timed_anew() -> None:
    clock = Standing(500.0)
    pace = Pace(PLAN, clock, 40, validation=10.0)
    after(clock, pace, range(41, 42), 9.0)
    assert pace.step_seconds() == 12.5  # 40 steps in 500 seconds tell more than a slow first one
    after(clock, pace, range(42, 44), 1.0)
    assert pace.left(43) == 57 * 1.0 + (3 + 3) * 10.0


def test_validations_and_what_follows_the_last_one_take_their_share_of_the_minutes() -> None:
    clock = Standing()
    pace = Pace(Plan(100_000, 20, minutes=2.0, guess=5.0, scoring=1.0), clock)
    after(clock, pace, range(1, 21), 1.0)
    pace.validated(20, 10.0)
    assert pace.affordable(20, reserve=10.0) == 20 + int(90 / 1.5)


def test_when_the_end_is_planned_anew() -> None:
    pace = Pace(Plan(1000, 200, minutes=1.0), Standing())
    assert [step for step in range(401) if pace.is_due(step)] == [10, 20, 30, 40, 50, 200, 400]
    assert not any(Pace(Plan(1000, 200), Standing()).is_due(step) for step in range(401))


def test_the_minutes_end_it_sooner() -> None:
    clock = Standing()
    pace = Pace(Plan(1000, 1000, minutes=2.0), clock)
    after(clock, pace, range(1, 21), 1.0)
    assert (pace.needed(20), pace.left(20)) == (980.0, 100.0)
    assert pace.affordable(20) == 120
    assert pace.affordable(20, reserve=30.0) == 90
    clock.now = 500.0
    assert pace.left(20) == 0.0


@pytest.mark.parametrize(
    ("seconds", "said", "shown"),
    [
        (3, "a few seconds", "0:03"),
        (44, "about 45 seconds", "0:44"),
        (720, "about 12 minutes", "12:00"),
        (2 * 3600 + 1700, "about 2.5 hours", "2:28:20"),
        (50 * 3600, "about 2 days", "50:00:00"),
    ],
)
def test_times_in_words_and_digits(seconds: float, said: str, shown: str) -> None:
    assert (about(seconds), digits(seconds)) == (said, shown)
