"""Answers, right and wrong, and what was trained on in; what the wrong ones have in common out, with the likely cure.

Each suspicion parts the answers in two, and says how many are right in either. The questions are settled beforehand and
few, and a suspicion is raised only where chance would hardly part them so (Fisher's exact test, Bonferroni's bound).
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.doctor.baselines import SEARCHED
from regard.data.doctor.finding import around
from regard.data.doctor.neighbours import Neighbours
from regard.data.doctor.twins import key
from regard.data.evenly import evenly
from regard.data.read import Example
from regard.data.tokens import TOKEN
from regard.score.intervals import wilson_interval
from regard.score.metrics import build_sacrebleu

TASKS = ("transduce", "classify", "tag", "extract", "caption")
FEWEST, FEWEST_WRONG, FEWEST_INSIDE = 20, 5, 5  # answers, wrong ones, and answers on either side of a question
RARE, RARE_LABEL = 5, 20  # times that a word or character of an output, or a label, was trained on
HARDLY = 0.1  # of the outputs are exactly right: then the worst quarter by chrF is what fails
MINORITY = 0.1  # of a word's labels: from there on it has several
ASKED = 500  # sources whose neighbour is looked for
SHOWN = 3  # examples of a cause
WINDOW = 80  # characters about a token
CHANCE = 0.05

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Case:
    """Something that was asked and answered: a whole example, or a token of one that was labelled."""

    source: tuple[str, ...]
    target: str
    output: str
    right: bool
    word: str | None = None  # the token that was labelled
    unknown: bool = False  # whether the source has signs that the model's vocabulary does not know

    @cached_property
    def words(self) -> list[str]:
        return " ".join(self.source).split() if self.word is None else [self.word]

    @property
    def length(self) -> int:
        return sum(map(len, self.source)) + len(self.source) - 1


@dataclass(frozen=True)
class Share:
    """How many of some answers are right, in per cent, with its 95 % interval."""

    count: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Cause:
    """What some answers have in common, how many of them are right, and of the others."""

    kind: str
    said: str
    inside: Share
    rest: Share
    explains: float  # share of all failures that would not be there if those inside failed as seldom as the rest
    stands_out: bool  # more than chance would do
    examples: tuple[tuple[str, str, str], ...]  # wrong ones: source, target, output
    cure: str


@dataclass(frozen=True)
class Failures:
    """What fails, and what that has to do with it, the most telling first."""

    unit: str  # examples or tokens
    rule: str  # what counts as a failure
    judged: int
    failed: int
    causes: tuple[Cause, ...]
    left_out: str  # what could not be looked at, and why
    said: str  # all of it in one line

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def failures(cases: Sequence[Case], known: Sequence[Example], task: str) -> Failures | None:
    """The diagnosis; None for a task that knows no right and wrong."""
    if task not in TASKS or not cases:
        return None
    unit, judged = ("tokens", by_token(cases)) if task == "tag" else ("examples", list(cases))
    rule = f"{unit} whose label is wrong" if task in ("tag", "classify") else "outputs that are not exactly the target"
    what, good = f"{unit} fail", "right"
    if task in ("transduce", "caption") and np.mean([case.right for case in judged]) < HARDLY:
        judged, rule = by_likeness(judged)
        what, good = f"{unit} are far from their target (hardly any is exact)", "near it"
    wrong = sum(not case.right for case in judged)
    causes = raised(judged, Known(known, task), task) if wrong >= FEWEST_WRONG and len(judged) >= FEWEST else []
    left_out = "" if known else "the training data are not at hand: only lengths and unknown signs are looked at"
    return Failures(
        unit, rule, len(judged), wrong, tuple(causes), left_out, summed_up(judged, wrong, causes, what, good)
    )


def by_token(cases: Sequence[Case]) -> list[Case]:
    """A case for each label."""
    made = []
    for case in cases:
        given = case.output.split()
        for place, (word, true) in enumerate(zip(TOKEN.findall(case.source[0]), case.target.split(), strict=False)):
            label = given[place] if place < len(given) else ""
            made.append(Case(case.source, true, label, label == true, word))
    return made


def by_likeness(cases: Sequence[Case]) -> tuple[list[Case], str]:
    """Where hardly anything is exactly right, as in translation: the quarter that is least like its target fails."""
    chrf = build_sacrebleu("chrf", "13a")
    scores = [chrf.sentence_score(case.output, [case.target]).score for case in cases]
    border = float(np.quantile(scores, 0.25))
    judged = [Case(case.source, case.target, case.output, score > border, unknown=case.unknown)
              for case, score in zip(cases, scores, strict=True)]  # fmt: skip
    return judged, f"the quarter of the outputs that is least like its target (chrF up to {border:.0f})"


# ── what was trained on ──────────────────────────────────────────────────────────────────────────────────────────────


class Known:
    """What training has shown, as far as a suspicion asks for it."""

    def __init__(self, examples: Sequence[Example], task: str) -> None:
        self.examples, self.task = examples, task

    @cached_property
    def by_words(self) -> bool:
        """Whether outputs are several words, else they are taken by their characters."""
        some = [example.target or "" for example in evenly(self.examples, 1000)]
        return sum(len(text.split()) for text in some) >= 2 * len(some)

    def units(self, text: str) -> list[str]:
        """What an output is made of."""
        if self.task == "classify":
            return [text]
        return text.split() if self.by_words or self.task == "tag" else list(text)

    @property
    def unit(self) -> str:
        return "label" if self.task in ("classify", "tag") else "word" if self.by_words else "character"

    @cached_property
    def outputs(self) -> Counter[str]:
        return Counter(unit for example in self.examples for unit in self.units(example.target or ""))

    @cached_property
    def words(self) -> set[str]:
        return {word for example in self.examples for word in " ".join(example.source).split()}

    @cached_property
    def characters(self) -> set[str]:
        return {character for example in self.examples for text in example.source for character in text}

    @cached_property
    def longest(self) -> int:
        return max(sum(map(len, example.source)) + len(example.source) - 1 for example in self.examples)

    @cached_property
    def torn(self) -> set[str]:
        """Words that have several labels."""
        labels: dict[str, Counter[str]] = {}
        for example in self.examples:
            for word, label in zip(TOKEN.findall(example.source[0]), (example.target or "").split(), strict=False):
                labels.setdefault(word, Counter())[label] += 1
        return {
            word for word, found in labels.items() if found.total() - max(found.values()) >= MINORITY * found.total()
        }

    @cached_property
    def targets(self) -> dict[str, set[str]]:
        """Sources without case and punctuation, and their targets."""
        found: dict[str, set[str]] = {}
        for example in self.examples:
            found.setdefault(key(example.source), set()).add(example.target or "")
        return found


# ── suspicions ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Suspicion:
    """A question that parts the cases: those inside, and those that were asked at all."""

    kind: str
    said: str
    inside: Mask
    asked: Mask
    cure: str


def asked_of(cases: Sequence[Case], kind: str, said: str, test: Callable[[Case], bool], cure: str) -> Suspicion:
    inside = np.fromiter((test(case) for case in cases), np.bool_, len(cases))
    return Suspicion(kind, said, inside, np.ones(len(cases), np.bool_), cure)


def suspicions(cases: Sequence[Case], known: Known, task: str) -> Iterator[Suspicion]:
    """All that is asked of a task's cases."""
    if task != "caption":
        yield from of_lengths(cases, known)
    if not known.examples:
        yield asked_of(cases, "unknown sign", "sources with signs that the vocabulary does not have",
                       lambda case: case.unknown, "add examples with them, or replace them before asking")  # fmt: skip
        return
    if task != "caption":
        yield from of_sources(cases, known)
        yield nearness(cases, known)
    yield from of_outputs(cases, known)
    yield of_conflicts(cases, known, task)


