"""Measured systems in, a table in Markdown out, and beside it what was to be reached and whether it was."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench.interleave import Measured

LIMIT = "limit"  # the module that measures what a matrix product reaches; no row of its own
HEAD = ("system", "target tokens a second", "source and target", "× {base}", "of the fp32 limit", "padding",
        "peak MB", "growth MB", "cores busy")  # fmt: skip


@dataclass(frozen=True)
class Aim:
    """One thing to be reached: `found` at least (or at most) `needed`."""

    what: str
    needed: float
    found: float | None
    at_most: bool = False

    @property
    def verdict(self) -> str:
        if self.found is None:
            return "not measured"
        reached = self.found <= self.needed if self.at_most else self.found >= self.needed
        return "reached" if reached else "missed"

    def line(self) -> str:
        found = "–" if self.found is None else f"{self.found:.2f} ×"
        return f"| {self.what} {'≤' if self.at_most else '≥'} {self.needed:g} × | {found} | {self.verdict} |"


def aims_table(aims: Sequence[Aim]) -> list[str]:
    return ["| to be reached | measured | |", "|---|--:|---|", *[aim.line() for aim in aims]]


def table(found: Sequence[Measured], base: str, operations: float | None) -> list[str]:
    """A row for each system; `base` is the one that ratios are taken to, `operations` those of one target token."""
    head = "| " + " | ".join(HEAD).format(base=base) + " |"
    rule = "|---" + "|--:" * (len(HEAD) - 1) + "|"
    return [head, rule, *[row(one, found, base, operations) for one in found if one.system.module != LIMIT]]


def row(one: Measured, found: Sequence[Measured], base: str, operations: float | None) -> str:
    if not one.slices:
        return f"| {one.system.name} | {one.failed} " + "| " * (len(HEAD) - 2) + "|"
    label = one.system.name if not one.failed else f"{one.system.name} ({len(one.slices)} rounds, then {one.failed})"
    last = one.slices[-1].peak
    cells = (
        label,
        f"{median(each.rate for each in one.slices):,.0f}",
        f"{median((each.target + each.source) / each.seconds for each in one.slices):,.0f}",
        spread(ratios(one, named(found, base))),
        share(one, found, operations),
        f"{100 * (1 - sum(e.target + e.source for e in one.slices) / sum(e.places for e in one.slices)):.1f} %",
        f"{last:,.0f}",
        f"{last - one.facts['before']:,.0f}",
        f"{median(each.cpu / each.seconds for each in one.slices):.2f}",
    )
    return "| " + " | ".join(cells) + " |"


def named(found: Sequence[Measured], name: str) -> Measured | None:
    """The system of this name, if it was measured."""
    return next((one for one in found if one.system.name == name and one.slices), None)


def ratios(one: Measured | None, other: Measured | None) -> list[float]:
    """Of the rates, round by round; empty where one of the two is missing."""
    if one is None or other is None:
        return []
    return [mine.rate / its.rate for mine, its in zip(one.slices, other.slices, strict=False)]


def ratio(one: Measured | None, other: Measured | None) -> float | None:
    each = ratios(one, other)
    return median(each) if each else None


def memory(one: Measured | None, other: Measured | None, growth: bool = False) -> float | None:
    """Peak memory against another's: all of the process, or what training added to it."""
    if one is None or other is None:
        return None
    mine, its = (each.slices[-1].peak - (each.facts["before"] if growth else 0.0) for each in (one, other))
    return mine / its


def share(one: Measured, found: Sequence[Measured], operations: float | None) -> str:
    """Of what a matrix product in fp32 reached in the same round."""
    limit = next((each for each in found if each.system.module == LIMIT and each.system.precision == "fp32"), None)
    if operations is None or limit is None or not limit.slices:
        return "–"
    return f"{100 * operations * median(ratios(one, limit)):.0f} %"


def spread(values: Sequence[float]) -> str:
    """The median, and from where to where."""
    return f"{median(values):.2f} ({min(values):.2f} – {max(values):.2f})" if values else "–"
