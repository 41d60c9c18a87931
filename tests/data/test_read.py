"""Files in, examples or one clear error out."""

import builtins
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.read import CHOOSE, Columns, Example, Stream, Table, escape, quote, read, read_lines
from regard.errors import DataError, MissingError

Write = Callable[[str, str | bytes], str]
NO_TARGET = Columns(target=None)


def pairs(table: Table) -> list[tuple[str, ...]]:
    return [(*example.source, example.target or "") for example in table.examples]


def failure(path: str, columns: Columns = Columns(), skip_bad: bool = False) -> str:  # noqa: B008
    """The message of the DataError that reading gives, without the folder; three lines at most."""
    with pytest.raises(DataError) as caught:
        read(path, columns, skip_bad)
    message = str(caught.value)
    assert len(message.splitlines()) <= 3
    assert escape(message.replace("\n", "")) == message.replace("\n", "")
    return message.replace(str(Path(path).parent) + "/", "")


# What is read


def test_two_columns_with_their_lines(write: Write) -> None:
    table = read(write("pairs.tsv", "a\tb\nc d\te"))
    assert table.examples == [Example(("a",), "b", 1), Example(("c d",), "e", 2)]
    assert (table.notes, table.source_names, table.target_name, table.skipped) == ([], ("1",), "2", 0)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.tsv", "a\tb\nc\td\n"),
        ("p.en", "a\tb\nc\td\n"),
        ("p.csv", 'a,b\n"c",d\n'),
        ("p.jsonl", '{"source": "a", "target": "b"}\n{"target": "d", "source": "c", "more": 1}\n'),
        ("q.jsonl", '{"x": "a", "y": "b"}\n{"x": "c", "y": "d"}'),
    ],
)
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_every_format_also_packed(write: Write, name: str, content: str, packed: str) -> None:
    assert pairs(read(write(name + packed, content))) == [("a", "b"), ("c", "d")]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x85", "\r", "x\ry"])
def test_only_newline_ends_a_line(write: Write, mark: str) -> None:
    expected = [(f"a{mark}b", "c"), ("d", "e")]
    assert pairs(read(write("p.tsv", f"a{mark}b\tc\nd\te\n"))) == expected
    assert pairs(read(write("p.csv", f"a{mark}b,c\nd,e\n"))) == expected
    assert pairs(read(write("q.csv", f'"a{mark}b",c\nd,e\n'))) == expected
    assert [line for (line, _) in pairs(read(write("p.txt", f"a{mark}b\nc\n"), NO_TARGET))] == [f"a{mark}b", "c"]


def test_csv_fields_may_hold_newlines_and_lines_are_where_rows_start(write: Write) -> None:
    table = read(write("p.csv", 'a,"b\nb ""q"", b"\n\nc,d\n'))
    assert table.examples == [Example(("a",), 'b\nb "q", b', 1), Example(("c",), "d", 4)]


def test_json_values(write: Write) -> None:
    rows = ['{"source": 1.10, "target": ["a", "b"]}', '{"source": 12345678901234567890123, "target": "é\\n"}']
    table = read(write("p.jsonl", "\n".join(rows)))
    assert pairs(table) == [("1.10", "a b"), ("12345678901234567890123", "é\n")]


def test_two_parallel_files(write: Write) -> None:
    left, right = write("a.en", "one\ttab\ntwo\n\n"), write("a.de.gz", "eins\nzwei\n\n")
    table = read(f"{left},{right}")
    assert pairs(table) == [("one\ttab", "eins"), ("two", "zwei")]
    assert any("1 blank" in note for note in table.notes)


def test_a_comma_in_a_file_name_is_no_second_file(write: Write) -> None:
    assert pairs(read(write("a,b.tsv", "x\ty\n"))) == [("x", "y")]


def test_a_line_of_ten_megabytes(write: Write) -> None:
    long = "x" * 10_000_000
    for path in (write("p.tsv", f"{long}\ty\n"), write("p.csv", f"{long},y\n"), write("q.csv", f'"{long}",y\n')):
        assert [len(text) for text in pairs(read(path))[0]] == [10_000_000, 1]


