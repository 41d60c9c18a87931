"""Lines that are done in, one line at the bottom of a terminal out: how far, how fast, how long still."""

import os
import stat
import sys
import time

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from regard.view.terminal import bar_line, console, digits

REFRESH = 2  # times a second


class Passage:
    """Drawn by a thread of its own from what it was last told. `total` bytes, where that is known."""

    def __init__(self, stderr: Console, total: int | None) -> None:
        self.console = stderr
        self.total = total
        self.lines = self.size = 0
        self.began = time.monotonic()
        self.live = Live(get_renderable=self.draw, console=stderr, refresh_per_second=REFRESH, transient=True,
                         redirect_stdout=False)  # fmt: skip

    def watch(self, lines: int, size: int) -> None:
        self.lines, self.size = lines, size

    def draw(self) -> RenderableType:
        spent = max(1e-9, time.monotonic() - self.began)
        words = [f"{self.lines:,} lines", f"{self.lines / spent:,.0f} lines/s"]
        if not self.total:
            return Text(" · ".join(words), no_wrap=True, overflow="ellipsis")
        left = spent * (self.total - self.size) / self.size if self.size else None
        words = [f"{100 * self.size // self.total} %", *([] if left is None else [f"ETA {digits(left)}"]), *words]
        return bar_line(self.console, self.size, self.total, words)

    def __enter__(self) -> "Passage":
        self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.live.stop()


def passage() -> Passage | None:
    """Where a person watches stderr, and neither types the input nor reads the output on the same terminal."""
    stderr = console()
    if not stderr.is_terminal or sys.stdin.isatty() or sys.stdout.isatty():
        return None
    return Passage(stderr, left_in(sys.stdin.fileno()))


def left_in(number: int) -> int | None:
    """Bytes still to be read, of a file; of a pipe nobody knows."""
    about = os.fstat(number)
    return about.st_size - os.lseek(number, 0, os.SEEK_CUR) if stat.S_ISREG(about.st_mode) else None
