"""Tallies of made-up runs in: intervals over examples and seeds, paired tests, Holm, McNemar; by hand and by others."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.score.intervals import Bootstrap, FloatArray
from regard.score.labels import classified
from regard.score.metrics import corpus_tallies, paired_test, ratio
from regard.score.tallies import Statistics, all_right, compare, drawn, holm, rights

BOOTSTRAP = Bootstrap(0, 1000)


def share(right: FloatArray) -> Statistics:
    return Statistics(np.stack([right, np.ones(len(right))], 1), ratio, "")


def sentences(count: int, slips: float, seed: int) -> tuple[list[str], list[str]]:
    """References, and outputs that have some of their words wrong."""
    draw = random.Random(0)
    words = ["the", "cat", "sat", "on", "a", "mat", "and", "slept", "well", "there"]
    true = [" ".join(draw.choices(words, k=draw.randint(6, 12))) for _ in range(count)]
    draw = random.Random(seed)
    return true, [" ".join(draw.choice(words) if draw.random() < slips else word for word in text.split())
                  for text in true]  # fmt: skip


# ── several p-values ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


@given(st.lists(st.floats(0.0, 1.0), max_size=8))
def test_holm_keeps_the_order_and_never_lowers(values: list[float]) -> None:
    found = holm(values)
    assert all(before <= after <= 1.0 for before, after in zip(values, found, strict=True))
    order = sorted(range(len(values)), key=lambda number: values[number])
    assert [found[number] for number in order] == sorted(found)


# ── right and wrong ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_mcnemar_by_hand() -> None:
    first = np.array([True] * 15 + [True] * 10 + [False] * 2 + [False] * 3)
    second = np.array([True] * 15 + [False] * 10 + [True] * 2 + [False] * 3)
    found = rights(first, second)
    assert (found.both, found.first, found.second, found.neither) == (15, 10, 2, 3)
    assert found.p_value == pytest.approx(2 * (1 + 12 + 66) / 2**12)
    assert rights(first, first).p_value == 1.0
    assert rights(np.array([True] * 5000), np.array([False] * 5000)).p_value == pytest.approx(0.0, abs=1e-300)


def test_an_example_is_right_when_all_of_it_is() -> None:
    assert all_right(Statistics(np.array([[2.0, 2.0], [1.0, 2.0]]), ratio, "")).tolist() == [True, False]


# ── intervals ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_run_is_drawn_as_score_draws_it() -> None:
    tally = share(np.array([1.0] * 30 + [0.0] * 20))
    found = drawn([tally], BOOTSTRAP)
    assert found.value == pytest.approx(60.0)
    assert np.array_equal(found.scores, tally.resampled(BOOTSTRAP))
    assert drawn([share(np.array([1.0]))], BOOTSTRAP).interval == (None, None)


def test_seeds_alone_spread_as_the_mean_of_so_many_does() -> None:
    """No example tells anything here: 10, 20 and 30 % have a standard error of 10 / √3."""
    runs = [share(np.full(40, each)) for each in (0.1, 0.2, 0.3)]
    found = drawn(runs, Bootstrap(0, 4000))
    assert found.value == pytest.approx(20.0)
    assert found.scores.std() == pytest.approx(10 / math.sqrt(3), rel=0.05)
    assert drawn(runs[:1], BOOTSTRAP).scores.std() == pytest.approx(0.0)


def test_an_interval_covers_seeds_and_examples() -> None:
    draw = np.random.default_rng(1)
    runs = [share((draw.random(200) < chance).astype(float)) for chance in (0.5, 0.6, 0.7)]
    low, high = drawn(runs, BOOTSTRAP).interval
    alone = drawn(runs[1:2], BOOTSTRAP).interval
    assert low is not None
    assert high is not None
    assert None not in alone
    assert high - low > 0.9 * 4 * 10 / math.sqrt(3)
    assert low < 60.0 < high


# ── paired tests ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["exact", "bleu", "chrf", "cer", "f1"])
def test_one_run_each_is_the_paired_test_of_texts(name: str) -> None:
    true, one = sentences(60, 0.1, 1)
    _, other = sentences(60, 0.2, 2)
    references = [[text] for text in true]
    tallies = [corpus_tallies(texts, references, (name,), BOOTSTRAP)[name] for texts in (one, other)]
    first, second = (drawn([tally], BOOTSTRAP) for tally in tallies)
    assert compare(first, second, name == "exact") == paired_test(one, other, references, name)


@pytest.mark.parametrize("slips", [0.11, 0.16, 0.3])
def test_bleu_is_judged_as_sacrebleu_judges_it(slips: float) -> None:
    """The same difference. Its p-value asks about one direction, ours about both, so ours is about twice as large."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.significance import PairedTest

    true, one = sentences(100, 0.1, 1)
    _, other = sentences(100, slips, 2)
    named = [("a", one), ("b", other)]
    theirs = PairedTest(named, {"BLEU": BLEU(references=[true])}, None, test_type="bs", n_samples=1000)()[1]["BLEU"]
    ours = paired_test(other, one, [[text] for text in true], "bleu")
    assert ours.difference == pytest.approx(theirs[1].score - theirs[0].score)
    assert theirs[1].p_value - 0.02 <= ours.p_value <= 2 * theirs[1].p_value + 0.05


