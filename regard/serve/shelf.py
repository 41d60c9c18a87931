"""Folders in, models by name out: loaded when first asked for, replaced when their folder changes.

A new model is loaded beside the old one, which answers until the new one is there. A folder that can not be loaded is
told once, and the old model stays. Behind the models that were named stand those of the lesson, as lesson/NAME.
"""

import json
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import safetensors

from regard import config, folder
from regard.errors import FolderError, UsageError
from regard.lab.lesson import kept
from regard.serve.limits import MOST_TEXT, WATCH_SECONDS
from regard.serve.meter import Meter
from regard.serve.refusal import Refusal
from regard.serve.schema import ModelAnswer
from regard.trained import Trained

Tell = Callable[[str], None]
Signature = tuple[int, int, int]
MOST_EXAMPLES = 5


@dataclass(frozen=True)
class Cover:
    """What can be said of a model without loading it."""

    config: config.Config
    parameters: int
    columns: int
    examples: tuple[str, ...] = ()


class Place:
    """One folder, and the model that was last loaded from it."""

    def __init__(self, name: str, path: Path, tell: Tell, meter: Meter) -> None:
        self.name = name
        self.path = path
        self.tell = tell
        self.meter = meter
        self.lock = threading.Lock()  # of loading: two at once would need twice the memory
        self.loaded: Trained | None = None
        self.seen: Signature | None = None  # the manifest that was last loaded, or found wanting
        folder.check_model(path)
        self.cover = cover(path)

    def model(self) -> Trained:
        """The model, loaded now if it was not before."""
        if self.loaded is None:
            with self.lock:
                if self.loaded is None:
                    self.load()
        assert self.loaded is not None
        return self.loaded

    def load(self) -> None:
        seen = signature(self.path)
        made, about = Trained.load(self.path), cover(self.path)
        if signature(self.path) != seen:
            raise FolderError(f"{self.path}: it changed while it was read")
        self.loaded, self.cover, self.seen = made, about, seen
        self.meter.count("regard_loads_total", (("model", self.name), ("result", "loaded")))

    def refresh(self) -> None:
        """Loads the model anew if its folder holds another one."""
        found = signature(self.path)
        if self.loaded is None or found is None or found == self.seen:
            return
        with self.lock:
            try:
                self.load()
                self.tell(f"{self.name}: {self.path} has changed; the new model answers from now on")
            except Exception as error:  # whatever it is, the old model goes on
                self.seen = found
                self.meter.count("regard_loads_total", (("model", self.name), ("result", "refused")))
                self.tell(f"{self.name}: the new model is refused, the old one goes on: {error}")

    def answer(self) -> ModelAnswer:
        """As /v1/models tells it."""
        c = self.cover.config
        return ModelAnswer(
            name=self.name,
            task=c.task,
            preset=c.preset,
            parameters=self.cover.parameters,
            reads="picture" if c.encoder.kind == "image" else "text",
            columns=self.cover.columns,
            names=column_names(c, self.cover.columns),
            beam=c.search.beam,
            loaded=self.loaded is not None,
            examples=list(self.cover.examples),
        )


class Shelf:
    """The models that are served, in the order in which they were named; and those of the lesson, when asked for."""

    def __init__(self, paths: Sequence[Path], tell: Tell, meter: Meter) -> None:
        self.tell, self.meter = tell, meter
        self.places = {name: Place(name, path, tell, meter) for name, path in names(paths).items()}
        self.lesson = kept.folders()
        if not paths and not self.lesson:
            raise UsageError("expected at least one model folder: there is no lesson in this copy of regard")
        self.taught: dict[str, Place] = {}
        self.ended = threading.Event()
        threading.Thread(target=self.watch, name="watch", daemon=True).start()

    def place(self, name: str | None) -> Place:
        """The model of this name; without one, the first."""
        if name is None:
            name = next(iter(self.places or self.lesson))
        if name in self.lesson:
            return self.lesson_place(name)
        if name not in self.places:
            there = self.places or self.lesson
            raise Refusal(404, f"no such model{config.nearest(name, there)}; there are: {', '.join(there)}",
                          "unknown_model", "model")  # fmt: skip
        return self.places[name]

    def lesson_place(self, name: str) -> Place:
        """A model of the lesson; nothing of it is read before somebody asks for it."""
        if name not in self.taught:
            self.taught[name] = Place(name, self.lesson[name], self.tell, self.meter)
        return self.taught[name]

    def watch(self) -> None:
        while not self.ended.wait(WATCH_SECONDS):
            for place in self.places.values():
                place.refresh()


def names(paths: Sequence[Path]) -> dict[str, Path]:
    """Each folder by its own name; of folders with the same name the later ones with a number."""
    found: dict[str, Path] = {}
    for path in paths:
        whole = path.resolve()
        if whole in [each.resolve() for each in found.values()]:
            raise UsageError(f"{path}: named twice")
        plain = whole.name or "model"
        number, name = 1, plain
        while name in found:
            number += 1
            name = f"{plain}-{number}"
        found[name] = path
    return found


def signature(path: Path) -> Signature | None:
    """What tells one manifest from another; none where there is none."""
    try:
        found = (path / "manifest.json").stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def cover(path: Path) -> Cover:
    try:
        with safetensors.safe_open(path / "model.safetensors", framework="pt") as file:
            sizes = [math.prod(file.get_slice(name).get_shape()) for name in file.keys()]  # noqa: SIM118
    except (safetensors.SafetensorError, OSError) as error:
        raise FolderError(f"{path / 'model.safetensors'}: not a safetensors file: {error}") from None
    c, vocabulary = folder.read_config(path), folder.read_vocabulary(path)
    # What a model that reads pictures was tried with are references into somebody's files, and no texts to type.
    tried = () if c.encoder.kind == "image" else examples(path)
    return Cover(c, sum(sizes), len(vocabulary.is_tags), tried)


def column_names(c: config.Config, columns: int) -> list[str]:
    """What the columns of the source are called; [] = they are known by their places alone."""
    named = len(c.data.source) == columns and not any(name.isdigit() for name in c.data.source)
    return list(c.data.source) if named else []


def examples(path: Path) -> tuple[str, ...]:
    """A few sources to try the model with: of the held-out examples that its report shows, right answers first."""
    try:
        report = json.loads((path / "report.json").read_text(encoding="utf-8"))
        right = [each["source"] for each in report["examples"]["best"]]
        looked = ["\t".join(each["source"]) for each in report.get("looked", [])]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ()
    found = [text for text in (*right, *looked) if isinstance(text, str) and 0 < len(text) <= MOST_TEXT]
    return tuple(dict.fromkeys(found))[:MOST_EXAMPLES]
