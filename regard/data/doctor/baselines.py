"""Examples in, what can be had without learning out: so that a score can be judged.

Measured on held-out examples, the ones that training would hold out too, or on a second file. Nothing here is a model:
the source itself, the most frequent output, the output of the nearest source, the most frequent label of a word.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from regard.data.division import Division
from regard.data.doctor.finding import Sight
from regard.data.doctor.neighbours import Neighbours
from regard.data.evenly import evenly
from regard.data.read import Example, escape
from regard.data.tokens import TOKEN
from regard.errors import DataError
from regard.score import Metric, corpus_scores, mute
from regard.score.spans import OUTSIDE, marks_spans, tagged

ASKED = 500  # held-out examples
SEARCHED = 20_000  # sources among which the nearest is looked for
TASKS = ("transduce", "classify", "tag", "extract", "caption")


@dataclass(frozen=True)
class Baseline:
    """A rule that learns nothing, and its scores in per cent by the names of metrics."""

    name: str
    scores: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Baselines:
    """Rules with their scores, and what they were measured on."""

    rules: tuple[Baseline, ...]
    held: int  # examples that were asked about …
    of: int  # … of so many that are held out
    known: int  # examples that the rules know …
    searched: int  # … and so many of their sources were compared, where one was looked for


def baselines(sight: Sight, other: Sight | None = None, names: Sequence[str] = ()) -> Baselines | None:
    """The rules that make sense for a task, columns by their `names`; none where there is nothing to hold out."""
    if sight.task not in TASKS or not sight.has_targets:
        return None
    known, held = (list(sight.examples), list(other.examples)) if other else divided(sight.examples)
    asked = evenly(held, ASKED)
    if not known or not asked:
        return None
    rules = of_tags(known, asked) if sight.task == "tag" else of_texts(known, asked, sight.task, names)
    searched = 0 if sight.task in ("tag", "caption") else min(SEARCHED, len(known))
    return Baselines(tuple(rules), len(asked), len(held), len(known), searched)


def divided(examples: Sequence[Example]) -> tuple[list[Example], list[Example]]:
    """What training would learn from, and what it would hold out."""
    division = Division()
    for example in examples:
        division.add(example.source)
    try:
        held = division.held("")
    except DataError:  # too few
        return [], []
    return ([example for example in examples if example.source not in held],
            [example for example in examples if example.source in held])  # fmt: skip


# ── texts and labels ─────────────────────────────────────────────────────────────────────────────────────────────────


def of_texts(known: Sequence[Example], asked: Sequence[Example], task: str, names: Sequence[str]) -> list[Baseline]:
    """Rules whose outputs are texts."""
    targets = [[example.target or ""] for example in asked]
    frequent = Counter(example.target or "" for example in known).most_common(1)[0][0]
    said = {"majority" if task == "classify" else "most frequent output": [frequent] * len(asked)}
    if task != "caption":
        said["nearest neighbour"] = by_neighbour(evenly(known, SEARCHED), asked)
    copies = [copying(asked, targets, names)] if task == "transduce" else []
    return [*copies, *(Baseline(name, scored(outputs, targets, task)) for name, outputs in said.items())]


def copying(asked: Sequence[Example], targets: Sequence[Sequence[str]], names: Sequence[str]) -> Baseline:
    """The source as it is; of several columns the one that comes nearest to the targets."""
    columns = [[*texts] for texts in zip(*(example.source for example in asked), strict=True)]
    scores = [scored(texts, targets, "transduce") for texts in columns]
    best = max(range(len(columns)), key=lambda place: [value for _, value in scores[place]])
    name = names[best] if len(names) == len(columns) else str(best + 1)
    return Baseline(f"copy the input{f', column {escape(name)}' if len(columns) > 1 else ''}", scores[best])


def by_neighbour(known: Sequence[Example], asked: Sequence[Example]) -> list[str]:
    """The target of the source that is nearest to each."""
    memory = Neighbours(["\t".join(example.source) for example in known])
    return [known[memory.nearest("\t".join(example.source)).number].target or "" for example in asked]


def scored(outputs: Sequence[str], targets: Sequence[Sequence[str]], task: str) -> tuple[tuple[str, float], ...]:
    """The task's own metrics, without intervals."""
    if task == "classify":
        return rounded(corpus_scores(outputs, targets, ["accuracy"], samples=0))
    if task == "extract":
        return rounded(corpus_scores(outputs, targets, ["exact", "f1"], samples=0))
    names = ["exact", "chrf", *([] if "bleu" in mute(targets) else ["bleu"])]
    return rounded(corpus_scores(outputs, targets, names, samples=0))


def rounded(metrics: dict[str, Metric]) -> tuple[tuple[str, float], ...]:
    return tuple((name, round(metric.value, 2)) for name, metric in metrics.items())


# ── labels of tokens ─────────────────────────────────────────────────────────────────────────────────────────────────


def of_tags(known: Sequence[Example], asked: Sequence[Example]) -> list[Baseline]:
    """The label that a word has most often, and of words that are not known the most frequent of all."""
    by_word: dict[str, Counter[str]] = {}
    everywhere: Counter[str] = Counter()
    for example in known:
        labels = (example.target or "").split()
        everywhere.update(labels)
        for word, label in zip(TOKEN.findall(example.source[0]), labels, strict=False):
            by_word.setdefault(word, Counter())[label] += 1
    usual = OUTSIDE if marks_spans(everywhere) else everywhere.most_common(1)[0][0]
    favourite = {word: labels.most_common(1)[0][0] for word, labels in by_word.items()}
    true = [(example.target or "").split() for example in asked]
    said = {
        "most frequent label": [[usual] * len(labels) for labels in true],
        "most frequent label of the token": [[favourite.get(word, usual) for word in TOKEN.findall(example.source[0])]
                                             for example in asked],
    }  # fmt: skip
    spans = marks_spans(everywhere)
    return [Baseline(name, rounded(tagged(given, true, spans, samples=0))) for name, given in said.items()]
