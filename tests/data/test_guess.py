"""Files of every kind, and what is guessed of them; what is said aloud; what is given and therefore not guessed."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from regard import config
from regard.data import builtin
from regard.data.guess import Guess, guess
from regard.data.read import Columns, read
from regard.data.vocabulary import learn
from regard.errors import ConfigError, DataError
from regard.rules import configured

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
Write = Callable[[str, str], str]


def summary(found: Guess) -> tuple[str, str, str]:
    return found.task, ",".join(found.source), found.target


# ── what is known ────────────────────────────────────────────────────────────────────────────────────────────────────

BUILTIN = {  # task, source, target; where the columns are the reader's own choice, nothing
    "addition": ("transduce", "", ""),
    "captions": ("caption", "", ""),
    "copy": ("transduce", "", ""),
    "dates": ("transduce", "", ""),
    "intents": ("classify", "", ""),
    "paraphrases": ("transduce", "", ""),
    "questions": ("transduce", "context,question", "answer"),
    "reverse": ("transduce", "", ""),
    "slots": ("tag", "", ""),
    "sort": ("transduce", "", ""),
    "story": ("generate", "", ""),
}


def test_the_table_holds_every_built_in_task() -> None:
    assert set(BUILTIN) == set(builtin.NAMES)


@pytest.mark.parametrize("ending", [".tsv", ".csv", ".jsonl"])
@pytest.mark.parametrize("name", builtin.NAMES)
def test_built_in_tasks(tmp_path: Path, name: str, ending: str) -> None:
    path = builtin.write(name, 200, tmp_path / f"x{ending}")[0]
    assert summary(guess(str(path))) == BUILTIN[name]


PUBLIC = {
    "addresses/train.tsv": ("tag", "", ""),
    "babi/qa1-train.tsv": ("transduce", "1,2", "3"),  # answers stand in their contexts
    "babi/qa11-train.tsv": ("transduce", "1,2", "3"),
    "babi/qa12-train.tsv": ("transduce", "1,2", "3"),
    "babi/qa15-train.tsv": ("transduce", "1,2", "3"),
    "babi/qa16-train.tsv": ("transduce", "1,2", "3"),
    "cmudict/train.tsv": ("transduce", "", ""),
    "ewt/train.tsv": ("tag", "", ""),
    "multi30k-en-de/train.tsv": ("transduce", "", ""),
    "names/train.tsv": ("classify", "", ""),
    "scan/length-train.tsv": ("transduce", "", ""),
    "scan/simple-train.tsv": ("transduce", "", ""),
    "snips/train.tsv": ("tag", "1", "2"),
    "tinyshakespeare/input.txt": ("generate", "", ""),
}


@pytest.mark.skipif(not DATA.is_dir(), reason="the public data are not here")
@pytest.mark.parametrize("name", PUBLIC)
def test_public_data(name: str) -> None:
    assert summary(guess(str(DATA / name))) == PUBLIC[name]


@pytest.mark.skipif(not DATA.is_dir(), reason="the public data are not here")
def test_rows_of_pictures_beside_their_names() -> None:
    images = str(DATA / "emoji" / "twitter_32.npz")
    found = guess(str(DATA / "emoji" / "captions.tsv"), Columns(("index",), "en"), images=images)
    assert found.task == "caption"


# ── rules at their edges ─────────────────────────────────────────────────────────────────────────────────────────────


def labelled(rows: int, labels: int, text: str = "some text") -> str:
    return "".join(f"{text} {row}\tlabel{row % labels}\n" for row in range(rows))


@pytest.mark.parametrize(
    ("rows", "labels", "task"),
    [(20, 2, "classify"), (19, 2, "transduce"), (20, 3, "transduce"), (1000, 100, "classify"), (1010, 101, "transduce"),
     (100, 1, "transduce")],
)  # fmt: skip
def test_few_labels_of_many_rows(write: Write, rows: int, labels: int, task: str) -> None:
    assert guess(write("x.tsv", labelled(rows, labels))).task == task


def test_a_file_that_is_sorted_by_its_labels(write: Write) -> None:
    rows = "".join(f"text {row}\t{'first' if row < 12_000 else 'second'}\n" for row in range(16_000))
    assert guess(write("x.tsv", rows)).task == "classify"


def test_repeated_pairs_are_one_example(write: Write) -> None:
    assert guess(write("x.tsv", "a\tb\nc\td\n" * 100)).task == "transduce"


def test_long_labels_are_texts(write: Write) -> None:
    assert guess(write("x.tsv", labelled(100, 2).replace("label", "l" * 60))).task == "transduce"


def test_answers_that_stand_in_their_source_are_no_labels(write: Write) -> None:
    rows = "".join(f"{who} is here, {row}\tWhere?\t{who.lower()}\n" for row in range(50) for who in ("Ada", "Bo"))
    found = guess(write("x.tsv", rows))
    assert summary(found) == ("transduce", "1,2", "3")
    assert "stand in their sources" in found.why[0]


def test_tokens_of_a_class_go_by_the_length_of_the_texts(write: Write) -> None:
    assert guess(write("x.tsv", labelled(50, 2))).tokens == "spelled"
    assert guess(write("x.tsv", labelled(50, 2).replace(" ", ""))).tokens == "characters"


def test_long_texts_of_a_class_are_not_left_out(write: Write) -> None:
    path = write("x.tsv", labelled(50, 2, "many words " * 200))
    assert configured(path, None, None, []).config.data.max_source == 3072
    assert configured(path, None, None, ["data.max_source=100"]).config.data.max_source == 100
    assert configured(write("y.tsv", labelled(50, 2)), None, None, []).config.data.max_source == 1024


def tagged(rows: int) -> str:
    return "".join(f"word{row} other{row} word\tNOUN VERB NOUN\n" for row in range(rows))


def test_tags(write: Write) -> None:
    assert guess(write("x.tsv", tagged(100))).task == "tag"
    assert guess(write("x.tsv", tagged(100) + "one\tA B\n")).task == "tag"  # one of 101 may be wrong
    assert guess(write("x.tsv", tagged(97) + "one\tA B\n" * 3)).task != "tag"
    nbsp = "".join(f"New\u00a0York{row} is big{row}\tPROPN AUX ADJ\n" for row in range(100))
    assert guess(write("x.tsv", nbsp)).task == "tag"


def test_words_that_stand_in_sources_too_are_no_tags(write: Write) -> None:
    words = ["banana", "tomorrow", "calendar", "harbour", "window", "letter"]
    rows = [(words[i % 6], words[i * 5 % 6], i) for i in range(100)]
    text = "".join(f"{one[: place % 5]}{one[place % 5 + 1 :]} {other}\t{one} {other}\n" for one, other, place in rows)
    assert guess(write("x.tsv", text)).task == "transduce"


def test_one_bad_line_among_few_tagged_ones_is_left_to_the_reader(write: Write) -> None:
    rows = "".join(
        f"i want {dish} at {hour}\tO O B O B\n" for dish in ("rice", "soup") for hour in ("ten", "six", "two")
    )
    path = write("x.tsv", rows + "i want stew\tO O\n")
    assert guess(path).task == "tag"
    with pytest.raises(DataError, match=r"x\.tsv:7: found 3 tokens and 2 labels"):
        read(path, guess(path).asked(Columns()))
    assert guess(write("y.tsv", rows + "i want stew\tO O\nstew\tO O\n")).task != "tag"


def test_as_many_kinds_as_words_are_a_translation(write: Write) -> None:
    rows = "".join(f"{a}{b} x{b}{a}\t{b}{a}y z{a}{b}\n" for a in "abcdefgh" for b in "abcdefgh")
    assert guess(write("x.tsv", rows)).task == "transduce"


def test_examples_are_counted_once_and_that_is_said(write: Write) -> None:
    found = guess(write("x.tsv", labelled(40, 2) * 2))
    assert "2 different targets in 40 different examples" in found.why[0]


def test_one_label_alone_is_said(write: Write) -> None:
    found = guess(write("x.tsv", labelled(40, 1)))
    assert found.task == "transduce"
    assert any(line.startswith('warning: all 40 targets are "label0": one label alone') for line in found.why)


def test_a_first_line_that_may_be_a_header_is_said(write: Write) -> None:
    rows = "".join(f"text {'abcd'[i % 4]}\tlabel {'xy'[i % 2]}\n" for i in range(40))
    (told,) = (line for line in guess(write("x.tsv", "saying\tmood\n" + rows)).why if "header" in line)
    assert told.startswith("warning: the first line, saying, mood, is read as an example")
    assert "--source saying --target mood" in told
    words = "".join(f"wort{i}\tword{i}\n" for i in range(40))  # none comes again, and the first is no exception
    for text in (rows, words, "some text\tlabel x\n" + rows, "text\tlabel\n" + rows):
        assert not any("looks like a header" in line for line in guess(write("y.tsv", text)).why)


def test_what_may_be_a_header_is_named_without_the_numbers_of_rows(write: Write) -> None:
    rows = "".join(f"row{i % 9}\tthe text {i % 4}\tlabel{i % 2}\n" for i in range(40))
    found = guess(write("x.tsv", f"id\tsaying\tmood\n{rows}?\t?\t?\n"))
    (told,) = (line for line in found.why if "header" in line)
    assert "if it is one, say --source saying --target mood" in told


def test_a_first_line_that_is_clearly_a_header_is_one(write: Write) -> None:
    found = guess(write("x.tsv", "utterance\tkind\n" + labelled(40, 2)))
    assert summary(found)[1:] == ("utterance", "kind")
    assert (
        found.why[1]
        == "the first line is taken for a header: utterance, kind; --source 1 --target 2 reads it as an example"
    )


def test_running_text(write: Write) -> None:
    assert guess(write("book.txt", "It was a dark night.\n\n\tAnd so on.\n" * 10)).task == "generate"
    assert guess(write("book", "No suffix.\n")).task == "generate"
    assert guess(write("pairs.txt", "a\tb\n" * 30)).task == "transduce"
    assert guess(write("lines.tsv", "one\ntwo\nthree\n")).task == "generate"
    assert guess(write("lines.jsonl", '{"text": "one"}\n{"text": "two"}\n')).task == "generate"


@pytest.mark.parametrize("text", [
    "WORD{n}  P H{n}\n", "word {n} ||| Wort {n}\n", "IN: run {n} OUT: RUN RUN {n}\n", "a{n} -> b{n}\n", "a{n}=b{n}\n",
])  # fmt: skip
def test_pairs_in_another_form_are_no_running_text(write: Write, text: str) -> None:
    path = write("pairs.txt", "".join(text.format(n=n) for n in range(20)))
    assert guess(path).parted
    with pytest.raises(DataError, match=r"looks like pairs: .*a tab in its place .*--task generate"):
        configured(path, None, None, [])
    assert configured(path, None, None, ["task=generate"]).config.task == "generate"


def test_an_array_of_objects_is_no_running_text(write: Write) -> None:
    for text in ('[{"a": "1", "b": "2"}]', '[\n  {"a": "1", "b": "2"}\n]\n'):
        assert "jq" in guess(write("pairs.json", text)).parted
    assert not guess(write("book.txt", "It was a dark night.\nAnd so on.\n" * 10)).parted


def test_another_delimiter_is_left_to_the_reader(write: Write) -> None:
    """It says that the columns are separated by semicolons."""
    assert guess(write("x.csv", "a;b\nc;d\n")).task == "transduce"


# ── columns ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("header", "source", "target"),
    [
        ("lemma\tform\ttags", "lemma,tags", "form"),
        ("split\ttext\tlabel", "text", "label"),
        ("context\tquestion\tanswer", "context,question", "answer"),
        ("label\ttext", "text", "label"),
        ("tgt\tsrc", "src", "tgt"),
        ("sql\tquestion", "question", "sql"),
        ("context\tquery\tquestion", "context,question", "query"),
        ("id\tsummary\ttext", "text", "summary"),
        ("name\ttext", "text", "name"),
        ("src\ttgt\tdomain", "src,domain", "tgt"),
        ("question\tanswer\tcategory", "question", "answer"),
        ("text\tlabel", "", ""),
        ("premise\thypothesis\tsentence", "premise,hypothesis", "sentence"),
    ],
)
def test_names_decide(write: Write, header: str, source: str, target: str) -> None:
    rows = "".join("\t".join(f"{name}{row}" for name in header.split("\t")) + "\n" for row in range(5))
    assert summary(guess(write("x.tsv", f"{header}\n{rows}")))[1:] == (source, target)


def test_the_last_of_many_is_the_target(write: Write) -> None:
    found = guess(write("x.tsv", "a\tb\tc\td\ne\tf\tg\th\n"))
    assert summary(found) == ("transduce", "1,2,3", "4")
    assert "--source 1,2,3 --target 4" in found.why[1]


@pytest.mark.parametrize(("cell", "expected"), [
    (lambda i: "in_distribution" if i % 40 else "exposure", ("transduce", "1", "2")),  # says hardly anything
    (lambda i: str(1 + i % 5), ("transduce", "1", "2")),  # how often the pair was seen
    (lambda i: ("deu", "fra", "nld")[i % 3], ("transduce", "1,3", "2")),  # its language
])  # fmt: skip
def test_what_is_said_about_a_pair_is_no_target(
    write: Write, cell: Callable[[int], str], expected: tuple[str, str, str]
) -> None:
    """As in lists of pronunciations: a word, its sounds, and a third column of few kinds."""
    words = [
        "".join("bdgklmnprst"[(i // 11**k) % 11] + "aeiou"[(i + k) % 5] for k in range(2 + i % 3)) for i in range(400)
    ]
    rows = [(word, " ".join(word.translate({97: 593, 101: 603, 105: 618, 111: 596, 117: 650}))) for word in words]
    found = guess(write("x.tsv", "".join(f"{left}\t{right}\t{cell(i)}\n" for i, (left, right) in enumerate(rows))))
    assert summary(found) == expected
    labelled = "".join(f"{left} of it\tas {left} is\t{('yes', 'no')[i % 2]}\n" for i, (left, _) in enumerate(rows))
    assert summary(guess(write("y.tsv", labelled))) == ("classify", "1,2", "3")  # texts that tell of each other


NAMES = ("CK", "CM", "sysko", "Wittydev")
MARKS = {  # a column that carries no text, by the number of its row, and what is said of it
    "licence": (lambda i: f"CC-BY 2.0 (France) Attribution: tatoeba.org #{7 * i} (CK) & #{9 * i + 1} ({NAMES[i % 4]})",
                "holds one text with other numbers and names"),
    "score": (lambda i: f"0.{(i * 7919) % 10_000:04d}", "holds numbers"),
    "number": (lambda i: str(1000 + 3 * i), "holds numbers"),
    "language": (lambda i: "eng", "never changes"),
}  # fmt: skip


def translated(row: int) -> tuple[str, str]:
    who, what, how = "TMBJ"[row % 4] + "om", "wxyz"[row % 3] + "ree", "red" + "abcdefgh"[row // 8] + "abcdefgh"[row % 8]
    return f"{who} sees the {what} near {how}.", f"{who} voit l'{what[::-1]} {how[::-1]}."


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_column_without_text_is_set_aside(write: Write, mark: str, place: int) -> None:
    made, said = MARKS[mark]
    rows = [[*translated(i)[:place], made(i), *translated(i)[place:]] for i in range(60)]
    found = guess(write("x.tsv", "".join("\t".join(row) + "\n" for row in rows)))
    source, target = [str(column) for column in (1, 2, 3) if column != place + 1]
    assert summary(found) == ("transduce", source, target)
    assert f"column {place + 1} {said} and is set aside" in found.why[1]
    assert f"--source {source} --target {target}" in found.why[1]


@pytest.mark.parametrize("marks", [("number", "number"), ("language", "language"), ("language", "score")])
def test_two_columns_without_text_are_set_aside(write: Write, marks: tuple[str, str]) -> None:
    rows = [(MARKS[marks[0]][0](i), translated(i)[0], MARKS[marks[1]][0](i), translated(i)[1]) for i in range(60)]
    path = write("x.tsv", "".join("\t".join(row) + "\n" for row in rows))
    assert summary(guess(path)) == ("transduce", "2", "4")
    assert summary(guess(path, Columns(("1", "2"), "4")))[1:] == ("", "")  # as they were asked for


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("{i}\t{j}\t{sum}", ("transduce", "1,2", "3")),  # numbers alone
        ("{i}\t{i}+{j}\t{sum}", ("transduce", "2", "3")),  # one remains to be written
        ("{i}\ta text {j}\t{label}", ("classify", "2", "3")),
        ("{a} {i}\t{b} {j}\t{label}", ("classify", "1,2", "3")),  # two texts, and whether one follows
        ("{a} has {i} hens and {j} cows.\tHow many is that?\t{sum}", ("transduce", "1,2", "3")),
        ("en\t{i} {month} 20{j}\t20{j}-{i}", ("transduce", "2", "3")),  # dates have a form and are text
        ("{locale}\t{i} {month} 20{j}\t20{j}-{i}", ("transduce", "1,2", "3")),
    ],
)
def test_numbers_that_are_wanted_are_kept(write: Write, row: str, expected: tuple[str, str, str]) -> None:
    rows = [row.format(i=i, j=(i * 37) % 90 + 10, sum=i + (i * 37) % 90 + 10, label=i % 3, a=["Ada", "Bo"][i % 2],
                       b=f"sings{i % 7}", month=["May", "Jun", "Jul"][i % 3], locale=["en", "de", "fr"][i % 3])
            for i in range(10, 99)]  # fmt: skip
    assert summary(guess(write("x.tsv", "\n".join(rows) + "\n"))) == expected


def test_what_carries_no_text_is_set_aside_beside_a_target_with_a_name(write: Write) -> None:
    names = ("src", "tgt", "score", "lang", "licence")
    rows = [[*translated(i), *(MARKS[mark][0](i) for mark in ("score", "language", "licence"))] for i in range(60)]
    text = "\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows)
    assert summary(guess(write("x.jsonl", text))) == ("transduce", "src", "tgt")
    sums = "".join(f"{i} hens\t{i % 7}\t{i + i % 7} and {i % 7}\n" for i in range(60))  # a number that is written
    assert summary(guess(write("x.tsv", f"text\thow many\ttarget\n{sums}"))) == ("transduce", "text,how many", "target")


def test_names_of_columns_keep_them(write: Write) -> None:
    rows = "".join(f'{{"text": "a text {i}", "year": {i}, "label": "l{i % 2}"}}\n' for i in range(60))
    assert summary(guess(write("x.jsonl", rows))) == ("classify", "text,year", "label")


@pytest.mark.parametrize(("most", "task"), [(5, "classify"), (20, "classify"), (21, "transduce"), (89, "transduce")])
def test_numbers_of_many_kinds_are_no_labels(write: Write, most: int, task: str) -> None:
    found = guess(write("x.tsv", "".join(f"text {i}\t{i % most}\n" for i in range(1000, 3000))))
    assert found.task == task
    assert ("numbers of many kinds" in found.why[0]) == (task == "transduce")


def test_what_is_asked_for_is_kept(write: Write) -> None:
    path = write("x.tsv", "".join(f"w{row} v{row}\tA B\tlabel{row % 2}\n" for row in range(50)))
    assert summary(guess(path)) == ("tag", "1", "2")
    assert summary(guess(path, Columns(("1",), "3"))) == ("classify", "", "")
    assert summary(guess(path, Columns((), "3"))) == ("classify", "1,2", "3")
    assert summary(guess(path, task="classify")) == ("classify", "1,2", "3")
    assert guess(path, Columns(("no such name",), "3")) == Guess("transduce")


def test_a_trailing_tab_is_left_to_the_reader(write: Write) -> None:
    assert guess(write("x.tsv", "a\tb\t\n" * 30)).source == ()


# ── pictures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_paths_of_pictures(write: Write, tmp_path: Path) -> None:
    for name in ("1.png", "2.JPG", "3.jpeg"):
        (tmp_path / name).write_bytes(b"")
    rows = "a dog\t1.png\na cat\t2.JPG\na cow\t3.jpeg\n"
    assert summary(guess(write("x.tsv", rows.replace("a ", "")))) == ("transduce", "", "")  # the target holds them
    turned = write("y.tsv", "1.png\ta dog\n2.JPG\ta cat\n3.jpeg\ta cow\ngone.png\ta hen\n")
    assert guess(turned).task == "caption"  # the reader tells which are missing
    three = write("w.tsv", "x\t1.png\ta dog\ny\t2.JPG\ta cat\n")
    assert summary(guess(three)) == ("caption", "2", "3")


@pytest.mark.parametrize("header", ["", "image\tcaption\n", "path of it\twhat it shows\n"])
def test_paths_of_pictures_that_are_all_missing(write: Write, header: str) -> None:
    """They would be learnt as text; as captions the reader names them, and the line tells how to have them as text."""
    path = write("z.tsv", f"{header}gone.png\ta dog\nlost.jpg\ta cat\n")
    found = guess(path)
    assert (found.task, found.pictured) == ("caption", False)
    assert "none of which is there; --task transduce overrules it" in found.why[0]
    asked = configured(path, None, None, ["task=transduce"])
    assert asked.config.task == "transduce"
    assert any("warning: the source looks like paths of pictures" in line for line in asked.why)
    three = guess(write("w.tsv", "x\tgone.png\ta dog\ny\tlost.png\ta cat\n"))
    assert summary(three) == ("caption", "2", "3")


@pytest.mark.parametrize("header", ["image\tcaption", "file\ttext", "path of it\twhat it shows"])
def test_pictures_below_a_header_of_any_name(write: Write, tmp_path: Path, header: str) -> None:
    """Few rows, many words, some pictures gone: neither tags nor labels, and the reader names what is missing."""
    for name in ("red square 1.png", "blue square 2.png"):
        (tmp_path / name).write_bytes(b"")
    rows = "".join(f"{c} square {i}.png\ta {c} square\n" for c, i in [("red", 1), ("blue", 2), ("red", 3), ("blue", 4)])
    found = guess(write("x.tsv", f"{header}\n{rows}"))
    assert found.task == "caption"
    assert found.source in [(), tuple(header.split("\t")[:1])]
    made = configured(write("x.tsv", f"{header}\n{rows}"), "caption", None, [])
    table = read(write("x.tsv", f"{header}\n{rows}"), Columns(made.config.data.source, made.config.data.target))
    assert [example.line for example in table.examples] == [2, 3, 4, 5]


@pytest.mark.parametrize("task", ["classify", "transduce", "tag", "embed", "fill", "generate"])
def test_pictures_are_not_read_as_text(write: Write, tmp_path: Path, task: str) -> None:
    (tmp_path / "1.png").write_bytes(b"")
    path = write("x.tsv", "1.png\ta dog\n2.png\ta cat\n")
    with pytest.raises(ConfigError, match=rf"the source holds pictures, and the task {task} reads .* --task caption"):
        configured(path, None, None, [f"task={task}"])
    with pytest.raises(ConfigError, match="--task caption"):
        configured(str(tmp_path), None, None, [f"task={task}"])
    words = ["task=fill", "data.source=2"]
    assert configured(path, None, None, words).config.task == "fill"


def test_rows_of_an_archive(write: Write, tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", images=np.zeros((3, 4, 4, 3), dtype=np.uint8))
    path = write("x.tsv", "0\tdog\n2\tcat\n")
    assert guess(path, images=str(tmp_path / "p.npz")).task == "caption"
    assert guess(path).task == "transduce"


# ── what can not be looked at ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text", ["", "\n\n", "\0\t\0\n"])
def test_nothing_to_see(write: Write, text: str) -> None:
    assert guess(write("x.tsv", text)).task == "transduce"


def test_missing_and_foreign_files_are_left_to_the_reader(tmp_path: Path) -> None:
    assert guess(str(tmp_path / "no.tsv")) == Guess("transduce")
    assert guess(str(tmp_path)) == Guess("transduce")
    (tmp_path / "x.tsv").write_bytes(b"\xff\xfea\0\t\0b\0")
    assert guess(str(tmp_path / "x.tsv")) == Guess("transduce")
    (tmp_path / "x.tsv.gz").write_bytes(b"\x1f\x8bnot really")
    assert guess(str(tmp_path / "x.tsv.gz")) == Guess("transduce")


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    """Nothing would be left for the reader; and nobody writes into this one, so reading would never end."""
    os.mkfifo(tmp_path / "pipe")
    assert "a pipe is read once" in guess(str(tmp_path / "pipe")).why[0]


# ── a config ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_guess_becomes_a_config(write: Write) -> None:
    made = configured(write("x.tsv", labelled(100, 2)), None, None, [])
    assert (made.config.task, made.config.tokens.source, made.config.decoder.kind) == ("classify", "spelled", "none")
    assert [line.split(":")[0] for line in made.why] == ["task classify", "tokens spelled"]
    assert "--task transduce overrules it" in made.why.guesses[0]


def test_holes_are_words_or_pieces_of_words_or_characters(write: Write) -> None:
    few = write("few.tsv", "".join(f"the {c} hat is on the {c} hook\tx\n" for c in ["red", "blue"] * 20))
    made = configured(few, None, None, ["task=fill", "data.source=1"])
    assert made.config.tokens.source == "words"
    assert made.why.guesses == ("tokens words: 8.0 words a text, and hardly a word comes once; a hole is one token; "
                                "--tokens overrules it",)  # fmt: skip
    many = write("many.txt", "".join(f"the hat{i} is on the hook{i}\n" for i in range(40)))
    made = configured(many, None, None, ["task=fill"])
    assert made.config.tokens.source == "bpe"
    assert "33 % of the words come once" in made.why.guesses[0]
    assert configured(many, None, None, ["task=fill", "tokens.source=bytes"]).config.tokens.source == "bytes"
    short = configured(write("x.tsv", "abc\ndef\n" * 20), None, None, ["task=fill"])
    assert (short.config.tokens.source, [*short.why]) == ("characters", [])


def test_columns_become_settings(write: Write) -> None:
    made = configured(write("x.tsv", 'a "b"\tlabel\tc,d\n' + "x\ty\tz\n" * 9), None, None, ['data.target="label"'])
    assert (made.config.data.source, made.config.data.target) == (('a "b"', "c,d"), "label")


BUNDLES = ("V;PST", "V;PRS;3;SG", "N;PL", "V;NFIN")


@pytest.mark.parametrize(
    ("header", "order", "source", "target"),
    [
        ("", (0, 1, 2), ("1", "3"), "2"),  # as UniMorph has it: lemma, form, tags
        ("", (0, 2, 1), ("1", "2"), "3"),
        ("lemma\ttags\tform\n", (0, 2, 1), ("lemma", "tags"), "form"),
        ("lemma\tform\tfeatures\n", (0, 1, 2), ("lemma", "features"), "form"),
    ],
)
def test_bundles_of_tags_are_read_and_never_written(
    write: Write, header: str, order: tuple[int, ...], source: tuple[str, ...], target: str
) -> None:
    rows = [(f"lem{i}", f"lem{i}ed", BUNDLES[i % 4]) for i in range(60)]
    path = write("x.tsv", header + "".join("\t".join(row[place] for place in order) + "\n" for row in rows))
    made = configured(path, None, None, [])
    assert (made.config.task, made.config.data.source, made.config.data.target) == ("transduce", source, target)
    assert made.config.data.tags == source[1:]
    assert any(f"--tags {source[1]}" in line for line in made.why)
    said = configured(path, None, None, [f"data.source={','.join(source)}", f'data.target="{target}"', "data.tags=[]"])
    assert said.config.data.tags == ()


SYMBOLS = {
    "spaces": ("V PST", "V PRS 3 SG", "N PL", "V NFIN"),
    "commas": ("pos=V,tense=PST", "pos=V,tense=PRS,per=3", "pos=N", "pos=V"),
    "one": ("PLURAL", "DATIVE", "GENITIVE", "PLURAL"),
    "bars": ("Case=Nom|Number=Sing", "Case=Gen", "Case=Nom", "Case=Gen|Number=Plur"),
    "both": ("V; PST", "V; PRS", "N; PL", "V; NFIN"),
}


@pytest.mark.parametrize("kind", SYMBOLS)
@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (2, 0, 1)])
def test_symbols_beside_words_are_tags(write: Write, kind: str, order: tuple[int, ...]) -> None:
    rows = [(f"lem{i}", f"lem{i}ed", SYMBOLS[kind][i % 4]) for i in range(60)]
    path = write("x.tsv", "".join("\t".join(row[place] for place in order) + "\n" for row in rows))
    c = configured(path, None, None, []).config
    target = str(order.index(1) + 1)
    assert (c.task, c.data.target, c.data.tags) == ("transduce", target, (str(order.index(2) + 1),))
    marks = [name in c.data.tags for name in c.data.source]
    vocabulary = learn(read(path, Columns(c.data.source, target)).examples, c, marks)
    assert set(vocabulary.source.tags) == {tag for cell in SYMBOLS[kind] for tag in re.split("[;|, ]+", cell)}


@pytest.mark.parametrize(
    "row",
    [
        "{who} went to the {place}.\tWhere is {who}?\t{place}",
        "{who} went to the {place} today\twhere is {who}\t{place}",
        "a{i}\tb{j}\tsynonym{kind}",  # labels of two words
        "a{i}\tb{j}\tSYNONYM{kind}",
        "{who}{i}\t{who}\tas{kind}",
    ],
)
def test_few_kinds_of_words_need_not_be_tags(write: Write, row: str) -> None:
    rows = [row.format(i=i, j=(i * 37) % 101, kind="XY"[i % 2], who=["Mary", "John", "Bo"][i % 3],
                       place=["kitchen", "garden"][i // 3 % 2]) for i in range(100)]  # fmt: skip
    found = guess(write("x.tsv", "\n".join(rows) + "\n"))
    assert (found.target, found.tags) == ("3", ())


@pytest.mark.parametrize("cell", ["x{};y{}", "a text; with {} words {}", "v{}|{}"])
def test_what_only_looks_like_tags_is_text(write: Write, cell: str) -> None:
    path = write("x.tsv", "".join(f"a{i}\tb{i}\t{cell.format(i, i)}\n" for i in range(60)))
    made = configured(path, None, None, [])
    assert (made.config.data.target, made.config.data.tags) == ("3", ())


@pytest.mark.parametrize("word", ["task=transduce", "tokens.source=bytes", "tokens.size=50"])
def test_what_is_said_wins(write: Write, word: str) -> None:
    made = configured(write("x.tsv", labelled(100, 2)), None, None, [word])
    assert made.config.task == ("transduce" if word.startswith("task") else "classify")
    assert made.config.tokens.source == ("bytes" if "bytes" in word else made.config.tokens.source)
    assert not any(line.startswith("tokens spelled") for line in made.why)


def test_a_preset_brings_its_task_where_it_has_one(write: Write) -> None:
    made = configured(write("x.tsv", labelled(100, 2)), "encoder", None, [])
    assert (made.config.task, [line.split(":")[0] for line in made.why]) == ("fill", ["tokens bpe"])
    made = configured(write("x.tsv", labelled(100, 2)), "transformer", None, [])
    assert (made.config.task, made.config.encoder.kind, made.config.decoder.kind) == ("classify", "attention", "none")
    assert made.why.guesses[0].startswith("task classify: ")


def test_a_config_file_wins(write: Write) -> None:
    file = write("c.toml", 'task = "classify"\n[data]\nsource = ["1"]\n[tokens]\nsource = "bytes"\n')
    made = configured(write("x.tsv", "".join(f"a\tb{row}\tc{row}\n" for row in range(30))), None, file, [])
    assert (made.config.task, made.config.data.source, made.config.data.target) == ("classify", ("1",), "3")
    assert made.config.tokens.source == "bytes"


def test_settings_that_do_not_fit_the_guess_are_told_with_it(write: Write) -> None:
    with pytest.raises(ConfigError, match=r"(?s)decoder.*task classify: 2 different targets.*--task transduce"):
        configured(write("x.tsv", labelled(100, 2)), None, None, ["decoder.width=64"])
    with pytest.raises(ConfigError, match=r"unknown setting data\.sauce"):
        configured(write("x.tsv", labelled(100, 2)), None, None, ["data.sauce=1"])


def test_pictures_have_settings_that_nothing_else_has() -> None:
    for word in ("data.jitter=2", "data.zoom=0.2", "data.recolour=0.5", "data.images=x.npz"):
        with pytest.raises(ConfigError, match="reads no pictures"):
            config.resolve("rnn", None, [word])
        assert config.resolve("caption", None, [word]).task == "caption"


@pytest.mark.parametrize(
    ("task", "words", "idle"),
    [
        ("classify", ["search.beam=4", "search.length_penalty=0.5"], ["search.beam", "search.length_penalty"]),
        ("classify", ["tokens.source=bpe", "tokens.target=words"], ["tokens.target"]),
        ("classify", ["tokens.source=bpe", "tokens.target=bpe"], []),  # --tokens bpe
        ("classify", ["fill.share=0.3", "data.max_target=9"], ["fill.share", "data.max_target"]),
        ("fill", ["fill.share=0.3"], []),
        ("generate", ["data.max_source=9", "search.length_extra=9"], ["search.length_extra", "data.max_source"]),
        ("transduce", ["data.max_source=9", "search.beam=4", "fill.mask=0.5"], ["fill.mask"]),
        ("classify", ["search.beam=1"], []),  # as it is anyway
    ],
)
def test_settings_that_do_nothing_are_told(write: Write, task: str, words: list[str], idle: list[str]) -> None:
    made = configured(write("x.tsv", labelled(40, 2)), None, None, [f"task={task}", *words])
    told = [line.split()[1] for line in made.why if f"does nothing for the task {task}: " in line]
    assert sorted(told) == sorted(idle)


def test_what_a_preset_says_is_nobody_s_mistake(write: Write) -> None:
    made = configured(write("x.tsv", labelled(40, 2)), "vaswani2017", None, ["task=classify"])
    assert not any("does nothing" in line for line in made.why)
