"""Constraints in greedy, beam and sampled search on a table, against brute force over all texts."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.tokens import END, SPECIALS, UNKNOWN, Tokenizer
from regard.errors import UsageError
from regard.search import beam as beam_module
from regard.search.beam import beam, shared_out
from regard.search.constrain import FIRST, NOWHERE, Bytes, Constraint, Spellings, constraint, spellings
from regard.search.demands import Demands, Rules, demands
from regard.search.languages import Both, Choices, Language, Phrases
from regard.search.pattern import Pattern
from regard.search.write import Hypothesis, Sampling, greedy, sample

A, B, C, D = range(len(SPECIALS), len(SPECIALS) + 4)
SPELLED = {A: b"a", B: b"b", C: b"ab", D: "é".encode()}
SIZE = len(SPECIALS) + len(SPELLED)
CPU = torch.device("cpu")
FULL = 156  # texts of at most 3 tokens: 1 + 5 + 25 + 125

MakeTable = Callable[..., Any]
few = settings(max_examples=25, deadline=None, derandomize=True)
seeds = st.integers(0, 10_000)


@dataclass(frozen=True)
class Asked:
    """What is asked of outputs, drawn at random."""

    pattern: str = ""
    choices: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    banned: tuple[tuple[int, ...], ...] = ()
    min_length: int = 0

    def language(self) -> Language:
        if self.choices:
            return Choices(self.choices)
        if self.pattern and self.phrases:
            return Both(Pattern(self.pattern), Phrases(self.phrases))
        return Pattern(self.pattern) if self.pattern else Phrases(self.phrases)

    def rules(self) -> Rules:
        unknown = {UNKNOWN: "\ufffd".encode()} if not self.pattern and not self.choices else {}
        spelled = Spellings(SPELLED | unknown, SPELLED | unknown, SIZE)
        return Rules(banned=self.banned, min_length=self.min_length,
                     constraint=Constraint(self.language(), spelled, self.banned, "asked for"))  # fmt: skip

    def legal(self, tokens: Sequence[int]) -> bool:
        if UNKNOWN in tokens and (self.pattern or self.choices):
            return False
        text = b"".join("\ufffd".encode() if token == UNKNOWN else SPELLED[token] for token in tokens).decode()
        if self.choices:
            return text in self.choices and not self.broken(tokens)
        matches = not self.pattern or re.fullmatch(self.pattern, text)
        return bool(matches) and all(phrase in text for phrase in self.phrases) and not self.broken(tokens)

    def broken(self, tokens: Sequence[int]) -> bool:
        """Whether a banned n-gram stands in the tokens."""
        return any(tuple(tokens[at : at + len(gram)]) == gram for gram in self.banned for at in range(len(tokens)))


def asked() -> st.SearchStrategy[Asked]:
    patterns = st.sampled_from(["[ab]*", "a*é?", "(ab|é)+", "a|bbb", ".{2}", "(a|b)*a(a|b)", "é*b?a*", "^(aab|b).*$"])
    phrases = st.lists(st.sampled_from(["a", "ab", "ba", "é", "bab"]), min_size=1, max_size=2, unique=True).map(tuple)
    choices = st.lists(st.text(alphabet="abé", max_size=4), min_size=1, max_size=6).map(tuple)
    grams = st.lists(st.sampled_from([(A,), (A, B), (B, B), (C, D), (A, C, A)]), max_size=2, unique=True).map(tuple)
    length = st.integers(0, 3)
    return st.one_of(
        st.builds(Asked, pattern=patterns, banned=grams, min_length=length),
        st.builds(Asked, choices=choices, banned=grams, min_length=length),
        st.builds(Asked, phrases=phrases, banned=grams, min_length=length),
        st.builds(Asked, pattern=patterns, phrases=phrases, banned=grams, min_length=length),
    )


def all_texts(wanted: Asked, limit: int, prefix: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """Every legal text within a limit that is long enough, or, where none is, as long as can be."""
    every = [tokens for length in range(limit + 1) for tokens in product([UNKNOWN, A, B, C, D], repeat=length)]
    legal = [tokens for tokens in every if tokens[: len(prefix)] == prefix and wanted.legal(tokens)]
    least = min(wanted.min_length, max(map(len, legal), default=0))
    return [tokens for tokens in legal if len(tokens) >= least]


def brute_force(table: Any, legal: list[tuple[int, ...]], penalty: float) -> dict[tuple[int, ...], float]:
    scores = {}
    for tokens in legal:
        log = table.logs(0, tokens)
        total = sum(float(log_V[token]) for log_V, token in zip(log, (*tokens, END), strict=True))
        scores[tokens] = total / (len(tokens) + 1) ** penalty
    return scores


def lifted(wanted: Asked, limits: Sequence[int]) -> list[int] | None:
    """The limits as the constraint lifts them; none where nothing of at most 3 tokens is legal."""
    rules = wanted.rules()
    assert rules.constraint is not None
    if not all_texts(wanted, 3):
        return None
    return rules.constraint.limits(list(limits), (), fixed=False, longest=3)


def texts(found: list[Hypothesis]) -> list[tuple[int, ...]]:
    return [each.tokens for each in found]


# ── exact ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.no_shapes  # many steps; the next tests watch the same code
@settings(max_examples=60, deadline=None, derandomize=True)
@given(seeds, asked(), st.integers(0, 3), st.sampled_from([0.0, 0.6, 1.0]))
def test_at_full_width_it_is_brute_force(
    make_table: MakeTable, seed: int, wanted: Asked, limit: int, penalty: float
) -> None:
    table, limits = make_table(1, seed), lifted(wanted, [limit])
    if limits is None:
        return
    (found,) = beam(table.step, table.state(), demands(limits, None, CPU), FULL, wanted.rules(), penalty)
    expected = brute_force(table, all_texts(wanted, limits[0]), penalty)
    assert sorted(texts(found)) == sorted(expected)
    assert [each.score for each in found] == pytest.approx([expected[each.tokens] for each in found], abs=1e-5)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)


@few
@given(seeds, asked(), st.sampled_from([(A,), (C, A), (D,), (B, B)]))
def test_a_prefix_and_a_constraint_are_both_kept(
    make_table: MakeTable, seed: int, wanted: Asked, prefix: tuple[int, ...]
) -> None:
    wanted = replace(wanted, banned=())  # a prefix outweighs them
    table, rules = make_table(1, seed), wanted.rules()
    assert rules.constraint is not None
    legal = all_texts(wanted, 3, prefix)
    if not legal:
        return
    limits = rules.constraint.limits([3], prefix, fixed=True, longest=3)
    (found,) = beam(table.step, table.state(), demands(limits, [prefix], CPU), FULL, rules, 0.0)
    assert sorted(texts(found)) == sorted(legal)


@few
@given(seeds, asked(), st.lists(st.integers(0, 9), min_size=1, max_size=4), st.integers(0, 2))
def test_a_beam_of_one_is_greedy(
    make_table: MakeTable, seed: int, wanted: Asked, longest: list[int], no_repeat: int
) -> None:
    table, limits = make_table(len(longest), seed), lifted(wanted, longest)
    if limits is None:
        return
    rules, demand = replace(wanted.rules(), no_repeat=no_repeat), demands(limits, None, CPU)
    found = beam(table.step, table.state(), demand, 1, rules, 0.6)
    assert [each[0] for each in found] == greedy(table.step, table.state(), demand, rules, 0.6)


@few
@given(seeds, asked(), st.integers(1, 6), st.integers(0, 2))
def test_no_output_ever_breaks_a_constraint(
    make_table: MakeTable, seed: int, wanted: Asked, width: int, no_repeat: int
) -> None:
    """Whatever else is asked for, and whatever the table would like best."""
    table, limits = make_table(4, seed), lifted(wanted, [0, 2, 3, 12])
    if limits is None:
        return
    table.logits[..., [END, UNKNOWN]] += 3.0
    demand, rules = demands(limits, None, CPU), replace(wanted.rules(), no_repeat=no_repeat)
    outputs = [texts(each) for each in beam(table.step, table.state(), demand, width, rules)]
    outputs += [[tokens] for tokens in texts(greedy(table.step, table.state(), demand, rules))]
    outputs += [[tokens] for tokens in texts(sample(table.step, table.state(), demand, rules, Sampling(seed, 2.0)))]
    for limit, found in zip(limits * 3, outputs, strict=True):
        assert found
        assert all(wanted.legal(tokens) and len(tokens) <= limit for tokens in found)


@few
@given(seeds, asked(), st.integers(1, 6))
def test_a_batch_is_each_source_alone(make_table: MakeTable, seed: int, wanted: Asked, width: int) -> None:
    table, limits = make_table(4, seed), lifted(wanted, [7, 0, 3, 12])
    if limits is None:
        return
    rules = wanted.rules()  # one for all, with all that it remembers
    together = beam(table.step, table.state(), demands(limits, None, CPU), width, rules)
    backwards = beam(table.step, table.state([3, 2, 1, 0]), demands(limits[::-1], None, CPU), width, rules)
    assert backwards[::-1] == together
    for source in range(4):
        demand = demands([limits[source]], None, CPU)
        assert beam(table.step, table.state([source]), demand, width, wanted.rules()) == [together[source]]


# ── required texts share a beam out ──────────────────────────────────────────────────────────────────────────────────


def test_a_beam_that_is_shared_out_finds_better_texts(make_table: MakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without banks a beam puts off what is required until the limit forces it."""
    table, demand = make_table(40, 5), demands([7] * 40, None, CPU)
    table.logits[..., END] += 1.0
    rules = Asked(phrases=("éb", "bab")).rules()

    def mean() -> float:
        found = beam(table.step, table.state(), demand, 8, rules, 0.0)
        return sum(each[0].score for each in found) / 40

    shared = mean()
    monkeypatch.setattr(beam_module, "banks", lambda *_: None)
    assert shared > mean() + 0.5


