"""Greedy search, sampling and given targets on a table: no model, so every probability is known."""

import math
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given as given_values
from hypothesis import settings
from hypothesis import strategies as st

from regard.data.tokens import END, SEPARATOR, SPECIALS, START, UNKNOWN
from regard.search.demands import Demands, Rules, demands
from regard.search.write import Hypothesis, Sampling, draw, given, greedy, narrow, normalise, sample

A, B, C, D = range(len(SPECIALS), len(SPECIALS) + 4)
WRITABLE = [END, UNKNOWN, A, B, C, D]
CPU = torch.device("cpu")

MakeTable = Callable[..., Any]
seeds = given_values(st.integers(0, 10_000))
few = settings(max_examples=12, deadline=None, derandomize=True)


def limits(*values: int) -> Demands:
    return demands(values, None, CPU)


def follow(table: Any, source: int, limit: int, first: int = START) -> tuple[tuple[int, ...], list[float]]:
    """The likeliest token again and again, written out."""
    tokens: list[int] = []
    logs: list[float] = []
    while True:
        log_V = table.logs(source, tokens, first)[-1]
        choice = END if len(tokens) == limit else max(WRITABLE, key=lambda token: float(log_V[token]))
        logs.append(float(log_V[choice]))
        if choice == END:
            return tuple(tokens), logs
        tokens.append(choice)


def texts(found: list[Hypothesis]) -> list[tuple[int, ...]]:
    return [each.tokens for each in found]


# ── greedy ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@few
@seeds
def test_greedy_takes_the_likeliest_token_each_time(make_table: MakeTable, seed: int) -> None:
    table = make_table(4, seed)
    found = greedy(table.step, table.state(), limits(0, 1, 5, 12), Rules())
    for source, limit in enumerate((0, 1, 5, 12)):
        tokens, logs = follow(table, source, limit)
        assert found[source].tokens == tokens
        assert found[source].log_probabilities == pytest.approx(logs, abs=1e-5)
        assert found[source].score == pytest.approx(sum(logs), abs=1e-4)


@few
@seeds
def test_greedy_of_a_batch_is_greedy_of_each_alone(make_table: MakeTable, seed: int) -> None:
    table = make_table(5, seed)
    together = greedy(table.step, table.state(), limits(3, 9, 0, 6, 9), Rules())
    for source, limit in enumerate((3, 9, 0, 6, 9)):
        assert greedy(table.step, table.state([source]), limits(limit), Rules()) == [together[source]]


def test_the_first_token_is_the_one_that_rules_name(make_table: MakeTable) -> None:
    table = make_table(3, 1)
    found = greedy(table.step, table.state(), limits(6, 6, 6), Rules(first=SEPARATOR))
    assert texts(found) == [follow(table, source, 6, SEPARATOR)[0] for source in range(3)]


def test_of_equal_tokens_the_lower_id_is_taken(make_table: MakeTable) -> None:
    table = make_table(1, 0)
    table.logits.zero_()
    assert texts(greedy(table.step, table.state(), limits(4), Rules(min_length=4))) == [(UNKNOWN,) * 4]


def test_a_forced_prefix_is_written_and_scored_as_it_is(make_table: MakeTable) -> None:
    table = make_table(2, 3)
    found = greedy(table.step, table.state(), demands([8, 1], [(D, A, D), (C, C, C)], CPU), Rules())
    assert found[0].tokens[:3] == (D, A, D)
    assert found[1].tokens == (C, C, C)
    log_probability = [float(log_V[C]) for log_V in table.logs(1, (C, C))]
    assert found[1].log_probabilities[:3] == pytest.approx(log_probability, abs=1e-5)


def test_lengths_are_kept(make_table: MakeTable) -> None:
    table = make_table(20, 4)
    found = greedy(table.step, table.state(), limits(*[6] * 20), Rules(min_length=3))
    assert {len(tokens) for tokens in texts(found)} <= {3, 4, 5, 6}
    free = greedy(table.step, table.state(), limits(*[6] * 20), Rules())
    assert min(map(len, texts(free))) < 3  # so the rule above had something to do


