"""A preset in, a short run of it out, always the same; and two folders in, all that differs between them out."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

from regard import folder as folders
from regard.data import builtin
from regard.models.build import unfilled
from regard.training.checkpoint import NAME, read
from regard.training.home import finished, identity
from tests.drills.lives import STEP, End, Life, Watch

PRESETS = ("rnn", "rnn-attention", "transformer")
FOLDER = "model"  # the same name everywhere, so that the command and with it run.json is the same
TABLES = ("weights", "optimizer", "best", "window")
SAME_FILES = ("model.safetensors", "metrics.jsonl", "config.toml", "tokenizer.json", "curves.svg", "run.json")
OF_THE_CLOCK = ("seconds", "ending")  # in state.json; and how many bytes of times.jsonl there were


@dataclass(frozen=True)
class Recipe:
    """A run: what is trained, on which file, for how long, and how often it saves and validates."""

    preset: str
    data: Path
    steps: int = 120
    save: int = 10
    validate: int = 15
    width: int = 16

    @property
    def words(self) -> list[str]:
        """Dropout, an averaging window and two batches an update: all that a resumed run could get wrong."""
        settings = {
            "encoder.width": self.width, "decoder.width": self.width, "encoder.dropout": 0.2, "decoder.dropout": 0.2,
            "train.steps": self.steps, "train.warmup": self.steps // 10, "train.learning_rate": 0.005,
            "train.checkpoint_steps": self.save, "train.validate_steps": self.validate, "train.average": 3,
            "train.tokens_per_batch": 96, "train.accumulate": 2, "train.validate_examples": 10, "train.threads": 1,
            "search.length_extra": 4, "search.length_ratio": 1.0,
        }  # fmt: skip
        if self.preset == "transformer":
            settings |= {f"{side}.{name}": 2 for side in ("encoder", "decoder") for name in ("layers", "heads")}
        return [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]

    @property
    def train(self) -> list[str]:
        return ["train", str(self.data), "-o", FOLDER, "--preset", self.preset, *self.words]


def recipe(preset: str, place: Path, steps: int = 120) -> Recipe:
    """With its file of dates, written into `place`."""
    data = place / "dates.tsv"
    if not data.exists():
        builtin.write("dates", 300, data)
    return Recipe(preset, data, steps)


@dataclass(frozen=True)
class Timeline:
    """When each step of an unbroken run was done, in seconds since its start; and when all was over."""

    steps: tuple[tuple[int, float], ...]
    whole: float

    def moment(self, share: float) -> tuple[int, float]:
        """The last step before this share of the run has passed, and the seconds from there."""
        at = share * self.whole
        step, since = [(0, 0.0), *(each for each in self.steps if each[1] <= at)][-1]
        return step, at - since


def unbroken(r: Recipe, place: Path) -> Timeline:
    """A run that nothing happens to, in a folder of its own; and when it did what."""
    place.mkdir(parents=True)
    life = Life(place, r.train, {})
    seen: dict[int, float] = {}

    def look(watch: Watch) -> bool:
        seen.setdefault(watch[STEP], time.monotonic() - life.started)
        return False

    life.until(look)
    end = life.end()
    assert end.code == 0, end.said
    return Timeline(tuple(sorted((step, at) for step, at in seen.items() if step > 0)), end.seconds)


def next_words(r: Recipe, place: Path) -> list[str]:
    """How a person would go on: with `resume`, unless the run died before there was one to resume."""
    return ["resume", FOLDER] if (place / FOLDER / "run.json").exists() else r.train


def started_anew(end: End) -> bool:
    """Whether it says that it died before all was laid out for its first step, and wants to be begun again."""
    return end.code == 1 and "begin it again" in end.said


# ── what is on the disk ──────────────────────────────────────────────────────────────────────────────────────────────


def checkpoint_steps(folder: Path) -> list[int]:
    found = (NAME.fullmatch(path.name) for path in (folder / "checkpoints").glob("step-*"))
    return sorted(int(name[1]) for name in found if name)


def shapes(folder: Path) -> folders.Shapes:
    c, vocabulary = folders.read_config(folder), folders.read_vocabulary(folder)
    return folders.shapes_of(unfilled(c, vocabulary.source.size, vocabulary.target.size))


def broken_checkpoints(folder: Path, expected: folders.Shapes) -> list[str]:
    """What is wrong with any checkpoint that stands under its name."""
    wrong = []
    for step in checkpoint_steps(folder):
        try:
            read(folder / "checkpoints" / f"step-{step:08}", identity(folder), expected)
        except folders.FolderError as error:
            wrong.append(str(error))
    return wrong


def temporaries(folder: Path, before: float) -> list[str]:
    """What was left there before this moment; the lock is none, it is taken over."""
    found = [path for path in [*folder.glob(".*"), *(folder / "checkpoints").glob(".*")] if path.name != ".lock"]
    return [path.name for path in found if path.exists() and path.stat().st_ctime < before]


def differences(found: Path, expected: Path) -> list[str]:
    """Weights, optimizer, window, standing, log and choice of best: whatever is not the same to the bit."""
    wrong = [name for name in SAME_FILES if (found / name).read_bytes() != (expected / name).read_bytes()]
    if not finished(found):
        wrong.append("not finished")
    wrong += temporaries(found, time.time())
    if checkpoint_steps(found)[-1:] != checkpoint_steps(expected)[-1:]:
        return [*wrong, "the last checkpoint is of another step"]
    last = f"step-{checkpoint_steps(expected)[-1]:08}"
    places = found / "checkpoints" / last, expected / "checkpoints" / last
    for name in TABLES:
        one, other = (bits(place / f"{name}.safetensors") for place in places)
        wrong += [
            f"{last}/{name}: {key}" for key in sorted(one.keys() | other.keys()) if one.get(key) != other.get(key)
        ]
    one, other = (standing(place / "state.json") for place in places)
    return wrong + [f"{last}/state.json: {key}" for key in one.keys() | other.keys() if one.get(key) != other.get(key)]


def bits(path: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    return {name: (str(table.dtype), table.shape, table.tobytes()) for name, table in load_file(path).items()}


def standing(path: Path) -> dict[str, Any]:
    """A state without what the clock decides."""
    tree: dict[str, Any] = json.loads(path.read_bytes())
    log = {name: value for name, value in tree.pop("log").items() if name != "times_bytes"}
    return {name: value for name, value in tree.items() if name not in OF_THE_CLOCK} | {"log": log}
