"""Runs that are killed again and again in, what differs from the runs that were not out: nothing, or it is told.

    python -m tests.drills.kill                          25 kills of each of three models
    python -m tests.drills.kill --presets rnn --kills 8 --seed 7 --spawn 8

The moments are drawn from the seed, uniformly over the time that the unbroken run took, the reading of the data and the
last scoring included; eight of the 25 die at a named place inside a save instead. After each kill the run is resumed
with `regard resume`. Most lives are forked from one process that has imported torch; `--spawn` of them are not.
"""

import argparse
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from regard.folder import Shapes
from regard.training.home import finished
from tests.drills.lives import BEGUN, SAVING, STEP, Life, Watch, kill_at
from tests.drills.runs import (
    FOLDER,
    PRESETS,
    Recipe,
    Timeline,
    broken_checkpoints,
    checkpoint_steps,
    differences,
    next_words,
    recipe,
    shapes,
    started_anew,
    temporaries,
    unbroken,
)
from tests.drills.table import table

BOUNDARIES = ("temp opened", "half written", "before fsync", "before rename", "after rename", "during rotation")
OF_EACH_FILE = BOUNDARIES[:3]  # passed for each of at least four files of a checkpoint, the others once
INSIDE = 0.32  # of the kills, at a named place in a save
EARLY = 0.7  # of the run: until then there is surely another save to die in
LATEST = 0.98  # of the run: a machine is never quite as fast twice


@dataclass(frozen=True)
class Kill:
    """One death: at a named place of the next save, or some seconds after a step has been done."""

    step: int = 0
    delay: float = 0.0
    boundary: str = ""
    number: int = 1  # how often the place is passed before
    spawn: bool = False


@dataclass
class Found:
    """What came of the kills of one preset."""

    preset: str
    kills: int = 0
    named: Counter[str] = field(default_factory=Counter)
    chance: int = 0  # of the others, how many hit a save that was being written
    early: int = 0  # before the first checkpoint
    late: int = 0  # after the last step
    spawned: int = 0
    runs: int = 0
    again: int = 0  # steps, at most
    meanwhile: int = 0  # … where the kill hit a save: so many more had been done while it was being written
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0


def plan(draw: random.Random, kills: int, spawn: int, timeline: Timeline) -> list[Kill]:
    """Moments in the order in which the run comes by; so many lives, however far each of them comes."""
    inside = max(1, round(INSIDE * kills))
    named = [BOUNDARIES[i % len(BOUNDARIES)] for i in range(inside)]
    draw.shuffle(named)
    shares = sorted(draw.uniform(0, EARLY if i < inside else LATEST) for i in range(kills))
    early = [i for i, share in enumerate(shares) if share < EARLY]
    places = dict(zip(sorted(draw.sample(early, inside)), named, strict=True))
    anew = set(draw.sample(range(kills), min(spawn, kills)))
    return [made(draw, timeline, share, places.get(i, ""), i in anew) for i, share in enumerate(shares)]


def made(draw: random.Random, timeline: Timeline, share: float, boundary: str, spawn: bool) -> Kill:
    step, delay = timeline.moment(share)
    number = draw.randint(1, 4) if boundary in OF_EACH_FILE else 1
    return Kill(step, delay, boundary, number, spawn)


