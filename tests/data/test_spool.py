"""A spool gives what `read` gives, as often as it is asked, and reads the file once."""

import gzip
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.read import CHOOSE, Columns, read
from regard.data.spool import spool
from regard.errors import DataError, RegardError

CASES: dict[str, tuple[str, Columns]] = {
    "p.tsv": ("a\tb\nc d\te\n\nf\tg\n", CHOOSE),
    "q.tsv": ("a\tb\r\nc\td\r\n", CHOOSE),  # a line end that goes from the last column
    "r.tsv": ("a\tb\r\nc\td\r\n", Columns(("2",), "1")),  # … which here is the source
    "m.tsv": ("a\tb\r\nc\td\n", CHOOSE),
    "p.csv": ('a,"b\nb\tb"\n"c\t\t","d\ne"\n', CHOOSE),
    "p.jsonl": ('{"source": "a\\tb\\n", "target": "c\\\\0t\\r"}\n{"source": "d", "target": "e"}\n', CHOOSE),
    "l.txt": ("one\ntwo\twords\n", Columns((), None)),
    "t.tsv": ("lemma\ttags\tform\nw\tV;P\tws\n\tV\tx\n", Columns(("lemma", "tags"), "form")),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_the_same_as_read_and_again(tmp_path: Path, name: str, packed: bool) -> None:
    text, columns = CASES[name]
    path = tmp_path / (name + ".gz" * packed)
    path.write_bytes(gzip.compress(text.encode(), mtime=0) if packed else text.encode())
    table, found = read(str(path), columns), spool(str(path), tmp_path / "spool", columns)
    assert list(found) == list(found) == table.examples
    assert len(found) == len(table.examples)
    assert (found.notes, found.source_names, found.target_name) == (table.notes, table.source_names, table.target_name)
    assert found.folder == table.folder
    found.remove()
    assert not (tmp_path / "spool").exists()


def test_parallel_files(tmp_path: Path) -> None:
    for name, text in (("a.en", "one\ttab\r\ntwo\r\n"), ("a.de", "eins\nzwei\n")):
        (tmp_path / name).write_bytes(text.encode())
    path = f"{tmp_path / 'a.en'},{tmp_path / 'a.de'}"
    assert list(spool(path, tmp_path / "spool")) == read(path).examples


CELLS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6))
def test_any_text_survives(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]) -> None:
    folder = tmp_path_factory.mktemp("spool")
    quoted = [tuple('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    (folder / "p.csv").write_bytes("".join(f"{a},{b}\n" for a, b in quoted).encode())
    try:
        expected = read(str(folder / "p.csv"), skip_bad=True).examples
    except DataError:
        return
    assert list(spool(str(folder / "p.csv"), folder / "spool", skip_bad=True)) == expected


def test_errors_are_those_of_read(tmp_path: Path) -> None:
    (tmp_path / "p.tsv").write_bytes(b"a\tb\nc\n\td\n\xff\tx\n")
    messages = []
    for attempt in (lambda path: read(path), lambda path: spool(path, tmp_path / "spool")):
        with pytest.raises(DataError) as caught:
            attempt(str(tmp_path / "p.tsv"))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "3 of 4 lines" in messages[0]


def test_a_pipe_will_do(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.tsv")
    writer = threading.Thread(target=(tmp_path / "pipe.tsv").write_text, args=("a\tb\nc\td\n",))
    writer.start()
    found = spool(str(tmp_path / "pipe.tsv"), tmp_path / "spool")
    writer.join()
    assert [example.source for example in found] == [("a",), ("c",)]
    assert [example.source for example in found] == [("a",), ("c",)]


def test_sources_are_shown_on_the_way(tmp_path: Path) -> None:
    (tmp_path / "p.tsv").write_text("a\tb\nc\td\n", encoding="utf-8")
    seen: list[tuple[str, ...]] = []
    watch: Callable[[tuple[str, ...]], None] = seen.append
    spool(str(tmp_path / "p.tsv"), tmp_path / "spool", watch=watch)
    assert seen == [("a",), ("c",)]


def test_a_place_that_can_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "p.tsv").write_text("a\tb\n", encoding="utf-8")
    with pytest.raises(RegardError, match=r"spool: can not be written"):
        spool(str(tmp_path / "p.tsv"), tmp_path / "nowhere" / "spool")
