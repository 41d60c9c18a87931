"""A command in, a process out that can be watched from outside: each life of a run, from its start to whatever ends it.

A process is forked from this one, which has imported torch and computes on one thread, and runs `regard.cli.main` as a
new one would; or it is a new one, where that is wished. Either way it tells where it is through a few numbers in a file
that both have mapped, and does nothing else than it would do unwatched.
"""

import mmap
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import matplotlib.figure  # noqa: F401 (these two take their seconds here once, instead of in all that are forked)
import torch._dynamo  # noqa: F401

from regard import cli
from regard.tasks.transduce import Transduce
from regard.training import checkpoint, run
from regard.training.checkpoint import KILL_AT, Checkpoints

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 300.0  # seconds; a life that lasts longer hangs, even on a machine with much else to do
WATCH = "REGARD_DRILL_WATCH"  # for a new process: where the mapped file is
HOLD = "REGARD_DRILL_HOLD"  # a step that takes half a minute

# What the mapped file holds; −1 = not known yet.
BEGUN, STEP, PHASE, SAVING = range(4)
NUMBERS = struct.Struct("<4q")
PHASES = ("start", "prepare", "step", "validation", "end")


class Watch:
    """The mapped numbers: from which step the life began, the last step done, what it is doing, whether it saves."""

    def __init__(self, path: Path, fresh: bool = False) -> None:
        if fresh:
            path.write_bytes(NUMBERS.pack(-1, -1, 0, 0))
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), NUMBERS.size)

    def __getitem__(self, place: int) -> int:
        return int(struct.unpack_from("<q", self.map, 8 * place)[0])

    def __setitem__(self, place: int, value: int) -> None:
        struct.pack_into("<q", self.map, 8 * place, value)

    @property
    def phase(self) -> str:
        return "save" if self[SAVING] else PHASES[self[PHASE]]


# ── inside a life ────────────────────────────────────────────────────────────────────────────────────────────────────


def watched(watch: Watch) -> None:
    """From here on this process says where it is. What it does is what it did before."""
    held = int(os.environ.get(HOLD, "-1"))

    def during(phase: str, sound: Callable[..., Any], after: str) -> Callable[..., Any]:
        @wraps(sound)
        def told(*words: Any, **named: Any) -> Any:
            watch[PHASE] = PHASES.index(phase)
            found = sound(*words, **named)
            watch[PHASE] = PHASES.index(after)
            return found

        return told

    def looping(data: Any, model: Any, crew: Any, begin: Any = None) -> Any:
        watch[BEGUN] = watch[STEP] = begin.standing.step if begin else 0
        watch[PHASE] = PHASES.index("step")
        found = sound_loop(data, model, crew, begin)
        watch[PHASE] = PHASES.index("end")
        return found

    def step(self: Any, number: int, *rest: Any) -> None:
        sound_step(self, number, *rest)
        watch[STEP] = number

    def saving(self: Any, number: int, make: Callable[[], Any]) -> None:
        def making() -> Any:
            watch[SAVING] = 1
            return make()

        sound_save(self, number, making)

    def writing(self: Any, *words: Any) -> None:
        sound_write(self, *words)
        watch[SAVING] = 0

    def loss(self: Any, *words: Any) -> Any:
        if watch[STEP] == held:
            time.sleep(30)
        return sound_loss(self, *words)

    sound_loop, sound_step, sound_loss = run.loop, run.Report.step, Transduce.loss
    sound_save, sound_write = Checkpoints.save, Checkpoints.write
    run.loop, run.Report.step, Checkpoints.save, Checkpoints.write = looping, step, saving, writing
    run.prepare = during("prepare", run.prepare, "start")
    loop_module = sys.modules[sound_loop.__module__]
    loop_module.validate = during("validation", loop_module.validate, "step")
    if held >= 0:
        Transduce.loss = loss


def live(words: list[str]) -> int:
    """The command in this process; gives its exit code."""
    sys.argv = ["regard", *words]
    try:
        cli.main()
    except SystemExit as ending:
        return int(ending.code or 0)
    return 0


def alone() -> None:
    """What a new process runs."""
    watched(Watch(Path(os.environ[WATCH])))
    sys.exit(live(sys.argv[1:]))


# ── outside ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class End:
    """How a life ended."""

    code: int  # the exit code; of a signal, its negative number
    seconds: float
    begun: int  # the step it began from; −1 = it never got so far
    step: int  # the last one that it did
    said: str  # on stdout and stderr


class Life:
    """One process, under way."""

    def __init__(self, place: Path, words: list[str], environment: dict[str, str], spawn: bool = False) -> None:
        self.place, self.began = place, time.time()
        self.watch = Watch(place / "watch", fresh=True)
        self.started = time.monotonic()
        self.pid = spawned(place, words, environment) if spawn else forked(place, words, environment)
        self.code: int | None = None

    def over(self) -> bool:
        if self.code is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if found else None
        return self.code is not None

    def until(self, reached: Callable[[Watch], bool]) -> bool:
        """Waits; false if the life was over before."""
        deadline = self.started + LONGEST
        while not self.over():
            if reached(self.watch):
                return True
            if time.monotonic() > deadline:
                self.send(signal.SIGKILL)
                raise AssertionError(f"regard hangs after {LONGEST} s: {self.said()[-300:]}")
            time.sleep(0.0005)
        return False

    def send(self, number: int) -> None:
        """Ours until `over` has seen its end, so that the number can mean no other process."""
        if self.code is None:
            os.kill(self.pid, number)

    def end(self) -> End:
        self.until(lambda _: False)
        assert self.code is not None
        took = time.monotonic() - self.started
        return End(self.code, took, self.watch[BEGUN], self.watch[STEP], self.said())

    def said(self) -> str:
        return (self.place / "said").read_text(encoding="utf-8", errors="replace")


def forked(place: Path, words: list[str], environment: dict[str, str]) -> int:
    assert threading.active_count() == 1, "a process with threads can not be forked safely"
    child = os.fork()
    if child:
        return child
    code = 97
    try:
        os.chdir(place)
        said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", 1, "utf-8", closefd=False) for number in (1, 2))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ.update(environment)
        checkpoint.passed.clear()
        watched(Watch(place / "watch"))
        code = live(words)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def spawned(place: Path, words: list[str], environment: dict[str, str]) -> int:
    code = "from tests.drills.lives import alone; alone()"
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    whole = {**os.environ, **environment, "PYTHONPATH": path, WATCH: str(place / "watch"), "OMP_NUM_THREADS": "1"}
    with open(place / "said", "wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", code, *words], cwd=place, env=whole, stdin=subprocess.DEVNULL, stdout=said,
            stderr=said
        )  # fmt: skip
    process.returncode = 0  # we wait for it ourselves
    return process.pid


def kill_at(boundary: str, number: int) -> dict[str, str]:
    return {KILL_AT: f"{boundary}:{number}"}
