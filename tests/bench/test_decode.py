"""The command that measures decoding: regard alone on random weights, and the tables on made-up figures."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench import decode
from bench.decode import CASES, Measured, System, aims, bests, systems, table
from bench.peers.decoding import Decoded, Order, by_length, decoded

ROOT = Path(__file__).resolve().parent.parent.parent
FILE = CASES[0]


def measured(name: str, seconds: list[float], texts: list[str], workers: int = 1) -> Measured:
    """A system that took so long in each round, the first of which does not count."""
    rounds = [Decoded(texts, each, each) for each in [9.0, *seconds]]
    return Measured(System(name, "x", workers=workers), {"version": "1"}, {FILE.name: rounds})


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_regard_alone_on_random_weights(tmp_path: Path) -> None:
    for part, count in (("train", 40), ("test2016", 6), ("valid", 3)):
        rows = "".join(f"a man {n} sees\tein mann {n} sieht\n" for n in range(count))
        (tmp_path / f"{part}.tsv").write_text(rows, encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text("<!-- decode -->\n<!-- /decode -->\n", encoding="utf-8")
    words = ["--data", str(tmp_path), "--random", "--systems", "regard", "--presets", "none", "--rounds", "1",
             "--lines", "2", "--singles", "1", "--threads", "1", "--longest", "4", "--page", str(page)]  # fmt: skip
    done = subprocess.run([sys.executable, "-m", "bench.decode", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("| regard fp32 ") == len(CASES)
    assert "random weights" in page.read_text(encoding="utf-8")
    assert "not measured" in done.stdout


def test_lines_that_are_not_there_are_named(tmp_path: Path) -> None:
    words = ["--data", str(tmp_path), "--page", "none"]
    done = subprocess.run([sys.executable, "-m", "bench.decode", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 66
    assert str(tmp_path / "test2016.tsv") in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 3


def test_a_row_tells_speed_and_worth() -> None:
    ours = measured(decode.REGARD, [1.0, 2.0, 4.0], ["a b c d", "x"])
    base = measured(decode.HUGGING_FACE, [2.0, 8.0, 4.0], ["a b c d", "y"])
    rows = [cells(line) for line in table([ours, base], FILE, ["a b c d", "x"])[2:]]
    assert rows[0][:4] == ["regard fp32", "1.0", "1,000.00", "2.00 (1.00 – 4.00)"]
    assert rows[0][5:7] == ["100.00", "100.0 %"]
    assert rows[1][6] == "50.0 %"
    assert float(rows[1][5]) < 100


def test_of_several_ways_the_quickest_is_shown() -> None:
    slow = measured(decode.CTRANSLATE2_INT8, [2.0], ["a"])
    quick = measured(decode.CTRANSLATE2_INT8, [1.0], ["a"], workers=2)
    assert bests([slow, quick], FILE) == [quick]
    assert [system.way for system in systems(["ctranslate2"], 2)] == ["1 × 2", "2 × 1", "1 × 2", "2 × 1"]


def test_one_that_failed_has_a_row_that_says_why() -> None:
    gone = Measured(System("JoeyNMT", "x"), failed="not installed: no such package")
    assert cells(table([gone], FILE, [])[2])[:2] == ["JoeyNMT", "not installed: no such package"]


def test_what_is_to_be_reached_is_judged_by_the_better_precision() -> None:
    found = [measured(decode.REGARD, [4.0], ["a"]), measured(decode.REGARD_INT8, [1.0], ["a"]),
             measured(decode.HUGGING_FACE, [4.0], ["a"]), measured(decode.CTRANSLATE2_INT8, [0.8], ["a"])]  # fmt: skip
    made = aims(found, FILE)
    assert [aim.verdict for aim in made] == ["reached", "reached", "missed"]
    assert [aim.found for aim in made] == [4.0, pytest.approx(0.8), pytest.approx(0.8)]


def test_a_line_at_a_time_is_a_call_for_each() -> None:
    calls: list[list[str]] = []

    def upper(lines: list[str], order: Order) -> list[str]:
        calls.append(list(lines))
        return [line.upper() for line in lines]

    assert decoded(upper, ["a", "b", "c"], Order(1, 1, 2, 9)).texts == ["A", "B"]
    assert decoded(upper, ["a", "b", "c"], Order(1, 64, 3, 9)).texts == ["A", "B", "C"]
    assert calls == [["a"], ["b"], ["a", "b", "c"]]
    assert list(by_length(["a b c", "a", "a b"], 2)) == [[1, 2], [0]]
