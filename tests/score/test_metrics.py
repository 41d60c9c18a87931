"""Made-up outputs and references in; the numbers must be sacrebleu's own, or those counted by hand."""

import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import DataError, UsageError
from regard.score import (
    TRANSDUCE,
    accuracy,
    any_target,
    corpus_scores,
    edit_distance,
    mute,
    paired_test,
    perplexity,
    position_accuracy,
)
from regard.score.metrics import shared_words

WORDS = ["the", "a", "Cat", "dog's", "saw,", "slept.", "under", "3.5", "well-known", "“Straße”", "猫", "(and)", "at"]
SACREBLEU = ("bleu", "chrf", "ter")


def noisy(text: str, rate: float, draw: random.Random) -> str:
    """The same words, some replaced and two of them swapped, so that TER finds something to shift."""
    words = [draw.choice(WORDS) if draw.random() < rate else word for word in text.split()]
    place = draw.randrange(len(words) - 1)
    words[place], words[place + 1] = words[place + 1], words[place]
    return " ".join(words)


def made_up(lines: int = 30) -> tuple[list[str], list[list[str]]]:
    """Outputs, and two references for each."""
    draw = random.Random(7)
    first = [" ".join(draw.choices(WORDS, k=draw.randint(4, 12))) for _ in range(lines)]
    second = [noisy(text, 0.3, draw) for text in first]
    outputs = [text if draw.random() < 0.2 else noisy(text, 0.2, draw) for text in first]
    return outputs, [list(pair) for pair in zip(first, second, strict=True)]


def sacrebleu_command(
    folder: Path, outputs: Sequence[str], references: Sequence[Sequence[str]], *options: str
) -> dict[str, dict[str, Any]]:
    """What sacrebleu's own command says, by our names."""
    streams = [*zip(*references, strict=True), tuple(outputs)]
    files = [folder / f"{number}.txt" for number in range(len(streams))]
    for file, stream in zip(files, streams, strict=True):
        file.write_text("".join(line + "\n" for line in stream), encoding="utf-8")
    names = [str(file) for file in files]
    command = [sys.executable, "-m", "sacrebleu", *names[:-1], "-i", names[-1], "-m", *SACREBLEU, "-w", "6", *options]
    surroundings = {**os.environ, "SACREBLEU_FORMAT": "json", "SACREBLEU_SEED": "5"}
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, encoding="utf-8", check=True)
    return {found["name"].lower().replace("chrf2", "chrf"): found for found in json.loads(done.stdout)}


@pytest.mark.parametrize("count", [1, 2])
def test_values_are_those_of_the_command(tmp_path: Path, count: int) -> None:
    outputs, both = made_up()
    references = [pair[:count] for pair in both]
    theirs = sacrebleu_command(tmp_path, outputs, references)
    ours = corpus_scores(outputs, references, SACREBLEU, samples=0)
    for name in SACREBLEU:
        assert 5 < ours[name].value < 95
        assert ours[name].value == pytest.approx(theirs[name]["score"], abs=1e-4)
        assert ours[name].signature == theirs[name]["signature"]


def test_bounds_are_those_of_the_command(tmp_path: Path) -> None:
    outputs, references = made_up()
    theirs = sacrebleu_command(tmp_path, outputs, references, "--confidence", "--confidence-n", "200")
    ours = corpus_scores(outputs, references, SACREBLEU, seed=5, samples=200)
    for name, metric in ours.items():
        assert metric.low is not None
        assert metric.high is not None
        assert (metric.high - metric.low) / 2 == pytest.approx(theirs[name]["confidence_var"], abs=1e-3)
        assert metric.signature == theirs[name]["signature"]


def test_text_that_is_already_tokens(tmp_path: Path) -> None:
    outputs, both = made_up()
    references = [pair[:1] for pair in both]
    theirs = sacrebleu_command(tmp_path, outputs, references, "--tokenize", "none")["bleu"]
    ours = corpus_scores(outputs, references, ["bleu"], samples=0, tokenize="none")["bleu"]
    assert ours.value == pytest.approx(theirs["score"], abs=1e-4)
    assert ours.value != pytest.approx(corpus_scores(outputs, references, ["bleu"], samples=0)["bleu"].value)
    assert "tok:none" in ours.signature


def test_examples_may_differ_in_their_number_of_references() -> None:
    outputs, references = made_up()
    some = [pair if number % 2 else pair[:1] for number, pair in enumerate(references)]
    repeated = [pair if number % 2 else pair[:1] * 2 for number, pair in enumerate(references)]
    ours, same = corpus_scores(outputs, some, samples=0), corpus_scores(outputs, repeated, samples=0)
    for name in TRANSDUCE:
        assert ours[name].value == pytest.approx(same[name].value)
        assert "nrefs:var" in ours[name].signature
        assert "nrefs:2" in same[name].signature


