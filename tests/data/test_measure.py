"""Small files whose numbers can be counted by hand, and the kinds of data that the rules tell apart by them."""

import os
import random
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from regard.data import builtin, measure
from regard.data.measure import Facts, Side, facts
from regard.data.read import CHOOSE, Columns

Write = Callable[[str, str], str]


def measured(path: str | Path) -> Facts:
    measure.measured.cache_clear()
    found = measure.measure(str(path), CHOOSE)
    assert found is not None
    return found


def test_counted_by_hand(write: Write) -> None:
    found = measured(write("x.tsv", "a bc\tABC\nbc\tX\na\tbc d\n"))
    assert found.pairs == 3
    assert (found.source.characters, found.source.words) == (pytest.approx(7 / 3), pytest.approx(4 / 3))
    assert (found.source.longest, found.source.wordiest) == (
        2,
        1,
    )  # of three, one is left out
    assert (found.source.alphabet, found.source.vocabulary) == (4, 2)
    assert found.source.seldom == 1.0  # each of its words came twice: less than three times
    assert found.alike == pytest.approx(2 / 7)  # b and c, of ABCXbcd


def test_words_that_are_symbols_are_told_from_letters_and_from_sentences(tmp_path: Path) -> None:
    phonemes = facts(300, [(f"kat{i}" * (i % 3 + 1), "K AE T " * (i % 3 + 1)) for i in range(300)])
    assert phonemes.target.is_closed
    assert not phonemes.source.is_closed
    rare = facts(300, [(f"kat{i}", "K AE T ZH" if i == 7 else "K AE T") for i in range(300)])
    assert rare.target.is_closed  # one symbol that hardly came makes no words of symbols
    answers = facts(300, [(f"where was {i}", ("garden", "kitchen")[i % 2]) for i in range(300)])
    assert answers.target.is_closed
    assert not facts(300, [(f"who is {i}", f"name{i}") for i in range(300)]).target.is_closed
    dates = measured(builtin.write("dates", 2000, tmp_path / "x.tsv")[0])
    assert not dates.source.is_closed
    assert not dates.source.is_prose
    prose = facts(300, [(f"there was a man number{i} who went to the town of{i % 7}", f"x{i}") for i in range(300)])
    assert prose.source.is_prose
    assert not prose.source.is_closed


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_hangul_is_seen_in_syllables_and_in_their_letters(form: Literal["NFC", "NFD"]) -> None:
    words = ["하나", "둘", "셋", "넷", "다섯", "여섯"]
    found = facts(6, [(unicodedata.normalize(form, word), f"number {place}") for place, word in enumerate(words)])
    assert (found.source.hangul, found.target.hangul) == (1.0, 0.0)
    assert found.source.syllables == (form == "NFC")


def test_what_is_copied_counts_beyond_chance() -> None:
    names = [f"{a}{b}{c}" for a in ("kar", "mol", "tiv") for b in ("eno", "asu", "ilo") for c in ("dra", "fen", "gul")]
    assert facts(27, [(f"name {name}", name) for name in names]).copied > 0.5
    assert facts(27, [("always the same words", "always the same words") for _ in names]).copied == 0.0
    assert facts(27, [(name, "yes") for name in names]).copied == 0.0


def test_what_is_filled_into_a_form_is_told_from_the_form() -> None:
    names = [f"{a}{b}{c}" for a in ("kar", "mol", "tiv") for b in ("eno", "asu", "ilo") for c in ("dra", "fen", "gul")]
    form = facts(27, [(name, f"SELECT everything FROM table WHERE name = '{name}'") for name in names])
    assert form.formal > 0.5 > form.copied
    assert form.own > 0.5
    assert facts(1, [("a", "b")]).own == 0.0


def test_tags_are_no_text(write: Write) -> None:
    path = write("x.tsv", "".join(f"kalem{i}\tN;LOC;PL;PSS1S\tkalemlerimde{i}\n" for i in range(40)))
    found = measure.measure(path, Columns(("1", "2"), "3"), ("2",))
    plain = measure.measure(path, Columns(("1", "2"), "3"))
    assert found
    assert plain
    assert (found.tags, plain.tags) == (4.0, 0.0)
    assert found.source.characters < 8 < plain.source.characters
    assert found.source.words == 1
    assert found.pairs == plain.pairs == 40


def test_what_comes_again_is_counted_apart(write: Write) -> None:
    found = measure.measure(write("x.tsv", "a\tb\n" * 30 + "c\td\n"), CHOOSE)
    assert found
    assert (found.pairs, found.examples, found.lines) == (2, 31, 31)


def test_lengths_are_even_where_letters_follow_letters() -> None:
    words = [f"{a}{b}{c}" for a in ("kar", "moll", "ti") for b in ("eno", "asu", "il") for c in ("dra", "fe", "gulm")]
    assert facts(27, [(word, word.upper()) for word in words]).uneven < 0.01
    assert facts(27, [(word, words[-number]) for number, word in enumerate(words)]).uneven > 0.1


