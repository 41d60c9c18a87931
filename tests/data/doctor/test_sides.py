"""Pairs that look wrong: a file that has some, and the same file without them."""

import random

import pytest

from regard.data.doctor.sides import find_sides
from tests.data.doctor.rows import kinds, only, sight

WORDS = """the:der a:ein dog:Hund runs:läuft with:mit three:drei children:Kindern through:durch green:grünes grass:Gras
while:während water:Wasser shows:zeigt white:weiße things:Dinge and:und they:sie watch:schauen"""
ENGLISH, GERMAN = zip(*(word.split(":") for word in WORDS.split()), strict=True)


def pairs(count: int, seed: int = 0) -> list[tuple[str, str]]:
    draw = random.Random(seed)
    chosen = [[draw.randrange(len(ENGLISH)) for _ in range(draw.randint(6, 10))] for _ in range(count)]
    return [(" ".join(ENGLISH[i] for i in row), " ".join(GERMAN[i] for i in row)) for row in chosen]


def test_sound_pairs() -> None:
    assert kinds(list(find_sides(sight(pairs(200))))) == []


def test_copied() -> None:
    rows = [*pairs(100), ("Anna", "Anna")]
    found = only(list(find_sides(sight(rows))))
    assert (found.kind, found.level, found.count, found.lines) == ("copied", "doubt", 1, (101,))


def test_where_copies_are_usual_they_are_no_slips() -> None:
    found = only(list(find_sides(sight([(f"w{i}", f"w{i}") for i in range(60)]))))
    assert (found.kind, found.level) == ("copied", "remark")
    assert "baseline" in found.cure


def test_swapped() -> None:
    rows = pairs(200)
    rows[17] = (rows[17][1], rows[17][0])
    found = only(list(find_sides(sight(rows))))
    assert (found.kind, found.level, found.lines) == ("swapped", "trouble", (18,))


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_many_that_are_swapped_are_all_found(share: float) -> None:
    rows, draw = pairs(400), random.Random(1)
    turned = sorted(draw.sample(range(400), round(share * 400)))
    for number in turned:
        rows[number] = rows[number][::-1]
    found = only(list(find_sides(sight(rows))))
    assert (found.kind, found.count) == ("swapped", len(turned))


@pytest.mark.parametrize(("side", "kind"), [(0, "source on the wrong side"), (1, "target on the wrong side")])
def test_both_texts_of_one_side(side: int, kind: str) -> None:
    rows, others = pairs(200), pairs(1, seed=9)[0]
    row = [*rows[41]]
    row[side] = others[1 - side]
    rows[41] = (row[0], row[1])
    found = only(list(find_sides(sight(rows))))
    assert (found.kind, found.lines) == (kind, (42,))


def test_odd_length() -> None:
    rows = pairs(200)
    rows[5] = (rows[5][0], "weiße")
    rows[90] = (rows[90][0], " ".join([rows[90][1]] * 6))
    found = only(list(find_sides(sight(rows))))
    assert (found.kind, found.count, set(found.lines)) == ("odd length", 2, {6, 91})


def test_a_few_pairs_tell_nothing_usual_and_other_tasks_have_no_sides() -> None:
    assert kinds(list(find_sides(sight([("a" * 5, "b" * 300)])))) == []
    assert kinds(list(find_sides(sight([(f"w{i}", f"w{i}") for i in range(60)], "classify")))) == []