def test_perfect_outputs() -> None:
    _, references = made_up()
    scores = corpus_scores([pair[1] for pair in references], references, (*TRANSDUCE, "accuracy"), samples=50)
    for metric in scores.values():
        assert metric.value == pytest.approx(100 if metric.higher_is_better else 0)
    assert {name for name, metric in scores.items() if not metric.higher_is_better} == {"ter", "cer", "wer"}


def test_exact_takes_any_reference_and_nothing_near_it() -> None:
    references = [["one", "eins"], ["two"], ["three"], [""]]
    metric = corpus_scores(["eins", "Two", "three ", ""], references, ["exact"])["exact"]
    assert metric.value == 50
    assert "wilson" in metric.signature
    assert metric.low == pytest.approx(15.0036, abs=1e-3)
    assert metric.high == pytest.approx(84.9964, abs=1e-3)


@pytest.mark.parametrize(
    ("output", "references", "characters", "words"),
    [
        ("kitten", ["sitting"], 300 / 7, 100),
        ("the cat", ["the cat sat"], 400 / 11, 100 / 3),
        ("ab", ["a", "abcd"], 50, 100),  # one edit of one, or two of four: the lower rate wins
        ("", ["", "word"], 0, 0),
        ("ab", [""], 100, 100),
        ("ab", ["", "ac"], 50, 100),
        ("a  b", ["a b"], 100 / 3, 0),
    ],
)
def test_error_rates_by_hand(output: str, references: list[str], characters: float, words: float) -> None:
    scores = corpus_scores([output], [references], ["cer", "wer"])
    assert scores["cer"].value == pytest.approx(characters)
    assert scores["wer"].value == pytest.approx(words)


def test_error_rate_divides_once_for_the_corpus() -> None:
    scores = corpus_scores(["a", "bbbbbbbbb"], [["x"], ["bbbbbbbbb"]], ["cer"])
    assert scores["cer"].value == 10


def test_one_example_has_no_bootstrap_interval() -> None:
    scores = corpus_scores(["one two three four"], [["one two three five"]])
    for name, metric in scores.items():
        assert (metric.low is None) == (metric.high is None) == (name != "exact")


def test_a_seed_fixes_the_interval_and_another_changes_it() -> None:
    outputs, references = made_up()
    once = corpus_scores(outputs, references, seed=1, samples=100)
    assert once == corpus_scores(outputs, references, seed=1, samples=100)
    other = corpus_scores(outputs, references, seed=2, samples=100)
    for name in set(TRANSDUCE) - {"exact"}:
        assert (once[name].low, once[name].high) != (other[name].low, other[name].high)
        assert once[name].value == other[name].value


def table_distance(first: Sequence[object], second: Sequence[object]) -> int:
    """The textbook's table, a row at a time."""
    above = list(range(len(second) + 1))
    for number, token in enumerate(first, 1):
        row = [number]
        for place, other in enumerate(second):
            row.append(min(above[place] + (token != other), above[place + 1] + 1, row[place] + 1))
        above = row
    return above[-1]


few_letters = st.text(alphabet="abc", max_size=80)


@settings(derandomize=True, deadline=None)
@given(few_letters, few_letters)
def test_edit_distance_is_that_of_the_table(first: str, second: str) -> None:
    assert edit_distance(first, second) == table_distance(first, second)


@settings(derandomize=True, deadline=None)
@given(st.lists(st.sampled_from(["to", "be", "or"])), st.lists(st.sampled_from(["to", "be", "or"])))
def test_edit_distance_of_words_is_symmetric(first: list[str], second: list[str]) -> None:
    assert edit_distance(first, second) == edit_distance(second, first) == table_distance(first, second)


def test_position_accuracy_counts_missing_positions_as_wrong() -> None:
    assert position_accuracy([[1, 2, 3], [4]], [[1, 2, 3], [4, 5]]) == 80
    assert position_accuracy([["a", "b", "c", "d"]], [["a", "x"]]) == 50
    assert position_accuracy([[], [1]], [[], [2]]) == 0
    with pytest.raises(DataError, match="no token"):
        position_accuracy([[1]], [[]])
    with pytest.raises(DataError, match="1 outputs and 2 references"):
        position_accuracy([[1]], [[1], [2]])


def test_f1_counts_words_in_any_order_and_case() -> None:
    """Two of the three words given are among the four that were wanted: 4 / 7; each example counts the same."""
    scores = corpus_scores(["The red Cat", "a"], [["a cat, the RED", "red the cat sat"], ["b"]], ["f1"], samples=0)
    assert scores["f1"].value == pytest.approx(100 * (6 / 7 + 0) / 2)
    assert scores["f1"].signature == "nrefs:var|case:lower|unit:words"
    assert shared_words("a a b", "a b b") == pytest.approx(2 / 3)
    assert (shared_words("", ""), shared_words("a", ""), shared_words("", "a")) == (1.0, 0.0, 0.0)


