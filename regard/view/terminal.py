"""A record or some numbers in, lines for a terminal out: who looked at what, in blocks of ink; a curve in one line."""

import os
import shutil
import sys
from collections.abc import Sequence
from itertools import pairwise
from math import isfinite
from pathlib import Path

import numpy as np
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from regard.data.read import escape
from regard.score.intervals import ROUNDING
from regard.view.change import SIGNS
from regard.view.record import Derived, Map, Record
from regard.view.signs import cut, left, right

INK = " ░▒▓█"
INKED = (0.05, 0.4, 0.6, 0.8)  # shares of the most from which on each of these is used
BARS = "▁▂▃▄▅▆▇█"
BAR = 20  # columns of a bar
MOST = 12  # classes that are shown
EDGE = 5  # columns of a target token
ROOM = 20  # columns of the source at least, however narrow the terminal is …
PANELS = 6  # … and so many times its width at most
NOTABLE = 0.005  # probability of a rival that is named
AGREES = 0.4  # rank correlation from which two orders are alike
NARROW = 100  # columns, below which the bar is half as long


# ── who looked at what ───────────────────────────────────────────────────────────────────────────────────────────────

READ_OFF = {  # where the answer of a model without a decoder comes from
    "classify": "its label comes from what all states together are pooled to",
    "tag": "each label comes from the state at the last piece of its word, which tells of the words around it too",
    "fill": "what fills a hole comes from the state at its place, which tells of the tokens around it too",
    "extract": "its piece comes from how likely the state at each token makes that the first or the last one",
    "embed": "its vector comes from what all states together are pooled to",
}


def unseen(record: Record) -> str:
    """Why there is nothing to show, as it is with this kind of model."""
    if record.kind == "read":
        told = READ_OFF.get(str(record.model.get("task")), "its answer comes from the states of what it read")
        return f"this model has no attention, and no decoder: {told}"
    if record.kind == "row":
        return "this model has no attention: all it knows of what came before is the state it carries along"
    return "this model has no attention: all it knows of the source is the state it starts from"


def alignment(record: Record, width: int | None = None) -> str:
    """Target below target, source across: the darker, the more it looked there. Of a picture, its places for each."""
    weights = record.alignment()
    if weights is None:
        return unseen(record)
    width, top = width or shutil.get_terminal_size().columns, float(weights.max(initial=0.0)) or 1.0
    lines = pictured(record, weights / top, width) if record.picture else panels(record, weights / top, width)
    light, dark = INKED[0] * top, INKED[-1] * top
    told = f"{INK[-1]} is {dark:.3f} to {top:.3f}, the most of this map; {INK[1]} begins at {light:.3f}"
    return "\n".join([*lines, told])


def panels(record: Record, shares: Map, width: int) -> list[str]:
    """As much of the source as is as wide as the terminal, then the rest below it; of very much, what matters most."""
    columns, lines = record.labels("source"), [right(label, EDGE) for label in record.labels("target")]
    copied = ["" if record.copied is None else f"  copied {share:.3f}" for share in record.copied or record.target]
    room = max(width - EDGE - len("    0.000"), ROOM)
    kept, told = looked_at_most(columns, shares, room * PANELS)
    made: list[str] = [told] if told else []
    for part in wrapped([columns[place] for place in kept], room):
        places = [kept[number] for number in part]
        made += [""] if len(made) > 1 else []
        made.append(" " * (EDGE + 2) + "".join(columns[place] for place in places))
        for line, row, sure, share in zip(lines, shares, record.probabilities, copied, strict=True):
            ink = "".join(shade(row[place]) * cell_len(columns[place]) for place in places)
            made.append(f"{line}  {ink}  {sure:.3f}{share}")
    return made


def looked_at_most(columns: Sequence[str], shares: Map, room: int) -> tuple[list[int], str]:
    """The places of the source that are shown, and that others are not."""
    kept, used = [], 0
    for place in np.argsort(-shares.max(0), kind="stable").tolist():
        used += cell_len(columns[place])
        if used <= room:
            kept.append(place)
    if len(kept) == len(columns):
        return sorted(kept), ""
    return sorted(kept), f"the {len(kept)} of {len(columns)} tokens of the source that were looked at most:"


def wrapped(columns: Sequence[str], room: int) -> list[list[int]]:
    """Numbers of columns that fit side by side."""
    parts: list[list[int]] = [[]]
    used = 0
    for number, column in enumerate(columns):
        used += cell_len(column)
        if used > room and parts[-1]:
            parts.append([])
            used = cell_len(column)
        parts[-1].append(number)
    return parts


