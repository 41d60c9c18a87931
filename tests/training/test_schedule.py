"""The learning rate and the share of forced tokens at given steps."""

import pytest

from regard.config import Train
from regard.training.schedule import forcing, learning_rate


@pytest.mark.parametrize("schedule", ["constant", "cosine", "inverse-sqrt"])
def test_warm_up_is_a_line_to_the_peak(schedule: str) -> None:
    t = Train.model_validate({"learning_rate": 0.4, "warmup": 4, "steps": 100, "schedule": schedule})
    assert [learning_rate(t, step) for step in (1, 2, 3, 4)] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert max(learning_rate(t, step) for step in range(1, 101)) == pytest.approx(0.4)


def test_cosine_falls_to_nothing() -> None:
    t = Train(learning_rate=2.0, warmup=10, steps=110, schedule="cosine")
    assert learning_rate(t, 61) == pytest.approx(1.0)
    assert 0.0 < learning_rate(t, 110) < 0.001  # the last step still counts
    assert learning_rate(t, 36) == pytest.approx(1 + 2**-0.5)


def test_inverse_square_root() -> None:
    t = Train(learning_rate=1.0, warmup=100, steps=10_000, schedule="inverse-sqrt")
    assert learning_rate(t, 400) == pytest.approx(0.5)
    assert learning_rate(t, 10_000) == pytest.approx(0.1)


@pytest.mark.parametrize("schedule", ["constant", "cosine", "inverse-sqrt"])
def test_without_warm_up_the_first_step_has_the_full_rate(schedule: str) -> None:
    t = Train.model_validate({"learning_rate": 1.0, "warmup": 0, "steps": 10_000, "schedule": schedule})
    assert learning_rate(t, 1) == pytest.approx(1.0, rel=1e-6)
    assert all(learning_rate(t, step) >= learning_rate(t, step + 1) >= 0 for step in range(1, 9_999, 97))


def test_constant_stays() -> None:
    assert learning_rate(Train(learning_rate=3.0, schedule="constant", warmup=0, steps=9), 9) == 3.0


def test_forcing() -> None:
    assert forcing(Train(forcing=0.7), 900) == 0.7
    t = Train(forcing=1.0, forcing_end=0.5, steps=101)
    assert [forcing(t, step) for step in (1, 51, 101)] == pytest.approx([1.0, 0.75, 0.5])
    assert forcing(Train(forcing=1.0, forcing_end=0.0, steps=1, warmup=0), 1) == 1.0


def test_minutes_that_end_a_run_early_shorten_its_warm_up() -> None:
    t = Train(learning_rate=1.0, warmup=400, steps=10_000)
    assert learning_rate(t, 100, last=400) == pytest.approx(1.0)
    assert learning_rate(t, 100, last=10_000) == pytest.approx(0.25)
