"""Output strings and their references in, metrics with 95 % intervals out; no torch. Rates are percent, 0 to 100.

Every corpus metric is a table of counts with one row for each example and a score of summed rows: intervals and paired
tests sum resampled rows and never read the text again.
"""

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from regard.errors import DataError, UsageError
from regard.score.intervals import Bootstrap, FloatArray, rate_interval, wilson_interval
from regard.score.tallies import Paired, Statistics, compare, drawn

TRANSDUCE = ("exact", "bleu", "chrf", "ter", "cer", "wer", "f1")
ERRORS = ("ter", "cer", "wer")  # the less the better, and they may be above 100
EXTRACT = ("exact", "f1")
CLASSIFY = ("accuracy",)
NAMES = TRANSDUCE + CLASSIFY
TOKENIZERS = ("13a", "none", "intl", "char", "zh")  # the ones of sacrebleu that need no download

USUAL = Bootstrap()

References = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Metric:
    """A score, its 95 % interval where one was asked for, and the signature that lets others compute the same."""

    name: str
    value: float
    low: float | None
    high: float | None
    higher_is_better: bool
    signature: str


def corpus_scores(
    outputs: Sequence[str],
    references: References,
    names: Sequence[str] = TRANSDUCE,
    seed: int = 0,
    samples: int = 1000,
    tokenize: str = "13a",
) -> dict[str, Metric]:
    """Each named metric of `outputs`, every one of which has one or more acceptable references.

    `samples=0` leaves out bootstrap intervals; `tokenize="none"` is BLEU on text that is already tokens.
    """
    bootstrap = Bootstrap(seed, samples)
    return measured(corpus_tallies(outputs, references, names, bootstrap, tokenize), bootstrap)


def corpus_tallies(
    outputs: Sequence[str],
    references: References,
    names: Sequence[str] = TRANSDUCE,
    bootstrap: Bootstrap = USUAL,
    tokenize: str = "13a",
) -> dict[str, Statistics]:
    """What each named metric counts of each example; the bootstrap stands in the signatures."""
    check_words(names, tokenize)
    check_corpus(outputs, references)
    return {name: gather(name, outputs, references, bootstrap, tokenize) for name in names}


def measured(tallies: Mapping[str, Statistics], bootstrap: Bootstrap) -> dict[str, Metric]:
    return {name: measure(name, tally, bootstrap) for name, tally in tallies.items()}


def paired_test(
    outputs_a: Sequence[str],
    outputs_b: Sequence[str],
    references: References,
    name: str,
    seed: int = 0,
    samples: int = 1000,
    tokenize: str = "13a",
) -> Paired:
    """Is the first system different from the second on the named metric, or was it chance? A paired bootstrap."""
    check_words([name], tokenize)
    check_corpus(outputs_a, references)
    check_corpus(outputs_b, references)
    bootstrap = Bootstrap(seed, samples)
    if samples == 0:
        raise UsageError("samples: found 0, expected 1 or more for a paired test; 1000 is usual")
    first = gather(name, outputs_a, references, bootstrap, tokenize)
    second = gather(name, outputs_b, references, bootstrap, tokenize)
    return compare(drawn([first], bootstrap), drawn([second], bootstrap), is_share(name))


def measure(name: str, statistics: Statistics, bootstrap: Bootstrap) -> Metric:
    """The named metric with its interval: Wilson's for shares, the bootstrap's for everything else."""
    low, high = None, None
    if is_share(name):
        right, count = statistics.rows.sum(axis=0).tolist()
        low, high = wilson_interval(right, max(count, 1))
    elif bootstrap.samples > 0 and len(statistics.rows) > 1:  # one example says nothing about spread
        low, high = rate_interval(statistics.resampled(bootstrap), len(statistics.rows))
    return Metric(name, statistics.value, low, high, name not in ERRORS, statistics.signature)


def is_share(name: str) -> bool:
    """Whether a metric is a share of right ones, whose counts are (right, all)."""
    return name in ("exact", "any", "accuracy") or name.startswith("recall_at_")


def gather(
    name: str, outputs: Sequence[str], references: References, bootstrap: Bootstrap, tokenize: str
) -> Statistics:
    """The statistics that the named metric needs of each example."""
    match name:
        case "exact" | "accuracy":
            return gather_matches(outputs, references)
        case "cer":
            return gather_edits(outputs, references, bootstrap, "characters")
        case "wer":
            return gather_edits(outputs, references, bootstrap, "words")
        case "f1":
            return gather_shared_words(outputs, references, bootstrap)
        case _:
            return gather_sacrebleu(build_sacrebleu(name, tokenize), outputs, references, bootstrap)