def pictured(record: Record, shares: Map, width: int) -> list[str]:
    """The places of the picture once for each word, as many words side by side as there is room for."""
    assert record.picture is not None
    rows, across = record.picture.rows, record.picture.columns
    wide = max(2 * across, len("0.000 ") + 6)
    count = max(1, (width + 3) // (wide + 3))
    words = [f"{sure:.3f} {label}" for label, sure in zip(record.labels("target"), record.probabilities, strict=True)]
    made: list[str] = []
    for start in range(0, len(words), count):
        some = range(start, min(start + count, len(words)))
        made += [""] if made else []
        made.append("   ".join(left(cut(words[word], wide), wide) for word in some).rstrip())
        for row in range(rows):
            cells = (shares[word, row * across : (row + 1) * across] for word in some)
            made.append(" │ ".join("".join(2 * shade(cell) for cell in each).ljust(wide) for each in cells))
    return made


def looked(record: Record) -> str:
    """All that a terminal can show of a record: what was answered, how sure, and who looked at what."""
    sure = "" if record.model.get("task") == "embed" else f"  ({100 * record.answer.confidence:.1f} %)"
    lines = [f"{escape(record.text)}  →  {escape(record.said)}{sure}", ""]
    if record.answer.chances:
        lines += [*bars([(label, chance) for label, chance in record.answer.chances[:MOST]]), ""]
    elif record.carried:
        lines += [*carrying(record)]
    elif record.at is not None:
        lines += [
            *(
                f"{right(words_of(record, place), 16)}  {left(label, 16)}  {sure:.3f}{rivals(record, place)}"
                for place, (label, sure) in enumerate(zip(record.labels("target"), record.probabilities, strict=True))
            ),
            "",
        ]
    if record.target:
        lines.append(alignment(record))
    if record.derived is not None and record.target:
        lines += ["", *derived(record, record.derived)]
    return "\n".join(lines)


def carrying(record: Record) -> list[str]:
    """Which words a vector goes by."""
    most = max((word.weight for word in record.carried), default=0.0) or 1.0
    lines = ["how far the vector moves without each word (1 − the cosine of the two vectors):"]
    for word in record.carried:
        ink = "█" * round(BAR * max(0.0, word.weight) / most)
        lines.append(f"{right(escape(record.text[word.start : word.end]), 16)}  {ink:{BAR}}  {word.weight:.3f}")
    return lines


def words_of(record: Record, place: int) -> str:
    """The piece of the source that a label stands at."""
    assert record.at is not None
    first, last = record.at[place]
    text = record.text[record.source[first].start : record.source[last].end]
    return cut(escape(text), 16) or record.labels("source")[last]


def rivals(record: Record, place: int) -> str:
    """What else could stand there."""
    others = [f"{escape(other.text)} {other.probability:.3f}" for other in record.alternatives[place][1:3]
              if other.probability >= NOTABLE]  # fmt: skip
    return f"   {', '.join(others)}" if others else ""


def bars(values: Sequence[tuple[str, float]]) -> list[str]:
    labels = [cut(escape(label), 24) for label, _ in values]
    width = max(map(cell_len, labels), default=0)
    return [f"{right(label, width)}  {'█' * round(BAR * value):{BAR}}  {value:.3f}"
            for label, (_, value) in zip(labels, values, strict=True)]  # fmt: skip


def derived(record: Record, found: Derived) -> list[str]:
    """What each source token is worth to the whole answer, and whether attention tells the same."""
    lost = found.erasure.sum(0)
    most = max(float(np.abs(lost).max(initial=0.0)), 1e-9)
    lines = ["log probability that the answer loses without each token of the source:"]
    named = zip(record.labels("source"), record.source, lost, strict=True)
    lines += [f"{right(label, 12)}  {'█' * round(BAR * max(0.0, float(value)) / most):{BAR}}  {value:+.3f}"
              for label, token, value in named if token.id not in SIGNS]  # fmt: skip
    if (rank := found.agreement.get("erasure")) is not None:
        verdict = "so attention is no reason here" if rank < AGREES else "so attention tells much the same"
        lines.append(f"attention and erasure order the source with a rank correlation of {rank:.2f}: {verdict}")
    heads = [
        f"{name} {head}: {value:+.3f}" for name, each in found.importance.items() for head, value in enumerate(each)
    ]
    return lines + ([f"mean log probability lost without a head: {', '.join(heads)}"] if heads else [])


def shade(share: float) -> str:
    """Ink for a share of the most; a twentieth of it is seen."""
    return INK[sum(share >= least for least in INKED)]


def table(rows: Sequence[Sequence[str]]) -> str:
    """Lines of cells: the first column to the left, all others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [[cell.rjust(width) if place else cell.ljust(width) for place, (cell, width) in
              enumerate(zip(row, widths, strict=True))] for row in rows]  # fmt: skip
    return "\n".join("  ".join(line).rstrip() for line in lines)


def shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def p_text(p_value: float) -> str:
    """A p-value that is never nought."""
    return f"{p_value:.4f}" if p_value >= 0.0001 else "<0.0001"


def difference_text(value: float, low: float | None, high: float | None, examples: int) -> str:
    """A difference with its interval; where there is none, on how many examples it was seen."""
    if low is not None and high is not None:
        return f"{value:+.2f} ({low:+.2f} – {high:+.2f})"
    seen = "one example" if examples == 1 else f"{examples:,} examples"
    if abs(value) < ROUNDING:
        return f"no difference seen on {seen}"
    return f"{value:+.2f} ({'alike ' if examples > 1 else ''}on {seen})"


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
