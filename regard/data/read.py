"""A path in, examples out: .tsv, .csv, .jsonl (each also .gz), plain text, or two parallel files "a.en,a.de".

Where targets are labels of tokens, a file may also have a token and its label on each line (`data.sentences`).

A file becomes lines (`Source`), lines become records (one function for each format), and of a record the chosen columns
become an `Example`. What is wrong is collected over the whole file and told once. `Stream` gives examples one by one
and holds none; `read` gives them as a list.
"""

import codecs
import csv
import difflib
import gzip
import json
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BufferedReader
from itertools import chain, islice, zip_longest
from typing import Any

from regard.data import pictures
from regard.data.encoding import LOOKED, conversion, encoding_of, marked
from regard.data.header import ASIDE_NAMES, TARGET_NAMES, clear_names, header_names
from regard.data.plain import json_text
from regard.data.sentences import DOCUMENT, Shape, shape_of
from regard.data.tokens import TOKEN
from regard.errors import DataError, MissingError

SAMPLE = 20  # records looked at before the first is read: enough to guess a delimiter, little enough to hold
FAR, FAR_CHARACTERS = 100_000, 50_000_000  # records, and characters of them, among which a sample is taken
NEARLY_ALL = 0.95  # of the lines; the others may be flaws
MANY = 500  # lines looked at to see whether there is a token on each, or whether the first is a header …
MANY_CHARACTERS = 1 << 20  # … and about so many characters of them, for all are held
QUOTED = 60  # characters of a line shown in a message
ENCODED = {"invalid UTF-8", "NUL byte"}  # flaws that another encoding may be behind
EMPTY = " \r"  # what may stand in a field that still counts as empty
LONE_RETURN = "\udc0d"  # stands for "\r" inside the csv module, which would end a line there; never in decoded text

SUFFIXES = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl"}

FOREIGN = {
    b"\x1f\x8b": "looks like gzip: add .gz to its name",
    b"PK\x03\x04": "looks like a spreadsheet or zip: save it as .tsv or .csv",
}
DELIMITERS = {
    "tsv": {",": "commas: rename to .csv", ";": "semicolons: replace them by tabs", "|": "bars: replace them by tabs"},
    "csv": {
        "\t": "tabs: rename to .tsv",
        ";": "semicolons: replace them by commas",
        "|": "bars: replace them by commas",
    },
}
C1 = re.compile("[\x7f-\x9f\u2028\u2029]")
# C0, DEL, C1, line and paragraph separators, marks that change the direction of text, lone surrogates.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True)
class Columns:
    """Which columns are read: by position ("1", "2") or by the name in the header or JSON object."""

    source: tuple[str, ...] = ()  # () = choose: the first of two
    target: str | None = ""  # "" = choose: the second of two; None = the task reads no target
    within: bool = False  # whether every target is a piece of the first source column
    tagged: bool = False  # whether targets are labels, one for each token of the first source column


@dataclass(frozen=True, slots=True)
class Example:
    """One line of data: its source columns, its target, and where it stood."""

    source: tuple[str, ...]
    target: str | None
    line: int


@dataclass(frozen=True)
class Table:
    """A file that was read: its examples, and notes on what was tolerated."""

    path: str
    examples: list[Example]
    notes: list[str]
    source_names: tuple[str, ...]
    target_name: str | None
    skipped: int = 0

    @property
    def folder(self) -> str:
        """Where pictures that the file names are found."""
        return folder_of(self.path)


CHOOSE = Columns()


def files_of(path: str) -> list[str]:
    """The files a path means: one, or two parallel ones "a.en,a.de", or the table in a folder of pictures."""
    if os.path.isdir(path):
        return [pictures.table_in(path) or path]
    parts = path.split(",")
    parallel = len(parts) == 2 and not os.path.exists(path) and any(map(os.path.exists, parts))
    return parts if parallel else [path]


def folder_of(path: str) -> str:
    """Where the file stands (the first of two parallel ones): pictures that it names are found from there."""
    if os.path.isdir(path):
        return path
    first = path if os.path.exists(path) else path.split(",")[0]
    return os.path.dirname(first) or "."


def escape(text: str) -> str:
    """The text with nothing in it that could steer a terminal: control characters are spelled out, a tab is ⇥."""
    return CONTROL.sub(_spell, text)


def _spell(found: re.Match[str]) -> str:
    return "⇥" if found[0] == "\t" else found[0].encode("unicode_escape").decode()


def json_line(value: Any) -> str:
    """JSON in readable letters, on one line and with nothing in it that could steer a terminal."""
    return C1.sub(lambda found: f"\\u{ord(found[0]):04x}", json_text(value))


