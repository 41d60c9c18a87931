"""Where a run stands in, one line at the bottom of a terminal out."""

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from regard.training.pace import Pace, digits

WIDTH = 20
NARROW = 100  # columns, below which the bar is half as long
REFRESH = 2  # times a second


class Bar:
    """Drawn by a thread of its own from what it was last told, so that a step costs no more than an assignment."""

    def __init__(self, console: Console, pace: Pace) -> None:
        self.console = console
        self.pace = pace
        self.step = pace.start[0]
        self.text = ""
        self.doing = ""
        self.live = Live(get_renderable=self.draw, console=console, refresh_per_second=REFRESH, transient=True)
        self.live.start()

    def draw(self) -> RenderableType:
        """What matters most comes first: a narrow terminal cuts off the end."""
        steps = self.pace.plan.steps
        parts = [f"{self.step}/{steps}", self.doing or self.text or "the first steps tell how long it will take"]
        if self.text:
            parts.insert(1, f"ETA {digits(self.pace.left(self.step))}")
        width = WIDTH if self.console.width >= NARROW else WIDTH // 2
        line = Table.grid(padding=(0, 1))
        line.add_row(ProgressBar(steps, self.step, width), Text(" · ".join(parts), no_wrap=True, overflow="ellipsis"))
        return line

    def close(self) -> None:
        self.live.stop()
