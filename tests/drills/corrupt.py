"""Damaged files in, what regard says of them out: each is seen and named, or does no harm.

    python -m tests.drills.corrupt                       500 mutations
    python -m tests.drills.corrupt --count 2000 --seed 7

Every file of an unfinished run is damaged (both checkpoints, the store of tokens, what the run was started with, the
logs, the lock) and the run resumed; and every file of a finished model folder, which is then loaded. What a damage must
lead to is written down in `judge`: a refusal in a line that names the file; for the newest checkpoint a warning that
names it, and the one before is used; for a log a warning, and the run goes on. Where the run goes on without a word it
is trained to its end, and must end as the unbroken run did, to the bit; only the checkpoint before the newest, which
nobody has to read, is looked into instead, and must be refused.
"""

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from types import FrameType
from typing import Any

from regard import folder as folders
from regard.errors import RegardError
from regard.training import run
from regard.training.checkpoint import read
from regard.training.home import identity
from tests.drills.lives import Life, kill_at
from tests.drills.runs import FOLDER, Recipe, checkpoint_steps, differences, recipe, shapes, unbroken
from tests.drills.table import table

LIMIT = 5.0  # seconds, in which it must be known what is wrong
BLOCK = 64  # bytes zeroed, at most; and doubled
NEWEST, BEFORE, MODEL, RUN = "newest checkpoint", "the one before", "model folder", "unfinished run"


# ── damage ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def truncate(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randrange(len(content))] if content else content


def flip(content: bytes, draw: random.Random) -> bytes:
    """One to three bits."""
    changed = bytearray(content)
    for _ in range(draw.randint(1, 3) if content else 0):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def blank(content: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(content) + 1)
    size = min(draw.randint(1, BLOCK), len(content) - at)
    return content[:at] + bytes(size) + content[at + size :]


def double(content: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(content) + 1)
    return content[:at] + content[at : at + draw.randint(1, BLOCK)] + content[at:]


CHANGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "truncated": truncate, "bits flipped": flip, "zeroed": blank, "doubled": double,
}  # fmt: skip
KINDS = (*CHANGES, "swapped", "deleted")


@dataclass(frozen=True)
class Target:
    """One file that is damaged, by the part that it belongs to."""

    part: str
    name: str  # its path in the folder

    @property
    def shown(self) -> str:
        return f"{self.part}: {self.name.removeprefix('checkpoints/').split('/', self.name.count('step-'))[-1]}"


def damage(folder: Path, target: Target, kind: str, draw: random.Random) -> set[str]:
    """Changes the file, and gives the names of all that is changed: none, if the draw hit nothing."""
    path = folder / target.name
    before = path.read_bytes()
    if kind == "deleted":
        path.unlink()
        return {path.name}
    if kind == "swapped":
        other = draw.choice(partners(path))
        content = other.read_bytes()
        other.write_bytes(before)
        path.write_bytes(content)
        return {path.name, other.name} if content != before else set()
    path.write_bytes(CHANGES[kind](before, draw))
    return {path.name} if path.read_bytes() != before else set()


def partners(path: Path) -> list[Path]:
    """Files it may change places with: its neighbours, and of a checkpoint the same file of the other one."""
    near = [other for other in path.parent.iterdir() if other.is_file() and other != path and other.name != ".lock"]
    far = [folder / path.name for folder in path.parent.parent.glob("step-*") if folder != path.parent]
    return sorted([*near, *(other for other in far if other.is_file())])


# ── what is said ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Reached(RegardError):
    """The run would go on from here."""

    def __init__(self, step: int) -> None:
        super().__init__(f"step {step}")
        self.step = step


@dataclass(frozen=True)
class Answer:
    """What regard made of a damaged folder."""

    refused: str = ""  # the message
    warned: tuple[str, ...] = ()
    step: int = -1  # from which it goes on; of a model that is loaded, 0
    defect: str = ""  # anything that is not ours
    seconds: float = 0.0


def stop_there(data: Any, model: Any, crew: Any, begin: Any = None) -> None:
    raise Reached(begin.standing.step if begin else 0)


def resumed(folder: Path) -> int:
    """All that `resume` does before the loop."""
    sound, run.loop = run.loop, stop_there
    try:
        run.resume(folder, quiet=True)
    except Reached as reached:
        return reached.step
    finally:
        run.loop = sound
    return -1