def test_plain_text_is_one_column(write: Write) -> None:
    table = read(write("p.txt", "text\na\tb\n\nc"), NO_TARGET)
    assert [example.source for example in table.examples] == [("text",), ("a\tb",), ("c",)]
    assert {example.target for example in table.examples} == {None}
    assert (table.source_names, table.target_name) == (("1",), None)


def test_text_that_looks_special_stays_text(write: Write) -> None:
    assert pairs(read(write("p.tsv", "<pad>\t</s>\n# a\t\\N\n"))) == [("<pad>", "</s>"), ("# a", "\\N")]


texts = st.text(st.characters(exclude_characters="\0\n\t\r", exclude_categories=["Cs"]), min_size=1).filter(
    lambda text: text.strip(" ") and not text.startswith("\ufeff")
)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(texts, texts), min_size=1, max_size=8))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]) -> None:
    folder = tmp_path_factory.mktemp("rows")
    (folder / "p.tsv").write_bytes("".join(f"{a}\t{b}\n" for a, b in rows).encode())
    (folder / "p.jsonl").write_bytes("".join(json.dumps({"a": a, "b": b}) + "\n" for a, b in rows).encode())
    quoted = [tuple('"' + text.replace('"', '""') + '"' for text in row) for row in rows]
    (folder / "p.csv").write_bytes("".join(f"{a},{b}\r\n" for a, b in quoted).encode())
    for name in ("p.tsv", "p.jsonl", "p.csv"):
        assert pairs(read(str(folder / name))) == rows


@settings(max_examples=150, deadline=None)
@given(raw=st.binary(max_size=60), suffix=st.sampled_from(["tsv", "csv", "jsonl", "tsv.gz", "txt"]))
def test_any_bytes_give_examples_or_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes, suffix: str
) -> None:
    path = tmp_path_factory.mktemp("bytes") / f"p.{suffix}"
    path.write_bytes(raw)
    for columns in (Columns(), NO_TARGET):
        message = ""
        try:
            assert read(str(path), columns, skip_bad=True).examples
        except DataError as error:
            message = str(error)
        assert len(message.splitlines()) <= 3


def test_a_stream_gives_examples_before_it_has_read_on(write: Write) -> None:
    """Nothing is held: a flaw far down is met only when it is reached, and then all flaws are told."""
    path = write("p.tsv", "a\tb\n" * 5000 + "bad\n" + "c\td\n" + "worse\n")
    stream = Stream(path)
    examples = iter(stream)
    assert [next(examples).line for _ in range(5000)] == list(range(1, 5001))
    assert next(examples) == Example(("c",), "d", 5002)
    with pytest.raises(DataError, match="2 of 5003 lines can not be used"):
        next(examples)
    lenient = Stream(path, skip_bad=True)
    assert len(list(lenient)) == 5001
    assert lenient.skipped == 2
    assert "2 of 5003 lines" in lenient.notes[0]


def test_a_stream_knows_at_its_end_which_columns_shed_their_return(write: Write) -> None:
    for text, expected in (("a\tb\r\nc\td\r\n", (False, True)), ("a\tb\r\nc\td\n", ()), ("a\tb\n", ())):
        stream = Stream(write("p.tsv", text))
        assert len(list(stream)) >= 1
        assert stream.returns == expected


# Which columns

MORPH = "lemma\tform\ttags\nwalk\twalked\tV;PST\n"


def test_columns_by_name(write: Write) -> None:
    table = read(write("p.tsv", MORPH), Columns(("lemma", "tags"), "form"))
    assert table.examples == [Example(("walk", "V;PST"), "walked", 2)]
    assert (table.source_names, table.target_name) == (("lemma", "tags"), "form")


def test_columns_by_position(write: Write) -> None:
    table = read(write("p.tsv", "a\tb\tc\nd\te\tf\n"), Columns(("3", "1"), "2"))
    assert pairs(table) == [("c", "a", "b"), ("f", "d", "e")]
    assert pairs(read(write("p.jsonl", '{"x": "a", "y": "b", "z": "c"}'), Columns(("3",), "y"))) == [("c", "b")]


