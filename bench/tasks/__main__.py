"""Every task on public data: trains by the config beside this file, judges the test file once, keeps the figure.

    python -m bench.tasks                     all rows that bench/tasks.csv does not hold yet, and then the table
    python -m bench.tasks ewt names           these rows, again if they are there
    python -m bench.tasks --list
    python -m bench.tasks ewt --set train.seed=1 --valid       judged on validation data alone; nothing is kept
    python -m bench.tasks ewt --trained       the model that the last run of this row left, now judged on the test file

Settings are chosen on validation data; the test file is read when a row is measured, never before. A model stays in
bench/.cache/tasks/ROW and is trained anew when its row is asked for by name.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import regard
from bench import lines
from bench.page import put
from regard import config
from regard.errors import RegardError
from regard.tasks.task import Evaluation
from regard.trained import Trained
from regard.training.run import Call, train

HERE = Path(__file__).resolve().parent
PAGE = HERE.with_name("README.md")
LINES = HERE.with_name("tasks.csv")
CACHE = HERE.parent / ".cache" / "tasks"
DATA = HERE.parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Row:
    """One line of the table: which files, what is measured, what others reached and what was to be reached."""

    name: str
    train: str
    valid: str | None
    test: str | None  # none = the held-out part is what is judged
    metrics: tuple[str, ...]
    others: str
    aim: str
    config: str = ""  # none = the row's name
    script: str = ""  # a command of its own that measures it


@dataclass(frozen=True)
class Figure:
    """What was measured."""

    row: str
    metric: str
    value: float
    low: float | None
    high: float | None
    examples: int
    parameters: int
    seed: int
    minutes: float
    torch: str


def files(folder: str) -> tuple[str, str, str]:
    return f"{folder}/train.tsv", f"{folder}/valid.tsv", f"{folder}/test.tsv"


def babi(number: int, aim: str, kind: str = "") -> Row:
    return Row(f"babi-{number}{kind}", f"babi/qa{number}-train.tsv", None, f"babi/qa{number}-test.tsv", ("exact",),
               BABI[number], aim, f"babi{kind}")  # fmt: skip


BABI = {number: f"LSTM, 1,000 examples: {share} %" for number, share in {1: 50, 11: 72, 12: 74, 15: 21, 16: 23}.items()}
ROWS = (
    Row("shakespeare-3", "tinyshakespeare/input.txt", None, None, ("loss_per_character",),
        "1.88 in about 3 minutes", "≤ 1.80 in 3 minutes"),
    Row("shakespeare-30", "tinyshakespeare/input.txt", None, None, ("loss_per_character",),
        "6 × 384 on a GPU: 1.47", "≤ 1.60 in 30 minutes"),
    Row("ewt", *files("ewt"), ("accuracy",), "BiLSTM with GloVe 88.3, BERT 91.1", "≥ 91"),
    Row("snips-slots", *files("snips"), ("f1",), "RNN with attention about 88", "≥ 90"),
    Row("snips-intent", *files("snips"), ("accuracy",), "RNN with attention about 97", "≥ 97.5"),
    Row("names", *files("names"), ("accuracy", "macro_f1"), "–", "stated"),
    Row("addresses", "addresses/train.tsv", None, "addresses/test.tsv", ("accuracy",), "usaddress: below",
        "ahead of usaddress"),
    babi(1, "≥ 98"), babi(11, "≥ 98"), babi(12, "≥ 98"), babi(15, "≥ 98"), babi(16, "as far as it goes"),
    babi(1, "beside it", "-rnn"), babi(11, "beside it", "-rnn"), babi(12, "beside it", "-rnn"),
    babi(15, "beside it", "-rnn"), babi(16, "beside it", "-rnn"),
)  # fmt: skip


# ── measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────


def measure(row: Row, data: Path, words: Sequence[str], judged_on_valid: bool) -> list[Figure]:
    """Trains, and judges what the row names on its test file, or on what was held out."""
    c = config.resolve(None, HERE / f"{row.config or row.name}.toml", list(words))
    out, started = CACHE / row.name, time.monotonic()
    valid = str(data / row.valid) if row.valid else None
    trained, found = train(c, str(data / row.train), valid, out, Call(force=True))
    assert found is not None
    minutes = (time.monotonic() - started) / 60
    out.with_suffix(".minutes").write_text(f"{minutes}\n")
    return judge(row, data, minutes) if row.test and not judged_on_valid else figures(row, found, trained, minutes)


def judge(row: Row, data: Path, minutes: float | None = None) -> list[Figure]:
    """What the model in the row's folder does on the test file."""
    out = CACHE / row.name
    trained = regard.load(out)
    assert row.test, f"{row.name} has no test file: what was held out is its measure"
    spent = float(out.with_suffix(".minutes").read_text()) if minutes is None else minutes
    return figures(row, trained.score(data / row.test), trained, spent)


