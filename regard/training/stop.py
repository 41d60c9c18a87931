"""Signals and a clock in, the reason to stop after this step out."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from regard.config import Train


class Stop:
    """Asked once a step: has a signal come, is the time up?"""

    def __init__(self, t: Train) -> None:
        self.deadline = None if t.minutes is None else time.monotonic() + 60 * t.minutes
        self.signal: int | None = None

    def reason(self) -> str | None:
        if self.signal is not None:
            return f"interrupted by {signal.Signals(self.signal).name}"
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return "the time is up"
        return None


@contextmanager
def stopping(t: Train) -> Iterator[Stop]:
    """While this is open, the first SIGINT or SIGTERM ends the run after its step; the second ends it at once."""
    stop = Stop(t)
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def hear(number: int, frame: FrameType | None) -> None:
        stop.signal = number
        for each, old in before.items():
            signal.signal(each, old)

    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    for each in before:
        signal.signal(each, hear)
    try:
        yield stop
    finally:
        for each, old in before.items():
            signal.signal(each, old)
