"""The best, the last and the mean of the last: which weights are kept, in memory and on disk."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

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
        ("bleu", [10.0, 10.0, 10.0], 1),  # of equals the first
        ("loss", [3.0, 1.0, 2.0], 2),
        ("cer", [30.0, 20.0, 10.0], 3),
        ("loss", [3.0, math.nan, 4.0], 1),
        ("loss", [math.nan, 5.0, 6.0], 2),
        ("exact", [math.nan, 0.0, math.nan], 2),
    ],
)
def test_best_by_the_metric(model: Model, metric: str, values: list[float], best: int) -> None:
    keep = Keeper(metric, 0, None)
    weights = {}
    for step, value in enumerate(values, 1):
        shift(model, 1.0)
        weights[step] = snapshot(model)
        assert keep.offer(model, step, value) == (keep.best is not None and keep.best.step == step)
    assert keep.best is not None
    assert keep.best.step == best
    assert same(keep.best.weights, weights[best])
    assert keep.since_best == len(values) - best


def test_mean_of_the_last(model: Model) -> None:
    keep = Keeper("exact", 3, None)
    first = snapshot(model)
    for _ in range(5):
        keep.checkpoint(model)
        shift(model, 1.0)
    found = keep.mean()  # of the third, fourth and fifth: first + 2, + 3, + 4
    assert found is not None
    for name, weight in first.items():
        torch.testing.assert_close(found[name], weight + 3.0)


@pytest.mark.parametrize(("average", "checkpoints"), [(0, 5), (3, 1), (3, 0)])
def test_no_mean_where_none_is_wanted_or_possible(model: Model, average: int, checkpoints: int) -> None:
    keep = Keeper("exact", average, None)
    for _ in range(checkpoints):
        keep.checkpoint(model)
    assert keep.mean() is None


def test_best_and_last_on_disk(model: Model, tmp_path: Path) -> None:
    keep = Keeper("exact", 0, tmp_path)
    keep.offer(model, 1, 5.0)
    best = snapshot(model)
    shift(model, 1.0)
    keep.offer(model, 2, 4.0)
    keep.checkpoint(model)
    assert same(load_file(tmp_path / "checkpoints" / "best.safetensors"), best)
    assert same(load_file(tmp_path / "checkpoints" / "last.safetensors"), snapshot(model))
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == [
        "best.safetensors",
        "last.safetensors",
    ]
