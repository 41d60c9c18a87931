"""Sources that are nearly the same, in one file and between two."""

import random

import pytest

from regard.data.doctor import twins
from regard.data.doctor.twins import find_twins, jaccard, key, likeness, near, near_overlap
from tests.data.doctor.rows import kinds, only, sight

LONG = "two quick brown foxes jump over one lazy dog near its muddy river while birds sing"


def words(draw: random.Random, count: int) -> str:
    return " ".join("".join(draw.choices("abcdefghij", k=draw.randint(3, 8))) for _ in range(count))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("It's  here!", "it s here", True),
        ("1/11/2018", "11/1/2018", False),
        ("ＡＢＣ", "abc", True),
        ("Straße", "STRASSE", True),
        ("+", "-", False),
    ],
)
def test_keys(one: str, other: str, same: bool) -> None:
    assert (key((one,)) == key((other,))) is same


def test_case_and_punctuation() -> None:
    found = only(list(find_twins(likeness(sight([("Hello, you", "a"), ("hello you", "b"), ("hullo you", "a")])))))
    assert (found.kind, found.count, found.of, found.lines) == ("alike but for case or punctuation", 1, 3, (2,))
    assert "1 with another target" in found.said
    assert "(line 1)" in found.example


def test_a_few_characters() -> None:
    draw = random.Random(0)
    rows = [(words(draw, 9), "t") for _ in range(20)]
    assert list(find_twins(likeness(sight(rows)))) == []
    found = only(list(find_twins(likeness(sight([*rows, (LONG, "t"), (LONG.replace("dog", "cat"), "t")])))))
    assert (found.kind, found.level, found.count, found.lines) == ("near duplicates", "doubt", 1, (22,))
    assert "cat" in found.example
    assert "dog" in found.example


def test_short_texts_are_other_words() -> None:
    assert near(["walked", "talked", "walker"]) == []


def test_data_whose_nature_it_is() -> None:
    rows = [(f"please turn the light in room {number} on for me", "t") for number in range(40)]
    found = only(list(find_twins(likeness(sight(rows)))))
    assert (found.kind, found.level) == ("alike by nature", "remark")


def test_every_twin_is_one_and_most_are_found() -> None:
    """Against comparing everything with everything."""
    draw = random.Random(1)
    texts = [words(draw, 8) for _ in range(150)]
    texts += [text[:-2] + "zz" for text in texts[:50]] + [words(draw, 2) + text[10:] for text in texts[50:100]]
    true = {b for b in range(len(texts)) for a in range(b) if jaccard(texts[a], texts[b]) >= 0.8}
    found = near(texts)
    assert all(jaccard(texts[twin.number], texts[twin.earlier]) >= 0.8 for twin in found)
    assert {twin.number for twin in found} <= true
    assert len(found) >= 0.95 * len(true) > 40


def test_between_two_files() -> None:
    here = sight([(LONG, "t"), ("Short One", "t"), ("other", "t")])
    there = sight([(LONG, "t"), (LONG.replace("dog", "cat"), "t"), ("short one!", "t"), ("new", "t")])
    found = near_overlap(here, there)
    assert {(new.line, old.line) for new, old in found} == {(2, 1), (3, 2)}
    assert near_overlap(here, sight([("new", "t")])) == []


def test_no_text_is_compared_with_more_than_one_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all are alike, comparing all pairs would take forever."""
    compared = []
    monkeypatch.setattr(twins, "jaccard", lambda first, second: compared.append(first) or 1.0)
    found = near([f"please turn the light in room {number} on for me" for number in range(500)])
    assert len(found) == len(compared) == len(set(compared)) > 400


def test_nothing_to_say_of_nothing() -> None:
    assert kinds(list(find_twins(likeness(sight([]))))) == []