def test_the_order_of_a_file_does_not_matter() -> None:
    lemmas = [f"{a}{b}{c}" for a in ("kar", "mol", "tiv") for b in ("eno", "asu", "ilo") for c in ("dra", "fen", "gul")]
    rows = [
        (f"{lemma} V;{tag}", f"{lemma}{ending}") for lemma in lemmas for tag, ending in zip("ABCD", "mnpt", strict=True)
    ]
    mixed = [rows[number * 31 % len(rows)] for number in range(len(rows))]
    assert facts(108, rows) == facts(108, mixed)
    assert facts(108, rows).copied > 0.5


def test_a_pair_that_comes_again_is_not_counted_again(write: Write) -> None:
    assert measured(write("x.tsv", "a\tb\na\tc\n" * 50)).pairs == 2


def test_short_sentences_and_scripts_without_spaces() -> None:
    persons, deeds = {"he": "er", "she": "sie", "it": "es"}, {"eats": "isst", "runs": "rennt", "sits": "sitzt"}
    phrase = [(f"{who} {does} here", f"{persons[who]} {deeds[does]} hier") for who in persons for does in deeds]
    assert facts(9, phrase).source.is_phrase
    assert not facts(9, [(f"{i} May 201{i}", "x") for i in range(9)]).source.is_phrase
    dense = facts(9, [(f"he saw number {i}", f"他看到了第{i}号，而且他很高兴") for i in range(9)])
    assert dense.target.is_dense
    assert not dense.source.is_dense


def test_many_pairs_are_counted_and_few_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("".join(f"{'a' * (i % 10 + 1)}\tb{i}\n" for i in range(1000)), encoding="utf-8")
    whole = measured(path)
    monkeypatch.setattr(measure, "LOOKED", 40)
    some = measured(path)
    assert some.pairs == whole.pairs == 1000
    assert some.source.characters == pytest.approx(whole.source.characters, abs=2.5)
    monkeypatch.setattr(measure, "MOST", 100)
    assert measured(path).pairs == 100


def test_what_can_not_be_read_is_left_to_the_reader(write: Write, tmp_path: Path) -> None:
    assert measure.measure(str(tmp_path / "none.tsv"), CHOOSE) is None
    assert measure.measure(write("empty.tsv", ""), CHOOSE) is None
    assert measured(write("bad.tsv", "".join(f"a{i}\tb\nc\nd{i}\te\n" for i in range(30)))).pairs == 60
    os.mkfifo(tmp_path / "pipe")
    assert measure.measure(str(tmp_path / "pipe"), CHOOSE) is None


def test_symbols_may_be_spelled_with_few_letters() -> None:
    codes = [f"{a}{b}" for a in ".-x" for b in ".-x" for _ in range(4)]  # 9 kinds, of 3 letters
    morse = facts(200, [(f"w{i}", " ".join(codes[(i + j) % 36] for j in range(5))) for i in range(200)])
    assert morse.target.is_closed
    numbers = facts(300, [(f"w{i}", " ".join(str((i * 7 + j * 13) % 100) for j in range(20))) for i in range(300)])
    assert (numbers.target.vocabulary, numbers.target.alphabet) == (100, 11)
    assert numbers.target.is_closed
    years = facts(300, [(f"w{i}", f"{1000 + i} {1300 - i}") for i in range(300)])
    assert not years.target.is_closed


def test_texts_do_not_become_forms_or_even_by_being_long() -> None:
    known = "the a dog cat man woman sits runs stands on in near with red blue green old young street park"
    words = known.split()
    draw = random.Random(0)

    def text(length: int) -> str:
        return " ".join(draw.choice(words) for _ in range(length))

    short = facts(200, [(text(draw.randint(8, 16)), text(draw.randint(8, 16))) for _ in range(200)])
    long = facts(200, [(text(draw.randint(110, 130)), text(draw.randint(110, 130))) for _ in range(200)])
    assert long.formal < short.formal + 0.4  # few words, so that chance alone is much
    assert long.uneven > 0.06


def test_letters_that_spaces_part_are_symbols_however_rare() -> None:
    narrow = [("ab" * n, " ".join(["a", "b", "t" + chr(0x300 + n % 60)] * n)) for n in range(1, 120)]
    found = facts(len(narrow), narrow)
    assert found.target.is_closed
    assert not found.target.is_prose
    assert not found.target.is_phrase
    sentences = [(f"word{n}", f"this is what the word {n} tells") for n in range(100)]
    assert not facts(100, sentences).target.is_parted
    cut = Side(characters=27, words=10, longest=80, wordiest=30, alphabet=4000, vocabulary=30_000, seldom=0.05)
    assert cut.is_prose  # words of a script without spaces, parted by some tool
    assert not cut.is_closed


def test_sides_are_alike_by_how_often_a_letter_comes() -> None:
    names = [("привет мир", "hello world")] * 99 + [("привет Tom dhwrl", "hello Tom")]
    assert facts(2, names).alike < 0.1
    assert facts(1, [("ein wort", "one word")]).alike > 0.5
