"""Minutes in, how a search spends them out: about half on trials, the rest on one run with the best settings."""

from dataclasses import dataclass

SHARE = 0.5  # of the minutes, for trials …
MOST_SHARE = 0.6  # … and at most, where they take longer than planned
LONG = 1.5  # minutes of a trial that tell enough, where there may be more trials instead
SHORT = 0.33  # minutes below which a trial tells little
FEWEST, MOST = 6, 12  # trials
LEAST = 2  # trials of a search that has hardly any time: what was chosen, and something else
LONGEST = 5.0  # minutes of a trial
LEAST_MINUTES = 0.01  # of any run


@dataclass(frozen=True)
class Budget:
    """So many minutes in all, so many trials, and minutes for each of these."""

    minutes: float
    trials: int
    each: float

    @property
    def last(self) -> float:
        """Minutes of the run with the best settings, if all goes as planned."""
        return max(LEAST_MINUTES, round(self.minutes - self.trials * self.each, 3))

    @property
    def is_short(self) -> bool:
        """Whether trials are too short, or too few, to tell much."""
        return self.each < SHORT or self.minutes < FEWEST * SHORT / SHARE

    def allows(self, seconds: float, trial: float) -> bool:
        """Whether there is time for one more trial of so many seconds when so many have gone by."""
        return seconds + trial <= 60 * MOST_SHARE * self.minutes


def budget(minutes: float) -> Budget:
    """Between six and twelve trials; fewer where they would be too short, and longer ones where there is much time."""
    half = SHARE * minutes
    count = max(FEWEST, min(MOST, round(half / LONG)))
    if half / count < SHORT:
        count = max(LEAST, min(FEWEST, int(half / SHORT)))
    return Budget(minutes, count, max(LEAST_MINUTES, round(min(LONGEST, half / count), 3)))
