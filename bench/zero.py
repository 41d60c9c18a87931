"""What `regard train FILE` reaches by itself: trains with nothing said but the minutes, judges the test file once.

    python -m bench.zero                    all rows and seeds that bench/zero.csv does not hold yet, then the tables
    python -m bench.zero cmudict            those of this row
    python -m bench.zero cmudict --again    this row, also what is there already
    python -m bench.zero --list
    python -m bench.zero --table            the tables of bench/README.md from the lines that are there

A line is written when its run has ended, so the command may be stopped at any time: the same command goes on with the
run that was stopped, from that run's beginning. Of a row with a validation file that file is not read: examples are
held out of the training file, as they are for whoever has one file. Rows that are named as cells of the study
(`cmudict-1000`) have its data, its judges and its minutes, which are those of one processor's time, with one thread in
a process of its own; they stand beside the best that the study found there.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import regard
from bench import lines, study
from bench.ceiling import ceiling
from bench.page import put
from regard.config import Config
from regard.data import builtin
from regard.score import corpus_scores
from regard.tasks.task import Evaluation

HERE = Path(__file__).resolve().parent
PAGE = HERE / "README.md"
LINES = HERE / "zero.csv"
CACHE = HERE / ".cache" / "zero"
BLEU = "BLEU, tokenised"  # of texts that are tokens already
ERROR = "word error"  # of words, each of which may have several pronunciations


@dataclass(frozen=True)
class Row:
    """Data, minutes if any are said, the measure, and what others reached."""

    name: str
    train: str  # a path below the data folder, or a built-in task
    test: str
    measure: str
    others: str
    aim: str
    minutes: float | None = None
    seeds: int = 1


ROWS = (
    Row("multi30k", "multi30k-en-de/train.tsv", "multi30k-en-de/test2016.tsv", BLEU, "41.0", "≥ 40 in 45 minutes", 45),
    Row("cmudict", "cmudict/train.tsv", "cmudict/test.tsv", ERROR, "20.6", "≤ 22 in 60 minutes", 60),
    Row("scan-simple", "scan/simple-train.tsv", "scan/simple-test.tsv", "exact", "99.8", "≥ 99.8", seeds=3),
    Row("scan-length", "scan/length-train.tsv", "scan/length-test.tsv", "exact", "13.8", "stated", seeds=3),
    Row("dates", "dates:en", "dates:en", "exact", "–", "≥ 99.8", seeds=3),
    Row("locales", "dates:all", "dates:all", "exact", "–", "stated"),
)
SUBSETS = tuple(f"{name}-{size}" for name in ("cmudict", "multi30k", "locales") for size in (1000, 5000))
MINUTES = 5.0  # of the subsets, as in the study
SEEDS = 3  # of each subset
SEARCHED = 8  # configurations at least, whose best is worth being compared with
COUNTS = {"train": 20_000, "test": 5_000}  # dates


@dataclass(frozen=True)
class Figure:
    """One run, and what it reached."""

    row: str
    seed: int
    measure: str
    value: float
    low: float | None
    high: float | None
    ceiling: float | None
    examples: int
    minutes: float
    preset: str
    parameters: int
    torch: str


# ── measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────


def measure(name: str, seed: int, data: Path) -> Figure:
    """Trains with nothing said but minutes and a seed, of a cell of the study one thread too, and judges once."""
    row = next((each for each in ROWS if each.name == name), None)
    out, begun = CACHE / f"{name}-{seed}", time.monotonic()
    out.parent.mkdir(parents=True, exist_ok=True)
    if row is None:
        measured, minutes = study.SOURCES[name.partition("-")[0]].metric, MINUTES
        train, test = study.cut(name, data, made(out))
    else:
        measured, minutes = row.measure, row.minutes
        train, test = (place(path, part, data, out) for path, part in ((row.train, "train"), (row.test, "test")))
    said = [f"train.seed={seed}", *([f"train.minutes={minutes}"] if minutes else [])]
    said += [] if row else ["train.threads=1"]
    model = regard.train(train, out=out, settings=said, force=True, quiet=False)
    spent = (time.monotonic() - begun) / 60
    value, low, high, count = judged(measured, model.score(test), test)
    top = ceiling(pairs(test), "all") if name == "locales" else None
    return Figure(name, seed, measured, value, low, high, top, count, round(spent, 1), told(model.config),
                  model.model.size, version("torch"))  # fmt: skip


def made(out: Path) -> Path:
    """A folder for the files of a row, beside its model."""
    folder = out.with_suffix(".data")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def place(path: str, part: str, data: Path, out: Path) -> Path:
    """A file as it lies there, or one of a built-in task."""
    if not path.startswith("dates:"):
        return data / path
    found = made(out) / f"{part}.tsv"
    builtin.write("dates", COUNTS[part], found, 0, part, path.partition(":")[2])
    return found


def pairs(path: Path) -> list[tuple[str, str]]:
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return [(left, right) for left, right in rows]


def judged(measured: str, found: Evaluation, test: Path) -> tuple[float, float | None, float | None, int]:
    """Value, interval and number of examples of what a row measures."""
    if measured == BLEU:
        targets = [[right] for _, right in pairs(test)]
        bleu = corpus_scores(found.outputs, targets, ["bleu"], tokenize="none")["bleu"]
        return bleu.value, bleu.low, bleu.high, len(targets)
    if measured == ERROR:
        right = found.metrics["any"]
        assert right.low is not None
        assert right.high is not None
        return 100 - right.value, 100 - right.high, 100 - right.low, int(found.tallies["any"].rows[:, 1].sum())
    metric = found.metrics[measured]
    return metric.value, metric.low, metric.high, len(found.outputs)


def told(c: Config) -> str:
    """What was chosen, in short."""
    kinds = dict.fromkeys((c.tokens.source, c.tokens.target))
    layers, width = getattr(c.decoder, "layers", 0), getattr(c.decoder, "width", 0)
    return f"{c.preset} {layers} × {width}, {'/'.join(kinds)}{', copy' if c.copies else ''}"


# ── keeping and showing ──────────────────────────────────────────────────────────────────────────────────────────────


def table(found: Sequence[Figure]) -> list[str]:
    rows = ["| data | measure | others, tuned | to reach | measured (95 %) | ceiling | minutes | chosen |",
            "|---|---|--:|---|--:|--:|--:|---|"]  # fmt: skip
    for row in ROWS:
        for each in (each for each in found if each.row == row.name):
            rows.append(f"| {row.name}, seed {each.seed} | {each.measure} | {row.others} | {row.aim} | {shown(each)} | "
                        f"{'–' if each.ceiling is None else f'{each.ceiling:.1f}'} | {each.minutes:.0f} | "
                        f"{each.preset} |")  # fmt: skip
    return rows


def shown(each: Figure) -> str:
    return f"{each.value:.1f}" + ("" if each.low is None else f" ({each.low:.1f} – {each.high:.1f})")


def subsets(found: Sequence[Figure], known: Sequence[study.Trial]) -> list[str]:
    """Beside the best of the study's trials of the same data and minutes, where enough were searched."""
    rows = ["| data | measure | best of the searched | how many | nothing said: mean over the seeds | of the best | "
            "to reach | chosen |", "|---|---|--:|--:|--:|--:|---|---|"]  # fmt: skip
    for name in SUBSETS:
        own, tried = [each for each in found if each.row == name], searched(name, known)
        if not own or len(tried) < SEARCHED:
            continue
        best, mean = max(tried.values()), sum(each.value for each in own) / len(own)
        each_one = ", ".join(f"{each.value:.1f}" for each in own)
        rows.append(f"| {name} | {own[0].measure} | {best:.1f} | {len(tried)} | {mean:.1f} ({each_one}) | "
                    f"{100 * mean / best:.1f} % | ≥ 95 % | {own[0].preset} |")  # fmt: skip
    return [*rows, *missing(found, known)]


