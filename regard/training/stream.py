"""Items in, an endless row of updates out, each a pure function of (seed, place), made while the step before runs."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from queue import Empty, Queue
from threading import Event, Thread

import numpy as np

from regard.config import Train
from regard.data.batch import Batch, Lengths, plan
from regard.data.ragged import Numbers
from regard.tasks.task import Item, Task
from regard.training import store
from regard.training.prepare import Part

AHEAD = 2  # updates that are ready before they are wanted


@dataclass(frozen=True)
class Place:
    """How far the data have been gone through."""

    epoch: int = 0
    number: int = 0  # how many batches of the epoch have been taken


@dataclass(frozen=True)
class Share:
    """Which of several processes this is; each takes its rows of every batch."""

    rank: int = 0
    world: int = 1


BEGINNING, ALONE = Place(), Share()
Update = tuple[list[Batch], Place]


def updates(
    task: Task,
    part: Part,
    t: Train,
    place: Place = BEGINNING,
    share: Share = ALONE,
) -> Generator[Update]:
    """Epoch after epoch, without end: the batches of one update, and the place after it.

    Begun at such a place it gives exactly what would have followed there. The order does not depend on the share.
    """
    return ahead(made(task, part, t, place, share))


def made(task: Task, part: Part, t: Train, place: Place, share: Share) -> Iterator[Update]:
    """The same, each made when it is asked for."""
    rest = planned(part.items, t, place)
    while True:
        batches = []
        for numbers, place in islice(rest, t.accumulate):
            batches.append(batch(task, part.items, numbers.tolist(), place.epoch, share))
        yield batches, place


def planned(items: Sequence[Item], t: Train, place: Place) -> Iterator[tuple[Numbers, Place]]:
    """The examples of each batch, and the place after it."""
    lengths = lengths_of(items)
    while True:
        for number, numbers in enumerate(plan(lengths, t.tokens_per_batch, t.seed, place.epoch), 1):
            if number > place.number:
                yield numbers, Place(place.epoch, number)
        place = Place(place.epoch + 1)


def lengths_of(items: Sequence[Item]) -> Lengths:
    if isinstance(items, store.Items):
        return store.Lengths(items.shards)
    return np.array([(len(item.source), len(item.target)) for item in items], np.int64).reshape(-1, 2)


def batch(task: Task, items: Sequence[Item], numbers: list[int], epoch: int, share: Share) -> Batch:
    """This process' rows of a batch; where there are none, one that counts for nothing: every process computes."""
    own = numbers[share.rank :: share.world]
    found = task.batch([items[i] for i in own or numbers[:1]], own or numbers[:1], epoch)
    return found if own else found.idle()


# ── ahead of time ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Failed:
    """What stopped the thread."""

    error: BaseException


def ahead(source: Iterator[Update]) -> Generator[Update]:
    """The same elements, made by a thread that is a little ahead; it ends when the generator is closed or forgotten."""
    ready: Queue[Update | Failed] = Queue(AHEAD)
    over = Event()
    Thread(target=work, args=(source, ready, over), name="batches", daemon=True).start()
    try:
        while True:
            match ready.get():
                case Failed(error):
                    raise error
                case element:
                    yield element
    finally:
        over.set()
        clear(ready)  # so that a thread that waits for room finds some, and sees that it is over


def work(source: Iterator[Update], ready: "Queue[Update | Failed]", over: Event) -> None:
    try:
        for element in source:
            ready.put(element)
            if over.is_set():
                return
    except BaseException as error:
        ready.put(Failed(error))


def clear(ready: "Queue[Update | Failed]") -> None:
    try:
        while True:
            ready.get_nowait()
    except Empty:
        pass
