"""--minutes is kept, scoring included: a fake clock moves by so much a step and so much a decoded example."""

import time
from pathlib import Path
from typing import Any

import pytest

from regard.data.batch import Batch
from regard.models.model import Model
from regard.score import Metric
from regard.tasks.task import Evaluation, Loss
from regard.tasks.transduce import Transduce
from regard.training.run import train

pytestmark = pytest.mark.no_shapes


@pytest.mark.parametrize("mean", [0, 2])
@pytest.mark.parametrize("every", [3, 7, 50, 10_000])
@pytest.mark.parametrize("example", [0.02, 0.1, 0.4])
def test_a_run_with_its_scoring_ends_within_its_minutes(
    runs: Any, monkeypatch: pytest.MonkeyPatch, example: float, every: int, mean: int
) -> None:
    """A step takes a quarter of a second, a validation has 5 of 16 examples: up to 8.4 of 60 seconds at the end."""
    now, counts = [1000.0], {"steps": 0}
    sound = Transduce.loss

    def loss(self: Transduce, model: Model, batch: Batch, forcing: float, seed: int) -> Loss:
        now[0] += 0.125
        counts["steps"] += 1
        return sound(self, model, batch, forcing, seed)

    def evaluate(
        self: Transduce, model: Model, items: Any, examples: Any, wish: Any, intervals: bool = True
    ) -> Evaluation:
        now[0] += example * len(items)
        metric = Metric("exact", now[0], None, None, True, "")
        return Evaluation({"exact": metric}, ("?",) * len(items), {"loss": 1.0})

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(Transduce, "loss", loss)
    monkeypatch.setattr(Transduce, "evaluate", evaluate)
    words = ["train.minutes=1", "train.steps=100000", f"train.validate_steps={every}", f"train.average={mean}"]
    train(runs.config(*words), runs.data, None, None, quiet=True)
    spent = now[0] - 1000.0
    assert spent <= 60.0 + 0.25  # a step that has begun is ended
    assert counts["steps"] >= 2
    assert spent >= 45.0  # what is given is used


def test_a_budget_below_one_step_still_trains_one(runs: Any, tmp_path: Path) -> None:
    train(runs.config("train.minutes=0.000001"), runs.data, None, tmp_path / "m", quiet=True)
    assert "1 steps in" in (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
