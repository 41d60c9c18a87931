"""Disks that are full, read-only or gone, for real: one line, exit code 1, and what was saved before is whole."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.drills.lives import SAVING, STEP, End, Life, Watch, kill_at
from tests.drills.runs import FOLDER, Recipe, broken_checkpoints, checkpoint_steps, differences, shapes


def mount(words: list[str], folder: Path) -> None:
    if shutil.which("mount") is None:
        pytest.skip("there is no mount here")
    done = subprocess.run(["mount", *words, "tmpfs", str(folder)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own where the model goes; only root can have one."""
    folder = tmp_path / FOLDER
    folder.mkdir()
    mount(["-t", "tmpfs", "-o", "size=4m"], folder)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def saved_once(watch: Watch) -> bool:
    return watch[STEP] >= 12 and not watch[SAVING]


def refused(end: End, *words: str) -> None:
    """One line, which says all of this."""
    assert end.code == 1, end.said
    line = end.said[end.said.index("error: ") :].strip()
    assert "\n" not in line
    assert "Traceback" not in end.said
    assert all(word in line for word in words), line


def test_a_full_disk(recipe: Recipe, reference: Path, disk: Path, tmp_path: Path) -> None:
    life = Life(tmp_path, recipe.train, {})
    assert life.until(saved_once)
    fill(disk / "ballast")
    refused(life.end(), f"{FOLDER}/", "can not be written: No space left on device")
    assert checkpoint_steps(disk)[-1] in (10, 20)
    assert broken_checkpoints(disk, shapes(reference)) == []
    (disk / "ballast").unlink()
    assert Life(tmp_path, ["resume", FOLDER], {}).end().code == 0
    assert differences(disk, reference) == []


def fill(path: Path) -> None:
    """Until not a single byte can be written."""
    with open(path, "wb", buffering=0) as file:
        for size in (4096, 1):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))


def test_a_disk_that_can_only_be_read(recipe: Recipe, reference: Path, disk: Path, tmp_path: Path) -> None:
    assert Life(tmp_path, recipe.train, kill_at("after rename", 1)).end().code == -signal.SIGKILL
    mount(["-o", "remount,ro"], disk)
    for words in (["resume", FOLDER], [*recipe.train, "--force"]):
        refused(Life(tmp_path, words, {}).end(), FOLDER, "can not be written: Read-only file system")
    mount(["-o", "remount,rw"], disk)
    assert checkpoint_steps(disk) == [10]
    assert Life(tmp_path, ["resume", FOLDER], {}).end().code == 0
    assert differences(disk, reference) == []


def test_a_folder_that_is_gone(recipe: Recipe, tmp_path: Path) -> None:
    life = Life(tmp_path, recipe.train, {})
    assert life.until(saved_once)
    (tmp_path / FOLDER).rename(tmp_path / "elsewhere")
    shutil.rmtree(tmp_path / "elsewhere", ignore_errors=True)
    refused(life.end(), f"{FOLDER}/", "can not be written: No such file or directory")