def figures(row: Row, found: Evaluation, trained: Trained, minutes: float) -> list[Figure]:
    if found.confusion:
        print(found.confusion.render())
    seed = trained.config.train.seed
    return [figure(row, metric, found, trained.model.size, seed, minutes) for metric in row.metrics]


def figure(row: Row, metric: str, found: Evaluation, parameters: int, seed: int, minutes: float) -> Figure:
    m = found.metrics.get(metric)
    value, low, high = (found.facts[metric], None, None) if m is None else (m.value, m.low, m.high)
    return Figure(row.name, metric, value, low, high, len(found.outputs), parameters, seed, round(minutes, 1),
                  version("torch"))  # fmt: skip


# ── keeping and showing ──────────────────────────────────────────────────────────────────────────────────────────────


def kept(path: Path) -> list[Figure]:
    return lines.read(path, Figure)


def keep(path: Path, found: Sequence[Figure]) -> None:
    """The new lines take the place of those of the same row and metric."""
    new = {(each.row, each.metric) for each in found}
    lines.write(path, [*(each for each in kept(path) if (each.row, each.metric) not in new), *found])


def table(found: Sequence[Figure]) -> list[str]:
    rows = ["| row | measure | others | to reach | measured (95 %) | examples | parameters | minutes |",
             "|---|---|---|---|--:|--:|--:|--:|"]  # fmt: skip
    for row in ROWS:
        for each in (each for each in found if each.row == row.name):
            digits = 3 if each.value < 10 else 1
            interval = "" if each.low is None else f" ({each.low:.{digits}f} – {each.high:.{digits}f})"
            rows.append(f"| `{row.name}` | {each.metric} | {row.others} | {row.aim} | {each.value:.{digits}f}"
                         f"{interval} | {each.examples:,} | {each.parameters:,} | {each.minutes:.1f} |")  # fmt: skip
    return [*rows, "", "Made by `python -m bench.tasks`, seed 0 unless a row of bench/tasks.csv says another; minutes "
            "of training and scoring on two cores, `train.minutes` or `train.steps` being in the config. "
            f"torch {version('torch')}."]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--valid", action="store_true")
    parser.add_argument("--trained", action="store_true")
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    if asked.list:
        print("\n".join(row.name for row in ROWS))
        return
    if not asked.data.is_dir():
        sys.exit(f"{asked.data}: no such folder; the data are not part of this repository, --data names another place")
    have = {each.row for each in kept(LINES)}
    wanted = [row for row in ROWS if row.name in asked.rows or (not asked.rows and row.name not in have)]
    if unknown := set(asked.rows) - {row.name for row in ROWS}:
        sys.exit(f"unknown rows: {', '.join(sorted(unknown))}; --list tells their names")
    for row in wanted:
        try:
            found = judge(row, asked.data) if asked.trained else measure(row, asked.data, asked.set, asked.valid)
        except RegardError as error:
            sys.exit(f"{row.name}: {error}")
        for each in found:
            print(f"{each.row}: {each.metric} {each.value:.4g} ({each.low} – {each.high}), {each.minutes} minutes")
        if not asked.valid:
            keep(LINES, found)
    if not asked.valid:
        put(PAGE, "tasks", "\n".join(table(kept(LINES))))


if __name__ == "__main__":
    main()
