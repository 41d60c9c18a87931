"""Orders on stdin in, measured slices on stdout out: how one worker trains a while, answers, and waits.

The gate stands inside the system's own training loop: `update` is called as each update begins, so the time between
two calls holds all that the system does for one update, its loading of data included. When a slice is over the call
does not return before the next order has come, and the process is idle meanwhile.
"""

import json
import os
import resource
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, TextIO

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Job:
    """What a worker is asked to train, as its only argument."""

    folder: str  # holds the corpus, and whatever the worker writes
    size: str
    threads: int
    tokens: int  # at most so many in a batch, padding included, of the longer side
    seed: int
    precision: str = "fp32"


@dataclass(frozen=True)
class Counts:
    """One batch: its tokens without padding, and the places they stand in."""

    target: int  # what is predicted, the end included
    source: int
    places: int  # of both sides, padding included


class Gate:
    """Lets a training loop through, slice after slice."""

    def __init__(self, orders: TextIO, answers: TextIO, facts: dict[str, Any]) -> None:
        self.orders, self.answers, self.facts = orders, answers, facts
        self.before: int | None = None  # memory held before the first update
        self.clear()

    def clear(self, order: dict[str, float] | None = None) -> None:
        self.order = order
        self.updates = self.target = self.source = self.places = 0
        self.started, self.started_cpu = time.perf_counter(), time.process_time()

    def update(self, counts: Counts) -> None:
        """An update begins with this batch, and the one before it is done."""
        if self.before is None:
            self.before = held()
            forget_peak()
            self.say({"ready": self.facts | {"before": self.before / MEGABYTE}})
            self.wait()
        elif self.over():
            self.say(self.measured())
            self.wait()
        self.updates += 1
        self.target += counts.target
        self.source += counts.source
        self.places += counts.places

    def over(self) -> bool:
        assert self.order is not None
        enough = self.updates >= self.order["updates"]
        return enough and time.perf_counter() - self.started >= self.order["seconds"]

    def measured(self) -> dict[str, float]:
        return {
            "seconds": time.perf_counter() - self.started,
            "cpu": time.process_time() - self.started_cpu,
            "updates": self.updates,
            "target": self.target,
            "source": self.source,
            "places": self.places,
            "peak": peak() / MEGABYTE,
        }

    def wait(self) -> None:
        """Until the next order; without one the process ends here, in the middle of the system's own loop."""
        line = self.orders.readline()
        if not line.strip():
            os._exit(0)  # nobody is interested in what the system would save or say at its end
        self.clear(json.loads(line))

    def say(self, answer: dict[str, Any]) -> None:
        self.answers.write(json.dumps(answer) + "\n")
        self.answers.flush()


def begin() -> tuple[Job, Gate]:
    """The job from the command line, and a gate; what the system prints goes to stderr from here on."""
    return Job(**json.loads(sys.argv[1])), Gate(sys.stdin, own_stdout(), {})


def own_stdout() -> TextIO:
    """Standard output for answers alone; whatever else is printed goes to stderr."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    sys.stdout.flush()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


def argument(job: Any) -> str:
    """The job as `begin` reads it."""
    return json.dumps(asdict(job))


def peak() -> int:
    """The most memory that this process held, in bytes.

    Asked of /proc first: what `getrusage` tells begins at what the parent held when it started this process.
    """
    with suppress(OSError), open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def held() -> int:
    """Memory held now, in bytes; where that can not be asked, the most it ever was."""
    with suppress(OSError), open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
    return peak()


def forget_peak() -> None:
    """Start-up may have needed more than training will; where it can not be forgotten, it counts."""
    with suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")
