"""Entries of the logs in, event files for TensorBoard out: FOLDER/tensorboard."""

import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from regard.config import Train
from regard.errors import RegardError, UsageError

FOLDERLESS = "train.tensorboard: its events are written into the folder of the run, and none was named"
MISSING = "train.tensorboard: the package tensorboard is not installed; pip install 'regard[tensorboard]' brings it"


def refuse_eventless(t: Train, folder: Path | None) -> None:
    """Events that could not be written are refused before anything else is done."""
    if t.tensorboard and folder is None:
        raise UsageError(FOLDERLESS)
    if t.tensorboard and find_spec("tensorboard") is None:
        raise UsageError(MISSING)


class Events:
    """What the logs hold, once more as events; each is on its way to the disk before the next step begins."""

    def __init__(self, folder: Path, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter  # an extra

        self.folder = folder
        wait_for_later_name(folder)
        try:  # readers are told that what was written for later steps is void: those steps come again
            self.writer: Any = SummaryWriter(str(folder), purge_step=step + 1)
        except OSError as error:
            raise RegardError(f"{folder}: can not be written: {error.strerror}") from None

    def write(self, entry: dict[str, Any]) -> None:
        """Every number of an entry under its own name, those of a validation apart from those of training."""
        step = entry["step"]
        for name, value in entry.items():
            if name != "step" and isinstance(value, int | float):
                self.writer.add_scalar(tag(name, "weights" in entry), value, step)
        try:
            self.writer.flush()
        except OSError as error:
            raise RegardError(f"{self.folder}: can not be written: {error.strerror}") from None

    def close(self) -> None:
        self.writer.close()


def wait_for_later_name(folder: Path) -> None:
    """Readers take event files in the order of their names, which hold the second in which they were made.

    A run that is resumed within the second in which its last file was made would come before that file.
    """
    made = [int(path.name.split(".")[3]) for path in folder.glob("events.out.tfevents.*")]
    now = time.time()
    if made and max(made) == int(now):
        time.sleep(int(now) + 1 - now)


def tag(name: str, mean: bool) -> str:
    """The mean of weights is validated at the last step too, and must not be taken for the same model."""
    if not name.startswith("valid_"):
        return f"train/{name}"
    return f"{'valid_mean' if mean else 'valid'}/{name.removeprefix('valid_')}"
