"""Signals and the clock as reasons to stop."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from regard.training.stop import SIGNALS, Abandoned, Clock, Stop, stopping


def test_no_reason_to_stop() -> None:
    with stopping() as stop:
        assert reason(stop) is None


def reason(stop: Stop, step: int = 5) -> str | None:
    return stop.reason(step, 10, stop.asked())


@pytest.mark.parametrize(("known", "limit"), [(0.0, 108.0), (30.0, 90.0), (200.0, 0.0)])
def test_the_clock_leaves_time_for_the_last_scoring(
    monkeypatch: pytest.MonkeyPatch, known: float, limit: float
) -> None:
    """Two minutes; while nothing is known about the last scoring, a tenth is kept back for it."""
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    stop = Stop()
    stop.minutes, stop.ending = 2.0, known
    if limit:
        monkeypatch.setattr(time, "monotonic", lambda: now + limit - 1)
        assert reason(stop) is None
    monkeypatch.setattr(time, "monotonic", lambda: now + limit + 1)
    assert reason(stop) == "the time is up"
    assert reason(stop, step=0) is None  # one step is always made


def test_time_before_the_run_was_resumed_counts() -> None:
    stop = Stop()
    stop.minutes, stop.ending = 1.0, 10.0
    stop.clock.before = 45.0
    assert reason(stop) is None
    stop.clock.before = 51.0
    assert reason(stop) == "the time is up"


def test_the_last_step_is_a_reason() -> None:
    assert reason(Stop(), step=9) is None
    assert reason(Stop(), step=10) == "all 10 steps are done"


def test_what_one_process_hears_all_obey() -> None:
    deaf, hearing = Stop(), Stop()
    hearing.heard = signal.SIGUSR1
    asked = [sum(both) for both in zip(deaf.asked(), hearing.asked(), strict=True)]
    assert deaf.reason(5, 10, asked) == hearing.reason(5, 10, asked) == "interrupted by SIGUSR1"
    assert deaf.signal == signal.SIGUSR1


def test_what_can_be_done_again_is_given_up_at_once() -> None:
    done: list[str] = []

    def work() -> None:
        with contextlib.suppress(Exception):  # nobody on the way may hold it up
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        done.append("held up")

    with stopping() as stop:
        for begun in (work, lambda: done.append("begun though a signal had come")):
            with pytest.raises(Abandoned), stop.abandoning():
                begun()
    assert done == []


def test_under_a_launcher_the_second_signal_is_ignored() -> None:
    with stopping(patient=True) as stop:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.heard == signal.SIGINT


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_is_a_reason_and_the_second_acts_as_before(number: signal.Signals) -> None:
    heard: list[int] = []
    before = signal.signal(number, lambda found, _: heard.append(found))
    try:
        with stopping() as stop:
            os.kill(os.getpid(), number)
            assert reason(stop) == f"interrupted by {number.name}"
            assert stop.heard == number
            assert heard == []
            os.kill(os.getpid(), number)
            assert heard == [number]
        os.kill(os.getpid(), number)
        assert heard == [number, number]
    finally:
        signal.signal(number, before)


def test_handlers_are_put_back_after_an_error() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with contextlib.suppress(ZeroDivisionError), stopping():
        assert signal.getsignal(signal.SIGTERM) != before
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGTERM) == before


def test_in_another_thread_only_the_clock_counts() -> None:
    found: list[str | None] = []

    def work() -> None:
        with stopping() as stop:
            stop.minutes = 1e-9
            found.append(reason(stop))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == ["the time is up"]


def test_time_is_kept_back_for_the_report() -> None:
    """A minute, ten seconds of scoring, five of writing; and never more than a quarter of all for the writing."""
    stop = Stop(Clock(44.0))
    stop.minutes, stop.ending, stop.writing = 1.0, 10.0, 5.0
    assert not stop.time_is_up()
    stop = Stop(Clock(45.1))
    stop.minutes, stop.ending, stop.writing = 1.0, 10.0, 5.0
    assert stop.time_is_up()
    later = Stop(Clock(34.0))
    later.minutes, later.ending, later.writing = 1.0, 10.0, 1000.0
    assert not later.time_is_up()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system does not tell when a process began")
def test_the_seconds_of_a_process_begin_with_it() -> None:
    """What was loaded before anybody could look at a clock is among them."""
    script = "import time; time.sleep(0.3); from regard.training.stop import process_seconds; print(process_seconds())"
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 0.3 <= float(done.stdout) <= time.monotonic() - began + 0.1
