"""Curves in one line, and the command as it must be typed."""

import math
import sys
from pathlib import Path

import pytest

from regard.view import terminal
from regard.view.terminal import command, sparkline


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([], ""),
        ([3.0], "▁"),
        ([1.0, 1.0], "▁▁"),
        ([0.0, 7.0], "▁█"),
        ([0.0, math.nan, 3.5, 7.0, math.inf], "▁▅█"),
        ([7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0], "█▇▆▅▄▃▂▁"),
    ],
)
def test_sparkline(values: list[float], line: str) -> None:
    assert sparkline(values) == line


def test_a_long_curve_is_drawn_by_means() -> None:
    assert sparkline([0.0] * 50 + [1.0] * 50, width=4) == "▁▁██"
    assert len(sparkline([float(x) for x in range(1001)])) == 16


def test_the_command_as_it_must_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    called = tmp_path / "bin" / "regard"
    called.write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(called)])
    monkeypatch.setattr(terminal.shutil, "which", lambda name: None)
    assert command() == "bin/regard"
    monkeypatch.setattr(terminal.shutil, "which", lambda name: str(called))
    assert command() == "regard"
    monkeypatch.setattr(sys, "argv", ["/x/regard/__main__.py"])
    assert command() == "python -m regard"