def test_banks_take_turns_and_leave_what_they_do_not_need() -> None:
    total = torch.tensor([[-1.0, -2.0, -3.0, -4.0, -5.0, -torch.inf]])
    bank = torch.tensor([[0, 0, 0, 1, 2, 2]])
    for width, places in ((3, [0, 3, 4]), (4, [0, 1, 3, 4]), (5, [0, 1, 2, 3, 4])):
        assert shared_out(total, bank, width)[1][0].tolist() == places
    sums, _ = shared_out(total, bank, 7)
    assert sums[0].tolist() == [-1.0, -2.0, -3.0, -4.0, -5.0, -torch.inf, -torch.inf]


@pytest.mark.parametrize("width", [2, 3, 4, 9])
def test_what_has_begun_has_a_bank_of_its_own(width: int) -> None:
    rules = Asked(phrases=("ab", "é")).rules()
    assert rules.constraint is not None
    bank_RV = beam_module.banks(rules, demands([9], None, CPU), width)
    assert bank_RV is not None
    nothing, begun, whole = (int(bank_RV[0, token]) for token in (B, A, C))
    assert nothing == 0
    assert nothing <= begun <= whole < min(width, 5) - 1
    assert (begun > nothing) is (width > 2)
    assert beam_module.banks(rules, demands([9], None, CPU), 1) is None


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_limit_is_lifted_to_what_is_legal_and_a_fixed_one_refused() -> None:
    made = Asked(pattern="é{5}").rules().constraint
    assert made is not None
    assert made.limits([1, 9], (), fixed=False, longest=99) == [5, 9]
    assert made.limits([1], (D, D), fixed=False, longest=99) == [5]
    assert made.limits([5], (), fixed=True, longest=99) == [5]
    assert made.limits([1], (D,) * 5, fixed=True, longest=99) == [5]
    with pytest.raises(UsageError, match="max_length 4: the shortest text asked for has 5 tokens"):
        made.limits([4], (), fixed=True, longest=99)