def quote(text: str, limit: int = QUOTED) -> str:
    """The beginning of a text as it may stand in a message."""
    return f'"{escape(text[:limit])}{"…" if len(text) > limit else ""}"'


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why a line can not be used: the kind is counted, the text is shown."""

    kind: str
    text: str


@dataclass(slots=True)
class Record:
    """One line or CSV row: its fields, or the JSON object in it, or its flaw. Short-lived; filled in on its way."""

    line: int
    text: str
    fields: list[str]
    flaw: Flaw | None = None
    keyed: dict[str, Any] | None = None


@dataclass(frozen=True)
class Choice:
    """The columns that were settled on: their names, target last, and where they stand in a row of `width`."""

    names: tuple[str, ...]
    has_target: bool
    places: tuple[int, ...] = ()  # empty for JSON, where names are enough
    width: int = 0
    delimiter: str = ""
    hint: str = ""  # what the delimiter looks like, when it is not this one
    within: bool = False  # whether the target must stand in the first column
    tagged: bool = False  # whether there are as many labels in the target as tokens in the first column


class Tally:
    """What was met on the way through a file; its size does not grow with the file."""

    def __init__(self, path: str) -> None:
        self.path = escape(path)
        self.records = 0
        self.blank = 0
        self.first: list[str] = []
        self.kinds: Counter[str] = Counter()

    def add(self, record: Record, flaw: Flaw) -> None:
        self.kinds[flaw.kind] += 1
        if len(self.first) < 2:
            self.first.append(f"{self.path}:{record.line}: {flaw.text}")

    def summary(self) -> str:
        kinds = ", ".join(f"{count} × {kind}" for kind, count in self.kinds.most_common())
        return f"{self.kinds.total()} of {self.records} lines can not be used: {kinds}"


class Source:
    """One file as numbered lines; it remembers byte order mark and line ends for the notes."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.marked = False
        self.ended = 0  # lines that end in \n
        self.returns = 0  # lines that end in \r\n

    def __iter__(self) -> Iterator[Record]:
        number = 0
        with _open(self.path) as stream:
            try:
                _refuse_foreign(self.path, stream.peek(4)[:4])
                for number, raw in enumerate(stream, 1):
                    yield self._line(number, raw)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise DataError(
                    f"{escape(self.path)}: damaged gzip after line {number} ({error}), expected a whole file; "
                    "copy or compress it again"
                ) from error
            except OSError as error:
                raise DataError(f"{escape(self.path)}: reading failed after line {number}: {error.strerror}") from error

    def _line(self, number: int, raw: bytes) -> Record:
        start = 3 if number == 1 and raw.startswith(codecs.BOM_UTF8) else 0
        self.marked |= start > 0
        self.ended += raw.endswith(b"\n")
        self.returns += raw.endswith(b"\r\n")
        return _decode(number, raw, start)

    @property
    def all_return(self) -> bool:
        return 0 < self.returns == self.ended

    def notes(self, kept: bool) -> Iterator[str]:
        """`kept`: whether this format keeps a \\r that stands before some \\n only."""
        name = escape(self.path)
        if self.marked:
            yield f"{name}: byte order mark removed"
        if self.all_return:
            yield f"{name}: every line ends in \\r\\n; the \\r was dropped"
        elif self.returns:
            fate = "kept as text: use one kind of line end" if kept else "dropped"
            yield f"{name}: {self.returns} of {self.ended} lines end in \\r\\n, the others in \\n; the \\r was {fate}"


def _open(path: str) -> BufferedReader | gzip.GzipFile:
    """The bytes of a file, unpacked; or an error that names the nearest file."""
    name = escape(path)
    try:
        return gzip.GzipFile(path) if path.endswith(".gz") else open(path, "rb")
    except IsADirectoryError as error:
        raise MissingError(
            f"{name}: found a folder without pictures, expected a file, or PNG and JPEG in it"
        ) from error
    except PermissionError as error:
        raise MissingError(f"{name}: no permission to read it; chmod +r, or ask its owner") from error
    except FileNotFoundError as error:
        raise MissingError(f"{name}: no such file{_nearest_file(path)}") from error
    except (OSError, ValueError) as error:
        raise MissingError(f"{name}: can not be opened: {getattr(error, 'strerror', None) or error}") from error


def _nearest_file(path: str) -> str:
    folder, name = os.path.split(path)
    try:
        near = difflib.get_close_matches(name, os.listdir(folder or "."), n=1)
    except OSError:
        return f"; there is no folder {quote(folder)} either"
    return f"; the nearest name there is {quote(near[0])}" if near else ""


def _refuse_foreign(path: str, start: bytes) -> None:
    if encoding := marked(start):
        raise DataError(f"{escape(path)}: found no UTF-8 text{escape(conversion(path, encoding))}")
    for magic, advice in FOREIGN.items():
        if start.startswith(magic):
            raise DataError(f"{escape(path)}: found no UTF-8 text; {advice}")


def converted(path: str) -> str:
    """How a file with invalid UTF-8 may be converted, to be said after that; nothing where its bytes do not tell."""
    if not os.path.isfile(path):  # a pipe can not be read twice
        return ""
    try:
        with _open(path) as stream:
            return escape(conversion(path, encoding_of(stream.read(LOOKED))))
    except (OSError, EOFError, zlib.error):  # farther on than the fault that is told of
        return ""


