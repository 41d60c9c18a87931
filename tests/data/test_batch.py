"""Batches: which examples meet is a pure function of (seed, epoch), within a budget and with little padding."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data import batch as batch_module
from regard.data.batch import Batch, cut, cuts, mix, pad, scattered
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


def test_a_window_is_not_all_and_pages_wander(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many windows of a large file: every example once, windows alike in size, other neighbours in another epoch."""
    monkeypatch.setattr(batch_module, "PAGE", 16)
    monkeypatch.setattr(batch_module, "WINDOW", 128)
    lengths = [2 + i % 9 for i in range(1300)]
    plans = [plan(lengths, 64, 0, epoch) for epoch in (0, 1)]
    for found in plans:
        assert sorted(number for numbers in found for number in numbers) == list(range(1300))
    first = [{number // 16 for numbers in found[:8] for number in numbers} for found in plans]
    assert all(len(pages) <= 8 for pages in first)  # what is read together lies together …
    assert first[0] != first[1]  # … and is somewhere else in another epoch


def test_windows_are_planned_as_they_are_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_module, "PAGE", 16)
    monkeypatch.setattr(batch_module, "WINDOW", 64)
    asked: list[slice] = []

    class Lengths:
        def __len__(self) -> int:
            return 6400

        def __getitem__(self, wanted: slice) -> batch_module.Numbers:
            asked.append(wanted)
            return np.full((wanted.stop - wanted.start, 2), 5)

    next(batch_module.plan(Lengths(), 60, 0, 0))
    assert len(asked) == 4
    assert sum(len(numbers) for numbers in batch_module.plan(Lengths(), 60, 0, 0)) == 6400


def test_little_padding_on_both_sides() -> None:
    """Lengths as in translation: sides that belong together, and some that do not."""
    draw = np.random.default_rng(0)
    common = draw.normal(2.6, 0.32, 30_000)
    sides = np.exp(np.stack([common + draw.normal(0.0, 0.14, 30_000) for _ in range(2)], 1)).astype(np.int64) + 1
    real = padded = 0
    batches = list(batch_module.plan(sides, 4096, 0, 0))
    for numbers in batches:
        source, target = sides[numbers, 0], sides[numbers, 1] + 1
        real += int(source.sum() + target.sum())
        padded += len(numbers) * int(source.max() + target.max())
    assert 1 - real / padded < 0.05
    assert len(batches) < 1.03 * (sides.max(1) + 1).sum() / 4096  # and they are full


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(lengths=LENGTHS, tokens=st.integers(1, 400))
def test_cuts_are_as_far_apart_as_the_budget_allows(lengths: list[int], tokens: int) -> None:
    ends = cuts(np.array(lengths), tokens)
    assert ends[-1] == len(lengths)
    for start, end in zip([0, *ends], ends, strict=False):
        assert end - start == 1 or max(lengths[start:end]) * (end - start) <= tokens
        assert end == len(lengths) or max(lengths[start : end + 1]) * (end - start + 1) > tokens


@pytest.mark.parametrize("whole", [True, False])
def test_part_of_a_batch(whole: bool) -> None:
    ids = torch.arange(12).reshape(4, 3)
    batch = Batch(ids, ids > 0 if whole else None, ids + 1 if whole else None, ids + 2, (4, 5, 6, 7))
    part = batch.part(1, 3)
    assert part.source.tolist() == ids[1:3].tolist()
    assert part.label_BT.tolist() == (ids + 2)[1:3].tolist()
    assert part.index == (5, 6)
    assert (part.source_mask_BS is None) == (part.target_BT is None) == (not whole)
    if part.source_mask_BS is not None and part.target_BT is not None:
        assert part.target_BT.tolist() == (ids + 1)[1:3].tolist()
        assert part.source_mask_BS.all()


def test_an_idle_batch_has_nothing_to_predict() -> None:
    ids = torch.ones(2, 3, dtype=torch.long)
    batch = Batch(ids, ids > 0, ids, ids, (4, 5))
    assert batch.idle().label_BT.tolist() == [[PAD] * 3] * 2
    assert batch.idle().source is ids


def test_scattered_draws_are_pure_even_and_fixed() -> None:
    numbers, places = np.repeat(np.arange(300), 100), np.tile(np.arange(100), 300)
    found = scattered(5, numbers, places)
    assert np.array_equal(found, scattered(5, numbers, places))
    assert float(found[7]) == float(scattered(5, numbers[7:8], places[7:8])[0])
    assert len(np.unique(found)) == len(found)
    assert 0.0 <= found.min() < found.max() < 1.0
    assert found.mean() == pytest.approx(0.5, abs=0.01)
    for axis in (0, 1):  # neither neighbouring examples nor neighbouring places know of each other
        table = found.reshape(300, 100)
        before, after = np.delete(table, -1, axis), np.delete(table, 0, axis)
        assert abs(np.corrcoef(before.ravel(), after.ravel())[0, 1]) < 0.02
    assert scattered(0, np.array([1]), np.array([2])).tolist() == [0.7422306889817497]
