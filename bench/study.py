"""What the rules of zero-flag training rest on: many short runs on data that differ, each a line in bench/study.csv.

    python -m bench.study --hours 1          goes on where the file ends: one more trial of each cell, round and round
    python -m bench.study --cells cmudict-1000,scan-5000 --trials 8
    python -m bench.study --table            the table of bench/README.md from the lines that are there

A cell is a set of data cut to a size. In each cell a base is tried, then the base with single changes, and after
these optuna proposes settings by what was better in that cell. A model is trained for some minutes, of one processor's
time, and examples that were held out of the training file judge it. Test files are never read. A line is written when
its trial has ended, so the command may be stopped at any time and goes on from the file, perhaps on another machine;
two of them may run side by side, with other cells each.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna

import regard
from bench import forms, lines, numbers
from bench.page import put
from regard.data import builtin
from regard.errors import UsageError

HERE = Path(__file__).resolve().parent
PAGE = HERE / "README.md"
LINES = HERE / "study.csv"
DATA = HERE.parents[1] / "shared" / "data"
HELD = 1000  # examples that judge
LONGEST = 20 * 60  # seconds after which a trial that does not end is given up

Rows = list[tuple[str, ...]]


@dataclass(frozen=True)
class Source:
    """Where pairs come from, what judges them, and the tokens that are worth trying."""

    train: str  # a path below the data folder, or a built-in task
    valid: str  # the same; empty = examples of the training file that are not trained on
    metric: str
    tokens: tuple[str, ...]
    made: str = "pairs"  # how two columns are made of those of the file


SOURCES = {
    "multi30k": Source("multi30k-en-de/train.tsv", "multi30k-en-de/valid.tsv", "bleu",
                       ("bpe:1000", "bpe:2000", "bpe:4000", "bpe:8000", "characters")),
    "cmudict": Source("cmudict/train.tsv", "cmudict/valid.tsv", "exact", ("characters,words", "characters")),
    "spelling": Source("cmudict/train.tsv", "cmudict/valid.tsv", "exact", ("words,characters",), "swapped"),
    "scan": Source("scan/simple-train.tsv", "", "exact", ("words", "characters")),
    "dates": Source("dates:en", "", "exact", ("characters",)),
    "locales": Source("dates:all", "", "exact", ("characters",)),
    "snips": Source("snips/train.tsv", "snips/valid.tsv", "exact", ("bpe:1000", "words", "characters"), "parsed"),
    "forms": Source("forms", "", "exact", ("characters",)),
    "numbers": Source("numbers", "", "exact", ("characters",)),
    "typos": Source("ewt/train.tsv", "ewt/valid.tsv", "exact", ("characters", "bpe:1000"), "misspelt"),
}  # fmt: skip
CELLS = ("cmudict-1000", "multi30k-1000", "locales-1000", "snips-1000", "cmudict-5000", "multi30k-5000", "typos-5000")

BASE = {"preset": "rnn-attention", "width": 128, "layers": 1, "dropout": 0.3, "learning_rate": 2e-3,
        "tokens_per_batch": 1024, "label_smoothing": 0.1, "copy": 0, "agreement": 0.0,
        "token_dropout": 0.0, "more": ""}  # fmt: skip
TRANSFORMER = {"preset": "transformer", "width": 128, "layers": 2}
DECODER = {"preset": "decoder", "width": 128, "layers": 2}
CHANGES: tuple[dict[str, Any], ...] = (
    {}, TRANSFORMER, DECODER, {"copy": 1}, {"agreement": 2.0}, {"width": 256}, {"dropout": 0.1}, {"dropout": 0.5},
    {"token_dropout": 0.1}, {**TRANSFORMER, "copy": 1}, {**TRANSFORMER, "agreement": 2.0},
    {**TRANSFORMER, "dropout": 0.1}, {"tokens_per_batch": 512}, {**TRANSFORMER, "tokens_per_batch": 4096},
    {"label_smoothing": 0.0}, {"layers": 2}, {**TRANSFORMER, "layers": 4}, {**TRANSFORMER, "width": 256},
    {"learning_rate": 4e-3}, {**TRANSFORMER, "learning_rate": 4e-3}, {"learning_rate": 1e-3},
    {**TRANSFORMER, "learning_rate": 1e-3},
)  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """One run: what was set, and what came out."""

    cell: str
    minutes: float
    seed: int
    preset: str
    tokens: str
    width: int
    layers: int
    dropout: float
    learning_rate: float
    tokens_per_batch: int
    label_smoothing: float
    copy: int
    agreement: float
    token_dropout: float
    more: str  # further settings, as --set takes them
    metric: str
    score: float
    loss: float
    steps: int
    best_step: int
    parameters: int
    seconds: float

    @property
    def chosen(self) -> dict[str, Any]:
        """What was set."""
        return {name: getattr(self, name) for name in FACTORS}


FACTORS = ("preset", "tokens", "width", "layers", "dropout", "learning_rate", "tokens_per_batch", "label_smoothing",
           "copy", "agreement", "token_dropout", "more")  # fmt: skip


def space(source: Source) -> dict[str, optuna.distributions.BaseDistribution]:
    """What is varied in a cell."""
    choice = optuna.distributions.CategoricalDistribution
    return {
        "preset": choice(("rnn-attention", "transformer", "decoder")),
        "tokens": choice(source.tokens),
        "width": choice((128, 256)),
        "layers": choice((1, 2, 3, 4)),
        "dropout": choice((0.1, 0.3, 0.5)),
        "learning_rate": optuna.distributions.FloatDistribution(5e-4, 6e-3, log=True),
        "tokens_per_batch": choice((512, 1024, 2048, 4096)),
        "label_smoothing": choice((0.0, 0.1)),
        "copy": choice((0, 1)),
        "agreement": choice((0.0, 2.0)),
        "token_dropout": choice((0.0, 0.1)),
        "more": choice(("",)),
    }


# ── the data of a cell ───────────────────────────────────────────────────────────────────────────────────────────────


def cut(cell: str, data: Path, folder: Path) -> tuple[Path, Path]:
    """Two files: so many examples to train on, and some to judge by that share no source with them."""
    name, _, size = cell.partition("-")
    source = SOURCES[name]
    rows = read(source, source.train, data, int(size) + 4 * HELD, "train")
    random.Random(0).shuffle(rows)
    if source.valid:
        held = read(source, source.valid, data, 10**9, "valid")
        random.Random(1).shuffle(held)
    else:
        held, rows = rows[:HELD], rows[HELD:]
    judges = held[:HELD]
    known = {row[0] for row in judges}
    kept = [row for row in rows if row[0] not in known][: int(size)]
    paths = folder / "train.tsv", folder / "test.tsv"
    for path, content in zip(paths, (kept, judges), strict=True):
        path.write_text("".join("\t".join(row) + "\n" for row in content), encoding="utf-8")
    return paths


def read(source: Source, name: str, data: Path, count: int, part: str) -> Rows:
    if name in MADE_UP:
        return [*MADE_UP[name](count)]
    if not name.startswith("dates:"):
        rows = [line.split("\t") for line in (data / name).read_text(encoding="utf-8").splitlines()]
        return [MADE[source.made](*row) for row in rows]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "dates.tsv"
        builtin.write("dates", count, path, 0, part, name.partition(":")[2])
        return [tuple(line.split("\t")) for line in path.read_text("utf-8").splitlines()]


MADE_UP = {"forms": forms.rows, "numbers": numbers.rows}


def parsed(text: str, labels: str, intent: str) -> tuple[str, str]:
    """A sentence and what it means: the intent, then each slot with the words that fill it."""
    slots: list[str] = []
    for word, label in zip(text.split(), labels.split(), strict=True):
        if label.startswith("B-"):
            slots.append(f"{label[2:]} : {word}")
        elif label != "O":
            slots[-1] += f" {word}"
    return text, " | ".join([intent, *slots])


def misspelt(text: str, _: str) -> tuple[str, str]:
    """The first words of a sentence with slips in them, and without: letters left out, doubled or swapped."""
    right = " ".join(text.replace("\xa0", " ").split()[:8])
    draw, wrong = random.Random(right), list(right)
    for _ in range(1 + len(right) // 15):
        place = draw.randrange(max(1, len(wrong) - 1))
        match draw.randrange(3):
            case 0:
                del wrong[place]
            case 1:
                wrong.insert(place, wrong[place])
            case 2:
                wrong[place : place + 2] = reversed(wrong[place : place + 2])
    return "".join(wrong) or right, right


MADE = {"pairs": lambda left, right: (left, right), "swapped": lambda left, right: (right, left), "parsed": parsed,
        "misspelt": misspelt}  # fmt: skip


# ── one trial ────────────────────────────────────────────────────────────────────────────────────────────────────────


def words(chosen: dict[str, Any], minutes: float, seed: int, metric: str) -> list[str]:
    """The settings of a trial as one would write them."""
    recurrent = chosen["preset"] == "rnn-attention"
    alone = chosen["preset"] == "decoder"
    width, layers = chosen["width"], chosen["layers"] * (2 if alone else 1)
    sides = ("decoder",) if alone else ("encoder", "decoder")
    made = [f"{side}.{key}={value}" for side in sides for key, value in (
        ("width", width), ("layers", layers), ("dropout", chosen["dropout"]),
        *(() if recurrent else (("feedforward", 2 * width), ("heads", max(2, width // 32)))))]  # fmt: skip
    kinds, _, size = chosen["tokens"].partition(":")
    first, _, second = kinds.partition(",")
    shared = alone or first == "bpe"
    if (shared or chosen["copy"]) and second not in ("", first):
        raise UsageError(f"{chosen['tokens']}: one vocabulary can not hold both, and neither is a copy of the other")
    made += [f"tokens.source={first}", f"tokens.target={second or first}", f"tokens.shared={str(shared).lower()}"]
    made += [f"tokens.size={size}"] if size else []
    made += ["embedding.tie_output=true"] if shared else []
    made += ["embedding.tie_source=true"] if shared and not alone else []
    made += ["decoder.copy=true"] if chosen["copy"] else []
    return [*made, f"train.learning_rate={chosen['learning_rate']:.5f}", f"train.seed={seed}", "train.threads=1",
            f"train.tokens_per_batch={chosen['tokens_per_batch']}", f"train.minutes={minutes}", "train.steps=100000",
            f"train.label_smoothing={chosen['label_smoothing']}", f"train.agreement={chosen['agreement']}",
            f"embedding.token_dropout={chosen['token_dropout']}", "train.validate_steps=200", "search.beam=5",
            "train.checkpoint_steps=200", "train.average=5", f"train.metric={metric}",
            *chosen["more"].split()]  # fmt: skip


def count_work() -> None:
    """From now on a minute in this process is one of work on a processor: others may use the cores too."""
    setattr(time, "monotonic", time.process_time)  # noqa: B010


def run(cell: str, chosen: dict[str, Any], minutes: float, seed: int, data: Path) -> Trial:
    """Trains and judges, in this process."""
    metric, begun = SOURCES[cell.partition("-")[0]].metric, time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        train, test = cut(cell, data, Path(place))
        said = words(chosen, minutes, seed, metric)
        model = regard.train(train, None, Path(place) / "model", chosen["preset"], said, task="transduce")
        found = model.score(test)
        log = [json.loads(line) for line in (Path(place) / "model" / "metrics.jsonl").read_text().splitlines()]
    best = max((each for each in log if f"valid_{metric}" in each), key=lambda each: each[f"valid_{metric}"])
    return Trial(cell, minutes, seed, **{name: chosen[name] for name in FACTORS}, metric=metric,
                 score=found.metrics[metric].value, loss=found.facts["loss"], steps=log[-1]["step"],
                 best_step=best["step"], parameters=model.model.size, seconds=time.monotonic() - begun)  # fmt: skip


# ── many ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def planned(cell: str) -> list[dict[str, Any]]:
    """The base with single changes: first of the tokens, each of which may be the wrong ground for all others."""
    first, *others = SOURCES[cell.partition("-")[0]].tokens
    changed = [{**BASE, **change, "tokens": first} for change in CHANGES]
    kinds: tuple[dict[str, Any], ...] = ({}, TRANSFORMER, DECODER)
    every = [*changed[:3], *({**BASE, **kind, "tokens": other} for other in others for kind in kinds), *changed[3:]]
    return [chosen for chosen in every if possible(chosen)]


def possible(chosen: dict[str, Any]) -> bool:
    try:
        words(chosen, 1, 0, "exact")
    except UsageError:
        return False
    return True


def propose(cell: str, known: Sequence[Trial], failed: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Settings for one more trial of a cell: those that are planned, then by what is known; never what has failed."""
    tried = [*(trial.chosen for trial in known), *failed]
    for chosen in planned(cell):
        if chosen not in tried:
            return chosen
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    drawn = space(SOURCES[cell.partition("-")[0]])
    sampler = optuna.samplers.TPESampler(multivariate=True, seed=len(known) * 101 + len(cell))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for trial in known:
        if is_within(trial.chosen, drawn):
            made = optuna.trial.create_trial(params=trial.chosen, distributions=drawn, value=trial.score)
            study.add_trial(made)
    while not possible(found := dict(study.ask(drawn).params)) or found in tried:
        pass
    return found


