"""The drills in their short form: a few kills, mutations and signals, each able to find what the long ones look for."""

import random
import shutil
import signal
from pathlib import Path

import pytest

from tests.drills import corrupt, kill, runs, stop
from tests.drills.corrupt import Answer
from tests.drills.kill import BOUNDARIES, Kill
from tests.drills.lives import End
from tests.drills.runs import FOLDER, Recipe, Timeline

# ── killed ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("names", [BOUNDARIES[:3], BOUNDARIES[3:]])
def test_killed_in_saves_and_at_any_moment(
    recipe: Recipe, place: Path, tmp_path: Path, timeline: Timeline, names: tuple[str, ...]
) -> None:
    (tmp_path / "unbroken").symlink_to(place / "unbroken")
    step, delay = timeline.moment(random.Random(names[0]).random() / 3)
    left = [Kill(step, delay), *(Kill(boundary=name) for name in names)]
    found = kill.drill(recipe, tmp_path, left)
    assert found.wrong == []
    assert found.kills == 4
    assert dict(found.named) == {"": 0, **dict.fromkeys(names, 1)}
    assert found.again <= recipe.save


def test_the_moments_are_drawn_from_the_seed_alone() -> None:
    line = Timeline(tuple((step, step / 10) for step in range(1, 121)), 14.0)
    plans = [kill.plan(random.Random(seed), 25, 3, line) for seed in (0, 0, 1)]
    assert plans[0] == plans[1] != plans[2]
    for each in plans:
        assert len(each) == 25
        assert {kill.boundary for kill in each} == {"", *BOUNDARIES}
        assert sum(bool(kill.boundary) for kill in each) == 8
        assert sum(kill.spawn for kill in each) == 3
        assert [kill.step for kill in each] == sorted(kill.step for kill in each)


def test_a_moment_is_a_step_and_some_time_after_it() -> None:
    line = Timeline(((1, 1.0), (2, 1.5), (3, 3.0)), 4.0)
    assert line.moment(0.1) == (0, pytest.approx(0.4))
    assert line.moment(0.5) == (2, pytest.approx(0.5))
    assert line.moment(0.99) == (3, pytest.approx(0.96))


def test_the_drill_sees_what_it_looks_for(recipe: Recipe, reference: Path, tmp_path: Path) -> None:
    """The smallest change of any file that counts, and whatever was left over."""
    last = f"checkpoints/step-{recipe.steps:08}"
    assert runs.differences(reference, reference) == []
    for name in ("model.safetensors", "metrics.jsonl", "run.json", f"{last}/optimizer.safetensors"):
        folder = copied(reference, tmp_path)
        content = bytearray((folder / name).read_bytes())
        content[-1] ^= 1
        (folder / name).write_bytes(content)
        assert len(runs.differences(folder, reference)) == 1, name
    folder = copied(reference, tmp_path)
    state = (folder / last / "state.json").read_bytes()
    (folder / last / "state.json").write_bytes(state.replace(b'"since_best": ', b'"since_best": 1'))
    assert runs.differences(folder, reference) == [f"step-{recipe.steps:08}/state.json: since_best"]
    assert len(runs.broken_checkpoints(folder, runs.shapes(reference))) == 1
    (folder / ".model.safetensors.new").touch()
    (folder / "checkpoints" / ".step-00000010.old").mkdir()
    assert len(runs.differences(folder, reference)) == 3


def copied(reference: Path, tmp_path: Path) -> Path:
    shutil.rmtree(tmp_path / FOLDER, ignore_errors=True)
    return Path(shutil.copytree(reference, tmp_path / FOLDER))


# ── damaged ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_damage_is_seen_or_does_no_harm(recipe: Recipe, reference: Path, place: Path, tmp_path: Path) -> None:
    (tmp_path / "unbroken").symlink_to(place / "unbroken")
    found = corrupt.drill(recipe, tmp_path, 40, seed=1)
    assert found.wrong == []
    assert found.made.total() == found.seen.total() + found.harmless.total() == 40
    assert found.used > 0


def answer(refused: str = "", *warned: str, step: int = -1, defect: str = "", seconds: float = 0.1) -> Answer:
    return Answer(refused, warned, step, defect, seconds)


@pytest.mark.parametrize(
    ("part", "found", "verdict"),
    [
        ("model folder", answer("m/x.json: damaged"), "seen"),
        ("model folder", answer("m: damaged"), "does not name"),
        ("model folder", answer("m/x.json: damaged\n\n\n"), "does not name"),
        ("model folder", answer(step=0), "no harm"),
        ("model folder", answer(defect="KeyError: 3"), "KeyError"),
        ("model folder", answer("m/x.json: damaged", seconds=6.0), "6.0 s"),
        ("newest checkpoint", answer("", "x.json: damaged; the checkpoint of step 10 is used", step=10), "seen"),
        ("newest checkpoint", answer("", "x.json: damaged; the checkpoint of step 10 is used", step=0), "went on from"),
        ("newest checkpoint", answer("", "x.json: damaged", step=10), "went on from"),
        ("newest checkpoint", answer("", "damaged; the checkpoint of step 10 is used", step=10), "does not name"),
    ],
)
def test_judgement(part: str, found: Answer, verdict: str) -> None:
    assert corrupt.judge(found, corrupt.Target(part, "x.json"), {"x.json"}, [10, 20]).startswith(verdict)


@pytest.mark.parametrize("kind", corrupt.KINDS)
def test_a_mutation_changes_the_file_it_is_meant_for(tmp_path: Path, kind: str) -> None:
    contents = {"a": b"1234567890" * 30, "b": b"abcdefghij"}
    for number in range(20):
        for name, content in contents.items():
            (tmp_path / name).write_bytes(content)
        changed = corrupt.damage(tmp_path, corrupt.Target("", "a"), kind, random.Random(number))
        now = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        assert changed == {name for name in contents if now.get(name) != contents[name]} >= {"a"}


# ── interrupted ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_interrupted_and_insisted(recipe: Recipe, reference: Path, tmp_path: Path) -> None:
    found = stop.Found()
    drill = stop.Drill(recipe, tmp_path / "run", signal.SIGTERM, found)
    for wish in (stop.Wish("prepare", 0, 0.0), stop.Wish("step", 12, 0.003), None):
        drill.live(wish)
    stop.insist(recipe, tmp_path / "insist", reference, found)
    assert found.wrong == []
    assert runs.differences(drill.folder, reference) == []
    assert [each.code for each in found.stopped] == [143, 143]
    assert set(found.lost) == {0}


def test_a_step_that_was_lost_is_seen(recipe: Recipe, tmp_path: Path) -> None:
    found = stop.Found()
    drill = stop.Drill(recipe, tmp_path / "run", signal.SIGTERM, found)
    (tmp_path / "run" / FOLDER / "checkpoints" / "step-00000004").mkdir(parents=True)
    drill.look(End(143, 1.0, 0, 5, "interrupted by SIGTERM"), 1.0)
    drill.look(End(1, 1.0, 4, 4, "interrupted by SIGTERM"), 11.0)
    assert found.lost == [0, 1]
    assert [each.split(": ")[1][:14] for each in found.wrong] == ["saved at step ", "exit code 1", "11.0 s until i"]
