"""Signals and a clock in, the reason to stop after this step out."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
UNKNOWN_SHARE = 0.1  # of the minutes, kept back for the last scoring while nothing is known about its length …
MOST_SHARE = 0.5  # … and at most this while it is only guessed


class Clock:
    """Seconds that a run has taken, those before it was resumed included."""

    def __init__(self) -> None:
        self.before = 0.0
        self.started = time.monotonic()

    def seconds(self) -> float:
        return self.before + time.monotonic() - self.started


class Abandoned(BaseException):
    """A signal came while something ran that can be done again. No `except Exception` on the way may hold it up."""


class Stop:
    """Hears signals and watches the clock; asked once a step whether to go on."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self.heard: int | None = None  # a signal that came to this process …
        self.signal: int | None = None  # … and the one that all processes have agreed to end by
        self.minutes: float | None = None  # at most this long
        self.ending = 0.0  # seconds that the last scoring will take, as far as known; 0 = not known
        self.guess: Callable[[], float] = lambda: 0.0  # of the same, from the length of a step
        self.abandonable = False

    def hear(self, number: int) -> None:
        if self.heard is None:
            self.heard = number
            if self.abandonable:
                raise Abandoned

    @contextmanager
    def abandoning(self) -> Iterator[None]:
        """What runs in here is given up as soon as a signal comes."""
        self.abandonable = True
        try:
            if self.heard is not None:
                raise Abandoned
            yield
        finally:
            self.abandonable = False

    def time_is_up(self) -> bool:
        """With as much of the minutes left as the last scoring will take."""
        return self.minutes is not None and self.clock.seconds() >= 60 * self.minutes - self.reserve()

    def reserve(self) -> float:
        """Seconds of the minutes that are kept back for the last scoring."""
        seconds = 60 * (self.minutes or 0.0)
        return self.ending or min(max(UNKNOWN_SHARE * seconds, self.guess()), MOST_SHARE * seconds)

    def asked(self) -> list[float]:
        """What this process knows, as numbers that can be summed over processes."""
        return [float(self.time_is_up()), *(float(self.heard == each) for each in SIGNALS)]

    def reason(self, step: int, steps: int, asked: Sequence[float]) -> str | None:
        """Why all processes end after this step, from the sum of what each of them knows."""
        for each, count in zip(SIGNALS, asked[1:], strict=True):
            if count:
                self.signal = int(each)
                return self.interruption
        if step and asked[0]:
            return "the time is up"
        return f"all {steps} steps are done" if step >= steps else None

    @property
    def interruption(self) -> str:
        return f"interrupted by {signal.Signals(self.signal or self.heard or 0).name}"


@contextmanager
def stopping(patient: bool = False) -> Iterator[Stop]:
    """While this is open, the first signal ends the run after its step; the second ends it at once.

    Under a launcher further signals are ignored: it passes on what a terminal has already sent to all, and ends by
    force whoever does not end.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def hear(number: int, frame: FrameType | None) -> None:
        if not patient:
            put_back()
        stop.hear(number)

    def put_back() -> None:
        for each, old in before.items():
            signal.signal(each, old)

    before = {each: signal.signal(each, hear) for each in SIGNALS}
    try:
        yield stop
    finally:
        put_back()
