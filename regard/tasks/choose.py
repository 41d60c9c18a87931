"""A Config and a vocabulary in, the task it names out."""

from regard import config
from regard.data.vocabulary import Vocabulary
from regard.errors import ConfigError
from regard.tasks.classify import Classify
from regard.tasks.embed import Embed
from regard.tasks.extract import Extract
from regard.tasks.fill import Fill
from regard.tasks.generate import Generate
from regard.tasks.tag import Tag
from regard.tasks.task import Task
from regard.tasks.transduce import Caption, Transduce


def task(c: config.Config, vocabulary: Vocabulary) -> Task:
    return kind(c)(c, vocabulary)


Kind = type[Transduce] | type[Generate] | type[Fill] | type[Classify] | type[Tag] | type[Embed] | type[Extract]

KINDS: dict[str, Kind] = {
    "transduce": Transduce,
    "generate": Generate,
    "caption": Caption,
    "fill": Fill,
    "classify": Classify,
    "tag": Tag,
    "embed": Embed,
    "extract": Extract,
}


def kind(c: config.Config) -> Kind:
    return KINDS[c.task]


def deciding(c: config.Config, made: Task | None = None) -> str:
    """The score that decides which weights are best: the one asked for, or the first of the task.

    A task that was made knows its labels, and may have fewer scores than its kind.
    """
    asked, known = c.train.metric, (made or kind(c)).scores
    if asked != "auto" and asked not in known:
        raise ConfigError(f"train.metric: {asked} is not a score of the task {c.task}"
                          f"{config.nearest(asked, known)}; it has {', '.join(known)}")  # fmt: skip
    return known[0] if asked == "auto" else asked
