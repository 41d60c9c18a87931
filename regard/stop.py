"""Work on one thread, and a word from another that nobody waits for it: it ends at its next step.

    stop = Stop()
    with stop.heard():              on the thread that works
        model.run(texts)            raises Stopped soon after
    stop.set()                      on any other thread

Whatever may take long asks at each step, the engine's inner loop too. What no `Stop` is open around never stops.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import NDArray

from regard.errors import Stopped


class Stop:
    """A flag that other threads, and code that is not Python, can see."""

    def __init__(self) -> None:
        self.flag: NDArray[np.int32] = np.zeros(1, np.int32)

    def set(self) -> None:
        self.flag[0] = 1

    @property
    def is_set(self) -> bool:
        return bool(self.flag[0])

    @contextmanager
    def heard(self) -> Iterator[None]:
        """The work of this thread listens to this flag."""
        before = LISTENING.set(self)
        try:
            yield
        finally:
            LISTENING.reset(before)


LISTENING: ContextVar[Stop | None] = ContextVar("listening", default=None)


def listening() -> Stop:
    """The flag that is to be heard here; where there is none, one that nobody sets."""
    return LISTENING.get() or Stop()


def go_on() -> None:
    """Called at each step of what may take long: a token, a place, a text, a batch."""
    stop = LISTENING.get()
    if stop is not None and stop.is_set:
        raise Stopped("the search was stopped: nobody waits for its result")
