"""What the config says reaches the optimizer, the loss, the clock and the card; what must not be touched is not."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from regard import config
from regard.data import builtin
from regard.data.batch import Batch
from regard.errors import ConfigError, DivergedError, UsageError
from regard.models.build import build
from regard.models.model import Model
from regard.score import Metric
from regard.tasks.task import Evaluation, Loss, Wish
from regard.tasks.transduce import Transduce
from regard.training import loop as loop_module
from regard.training import progress
from regard.training import stop as stop_module
from regard.training.checkpoint import Checkpoints
from regard.training.device import device
from regard.training.keep import Keeper
from regard.training.loop import Crew, loop
from regard.training.prepare import prepare
from regard.training.progress import Report
from regard.training.run import Call, train
from regard.training.schedule import forcing, learning_rate
from regard.training.stop import Clock, Stop
from regard.training.team import Team

pytestmark = pytest.mark.no_shapes

WORDS = ["encoder.width=16", "decoder.width=16", "train.steps=6", "train.warmup=2", "train.learning_rate=0.01",
         "train.validate_steps=2", "train.checkpoint_steps=2", "train.tokens_per_batch=64",
         "train.validate_examples=5"]  # fmt: skip


def settings(*words: str) -> config.Config:
    return config.resolve("rnn-attention", None, [*WORDS, *words])


def go(copy_file: Path, *words: str) -> Report:
    """One run of the loop without a folder; gives what it reported."""
    with TemporaryDirectory() as store:
        data = prepare(settings(*words), str(copy_file), None, Path(store) / "tokens")
        t = data.config.train
        model = build(data.config, data.vocabulary.source.size, data.vocabulary.target.size)
        stop, cpu = Stop(), torch.device("cpu")
        stop.minutes = t.minutes
        report = Report(t, None, quiet=True, clock=stop.clock)
        report.begin("a run")
        loop(data, model, Crew(report, Keeper("exact", t.average), stop, Checkpoints(None, t), Team(), cpu))
    return report


# ── the optimizer ────────────────────────────────────────────────────────────────────────────────────────────────────


class Listening(torch.optim.AdamW):
    """Writes down what it is given at each step."""

    seen: list[dict[str, Any]]
    poisoned_step = 0  # after which a weight is not a number

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        (group,) = self.param_groups
        norm = torch.stack([weight.grad.norm() for weight in group["params"] if weight.grad is not None]).norm()
        self.seen.append({name: group[name] for name in ("lr", "betas", "weight_decay")} | {"norm": float(norm)})
        super().step()
        if len(self.seen) == self.poisoned_step:
            group["params"][0].data.view(-1)[0] = math.nan


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> type[Listening]:
    monkeypatch.setattr(Listening, "seen", [], raising=False)
    monkeypatch.setattr(Listening, "poisoned_step", 0)
    monkeypatch.setattr(torch.optim, "AdamW", Listening)
    return Listening


@pytest.mark.parametrize("schedule", ["cosine", "inverse-sqrt"])
def test_each_step_has_the_rate_of_the_schedule(copy_file: Path, listening: type[Listening], schedule: str) -> None:
    go(copy_file, f"train.schedule={schedule}")
    t = settings(f"train.schedule={schedule}").train
    expected = [learning_rate(t, step) for step in range(1, 7)]
    assert [each["lr"] for each in listening.seen] == expected
    assert len(set(expected)) > 3


def test_with_minutes_the_rate_comes_to_its_end_within_them(
    copy_file: Path, listening: type[Listening], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Clock, "seconds", lambda clock: float(len(listening.seen)))  # a second a step
    go(copy_file, "train.minutes=2", "train.steps=100000", "train.validate_steps=30", "train.checkpoint_steps=30")
    rates = [each["lr"] for each in listening.seen]
    assert 90 <= len(rates) <= 120
    assert rates[-1] < 0.02 * max(rates)


def test_gradients_are_clipped_before_they_are_applied(copy_file: Path, listening: type[Listening]) -> None:
    report = go(copy_file, "train.clip=0.01")
    told = [entry["gradient_norm"] for entry in report.metrics.entries if "gradient_norm" in entry]
    assert min(told) > 0.02  # what is told is the norm before
    assert [each["norm"] for each in listening.seen] == [pytest.approx(0.01, rel=1e-3)] * 6


def test_small_gradients_are_left_alone(copy_file: Path, listening: type[Listening]) -> None:
    report = go(copy_file, "train.clip=1000")
    told = [entry["gradient_norm"] for entry in report.metrics.entries if "gradient_norm" in entry]
    assert [each["norm"] for each in listening.seen] == [pytest.approx(norm, rel=1e-4) for norm in told]


def test_decay_and_betas_reach_the_optimizer(copy_file: Path, listening: type[Listening]) -> None:
    go(copy_file, "train.weight_decay=0.25", "train.beta1=0.7", "train.beta2=0.8")
    assert {(each["weight_decay"], each["betas"]) for each in listening.seen} == {(0.25, (0.7, 0.8))}


def test_weights_that_are_no_numbers_end_the_run_and_are_never_kept(
    copy_file: Path, tmp_path: Path, listening: type[Listening]
) -> None:
    listening.poisoned_step = 3
    with pytest.raises(DivergedError, match=r"is not finite any more; a lower train\.learning_rate may help") as caught:
        train(settings(), str(copy_file), None, tmp_path / "m", Call(quiet=True))
    assert caught.value.exit_code == 70
    assert not (tmp_path / "m" / "manifest.json").exists()
    assert not (tmp_path / "m" / "model.safetensors").exists()
    assert [path.name for path in (tmp_path / "m" / "checkpoints").iterdir()] == ["step-00000002"]


# ── forcing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_loss_is_told_how_much_to_force(copy_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[float] = []
    sound = Transduce.loss

    def loss(self: Transduce, model: Model, batch: Batch, forcing: float, seed: int) -> Loss:
        heard.append(forcing)
        return sound(self, model, batch, forcing, seed)

    monkeypatch.setattr(Transduce, "loss", loss)
    go(copy_file, "train.forcing=1", "train.forcing_end=0")
    assert heard == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2, 0.0])
    t = settings("train.forcing=1", "train.forcing_end=0").train
    assert heard == [forcing(t, step) for step in range(1, 7)]


# ── the clock ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that stands still until `now` is set."""
    made = SimpleNamespace(now=100.0)
    for module in (progress, loop_module, stop_module):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def test_time_of_a_validation_is_not_time_of_training(clock: SimpleNamespace) -> None:
    report = Report(config.Train(steps=4), None, quiet=True)
    clock.now += 2
    report.step(1, 1.0, 100, 0.1, 1.0)
    clock.now += 8
    report.validated({"step": 1}, [], Keeper("exact", 0), 8.0)
    clock.now += 4
    report.step(2, 1.0, 100, 0.1, 1.0)
    assert speeds(report) == [50.0, 25.0]
    assert report.times.entries[-1]["seconds"] == 14.0


