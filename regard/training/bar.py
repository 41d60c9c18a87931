"""Where a run stands in, one line at the bottom of a terminal out."""

from rich.console import Console, RenderableType
from rich.live import Live

from regard.training.pace import Pace
from regard.view.terminal import bar_line, digits

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
        steps = self.pace.last
        parts = [f"{self.step}/{steps}", self.doing or self.text or "the first steps tell how long it will take"]
        if self.text:
            parts.insert(1, f"ETA {digits(self.pace.left(self.step))}")
        return bar_line(self.console, self.step, steps, parts)

    def close(self) -> None:
        self.live.stop()