def _decode(number: int, raw: bytes, start: int) -> Record:
    """One line of bytes as text; bad bytes and NUL are flaws, and offsets count from the start of the line."""
    body = raw[start:].removesuffix(b"\n")
    try:
        text, flaw = body.decode(), None
    except UnicodeDecodeError as error:
        text = body.decode(errors="replace")
        found = f"invalid UTF-8 at byte {start + error.start} (0x{body[error.start]:02X})"
        flaw = Flaw("invalid UTF-8", f"{found}, expected UTF-8: {quote(text)}; another encoding?")
    if flaw is None and b"\0" in body:
        flaw = Flaw("NUL byte", f"found a NUL byte at byte {start + body.index(0)}, expected text: {quote(text)}")
    return Record(number, text, [], flaw)


# Lines to records, one function for each format. Only "\n" ends a line.


def _whole_records(lines: Source) -> Iterator[Record]:
    for line in lines:
        line.fields = [line.text]
        yield line


def _tab_records(lines: Source) -> Iterator[Record]:
    for line in lines:
        line.fields = line.text.split("\t")
        yield line


class _Feed:
    """Lines on their way into the csv module, which may take several for one row."""

    def __init__(self, lines: Source) -> None:
        self.lines = iter(lines)
        self.row: Record | None = None  # the line the row starts on
        self.last = 0
        self.flaw: Flaw | None = None

    def __iter__(self) -> "_Feed":
        return self

    def __next__(self) -> str:
        line = next(self.lines)
        self.row, self.flaw, self.last = self.row or line, self.flaw or line.flaw, line.line
        body = line.text.removesuffix("\r")
        return body.replace("\r", LONE_RETURN) + line.text[len(body) :] + "\n"


def _comma_records(lines: Source) -> Iterator[Record]:
    feed = _Feed(lines)
    limit = csv.field_size_limit(2**31 - 1)  # the default refuses a field of 128 KB
    try:
        rows = csv.reader(feed, strict=True)
        while (record := _comma_record(feed, rows)) is not None:
            yield record
    finally:
        csv.field_size_limit(limit)


def _comma_record(feed: _Feed, rows: Iterator[list[str]]) -> Record | None:
    feed.row, feed.flaw = None, None
    fields: list[str] = []
    try:
        fields = [text.replace(LONE_RETURN, "\r") for text in next(rows)]
    except StopIteration:
        return None
    except csv.Error as error:
        feed.flaw = feed.flaw or _quote_flaw(feed, str(error))
    assert feed.row is not None  # the csv module gives no row without a line
    return Record(feed.row.line, feed.row.text, fields, feed.flaw)


def _quote_flaw(feed: _Feed, reason: str) -> Flaw:
    text = quote(feed.row.text if feed.row else "")
    if reason == "unexpected end of data":
        return Flaw("unterminated quote", f"found a quote that is never closed (up to line {feed.last}): {text}")
    return Flaw("broken quote", f'found text after a closing quote, expected a comma: {text}; write " inside as ""')


# Numbers stay as they are written: 1.10 is not 1.1 to a model of characters.
_JSON = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


def _json_records(lines: Source) -> Iterator[Record]:
    for line in lines:
        if line.flaw is None and line.text.strip(EMPTY):
            parsed = json_object(line.text)
            line.flaw, line.keyed = (parsed, None) if isinstance(parsed, Flaw) else (None, parsed)
        yield line


def json_object(text: str) -> dict[str, Any] | Flaw:
    """The object on a line, its numbers as texts; or what is wrong with it."""
    try:
        value = _JSON.decode(text)
    except (ValueError, RecursionError) as error:
        place = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        return Flaw("broken JSON", f"broken JSON{place}, expected an object on one line: {quote(text)}")
    if isinstance(value, dict):
        return value
    return Flaw("broken JSON", f'found no object, expected {{"source": …, "target": …}}: {quote(text)}')


def _parallel_records(left: Source, right: Source) -> Iterator[Record]:
    lines = [0, 0]
    for pair in zip_longest(left, right):
        present = [line for line in pair if line is not None]
        lines = [count + (line is not None) for count, line in zip(lines, pair, strict=True)]
        if lines[0] == lines[1]:
            texts = [line.text for line in present]
            yield Record(lines[0], " ".join(texts), texts, _parallel_flaw((left, right), present))
    if lines[0] != lines[1]:
        names = [escape(side.path) for side in (left, right)]
        raise DataError(f"{names[0]} has {lines[0]} lines, {names[1]} has {lines[1]} lines: expected as many in each")


def _parallel_flaw(sides: tuple[Source, Source], lines: list[Record]) -> Flaw | None:
    for side, line in zip(sides, lines, strict=True):
        if line.flaw:
            return Flaw(line.flaw.kind, f"in {escape(side.path)}: {line.flaw.text}")
    return None


def _sentence_records(lines: Source, shape: Shape) -> Iterator[Record]:
    """A record for each sentence, with its columns side by side."""
    group: list[Record] = []
    for line in chain(lines, [None]):
        if line is not None and (line.flaw or line.text.strip(EMPTY)):
            group.append(line)
            continue
        if group and (made := _sentence(group, shape)) is not None:
            yield made
        group = []


