"""The verbs as Python functions: a file in, a model out that answers, scores and shows where it looked.

    model = regard.train("pairs.tsv")
    model = regard.resume("model")
    model = regard.load("model")
    model("9 May 2018")

The command line is a thin layer over the same parts.
"""

from collections.abc import Sequence
from pathlib import Path

from regard.rules import configured
from regard.search.write import Sampling
from regard.tasks.task import Answer, Evaluation, Wish
from regard.trained import Trained
from regard.training.home import finished
from regard.training.run import Call, Given
from regard.training.run import resume as resume_training
from regard.training.run import train as run_training
from regard.training.transfer import read_body
from regard.tune.search import Asked, tuned
from regard.view.record import Record


def train(
    path: str | Path,
    valid: str | Path | None = None,
    out: str | Path | None = None,
    preset: str | None = None,
    settings: str | Sequence[str] = (),
    config_file: str | Path | None = None,
    force: bool = False,
    quiet: bool = True,
    task: str | None = None,
    start_from: str | Path | None = None,
    tune: bool = False,
) -> Trained:
    """Trains on a file; `settings` are words such as "train.steps=500". With `out`, saves a folder.

    The task and the columns are guessed from the data where nothing says them. With `start_from`, the body of the model
    in that folder is kept, and its tokens. With `tune`, the minutes are spent on a search: short runs with other
    settings each, then one with the best of them; it needs optuna.
    """
    words = ([] if task is None else [f"task={task}"]) + ([settings] if isinstance(settings, str) else list(settings))
    body = None if start_from is None else read_body(start_from)
    to = None if valid is None else str(valid)
    if tune:
        asked = Asked(str(path), to, preset, config_file, tuple(words), body, out, force, quiet)
        return tuned(asked)[0]
    made = configured(str(path), preset, config_file, words, None if body is None else body.resolve)
    trained, _ = run_training(made.config, str(path), to, out, Call(force, quiet), Given(made.why, body))
    return trained


def resume(path: str | Path, quiet: bool = True) -> Trained:
    """Goes on with a run that was interrupted; of one that has finished, the model."""
    return load(path) if finished(Path(path)) else resume_training(path, quiet)[0]


def load(path: str | Path, precision: str = "fp32") -> Trained:
    """A model from its folder; `precision="int8"` decodes sooner and a little less exactly."""
    return Trained.load(path, precision)


__all__ = ["Answer", "Evaluation", "Record", "Sampling", "Trained", "Wish", "load", "resume", "train"]