def test_the_length_rule(make_table: MakeTable) -> None:
    assert normalise(-6.0, 4, 0.0) == -6.0
    assert normalise(-6.0, 4, 1.0) == -1.5
    assert normalise(-6.0, 4, 0.5) == -3.0
    table = make_table(1, 5)
    found = greedy(table.step, table.state(), limits(7), Rules(), penalty=0.6)[0]
    assert found.score == pytest.approx(found.log_probability / (len(found.tokens) + 1) ** 0.6)
    assert len(found.log_probabilities) == len(found.tokens) + 1


# ── given targets ────────────────────────────────────────────────────────────────────────────────────────────────────


@few
@given_values(st.lists(st.lists(st.sampled_from(WRITABLE[1:]), max_size=6), min_size=1, max_size=5), st.integers(0, 99))
def test_given_targets_have_the_log_probabilities_of_the_table(
    make_table: MakeTable, targets: list[list[int]], seed: int
) -> None:
    table = make_table(len(targets), seed)
    found = given(table.step, table.state(), targets, Rules(), penalty=1.0)
    for source, (target, each) in enumerate(zip(targets, found, strict=True)):
        log = table.logs(source, target)
        exact = [float(log_V[token]) for log_V, token in zip(log, [*target, END], strict=True)]
        assert each.tokens == tuple(target)
        assert each.log_probabilities == pytest.approx(exact, abs=1e-5)
        assert each.score == pytest.approx(sum(exact) / (len(target) + 1), abs=1e-5)


def test_what_greedy_wrote_scores_the_same_when_it_is_given(make_table: MakeTable) -> None:
    table = make_table(6, 8)
    written = greedy(table.step, table.state(), limits(*range(6)), Rules())
    scored = given(table.step, table.state(), texts(written), Rules())
    for a, b in zip(written, scored, strict=True):
        assert a.log_probabilities == pytest.approx(b.log_probabilities, abs=1e-6)


# ── sampling ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def sampled(table: Any, sources: list[int], sampling: Sampling, rules: Rules | None = None, limit: int = 8,
            numbers: list[int] | None = None) -> list[Hypothesis]:  # fmt: skip
    demand = limits(*[limit] * len(sources))
    return sample(table.step, table.state(sources), demand, rules or Rules(), sampling, numbers)


def test_a_seed_gives_the_same_draws_and_another_seed_others(make_table: MakeTable) -> None:
    table = make_table(8, 0)
    sources = list(range(8))
    first = sampled(table, sources, Sampling(seed=1))
    assert first == sampled(table, sources, Sampling(seed=1))
    assert texts(first) != texts(sampled(table, sources, Sampling(seed=2)))


@few
@given_values(st.permutations(list(range(6))), st.integers(1, 6))
def test_draws_depend_on_the_number_alone(make_table: MakeTable, order: list[int], count: int) -> None:
    """Not on batch mates, on the order, or on how long others may write (limits on both sides of 16 draws)."""
    table = make_table(6, 2)
    own = [10, 3, 25, 8, 1, 40]  # the limit of each source
    demand = limits(*own)
    whole = sample(table.step, table.state(), demand, Rules(min_length=2), Sampling(seed=5), [*range(100, 106)])
    part = order[:count]
    found = sample(
        table.step, table.state(part), limits(*[own[i] for i in part]), Rules(min_length=2), Sampling(seed=5),
        [100 + i for i in part],
    )  # fmt: skip
    assert found == [whole[i] for i in part]


def test_rows_of_one_source_are_drawn_apart(make_table: MakeTable) -> None:
    table = make_table(1, 3)
    found = sampled(table, [0] * 30, Sampling(seed=0))
    assert len(set(texts(found))) > 5


@few
@seeds
def test_cold_or_narrow_sampling_is_greedy(make_table: MakeTable, seed: int) -> None:
    table = make_table(3, seed)
    best = texts(greedy(table.step, table.state(), limits(8, 8, 8), Rules()))
    for sampling in (Sampling(seed, temperature=1e-4), Sampling(seed, top_k=1), Sampling(seed, top_p=1e-6)):
        assert texts(sampled(table, [0, 1, 2], sampling)) == best


