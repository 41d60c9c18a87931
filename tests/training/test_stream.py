"""Updates: pure in seed and place, whole epochs, shares that make up the batch, and a thread that ends."""

import gc
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from regard import config
from regard.data import batch as batch_module
from regard.data.batch import Batch
from regard.data.tokens import PAD
from regard.models.build import build
from regard.tasks.transduce import Transduce
from regard.training.prepare import Prepared, prepare
from regard.training.stream import Place, Share, ahead, updates

pytestmark = pytest.mark.no_shapes

Data = Callable[..., Prepared]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    folder = tmp_path_factory.mktemp("stream")
    rows = "".join(f"{'ab' * (i % 5)}{i}\t{'x' * (i % 7)}{i}\n" for i in range(150))
    (folder / "x.tsv").write_text(rows, encoding="utf-8")

    def make(*words: str) -> Prepared:
        c = config.resolve("rnn", None, ["train.tokens_per_batch=60", *words])
        return prepare(c, str(folder / "x.tsv"), None, folder / "store")

    return make


def taken(data: Prepared, count: int, place: Place = Place(), share: Share = Share()) -> list[Any]:  # noqa: B008
    return list(islice(updates(data.task, data.train, data.config.train, place, share), count))


def same(a: Batch, b: Batch) -> bool:
    parts = [(a.source, b.source), (a.source_mask_BS, b.source_mask_BS), (a.target_BT, b.target_BT),
             (a.label_BT, b.label_BT)]  # fmt: skip
    return a.index == b.index and all(x is not None and y is not None and torch.equal(x, y) for x, y in parts)


