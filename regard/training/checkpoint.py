"""Where a run stands in, a folder that survives whatever happens out; and back, the newest of them that is whole."""

import os
import re
import shutil
import signal
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor
from torch.optim import Optimizer

from regard.config import Train
from regard.errors import FolderError, RegardError
from regard.folder import (
    Shapes,
    Weights,
    check_manifest,
    listing,
    manifest_bytes,
    read_text,
    read_weights,
    remove,
    sync,
    weights_bytes,
)
from regard.models.model import Model
from regard.training.keep import Best, Kept, snapshot
from regard.training.log import Mark
from regard.training.stream import Place

KEPT = 2  # checkpoints, so that a damaged one has a predecessor
NAME = re.compile(r"step-(\d{8,18})")
MOMENTS = ("exp_avg", "exp_avg_sq", "step")  # what AdamW remembers of each weight; Muon uses the first of them
KILL_AT = "REGARD_KILL_AT"  # a drill: "before rename" or "before rename:3" ends the process there, the third time

Frozen = frozenset[str]  # names of weights that do not learn, and of which an optimizer remembers nothing
NONE: Frozen = frozenset()

passed: dict[str, int] = {}


def boundary(name: str) -> None:
    """A place where a process may die: tests put something else here, drills name one in the environment."""
    asked, _, number = os.environ.get(KILL_AT, "").partition(":")
    if asked == name:
        passed[name] = passed.get(name, 0) + 1
        if passed[name] == int(number or 1):
            os.kill(os.getpid(), signal.SIGKILL)


# ── what is in a checkpoint ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Standing:
    """Where a run stands between two steps: all that is not a tensor. Random draws need no place in it, being pure."""

    run: str = ""  # the seal of its run.json: a checkpoint of another run is none
    step: int = 0
    place: Place = field(default_factory=Place)
    bad: int = 0  # steps in a row that were not numbers
    best_step: int | None = None
    best_value: float | None = None  # none = not a number
    best_loss: float | None = None
    since_best: int = 0
    window: tuple[int, ...] = ()  # steps whose weights wait to be averaged
    seconds: float = 0.0
    ending: float = 0.0  # seconds that the last scoring will take; 0 = not known
    last: int = 0  # the step to end with, as it was planned; 0 = the config's
    log: Mark = field(default_factory=Mark)


@dataclass(frozen=True)
class Checkpoint:
    """A standing with its tensors; nothing in it changes any more."""

    standing: Standing
    weights: Weights
    optimizer: Weights
    kept: Kept

    def tensors(self) -> dict[str, Weights]:
        """Its files of weights, by name."""
        files = {"weights.safetensors": self.weights, "optimizer.safetensors": self.optimizer}
        if self.kept.best is not None:
            files["best.safetensors"] = self.kept.best.weights
        if self.kept.window:
            files["window.safetensors"] = {f"{step}.{name}": weight for step, weights in self.kept.window
                                           for name, weight in weights.items()}  # fmt: skip
        return files


STANDING = TypeAdapter(Standing)


def expected(standing: Standing, shapes: Shapes, frozen: Frozen) -> dict[str, Shapes]:
    """The tensors that the files of a checkpoint must hold, for a model with weights of these shapes."""
    moments: Shapes = {f"{name}.{moment}": () if moment == "step" else shape for name, shape in shapes.items()
                       for moment in MOMENTS if name not in frozen}  # fmt: skip
    files = {"weights.safetensors": shapes, "optimizer.safetensors": moments}
    if standing.best_step is not None:
        files["best.safetensors"] = shapes
    if standing.window:
        files["window.safetensors"] = {f"{step}.{name}": shape for step in standing.window
                                       for name, shape in shapes.items()}  # fmt: skip
    return files


def moments(model: Model, optimizer: Optimizer) -> Weights:
    """A copy of what the optimizer remembers; a weight that never had a gradient has zeros, as if it began now."""
    found: Weights = {}
    for name, weight in model.named_parameters():
        if not weight.requires_grad:
            continue
        known: dict[str, Tensor] = optimizer.state.get(weight, {})
        for moment in MOMENTS:
            empty = torch.zeros(()) if moment == "step" else torch.zeros_like(weight)
            found[f"{name}.{moment}"] = known.get(moment, empty).detach().clone()
    return found


