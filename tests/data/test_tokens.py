"""Tokenizers: texts and tampered files in, round trips, places and refusals out."""

import json
import re
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from itertools import pairwise, permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data import tokens
from regard.data.ragged import Ragged
from regard.data.tokens import (
    CLASS,
    END,
    KINDS,
    LETTERS,
    MASK,
    PAD,
    SEPARATOR,
    SPECIALS,
    START,
    TOKEN,
    UNKNOWN,
    Encoding,
    Kind,
    Tokenizer,
    mend,
    plain_word,
    sentence_spans,
)
from regard.errors import ConfigError, FolderError, UsageError

LOSSLESS: tuple[Kind, ...] = ("characters", "bytes", "bpe", "unigram")
SUBWORDS: tuple[Kind, ...] = ("bpe", "unigram")
TEXTS = ["the cat sat on the mat", "the dog sat on the log", "naïve café 漢字 漢字", "the cats and the dogs"] * 5
SCRIPTS = [
    "漢字かな交じり文",
    "👩‍👩‍👧‍👦 and 🇩🇪",
    "e\u0301 versus é",
    "שָׁלוֹם עולם",
    "السلام عليكم",
    "नमस्ते दुनिया",
    "\x00\x1b[31m\u2028\u200f",
    "  two  spaces  ",
    "tab\tand\nline",
    "\ufffd",
    " ",
    "",
]
LEARNT = {kind: Tokenizer.learn(TEXTS, kind, size=300, tags=["V;PST", "N"]) for kind in KINDS}
valid = st.text(st.characters(codec="utf-8"))


def saved(tokenizer: Tokenizer) -> str:
    return json.dumps(tokenizer.as_dict())


def covered(encoding: Encoding) -> set[int]:
    return {at for start, end in encoding.spans for at in range(start, end)}


# --- there and back --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LOSSLESS)
@settings(max_examples=150, deadline=None)
@given(text=valid)
def test_text_in_is_text_out(kind: Kind, text: str) -> None:
    tokenizer = LEARNT[kind]
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


@pytest.mark.parametrize("kind", LOSSLESS)
@pytest.mark.parametrize("text", SCRIPTS)
def test_every_script_comes_back(kind: Kind, text: str) -> None:
    tokenizer = LEARNT[kind]
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


@pytest.mark.parametrize("kind", LOSSLESS)
@settings(max_examples=30, deadline=None)
@given(texts=st.lists(valid, max_size=4), size=st.integers(1, 400), text=valid)
def test_whatever_was_learnt_from(kind: Kind, texts: list[str], size: int, text: str) -> None:
    tokenizer = Tokenizer.learn(texts, kind, size)
    for each in [*texts, text]:
        assert tokenizer.decode(tokenizer.encode(each).ids) == each


# --- many at once ----------------------------------------------------------------------------------------------------

spaced = st.text(st.sampled_from("ab1.,é漢👩 \u00a0\u3000\t\n\r\x1c\x85\u2028\u0301"))


def flat_rows(flat: Ragged) -> list[tuple[int, ...]]:
    return [tuple(flat.ids[start : start + length].tolist())
            for start, length in zip(flat.starts, flat.lengths, strict=True)]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150, deadline=None)
@given(texts=st.lists(valid | spaced, max_size=6))
def test_many_at_once_give_the_same_ids(kind: Kind, texts: list[str]) -> None:
    tokenizer = LEARNT[kind]
    for _ in range(2):  # the second time subwords remember
        assert flat_rows(tokenizer.encode_flat(texts)) == [tokenizer.encode(text).ids for text in texts]


@pytest.mark.parametrize("kind", KINDS)
def test_scripts_and_half_characters_at_once(kind: Kind) -> None:
    texts = [*SCRIPTS, "a\ud800b", *TEXTS]
    assert flat_rows(LEARNT[kind].encode_flat(texts)) == [LEARNT[kind].encode(text).ids for text in texts]