def equal(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(
        p == q and len(x) == len(y) and all(map(same, x, y)) for (x, p), (y, q) in zip(a, b, strict=True)
    )


# ── order ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("accumulate", [1, 3])
def test_begun_at_a_place_it_goes_on_as_if_it_had_never_stopped(data: Data, accumulate: int) -> None:
    found = data(f"train.accumulate={accumulate}")
    whole = taken(found, 60)
    assert whole[-1][1].epoch >= 1
    for stop in (1, 2, 17, 30, 45, 59):
        assert equal(taken(found, 60 - stop, whole[stop - 1][1]), whole[stop:])


def test_places_count_batches_and_epochs_hold_every_example_once(data: Data) -> None:
    found = data()
    seen: dict[int, Counter[int]] = {}
    before = Place()
    for (batch,), place in taken(found, 80):
        assert place in (Place(before.epoch, before.number + 1), Place(before.epoch + 1, 1))
        seen.setdefault(place.epoch, Counter()).update(batch.index)
        before = place
    everything = Counter(range(len(found.train.items)))
    assert len(seen) > 2
    assert all(seen[epoch] == everything for epoch in list(seen)[:-1])


def test_updates_cross_epochs(data: Data) -> None:
    found = data("train.accumulate=4")
    whole = taken(found, 30)
    assert all(len(batches) == 4 for batches, _ in whole)
    single = [batch for (batch,), _ in taken(data(), 120)]
    assert all(map(same, [batch for batches, _ in whole for batch in batches], single))


def test_another_seed_another_order(data: Data) -> None:
    assert not equal(taken(data(), 5), taken(data("train.seed=1"), 5))


def test_batches_hold_what_their_numbers_say(data: Data) -> None:
    found = data()
    for (batch,), place in taken(found, 10):
        assert same(batch, found.task.batch([found.train.items[i] for i in batch.index], batch.index, place.epoch))


def test_items_in_a_list_give_the_same(data: Data) -> None:
    found = data()
    listed = replace(found, train=replace(found.train, items=list(found.train.items)))
    assert equal(taken(found, 40), taken(listed, 40))


def test_the_same_over_several_windows(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_module, "PAGE", 4)
    monkeypatch.setattr(batch_module, "WINDOW", 32)
    found = data()
    whole = taken(found, 70)
    assert equal(taken(found, 40, whole[29][1]), whole[30:])
    first = Counter(i for (batch,), place in whole if place.epoch == 0 for i in batch.index)
    assert first == Counter(range(len(found.train.items)))


# ── shares ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("world", [2, 3, 40])
def test_shares_make_up_the_batch_and_the_order_is_the_same(data: Data, world: int) -> None:
    found = data()
    whole = taken(found, 12)
    shares = [taken(found, 12, share=Share(rank, world)) for rank in range(world)]
    for number, ((batch,), place) in enumerate(whole):
        parts = [share[number][0][0] for share in shares]
        assert all(share[number][1] == place for share in shares)
        active = [part for part in parts if bool((part.label_BT != PAD).any())]
        assert Counter(i for part in active for i in part.index) == Counter(batch.index)
        assert sum(int((part.label_BT != PAD).sum()) for part in parts) == int((batch.label_BT != PAD).sum())
        for rank, part in enumerate(parts):
            assert part.index == (batch.index[rank::world] or batch.index[:1])


def test_a_share_of_nothing_computes_and_counts_nothing(data: Data) -> None:
    found = data("train.tokens_per_batch=1")
    (batch,), _ = taken(found, 1, share=Share(1, 2))[0]
    assert len(batch.index) == 1
    assert bool((batch.label_BT == PAD).all())
    model = build(found.config, found.vocabulary.source.size, found.vocabulary.target.size)
    loss = found.task.loss(model, batch, 1.0, 0)
    torch.autograd.backward(loss.total)
    assert (loss.count, float(loss.total.detach())) == (0, 0.0)
    assert all(weight.grad is None or not bool(weight.grad.any()) for weight in model.parameters())


# ── the thread ───────────────────────────────────────────────────────────────────────────────────────────────────────


others: set[threading.Thread] = set()  # of runs that other tests have left to be collected


@pytest.fixture(autouse=True)
def before() -> None:
    others.clear()
    others.update(thread for thread in threading.enumerate() if thread.name == "batches")


def workers() -> int:
    return sum(thread.name == "batches" and thread not in others for thread in threading.enumerate())


def none_left() -> bool:
    for _ in range(200):
        if not workers():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("how", ["close", "forget"])
def test_the_thread_ends_with_the_generator(data: Data, how: str) -> None:
    found = data()
    assert none_left()
    stream = updates(found.task, found.train, found.config.train)
    assert workers() == 0  # not before the first is asked for
    next(stream)
    assert workers() == 1
    if how == "close":
        stream.close()
    del stream
    gc.collect()
    assert none_left()


def test_an_error_in_the_thread_is_raised_where_batches_are_taken(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    found, sound, calls = data(), Transduce.batch, []

    def fail(self: Transduce, items: Any, numbers: Any, epoch: int) -> Batch:
        calls.append(1)
        if len(calls) == 4:
            raise ValueError("a broken batch")
        return sound(self, items, numbers, epoch)

    monkeypatch.setattr(Transduce, "batch", fail)
    stream = updates(found.task, found.train, found.config.train)
    assert len([next(stream) for _ in range(3)]) == 3
    with pytest.raises(ValueError, match="a broken batch"):
        next(stream)
    assert none_left()


def test_no_more_than_a_few_are_made_ahead() -> None:
    made = []

    def source() -> Iterator[Any]:
        for number in range(100):
            made.append(number)
            yield [], Place(0, number)

    stream = ahead(source())
    next(stream)
    time.sleep(0.2)
    assert len(made) <= 5
    stream.close()
    assert none_left()


def test_copy_file_is_trained_on(copy_file: Path, tmp_path: Path) -> None:
    found = prepare(config.resolve("rnn"), str(copy_file), None, tmp_path / "store")
    (batch,), _ = taken(found, 1)[0]
    assert batch.source.shape[0] == len(batch.index)