def gather_matches(outputs: Sequence[str], references: References) -> Statistics:
    """1 where the output is one of its references, to the character; 0 elsewhere."""
    pairs = zip(outputs, references, strict=True)
    rows = np.array([[output in acceptable, 1] for output, acceptable in pairs], dtype=np.float64)
    return Statistics(rows, ratio, f"nrefs:{count_references(references)}|case:mixed|interval:wilson")


def any_target(outputs: Sequence[str], sources: Sequence[Hashable], targets: Sequence[str]) -> dict[str, Statistics]:
    """Where sources have several targets: each source counts once, and is right if its output is any of them.

    Words with several pronunciations are judged so. Where no source has another target, there is nothing to tell.
    """
    acceptable: dict[Hashable, set[str]] = {}
    for source, target in zip(sources, targets, strict=True):
        acceptable.setdefault(source, set()).add(target)
    if all(len(each) == 1 for each in acceptable.values()):
        return {}
    rows = np.zeros((len(outputs), 2))
    for number, (output, source) in enumerate(zip(outputs, sources, strict=True)):
        if (known := acceptable.pop(source, None)) is not None:
            rows[number] = output in known, 1
    return {"any": Statistics(rows, ratio, "sources once, any of their targets|case:mixed|interval:wilson")}


def gather_edits(outputs: Sequence[str], references: References, bootstrap: Bootstrap, unit: str) -> Statistics:
    """Edits and reference length of each example, for the reference with the lowest rate of edits."""
    cut = str.split if unit == "words" else list
    rows = [
        min((count_edits(cut(output), cut(reference)) for reference in acceptable), key=edit_rate)
        for output, acceptable in zip(outputs, references, strict=True)
    ]
    signature = f"nrefs:{count_references(references)}{describe(bootstrap)}|case:mixed|unit:{unit}"
    return Statistics(np.array(rows, dtype=np.float64), ratio, signature)


def gather_shared_words(outputs: Sequence[str], references: References, bootstrap: Bootstrap) -> Statistics:
    """F1 of the words of each example, for the reference with the highest; the score is their mean."""
    rows = [
        (max(shared_words(output, reference) for reference in acceptable), 1)
        for output, acceptable in zip(outputs, references, strict=True)
    ]
    signature = f"nrefs:{count_references(references)}{describe(bootstrap)}|case:lower|unit:words"
    return Statistics(np.array(rows, dtype=np.float64), ratio, signature)


def build_sacrebleu(name: str, tokenize: str) -> Any:
    """The metric of sacrebleu with the settings its command has by default."""
    from sacrebleu.metrics.bleu import BLEU  # inside, because it is slow to import
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    match name:
        case "bleu":
            return BLEU(tokenize=tokenize, force=True)  # force: no warning about text that looks tokenised
        case "chrf":
            return CHRF()
        case _:
            return TER()


def mute(references: References, tokenize: str = "13a") -> dict[str, str]:
    """Metrics that say nothing of outputs with such references, and why: BLEU is 0 where nothing has four words."""
    cut = build_sacrebleu("bleu", tokenize).tokenizer
    enough = any(len(cut(text).split()) >= 4 for acceptable in references for text in acceptable)
    return {} if enough else {"bleu": "no reference has four words, which it compares"}


def gather_sacrebleu(metric: Any, outputs: Sequence[str], references: References, bootstrap: Bootstrap) -> Statistics:
    """sacrebleu's own statistics of each sentence, and its own score of a sum of them.

    Two methods with an underscore, since its public bootstrap reads its seed from the environment and keeps the half
    width only; a test holds both values and bounds against sacrebleu's command.
    """
    rows = metric._extract_corpus_statistics(outputs, by_stream(references))
    if bootstrap.samples > 0:
        metric.n_bootstrap, metric.seed = bootstrap.samples, bootstrap.seed

    def score(totals: FloatArray) -> FloatArray:
        return np.array([metric._compute_score_from_stats(total.tolist()).score for total in totals])

    return Statistics(np.array(rows, dtype=np.float64), score, str(metric.get_signature()))


def by_stream(references: References) -> list[list[str | None]]:
    """First references of all examples, then second ones, as sacrebleu wants them; None where there is no such."""
    most = max(len(acceptable) for acceptable in references)
    padded = [[*acceptable, *[None] * (most - len(acceptable))] for acceptable in references]
    return [list(stream) for stream in zip(*padded, strict=True)]


def ratio(totals: FloatArray) -> FloatArray:
    """100 · first column / second column; nothing to divide by is 0 when nothing was counted and 100 otherwise."""
    counted, total = totals[:, 0], totals[:, 1]
    return 100 * np.where(total > 0, counted / np.maximum(total, 1), counted > 0)


def count_edits(output: Sequence[Hashable], reference: Sequence[Hashable]) -> tuple[int, int]:
    """Edits that turn the output into the reference, and the reference's length."""
    return edit_distance(output, reference), len(reference)


