"""Examples that repeat or contradict each other, and what two files share."""

from regard.data.doctor.repeats import ceiling, find_repeats, grouped, overlap
from tests.data.doctor.rows import kinds, only, sight


def test_repeated() -> None:
    some = sight([("a", "x"), ("b", "x"), ("a", "x")])
    found = only(list(find_repeats(some, grouped(some.examples))))
    assert (found.kind, found.count, found.lines) == ("repeated", 1, (3,))


def test_conflicts_and_the_best_there_can_be() -> None:
    some = sight([("a", "x"), ("b", "x"), ("a", "y"), ("c", "z")])
    groups = grouped(some.examples)
    found = only(list(find_repeats(some, groups)))
    assert (found.kind, found.level, found.count, found.lines) == ("conflicts", "trouble", 2, (1, 3))
    assert found.example == '"a" → "x" × 1, "y" × 1'
    assert ceiling(groups) == 0.75
    assert "25 % of exact matches" in found.cure


def test_few_conflicts_weigh_little() -> None:
    rows = [(f"s{i}", "x") for i in range(300)]
    levels = []
    for extra in (1, 3):
        some = sight([*rows, *[(f"s{i}", "y") for i in range(extra)]])
        levels.append(only(list(find_repeats(some, grouped(some.examples)))).level)
    assert levels == ["remark", "doubt"]


def test_a_sound_file() -> None:
    some = sight([("a", "x"), ("b", "x")])
    assert kinds(list(find_repeats(some, grouped(some.examples)))) == []


def test_two_files() -> None:
    here = sight([("a", "x"), ("Some source", "z")])
    found, findings = overlap(here, grouped(here.examples), sight([("a", "y"), ("some source", "z"), ("n", "x")]), "t")
    assert (found.examples, found.pairs, found.near) == (1, 0, 1)
    assert [(finding.kind, finding.lines) for finding in findings] == [("overlap", (1,)), ("near overlap", (2,))]
    nothing, silent = overlap(here, grouped(here.examples), sight([("n", "x")]), "t")
    assert (nothing.share, nothing.near, silent) == (0.0, 0, [])
