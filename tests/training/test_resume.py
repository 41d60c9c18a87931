"""Runs that are killed or interrupted: resumed they end as if nothing had happened, or it is said why they can not."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import regard
from regard.errors import DivergedError, FolderError, Interrupted, MissingError, RegardError, UsageError
from regard.models.model import Model
from regard.tasks.transduce import Transduce
from regard.training import checkpoint, device, home, loop, run
from regard.training.checkpoint import read_standing
from regard.training.home import finished
from regard.training.run import Call, resume, train

pytestmark = pytest.mark.no_shapes

BOUNDARIES = ["temp opened", "half written", "before fsync", "before rename", "after rename", "during rotation"]

Same = Callable[[Path, Path], None]


def steps(folder: Path) -> list[int]:
    """Of the checkpoints that stand in a run's folder."""
    return sorted(int(path.name.removeprefix("step-")) for path in (folder / "checkpoints").glob("step-*"))


# ── killed ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", BOUNDARIES)
def test_killed_inside_a_save_and_resumed_is_the_same(
    runs: Any, unbroken: Path, same_result: Same, tmp_path: Path, name: str
) -> None:
    """Twice: in an early save of the run, and again in a save of the resumed one."""
    files = 6 if name in ("temp opened", "half written", "before fsync") else 1
    runs.train_until(tmp_path / "m", name, 2 * files)
    assert len(steps(tmp_path / "m")) >= 1  # at every instant there is one
    runs.resume_until(tmp_path / "m", name, files)
    resume(tmp_path / "m", quiet=True)
    same_result(tmp_path / "m", unbroken)
    assert not list((tmp_path / "m" / "checkpoints").glob(".*"))
    assert steps(tmp_path / "m") == steps(unbroken) == [9, 12]