def test_frequencies_are_the_probabilities(make_table: MakeTable) -> None:
    """Chi-square of the first token over 4000 draws; what may not be written shares its part among the others."""
    table = make_table(1, 6)
    found = sampled(table, [0] * 4000, Sampling(seed=0), limit=1)
    counts = Counter(tokens[0] if tokens else END for tokens in texts(found))
    probability = table.logs(0, ())[0][WRITABLE].softmax(-1).tolist()
    expected = [4000 * each for each in probability]
    chi_square = sum((counts[token] - e) ** 2 / e for token, e in zip(WRITABLE, expected, strict=True))
    assert sum(counts[token] for token in WRITABLE) == 4000
    assert chi_square < 20.5  # 5 degrees of freedom: one seed in a thousand is above


def test_no_forbidden_token_is_ever_drawn(make_table: MakeTable) -> None:
    table = make_table(1, 7)
    table.logits[..., [A, *range(len(SPECIALS))]] += 6.0  # what is forbidden is what the table wants most
    rules = Rules(banned=((A,), (B, C)), min_length=1)
    for sampling in (Sampling(0), Sampling(0, temperature=3.0), Sampling(0, top_k=2), Sampling(0, top_p=0.5)):
        found = texts(sampled(table, [0] * 200, sampling, rules, limit=5))
        assert {token for tokens in found for token in tokens} <= {UNKNOWN, B, C, D}
        assert not [tokens for tokens in found if (B, C) in pairwise(tokens)]
        assert all(1 <= len(tokens) <= 5 for tokens in found)


PROBABILITIES = torch.tensor([[0.05, 0.4, 0.0, 0.25, 0.1, 0.2]])


@pytest.mark.parametrize(
    ("sampling", "kept"),
    [
        (Sampling(), {0, 1, 3, 4, 5}),
        (Sampling(top_k=2), {1, 3}),
        (Sampling(top_k=5), {0, 1, 3, 4, 5}),
        (Sampling(top_k=99), {0, 1, 3, 4, 5}),
        (Sampling(top_p=0.39), {1}),
        (Sampling(top_p=0.41), {1, 3}),
        (Sampling(top_p=0.64), {1, 3}),
        (Sampling(top_p=0.66), {1, 3, 5}),
        (Sampling(top_p=0.94), {1, 3, 4, 5}),
        (Sampling(top_p=0.0), {1}),
        (Sampling(top_k=2, top_p=0.9), {1, 3}),
    ],
)
def test_the_likeliest_that_reach_the_share_are_kept(sampling: Sampling, kept: set[int]) -> None:
    found_RV = narrow(PROBABILITIES.log(), sampling)
    assert set((found_RV[0] > 0).nonzero().flatten().tolist()) == kept
    rows = sorted(kept)
    torch.testing.assert_close(found_RV[0, rows], PROBABILITIES[0, rows])


def test_temperature_is_a_power_of_the_probabilities() -> None:
    found_RV = narrow(PROBABILITIES.log(), Sampling(temperature=2.0))
    expected_RV = PROBABILITIES.sqrt() / PROBABILITIES.sqrt().sum()
    torch.testing.assert_close(found_RV, expected_RV)


@pytest.mark.parametrize(
    ("uniform", "token"), [(0.0, 0), (0.049, 0), (0.051, 1), (0.449, 1), (0.451, 3), (0.699, 3), (0.81, 5), (1.0, 5)]
)
def test_a_uniform_number_finds_its_token(uniform: float, token: int) -> None:
    assert draw(PROBABILITIES, torch.tensor([uniform])).tolist() == [token]


def test_a_draw_never_lands_on_nothing() -> None:
    """The ends of the interval, where tokens without probability stand first and last."""
    probability_RV = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0, 0.0]]).repeat(2, 1)
    assert draw(probability_RV, torch.tensor([0.0, math.nextafter(1.0, 0.0)])).tolist() == [1, 3]
