"""Each kind of trouble with writing: a small file that has it, and one that has not."""

import pytest

from regard.data.doctor.finding import around, visible
from regard.data.doctor.writing import find_rare, find_strangers, find_writing, mended
from tests.data.doctor.rows import kinds, only, sight

SOUND = [("plain words", "schlichte Worte"), ("naïve café", "naives Café"), ("it's “so”…", "so »ist« es – Ä«")]

FLAWS = {
    "mojibake": ("a cafÃ© here", "trouble"),
    "lost characters": ("a caf\ufffd here", "trouble"),
    "control characters": ("a \x07 bell", "trouble"),
    "byte order marks": ("\ufeffjoined", "trouble"),
    "mixed normal forms": ("nai\u0308ve", "trouble"),
    "mixed scripts in a word": ("p\u0430ypal", "doubt"),
    "invisible characters": ("zero\u200bwidth", "doubt"),
    "odd spaces": ("no\u00a0break", "doubt"),
    "loose spaces": ("at the end ", "doubt"),
}


@pytest.mark.parametrize("kind", FLAWS)
@pytest.mark.parametrize("side", [0, 1])
def test_what_a_file_has_is_found_where_it_is(kind: str, side: int) -> None:
    text, level = FLAWS[kind]
    bad = (text, "sound") if side == 0 else ("sound", text)
    found = only(list(find_writing(sight([*SOUND, bad]))))
    assert (found.kind, found.level, found.count, found.of, found.lines) == (kind, level, 1, 4, (4,))
    assert found.example
    assert found.cure


def test_a_sound_file_has_nothing() -> None:
    assert kinds(list(find_writing(sight(SOUND)))) == []


@pytest.mark.parametrize(
    "text",
    [
        "می‌خواهم",  # a joiner that Persian needs
        "👩‍🚀 flies",  # and an emoji
        "東京　タワー",  # the wide space of Japanese
        "θɪŋk βeta",  # Greek letters of a phonetic alphabet
        "CAFÉ» dit-il, passé…»",  # a letter and quotation marks
        "NÃO É ÂMBAR",
        "Москва и Paris",  # two alphabets, each in words of its own
        "한국어",
    ],
)
def test_what_only_looks_odd_is_left_alone(text: str) -> None:
    assert kinds(list(find_writing(sight([("plain words", text)])))) == []


@pytest.mark.parametrize(
    ("text", "right"),
    [("cafÃ©", "é"), ("donâ€™t", "’"), ("Ð¿Ñ€", "пр"), ("Â°C", "°"), ("æ—¥æœ¬", "日本"), ("ÃŸ", "ß")],
)
def test_letters_of_a_wrong_encoding_and_what_they_were(text: str, right: str) -> None:
    found = mended(text)
    assert found is not None
    assert found[1] == right


def test_one_normal_form_throughout_is_only_remarked_on() -> None:
    found = only(list(find_writing(sight([("nai\u0308ve", "cafe\u0301")]))))
    assert (found.kind, found.level) == ("decomposed characters", "remark")


def test_spaces_that_a_task_gives_a_meaning() -> None:
    assert kinds(list(find_writing(sight([("New\u00a0York  is", "PLACE VERB")], "tag")))) == []


def test_what_leaves_no_ink_is_spelled_out() -> None:
    assert visible("a\u200bb\u00a0c\x07") == "a\\u200bb\\xa0c\\x07"
    assert around("x" * 100, 50, 10) == '"…xxxxxxxxxx…"'
    assert around("short", 2) == '"short"'


def test_characters_that_occur_once() -> None:
    found = only(list(find_rare(sight([("aab", "aaz"), ("é", "z")]))))
    assert (found.count, found.lines) == (2, (1, 2))
    assert "b é" in found.said
    assert list(find_rare(sight([("ab", "ab")]))) == []


def test_characters_that_only_the_second_file_has() -> None:
    here = sight([("abc", "x")])
    found = only(list(find_strangers(here, sight([("abc", "x"), ("abß", "x")]), "t.tsv")))
    assert (found.lines, found.count, found.of) == ((2,), 1, 2)
    assert "ß" in found.said
    assert list(find_strangers(here, here, "t.tsv")) == []


def test_each_side_is_compared_with_its_own() -> None:
    here, rows = sight([("abc", "xyz")] * 9), [("abc", "xyz")] * 9
    found = only(list(find_strangers(here, sight([*rows, ("abx", "xyz")]), "t.tsv")))
    assert (found.kind, found.lines) == ("unseen characters", (10,))
    assert "in the source that no source here has: x" in found.said
    found = only(list(find_strangers(here, sight([*rows, ("abc", "xya")]), "t.tsv")))
    assert "in the target that no target here has: a" in found.said


@pytest.mark.parametrize(
    ("source", "target"),
    [("one two {}", "eins zwei drei {}"), ("the cat", "le chat noir a été là"), ("{} may 1998", "1998-05-{}")],
)
def test_swapped_columns_are_asked_about(source: str, target: str) -> None:
    rows = [(source.format(i), target.format(i)) for i in range(60)]
    turned = [(right, left) for left, right in rows]
    found = only(list(find_strangers(sight(rows), sight(turned), "t.tsv")))
    assert (found.level, found.count) == ("trouble", 60)
    assert "columns swapped?" in found.said
    assert list(find_strangers(sight(rows), sight(rows), "t.tsv")) == []


def test_sides_that_are_written_alike_are_not_swapped() -> None:
    rows = [(f"word{i}", f"{i}drow") for i in range(60)]
    assert list(find_strangers(sight(rows[:40]), sight([(b, a) for a, b in rows[40:]]), "t.tsv")) == []