@pytest.mark.parametrize("step", [1, 3, 4, 7, 12])
def test_killed_after_any_step_and_resumed_is_the_same(
    runs: Any, unbroken: Path, same_result: Same, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    told = run.Report.step

    def report(self: Any, at: int, *rest: Any) -> None:
        told(self, at, *rest)
        if at == step:
            os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(run.Report, "step", report)
        assert runs.train_in_child(tmp_path / "m") == -signal.SIGKILL
    resume(tmp_path / "m", quiet=True)
    same_result(tmp_path / "m", unbroken)


@pytest.mark.parametrize("moment", ["validation", "mean", "last scoring", "saving"])
def test_killed_after_the_last_step_and_resumed_is_the_same(
    runs: Any, unbroken: Path, same_result: Same, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    sound, calls = Transduce.evaluate, []

    def evaluate(self: Transduce, *rest: Any, intervals: bool = True) -> Any:
        calls.append(intervals)
        if len(calls) == {"validation": 3, "mean": 4, "last scoring": 5, "saving": 0}[moment]:
            os.kill(os.getpid(), signal.SIGKILL)
        return sound(self, *rest, intervals=intervals)

    with monkeypatch.context() as patch:
        patch.setattr(Transduce, "evaluate", evaluate)
        if moment == "saving":
            patch.setattr(run.Report, "curves", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        assert runs.train_in_child(tmp_path / "m") == -signal.SIGKILL
    assert not finished(tmp_path / "m")
    resume(tmp_path / "m", quiet=True)
    same_result(tmp_path / "m", unbroken)


def test_killed_before_the_first_checkpoint_starts_from_the_beginning(
    runs: Any, unbroken: Path, same_result: Same, tmp_path: Path
) -> None:
    runs.train_until(tmp_path / "m", "temp opened", 1)
    assert steps(tmp_path / "m") == []
    resume(tmp_path / "m", quiet=True)
    same_result(tmp_path / "m", unbroken)


def dies_at_the_rename(patch: pytest.MonkeyPatch, path: Path) -> None:
    """When this file has been written beside its place, and not yet taken it."""
    sound = os.replace

    def replace(beside: Path, place: Path) -> None:
        if Path(place) == path:
            os.kill(os.getpid(), signal.SIGKILL)
        sound(beside, place)

    patch.setattr(os, "replace", replace)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (".tokens.new/data.json", r"no run\.json"),
        (".tokens.new/manifest.json", r"no run\.json"),
        ("run.json", r"no run\.json"),
        ("config.toml", "died before its first step; begin it again: regard train"),
        ("tokenizer.json", "died before its first step; begin it again: regard train"),
    ],
)
def test_killed_before_all_was_laid_out_it_is_begun_again(
    runs: Any, unbroken: Path, same_result: Same, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    with monkeypatch.context() as patch:
        dies_at_the_rename(patch, tmp_path / "m" / name)
        assert runs.train_in_child(tmp_path / "m") == -signal.SIGKILL
    with pytest.raises(FolderError, match=said):
        resume(tmp_path / "m", quiet=True)
    runs.train(tmp_path / "m")  # without force: nothing is there that could be lost
    same_result(tmp_path / "m", unbroken)


@pytest.mark.parametrize("name", ["model.safetensors", "curves.svg", "manifest.json"])
def test_killed_while_files_are_written_nothing_stale_outlives_the_next_start(
    runs: Any, unbroken: Path, same_result: Same, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with monkeypatch.context() as patch:
        dies_at_the_rename(patch, tmp_path / "m" / name)
        assert runs.train_in_child(tmp_path / "m") == -signal.SIGKILL
    assert [path.name for path in (tmp_path / "m").glob(".*.new")] == [f".{name}.new"]
    with home.occupied(tmp_path / "m"):
        assert not list((tmp_path / "m").glob(".*.new"))
    resume(tmp_path / "m", quiet=True)
    same_result(tmp_path / "m", unbroken)


def test_a_drill_can_name_the_boundary_in_the_environment(
    runs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(checkpoint.KILL_AT, "after rename:2")
    assert runs.train_in_child(tmp_path / "m") == -signal.SIGKILL
    assert steps(tmp_path / "m") == [3, 6]


def test_a_checkpoint_by_the_clock_changes_no_result(
    runs: Any, unbroken: Path, same_result: Same, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[int] = []
    sound = run.Checkpoints.save

    def save(self: Any, step: int, make: Any) -> None:
        self.saved_at = 0.0  # so that the next step finds that five minutes have passed
        saved.append(step)
        sound(self, step, make)
        self.saved_at = 0.0

    monkeypatch.setattr(run.Checkpoints, "save", save)
    runs.train(tmp_path / "m")
    assert set(range(4, 13)) <= set(saved)  # 3 is the first by steps; from there on the clock
    same_result(tmp_path / "m", unbroken)


# ── signals ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def send_at(monkeypatch: pytest.MonkeyPatch, number: int, step: int) -> None:
    """A signal that comes while this step is computed."""
    sound = Transduce.loss
    calls: list[int] = []

    def loss(self: Transduce, *rest: Any) -> Any:
        calls.append(1)
        if len(calls) == 2 * step:  # two batches an update
            os.kill(os.getpid(), number)
        return sound(self, *rest)

    monkeypatch.setattr(Transduce, "loss", loss)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGUSR1, 138)])
def test_a_signal_saves_after_its_step_and_none_is_lost(
    runs: Any,
    unbroken: Path,
    same_result: Same,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    code: int,
) -> None:
    folder = tmp_path / "m"
    with monkeypatch.context() as patch:
        send_at(patch, number, 5)
        with pytest.raises(Interrupted, match=f"interrupted by {number.name} at step 5; regard resume {folder}") as it:
            runs.train(folder)
    assert it.value.exit_code == code
    assert steps(folder) == [3, 5]
    assert read_standing(folder / "checkpoints" / "step-00000005" / "state.json").step == 5
    resume(folder, quiet=True)
    same_result(folder, unbroken)


@pytest.mark.parametrize("call", [1, 2, 3, 4, 5])
def test_a_signal_breaks_off_a_validation_which_is_then_done_anew(
    runs: Any, unbroken: Path, same_result: Same, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """Of steps 4, 8 and 12, of the mean, and of all examples at the end."""
    sound, calls = Transduce.forced, []

    def forced(self: Transduce, *rest: Any) -> Any:
        calls.append(1)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(30)
        return sound(self, *rest)

    started = time.monotonic()
    with monkeypatch.context() as patch:
        patch.setattr(Transduce, "forced", forced)
        with pytest.raises(Interrupted, match=f"at step {min(4 * call, 12)}; regard resume"):
            runs.train(tmp_path / "m")
    assert time.monotonic() - started < 20
    assert steps(tmp_path / "m")[-1] == min(4 * call, 12)
    resume(tmp_path / "m", quiet=True)
    same_result(tmp_path / "m", unbroken)


def test_a_signal_right_after_a_validation_does_not_make_it_count_twice(
    runs: Any, unbroken: Path, same_result: Same, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound, calls = loop.Report.validated, []

    def validated(self: Any, *rest: Any) -> None:
        sound(self, *rest)
        calls.append(1)
        if len(calls) == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(loop.Report, "validated", validated)
        with pytest.raises(Interrupted, match="at step 5"):
            runs.train(tmp_path / "m")
    resume(tmp_path / "m", quiet=True)
    same_result(tmp_path / "m", unbroken)


def test_interrupted_again_and_again(
    runs: Any, unbroken: Path, same_result: Same, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        send_at(patch, signal.SIGTERM, 1)
        with pytest.raises(Interrupted):
            runs.train(tmp_path / "m")
    for _ in range(20):
        if finished(tmp_path / "m"):
            break
        with monkeypatch.context() as patch:
            send_at(patch, signal.SIGTERM, 2)
            try:
                resume(tmp_path / "m", quiet=True)
            except Interrupted:
                continue
    same_result(tmp_path / "m", unbroken)


def test_the_best_so_far_can_be_run_while_the_run_waits(
    runs: Any, unbroken: Path, same_result: Same, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "m"
    with monkeypatch.context() as patch:
        send_at(patch, signal.SIGTERM, 2)
        with pytest.raises(Interrupted):
            runs.train(folder)
    with pytest.raises(FolderError, match=rf"its training has not finished; regard resume {folder} goes on"):
        regard.load(folder)  # there is no best yet
    with monkeypatch.context() as patch:
        send_at(patch, signal.SIGTERM, 4)
        with pytest.raises(Interrupted):
            resume(folder, quiet=True)
    assert isinstance(regard.load(folder)("abc"), str)
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "interrupted by SIGTERM at step 6, 12 steps being planned; not scored" in card
    assert not finished(folder)
    with pytest.raises(UsageError, match=rf"has not finished; regard resume {folder} goes on with it"):
        runs.train(folder)
    resume(folder, quiet=True)
    same_result(folder, unbroken)
    assert "not scored" not in (folder / "README.md").read_text(encoding="utf-8")


def test_a_signal_while_the_data_are_read(runs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(30)

    monkeypatch.setattr(run, "prepare", prepare)
    with pytest.raises(Interrupted, match="before the first step; nothing is trained yet") as caught:
        runs.train(tmp_path / "m")
    assert caught.value.exit_code == 143
    assert list(tmp_path.iterdir()) == []


def test_without_a_folder_nothing_is_saved(
    copy_file: Path, runs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_at(monkeypatch, signal.SIGTERM, 2)
    with pytest.raises(Interrupted, match="at step 2; nothing is saved: no folder was named"):
        train(runs.config(), str(copy_file), call=Call(quiet=True))


def start(copy_file: Path, out: Path) -> "subprocess.Popen[str]":
    """A run of many steps as a command, under way when its first step is told."""
    words = ["encoder.width=16", "decoder.width=16", "train.tokens_per_batch=64", "train.steps=100000",
             "train.checkpoint_steps=1000", "train.validate_steps=100000"]  # fmt: skip
    settings = [part for word in words for part in ("--set", word)]
    command = [sys.executable, "-m", "regard", "train", str(copy_file), "-o", str(out), *settings]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("step "):
            return process
    raise AssertionError(f"it ended by itself: {process.wait()}")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_the_command(copy_file: Path, tmp_path: Path, number: signal.Signals, code: int) -> None:
    process = start(copy_file, tmp_path / "m")
    process.send_signal(number)
    out, err = process.communicate(timeout=60)  # the drill holds it to ten seconds on a machine of its own
    assert process.returncode == code
    assert out == ""
    step = re.search(rf"interrupted by {number.name} at step (\d+); regard resume {tmp_path / 'm'} goes on", err)
    assert step, err
    assert "Traceback" not in err
    assert steps(tmp_path / "m")[-1] == int(step[1])


# ── what is refused, what is told ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def stopped(runs: Any, tmp_path: Path, copy_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that died after its second checkpoint, made from a data file of its own."""
    shutil.copy(copy_file, tmp_path / "data.tsv")
    type(runs)(str(tmp_path / "data.tsv")).train_until(tmp_path / "m", "after rename", 2)
    return tmp_path / "m"


def test_all_that_has_changed_is_listed(stopped: Path, tmp_path: Path) -> None:
    for name in ("data.tsv", "m/config.toml", "m/tokenizer.json"):
        with open(tmp_path / name, "a", encoding="utf-8") as file:
            file.write("ab\tba\n")
    (stopped / ".lock").unlink()  # of the one that died
    before = {path: path.stat().st_mtime_ns for path in stopped.rglob("*") if path.is_file()}
    with pytest.raises(UsageError) as caught:
        resume(stopped, quiet=True)
    message = str(caught.value)
    assert len(message.splitlines()) <= 3
    for name in ("data.tsv", "config.toml", "tokenizer.json"):
        assert name in message
    assert f"regard train … -o {stopped} --force" in message
    assert {path: path.stat().st_mtime_ns for path in stopped.rglob("*") if path.is_file()} == before


def test_another_architecture_is_refused(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "outline", lambda shapes: home.outline({**shapes, "more": (1,)}))
    with pytest.raises(UsageError, match="builds a model of another shape"):
        resume(stopped, quiet=True)


def test_a_missing_data_file_is_no_obstacle(stopped: Path, tmp_path: Path, unbroken: Path, same_result: Same) -> None:
    (tmp_path / "data.tsv").unlink()
    with pytest.warns(UserWarning, match=r"data\.tsv: no longer there; its tokens are in"):
        resume(stopped, quiet=True)
    same_result(stopped, unbroken)


def test_other_versions_are_a_warning(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = home.versions()
    monkeypatch.setattr(home, "versions", lambda: {**now, "torch": "9.9"})
    with pytest.warns(UserWarning, match=r"started with torch .*, now 9\.9: the result may differ in its last bits"):
        resume(stopped, quiet=True)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("tag", "the numbers equal but for rounding"),
        ("embed", "the numbers are not: the task embed tells a text apart"),
    ],
)
def test_what_another_number_of_processes_changes(stopped: Path, task: str, said: str) -> None:
    start = replace(home.read_start(stopped), world=2)
    scene: Any = SimpleNamespace(folder=stopped, team=SimpleNamespace(share=SimpleNamespace(world=1)))
    with pytest.warns(UserWarning, match=rf"started with 2 process\(es\), now 1: the samples are the same, {said}"):
        run.warn_of_differences(start, scene, task)


def test_a_finished_run_is_left_alone(unbroken: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in unbroken.rglob("*")}
    command = [sys.executable, "-m", "regard", "resume", str(unbroken)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert "its training has finished; there is nothing to resume" in done.stderr
    assert {path: path.stat().st_mtime_ns for path in unbroken.rglob("*")} == before
    assert isinstance(regard.resume(unbroken)("abc"), str)


def test_what_is_no_run_can_not_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"no run to resume here \(no run\.json\); regard train"):
        resume(tmp_path)
    with pytest.raises(MissingError, match="no such folder"):
        resume(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


def test_numbers_and_threads_are_those_of_the_start(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those that `auto` would choose on the machine of today."""
    used: list[tuple[str, int]] = []
    sound = run.loop

    def listening(data: Any, model: Model, crew: Any, begin: Any) -> Any:
        used.append((crew.numbers, torch.get_num_threads()))
        return sound(data, model, crew, begin)

    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    monkeypatch.setattr(device, "LARGE", 0)  # today bf16 would be chosen, even for a small model
    monkeypatch.setattr(run, "loop", listening)
    resume(stopped, quiet=True)
    assert used == [("fp32", 1)]


def test_a_failure_of_steps_is_remembered_and_has_its_own_exit_code(
    runs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From step 7 on nothing is a number; interrupted in the row of failures, the count goes on."""
    sound = loop.Learner.gradients

    def gradients(self: Any, step: int, *rest: Any) -> Any:
        found = sound(self, step, *rest)
        if step == 9:
            os.kill(os.getpid(), signal.SIGTERM)
        return type(found)(float("nan"), found.count) if step > 6 else found

    monkeypatch.setattr(loop.Learner, "gradients", gradients)
    words = ["train.steps=40", "train.validate_steps=40"]
    with pytest.raises(Interrupted):
        runs.train(tmp_path / "m", *words)
    assert read_standing(tmp_path / "m" / "checkpoints" / "step-00000009" / "state.json").bad == 3
    with pytest.raises(DivergedError, match=r"step 16: 10 updates in a row were not finite \(learning rate") as caught:
        resume(tmp_path / "m", quiet=True)
    assert caught.value.exit_code == 70
    assert steps(tmp_path / "m") == [6, 9]  # none was written while steps failed, but for the signal


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_minutes_are_counted_across_a_resume(runs: Any, tmp_path: Path) -> None:
    folder = tmp_path / "timed"
    runs.train_until(folder, "after rename", 2, "train.minutes=5")
    assert 0 < read_standing(folder / "checkpoints" / "step-00000006" / "state.json").seconds < 60
    change_state(folder, 6, seconds=301.0)
    resume(folder, quiet=True)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert lines[-1]["step"] == 6  # validated where it stood, and not one step more
    assert "the time is up" in (folder / "README.md").read_text(encoding="utf-8")


def change_state(folder: Path, step: int, **values: Any) -> None:
    """As a careful forger would do it."""
    place = folder / "checkpoints" / f"step-{step:08}"
    state = json.loads((place / "state.json").read_bytes()) | values
    (place / "state.json").write_bytes(json.dumps(state).encode())
    manifest = json.loads((place / "manifest.json").read_bytes())
    manifest["files"]["state.json"] = checkpoint.listing((place / "state.json").read_bytes())
    (place / "manifest.json").write_bytes(json.dumps(manifest).encode())


def test_time_is_kept_back_for_the_last_scoring(runs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A validation of five examples takes ten seconds; there are sixteen, and the mean is tried too.

    The last validation is one, and another may fall due right before the time is up.
    """
    heard: list[float] = []
    now = [0.0]
    sound = Transduce.evaluate

    def evaluate(self: Transduce, *rest: Any, intervals: bool = True) -> Any:
        now[0] += 10.0
        heard.append(stops[0].ending)
        return sound(self, *rest, intervals=intervals)

    stops: list[Any] = []
    crew_of = run.crew_of
    monkeypatch.setattr(run, "crew_of", lambda *rest: (stops.append(rest[2].stop), crew_of(*rest))[1])
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(Transduce, "evaluate", evaluate)
    runs.train(tmp_path / "m")
    assert heard[0] == 0.0
    assert heard[1] == pytest.approx(10.0 * (3 + 16 / 5))


# ── the log ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_damaged_log_is_told_and_the_run_goes_on(stopped: Path, unbroken: Path) -> None:
    content = (stopped / "metrics.jsonl").read_bytes()
    (stopped / "metrics.jsonl").write_bytes(content.replace(b'"loss"', b'"lost"', 1))
    with pytest.warns(UserWarning, match=r"metrics\.jsonl: not what this run wrote: damaged or changed by hand"):
        resume(stopped, quiet=True)
    assert (stopped / "model.safetensors").read_bytes() == (unbroken / "model.safetensors").read_bytes()


# ── the same elsewhere ───────────────────────────────────────────────────────────────────────────────────────────────


PLAIN = ("--preset", "rnn-attention", "--tokens", "characters")  # as the runs that are made without the command


def test_from_another_folder_locale_and_hash_seed(runs: Any, unbroken: Path, same_result: Same, tmp_path: Path) -> None:
    settings = [part for word in runs.words for part in ("--set", word)]
    command = [sys.executable, "-m", "regard", "train", runs.data, "-o", "elsewhere", *PLAIN, *settings]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONHASHSEED": "4711", "OMP_NUM_THREADS": "1", "TZ": "Asia/Tokyo"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    same_result(tmp_path / "elsewhere", unbroken)


# ── full disks ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("trouble", ["full", "removed"])
def test_a_disk_that_refuses_ends_the_run_with_one_line(
    runs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    sound, saves = checkpoint.write_files, []

    def write_files(folder: Path, made: Any) -> None:
        saves.append(made.standing.step)
        if len(saves) == 2 and trouble == "full":
            raise OSError(28, "No space left on device")
        if len(saves) == 2:
            shutil.rmtree(folder.parent)
        sound(folder, made)

    monkeypatch.setattr(checkpoint, "write_files", write_files)
    with pytest.raises(RegardError) as caught:
        runs.train(tmp_path / "m")
    assert caught.value.exit_code == 1
    assert "step-00000006: can not be written:" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    if trouble == "full":
        assert "the checkpoint of step 3 is kept" in str(caught.value)
        assert [path.name for path in (tmp_path / "m" / "checkpoints").iterdir()] == ["step-00000003"]
