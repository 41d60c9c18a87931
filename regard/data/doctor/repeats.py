"""Examples in, those that repeat or contradict each other out, within a file and between two."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regard.data.doctor.finding import QUOTED, Finding, Sight, lines_of, pair
from regard.data.doctor.twins import near_overlap
from regard.data.read import Example, quote

SHOWN_CONFLICTS = 3
SHOWN_TARGETS = 3
MUCH, SOME = 0.05, 0.005  # of the exact matches that conflicts take away

Groups = dict[tuple[str, ...], Counter[str]]


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
    near: int = 0  # examples of the second file whose source stands here but for a few characters


def grouped(examples: Sequence[Example]) -> Groups:
    """Each source with its targets, counted; no target counts as the empty one."""
    groups: Groups = {}
    for example in examples:
        groups.setdefault(example.source, Counter())[example.target or ""] += 1
    return groups


def ceiling(groups: Groups) -> float:
    """The best exact match that can be reached: for each source its most frequent target."""
    total = sum(group.total() for group in groups.values())
    return sum(max(group.values()) for group in groups.values()) / max(total, 1)


def conflicts(groups: Groups) -> Conflicts:
    torn = [(source, group) for source, group in groups.items() if len(group) > 1]
    worst = sorted(torn, key=lambda item: -item[1].total())[:SHOWN_CONFLICTS]
    shown = tuple(Conflict(source, tuple(group.most_common(SHOWN_TARGETS))) for source, group in worst)
    return Conflicts(len(torn), sum(group.total() for _, group in torn), shown)


def find_repeats(sight: Sight, groups: Groups) -> Iterator[Finding | None]:
    """Examples that say what an earlier one has said, or the contrary."""
    yield repeated(sight)
    yield lonely(sight, groups)
    if sight.has_targets:
        yield contrary(sight, groups)


def repeated(sight: Sight) -> Finding | None:
    seen: set[tuple[tuple[str, ...], str | None]] = set()
    hits = []
    for example in sight.examples:
        whole = (example.source, example.target)
        if whole in seen:
            hits.append(example)
        seen.add(whole)
    if not hits:
        return None
    return Finding("repeated", "remark", len(hits), len(sight), lines_of(hits), "the same as an earlier one",
                   pair(hits[0]), "drop them, unless they are to count as often as they stand")  # fmt: skip


def contrary(sight: Sight, groups: Groups) -> Finding | None:
    """One source with several targets: at most one of them can be answered."""
    hits = [example for example in sight.examples if len(groups[example.source]) > 1]
    if not hits:
        return None
    missed = 1 - ceiling(groups)
    worst = conflicts(groups)
    level = "trouble" if missed > MUCH else "doubt" if missed > SOME else "remark"
    said = f"whose source has other targets too ({worst.sources:,} such source{'s' * (worst.sources > 1)})"
    return Finding("conflicts", level, len(hits), len(sight), lines_of(hits), said,
                   "; ".join(map(told, worst.shown[:2])),
                   f"keep one target for each source, or add a column that tells them apart; as it is, "
                   f"{100 * missed:.3g} % of exact matches are out of reach")  # fmt: skip


def lonely(sight: Sight, groups: Groups) -> Finding | None:
    """One source alone: nothing could be held out."""
    if len(groups) != 1 or not sight.has_targets:
        return None
    return Finding("one source", "trouble", len(sight), len(sight), lines_of(sight.examples),
                   "with one and the same source: `regard train` refuses the file, for nothing can be held out",
                   pair(sight.examples[0]), "add examples with other sources")  # fmt: skip


def told(conflict: Conflict) -> str:
    targets = ", ".join(f"{quote(target, QUOTED // 2)} × {count}" for target, count in conflict.targets)
    return f"{' + '.join(quote(text, QUOTED // 2) for text in conflict.source)} → {targets}"


# ── two files ────────────────────────────────────────────────────────────────────────────────────────────────────────


def overlap(sight: Sight, groups: Groups, other: Sight, path: str) -> tuple[Overlap, list[Finding]]:
    """What the second file shares with the first, and what is to be said about it."""
    both = [example for example in other.examples if example.source in groups]
    pairs = sum((example.target or "") in groups[example.source] for example in both)
    close = near_overlap(sight, other)
    sources = len({example.source for example in both})
    found = Overlap(path, sources, len(both), pairs, len(both) / max(len(other), 1), len(close))
    return found, [*shared(both, pairs, len(other), path), *nearly(close, len(other), path)]


def shared(both: Sequence[Example], pairs: int, total: int, path: str) -> Iterator[Finding]:
    if both:
        yield Finding("overlap", "trouble", len(both), total, lines_of(both),
                      f"of {path} with a source that is here too, {pairs:,} with the same target", pair(both[0]),
                      "take them out of one of the two: scores on them say little")  # fmt: skip


def nearly(close: Sequence[tuple[Example, Example]], total: int, path: str) -> Iterator[Finding]:
    if close:
        new, old = close[0]
        yield Finding("near overlap", "doubt", len(close), total, lines_of(each for each, _ in close),
                      f"of {path} with a source that is nearly here",
                      f"{pair(new)} beside {pair(old)} (line {old.line:,})",
                      "scores on them flatter; a file with other contents tells more")  # fmt: skip
