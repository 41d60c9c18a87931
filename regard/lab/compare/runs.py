"""A plan and a folder in, a finished model folder for each of its runs out.

A run is trained as `regard train` trains it. What has finished is taken as it is, what was interrupted goes on where it
stopped, and the tokens are made by the first run alone: the others take them from its folder.
"""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from regard import config
from regard import folder as folders
from regard.data.vocabulary import Vocabulary
from regard.errors import DivergedError, FolderError, Interrupted, RegardError, UsageError
from regard.folder import write_file
from regard.lab.compare.plan import Plan, Run
from regard.training.home import begun, finished, read_start, tree_of
from regard.training.pace import about
from regard.training.run import Call, Given, resume, train
from regard.training.store import hashes, vocabulary_hash

FILE = "plan.json"  # what the runs were trained on

Say = Callable[[str], None]


def train_all(plan: Plan, folder: Path, quiet: bool, command: str, say: Say) -> Plan:
    """Leaves every run in a folder of its own, below `folder`; the plan of those that came to an end."""
    remember(plan, folder)
    waiting = [run for run in plan.runs if not is_done(folder / run.name, run)]  # what does not fit is refused at once
    taken = len(plan.runs) - len(waiting)
    if taken:
        say(f"{taken} of {len(plan.runs)} runs have finished already, and are taken as they are")
    spent: list[float] = []
    lost: dict[str, str] = {}
    for number, run in enumerate(waiting):
        end = ending(len(waiting) - number, spent, run.config.train.minutes)
        say(f"run {taken + number + 1} of {len(plan.runs)}: {run.preset}, seed {run.seed}{end}")
        began = time.monotonic()
        try:
            train_one(plan, run, folder, quiet, command)
        except Interrupted as error:
            raise Interrupted(f"{str(error).split(';')[0]} of {run.name}; the same command goes on with the comparison",
                              error.exit_code - 128) from None  # fmt: skip
        except DivergedError as error:
            lost[run.name] = f"{run.name} is left out of the comparison: {error}"
            say(f"warning: {lost[run.name]}")
            if len(lost) == len(plan.runs):
                raise
        spent.append(time.monotonic() - began)
    runs = tuple(run for run in plan.runs if run.name not in lost)
    presets = tuple(name for name in plan.asked.presets if any(run.preset == name for run in runs))
    left = replace(plan, runs=runs, asked=replace(plan.asked, presets=presets), lost=tuple(lost.values()))
    refuse_strangers(left, folder)
    return left


def train_one(plan: Plan, run: Run, folder: Path, quiet: bool, command: str) -> None:
    place = folder / run.name
    if begun(place):
        resume(place, quiet)
        return
    call, given = Call(quiet=quiet, command=command), Given(plan.why, tokens=vocabulary(plan, folder))
    train(run.config, plan.asked.data, plan.asked.valid, place, call, given)


def ending(runs: int, spent: list[float], minutes: float | None) -> str:
    """How long all that is left will take; before anything was timed, as long as the minutes allow."""
    if not spent and minutes is None:
        return ""
    each = sum(spent) / len(spent) if spent else 60.0 * (minutes or 0.0)
    now = datetime.now()
    end = now + timedelta(seconds=runs * each)
    day = "" if end.date() == now.date() else f"{end:%a} "
    most = "" if spent else "at most "
    return f"; all of them: {most}{about(runs * each)}, until {day}{end:%H:%M}"


# ── what stands there already ────────────────────────────────────────────────────────────────────────────────────────


def remember(plan: Plan, folder: Path) -> None:
    """Writes down what the runs are trained on; what stands there and was trained on something else is refused."""
    files = hashes(*(path for path in (plan.asked.data, plan.asked.valid) if path is not None))
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: expected a folder to write the runs into, found a file")
    known = tree_of(folder / FILE).get("files")
    if known is not None and known != list(files.values()):
        raise UsageError(f"{plan.asked.data}: not what the runs in {folder} were trained on; choose another -o")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tree = {"kind": "plan", "data": plan.asked.data, "valid": plan.asked.valid, "files": list(files.values())}
        write_file(folder / FILE, (json.dumps(tree, ensure_ascii=False, indent=1) + "\n").encode())
    except OSError as error:
        raise RegardError(f"{folder}: can not be written: {error.strerror}") from None


def is_done(place: Path, run: Run) -> bool:
    """Whether this very run has finished there; another one is refused."""
    if not begun(place):
        return False
    has, wants = (config.flat(config.to_tree(c)) for c in (folders.read_config(place), run.config))
    if other := config.differences(has, wants):
        raise UsageError(f"{place}: holds a run with {other}; choose another -o, or ask for the same")
    return finished(place)


def vocabulary(plan: Plan, folder: Path) -> Vocabulary | None:
    """The tokens of the first run that has made any."""
    made = [folder / run.name for run in plan.runs if begun(folder / run.name)]
    return folders.read_vocabulary(made[0]) if made else None


def refuse_strangers(plan: Plan, folder: Path) -> None:
    """All have the same tokens and, where examples do not depend on the model, the same examples on the same side."""
    first = folder / plan.runs[0].name
    for run in plan.runs[1:]:
        place = folder / run.name
        same = vocabulary_hash(folders.read_vocabulary(place)) == vocabulary_hash(folders.read_vocabulary(first))
        if not same:
            raise FolderError(f"{place}: has other tokens than {first}; the two can not be compared")
        if run.config.task != "generate" and read_start(place).data_hash != read_start(first).data_hash:
            raise FolderError(f"{place}: was trained on other examples than {first}; the two can not be compared")