def test_columns_at_once() -> None:
    rows = [("the cat", "V;PST"), ("", "N"), ("log", "unheard;N"), ("mat  on", "")]
    columns = [[row[place] for row in rows] for place in (0, 1)]
    for kind in KINDS:
        found = LEARNT[kind].encode_columns_flat(columns, [False, True])
        assert flat_rows(found) == [LEARNT[kind].encode_columns(row, [False, True]).ids for row in rows]


@pytest.mark.parametrize("kind", SUBWORDS)
def test_what_is_remembered_has_a_bound(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MOST_KNOWN", 10)
    tokenizer = Tokenizer.learn(TEXTS, kind, size=300)
    for start in range(0, 200, 5):
        texts = [f"word{i} the {i}" for i in range(start, start + 5)]
        assert flat_rows(tokenizer.encode_flat(texts)) == [tokenizer.encode(text).ids for text in texts]
    assert isinstance(tokenizer.pieces, tokens.Subwords)
    assert len(tokenizer.pieces._known) <= 10 + 11


def test_of_too_many_words_the_rarest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MOST_TYPES", 40)
    texts = [f"often {'now' if i % 3 == 0 else 'then'} {i}" for i in range(1000)]
    counts = tokens.count_types(map(str.split, texts), 3)
    assert len(counts) <= 42
    assert (counts["often"], counts["now"], counts["then"]) == (1000, 334, 666)
    assert Tokenizer.learn(texts, "words", 3).as_dict()["words"] == ["often", "then", "now"]
    assert tokens.count_types([[str(i)] for i in range(100)], 50).total() == 100  # four times what is wanted


# --- words, bytes, specials ------------------------------------------------------------------------------------------


def test_words_come_back_with_one_space_between_them() -> None:
    tokenizer = LEARNT["words"]
    assert tokenizer.decode(tokenizer.encode("  the\tcat  ran ").ids) == "the cat \ufffd"


def test_half_a_character_is_replaced_and_keeps_its_place() -> None:
    for kind in LOSSLESS:
        encoding = LEARNT[kind].encode("a\ud800b")
        assert LEARNT[kind].decode(encoding.ids) == "a\ufffdb"
        assert covered(encoding) == {0, 1, 2}
        assert "\\ud800" not in saved(Tokenizer.learn(["a\ud800b"], kind, tags=["\udfff"]))


def test_broken_bytes_are_shown_as_replaced() -> None:
    tokenizer = LEARNT["bytes"]
    kept, lost = tokenizer.encode("é").ids
    assert tokenizer.decode([kept]) == "\ufffd"
    assert tokenizer.decode([lost, kept, lost]) == "\ufffdé"


def test_special_tokens_are_left_out_but_unknown_is_shown() -> None:
    for kind in LOSSLESS:
        one, two = LEARNT[kind].encode("on").ids, LEARNT[kind].encode("e").ids
        ids = [START, *one, PAD, MASK, UNKNOWN, *two, CLASS, SEPARATOR, END, PAD]
        assert LEARNT[kind].decode(ids).replace(" ", "") == "on\ufffde"


def test_the_first_word_has_the_pieces_of_the_same_word_later() -> None:
    for kind in SUBWORDS:
        the = LEARNT[kind].encode("the").ids
        assert LEARNT[kind].encode("the the").ids == the + the


@pytest.mark.parametrize("kind", SUBWORDS)
def test_a_frequent_word_is_one_piece(kind: Kind) -> None:
    # "January" shares no part with another word: the library's unigram trainer by itself would spell it out.
    texts = [f"{day} {month} {year}" for day in range(1, 29) for month in ("January", "May") for year in (1990, 2000)]
    tokenizer = Tokenizer.learn(texts, kind, size=400)
    assert [tokenizer.token(id) for id in tokenizer.encode("12 January").ids] == ["␣", "1", "2", "␣January"]
    assert tokenizer.size < 7 + 400


@pytest.mark.parametrize("kind", SUBWORDS)
def test_digits_stand_alone(kind: Kind) -> None:
    """A number that was not seen has no other pieces than one that came often."""
    texts = [f"over {number}? ٤٢ 4x{number}" for number in (345, 345, 345, 12, 34, 5)] * 9
    tokenizer = Tokenizer.learn(texts, kind, size=400)
    assert [tokenizer.token(id) for id in tokenizer.encode("345 over 977").ids] == ["␣", *"345", "␣over", "␣", *"977"]
    assert [tokenizer.token(id) for id in tokenizer.encode("٢٤").ids] == ["␣", *"٢٤"]
    pieces = map(tokenizer.token, range(tokenizer.size))
    assert not [piece for piece in pieces if re.fullmatch(r"[^<]*\d\d[^<]*", piece)]


def test_counts_beyond_measure_are_scaled_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MOST_REGIONS", 10)
    fed = list(tokens.marked(Counter({"rare": 1, "twice": 2, "often": 97})))
    assert fed[:2] == ["often", "often" + tokens.MARKER]
    assert Counter(word.rstrip(tokens.MARKER) for word in fed) == {"often": 9, "rare": 1, "twice": 2}


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_the_same_as_one_by_one(kind: Kind) -> None:
    texts = [*SCRIPTS, *TEXTS] * 40
    assert LEARNT[kind].encode_batch(texts) == [LEARNT[kind].encode(text) for text in texts]
    assert LEARNT[kind].encode_batch([]) == []


# --- no special token from text --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_special_names_and_tags_in_a_text_are_text(kind: Kind) -> None:
    texts = [*SPECIALS, "V", "PST", "N", "</s>", "[MASK]", "<|endoftext|>", "<0x41>"]
    tokenizer = Tokenizer.learn([*TEXTS, " ".join(texts), *texts] * 2, kind, size=500, tags=["V", "PST", "N"])
    for text in texts:
        ids = tokenizer.encode(text).ids
        assert min(ids) >= len(SPECIALS) + 3
        assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100, deadline=None)
