"""Finished runs in, all that is said of them side by side out: a frozen `Comparison`, which is plain values too.

Scores are means over the seeds. Their intervals cover the examples and, with several seeds, the seeds as well; tests
between presets are paired, on the same examples, and corrected for their number.
"""

import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any

from regard import config
from regard.data.evenly import evenly
from regard.data.read import Table
from regard.data.tokens import SPECIALS
from regard.errors import DataError, RegardError
from regard.lab.anatomy import Count, anatomy
from regard.lab.compare.plan import Plan, Run
from regard.report import groups
from regard.score.intervals import Bootstrap, wilson_interval
from regard.score.metrics import ERRORS, is_share
from regard.score.tallies import Drawn, Tally, compare, drawn, holm
from regard.tasks.choose import deciding
from regard.tasks.task import Evaluation, Item
from regard.trained import Trained
from regard.training.log import entries, reached
from regard.training.prepare import held_out

BOOTSTRAP = Bootstrap()
TIMED = 128  # examples that are decoded to tell how fast it goes …
ROUNDS = 3  # … each model in turn, so that a busy moment of the machine is everybody's
BEAM = 5
LENGTHS = (2, 64)  # tokens for which steps and paths are counted: the median of the sources, within these
SEARCHING = ("transduce", "caption")
ANSWERING = ("classify", "tag", "extract")

Say = Callable[[str], None]


@dataclass(frozen=True)
class Spread:
    """The mean over the runs of a preset, with its 95 % interval, and each run's own."""

    value: float
    low: float | None
    high: float | None
    runs: tuple[float, ...] = ()


@dataclass(frozen=True)
class Bin:
    """Sources of about the same length, in tokens, and how well a preset does on them."""

    first: int
    last: int
    examples: int
    score: Spread


@dataclass(frozen=True)
class Exposure:
    """Tokens right given the true ones before them, and given what the model wrote itself, in per cent."""

    forced: float
    free: float
    gap: float


@dataclass(frozen=True)
class Speed:
    """Tokens a second that training learnt from; lines a second that are answered, greedily and with a beam of five."""

    training: float | None
    greedy: float | None
    beam: float | None


@dataclass(frozen=True)
class Steps:
    """Counted on the built model for so many tokens: operations that wait for one another, and the longest way of a
    source token to the last output, in steps."""

    length: int
    training: int | None
    writing: int | None
    path: int | None


@dataclass(frozen=True)
class Row:
    """One preset."""

    preset: str
    runs: tuple[str, ...]
    parameters: int
    scores: dict[str, Spread]
    exposure: Exposure | None
    speed: Speed
    steps: Steps | None
    trained: tuple[tuple[int, float], ...]  # of each run: updates, and seconds of its clock
    by_length: tuple[Bin, ...]


@dataclass(frozen=True)
class Test:
    """The first preset less the second by the metric that decides; `corrected` is the p-value after Holm."""

    first: str
    second: str
    difference: float
    low: float | None
    high: float | None
    p_value: float
    corrected: float


@dataclass(frozen=True)
class Comparison:
    """All of it; `metric` is the one that decides, by which tests and curves are made."""

    data: str
    test: str  # whose examples judge; "" = those held out of the data
    task: str
    metric: str
    higher_is_better: bool
    signatures: dict[str, str]
    examples: int
    seeds: tuple[int, ...]
    budget: str
    tokens: str
    rows: tuple[Row, ...]
    tests: tuple[Test, ...]
    notes: tuple[str, ...]
    command: str
    made: str

    def as_dict(self) -> dict[str, Any]:
        return {"kind": "comparison", "format": 1, **asdict(self)}


@dataclass(frozen=True)
class Judged:
    """One run: what came out on the examples, and the model of its preset's first seed."""

    run: Run
    model: Trained
    items: list[Item]
    found: Evaluation


# ── all of it ────────────────────────────────────────────────────────────────────────────────────────────────────────


def measure(plan: Plan, folder: Path, command: str, say: Say) -> Comparison:
    """Judges every run on the same examples, and sets side by side what is known of each preset."""
    asked, first = plan.asked, Trained.load(folder / plan.runs[0].name)
    table = examples_of(plan, first)
    judged = judge_all(plan, folder, table, say)
    metric = deciding_metric(judged[0])
    presets = {preset: [each for each in judged if each.run.preset == preset] for preset in asked.presets}
    draws = {preset: drawn([each.found.tallies[metric] for each in runs], BOOTSTRAP, number)
             for number, (preset, runs) in enumerate(presets.items())}  # fmt: skip
    say("measuring how fast the models answer")
    rows = rows_of(presets, draws, metric, folder)
    m = judged[0].found.metrics
    return Comparison(
        data=asked.data, test=asked.test or "", task=first.config.task, metric=metric,
        higher_is_better=m[metric].higher_is_better, signatures={name: each.signature for name, each in m.items()},
        examples=len(table.examples), seeds=tuple(sorted({run.seed for run in plan.runs})), budget=budget(plan),
        tokens=tokens_of(first), rows=tuple(rows), tests=tuple(tests(draws, metric)), notes=(*plan.why, *caveats(plan)),
        command=command, made=f"regard {version('regard')}, torch {version('torch')}",
    )  # fmt: skip


