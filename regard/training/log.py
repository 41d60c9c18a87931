"""Entries of a run in, lines of a file out that a resumed run goes on with.

metrics.jsonl holds nothing that depends on the clock, so that a run that was killed and resumed leaves the same bytes
as one that was not; what depends on it is in times.jsonl.
"""

import hashlib
import json
from dataclasses import dataclass
from io import FileIO
from math import nan
from pathlib import Path
from typing import Any

from regard.data.plain import without_infinities
from regard.errors import RegardError


@dataclass(frozen=True)
class Mark:
    """How far the logs have come, and what has been summed for the next line: a checkpoint holds it."""

    metrics_bytes: int = 0
    metrics_sha256: str = hashlib.sha256().hexdigest()  # of that many bytes
    times_bytes: int = 0
    window_tokens: int = 0
    window_loss: float | None = 0.0  # none = not a number


class Log:
    """A file of JSON lines that goes on from a mark; without a folder it is kept in memory alone."""

    def __init__(self, path: Path | None, size: int = 0) -> None:
        self.path = path
        self.size = size
        self.digest = hashlib.sha256()
        self.entries: list[dict[str, Any]] = []
        self.file: FileIO | None = None if path is None else self.cut(path, size)

    def cut(self, path: Path, size: int) -> FileIO:
        """The file as it was when it had `size` bytes."""
        try:
            file = open(path, "a+b", buffering=0)  # noqa: SIM115 (until `close`)
            file.seek(0)
            standing = file.read(size)
            file.truncate(len(standing))
        except OSError as error:
            raise RegardError(f"{path}: can not be written: {error.strerror}") from None
        self.size = len(standing)
        self.digest.update(standing)
        self.entries = [entry for line in standing.splitlines() if (entry := parsed(line))]
        return file

    def write(self, entry: dict[str, Any]) -> None:
        line = json.dumps(without_infinities(entry)).encode() + b"\n"
        self.entries.append(entry)
        self.size += len(line)
        self.digest.update(line)
        try:
            while self.file is not None and line:
                line = line[self.file.write(line) :]
        except OSError as error:
            raise RegardError(f"{self.path}: can not be written: {error.strerror}") from None

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def entries(path: Path) -> list[dict[str, Any]]:
    """What a log holds; nothing where there is none."""
    lines = path.read_bytes().splitlines() if path.is_file() else []
    return [entry for line in lines if (entry := parsed(line))]


def reached(folder: Path) -> tuple[int, float]:
    """Updates of the run in a folder, and seconds."""
    times = entries(folder / "times.jsonl")
    return (max((entry["step"] for entry in times), default=0),
            max((entry.get("seconds", 0.0) for entry in times), default=0.0))  # fmt: skip


def parsed(line: bytes) -> dict[str, Any] | None:
    """A line of the log; what is null in it was not a number. A line that is none, no run wrote; it is left out."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    if not isinstance(entry, dict) or "step" not in entry:
        return None
    return {key: nan if value is None else value for key, value in entry.items()}
