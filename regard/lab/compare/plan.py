"""What is asked for in, the runs of a comparison out, each with its config; what can not be compared is refused.

All runs have one task, one split, the same tokens and limits of length, the same score that decides, and the same
budget; the rest of each is what its preset says.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from regard import config
from regard.config import Config
from regard.data.read import files_of, read
from regard.data.text import is_running
from regard.errors import ConfigError, MissingError, UsageError
from regard.rules import OF_DATA, Configured, Why, configured
from regard.tasks.choose import deciding
from regard.training.device import device
from regard.training.prepare import columns_of
from regard.training.team import refuse_many

TOKENS = ("source", "target", "size", "shared")  # that are said to every run, so that no rule chooses them again
MINUTES = 10.0  # of training for each run, where nobody says otherwise


@dataclass(frozen=True)
class Asked:
    """What a comparison is asked for, in the words of the command."""

    data: str
    presets: tuple[str, ...]
    test: str | None = None  # examples that judge; none = those that are held out
    valid: str | None = None
    seeds: int = 3
    seed: int = 0  # the first of them
    minutes: float | None = None
    steps: int | None = None
    task: str | None = None
    settings: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        """Budget and settings as the words that --set takes."""
        said = config.said(None, list(self.settings)).get("train", {})
        bounded = self.steps is not None or (isinstance(said, dict) and {"steps", "minutes"} & said.keys())
        minutes = MINUTES if self.minutes is None and not bounded else self.minutes
        named = {"train.steps": self.steps, "train.minutes": minutes}
        task = [] if self.task is None else [f"task={self.task}"]
        return [*task, *(f"{name}={value}" for name, value in named.items() if value is not None), *self.settings]


@dataclass(frozen=True)
class Run:
    """One preset, one seed."""

    preset: str
    seed: int
    config: Config

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.preset}-{self.seed}"


@dataclass(frozen=True)
class Plan:
    """All runs, the seeds of a preset side by side, and how their configs came about."""

    asked: Asked
    runs: tuple[Run, ...]
    why: Why
    lost: tuple[str, ...] = ()  # what there is to say of runs that did not come to an end

    def of(self, preset: str) -> list[Run]:
        return [run for run in self.runs if run.preset == preset]


def plan(asked: Asked) -> Plan:
    """The runs in the order in which they are trained: every preset once, then all with the next seed.

    So a comparison that is broken off has something to say of each.
    """
    refuse(asked)
    words, why = settled(asked)
    numbers = range(asked.seed, asked.seed + asked.seeds)
    runs = [Run(preset, seed, resolved(asked.data, preset, [*words, f"train.seed={seed}"]).config)
            for seed in numbers for preset in asked.presets]  # fmt: skip
    refuse_test(asked, runs[0].config)
    for run in runs:
        with blamed(run.preset):
            deciding(run.config)
        device(run.config.train)
    return Plan(asked, tuple(runs), why)


def refuse(asked: Asked) -> None:
    """Words that make no comparison."""
    if len(asked.presets) < 2:
        raise UsageError(f"--presets {','.join(asked.presets)}: expected at least two, as in --presets rnn,transformer")
    twice = next((name for name in asked.presets if asked.presets.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"--presets: {twice} stands there twice; for several runs of one preset say --seeds")
    for name, value in (("seeds", asked.seeds), ("steps", asked.steps), ("minutes", asked.minutes)):
        if value is not None and value <= 0:
            raise UsageError(f"--{name} {value:g}: expected more than 0")
    if asked.seed < 0:
        raise UsageError(f"--seed {asked.seed}: expected 0 or more")
    said = config.said(None, list(asked.settings)).get("train", {})
    if isinstance(said, dict) and "seed" in said:
        raise UsageError("--set train.seed: every run has its own; say --seeds, and --seed for the first of them")
    refuse_many("compare")
    for path in (asked.data, asked.test, asked.valid):
        gone = next((name for name in files_of(path) if not os.path.exists(name)), None) if path is not None else None
        if gone is not None:
            raise MissingError(f"{gone}: no such file")
    for name in asked.presets:
        config.preset_text(name)  # an unknown one is told with the nearest


def refuse_test(asked: Asked, c: Config) -> None:
    """A test file that can not be read would be met only when everything is trained."""
    if asked.test is not None and not (c.task == "generate" and is_running(asked.test, c.data.source)):
        read(asked.test, columns_of(c), c.data.skip_bad)


# ── what all have in common ──────────────────────────────────────────────────────────────────────────────────────────


def settled(asked: Asked) -> tuple[list[str], Why]:
    """The words that all runs are configured with, and what was guessed and chosen for the file."""
    words = [*named_task(asked), *asked.words]
    common = [word for word in words if word.startswith((*OF_DATA, "train.minutes="))]  # letters want more time
    ground = configured(asked.data, None, None, common)
    task = f"task={ground.config.task}"
    made = [resolved(asked.data, preset, [task, *common]) for preset in asked.presets]  # can it do the task at all?
    own = [each.config for each in made]
    narrowest = ground
    if any(each.config.tokens.shared for each in made):  # one vocabulary holds one kind
        narrowest = configured(asked.data, None, None, [task, *common, "tokens.shared=true"])
    of_tokens = tuple(each for each in narrowest.why.choices if each.settles("tokens.source"))
    why = Why(narrowest.why.guesses, of_tokens)
    limits = limit_words(narrowest.config, [ground.config, *own])
    same = [*token_words(narrowest.config, own), *limits, *metric_words(ground.config, own)]
    return [task, *same, *words], why


def named_task(asked: Asked) -> list[str]:
    """The task that all presets are made for, if they say so and nobody else does; else the data decide."""
    if asked.task is not None or "task" in config.said(None, list(asked.settings)):
        return []
    tasks = {config.preset_says(preset).get("task") for preset in asked.presets}
    task = tasks.pop() if len(tasks) == 1 else None
    return [] if task is None else [f"task={task}"]


def token_words(ground: Config, own: Sequence[Config]) -> list[str]:
    """The tokens that `train` would choose; one vocabulary for both sides if one of the presets can not do without."""
    wanted = {**ground.tokens.model_dump(), "shared": any(c.tokens.shared for c in (ground, *own))}
    if wanted["shared"]:
        wanted["target_size"] = "none"
    elif wanted["target_size"] is None and any(c.tokens.target_size for c in own):
        wanted["target_size"] = wanted["size"]
    said = TOKENS if ground.task == "transduce" else ()
    return [f"tokens.{name}={json.dumps(value)}" for name, value in wanted.items() if value is not None
            and (name in said or any(getattr(c.tokens, name) != value for c in (ground, *own)))]  # fmt: skip


def limit_words(ground: Config, own: Sequence[Config]) -> list[str]:
    """The least of all limits: an example that one preset can not read is left out for all.

    A preset that limits tokens of another kind than those that all have here has no say in it.
    """
    names = ("max_source",) if own[0].task in config.BY_SOURCE else ("max_source", "max_target")
    kinds = ground.tokens.source, ground.tokens.target
    alike = [c for c in own if (c.tokens.source, c.tokens.target) == kinds] or [ground]
    found = {name: min(getattr(c.data, name) for c in alike) for name in names}
    return [f"data.{name}={value}" for name, value in found.items()]


def metric_words(ground: Config, own: Sequence[Config]) -> list[str]:
    """The score by which `train` would choose the best weights, whatever a preset of a paper says."""
    silent = all(c.train.metric == "auto" for c in (ground, *own))
    return [] if silent else [f"train.metric={deciding(ground)}"]


def resolved(data: str, preset: str, words: list[str]) -> Configured:
    with blamed(preset):
        return configured(data, preset, None, words)


@contextmanager
def blamed(preset: str) -> Iterator[None]:
    """What is wrong with a config is told with the preset that it is wrong with."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"--presets {preset}: {error}") from None
