"""Several processes: the gradients of one, decided together, saved once, and in whatever number they are resumed."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from regard.errors import DataError, Interrupted, UsageError
from regard.models.build import build
from regard.tasks.transduce import Transduce
from regard.training import loop, run, stream
from regard.training.home import finished
from regard.training.prepare import prepare
from regard.training.run import resume
from regard.training.stream import updates
from regard.training.team import Team, gathered, processes, refuse_many
from regard.training.update import Learner

pytestmark = pytest.mark.no_shapes

PLAIN = ["decoder.dropout=0", "train.average=0"]  # so that one process and two compute the same

InATeam = Callable[..., list[int]]


def entries(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def losses(folder: Path) -> list[float]:
    return [entry["loss"] for entry in entries(folder) if "loss" in entry]


def test_alone_nothing_is_sent() -> None:
    with gathered() as team:
        assert team == Team()
        assert team.first
        assert team.sum([1.0, 2.5]) == [1.0, 2.5]
        assert (team.told(True), team.told(3)) == (True, 3)
        module = torch.nn.Linear(1, 1)
        assert team.joined(module) is module


def test_what_starts_runs_of_its_own_is_no_team(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    refuse_many("compare")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert processes() == 2
    with pytest.raises(UsageError, match=r"compare trains one run after the other.*without torchrun"):
        refuse_many("compare")


# ── the same numbers ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("words", [[], ["train.accumulate=1"], ["train.accumulate=3", "train.tokens_per_batch=4"]])
def test_gradients_are_those_of_one_process(runs: Any, in_a_team: InATeam, tmp_path: Path, words: list[str]) -> None:
    """Also where a batch has fewer rows than there are processes."""
    c = runs.config(*PLAIN, *words)

    def keep(team: Team, rank: int) -> None:
        data = prepare(c, runs.data, None, tmp_path / f"tokens {team.share}")
        model = build(c, data.vocabulary.source.size, data.vocabulary.target.size)
        learner = Learner(data.task, model, c.train, team, torch.device("cpu"), "fp32")
        batches, _ = next(updates(data.task, data.train, c.train, share=team.share))
        sums = learner.gradients(1, batches)
        total, count = team.sum([sums.total, sums.count])
        found = {name: weight.grad / (count / team.share.world) for name, weight in model.named_parameters()}
        save_file({**found, "sums": torch.tensor([total, count])}, tmp_path / f"{team.share.world}-{rank}")

    def gradients(rank: int) -> None:
        with gathered() as team:
            keep(team, rank)  # a learner that outlives its team may wait for threads of it for ever, as it goes

    gradients(0)
    assert in_a_team(gradients) == [0, 0]
    alone = load_file(tmp_path / "1-0")
    for rank in (0, 1):
        for name, gradient in load_file(tmp_path / f"2-{rank}").items():
            atol = 1e-6 if name != "sums" else 1e-3
            torch.testing.assert_close(gradient, alone[name], rtol=1e-6, atol=atol)
    assert float(alone["sums"][1]) > 0


def test_two_one_two_processes_see_the_same_samples(
    runs: Any, in_a_team: InATeam, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two make four steps, one goes on for four, two end it: losses as of one that did all."""
    sound = stream.batch

    def batch(task: Any, items: Any, numbers: list[int], epoch: int, share: Any) -> Any:
        with open(tmp_path / "seen.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps([epoch, sorted(numbers)]) + "\n")
        return sound(task, items, numbers, epoch, share)

    monkeypatch.setattr(stream, "batch", batch)
    monkeypatch.setattr(stream, "ahead", lambda updates: updates)  # what is made ahead is not yet seen
    runs.train(tmp_path / "alone", *PLAIN)
    alone = (tmp_path / "seen.jsonl").read_text(encoding="utf-8").splitlines()
    (tmp_path / "seen.jsonl").unlink()
    with monkeypatch.context() as patch:
        stop_at(patch, 4)
        assert runs.train_together(tmp_path / "m", *PLAIN) == [143, 143]
    with monkeypatch.context() as patch:
        stop_at(patch, 8)
        fewer = pytest.warns(UserWarning, match=r"started with 2 process\(es\), now 1: the samples are the same")
        with fewer, pytest.raises(Interrupted):
            resume(tmp_path / "m", quiet=True)
    assert runs.resume_together(tmp_path / "m") == [0, 0]
    assert losses(tmp_path / "m") == pytest.approx(losses(tmp_path / "alone"), abs=1e-5)
    seen = (tmp_path / "seen.jsonl").read_text(encoding="utf-8").splitlines()
    assert sorted(set(seen)) == sorted(set(alone))
    assert len(seen) == len(alone) // 3 * 5  # two processes look at each batch of theirs


def stop_at(monkeypatch: pytest.MonkeyPatch, step: int, ranks: tuple[int, ...] = (0, 1)) -> None:
    """A signal that comes to some of the processes in this step."""
    sound = loop.Learner.gradients

    def gradients(self: Any, at: int, *rest: Any) -> Any:
        if at == step and self.team.share.rank in ranks:
            os.kill(os.getpid(), signal.SIGTERM)
        return sound(self, at, *rest)

    monkeypatch.setattr(loop.Learner, "gradients", gradients)


@pytest.fixture(scope="module")
def unbroken_team(runs: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of two processes that nothing happened to."""
    folder = tmp_path_factory.mktemp("team") / "m"
    assert runs.train_together(folder) == [0, 0]
    return folder


# ── decided together ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ranks", [(0,), (1,), (0, 1)])
def test_a_signal_to_any_of_them_stops_all_and_is_saved_once(
    runs: Any,
    unbroken_team: Path,
    same_result: Callable[[Path, Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ranks: tuple[int, ...],
) -> None:
    with monkeypatch.context() as patch:
        stop_at(patch, 5, ranks)
        assert runs.train_together(tmp_path / "m") == [143, 143]
    names = sorted(path.name for path in (tmp_path / "m" / "checkpoints").iterdir())
    assert names == ["step-00000003", "step-00000005"]
    assert runs.resume_together(tmp_path / "m") == [0, 0]
    same_result(tmp_path / "m", unbroken_team)


def test_a_validation_that_is_broken_off_ends_all(
    runs: Any,
    unbroken_team: Path,
    same_result: Callable[[Path, Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def forced(self: Transduce, *rest: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(30)

    with monkeypatch.context() as patch:
        patch.setattr(Transduce, "forced", forced)
        assert runs.train_together(tmp_path / "m") == [143, 143]
    assert runs.resume_together(tmp_path / "m") == [0, 0]
    same_result(tmp_path / "m", unbroken_team)


def test_a_step_that_is_no_number_in_one_is_skipped_by_all(
    runs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = loop.Learner.gradients

    def gradients(self: Any, step: int, *rest: Any) -> Any:
        found = sound(self, step, *rest)
        return type(found)(float("nan"), found.count) if step == 3 and self.team.share.rank == 1 else found

    monkeypatch.setattr(loop.Learner, "gradients", gradients)
    assert runs.train_together(tmp_path / "m", *PLAIN) == [0, 0]
    assert [entry["step"] for entry in entries(tmp_path / "m") if entry.get("loss", 0.0) is None] == [3]


def test_repeated_failure_ends_all_with_its_code(runs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = loop.Learner.gradients

    def gradients(self: Any, step: int, *rest: Any) -> Any:
        found = sound(self, step, *rest)
        return type(found)(float("inf"), found.count) if self.team.share.rank == 1 else found

    monkeypatch.setattr(loop.Learner, "gradients", gradients)
    assert runs.train_together(tmp_path / "m", *PLAIN, "train.validate_steps=100") == [70, 70]


def test_memory_that_does_not_suffice_in_one(runs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs.train(tmp_path / "alone", *PLAIN)
    sound = Transduce.loss

    def loss(self: Transduce, model: Any, batch: Any, *rest: Any) -> Any:
        if os.environ.get("RANK") == "1" and len(batch.label_BT) > 2:
            raise MemoryError
        return sound(self, model, batch, *rest)

    monkeypatch.setattr(Transduce, "loss", loss)
    assert runs.train_together(tmp_path / "m", *PLAIN) == [0, 0]
    assert losses(tmp_path / "m") == pytest.approx(losses(tmp_path / "alone"), abs=1e-5)


@pytest.mark.parametrize("moment", ["reading", "training"])
def test_the_others_do_not_wait_for_one_that_is_gone(
    runs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    if moment == "reading":
        monkeypatch.setattr(run, "prepare", lambda *_: (_ for _ in ()).throw(DataError("can not be read")))
        assert runs.train_together(tmp_path / "m") == [65, 1]
        return
    sound = loop.Learner.gradients

    def gradients(self: Any, step: int, *rest: Any) -> Any:
        if step == 5 and self.team.share.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return sound(self, step, *rest)

    monkeypatch.setattr(loop.Learner, "gradients", gradients)
    assert runs.train_together(tmp_path / "m") == [1, -signal.SIGKILL]


# ── under the launcher ───────────────────────────────────────────────────────────────────────────────────────────────


def launch(runs: Any, folder: Path, *options: str, words: tuple[str, ...] = ()) -> "subprocess.Popen[str]":
    """torchrun with two processes."""
    settings = [part for word in (*runs.words, *words) for part in ("--set", word)]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *options, "-m",
               "regard", "train", runs.data, "-o", str(folder), "--preset", "rnn-attention", "--tokens", "characters",
               *settings]  # fmt: skip
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )


def test_a_signal_to_the_launcher_saves_once_and_hangs_nowhere(runs: Any, tmp_path: Path) -> None:
    process = launch(runs, tmp_path / "m", words=("train.steps=100000", "train.validate_steps=100000"))
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("step "):
            break
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    told = re.findall(r"interrupted by SIGTERM at step (\d+); regard resume", out)
    assert len(set(told)) == 1, out
    assert (tmp_path / "m" / "checkpoints" / f"step-{int(told[0]):08}" / "manifest.json").is_file()


def test_a_rank_that_is_killed_is_started_anew_and_the_end_is_the_same(
    runs: Any, unbroken_team: Path, same_result: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    """The first process dies inside its third save; the launcher starts all again, and they go on by themselves."""
    os.environ["REGARD_KILL_AT"] = "before rename:3"
    try:
        process = launch(runs, tmp_path / "m", "--max-restarts", "9")
        out, _ = process.communicate(timeout=240)
    finally:
        del os.environ["REGARD_KILL_AT"]
    assert process.returncode == 0, out
    assert "goes on from step 6" in out
    assert finished(tmp_path / "m")
    same_result(tmp_path / "m", unbroken_team)
