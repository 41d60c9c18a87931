"""The words of `train` and minutes in, the plan of a search out: how they are spent, and what is varied.

What makes no search is refused here, before anything is trained.
"""

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from regard import config
from regard.config import Config
from regard.errors import ConfigError, RegardError, UsageError
from regard.rules import MOST_MINUTES, OF_DATA, Configured, Why, configured
from regard.tasks.choose import deciding
from regard.training.pace import about
from regard.training.run import WARNING, show
from regard.training.store import hashes
from regard.training.team import refuse_many
from regard.training.transfer import Body, refuse_another_body
from regard.tune.budget import Budget, budget
from regard.tune.space import Space, section, space

# Presets to turn text into text, which one is better depends on the data; each with a word that leads the rules to it:
# a setting that only such a network has, as it would be anyway.
LEADS = {"rnn-attention": "encoder.cell=gru", "transformer": "encoder.gated=false"}


@dataclass(frozen=True)
class Asked:
    """What a search is asked for, in the words of `train`."""

    path: str
    valid: str | None = None
    preset: str | None = None
    file: str | Path | None = None
    words: tuple[str, ...] = ()
    body: Body | None = None
    out: str | Path | None = None
    force: bool = False
    quiet: bool = False
    command: str = "regard.train"

    def configured(self, *more: str) -> Configured:
        resolve = None if self.body is None else self.body.resolve
        return configured(self.path, self.preset, self.file, [*self.words, *more], resolve)


@dataclass(frozen=True)
class Search:
    """All that the trials of one search have in common."""

    asked: Asked
    space: Space
    budget: Budget
    why: Why  # how the config of the first trial came about
    began: float  # on the clock of this process, what earlier ones have taken counted

    @property
    def seconds(self) -> float:
        """That the search has taken."""
        return time.monotonic() - self.began

    def say(self, *lines: str) -> None:
        """To a person; warnings are for those too who want to hear nothing else."""
        show(line for line in lines if not self.asked.quiet or line.startswith(WARNING))


def planned(asked: Asked, began: float) -> Search:
    """How the minutes are spent, and what is varied."""
    refuse_many("--tune")
    said = config.said(asked.file, list(asked.words))
    if isinstance(train_said := said.get("train"), dict) and "steps" in train_said:
        raise UsageError("--steps: a search is bounded by minutes, which its trials and its final run share; say "
                         "--minutes, or leave out --tune")  # fmt: skip
    minutes = minutes_of(asked)
    spending = budget(minutes)
    made = asked.configured(f"train.minutes={spending.last}")
    deciding(made.config)
    named = bool(asked.preset or said.get("preset") or asked.body)
    others = {} if named else dict(alternatives(asked, made.config, said))
    check = (lambda c: None) if (body := asked.body) is None else (lambda c: refuse_another_body(c, body))
    varied = space(made.config, said, others, check)
    if not varied.settings:
        raise UsageError("--tune: all that a search would vary is said already; leave out some of it, or --tune")
    return Search(asked, varied, spending, made.why, began)


def alternatives(asked: Asked, first: Config, said: config.Tree) -> Iterator[tuple[str, Config]]:
    """What the rules would choose if they had to take another preset, by its name; nothing where none can be."""
    if first.task != "transduce" or any("kind" in section(said, side) for side in ("encoder", "decoder")):
        return
    for name, word in LEADS.items():
        if name != first.preset:
            with suppress(ConfigError):  # what was said belongs to the first preset alone
                yield name, asked.configured(f"train.minutes={first.train.minutes}", word).config


def minutes_of(asked: Asked) -> float:
    """What is said, else what the rules say that the data deserve, else what would be taken at most."""
    minutes = asked.configured().config.train.minutes
    if minutes is None and asked.body is None:  # a preset was named, or a word led to one
        common = [word for word in asked.words if word.startswith(OF_DATA)]
        with suppress(RegardError):
            minutes = configured(asked.path, None, None, common).config.train.minutes
    if minutes is not None and not math.isfinite(minutes):
        raise UsageError(f"--minutes {minutes}: expected a number that ends")
    return minutes or MOST_MINUTES


def plan_of(search: Search) -> dict[str, object]:
    """What makes this search another one than those before, by the names of settings."""
    asked = search.asked
    files = hashes(*(path for path in (asked.path, asked.valid) if path is not None))
    origin = {} if asked.body is None else {"from": asked.body.hash[:16]}
    return {**config.flat(config.to_tree(search.space.first)), **origin, "minutes": search.budget.minutes,
            "varied": list(search.space.start), "data": " ".join(str(each) for each in files.values())}  # fmt: skip


def announced(search: Search) -> list[str]:
    """What will happen."""
    b = search.budget
    spent = f"{b.trials} trials of {about(60 * b.each)}, then one run of {about(60 * b.last)} with the best settings"
    lines = [*search.why, f"tuning for {b.minutes:g} minutes in all: {spent}; varied: {', '.join(search.space.start)}"]
    if b.is_short:
        each = f"{b.trials} trials of {60 * b.each:.0f} seconds"
        lines.append(f"{WARNING}{each} tell little; --minutes 4 or more gives more and better ones")
    return lines