def test_accuracy_of_labels() -> None:
    assert accuracy(["noun", "verb", "verb", "noun"], ["noun", "verb", "noun", "noun"]) == 75
    assert corpus_scores(["noun", "verb"], [["noun"], ["noun"]], ["accuracy"])["accuracy"].value == 50
    with pytest.raises(DataError):
        accuracy([], [])


def test_perplexity() -> None:
    assert perplexity(12 * math.log(5), 12) == pytest.approx(5)
    assert perplexity(1e6, 1) == math.inf
    with pytest.raises(DataError, match="0 tokens"):
        perplexity(0.0, 0)


@pytest.mark.parametrize("name", TRANSDUCE)
def test_paired_difference_has_the_sign_of_first_minus_second(name: str) -> None:
    outputs, references = made_up()
    draw = random.Random(3)
    worse = [noisy(output, 0.6, draw) for output in outputs]
    there = paired_test(outputs, worse, references, name, samples=200)
    back = paired_test(worse, outputs, references, name, samples=200)
    scores = [corpus_scores(side, references, [name], samples=0)[name].value for side in (outputs, worse)]
    assert there.difference == pytest.approx(scores[0] - scores[1])
    assert (there.difference > 0) == (name in ("exact", "bleu", "chrf", "f1"))
    assert there.low is not None
    assert there.high is not None
    assert there.low <= there.difference <= there.high
    assert back.difference == pytest.approx(-there.difference)
    assert there.p_value == back.p_value < 0.05


@pytest.mark.parametrize("name", TRANSDUCE)
def test_a_system_does_not_differ_from_itself(name: str) -> None:
    outputs, references = made_up()
    paired = paired_test(outputs, outputs, references, name, samples=50)
    assert (paired.difference, paired.p_value) == (0, 1)
    if name == "exact":  # of a share it is known what the examples that were not seen could change
        assert paired.low is not None
        assert paired.low == -(paired.high or 0) < 0
    else:
        assert (paired.low, paired.high) == (None, None)


def test_two_lucky_examples_are_not_significant() -> None:
    references = [[str(number)] for number in range(50)]
    outputs = [str(number) for number in range(50)]
    unlucky = ["?", "?", *outputs[2:]]
    assert paired_test(outputs, unlucky, references, "exact").p_value >= 0.5
    alone = paired_test(["1"], ["?"], [["1"]], "exact")
    assert (alone.p_value, alone.low, alone.high) == (1, None, None)


def test_an_empty_corpus_is_refused() -> None:
    with pytest.raises(DataError, match="no outputs"):
        corpus_scores([], [])
    with pytest.raises(DataError, match="no outputs"):
        paired_test([], [], [], "exact")


def test_unequal_counts_are_refused() -> None:
    with pytest.raises(DataError, match="found 2 outputs and 1 references"):
        corpus_scores(["a", "b"], [["a"]])
    with pytest.raises(DataError, match="found 2 outputs and 1 references"):
        paired_test(["a"], ["a", "b"], [["a"]], "exact")


def test_an_output_needs_a_list_of_references() -> None:
    with pytest.raises(DataError, match="none for output 2"):
        corpus_scores(["a", "b"], [["a"], []])
    with pytest.raises(DataError, match='the text "b" for output 2'):
        corpus_scores(["a", "b"], [["a"], "b"])


def test_unknown_words_are_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r'found "BLUE".*did you mean "bleu"'):
        corpus_scores(["a"], [["a"]], ["exact", "BLUE"])
    with pytest.raises(UsageError, match=r'tokenize: found "13b".*did you mean "13a"'):
        paired_test(["a"], ["b"], [["a"]], "bleu", tokenize="13b")
    with pytest.raises(UsageError, match="samples: found 0"):
        paired_test(["a"], ["b"], [["a"]], "exact", samples=0)


def test_sacrebleu_and_torch_are_not_imported_before_they_are_needed() -> None:
    program = "import sys, regard.score; print([name for name in ('sacrebleu', 'torch') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_bleu_says_nothing_where_no_reference_has_four_words() -> None:
    assert "four words" in mute([["a b c"], ["one two"]])["bleu"]
    assert mute([["a b c"], ["one two", "one two three four"]]) == {}
    assert mute([["2018-05-12, noon"]]) == {}  # signs are words of their own


def test_a_source_with_several_targets_counts_once_and_any_of_them_is_right() -> None:
    sources = ["read", "live", "read", "live", "go"]
    targets = ["R IY D", "L IH V", "R EH D", "L AY V", "G OW"]
    found = any_target(["R EH D", "L OW V", "R EH D", "L OW V", "G OW"], sources, targets)["any"]
    assert found.value == pytest.approx(100 * 2 / 3)
    assert found.rows.tolist() == [[1, 1], [0, 1], [0, 0], [0, 0], [1, 1]]
    assert any_target(["x"] * 3, ["a", "b", "a"], ["x", "y", "x"]) == {}
