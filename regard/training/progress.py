"""Steps and validations in, lines on stderr out: a bar on a terminal, plain lines elsewhere; and the logs of a run."""

import sys
import time
import warnings
from collections.abc import Sequence
from datetime import datetime, timedelta
from io import BytesIO
from math import isfinite, nan
from pathlib import Path
from typing import Any

from rich.text import Text

from regard.config import Train
from regard.data.read import escape
from regard.folder import write_file
from regard.training.bar import Bar
from regard.training.events import Events
from regard.training.keep import Keeper
from regard.training.log import Log, Mark
from regard.training.pace import Pace, Plan, about
from regard.training.stop import Clock
from regard.view import plot
from regard.view.terminal import console, digits, shortened, sparkline

LINES = 40  # of steps in a run, at most about so many where there is no terminal
MEASURED = 3.0  # seconds of steps from which the first line foretells the end …
PATIENCE = 10.0  # … and seconds after which it no longer waits for them
REDRAW = 10.0  # seconds at least between two drawings of the curve, which cost a quarter of a second each
WIDTH = 60  # of a text in a sample
TOLD = ("exact", "accuracy", "bleu", "chrf", "loss")  # of a validation, beside the score that decides; the log has all


class Report:
    """Tells a person how the run goes, and writes the same down."""

    def __init__(
        self, t: Train, folder: Path | None, quiet: bool = False, clock: Clock | None = None, mark: Mark | None = None,
        pace: Pace | None = None,
    ) -> None:  # fmt: skip
        mark = mark or Mark()
        self.settings = t
        self.folder = folder
        self.clock = clock or Clock()
        self.pace = pace or Pace(Plan(t.steps, t.validate_steps, t.minutes), self.clock)
        self.metrics = Log(folder and folder / "metrics.jsonl", mark.metrics_bytes)
        self.times = Log(folder and folder / "times.jsonl", mark.times_bytes)
        if folder is not None and self.metrics.digest.hexdigest() != mark.metrics_sha256:
            warnings.warn(f"{self.metrics.path}: not what this run wrote: damaged or changed by hand", stacklevel=2)
        self.events = Events(folder / "tensorboard", self.pace.start[0]) if folder and t.tensorboard else None
        self.every = max(1, min(50, t.steps // 20))
        self.window_tokens = mark.window_tokens
        self.window_loss = nan if mark.window_loss is None else mark.window_loss
        self.window_start, self.window_spent = time.monotonic(), 0
        self.first: str | None = None  # the first line, waiting to be told how long it will take
        self.notes: Sequence[str] = ()
        self.told = self.drawn = self.clock.seconds()
        self.console = console(quiet)
        self.bar = Bar(self.console, self.pace) if self.console.is_terminal and not quiet else None

    @property
    def mark(self) -> Mark:
        loss = self.window_loss if isfinite(self.window_loss) else None
        digest = self.metrics.digest.hexdigest()
        return Mark(self.metrics.size, digest, self.times.size, self.window_tokens, loss)

    def say(self, line: str, style: str | None = None) -> None:
        self.console.print(Text(escape(line), style or ""), soft_wrap=True)  # else the bar would take on the style

    # ── the first line ───────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self, line: str, notes: Sequence[str] = ()) -> None:
        """What will happen, to be said as soon as some steps have told how long it will take; notes follow it."""
        self.first, self.notes = line, notes

    def foretell(self, step: int, at_once: bool) -> None:
        """The first line, once enough is measured, or before any other."""
        self.pace.stepped(step, first=True)
        waited = self.clock.seconds() - self.pace.start[1] >= PATIENCE
        if at_once or waited or self.pace.measured >= MEASURED:
            self.announce(step)

    def announce(self, step: int) -> None:
        if self.first is None:
            return
        self.say(f"{self.first}: {self.duration(step)}", "bold")
        for note in self.notes:
            self.say(note)
        self.first, self.told = None, self.clock.seconds()

    def duration(self, step: int) -> str:
        left = self.pace.left(step)
        if not left and not self.pace.moments:
            return "the end is near"  # only the last scoring is left, and nobody has timed it
        now = datetime.now()
        end = now + timedelta(seconds=left)
        until = f"until {end:%H:%M}" if end.date() == now.date() else f"until {end:%a %H:%M}"
        if self.pace.needed(step) <= self.pace.budget():
            return f"{about(left)}, {until}"
        reached = self.pace.affordable(step)
        return f"{about(left)}, {until}, as --minutes {self.settings.minutes:g} says: some {reached:,} steps"

    # ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def step(self, step: int, loss: float, count: int, rate: float, norm: float) -> None:
        """One update: `loss` is a sum over `count` tokens."""
        self.window_loss += loss
        self.window_tokens += count
        self.window_spent += count
        due = not step % self.every
        if self.bar is not None:
            self.bar.step = step
        if self.first is not None:
            self.foretell(step, due and self.bar is None)
        if not due:
            return
        mean = self.window_loss / max(1, self.window_tokens)
        entry = {"step": step, "loss": mean, "learning_rate": rate, "gradient_norm": norm}
        self.metrics.write(entry)
        speed = self.speed(step)
        if self.events is not None:
            self.events.write({**entry, "tokens_per_second": speed})
        self.pace.stepped(step)
        self.show(step, mean, rate, speed)
        self.window_tokens, self.window_loss = 0, 0.0

    def speed(self, step: int) -> float:
        """Tokens a second since the last line, or since the run was resumed."""
        now = time.monotonic()
        speed = self.window_spent / max(1e-9, now - self.window_start)
        self.times.write({"step": step, "seconds": self.clock.seconds(), "tokens_per_second": speed})
        self.window_start, self.window_spent = now, 0
        return speed

    def show(self, step: int, loss: float, rate: float, speed: float) -> None:
        """In the bar; without one as a line, unless there were many already."""
        line = f"loss {loss:.4f} · rate {rate:.2e} · {speed:,.0f} tokens/s"
        if self.bar is not None:
            self.bar.text = line
            return
        spent, left = self.clock.seconds(), self.pace.left(step)
        if step >= self.pace.last or spent - self.told >= (spent + left) / LINES:
            self.say(f"step {step}/{self.pace.last} · {line} · ETA {digits(left)}")
            self.told = spent

    # ── validations ──────────────────────────────────────────────────────────────────────────────────────────────────

    def doing(self, what: str) -> None:
        """What is done between steps, for whoever watches; nothing = steps again."""
        if self.bar is not None:
            self.bar.doing = what

    def validated(
        self, entry: dict[str, Any], samples: list[tuple[str, str | None, str]], keep: Keeper, took: float
    ) -> None:
        """A validation that took some seconds, with fixed examples as source, reference and output."""
        entered = time.monotonic()
        self.doing("")
        self.announce(entry["step"])
        self.metrics.write(entry)
        self.times.write({"step": entry["step"], "seconds": self.clock.seconds(), "validation_seconds": took})
        if self.events is not None:
            self.events.write(entry)
        self.pace.validated(entry["step"], took)
        self.say(self.verdict(entry, keep), "green" if keep.since_best == 0 else None)
        for source, reference, output in samples:
            sign = "" if reference is None else "  ✓" if output == reference else f"  ✗  {shortened(reference, WIDTH)}"
            self.say(f"    {shortened(source, WIDTH)}  →  {shortened(output, WIDTH)}{sign}", "dim")
        self.redraw(keep.metric)
        took += time.monotonic() - entered
        self.pace.pause(took)
        self.window_start += took

    def verdict(self, entry: dict[str, Any], keep: Keeper) -> str:
        """Score, best so far, patience left, other scores; where there is a terminal, both curves."""
        scores = {name.removeprefix("valid_"): value for name, value in entry.items() if name.startswith("valid_")}
        parts = [
            f"step {entry['step']}",
            f"validation{of_mean(entry)}: {keep.metric} {scores.get(keep.metric, nan):.4g}",
        ]
        if keep.best is not None:
            told = "taken" if of_mean(entry) else "the best so far"
            new = keep.best.value == scores.get(keep.metric) if of_mean(entry) else keep.since_best == 0
            parts += [told if new else f"best {keep.best.value:.4g} (step {keep.best.step})"]
        if self.settings.patience is not None and not of_mean(entry):  # which comes when all is over
            most = keep.patience(self.settings.patience)
            parts += [f"patience left {max(0, most - keep.since_best)} of {most}"]
        parts += [f"{name} {scores[name]:.4g}" for name in TOLD if name in scores and name != keep.metric]
        return " · ".join(parts + self.sparks(keep.metric))

    def sparks(self, metric: str) -> list[str]:
        if self.bar is None:
            return []
        names = {f"valid_{metric}": metric, "loss": "training loss"}
        entries = [entry for entry in self.metrics.entries if "weights" not in entry]  # a mean is no point of a curve
        curves = {names[key]: [entry[key] for entry in entries if key in entry] for key in names}
        return [f"{name} {sparkline(values)}" for name, values in curves.items() if len(values) > 1]

    def redraw(self, metric: str) -> None:
        """curves.svg as the run stands; whatever reads it meanwhile finds the old one or the new one."""
        if self.folder is not None and self.clock.seconds() - self.drawn >= REDRAW:
            write_file(self.folder / "curves.svg", self.curves(metric))
            self.drawn = self.clock.seconds()

    def curves(self, metric: str) -> bytes:
        """The log as an SVG."""
        drawn = BytesIO()
        plot.curves(self.metrics.entries, metric, drawn)
        return drawn.getvalue()

    def scoring(self, why: str, best_step: int, count: int) -> None:
        """The steps are done, and what follows has begun."""
        self.say(f"{why}, after {digits(self.clock.seconds())}; scoring the weights of step {best_step:,} "
                 f"on all {count:,} held-out examples")  # fmt: skip
        self.doing(f"scoring {count:,} examples")

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
        if self.events is not None:
            self.events.close()
        self.metrics.close()
        self.times.close()
        sys.stderr.flush()


def of_mean(entry: dict[str, Any]) -> str:
    return f" of the {entry['weights']} checkpoints" if "weights" in entry else ""