def test_all_of_a_list_can_be_written() -> None:
    made = Asked(choices=("a", "b" * 20)).rules().constraint
    assert made is not None
    assert made.limits([2], (), fixed=False, longest=99) == [20]
    assert made.limits([2], (), fixed=False, longest=10) == [10]
    assert made.limits([2], (), fixed=True, longest=99) == [2]


@pytest.mark.parametrize(
    "wanted",
    [
        Asked(pattern="x+"),
        Asked(pattern="a+", banned=((A,),)),
        Asked(phrases=("xyz",)),
        Asked(pattern="[ab]*", phrases=("é",)),
        Asked(choices=("x", "ax")),
        Asked(pattern="(ab)+a", banned=((A, B), (C, A))),
    ],
)
def test_what_can_not_be_written_is_refused(wanted: Asked) -> None:
    made = wanted.rules().constraint
    assert made is not None
    with pytest.raises(UsageError, match="found no text asked for"):
        made.limits([9], (), fixed=False, longest=99)


def test_a_prefix_that_contradicts_is_refused() -> None:
    made = Asked(pattern="a+").rules().constraint
    assert made is not None
    with pytest.raises(UsageError, match="prefix"):
        made.limits([9], (A, B), fixed=False, longest=99)


def test_a_row_that_left_the_beam_stays_nowhere() -> None:
    made = Asked(pattern="a+").rules().constraint
    assert made is not None
    assert made.follow(FIRST, B) == NOWHERE == made.follow(NOWHERE, A)
    assert made.mask(NOWHERE, 0, 5).nonzero().flatten().tolist() == [END]


# ── tokens as text ───────────────────────────────────────────────────────────────────────────────────────────────────

CORPUS = ["the cat sat on the mat", "a cat é", "naïve  cats — 日本語 😀", "the dog"]
KINDS = ("characters", "bytes", "words", "bpe", "unigram")


def tokenizer(kind: Any) -> Tokenizer:
    return Tokenizer.learn(CORPUS, kind, size=300)


