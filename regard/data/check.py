"""A table in; a report of what a model could learn from it, as frozen records and as plain text, out."""

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.guess import Guess
from regard.data.images import measure, row_reference
from regard.data.read import Example, Table, escape, quote
from regard.data.text import is_running
from regard.errors import RegardError

BINS = 10
BLOCKS = " ▁▂▃▄▅▆▇█"
SHOWN_CONFLICTS = 3
SHOWN_TARGETS = 3
SHOWN_CHARACTERS = 20
MOST_OPENED = 1000  # pictures
LABEL = 12  # characters before the text of a line

Groups = dict[tuple[str, ...], Counter[str]]


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
class Conflict:
    """One source and the targets it has, the most frequent first."""

    source: tuple[str, ...]
    targets: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Conflicts:
    """Sources that have several different targets, and how many examples that touches."""

    sources: int
    examples: int
    shown: tuple[Conflict, ...]


@dataclass(frozen=True)
class Overlap:
    """What a second file shares with this one."""

    path: str
    sources: int  # different sources that stand in both
    examples: int  # examples of the second file whose source stands in this one
    pairs: int  # of these, those whose target stands here too
    share: float  # examples / all examples of the second file


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
    source_lengths: Lengths
    target_lengths: Lengths | None
    duplicates: int  # examples that repeat an earlier one
    conflicts: Conflicts | None
    ceiling: float | None  # the best exact match there can be: for each source its most frequent target
    overlap: Overlap | None
    alphabets: Alphabets
    copied: int | None  # examples whose target is their source
    task: str | None = None  # what `regard train` would choose …
    why: tuple[str, ...] = ()  # … and why
    pictures: Survey | None = None  # of a source that is a picture

    def as_dict(self) -> dict[str, Any]:
        """The report in the types of JSON."""
        return asdict(self)


def check(table: Table, other: Table | None = None) -> Report:
    """What stands in a table, and what a second one (held out, say) shares with it."""
    examples, groups = table.examples, _group(table.examples)
    has_target = table.target_name is not None
    targets = [example.target for example in examples if example.target is not None]
    return Report(
        path=table.path,
        source_names=table.source_names,
        target_name=table.target_name,
        examples=len(examples),
        skipped=table.skipped,
        notes=tuple(table.notes),
        source_lengths=_lengths(sum(map(len, example.source)) + len(example.source) - 1 for example in examples),
        target_lengths=_lengths(map(len, targets)) if has_target else None,
        duplicates=len(examples) - sum(map(len, groups.values())),
        conflicts=_conflicts(groups) if has_target else None,
        ceiling=sum(max(group.values()) for group in groups.values()) / max(len(examples), 1) if has_target else None,
        overlap=_overlap(groups, other) if other else None,
        alphabets=_alphabets(examples, targets),
        copied=sum(example.source == (example.target,) for example in examples) if has_target else None,
    )


