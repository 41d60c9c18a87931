"""A comparison in, one HTML file out that asks for nothing else: tables, and curves as SVG; no script in it."""

from collections.abc import Sequence
from html import escape

from regard.lab.compare import show
from regard.lab.compare.measure import Comparison, Row
from regard.view.chart import Axes, Line, Point, chart
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
.compared .told { color: var(--changed); }
.compared tr > :last-child { padding-inline-end: 0; }
.chapter > .hint { max-width: 760px; margin-top: 10px; }
.bars { display: block; width: 100%; max-width: 860px; height: auto; }
.bars .name { font-size: 14px; fill: var(--text); }
.bars .value { font-size: 14px; fill: var(--text); font-weight: 650; }
.bars .between { font-size: 12px; fill: var(--muted); }
.bars .rule { stroke: var(--rule); }
.bars .spread { stroke: var(--ink); stroke-width: 4; opacity: 0.4; stroke-linecap: round; }
.bars .spot { fill: var(--ink); }
.bars .run { fill: none; stroke: var(--ink); opacity: 0.7; }
@media (max-width: 700px) { .bars .name, .bars .value { font-size: 22px; } .bars .between { font-size: 19px; } }
@media (max-width: 700px) { .main { padding: 12px 16px 32px; } h1 { font-size: 26px; } }
"""
WIDTH, LINE = 860, 44  # of the picture of scores, and the height of a preset in it
TRACK = (220, 560)  # where its scale begins and ends


def page(c: Comparison) -> str:
    """The file."""
    names = ", ".join(row.preset for row in c.rows)
    chapters = [
        chapter(f"Score: {c.metric}", scores(c), hint(f"{capital(show.meaning(c))}, on {show.judged_on(c)}."
                f"{' Circles are single runs.' if len(c.seeds) > 1 else ''}")),
        chapter("Which differ", table(show.test_head(), [show.test_cells(each) for each in c.tests], told=4),
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
            kind = "told" if place == told and cell == "differ" else "best" if (best or {}).get(place) == number else ""
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
    low, high = min(every), max(every)
    low, high = (low - 1, high + 1) if high == low else (low, high)

    def at(value: float) -> float:
        return TRACK[0] + (value - low) / (high - low) * (TRACK[1] - TRACK[0])

    parts = []
    for number, (row, each) in enumerate(zip(c.rows, spreads, strict=True)):
        y = LINE * number + LINE / 2
        single = ", ".join(f"{run:.2f}" for run in each.runs)
        said = f"{row.preset}: {c.metric} {show.with_interval(each)}; runs {single}"
        name = f'<text class="name" x="0" y="{y}" dominant-baseline="central">{escape(row.preset)}</text>'
        parts.append(f"<g><title>{escape(said)}</title>{name}"
                     f'<line class="rule" x1="{TRACK[0]}" x2="{TRACK[1]}" y1="{y}" y2="{y}"/>')  # fmt: skip
        if each.low is not None and each.high is not None:
            parts.append(f'<line class="spread" x1="{at(each.low):.1f}" x2="{at(each.high):.1f}" y1="{y}" y2="{y}"/>')
        parts += [f'<circle class="run" cx="{at(run):.1f}" cy="{y}" r="4"/>' for run in each.runs if len(each.runs) > 1]
        value, _, between = show.with_interval(each).partition(" ")
        parts.append(f'<circle class="spot" cx="{at(each.value):.1f}" cy="{y}" r="6"/>'
                     f'<text class="value" x="{TRACK[1] + 24}" y="{y}" dominant-baseline="central">{value} '
                     f'<tspan class="between">{between}</tspan></text></g>')  # fmt: skip
    label = "; ".join(f"{row.preset} {show.with_interval(row.scores[c.metric])}" for row in c.rows)
    return (f'<svg class="bars" viewBox="0 0 {WIDTH} {LINE * len(c.rows)}" role="img" '
            f'aria-label="{escape(label, quote=True)}">{"".join(parts)}</svg>')  # fmt: skip


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
    bins = c.rows[0].by_length
    below = tuple((float(place), show.span(group.first, group.last)) for place, group in enumerate(bins))
    axes = Axes(f"{c.metric} by source length", "source tokens", c.metric, below)
    drawn = chart(axes, [Line(row.preset, points(row, c.metric)) for row in c.rows])
    top = ["source tokens", "examples", *(row.preset for row in c.rows)]
    figure = f'<div class="plots"><figure class="plot">{drawn}</figure></div>'
    words = ("Groups hold about as many examples each; whiskers are 95 % intervals. Where all that is known of a "
             "source passes through one vector, long sources come out worse: the bottleneck.")  # fmt: skip
    return chapter(f"{capital(c.metric)} by source length", figure, table(top, show.length_cells(c)), hint(words))


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