def of_lengths(cases: Sequence[Case], known: Known) -> Iterator[Suspicion]:
    lengths = np.array([case.length for case in cases])
    short, long = np.quantile(lengths, [0.25, 0.75], method="inverted_cdf").tolist()
    longest, shortest = (f"{100 * np.mean(part):.0f} %" for part in (lengths > long, lengths < short))
    yield asked_of(cases, "long source", f"sources longer than {long:,} characters, the longest {longest}",
                   lambda case: case.length > long,
                   "add long examples or train longer; a preset without attention forgets long ones first")  # fmt: skip
    yield asked_of(cases, "short source", f"sources shorter than {short:,} characters, the shortest {shortest}",
                   lambda case: case.length < short,
                   "they give little to go by: add examples of this length, or a column with context")  # fmt: skip
    if known.examples:
        yield asked_of(cases, "longer than trained", f"sources longer than all that were trained on ({known.longest:,} "
                       "characters)", lambda case: case.length > known.longest,
                       "add examples of such lengths: few models go beyond those they have seen")  # fmt: skip


def of_sources(cases: Sequence[Case], known: Known) -> Iterator[Suspicion]:
    yield asked_of(cases, "unseen character", "sources with a character that no training source has",
                   lambda case: not known.characters.issuperset("".join(case.words)),
                   "add examples with these characters, or replace them before asking")  # fmt: skip
    holder = "tokens that" if known.task == "tag" else "sources with a word that"
    yield asked_of(cases, "unseen word", f"{holder} no training source has",
                   lambda case: not known.words.issuperset(case.words),
                   "add examples with such words; tokens finer than words (--tokens bpe, spelled or characters) help "
                   "too")  # fmt: skip


def of_outputs(cases: Sequence[Case], known: Known) -> Iterator[Suspicion]:
    """Outputs that ask for what was hardly, or never, to be seen."""
    if known.task == "extract":
        return  # an answer need not have been one before
    least = RARE_LABEL if known.unit == "label" else RARE
    rarest = [min((known.outputs[unit] for unit in known.units(case.target)), default=least) for case in cases]
    everything = np.ones(len(cases), np.bool_)
    yield Suspicion("unseen output", f"targets with a {known.unit} that no training target has", np.array(rarest) == 0,
                    everything, "add examples of it: what was never written can hardly be learnt")  # fmt: skip
    rare = np.array([0 < count < least for count in rarest])
    yield Suspicion("rare output", f"targets with a {known.unit} that fewer than {least} training targets have", rare,
                    np.array(rarest) > 0, f"add examples with such {known.unit}s")  # fmt: skip