def edit_rate(counted: tuple[int, int]) -> float:
    """Edits for each reference token; an empty reference is the best one only for an empty output."""
    edits, length = counted
    if length == 0:
        return math.inf if edits else 0.0
    return edits / length


def shared_words(output: str, reference: str) -> float:
    """F1 = 2 · common / (words of both), the words lower-cased and in any order, as answers to questions are judged.

    Rajpurkar et al. (2016), https://arxiv.org/abs/1606.05250; here nothing is taken off the words.
    """
    first, second = Counter(output.lower().split()), Counter(reference.lower().split())
    words = first.total() + second.total()
    return 2 * (first & second).total() / words if words else 1.0


def edit_distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Fewest insertions, deletions and substitutions between two sequences (Levenshtein).

    A column of the table is two integers, one bit for each token of `first`: where it rises by one from the row above,
    and where it falls. Myers (1999), in the form of Hyyrö (2003); integers have no word length here.
    """
    if first == second:
        return 0
    if not first or not second:
        return len(first) + len(second)
    places: dict[Hashable, int] = {}
    for index, token in enumerate(first):
        places[token] = places.get(token, 0) | 1 << index
    every, last = (1 << len(first)) - 1, 1 << (len(first) - 1)
    rises, falls, distance = every, 0, len(first)
    for token in second:
        equal = places.get(token, 0)
        free = (((equal & rises) + rises) ^ rises) | equal | falls  # where the diagonal step costs nothing
        right_rises = falls | (every & ~(free | rises))
        right_falls = rises & free
        distance += bool(right_rises & last) - bool(right_falls & last)
        right_rises, right_falls = (right_rises << 1) | 1, right_falls << 1
        rises, falls = every & (right_falls | ~(free | right_rises)), every & right_rises & free
    return distance


def position_accuracy(outputs: Sequence[Sequence[int | str]], references: Sequence[Sequence[int | str]]) -> float:
    """Percent of reference positions at which the output has the same token; a position it does not reach is wrong."""
    check_counts(len(outputs), len(references))
    positions = sum(len(reference) for reference in references)
    if positions == 0:
        raise DataError("references: found no token in any of them, expected at least one to compare with")
    pairs = zip(outputs, references, strict=True)
    return 100 * sum(count_same(output, reference) for output, reference in pairs) / positions


def accuracy(outputs: Sequence[int | str], references: Sequence[int | str]) -> float:
    """Percent of labels that are the right one."""
    check_counts(len(outputs), len(references))
    return 100 * count_same(outputs, references) / len(references)


def perplexity(loss_sum: float, count: int) -> float:
    """exp(loss_sum / count): between how many equally likely tokens the model was choosing; infinite past floats."""
    if count < 1:
        raise DataError(f"perplexity: found {count} tokens, expected at least one")
    try:
        return math.exp(loss_sum / count)
    except OverflowError:
        return math.inf


def count_same(first: Sequence[int | str], second: Sequence[int | str]) -> int:
    """At how many places both have the same; the longer one's rest has no counterpart."""
    return sum(one == other for one, other in zip(first, second, strict=False))


def check_words(names: Sequence[str], tokenize: str) -> None:
    """Refuse a metric or a tokenisation that is not known, before anything is computed."""
    for what, word, known in [*(("metric", name, NAMES) for name in names), ("tokenize", tokenize, TOKENIZERS)]:
        if word not in known:
            near = get_close_matches(word.lower(), known, n=1)
            cure = f'; did you mean "{near[0]}"?' if near else ""
            raise UsageError(f'{what}: found "{word}", expected one of {", ".join(known)}{cure}')


def check_corpus(outputs: Sequence[str], references: References) -> None:
    """Refuse what has no score: nothing at all, unequal counts, an output without a reference."""
    check_counts(len(outputs), len(references))
    for number, acceptable in enumerate(references, 1):
        if isinstance(acceptable, str):
            found = f'references: found the text "{acceptable[:40]}" for output {number}, expected a list of texts'
            raise DataError(f"{found}; put one reference in a list of its own")
        if not acceptable:
            raise DataError(f"references: found none for output {number}, expected one or more")


def check_counts(outputs: int, references: int) -> None:
    """Refuse an empty corpus and one whose two sides differ in number."""
    if outputs != references:
        raise DataError(f"scoring: found {outputs} outputs and {references} references, expected as many of each")
    if outputs == 0:
        raise DataError("scoring: found no outputs, expected at least one; is the test file empty?")


def count_references(references: References) -> str:
    """How many references an example has; "var", as sacrebleu says it, when that differs."""
    counts = {len(acceptable) for acceptable in references}
    return str(counts.pop()) if len(counts) == 1 else "var"


def describe(bootstrap: Bootstrap) -> str:
    """The bootstrap in the words of sacrebleu's signatures; nothing when there was none."""
    return f"|bs:{bootstrap.samples}|seed:{bootstrap.seed}" if bootstrap.samples else ""
