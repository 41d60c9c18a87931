"""A comparison in, lines for a terminal out: the presets, the tests between them, the score by source length."""

from regard.data.read import escape
from regard.lab.compare.measure import BEAM, BOOTSTRAP, Comparison, Row, Spread, Test
from regard.view.terminal import difference_text, p_text, table

CERTAIN = 0.05  # from a corrected p-value below this on, two presets are told apart
ALIKE = "not told apart"
BESIDE = 4  # presets whose scores by length stand side by side


def render(c: Comparison) -> str:
    """All that fits a terminal."""
    parts = [head(c), presets(c), pairs(c), *([lengths(c)] if c.rows[0].by_length else []), "\n".join(footnotes(c))]
    return "\n\n".join(parts)


def head(c: Comparison) -> str:
    runs = f"{len(c.rows)} presets × {counted(len(c.seeds), 'seed')}"
    return (f"{runs} on {escape(c.data)}, task {c.task}; {c.budget} each; tokens: {c.tokens}\n"
            f"judged on {judged_on(c)}; {meaning(c)}")  # fmt: skip


def judged_on(c: Comparison) -> str:
    return f"{c.examples:,} examples of {escape(c.test)}" if c.test else f"{c.examples:,} held-out examples"


def meaning(c: Comparison) -> str:
    """What the numbers are."""
    if len(c.seeds) == 1:
        return f"{c.metric} with its 95 % interval over examples"
    return f"{c.metric}: mean of {len(c.seeds)} seeds, with its 95 % interval over seeds and examples"


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"


# ── the tables as cells, for a terminal and for a page ───────────────────────────────────────────────────────────────


def preset_head(c: Comparison) -> list[str]:
    return ["preset", c.metric, "parameters", "steps", "minutes", "training, tokens/s", "greedy, lines/s",
            f"beam {BEAM}, lines/s", "exposure gap", "in a row, training", "in a row, writing", "path"]  # fmt: skip


def preset_cells(row: Row, metric: str) -> list[str]:
    steps, exposure, speed = row.steps, row.exposure, row.speed
    updates, seconds = (sum(each) / len(row.trained) for each in zip(*row.trained, strict=True))
    return [
        row.preset, with_interval(row.scores[metric]), f"{row.parameters:,}", f"{updates:,.0f}", f"{seconds / 60:.1f}",
        whole(speed.training), whole(speed.greedy), whole(speed.beam),
        "–" if exposure is None else f"{exposure.gap:.2f}",
        *("–" if steps is None else whole(value) for value in (
            getattr(steps, "training", None), getattr(steps, "writing", None), getattr(steps, "path", None))),
    ]  # fmt: skip


def test_head() -> list[str]:
    return ["first – second", "", "difference (95 %)", "p", "p after Holm"]


def tests(c: Comparison) -> list[list[str]]:
    return [test_cells(each, c) for each in c.tests]


def test_cells(test: Test, c: Comparison) -> list[str]:
    return [f"{test.first} – {test.second}", verdict(test, c.higher_is_better),
            difference_text(test.difference, test.low, test.high, c.examples), p_text(test.p_value),
            p_text(test.corrected)]  # fmt: skip


def verdict(test: Test, higher_is_better: bool) -> str:
    if test.corrected >= CERTAIN:
        return ALIKE
    return f"{test.first if (test.difference > 0) == higher_is_better else test.second} is better"


def length_cells(c: Comparison) -> list[list[str]]:
    """A line for each group of lengths, a column for each preset."""
    return [[span(group.first, group.last), f"{group.examples:,}",
             *(with_interval(row.by_length[place].score, 1) for row in c.rows)]
            for place, group in enumerate(c.rows[0].by_length)]  # fmt: skip


def span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"


def with_interval(spread: Spread, digits: int = 2) -> str:
    if spread.low is None or spread.high is None:
        return f"{spread.value:.{digits}f}"
    return f"{spread.value:.{digits}f} ({spread.low:.{digits}f} – {spread.high:.{digits}f})"


def whole(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


# ── for a terminal ───────────────────────────────────────────────────────────────────────────────────────────────────


def presets(c: Comparison) -> str:
    """Two tables, since one would be too wide: how good and how large, how fast and how deep."""
    top, rows = preset_head(c), [preset_cells(row, c.metric) for row in c.rows]
    good, fast = (0, 1, 2, 8, 3, 4), (0, 5, 6, 7, 9, 10, 11)
    return "\n\n".join(table([[line[place] for place in places] for line in (top, *rows)]) for places in (good, fast))


def pairs(c: Comparison) -> str:
    how = f"paired bootstrap on the same examples, {BOOTSTRAP.samples} resamples, p corrected by Holm for"
    return f"{c.metric}, {how} {counted(len(c.tests), 'test')}\n{table([test_head(), *tests(c)])}"


def lengths(c: Comparison) -> str:
    """A few presets at a time."""
    rows = [["source tokens", "examples", *(row.preset for row in c.rows)], *length_cells(c)]
    parts = [table([[*row[:2], *row[2 + first : 2 + first + BESIDE]] for row in rows])
             for first in range(0, len(c.rows), BESIDE)]  # fmt: skip
    return f"{c.metric} by source length\n" + "\n\n".join(parts)


def footnotes(c: Comparison) -> list[str]:
    found = [f"note: {escape(note.removeprefix('warning: '))}" for note in c.notes]
    return [*explained(c), *found]


def explained(c: Comparison) -> list[str]:
    """What the columns are, as far as this task has them."""
    found = ["steps, minutes, tokens/s: of training, the mean or median of the seeds; tokens are those that were to be "
             "foreseen"]  # fmt: skip
    if any(row.exposure for row in c.rows):
        found.append("exposure gap: % of tokens right given the true ones before them, less % right given its own")
    if any(row.speed.greedy for row in c.rows):
        found.append("lines/s: the model of the first seed, on this machine as it was, each in turn, median of three")
    if any(row.steps for row in c.rows):
        length = next(row.steps.length for row in c.rows if row.steps)
        found.append(f"in a row: operations that wait for one another, for {length} tokens; path: steps from the "
                     "furthest source token to the last output (regard anatomy)")  # fmt: skip
    return found
