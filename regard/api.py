"""The verbs as Python functions: a file in, a model out that answers, scores and shows where it looked.

    model = regard.train("pairs.tsv")
    model = regard.load("model")
    model("9 May 2018")

The command line is a thin layer over the same parts.
"""

from collections.abc import Sequence
from pathlib import Path

from regard import config
from regard.tasks.task import Evaluation
from regard.trained import Trained
from regard.training.run import train as run_training


def train(
    path: str | Path,
    valid: str | Path | None = None,
    out: str | Path | None = None,
    preset: str | None = None,
    settings: Sequence[str] = (),
    config_file: str | Path | None = None,
    quiet: bool = True,
) -> Trained:
    """Trains on a file of two columns; `settings` are words such as "train.steps=500". With `out`, saves a folder."""
    c = config.resolve(preset, config_file, list(settings))
    trained, _ = run_training(c, str(path), None if valid is None else str(valid), out, quiet=quiet)
    return trained


def load(path: str | Path) -> Trained:
    """A model from its folder."""
    return Trained.load(path)


__all__ = ["Evaluation", "Trained", "load", "train"]
