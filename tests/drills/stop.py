"""Runs that are interrupted in, how they leave out: exit code, seconds until they are gone, steps lost, differences.

    python -m tests.drills.stop                          three rounds of three signals
    python -m tests.drills.stop --rounds 10 --seed 7

A round is one run for each of SIGTERM, SIGINT and SIGUSR1: interrupted while the data are read, in steps, while a
checkpoint is being written, in validations and in what follows the last step, a random moment after each has begun.
Each time it is resumed with `regard resume`, and at last compared with the unbroken run. The first interruption in a
step is of a process started anew, the others are forked. Then a Ctrl-C in a step of half a minute, and another one.
"""

import argparse
import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from regard.training.home import finished
from tests.drills.lives import HOLD, PHASE, PHASES, SAVING, STEP, End, Life, Watch
from tests.drills.runs import FOLDER, PRESETS, Recipe, checkpoint_steps, differences, next_words, recipe, unbroken
from tests.drills.table import table

CODES = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGUSR1: 138}
LONGEST = 10.0  # seconds to be gone in
SHOWN = ("prepare", "start", "step", "save", "validation", "end")


@dataclass(frozen=True)
class Stopped:
    """One interruption."""

    number: signal.Signals
    phase: str  # what was going on when the signal was sent
    seconds: float  # until the process was gone
    code: int
    spawned: bool


@dataclass
class Found:
    """What came of all interruptions."""

    stopped: list[Stopped] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)  # steps, at each resume
    runs: int = 0
    second: list[float] = field(default_factory=list)  # seconds from a second Ctrl-C to the end
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True)
class Wish:
    """When to interrupt: in which phase, not before some step, and how long after it has begun."""

    phase: str
    step: int
    delay: float

    def come(self, watch: Watch) -> bool:
        if self.phase in ("start", "prepare"):
            return watch[PHASE] == PHASES.index(self.phase)
        if watch[STEP] < self.step:
            return False
        return bool(watch[SAVING]) if self.phase == "save" else watch[PHASE] == PHASES.index(self.phase)


def wishes(draw: random.Random, r: Recipe) -> list[Wish]:
    """Preparing first, the end last; between them whatever comes, at steps that are drawn."""
    steps = sorted(draw.randrange(r.steps - r.validate) for _ in range(6))
    phases = ["step", "step", "save", "save", "validation", "validation"]
    draw.shuffle(phases)
    middle = [Wish(phase, step, draw.uniform(0, 0.03)) for phase, step in zip(phases, steps, strict=True)]
    return [Wish("prepare", 0, draw.uniform(0, 0.03)), *middle, Wish("end", r.steps, draw.uniform(0, 0.1))]


def broken(said: str) -> bool:
    return "Traceback" in said or "a defect of regard" in said


# ── one run ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Drill:
    """A run that is interrupted by one kind of signal until all wishes are fulfilled or it is over."""

    def __init__(self, r: Recipe, place: Path, number: signal.Signals, found: Found) -> None:
        self.recipe, self.place, self.number, self.found = r, place, number, found
        self.folder, self.reached = place / FOLDER, 0
        place.mkdir(parents=True)

    def live(self, wish: Wish | None, spawn: bool = False) -> None:
        life = Life(self.place, next_words(self.recipe, self.place), {}, spawn)
        if wish is None or not life.until(wish.come):
            self.over(life.end())
            return
        until = time.monotonic() + wish.delay
        life.until(lambda _: time.monotonic() >= until)
        phase, sent = life.watch.phase, time.monotonic()
        life.send(self.number)
        end = life.end()
        if end.code == 0:  # it was over before the signal came
            self.over(end)
            return
        self.found.stopped.append(Stopped(self.number, phase, time.monotonic() - sent, end.code, spawn))
        self.look(end, time.monotonic() - sent)

    def look(self, end: End, took: float) -> None:
        wrong = self.found.wrong
        if end.code != CODES[self.number] or f"interrupted by {self.number.name}" not in end.said:
            wrong.append(f"{self.number.name}: exit code {end.code}: {end.said[-300:]}")
        if took > LONGEST:
            wrong.append(f"{self.number.name}: {took:.1f} s until it was gone")
        if broken(end.said):
            wrong.append(f"{self.number.name}: {end.said[-500:]}")
        self.ended(end)
        saved = checkpoint_steps(self.folder)[-1:] or [0]
        if saved != [self.reached]:
            wrong.append(f"{self.number.name}: saved at step {saved[0]}, had done {self.reached}")

    def over(self, end: End) -> None:
        """It came to its end, as it should."""
        assert end.code == 0, f"{self.recipe.preset}: exit code {end.code}: {end.said[-500:]}"
        self.ended(end)

    def ended(self, end: End) -> None:
        if end.begun >= 0:
            self.found.lost.append(self.reached - end.begun)
            self.reached = end.step