@given(parts=st.lists(st.sampled_from(["<pad>", "<unknown>", "<", ">", "pad", "V", ";", " ", "é"])))
def test_no_text_gives_a_special_id(kind: Kind, parts: list[str]) -> None:
    tokenizer, text = LEARNT[kind], "".join(parts)
    first = len(SPECIALS) + len(tokenizer.tags)
    allowed = {UNKNOWN} if kind in ("words", "spelled", "sentences") else set()
    assert all(first <= id < tokenizer.size or id in allowed for id in tokenizer.encode(text).ids)


# --- places ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100, deadline=None)
@given(text=valid)
def test_spans_are_in_order_and_cover_the_text(kind: Kind, text: str) -> None:
    encoding = LEARNT[kind].encode(text)
    assert len(encoding.ids) == len(encoding.spans)
    assert all(0 <= start <= end <= len(text) for start, end in encoding.spans)
    assert all(before[0] <= after[0] for before, after in pairwise(encoding.spans))
    if kind != "spelled":  # there a word ends after its first letter
        assert all(before[1] <= after[1] for before, after in pairwise(encoding.spans))
    white = {"words": str.isspace, "sentences": str.isspace, "spelled": lambda each: not TOKEN.match(each)}.get(
        kind, lambda each: False
    )
    inside = {at for at in covered(encoding) if kind == "sentences" and text[at].isspace()}  # a sentence has spaces
    assert covered(encoding) - inside == {at for at, character in enumerate(text) if not white(character)}


def test_characters_concatenate_to_the_text() -> None:
    text = "naïve café the 漢字"
    tokenizer = Tokenizer.learn([text], "characters")
    encoding = tokenizer.encode(text)
    assert [text[start:end] for start, end in encoding.spans] == list(text)
    assert [tokenizer.decode([id]) for id in encoding.ids] == list(text)


def test_the_bytes_of_an_unseen_character_share_its_place() -> None:
    for kind in ("characters", "bytes"):
        encoding = LEARNT[kind].encode("a😀b")
        assert encoding.spans == ((0, 1), *[(1, 2)] * 4, (2, 3))


