"""Signals and the clock as reasons to stop."""

import contextlib
import os
import signal
import threading
import time

import pytest

from regard.config import Train
from regard.training.stop import Stop, stopping


def test_no_reason_to_stop() -> None:
    with stopping(Train()) as stop:
        assert stop.reason() is None


def test_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    stop = Stop(Train(minutes=2.0))
    monkeypatch.setattr(time, "monotonic", lambda: now + 119)
    assert stop.reason() is None
    monkeypatch.setattr(time, "monotonic", lambda: now + 121)
    assert stop.reason() == "the time is up"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_a_reason_and_the_second_acts_as_before(number: signal.Signals) -> None:
    heard: list[int] = []
    before = signal.signal(number, lambda found, _: heard.append(found))
    try:
        with stopping(Train()) as stop:
            os.kill(os.getpid(), number)
            assert stop.reason() == f"interrupted by {number.name}"
            assert stop.signal == number
            assert heard == []
            os.kill(os.getpid(), number)
            assert heard == [number]
        os.kill(os.getpid(), number)
        assert heard == [number, number]
    finally:
        signal.signal(number, before)


def test_handlers_are_put_back_after_an_error() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with contextlib.suppress(ZeroDivisionError), stopping(Train()):
        assert signal.getsignal(signal.SIGTERM) != before
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGTERM) == before


def test_in_another_thread_only_the_clock_counts() -> None:
    found: list[str | None] = []

    def work() -> None:
        with stopping(Train(minutes=1e-9)) as stop:
            found.append(stop.reason())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == ["the time is up"]
