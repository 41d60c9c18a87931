"""A record or some numbers in, lines for a terminal out: who looked at what, in blocks of ink; a curve in one line."""

import os
import shutil
import sys
from collections.abc import Sequence
from itertools import pairwise
from math import isfinite
from pathlib import Path

from rich.console import Console, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from regard.view.record import Record
from regard.view.signs import shown

INK = " ░▒▓█"
BARS = "▁▂▃▄▅▆▇█"
BAR = 20  # columns of a bar of progress
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


def shade(weight: float) -> str:
    return INK[min(len(INK) - 1, int(weight * len(INK)))]


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