@pytest.mark.parametrize("kind", SUBWORDS)
def test_a_whole_piece_stands_where_its_text_is(kind: Kind) -> None:
    tokenizer = LEARNT[kind]
    text = "the cat, naïve 漢字 😀 log"
    encoding = tokenizer.encode(text)
    for id, (start, end) in zip(encoding.ids, encoding.spans, strict=True):
        spelling = tokenizer.pieces.spellings[id - tokenizer.pieces.first]
        if start == 0:  # the space that every text is read with stands before it
            spelling = spelling.removeprefix(b" ")
        assert spelling in text[start:end].encode()
    assert encoding.spans[0][0] == 0


def test_words_stand_where_they_are() -> None:
    text = " the  zebra sat"
    encoding = LEARNT["words"].encode(text)
    assert [text[start:end] for start, end in encoding.spans] == ["the", "zebra", "sat"]
    assert [id == UNKNOWN for id in encoding.ids] == [False, True, False]


# --- columns and tags ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_joined_by_a_separator_at_the_tab(kind: Kind) -> None:
    tokenizer = LEARNT[kind]
    columns = ["the cat", "N|PST V", "", "dog;s"]
    encoding = tokenizer.encode_columns(columns, [False, True, False, False])
    text = "\t".join(columns)
    separators = [span for id, span in zip(encoding.ids, encoding.spans, strict=True) if id == SEPARATOR]
    assert separators == [(at, at) for at, character in enumerate(text) if character == "\t"]
    tags = [(id, text[s:e]) for id, (s, e) in zip(encoding.ids, encoding.spans, strict=True) if 7 <= id < 10]
    assert tags == [(7, "N"), (8, "PST"), (9, "V")]
    assert encoding.ids[: len(tokenizer.encode("the cat").ids)] == tokenizer.encode("the cat").ids
    assert encoding.ids[-len(tokenizer.encode("dog;s").ids) :] == tokenizer.encode("dog;s").ids
    assert encoding.spans[-1][1] == len(text)


def test_tags_are_sorted_deduplicated_and_split() -> None:
    tokenizer = Tokenizer.learn(["a"], "bytes", tags=["V;PST", "PL", "V|SG", "", "PL PL", "PL, SG"])
    assert tokenizer.tags == ("PL", "PST", "SG", "V")
    assert tokenizer.size == 7 + 4 + 256
    assert [tokenizer.token(id) for id in range(7, 11)] == ["PL", "PST", "SG", "V"]


def test_an_unseen_tag_is_unknown_and_tags_decode_with_semicolons() -> None:
    tokenizer = LEARNT["characters"]
    encoding = tokenizer.encode_columns(["V;FUT;N"], [True])
    assert encoding.ids == (9, UNKNOWN, 7)
    assert encoding.spans == ((0, 1), (2, 5), (6, 7))
    assert tokenizer.decode([9, 8, SEPARATOR, *tokenizer.encode("cat").ids]) == "V;PST cat"


def test_empty_columns() -> None:
    assert LEARNT["characters"].encode_columns(["", ""], [False, True]) == Encoding((SEPARATOR,), ((0, 0),))
    assert LEARNT["bpe"].encode_columns([""], [False]) == Encoding((), ())


def test_columns_and_marks_must_be_as_many() -> None:
    with pytest.raises(UsageError, match="2 columns, but 1"):
        LEARNT["bytes"].encode_columns(["a", "b"], [False])


# --- vocabularies ----------------------------------------------------------------------------------------------------


def test_special_ids_and_their_names() -> None:
    assert (PAD, START, END, SEPARATOR, MASK, UNKNOWN, CLASS) == (0, 1, 2, 3, 4, 5, 6)
    assert [LEARNT["bpe"].token(id) for id in range(7)] == list(SPECIALS)


def test_characters_are_bytes_then_by_frequency_then_code_point() -> None:
    tokenizer = Tokenizer.learn(["bca", "ccé", "a"], "characters")
    assert tokenizer.as_dict() == {"kind": "characters", "tags": [], "characters": "cabé"}
    assert tokenizer.size == 7 + 256 + 4
    assert Tokenizer.learn(["bca", "ccé", "a"], "characters", size=2).as_dict()["characters"] == "ca"


def test_words_are_the_most_frequent_and_ties_go_by_string() -> None:
    tokenizer = Tokenizer.learn(["b a c", "c  d"], "words", size=3)
    assert tokenizer.as_dict()["words"] == ["c", "a", "b"]
    assert tokenizer.encode("a b c d").ids == (8, 9, 7, UNKNOWN)


