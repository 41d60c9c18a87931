"""What a person is told: the first line, the lines of steps, validations, the curve; under a pipe and on a terminal."""

import io
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from regard import config
from regard.training import progress
from regard.training import stop as stop_module
from regard.training.keep import Best, Keeper
from regard.training.pace import Pace, Plan
from regard.training.progress import LINES, REDRAW, Report
from regard.training.stop import Clock


class Screen(io.StringIO):
    """A standard error that is a terminal, or is not."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    @property
    def lines(self) -> list[str]:
        return self.getvalue().splitlines()


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    made = SimpleNamespace(seconds=0.0)
    for module in (progress, stop_module):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: made.seconds))
    return made


Make = Callable[..., tuple[Report, Screen]]


@pytest.fixture
def made(now: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """A report on a run of these settings, and what it writes to."""
    reports: list[Report] = []

    def make(folder: Path | None = None, terminal: bool = False, quiet: bool = False, **t: object) -> tuple:  # type: ignore[type-arg]
        screen = Screen(terminal)
        monkeypatch.setattr(sys, "stderr", screen)
        settings, clock = config.Train.model_validate({"steps": 1000, **t}), Clock()
        plan = Plan(settings.steps, settings.validate_steps, settings.minutes, 5.0, 2.0)
        reports.append(Report(settings, folder, quiet, clock, None, Pace(plan, clock)))
        return reports[-1], screen

    for name in ("CI", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    yield make
    for report in reports:
        report.close()


def steps(report: Report, now: SimpleNamespace, numbers: range, each: float) -> None:
    for step in numbers:
        now.seconds += each
        report.step(step, 100.0, 100, 1e-3, 1.0)


def keeper(best: float, step: int, since: int) -> Keeper:
    keep = Keeper("exact", 0)
    keep.best, keep.since_best = Best(step, best, {}), since
    return keep


# ── the first line ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("each", [0.01, 0.5, 4.0, 15.0])
def test_the_first_line_tells_how_long_within_20_seconds(made: Make, now: SimpleNamespace, each: float) -> None:
    report, screen = made(steps=1000, validate_steps=250)
    report.begin("training", ["a note"])
    step = 0
    while not screen.lines:
        step += 1
        assert step < 1000
        steps(report, now, range(step, step + 1), each)
    assert now.seconds <= 20.0
    assert re.fullmatch(r"training: .+, until (\w\w\w )?\d\d:\d\d", screen.lines[0])
    assert screen.lines[1] == "a note"
    told = {0.01: "a few seconds", 0.5: "about 9 minutes", 4.0: "about 69 minutes", 15.0: "about 4.5 hours"}
    assert told[each] in screen.lines[0]


def test_the_first_line_comes_before_any_other(made: Make, now: SimpleNamespace) -> None:
    report, screen = made(steps=4)
    report.begin("training")
    steps(report, now, range(1, 5), 0.1)
    assert [line.split(":")[0].split(" ·")[0] for line in screen.lines] == [
        "training", "step 2/4", "step 3/4", "step 4/4",
    ]  # fmt: skip
    report, screen = made(steps=100, validate_steps=1)
    report.begin("training")
    report.validated({"step": 1, "valid_exact": 1.0}, [], keeper(1.0, 1, 0), 0.1)
    assert screen.lines[0].startswith("training: ")


def test_a_budget_that_binds_is_named(made: Make, now: SimpleNamespace) -> None:
    report, screen = made(steps=100_000, validate_steps=100_000, minutes=2.0)
    report.begin("training")
    steps(report, now, range(1, 12), 1.0)
    assert "about 2 minutes, until" in screen.lines[0]
    assert "as --minutes 2 says: some 1" in screen.lines[0]


def test_quiet_is_quiet(made: Make, now: SimpleNamespace) -> None:
    report, screen = made(quiet=True, terminal=True)
    report.begin("training")
    steps(report, now, range(1, 200), 1.0)
    report.validated({"step": 199, "valid_exact": 1.0}, [("a", "b", "c")], keeper(1.0, 199, 0), 1.0)
    assert screen.getvalue() == ""


# ── lines of steps ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("count", "each"), [(20, 1.0), (2000, 0.1), (20_000, 0.5)])
def test_lines_are_not_too_many_and_the_last_is_there(
    made: Make, now: SimpleNamespace, count: int, each: float
) -> None:
    report, screen = made(steps=count, validate_steps=count)
    report.begin("training")
    steps(report, now, range(1, count + 1), each)
    assert 10 <= len(screen.lines) - 1 <= LINES + 1
    assert screen.lines[-1].startswith(f"step {count}/{count} · loss 1.0000 · rate 1.00e-03 · ")
    assert screen.lines[-1].endswith(f"{100 / each:,.0f} tokens/s · ETA {int(3 * 5 * each) // 60}:{int(15 * each):02}")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", screen.getvalue())


def test_a_budget_shortens_the_gap_between_lines(made: Make, now: SimpleNamespace) -> None:
    report, screen = made(steps=1_000_000, minutes=10.0)
    steps(report, now, range(1, 600), 1.0)
    assert len(screen.lines) >= 8


# ── validations ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_validation_tells_score_best_patience_and_samples(made: Make) -> None:
    report, screen = made(patience=3)
    entry = {"step": 250, "valid_bleu": 30.0, "valid_exact": 61.25, "valid_wer": 9.0, "valid_loss": 0.5}
    samples = [("a", "b", "b"), ("c" * 100, "d", "e"), ("\x1b[2J", "x", "x")]
    report.validated(entry, samples, keeper(61.25, 250, 0), 1.0)
    assert screen.lines == [
        "step 250 · validation: exact 61.25 · the best so far · patience left 3 of 3 · bleu 30 · loss 0.5",
        "    a  →  b  ✓",
        f"    {'c' * 59}…  →  e  ✗  d",
        "    \\x1b[2J  →  x  ✓",
    ]
    report.validated(entry | {"step": 750, "valid_exact": 60.0}, [], keeper(61.25, 250, 2), 1.0)
    assert "step 750 · validation: exact 60 · best 61.25 (step 250) · patience left 1 of 3 · bleu" in screen.lines[-1]
    report.validated(entry | {"weights": "mean of the last 3"}, [], keeper(62.0, 1, 1), 1.0)
    assert "validation of the mean of the last 3 checkpoints: exact 61.25 · best 62 (step 1)" in screen.lines[-1]
    report.validated(entry | {"weights": "mean of the last 3"}, [], keeper(61.25, 250, 1), 1.0)
    assert "validation of the mean of the last 3 checkpoints: exact 61.25 · taken" in screen.lines[-1]


def test_patience_is_never_less_than_none_and_the_mean_needs_none(made: Make) -> None:
    report, screen = made(patience=3)
    entry = {"step": 9, "valid_exact": 1.0}
    report.validated(entry, [], keeper(2.0, 1, 4), 1.0)
    assert screen.lines[-1] == "step 9 · validation: exact 1 · best 2 (step 1) · patience left 0 of 3"
    report.validated(entry | {"weights": "mean of the last 3"}, [], keeper(2.0, 1, 4), 1.0)
    assert "patience" not in screen.lines[-1]


def test_no_patience_is_not_spoken_of(made: Make) -> None:
    report, screen = made()
    report.validated({"step": 1, "valid_exact": 1.0}, [], keeper(1.0, 1, 0), 1.0)
    assert screen.lines == ["step 1 · validation: exact 1 · the best so far"]


def test_the_curve_is_redrawn_as_a_whole_and_not_too_often(made: Make, now: SimpleNamespace, tmp_path: Path) -> None:
    report, _ = made(tmp_path)
    seen = []
    for step in range(1, 7):
        now.seconds += REDRAW / 2 + 1
        report.validated({"step": step, "valid_exact": float(step)}, [], keeper(1.0, 1, 0), 1.0)
        seen.append((tmp_path / "curves.svg").read_bytes() if (tmp_path / "curves.svg").exists() else b"")
    assert seen[0] == b""
    assert seen[1] == seen[2] != seen[3] == seen[4] != seen[5]
    assert ElementTree.fromstring(seen[5]).tag == "{http://www.w3.org/2000/svg}svg"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


# ── terminals ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_terminal_has_a_bar_and_curves_in_the_line(made: Make, now: SimpleNamespace) -> None:
    report, screen = made(terminal=True, steps=40, validate_steps=20)
    assert report.bar is not None
    report.begin("training")
    steps(report, now, range(1, 41), 1.0)
    report.bar.live.refresh()
    for step in (20, 40):
        report.validated({"step": step, "valid_exact": float(step)}, [], keeper(step, step, 0), 1.0)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert "━━━━━━━━━━ 40/40 · ETA 0:20 · loss 1.0000 · rate 1.00e-03 · 100 tokens/s" in shown
    assert "exact ▁█ · training loss ▁" in shown
    assert "step 40/40" not in shown  # no line for what the bar tells


def test_the_bar_tells_what_is_done_between_steps(made: Make) -> None:
    report, screen = made(terminal=True)
    assert report.bar is not None
    report.doing("validating 500 examples")
    report.bar.live.refresh()
    assert "validating 500 examples" in screen.getvalue()


@pytest.mark.parametrize("name", ["CI", "TERM"])
def test_where_no_person_looks_lines_are_plain(made: Make, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, {"CI": "true", "TERM": "dumb"}[name])
    report, screen = made(terminal=True)
    report.validated({"step": 1, "valid_exact": 1.0}, [], keeper(1.0, 1, 0), 1.0)
    assert report.bar is None
    assert "\x1b" not in screen.getvalue()


def test_colours_that_are_forced_do_not_reach_a_pipe(made: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    report, screen = made()
    report.validated({"step": 1, "valid_exact": 1.0}, [], keeper(1.0, 1, 0), 1.0)
    assert "\x1b" not in screen.getvalue()


@pytest.mark.parametrize("wanted", [True, False])
def test_no_color(made: Make, monkeypatch: pytest.MonkeyPatch, wanted: bool) -> None:
    if not wanted:
        monkeypatch.setenv("NO_COLOR", "1")
    report, screen = made(terminal=True)
    report.validated({"step": 1, "valid_exact": 1.0}, [], keeper(1.0, 1, 0), 1.0)
    assert bool(re.search(r"\x1b\[[0-9;]*3[0-9]", screen.getvalue())) is wanted
