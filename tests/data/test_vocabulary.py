"""The tokenizers of both sides: one or two, tags as whole tokens, several columns, and the way to JSON and back."""

import json

import pytest

from regard import config
from regard.data.read import Example
from regard.data.tokens import END, PAD, SEPARATOR, SPECIALS, UNKNOWN
from regard.data.vocabulary import Vocabulary, learn
from regard.errors import FolderError

FORMS = [Example(("walk", "V;PST"), "walked", 1), Example(("see", "V;3;SG"), "sees", 2)]
PAIRS = [Example(("ab",), "xy", 1), Example(("abc",), "xyz", 2)]


def settings(*words: str) -> config.Config:
    return config.resolve("rnn", None, list(words))


def test_two_vocabularies_know_their_own_side() -> None:
    found = learn(PAIRS, settings("tokens.source=words", "tokens.target=words"), [False])
    assert not found.shared
    assert found.source.decode(found.source.encode("ab").ids) == "ab"
    assert found.target.decode(found.target.encode("xy").ids) == "xy"
    assert found.target.decode(found.target.encode("ab").ids) != "ab"


def test_one_vocabulary_is_one_object_that_knows_both_sides() -> None:
    found = learn(PAIRS, settings("tokens.source=words", "tokens.target=words", "tokens.shared=true"), [False])
    assert found.shared
    assert found.source is found.target
    assert found.source.size == len(SPECIALS) + 4
    assert [found.source.decode(found.source.encode(text).ids) for text in ("abc", "xyz")] == ["abc", "xyz"]


def test_without_targets_the_source_is_all() -> None:
    assert learn([Example(("ab",), None, 1)], settings(), [False]).shared


def test_sizes_of_two_vocabularies() -> None:
    texts = [Example((f"s{i}",), f"t{i}", i) for i in range(9)]
    words = ["tokens.source=words", "tokens.target=words", "tokens.size=5"]
    one, two = learn(texts, settings(*words), [False]), learn(texts, settings(*words, "tokens.target_size=3"), [False])
    assert one.source.size == one.target.size == two.source.size == len(SPECIALS) + 5
    assert two.target.size == len(SPECIALS) + 3


def test_each_tag_is_one_token_and_columns_have_a_separator() -> None:
    found = learn(FORMS, settings("tokens.source=characters"), [False, True])
    ids = found.encode_source(("walk", "V;PST")).ids
    assert len(ids) == 4 + 1 + 2
    assert ids[4] == SEPARATOR
    assert [found.source.token(id) for id in ids[5:]] == ["V", "PST"]
    assert found.source.tags == ("3", "PST", "SG", "V")
    assert found.encode_source(("V", "V")).ids[0] != found.encode_source(("V", "V")).ids[2]


def test_tags_are_unknown_to_the_target() -> None:
    assert learn(FORMS, settings(), [False, True]).target.tags == ()


def test_text_columns_are_joined_in_order() -> None:
    found = learn(FORMS, settings(), [False, False])
    first, second = found.source.encode("see").ids, found.source.encode("V;3;SG").ids
    assert found.encode_source(("see", "V;3;SG")).ids == (*first, SEPARATOR, *second)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("kind", ["characters", "bytes", "words", "bpe", "unigram"])
def test_as_dict_and_back(kind: str, shared: bool) -> None:
    words = [f"tokens.source={kind}", f"tokens.target={kind}", f"tokens.shared={str(shared).lower()}"]
    found = learn(FORMS, settings(*words, "tokens.size=300"), [False, True])
    back = Vocabulary.from_dict(json.loads(json.dumps(found.as_dict())))
    assert back.shared == shared
    assert back.is_tags == (False, True)
    assert back.as_dict() == found.as_dict()
    for columns in (("walked", "V;PST"), ("é 9 <pad>", "V;V;unheard"), ("", "")):
        assert back.encode_source(columns) == found.encode_source(columns)


@pytest.mark.parametrize(
    "change",
    [
        {"tags": []}, {"tags": "no"}, {"tags": [1]}, {"tags": None}, {"extra": 1}, {"source": None}, {"target": 4},
        {"source": {"kind": "pickle"}},
    ],
)  # fmt: skip
def test_damaged_dict_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(FolderError) as caught:
        Vocabulary.from_dict({**learn(PAIRS, settings(), [False]).as_dict(), **change})
    assert len(str(caught.value).splitlines()) <= 3


@pytest.mark.parametrize("value", [None, [], "text", {}, {"source": {}}])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(FolderError):
        Vocabulary.from_dict(value)


# ── what is copied as what ───────────────────────────────────────────────────────────────────────────────────────────

NAMES = [Example(("meet zoë and bob",), "bob and zoë", 1), Example(("meet bob",), "bob", 2)]


def copying(*words: str) -> config.Config:
    return config.resolve("rnn-attention", None, ["decoder.copy=true", *words])


@pytest.mark.parametrize("kind", ["characters", "bytes", "words", "bpe", "unigram"])
@pytest.mark.parametrize("shared", ["true", "false"])
def test_a_token_is_copied_as_the_same_text(kind: str, shared: str) -> None:
    words = [f"tokens.{side}={kind}" for side in ("source", "target")]
    found = learn(NAMES, copying(*words, f"tokens.shared={shared}"), [False])
    copies = found.copies()
    assert len(copies) == found.source.size
    read = found.source.encode("meet zoë and bob ☃" if kind != "words" else "meet zoë and bob").ids
    assert found.target.decode([copies[id] for id in read]) == found.source.decode(read)
    assert all(len(SPECIALS) <= copies[id] < found.target.size for id in read)


def test_a_character_is_copied_as_it_is_encoded() -> None:
    found = learn(NAMES, copying(), [False])
    for text in ("meet zoë", "☃"):
        copied = [found.copies()[id] for id in found.source.encode(text).ids]
        assert tuple(copied) == found.target.encode(text).ids


def test_signs_tags_and_what_the_target_has_not_are_never_copied() -> None:
    forms = [Example(("walk", "V"), "walked V", 1)]
    words = ["tokens.source=words", "tokens.target=words"]
    found = learn(forms, copying(*words), [False, True])
    ids = found.encode_source(("walk", "V")).ids
    assert [found.copies()[id] for id in ids[1:]] == [PAD, PAD]  # the separator, and a tag that is no word
    assert [found.copies()[id] for id in (PAD, END, UNKNOWN)] == [PAD] * 3
    both = learn(forms, copying(*words, "tokens.shared=true"), [False, True])
    assert both.copies()[: both.source.pieces.first] == [PAD] * both.source.pieces.first
    apart = learn(forms, settings(*words), [False, True])
    assert [apart.copies()[id] for id in apart.source.encode("walk").ids] == [PAD]


def test_words_of_the_source_are_known_to_a_target_that_may_copy_them() -> None:
    words = ["tokens.source=words", "tokens.target=words"]
    assert UNKNOWN in learn(NAMES, settings(*words), [False]).target.encode("meet").ids
    assert UNKNOWN not in learn(NAMES, copying(*words), [False]).target.encode("meet").ids
    few = learn(NAMES, copying(*words, "tokens.size=2"), [False])  # of the source; as many again of the targets
    assert few.source.size == len(SPECIALS) + 2
    assert few.target.size == len(SPECIALS) + 4