def searched(name: str, known: Sequence[study.Trial]) -> dict[tuple[object, ...], float]:
    """The configurations that the study has tried on a subset, and the best score of each."""
    found: dict[tuple[object, ...], float] = {}
    for each in known:
        if each.cell == name and each.minutes <= MINUTES:
            chosen = tuple(each.chosen.values())
            found[chosen] = max(each.score, found.get(chosen, each.score))
    return found


def missing(found: Sequence[Figure], known: Sequence[study.Trial]) -> list[str]:
    """What has to be run before the table is whole."""
    trials = {name: SEARCHED - len(searched(name, known)) for name in SUBSETS}
    runs = {name: SEEDS - sum(each.row == name for each in found) for name in SUBSETS}
    told = []
    for counts, what in (
        (trials, f"of {SEARCHED} configurations searched in {MINUTES:g} minutes each, without which a row is left out"),
        (runs, f"of {SEEDS} seeds with nothing said"),
    ):
        if lacking := [f"{name} {count}" for name, count in counts.items() if count > 0]:
            told += ["", f"Still missing, {what}: {', '.join(lacking)}."]
    return told


def keep(figure: Figure) -> None:
    """In the file, in the place of an older one of the same row and seed."""
    print(f"{figure.row}, seed {figure.seed}: {figure.measure} {shown(figure)}, {figure.minutes} minutes", flush=True)
    same = (figure.row, figure.seed)
    lines.write(LINES, [*(each for each in lines.read(LINES, Figure) if (each.row, each.seed) != same), figure])