@pytest.mark.parametrize("kind", KINDS)
def test_spellings_add_up_to_the_decoded_text(kind: str) -> None:
    made = tokenizer(kind)
    spelled = spellings(made, unknown=True)
    draw = random.Random(1)
    for _ in range(200):
        ids = draw.choices(sorted(spelled.later), k=draw.randint(0, 6))
        parts = [(spelled.later if at else spelled.first)[id] for at, id in enumerate(ids)]
        assert b"".join(parts).decode(errors="replace") == made.decode(ids)


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_lead_where_their_bytes_do(kind: str) -> None:
    made = tokenizer(kind)
    for spelled in (spellings(made).first, spellings(made).later):
        for language in (Pattern("[a-zé ]*|.日"), Choices(CORPUS), Phrases(["cat", "é"])):
            found = {int(id): state for state, ids in Bytes(spelled).lead(language, language.start).items()
                     for id in ids}  # fmt: skip
            expected = {id: walked(language, part) for id, part in spelled.items()}
            assert found == {id: state for id, state in expected.items() if state is not None}


def walked(language: Language, part: bytes) -> Any:
    state = language.start
    for byte in part:
        state = None if state is None else language.follow(state, byte)
    return state


@pytest.mark.parametrize("kind", ["characters", "bytes", "bpe", "unigram"])
@pytest.mark.parametrize(
    "asked_for", [("[a-z]+ ([a-z]+|日本)", (), ()), ("", tuple(CORPUS), ()), ("", (), ("cat", "é"))]
)
def test_what_bytes_alone_tell_is_what_a_search_finds(kind: str, asked_for: Any) -> None:
    """A banned n-gram that never comes up switches the short cuts off."""
    made = tokenizer(kind)
    quick = constraint(made, *asked_for, ())
    assert quick is not None
    slow = Constraint(quick.language, quick.spelled, [(UNKNOWN, UNKNOWN)])
    assert (quick.any_byte, slow.any_byte) == (True, False)
    draw = random.Random(3)
    for limit in (4, 8, 30):
        ids: list[int] = []
        limit = quick.limits([limit], (), False, 30)[0]
        for at in range(limit):
            low = draw.choice([0, 0, 2, 5])
            places = [begun(each, ids) for each in (quick, slow)]
            allowed = quick.mask(places[0], low, limit - at)
            assert torch.equal(allowed, slow.mask(places[1], low, limit - at))
            ids.append(draw.choice(quick.mask(places[0], 0, limit - at).nonzero().flatten().tolist()))
            if ids[-1] == END:
                break


def begun(made: Constraint, ids: Sequence[int]) -> int:
    state = FIRST
    for id in ids:
        state = made.follow(state, id)
    return state


def test_several_constraints_are_one() -> None:
    made = tokenizer("characters")
    both = constraint(made, "t.*", CORPUS, ["cat"], ())
    assert both is not None
    assert isinstance(both.language, Choices)
    assert both.language.lines == [b"the cat sat on the mat"]
    assert constraint(made, "", (), ("",), ("",)) is None
    banned = constraint(made, "[a-z é]*", CORPUS, (), ["dog", "mat", "x"])
    assert banned is not None
    assert isinstance(banned.language, Choices)
    assert banned.language.lines == ["a cat é".encode()]
    with pytest.raises(UsageError, match=r'among the 4 choices and that does not hold "a", "b", "c" …$'):
        constraint(made, "", CORPUS, (), "abcdefghijklmnopqrstuvwxyz")
    with pytest.raises(UsageError, match='found no text that matches "x" and among the 4 choices'):
        constraint(made, "x", CORPUS, (), ())


def test_rows_carry_their_states() -> None:
    rules = Asked(pattern="ab|b").rules()
    made = rules.constraint
    assert made is not None
    demand: Demands = demands([3, 3, 3], None, CPU)
    after_R = made.after(demand.state_R, torch.tensor([A, B, D]))
    assert after_R.tolist()[2] == NOWHERE
    legal_RV = made.legal(after_R, 0, torch.tensor([2, 2, 2]))
    assert [row.nonzero().flatten().tolist() for row in legal_RV] == [[B], [END], [END]]


def test_a_large_list_is_quick_to_ask() -> None:
    """One state of a hundred thousand lines: only what is met of them is looked at."""
    lines = [f"{number:05d} {number * 7919 % 100_000:05d}" for number in range(100_000)]
    made = constraint(tokenizer("bytes"), "", lines, (), ())
    assert made is not None
    state = FIRST
    for place in range(11):
        state = made.follow(state, made.mask(state, 0, 40).nonzero().flatten().tolist()[place % 2 - 1])
    assert made.states[state].ends
    assert len(made.states) < 200
