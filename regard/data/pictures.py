"""A folder of pictures in, their paths and what they show out: from a table, from texts beside them, or from names.

A table in the folder is read like any other file. Without one each picture is shown by, in this order, the text file
of the same name beside it, the folder that it stands in, its own name.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

ENDINGS = (".png", ".jpg", ".jpeg")
TABLES = (".tsv", ".csv", ".jsonl", ".tsv.gz", ".csv.gz", ".jsonl.gz")
LONGEST = 65_536  # bytes of a text beside a picture
NUMBER = re.compile(r"[\s_.-]*(\(\d+\)|\d+)$")  # at the end of a name: of many pictures of one thing

Origin = Literal["text", "folder", "name"]
ORIGINS: dict[Origin, str] = {
    "text": "the text files beside the pictures",
    "folder": "the names of their folders",
    "name": "the names of the pictures",
}


@dataclass(frozen=True)
class Shown:
    """A picture, by its path from the folder, and what it shows; or why that is not known."""

    picture: str
    text: str
    flaw: str = ""


def is_picture(name: str) -> bool:
    return name.lower().endswith(ENDINGS)


def table_in(folder: str) -> str | None:
    """The table that tells what the pictures show: captions.tsv and the like, or the only one beside pictures."""
    tables = sorted(name for name in os.listdir(folder) if name.lower().endswith(TABLES) and not name.startswith("."))
    named = [name for name in tables if name.lower().startswith("captions.")]
    if named:
        return os.path.join(folder, named[0])
    return os.path.join(folder, tables[0]) if len(tables) == 1 and next(pictures_in(folder), None) else None


def pictures_in(folder: str) -> Iterator[str]:
    """Every PNG and JPEG below a folder, in the order of their paths; what is hidden stays so."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if is_picture(name) and not name.startswith("."):
                yield os.path.relpath(os.path.join(place, name), folder).replace(os.sep, "/")


def origin(folder: str) -> Origin:
    """Where the texts come from: one rule for the whole folder."""
    found = list(pictures_in(folder))
    if any(os.path.isfile(beside(folder, picture)) for picture in found):
        return "text"
    return "folder" if any("/" in picture for picture in found) else "name"


def beside(folder: str, picture: str) -> str:
    return os.path.join(folder, os.path.splitext(picture)[0] + ".txt")


def shown(folder: str) -> Iterator[Shown]:
    """The pictures of a folder that has no table, each with its text."""
    rule = origin(folder)
    for picture in pictures_in(folder):
        if rule == "text":
            yield read_text(folder, picture)
        elif rule == "folder":
            yield from_folder(picture)
        else:
            yield Shown(picture, words(os.path.basename(picture)))


def read_text(folder: str, picture: str) -> Shown:
    """What the file beside a picture says, on one line; a file of the same folder, and no pipe that never ends."""
    root, path = os.path.realpath(folder), os.path.realpath(beside(folder, picture))
    if os.path.commonpath([root, path]) != root:
        return Shown(picture, "", "the text beside the picture leads out of its folder")
    try:
        if not os.path.isfile(path):
            raise FileNotFoundError(path)
        with open(path, "rb") as file:
            raw = file.read(LONGEST + 1)
        text = " ".join(raw.decode("utf-8-sig").split())
    except OSError:
        return Shown(picture, "", "no text beside the picture, expected a .txt of the same name")
    except UnicodeDecodeError:
        return Shown(picture, "", "the text beside the picture is not UTF-8")
    if len(raw) > LONGEST:
        return Shown(picture, "", f"the text beside the picture is longer than {LONGEST:,} bytes")
    return Shown(picture, text)


def from_folder(picture: str) -> Shown:
    if "/" not in picture:
        return Shown(picture, "", "the picture stands in no folder with a name, as others do")
    return Shown(picture, picture.split("/")[-2].replace("_", " ").strip())


def words(name: str) -> str:
    """`red_square_07.png` as `red square`; a name that is but a number stays."""
    stem = os.path.splitext(name)[0]
    return (NUMBER.sub("", stem) or stem).replace("_", " ").strip()