def speeds(report: Report) -> list[float]:
    return [entry["tokens_per_second"] for entry in report.times.entries if "tokens_per_second" in entry]


def test_loop_tells_how_long_a_validation_took(
    copy_file: Path, clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = Transduce.loss

    def loss(self: Transduce, model: Model, batch: Batch, forcing: float, seed: int) -> Loss:
        clock.now += 1
        return sound(self, model, batch, forcing, seed)

    def evaluate(self: Transduce, model: Model, items: Any, examples: Any, wish: Any, intervals: bool) -> Evaluation:
        clock.now += 1000
        return Evaluation({"exact": Metric("exact", 1.0, None, None, True, "")}, ("?",) * len(items), {"loss": 1.0})

    monkeypatch.setattr(Transduce, "loss", loss)
    monkeypatch.setattr(Transduce, "evaluate", evaluate)
    report = go(copy_file, "train.validate_steps=1")
    assert len(speeds(report)) == 6
    assert min(speeds(report)) >= 1.0  # one second a step; with the validation in it, it would be a thousand


# ── the card, the folder, the device ─────────────────────────────────────────────────────────────────────────────────


def test_card_names_the_beam_that_was_used(copy_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beams: list[int] = []
    sound = Transduce.answer

    def answer(self: Transduce, model: Model, items: Any, wish: Wish, numbers: Any) -> Any:
        beams.append(wish.beam)
        return sound(self, model, items, wish, numbers)

    monkeypatch.setattr(Transduce, "answer", answer)
    train(
        settings("search.beam=3", "train.steps=2", "train.warmup=1"), str(copy_file), None, tmp_path, Call(quiet=True)
    )
    assert "decoded with beam 3;" in (tmp_path / "README.md").read_text(encoding="utf-8")
    assert beams == [1] * (len(beams) - 1) + [3]  # validations are greedy


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("name", ["README.md", "config.toml", "checkpoints"])
def test_what_no_run_of_ours_wrote_is_never_touched(copy_file: Path, tmp_path: Path, name: str, force: bool) -> None:
    kept = tmp_path / name / "kept.txt" if name == "checkpoints" else tmp_path / name
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match=f"holds {name}, and no run of regard wrote it; choose another -o"):
        train(settings(), str(copy_file), None, tmp_path, Call(force=force, quiet=True))
    assert kept.read_text(encoding="utf-8") == "mine"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_foreign_manifest_is_no_sign_of_a_run_of_ours(copy_file: Path, tmp_path: Path) -> None:
    files = {"README.md": "# My page\n", "manifest.json": '{"name": "My page", "start_url": "/"}'}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="no run of regard wrote it"):
        train(settings("train.steps=1", "train.warmup=0"), str(copy_file), None, tmp_path, Call(force=True, quiet=True))
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == files