def rows_of(presets: dict[str, list[Judged]], draws: dict[str, Drawn], metric: str, folder: Path) -> list[Row]:
    """A row for each preset; sources are grouped by their length in the same way for all."""
    speeds = decoding_speeds({preset: runs[0] for preset, runs in presets.items()})
    lengths = [len(item.source) for item in next(iter(presets.values()))[0].items]
    bins = groups(range(len(lengths)), lambda number: lengths[number]) if any(lengths) else []
    rows = []
    for preset, runs in presets.items():
        folders = [folder / each.run.name for each in runs]
        rows.append(Row(
            preset=preset, runs=tuple(each.run.name for each in runs), parameters=runs[0].model.model.size,
            scores=scores(runs, metric, draws[preset]), exposure=exposure(runs),
            speed=Speed(training_speed(folders), *speeds[preset]), steps=steps(runs[0].model, middle(lengths)),
            trained=tuple(map(reached, folders)),
            by_length=tuple(bin_of(runs, metric, numbers, lengths) for numbers in bins) if len(bins) > 1 else (),
        ))  # fmt: skip
    return rows


def examples_of(plan: Plan, first: Trained) -> Table:
    """The examples that judge: of the test file, or those that were held out of the data."""
    asked, c = plan.asked, first.config
    if asked.test is None:
        table = held_out(c, first.vocabulary, asked.data, asked.valid)
    else:
        table = first.table(asked.test, first.task.columns(), c.data.skip_bad)
        if len(table.source_names) != len(first.vocabulary.is_tags):
            raise DataError(f"{asked.test}: {len(table.source_names)} source columns, the runs read "
                            f"{len(first.vocabulary.is_tags)}")  # fmt: skip
        for line in table.notes:
            warnings.warn(line.removeprefix("warning: "), stacklevel=3)
    _, examples = first.read_items(table, c.data.skip_bad)
    return replace(table, examples=examples)


def judge_all(plan: Plan, folder: Path, table: Table, say: Say) -> list[Judged]:
    """Every run; of the models only those of the first seed are kept, which tell all that is not a score."""
    judged: dict[str, list[Judged]] = {}
    for run in plan.runs:
        one = judge(run, folder, table, say)
        before = judged.setdefault(run.preset, [])
        before.append(replace(one, model=before[0].model, items=before[0].items) if before else one)
    return [each for runs in judged.values() for each in runs]


def judge(run: Run, folder: Path, table: Table, say: Say) -> Judged:
    model = Trained.load(folder / run.name)
    say(f"judging {run.name} on {len(table.examples):,} examples")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say of the examples was said when they were read
        items, examples = model.read_items(table, False)
    return Judged(run, model, items, model.judge(items, examples))


def deciding_metric(one: Judged) -> str:
    """The score by which the weights were chosen, or the first that is known of each example."""
    telling = [m.name for m in one.found.telling if m.name in one.found.tallies]
    if not telling:
        raise DataError(f"the task {one.model.config.task} has no score of single examples with tokens that are words; "
                        "say --set tokens.target=characters")  # fmt: skip
    name = deciding(one.model.config, one.model.task)
    return name if name in telling else telling[0]


# ── scores ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def scores(runs: Sequence[Judged], metric: str, known: Drawn) -> dict[str, Spread]:
    """Every metric that says something, the one that decides first."""
    telling = [m.name for m in runs[0].found.telling if m.name in runs[0].found.tallies]
    found = {}
    for name in [metric, *(name for name in telling if name != metric)]:
        tallies = [each.found.tallies[name] for each in runs]
        found[name] = spread(name, tallies, known if name == metric else drawn(tallies, BOOTSTRAP))
    return found


def spread(name: str, tallies: Sequence[Tally], made: Drawn) -> Spread:
    """With an interval that is never narrower than Wilson's for a share: all right is not certainly all right."""
    low, high = made.interval
    low = None if low is None else min(max(low, 0.0), made.value)  # seeds that lie far apart reach beyond what can be
    high = high if high is None or name in ERRORS else max(min(high, 100.0), made.value)
    if is_share(name):
        right, count = made.rows.sum(axis=0).tolist()
        least, most = wilson_interval(right, max(count, 1))
        alone = len(tallies) == 1
        low = least if low is None or alone else min(low, least)
        high = most if high is None or alone else min(max(high, most), 100.0)
    return Spread(made.value, low, high, tuple(tally.value for tally in tallies))


def tests(draws: dict[str, Drawn], metric: str) -> list[Test]:
    """Every pair of presets."""
    pairs = list(combinations(draws, 2))
    found = [compare(draws[first], draws[second], is_share(metric)) for first, second in pairs]
    corrected = holm([each.p_value for each in found])
    return [Test(*pair, each.difference, each.low, each.high, each.p_value, p)
            for pair, each, p in zip(pairs, found, corrected, strict=True)]  # fmt: skip


