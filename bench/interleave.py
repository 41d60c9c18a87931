"""Systems in, slices of their training out: round after round each trains a while and the others wait."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.peers import environments, gate
from bench.peers.environments import ROOT, NotInstalled
from bench.peers.gate import Job


@dataclass(frozen=True)
class System:
    """One row of the table, and how its process is started."""

    name: str
    module: str
    peer: str | None = None  # whose environment it needs; none = our own
    precision: str = "fp32"
    share: float = 1.0  # of the seconds of a slice
    beside: str = ""  # only where a system before it computes in these numbers


@dataclass(frozen=True)
class Order:
    """A slice lasts for so many updates and so many seconds at least."""

    updates: int
    seconds: float


@dataclass(frozen=True)
class Slice:
    """What one system did in one round."""

    seconds: float
    cpu: float
    updates: int
    target: int
    source: int
    places: int
    peak: float  # megabytes, since training began

    @property
    def rate(self) -> float:
        """Target tokens a second."""
        return self.target / self.seconds


@dataclass
class Measured:
    """All that is known of one system: facts it told of itself, a slice for each round, or why there is none."""

    system: System
    facts: dict[str, Any] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)
    failed: str = ""


class Lost(Exception):
    """A worker ended before it was told to; the message is the last it said."""


class Process:
    """A system in a process of its own: one line of JSON asks, one line answers, and meanwhile it waits."""

    def __init__(self, python: str, words: Sequence[str], threads: int, log: Path) -> None:
        self.log = log
        count = str(threads)
        self.process = subprocess.Popen(
            [python, "-m", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log.open("w"),
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count},
            text=True,
        )
        self.facts = self.answer()["ready"]

    def ask(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            said = [each.strip() for each in self.log.read_text(encoding="utf-8").splitlines() if each.strip()]
            raise Lost(said[-1] if said else f"exit code {self.process.returncode} without a word")
        found: dict[str, Any] = json.loads(line)
        return found

    def end(self) -> None:
        """An empty order, and it is gone."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


class Worker(Process):
    """The process of one system, ready to train."""

    def __init__(self, system: System, job: Job) -> None:
        python = sys.executable if system.peer is None else str(environments.interpreter(system.peer))
        log = Path(job.folder) / f"{system.module}-{job.size}-{system.precision}.log"
        super().__init__(python, [f"bench.peers.{system.module}", gate.argument(job)], job.threads, log)

    def train(self, order: Order) -> Slice:
        return Slice(**self.ask(vars(order)))


def measure(systems: Sequence[System], job: Job, rounds: int, warm_up: Order, order: Order) -> list[Measured]:
    """Every system started and warmed up, then `rounds` times one slice of each, beginning with another each time."""
    found: list[Measured] = []
    workers: dict[int, Worker] = {}
    try:
        for system in systems:
            if not system.beside or system.beside in [one.facts.get("precision") for one in found]:
                found.append(Measured(system))
                start(found[-1], len(found) - 1, workers, job, warm_up)
        for turn in range(rounds):
            for number in turned(list(workers), turn):
                step(found[number], number, workers, order)
    finally:
        for worker in workers.values():
            worker.end()
    return found


def start(one: Measured, number: int, workers: dict[int, Worker], job: Job, warm_up: Order) -> None:
    try:
        worker = Worker(one.system, Job(**{**vars(job), "precision": one.system.precision}))
        worker.train(warm_up)
    except (NotInstalled, Lost, BrokenPipeError) as error:
        one.failed = f"{'not installed' if isinstance(error, NotInstalled) else 'failed'}: {error}"
        tell(one, one.failed)
        return
    one.facts, workers[number] = worker.facts, worker


def step(one: Measured, number: int, workers: dict[int, Worker], order: Order) -> None:
    try:
        own = Order(order.updates, one.system.share * order.seconds)
        one.slices.append(workers[number].train(own))
        tell(one, f"{one.slices[-1].rate:,.0f} a second")
    except (Lost, BrokenPipeError) as error:
        one.failed = f"failed: {error}"
        del workers[number]
        tell(one, one.failed)


def turned(numbers: list[int], turn: int) -> Iterator[int]:
    """The same numbers, beginning with another: who comes first meets another machine than who comes last."""
    at = turn % max(1, len(numbers))
    yield from numbers[at:] + numbers[:at]


def tell(one: Measured, what: str) -> None:
    print(f"{one.system.name}: {what}", file=sys.stderr, flush=True)
