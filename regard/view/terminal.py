"""A record or some numbers in, lines for a terminal out: who looked at what, in blocks of ink; a curve in one line."""

import os
import shutil
import sys
from collections.abc import Sequence
from itertools import pairwise
from math import isfinite
from pathlib import Path

import numpy as np
from rich.console import Console, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from regard.data.read import escape
from regard.view.change import SIGNS
from regard.view.record import Derived, Record
from regard.view.signs import shown

INK = " ░▒▓█"
BARS = "▁▂▃▄▅▆▇█"
BAR = 20  # columns of a bar
MOST = 12  # classes that are shown
NOTABLE = 0.005  # probability of a rival that is named
AGREES = 0.4  # rank correlation from which two orders are alike
NARROW = 100  # columns, below which the bar is half as long


# ── who looked at what ───────────────────────────────────────────────────────────────────────────────────────────────


def alignment(record: Record) -> str:
    """Target below target, source across: the darker, the more it looked there."""
    weights = record.alignment()
    if weights is None:
        return "this model has no attention: all it knows of the source is the state it starts from"
    columns = [shown(token) for token in record.source]
    lines = ["       " + "".join(columns)]
    for token, row, sure in zip(record.target, weights, record.probabilities, strict=True):
        ink = "".join(shade(weight) * len(column) for weight, column in zip(row, columns, strict=True))
        lines.append(f"{shown(token, 5):>5}  {ink}  {sure:.3f}")
    return "\n".join(lines)


def looked(record: Record) -> str:
    """All that a terminal can show of a record: what was answered, how sure, and who looked at what."""
    lines = [f"{escape(record.text)}  →  {escape(record.output)}  ({100 * record.answer.confidence:.1f} %)", ""]
    if record.answer.chances:
        lines += [*bars([(label, chance) for label, chance in record.answer.chances[:MOST]]), ""]
    elif record.at is not None:
        lines += [
            *(
                f"{words_of(record, place):>16}  {shown(token, 16):16}  {sure:.3f}{rivals(record, place)}"
                for place, (token, sure) in enumerate(zip(record.target, record.probabilities, strict=True))
            ),
            "",
        ]
    if record.target:
        lines.append(alignment(record))
    if record.derived is not None:
        lines += ["", *derived(record, record.derived)]
    return "\n".join(lines)


def words_of(record: Record, place: int) -> str:
    """The piece of the source that a label stands at."""
    assert record.at is not None
    first, last = record.at[place]
    text = record.text[record.source[first].start : record.source[last].end]
    return escape(text)[:16] or shown(record.source[last])


def rivals(record: Record, place: int) -> str:
    """What else could stand there."""
    others = [f"{escape(other.text)} {other.probability:.3f}" for other in record.alternatives[place][1:3]
              if other.probability >= NOTABLE]  # fmt: skip
    return f"   {', '.join(others)}" if others else ""


def bars(values: Sequence[tuple[str, float]]) -> list[str]:
    width = max((len(escape(label)[:24]) for label, _ in values), default=0)
    return [f"{escape(label)[:24]:>{width}}  {'█' * round(BAR * value):{BAR}}  {value:.3f}" for label, value in values]


def derived(record: Record, found: Derived) -> list[str]:
    """What each source token is worth to the whole answer, and whether attention tells the same."""
    lost = found.erasure.sum(0)
    most = max(float(np.abs(lost).max(initial=0.0)), 1e-9)
    lines = ["log probability that the answer loses without each token of the source:"]
    lines += [f"{shown(token):>12}  {'█' * round(BAR * max(0.0, float(value)) / most):{BAR}}  {value:+.3f}"
              for token, value in zip(record.source, lost, strict=True) if token.id not in SIGNS]  # fmt: skip
    if (rank := found.agreement.get("erasure")) is not None:
        verdict = "so attention is no reason here" if rank < AGREES else "so attention tells much the same"
        lines.append(f"attention and erasure order the source with a rank correlation of {rank:.2f}: {verdict}")
    heads = [
        f"{name} {head}: {value:+.3f}" for name, each in found.importance.items() for head, value in enumerate(each)
    ]
    return lines + ([f"mean log probability lost without a head: {', '.join(heads)}"] if heads else [])


def shade(weight: float) -> str:
    return INK[min(len(INK) - 1, int(weight * len(INK)))]


def table(rows: Sequence[Sequence[str]]) -> str:
    """Lines of cells: the first column to the left, all others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [[cell.rjust(width) if place else cell.ljust(width) for place, (cell, width) in
              enumerate(zip(row, widths, strict=True))] for row in rows]  # fmt: skip
    return "\n".join("  ".join(line).rstrip() for line in lines)


def p_text(p_value: float) -> str:
    """A p-value that is never nought."""
    return f"{p_value:.4f}" if p_value >= 0.0001 else "<0.0001"


# ── how it goes ──────────────────────────────────────────────────────────────────────────────────────────────────────


def sparkline(values: Sequence[float], width: int = 16) -> str:
    """A curve in one line, from the least to the greatest of its numbers; what is not a number is left out."""
    known = [value for value in values if isfinite(value)]
    if len(known) > width:  # each sign stands for the mean of as many
        cuts = [len(known) * place // width for place in range(width + 1)]
        known = [sum(known[a:b]) / (b - a) for a, b in pairwise(cuts)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(BARS[round((value - low) * scale)] for value in known)


def digits(seconds: float) -> str:
    """A time as a clock shows it: 1:05, or 2:01:05."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def bar_line(console: Console, done: float, total: float, words: Sequence[str]) -> RenderableType:
    """A bar and what there is to say. What matters most comes first: a narrow terminal cuts off the end."""
    width = BAR if console.width >= NARROW else BAR // 2
    line = Table.grid(padding=(0, 1))
    line.add_row(ProgressBar(total, done, width), Text(" · ".join(words), no_wrap=True, overflow="ellipsis"))
    return line


def console(quiet: bool = False) -> Console:
    """Standard error. It is a terminal only if a person can be there: not under a pipe, in CI, or where TERM is dumb,
    whatever the environment says about colours."""
    lively = sys.stderr.isatty() and not os.environ.get("CI") and os.environ.get("TERM") not in (None, "", "dumb")
    return Console(stderr=True, quiet=quiet, highlight=False, force_terminal=lively)


def command() -> str:
    """`regard` as it must be typed here: its path, where the shell would not find it by its name."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return "python -m regard"
    found = shutil.which("regard")
    if called.name != "regard" or (found is not None and Path(found).resolve() == called.resolve()):
        return "regard"
    return os.path.relpath(called)
