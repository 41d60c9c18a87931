"""Labels in, trouble with them out: those that are nearly the same word, and those with hardly an example."""

from collections import Counter
from collections.abc import Iterator

from regard.data.doctor.finding import Finding, Sight, lines_of, pair
from regard.data.doctor.twins import key
from regard.data.read import Example, quote

FEWEST = 5  # examples of a label that can be learnt


def find_labels(sight: Sight) -> Iterator[Finding | None]:
    if sight.task not in ("classify", "tag") or not sight.has_targets:
        return
    counts = Counter(label for example in sight.examples for label in labels_of(example, sight.task))
    yield alike(sight, counts)
    yield rare(sight, counts)


def labels_of(example: Example, task: str) -> list[str]:
    target = example.target or ""
    return target.split() if task == "tag" else [target]


def having(sight: Sight, labels: set[str]) -> list[Example]:
    return [example for example in sight.examples if labels & set(labels_of(example, sight.task))]


def alike(sight: Sight, counts: Counter[str]) -> Finding | None:
    """Labels that differ in case, spaces or punctuation: slips, most often."""
    first: dict[str, str] = {}
    twins = [(label, first[key((label,))]) for label, _ in counts.most_common()
             if first.setdefault(key((label,)), label) != label]  # fmt: skip
    if not twins:
        return None
    hits = having(sight, {label for label, _ in twins})
    label, usual = twins[0]
    return Finding("labels alike", "trouble", len(hits), len(sight), lines_of(hits),
                   "with a label that differs from a more frequent one in case, spaces or punctuation",
                   f"{quote(label)} × {counts[label]:,} beside {quote(usual)} × {counts[usual]:,}",
                   "write each label one way")  # fmt: skip


def rare(sight: Sight, counts: Counter[str]) -> Finding | None:
    few = {label for label, count in counts.items() if count < FEWEST}
    if not few:
        return None
    hits, shown = having(sight, few), ", ".join(f"{quote(label)} × {counts[label]}" for label in sorted(few)[:3])
    return Finding("rare labels", "doubt", len(hits), len(sight), lines_of(hits),
                   f"with one of {len(few):,} labels with fewer than {FEWEST} examples", f"{shown}; {pair(hits[0])}",
                   "add examples of them, or make one label of several")  # fmt: skip
