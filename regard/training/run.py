"""A file in, a trained model (and its folder) out: reads, builds, loops, scores, saves."""

import json
import shutil
import tempfile
import time
from io import BytesIO
from pathlib import Path

import torch

from regard import config
from regard.errors import Interrupted, UsageError
from regard.models.build import build
from regard.models.threads import threads
from regard.tasks.choose import deciding
from regard.tasks.task import Evaluation
from regard.trained import Trained
from regard.training.card import card
from regard.training.device import device
from regard.training.keep import Keeper
from regard.training.loop import Outcome, loop
from regard.training.prepare import Prepared, prepare
from regard.training.progress import Report
from regard.training.stop import stopping
from regard.view import plot

OURS = (
    "manifest.json",
    "metrics.jsonl",
    "checkpoints",
    "config.toml",
    "tokenizer.json",
    "model.safetensors",
    "curves.svg",
    "README.md",
)


def train(
    c: config.Config,
    path: str,
    valid: str | None = None,
    out: str | Path | None = None,
    force: bool = False,
    quiet: bool = False,
    command: str = "regard.train",
) -> tuple[Trained, Evaluation]:
    """Trains on a file as the config says; with `out`, leaves a model folder there, also when interrupted."""
    folder = None if out is None else Path(out)
    refuse_early(c, folder, force)
    deciding(c)
    with tempfile.TemporaryDirectory() as store:
        return train_on(prepare(c, path, valid, Path(store)), folder, quiet, command)


def train_on(data: Prepared, folder: Path | None, quiet: bool, command: str) -> tuple[Trained, Evaluation]:
    """What is left to do when the data have been read."""
    c, metric = data.config, deciding(data.config)
    model = build(c, data.vocabulary.source.size, data.vocabulary.target.size)
    if folder is not None:
        claim(folder)  # not before: data that can not be read must not cost the run that stands there
    report = Report(c.train, folder, quiet)
    started = time.monotonic()
    try:
        with stopping(c.train) as stop, threads(model, c.train.threads) as count, torch.random.fork_rng(devices=[]):
            for line in (*data.notes, announcement(data, model.size, count)):
                report.say(line)
            outcome = loop(data, model, report, Keeper(metric, c.train.average, folder), stop)
            trained = Trained(c, data.vocabulary, model.to("cpu").eval())
            found = judge(trained, data, outcome)
            if folder is not None:
                text = card(data, found, outcome, time.monotonic() - started, model.size, command)
                trained.save(folder, {"README.md": text.encode(), **pictures(report, metric), **logged(folder)})
    finally:
        report.close()
    if stop.signal is not None:
        kept = "nothing is saved: no folder was named" if folder is None else f"what was trained is in {folder}"
        raise Interrupted(f"{stop.reason()} at step {outcome.step}; {kept}", stop.signal)
    return trained, found


def refuse_early(c: config.Config, folder: Path | None, force: bool) -> None:
    """What can not end well is refused before the data are read and before anything in the folder is touched."""
    device(c.train)
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: expected a folder to write the model into, found a file")
    standing = [name for name in OURS if (folder / name).exists()]
    if standing and not is_run(folder):
        raise UsageError(f"{folder}: holds {standing[0]}, and no run of regard wrote it; choose another -o")
    if standing and not force:
        raise UsageError(f"{folder}: holds another run; choose another -o, or --force to replace it")


def is_run(folder: Path) -> bool:
    """Whether a run of ours wrote what stands here: its manifest says so, or the log of one that has not finished."""
    kept = folder / "checkpoints"
    if kept.is_dir() and (folder / "metrics.jsonl").is_file():
        return all(path.name.strip(".").split(".")[0] in ("best", "last") for path in kept.iterdir())
    try:
        manifest = json.loads((folder / "manifest.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(manifest, dict) and {"format", "files"} <= manifest.keys()


def claim(folder: Path) -> None:
    """The folder, empty of other runs."""
    try:
        for name in OURS:
            target = folder / name
            shutil.rmtree(target) if target.is_dir() and not target.is_symlink() else target.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: can not be made or cleared: {error.strerror}") from None


def announcement(data: Prepared, parameters: int, count: int) -> str:
    t = data.config.train
    limit = f"{t.steps} steps" + (f", at most {t.minutes:g} minutes" if t.minutes is not None else "")
    return (f"{data.config.preset or 'model'}: {parameters:,} parameters, {len(data.train.items)} examples to train "
            f"on, {len(data.valid.items)} to validate; {limit}; threads: {count}")  # fmt: skip


def judge(trained: Trained, data: Prepared, outcome: Outcome) -> Evaluation:
    """Scores on all of the validation set; on a few of it when somebody is waiting for the run to end."""
    count = len(data.valid.items) if outcome.signal is None else 50
    return data.task.evaluate(trained.model, data.valid.items[:count], data.valid.examples[:count], trained.wish())


def pictures(report: Report, metric: str) -> dict[str, bytes]:
    drawn = BytesIO()
    plot.curves(report.log, metric, drawn)
    return {"curves.svg": drawn.getvalue()}


def logged(folder: Path) -> dict[str, bytes]:
    """The log as it stands, so that the manifest lists it."""
    return {"metrics.jsonl": (folder / "metrics.jsonl").read_bytes()}