def _sentence(group: list[Record], shape: Shape) -> Record | None:
    """The sentence on some lines; nothing where no line has a token."""
    rows: list[list[str]] = []
    for line in group:
        if line.flaw:
            return line
        fields = shape.cut(line.text)
        if fields is not None and len(fields) != shape.width:
            what = f"expected {shape.width} columns, a token and its label, found {len(fields)}: {quote(line.text)}"
            return Record(line.line, line.text, [], Flaw("wrong column count", what))
        rows += [] if fields is None else [fields]
    if not rows or rows[0][0] == DOCUMENT:
        return None
    columns = [" ".join(column) for column in zip(*rows, strict=True)]
    return Record(group[0].line, columns[shape.source], columns)


def _picture_records(folder: str) -> Iterator[Record]:
    number = 0
    for number, found in enumerate(pictures.shown(folder), 1):
        flaw = _value_flaw("picture", found.picture)  # a name need not be UTF-8
        if found.flaw:
            flaw = Flaw("picture without a text", f"{quote(found.picture)}: {found.flaw}")
        yield Record(number, found.picture, [found.picture, found.text], flaw)
    if not number:
        _open(folder)  # says that it is a folder


# Which columns: names and positions against what the first records show.


class _Plan:
    """How a path is read: its files, its format, its records. Knows nothing of columns yet."""

    def __init__(self, path: str, columns: Columns) -> None:
        self.sources = [Source(part) for part in files_of(path)]
        parallel = len(self.sources) == 2
        suffix = os.path.splitext(self.sources[-1].path.removesuffix(".gz"))[1].lower()
        whole = suffix not in SUFFIXES and columns.target is None and not columns.source
        self.hint = ""  # what the delimiter looks like when it is not this format's; known after the first lines
        self.kind = "parallel" if parallel else "whole" if whole else SUFFIXES.get(suffix, "tsv")
        if os.path.isdir(self.sources[0].path):
            self.kind = "folder"
        self.suffix = suffix
        self.shape = self._shape() if columns.tagged and self.kind == "tsv" else None  # of sentences
        if self.shape:
            self.kind = "sentences"

    def _shape(self) -> Shape | None:
        """Asked of the first lines; a pipe can not be read twice."""
        path = self.sources[0].path
        return shape_of(line.text for line in islice(Source(path), MANY)) if os.path.isfile(path) else None

    def asked(self, columns: Columns) -> Columns:
        """The columns of sentences that are read if nobody asks for others."""
        if self.shape is None:
            return columns
        source, target = str(self.shape.source + 1), str(self.shape.target + 1)
        return replace(columns, source=columns.source or (source,), target=columns.target or target)

    def records(self) -> Iterator[Record]:
        match self.kind:
            case "parallel":
                return _parallel_records(self.sources[0], self.sources[1])
            case "folder":
                return _picture_records(self.sources[0].path)
            case "whole":
                return _whole_records(self.sources[0])
            case "csv":
                return _comma_records(self.sources[0])
            case "jsonl":
                return _json_records(self.sources[0])
            case "sentences":
                assert self.shape is not None
                return _sentence_records(self.sources[0], self.shape)
        return _tab_records(self.sources[0])

    def returns(self, width: int) -> dict[int, Source]:
        """The columns that stand before a line end, where a \\r may hang on; csv and json drop it by themselves."""
        if self.kind in ("csv", "jsonl", "folder", "sentences"):
            return {}
        return {0: self.sources[0], 1: self.sources[1]} if self.kind == "parallel" else {width - 1: self.sources[0]}


def _present(records: Iterator[Record], tally: Tally) -> Iterator[Record]:
    """The records that are not blank lines."""
    for record in records:
        if record.flaw is None and not record.text.strip(EMPTY):
            tally.blank += 1
        else:
            tally.records += 1
            yield record


def _header(plan: _Plan, columns: Columns, head: list[Record]) -> list[str]:
    """The names of the columns when the first line holds them: asked for, well known, or clear from the lines below."""
    if plan.kind in ("whole", "jsonl", "parallel", "folder", "sentences") or not head:
        return []
    wanted = (*columns.source, columns.target or "1")
    if head[0].flaw and any(not name.isdecimal() for name in wanted):
        raise DataError(f"{escape(plan.sources[0].path)}:{head[0].line}: {head[0].flaw.text}; expected a header"
                        f"{_conversion(plan, [head[0].flaw.kind])}")  # fmt: skip
    named = header_names(head[0].fields, wanted)
    if named or columns.source or columns.target or head[0].flaw:
        return named
    return clear_names(head[0].fields, [record.fields for record in head[1:] if record.flaw is None])


def _is_taken(columns: Columns, head: list[Record], names: list[str]) -> bool:
    """Whether names were taken for a header by what stands below them, which may be overruled."""
    return bool(names) and not header_names(head[0].fields, (*columns.source, columns.target or "1"))


def _beginning(records: Iterator[Record]) -> list[Record]:
    """The first records, by which a header is known; fewer where they are long."""
    head: list[Record] = []
    size = 0
    for record in records:
        head.append(record)
        size += len(record.text)
        if len(head) >= MANY or (size > MANY_CHARACTERS and len(head) >= SAMPLE):
            break
    return head


def _conversion(plan: _Plan, kinds: Iterable[str]) -> str:
    """The words that convert a file, where something was no UTF-8."""
    if ENCODED.isdisjoint(kinds):
        return ""
    return next(filter(None, (converted(source.path) for source in plan.sources)), "")