def of_conflicts(cases: Sequence[Case], known: Known, task: str) -> Suspicion:
    """Sources that are answered in several ways, here or in training."""
    cure = "make the data agree, or add what tells them apart; regard check lists the lines"
    if task == "tag":
        return asked_of(cases, "conflict", "tokens that have several labels in training",
                        lambda case: case.word in known.torn, "more context or data; " + cure)  # fmt: skip
    here: dict[str, set[str]] = {}
    keys = [key(case.source) for case in cases]
    for text, case in zip(keys, cases, strict=True):
        here.setdefault(text, set()).add(case.target)
    inside = np.array([len(here[text] | known.targets.get(text, set())) > 1 for text in keys])
    said = "sources that have another target too, here or (but for case and punctuation) in training"
    return Suspicion("conflict", said, inside, np.ones(len(cases), np.bool_), cure)


def nearness(cases: Sequence[Case], known: Known) -> Suspicion:
    """Sources that are least like anything that was trained on."""
    sources = evenly(list(dict.fromkeys("\t".join(case.source) for case in cases)), ASKED)
    memory = Neighbours(["\t".join(example.source) for example in evenly(known.examples, SEARCHED)])
    near = {source: memory.nearest(source).cosine for source in sources}
    cosines = np.array([near.get("\t".join(case.source), np.nan) for case in cases])
    border = float(np.quantile(cosines[~np.isnan(cosines)], 0.25, method="inverted_cdf"))
    said = f"sources least like any training source, the farthest quarter (likeness up to {border:.2f})"
    return Suspicion("far from training", said, cosines <= border, ~np.isnan(cosines),
                     "collect examples like these: the training data do not cover them")  # fmt: skip


# ── verdicts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def raised(cases: Sequence[Case], known: Known, task: str) -> list[Cause]:
    """The suspicions that could be judged, by how much of the failure each explains."""
    right = np.array([case.right for case in cases])
    fair = [one for one in suspicions(cases, known, task)
            if min((one.inside & one.asked).sum(), (~one.inside & one.asked).sum()) >= FEWEST_INSIDE]  # fmt: skip
    causes = [judge(one, cases, right, CHANCE / len(fair)) for one in fair]
    return sorted(causes, key=lambda cause: (not cause.stands_out, -cause.explains, cause.kind))


def judge(one: Suspicion, cases: Sequence[Case], right: Mask, chance: float) -> Cause:
    inside, rest = one.inside & one.asked, ~one.inside & one.asked
    wrong = int((~right & one.asked).sum())
    excess = float((~right[inside]).mean() - (~right[rest]).mean()) * int(inside.sum())
    p = tail(int((~right & inside).sum()), int(inside.sum()), wrong, int(one.asked.sum()))
    shown = [cases[number] for number in np.flatnonzero(inside & ~right)[:SHOWN]]
    return Cause(
        kind=one.kind, said=one.said, inside=share(right[inside]), rest=share(right[rest]),
        explains=max(0.0, excess / max(wrong, 1)), stands_out=excess > 0 and p < chance,
        examples=tuple((told(case), case.target, case.output) for case in shown), cure=one.cure,
    )  # fmt: skip


def told(case: Case) -> str:
    source = "\t".join(case.source)
    if case.word is None:
        return source
    return f"{case.word} in: {around(source, max(0, source.find(case.word)), WINDOW)}"


def share(right: Mask) -> Share:
    low, high = wilson_interval(int(right.sum()), len(right))
    return Share(len(right), 100.0 * float(right.mean()), low, high)


def tail(wrong_inside: int, inside: int, wrong: int, total: int) -> float:
    """The chance that so many or more of the wrong ones fall inside, if where they fall means nothing."""
    whole = log_choose(total, inside)
    return sum(math.exp(log_choose(wrong, count) + log_choose(total - wrong, inside - count) - whole)
               for count in range(wrong_inside, min(inside, wrong) + 1) if inside - count <= total - wrong)  # fmt: skip


def log_choose(of: int, some: int) -> float:
    return math.lgamma(of + 1) - math.lgamma(some + 1) - math.lgamma(of - some + 1)


def summed_up(cases: Sequence[Case], wrong: int, causes: Sequence[Cause], what: str, good: str) -> str:
    """One line for whoever does not open the report."""
    if not wrong:
        return f"none of {len(cases):,} {what}"
    if wrong == len(cases):
        return f"all {len(cases):,} {what}: nothing to compare them with"
    head = f"{wrong:,} of {len(cases):,} {what}"
    if wrong < FEWEST_WRONG or len(cases) < FEWEST:
        return f"{head}: too few to say why"
    clear = [cause for cause in causes if cause.stands_out]
    if not clear:
        return f"{head}, and nothing stands out: they are like the others"
    worst = clear[0]
    return (f"{head}; {100 * worst.explains:.0f} % of that goes with {worst.said}: {worst.inside.value:.0f} % {good} "
            f"against {worst.rest.value:.0f} %")  # fmt: skip
