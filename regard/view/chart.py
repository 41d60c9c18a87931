"""Lines with intervals in, one chart out as SVG text for a page: told apart by dashes, marks and names, not by colour.

The classes are those of the page's style, so that a chart follows it from light to dark; nothing in it is a script. As
a file of its own it brings the few rules that it needs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 590, 280
LEFT, TOP, BOTTOM = 46, 14, 40
NAMES = 148  # room for names at the ends of lines
DASHES = ("", "5 4", "1.5 3.5", "9 3 2 3")
MARK = 3.5  # half the width of a mark
APART = 13  # pixels between two names
ASIDE = 2.5  # pixels by which the whiskers of one line stand beside those of the next
ALONE = """
svg { --paper: #ffffff; --text: #1b2330; --muted: #5f6b7c; --rule: #e3e7ed; --ink: #1d4079; background: var(--paper);
      font-family: system-ui, sans-serif; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #10141b; --text: #e4e9f1; --muted: #96a1b2; --rule: #2a313d; --ink: #d6e5ff; }
}
.rule { stroke: var(--rule); }
.tick, .axis, .series-name { font-size: 12px; fill: var(--muted); font-variant-numeric: tabular-nums; }
.series-name { fill: var(--text); }
.series { fill: none; stroke: var(--ink); stroke-width: 2; stroke-linejoin: round; }
.whisker { stroke: var(--ink); stroke-width: 1.5; opacity: 0.55; }
.dot { fill: var(--ink); }
"""


@dataclass(frozen=True)
class Point:
    """One place of a line: a number, its interval where there is one, and what is said of it."""

    x: float
    y: float
    low: float | None
    high: float | None
    said: str


@dataclass(frozen=True)
class Line:
    """One thing that is compared."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Axes:
    """What is drawn against what; `ticks` are the places below the line with their names."""

    title: str
    x: str
    y: str
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class Scale:
    """From numbers to pixels, both ways growing as one reads them."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, value: float) -> float:
        share = (value - self.x_low) / ((self.x_high - self.x_low) or 1.0)
        return LEFT + 8 + share * (WIDTH - NAMES - LEFT - 16)

    def y(self, value: float) -> float:
        share = (value - self.y_low) / ((self.y_high - self.y_low) or 1.0)
        return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)


def chart(axes: Axes, lines: Sequence[Line]) -> str:
    """The chart as one <svg>."""
    points = [point for line in lines for point in line.points]
    heights = [value for point in points for value in (point.y, point.low, point.high) if value is not None]
    steps = ticks(min(heights), max(heights))
    scale = Scale(min(point.x for point in points), max(point.x for point in points), steps[0], steps[-1])
    said = "; ".join(f"{line.name} from {line.points[0].y:.1f} to {line.points[-1].y:.1f}" for line in lines)
    label = escape(f"{axes.title}: {axes.y} by {axes.x}; {said}", quote=True)
    parts = [*frame(axes, steps, scale), *(part for number, line in enumerate(lines)
             for part in drawn(line, number, number - (len(lines) - 1) / 2, scale)), *names(lines, scale)]  # fmt: skip
    return f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def chart_file(axes: Axes, lines: Sequence[Line]) -> str:
    """The chart as an SVG file."""
    drawn = chart(axes, lines)
    first, _, rest = drawn.partition(">")
    size = f'xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"'
    return f"{first} {size}><style>{ALONE}</style>{rest}\n"


def ticks(low: float, high: float) -> list[float]:
    """About five round numbers that hold both."""
    width = (high - low) or 1.0
    size = 10.0 ** math.floor(math.log10(width / 4))
    step = next(size * factor for factor in (1, 2, 5, 10) if width / (size * factor) <= 5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [step * number for number in range(first, max(last, first + 1) + 1)]


def text(kind: str, x: float, y: float, anchor: str, words: str, more: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


def frame(axes: Axes, steps: Sequence[float], scale: Scale) -> list[str]:
    right, central = WIDTH - NAMES, ' dominant-baseline="central"'
    digits = max(0, -math.floor(math.log10(steps[1] - steps[0]) + 1e-9))
    rules = [f'<line class="rule" x1="{LEFT}" x2="{right}" y1="{scale.y(at):.1f}" y2="{scale.y(at):.1f}"/>'
             + text("tick", LEFT - 6, scale.y(at), "end", f"{at:.{digits}f}", central) for at in steps]  # fmt: skip
    below = [text("tick", scale.x(at), HEIGHT - BOTTOM + 16, "middle", name) for at, name in axes.ticks]
    turned = f' transform="rotate(-90 11 {(HEIGHT - BOTTOM + TOP) / 2:.1f})"'
    return [*rules, *below, text("axis", (LEFT + right) / 2, HEIGHT - 5, "middle", axes.x),
            text("axis", 11, (HEIGHT - BOTTOM + TOP) / 2, "middle", axes.y, turned)]  # fmt: skip


def drawn(line: Line, number: int, aside: float, scale: Scale) -> list[str]:
    """A line, its intervals and its marks; whiskers of several lines stand beside each other."""
    shift = ASIDE * aside
    path = " ".join(f"{'L' if place else 'M'}{scale.x(point.x) + shift:.1f} {scale.y(point.y):.1f}"
                    for place, point in enumerate(line.points))  # fmt: skip
    parts = [f'<path class="series" d="{path}"{dashes(number)}/>']
    for point in line.points:
        at = scale.x(point.x) + shift
        if point.low is not None and point.high is not None:
            ends = f'y1="{scale.y(point.low):.1f}" y2="{scale.y(point.high):.1f}"'
            parts.append(f'<line class="whisker" x1="{at:.1f}" x2="{at:.1f}" {ends}/>')
        parts.append(f"<g><title>{escape(point.said)}</title>{mark(number, at, scale.y(point.y))}</g>")
    return parts


def dashes(number: int) -> str:
    found = DASHES[number % len(DASHES)]
    return f' stroke-dasharray="{found}"' if found else ""


def mark(number: int, x: float, y: float) -> str:
    """A disc, a square, a diamond or a triangle: another one where the dashes come again."""
    m = MARK
    match (number // len(DASHES)) % 4:
        case 0:
            return f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="{m}"/>'
        case 1:
            return f'<rect class="dot" x="{x - m:.1f}" y="{y - m:.1f}" width="{2 * m}" height="{2 * m}"/>'
        case 2:
            places = [(x, y - 1.4 * m), (x + 1.4 * m, y), (x, y + 1.4 * m), (x - 1.4 * m, y)]
        case _:
            places = [(x, y - 1.3 * m), (x + 1.3 * m, y + m), (x - 1.3 * m, y + m)]
    return f'<polygon class="dot" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in places)}"/>'


def names(lines: Sequence[Line], scale: Scale) -> list[str]:
    """At the ends of the lines, each with a sample of it; where two would touch, the lower goes lower."""
    ends = sorted(range(len(lines)), key=lambda number: scale.y(lines[number].points[-1].y))
    places: list[float] = []
    for number in ends:
        places.append(max(scale.y(lines[number].points[-1].y), (places[-1] + APART) if places else -math.inf))
    over = max(0.0, places[-1] - (HEIGHT - BOTTOM))
    x = WIDTH - NAMES + 6
    made = []
    for number, place in zip(ends, places, strict=True):
        y = place - over
        made.append(f'<path class="series" d="M{x} {y:.1f} h20"{dashes(number)}/>{mark(number, x + 10, y)}'
                    + text("series-name", x + 25, y, "start", short(lines[number].name),
                           ' dominant-baseline="central"'))  # fmt: skip
    return made


def short(name: str) -> str:
    return name if len(name) <= 17 else name[:16] + "…"