def _choose(plan: _Plan, columns: Columns, head: list[Record], names: list[str]) -> Choice:
    """The columns of a table, from the header or the width most of the first lines have."""
    columns, rows = plan.asked(columns), [record.fields for record in head if record.flaw is None]
    width = plan.shape.width if plan.shape else len(names) or _usual_width(rows, columns)
    labels = _labels(names, width)
    chosen = _settle(plan, columns, labels, rows[0] if rows and not names else labels)
    places = tuple(labels.index(name) for name in chosen)
    delimiter = {"csv": "comma", "tsv": "tab"}.get(plan.kind, "")
    return Choice(tuple(chosen), columns.target is not None, places, width, delimiter, plan.hint, columns.within,
                  columns.tagged)  # fmt: skip


def _labels(names: list[str], width: int) -> list[str]:
    """A name that is empty or stands twice names nothing; such a column goes by its position."""
    labels = [name if name and names.count(name) == 1 else str(place) for place, name in enumerate(names, 1)]
    return labels or [str(place) for place in range(1, width + 1)]


def _usual_width(rows: list[list[str]], columns: Columns) -> int:
    """How many columns a line without a header should have, by the first lines."""
    widths = Counter(len(row) for row in rows)
    usual = widths.most_common(1)[0][0] if widths else 2
    if columns.source or columns.target != "":
        asked = [position(name) for name in (*columns.source, columns.target or "1")]
        return max(asked) if usual == 1 and max(asked) <= SAMPLE else usual
    # With nothing chosen two columns are expected; only when several lines agree on more is a choice asked for.
    agreed = usual > 2 and len(widths) == 1 and len(rows) > 1 and any(row[-1].strip(EMPTY) for row in rows)
    return usual if agreed else 2


def _choose_keys(plan: _Plan, columns: Columns, head: list[Record]) -> Choice:
    """The keys of JSON objects: those asked for, else source and target, else the two there are."""
    labels = next((list(record.keyed) for record in head if record.keyed), ["source", "target"])
    usual = ["source", "target"] if columns.target is not None else ["source"]
    undecided = not columns.source and not columns.target
    chosen = usual if undecided and set(usual) <= set(labels) else _settle(plan, columns, labels, labels)
    return Choice(tuple(chosen), columns.target is not None, within=columns.within, tagged=columns.tagged)


def _settle(plan: _Plan, columns: Columns, labels: list[str], shown: list[str]) -> list[str]:
    """The labels to read, target last; columns not asked for are chosen when there is only one way."""
    source = [_find(plan, name, labels) for name in columns.source]
    target = [_find(plan, columns.target, labels)] if columns.target else []
    free = [label for label in labels if label not in source and label not in target]
    if not source and columns.target is None and 1 <= len(free) <= 2:
        return free[:1]
    if len(free) == 1 and columns.target == "" and source:
        target = free
    elif (len(free) == 1 and target and not source) or (len(free) == 2 and columns.target == "" and not source):
        source, target = free[:1], target or free[1:]
    if not source or (columns.target is not None and not target):
        raise _undecided(plan, labels, shown)
    return source + target


def _find(plan: _Plan, name: str, labels: list[str]) -> str:
    """A label by its own name, else by position. A JSON key may be missing here and there: that is seen row by row."""
    if name in labels:
        return name
    if 1 <= position(name) <= len(labels):
        return labels[position(name) - 1]
    if plan.kind == "jsonl" and not name.isdecimal():
        return name
    path = ",".join(escape(source.path) for source in plan.sources)
    raise DataError(
        f"{path}: found no column {quote(name)}{nearest(name, labels)}; the columns are {listed(labels)}{plan.hint}"
    )


def position(name: str) -> int:
    """The number a column is asked for by; 0 when it is asked for by name, or by a number no file has."""
    return int(name) if name.isdecimal() and len(name) < 6 else 0


def nearest(name: str, labels: list[str]) -> str:
    """What may have been meant."""
    near = difflib.get_close_matches(name, labels, n=1)
    return f", the nearest is {quote(near[0])}" if near else ""


def listed(labels: list[str], limit: int = 12) -> str:
    """The first names, as they may stand in a message."""
    shown = ", ".join(escape(label[:24]) + "…" * (len(label) > 24) for label in labels[:limit])
    return f"{shown} and {len(labels) - limit} more" if len(labels) > limit else shown


def taken_header(names: Sequence[str], chosen: Sequence[str], has_target: bool = True) -> str:
    """That a first line was taken for a header, and how it is read as an example: by positions, the target last."""
    places = [str([*names].index(name) + 1) if name in names else name for name in chosen]
    target = f" --target {places.pop()}" if has_target else ""
    flags = f"--source {','.join(places)}{target}"
    return f"the first line is taken for a header: {listed([*names])}; {flags} reads it as an example"


