"""One trainer at a time in a folder; the lock of a dead one is free."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from regard.errors import RegardError, UsageError
from regard.training.lock import locked
from regard.training.run import resume

HOLD = """
import sys
from pathlib import Path
from regard.training.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> "subprocess.Popen[str]":
    """Another process that holds the lock until it is told to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_is_refused_and_a_dead_one_is_in_nobodys_way(runs: Any, tmp_path: Path) -> None:
    other = holder(tmp_path)
    for begin in (lambda: runs.train(tmp_path), lambda: runs.train(tmp_path, force=True)):
        with pytest.raises(UsageError, match=rf"another process \({other.pid}\) is training here; wait for it"):
            begin()
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert (tmp_path / ".lock").exists()  # it could not clear up
    with locked(tmp_path):
        assert (tmp_path / ".lock").read_text(encoding="utf-8") == f"{os.getpid()}\n"
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_goes_on_is_not_resumed_by_another(runs: Any, tmp_path: Path) -> None:
    runs.train_until(tmp_path / "m", "after rename", 1)
    with locked(tmp_path / "m"), pytest.raises(UsageError, match="is training here"):
        resume(tmp_path / "m")


def test_many_at_once_one_at_a_time(tmp_path: Path) -> None:
    """The file is removed by each holder, and yet there are never two."""
    inside, most, taken = [0], [0], [0]
    guard = threading.Lock()

    def work() -> None:
        for _ in range(200):
            try:
                with locked(tmp_path):
                    with guard:
                        inside[0] += 1
                        most[0] = max(most[0], inside[0])
                        taken[0] += 1
                    with guard:
                        inside[0] -= 1
            except UsageError:
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 1
    assert taken[0] > 10


def test_a_folder_that_can_not_be_written(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"\.lock: can not be written"), locked(tmp_path / "none"):
        pass