def with_guess(report: Report, found: Guess, table: Table, images: str = "", asked: bool = False) -> Report:
    """The report with what `regard train` would make of the file; pictures are looked at. `asked` = --task says it."""
    told = [f"task {found.task}: --task says so"] if asked else []
    lines = (*told, *found.why, *([found.why_tokens] if found.why_tokens else []), *running(found, table))
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
    looked = table.examples[:: -(-len(table.examples) // MOST_OPENED) or 1]
    for example in looked:
        try:
            width, height = measure(row_reference(images, example.source[0]), Path(table.folder))
            sizes[f"{width} × {height}"] += 1
        except RegardError as error:
            failures.append(f"{table.path}:{example.line}: {error}")
    return Survey(
        len(looked), len(table.examples), tuple(sizes.most_common()), len(failures), tuple(failures[:SHOWN_CONFLICTS])
    )


def _group(examples: list[Example]) -> Groups:
    """Each source with its targets, counted; no target counts as the empty one."""
    groups: Groups = {}
    for example in examples:
        groups.setdefault(example.source, Counter())[example.target or ""] += 1
    return groups


def _lengths(lengths: Iterable[int]) -> Lengths:
    sizes = np.fromiter(lengths, dtype=np.int64)
    if not len(sizes):
        return Lengths(0, 0, 0, 0, tuple(range(BINS + 1)), (0,) * BINS)
    shortest, median, p95, longest = map(int, np.quantile(sizes, [0, 0.5, 0.95, 1], method="inverted_cdf"))
    step = -(-(longest + 1 - shortest) // BINS)  # whole characters, so that every bin can be read off
    counts = np.bincount((sizes - shortest) // step, minlength=BINS)
    edges = tuple(shortest + step * place for place in range(BINS + 1))
    return Lengths(shortest, median, p95, longest, edges, tuple(map(int, counts)))


def _conflicts(groups: Groups) -> Conflicts:
    torn = [(source, group) for source, group in groups.items() if len(group) > 1]
    worst = sorted(torn, key=lambda item: -item[1].total())[:SHOWN_CONFLICTS]
    shown = tuple(Conflict(source, tuple(group.most_common(SHOWN_TARGETS))) for source, group in worst)
    return Conflicts(len(torn), sum(group.total() for _, group in torn), shown)


def _overlap(groups: Groups, other: Table) -> Overlap:
    both = [example for example in other.examples if example.source in groups]
    pairs = sum((example.target or "") in groups[example.source] for example in both)
    share = len(both) / max(len(other.examples), 1)
    return Overlap(other.path, len({example.source for example in both}), len(both), pairs, share)


def _alphabets(examples: list[Example], targets: list[str]) -> Alphabets:
    source: Counter[str] = Counter()
    target: Counter[str] = Counter()
    for example in examples:
        for text in example.source:
            source.update(text)
    for text in targets:
        target.update(text)
    once = sorted(character for character, count in (source + target).items() if count == 1)
    shared = len(source.keys() & target.keys())
    return Alphabets(len(source), len(target), shared, len(once), tuple(once[:SHOWN_CHARACTERS]))


def render(report: Report, width: int = 80) -> str:
    """The report for a terminal; what comes from data can not steer it."""
    lines: list[str] = []
    for label, text in _sections(report):
        first = f"{label:<{LABEL}}"
        lines += textwrap.wrap(text, max(width, 2 * LABEL), initial_indent=first, subsequent_indent=" " * LABEL)
    return "\n".join(lines) + "\n"


def _sections(report: Report) -> Iterator[tuple[str, str]]:
    """The lines of the report, each a label and a text that may be wrapped."""
    columns = [escape(name) for name in (*report.source_names, report.target_name or "")]
    arrow = f" → {columns[-1]}" if report.target_name is not None else ""
    yield "file", escape(report.path)
    for number, line in enumerate(report.why):
        yield "" if number else "train", escape(line)
    yield "examples", f"{report.examples:,} (columns {', '.join(columns[:-1])}{arrow}), {report.skipped:,} skipped"
    for note in report.notes:
        yield "note", escape(note)
    if not report.pictures:  # whose names are no text to be learnt
        yield "source", _length_text(report.source_lengths)
    if report.target_lengths:
        yield "target", _length_text(report.target_lengths)
    if not report.pictures:
        yield "characters", _alphabet_text(report.alphabets)
    if report.pictures:
        yield from _picture_sections(report.pictures)
    yield "repeated", f"{_share(report.duplicates, report.examples)} repeat an earlier one"
    if report.copied is not None:
        yield "copied", f"{_share(report.copied, report.examples)} have their source as target"
    yield from _conflict_sections(report)
    if report.overlap:
        yield "overlap", _overlap_text(report.overlap)


def _picture_sections(pictures: Survey) -> Iterator[tuple[str, str]]:
    sizes = ", ".join(f"{size} ({count:,} of them)" for size, count in pictures.sizes[:SHOWN_TARGETS])
    more = f" and {len(pictures.sizes) - SHOWN_TARGETS:,} other sizes" if len(pictures.sizes) > SHOWN_TARGETS else ""
    tried = f"{pictures.opened:,} tried, of {pictures.of:,}: " if pictures.opened < pictures.of else ""
    opened = f"{pictures.opened - pictures.failed:,} opened"
    yield "pictures", f"{tried}{opened}, {pictures.failed:,} can not be read{': ' if sizes else ''}{sizes}{more}"
    for line in pictures.shown:
        yield "", escape(line)


def _conflict_sections(report: Report) -> Iterator[tuple[str, str]]:
    if report.conflicts is None or report.ceiling is None:
        return
    touched = _share(report.conflicts.examples, report.examples)
    yield "conflicts", f"{report.conflicts.sources:,} sources have several targets; that touches {touched}"
    for conflict in report.conflicts.shown:
        targets = ", ".join(f"{quote(target, 24)} × {count}" for target, count in conflict.targets)
        yield "", f"{' + '.join(quote(text, 24) for text in conflict.source)} → {targets}"
    yield "ceiling", f"{_percent(report.ceiling)} exact match is the best that can be reached on these examples"


def _length_text(lengths: Lengths) -> str:
    numbers = (
        f"{lengths.shortest:,} to {lengths.longest:,} characters, median {lengths.median:,}, 95 % ≤ {lengths.p95:,}"
    )
    return f"▕{bars(lengths.counts)}▏ {numbers}"


def bars(counts: Iterable[int]) -> str:
    """Counts as blocks of an eighth; what is not zero is seen."""
    heights = list(counts)
    top = max(heights, default=0) or 1
    # Rounded up, so that a single long line still shows. A no-break space keeps an empty bin from being wrapped away.
    return "".join(BLOCKS[-(-height * (len(BLOCKS) - 1) // top)] for height in heights).replace(" ", "\u00a0")


def _alphabet_text(alphabets: Alphabets) -> str:
    shown = " ".join("␣" if character == " " else escape(character) for character in alphabets.shown)
    more = " …" if alphabets.once > len(alphabets.shown) else ""
    seen = f"; seen once: {alphabets.once:,} ({shown}{more})" if alphabets.once else ""
    return f"{alphabets.source:,} in source, {alphabets.target:,} in target, {alphabets.shared:,} in both{seen}"


def _overlap_text(overlap: Overlap) -> str:
    head = f"{_percent(overlap.share)} of {escape(overlap.path)}: {overlap.examples:,} examples"
    return (
        f"{head} ({overlap.sources:,} sources) have a source that is here too, {overlap.pairs:,} with the same target"
    )


def _share(count: int, total: int) -> str:
    return f"{count:,} examples ({_percent(count / max(total, 1))})"


def _percent(share: float) -> str:
    """One decimal, but never 100 or 0 for what is not quite."""
    rounded = min(max(round(100 * share, 1), 0.1), 99.9) if 0 < share < 1 else 100 * share
    return f"{rounded:.1f} %"
