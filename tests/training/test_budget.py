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
from regard.training.run import Call, train

pytestmark = pytest.mark.no_shapes


@pytest.mark.parametrize(("every", "mean"), [(3, 0), (7, 2), (50, 2), (10_000, 0), (10_000, 2)])
@pytest.mark.parametrize("example", [0.02, 0.4])
def test_a_run_with_its_scoring_ends_within_its_minutes(
    runs: Any, monkeypatch: pytest.MonkeyPatch, example: float, every: int, mean: int
) -> None:
    """A step takes half a second; a validation has 5 of 16 examples, so up to 12 of 60 seconds are for the end."""
    now, steps = [1000.0], [0]

    def loss(self: Transduce, model: Model, batch: Batch, forcing: float, seed: int) -> Loss:
        now[0] += 0.25  # an update has two batches
        steps[0] += 1
        return Loss(next(model.parameters()).square().sum(), 1)

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
    train(runs.config(*words), runs.data, call=Call(quiet=True))
    spent = now[0] - 1000.0
    guessed = 6.0 if every == 10_000 else 0.0  # decoding is eight times as slow as a guess from steps, and never timed
    assert spent <= 60.0 + 0.5 + guessed  # a step that has begun is ended
    assert spent >= 45.0 or steps[0] > 60  # what is given is used


def test_a_budget_below_one_step_still_trains_one(runs: Any, tmp_path: Path) -> None:
    train(runs.config("train.minutes=0.000001"), runs.data, None, tmp_path / "m", Call(quiet=True))
    assert "1 steps in" in (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
