"""Strings in, numbers out: metrics with intervals and paired tests; nothing here knows a model or torch."""

from regard.score.metrics import (
    CLASSIFY,
    EXTRACT,
    TRANSDUCE,
    Metric,
    accuracy,
    any_target,
    corpus_scores,
    edit_distance,
    mute,
    paired_test,
    perplexity,
    position_accuracy,
)
from regard.score.tallies import Paired

__all__ = [
    "CLASSIFY",
    "EXTRACT",
    "TRANSDUCE",
    "Metric",
    "Paired",
    "accuracy",
    "any_target",
    "corpus_scores",
    "edit_distance",
    "mute",
    "paired_test",
    "perplexity",
    "position_accuracy",
]
