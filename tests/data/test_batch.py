"""Batches: which examples meet is a pure function of (seed, epoch), within a budget and with little padding."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data import batch as batch_module
from regard.data.batch import Batch, cut, mix, pad
from regard.data.tokens import PAD


def plan(lengths: list[int], tokens: int, seed: int, epoch: int) -> list[list[int]]:
    """The batches of examples whose two sides are equally long; the end is counted by the plan."""
    both = np.array([(length - 1, length - 1) for length in lengths], np.int64)
    return [numbers.tolist() for numbers in batch_module.plan(both, tokens, seed, epoch)]


LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=80)


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(lengths=LENGTHS, tokens=st.integers(1, 400), seed=st.integers(0, 9), epoch=st.integers(0, 9))
def test_plan_is_pure_whole_and_within_the_budget(lengths: list[int], tokens: int, seed: int, epoch: int) -> None:
    found = plan(lengths, tokens, seed, epoch)
    assert found == plan(lengths, tokens, seed, epoch)
    assert sorted(number for numbers in found for number in numbers) == list(range(len(lengths)))
    for numbers in found:
        assert len(numbers) == 1 or len(numbers) * max(lengths[i] for i in numbers) <= tokens


def test_plan_differs_between_epochs_and_seeds() -> None:
    lengths = [1 + i % 7 for i in range(100)]
    plans = [plan(lengths, 40, seed, epoch) for seed in range(3) for epoch in range(3)]
    assert all(a != b for i, a in enumerate(plans) for b in plans[:i])


def test_plan_does_not_read_or_move_the_global_generators() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    assert plan([1, 2, 3, 4] * 5, 8, 0, 0) == plan([1, 2, 3, 4] * 5, 8, 0, 0)
    assert torch.equal(before, torch.get_rng_state())


def test_other_batch_mates_in_another_epoch() -> None:
    """Not only the order of batches changes: examples of one length meet others."""
    mates = [{frozenset(numbers) for numbers in plan([5] * 60, 30, 0, epoch)} for epoch in (0, 1)]
    assert mates[0] != mates[1]


def test_little_padding_in_a_mix_of_lengths() -> None:
    draw = random.Random(0)
    lengths = [draw.randint(1, 100) for _ in range(2000)]
    padded = sum(len(numbers) * max(lengths[i] for i in numbers) for numbers in plan(lengths, 2048, 0, 0))
    assert 1 - sum(lengths) / padded < 0.03


def test_longer_than_the_budget_is_alone() -> None:
    assert sorted(sorted(numbers) for numbers in plan([3, 50, 3], 10, 0, 0)) == [[0, 2], [1]]
    assert cut([0, 1, 2], [3, 50, 3], 10) == [[0], [1], [2]]


def test_cut_keeps_the_order() -> None:
    assert cut([4, 3, 2, 1, 0], [1] * 5, 2) == [[4, 3], [2, 1], [0]]
    assert cut([], [], 5) == []


def test_mix_is_the_same_everywhere() -> None:
    """Fixed values: a new Python, process or machine must draw what the old one drew."""
    assert mix(0, "order", 0) == 5724104768301139219
    assert mix(0, "order", 1) != mix(0, "order", 0) != mix(1, "order", 0)
    assert mix(1, 11) != mix(11, 1)
    assert all(0 <= mix(seed, "dropout") < 1 << 63 for seed in range(200))


def test_pad() -> None:
    assert pad([[5, 6], [7], []]).tolist() == [[5, 6], [7, PAD], [PAD, PAD]]
    assert pad([[5]]).dtype == torch.int64


@pytest.mark.parametrize("whole", [True, False])
def test_batch_moves_with_all_its_parts(whole: bool) -> None:
    ids = torch.ones(2, 3, dtype=torch.long)
    batch = Batch(ids, ids > 0 if whole else None, ids if whole else None, ids, (4, 5)).to(torch.device("meta"))
    assert batch.source.is_meta
    assert batch.label_BT.is_meta
    assert (batch.source_mask_BS is None) == (batch.target_BT is None) == (not whole)
    assert batch.index == (4, 5)


def test_batches_come_in_an_order_of_their_own() -> None:
    """All lengths differ, so the same examples always meet: what the seed and the epoch decide is the order alone."""
    lengths = list(range(1, 41))
    plans = [plan(lengths, 80, seed, epoch) for seed, epoch in ((0, 0), (0, 1), (1, 0), (1, 1))]
    assert len({frozenset(map(frozenset, found)) for found in plans}) == 1
    orders = [[max(numbers) for numbers in found] for found in plans]
    assert all(a != b for i, a in enumerate(orders) for b in orders[:i])
    assert all(order != sorted(order) and order != sorted(order, reverse=True) for order in orders)


def test_who_meets_whom_depends_on_seed_and_epoch() -> None:
    lengths = [1 + i % 3 for i in range(90)]
    mates = [{frozenset(numbers) for numbers in plan(lengths, 12, seed, epoch)}
             for seed, epoch in ((0, 0), (0, 1), (1, 0), (1, 1))]  # fmt: skip
    for i, found in enumerate(mates):
        for other in mates[:i]:
            assert len(found & other) < len(found) / 2
