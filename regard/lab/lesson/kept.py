"""The lesson that is shipped: its pages and the folders of its models in, what a model makes of the example out."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.data.builtin import captions
from regard.errors import FolderError, RegardError
from regard.lab.lesson.curves import seen
from regard.trained import Trained

FOLDER = Path(__file__).with_name("models")
FILE = "lesson.json"
PREFIX = "lesson/"  # of the names by which its models are asked


def read(folder: Path = FOLDER) -> dict[str, Any] | None:
    """The lesson without its records; none where there is none."""
    try:
        found = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise FolderError(f"{folder / FILE}: can not be read: {error}") from None
    if not isinstance(found, dict) or found.get("kind") != "lesson":
        raise FolderError(f"{folder / FILE}: expected a lesson")
    return found


def folders(folder: Path = FOLDER) -> dict[str, Path]:
    """The folder of each page's model, by the name under which it answers."""
    found = read(folder)
    return {} if found is None else {PREFIX + page["name"]: folder / page["name"] for page in found["pages"]}


def drawing() -> captions.Drawing:
    """The picture of the last page: the first held-out one with two shapes."""
    return next(each for each in captions.drawings(100, 0, "test") if len(each.shapes) == 2)


def record(model: Trained, page: dict[str, Any]) -> dict[str, Any] | None:
    """What the model of a page makes of its example; none where a picture can not be shown (it needs Pillow)."""
    try:
        if page["data"] == "captions":
            found = model.look(page["example"], item=seen(drawing()))
        else:
            found = model.look(page["example"])
        about = {**found.model, "name": PREFIX + page["name"]}
        return replace(found, model=about, seconds={}).as_json(packed=True)
    except RegardError:
        return None