def test_the_last_column_left_is_chosen(write: Write) -> None:
    path = write("p.tsv", MORPH)
    assert pairs(read(path, Columns(("lemma", "form")))) == [("walk", "walked", "V;PST")]
    assert pairs(read(write("q.tsv", "a\tb\n"), Columns(target="1"))) == [("b", "a")]


def test_a_header_of_known_names_is_taken_with_a_note(write: Write) -> None:
    table = read(write("p.csv", "Source,Target\na,b\n"))
    assert pairs(table) == [("a", "b")]
    assert table.examples[0].line == 2
    assert "header: Source, Target" in table.notes[0]
    assert pairs(read(write("q.tsv", "source\thund\n"))) == [("source", "hund")]


def test_more_than_two_columns_ask_for_a_choice(write: Write) -> None:
    message = failure(write("p.tsv", MORPH))
    assert "found 3 columns, expected 2: lemma, form, tags" in message
    assert "--source lemma,tags --target form" in message
    assert "--source 1,2 --target 3" in failure(write("q.tsv", "a\tb\tc\nd\te\tf\n"))
    assert "found 3 keys" in failure(write("p.jsonl", '{"x": "a", "y": "b", "z": "c"}'))
    assert "found 3 columns" in failure(write("p.tsv", MORPH), NO_TARGET)


def test_an_unknown_column_names_the_nearest(write: Write) -> None:
    message = failure(write("p.tsv", MORPH), Columns(("lemmma",), "form"))
    assert 'found no column "lemmma", the nearest is "lemma"; the columns are lemma, form, tags' in message
    assert 'no column "7"' in failure(write("p.tsv", MORPH), Columns(("7",), "2"))
    assert 'nearest is "form"' in failure(write("p.jsonl", '{"lemma": "a", "form": "b"}'), Columns(("lemma",), "from"))


def test_names_do_not_fit_parallel_files(write: Write) -> None:
    both = f"{write('a.en', 'x')},{write('a.de', 'y')}"
    assert 'no column "lemma"' in failure(both, Columns(("lemma",), "2"))


def test_no_target_reads_the_first_of_two(write: Write) -> None:
    table = read(write("p.tsv", "a\tb\n"), NO_TARGET)
    assert table.examples == [Example(("a",), None, 1)]
    assert "only 1 is read" in table.notes[0]


def test_a_source_column_may_be_empty_when_another_is_not(write: Write) -> None:
    assert pairs(read(write("p.tsv", "a\t\tc\n"), Columns(("1", "2"), "3"))) == [("a", "", "c")]


# What is tolerated


@pytest.mark.parametrize("name", ["p.tsv", "p.csv"])
def test_byte_order_mark_and_carriage_returns(write: Write, name: str) -> None:
    mark = "\t" if name == "p.tsv" else ","
    table = read(write(name, f"\ufeffa{mark}b\r\n\r\nc{mark}d"))
    assert pairs(table) == [("a", "b"), ("c", "d")]
    assert "byte order mark" in table.notes[0]
    assert "every line ends in \\r\\n" in table.notes[1]
    assert "1 blank lines skipped" in table.notes[-1]
    assert any("first line is read as an example" in note for note in table.notes) == (name == "p.csv")


def test_returns_on_some_lines_only_are_kept(write: Write) -> None:
    table = read(write("p.tsv", "a\tb\r\nc\td\n"))
    assert pairs(table) == [("a", "b\r"), ("c", "d")]
    assert "1 of 2 lines end in \\r\\n" in table.notes[0]


def test_returns_are_dropped_where_the_last_column_went(write: Write) -> None:
    path = write("p.tsv", "x\ty\tz\r\na\tb\tc\r\n")
    assert pairs(read(path, Columns(("z", "x"), "y"))) == [("c", "a", "b")]
    assert pairs(read(path, Columns(("x",), "y"))) == [("a", "b")]
    assert pairs(read(path, Columns(("x",), "z"))) == [("a", "c")]


