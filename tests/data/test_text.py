"""Running text becomes pages that hold all of it, in order, each with the page before it."""

import gzip
from pathlib import Path

import pytest

from regard.data.text import Cut, Pages, divided, is_running, read_text, texts, write_down
from regard.errors import DataError, MissingError

TEXT = "To be, or not to be,\nthat is the question:\n\nWhether 'tis nobler in the mind to suffer\n" * 20


def written(tmp_path: Path, text: str, cut: Cut) -> Pages:
    (tmp_path / "book.txt").write_text(text, encoding="utf-8", newline="")
    return write_down(str(tmp_path / "book.txt"), tmp_path / "train.spool", cut)


@pytest.mark.parametrize("cut", [Cut(7), Cut(64), Cut(64, False), Cut(10_000), Cut(5, False)])
def test_pages_hold_all_of_the_text_in_order(tmp_path: Path, cut: Cut) -> None:
    pages = written(tmp_path, TEXT, cut)
    found = list(pages)
    assert "".join(page.target or "" for page in found) == TEXT
    assert [page.source[0] for page in found] == ["", *(page.target for page in found[:-1])]
    assert [page.line for page in found] == list(range(1, len(pages) + 1))
    assert max(len(page.target or "") for page in found) <= cut.size
    assert list(pages) == found == read_text(pages.path, cut).examples


def test_a_page_of_characters_is_exactly_so_long() -> None:
    assert {len(page) for page in list(texts([TEXT], Cut(50)))[:-1]} == {50}


def test_a_page_of_words_ends_before_white_space_unless_a_word_is_longer() -> None:
    found = list(texts([TEXT], Cut(50, False)))
    assert all(page[0].isspace() and not page[-1].isspace() for page in found[1:-1])
    assert list(texts(["a" * 25], Cut(10, False))) == ["a" * 10, "a" * 10, "a" * 5]


def test_how_the_pieces_came_changes_no_page() -> None:
    for cut in (Cut(13), Cut(13, False)):
        assert list(texts(TEXT, cut)) == list(texts([TEXT], cut))


@pytest.mark.parametrize("cut", [Cut(64), Cut(64, False)])
def test_the_last_tenth_is_held_out_as_a_text_of_its_own(tmp_path: Path, cut: Cut) -> None:
    pages = written(tmp_path, TEXT, cut)
    train, valid, note = divided(pages)
    sides = ["".join(page.target or "" for page in side) for side in (train, valid)]
    assert "".join(sides) == TEXT
    assert abs(len(sides[1]) - len(TEXT) / 10) < 20
    assert next(iter(valid)).source == ("",)
    assert f"the last {len(sides[1]):,} of {len(TEXT):,} characters are held out" in note
    if not cut.anywhere:
        assert sides[1][0].isspace()


def test_a_text_that_is_too_short_to_be_divided_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="found 5 characters, too few to train and validate; expected at least 20"):
        divided(written(tmp_path, "a\nb\nc", Cut(4)))


def test_line_ends_packing_and_marks(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress("\ufeffä\r\n\r\nb\rc".encode()))
    found = read_text(str(tmp_path / "a.txt.gz"), Cut(100))
    assert [page.target for page in found.examples] == ["ä\n\nb\rc"]
    assert [note.split(": ")[1] for note in found.notes] == ["byte order mark removed", "\\r\\n is read as \\n"]


def test_bad_lines_are_named_or_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"good\nb\xffd\nalso good\n")
    with pytest.raises(DataError, match=r"a\.txt:2: invalid UTF-8 at byte 1 .*--skip-bad"):
        read_text(str(path), Cut(100))
    found = read_text(str(path), Cut(100), skip_bad=True)
    assert [page.target for page in found.examples] == ["good\nalso good\n"]
    assert found.skipped == 1
    assert found.notes == [f"warning: {path}: 1 bad lines left out"]
    path.write_bytes(b"\xff")
    with pytest.raises(DataError, match="found nothing that can be read, expected text"):
        read_text(str(path), Cut(100), skip_bad=True)
    path.write_bytes(b"")
    with pytest.raises(DataError, match="found nothing that can be read, expected text"):
        write_down(str(path), tmp_path / "x", Cut(4))
    with pytest.raises(MissingError, match="no such file"):
        read_text(str(tmp_path / "b.txt"), Cut(4))


@pytest.mark.parametrize(
    ("path", "columns", "expected"),
    [("book.txt", (), True), ("book", (), True), ("a.md.gz", (), True), ("a.tsv", (), False), ("a.jsonl.gz", (), False),
     ("a.CSV", (), False), ("book.txt", ("1",), False)],
)  # fmt: skip
def test_what_is_no_table_by_its_name_is_running_text(path: str, columns: tuple[str, ...], expected: bool) -> None:
    assert is_running(path, columns) is expected
