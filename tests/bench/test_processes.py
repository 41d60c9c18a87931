"""Two processes beside one: the table, and that each kind of run can be measured."""

from pathlib import Path

import pytest

from bench import processes
from bench.processes import KINDS, table, tokens_a_second
from regard.data import builtin


def test_the_ratio_is_that_of_the_rounds() -> None:
    text = table({"one": [100.0, 200.0, 100.0], "two": [150.0, 200.0, 90.0]}, 40, 4096)
    assert "| one | 100 |" in text
    assert "| two | 150 |" in text
    assert "1.00 (0.90 – 1.50) over 3 rounds" in text


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_notes_its_speed(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "SIZES", [])
    monkeypatch.setitem(KINDS, kind, (KINDS[kind][0], 1))  # tests share their cores
    builtin.write("dates", 200, tmp_path / "dates.tsv")
    assert tokens_a_second(kind, tmp_path / "dates.tsv", 2, 128) > 0
