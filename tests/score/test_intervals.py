"""Small tables of counts in; the bounds must cover, repeat, and make sense at the edges."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import UsageError
from regard.score.intervals import (
    Bootstrap,
    paired_p_value,
    percentile_interval,
    rate_interval,
    resample,
    wilson_interval,
)


def test_a_resample_draws_as_many_examples_as_there_are() -> None:
    rows = np.column_stack([np.arange(20.0), np.ones(20)])
    totals = resample(rows, Bootstrap(seed=3, samples=300))
    assert totals.shape == (300, 2)
    assert (totals[:, 1] == 20).all()
    assert totals[:, 0].mean() == pytest.approx(rows[:, 0].sum(), rel=0.05)
    assert totals[:, 0].std() == pytest.approx(rows[:, 0].std() * np.sqrt(20), rel=0.15)


def test_columns_are_drawn_together() -> None:
    rows = np.column_stack([np.arange(9.0), -2 * np.arange(9.0)])
    totals = resample(rows, Bootstrap(samples=50))
    assert (totals[:, 1] == -2 * totals[:, 0]).all()


def test_the_seed_is_the_whole_state() -> None:
    rows = np.arange(30.0)[:, None]
    assert (resample(rows, Bootstrap(4, 20)) == resample(rows, Bootstrap(4, 20))).all()
    assert (resample(rows, Bootstrap(4, 20)) != resample(rows, Bootstrap(5, 20))).any()
    assert (resample(rows, Bootstrap(4, 20)) == resample(rows, Bootstrap(4, 40))[:20]).all()


def test_one_resample_in_forty_stays_outside_on_each_side() -> None:
    scores = np.random.default_rng(0).permutation(1000).astype(np.float64)
    assert percentile_interval(scores) == (25, 974)
    assert percentile_interval(np.array([3.0])) == (3, 3)


@pytest.mark.parametrize(
    ("successes", "count", "low", "high"),
    [(0, 10, 0, 27.7533), (10, 10, 72.2467, 100), (8, 10, 49.0162, 94.3318), (1, 1, 20.6549, 100)],
)
def test_wilson_at_known_values(successes: int, count: int, low: float, high: float) -> None:
    assert wilson_interval(successes, count) == pytest.approx((low, high), abs=1e-3)


@settings(derandomize=True, deadline=None)
@given(st.integers(1, 5000).flatmap(lambda count: st.tuples(st.integers(0, count), st.just(count))))
def test_wilson_holds_the_share_and_mirrors(drawn: tuple[int, int]) -> None:
    successes, count = drawn
    low, high = wilson_interval(successes, count)
    assert 0 <= low <= 100 * successes / count <= high <= 100
    assert low < high
    mirrored_low, mirrored_high = wilson_interval(count - successes, count)
    assert (100 - mirrored_high, 100 - mirrored_low) == pytest.approx((low, high), abs=1e-9)


def test_wilson_covers_what_it_promises() -> None:
    draws = np.random.default_rng(1).binomial(100, 0.9, size=1000)
    covered = [low <= 90 <= high for low, high in (wilson_interval(draw, 100) for draw in draws)]
    assert 0.92 < np.mean(covered) < 0.98


def test_a_perfect_score_of_few_examples_is_not_known_exactly() -> None:
    """The rule of three says 3 / n; Wilson's bound is a little wider. Elsewhere the bootstrap's bounds stay."""
    low, high = rate_interval(np.full(1000, 100.00000000000003), 53)
    assert low == pytest.approx(93.24, abs=0.01)
    assert 100 - low > 3 / 53
    assert high == pytest.approx(100.0)
    assert rate_interval(np.zeros(1000), 53) == (0.0, pytest.approx(6.76, abs=0.01))
    assert rate_interval(np.full(1000, 100.0), 5000)[0] > 99.9
    scores = np.linspace(90, 100, 1000)
    assert rate_interval(scores, 53) == percentile_interval(scores)


def test_p_value_by_hand() -> None:
    differences = np.array([2.0, 2.0, 2.0, 4.0, 0.0, 2.0, 2.0, 2.0, 2.0])
    assert paired_p_value(differences, 2.0, differing=50) == pytest.approx(3 / 10)
    assert paired_p_value(differences, -2.0, differing=50) == 1
    assert paired_p_value(differences, 0.0, differing=50) == 1


def test_p_value_is_uniform_enough_without_a_difference() -> None:
    generator = np.random.default_rng(2)
    small = 0
    for trial in range(200):
        rows = generator.normal(size=(60, 1))
        differences = resample(rows, Bootstrap(trial, 199))[:, 0]
        small += paired_p_value(differences, float(rows.sum()), differing=60) <= 0.05
    assert 1 <= small <= 24  # 10 expected; the bounds are more than three standard deviations away


def test_few_differing_examples_bound_the_p_value() -> None:
    always = np.full(1000, 10.0)
    assert [paired_p_value(always, 10.0, differing) for differing in (0, 1, 2, 5)] == [1, 1, 0.5, 0.0625]
    assert paired_p_value(always, 10.0, 40) == pytest.approx(1 / 1001)


def test_senseless_settings_are_refused() -> None:
    with pytest.raises(UsageError, match="seed: found -1"):
        Bootstrap(seed=-1)
    with pytest.raises(UsageError, match="samples: found -5"):
        Bootstrap(samples=-5)