def bin_of(runs: Sequence[Judged], metric: str, numbers: Sequence[int], lengths: Sequence[int]) -> Bin:
    tallies = [each.found.tallies[metric].part(numbers) for each in runs]
    score = spread(metric, tallies, drawn(tallies, BOOTSTRAP))
    return Bin(lengths[numbers[0]], lengths[numbers[-1]], len(numbers), score)


def exposure(runs: Sequence[Judged]) -> Exposure | None:
    names = ("token_accuracy_forced", "token_accuracy_free", "exposure_gap")
    if any(name not in each.found.facts for each in runs for name in names):
        return None
    return Exposure(*(statistics.fmean(each.found.facts[name] for each in runs) for name in names))


# ── speed and size ───────────────────────────────────────────────────────────────────────────────────────────────────


def training_speed(folders: Sequence[Path]) -> float | None:
    """The median of what the runs have logged."""
    logged = [entry["tokens_per_second"] for folder in folders for entry in entries(folder / "times.jsonl")
              if "tokens_per_second" in entry]  # fmt: skip
    return statistics.median(logged) if logged else None


def decoding_speeds(models: dict[str, Judged]) -> dict[str, tuple[float | None, float | None]]:
    """Lines a second of each, greedily and with a beam; none where a task does not search, or has no lines."""
    task = next(iter(models.values())).model.config.task
    widths = (1, BEAM) if task in SEARCHING else (1,) if task in (*ANSWERING, "embed") else ()
    seconds: dict[tuple[str, int], list[float]] = {(name, width): [] for name in models for width in widths}
    for turn in range(ROUNDS + 1):  # the first makes the engine, and does not count
        for (name, width), found in seconds.items():
            items = evenly(models[name].items, TIMED if turn else 4)
            took = timed(models[name].model, items, width)
            found += [took / len(items)] if turn else []
    speeds = {key: 1.0 / max(statistics.median(found), 1e-9) for key, found in seconds.items()}
    return {name: (speeds.get((name, 1)), speeds.get((name, BEAM))) for name in models}


def timed(model: Trained, items: Sequence[Item], width: int) -> float:
    began = time.perf_counter()
    if model.config.task == "embed":
        model.embedded(items, 64)
    else:
        model.find(items, model.wish(width), range(len(items)))
    return time.perf_counter() - began


def middle(lengths: Sequence[int]) -> int:
    least, most = LENGTHS
    return min(most, max(least, round(statistics.median(lengths)) if lengths else least))


def steps(model: Trained, length: int) -> Steps | None:
    """What anatomy counts; nothing where it can not."""
    c = model.config
    if c.tokens.source == "spelled":  # a word is one token, however many letters it has
        c = c.model_copy(update={"tokens": c.tokens.model_copy(update={"source": "words"})})
    try:
        found = anatomy(c, length, max(model.vocabulary.target.size, 8))
    except RegardError:
        return None
    ways = [each.value for each in found.path if each.what.endswith("source position to last output: steps")]
    known = [value for value in ways if value is not None]
    return Steps(length, counted(found.chain, "training pass, source to output: operations"),
                 counted(found.chain, "generating token by token: operations"), max(known, default=None))  # fmt: skip


def counted(lines: Sequence[Count], what: str) -> int | None:
    return next((line.value for line in lines if line.what == what), None)


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def budget(plan: Plan) -> str:
    """What each run was allowed."""
    limits = {run.config.train.length for run in plan.runs}
    minutes = max((run.config.train.minutes or 0 for run in plan.runs), default=0)
    if len(limits) == 1:
        return limits.pop()
    return f"{minutes:g} minutes, or " * bool(minutes) + "as many steps as its preset says"


def tokens_of(model: Trained) -> str:
    """What a token is, for all runs."""
    source, target, task = model.vocabulary.source, model.vocabulary.target, model.config.task
    if task in config.LABELLED:
        return f"{source.kind} ({source.size:,}) → {target.size - len(SPECIALS)} labels"
    return (f"{target.kind} ({target.size:,})" if source is target or task == "caption"
            else f"{source.kind} ({source.size:,}) → {target.kind} ({target.size:,})")  # fmt: skip


def caveats(plan: Plan) -> list[str]:
    """What the numbers do not say."""
    found = [*plan.lost]
    if plan.asked.test is None:
        found.append("judged on the held-out examples, on which each run chose its best weights too: name a test file "
                     "for a fresh judge")  # fmt: skip
    if plan.asked.seeds == 1:
        found.append("one seed: intervals and tests cover other examples, not other runs; --seeds 3 covers both")
    elif plan.asked.seeds < 5:
        found.append(f"{plan.asked.seeds} seeds tell little of how far runs lie apart: intervals are still rather too "
                     "narrow, and p-values too small")  # fmt: skip
    return found