def _undecided(plan: _Plan, labels: list[str], shown: list[str]) -> DataError:
    if len(labels) == 1 and plan.kind == "jsonl":
        return DataError(
            f"{escape(plan.sources[0].path)}: found 1 key, expected 2: {listed(shown)}\n"
            f"if there is an object in it, `jq -c '.{escape(labels[0])}'` makes its keys those of the line"
        )
    target = next((label for label in labels if label.lower() in TARGET_NAMES), labels[-1])
    texts = [label for label in labels if label != target and label.lower() not in ASIDE_NAMES]
    source = ",".join(map(escape, texts[:3])) or "1"
    what = "keys" if plan.kind == "jsonl" else "columns"
    return DataError(
        f"{escape(plan.sources[0].path)}: found {len(labels)} {what}, expected 2: {listed(shown)}\n"
        f"choose by position or name, for example: --source {source} --target {escape(target)}"
    )


def _delimiter_hint(plan: _Plan, head: list[Record]) -> str:
    """What the lines look like when none of them has a delimiter of this format."""
    lines = [record for record in head if record.flaw is None]
    if plan.kind not in DELIMITERS or not lines:
        return ""
    if any(len(record.fields) != 1 for record in lines):
        return _mixed_hint(plan, head) if plan.kind == "csv" else ""
    if all(record.text.startswith("{") for record in lines):
        return "; looks like JSON: rename to .jsonl"
    for mark, advice in DELIMITERS[plan.kind].items():
        counts = {record.text.count(mark) for record in lines}
        if len(counts) == 1 and counts != {0}:
            return f"; looks like {advice}"
    return ""


def _mixed_hint(plan: _Plan, head: list[Record]) -> str:
    """The same where some texts hold the delimiter: of the first line, and whether nearly all others have it too."""
    first, *others = head
    if first.flaw is not None or len(first.fields) != 1:
        return ""
    for mark, advice in DELIMITERS[plan.kind].items():
        if mark in first.text and sum(mark in record.text for record in others) >= NEARLY_ALL * len(others):
            return f"; looks like {advice}"
    return ""


# The first rows as they stand, for whoever wants to know what a file is.


@dataclass(frozen=True)
class Sample:
    """Some rows of a file, the first among them, all their columns, those lines left out that can not be read."""

    kind: str  # tsv, csv, jsonl, parallel, folder or sentences; text where there are no columns
    names: tuple[str, ...]  # of the columns: a header, keys, or positions
    headed: bool
    rows: list[tuple[str, ...]]
    hint: str = ""  # what the delimiter looks like when it is not this format's
    labelled: tuple[str, str] | None = None  # of sentences, the columns of tokens and of their labels
    taken: bool = False  # whether the first line was taken for a header by what stands below it
    whole: bool = True  # whether these are all rows that can be read


def sample(path: str, columns: Columns = CHOOSE, most: int = 5000) -> Sample:
    """About so many rows of a file, before any column is chosen; nothing is judged."""
    plan = _Plan(path, columns)
    records = _present(plan.records(), Tally(path))
    first = _beginning(records)
    spread, whole = _spread(chain(first, records), most)
    head = [record for record in spread if record.flaw is None]
    if plan.kind == "jsonl":
        return replace(_sample_keys(head), whole=whole)
    first = [record for record in first if record.flaw is None]
    hint, names = _delimiter_hint(plan, head[:SAMPLE]), _header(plan, columns, first)
    rows = [tuple(text.removesuffix("\r") for text in record.fields) for record in head[bool(names) :]]
    if plan.shape is not None:
        asked = plan.asked(columns)
        labels = _labels([], plan.shape.width)
        return Sample(plan.kind, tuple(labels), False, rows, labelled=(asked.source[0], asked.target or ""))
    if _is_text(plan, rows):
        return Sample("text", ("1",), False, [(record.text,) for record in head])
    width = len(names) or (1 if _is_single(rows) else _usual_width([[*row] for row in rows[:SAMPLE]], columns))
    labels = _labels(names, width)
    fitting = [row for row in rows if len(row) == width]
    taken = _is_taken(columns, first, names)
    return Sample(plan.kind, tuple(labels), bool(names), fitting, hint, taken=taken, whole=whole)


def _spread(records: Iterator[Record], most: int) -> tuple[list[Record], bool]:
    """The first records, and later ones ever farther apart, because a file may be sorted; and whether that is all."""
    kept, step, seen = list(islice(records, SAMPLE)), 1, 0
    for number, record in enumerate(islice(records, FAR)):
        seen += len(record.text)
        if seen > FAR_CHARACTERS:
            break
        if number % step == 0:
            kept.append(record)
        if len(kept) >= most:
            kept, step = kept[:SAMPLE] + kept[SAMPLE::2], 2 * step
    return kept, step == 1 and next(records, None) is None


def _sample_keys(head: list[Record]) -> Sample:
    names = next((list(record.keyed) for record in head if record.keyed), [])
    picked = [_pick_keys(record, Choice(tuple(names), False)) for record in head if record.keyed is not None]
    return Sample("jsonl", tuple(names), True, [tuple(row) for row in picked if not isinstance(row, Flaw)])


def _is_text(plan: _Plan, rows: list[tuple[str, ...]]) -> bool:
    """Whether a file whose name promises no columns has none: no number of tabs that nearly every line has."""
    if plan.kind != "tsv" or plan.suffix == ".tsv" or not rows:
        return False
    width, count = Counter(map(len, rows)).most_common(1)[0]
    return width == 1 or count < NEARLY_ALL * len(rows)