def loaded(folder: Path) -> int:
    folders.load(folder)
    return 0


def ask(what: Callable[[Path], int], folder: Path) -> Answer:
    started = time.perf_counter()
    refused, defect, step = "", "", -1
    with warnings.catch_warnings(record=True) as told, limited(LIMIT):
        warnings.simplefilter("always")
        try:
            step = what(folder)
        except RegardError as error:
            refused = str(error)
        except Exception as error:
            defect = f"{type(error).__name__}: {error}"
    took = time.perf_counter() - started
    return Answer(refused, tuple(str(each.message) for each in told), step, defect, took)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Whatever runs in here is broken off when it hangs."""

    def late(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"not over after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# ── judgement ────────────────────────────────────────────────────────────────────────────────────────────────────────

SEEN, SAME = "seen", "no harm"


def named(message: str, changed: set[str]) -> bool:
    """One line says which file, and what is wrong with it. What a damaged manifest says wrongly of another file, or
    of its format, is named by the manifest."""
    line = message.split("\n")[0]
    return len(message.split("\n")) <= 3 and (any(name in line for name in changed)
                                              or ("manifest.json" in changed and ("manifest" in line or "format" in line
                                                                                  or "missing" in line)))  # fmt: skip


def judge(answer: Answer, target: Target, changed: set[str], steps: Sequence[int]) -> str:
    """`seen`, `no harm` (to be shown), or what is wrong."""
    if answer.defect or answer.seconds > LIMIT:
        return answer.defect or f"{answer.seconds:.1f} s"
    if answer.refused:
        return SEEN if named(answer.refused, changed) else f"does not name {changed}: {answer.refused}"
    if not answer.warned:
        return SAME
    if len(answer.warned) != 1 or not named(answer.warned[0], changed) or "\n" in answer.warned[0]:
        return f"does not name {changed} in one line: {answer.warned}"
    if target.part == NEWEST and (answer.step != steps[-2] or f"step {steps[-2]} is used" not in answer.warned[0]):
        return f"went on from {answer.step}: {answer.warned}"
    return SEEN


@dataclass
class Found:
    """What came of all mutations."""

    made: Counter[tuple[str, str]] = field(default_factory=Counter)
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    harmless: Counter[tuple[str, str]] = field(default_factory=Counter)
    slowest: Counter[str] = field(default_factory=Counter)  # milliseconds
    used: int = 0  # how often the checkpoint before was used and announced
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Drill:
    """An unfinished run and the finished one, as they should be; and a place where a copy of them is damaged."""

    def __init__(self, r: Recipe, place: Path) -> None:
        self.place, self.found = place, Found()
        if not (place / "unbroken").exists():
            unbroken(r, place / "unbroken")
        (place / "broken").mkdir()
        end = Life(place / "broken", r.train, kill_at("after rename", r.steps // r.save - 1)).end()
        assert end.code == -signal.SIGKILL, end.said
        self.whole = {MODEL: place / "unbroken" / FOLDER, RUN: place / "broken" / FOLDER}
        self.steps = checkpoint_steps(self.whole[RUN])
        self.parameters, self.shapes = parameters(self.whole[MODEL]), shapes(self.whole[MODEL])

    def targets(self) -> list[Target]:
        names = [f"checkpoints/step-{step:08}" for step in self.steps]
        found = [Target(MODEL, path.name) for path in self.whole[MODEL].iterdir() if path.is_file()]
        for path in (path for path in self.whole[RUN].rglob("*") if path.is_file()):
            name = path.relative_to(self.whole[RUN]).as_posix()
            part = NEWEST if name.startswith(names[-1]) else BEFORE if name.startswith(names[-2]) else RUN
            found.append(Target(part, name))
        return sorted(found, key=lambda target: (target.part, target.name))

    def mutate(self, target: Target, kind: str, draw: random.Random) -> None:
        """One mutation, judged; draws again where it changed nothing."""
        folder = self.place / "damaged" / FOLDER
        while True:
            shutil.rmtree(folder.parent, ignore_errors=True)
            shutil.copytree(self.whole[MODEL if target.part == MODEL else RUN], folder)
            if changed := damage(folder, target, kind, draw):
                break
        answer = ask(loaded if target.part == MODEL else resumed, folder)
        verdict = judge(answer, target, changed, self.steps)
        if verdict == SAME:
            verdict = self.show(folder, target, changed)
        self.count(target, kind, verdict, answer)

    def show(self, folder: Path, target: Target, changed: set[str]) -> str:
        """That a damage nobody speaks of does no harm, or is seen as soon as somebody looks; else what it does."""
        if target.part == MODEL:
            return SAME if parameters(folder) == self.parameters else f"another model after {changed}"
        if target.part == BEFORE:  # the newest is whole and is used; but it could be needed
            return judge(ask(self.look_before, folder), target, changed, self.steps)
        end = Life(folder.parent, ["resume", FOLDER], {}).end()
        if end.code:
            return f"exit code {end.code} after {changed}: {end.said[-300:]}"
        other = [each for each in differences(folder, self.whole[MODEL]) if each not in changed]
        return f"without a word, and then different: {other}" if other else SAME

    def look_before(self, folder: Path) -> int:
        read(folder / "checkpoints" / f"step-{self.steps[-2]:08}", identity(folder), self.shapes)
        return self.steps[-2]

    def count(self, target: Target, kind: str, verdict: str, answer: Answer) -> None:
        found, place = self.found, (target.shown, kind)
        found.made[place] += 1
        found.seen[place] += verdict == SEEN
        found.harmless[place] += verdict == SAME
        found.slowest[target.shown] = max(found.slowest[target.shown], round(1000 * answer.seconds))
        found.used += target.part == NEWEST and verdict == SEEN and not answer.refused
        if verdict not in (SEEN, SAME):
            found.wrong.append(f"{target.shown} {kind}: {verdict}")


def parameters(folder: Path) -> tuple[Any, ...]:
    """All that a loaded model is."""
    saved = folders.load(folder)
    weights = {name: weight.numpy().tobytes() for name, weight in saved.model.state_dict().items()}
    return weights, saved.config, json.dumps(saved.vocabulary.as_dict(), sort_keys=True)


def measure(count: int, seed: int, preset: str = "rnn-attention") -> Found:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        found = drill(recipe(preset, Path(name), steps=30), Path(name), count, seed)
    found.seconds = time.monotonic() - started
    return found


def drill(r: Recipe, place: Path, count: int, seed: int) -> Found:
    """So many mutations: each kind of each file in turn, in an order that is drawn; what is damaged is drawn too."""
    run, draw, left = Drill(r, place), random.Random(seed), list[tuple[Target, str]]()
    for _ in range(count):
        if not left:
            left = list(product(run.targets(), KINDS))
            draw.shuffle(left)
        run.mutate(*left.pop(), draw)
    return run.found


# ── the figures ──────────────────────────────────────────────────────────────────────────────────────────────────────


def report(f: Found) -> str:
    """Of each file and kind: how many were made, and of them how many did no harm and needed no word."""
    names = sorted({name for name, _ in f.made})
    rows = [[name, *(cell(f, [(name, kind)]) for kind in KINDS), cell(f, list(product([name], KINDS))),
             f.slowest[name]] for name in names]  # fmt: skip
    last = ["together", *(cell(f, list(product(names, [kind]))) for kind in KINDS), cell(f, list(f.made)),
            max(f.slowest.values())]  # fmt: skip
    summary = (f"{f.made.total()} mutations: {f.seen.total()} seen and named ({f.used} times the checkpoint before was "
               f"used and announced), {f.harmless.total()} did no harm, {len(f.wrong)} otherwise; "
               f"{round(f.seconds)} s")  # fmt: skip
    return "\n".join([table(["file", *KINDS, "all", "slowest, ms"], [*rows, last]), "", summary])


def cell(f: Found, places: Sequence[tuple[str, str]]) -> str:
    """`seen` or `seen + no harm`, and what is neither."""
    made, seen, harmless = (sum(counter[place] for place in places) for counter in (f.made, f.seen, f.harmless))
    text = f"{seen} + {harmless}" if harmless else str(seen)
    return text if made == seen + harmless else f"{text} of {made}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--preset", default="rnn-attention")
    parser.add_argument("--seed", type=int, default=0)
    words = parser.parse_args()
    found = measure(words.count, words.seed, words.preset)
    print(report(found))
    print("\n".join(found.wrong))
    sys.exit(bool(found.wrong))


if __name__ == "__main__":
    main()
