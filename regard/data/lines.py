"""Bytes in, lines as they come out; and of each line the columns that a model reads, and the line with an output in it.

lines    the whole line is read, and the output takes its place
tsv      some columns are read, and the output is one column more
csv      the same with commas and quotes; a row is one line
jsonl    some keys of an object are read, and the output is one key more
conll    a token a line, and a blank line after each sentence, is read; the label of each token is one column more
"""

import codecs
import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from typing import Any, Protocol

from regard.data.header import header_names
from regard.data.read import Flaw, json_line, json_object, listed, nearest, position, quote, texts_of
from regard.data.sentences import UNIVERSAL, Shape, cut
from regard.errors import DataError, UsageError

BLOCK = 1 << 18  # bytes that are read at once, at most
FORMATS = ("lines", "tsv", "csv", "jsonl", "conll")
CLEAN = str.maketrans("\t\n\r", "   ")  # what would tear a column apart

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a stream, without its end, and how many bytes it was."""

    number: int
    text: str
    size: int


def bundles(stream: BufferedIOBase, most: int, tell: Tell) -> Iterator[list[Line]]:
    """The lines that are there, without waiting for more: first one, then two, four and so on, up to `most`.

    So whoever types is answered line by line, a slow source is kept up with, and a file is read in great pieces.
    """
    wanted, number = 1, 0
    decode = Decoder(tell)
    for raw in blocks(stream):
        while raw:
            now, raw = raw[:wanted], raw[wanted:]
            yield [decode(each, number + place) for place, each in enumerate(now, 1)]
            number += len(now)
            wanted = min(2 * wanted, most)


def blocks(stream: BufferedIOBase) -> Iterator[list[bytes]]:
    """Whole lines with their ends, as many as one look at the stream gave; a last one may lack its end."""
    rest: list[bytes] = []
    while block := stream.read1(BLOCK):
        *whole, last = block.split(b"\n")
        if whole:
            first = b"".join([*rest, whole[0]])
            yield [each + b"\n" for each in (first, *whole[1:])]
            rest = []
        rest.append(last)
    if last_line := b"".join(rest):
        yield [last_line]


class Decoder:
    """Bytes of a line as text; bytes that are not UTF-8 are replaced, with a warning.

    Where the first line ends in \\r\\n, a \\r before \\n is part of the line end.
    """

    def __init__(self, tell: Tell) -> None:
        self.tell = tell
        self.end = b"\n"

    def __call__(self, raw: bytes, number: int) -> Line:
        size = len(raw)
        raw = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
        if number == 1 and raw.endswith(b"\r\n"):
            self.end = b"\r\n"
            self.tell("warning: lines end in \\r\\n; the \\r is left out")
        body = raw.removesuffix(self.end).removesuffix(b"\n")
        try:
            return Line(number, body.decode("utf-8"), size)
        except UnicodeDecodeError as error:
            self.tell(f"warning: line {number}: not UTF-8 at byte {error.start + 1}; replaced")
            return Line(number, body.decode("utf-8", errors="replace"), size)


def sentences(coming: Iterator[list[Line]]) -> Iterator[list[Line]]:
    """Lines up to a blank one, that one included, as one with line breaks in it."""
    group: list[Line] = []
    for bundle in coming:
        made = []
        for line in bundle:
            group.append(line)
            if not line.text.strip():
                made.append(together(group))
                group = []
        if made:
            yield made
    if group:
        yield [together(group)]


def together(group: list[Line]) -> Line:
    return Line(group[0].number, "\n".join(line.text for line in group), sum(line.size for line in group))


# ── what of a line is read, and where the output goes ────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Output:
    """What is written for a line: texts, best first, or instead of them a record."""

    texts: tuple[str, ...]
    record: dict[str, Any] | None = None


class Format(Protocol):
    """One way to find the input in a line and to put the output there."""

    def head(self, line: str) -> str | None:
        """The first line with the output in it, if it is no more than the names of columns."""

    def read(self, line: str) -> tuple[str, ...]:
        """The columns for the model, all empty for an empty line.

        A DataError says what is wrong with the line, a UsageError that there is no place for its output.
        """

    def surplus(self, line: str) -> str:
        """What a line has too much, if it has; it is read all the same."""

    def write(self, line: str, output: Output) -> str:
        """The line with the output; an empty line stays empty."""


@dataclass(frozen=True)
class Layout:
    """Which columns of which format are read, and how the output is called."""

    format: str = ""  # "" = by the columns: none, lines; else what the first line looks like
    columns: tuple[str, ...] = ()
    output: str = "output"
    count: int = 1  # of outputs in a line
    line_break: str = " "  # what stands for one in an output; a real one only where the whole line is the input

    def __post_init__(self) -> None:
        if self.format not in ("", *FORMATS):
            raise UsageError(f"--format {quote(self.format)}: expected {', '.join(FORMATS)}")
        if self.format == "lines" and self.columns:
            raise UsageError("--input-column names a column of a table or a key; with --format lines all is read")
        for name in self.columns:
            if not name.strip() or (name.isdecimal() and not position(name)):
                raise UsageError(f"--input-column {quote(name)}: expected names or numbers from 1, such as date,2")
        if not self.output.strip() or self.output != self.output.translate(CLEAN):
            raise UsageError(f"--output-column {quote(self.output)}: expected a name without tabs")

    @property
    def is_whole(self) -> bool:
        """Whether the whole line is read, so that the first line decides nothing."""
        return self.format == "lines" or not (self.format or self.columns)

    def suited(self, wanted: Sequence[str], count: int, first: str) -> Format:
        """The format for a model that reads `count` columns, in its data called as `wanted` says."""
        kind = self.format or self.guess(first)
        if kind == "lines":
            return Whole(self.line_break)
        if kind == "conll":
            return Sentences(self.columns)
        columns = self.columns or tuple(wanted)
        if kind == "jsonl" and (not columns or any(name.isdecimal() for name in columns)):
            raise UsageError("--format jsonl: say which keys hold the input: --input-column NAME")
        columns = columns or tuple(str(place) for place in range(1, count + 1))
        if len(columns) != count:
            raise UsageError(f"--input-column: found {listed(list(columns))}; the model reads {count} columns")
        if kind == "jsonl":
            return Objects(columns, self.output, self.count)
        return (Commas if kind == "csv" else Table)(columns, self.output, self.count, self.line_break)

    def guess(self, first: str) -> str:
        if self.is_whole:
            return "lines"
        named = not any(name.isdecimal() for name in self.columns)
        if named and first.lstrip().startswith("{"):
            return "jsonl"
        return "csv" if self.with_commas(first) else "tsv"

    def with_commas(self, first: str) -> bool:
        """Whether a first line without tabs has the columns that are asked for between commas."""
        fields = [] if "\t" in first else (cut_commas(first) or [])
        known = [name.strip() for name in fields]
        return len(fields) > 1 and all(name in known or 1 < position(name) <= len(fields) for name in self.columns)


class Whole:
    """The line is the input, columns with tabs between them. Where line breaks are real, an empty line follows."""

    def __init__(self, line_break: str = " ") -> None:
        self.line_break = line_break

    def head(self, line: str) -> str | None:
        return None

    def read(self, line: str) -> tuple[str, ...]:
        return tuple(line.split("\t"))

    def surplus(self, line: str) -> str:
        return ""

    def write(self, line: str, output: Output) -> str:
        """Texts stand side by side with tabs between them."""
        if output.record is not None:
            return json_line(output.record)
        end = "\n" if self.line_break == "\n" else ""
        return "\t".join(text.replace("\n", self.line_break) for text in output.texts) + end


class Table:
    """Columns with tabs between them; a header, where columns are named or all its names are well known."""

    def __init__(self, columns: tuple[str, ...], output: str, count: int, line_break: str = " ") -> None:
        self.columns = columns
        self.line_break = line_break
        self.places = tuple(position(name) - 1 for name in columns)
        self.names = [output, *(f"{output}_{number}" for number in range(2, count + 1))]
        self.width = 0  # of the header

    def head(self, line: str) -> str | None:
        labels = header_names(self.cut(line), self.columns)
        if not labels:
            return None
        self.places, self.width = tuple(self.place(name, labels) for name in self.columns), len(labels)
        for name in self.names:
            if name in labels:
                raise UsageError(f"the input has a column {quote(name)} already; choose another --output-column")
        return self.joined(line, self.names)

    def cut(self, line: str) -> list[str]:
        return line.split("\t")

    def joined(self, line: str, more: list[str]) -> str:
        """A line as it stands, with further fields."""
        return "\t".join([line, *more])

    def place(self, name: str, labels: list[str]) -> int:
        if name in labels:
            return labels.index(name)
        if 1 <= position(name) <= len(labels):
            return position(name) - 1
        near = nearest(name, labels)
        raise DataError(f"found no column {quote(name)}{near}; the columns are {listed(labels)}")

    def read(self, line: str) -> tuple[str, ...]:
        if not line:
            return ("",) * len(self.places)
        fields = self.cut(line)
        if len(fields) <= max(self.places):
            raise DataError(f"expected {max(self.width, max(self.places) + 1)} columns, found {len(fields)}")
        return tuple(fields[place] for place in self.places)

    def surplus(self, line: str) -> str:
        found = len(self.cut(line))
        return f"{found} columns, the header has {self.width}" if 0 < self.width < found else ""

    def write(self, line: str, output: Output) -> str:
        """Under its name in the header, however many columns the line has; those without a name come after it."""
        if not line:
            return ""
        fields = line.split("\t")
        width = self.width or len(fields)
        texts = [text.replace("\n", self.line_break).translate(CLEAN) for text in output.texts]
        made = texts if output.record is None else [json_line(output.record)]
        missing, fewer = [""] * (width - len(fields)), [""] * (len(self.names) - len(made))
        return "\t".join([*fields[:width], *missing, *made, *fewer, *fields[width:]])


class Commas(Table):
    """Columns with commas between them, and quotes around what holds one; a row does not go on in the next line."""

    def cut(self, line: str) -> list[str]:
        fields = cut_commas(line)
        if fields is None:
            raise DataError(f'found a quote that is not closed on its line, or text after one: {quote(line)}; write " '
                            'inside a field as ""')  # fmt: skip
        return fields

    def joined(self, line: str, more: list[str]) -> str:
        return ",".join([line, *map(quoted, more)])

    def write(self, line: str, output: Output) -> str:
        """As in the other tables, but that a field with a comma is quoted; what is no row becomes one field."""
        if not line:
            return ""
        fields = cut_commas(line)
        width = self.width or len(fields or [line])
        texts = [text.replace("\n", self.line_break) for text in output.texts]
        made = texts if output.record is None else [json_line(output.record)]
        made += [""] * (len(self.names) - len(made))
        if fields is not None and len(fields) == width:
            return self.joined(line, made)
        fields = fields or [line]
        missing = [""] * (width - len(fields))
        return ",".join(map(quoted, [*fields[:width], *missing, *made, *fields[width:]]))


def cut_commas(line: str) -> list[str] | None:
    """The fields of a row of a CSV; nothing of what is none."""
    limit = csv.field_size_limit(2**31 - 1)  # the default refuses a field of 128 KB
    try:
        return next(csv.reader([line.removesuffix("\r")], strict=True), [""])
    except csv.Error:
        return None
    finally:
        csv.field_size_limit(limit)


def quoted(field: str) -> str:
    return '"' + field.replace('"', '""') + '"' if re.search('[,"\r\n]', field) else field


def header_of_commas(line: str) -> list[str]:
    """The names in a line that looks like the header of a CSV: several, and all of them well known."""
    fields = [] if "\t" in line else (cut_commas(line) or [])
    return header_names(fields, ()) if len(fields) > 1 else []


class Sentences:
    """A token a line, several lines at once: its label stands in one column more. Comments stay as they are."""

    def __init__(self, columns: Sequence[str]) -> None:
        if len(columns) > 1 or not all(map(position, columns)):
            raise UsageError("--format conll: there is one column of tokens; name it by its number: --input-column 2")
        self.place = position(columns[0]) - 1 if columns else None

    def head(self, line: str) -> str | None:
        return None

    def rows(self, text: str) -> tuple[Shape, list[list[str] | None]]:
        """Where tokens stand, and the columns of each line; nothing of one that has no token."""
        lines = text.split("\n")
        tabs = any("\t" in line for line in lines)
        width = Counter(len(cut(line, tabs)) for line in lines if line.strip()).most_common(1)[0][0]
        usual = UNIVERSAL[1] if tabs and width == UNIVERSAL[0] else 0
        shape = Shape(width, tabs, usual if self.place is None else self.place, 0)
        return shape, [shape.cut(line) if line.strip() else None for line in lines]

    def read(self, line: str) -> tuple[str, ...]:
        if not line.strip():
            return ("",)
        shape, rows = self.rows(line)
        tokens = [row[shape.source] if len(row) > shape.source else "" for row in rows if row is not None]
        if not all(tokens):
            raise DataError(f"expected a token in column {shape.source + 1} of each line: {quote(line)}")
        return (" ".join(tokens),)

    def surplus(self, line: str) -> str:
        return ""

    def write(self, line: str, output: Output) -> str:
        """A record takes the place of the sentence; the blank line after it stays."""
        if not line.strip():
            return line
        if output.record is not None:
            return json_line(output.record) + "\n" * line.endswith("\n")
        shape, rows = self.rows(line)
        labels = [iter(text.split()) for text in output.texts]
        gap = "\t" if shape.tabs else " "
        made = [text if row is None else gap.join([text, *(next(each, "") for each in labels)])
                for text, row in zip(line.split("\n"), rows, strict=True)]  # fmt: skip
        return "\n".join(made)


class Objects:
    """A JSON object on each line. All that stands in it stays as it is written."""

    def __init__(self, columns: tuple[str, ...], output: str, count: int) -> None:
        self.columns = columns
        self.output = output
        self.count = count

    def head(self, line: str) -> str | None:
        return None

    def read(self, line: str) -> tuple[str, ...]:
        if not line.strip():
            return ("",) * len(self.columns)
        known = json_object(line)
        if isinstance(known, dict) and self.output in known:
            raise UsageError(f"the input has a key {quote(self.output)} already; choose another --output-column")
        found = known if isinstance(known, Flaw) else texts_of(line, known, self.columns)
        if isinstance(found, Flaw):
            raise DataError(found.text)
        return tuple(found)

    def surplus(self, line: str) -> str:
        return ""

    def write(self, line: str, output: Output) -> str:
        """With the key at the end; what is no object becomes one that has nothing else."""
        if not line.strip():
            return ""
        texts = list(output.texts) if self.count > 1 else "".join(output.texts)
        pair = {self.output: texts if output.record is None else output.record}
        known = json_object(line)
        if isinstance(known, Flaw) or not known:
            return json_line(pair)
        return f"{line.rstrip()[:-1].rstrip()}, {json_line(pair)[1:]}"
