"""A name and a count in, rows of a task out that is made here and copied from nowhere; or the same rows as files.

The same words give the same bytes. A source belongs to one part (train, valid, test) whatever the seed, so sets of
two parts never share one. `parts` holds that rule; the other files each hold a task or a kind of task.
"""

import csv
import gzip
import io
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.builtin import captions, dates, questions, requests, sequences
from regard.data.builtin.parts import PARTS, nearest
from regard.errors import MissingError, UsageError

__all__ = ["NAMES", "Rows", "generate", "write"]

NAMES: tuple[str, ...] = tuple(sorted(["captions", "dates", "questions", *requests.KINDS, *sequences.RULES]))
FORMATS = (".tsv", ".csv", ".jsonl")
PLAIN = ".txt"  # for what has one column


@dataclass(frozen=True)
class Rows:
    """A generated set; pictures, where a task has them, are (N, 32, 32, 3) and row k's is called `#k`."""

    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    images: NDArray[np.uint8] | None = None


def generate(name: str, count: int, seed: int = 0, part: str = "train", locales: str = "en") -> Rows:
    """`count` rows of a built-in task; `locales` is for dates: `en`, a list such as `de,fr,ja`, or `all`."""
    check(name, count, part, locales)
    match name:
        case "captions":
            return pictures(captions.drawings(count, seed, part))
        case "dates":
            return Rows(("source", "target"), [*dates.pairs(count, seed, part, locales)])
        case "questions":
            return Rows(("context", "question", "answer"), [*questions.rows(count, seed, part)])
        case _ if name in requests.KINDS:
            return Rows(requests.HEADERS[name], [*requests.KINDS[name](count, seed, part)])
        case _:
            return Rows(("source", "target"), [*sequences.pairs(name, count, seed, part)])


def check(name: str, count: int, part: str, locales: str) -> None:
    """Refuse what no task can do, before anything is drawn."""
    if name not in NAMES:
        raise UsageError(f"no built-in task {name!r}{nearest(name, NAMES)}; expected one of {', '.join(NAMES)}")
    if count < 1:
        raise UsageError(f"{name}: asked for {count} rows; expected at least 1")
    if part not in PARTS:
        raise UsageError(f"{name}: no part {part!r}{nearest(part, PARTS)}; expected one of {', '.join(PARTS)}")
    if name != "dates" and locales != "en":
        raise UsageError(f"{name}: found --locales {locales}; only the dates task has locales")


def pictures(drawings: list[captions.Drawing]) -> Rows:
    rows: list[tuple[str, ...]] = [(f"#{row}", drawing.caption) for row, drawing in enumerate(drawings)]
    return Rows(("image", "text"), rows, np.stack([captions.paint(drawing) for drawing in drawings]))


def write(name: str, count: int, path: Path, seed: int = 0, part: str = "train", locales: str = "en") -> list[Path]:
    """Generate and write; the paths written, the file of rows first. Pictures go into `<stem>.npz` beside it."""
    check(name, count, part, locales)  # whoever misspells the task hears of that first
    ending = format_of(path, name)
    made = generate(name, count, seed, part, locales)
    pictures_path = path.with_name(path.name.split(ending)[0] + ".npz")
    if made.images is not None:
        made = Rows(made.header, [(pictures_path.name + image, text) for image, text in made.rows], made.images)
    save(path, as_text(made, ending))
    if made.images is None:
        return [path]
    np.savez_compressed(pictures_path, images=made.images)
    return [path, pictures_path]


def format_of(path: Path, name: str) -> str:
    """The ending that decides how rows are written; `.gz` may stand behind it."""
    ending = Path(path.name.removesuffix(".gz")).suffix
    known = (PLAIN, *FORMATS) if name == "story" else FORMATS
    if ending not in known:
        raise UsageError(f"{path}: found the ending {ending!r}; expected {', '.join(known)}, each also with .gz")
    if not path.parent.is_dir():
        raise MissingError(f"{path}: no folder {path.parent}; make it first")
    return ending


def as_text(made: Rows, ending: str) -> str:
    """The rows as one text; pairs of text have no header, because two columns need none."""
    if ending == ".jsonl":
        lines = (json.dumps(dict(zip(made.header, row, strict=True)), ensure_ascii=False) for row in made.rows)
        return "".join(f"{line}\n" for line in lines)
    headed = len(made.header) > 2 or made.images is not None
    rows = [made.header, *made.rows] if headed else made.rows
    if ending in (".tsv", PLAIN):  # no text made here holds a tab or a line end
        return "".join("\t".join(row) + "\n" for row in rows)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def save(path: Path, text: str) -> None:
    data = text.encode()
    # No time stamp in the gzip header: the same rows are the same bytes.
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