def is_within(chosen: dict[str, Any], drawn: dict[str, optuna.distributions.BaseDistribution]) -> bool:
    """Whether all values are among those that are varied; of others optuna can not be told."""
    for name, allowed in drawn.items():
        if isinstance(allowed, optuna.distributions.CategoricalDistribution):
            inside = chosen[name] in allowed.choices
        else:
            assert isinstance(allowed, optuna.distributions.FloatDistribution)
            inside = allowed.low <= chosen[name] <= allowed.high
        if not inside:
            return False
    return True


def go_on(asked: argparse.Namespace) -> None:
    """One more trial of each cell, round and round; what fails is not tried again as long as this goes on."""
    ends = time.monotonic() + 3600 * asked.hours
    failed: dict[str, list[dict[str, Any]]] = {cell: [] for cell in asked.cells.split(",")}
    while time.monotonic() < ends:
        lined = [each for each in lines.read(asked.lines, Trial) if each.minutes == asked.minutes]
        known = {cell: [each for each in lined if each.cell == cell] for cell in failed}
        counts = {cell: len(known[cell]) + len(failed[cell]) for cell in failed}
        cell = min(failed, key=lambda each: (counts[each], random.random()))
        if counts[cell] >= asked.trials:
            return
        chosen = propose(cell, known[cell], failed[cell])
        print(cell, chosen, flush=True)
        if code := alone({"cell": cell, "chosen": chosen, "seed": len(known[cell])}, asked):
            failed[cell].append(chosen)
            print(f"{cell}: ended with {code}; no line is written, and it is not tried again now", flush=True)


