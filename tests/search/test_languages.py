"""Lists and required texts as languages, against sets and `in`."""

from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from regard.search.languages import Both, Choices, Language, Phrases, Remembered, Without, holds
from regard.search.pattern import Pattern

TEXTS = ["".join(letters) for length in range(6) for letters in product("abé", repeat=length)]
usual = settings(max_examples=40, deadline=None, derandomize=True)
short = st.text(alphabet="abé", max_size=4)


def walked(language: Language, text: str) -> Any:
    state = language.start
    for byte in text.encode():
        state = language.follow(state, byte)
        if state is None:
            return None
    return state


def check_bounds(language: Language, legal: list[str], begun: str) -> None:
    """What a state tells of the bytes that may follow, against all that do."""
    state = walked(language, begun)
    rest = [len(text.encode()) - len(begun.encode()) for text in legal if text.startswith(begun)]
    if state is None:
        assert not rest
    elif rest:
        assert language.least(state) <= min(rest)
        assert max(rest) <= language.most(state)
        assert language.ends(state) is (0 in rest)


@usual
@given(st.lists(short, min_size=1, max_size=8), short)
def test_choices_are_a_set(choices: list[str], begun: str) -> None:
    language = Choices(choices)
    assert [text for text in TEXTS if holds(language, text)] == [text for text in TEXTS if text in choices]
    check_bounds(language, choices, begun)
    state = walked(language, begun)
    if state is not None:
        rest = {len(text.encode()) - len(begun.encode()) for text in choices if text.startswith(begun)}
        assert language.known(state) == (min(rest), max(rest))


@usual
@given(st.lists(short.filter(bool), min_size=1, max_size=3, unique=True), short)
def test_phrases_are_found_anywhere(phrases: list[str], begun: str) -> None:
    language = Phrases(phrases)
    legal = [text for text in TEXTS if all(phrase in text for phrase in phrases)]
    assert [text for text in TEXTS if holds(language, text)] == legal
    check_bounds(language, legal, begun)
    state = walked(language, begun)
    assert language.met(language.start) == 0
    assert (language.met(state) == language.total) is language.ends(state)


@usual
@given(st.lists(short.filter(bool), min_size=1, max_size=4), short)
def test_what_is_banned_is_found_anywhere(phrases: list[str], begun: str) -> None:
    """Also a phrase within another, and one that begins where another fails."""
    language = Without(phrases)
    legal = [text for text in TEXTS if not any(phrase in text for phrase in phrases)]
    assert [text for text in TEXTS if holds(language, text)] == legal
    check_bounds(language, legal, begun)


@usual
@given(st.lists(st.sampled_from(["ab", "ba", "aa", "é", "aba"]), min_size=1, max_size=3, unique=True), short)
def test_what_is_known_of_phrases_can_be_written(phrases: list[str], begun: str) -> None:
    language = Phrases(phrases)
    state = walked(language, begun)
    (count,) = language.known(state)
    level = {state}
    for _ in range(count):
        level = {language.follow(each, byte) for each in level for byte in "abé".encode()}
    assert any(language.ends(each) for each in level)


@usual
@given(st.sampled_from(["[ab]+", "a*é?b*", "(ab|é)*"]), st.sampled_from(["a", "ba", "é", "bb"]), short)
def test_both_is_what_is_in_both(expression: str, phrase: str, begun: str) -> None:
    left, right = Pattern(expression), Phrases([phrase])
    both = Remembered(Both(left, right))
    legal = [text for text in TEXTS if holds(left, text) and holds(right, text)]
    assert [text for text in TEXTS if holds(both, text)] == legal
    check_bounds(both, legal, begun)
    assert both.total == len(phrase.encode())


def test_broken_bytes_are_in_no_list_and_no_harm_to_phrases() -> None:
    choices, phrases = Choices(["é", "a"]), Phrases(["é"])
    assert [choices.follow(choices.start, byte) for byte in (0x80, 0xFF, 0xC2)] == [None] * 3
    state: Any = phrases.start
    for byte in b"\xe2\x82\xc3\xa9\xff":
        state = phrases.follow(state, byte)
    assert phrases.ends(state)
    assert "é" in b"\xe2\x82\xc3\xa9\xff".decode(errors="replace")


def test_half_characters_in_a_list_are_mended() -> None:
    assert Choices(["a\ud800"]).lines == ["a\ufffd".encode()]