# ── one run ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Drill:
    """A run in a folder of its own, with all that is looked at after each of its deaths."""

    def __init__(self, r: Recipe, place: Path, expected: Shapes, found: Found) -> None:
        self.recipe, self.place, self.expected, self.found = r, place, expected, found
        self.folder = place / FOLDER
        self.reached = 0  # by the last life that did any step
        self.saving = False  # whether a save was under way when it died
        self.saved = False  # whether there ever was a checkpoint
        self.anew = False  # whether it has to be begun again, having died before it was laid out
        place.mkdir(parents=True)

    def live(self, kill: Kill | None) -> bool:
        """One life; whether it was killed, rather than coming to its end before."""
        words = self.recipe.train if self.anew else next_words(self.recipe, self.place)
        life = Life(self.place, words, environment(kill), bool(kill and kill.spawn))
        if kill is not None and not kill.boundary and life.until(lambda watch: watch[STEP] >= kill.step):
            life.until(self.moment(kill))
            life.send(signal.SIGKILL)
        end = life.end()
        self.look(life)
        if kill is not None and end.code == -signal.SIGKILL:
            self.count(kill, life)
            return True
        self.anew = started_anew(end) and not self.saved
        if end.code != 0 and not self.anew:
            raise AssertionError(f"{self.recipe.preset}: exit code {end.code}: {end.said[-500:]}")
        return False

    def moment(self, kill: Kill) -> Callable[[Watch], bool]:
        """The delay has passed; or this life is so much quicker than the unbroken run that it would get away."""
        until, written = time.monotonic() + kill.delay, self.folder / "model.safetensors"
        return lambda watch: time.monotonic() >= until or watch[STEP] > kill.step + 1 or written.exists()

    def count(self, kill: Kill, life: Life) -> None:
        self.found.kills += 1
        self.found.spawned += kill.spawn
        self.found.named[kill.boundary] += bool(kill.boundary)
        self.found.chance += self.saving and not kill.boundary
        self.found.early += not self.saved
        self.found.late += life.watch[STEP] >= self.recipe.steps

    def look(self, life: Life) -> None:
        """At what the life has done again, and at what it has left on the disk."""
        begun, wrong = life.watch[BEGUN], self.found.wrong
        if begun >= 0:
            self.look_at_steps(self.reached - begun)
            wrong += [f"left over: {name}" for name in temporaries(self.folder, life.began)]
            self.reached, self.saving = life.watch[STEP], bool(life.watch[SAVING])
        steps = checkpoint_steps(self.folder)
        if self.saved and not steps:
            wrong.append(f"no checkpoint on the disk after step {self.reached}")
        self.saved = self.saved or bool(steps)
        wrong += broken_checkpoints(self.folder, self.expected)

    def look_at_steps(self, again: int) -> None:
        """At most one interval; and where a save was being written, those that were done meanwhile: the next save waits
        for the one before, so at most another interval, on a disk that takes as long as that."""
        more = max(0, again - self.recipe.save)
        self.found.again = max(self.found.again, again - more)
        self.found.meanwhile = max(self.found.meanwhile, more)
        if more > (self.recipe.save if self.saving else 0):
            self.found.wrong.append(f"{again} steps done again")


def environment(kill: Kill | None) -> dict[str, str]:
    return kill_at(kill.boundary, kill.number) if kill and kill.boundary else {}


def drill(r: Recipe, place: Path, left: list[Kill]) -> Found:
    """All these kills, in one run; if it comes to its end before all of them, in another one too."""
    found, reference = Found(r.preset), place / "unbroken" / FOLDER
    expected = shapes(reference)
    while left:
        run = Drill(r, place / f"run-{found.runs}", expected, found)
        found.runs += 1
        while not finished(run.folder):
            left = left[1:] if run.live(left[0] if left else None) else left
        found.wrong += differences(run.folder, reference)
    return found


# ── the figures ──────────────────────────────────────────────────────────────────────────────────────────────────────

AT_MOST = ("steps done again, at most", "… and more, done while a save was being written, at most")


def figures(f: Found) -> dict[str, int]:
    return {
        "kills": f.kills,
        "at a named place in a save": f.named.total(),
        **{f"… {each}": f.named[each] for each in BOUNDARIES},
        "in a save by chance": f.chance,
        "before the first checkpoint": f.early,
        "after the last step": f.late,
        "of processes started anew": f.spawned,
        "runs": f.runs,
        **dict(zip(AT_MOST, (f.again, f.meanwhile), strict=True)),
        "differences": len(f.wrong),
        "seconds": round(f.seconds),
    }


def report(found: Sequence[Found]) -> str:
    columns = [figures(each) for each in found]
    together = {name: (max if name in AT_MOST else sum)(each[name] for each in columns) for name in columns[0]}
    rows = [[name, *(each[name] for each in columns), together[name]] for name in together]
    return table(["", *(each.preset for each in found), "together"], rows)


def measure(presets: Sequence[str], kills: int, spawn: int, seed: int, steps: int = 120) -> list[Found]:
    found = []
    for preset in presets:
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as name:
            place = Path(name)
            r = recipe(preset, place, steps)
            timeline = unbroken(r, place / "unbroken")
            each = drill(r, place, plan(random.Random(f"{seed} {preset}"), kills, spawn, timeline))
        each.seconds = time.monotonic() - started
        found.append(each)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", default=",".join(PRESETS))
    parser.add_argument("--kills", type=int, default=25, help="of each preset")
    parser.add_argument("--spawn", type=int, default=3, help="of them, so many are of processes started anew")
    parser.add_argument("--seed", type=int, default=0)
    words = parser.parse_args()
    found = measure(words.presets.split(","), words.kills, words.spawn, words.seed)
    print(report(found))
    wrong = [f"{each.preset}: {line}" for each in found for line in each.wrong]
    print("\n".join(wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
