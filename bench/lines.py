"""A file of lines in, records out, and the way back: what was measured, a line for each, kept as CSV."""

import csv
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Record = TypeVar("Record", bound=DataclassInstance)
else:
    Record = TypeVar("Record")


def read(path: Path, kind: type[Record]) -> list[Record]:
    """All lines of a file; none where there is no file."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [kind(**{each.name: value(each.type, row[each.name]) for each in fields(kind)})
                for row in csv.DictReader(file)]  # fmt: skip


def value(kind: Any, text: str) -> Any:
    """A cell as its field has it; one that may be none is empty then."""
    given = get_args(kind)
    if not given:
        return kind(text)
    return given[0](text) if text else None


def append(path: Path, line: "DataclassInstance") -> None:
    """One line more, below a header."""
    put(path, [line], "a" if path.is_file() else "w")


def write(path: Path, lines: Sequence["DataclassInstance"]) -> None:
    """These lines and no others; who is interrupted meanwhile still has those before."""
    new = path.with_name(f"{path.name}.new")
    put(new, lines, "w")
    new.replace(path)


def put(path: Path, lines: Sequence["DataclassInstance"], mode: str) -> None:
    with path.open(mode, encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [each.name for each in fields(lines[0])], lineterminator="\n")
        if mode == "w":
            writer.writeheader()
        writer.writerows(asdict(line) for line in lines)
