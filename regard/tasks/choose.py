"""A Config and a vocabulary in, the task it names out."""

from regard import config
from regard.data.vocabulary import Vocabulary
from regard.errors import ConfigError
from regard.tasks.classify import Classify
from regard.tasks.fill import Fill
from regard.tasks.generate import Generate
from regard.tasks.task import Task
from regard.tasks.transduce import Caption, Transduce


def task(c: config.Config, vocabulary: Vocabulary) -> Task:
    return kind(c)(c, vocabulary)


KINDS: dict[str, type[Transduce] | type[Fill] | type[Classify]] = {
    "transduce": Transduce,
    "generate": Generate,
    "caption": Caption,
    "fill": Fill,
    "classify": Classify,
}


def kind(c: config.Config) -> type[Transduce] | type[Fill] | type[Classify]:
    return KINDS[c.task]


def deciding(c: config.Config) -> str:
    """The score that decides which weights are best: the one asked for, or the task's first."""
    asked, known = c.train.metric, kind(c).scores
    if asked != "auto" and asked not in known:
        raise ConfigError(f"train.metric: {asked} is not a score of the task {c.task}"
                          f"{config.nearest(asked, known)}; it has {', '.join(known)}")  # fmt: skip
    return known[0] if asked == "auto" else asked