def test_other_files_beside_a_run_outlive_a_forced_one(copy_file: Path, tmp_path: Path) -> None:
    words = ["train.steps=1", "train.warmup=0"]
    train(settings(*words), str(copy_file), None, tmp_path, Call(quiet=True))
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    train(settings(*words, "train.seed=1"), str(copy_file), None, tmp_path, Call(force=True, quiet=True))
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert "seed 1" in (tmp_path / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["meta", "mps"])
def test_devices_that_can_not_train_are_refused(copy_file: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=rf"train\.device: '{name}' is not supported here"):
        device(config.Train(device=name))
    with pytest.raises(ConfigError, match=name):
        train(settings(f"train.device={name}"), str(copy_file), None, tmp_path / "m", Call(quiet=True))
    assert not (tmp_path / "m").exists()


# ── the data ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_source_and_target_of_one_column_are_refused(copy_file: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"data\.target: the column 1 is read as a source too"):
        prepare(settings('data.source=["1"]', 'data.target="1"'), str(copy_file), None, tmp_path / "tokens")


def test_one_column_by_name_and_by_position_is_refused_too(tmp_path: Path) -> None:
    rows = "".join(f"{word}\t{word[::-1]}\n" for word in ("ab", "bc", "cd", "da", "ac", "bd"))
    (tmp_path / "x.tsv").write_text("lemma\tform\n" + rows, encoding="utf-8")
    with pytest.raises(ConfigError, match="is read as a source too"):
        prepare(
            settings('data.source=["lemma"]', 'data.target="1"'), str(tmp_path / "x.tsv"), None, tmp_path / "tokens"
        )


@pytest.fixture
def parallel_captions(tmp_path: Path) -> str:
    """Pictures and what is said of them, in two files of a folder that is not the one we stand in."""
    (tmp_path / "sub").mkdir()
    builtin.write("captions", 12, tmp_path / "sub" / "c.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "sub" / "c.jsonl").read_text(encoding="utf-8").splitlines()]
    for name in ("image", "text"):
        (tmp_path / "sub" / f"c.{name}").write_text("".join(f"{row[name]}\n" for row in rows), encoding="utf-8")
    return f"{tmp_path / 'sub' / 'c.image'},{tmp_path / 'sub' / 'c.text'}"


def test_captions_in_parallel_files_find_their_pictures(
    parallel_captions: str, small_model: Callable[..., Any], tmp_path: Path
) -> None:
    data = prepare(small_model("caption", "data.max_target=64").config, parallel_captions, None, tmp_path / "tokens")
    items = [*data.train.items, *data.valid.items]
    assert len(items) == 12
    assert all(item.picture is not None for item in items)
    assert len(small_model("caption", "data.max_target=64").score(parallel_captions).outputs) == 12


def test_a_log_and_checkpoints_of_others_are_no_run_of_ours(copy_file: Path, tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    kept = tmp_path / "checkpoints" / "precious.pt"
    kept.write_text("mine", encoding="utf-8")
    (tmp_path / "metrics.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="no run of regard wrote it"):
        train(settings(), str(copy_file), None, tmp_path, Call(force=True, quiet=True))
    assert kept.read_text(encoding="utf-8") == "mine"


def test_an_unknown_metric_is_refused_before_the_data_are_read() -> None:
    with pytest.raises(ConfigError, match=r"train\.metric: foo"):
        train(settings("train.metric=foo"), "no-such-file.tsv", call=Call(quiet=True))