def test_systems_that_do_not_differ_are_not_told_apart() -> None:
    draw = np.random.default_rng(0)
    small = 0
    for _ in range(40):
        first, second = ([share((draw.random(80) < 0.5).astype(float)) for _ in range(4)] for _ in range(2))
        few = Bootstrap(0, 100)
        small += compare(drawn(first, few, 0), drawn(second, few, 1), True).p_value <= 0.05
    assert small <= 7


def test_systems_that_do_differ_are_told_apart() -> None:
    draw = np.random.default_rng(0)
    first, second = ([share((draw.random(300) < chance).astype(float)) for _ in range(3)] for chance in (0.9, 0.6))
    found = compare(drawn(first, BOOTSTRAP, 0), drawn(second, BOOTSTRAP, 1), True)
    assert found.p_value < 0.01
    assert found.low is not None
    assert 0 < found.low < found.difference


def test_no_difference_on_few_examples_is_not_known_to_be_none() -> None:
    """Of 53 examples that agree, 3 / 53 (the rule of three) may well have been missed that do not, either way."""
    same = share(np.array([1.0] * 40 + [0.0] * 13))
    found = compare(drawn([same], BOOTSTRAP), drawn([same], BOOTSTRAP), True)
    assert (found.difference, found.p_value) == (0.0, 1.0)
    assert found.low is not None
    assert found.high is not None
    assert found.high == -found.low
    assert 100 * 3 / 53 < found.high < 100 * 4 / 53
    many = share(np.ones(5000))
    assert compare(drawn([many], BOOTSTRAP), drawn([many], BOOTSTRAP), True).high == pytest.approx(0.077, abs=0.001)


def test_examples_that_all_differ_alike_do_not_tell_the_difference_exactly() -> None:
    first, second = share(np.ones(20)), share(np.zeros(20))
    found = compare(drawn([first], BOOTSTRAP), drawn([second], BOOTSTRAP), True)
    assert found.low is not None
    assert found.difference == pytest.approx(100.0)
    assert 100 - 2 * 100 * 4 / 20 < found.low < 100 - 2 * 100 * 3 / 20  # each one that was missed turns two outputs
    assert found.high == pytest.approx(100.0)
    mirrored = compare(drawn([second], BOOTSTRAP), drawn([first], BOOTSTRAP), True)
    assert (mirrored.low, mirrored.high) == pytest.approx((-100.0, -found.low))


def test_other_metrics_have_no_interval_where_all_examples_say_the_same() -> None:
    texts, _ = sentences(30, 0.1, 1)
    references = [[text] for text in texts]
    for name in ("chrf", "cer", "bleu"):
        found = paired_test(texts, texts, references, name)
        assert (found.difference, found.low, found.high) == (0.0, None, None)


# ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_part_has_the_score_of_its_examples() -> None:
    tally = share(np.array([1.0, 0.0, 1.0, 1.0]))
    assert tally.part([0, 1]).value == pytest.approx(50.0)
    labels = classified(["a", "b", "b", "a"], ["a", "b", "a", "a"])
    assert {name: each.value for name, each in labels.tallies.items()} == pytest.approx(
        {name: each.value for name, each in labels.metrics.items()}
    )
    assert labels.tallies["macro_f1"].part([0, 1, 3]).value == pytest.approx(100.0)
