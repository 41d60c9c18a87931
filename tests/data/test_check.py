"""Small tables whose reports are known."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data import builtin
from regard.data.check import Alphabets, Report, check, with_guess
from regard.data.doctor.repeats import Conflict, Overlap
from regard.data.doctor.sheet import bars, render
from regard.data.guess import guess
from regard.data.read import Example, Table, read


def table(rows: Sequence[tuple[str, ...]], path: str = "pairs.tsv", notes: tuple[str, ...] = ()) -> Table:
    """Rows of source columns and a target."""
    examples = [Example(tuple(row[:-1]), row[-1], line) for line, row in enumerate(rows, 1)]
    return Table(path, examples, list(notes), ("1",), "2")


def test_duplicates_conflicts_and_the_ceiling() -> None:
    report = check(table([("a", "x"), ("a", "x"), ("a", "y"), ("b", "x"), ("b", "z"), ("c", "c")]))
    assert report.examples == 6
    assert report.duplicates == 1
    assert report.conflicts is not None
    assert (report.conflicts.sources, report.conflicts.examples) == (2, 5)
    assert report.conflicts.shown[0] == Conflict(("a",), (("x", 2), ("y", 1)))
    assert report.ceiling == pytest.approx((2 + 1 + 1) / 6)
    assert report.copied == 1


def test_no_conflicts_no_ceiling_below_one() -> None:
    report = check(table([("a", "x"), ("b", "x")]))
    assert report.conflicts is not None
    assert (report.conflicts.sources, report.conflicts.shown, report.ceiling) == (0, (), 1.0)


def test_three_conflicts_are_shown_the_largest_first() -> None:
    rows = [
        (source, target) for source, count in (("a", 2), ("b", 3), ("c", 4), ("d", 5)) for target in "vwxyz"[:count]
    ]
    report = check(table(rows))
    assert report.conflicts is not None
    assert [conflict.source for conflict in report.conflicts.shown] == [("d",), ("c",), ("b",)]


def test_lengths_and_their_histogram() -> None:
    report = check(table([("x" * length, "y") for length in range(1, 101)]))
    lengths = report.source_lengths
    assert lengths is not None
    assert (lengths.shortest, lengths.median, lengths.p95, lengths.longest) == (1, 50, 95, 100)
    assert lengths.edges == tuple(range(1, 102, 10))
    assert lengths.counts == (10,) * 10
    assert report.target_lengths is not None
    assert report.target_lengths.counts == (100,) + (0,) * 9


def test_several_columns_count_with_what_joins_them() -> None:
    lengths = check(table([("walk", "V;PST", "walked")])).source_lengths
    assert lengths is not None
    assert lengths.longest == 4 + 1 + 5


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=50))
def test_every_length_is_in_its_bin(sizes: list[int]) -> None:
    lengths = check(table([("x" * size, "y") for size in sizes])).source_lengths
    assert lengths is not None
    assert len(lengths.counts) == 10
    for place, count in enumerate(lengths.counts):
        assert count == sum(lengths.edges[place] <= size < lengths.edges[place + 1] for size in sizes)
    assert sum(lengths.counts) == len(sizes)


def test_overlap_is_a_share_of_the_other() -> None:
    other = table([("a", "x"), ("a", "y"), ("b", "x"), ("new", "x")], "test.tsv")
    report = check(table([("a", "x"), ("b", "z"), ("c", "x")]), other)
    assert report.overlap == Overlap("test.tsv", sources=2, examples=3, pairs=1, share=0.75)
    assert "overlap: 3 of 4 (75.0 %) of test.tsv" in render(report)


def test_alphabets() -> None:
    report = check(table([("aab", "aaz"), ("é", "z")]))
    assert report.alphabets == Alphabets(source=3, target=2, shared=1, once=2, shown=("b", "é"))
    many = check(table([("".join(map(chr, range(0x4E00, 0x4E32))), "x")]))
    assert (many.alphabets.once, len(many.alphabets.shown)) == (51, 20)


def test_without_a_target() -> None:
    report = check(Table("p.txt", [Example(("a",), None, 1), Example(("a",), None, 2)], [], ("1",), None))
    assert report.duplicates == 1
    assert (report.target_lengths, report.conflicts, report.ceiling, report.copied) == (None, None, None, None)
    assert "ceiling" not in render(report)


def test_the_report_as_json_comes_back() -> None:
    report = check(table([("a", "x"), ("a", "y")]), table([("a", "x")]))
    back = json.loads(json.dumps(report.as_dict()))
    assert back["ceiling"] == 0.5
    assert back["conflicts"]["shown"][0]["targets"] == [["x", 1], ["y", 1]]
    assert set(back) == set(Report.__dataclass_fields__)


def test_rendering() -> None:
    report = check(table([("a", "x")] * 1999 + [("a", "y")], notes=("3 blank lines skipped",)))
    text = render(report)
    assert "2,000 (columns 1 → 2)" in text
    assert "note        3 blank lines skipped" in text
    assert "99.9 % exact match" in text  # 0.9995 is not quite 100
    assert '"a" → "x" × 1999, "y" × 1' in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert all(len(line) <= 50 for line in render(report, 50).splitlines())


def test_bars() -> None:
    assert bars([0, 1, 4, 8]) == "\u00a0▁▄█"
    assert bars([1, 10**9]) == "▁█"
    assert bars([0, 0]) == "\u00a0\u00a0"


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.text(), st.text()), max_size=6), st.text())
def test_data_can_not_steer_the_terminal(rows: list[tuple[str, str]], path: str) -> None:
    hostile = [*rows, ("\x1b]0;owned\x07", "\x9b2J"), ("\x1b]0;owned\x07", "\u202e")]
    text = render(check(table(hostile, path, notes=(path,)), table(hostile, path)))
    assert not any(ord(mark) < 32 or 127 <= ord(mark) < 160 or mark == "\u202e" for mark in text.replace("\n", ""))
    assert text.encode()


def test_an_empty_table_does_not_break_it() -> None:
    assert "examples    0 (" in render(check(table([]), table([])))


def test_pictures_that_can_not_be_opened_are_not_said_to_be(tmp_path: Path) -> None:
    """And the characters of their names are nothing that is learnt."""
    builtin.write("captions", 3, tmp_path / "c.tsv")
    with open(tmp_path / "c.tsv", "a", encoding="utf-8") as file:
        file.write("none.png\ta red dot\nlost.png\ta blue dot\n")
    found = read(str(tmp_path / "c.tsv"))
    report = with_guess(check(found, None, "caption"), guess(found.path), found)
    assert report.source_lengths is None
    assert (report.alphabets.source, report.alphabets.shared) == (0, 0)
    assert "." not in report.alphabets.shown
    text = render(report)
    assert "3 opened, 2 can not be read" in text
    assert "\nsource " not in text
    assert "\ncharacters " not in text
    assert "\ntarget " in text
