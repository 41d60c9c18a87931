"""A table in; a report of what a model could learn from it, as frozen records, out. `doctor.sheet` sets it as text."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.doctor.baselines import Baselines, baselines
from regard.data.doctor.finding import Finding, Sight, worst_first
from regard.data.doctor.labels import find_labels
from regard.data.doctor.repeats import Conflicts, Groups, Overlap, ceiling, conflicts, find_repeats, grouped, overlap
from regard.data.doctor.sides import find_sides, is_copy
from regard.data.doctor.twins import find_twins, likeness
from regard.data.doctor.writing import find_rare, find_strangers, find_writing
from regard.data.evenly import evenly
from regard.data.guess import Guess
from regard.data.images import measure as size_of
from regard.data.images import row_reference
from regard.data.read import Table
from regard.data.text import is_running
from regard.errors import RegardError

BINS = 10
SHOWN_FAILURES = 3
SHOWN_CHARACTERS = 20
MOST_OPENED = 1000  # pictures


@dataclass(frozen=True)
class Lengths:
    """How long texts are, in characters; `counts[i]` lie from `edges[i]` up to, not including, `edges[i + 1]`."""

    shortest: int
    median: int
    p95: int
    longest: int
    edges: tuple[int, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Alphabets:
    """Different characters of either side, those of both, and those seen a single time."""

    source: int
    target: int
    shared: int
    once: int
    shown: tuple[str, ...]


@dataclass(frozen=True)
class Survey:
    """Pictures that it was tried to open, how many are of which size, and those that can not be read."""

    opened: int
    of: int
    sizes: tuple[tuple[str, int], ...]  # the most frequent first
    failed: int
    shown: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """What `regard check` found. Without a target the fields that need one are None."""

    path: str
    source_names: tuple[str, ...]
    target_name: str | None
    examples: int
    skipped: int
    notes: tuple[str, ...]
    source_lengths: Lengths | None  # None of pictures, whose names are no text to be learnt
    target_lengths: Lengths | None
    duplicates: int  # examples that repeat an earlier one
    conflicts: Conflicts | None
    ceiling: float | None  # the best exact match there can be: for each source its most frequent target
    overlap: Overlap | None
    alphabets: Alphabets
    copied: int | None  # examples whose target is their source
    findings: tuple[Finding, ...] = ()  # the worst first
    baselines: Baselines | None = None  # what can be had without learning
    task: str | None = None  # what `regard train` would choose …
    why: tuple[str, ...] = ()  # … and why
    pictures: Survey | None = None  # of a source that is a picture

    def as_dict(self) -> dict[str, Any]:
        """The report in the types of JSON."""
        return asdict(self)


def check(table: Table, other: Table | None = None, task: str = "transduce", measure: bool = True) -> Report:
    """What stands in a table, and what a second one (held out, say) shares with it; `measure` = baselines too."""
    sight, groups = Sight(table.examples, task), grouped(table.examples)
    there = Sight(other.examples, task) if other else None
    shared, between = compared(sight, groups, there, other.path) if there and other else (None, [])
    targets = [example.target for example in table.examples if example.target is not None]
    has_target = table.target_name is not None
    return Report(
        path=table.path,
        source_names=table.source_names,
        target_name=table.target_name,
        examples=len(sight),
        skipped=table.skipped,
        notes=tuple(table.notes),
        source_lengths=source_lengths(sight),
        target_lengths=_lengths(map(len, targets)) if has_target else None,
        duplicates=len(sight) - sum(map(len, groups.values())),
        conflicts=conflicts(groups) if has_target else None,
        ceiling=ceiling(groups) if has_target else None,
        overlap=shared,
        alphabets=_alphabets(written(sight)),
        copied=sum(map(is_copy, table.examples)) if has_target else None,
        findings=worst_first([*findings(sight, groups), *between]),
        baselines=baselines(sight, there, table.source_names) if measure else None,
    )


def compared(sight: Sight, groups: Groups, other: Sight, path: str) -> tuple[Overlap, list[Finding | None]]:
    """What a second file shares with the first, and what it has that the first has not."""
    shared, found = overlap(sight, groups, other, path)
    return shared, [*found, *find_strangers(sight, other, path)]


def written(sight: Sight) -> Sight:
    """What is text of it: of pictures only what is said about them."""
    if sight.task != "caption":
        return sight
    return Sight([replace(example, source=()) for example in sight.examples], sight.task)


def source_lengths(sight: Sight) -> Lengths | None:
    """Of all source columns together, with a tab between them."""
    if sight.task == "caption":
        return None
    return _lengths(sum(map(len, each.source)) + len(each.source) - 1 for each in sight.examples)


def findings(sight: Sight, groups: Groups) -> Iterator[Finding | None]:
    """All that the doctor sees in one file."""
    texts = written(sight)
    yield from find_writing(texts)
    yield from find_rare(texts)
    if sight.task == "generate":  # in running text lines may well return
        return
    yield from find_repeats(sight, groups)
    if sight.task != "caption":
        yield from find_twins(likeness(sight))
    yield from find_sides(sight)
    yield from find_labels(sight)


def with_guess(
    report: Report, found: Guess, table: Table, images: str = "", asked: bool = False, advice: tuple[str, ...] = ()
) -> Report:
    """The report with what `regard train` would make of the file; pictures are looked at. `asked` = --task says it."""
    told = [f"task {found.task}: --task says so"] if asked else []
    lines = (*told, *found.why, *([found.why_tokens] if found.why_tokens else []), *running(found, table), *advice)
    pictures = survey(table, images) if found.task == "caption" else None
    return replace(report, task=found.task, why=lines, pictures=pictures)


def running(found: Guess, table: Table) -> list[str]:
    """What training does with a text that has no examples; here its lines are looked at."""
    if found.task != "generate" or not is_running(table.path, found.source):
        return []
    size = sum(len(example.source[0]) + 1 for example in table.examples)
    return [f"one text of some {size:,} characters, line breaks among them: training goes through it in order and "
            "holds out its last tenth; below, each line counts as an example"]  # fmt: skip


def survey(table: Table, images: str = "") -> Survey:
    """Opens the pictures of a table, evenly spread ones where there are many."""
    sizes: Counter[str] = Counter()
    failures: list[str] = []
    looked = evenly(table.examples, MOST_OPENED)
    for example in looked:
        try:
            width, height = size_of(row_reference(images, example.source[0]), Path(table.folder))
            sizes[f"{width} × {height}"] += 1
        except RegardError as error:
            failures.append(f"{table.path}:{example.line}: {error}")
    return Survey(
        len(looked), len(table.examples), tuple(sizes.most_common()), len(failures), tuple(failures[:SHOWN_FAILURES])
    )


def _lengths(lengths: Iterable[int]) -> Lengths:
    sizes = np.fromiter(lengths, dtype=np.int64)
    if not len(sizes):
        return Lengths(0, 0, 0, 0, tuple(range(BINS + 1)), (0,) * BINS)
    shortest, median, p95, longest = map(int, np.quantile(sizes, [0, 0.5, 0.95, 1], method="inverted_cdf"))
    step = -(-(longest + 1 - shortest) // BINS)  # whole characters, so that every bin can be read off
    counts = np.bincount((sizes - shortest) // step, minlength=BINS)
    edges = tuple(shortest + step * place for place in range(BINS + 1))
    return Lengths(shortest, median, p95, longest, edges, tuple(map(int, counts)))


def _alphabets(sight: Sight) -> Alphabets:
    source, target = sight.source_characters, sight.target_characters
    once = sorted(character for character, count in (source + target).items() if count == 1)
    shared = len(source.keys() & target.keys())
    return Alphabets(len(source), len(target), shared, len(once), tuple(once[:SHOWN_CHARACTERS]))