def put_moments(model: Model, optimizer: Optimizer, found: Weights) -> None:
    """Into the optimizer, whatever the order of its groups."""
    names = {weight: name for name, weight in model.named_parameters()}
    order = [names[weight] for group in optimizer.param_groups for weight in group["params"]]
    state = {number: {moment: found[f"{name}.{moment}"] for moment in MOMENTS} for number, name in enumerate(order)}
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


# ── the folder of checkpoints ────────────────────────────────────────────────────────────────────────────────────────


class Checkpoints:
    """The checkpoints of one run, a folder each, written by a thread while the training goes on.

    The files are written into `.step-….new` beside the place, each synced, then that folder; it is renamed into its
    place, and the parent synced: so a checkpoint is there as a whole, or not at all. Only then the older ones go, all
    but the last two, each renamed to `.step-….old` before it is deleted. Whatever begins with a dot is left over from
    a process that died, and swept by the next. An error of the thread is raised at the next step; what was there
    before stays.
    """

    def __init__(self, folder: Path | None, t: Train) -> None:
        self.folder = folder and folder / "checkpoints"
        self.log = folder and folder / "metrics.jsonl"
        self.settings = t
        self.healthy: list[int] = []  # steps whose checkpoints are known to be whole
        self.last = 0  # step
        self.saved_at = time.monotonic()
        self.thread: threading.Thread | None = None
        self.error: Exception | None = None
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                sweep(self.folder)
            except OSError as error:
                raise RegardError(f"{self.folder}: can not be made or cleared: {error.strerror}") from None

    def due(self, step: int) -> bool:
        """By the number of steps or by the clock; this is also where an error of the thread comes up."""
        if self.error is not None:
            self.wait()
        waited = time.monotonic() - self.saved_at >= 60 * self.settings.checkpoint_minutes
        return bool(step) and (step % self.settings.checkpoint_steps == 0 or waited)

    def save(self, step: int, make: Callable[[], Checkpoint]) -> None:
        """Copies what is to be saved and lets the thread write it; waits only if the one before is not yet written."""
        if self.folder is None or step in (0, self.last):
            return
        self.wait()
        self.last, self.saved_at = step, time.monotonic()
        self.thread = threading.Thread(target=self.work, args=(self.folder, make()), name="checkpoint", daemon=True)
        self.thread.start()

    def wait(self) -> None:
        """Until all is on the disk, or until it is known why it is not."""
        if self.thread is not None:
            self.thread.join()
        self.thread = None
        if self.error is not None:
            error, self.error = self.error, None
            raise error

    def work(self, folder: Path, checkpoint: Checkpoint) -> None:
        try:
            self.write(folder, checkpoint)
        except Exception as error:
            self.error = error

    def write(self, folder: Path, checkpoint: Checkpoint) -> None:
        name = f"step-{checkpoint.standing.step:08}"
        beside, place = folder / f".{name}.new", folder / name
        try:
            if self.log is not None:
                sync(self.log)  # what the standing says of it must not be more than the disk knows
            beside.mkdir()
            write_files(beside, checkpoint)
            sync(beside)
            boundary("before rename")
            if place.exists():  # a damaged one, which this run did again
                place.rename(folder / f".{name}.old")
            beside.rename(place)
            boundary("after rename")
            sync(folder)
            self.healthy.append(checkpoint.standing.step)
            self.rotate(folder)
        except OSError as error:
            shutil.rmtree(beside, ignore_errors=True)
            raise RegardError(f"{place}: can not be written: {error.strerror}; "
                              f"{self.still_there()}") from None  # fmt: skip

    def still_there(self) -> str:
        before = [step for step in self.healthy if self.folder and (self.folder / f"step-{step:08}").is_dir()]
        return f"the checkpoint of step {before[-1]} is kept" if before else "there is no checkpoint before it"

    def rotate(self, folder: Path) -> None:
        """All but the last two that are whole go."""
        del self.healthy[:-KEPT]
        for path in [path for path in folder.iterdir() if (step := step_of(path)) and step not in self.healthy]:
            path.rename(folder / f".{path.name}.old")
        boundary("during rotation")
        sweep(folder)

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def newest(self, run: str, shapes: Shapes, frozen: Frozen = NONE) -> Checkpoint | None:
        """The newest checkpoint that is whole; of the newer ones it is told what is wrong with them."""
        if self.folder is None:
            return None
        steps = sorted((step for path in self.folder.iterdir() if (step := step_of(path))), reverse=True)
        damaged: list[FolderError] = []
        for step in steps:
            try:
                found = read(self.folder / f"step-{step:08}", run, shapes, frozen)
            except FolderError as error:
                damaged.append(error)
                continue
            for each in damaged:
                warnings.warn(f"{each}; the checkpoint of step {step} is used", stacklevel=2)
            self.healthy, self.last = [step], step
            return found
        if damaged:
            raise FolderError(f"{damaged[0]}\n{self.folder}: none of the {len(steps)} checkpoints is whole, so the run "
                              "can not go on; regard train … --force starts anew")  # fmt: skip
        return None


