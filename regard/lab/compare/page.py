"""A comparison in, one HTML file out that asks for nothing else: tables, and curves as SVG; no script in it."""

from collections.abc import Sequence
from html import escape

from regard.lab.compare import show
from regard.lab.compare.measure import Comparison, Row, Spread
from regard.view.chart import Axes, Line, Point, chart, chart_file
from regard.view.html import still

STYLE = """
.wide { overflow-x: auto; scrollbar-width: thin; }
.compared { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
.compared th, .compared td { border-bottom: 1px solid var(--rule); padding: 6px 16px 6px 0; }
.compared th, .compared td { text-align: end; white-space: nowrap; }
.compared thead th { color: var(--muted); font-weight: 400; vertical-align: bottom; }
.compared thead th { white-space: normal; min-width: 4.5em; }
.compared th:first-child, .compared td:first-child { text-align: start; }
.compared tbody th { font-weight: 600; }
.compared .best { font-weight: 650; }
.compared .told { font-weight: 650; }
.compared tr > :last-child { padding-inline-end: 0; }
.chapter > .hint { max-width: 760px; margin-top: 10px; }
.ranking { display: grid; gap: 2px; max-width: 900px; }
.ranked { display: grid; grid-template-columns: 170px minmax(120px, 1fr) 190px; gap: 4px 24px; align-items: center; }
.ranked { padding: 5px 0; font-variant-numeric: tabular-nums; }
.ranked b { font-weight: 650; font-size: 17px; }
.ranked .name { font-weight: 600; overflow-wrap: anywhere; }
.lane { width: 100%; height: 18px; display: block; overflow: visible; }
.lane .rule { stroke: var(--rule); }
.lane .spread { stroke: var(--ink); stroke-width: 5; opacity: 0.35; stroke-linecap: round; }
.lane .spot { stroke: var(--ink); stroke-width: 13; stroke-linecap: round; }
.lane .run { stroke: var(--ink); stroke-width: 1.5; opacity: 0.8; }
.lane * { vector-effect: non-scaling-stroke; }
.plot .chart { min-width: 520px; max-width: 620px; }
@media (max-width: 700px) {
  .main { padding: 12px 16px 32px; }
  h1 { font-size: 26px; }
  .compared tbody th { white-space: normal; min-width: 8em; }
  .ranked { grid-template-columns: minmax(0, 1fr) auto; padding: 8px 0; }
  .lane { grid-column: 1 / -1; grid-row: 2; }
}
"""
WIDTH = 1000  # of the track that a score stands on, in units of its own
TITLED = 4  # presets that are all named in the title


def page(c: Comparison) -> str:
    """The file."""
    names = ", ".join(row.preset for row in c.rows) if len(c.rows) <= TITLED else f"{len(c.rows)} presets side by side"
    chapters = [
        chapter(f"Score: {c.metric}", scores(c), hint(f"{capital(show.meaning(c))}, on {show.judged_on(c)}."
                f"{' Thin strokes are single runs.' if len(c.seeds) > 1 else ''}")),
        chapter("Which differ", table(show.test_head(), show.tests(c), told=1),
                hint("Paired bootstrap on the same examples, p-values corrected by Holm for the number of tests.")),
        lengths(c),
        chapter("Cost", table(*cost(c)), *(hint(f"{capital(line)}.") for line in show.explained(c))),
        others(c),
        chapter("How it was made", facts(c)),
    ]  # fmt: skip
    about = f"{show.counted(len(c.seeds), 'seed')} each · {c.task} · {c.budget} · {c.made}"
    top = f'<div class="masthead"><h1>{escape(names)}</h1><p class="hint">{escape(about)}</p></div>'
    bar = '<header class="bar"><span class="brand">regard</span><span class="file-title">compare</span></header>'
    return still(f'{bar}<main class="main report">{top}{"".join(chapters)}</main>', f"compare: {names}", STYLE)


def chapter(title: str, *children: str) -> str:
    return f'<section class="chapter"><h2>{escape(title)}</h2>{"".join(children)}</section>'


def hint(words: str) -> str:
    return f'<p class="hint">{escape(words)}</p>'


def capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def table(top: Sequence[str], rows: Sequence[Sequence[str]], told: int = -1, best: dict[int, int] | None = None) -> str:
    """`told` is a column of verdicts; `best` the row that is best, by column."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in top)
    made = []
    for number, row in enumerate(rows):
        cells = [f'<th scope="row">{escape(row[0])}</th>']
        for place, cell in enumerate(row[1:], 1):
            kind = (
                "told" if place == told and cell != show.ALIKE else "best" if (best or {}).get(place) == number else ""
            )
            cells.append(f"<td{f' class={chr(34)}{kind}{chr(34)}' if kind else ''}>{escape(cell)}</td>")
        made.append(f"<tr>{''.join(cells)}</tr>")
    body = "".join(made)
    return (
        f'<div class="wide"><table class="compared"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


# ── scores ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def scores(c: Comparison) -> str:
    """Each preset on a line of its own, all on one scale: the mean, its interval, and the single runs."""
    spreads = [row.scores[c.metric] for row in c.rows]
    every = [value for each in spreads for value in (each.value, each.low, each.high, *each.runs) if value is not None]
    low, width = min(every), (max(every) - min(every)) or 1.0
    rows = [ranked(row.preset, each, low, width) for row, each in zip(c.rows, spreads, strict=True)]
    return f'<div class="ranking">{"".join(rows)}</div>'


def ranked(preset: str, spread: Spread, low: float, width: float) -> str:
    """A point is a line of no length with round ends, which keeps its shape however wide the track is drawn."""

    def line(kind: str, first: float, last: float, y: tuple[float, float] = (9, 9)) -> str:
        a, b = (WIDTH * (value - low) / width for value in (first, last))
        return f'<line class="{kind}" x1="{a:.1f}" x2="{b:.1f}" y1="{y[0]}" y2="{y[1]}"/>'

    between = [] if spread.low is None or spread.high is None else [line("spread", spread.low, spread.high)]
    single = [line("run", run, run, (1, 17)) for run in spread.runs] if len(spread.runs) > 1 else []
    parts = [line("rule", low, low + width), *between, *single, line("spot", spread.value, spread.value)]
    value, _, interval = show.with_interval(spread).partition(" ")
    runs = ", ".join(f"{run:.2f}" for run in spread.runs)
    said = escape(f"{preset}: {show.with_interval(spread)}; runs {runs}", quote=True)
    lane = (f'<svg class="lane" viewBox="0 0 {WIDTH} 18" preserveAspectRatio="none" role="img" '
             f'aria-label="{said}"><title>{said}</title>{"".join(parts)}</svg>')  # fmt: skip
    figures = f'<span class="figures"><b>{value}</b> <span class="hint">{interval}</span></span>'
    return f'<div class="ranked"><span class="name">{escape(preset)}</span>{lane}{figures}</div>'


def others(c: Comparison) -> str:
    """The metrics that do not decide."""
    names = [name for name in c.rows[0].scores if name != c.metric]
    if not names:
        return ""
    rows = [[row.preset, *(show.with_interval(row.scores[name]) for name in names)] for row in c.rows]
    return chapter("Other scores", table(["preset", *names], rows))


# ── by length ────────────────────────────────────────────────────────────────────────────────────────────────────────


def lengths(c: Comparison) -> str:
    if not c.rows[0].by_length:
        return ""
    drawn = chart(*curve(c))
    top = ["source tokens", "examples", *(row.preset for row in c.rows)]
    figure = f'<figure class="plot wide">{drawn}</figure>'
    words = ("Groups hold about as many examples each; whiskers are 95 % intervals. The bottleneck shows where a line "
             "falls with length because all that is known of a source passes through one vector, while the lines of "
             "presets that look at the source fall less.")  # fmt: skip
    return chapter(f"{capital(c.metric)} by source length", figure, table(top, show.length_cells(c)), hint(words))


def length_file(c: Comparison) -> str:
    """The curve alone, as an SVG; nothing where sources have no length."""
    return chart_file(*curve(c)) if c.rows[0].by_length else ""


def curve(c: Comparison) -> tuple[Axes, list[Line]]:
    groups = c.rows[0].by_length
    below = tuple((float(place), show.span(group.first, group.last)) for place, group in enumerate(groups))
    axes = Axes(f"{c.metric} by source length", "source tokens", c.metric, below)
    return axes, [Line(row.preset, points(row, c.metric)) for row in c.rows]


def points(row: Row, metric: str) -> tuple[Point, ...]:
    return tuple(
        Point(float(place), group.score.value, group.score.low, group.score.high,
              f"{row.preset}, {show.span(group.first, group.last)} tokens, {group.examples} examples: {metric} "
              f"{show.with_interval(group.score)}")
        for place, group in enumerate(row.by_length)
    )  # fmt: skip


# ── cost, and how it was made ────────────────────────────────────────────────────────────────────────────────────────


def cost(c: Comparison) -> tuple[list[str], list[list[str]]]:
    """All but the score, and the two sides of the exposure gap."""
    top, rows = show.preset_head(c), [show.preset_cells(row, c.metric) for row in c.rows]
    sides = [("–", "–") if row.exposure is None else (f"{row.exposure.forced:.2f}", f"{row.exposure.free:.2f}")
             for row in c.rows]  # fmt: skip
    head = [top[0], *top[2:8], "tokens right, true before", "tokens right, its own", *top[8:]]
    made = [[row[0], *row[2:8], *side, *row[8:]] for row, side in zip(rows, sides, strict=True)]
    known = [place for place in range(len(head)) if not place or any(row[place] != "–" for row in made)]
    return [head[place] for place in known], [[row[place] for place in known] for row in made]


def facts(c: Comparison) -> str:
    found = [("data", c.data), ("judged on", show.judged_on(c)), ("tokens of all runs", c.tokens),
             ("seeds", ", ".join(map(str, c.seeds))), ("budget of each run", c.budget),
             ("signature", c.signatures.get(c.metric, "")), *(("note", note) for note in c.notes)]  # fmt: skip
    rows = "".join(f"<li><b>{escape(name)}</b>: {escape(value)}</li>" for name, value in found if value)
    return f'<div class="prose"><ul>{rows}</ul><pre>{escape(c.command)}</pre></div>'
