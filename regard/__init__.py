"""regard: a two-column file in, a sequence model out that you can look into.

The path of one example through the package, folder by folder:

    presets/    one TOML file for each system; config.py every setting on one page
    data/       a file is read, its text becomes tokens, tokens become a batch
    layers/     the parts: attention and its scores, positions, cells, convolution, blocks
    models/     parts joined: batch → Memory (what is read) → decoder states → logits
    search/     logits → tokens; it knows no model, only step(token, state)
    engine/     a model → instructions → tokens, in C++; the model itself where there is none
    tasks/      what a model is asked: columns, loss, answers, scores
    view/       what it looked at, as a record and a picture
    training/   batch → loss → weights; the loop
    tune/       short runs with other settings → one with the best of them
    score/      strings → numbers
    lab/        the claims, measured: anatomy, laws, comparisons
    port/       models for other people's engines
    serve/      a model behind an HTTP API and a page
    folder.py   a saved model is a folder; trained.py a model that answers; filter.py lines through it; cli.py the verbs
    stop.py     whatever of this nobody waits for any more ends

Names are imported when they are first used, so that `regard --help` need not wait for torch.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.api import Answer, Evaluation, Record, Sampling, Trained, Wish, load, resume, train
    from regard.errors import (
        ConfigError,
        DataError,
        DivergedError,
        FolderError,
        Interrupted,
        MissingError,
        RegardError,
        UsageError,
    )
    from regard.lab.compare.make import Comparison, compare

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Comparison",
    "ConfigError",
    "DataError",
    "DivergedError",
    "Evaluation",
    "FolderError",
    "Interrupted",
    "MissingError",
    "Record",
    "RegardError",
    "Sampling",
    "Trained",
    "UsageError",
    "Wish",
    "__version__",
    "compare",
    "load",
    "resume",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(home(name)), name)


def home(name: str) -> str:
    """The module that a public name comes from."""
    if name in ("Comparison", "compare"):
        return "regard.lab.compare.make"
    return "regard.errors" if name.endswith("Error") or name == "Interrupted" else "regard.api"


def __dir__() -> list[str]:
    return __all__