def _is_single(rows: list[tuple[str, ...]]) -> bool:
    return bool(rows) and sum(len(row) == 1 for row in rows) >= NEARLY_ALL * len(rows)


# Records to examples.


def _pick(record: Record, choice: Choice) -> list[str] | Flaw:
    """The chosen fields of a record, target last, or what is wrong with it."""
    if record.flaw:
        return record.flaw
    if not choice.places:
        return _pick_keys(record, choice)
    if len(record.fields) != choice.width:
        return _width_flaw(record, choice)
    return [record.fields[place] for place in choice.places]


def _width_flaw(record: Record, choice: Choice) -> Flaw:
    found, advice = len(record.fields), ""
    if found == choice.width + 1 and not record.fields[-1].strip(EMPTY):
        advice = f"; a {choice.delimiter} at the end?"
    elif found > choice.width and choice.delimiter == "comma":
        advice = "; a field with a comma in it wants quotes"
    elif found == 1:
        advice = choice.hint
    expected = f"expected {choice.width} column{'s' * (choice.width > 1)}, found {found}"
    return Flaw("wrong column count", f"{expected}: {quote(record.text)}{advice}")


def _pick_keys(record: Record, choice: Choice) -> list[str] | Flaw:
    values, keyed = [], record.keyed or {}
    for name in choice.names:
        if name not in keyed:
            found = nearest(name, list(keyed)) or f", found {listed(list(keyed)) or 'none'}"
            return Flaw("missing key", f"expected the key {quote(name)}{found}: {quote(record.text)}")
        value = keyed[name]
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            value = " ".join(value)
        if (flaw := _value_flaw(name, value)) is not None:
            return flaw
        values.append(value)
    return values


def texts_of(line: str, keyed: dict[str, Any], names: Sequence[str]) -> list[str] | Flaw:
    """The texts under some keys of the JSON object on a line, or what is wrong with it."""
    return _pick_keys(Record(0, line, [], None, keyed), Choice(tuple(names), False))


def _value_flaw(name: str, value: object) -> Flaw | None:
    """JSON can spell what no UTF-8 file holds; it must not get past here."""
    if not isinstance(value, str):
        found = {type(None): "null", bool: "true or false", dict: "an object", list: "a mixed list"}[type(value)]
        return Flaw(
            "value that is not text", f"{quote(name)}: found {found}, expected text, a number or a list of texts"
        )
    if "\0" in value:
        return Flaw("NUL byte", f"{quote(name)}: found \\u0000, expected text")
    if not value.isascii() and re.search("[\ud800-\udfff]", value):
        return Flaw("invalid UTF-8", f"{quote(name)}: found half of a surrogate pair, expected text: {quote(value)}")
    return None


def _example(record: Record, choice: Choice) -> Example | Flaw:
    picked = _pick(record, choice)
    if isinstance(picked, Flaw):
        return picked
    target = picked.pop() if choice.has_target else None
    if not "".join(picked).strip(EMPTY):
        return Flaw("empty source", f"found an empty source, expected text: {quote(record.text)}")
    if target is not None and not target.strip(EMPTY):
        return Flaw("empty target", f"found an empty target, expected text: {quote(record.text)}")
    if choice.within and target is not None and target.strip(EMPTY) not in picked[0]:
        return Flaw("answer that is not in its context", f"found the answer {quote(target.strip(EMPTY))}, expected a "
                    f"piece of its context: {quote(picked[0])}")  # fmt: skip
    if choice.tagged and target is not None:
        tokens, labels = len(TOKEN.findall(picked[0])), len(target.split())
        if tokens != labels:
            return Flaw("another number of labels than tokens", f"found {tokens} tokens and {labels} labels, expected "
                        f"as many of each, with spaces between them: {quote(picked[0])}")  # fmt: skip
    return Example(tuple(picked), target, record.line)


def without_returns(example: Example, hit: Sequence[bool]) -> Example:
    """The example with the \\r of \\r\\n taken off the columns that are hit, target last."""
    texts = [*example.source] if example.target is None else [*example.source, example.target]
    texts = [text.removesuffix("\r") if drop else text for text, drop in zip(texts, hit, strict=True)]
    target = texts.pop() if example.target is not None else None
    return Example(tuple(texts), target, example.line)


def _judge(plan: _Plan, tally: Tally, examples: int, names: list[str], skip_bad: bool) -> None:
    """Raise when the file gave nothing, or something bad that was not to be skipped."""
    if tally.records == 0 and names:
        raise DataError(f"{tally.path}: found a header ({listed(names)}) and nothing after it, expected examples")
    if tally.records == 0:
        found = f"{tally.blank} blank lines" if tally.blank else "an empty file"
        raise DataError(f"{tally.path}: found {found}, expected one example a line")
    if tally.kinds and (not examples or not skip_bad):
        cure = "; mend them, or leave them out with --skip-bad" if examples else ""
        cure += _conversion(plan, tally.kinds)
        raise DataError("\n".join([*tally.first, f"{tally.path}: {tally.summary()}{cure}"]))


