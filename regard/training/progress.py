"""Steps and validations in, lines on stderr out: a bar on a terminal, plain lines elsewhere; and metrics.jsonl."""

import json
import sys
import time
from math import isfinite
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from regard.config import Train
from regard.data.read import escape


class Report:
    """Tells a person how the run goes, and writes the same down."""

    def __init__(self, t: Train, folder: Path | None, quiet: bool = False) -> None:
        self.settings = t
        self.log: list[dict[str, Any]] = []
        self.started = time.monotonic()
        self.file: TextIO | None = None
        if folder is not None:
            self.file = open(folder / "metrics.jsonl", "w", encoding="utf-8")  # noqa: SIM115 (until `close`)
        self.console = Console(stderr=True, quiet=quiet, highlight=False)
        self.every = max(1, min(50, t.steps // 20))
        self.window_tokens, self.window_loss, self.window_start = 0, 0.0, self.started
        self.bar: Progress | None = None
        self.bar_task: TaskID | None = None
        if self.console.is_terminal and not quiet:
            columns = (BarColumn(), TextColumn("{task.completed}/{task.total}"), TimeElapsedColumn(),
                       TextColumn("ETA"), TimeRemainingColumn(), TextColumn("{task.description}"))  # fmt: skip
            self.bar = Progress(*columns, console=self.console, transient=True)
            self.bar_task = self.bar.add_task("", total=t.steps)
            self.bar.start()

    def say(self, line: str) -> None:
        self.console.print(escape(line), markup=False, soft_wrap=True)

    def step(self, step: int, loss: float, count: int, rate: float, norm: float) -> None:
        """One update: `loss` is a sum over `count` tokens."""
        self.window_loss += loss
        self.window_tokens += count
        if self.bar is not None and self.bar_task is not None:
            self.bar.update(self.bar_task, completed=step)
        if step % self.every:
            return
        now = time.monotonic()
        entry = {
            "step": step,
            "loss": self.window_loss / max(1, self.window_tokens),
            "learning_rate": rate,
            "gradient_norm": norm,
            "tokens_per_second": self.window_tokens / max(1e-9, now - self.window_start),
            "seconds": now - self.started,
        }
        self.window_tokens, self.window_loss, self.window_start = 0, 0.0, now
        self.write(entry)
        self.show(entry)

    def show(self, entry: dict[str, Any]) -> None:
        line = (f"loss {entry['loss']:.4f} · rate {entry['learning_rate']:.2e} · "
                f"{entry['tokens_per_second']:,.0f} tokens/s")  # fmt: skip
        if self.bar is not None and self.bar_task is not None:
            self.bar.update(self.bar_task, description=line)
        else:
            self.say(f"step {entry['step']}/{self.settings.steps} · {line} · ETA {self.remaining(entry['step'])}")

    def remaining(self, step: int) -> str:
        spent = time.monotonic() - self.started
        left = spent / step * (self.settings.steps - step)
        if self.settings.minutes is not None:
            left = min(left, max(0.0, 60 * self.settings.minutes - spent))
        return f"{int(left) // 60}:{int(left) % 60:02}"

    def validated(self, entry: dict[str, Any], samples: list[tuple[str, str, str]], best: bool, took: float) -> None:
        """A validation that took some seconds, with fixed examples as source, reference and output."""
        self.write(entry)
        self.window_start += took
        scores = " · ".join(f"{name.removeprefix('valid_')} {value:.4g}" for name, value in entry.items()
                            if name.startswith("valid_"))  # fmt: skip
        self.say(f"step {entry['step']} · validation: {scores}{' · best so far' if best else ''}")
        for source, reference, output in samples:
            sign = "=" if output == reference else "≠"
            self.say(f"    {source[:60]}  →  {output[:60]}  {sign}  {reference[:60]}")

    def write(self, entry: dict[str, Any]) -> None:
        self.log.append(entry)
        if self.file is not None:
            # JSON has no word for what is not a number, and other readers would stumble over Python's.
            known = {key: None if isinstance(value, float) and not isfinite(value) else value
                     for key, value in entry.items()}  # fmt: skip
            self.file.write(json.dumps(known) + "\n")
            self.file.flush()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.stop()
        if self.file is not None:
            self.file.close()
        sys.stderr.flush()