@pytest.mark.parametrize("kind", SUBWORDS)
def test_subwords_keep_to_their_size(kind: Kind) -> None:
    assert Tokenizer.learn(TEXTS, kind, size=270).size <= 7 + 270
    assert Tokenizer.learn(TEXTS, kind, size=1).size == 7 + 256
    assert Tokenizer.learn(["a" * 3000] * 3, kind).size < 7 + 1000


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("texts", [[], [""], ["a"], ["é"], [" "], ["ab ab"], ["a" * 500], ["\x00"]])
def test_tiny_data(kind: Kind, texts: list[str]) -> None:
    tokenizer = Tokenizer.learn(texts, kind)
    assert Tokenizer.from_dict(json.loads(saved(tokenizer))).encode("").ids == ()
    for text in texts:
        if kind not in ("words", "sentences"):
            assert tokenizer.decode(tokenizer.encode(text).ids) == (text.strip() if kind == "spelled" else text)


def test_tokens_are_shown_so_that_a_person_sees_them() -> None:
    tokenizer = Tokenizer.learn(["a \x1bé"], "characters")
    shown = [tokenizer.token(id) for id in tokenizer.encode("a \x1bé😀").ids]
    assert shown == ["a", "␣", "<U+001B>", "é", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>"]
    assert LEARNT["bpe"].token(LEARNT["bpe"].encode("the").ids[0]).startswith("␣")


@pytest.mark.parametrize("id", [-1, 10**6])
def test_an_id_outside_the_vocabulary(id: int) -> None:
    with pytest.raises(UsageError, match=f"token {id}: expected an id from 0 to"):
        LEARNT["words"].token(id)
    with pytest.raises(UsageError, match=f"token {id}"):
        LEARNT["words"].decode([id])


@pytest.mark.parametrize(
    ("kind", "nearest"), [("character", "characters"), ("byte", "bytes"), ("BPE", ""), ("unigramm", "unigram")]
)
def test_an_unknown_kind_is_told_the_nearest(kind: Any, nearest: str) -> None:
    with pytest.raises(ConfigError, match=f"found the kind '{kind}', expected one of characters.*{nearest}"):
        Tokenizer.learn([], kind)


@pytest.mark.parametrize("size", [0, -5, 10**7])
def test_an_absurd_size_is_refused(size: int) -> None:
    with pytest.raises(ConfigError, match=f"{size} pieces, expected 1 to"):
        Tokenizer.learn(["a"], "words", size)


def test_symbols_are_those_of_the_library() -> None:
    from tokenizers import pre_tokenizers

    assert set(tokens.SYMBOLS) == set(pre_tokenizers.ByteLevel.alphabet())
    split = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str("é \x00")
    assert "".join(piece for piece, _ in split) == "".join(tokens.SYMBOLS[byte] for byte in "é \x00".encode())


# --- the same every time ---------------------------------------------------------------------------------------------

LEARN_AND_PRINT = """
import json, sys
from itertools import permutations
from regard.data.tokens import Tokenizer
texts = ["".join(order) for order in permutations("abcdef")] + json.loads(sys.argv[1])
print(json.dumps([Tokenizer.learn(texts, kind, 330, {"V", "N", "PST"}).as_dict() for kind in json.loads(sys.argv[2])]))
"""


def test_learning_is_the_same_in_every_process() -> None:
    # Permutations tie in every count, so an order taken from a hash table would show.
    texts = ["".join(order) for order in permutations("abcdef")] + TEXTS
    here = json.dumps([Tokenizer.learn(texts, kind, 330, ["N", "PST", "V", "V"]).as_dict() for kind in KINDS])
    for _ in range(2):
        command = [sys.executable, "-c", LEARN_AND_PRINT, json.dumps(TEXTS), json.dumps(KINDS)]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        assert result.stdout.strip() == here
        assert result.stderr == ""


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded_is_the_same(kind: Kind) -> None:
    again = Tokenizer.from_dict(json.loads(saved(LEARNT[kind])))
    assert saved(again) == saved(LEARNT[kind])
    assert (again.kind, again.size, again.tags) == (kind, LEARNT[kind].size, ("N", "PST", "V"))
    for text in [*SCRIPTS, *TEXTS]:
        assert again.encode(text) == LEARNT[kind].encode(text)


# --- a file that is not ours -----------------------------------------------------------------------------------------

E, SPACE_A = "e", tokens.SYMBOLS[32] + "a"
DOUBLING = [[E * 2**n, E * 2**n] for n in range(7)]
SCORES = [-5.0] * 256
TAMPERED: list[tuple[Any, str]] = [
    (None, "expected a table"),
    ([], "expected a table"),
    ({}, "found the kind None"),
    ({"kind": "byte", "tags": []}, "did you mean bytes"),
    ({"kind": ["bytes"], "tags": []}, "expected one of"),
    ({"kind": "bytes"}, "no 'tags'"),
    ({"kind": "bytes", "tags": [], "pre_tokenizer": {"type": "Split"}}, "found 'pre_tokenizer'"),
    ({"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}}, "found the kind None"),
    ({"kind": "bytes", "tags": "N"}, "expected a list"),
    ({"kind": "bytes", "tags": ["N", 3]}, "found 3 among the tags"),
    ({"kind": "bytes", "tags": ["N V"]}, "found 'N V'"),
    ({"kind": "bytes", "tags": [""]}, "found ''"),
    ({"kind": "bytes", "tags": ["N", "N"]}, "twice"),
    ({"kind": "bytes", "tags": ["V", "N"]}, "out of order"),
    ({"kind": "bytes", "tags": ["\ud800"]}, "among the tags"),
    ({"kind": "characters", "tags": [], "characters": ["a"]}, "expected text"),
    ({"kind": "characters", "tags": [], "characters": "aba"}, "'a' twice"),
    ({"kind": "characters", "tags": [], "characters": "\udc00"}, "expected text"),
    ({"kind": "words", "tags": [], "words": ["a", "a"]}, "twice"),
    ({"kind": "words", "tags": [], "words": ["a b"]}, "found 'a b'"),
    ({"kind": "words", "tags": [], "words": {"a": 1}}, "expected a list"),
    ({"kind": "words", "tags": [], "merges": []}, "found 'merges'"),
    ({"kind": "bpe", "tags": [], "merges": [["a", "b", "c"]]}, "expected two known pieces"),
    ({"kind": "bpe", "tags": [], "merges": ["a b"]}, "expected two known pieces"),
    ({"kind": "bpe", "tags": [], "merges": [["ab", "c"]]}, "expected two known pieces"),
    ({"kind": "bpe", "tags": [], "merges": [["a", "漢"]]}, "expected two known pieces"),
    ({"kind": "bpe", "tags": [], "merges": [["a", ""]]}, "expected two known pieces"),
    ({"kind": "bpe", "tags": [], "merges": [["a", "b"], ["a", "b"]]}, "twice"),
    ({"kind": "bpe", "tags": [], "merges": DOUBLING}, "32 bytes"),
    ({"kind": "unigram", "tags": [], "scores": SCORES[1:], "pieces": []}, "found 255 scores"),
    ({"kind": "unigram", "tags": [], "scores": [float("nan"), *SCORES[1:]], "pieces": []}, "found the score nan"),
    ({"kind": "unigram", "tags": [], "scores": [True, *SCORES[1:]], "pieces": []}, "found the score True"),
    ({"kind": "unigram", "tags": [], "scores": SCORES, "pieces": [["ab", float("inf")]]}, "found the score inf"),
    ({"kind": "unigram", "tags": [], "scores": SCORES, "pieces": [["ab", 0.5]]}, "found the score 0.5"),
    ({"kind": "unigram", "tags": [], "scores": SCORES, "pieces": [["a", -1.0]]}, "2 to 32 bytes"),
    ({"kind": "unigram", "tags": [], "scores": SCORES, "pieces": [["a b", -1.0]]}, "2 to 32 bytes"),
    ({"kind": "unigram", "tags": [], "scores": SCORES, "pieces": [["ab", -1.0], ["ab", -2.0]]}, "twice"),
    ({"kind": "unigram", "tags": [], "scores": SCORES, "pieces": [["e" * 33, -1.0]]}, "2 to 32 bytes"),
]


@pytest.mark.parametrize(("data", "complaint"), TAMPERED)
def test_a_tampered_file_is_refused(data: Any, complaint: str) -> None:
    with pytest.raises(FolderError) as refusal:
        Tokenizer.from_dict(data)
    message = str(refusal.value)
    assert message.startswith("tokenizer.json: ")
    assert complaint in message
    assert len(message) < 300
    assert message.isascii()


def test_too_many_pieces_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MOST_PIECES", 2)
    with pytest.raises(FolderError, match="found 3 words, expected at most 2"):
        Tokenizer.from_dict({"kind": "words", "tags": [], "words": ["a", "b", "c"]})


def test_what_is_made_by_hand_and_sound_is_read() -> None:
    merges = {"kind": "bpe", "tags": [], "merges": [[tokens.SYMBOLS[32], "a"], ["a", "b"], [SPACE_A, "b"]]}
    assert len(Tokenizer.from_dict(merges).encode("ab").ids) == 1
    scores = {"kind": "unigram", "tags": [], "scores": SCORES, "pieces": [["ab", -1], [SPACE_A, -9.0]]}
    assert Tokenizer.from_dict(scores).encode("ab").spans == ((0, 0), (0, 2))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(kind=st.sampled_from(KINDS), draw=st.data())
def test_any_value_in_any_part_is_refused_or_works(kind: Kind, draw: st.DataObject) -> None:
    data = LEARNT[kind].as_dict()
    data[draw.draw(st.sampled_from(sorted(data)))] = draw.draw(json_values)
    with suppress(FolderError):
        tokenizer = Tokenizer.from_dict(data)
        assert isinstance(tokenizer.decode(tokenizer.encode("the cat 😀").ids), str)


# --- spelled words ---------------------------------------------------------------------------------------------------


def test_a_word_stands_before_its_letters() -> None:
    tokenizer = Tokenizer.learn(["the cat the é", "The é dog"], "spelled")
    found = tokenizer.encode("The dog é")
    assert [tokenizer.token(id) for id in found.ids] == ["the", *"The", "<unknown>", *"dog", "é", "é"]
    assert found.spans == ((0, 3), (0, 1), (1, 2), (2, 3), (4, 7), (4, 5), (5, 6), (6, 7), (8, 9), (8, 9))
    assert tokenizer.heads(found.ids) == [0, 4, 8]


@given(st.text())
def test_spelled_words_come_back_but_for_white_space(text: str) -> None:
    tokenizer = LEARNT["spelled"]
    text = mend(text)
    assert tokenizer.decode(tokenizer.encode(text).ids) == " ".join(TOKEN.findall(text))


def test_a_no_break_space_parts_no_spelled_word() -> None:
    tokenizer = LEARNT["spelled"]
    assert len(tokenizer.heads(tokenizer.encode("1\u00a0000 men").ids)) == 2
    assert tokenizer.decode(tokenizer.encode("1\u00a0000 men").ids) == "1\u00a0000 men"


@pytest.mark.parametrize(
    ("word", "plain"), [("Chicago,", "chicago"), ("60637", "00000"), ("...", "..."), ("(IL)", "il"), ("U.S.", "u.s")]
)
def test_words_are_alike_but_for_capitals_digits_and_signs(word: str, plain: str) -> None:
    assert plain_word(word) == plain


def test_what_occurs_once_is_unknown_and_spelled() -> None:
    tokenizer = Tokenizer.learn(["one two two"], "spelled")
    one, two = tokenizer.encode("one").ids, tokenizer.encode("two").ids
    assert (one[0], two[0] >= len(SPECIALS)) == (UNKNOWN, True)
    assert tokenizer.decode(one) == "one"


def test_letters_have_a_room_of_one_size() -> None:
    """A model knows the letters by their number, so that must not depend on the data."""
    many = "".join(map(chr, range(0x4E00, 0x4E00 + 400)))
    for texts in ([], ["a a"], [f"{many} {many}"]):
        tokenizer = Tokenizer.learn(texts, "spelled")
        assert tokenizer.size - tokenizer.letters == LETTERS
        assert all(id >= tokenizer.letters for id in tokenizer.encode(many).ids[1:])
        assert tokenizer.decode(tokenizer.encode(many).ids) == many
        assert Tokenizer.from_dict(json.loads(json.dumps(tokenizer.as_dict()))).encode(many) == tokenizer.encode(many)


def test_too_many_letters_are_refused() -> None:
    many = "".join(map(chr, range(0x4E00, 0x4E00 + 300)))
    with pytest.raises(FolderError, match="found 300 characters of spelled words, expected at most 256"):
        Tokenizer.from_dict({"kind": "spelled", "tags": [], "words": [], "characters": many})


# --- sentences -------------------------------------------------------------------------------------------------------


@given(st.text(st.sampled_from("가각힣한글 a漢é\u0301,")))
def test_hangul_is_cut_into_letters_that_stand_where_their_syllable_does(text: str) -> None:
    tokenizer = Tokenizer.learn(["한글 한국어 각"], "jamo")
    found = tokenizer.encode(text)
    assert tokenizer.decode(found.ids) == text
    assert tokenizer.encode_flat([text]).ids.tolist() == [*found.ids]
    assert "".join(text[start] for start, _ in dict.fromkeys(found.spans)) == text


def test_letters_of_hangul_are_few() -> None:
    tokenizer = Tokenizer.learn(["한글", "한국어"], "jamo")
    assert [tokenizer.token(id) for id in tokenizer.encode("글").ids] == ["\u1100", "\u1173", "\u11af"]
    assert tokenizer.encode("근").ids[:2] == tokenizer.encode("글").ids[:2], "syllables never seen are read by letters"
    assert not set(tokenizer.encode("근").ids) & tokenizer.strangers


def test_a_saved_letter_is_no_syllable() -> None:
    data = Tokenizer.learn(["한글"], "jamo").as_dict()
    with pytest.raises(FolderError, match="syllable"):
        Tokenizer.from_dict(data | {"characters": "한"})


def test_a_sentence_is_one_token_and_keeps_its_place() -> None:
    tokenizer = Tokenizer.learn(["Mice are small. Cats are not.", "Are cats small?"], "sentences")
    found = tokenizer.encode(" Are  cats small? Mice are\tsmall. Wolves are. Cats")
    assert [tokenizer.token(id) for id in found.ids] == ["Are␣cats␣small?", "Mice␣are␣small.", *["<unknown>"] * 2]
    assert found.spans == ((1, 17), (18, 33), (34, 45), (46, 50))


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four… five", ["One.", "Two!", "Three?", "Four…", "five"]),
        ('"Is it?" (It is.) So', ['"Is it?"', "(It is.)", "So"]),
        ("It costs 3.50 in U.S. money...", ["It costs 3.50 in U.S.", "money..."]),
        ("  ", []),
    ],
)
def test_where_sentences_end(text: str, sentences: list[str]) -> None:
    assert [text[start:end] for start, end in sentence_spans(text)] == sentences


@given(st.text(alphabet='ab .!?\n\t"'))
def test_equal_sentences_are_cut_alike_wherever_they_stand(text: str) -> None:
    cut = [" ".join(text[start:end].split()) for start, end in sentence_spans(text)]
    joined = " ".join(cut)
    assert [joined[start:end] for start, end in sentence_spans(joined)] == cut
    tokenizer = Tokenizer.learn([text], "sentences")
    assert tokenizer.decode(tokenizer.encode(text).ids) == joined == " ".join(text.split())


@pytest.mark.parametrize("sentence", ["", " a", "a  b", "a\nb"])
def test_a_saved_sentence_has_single_spaces(sentence: str) -> None:
    with pytest.raises(FolderError, match="among the sentences"):
        Tokenizer.from_dict({"kind": "sentences", "tags": [], "sentences": [sentence]})
