"""Labels against their references: accuracy, macro F1, and the table of confusions."""

import pytest

from regard.score.labels import MOST_SHOWN, classified

TRUE = ["a", "a", "a", "b", "b", "c"]
GIVEN = ["a", "a", "b", "b", "a", "a"]


def test_accuracy_and_macro_f1_by_hand() -> None:
    """F1 is 4/7 for a (2 right, 4 given, 3 true), 1/2 for b, 0 for c; the mean is over labels, not examples."""
    found = classified(GIVEN, TRUE)
    assert found.metrics["accuracy"].value == pytest.approx(50.0)
    assert found.metrics["macro_f1"].value == pytest.approx(100 * (4 / 7 + 1 / 2 + 0) / 3)
    assert found.majority == pytest.approx(50.0)


def test_intervals_hold_their_values_and_can_be_left_out() -> None:
    found = classified(GIVEN * 20, TRUE * 20).metrics
    for metric in found.values():
        assert metric.low is not None
        assert metric.high is not None
        assert metric.low < metric.value < metric.high
    assert classified(GIVEN, TRUE, samples=0).metrics["macro_f1"].low is None
    assert found == classified(GIVEN * 20, TRUE * 20).metrics


def test_macro_f1_without_a_fault_has_a_width() -> None:
    found = classified(TRUE * 9, TRUE * 9).metrics["macro_f1"]
    assert found.low is not None
    assert found.low == pytest.approx(classified(TRUE * 9, TRUE * 9).metrics["accuracy"].low)
    assert found.low < found.value == found.high


def test_rows_are_true_labels_and_columns_given_ones() -> None:
    confusion = classified(GIVEN, TRUE).confusion
    assert confusion.labels == ("a", "b", "c")  # the most frequent first
    assert confusion.counts == ((2, 1, 0), (1, 1, 0), (1, 0, 0))
    assert confusion.as_dict()["counts"] == [[2, 1, 0], [1, 1, 0], [1, 0, 0]]
    lines = confusion.render().splitlines()
    assert len(lines) == 4
    assert lines[1].split() == ["1", "a", "2", "1", "·"]


def test_a_label_that_is_only_given_stands_in_the_table_and_not_in_the_mean() -> None:
    found = classified(["a", "x"], ["a", "a"])
    assert found.confusion.labels == ("a", "x")
    assert found.metrics["macro_f1"].value == pytest.approx(100 * 2 / 3)


def test_a_label_that_is_only_asked_for_counts_as_wrong() -> None:
    found = classified(["a", "a"], ["a", "new"])
    assert found.metrics["accuracy"].value == 50.0
    assert found.metrics["macro_f1"].value == pytest.approx(100 * (2 / 3 + 0) / 2)


def test_one_example_has_no_spread() -> None:
    found = classified(["a"], ["a"]).metrics
    assert (found["macro_f1"].value, found["macro_f1"].low) == (100.0, None)


def test_many_labels_are_not_all_shown() -> None:
    labels = [f"label {number}" for number in range(MOST_SHOWN + 5)]
    assert classified(labels, labels).confusion.render().endswith("… and 5 labels more")


def test_unequal_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="argument"):
        classified(["a"], ["a", "b"])


def test_many_labels_take_no_table_for_each_resample() -> None:
    labels = [f"label {number % 900}" for number in range(1800)]
    found = classified(labels, labels[1:] + labels[:1], samples=50)
    assert found.metrics["macro_f1"].value == 0.0
    assert classified(labels, labels, samples=50).metrics["macro_f1"].high == 100.0