def _notes(plan: _Plan, tally: Tally, names: list[str], choice: Choice, taken: bool) -> list[str]:
    notes = [note for source in plan.sources for note in source.notes(kept=plan.kind not in ("csv", "jsonl"))]
    if plan.kind == "folder":
        texts = pictures.ORIGINS[pictures.origin(plan.sources[0].path)]
        notes.append(f"{tally.path}: {tally.records} pictures; their texts are {texts}")
    if plan.kind == "sentences":
        notes.append(f"{tally.path}: {tally.records:,} sentences, a token and its labels on each line; columns "
                     f"{' → '.join(choice.names)} of {choice.width} are read")  # fmt: skip
    if taken:
        notes.append(f"{tally.path}: {taken_header(names, choice.names, choice.has_target)}")
    elif names:
        notes.append(f"{tally.path}: the first line is a header: {listed(names)}")
    elif plan.kind == "csv":
        notes.append(f"{tally.path}: its first line is read as an example; if it is a header, name the columns: "
                     "--source NAME --target NAME")  # fmt: skip
    if tally.blank:
        notes.append(f"{tally.path}: {tally.blank} blank lines skipped")
    if not choice.has_target and choice.width > len(choice.places) > 0:
        notes.append(f"{tally.path}: of {choice.width} columns only {listed(list(choice.names))} is read")
    if tally.kinds:
        notes.append(f"warning: {tally.summary()}; skipped. The first: {tally.first[0]}")
    return notes


class Stream:
    """The examples of a file one by one, gone through once; memory does not grow with the file.

    At its end, bad lines are an error that sums them all up, or they were skipped and are noted. What is known only
    then (`notes`, `skipped`, `returns`) is to be asked for after it.
    """

    def __init__(self, path: str, columns: Columns = CHOOSE, skip_bad: bool = False) -> None:
        self.path, self.skip_bad = ",".join(files_of(path)), skip_bad
        self._plan, self._tally = _Plan(path, columns), Tally(self.path)
        records = _present(self._plan.records(), self._tally)
        head = _beginning(records)
        self._plan.hint = _delimiter_hint(self._plan, head[:SAMPLE])
        self._names = _header(self._plan, columns, head)
        self._taken = _is_taken(columns, head, self._names)
        body = head[1:] if self._names else head
        self._tally.records -= bool(self._names)
        if not body:
            _judge(self._plan, self._tally, 0, self._names, skip_bad)
        self._choice = self._choose(columns, body[:SAMPLE])
        self._records = chain(body, records)

    def _choose(self, columns: Columns, body: list[Record]) -> Choice:
        if self._plan.kind == "jsonl":
            return _choose_keys(self._plan, columns, body)
        return _choose(self._plan, columns, body, self._names)

    def __iter__(self) -> Iterator[Example]:
        """As they stand: a \\r that `returns` tells of is still on."""
        count, choice = 0, self._choice
        for record in self._records:
            example = _example(record, choice)
            if isinstance(example, Flaw):
                self._tally.add(record, example)
            else:
                count += 1
                yield example
        _judge(self._plan, self._tally, count, self._names, self.skip_bad)

    @property
    def source_names(self) -> tuple[str, ...]:
        return self._choice.names[:-1] if self._choice.has_target else self._choice.names

    @property
    def target_name(self) -> str | None:
        return self._choice.names[-1] if self._choice.has_target else None

    @property
    def returns(self) -> tuple[bool, ...]:
        """For each column, target last, whether the \\r of \\r\\n hangs on it; empty where it does on none.

        Only at the end of a file is it known whether every line has one.
        """
        ends = {column for column, source in self._plan.returns(self._choice.width).items() if source.all_return}
        hit = tuple(place in ends for place in self._choice.places)
        return hit if any(hit) else ()

    @property
    def notes(self) -> list[str]:
        """What was tolerated."""
        return _notes(self._plan, self._tally, self._names, self._choice, self._taken)

    @property
    def skipped(self) -> int:
        return self._tally.kinds.total()


def read(path: str, columns: Columns = CHOOSE, skip_bad: bool = False) -> Table:
    """The examples of a file, in its order. Bad lines are an error that sums them all up, or skipped and noted."""
    stream = Stream(path, columns, skip_bad)
    examples = list(stream)
    if stream.returns:
        examples = [without_returns(example, stream.returns) for example in examples]
    return Table(stream.path, examples, stream.notes, stream.source_names, stream.target_name, stream.skipped)


def read_lines(path: str) -> tuple[str, ...]:
    """The lines of a file that are not empty, as they are; the first bad one is an error."""
    return tuple(text for _, text in numbered_lines(path))


def numbered_lines(path: str) -> list[tuple[int, str]]:
    """The same, each with its number in the file."""
    source = Source(path)
    records = list(source)
    for record in records:
        if record.flaw is not None:
            raise DataError(f"{escape(path)}:{record.line}: {record.flaw.text}{converted(path)}")
    end = "\r" if source.all_return else ""
    lines = [(record.line, text) for record in records if (text := record.text.removesuffix(end))]
    if not lines:
        raise DataError(f"{escape(path)}: found no line with text in it, expected one text a line")
    return lines
