"""Spans of labels against a slow reading of the rules, and scores of known labels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.score.spans import marks_spans, spans, tagged

LABELS = st.lists(st.sampled_from(["O", "B-a", "I-a", "B-b", "I-b", "E-a", "S-b"]), max_size=9)


def slow_spans(labels: list[str]) -> list[tuple[str, int, int]]:
    """Every stretch of labels is tried: it is a span if it holds together inside and does with neither neighbour."""
    found = []
    for start in range(len(labels)):
        for end in range(start + 1, len(labels) + 1):
            inside = all(joined(labels[i], labels[i + 1]) for i in range(start, end - 1))
            before = start and joined(labels[start - 1], labels[start])
            after = end < len(labels) and joined(labels[end - 1], labels[end])
            if labels[start] != "O" and inside and not before and not after:
                found.append((labels[start][2:], start, end))
    return found


def joined(one: str, other: str) -> bool:
    """Whether two neighbours belong to one span: the same type, the first may go on, the second may follow."""
    return "O" not in (one, other) and one[2:] == other[2:] and one[0] in "BI" and other[0] in "IE"


@given(LABELS)
def test_spans_are_those_of_the_slow_way(labels: list[str]) -> None:
    assert spans(labels) == slow_spans(labels)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("", []),
        ("O O", []),
        ("B-a I-a O B-a", [("a", 0, 2), ("a", 3, 4)]),
        ("B-a B-a", [("a", 0, 1), ("a", 1, 2)]),
        ("O I-a I-a", [("a", 1, 3)]),  # I- after O begins a span …
        ("B-a I-b I-b", [("a", 0, 1), ("b", 1, 3)]),  # … and so does I- of another type
        ("B I O", [("", 0, 2)]),
        ("B-x-y I-x-y", [("x-y", 0, 2)]),
    ],
)
def test_spans_by_hand(labels: str, expected: list[tuple[str, int, int]]) -> None:
    assert spans(labels.split()) == expected


@pytest.mark.parametrize(
    ("labels", "yes"),
    [
        ("O B-a I-a", True),
        ("O I-a", True),
        ("O", False),
        ("NOUN VERB", False),
        ("O B-a NOUN", False),
        ("S-a E-a", False),
    ],
)
def test_which_labels_mark_spans(labels: str, yes: bool) -> None:
    assert marks_spans(labels.split()) is yes


def test_scores_by_hand() -> None:
    """One of three given spans and of four true ones is right, and four of seven tokens."""
    true = [["B-a", "I-a", "O", "B-b"], ["B-a", "B-a", "O"]]
    given_ = [["B-a", "I-a", "O", "O"], ["B-a", "I-a", "B-b"]]
    found = tagged(given_, true, with_spans=True)
    assert found["f1"].value == pytest.approx(100 * 2 / 7)
    assert found["accuracy"].value == pytest.approx(100 * 4 / 7)
    assert found["f1"].low is not None
    assert found["f1"].low <= found["f1"].value <= (found["f1"].high or 0)


def test_f1_is_there_only_for_spans() -> None:
    assert list(tagged([["N"]], [["N"]], with_spans=False)) == ["accuracy"]


def test_a_missing_label_is_wrong() -> None:
    assert tagged([["N"]], [["N", "V"]], with_spans=False)["accuracy"].value == 50.0


def test_without_any_span_f1_is_0() -> None:
    assert tagged([["O"]], [["O"]], True)["f1"].value == 0.0


@given(st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=4))
def test_f1_is_the_harmonic_mean_of_precision_and_recall(pairs: list[tuple[list[str], list[str]]]) -> None:
    given_, true = [one for one, _ in pairs], [other for _, other in pairs]
    hits = sum(len({*slow_spans(one)} & {*slow_spans(other)}) for one, other in pairs)
    precision = hits / max(sum(len(slow_spans(one)) for one in given_), 1)
    recall = hits / max(sum(len(slow_spans(other)) for other in true), 1)
    expected = 200 * precision * recall / (precision + recall) if hits else 0.0
    assert tagged(given_, true, True, samples=0)["f1"].value == pytest.approx(expected)
