"""Beam search on a table: greedy at width 1, brute force at full width, and what lies between."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.data.tokens import END, SPECIALS, UNKNOWN
from regard.search.beam import Source, beam
from regard.search.demands import Demands, Rules, demands
from regard.search.write import Hypothesis, Sampling, greedy, hypothesis, sample
from regard.search.write import given as score_given

A, B, C, D = range(len(SPECIALS), len(SPECIALS) + 4)
TEXT = [UNKNOWN, A, B, C, D]
CPU = torch.device("cpu")
FULL = 156  # texts of at most 3 tokens: 1 + 5 + 25 + 125

MakeTable = Callable[..., Any]
few = settings(max_examples=12, deadline=None, derandomize=True)


def limits(*values: int) -> Demands:
    return demands(values, None, CPU)


def texts(found: list[Hypothesis]) -> list[tuple[int, ...]]:
    return [each.tokens for each in found]


def brute_force(table: Any, source: int, limit: int, penalty: float) -> dict[tuple[int, ...], float]:
    """The score of every text there is, from the table's own log probabilities."""
    scores = {}
    for length in range(limit + 1):
        for tokens in product(TEXT, repeat=length):
            log = table.logs(source, tokens)
            total = sum(float(log_V[token]) for log_V, token in zip(log, (*tokens, END), strict=True))
            scores[tokens] = total / (length + 1) ** penalty
    return scores


def check_list(found: list[Hypothesis], expected: dict[tuple[int, ...], float]) -> None:
    """A list is the best of all texts, in order, each with its exact score."""
    scores = [each.score for each in found]
    assert scores == sorted(scores, reverse=True)
    assert scores == pytest.approx(sorted(expected.values(), reverse=True)[: len(found)], abs=1e-5)
    assert scores == pytest.approx([expected[tokens] for tokens in texts(found)], abs=1e-5)
    assert len(set(texts(found))) == len(found)


@few
@given(st.integers(0, 10_000), st.lists(st.integers(0, 12), min_size=1, max_size=5), st.sampled_from([0.0, 0.6, 1.0]))
def test_a_beam_of_one_is_greedy(make_table: MakeTable, seed: int, longest: list[int], penalty: float) -> None:
    table = make_table(len(longest), seed)
    found = beam(table.step, table.state(), limits(*longest), 1, Rules(), penalty)
    assert [each[0] for each in found] == greedy(table.step, table.state(), limits(*longest), Rules(), penalty)
    assert [len(each) for each in found] == [1] * len(longest)


@few
@given(st.integers(0, 10_000))
def test_a_beam_of_one_is_greedy_among_equals(make_table: MakeTable, seed: int) -> None:
    """Logits are whole numbers here, so several tokens are often equally likely."""
    table = make_table(4, seed, coarse=True)
    rules = Rules(min_length=3)
    found = beam(table.step, table.state(), limits(9, 9, 9, 9), 1, rules, 0.0)
    assert [texts(each)[0] for each in found] == texts(greedy(table.step, table.state(), limits(9, 9, 9, 9), rules))


@pytest.mark.parametrize("better", [A, C])
def test_a_beam_of_one_is_greedy_after_a_long_text(make_table: MakeTable, better: int) -> None:
    """Far down a text the sum is large; two tokens a hair apart must still be told apart."""
    table = make_table(1, 0)
    table.logits[:] = -31.7
    table.logits[..., [A, C]] = 0.0
    table.logits[..., better] = 2e-6
    demand = demands([30], [(UNKNOWN,) * 20], CPU)
    found = beam(table.step, table.state(), demand, 1, Rules(min_length=30))[0]
    assert texts(found) == [(UNKNOWN,) * 20 + (better,) * 10]


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_at_full_width_it_is_brute_force(make_table: MakeTable, seed: int, penalty: float) -> None:
    table = make_table(2, seed)
    found = beam(table.step, table.state(), limits(3, 2), FULL, Rules(), penalty)
    assert [len(each) for each in found] == [156, 31]
    for source, limit in ((0, 3), (1, 2)):
        check_list(found[source], brute_force(table, source, limit, penalty))


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
def test_a_wide_beam_finds_the_best_few(make_table: MakeTable, penalty: float) -> None:
    """30 of 156 is wide enough on these tables for the 3 best to be the true ones."""
    table = make_table(4, 11)
    found = beam(table.step, table.state(), limits(3, 3, 3, 3), 30, Rules(), penalty)
    for source in range(4):
        check_list(found[source][:3], brute_force(table, source, 3, penalty))


@few
@given(st.integers(0, 10_000), st.integers(1, 6), st.sampled_from([0.0, 0.6, 1.0]))
def test_a_batch_is_each_source_alone(make_table: MakeTable, seed: int, width: int, penalty: float) -> None:
    table = make_table(4, seed)
    own = (7, 0, 3, 12)
    together = beam(table.step, table.state(), limits(*own), width, Rules(), penalty)
    backwards = beam(table.step, table.state([3, 2, 1, 0]), limits(*own[::-1]), width, Rules(), penalty)
    assert backwards[::-1] == together
    for source in range(4):
        alone = beam(table.step, table.state([source]), limits(own[source]), width, Rules(), penalty)
        assert alone == [together[source]]


@few
@given(st.integers(0, 10_000), st.integers(1, 8), st.sampled_from([0.0, 0.6, 1.0]))
def test_stopping_early_loses_nothing(make_table: MakeTable, seed: int, width: int, penalty: float) -> None:
    """A source that is called done would have ended with the same list had it gone on."""
    table = make_table(3, seed)
    found = beam(table.step, table.state(), limits(6, 9, 4), width, Rules(), penalty)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Source, "done", lambda _, best_live: best_live == -torch.inf)
        patient = beam(table.step, table.state(), limits(6, 9, 4), width, Rules(), penalty)
    assert found == patient


