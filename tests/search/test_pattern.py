"""Regular expressions as languages, against Python's own `re`."""

import re
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import UsageError
from regard.search.languages import Language, holds
from regard.search.pattern import Pattern, characters, code_points

TEXTS = ["".join(letters) for length in range(5) for letters in product("abé", repeat=length)]


def expressions() -> st.SearchStrategy[str]:
    """Expressions over a, b and é; what is repeated is never empty, where `re` itself gives up."""
    atoms = st.sampled_from(["a", "b", "é", ".", "[ab]", "[^a]", "[a-é]", "\\w", "(?i:B)", "(?:ab)", "(é|ab)"])
    repeats = st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,2}", "*?", "{2,}"])
    parts = st.lists(st.builds(str.__add__, atoms, repeats), min_size=1, max_size=3).map("".join)
    return st.lists(parts, min_size=1, max_size=3).map("|".join)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(expressions())
def test_the_same_texts_match_as_in_re(expression: str) -> None:
    language, matches = Pattern(expression), re.compile(expression).fullmatch
    assert [text for text in TEXTS if holds(language, text)] == [text for text in TEXTS if matches(text)]


@pytest.mark.parametrize(
    ("expression", "texts"),
    [
        (r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", ["2018-05-09", "2018-13-09", "2018-5-9", "٢٠١٨-05-09", ""]),
        (r"^a+$", ["a", "aa", "", "ba"]),
        (r"(^a|b)c", ["ac", "bc", "c", "aac"]),
        (r"a$b|c", ["ab", "a", "c"]),
        (r"\Aa\Z", ["a", "aa"]),
        (r"(?i)straße|Ä", ["STRASSE", "STRAßE", "ä", "Ä"]),
        (r"(?s).", ["\n", "a"]),
        (r".", ["\n", "a", "😀", "ab"]),
        (r"[^\W\d_]+", ["naïve", "a1", "_", "日本語"]),
        (r"(?a)\w+", ["naive", "naïve"]),
        (r"[😀-😂]|\u20ac", ["😁", "😃", "€"]),
        (r"(?x) a  b # both", ["ab", "a  b"]),
        (r"(?P<name>a|b)(?:c)", ["ac", "bc", "c"]),
        (r"[\]\-^]+", ["]-^", "a"]),
        (r"a||b", ["", "a", "b", "c"]),
        (r"(?:a?b?)*", ["", "abba", "c"]),
        (r"\ud800|x", ["x"]),
    ],
)
def test_each_part_of_the_syntax(expression: str, texts: list[str]) -> None:
    language, matches = Pattern(expression), re.compile(expression).fullmatch
    assert [holds(language, text) for text in texts] == [bool(matches(text)) for text in texts]


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        (r"(a)\1", "a reference back to a group"),
        (r"(a)?(?(1)b|c)", "a choice that depends on a group"),
        (r"(?=a)a", "looking ahead or behind"),
        (r"(?<!a)b", "looking ahead or behind"),
        (r"\bword", "a word boundary"),
        (r"(?>a|ab)c", "an atomic group"),
        (r"a++b", "a possessive repeat"),
        (r"(?m)^a", "ends of lines"),
        (r"(?m:a$)", "ends of lines"),
        (r"(a", "missing ), unterminated subpattern at position 0"),
        (r"a**", "multiple repeat at position 2"),
        (r"(a{1000}){1000}", "write smaller numbers in braces"),
        (r"(?:){4000000}", "write smaller numbers in braces"),
        (r"[^\s\S]", "no text matches it"),
        (r"a$b", "no text matches it"),
    ],
)
def test_what_can_not_be_followed_is_refused_by_name(expression: str, what: str) -> None:
    with pytest.raises(UsageError) as refused:
        Pattern(expression)
    assert what in str(refused.value)
    assert len(str(refused.value).splitlines()) <= 3


@pytest.mark.parametrize("expression", ["a|bbb", "é{2}|[€-℃]bbbb", "(?:ab|é)+c?😀", ".{2}", "^a?$", "[^a]b"])
def test_the_distance_to_an_end_is_true(expression: str) -> None:
    """From every state that a few bytes lead to: the fewest bytes that can follow, tried out."""
    language = Pattern(expression)
    alphabet = sorted(set("abcé€😀℃".encode()) | {0xC2, 0xE2, 0x80, 0xBF})
    level = {language.start}
    for _ in range(4):
        for state in level:
            assert language.least(state) == fewest(language, state, alphabet)
            assert language.known(state) == (language.least(state),)
        level = {after for state in level for byte in alphabet if (after := language.follow(state, byte)) is not None}


def fewest(language: Language, state: object, alphabet: list[int]) -> int:
    level = {state}
    for count in range(12):
        if any(language.ends(each) for each in level):
            return count
        level = {after for each in level for byte in alphabet if (after := language.follow(each, byte)) is not None}
    raise AssertionError("no end within 12 bytes")


def test_thousands_of_half_characters_are_few_states() -> None:
    language = Pattern(".*")
    level, seen = {language.start}, {language.start}
    while level:
        level = {to for at in level for byte in range(256) if (to := language.follow(at, byte)) is not None} - seen
        seen |= level
    assert len(seen) < 20


def test_bytes_of_half_a_character_tell_a_range() -> None:
    for character in "a\x7fé\u07ff\u0800€\ufffd\U00010000😀\U0010ffff":
        spelled = character.encode()
        for length in range(1, len(spelled) + 1):
            found = code_points(spelled[:length])
            assert found is not None
            assert found[0] <= ord(character) <= found[1]
            assert found[2] == len(spelled) - length
    for broken in (b"\x80", b"\xc0", b"\xc1", b"\xe0\x80", b"\xf0\x8f", b"\xf4\x90", b"\xf5", b"\xff", b"\xe2a"):
        assert code_points(broken) is None


def test_no_class_holds_half_a_pair() -> None:
    assert characters(r"[\s\S]", 0) == ((0, 0xD7FF), (0xE000, 0x10FFFF))


@pytest.mark.parametrize("depth", [333, 5000])
def test_groups_nested_too_deeply_are_refused(depth: int) -> None:
    """Some can still be parsed, but not taken apart; the shallow ones can be both."""
    with pytest.raises(UsageError, match="groups within groups, too many to follow"):
        Pattern("(?:" * depth + "a" + ")*" * depth)
    assert holds(Pattern("(?:" * 50 + "a" + ")*" * 50), "aaa")
