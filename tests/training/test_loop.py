"""The loop: the same twice, accumulation, steps that are not numbers, when it ends and what it leaves in the model."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from regard import config
from regard.data.batch import Batch
from regard.data.read import Example
from regard.errors import ConfigError, DivergedError
from regard.models.build import build
from regard.models.model import Model
from regard.score import Metric
from regard.tasks.task import Evaluation, Item, Loss
from regard.tasks.transduce import Transduce
from regard.training import loop as loop_module
from regard.training.checkpoint import Checkpoints
from regard.training.device import LARGE, autocast, device, precision
from regard.training.keep import Keeper, snapshot
from regard.training.loop import MOST_BAD_STEPS, Crew, Outcome, few, loop
from regard.training.prepare import Part, Prepared, prepare
from regard.training.progress import Report
from regard.training.stop import Stop
from regard.training.stream import Place
from regard.training.team import Team

pytestmark = pytest.mark.no_shapes  # those are watched where the parts are tested

WORDS = ["encoder.width=16", "decoder.width=16", "train.steps=6", "train.warmup=2", "train.learning_rate=0.01",
         "train.validate_steps=2", "train.checkpoint_steps=2", "train.tokens_per_batch=64",
         "train.validate_examples=5"]  # fmt: skip


class Run:
    """One run of the loop with everything it touched."""

    def __init__(self, data: Prepared, folder: Path | None = None, stop: Stop | None = None) -> None:
        c = data.config
        self.data = data
        self.model: Model = build(c, data.vocabulary.source.size, data.vocabulary.target.size)
        self.stop = stop or Stop()
        self.stop.minutes = c.train.minutes
        self.report = Report(c.train, folder, quiet=True, clock=self.stop.clock)
        self.keep = Keeper(c.train.metric, c.train.average)
        self.numbers = precision(c.train, torch.device("cpu"), self.model.size)

    def go(self) -> Outcome:
        checkpoints = Checkpoints(None, self.data.config.train)
        crew = Crew(self.report, self.keep, self.stop, checkpoints, Team(), torch.device("cpu"), self.numbers)
        try:
            return loop(self.data, self.model, crew)
        finally:
            self.report.close()

    def weights(self) -> dict[str, torch.Tensor]:
        return snapshot(self.model)


Data = Callable[..., Prepared]


@pytest.fixture
def data(copy_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Data:
    def make(*words: str, preset: str = "rnn-attention") -> Prepared:
        c = config.resolve(preset, None, [*WORDS, *words])
        return prepare(c, str(copy_file), None, tmp_path_factory.mktemp("store") / "tokens")

    return make


@pytest.fixture
def scores(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[dict[str, torch.Tensor]]]:
    """Validation gives these values one after another; the list fills with the weights it was given each time."""

    def give(*values: float) -> list[dict[str, torch.Tensor]]:
        seen: list[dict[str, torch.Tensor]] = []

        def evaluate(
            self: Transduce, model: Model, items: Any, examples: Any, wish: Any, intervals: bool
        ) -> Evaluation:
            assert not model.training
            seen.append(snapshot(model))
            value = values[len(seen) - 1]
            return Evaluation(
                {"exact": Metric("exact", value, None, None, True, "")}, ("?",) * len(items), {"loss": 1.0}
            )

        monkeypatch.setattr(Transduce, "evaluate", evaluate)
        return seen

    return give


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(a[name], b[name]) for name in a)


# ── the same twice ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("words", [(), ("train.forcing=0.5",), ("decoder.dropout=0.3", "embedding.dropout=0.2")])
def test_same_seed_same_weights_to_the_bit(data: Data, words: tuple[str, ...]) -> None:
    runs = [Run(data(*words)) for _ in range(2)]
    for number, run in enumerate(runs):
        torch.manual_seed(number)  # what happened before must not matter
        run.go()
    assert same(runs[0].weights(), runs[1].weights())


def test_another_seed_other_weights(data: Data) -> None:
    runs = [Run(data(f"train.seed={seed}")) for seed in (0, 1)]
    for run in runs:
        run.go()
    assert not same(runs[0].weights(), runs[1].weights())


def test_validation_does_not_change_training(data: Data, scores: Callable[..., Any]) -> None:
    seen = scores(*range(20))
    Run(data("decoder.dropout=0.3", "train.validate_steps=1")).go()
    Run(data("decoder.dropout=0.3", "train.validate_steps=6")).go()
    assert len(seen) == 7
    assert same(seen[5], seen[6])


# ── accumulation ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_accumulated_halves_equal_the_whole(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of unlike token counts, so that a mean of means would be seen."""
    found = []
    for accumulate, sizes in ((1, [30]), (2, [7, 23]), (3, [1, 19, 10])):
        prepared = data(f"train.accumulate={accumulate}", "train.validate_steps=6")
        monkeypatch.setattr(loop_module, "updates", lambda task, part, *rest, sizes=sizes: pieces(task, part, sizes))
        run = Run(prepared)
        run.model.double()  # Adam makes whole steps of the rounding where a gradient is nothing but that
        run.go()
        found.append(run.weights())
    for other in found[1:]:
        for name, weight in found[0].items():
            torch.testing.assert_close(other[name], weight, rtol=0.0, atol=1e-6)


