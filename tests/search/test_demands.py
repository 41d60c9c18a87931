"""What may be written next: lengths, prefixes, n-grams and special tokens, against rules spelled out again."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.data.tokens import CLASS, END, MASK, PAD, SEPARATOR, SPECIALS, START, UNKNOWN
from regard.layers.rows import rows
from regard.search.demands import NOTHING, Demands, Rules, demands, obey

A, B, C, D = range(len(SPECIALS), len(SPECIALS) + 4)
VOCABULARY = len(SPECIALS) + 4
TEXT = {UNKNOWN, A, B, C, D}
CPU = torch.device("cpu")


def logs(count: int) -> Tensor:
    return torch.randn(count, VOCABULARY, generator=torch.Generator().manual_seed(0)).log_softmax(-1)


def allowed(written: list[int], rules: Rules, limit: int = 99, prefix: tuple[int, ...] = ()) -> set[int]:
    """The tokens that may follow one text."""
    written_RT = torch.tensor([written], dtype=torch.long).view(1, len(written))
    found = obey(logs(1), written_RT, rules, demands([limit], [prefix], CPU))
    return set((found[0] > -torch.inf).nonzero().flatten().tolist())


def test_without_rules_text_and_the_end_may_be_written() -> None:
    assert allowed([], Rules()) == TEXT | {END}
    assert allowed([A, B], Rules()) == TEXT | {END}


@pytest.mark.parametrize("special", [PAD, START, SEPARATOR, MASK, CLASS])
def test_special_tokens_are_never_written(special: int) -> None:
    assert special not in allowed([], Rules())


def test_what_is_allowed_keeps_its_exact_log_probability() -> None:
    log_RV = logs(3)
    found_RV = obey(log_RV, torch.empty(3, 0, dtype=torch.long), Rules(banned=((A,),)), demands([5] * 3, None, CPU))
    kept_RV = found_RV > -torch.inf
    assert torch.equal(found_RV[kept_RV], log_RV[kept_RV])
    assert kept_RV.sum(1).tolist() == [len(TEXT)] * 3


@pytest.mark.parametrize(("length", "may_end"), [(0, False), (1, False), (2, True), (3, True)])
def test_no_end_before_the_shortest_length(length: int, may_end: bool) -> None:
    assert (END in allowed([A] * length, Rules(min_length=2))) is may_end


@pytest.mark.parametrize(("length", "found"), [(2, TEXT | {END}), (3, {END}), (4, {END})])
def test_nothing_but_the_end_at_the_longest_length(length: int, found: set[int]) -> None:
    assert allowed([A] * length, Rules(), limit=3) == found


def test_the_longest_length_outweighs_the_shortest() -> None:
    assert allowed([A], Rules(min_length=5), limit=1) == {END}


def test_a_limit_of_nothing_gives_the_empty_text() -> None:
    assert allowed([], Rules(), limit=0) == {END}


def test_a_prefix_is_forced_token_by_token_and_then_let_go() -> None:
    rules = Rules()
    assert allowed([], rules, prefix=(C, A)) == {C}
    assert allowed([C], rules, prefix=(C, A)) == {A}
    assert allowed([C, A], rules, prefix=(C, A)) == TEXT | {END}


def test_a_prefix_outweighs_every_other_rule() -> None:
    rules = Rules(banned=((A,),), no_repeat=1)
    assert allowed([A], rules, prefix=(A, A)) == {A}


def test_a_prefix_longer_than_the_limit_lifts_it() -> None:
    demand = demands([1, 9], [(A, B, C), ()], CPU)
    assert demand.limit_R.tolist() == [3, 9]
    assert demand.prefix_RT.tolist() == [[A, B, C], [NOTHING] * 3]
    assert allowed([A, B], Rules(), limit=1, prefix=(A, B, C)) == {C}
    assert allowed([A, B, C], Rules(), limit=1, prefix=(A, B, C)) == {END}


def test_each_row_has_its_own_limit_and_prefix() -> None:
    demand = demands([1, 4, 4], [(), (B,), (B, C)], CPU)
    written_RT = torch.tensor([[A], [B], [B]])
    found_RV = obey(logs(3), written_RT, Rules(), demand) > -torch.inf
    assert [set(row.nonzero().flatten().tolist()) for row in found_RV] == [{END}, TEXT | {END}, {C}]


def test_rows_of_demands_can_be_picked() -> None:
    demand = rows(demands([1, 2, 3], [(A,), (B,), (C,)], CPU), torch.tensor([2, 0, 0]))
    assert isinstance(demand, Demands)
    assert demand.limit_R.tolist() == [3, 1, 1]
    assert demand.prefix_RT.tolist() == [[C], [A], [A]]


def test_no_sources_make_no_demands() -> None:
    assert demands([], None, CPU).limit_R.shape == (0,)


def test_banned_tokens_and_n_grams() -> None:
    rules = Rules(banned=((D,), (A, B), (C, C, A)))
    assert allowed([], rules) == (TEXT | {END}) - {D}
    assert allowed([A], rules) == (TEXT | {END}) - {D, B}
    assert allowed([C, C], rules) == (TEXT | {END}) - {D, A}
    assert allowed([A, C], rules) == (TEXT | {END}) - {D}


def test_a_row_with_no_way_on_may_end() -> None:
    everything = tuple((token,) for token in TEXT)
    assert allowed([A], Rules(min_length=9, banned=everything)) == {END}


@settings(deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(sorted(TEXT)), max_size=9), st.integers(1, 4))
def test_no_n_gram_comes_twice(written: list[int], length: int) -> None:
    def is_repeated(token: int) -> bool:
        text = [*written, token]
        grams = [tuple(text[i : i + length]) for i in range(len(text) - length + 1)]
        return bool(grams) and grams[-1] in grams[:-1]

    expected = {token for token in TEXT if not is_repeated(token)} | {END}
    assert allowed(written, Rules(no_repeat=length)) == expected


@settings(deadline=None, derandomize=True)
@given(
    st.lists(st.sampled_from(sorted(TEXT)), max_size=6),
    st.lists(st.lists(st.sampled_from(sorted(TEXT)), min_size=1, max_size=3), max_size=4),
)
def test_no_banned_n_gram_is_written(written: list[int], grams: list[list[int]]) -> None:
    banned = tuple(tuple(gram) for gram in grams)
    ends = {token for token in TEXT for gram in banned if tuple([*written, token][-len(gram) :]) == gram}
    assert allowed(written, Rules(banned=banned)) == (TEXT - ends) | {END}
