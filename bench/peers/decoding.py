"""Orders on stdin in, texts and seconds on stdout out: how one worker decodes the lines of a file and waits.

The folder of the job holds `lines.txt` (a source a line), `hf/` and `ctranslate2/` (the model as `regard port out`
wrote it); regard itself reads the model folder. Text goes in and text comes out, so cutting into tokens counts for all.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.peers import gate


@dataclass(frozen=True)
class Job:
    """Which model a worker decodes with, and how; its only argument."""

    folder: str
    model: str  # regard's own folder
    precision: str = "fp32"
    workers: int = 1  # × threads, for engines that know both
    threads: int = 1


@dataclass(frozen=True)
class Order:
    """How the first `count` lines are to be decoded."""

    beam: int
    batch: int  # lines side by side; 1 = a line at a time, each waited for
    count: int
    longest: int  # tokens of an output, the end not counted


@dataclass(frozen=True)
class Decoded:
    """What came out, and how long it took."""

    texts: list[str]
    seconds: float
    cpu: float


Decode = Callable[[Sequence[str], Order], list[str]]  # one text for each line


def serve(load: Callable[[Job], tuple[Decode, dict[str, Any]]]) -> None:
    """Loads, says so, and decodes as often as it is asked to."""
    answers = gate.own_stdout()
    job = Job(**json.loads(sys.argv[1]))
    started = time.perf_counter()
    decode, facts = load(job)
    lines = (Path(job.folder) / "lines.txt").read_text(encoding="utf-8").split("\n")[:-1]
    ready: dict[str, Any] = {"ready": facts | {"loading": time.perf_counter() - started}}
    print(json.dumps(ready), file=answers, flush=True)
    for line in sys.stdin:
        found = decoded(decode, lines, Order(**json.loads(line)))
        print(json.dumps(asdict(found)), file=answers, flush=True)


def decoded(decode: Decode, lines: Sequence[str], order: Order) -> Decoded:
    """One order: many lines in one call, or a call for each line."""
    chosen = lines[: order.count]
    started, started_cpu = time.perf_counter(), time.process_time()
    parts = [chosen] if order.batch > 1 else [[line] for line in chosen]
    texts = [text for part in parts for text in decode(part, order)]
    return Decoded(texts, time.perf_counter() - started, time.process_time() - started_cpu)


def by_length(lines: Sequence[str], size: int) -> Iterator[list[int]]:
    """Line numbers, `size` at a time, similar lengths together: for systems that do not sort by themselves."""
    order = sorted(range(len(lines)), key=lambda number: len(lines[number].split()))
    yield from (order[start : start + size] for start in range(0, len(order), size))
