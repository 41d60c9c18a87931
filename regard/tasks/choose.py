"""A Config and a vocabulary in, the task it names out."""

from regard import config
from regard.data.vocabulary import Vocabulary
from regard.tasks.fill import Fill
from regard.tasks.task import Task
from regard.tasks.transduce import Caption, Transduce


def task(c: config.Config, vocabulary: Vocabulary) -> Task:
    match c.task:
        case "transduce":
            return Transduce(c, vocabulary)
        case "caption":
            return Caption(c, vocabulary)
        case "fill":
            return Fill(c, vocabulary)
