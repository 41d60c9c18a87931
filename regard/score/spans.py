"""Labels of tokens in, token accuracy and the F1 of spans out; no torch.

Where labels are B- and I- (Ramshaw & Marcus 1995), what counts is the span from its first token to its last, with its
type. Spans are read as conlleval and, by default, seqeval read them: B- begins one, and so does I- after O or after
another type.
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np

from regard.score.intervals import Bootstrap, FloatArray
from regard.score.metrics import Metric, describe, measured, ratio
from regard.score.tallies import Statistics

Span = tuple[str, int, int]  # type, first token, the one after the last

PART = re.compile(r"[BIES](-.*)?")  # of a span: its beginning, inside, end, or a span of one token
OUTSIDE = "O"


def marks_spans(labels: Iterable[str]) -> bool:
    """Whether these are labels of spans: O, and B- or I- with a type (E- and S- too, where those are)."""
    known = set(labels) - {OUTSIDE}
    return all(PART.fullmatch(label) for label in known) and any(label[0] in "BI" for label in known)


def spans(labels: Sequence[str]) -> list[Span]:
    """The spans that these labels mark, in order."""
    found: list[Span] = []
    start, before = 0, OUTSIDE
    for at, label in enumerate([*labels, OUTSIDE]):
        if before != OUTSIDE and ends(before, label):
            found.append((kind(before), start, at))
        if label != OUTSIDE and (before == OUTSIDE or ends(before, label)):
            start = at
        before = label
    return found


def ends(label: str, after: str) -> bool:
    """Whether the span that `label` is part of is over when `after` comes."""
    return after == OUTSIDE or label[0] in "ES" or after[0] in "BS" or kind(label) != kind(after)


def kind(label: str) -> str:
    """`person` of B-person."""
    return label[2:]


def tagged(
    given: Sequence[Sequence[str]], true: Sequence[Sequence[str]], with_spans: bool, samples: int = 1000, seed: int = 0
) -> dict[str, Metric]:
    """Token accuracy with Wilson's interval and, of spans, F1 with the bootstrap's; a missing label is wrong."""
    bootstrap = Bootstrap(seed, samples)
    return measured(tag_tallies(given, true, with_spans, bootstrap), bootstrap)


def tag_tallies(
    given: Sequence[Sequence[str]], true: Sequence[Sequence[str]], with_spans: bool, bootstrap: Bootstrap
) -> dict[str, Statistics]:
    """Of each text: labels that are right, and all of them; of spans, what `counted` counts.

    F1 = 2 · right / (given + true), over the spans of all texts.
    """
    pairs = list(zip(given, true, strict=True))
    labels = [(sum(a == b for a, b in zip(one, other, strict=False)), len(other)) for one, other in pairs]
    of_labels = Statistics(table(labels), ratio, "tokens|interval:wilson")
    if not with_spans:
        return {"accuracy": of_labels}
    of_spans = [counted(spans(one), spans(other)) for one, other in pairs]
    signature = f"spans:conlleval|average:micro{describe(bootstrap)}"
    return {"f1": Statistics(table(of_spans), f1, signature), "accuracy": of_labels}


def table(rows: Sequence[tuple[int, int]]) -> FloatArray:
    return np.array(rows, np.float64).reshape(-1, 2)


def counted(given: Sequence[Span], true: Sequence[Span]) -> tuple[int, int]:
    """Twice the spans that are right, and all of both sides."""
    return 2 * len(set(given) & set(true)), len(given) + len(true)


def f1(totals: FloatArray) -> FloatArray:
    """Sums of `counted` to percent; 0 where there is no span at all, as seqeval has it."""
    scores: FloatArray = 100.0 * totals[:, 0] / np.maximum(totals[:, 1], 1)
    return scores
