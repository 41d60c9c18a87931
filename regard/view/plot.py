"""Weights or the log of a run in, a figure in a file out (SVG or PNG by its name); matplotlib draws."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import Any
from unicodedata import bidirectional

import numpy as np
from numpy.typing import NDArray

from regard.view.fonts import drawable, families

INK = "#1b4965"
SECOND = "#c8553d"
FAINT = 0.02  # a weight below this is no line
LONGEST = 90  # characters of a title
FRAMES = 6  # of a picture, side by side


def blank(width: float, height: float, fitted: bool = False) -> Any:
    """An empty figure, in inches. Matplotlib is loaded when something is drawn, and not by whoever only may draw."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained" if fitted else None)


def save(figure: Any, where: Path | BytesIO) -> None:
    """To a file of the kind its name says, or as SVG; without a date inside, so that it is reproducible."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    kind = where.suffix[1:] if isinstance(where, Path) else "svg"
    # Ids inside would be drawn at random, and letters that the font lacks would be boxes: in an SVG they stay text.
    with rc_context({"svg.hashsalt": "regard", "svg.fonttype": "none"}):
        figure.savefig(where, format=kind, bbox_inches="tight", metadata={"Date": None} if kind == "svg" else None)


@contextmanager
def lettered(texts: Iterable[str], path: Path) -> Iterator[Callable[[str], str]]:
    """While this is open, letters come from whatever fonts have them; gives what makes a text fit to be drawn.

    In an SVG letters stay text, and whoever shows it may have a font that this machine has not.
    """
    from matplotlib import rc_context

    chosen = families(texts)
    with rc_context({"font.family": list(chosen)}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from font")
        yield (lambda text: text) if path.suffix.lower() == ".svg" else lambda text: drawable(text, chosen)


# ── who looked at what ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Sheet:
    """One map to be drawn: its name, queries × keys for each head, and the tokens of both."""

    name: str
    weights: NDArray[np.float32]
    lines: Sequence[str]
    columns: Sequence[str]


@dataclass(frozen=True)
class Bars:
    """Values to be drawn side by side, and what they are; `most` is where their axis ends, none = at the greatest."""

    words: Sequence[str]
    values: Sequence[float]
    told: str
    most: float | None = 1.0


@dataclass(frozen=True)
class Title:
    """What was read and what was answered."""

    source: str
    output: str

    def __str__(self) -> str:
        """In one line if that is short and all of it runs from left to right; else each has its own."""
        source, output = (each if len(each) <= LONGEST else f"{each[:LONGEST]}…" for each in (self.source, self.output))
        straight = not any(bidirectional(each) in ("R", "AL") for each in source + output)
        return f"{source}{'  ' if straight and len(source + output) < LONGEST else chr(10)}→  {output}"


def looked(title: Title, bars: Bars | None, heat: Sheet | None, sheets: Sequence[Sheet], path: Path) -> None:
    """Bars; target × source as a heat map; self-attention as lines from word to word, and every head, small."""
    maps = [each for each in (heat, *sheets) if each is not None]
    words = [word for each in maps for word in (*each.lines, *each.columns)]
    texts = [str(title), *(bars.words if bars else ()), *words]
    with lettered(texts, path) as letters:
        sheets = [spelled(sheet, letters) for sheet in sheets]
        within = [sheet for sheet in sheets if sheet.lines == sheet.columns]
        most = max((len(sheet.weights) for sheet in sheets), default=0)
        parts: list[tuple[float, float, Callable[[Any], None]]] = []  # width, height, who draws it
        if bars is not None:
            parts.append((5.0, 0.7 + 0.28 * len(bars.words), lambda part: beams(part.subplots(), bars, letters)))
        if heat is not None:
            long = 0.09 * longest(heat.columns)
            size = (1.2 + 0.28 * len(heat.columns) + 0.09 * longest(heat.lines), 1.0 + 0.28 * len(heat.lines) + long)
            parts.append((*size, lambda part: warmth(part.subplots(), spelled(heat, letters))))
        if within:
            first = within[0]
            high = 0.4 + 0.28 * max(len(sheet.lines) for sheet in within)
            parts.append((4.0, high, lambda part: threads(part.subplots(), first)))
        if sheets:
            parts.append((1.1 * most, 0.9 * len(sheets), lambda part: grid(part, sheets)))
        stack(parts, letters(str(title)), path)


def stack(parts: Sequence[tuple[float, float, Callable[[Any], None]]], title: str, path: Path) -> None:
    """Parts of a figure below each other, and the title above them."""
    heights = [height for _, height, _ in parts] or [0.5]
    figure = blank(max((width for width, _, _ in parts), default=5.0), sum(heights) + 0.5, fitted=True)
    figure.suptitle(title, fontsize=10, parse_math=False)
    found = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    for part, (_, _, draw) in zip(found, parts, strict=False):
        draw(part)
    save(figure, path)


def longest(words: Sequence[str]) -> int:
    return max(map(len, words), default=0)


def spelled(sheet: Sheet, letters: Callable[[str], str]) -> Sheet:
    return replace(
        sheet, lines=[letters(word) for word in sheet.lines], columns=[letters(word) for word in sheet.columns]
    )


def warmth(axes: Any, sheet: Sheet) -> None:
    """A heat map; its darkest place is its largest weight, which is told."""
    weights = sheet.weights.mean(0)
    most = float(weights.max(initial=0.0)) or 1.0
    axes.imshow(weights, cmap="Blues", vmin=0.0, vmax=most, aspect="equal")
    turned = {"rotation": 90} if longest(sheet.columns) > 2 else {}
    axes.set_xticks(range(len(sheet.columns)), sheet.columns, parse_math=False, **turned)  # a $ in the data is a $
    axes.set_yticks(range(len(sheet.lines)), sheet.lines, parse_math=False)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_xlabel(f"what looked at what; the darkest is {most:.2f}", fontsize=8)


def beams(axes: Any, bars: Bars, letters: Callable[[str], str]) -> None:
    places = range(len(bars.words))
    axes.barh(places, bars.values, color=INK)
    axes.set_yticks(places, [letters(word) for word in bars.words], parse_math=False)
    axes.set_ylim(len(bars.words) - 0.5, -0.5)
    axes.set_xlim(min(0.0, *bars.values), bars.most or 1.05 * max(*bars.values, 1e-6))
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(bars.told, fontsize=8)


def threads(axes: Any, sheet: Sheet) -> None:
    """Words on the left looking at words on the right: the thicker the line, the more."""
    words = sheet.lines
    for query, row in enumerate(sheet.weights.mean(0)):
        for key, weight in enumerate(row):
            if weight > FAINT:
                axes.plot([0, 1], [query, key], color=INK, linewidth=3 * weight, alpha=min(1.0, 0.15 + float(weight)))
    for place, word in enumerate(words):
        axes.text(-0.03, place, word, ha="right", va="center", parse_math=False)
        axes.text(1.03, place, word, ha="left", va="center", parse_math=False)
    axes.set_xlim(-0.3, 1.3)
    axes.set_ylim(len(words) - 0.5, -0.5)
    axes.set_title(sheet.name, fontsize=9)
    axes.axis("off")


def grid(figure: Any, sheets: Sequence[Sheet]) -> None:
    """Layers below each other, heads side by side."""
    most = max(len(sheet.weights) for sheet in sheets)
    for row, sheet in zip(figure.subplots(len(sheets), most, squeeze=False), sheets, strict=True):
        for head, axes in enumerate(row):
            axes.axis("off")
            if head < len(sheet.weights):
                axes.imshow(sheet.weights[head], cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
                axes.set_title(f"{sheet.name} {head}", fontsize=6)


def overlays(pixels: NDArray[np.float32], weights: NDArray[np.float32], words: Sequence[str], path: Path) -> None:
    """The picture once for each word (target × rows × columns), bright where the word looked."""
    picture = pixels.transpose(1, 2, 0) if len(pixels) == 3 else pixels[0]
    height, width = picture.shape[:2]
    rows = -(-(len(words) + 1) // FRAMES)
    with lettered(words, path) as letters:
        figure = blank(1.6 * min(FRAMES, len(words) + 1), 1.9 * rows, fitted=True)
        frames = figure.subplots(rows, min(FRAMES, len(words) + 1), squeeze=False).flatten()
        for axes in frames:
            axes.axis("off")
        for axes, word, seen in zip(frames, ["", *words], [None, *weights], strict=False):
            axes.imshow(picture, cmap="gray", vmin=0.0, vmax=1.0, extent=(0, width, height, 0))
            axes.set_title(letters(word), fontsize=8, parse_math=False)
            if seen is not None:
                dim = 1.0 - seen / max(float(seen.max()), 1e-9)
                axes.imshow(np.zeros_like(dim), cmap="gray", alpha=0.75 * dim, extent=(0, width, height, 0),
                            interpolation="bilinear")  # fmt: skip
        save(figure, path)


# ── how training went ────────────────────────────────────────────────────────────────────────────────────────────────


def curves(log: Sequence[dict[str, Any]], metric: str, where: Path | BytesIO) -> None:
    """Loss on the left, the score that decides on the right, over steps."""
    figure = blank(8, 3)
    loss, score = figure.subplots(1, 2)
    line(loss, log, "loss", "training", INK)
    line(loss, log, "valid_loss", "validation", SECOND)
    loss.set_ylabel("loss a token")
    if loss.lines:
        loss.set_yscale("log")
        loss.legend(frameon=False)
    line(score, log, f"valid_{metric}", metric, SECOND)
    score.set_ylabel(f"validation: {metric}")
    within_bounds(score)
    for axes in (loss, score):
        axes.set_xlabel("steps")
        whole_steps(axes)
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save(figure, where)


def within_bounds(axes: Any) -> None:
    """An axis of per cent ends at 100 at the latest, with room for a point that stands there; one of rates at 0."""
    values = [float(value) for drawn in axes.lines for value in drawn.get_ydata()]
    if values and min(values) >= 0:
        low, high = axes.get_ylim()
        axes.set_ylim(max(0.0, low), min(high, 100.0) if max(values) <= 100 else high)
        for drawn in axes.lines:
            drawn.set_clip_on(False)  # half of a mark at the edge would be gone


def whole_steps(axes: Any) -> None:
    """Ticks at whole numbers, also where there is one point or two."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    steps = {float(step) for drawn in axes.lines for step in drawn.get_xdata()}
    if len(steps) == 1:
        axes.set_xlim(max(0.0, min(steps) - 1), max(steps) + 1)


def line(axes: Any, log: Sequence[dict[str, Any]], key: str, label: str, colour: str) -> None:
    """What is not a number, or nothing on a scale of logarithms, is left out; a mean of weights stands by itself."""
    seen = [entry for entry in log if key in entry and isfinite(entry[key])]
    seen = [entry for entry in seen if entry[key] > 0 or not key.endswith("loss")]
    points, means = ([(entry["step"], entry[key]) for entry in seen if ("weights" in entry) == mean]
                     for mean in (False, True))  # fmt: skip
    if points:
        axes.plot(*zip(*points, strict=True), color=colour, label=label, marker="." if len(points) < 30 else "")
    if means:
        axes.plot(*zip(*means, strict=True), "D", color=colour, fillstyle="none", label=f"{label}, mean of weights")
