"""Weights or the log of a run in, a figure in a file out (SVG or PNG by its name); matplotlib draws."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

INK = "#1b4965"
SECOND = "#c8553d"
FAINT = 0.02  # a weight below this is no line
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


# ── who looked at what ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Sheet:
    """One map to be drawn: its name, queries × keys for each head, and the tokens of both."""

    name: str
    weights: NDArray[np.float32]
    lines: Sequence[str]
    columns: Sequence[str]


def alignment(weights: NDArray[np.float32], lines: Sequence[str], columns: Sequence[str], title: str, path: Path,
              sheets: Sequence[Sheet] = ()) -> None:  # fmt: skip
    """Target × source as a heat map; below it self-attention as lines from word to word, and every head, small."""
    within = [sheet for sheet in sheets if sheet.lines == sheet.columns]
    wide, high = 1.2 + 0.28 * len(columns), 1.0 + 0.28 * len(lines)
    heights = [high, *([0.4 + 0.28 * max(len(sheet.lines) for sheet in within)] if within else []),
               *([0.9 * len(sheets)] if sheets else [])]  # fmt: skip
    width = max(wide, 4.0 * bool(within), 1.1 * max((len(sheet.weights) for sheet in sheets), default=0))
    figure = blank(width, sum(heights), fitted=True)
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    heat(parts[0].subplots(), weights, lines, columns, title)
    if within:
        first = within[0]
        threads(parts[1].subplots(), first.weights.mean(0), first.lines, first.name)
    if sheets:
        grid(parts[-1], sheets)
    save(figure, path)


def heat(axes: Any, weights: NDArray[np.float32], lines: Sequence[str], columns: Sequence[str], title: str) -> None:
    axes.imshow(weights, cmap="Blues", vmin=0.0, vmax=1.0, aspect="equal")
    axes.set_xticks(range(len(columns)), columns, parse_math=False)  # a $ in the data is a $ in the picture
    axes.set_yticks(range(len(lines)), lines, parse_math=False)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_xlabel(title, parse_math=False)


def threads(axes: Any, weights: NDArray[np.float32], words: Sequence[str], name: str) -> None:
    """Words on the left looking at words on the right: the thicker the line, the more."""
    for query, row in enumerate(weights):
        for key, weight in enumerate(row):
            if weight > FAINT:
                axes.plot([0, 1], [query, key], color=INK, linewidth=3 * weight, alpha=min(1.0, 0.15 + float(weight)))
    for place, word in enumerate(words):
        axes.text(-0.03, place, word, ha="right", va="center", parse_math=False)
        axes.text(1.03, place, word, ha="left", va="center", parse_math=False)
    axes.set_xlim(-0.3, 1.3)
    axes.set_ylim(len(words) - 0.5, -0.5)
    axes.set_title(name, fontsize=9)
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
    figure = blank(1.6 * min(FRAMES, len(words) + 1), 1.9 * rows, fitted=True)
    frames = figure.subplots(rows, min(FRAMES, len(words) + 1), squeeze=False).flatten()
    for axes in frames:
        axes.axis("off")
    for axes, word, looked in zip(frames, ["", *words], [None, *weights], strict=False):
        axes.imshow(picture, cmap="gray", vmin=0.0, vmax=1.0, extent=(0, width, height, 0))
        axes.set_title(word, fontsize=8, parse_math=False)
        if looked is not None:
            dim = 1.0 - looked / max(float(looked.max()), 1e-9)
            axes.imshow(np.zeros_like(dim), cmap="gray", alpha=0.75 * dim, extent=(0, width, height, 0),
                        interpolation="bilinear")  # fmt: skip
    save(figure, path)


def bars(words: Sequence[str], values: Sequence[float], title: str, path: Path) -> None:
    """How sure each token was; for models that look at nothing."""
    figure = blank(5, 0.8 + 0.28 * len(words))
    axes = figure.add_subplot()
    axes.barh(range(len(words)), values, color=INK)
    axes.set_yticks(range(len(words)), words, parse_math=False)
    axes.set_ylim(len(words) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(f"probability of each token · {title}", parse_math=False)
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
    for axes in (loss, score):
        axes.set_xlabel("steps")
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save(figure, where)


def line(axes: Any, log: Sequence[dict[str, Any]], key: str, label: str, colour: str) -> None:
    """What is not a number, or nothing on a scale of logarithms, is left out."""
    points = [(entry["step"], entry[key]) for entry in log if key in entry and isfinite(entry[key])]
    points = [(step, value) for step, value in points if value > 0 or not key.endswith("loss")]
    if points:
        axes.plot(*zip(*points, strict=True), color=colour, label=label, marker="." if len(points) < 30 else "")
