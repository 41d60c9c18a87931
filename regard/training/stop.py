"""Signals and a clock in, the reason to stop after this step out."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
UNKNOWN_SHARE = 0.1  # of the minutes, kept back for the last scoring while nothing is known about its length …
MOST_SHARE = 0.5  # … and at most this while it is only guessed
WRITING_SHARE = 0.25  # of the minutes at most for the report
NOT_LONG_AGO = 600.0  # seconds; a command that seems to have begun earlier than that is on a clock of another machine


class Clock:
    """Seconds that a run has taken, those before it was resumed included, and those `spent` before it was made."""

    def __init__(self, spent: float = 0.0) -> None:
        self.before = 0.0
        self.spent = spent
        self.started = time.monotonic() - spent

    def seconds(self) -> float:
        return self.before + time.monotonic() - self.started


def process_seconds() -> float:
    """Since this process began, with all that it has loaded; its seconds of work, if the system does not tell."""
    try:
        ticks = int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
        found = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return time.process_time()
    return found if 0 <= found < NOT_LONG_AGO else time.process_time()


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
        self.writing = 0.0  # seconds that the report and the folder will take after it
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
        """With as much of the minutes left as the last scoring and the report will take."""
        return self.minutes is not None and self.clock.seconds() >= 60 * self.minutes - self.reserve()

    def reserve(self) -> float:
        """Seconds of the minutes that are kept back for the last scoring and the report."""
        seconds = 60 * (self.minutes or 0.0)
        guessed = min(max(UNKNOWN_SHARE * seconds, self.guess()), MOST_SHARE * seconds)
        return (self.ending or guessed) + min(self.writing, WRITING_SHARE * seconds)

    def asked(self) -> list[float]:
        """What this process knows, as numbers that can be summed over processes."""
        return [float(self.time_is_up()), *(float(self.heard == each) for each in SIGNALS)]

    def reason(self, step: int, steps: int, asked: Sequence[float], planned: int = 0) -> str | None:
        """Why all processes end after this step, from the sum of what each of them knows.

        Of `steps` that are fewer than were planned the others were left out for want of time.
        """
        for each, count in zip(SIGNALS, asked[1:], strict=True):
            if count:
                self.signal = int(each)
                return self.interruption
        if (step and asked[0]) or planned > steps <= step:
            return "the time is up"
        return f"all {steps} steps are done" if step >= steps else None

    @property
    def interruption(self) -> str:
        return f"interrupted by {signal.Signals(self.signal or self.heard or 0).name}"


@contextmanager
def stopping(patient: bool = False, spent: float = 0.0) -> Iterator[Stop]:
    """While this is open, the first signal ends the run after its step; the second ends it at once.

    Under a launcher further signals are ignored: it passes on what a terminal has already sent to all, and ends by
    force whoever does not end. `spent` are the seconds that have gone by already.
    """
    stop = Stop(Clock(spent))
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
