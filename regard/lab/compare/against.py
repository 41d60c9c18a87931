"""Two models and a file in, the paired test out: who is better on the same examples, and is it more than chance.

Scores and their resamples are those of `score`: BLEU, chrF and TER from sacrebleu's own counts of each sentence, all
other metrics from what each example has; the same examples are drawn for both.
"""

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.data.read import Columns, Example, escape
from regard.errors import DataError, UsageError
from regard.score import Metric, Paired
from regard.score.intervals import Bootstrap
from regard.score.metrics import is_share
from regard.score.tallies import Rights, all_right, compare, drawn, rights
from regard.tasks.generate import Generate
from regard.tasks.task import Evaluation, Item
from regard.trained import Trained
from regard.view.terminal import difference_text, p_text, shortened, table

MOST = 5  # examples that are shown
BOOTSTRAP = Bootstrap()
LONGEST = 200  # characters of a text that is shown

Read = tuple[list[Item], list[Example]]


@dataclass(frozen=True)
class Difference:
    """One metric of both, and the first less the second."""

    first: Metric
    second: Metric
    paired: Paired


@dataclass(frozen=True)
class Disagreement:
    """One example that the two answer differently."""

    line: int
    source: str
    target: str
    first: str
    second: str
    right: tuple[bool, bool] | None  # none where a task does not know


@dataclass(frozen=True)
class Against:
    """All that a paired test tells."""

    names: tuple[str, str]
    examples: int
    differences: tuple[Difference, ...]
    judged_by: str  # the metric that says which examples are right; empty where none does
    rights: Rights | None
    shown: tuple[Disagreement, ...]

    def as_dict(self) -> dict[str, Any]:
        made = {each.first.name: {"first": figures(each.first), "second": figures(each.second), **asdict(each.paired)}
                for each in self.differences}  # fmt: skip
        right = None if self.rights is None else {**asdict(self.rights), "p_value": self.rights.p_value}
        return {"models": list(self.names), "examples": self.examples, "metrics": made, "judged_by": self.judged_by,
                "right": right, "differ": [asdict(each) for each in self.shown]}  # fmt: skip


def figures(m: Metric) -> dict[str, Any]:
    return {"value": m.value, "low": m.low, "high": m.high, "signature": m.signature}


def against(
    first: Trained,
    second: Trained,
    path: str | Path,
    beam: int | None = None,
    skip_bad: bool = False,
    columns: Columns | None = None,
    names: tuple[str, str] | None = None,
) -> Against:
    """Both on the same examples of a file; each reads the columns that it was trained on, unless others are named."""
    names = names or (first.name, second.name)
    if first.config.task != second.config.task:
        tasks = f"{names[0]} is a model of the task {first.config.task} and {names[1]} of {second.config.task}"
        raise UsageError(f"{tasks}: only models of one task can be set against each other")
    # On one line, so that what both would warn of is said once.
    sides = [
        read(model, first, path, skip_bad, columns, name) for model, name in zip((first, second), names, strict=True)
    ]
    (items, examples), (other_items, other_examples) = common(sides, str(path))
    found = first.judge(items, examples, beam), second.judge(other_items, other_examples, beam)
    return judged(names, examples, *found)


def read(model: Trained, first: Trained, path: str | Path, skip_bad: bool, columns: Columns | None, name: str) -> Read:
    """What a model makes of a file. Running text is cut into pages for the first, and the second reads the same."""
    try:
        if not isinstance(model.task, Generate):
            return model.examples(path, skip_bad, columns)
        return model.read_items(first.table(str(path), columns or first.task.columns(), skip_bad), skip_bad)
    except DataError as error:
        raise DataError(f"{escape(name)} can not read it: {error}") from None


def common(sides: Sequence[Read], path: str) -> Sequence[Read]:
    """The examples that both could read; of others nothing can be compared."""
    if sides[0][1] == sides[1][1]:
        return sides
    lines = [{example.line: example.target for example in side[1]} for side in sides]
    both = {line for line in lines[0].keys() & lines[1].keys() if lines[0][line] == lines[1][line]}
    left = len(lines[0].keys() | lines[1].keys()) - len(both)
    if not both:
        raise DataError(
            f"{path}: the two models read no example with the same target; were they trained on other columns?"
        )
    if left:
        told = "which only one of the models can read, or with another target"
        warnings.warn(f"{path}: {left} examples are left out, {told}", stacklevel=3)
    kept = [[(item, example) for item, example in zip(*side, strict=True) if example.line in both] for side in sides]
    return [([item for item, _ in side], [example for _, example in side]) for side in kept]