def sweep(folder: Path) -> None:
    """What a process that died has left."""
    for left in folder.glob(".step-*"):
        remove(left)


def step_of(path: Path) -> int:
    """The step in a checkpoint's name; 0 of what is none."""
    found = NAME.fullmatch(path.name)
    return int(found[1]) if found else 0


def write_files(folder: Path, checkpoint: Checkpoint) -> None:
    """The tensors, the standing, and the manifest last; one file at a time in memory."""
    listed: dict[str, Any] = {}
    for name, weights in checkpoint.tensors().items():
        listed[name] = write_part(folder / name, weights_bytes(weights))
    state = STANDING.dump_json(checkpoint.standing, indent=1)
    listed["state.json"] = write_part(folder / "state.json", state)
    write_part(folder / "manifest.json", manifest_bytes(listed))


def write_part(path: Path, content: bytes) -> dict[str, Any]:
    """One file, on the disk when this returns; and what the manifest says of it."""
    half = len(content) // 2
    with open(path, "xb") as file:
        boundary("temp opened")
        file.write(memoryview(content)[:half])
        boundary("half written")
        file.write(memoryview(content)[half:])
        file.flush()
        boundary("before fsync")
        os.fsync(file.fileno())
    return listing(content)


def read(folder: Path, run: str, shapes: Shapes, frozen: Frozen = NONE) -> Checkpoint:
    """A checkpoint, each part checked before the next is read: manifest, standing, names and shapes, numbers."""
    if folder.is_symlink() or not folder.is_dir():
        raise FolderError(f"{folder}: not a plain folder")
    check_manifest(folder, ("state.json", "weights.safetensors", "optimizer.safetensors"))
    standing = read_standing(folder / "state.json")
    if standing.run != run or standing.step != step_of(folder):
        raise FolderError(f"{folder}: belongs to another run or another step")
    files = expected(standing, shapes, frozen)
    for name in files:
        if not (folder / name).is_file():
            raise FolderError(f"{folder / name}: missing; the checkpoint is incomplete")
    tensors = {name: read_weights(folder / name, wanted, name != "optimizer.safetensors")
               for name, wanted in files.items()}  # fmt: skip
    return Checkpoint(standing, tensors["weights.safetensors"], tensors["optimizer.safetensors"],
                      kept_of(standing, tensors, shapes))  # fmt: skip


def read_standing(path: Path) -> Standing:
    try:
        return STANDING.validate_json(read_text(path), strict=True)
    except (ValidationError, RecursionError) as error:
        raise FolderError(f"{path}: not the state of a run: {str(error).splitlines()[0]}") from None


def kept_of(standing: Standing, tensors: dict[str, Weights], shapes: Shapes) -> Kept:
    best = None
    if standing.best_step is not None:
        value, loss = (float("nan") if number is None else number
                       for number in (standing.best_value, standing.best_loss))  # fmt: skip
        best = Best(standing.best_step, value, tensors["best.safetensors"], loss)
    window = tuple((step, {name: tensors["window.safetensors"][f"{step}.{name}"] for name in shapes})
                   for step in standing.window)  # fmt: skip
    return Kept(best, standing.since_best, window)


def copied(standing: Standing, model: Model, optimizer: Optimizer, kept: Kept) -> Checkpoint:
    """A checkpoint of the model as it is now; later steps do not change it."""
    return Checkpoint(standing, snapshot(model), moments(model, optimizer), kept)