def alone(one: dict[str, Any], asked: argparse.Namespace) -> int:
    """A trial in a process of its own, and the code that this ended with; 0 = a line is written."""
    command = [sys.executable, "-m", "bench.study", "--one", json.dumps(one), "--minutes", str(asked.minutes), "--data",
               str(asked.data), "--lines", str(asked.lines)]  # fmt: skip
    try:
        return subprocess.run(command, check=False, timeout=60 * asked.minutes + LONGEST).returncode
    except subprocess.TimeoutExpired:
        return -1


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────


def table(known: Sequence[Trial]) -> list[str]:
    """For each cell the best trial, and the best of each preset beside it."""
    presets = ("rnn-attention", "transformer", "decoder")
    rows = [f"| data | minutes | trials | metric | best | {' | '.join(presets)} | settings of the best |",
            "|---|--:|--:|---|--:|--:|--:|--:|---|"]  # fmt: skip
    for cell, minutes in sorted({(each.cell, each.minutes) for each in known}):
        own = [each for each in known if (each.cell, each.minutes) == (cell, minutes)]
        best = max(own, key=lambda each: each.score)
        tops = [max((each.score for each in own if each.preset == name), default=None) for name in presets]
        told = (f"{best.preset}, {best.tokens}, {best.layers} × {best.width}, dropout {best.dropout}, rate "
                f"{best.learning_rate:.1e}, {best.tokens_per_batch} tokens, smoothing {best.label_smoothing}"
                f"{', copy' if best.copy else ''}{f', {best.more}' if best.more else ''}")  # fmt: skip
        rows.append(f"| {cell} | {minutes:g} | {len(own)} | {best.metric} | {best.score:.1f} | "
                    f"{' | '.join('–' if top is None else f'{top:.1f}' for top in tops)} | {told} |")  # fmt: skip
    return rows


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder with cmudict, scan and multi30k-en-de")
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--minutes", type=float, default=2.0, help="of each trial, of a processor's time")
    parser.add_argument("--trials", type=int, default=40, help="of each cell")
    parser.add_argument("--cells", default=",".join(CELLS))
    parser.add_argument("--lines", type=Path, default=LINES, help="the file with a line for each trial")
    parser.add_argument("--table", action="store_true", help="only the table")
    parser.add_argument("--one", help="a single trial in this process, as JSON")
    return parser.parse_args()


def main() -> None:
    asked = options()
    if asked.one:
        one = json.loads(asked.one)
        count_work()
        lines.append(asked.lines, run(one["cell"], one["chosen"], asked.minutes, one["seed"], asked.data))
        return
    if not asked.table:
        go_on(asked)
    put(PAGE, "study", "\n".join(table(lines.read(asked.lines, Trial))))


if __name__ == "__main__":
    main()
