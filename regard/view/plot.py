"""A record or the log of a run in, a figure in a file out (SVG or PNG by its name); matplotlib draws."""

from collections.abc import Sequence
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from regard.data.read import escape
from regard.errors import RegardError
from regard.view.record import Record
from regard.view.terminal import shown

INK = "#1b4965"
SECOND = "#c8553d"


def save(figure: Figure, where: Path | BytesIO) -> None:
    """To a file of the kind its name says, or as SVG; without a date inside, so that it is reproducible."""
    FigureCanvasAgg(figure)
    kind = where.suffix[1:] if isinstance(where, Path) else "svg"
    # Ids inside would be drawn at random, and letters that the font lacks would be boxes: in an SVG they stay text.
    with rc_context({"svg.hashsalt": "regard", "svg.fonttype": "none"}):
        figure.savefig(where, format=kind, bbox_inches="tight", metadata={"Date": None} if kind == "svg" else None)


def alignment(record: Record, path: Path) -> None:
    """Target × source as a heat map."""
    weights = record.alignment()
    if weights is None:
        raise RegardError("this model has no attention, so there is no alignment to draw")
    columns, lines = [shown(t) for t in record.source], [shown(t) for t in record.target]
    figure = Figure(figsize=(1.2 + 0.28 * len(columns), 1.0 + 0.28 * len(lines)))
    axes = figure.add_subplot()
    axes.imshow(weights, cmap="Blues", vmin=0.0, vmax=1.0, aspect="equal")
    axes.set_xticks(range(len(columns)), columns, parse_math=False)  # a $ in the data is a $ in the picture
    axes.set_yticks(range(len(lines)), lines, parse_math=False)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_xlabel(escape(f"{record.text}  →  {record.output}"), parse_math=False)
    save(figure, path)


def curves(log: Sequence[dict[str, Any]], metric: str, where: Path | BytesIO) -> None:
    """Loss on the left, the score that decides on the right, over steps."""
    figure = Figure(figsize=(8, 3))
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
