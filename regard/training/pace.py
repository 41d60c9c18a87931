"""Moments of a run in, how long the rest of it will take out: steps, validations, and the last scoring."""

from collections import deque
from dataclasses import dataclass
from math import ceil
from statistics import median

from regard.training.stop import Clock

MOMENTS = 10  # the last ones tell how long a step takes, so that a machine that is busy for a while is forgotten
PLANNED = 10  # steps in the beginning after which it is planned anew how many the minutes allow
LAST = 2  # validations to keep time for at the end: the last one, and one that may fall due right before it


@dataclass(frozen=True)
class Plan:
    """What a run has before it, as far as that is known before it begins."""

    steps: int
    validate_steps: int
    minutes: float | None = None
    guess: float = 0.0  # a validation's length in steps, until one was timed
    scoring: float = 0.0  # what follows the last validation (the mean, all examples), in validations


class Pace:
    """How long a step and a validation take, from those of this process; and so how long the rest will."""

    def __init__(self, plan: Plan, clock: Clock, step: int = 0, validation: float | None = None, last: int = 0) -> None:
        self.plan = plan
        self.clock = clock
        self.last = last or plan.steps  # the step to end with, as it is planned now
        self.validation = validation  # seconds of the last one; none = not known
        self.validations = max(0, step - 1) // plan.validate_steps  # done; a checkpoint stands before its validation
        self.paused = 0.0  # seconds that were not spent on steps
        self.start = (step, clock.seconds())
        self.moments: deque[tuple[int, float]] = deque(maxlen=MOMENTS)
        self.lengths: list[float] = []  # of the first steps, each; their median is not misled by those that were slow

    def stepped(self, step: int, first: bool = False) -> None:
        """A step has ended just now: one of the `first`, each of which is told, or a later one, told now and then."""
        now = self.clock.seconds() - self.paused
        if first and self.moments:
            self.lengths.append(now - self.moments[-1][1])
        if first:
            self.moments.clear()
        if not self.moments or self.moments[-1][0] != step:
            self.moments.append((step, now))

    def validated(self, step: int, seconds: float) -> None:
        self.validation = seconds
        self.validations = max(self.validations, ceil(step / self.plan.validate_steps))

    def pause(self, seconds: float) -> None:
        self.paused += seconds

    @property
    def measured(self) -> float:
        """Seconds over which first steps have been timed; the very first is not among them, being slower."""
        return sum(self.lengths)

    def step_seconds(self) -> float:
        """Of one step; 0 while nothing is known."""
        if len(self.moments) > 1:
            (first, then), (last, now) = self.moments[0], self.moments[-1]
            return max(0.0, now - then) / max(1, last - first)
        if self.lengths:
            return median(self.lengths)
        step, seconds = self.start
        if step:  # all that the run has taken before it was resumed
            return seconds / step
        return self.moments[-1][1] - seconds if self.moments else 0.0

    def validation_seconds(self) -> float:
        return self.plan.guess * self.step_seconds() if self.validation is None else self.validation

    def needed(self, step: int) -> float:
        """Seconds to the end of all steps and the scoring after them, whatever the minutes say."""
        validations = max(0, ceil(self.plan.steps / self.plan.validate_steps) - self.validations)
        steps = (self.plan.steps - step) * self.step_seconds()
        return steps + (validations + self.plan.scoring) * self.validation_seconds()

    def left(self, step: int) -> float:
        """Seconds to the end of the run: all steps, or the end of its minutes if that comes first."""
        return min(self.needed(step), self.budget())

    def budget(self) -> float:
        """Seconds that are left of the minutes."""
        if self.plan.minutes is None:
            return float("inf")
        return max(0.0, 60 * self.plan.minutes - self.clock.seconds())

    def affordable(self, step: int, reserve: float = 0.0) -> int:
        """The step that is reached when the minutes are up, but for a reserve of seconds that follow it."""
        each = self.step_seconds() + self.validation_seconds() / self.plan.validate_steps
        count = min(max(0.0, self.budget() - reserve) / max(1e-9, each), self.plan.steps)
        return min(self.plan.steps, step + max(1, int(count)))

    def is_due(self, step: int) -> bool:
        """Whether the last step is to be planned anew: often in the beginning, then after each validation."""
        every = PLANNED if step <= 5 * PLANNED else self.plan.validate_steps
        return self.plan.minutes is not None and step > 0 and step % every == 0

    def ending(self) -> float:
        """Seconds to keep back for what follows the last step, while no validation has been timed; 0 = not known."""
        return (LAST + self.plan.scoring) * self.validation_seconds() if self.lengths or len(self.moments) > 1 else 0.0


def about(seconds: float) -> str:
    """A time as one would say it."""
    if seconds < 10:
        return "a few seconds"
    if seconds < 90:
        return f"about {5 * round(seconds / 5)} seconds"
    if seconds < 90 * 60:
        return f"about {round(seconds / 60)} minutes"
    if seconds < 36 * 3600:
        return f"about {round(seconds / 1800) / 2:g} hours"
    return f"about {round(seconds / 43200) / 2:g} days"
