"""The best and the mean of the last: which weights are kept."""

import math
from collections.abc import Callable

import pytest
import torch

from regard.models.model import Model
from regard.trained import Trained
from regard.training.keep import Keeper, restore, snapshot


@pytest.fixture
def model(small_model: Callable[..., Trained]) -> Model:
    return small_model("rnn").model


def shift(model: Model, by: float) -> None:
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(by)


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_snapshot_does_not_move_with_the_model_and_restores(model: Model) -> None:
    before = snapshot(model)
    shift(model, 1.0)
    assert not same(before, snapshot(model))
    restore(model, before)
    assert same(before, snapshot(model))


@pytest.mark.parametrize(
    ("metric", "values", "best"),
    [
        ("exact", [10.0, 30.0, 20.0], 2),
        ("loss", [3.0, 1.0, 2.0], 2),
        ("cer", [30.0, 20.0, 10.0], 3),
        ("loss", [3.0, math.nan, 4.0], 1),
        ("loss", [math.nan, 5.0, 6.0], 2),
        ("exact", [math.nan, 0.0, math.nan], 2),
    ],
)
def test_best_by_the_metric(model: Model, metric: str, values: list[float], best: int) -> None:
    keep = Keeper(metric, 0)
    weights = {}
    for step, value in enumerate(values, 1):
        shift(model, 1.0)
        weights[step] = snapshot(model)
        assert keep.offer(model, step, value) == (keep.best is not None and keep.best.step == step)
    assert keep.best is not None
    assert keep.best.step == best
    assert same(keep.best.weights, weights[best])
    assert keep.since_best == len(values) - best


def test_where_nothing_is_right_the_loss_tells(model: Model) -> None:
    keep = Keeper("exact", 0)
    steps = []
    for step, (value, loss) in enumerate(((0.0, 3.0), (0.0, 2.0), (0.0, 2.5), (5.0, 4.0), (5.0, 5.0)), 1):
        keep.offer(model, step, value, loss)
        assert keep.best is not None
        steps.append(keep.best.step)
    assert steps == [1, 2, 2, 4, 5]
    assert keep.since_best == 1


def test_little_patience_is_left_after_a_perfect_score(model: Model) -> None:
    keep = Keeper("exact", 0)
    keep.offer(model, 1, 99.0)
    assert keep.patience(10) == 10
    keep.offer(model, 2, 100.0)
    assert (keep.patience(10), keep.patience(2)) == (3, 2)
    loss = Keeper("loss", 0)
    loss.offer(model, 1, 200.0)
    assert loss.patience(10) == 10


def test_a_run_is_done_when_validations_go_on_to_find_no_mistake(model: Model) -> None:
    keep = Keeper("exact", 0)
    done = []
    for step, value in enumerate((99.0, 100.0, 99.5, 100.0, 100.0), 1):
        keep.offer(model, step, value)
        done.append(keep.is_done(step, 3))
    assert done == [False, False, False, True, True]
    assert keep.is_done(5, 4)
    assert not keep.is_done(5, 5)
    assert not keep.is_done(5, None)


def test_of_equals_the_newest_is_kept_but_patience_counts_it(model: Model) -> None:
    keep = Keeper("exact", 0)
    offered = []
    for step in (1, 2, 3):
        shift(model, 1.0)
        offered.append(keep.offer(model, step, 0.0))
    assert offered == [True, False, False]
    assert keep.best is not None
    assert keep.best.step == 3
    assert same(keep.best.weights, snapshot(model))
    assert keep.since_best == 2


def test_mean_of_the_last(model: Model) -> None:
    keep = Keeper("exact", 3)
    first = snapshot(model)
    for step in range(5):
        keep.remember(model, step)
        keep.remember(model, step)  # a run that is resumed may come by again
        shift(model, 1.0)
    found = keep.mean()  # of the third, fourth and fifth: first + 2, + 3, + 4
    assert found is not None
    for name, weight in first.items():
        torch.testing.assert_close(found[name], weight + 3.0)


@pytest.mark.parametrize(
    ("metric", "value", "noise", "taken"),
    [("exact", 51.0, 0.0, True), ("exact", 50.0, 0.0, True), ("exact", 49.0, 0.0, False), ("exact", 49.0, 2.0, True),
     ("exact", 47.0, 2.0, False), ("exact", float("nan"), 2.0, False), ("loss", 51.0, 2.0, True),
     ("loss", 53.0, 2.0, False)],
)  # fmt: skip
def test_a_mean_is_preferred_unless_it_is_clearly_worse(
    model: Model, metric: str, value: float, noise: float, taken: bool
) -> None:
    keep = Keeper(metric, 3)
    keep.offer(model, 1, 50.0)
    before = keep.best
    shift(model, 1.0)
    assert keep.prefer(model, 9, value, noise) is taken
    assert (keep.best is not before) is taken
    assert keep.since_best == 0  # patience is no matter any more


@pytest.mark.parametrize(
    ("value", "loss", "taken"),
    [(49.0, 0.3, False), (49.0, 0.21, True), (50.0, 0.3, True), (49.0, float("nan"), True)],
)
def test_a_mean_that_scores_less_and_has_more_loss_is_not_better_by_chance(
    model: Model, value: float, loss: float, taken: bool
) -> None:
    keep = Keeper("exact", 3)
    keep.offer(model, 1, 50.0, 0.2)
    assert keep.prefer(model, 9, value, 2.0, loss) is taken


@pytest.mark.parametrize(("average", "checkpoints"), [(0, 5), (3, 1), (3, 0)])
def test_no_mean_where_none_is_wanted_or_possible(model: Model, average: int, checkpoints: int) -> None:
    keep = Keeper("exact", average)
    for step in range(checkpoints):
        keep.remember(model, step)
    assert keep.mean() is None


def test_a_keeper_goes_on_from_what_another_kept(model: Model) -> None:
    """As if it had been one all the time: that is how a resumed run keeps."""
    values = [3.0, 5.0, 4.0, 4.5, 6.0, 1.0]
    whole, before = Keeper("exact", 3), Keeper("exact", 3)
    after = before
    for step, value in enumerate(values):
        if step == 3:
            after = Keeper("exact", 3, before.kept)
        for keep in (whole, before if step < 3 else after):
            keep.remember(model, step)
            keep.offer(model, step, value)
        shift(model, 1.0)
    assert whole.best is not None
    assert after.best is not None
    assert (after.best.step, after.since_best) == (whole.best.step, whole.since_best) == (4, 1)
    assert same(after.best.weights, whole.best.weights)
    assert [step for step, _ in after.window] == [step for step, _ in whole.window] == [3, 4, 5]
