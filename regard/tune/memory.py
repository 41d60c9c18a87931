"""Trials in, a file out that a search goes on from when it is repeated; and the table that is left of it.

FOLDER/tune/search.json is written anew after each trial, FOLDER/tune.csv with the final run.
"""

import csv
import hashlib
import io
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from regard import config
from regard.errors import FolderError, RegardError, UsageError
from regard.folder import remove, write_file
from regard.training.home import SEARCH, TRIALS, is_search, tree_of
from regard.tune.space import Values


@dataclass(frozen=True)
class Trial:
    """One run of a search: what was tried, and what came out."""

    number: int
    values: Values
    settings: dict[str, str]  # the same by the names that --set takes
    score: float | None  # on the held-out examples; none = it failed
    metric: str  # which score
    steps: int
    minutes: float
    failure: str = ""


@dataclass(frozen=True)
class Memory:
    """What a search is for, and its trials so far."""

    folder: Path  # of the model
    plan: dict[str, Any]  # settings, data and minutes by their names: another search has others
    trials: tuple[Trial, ...] = ()
    replaces: str = ""  # the run that --force was said for: a search that goes on needs not be forced again

    @property
    def may_replace(self) -> bool:
        """Whether what stands in the folder is what --force was said for."""
        return bool(self.replaces) and self.replaces == standing(self.folder)

    def place(self, number: int) -> Path:
        """The folder of a trial."""
        return self.folder / TRIALS / f"trial-{number:02}"

    def add(self, trial: Trial) -> "Memory":
        """With one more, on the disk too."""
        more = replace(self, trials=(*self.trials, trial))
        more.write()
        return more

    def write(self) -> None:
        trials = [asdict(trial) for trial in self.trials]
        tree = {"kind": "search", "plan": self.plan, "replaces": self.replaces, "trials": trials}
        try:
            (self.folder / TRIALS).mkdir(exist_ok=True)
            write_file(self.folder / TRIALS / SEARCH, (json.dumps(tree, ensure_ascii=False, indent=1) + "\n").encode())
        except OSError as error:
            raise RegardError(f"{self.folder / TRIALS}: can not be written: {error.strerror}") from None

    def sweep(self) -> None:
        """The folders of trials are big, and nobody needs them any more."""
        for path in (self.folder / TRIALS).glob("trial-*"):
            remove(path)

    def table(self) -> bytes:
        """tune.csv: a line for each trial."""
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(["number", "settings", "score", "steps", "minutes", "failure"])
        for trial in self.trials:
            words = " ".join(f"{name}={value}" for name, value in trial.settings.items())
            score = "" if trial.score is None else f"{trial.score:.4f}"
            lines.writerow([trial.number, words, score, trial.steps, f"{trial.minutes:.2f}", trial.failure])
        return text.getvalue().encode()


def remembered(folder: Path, plan: dict[str, Any], force: bool) -> Memory:
    """The search that stands in the folder, if it is the same, else a new one; by force a new one in any case."""
    place = folder / TRIALS
    fresh = Memory(folder, json.loads(json.dumps(plan)), replaces=standing(folder) if force else "")
    if place.exists() and not is_search(folder):
        if not place.is_dir() or any(place.iterdir()):
            raise UsageError(f"{folder}: holds {TRIALS}, and no search of regard wrote it; choose another -o")
    elif place.exists():
        tree = tree_of(place / SEARCH)
        had = tree.get("plan")
        other = config.differences(had if isinstance(had, dict) else {}, fresh.plan)
        if not other and not force:
            trials = tuple(read_trials(place / SEARCH, tree))
            return replace(fresh, trials=trials, replaces=str(tree.get("replaces", "")))
        if not force:
            raise UsageError(f"{folder}: holds a search with {other}; choose another -o, or --force to replace it")
        remove(place)
    return fresh


def standing(folder: Path) -> str:
    """A hash that tells the run in a folder from others; nothing where there is none."""
    found = [path.read_bytes() for name in ("run.json", "manifest.json") if (path := folder / name).is_file()]
    return hashlib.sha256(b"".join(found)).hexdigest() if found else ""


def read_trials(path: Path, tree: dict[str, Any]) -> list[Trial]:
    try:
        return TypeAdapter(list[Trial]).validate_python(tree.get("trials"))
    except ValidationError as error:
        raise FolderError(f"{path}: not the trials of a search: {str(error).splitlines()[0]}") from None