def test_returns_in_one_of_two_files(write: Write) -> None:
    left, right = write("a.en", "x\r\ny\r\n"), write("a.de", "1\n2\n")
    assert pairs(read(f"{left},{right}")) == [("x", "1"), ("y", "2")]


def test_rows_of_a_spreadsheet(write: Write) -> None:
    """Rows end in \\r\\n, lines within a cell in \\n."""
    assert pairs(read(write("p.csv", '"a\nb","c"\r\n"d","e"\r\n'))) == [("a\nb", "c"), ("d", "e")]


# What is refused


def test_the_message_of_a_wrong_line(write: Write) -> None:
    message = failure(write("pairs.tsv", "a\tb\n" * 30 + "12 May 2018\t2018-05-12\t\n" + "a\tb\n"))
    first, last = message.splitlines()
    assert first == 'pairs.tsv:31: expected 2 columns, found 3: "12 May 2018⇥2018-05-12⇥"; a tab at the end?'
    assert last == (
        "pairs.tsv: 1 of 32 lines can not be used: 1 × wrong column count; mend them, or leave them out with --skip-bad"
    )


def test_all_problems_are_counted_and_two_are_shown(write: Write) -> None:
    raw = b"a\tb\nc\n\td\ne\t\n\xff\tx\ny\0\tz\na\tb\tc\n"
    path = write("p.tsv", raw)
    first, second, last = failure(path).splitlines()
    assert first.startswith("p.tsv:2: expected 2 columns, found 1")
    assert second.startswith("p.tsv:3: found an empty source")
    counts = "2 × wrong column count, 1 × empty source, 1 × empty target, 1 × invalid UTF-8, 1 × NUL byte"
    assert f"6 of 7 lines can not be used: {counts}" in last
    table = read(path, skip_bad=True)
    assert (pairs(table), table.skipped) == ([("a", "b")], 6)
    assert "6 of 7 lines" in table.notes[0]
    assert "p.tsv:2:" in table.notes[0]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("p.tsv", b"a\tb\nab\xe9c\td\n", "p.tsv:2: invalid UTF-8 at byte 2 (0xE9)"),
        ("p.tsv", b"\xef\xbb\xbfab\xe9c\td\ne\tf\n", "p.tsv:1: invalid UTF-8 at byte 5 (0xE9)"),
        ("p.csv", b'a,b\n"c\n\xff",d\n', "p.csv:2: invalid UTF-8 at byte 0 (0xFF)"),
        ("p.tsv", "a\tb\nc\0\td\n", "p.tsv:2: found a NUL byte at byte 1"),
        ("p.tsv", "a\tb\n \td\n", "p.tsv:2: found an empty source"),
        ("p.csv", 'a,b\nc,""\n', "p.csv:2: found an empty target"),
        ("p.tsv", "a,b\nc,d\n", 'found 1: "a,b"; looks like commas: rename to .csv'),
        ("p.csv", "a\tb\nc\td\n", "looks like tabs: rename to .tsv"),
        ("p.tsv", "a;b\nc;d\n", "looks like semicolons"),
        ("p.csv", "ask;sql\nhow many, then?;select a, b\nwho;select c\n", "looks like semicolons"),
        ("p.tsv", '{"a": 1, "b": 2}\n', "looks like JSON: rename to .jsonl"),
        ("p.tsv", "a\tb\tc\n", "p.tsv:1: expected 2 columns, found 3"),
        ("p.csv", "a,b\nc,d,e\n", 'p.csv:2: expected 2 columns, found 3: "c,d,e"; a field with a comma in it wants'),
        ("p.csv", 'a,b\nc,"d\ne,f\n', "p.csv:2: found a quote that is never closed (up to line 3)"),
        ("p.csv", 'a,b\n"c"c,d\n', "p.csv:2: found text after a closing quote"),
        ("p.jsonl", '{"source": "a", "target": "b"}\n{"source": \n', "p.jsonl:2: broken JSON at character"),
        ("p.jsonl", "[1, 2]\n", "p.jsonl:1: found no object"),
        ("p.jsonl", "[" * 100_000, "p.jsonl:1: broken JSON"),
        ("p.jsonl", '{"source": "a", "target": "b"}\n{"source": "a"}', 'p.jsonl:2: expected the key "target"'),
        ("p.jsonl", '{"source": "a", "target": null}', '"target": found null'),
        ("p.jsonl", '{"source": "a", "target": [1, null]}', '"target": found a mixed list'),
        ("p.jsonl", '{"source": "a", "target": true}', '"target": found true or false'),
        ("p.jsonl", '{"source": "a", "target": "\\ud800"}', "half of a surrogate pair"),
        ("p.jsonl", '{"source": "a", "target": "\\u0000"}', "found \\u0000"),
        ("p.tsv", "", "found an empty file"),
        ("p.tsv.gz", "", "found an empty file"),
        ("p.tsv", "\n \n\r\n", "found 3 blank lines"),
        ("p.tsv", "source\ttarget\n", "found a header (source, target) and nothing after it"),
        ("p.tsv", "a\tb\n".encode("utf-16"), "looks like UTF-16: iconv -f UTF-16 -t UTF-8"),
        ("p.tsv", gzip.compress(b"a\tb\n", mtime=0), "looks like gzip: add .gz"),
    ],
)
def test_bad_data_are_named(write: Write, name: str, content: str | bytes, expected: str) -> None:
    assert expected in failure(write(name, content))


