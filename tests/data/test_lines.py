"""Bytes to lines as they come; and of each line what is read, and the line with an output in it."""

import io
import json
import os
import threading
from collections.abc import Iterator

import pytest

from regard.data.lines import Commas, Format, Layout, Objects, Output, Table, Whole, bundles, header_of_commas
from regard.errors import DataError, RegardError, UsageError


class Pieces(io.RawIOBase):
    """A stream that gives what it has, piece by piece, and counts how often it was asked."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = iter(pieces)
        self.asked = 0

    def read1(self, size: int) -> bytes:
        self.asked += 1
        return next(self.pieces, b"")


def lines_of(pieces: list[bytes], most: int = 8) -> list[list[str]]:
    told: list[str] = []
    found = [[line.text for line in bundle] for bundle in bundles(Pieces(pieces), most, told.append)]  # type: ignore[arg-type]
    assert told == []
    return found


# ── lines ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_bundles_grow_and_never_wait() -> None:
    assert lines_of([b"a\nb\nc\nd\ne\nf\n"], 2) == [["a"], ["b", "c"], ["d", "e"], ["f"]]
    assert lines_of([b"a\n", b"b\n", b"c\nd\n"]) == [["a"], ["b"], ["c", "d"]]


@pytest.mark.parametrize("cut", range(1, 12))
def test_lines_do_not_depend_on_how_they_arrive(cut: int) -> None:
    whole = b"ab\n\nc d\n\xc3\xa9\nlast"
    pieces = [whole[:cut], whole[cut:]]
    assert [line for bundle in lines_of(pieces) for line in bundle] == ["ab", "", "c d", "é", "last"]


@pytest.mark.parametrize(("given", "expected"), [([], []), ([b"\n"], [""]), ([b"a"], ["a"]), ([b"\n\n"], ["", ""])])
def test_ends(given: list[bytes], expected: list[str]) -> None:
    assert [line for bundle in lines_of(given) for line in bundle] == expected


def test_sizes_add_up_to_the_bytes() -> None:
    raw = b"\xef\xbb\xbfab\r\nc\r\n\xff\r\nlast"
    told: list[str] = []
    found = [line for bundle in bundles(io.BytesIO(raw), 4, told.append) for line in bundle]
    assert sum(line.size for line in found) == len(raw)
    assert [line.number for line in found] == [1, 2, 3, 4]
    assert [line.text for line in found] == ["ab", "c", "�", "last"]
    assert told == [
        "warning: lines end in \\r\\n; the \\r is left out",
        "warning: line 3: not UTF-8 at byte 1; replaced",
    ]


def test_a_line_is_there_before_the_next_is_written() -> None:
    """Through a real pipe: whoever waits for an answer before going on gets it."""
    near, far = os.pipe()
    coming = bundles(os.fdopen(near, "rb"), 64, print)
    heard: list[str] = []
    for word in (b"one\n", b"two\n", b"three\n"):
        os.write(far, word)
        reader = threading.Thread(target=lambda: heard.append(next(coming)[0].text))
        reader.start()
        reader.join(10)
        assert heard[-1].encode() + b"\n" == word
    os.close(far)
    assert list(coming) == []


def test_a_stream_without_end_is_read_as_it_is_used() -> None:
    def forever() -> Iterator[bytes]:
        while True:
            yield b"abc\n" * 100

    stream = Pieces([])
    stream.pieces = forever()
    coming = bundles(stream, 16, print)  # type: ignore[arg-type]
    for _ in range(50):
        next(coming)
    assert stream.asked <= 10


# ── formats ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def suited(layout: Layout, first: str = "", names: tuple[str, ...] = (), count: int = 1) -> Format:
    return layout.suited(names, count, first)


def test_what_a_format_is_guessed_from() -> None:
    assert isinstance(suited(Layout(), "a\tb"), Whole)
    assert isinstance(suited(Layout(), '{"a": 1}'), Whole)
    assert isinstance(suited(Layout(columns=("a",)), ' {"a": 1}'), Objects)
    assert isinstance(suited(Layout(columns=("a",)), "a\tb"), Table)
    assert isinstance(suited(Layout(columns=("2",)), '{"a": 1}'), Table)
    assert isinstance(suited(Layout("tsv", ("a",)), '{"a": 1}'), Table)
    assert isinstance(suited(Layout("jsonl"), names=("date",)), Objects)
    assert isinstance(suited(Layout(columns=("a",)), 'a,"b"'), Commas)
    assert isinstance(suited(Layout(columns=("2",)), '"x, y",b'), Commas)
    assert isinstance(suited(Layout("csv", ("1",)), "a,b"), Commas)
    assert not isinstance(suited(Layout(columns=("c",)), "a,b"), Commas)
    assert not isinstance(suited(Layout(columns=("a",)), "a\tb,c"), Commas)


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        (lambda: Layout("xml"), '--format "xml": expected lines, tsv, csv, jsonl, conll'),
        (lambda: Layout("lines", ("a",)), "with --format lines all is read"),
        (lambda: Layout("tsv", ("0",)), "numbers from 1"),
        (lambda: Layout("tsv", ("a", "")), "numbers from 1"),
        (lambda: Layout(output="a\tb"), "--output-column"),
        (lambda: suited(Layout("jsonl")), "say which keys"),
        (lambda: suited(Layout("jsonl", ("1",))), "say which keys"),
        (lambda: suited(Layout("tsv", ("a", "b"))), "found a, b; the model reads 1 columns"),
    ],
)
def test_layouts_that_are_refused(layout: object, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        layout()  # type: ignore[operator]


def test_table_with_a_header() -> None:
    table = suited(Layout("tsv", ("tags", "lemma"), count=2), count=2)
    assert table.head("lemma\tx\ttags") == "lemma\tx\ttags\toutput\toutput_2"
    assert table.read("go\t7\tV;PST") == ("V;PST", "go")
    assert table.write("go\t7\tV;PST", Output(("went", "goed"))) == "go\t7\tV;PST\twent\tgoed"
    assert table.write("go\t7\tV;PST", Output(("went",))) == "go\t7\tV;PST\twent\t"
    assert table.write("go", Output(("",))) == "go\t\t\t\t"
    assert table.write("go\t7\tV\tx\ty", Output(("went", "goed"))) == "go\t7\tV\twent\tgoed\tx\ty"
    assert table.write("go\t7\tV\tx", Output((), {"text": "went"})) == 'go\t7\tV\t{"text": "went"}\t\tx'
    assert (table.surplus("go\t7\tV"), table.surplus("go\t7\tV\tx")) == ("", "4 columns, the header has 3")
    assert (table.read(""), table.write("", Output(("",)))) == (("", ""), "")
    with pytest.raises(DataError, match="expected 3 columns, found 1"):
        table.read("go")


def test_table_without_a_header() -> None:
    table = suited(Layout("tsv", ("2",)))
    assert table.head("9 May\tx") is None
    assert table.read("a\tb\tc") == ("b",)
    assert table.write("a\tb\tc", Output(("B\tx\ny\r",))) == "a\tb\tc\tB x y "
    assert table.write("a\tb", Output((), {"text": "x\ty"})) == 'a\tb\t{"text": "x\\ty"}'
    assert suited(Layout("tsv", ("1",))).head("source\ttarget") == "source\ttarget\toutput"


def test_tables_that_are_refused() -> None:
    with pytest.raises(DataError, match='found no column "lema", the nearest is "lemma"; the columns are lemma, tags'):
        suited(Layout("tsv", ("lema",))).head("lemma\ttags")
    with pytest.raises(UsageError, match='has a column "output" already; choose another --output-column'):
        suited(Layout("tsv", ("a",))).head("a\toutput")


@pytest.mark.parametrize("line", ['{"a": "x", "n": 1.10, "b": [1,  2]}', '{"a":"x"}  ', '{"n": 1e400, "a": "x"}'])
def test_objects_stay_as_they_are_written(line: str) -> None:
    objects = suited(Layout("jsonl", ("a",)))
    written = objects.write(line, Output(("y",)))
    assert written.startswith(line.rstrip()[:-1])
    assert json.loads(written) == {**json.loads(line), "output": "y"}
    assert objects.read(line) == ("x",)


def test_objects_with_other_outputs() -> None:
    objects = suited(Layout("jsonl", ("a",), "made", 2))
    assert json.loads(objects.write('{"a": "x"}', Output(("y", "z")))) == {"a": "x", "made": ["y", "z"]}
    assert json.loads(objects.write('{"a": "x"}', Output((), {"text": "y"})))["made"] == {"text": "y"}
    assert objects.write("{}", Output(("",))) == '{"made": [""]}'
    assert objects.write("broken", Output(("",))) == '{"made": [""]}'
    assert (objects.read(" "), objects.write(" ", Output(("",)))) == (("",), "")
    assert objects.read('{"a": 1.10}') == ("1.10",)


@pytest.mark.parametrize("number", ["9" * 5000, "1e999", "0." + "123456789" * 4, "NaN"])
def test_numbers_of_other_keys_stay_whatever_they_are(number: str) -> None:
    objects = suited(Layout("jsonl", ("a",)))
    line = f'{{"n": {number}, "a": "x"}}'
    assert objects.read(line) == ("x",)
    assert objects.write(line, Output(("y",))) == f'{{"n": {number}, "a": "x", "output": "y"}}'


def test_a_key_that_is_there_already_is_refused() -> None:
    with pytest.raises(UsageError, match='has a key "output" already; choose another --output-column'):
        suited(Layout("jsonl", ("a",))).read('{"output": 1.10, "a": "x"}')


@pytest.mark.parametrize("line", ['{"a"', "[1]", '{"b": "x"}', '{"a": null}', '{"a": "\\ud800"}'])
def test_objects_that_can_not_be_read(line: str) -> None:
    with pytest.raises(RegardError):
        suited(Layout("jsonl", ("a",))).read(line)


def test_whole_lines() -> None:
    assert Whole().read("a\tb") == ("a", "b")
    assert Whole().write("a", Output(("x\ny", "z"))) == "x y\tz"
    assert Whole().write("a", Output((), {"text": "\u2028"})) == '{"text": "\\u2028"}'


# ── commas ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_csv_is_read_and_written_as_it_stands() -> None:
    table = suited(Layout(columns=("date",)), "id,date")
    assert table.head("id,date") == "id,date,output"
    assert table.read('7,"9 May, 2018"') == ("9 May, 2018",)
    assert table.read('7,"the ""ninth"""\r') == ('the "ninth"',)
    assert table.write('7,"9 May, 2018"', Output(("2018-05-09",))) == '7,"9 May, 2018",2018-05-09'
    assert table.write("7,x", Output(('a "b", c',))) == '7,x,"a ""b"", c"'
    assert json.loads(table.write("7,x", Output((), {"a": 1}))[5:-1].replace('""', '"')) == {"a": 1}
    assert table.write("7", Output(("y",))) == "7,,y"
    assert table.write("7,x,z", Output(("y",))) == "7,x,y,z"
    assert table.surplus("7,x,z") == "3 columns, the header has 2"
    assert table.write("", Output(("",))) == ""


def test_a_row_that_goes_on_in_the_next_line_is_told() -> None:
    table = suited(Layout("csv", ("1",)))
    with pytest.raises(DataError, match="found a quote that is not closed on its line"):
        table.read('"a')
    assert table.write('"a', Output(("",))) == '"""a",'
    assert table.read('"' + "a" * 200_000 + '",b') == ("a" * 200_000,)


def test_headers_of_a_csv_are_seen() -> None:
    assert header_of_commas("text,label") == ["text", "label"]
    for line in ("text", "well, label", "text\tlabel", '"text,label'):
        assert header_of_commas(line) == []