def go_on(wanted: Sequence[tuple[str, int]], data: Path, again: bool) -> None:
    """One run after the other, and a line for each."""
    for name, seed in wanted:
        there = any((each.row, each.seed) == (name, seed) for each in lines.read(LINES, Figure))
        if there and not again:
            continue
        if name in SUBSETS:
            alone(name, seed, data)
        else:
            keep(measure(name, seed, data))


def alone(name: str, seed: int, data: Path) -> None:
    """A run that is set beside the study's, as these are run: in a process of its own, which counts its work."""
    command = [sys.executable, "-m", "bench.zero", name, "--one", str(seed), "--data", str(data)]
    if code := subprocess.run(command, check=False).returncode:
        print(f"{name}, seed {seed}: ended with {code}; no line is written", flush=True)


def options(names: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--data", type=Path, default=study.DATA)
    parser.add_argument("--seeds", type=int, help="how many of each row; else what the row says")
    parser.add_argument("--again", action="store_true", help="what bench/zero.csv holds already, too")
    parser.add_argument("--one", type=int, help="this seed of one row, in this process, by its work")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    if unknown := set(asked.rows) - set(names):
        sys.exit(f"unknown rows: {', '.join(sorted(unknown))}; --list tells their names")
    if asked.one is not None and len(asked.rows) != 1:
        sys.exit(f"--one {asked.one}: expected one row before it, found {len(asked.rows)}")
    return asked


def main() -> None:
    names = {**{row.name: row.seeds for row in ROWS}, **dict.fromkeys(SUBSETS, SEEDS)}
    asked = options([*names])
    if asked.list:
        print("\n".join(names))
        return
    if asked.one is not None:
        study.count_work()
        keep(measure(asked.rows[0], asked.one, asked.data))
        return
    if not asked.table:
        wanted = [(name, seed) for name in asked.rows or names for seed in range(asked.seeds or names[name])]
        go_on(wanted, asked.data, asked.again)
    found = lines.read(LINES, Figure)
    put(PAGE, "zero", "\n".join(table(found)))
    put(PAGE, "zero subsets", "\n".join(subsets(found, lines.read(study.LINES, study.Trial))))


if __name__ == "__main__":
    main()