def interrupt(
    r: Recipe, place: Path, reference: Path, number: signal.Signals, draw: random.Random, found: Found
) -> None:
    """One run, from its first interruption to its end."""
    drill, left = Drill(r, place, number, found), wishes(draw, r)
    anew = next(i for i, wish in enumerate(left) if wish.phase == "step")
    for i, wish in enumerate(left):
        if not finished(drill.folder):
            drill.live(wish, spawn=i == anew)
    if not finished(drill.folder):
        drill.live(None)
    found.runs += 1
    found.wrong += [f"{number.name}: {each}" for each in differences(drill.folder, reference)]


def insist(r: Recipe, place: Path, reference: Path, found: Found) -> None:
    """Ctrl-C in a step that takes half a minute: waits for it; once more: gone at once, and nothing is broken."""
    place.mkdir(parents=True)
    life = Life(place, r.train, {HOLD: "25"})
    assert life.until(lambda watch: watch[STEP] == 25)
    time.sleep(0.2)
    life.send(signal.SIGINT)
    time.sleep(0.5)
    if life.over():
        found.wrong.append("the first Ctrl-C did not wait for the step")
    sent = time.monotonic()
    life.send(signal.SIGINT)
    end = life.end()
    found.second.append(time.monotonic() - sent)
    if end.code != 130 or found.second[-1] > 2.0 or broken(end.said):
        found.wrong.append(f"second Ctrl-C: {found.second[-1]:.1f} s, exit code {end.code}: {end.said[-300:]}")
    end = Life(place, next_words(r, place), {}).end()
    found.wrong += [f"second Ctrl-C: {each}" for each in differences(place / FOLDER, reference)]


def measure(rounds: int, seed: int, presets: Sequence[str] = PRESETS, steps: int = 60) -> Found:
    """The presets take turns."""
    started, found = time.monotonic(), Found()
    for i in range(rounds):
        with tempfile.TemporaryDirectory() as name:
            place, draw = Path(name), random.Random(f"{seed} {i}")
            r = recipe(presets[i % len(presets)], place, steps)
            unbroken(r, place / "unbroken")
            for number in CODES:
                interrupt(r, place / number.name, place / "unbroken" / FOLDER, number, draw, found)
            insist(r, place / "insist", place / "unbroken" / FOLDER, found)
    found.seconds = time.monotonic() - started
    return found


# ── the figures ──────────────────────────────────────────────────────────────────────────────────────────────────────


def report(f: Found) -> str:
    rows = [line(number.name, [each for each in f.stopped if each.number == number]) for number in CODES]
    rows.append(line("together", f.stopped))
    head = ["signal", "interruptions", *SHOWN, "new processes", "exit codes", "seconds to exit: median", "longest"]
    summary = (f"{f.runs} runs to their end; steps lost at a resume, at most: {max(f.lost, default=0)}; differences: "
               f"{len(f.wrong)}; second Ctrl-C in a step of half a minute: gone after "
               f"{max(f.second, default=0.0):.2f} s at most; {round(f.seconds)} s")  # fmt: skip
    return "\n".join([table(head, rows), "", summary])


def line(name: str, stopped: Sequence[Stopped]) -> list[object]:
    phases = [sum(each.phase == phase for each in stopped) for phase in SHOWN]
    took = sorted(each.seconds for each in stopped) or [0.0]
    codes = ", ".join(str(code) for code in sorted({each.code for each in stopped}))
    return [name, len(stopped), *phases, sum(each.spawned for each in stopped), codes,
            f"{took[len(took) // 2]:.2f}", f"{took[-1]:.2f}"]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--presets", default=",".join(PRESETS))
    parser.add_argument("--seed", type=int, default=0)
    words = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # not so where a shell has put us into the background
    found = measure(words.rounds, words.seed, words.presets.split(","))
    print(report(found))
    print("\n".join(found.wrong))
    sys.exit(bool(found.wrong))


if __name__ == "__main__":
    main()
