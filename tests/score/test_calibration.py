"""A rule that says how likely an output is right: honest on what it has not seen, modest where little is known."""

import math

import numpy as np
import pytest

from regard.score.calibration import FEWEST, Calibration, Look, calibrate, described, fit, log_odds, quality

Outcomes = tuple[list[Look], list[bool]]


def overconfident(count: int, seed: int = 0) -> Outcomes:
    """Outputs whose log odds are twice what they should be."""
    random = np.random.default_rng(seed)
    truth, lengths, draws = random.uniform(-3.0, 3.0, count), random.integers(1, 9, count), random.random(count)
    looks = [Look(chance(2 * odds), 0.9, int(length)) for odds, length in zip(truth, lengths, strict=True)]
    return looks, [bool(draw < chance(odds)) for draw, odds in zip(draws, truth, strict=True)]


def chance(odds: float) -> float:
    return 1 / (1 + math.exp(-odds))


def rule(looks: list[Look], right: list[bool]) -> Calibration:
    found = calibrate(looks, right)
    assert found is not None
    return found


def test_overconfidence_is_mended() -> None:
    found = rule(*overconfident(2000))
    assert found.probability == pytest.approx(0.5, abs=0.06)
    assert found.after.brier < found.before.brier
    assert found.after.error < 0.05 < 0.1 < found.before.error
    looks, right = overconfident(2000, seed=1)
    fresh = quality([found.confidence(look) for look in looks], right)
    assert fresh.error < 0.05
    assert fresh.brier == pytest.approx(found.after.brier, abs=0.02)


def test_what_is_right_already_stays() -> None:
    random = np.random.default_rng(3)
    looks = [Look(p, p, 4) for p in random.uniform(0.02, 0.98, 3000)]
    found = rule(looks, [bool(draw < look.probability) for draw, look in zip(random.random(3000), looks, strict=True)])
    for p in (0.1, 0.5, 0.9):
        assert found.confidence(Look(p, p, 4)) == pytest.approx(p, abs=0.04)


def test_the_least_sure_token_may_tell_more_than_the_product() -> None:
    random = np.random.default_rng(4)
    lowest = random.uniform(0.02, 0.98, 2000)
    looks = [Look(low * noise, low, 5) for low, noise in zip(lowest, random.uniform(0.1, 1.0, 2000), strict=True)]
    found = rule(looks, [bool(draw < low) for draw, low in zip(random.random(2000), lowest, strict=True)])
    assert found.lowest > 2 * found.probability
    assert found.after.brier < found.before.brier


def test_too_few_teach_nothing() -> None:
    looks, right = overconfident(FEWEST)
    assert calibrate(looks[1:], right[1:]) is None
    assert calibrate(looks, right) is not None


@pytest.mark.parametrize("outcome", [True, False])
def test_examples_that_all_came_out_alike(outcome: bool) -> None:
    """No misses, or nothing but misses: finite, on the right side, and never quite certain."""
    looks = [Look(0.2 + 0.003 * i, 0.5, 3) for i in range(200)]
    found = rule(looks, [outcome] * 200)
    sure = [found.confidence(look) for look in looks]
    assert min(sure) > 0.9 if outcome else max(sure) < 0.1
    assert 0.0 < min(sure) <= max(sure) < 1.0
    assert found.right == 200 * outcome


def test_surer_is_never_less_likely_right() -> None:
    """Also where the examples say so: then the number counts for nothing."""
    random = np.random.default_rng(5)
    looks = [Look(p, q, 3) for p, q in zip(random.random(300), random.random(300), strict=True)]
    found = rule(looks, [look.probability < 0.5 and look.lowest < 0.5 for look in looks])
    assert (found.probability, found.lowest) == (0.0, 0.0)


def test_the_same_examples_give_the_same_rule_to_the_bit() -> None:
    assert calibrate(*overconfident(300)) == calibrate(*overconfident(300))


def test_fit_is_the_greatest_posterior() -> None:
    looks, right = overconfident(120)
    features, outcomes = described(looks), np.array(right)
    middle = features[:, 3].mean()

    def posterior(weights: np.ndarray) -> float:
        odds = features @ weights
        centred = weights + np.array([weights[3] * middle, -1.0, 0.0, 0.0])
        return float(np.sum(outcomes * odds - np.logaddexp(0.0, odds)) - 0.5 * np.sum(centred**2))

    best = fit(features, outcomes)
    for place in range(4):
        for step in (-0.01, 0.01):
            other = best.copy()
            other[place] += step
            if place not in (1, 2) or other[place] >= 0:
                assert posterior(other) < posterior(best) + 1e-9


def test_certain_and_impossible_are_numbers() -> None:
    assert log_odds(0.0) == -log_odds(1.0)
    found = rule(*overconfident(50))
    assert 0.0 < found.confidence(Look(0.0, 0.0, 0)) < found.confidence(Look(1.0, 1.0, 0)) < 1.0
    steep = Calibration(9e5, 9e5, 9e5, 9e5, 20, 20, found.before, found.after)
    assert steep.confidence(Look(1.0, 1.0, 9)) == pytest.approx(1.0)


def test_quality_by_hand() -> None:
    found = quality([0.95, 0.95, 0.05, 0.55], [True, False, False, True])
    assert found.brier == pytest.approx((0.05**2 + 0.95**2 + 0.05**2 + 0.45**2) / 4, abs=1e-6)
    assert found.error == pytest.approx((abs(1.9 - 1) + 0.05 + 0.45) / 4, abs=1e-6)
