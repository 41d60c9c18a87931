"""Which weights of a run to take: the best single checkpoint, the last, or the mean of the last five.

    python -m bench.weights cmudict-1000 snips-1000 --seeds 3
    python -m bench.weights forms-1000 --set embedding.dropout=0.3
    python -m bench.weights --table        the table of bench/README.md from the lines of bench/weights.csv

A run is one of `bench.zero` on a cell of the study: nothing is said but minutes of one processor's time, a seed and
one thread, and what `--set` adds. All three are judged by the study's 1,000 examples, which no run has seen, so the
same lines tell what a setting is worth where all others are those of the rules.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import regard
from bench import lines, study
from bench.page import put
from regard.folder import Weights
from regard.models.model import Model
from regard.training import loop
from regard.training.keep import Best, restore, snapshot
from regard.training.prepare import Prepared

HERE = Path(__file__).resolve().parent
LINES = HERE / "weights.csv"
MINUTES = 5.0


@dataclass(frozen=True)
class Line:
    """One run, and what each choice of its weights reaches."""

    cell: str
    seed: int
    more: str  # settings beside those of the rules
    metric: str
    steps: int
    best: float
    last: float
    mean: float
    taken: str  # by the run itself, as it then was: best or mean


@dataclass
class Seen:
    """What a run had in hand when it came to choose."""

    best: Best | None = None
    last: Weights | None = None
    mean: Weights | None = None
    averaged: bool = False


def watch(seen: Seen) -> None:
    """From now on a run leaves here what it chooses from."""
    choose = loop.try_mean

    def try_mean(data: Prepared, model: Model, crew: loop.Crew, step: int) -> bool:
        seen.best, seen.last, seen.mean = crew.keep.best, snapshot(model), crew.keep.mean()
        seen.averaged = choose(data, model, crew, step)
        return seen.averaged

    setattr(loop, "try_mean", try_mean)  # noqa: B010


def measure(cell: str, seed: int, more: Sequence[str], data: Path) -> Line:
    """Trains in this process, and judges each of the three."""
    study.count_work()
    seen, metric = Seen(), study.SOURCES[cell.partition("-")[0]].metric
    watch(seen)
    with tempfile.TemporaryDirectory() as place:
        train, test = study.cut(cell, data, Path(place))
        said = [f"train.seed={seed}", f"train.minutes={MINUTES}", "train.threads=1", *more]
        model = regard.train(train, out=Path(place) / "model", settings=said, task="transduce")
        log = [json.loads(line) for line in (Path(place) / "model" / "metrics.jsonl").read_text().splitlines()]
        items, examples = model.examples(test)

        def score(weights: Weights) -> float:
            restore(model.model, weights)
            return round(model.judge(items, examples).metrics[metric].value, 2)

        assert seen.best is not None
        assert seen.last is not None
        assert seen.mean is not None
        return Line(cell, seed, " ".join(more), metric, log[-1]["step"], score(seen.best.weights), score(seen.last),
                    score(seen.mean), "mean" if seen.averaged else "best")  # fmt: skip


def table(found: Sequence[Line]) -> list[str]:
    """A line for each cell and setting, means over the seeds; below it, what the mean brings on average."""
    rows = ["| data | settings | seeds | best single | last | mean of the last 5 |", "|---|---|--:|--:|--:|--:|"]
    for cell, more in sorted({(each.cell, each.more) for each in found}):
        own = [each for each in found if (each.cell, each.more) == (cell, more)]
        told = " | ".join(f"{sum(values) / len(own):.1f}" for values in
                          zip(*((each.best, each.last, each.mean) for each in own), strict=True))  # fmt: skip
        rows.append(f"| {cell} | {more or '–'} | {len(own)} | {told} |")
    if not found:
        return rows
    gains = [each.mean - each.best for each in found]
    told = f"{len(gains)} runs: {sum(gains) / len(gains):+.2f} on average, from {min(gains):+.1f} to {max(gains):+.1f}"
    return [*rows, "", f"The mean against the best single one, {told}. {MINUTES:g} minutes of one processor at most, "
            "one thread. Made by `python -m bench.weights`."]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", nargs="*")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="a.b=c")
    parser.add_argument("--data", type=Path, default=study.DATA)
    parser.add_argument("--one", type=int, help="this seed of one cell, in this process, by its work")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    if asked.one is not None:
        lines.append(LINES, measure(asked.cells[0], asked.one, asked.set, asked.data))
        return
    for cell, seed in ((cell, seed) for cell in asked.cells for seed in range(asked.seeds)):
        more = [word for each in asked.set for word in ("--set", each)]
        command = [sys.executable, "-m", "bench.weights", cell, "--one", str(seed), "--data", str(asked.data), *more]
        if code := subprocess.run(command, check=False).returncode:
            print(f"{cell}, seed {seed}: ended with {code}; no line is written", flush=True)
    put(HERE / "README.md", "weights", "\n".join(table(lines.read(LINES, Line))))


if __name__ == "__main__":
    main()
