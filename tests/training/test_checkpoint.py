"""Checkpoints: what goes in comes out, damage is seen and the one before is used, errors of the disk come up."""

import json
import os
import random
import shutil
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from regard.config import Train
from regard.errors import FolderError, RegardError
from regard.folder import check_manifest, listing, shapes_of
from regard.models.model import Model
from regard.trained import Trained
from regard.training import checkpoint
from regard.training.checkpoint import Checkpoint, Checkpoints, Standing, copied, moments, put_moments, read
from regard.training.keep import Keeper, Kept, restore
from regard.training.log import Mark
from regard.training.run import resume
from regard.training.stream import Place

pytestmark = pytest.mark.no_shapes

FILES = ["best.safetensors", "manifest.json", "optimizer.safetensors", "state.json", "weights.safetensors",
         "window.safetensors"]  # fmt: skip


@pytest.fixture
def model(small_model: Callable[..., Trained]) -> Model:
    return small_model("rnn").model


def optimizer_of(model: Model) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=0.01, fused=True)


def some_steps(model: Model, optimizer: torch.optim.Optimizer, count: int, first: int = 0) -> None:
    """The last weight never has a gradient."""
    for step in range(first, first + count):
        torch.manual_seed(step)
        for weight in list(model.parameters())[:-1]:
            weight.grad = torch.randn_like(weight)
        optimizer.step()


def made(model: Model, step: int, **more: Any) -> Checkpoint:
    keep = Keeper("exact", 2)
    keep.offer(model, 1, float("nan"))
    for each in (1, 2):
        keep.remember(model, each)
    standing = Standing("run", step, Place(2, 7), best_step=1, window=(1, 2), log=Mark(5, window_loss=None), **more)
    return copied(standing, model, optimizer_of(model), keep.kept)


def save(checkpoints: Checkpoints, found: Checkpoint) -> None:
    checkpoints.save(found.standing.step, lambda: found)
    checkpoints.wait()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "metrics.jsonl").write_bytes(b"")
    return tmp_path


# ── what goes in comes out ───────────────────────────────────────────────────────────────────────────────────────────


def test_what_goes_in_comes_out(model: Model, place: Path) -> None:
    expected = made(model, 400)
    checkpoints = Checkpoints(place, Train())
    save(checkpoints, expected)
    folder = place / "checkpoints" / "step-00000400"
    assert sorted(path.name for path in folder.iterdir()) == FILES
    found = Checkpoints(place, Train()).newest("run", shapes_of(model))
    assert found is not None
    assert found.standing == expected.standing
    assert found.kept.best is not None
    assert found.kept.best.value != found.kept.best.value  # not a number, as it was
    assert [step for step, _ in found.kept.window] == [1, 2]
    for a, b in zip(found.tensors().values(), expected.tensors().values(), strict=True):
        assert a.keys() == b.keys()
        assert all(torch.equal(a[name], b[name]) for name in a)