WESTERN = "".join(f"Straße {row} für Ärger\tcafé {row} “déjà”\n" for row in range(9))
RUSSIAN = "".join(f"Привет мир {row}\thello world\n" for row in range(9))


@pytest.mark.parametrize(
    ("raw", "encoding"),
    [
        (WESTERN.encode("cp1252"), "WINDOWS-1252"),
        (WESTERN.encode("utf-16-le"), "UTF-16LE"),
        (RUSSIAN.encode("utf-16-be"), "UTF-16BE"),
        (RUSSIAN.encode("cp1251"), "ENCODING"),  # which one of several, its bytes do not tell
    ],
)
@pytest.mark.parametrize("columns", [CHOOSE, Columns(("a",), "b")])
def test_another_encoding_is_told_with_its_conversion(
    write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, raw: bytes, encoding: str, columns: Columns
) -> None:
    write("my pairs.tsv", raw)
    monkeypatch.chdir(tmp_path)
    told = failure("my pairs.tsv", columns)
    assert len(told.splitlines()) <= 3
    assert told.endswith(f": iconv -f {encoding} -t UTF-8 'my pairs.tsv' > 'my pairs-utf8.tsv'")


def test_a_conversion_unpacks_what_is_packed(write: Write) -> None:
    path = write("p.tsv.gz", WESTERN.encode("cp1252"))
    assert failure(path).endswith("gzip -dc p.tsv.gz | iconv -f WINDOWS-1252 -t UTF-8 > p-utf8.tsv")


def test_damaged_utf8_is_not_converted(write: Write) -> None:
    """It would be mojibake afterwards."""
    for raw in (WESTERN.encode() + b"x\xc3\ty\n", b"a\tb\0\n" + 200 * b"some text\tb\n"):
        assert "iconv" not in failure(write("p.tsv", raw))
    assert failure(f"{write('a.en', WESTERN)},{write('a.de', WESTERN.encode('cp1252'))}").endswith("a-utf8.de")


def test_a_hint_also_when_columns_were_asked_for(write: Write) -> None:
    path = write("p.tsv", "lemma,form\nwalk,walked\n")
    assert "looks like commas" in failure(path, Columns(("1",), "2"))
    assert "looks like commas" in failure(path, Columns(("lemma",), "form"))


def test_nothing_left_is_refused_even_when_skipping(write: Write) -> None:
    message = failure(write("p.tsv", "a\nb\n"), skip_bad=True)
    assert "2 of 2 lines" in message
    assert "--skip-bad" not in message


def test_quoted_lines_are_short_and_tame(write: Write) -> None:
    message = failure(write("p.tsv", "\x1b[31mred\x1b[0m" + "x" * 500 + "\n"))
    assert "\\x1b[31mred" in message
    assert len(message.splitlines()[0]) < 140