def judged(names: tuple[str, str], examples: Sequence[Example], first: Evaluation, second: Evaluation) -> Against:
    """From what both answered, and what is known of each example."""
    telling = [m.name for m in first.telling if m.name in second.tallies and m.name in first.tallies]
    if not telling:
        raise UsageError("there is no metric of single examples to compare these models by")
    refuse_other_counts(first, second)
    differences = []
    for name in telling:
        one, other = (drawn([each.tallies[name]], BOOTSTRAP) for each in (first, second))
        paired = compare(one, other, is_share(name))
        differences.append(Difference(first.metrics[name], second.metrics[name], paired))
    by = next((name for name in telling if is_share(name)), "")
    right = tuple(all_right(each.tallies[by]) for each in (first, second)) if by else None
    counted = rights(*right) if right else None
    found = disagreements(examples, (first, second), right)
    return Against(names, len(examples), tuple(differences), by, counted, tuple(found))


def refuse_other_counts(first: Evaluation, second: Evaluation) -> None:
    """Where tokens are counted, both must count the same ones: a model that fills holes hides its own tokens."""
    for name in first.tallies.keys() & second.tallies.keys():
        rows, others = first.tallies[name].rows, second.tallies[name].rows
        if is_share(name) and (rows[:, 1] != others[:, 1]).any():
            raise UsageError(f"{name}: the two models do not count the same places, because their tokens differ; "
                             "nothing can be paired")  # fmt: skip


def disagreements(examples: Sequence[Example], found: Sequence[Evaluation], right: Any) -> list[Disagreement]:
    """Examples with different answers; those first that one of the two has right, from both sides in turn."""
    one, other = (each.outputs for each in found)
    differ = [number for number in range(len(examples)) if one[number] != other[number]]
    if right is None:
        order = differ
    else:
        won = [[number for number in differ if right[side][number] > right[1 - side][number]] for side in (0, 1)]
        turns = [number for pair in zip(*won, strict=False) for number in pair]
        rest = [number for number in (*won[0], *won[1]) if number not in turns]
        order = list(dict.fromkeys([*turns, *rest, *differ]))
    return [
        Disagreement(
            examples[number].line,
            shortened("\t".join(examples[number].source), LONGEST),
            shortened(examples[number].target or "", LONGEST),
            shortened(one[number], LONGEST), shortened(other[number], LONGEST),
            None if right is None else (bool(right[0][number]), bool(right[1][number])),
        )
        for number in order[:MOST]
    ]  # fmt: skip


# ── for a person ─────────────────────────────────────────────────────────────────────────────────────────────────────


def render(found: Against) -> str:
    """A table of both, the difference, and where they differ."""
    names = [escape(name)[:24] for name in found.names]
    head = ("", *names, "difference (95 %)", "p")
    rows = [(each.first.name, with_interval(each.first), with_interval(each.second),
             difference(each.paired, found.examples), p_text(each.paired.p_value))
            for each in found.differences]  # fmt: skip
    how = f"paired bootstrap over examples, {BOOTSTRAP.samples} resamples"
    lines = [f"{found.examples} examples", table([head, *rows]), f"difference: {names[0]} less {names[1]}; {how}"]
    if (r := found.rights) is not None:
        alone = f"only {names[0]} {r.first} · only {names[1]} {r.second}"
        lines += ["", f"right ({found.judged_by}): both {r.both} · {alone} · neither {r.neither}; "
                  f"McNemar's exact test: p {p_text(r.p_value)}"]  # fmt: skip
    return "\n".join([*lines, *(line for each in found.shown for line in shown(each, names))])


def shown(each: Disagreement, names: Sequence[str]) -> list[str]:
    width = max(map(len, names))
    signs = ["", ""] if each.right is None else ["  ✓" if right else "  ✗" for right in each.right]
    target = f"  →  {escape(each.target)}" if each.target else ""
    return ["", f"line {each.line}: {escape(each.source)}{target}",
            *(f"    {name:>{width}}  {escape(text)}{sign}"
              for name, text, sign in zip(names, (each.first, each.second), signs, strict=True))]  # fmt: skip


def with_interval(m: Metric) -> str:
    return f"{m.value:.2f}" if m.low is None else f"{m.value:.2f} ({m.low:.2f} – {m.high:.2f})"


def difference(paired: Paired, examples: int) -> str:
    return difference_text(paired.difference, paired.low, paired.high, examples)