def test_an_optimizer_goes_on_as_if_nothing_had_been(small_model: Callable[..., Trained]) -> None:
    whole, broken = small_model("rnn").model, small_model("rnn").model
    restore(broken, dict(whole.named_parameters()))
    first, second = optimizer_of(whole), optimizer_of(broken)
    some_steps(whole, first, 3)
    some_steps(broken, second, 3)
    kept = {name: moment.clone() for name, moment in moments(broken, second).items()}
    again = optimizer_of(broken)
    put_moments(broken, again, kept)
    some_steps(whole, first, 3, 3)
    some_steps(broken, again, 3, 3)
    for a, b in zip(whole.parameters(), broken.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_checkpoint_does_not_move_with_the_model(model: Model) -> None:
    optimizer = optimizer_of(model)
    some_steps(model, optimizer, 1)
    found = copied(Standing(), model, optimizer, Kept())
    before = {name: tensor.clone() for each in found.tensors().values() for name, tensor in each.items()}
    some_steps(model, optimizer, 1)
    assert all(torch.equal(before[name], tensor) for each in found.tensors().values() for name, tensor in each.items())


def test_all_is_on_the_disk_before_it_is_named(model: Model, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    sound = os.fsync

    def fsync(number: int) -> None:
        events.append(Path(os.readlink(f"/proc/self/fd/{number}")).name)
        sound(number)

    def rename(self: Path, target: Path) -> None:
        events.append(f"renamed {self.name}")
        os.rename(self, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "rename", rename)
    save(Checkpoints(place, Train()), made(model, 4))
    assert events[0] == "metrics.jsonl"
    assert sorted(events[1:7]) == FILES
    assert events[6] == "manifest.json"
    assert events[7:] == [".step-00000004.new", "renamed .step-00000004.new", "checkpoints"]


def test_no_file_is_shared_between_checkpoints(model: Model, place: Path) -> None:
    checkpoints = Checkpoints(place, Train())
    for step in (1, 2):
        save(checkpoints, made(model, step))
    assert {path.stat().st_nlink for path in (place / "checkpoints").rglob("*") if path.is_file()} == {1}


# ── when, and how many ───────────────────────────────────────────────────────────────────────────────────────────────


def test_the_last_two_are_kept(model: Model, place: Path) -> None:
    checkpoints = Checkpoints(place, Train())
    for step in (1, 20, 3, 100_000_000):
        save(checkpoints, made(model, step))
    assert sorted(path.name for path in (place / "checkpoints").iterdir()) == ["step-00000003", "step-100000000"]
    found = Checkpoints(place, Train()).newest("run", shapes_of(model))
    assert found is not None
    assert found.standing.step == 100_000_000


def test_due_by_steps_and_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    checkpoints = Checkpoints(None, Train(checkpoint_steps=10, checkpoint_minutes=2.0))
    assert [step for step in range(31) if checkpoints.due(step)] == [10, 20, 30]
    monkeypatch.setattr(time, "monotonic", lambda: now + 121)
    assert not checkpoints.due(0)
    assert checkpoints.due(7)


def test_what_a_dead_process_left_is_swept(place: Path) -> None:
    (place / "checkpoints" / ".step-00000004.new").mkdir(parents=True)
    (place / "checkpoints" / ".step-00000002.old").mkdir()
    (place / "checkpoints" / ".step-00000004.new" / "weights.safetensors").write_bytes(b"half")
    Checkpoints(place, Train())
    assert list((place / "checkpoints").iterdir()) == []


def test_the_step_waits_for_no_disk(model: Model, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A save that takes its time holds up only the next one."""
    gate, reached = threading.Event(), threading.Event()

    def boundary(name: str) -> None:
        if name == "before rename":
            reached.set()
            gate.wait(10)

    monkeypatch.setattr(checkpoint, "boundary", boundary)
    checkpoints = Checkpoints(place, Train())
    checkpoints.save(1, lambda: made(model, 1))
    assert reached.wait(10)
    assert not checkpoints.due(2)  # the loop is here while the disk is busy
    assert not (place / "checkpoints" / "step-00000001").exists()
    gate.set()
    checkpoints.wait()
    assert (place / "checkpoints" / "step-00000001").exists()


@pytest.mark.parametrize("when", ["temp opened", "half written", "before fsync", "before rename"])
def test_an_error_of_the_disk_comes_up_at_the_next_step(
    model: Model, place: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    checkpoints = Checkpoints(place, Train())
    save(checkpoints, made(model, 1))

    def boundary(name: str) -> None:
        if name == when:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "boundary", boundary)
    checkpoints.save(2, lambda: made(model, 2))
    assert checkpoints.thread is not None
    checkpoints.thread.join()
    expected = r"step-00000002: can not be written: No space left on device; the checkpoint of step 1 is kept"
    with pytest.raises(RegardError, match=expected):
        checkpoints.due(3)
    assert [path.name for path in (place / "checkpoints").iterdir()] == ["step-00000001"]
    read(place / "checkpoints" / "step-00000001", "run", shapes_of(model))


# ── damage ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def cut(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randrange(len(content))]


def flip(content: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(content))
    return content[:at] + bytes([content[at] ^ (1 << draw.randrange(8))]) + content[at + 1 :]


def blank(content: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(content))
    end = min(len(content), at + 64)
    blanked = content[:at] + bytes(end - at) + content[end:]
    return blanked if blanked != content else flip(content, draw)


@pytest.fixture(scope="module")
def two(small_model: Callable[..., Trained], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with checkpoints of steps 1 and 2; copy it before you damage it."""
    place = tmp_path_factory.mktemp("two")
    (place / "metrics.jsonl").write_bytes(b"")
    checkpoints = Checkpoints(place, Train())
    for step in (1, 2):
        save(checkpoints, made(small_model("rnn").model, step))
    return place


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", [cut, flip, blank])
def test_damage_is_seen_and_the_one_before_is_used(
    two: Path, model: Model, tmp_path: Path, name: str, damage: Callable[[bytes, random.Random], bytes]
) -> None:
    draw = random.Random(name + damage.__name__)
    for attempt in range(8):
        place = shutil.copytree(two, tmp_path / str(attempt))
        path = place / "checkpoints" / "step-00000002" / name
        path.write_bytes(damage(path.read_bytes(), draw))
        with pytest.warns(UserWarning, match="the checkpoint of step 1 is used") as told:
            found = Checkpoints(place, Train()).newest("run", shapes_of(model))
        assert found is not None
        assert found.standing.step == 1
        assert len(told) == 1
        assert "step-00000002" in str(told[0].message)
        assert "\n" not in str(told[0].message)


def test_a_flipped_bit_anywhere_in_a_manifest_is_seen(two: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(two / "checkpoints" / "step-00000002", tmp_path / "x")
    content = (folder / "manifest.json").read_bytes()
    for at in range(len(content)):
        flipped = content[:at] + bytes([content[at] ^ (1 << at % 8)]) + content[at + 1 :]
        (folder / "manifest.json").write_bytes(flipped)
        with pytest.raises(FolderError):
            check_manifest(folder, ("state.json", "weights.safetensors", "optimizer.safetensors"))


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_seen(two: Path, model: Model, tmp_path: Path, name: str) -> None:
    place = shutil.copytree(two, tmp_path / "x")
    (place / "checkpoints" / "step-00000002" / name).unlink()
    with pytest.warns(UserWarning, match=f"{name}: missing.*the checkpoint of step 1 is used"):
        Checkpoints(place, Train()).newest("run", shapes_of(model))


def test_swapped_files_and_folders_are_seen(two: Path, model: Model, tmp_path: Path) -> None:
    place = shutil.copytree(two, tmp_path / "x")
    new, old = place / "checkpoints" / "step-00000002", place / "checkpoints" / "step-00000001"
    (new / "weights.safetensors").rename(new / "x")
    (new / "best.safetensors").rename(new / "weights.safetensors")
    (new / "x").rename(new / "best.safetensors")
    shutil.copy(old / "state.json", new / "state.json")
    with pytest.warns(UserWarning, match="not what the manifest says"):
        Checkpoints(place, Train()).newest("run", shapes_of(model))
    shutil.rmtree(new)
    old.rename(new)  # a whole checkpoint under another name
    with pytest.raises(FolderError, match="belongs to another run or another step"):
        Checkpoints(place, Train()).newest("run", shapes_of(model))


def test_a_checkpoint_of_another_run_is_none(two: Path, model: Model) -> None:
    with pytest.raises(FolderError, match="belongs to another run") as caught:
        Checkpoints(two, Train()).newest("another", shapes_of(model))
    assert "none of the 2 checkpoints is whole" in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 3


def sign(folder: Path) -> None:
    """Makes the manifest fit the files as they are."""
    files = {path.name: listing(path.read_bytes()) for path in folder.iterdir() if path.name != "manifest.json"}
    (folder / "manifest.json").write_text(json.dumps({"format": 1, "files": files}), encoding="utf-8")


def forged(two: Path, place: Path, name: str, change: Callable[[dict[str, torch.Tensor]], None]) -> Path:
    shutil.copytree(two, place)
    folder = place / "checkpoints" / "step-00000002"
    tensors = load_file(folder / name)
    change(tensors)
    save_file(tensors, folder / name)
    sign(folder)
    return folder


@pytest.mark.parametrize("name", ["weights.safetensors", "best.safetensors", "optimizer.safetensors"])
def test_names_shapes_and_types_are_checked_before_tensors_are_read(
    two: Path, model: Model, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the files up to the forged one, those before it are read, and it is not."""
    opened: list[str] = []
    monkeypatch.setattr("regard.folder.load_file", lambda path: (opened.append(path.name), load_file(path))[1])
    first = sorted(load_file(two / "checkpoints" / "step-00000002" / name))[0]
    changes: dict[str, Callable[[dict[str, torch.Tensor]], Any]] = {
        "missing from": lambda tensors: tensors.pop(first),
        "not expected in": lambda tensors: tensors.update(more=torch.zeros(1)),
        "ask for F32": lambda tensors: tensors.update({first: tensors[first].double()}),
        "bytes, and the model": lambda tensors: tensors.update({first: torch.zeros(1000, 1000)}),
    }
    for number, (said, change) in enumerate(changes.items()):
        only = forged(two, tmp_path / str(number), name, change)
        with pytest.raises(FolderError, match=said):
            read(only, "run", shapes_of(model))
    assert name not in opened


def test_numbers_that_are_none_are_refused(two: Path, model: Model, tmp_path: Path) -> None:
    for name in ("weights.safetensors", "best.safetensors", "window.safetensors"):
        folder = forged(two, tmp_path / name, name, lambda tensors: next(iter(tensors.values())).fill_(float("nan")))
        with pytest.raises(FolderError, match=f"{name}: .* holds numbers that are not finite"):
            read(folder, "run", shapes_of(model))


@pytest.mark.parametrize(
    "state", ["[]", "{}", '{"step": "2"}', '{"step": -1}', "[" * 10_000, '{"place": {"epoch": 1.5}}']
)
def test_a_state_that_is_none_is_refused(two: Path, model: Model, tmp_path: Path, state: str) -> None:
    place = shutil.copytree(two, tmp_path / "x")
    folder = place / "checkpoints" / "step-00000002"
    (folder / "state.json").write_text(state, encoding="utf-8")
    sign(folder)
    with pytest.raises(FolderError):
        read(folder, "run", shapes_of(model))


def test_what_is_damaged_goes_with_the_next_checkpoint_and_the_whole_one_stays(
    two: Path, model: Model, tmp_path: Path
) -> None:
    for step in (2, 3):  # done again to the same step, and further
        place = shutil.copytree(two, tmp_path / str(step))
        (place / "checkpoints" / "step-00000002" / "weights.safetensors").write_bytes(b"")
        checkpoints = Checkpoints(place, Train())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            checkpoints.newest("run", shapes_of(model))
        save(checkpoints, made(model, step))
        assert sorted(path.name for path in (place / "checkpoints").iterdir()) == ["step-00000001", f"step-{step:08}"]
        read(place / "checkpoints" / f"step-{step:08}", "run", shapes_of(model))


def test_a_run_with_a_damaged_checkpoint_ends_the_same(
    runs: Any, unbroken: Path, same_result: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    runs.train_until(tmp_path / "m", "after rename", 3)
    path = tmp_path / "m" / "checkpoints" / "step-00000009" / "optimizer.safetensors"
    path.write_bytes(flip(path.read_bytes(), random.Random(0)))
    with pytest.warns(
        UserWarning, match=r"optimizer\.safetensors: its content is not .*the checkpoint of step 6 is used"
    ):
        resume(tmp_path / "m", quiet=True)
    same_result(tmp_path / "m", unbroken)


def test_a_run_with_no_whole_checkpoint_says_so(runs: Any, tmp_path: Path) -> None:
    runs.train_until(tmp_path / "m", "after rename", 2)
    for path in (tmp_path / "m" / "checkpoints").glob("*/manifest.json"):
        path.unlink()
    with pytest.raises(FolderError, match="none of the 2 checkpoints is whole, so the run can not go on") as caught:
        resume(tmp_path / "m", quiet=True)
    assert caught.value.exit_code == 1
    assert len(str(caught.value).splitlines()) <= 3


def test_a_start_that_says_the_same_in_other_bytes_is_the_same(
    runs: Any, unbroken: Path, same_result: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    """A doubled blank is no damage, so the checkpoints still belong to it."""
    runs.train_until(tmp_path / "m", "after rename", 1)
    path = tmp_path / "m" / "run.json"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\n ", 1))
    resume(tmp_path / "m", quiet=True)
    same_result(tmp_path / "m", unbroken)


@pytest.mark.parametrize("damage", [cut, flip, blank])
def test_damage_of_the_start_is_seen(
    runs: Any, tmp_path: Path, damage: Callable[[bytes, random.Random], bytes]
) -> None:
    runs.train_until(tmp_path / "m", "after rename", 1)
    content = (tmp_path / "m" / "run.json").read_bytes()
    draw = random.Random(damage.__name__)
    for _ in range(20):
        (tmp_path / "m" / "run.json").write_bytes(damage(content, draw))
        with pytest.raises(RegardError, match=r"run\.json|regard reads up to") as caught:
            resume(tmp_path / "m", quiet=True)
        assert len(str(caught.value).splitlines()) <= 3
