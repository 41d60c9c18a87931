"""How far a filter has come: with an end where the input is a file, without one elsewhere."""

import io
import os
import sys
from pathlib import Path

import pytest
from rich.console import Console

from regard.view.passage import Passage, left_in, passage


def shown(total: int | None, lines: int, size: int) -> str:
    """What is drawn ten seconds after the start."""
    console = Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)
    watched = Passage(console, total)
    watched.began -= 10.0
    watched.watch(lines, size)
    with console.capture() as captured:
        console.print(watched.draw())
    return captured.get().strip()


def test_of_a_file() -> None:
    assert shown(4000, 250, 1000).endswith("25 % · ETA 0:30 · 250 lines · 25 lines/s")


def test_of_a_pipe() -> None:
    assert shown(None, 25_000, 1000) == "25,000 lines · 2,500 lines/s"


def test_before_the_first_line() -> None:
    assert shown(4000, 0, 0).endswith("0 % · 0 lines · 0 lines/s")


def test_what_is_left(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x" * 100)
    with open(tmp_path / "x", "rb") as file:
        os.lseek(file.fileno(), 30, os.SEEK_SET)
        assert left_in(file.fileno()) == 70
    near, far = os.pipe()
    assert left_in(near) is None
    os.close(near)
    os.close(far)


def test_not_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert passage() is None