def pieces(task: Transduce, part: Part, sizes: list[int]) -> Iterator[tuple[list[Batch], Place]]:
    """The same examples in every update, in pieces of these sizes."""
    ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]
    while True:
        yield [task.batch([part.items[i] for i in range(end - size, end)], range(end - size, end), 0)
               for size, end in zip(sizes, ends, strict=True)], Place()  # fmt: skip


def test_gradient_is_the_mean_over_tokens(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is clipped and applied is Σ gradients ÷ Σ tokens, over all batches of the step."""
    heard: list[float] = []
    prepared = data("train.accumulate=2", "train.steps=1", "train.warmup=0")
    monkeypatch.setattr(loop_module, "updates", lambda task, part, *rest: pieces(task, part, [7, 23]))
    run = Run(prepared)
    model = build(prepared.config, prepared.vocabulary.source.size, prepared.vocabulary.target.size)
    items = [prepared.train.items[i] for i in range(30)]
    whole = prepared.task.loss(model, prepared.task.batch(items, range(30), 0), 1.0, 0)
    torch.autograd.backward(whole.total / whole.count)
    expected = torch.stack([weight.grad.norm() for weight in model.parameters() if weight.grad is not None]).norm()
    monkeypatch.setattr(run.report, "step", lambda step, total, count, rate, norm: heard.append(norm))
    run.go()
    assert heard == [pytest.approx(float(expected), rel=1e-4)]


# ── steps that are not numbers ───────────────────────────────────────────────────────────────────────────────────────


def spoil(monkeypatch: pytest.MonkeyPatch, spoiled: Callable[[int], bool], factor: float = math.nan) -> list[int]:
    """Makes the loss of some calls (from 1) not a number; the list counts calls."""
    calls: list[int] = []
    sound = Transduce.loss

    def loss(self: Transduce, model: Model, batch: Batch, forcing: float, seed: int) -> Loss:
        calls.append(len(calls) + 1)
        found = sound(self, model, batch, forcing, seed)
        return replace(found, total=found.total * factor) if spoiled(calls[-1]) else found

    monkeypatch.setattr(Transduce, "loss", loss)
    return calls


def test_spoiled_step_is_not_applied(data: Data, scores: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen = scores(*range(20))
    spoil(monkeypatch, lambda call: call in (2, 3))
    run = Run(data("train.validate_steps=1"), tmp_path)
    assert run.go().step == 6
    assert same(seen[0], seen[1])
    assert same(seen[1], seen[2])
    assert not same(seen[2], seen[3])
    assert all(bool(torch.isfinite(weight).all()) for weight in run.weights().values())
    lines = (tmp_path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    losses = [json.loads(line, parse_constant=pytest.fail).get("loss", 0.0) for line in lines]
    assert losses.count(None) == 2


@pytest.mark.parametrize("factor", [math.nan, math.inf])
def test_repeated_failure_ends_the_run(data: Data, monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    spoil(monkeypatch, lambda call: call > 3, factor)
    run = Run(data("train.steps=50", "train.validate_steps=50"))
    with pytest.raises(
        DivergedError, match=r"step 13: 10 updates in a row were not finite \(learning rate .*norm"
    ) as e:
        run.go()
    assert e.value.exit_code == 70
    assert "train.learning_rate" in str(e.value)
    assert all(bool(torch.isfinite(weight).all()) for weight in run.weights().values())


def test_failures_now_and_then_do_not_end_the_run(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = spoil(monkeypatch, lambda call: call % MOST_BAD_STEPS != 0)
    assert Run(data("train.steps=25", "train.validate_steps=25")).go().step == 25
    assert len(calls) == 25


# ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_best_weights_are_left_in_the_model(data: Data, scores: Callable[..., Any]) -> None:
    seen = scores(1.0, 3.0, 2.0)
    run = Run(data())
    outcome = run.go()
    assert (outcome.step, outcome.best_step, outcome.averaged) == (6, 4, False)
    assert same(run.weights(), seen[1])
    assert not same(seen[1], seen[2])
    assert outcome.why == "all 6 steps are done"


def test_patience(data: Data, scores: Callable[..., Any]) -> None:
    seen = scores(1.0, 5.0, 4.0, 4.5, 9.0)
    run = Run(data("train.steps=20", "train.patience=2"))
    outcome = run.go()
    assert (outcome.step, outcome.best_step) == (8, 4)
    assert outcome.why == "2 validations brought nothing better"
    assert same(run.weights(), seen[1])


def test_validations_without_a_mistake_end_a_run(data: Data, scores: Callable[..., Any]) -> None:
    scores(90.0, 100.0, 99.0, 100.0, 100.0)
    outcome = Run(data("train.steps=20", "train.perfect=3")).go()
    assert (outcome.step, outcome.best_step) == (8, 8)
    assert outcome.why == "validations find no mistake any more"


def test_minutes(data: Data, scores: Callable[..., Any]) -> None:
    seen = scores(1.0)
    outcome = Run(data("train.minutes=0.000001", "train.steps=50")).go()
    assert (outcome.step, outcome.why, outcome.signal, len(seen)) == (1, "the time is up", None, 1)


def test_a_signal_ends_without_validation(data: Data, scores: Callable[..., Any]) -> None:
    seen = scores()
    prepared = data()
    stop = Stop()
    stop.heard = 15
    run = Run(prepared, stop=stop)
    outcome = run.go()
    assert (outcome.step, outcome.signal, outcome.why, seen) == (0, 15, "interrupted by SIGTERM", [])


@pytest.mark.parametrize("last", [4.0, 3.0])
def test_mean_is_used_where_it_is_no_worse(data: Data, scores: Callable[..., Any], last: float) -> None:
    seen = scores(1.0, 2.0, 3.0, last)
    run = Run(data("train.average=2"))
    outcome = run.go()
    assert outcome.averaged
    assert len(seen) == 4
    for name, weight in run.weights().items():
        torch.testing.assert_close(weight, (seen[1][name] + seen[2][name]) / 2)


def test_mean_is_not_used_where_it_is_clearly_worse(data: Data, scores: Callable[..., Any]) -> None:
    seen = scores(1.0, 2.0, 3.0, 2.0)
    run = Run(data("train.average=2"))
    assert not run.go().averaged
    assert same(run.weights(), seen[2])


def test_training_lowers_the_loss(data: Data) -> None:
    run = Run(data("train.steps=60", "train.validate_steps=60"))
    run.go()
    losses = [entry["loss"] for entry in run.report.metrics.entries if "loss" in entry]
    assert losses[-1] < losses[0] / 2


# ── where ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_device() -> None:
    assert device(config.Train(device="cpu")) == torch.device("cpu")
    with pytest.raises(ConfigError, match=r"train\.device: 'gpu' is not a device; expected auto, cpu or cuda"):
        device(config.Train(device="gpu"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_cuda_that_is_not_there() -> None:
    assert device(config.Train()) == torch.device("cpu")
    with pytest.raises(ConfigError, match="cuda was asked for, and this machine has none"):
        device(config.Train(device="cuda"))


@pytest.mark.parametrize(
    ("native", "expected"),
    [({"avx512_bf16": True}, "bf16"), ({"amx_bf16": True}, "bf16"), ({"avx512_bf16": False}, "fp32"), ({}, "fp32")],
)
def test_the_processor_is_asked_for_bf16(
    monkeypatch: pytest.MonkeyPatch, native: dict[str, bool], expected: str
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: native)
    cpu = torch.device("cpu")
    assert precision(config.Train(), cpu, LARGE) == expected
    assert precision(config.Train(), cpu, LARGE - 1) == "fp32"
    assert [precision(config.Train(precision=name), cpu, 9) for name in ("fp32", "bf16")] == ["fp32", "bf16"]


def test_bf16_only_where_it_is_wanted(data: Data) -> None:
    cpu = torch.device("cpu")
    product = {}
    for name in ("fp32", "bf16"):
        with autocast(name, cpu):
            product[name] = (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
    assert product == {"fp32": torch.float32, "bf16": torch.bfloat16}
    run = Run(data("train.precision=bf16"))
    assert run.numbers == "bf16"
    run.go()
    assert all(weight.dtype == torch.float32 for weight in run.weights().values())


def test_a_validation_is_spread_over_a_file_that_may_be_sorted() -> None:
    part = Part(
        "x",
        [Example((str(number),), "y", number) for number in range(10)],
        [Item((number,), ()) for number in range(10)],
    )
    found = few(part, 4)
    assert [example.line for example in found.examples] == [0, 2, 5, 7]
    assert [item.source for item in found.items] == [(0,), (2,), (5,), (7,)]
    assert few(part, 10) is part