@pytest.mark.parametrize("cut", [5, 15, 40, -9, -1])
def test_damaged_gzip(tmp_path: Path, cut: int) -> None:
    whole = gzip.compress("".join(f"{n}\t{n * n}\n" for n in range(1000)).encode())
    path = tmp_path / "p.tsv.gz"
    path.write_bytes(whole[:cut])
    assert "damaged gzip" in failure(str(path))
    path.write_bytes(whole[:60] + b"\0" * 20 + whole[80:])
    assert "damaged gzip" in failure(str(path))
    path.write_bytes(b"a\tb\n")
    assert "damaged gzip" in failure(str(path))


def test_unequal_files_give_both_counts(write: Write) -> None:
    left, right = write("a.en", "x\n" * 50), write("a.de", "y\n" * 47)
    message = failure(f"{left},{right}")
    assert message.endswith("a.de has 47 lines: expected as many in each")
    assert "a.en has 50 lines" in message


def test_bad_bytes_in_one_of_two_files(write: Write) -> None:
    message = failure(f"{write('a.en', 'x')},{write('a.de', b'y' + bytes([255]))}")
    assert ":1: in " in message
    assert "a.de: invalid UTF-8 at byte 1" in message


# What is not there


def test_no_such_file_names_the_nearest(write: Write, tmp_path: Path) -> None:
    write("pairs.tsv", "a\tb\n")
    with pytest.raises(MissingError, match=r'no such file; the nearest name there is "pairs\.tsv"'):
        read(str(tmp_path / "pair.tsv"))
    with pytest.raises(MissingError, match="no folder"):
        read(str(tmp_path / "nowhere" / "pair.tsv"))
    with pytest.raises(MissingError, match=r"b\.de: no such file"):
        read(f"{tmp_path / 'pairs.tsv'},{tmp_path / 'b.de'}")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "d.gz").mkdir()
    for path in (tmp_path, tmp_path / "d.gz"):
        with pytest.raises(MissingError, match="found a folder"):
            read(str(path))


def test_odd_paths(tmp_path: Path) -> None:
    for name in ("a\0b", "x" * 5000, str(tmp_path / "a\nb")):
        with pytest.raises(MissingError) as caught:
            read(name)
        assert len(str(caught.value).splitlines()) == 1


def test_no_permission(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("p.tsv", "a\tb\n")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(builtins, "open", refuse)  # the tests may run as a user who may read everything
    with pytest.raises(MissingError, match="no permission to read"):
        read(path)


# Text for people


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_escaped_text_is_printable_and_plain_text_is_untouched(text: str) -> None:
    escaped = escape(text)
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in escaped)
    assert escape(escaped) == escaped
    escaped.encode()


def test_escape_spells_out() -> None:
    assert escape("a\tb\x1b]0;x\x07\x9b\u202e\r\n") == "a⇥b\\x1b]0;x\\x07\\x9b\\u202e\\r\\n"
    assert escape("naïve 日本 👍🏽 \u200d") == "naïve 日本 👍🏽 \u200d"
    assert quote("x" * 61) == '"' + "x" * 60 + '…"'


# ── plain lines ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_lines_are_taken_as_they_are(write: Write) -> None:
    assert read_lines(write("lines.txt", "\ufeffa\tb\n\n c \nü")) == ("a\tb", " c ", "ü")
    assert read_lines(write("windows.txt", "a\r\n\r\nb\r\n")) == ("a", "b")
    assert read_lines(write("packed.gz", "a\nb\n")) == ("a", "b")


def test_bad_lines_and_no_lines_are_refused(write: Write) -> None:
    with pytest.raises(DataError, match=r"bad.txt:2: invalid UTF-8 at byte 1 .*; looks like WINDOWS-1252: iconv"):
        read_lines(write("bad.txt", b"a\nb\xff\n"))
    with pytest.raises(DataError, match="found no line with text"):
        read_lines(write("empty.txt", "\n\n"))
    with pytest.raises(MissingError):
        read_lines("no-such-file.txt")
