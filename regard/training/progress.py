"""Steps and validations in, lines on stderr out: a bar on a terminal, plain lines elsewhere; and the two logs.

metrics.jsonl holds nothing that depends on the clock, so that a run that was killed and resumed leaves the same bytes
as one that was not; what depends on it is in times.jsonl.
"""

import hashlib
import json
import sys
import time
import warnings
from dataclasses import dataclass
from io import FileIO
from math import isfinite, nan
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from regard.config import Train
from regard.data.read import escape
from regard.errors import RegardError
from regard.training.stop import Clock


@dataclass(frozen=True)
class Mark:
    """How far the logs have come, and what has been summed for the next line: a checkpoint holds it."""

    metrics_bytes: int = 0
    metrics_sha256: str = hashlib.sha256().hexdigest()  # of that many bytes
    times_bytes: int = 0
    window_tokens: int = 0
    window_loss: float | None = 0.0  # none = not a number


class Log:
    """A file of JSON lines that goes on from a mark; without a folder it is kept in memory alone."""

    def __init__(self, path: Path | None, size: int = 0) -> None:
        self.path = path
        self.size = size
        self.digest = hashlib.sha256()
        self.entries: list[dict[str, Any]] = []
        self.file: FileIO | None = None if path is None else self.cut(path, size)

    def cut(self, path: Path, size: int) -> FileIO:
        """The file as it was when it had `size` bytes."""
        try:
            file = open(path, "a+b", buffering=0)  # noqa: SIM115 (until `close`)
            file.seek(0)
            standing = file.read(size)
            file.truncate(len(standing))
        except OSError as error:
            raise RegardError(f"{path}: can not be written: {error.strerror}") from None
        self.size = len(standing)
        self.digest.update(standing)
        self.entries = [entry for line in standing.splitlines() if (entry := parsed(line))]
        return file

    def write(self, entry: dict[str, Any]) -> None:
        # JSON has no word for what is not a number, and other readers would stumble over Python's.
        known = {key: None if isinstance(value, float) and not isfinite(value) else value
                 for key, value in entry.items()}  # fmt: skip
        line = json.dumps(known).encode() + b"\n"
        self.entries.append(entry)
        self.size += len(line)
        self.digest.update(line)
        try:
            while self.file is not None and line:
                line = line[self.file.write(line) :]
        except OSError as error:
            raise RegardError(f"{self.path}: can not be written: {error.strerror}") from None

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def parsed(line: bytes) -> dict[str, Any] | None:
    """A line of the log; what is null in it was not a number. A line that is none, no run wrote; it is left out."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    if not isinstance(entry, dict) or "step" not in entry:
        return None
    return {key: nan if value is None else value for key, value in entry.items()}


class Report:
    """Tells a person how the run goes, and writes the same down."""

    def __init__(
        self, t: Train, folder: Path | None, quiet: bool = False, clock: Clock | None = None, mark: Mark | None = None
    ) -> None:
        mark = mark or Mark()
        self.settings = t
        self.clock = clock or Clock()
        self.metrics = Log(folder and folder / "metrics.jsonl", mark.metrics_bytes)
        self.times = Log(folder and folder / "times.jsonl", mark.times_bytes)
        self.console = Console(stderr=True, quiet=quiet, highlight=False)
        if self.metrics.digest.hexdigest() != mark.metrics_sha256:
            warnings.warn(f"{self.metrics.path}: not what this run wrote: damaged or changed by hand", stacklevel=2)
        self.every = max(1, min(50, t.steps // 20))
        self.window_tokens = mark.window_tokens
        self.window_loss = nan if mark.window_loss is None else mark.window_loss
        self.window_start, self.window_spent = time.monotonic(), 0
        self.bar: Progress | None = None
        self.bar_task: TaskID | None = None
        if self.console.is_terminal and not quiet:
            columns = (BarColumn(), TextColumn("{task.completed}/{task.total}"), TimeElapsedColumn(),
                       TextColumn("ETA"), TimeRemainingColumn(), TextColumn("{task.description}"))  # fmt: skip
            self.bar = Progress(*columns, console=self.console, transient=True)
            self.bar_task = self.bar.add_task("", total=t.steps)
            self.bar.start()

    @property
    def mark(self) -> Mark:
        loss = self.window_loss if isfinite(self.window_loss) else None
        digest = self.metrics.digest.hexdigest()
        return Mark(self.metrics.size, digest, self.times.size, self.window_tokens, loss)

    def say(self, line: str) -> None:
        self.console.print(escape(line), markup=False, soft_wrap=True)

    def step(self, step: int, loss: float, count: int, rate: float, norm: float) -> None:
        """One update: `loss` is a sum over `count` tokens."""
        self.window_loss += loss
        self.window_tokens += count
        self.window_spent += count
        if self.bar is not None and self.bar_task is not None:
            self.bar.update(self.bar_task, completed=step)
        if step % self.every:
            return
        mean = self.window_loss / max(1, self.window_tokens)
        self.metrics.write({"step": step, "loss": mean, "learning_rate": rate, "gradient_norm": norm})
        self.show(step, mean, rate, self.speed(step))
        self.window_tokens, self.window_loss = 0, 0.0

    def speed(self, step: int) -> float:
        """Tokens a second since the last line, or since the run was resumed."""
        now = time.monotonic()
        speed = self.window_spent / max(1e-9, now - self.window_start)
        self.times.write({"step": step, "seconds": self.clock.seconds(), "tokens_per_second": speed})
        self.window_start, self.window_spent = now, 0
        return speed

    def show(self, step: int, loss: float, rate: float, speed: float) -> None:
        line = f"loss {loss:.4f} · rate {rate:.2e} · {speed:,.0f} tokens/s"
        if self.bar is not None and self.bar_task is not None:
            self.bar.update(self.bar_task, description=line)
        else:
            self.say(f"step {step}/{self.settings.steps} · {line} · ETA {self.remaining(step)}")

    def remaining(self, step: int) -> str:
        spent = self.clock.seconds()
        left = spent / step * (self.settings.steps - step)
        if self.settings.minutes is not None:
            left = min(left, max(0.0, 60 * self.settings.minutes - spent))
        return f"{int(left) // 60}:{int(left) % 60:02}"

    def validated(self, entry: dict[str, Any], samples: list[tuple[str, str, str]], best: bool, took: float) -> None:
        """A validation that took some seconds, with fixed examples as source, reference and output."""
        self.metrics.write(entry)
        self.times.write({"step": entry["step"], "seconds": self.clock.seconds(), "validation_seconds": took})
        self.window_start += took
        scores = " · ".join(f"{name.removeprefix('valid_')} {value:.4g}" for name, value in entry.items()
                            if name.startswith("valid_"))  # fmt: skip
        self.say(f"step {entry['step']} · validation: {scores}{' · best so far' if best else ''}")
        for source, reference, output in samples:
            sign = "=" if output == reference else "≠"
            self.say(f"    {source[:60]}  →  {output[:60]}  {sign}  {reference[:60]}")

    def close(self) -> None:
        if self.bar is not None:
            self.bar.stop()
        self.metrics.close()
        self.times.close()
        sys.stderr.flush()
