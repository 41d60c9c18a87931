"""A first line as a header: where it is clear, and what is never lost by it."""

import random
from collections.abc import Callable

import pytest

from regard.data.guess import guess
from regard.data.header import clear_names
from regard.data.read import Columns, read, sample

Write = Callable[[str, str | bytes], str]
Rows = list[tuple[str, ...]]


def word(number: int) -> str:
    return "".join(random.Random(number).choices("abdeklmnoprst", k=6))


WORDS: Rows = [(word(i), word(-i)) for i in range(1, 41)]
TEXTS: Rows = [(f"{word(i)} {word(i + 1)} {word(i + 2)}", word(i % 2)) for i in range(40)]
NUMBERED: Rows = [(str(i), *row) for i, row in enumerate(WORDS, 1)]


@pytest.mark.parametrize(
    ("names", "rows"),
    [
        ("id english german", NUMBERED),
        ("id english german", NUMBERED[:1]),
        ("word pronunciation", WORDS),
        ("en de", WORDS),
        ("English_text German_text", WORDS),
        ("number one other", NUMBERED[:3]),  # letters above numbers
        ("saying mood", TEXTS),  # a word above sentences, beside what is no label
        ("one when", [(a, f"{b} {i}") for i, (a, b) in enumerate(WORDS)]),  # no digit above digits
        ("one other", [(a, "слово" + "а" * i) for i, (a, _) in enumerate(WORDS)]),
        ("one other more", [(*row, "V;PST;SG") for row in WORDS]),
    ],
)
def test_a_clear_header(names: str, rows: Rows) -> None:
    assert clear_names(names.split(), rows) == names.split()


@pytest.mark.parametrize(
    ("first", "rows"),
    [
        (("hello", "hallo"), WORDS),
        (("Hello", "Hallo"), [(f"{a} {b} {a}", f"{b} {a} {b}") for a, b in WORDS]),  # a short one among long ones
        (("hello", "greeting"), [(a, word(i % 2)) for i, (a, _) in enumerate(WORDS)]),  # a label that is rare
        (("hello", "greeting"), [*TEXTS[:-1], (TEXTS[-1][0], "question")]),  # as others are
        (("english", "german"), []),
        (("english", "german"), [("german", "french"), ("dutch", "english"), ("greek", "latin")]),  # a list of them
        (("es", "is"), [("no", "no"), ("de", "of"), ("la", "the"), ("he", "I have")]),
        (("he is", "el es"), WORDS),
        (("english", "english"), WORDS),
        (("english", "german"), [*WORDS, ("english", "englisch")]),
        (("hello", "nan"), [(a, str(i)) for i, (a, _) in enumerate(WORDS)]),  # a number that is not there
        (("hello", "x2"), [(a, str(i)) for i, (a, _) in enumerate(WORDS)]),
        (("hello", "hallo"), [("1", "2"), ("3", "4")]),
        (("a", "an", "DET"), [(*row, "V;PST;SG") for row in WORDS]),
        (("english",), [("house",), ("tree",)]),
        (("english", "german"), [("one", "two", "three")] * 3),
        (("left", "right"), WORDS),
    ],
)
def test_an_example_is_no_header(first: tuple[str, ...], rows: Rows) -> None:
    assert clear_names(first, rows) == []


def lines(rows: Rows, mark: str = "\t") -> str:
    return "".join(f"{mark.join(row)}\n" for row in rows)


def test_the_reader_and_the_guess_take_the_same_line_for_a_header(write: Write) -> None:
    path = write("x.csv", lines([("id", "english", "german"), *NUMBERED], ","))
    found = guess(path)
    assert (found.source, found.target) == (("english",), "german")
    assert (
        "the first line is taken for a header: id, english, german; --source 2 --target 3 reads it as an example"
        in (found.why)
    )
    table = read(path, found.asked(Columns()))
    assert ([example.source for example in table.examples], len(table.examples)) == ([(a,) for a, _ in WORDS], 40)
    assert read(path, Columns(("2",), "3")).examples[0].source == ("english",)  # overruled


def test_alone_the_reader_says_so_and_how_to_overrule_it(write: Write) -> None:
    path = write("x.tsv", lines([("word", "pronunciation"), *WORDS]))
    table = read(path)
    assert (len(table.examples), table.source_names, table.target_name) == (40, ("word",), "pronunciation")
    told = "the first line is taken for a header: word, pronunciation; --source 1 --target 2 reads it as an example"
    assert table.notes == [f"{path}: {told}"]
    assert len(read(path, Columns(("1",), "2")).examples) == 41


def test_both_look_at_the_same_lines(write: Write) -> None:
    """Where a name comes again far down, both have decided before; where it does not, both see it."""
    for many, is_header in ((20, True), (5, False)):
        path = write("x.tsv", lines([("english", "german"), *WORDS * many, ("english", "englisch")]))
        assert sample(path).taken == is_header
        assert len(read(path).examples) == 40 * many + 2 - is_header


def test_long_lines_are_not_all_held(write: Write) -> None:
    path = write("x.tsv", "english\tgerman\n" + f"{'a' * 100_000}\tb\n" * 60)
    assert (sample(path).taken, len(read(path).examples)) == (True, 60)
