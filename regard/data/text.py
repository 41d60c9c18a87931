"""Running text in, pages of it out, each with the page before it; memory does not grow with the text.

Line breaks belong to the text. The file is read once and written down as it was understood; pages are cut from that as
often as they are wanted.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from os.path import splitext
from pathlib import Path

from regard.data.read import SUFFIXES, Example, Source, Table, converted, escape, files_of, folder_of
from regard.errors import DataError, RegardError

AT_ONCE = 1 << 20  # characters that are read at a time
NEAR = 1000  # characters within which a word ends
FEWEST = 20  # characters of a text that is to be trained on and validated with


def is_running(path: str, columns: tuple[str, ...]) -> bool:
    """Whether a file is one text: it is no table by its name, and nobody asks for columns."""
    suffix = splitext(path.removesuffix(".gz"))[1].lower()
    return suffix not in SUFFIXES and not columns and len(files_of(path)) == 1


@dataclass(frozen=True)
class Cut:
    """How long a page is, in characters; `anywhere` = exactly so long, else at most, and it ends before white space."""

    size: int
    anywhere: bool = True

    def end(self, text: str) -> int:
        """Where the first page of a text ends that is longer than a page; a page has no less than half its size."""
        places = range(self.size, self.size // 2, -1) if not self.anywhere else ()
        return next((at for at in places if text[at].isspace() and not text[at - 1].isspace()), self.size)


@dataclass(frozen=True)
class Pages:
    """Pages of a text that was written down, from one of its characters to another; the first has none before it."""

    path: str
    place: Path
    cut: Cut
    start: int
    stop: int
    notes: tuple[str, ...] = ()

    source_names = ("text",)

    @property
    def folder(self) -> str:
        return folder_of(self.path)

    def __len__(self) -> int:
        return sum(1 for _ in texts(self.pieces(), self.cut))

    def __iter__(self) -> Iterator[Example]:
        return paged(self.pieces(), self.cut)

    def pieces(self) -> Iterator[str]:
        with open(self.place, encoding="utf-8", newline="") as file:
            skipped = 0
            while skipped < self.start and (piece := file.read(min(AT_ONCE, self.start - skipped))):
                skipped += len(piece)
            left = self.stop - self.start
            while left > 0 and (piece := file.read(min(AT_ONCE, left))):
                left -= len(piece)
                yield piece

    def remove(self) -> None:
        self.place.unlink(missing_ok=True)


def paged(pieces: Iterable[str], cut: Cut) -> Iterator[Example]:
    """Each page as a target, and as its source the page before it; in place of a line, the number of the page."""
    before = ""
    for number, text in enumerate(texts(pieces, cut), 1):
        yield Example((before,), text, number)
        before = text


def texts(pieces: Iterable[str], cut: Cut) -> Iterator[str]:
    rest = ""
    for piece in pieces:
        rest += piece
        while len(rest) > cut.size:
            end = cut.end(rest)
            yield rest[:end]
            rest = rest[end:]
    if rest:
        yield rest


class Text:
    """A file as one text, line by line and with the ends of lines; \\r\\n is read as \\n."""

    def __init__(self, path: str, skip_bad: bool) -> None:
        self.source, self.skip_bad = Source(path), skip_bad
        self.skipped = 0
        self.size = 0  # in characters

    def __iter__(self) -> Iterator[str]:
        for record in self.source:
            if record.flaw is not None and not self.skip_bad:
                raise DataError(f"{escape(self.source.path)}:{record.line}: {record.flaw.text}; mend it, or leave such "
                                f"lines out with --skip-bad{converted(self.source.path)}")  # fmt: skip
            is_last = self.source.ended < record.line  # and has no end
            text = record.text if is_last else record.text.removesuffix("\r") + "\n"
            self.skipped += record.flaw is not None
            self.size += 0 if record.flaw else len(text)
            yield "" if record.flaw else text
        if not self.size:
            raise DataError(f"{escape(self.source.path)}: found nothing that can be read, expected text")

    @property
    def notes(self) -> list[str]:
        """What was tolerated."""
        name = escape(self.source.path)
        marked = [f"{name}: byte order mark removed"] if self.source.marked else []
        returned = [f"{name}: \\r\\n is read as \\n"] if self.source.returns else []
        return marked + returned + ([f"warning: {name}: {self.skipped} bad lines left out"] if self.skipped else [])


def write_down(path: str, place: Path, cut: Cut, skip_bad: bool = False) -> Pages:
    """A text file, checked and unpacked, as pages that can be gone through again and again."""
    text = Text(path, skip_bad)
    try:
        with open(place, "w", encoding="utf-8", newline="") as file:
            file.writelines(text)
    except OSError as error:
        raise RegardError(f"{place}: can not be written: {error.strerror}") from None
    return Pages(path, place, cut, 0, text.size, tuple(text.notes))


def read_text(path: str, cut: Cut, skip_bad: bool = False) -> Table:
    """All pages of a file, in memory."""
    text = Text(path, skip_bad)
    examples = list(paged(text, cut))
    return Table(path, examples, text.notes, Pages.source_names, None, text.skipped)


def divided(whole: Pages) -> tuple[Pages, Pages, str]:
    """A text in two, and a note: what is trained on, and its end, which is held out as a text of its own."""
    if whole.stop < FEWEST:
        raise DataError(f"{escape(whole.path)}: found {whole.stop} characters, too few to train and validate; expected "
                        f"at least {FEWEST}, or a validation file")  # fmt: skip
    border = whole.stop * 9 // 10
    border += 0 if whole.cut.anywhere else until_space(replace(whole, start=border))
    note = f"the last {whole.stop - border:,} of {whole.stop:,} characters are held out for validation"
    return replace(whole, stop=border), replace(whole, start=border), note


def until_space(rest: Pages) -> int:
    """How far it is to the first white space; 0 where there is none near."""
    near = "".join(replace(rest, stop=min(rest.start + NEAR, rest.stop - 1)).pieces())
    return next((at for at, each in enumerate(near) if each.isspace()), 0)