def test_what_has_ended_is_kept_apart(make_table: MakeTable) -> None:
    """An early end that is best in the end survives wide beams full of longer texts, and takes no place from them."""
    table = make_table(1, 0)
    table.logits[:] = 0.0
    table.logits[..., : len(SPECIALS)] = -9.0
    table.logits[..., END] = 1.0
    found = beam(table.step, table.state(), limits(3), 2, Rules(), 0.0)[0]
    assert found[0].tokens == ()
    assert len(found[1].tokens) == 1
    assert len(found) == 2


def test_finished_hypotheses_are_sorted_and_at_most_the_width() -> None:
    source = Source(0, limit=9, width=2, penalty=0.0)
    for log in (-3.0, -1.0, -2.0):
        source.add(hypothesis([A], [log], 0.0))
    assert [each.score for each in source.finished] == [-1.0, -2.0]


def test_a_source_is_done_only_when_nothing_can_still_win() -> None:
    source = Source(0, limit=9, width=1, penalty=1.0)
    assert source.done(-torch.inf)
    assert not source.done(-100.0)
    source.add(hypothesis([], [-2.0], 1.0))
    assert not source.done(-19.0)  # −19 ÷ 10 would be better than −2
    assert source.done(-20.0)


def test_scores_are_those_of_the_given_text(make_table: MakeTable) -> None:
    table = make_table(3, 5)
    for source, found in enumerate(beam(table.step, table.state(), limits(8, 8, 8), 4, Rules(), 0.6)):
        again = score_given(table.step, table.state([source] * len(found)), texts(found), Rules(), 0.6)
        assert [each.score for each in found] == pytest.approx([each.score for each in again], abs=1e-5)
        for a, b in zip(found, again, strict=True):
            assert a.log_probabilities == pytest.approx(b.log_probabilities, abs=1e-5)


# ── rules ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def obeys(tokens: tuple[int, ...], rules: Rules, limit: int) -> bool:
    """The rules once more, for a whole text."""
    grams = [tokens[i : i + rules.no_repeat] for i in range(len(tokens) - rules.no_repeat + 1)]
    spelled = ["".join(map(chr, gram)) for gram in rules.banned]
    repeated = rules.no_repeat > 0 and len(set(grams)) < len(grams)
    return rules.min_length <= len(tokens) <= limit and not repeated and not any(
        gram in "".join(map(chr, tokens)) for gram in spelled
    )  # fmt: skip


@pytest.mark.parametrize(
    "rules",
    [
        Rules(min_length=2),
        Rules(no_repeat=1),
        Rules(no_repeat=2),
        Rules(banned=((A,), (B, C))),
        Rules(min_length=1, no_repeat=2, banned=((D,), (C, B, A))),
    ],
)
def test_at_full_width_rules_leave_exactly_the_texts_that_obey(make_table: MakeTable, rules: Rules) -> None:
    table = make_table(1, 9)
    found = beam(table.step, table.state(), limits(3), FULL, rules, 1.0)[0]
    expected = {tokens: score for tokens, score in brute_force(table, 0, 3, 1.0).items() if obeys(tokens, rules, 3)}
    assert set(texts(found)) == set(expected)
    check_list(found, expected)


def test_a_prefix_stands_before_every_hypothesis(make_table: MakeTable) -> None:
    table = make_table(2, 9)
    demand = demands([3, 1], [(B, B), (A, B, C)], CPU)
    found = beam(table.step, table.state(), demand, FULL, Rules(), 0.6)
    expected = {t: score for t, score in brute_force(table, 0, 3, 0.6).items() if t[:2] == (B, B)}
    assert set(texts(found[0])) == set(expected)
    check_list(found[0], expected)
    assert texts(found[1]) == [(A, B, C)]  # longer than its limit, which it lifts


def test_a_stuck_source_ends(make_table: MakeTable) -> None:
    table = make_table(1, 0)
    rules = Rules(min_length=9, banned=(*((token,) for token in TEXT if token != A), (A, A)))
    assert texts(beam(table.step, table.state(), limits(9), 3, rules)[0]) == [(A,)]


def test_special_tokens_are_never_written(make_table: MakeTable) -> None:
    table = make_table(3, 0)
    table.logits[..., : len(SPECIALS)] += 8.0
    found = beam(table.step, table.state(), limits(5, 5, 5), 4, Rules(min_length=2))
    assert {token for each in found for tokens in texts(each) for token in tokens} <= set(TEXT)


def test_no_sources_have_no_hypotheses(make_table: MakeTable) -> None:
    table = make_table(1, 0)
    assert beam(table.step, table.state([]), limits(), 3, Rules()) == []
    assert greedy(table.step, table.state([]), limits(), Rules()) == []


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_none_end_every_search(bad: float) -> None:
    """A model whose weights have gone must not hold a search up for ever."""

    def step(token_R: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        logits_RV = torch.full((len(token_R), 12), 0.0)
        logits_RV[:, END] = bad
        return logits_RV, state

    demand = demands([5, 3], None, torch.device("cpu"))
    state = torch.zeros(2, 1)
    assert [len(each.tokens) <= 5 for each in greedy(step, state, demand, Rules())] == [True, True]
    assert all(found for found in beam(step, state, demand, 3, Rules()))
    assert len(sample(step, state, demand, Rules(), Sampling())) == 2


def test_equal_continuations_are_taken_by_the_lower_token() -> None:
    def step(token_R: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return torch.zeros(len(token_R), 40), state

    demand = demands([2], None, torch.device("cpu"))
    found = beam(step, torch.zeros(1, 1), demand, 4, Rules(), 0.0)[0]
    assert [each.tokens for each in found][:2] == [(), (UNKNOWN,)]
