"""The doctor's text: short, the worst first, each with its cure."""

import re

from regard.data.check import check
from regard.data.doctor.sheet import render
from regard.data.read import Example, Table


def table(rows: list[tuple[str, str]]) -> Table:
    return Table("x.tsv", [Example((a,), b, line) for line, (a, b) in enumerate(rows, 1)], [], ("1",), "2")


def test_findings_stand_in_order_with_lines_and_cures() -> None:
    rows = [(f"word{i:03}", f"wort{i:03}") for i in range(100)] + [("cafÃ© one", "a"), ("word001", "wort001")]
    text = render(check(table(rows)))
    assert re.findall(r"^(trouble|doubt|remark)\b", text, re.MULTILINE)[0] == "trouble"
    assert "mojibake: 1 of 102 (1.0 %) with letters" in text
    assert 'line 101: "Ã©" for "é"' in text
    assert text.count("cure: ") >= 2
    levels = re.findall(r"^(trouble|doubt|remark)\b", text, re.MULTILINE)
    assert levels == sorted(levels, key=["trouble", "doubt", "remark"].index)


def test_a_sound_file_is_told_so() -> None:
    text = render(check(table([("ab", "ba"), ("ba", "ab"), ("aab", "bba"), ("bba", "aab")])))
    assert "found       nothing that stands out" in text


def test_baselines_say_what_they_were_measured_on() -> None:
    text = render(check(table([(f"w{i}", f"w{i}") for i in range(100)])))
    assert "without learning, on 20 held-out examples" in text
    assert "copy\u00a0the\u00a0input" in text
    assert "exact\u00a0100.0" in text
