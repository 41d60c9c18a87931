"""A folder in, the right to write there out: one process at a time, and a dead one is in nobody's way."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from regard.errors import RegardError, UsageError

NAME = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """While this is open nobody else trains in the folder. The system drops the lock of a process that dies."""
    path = folder / NAME
    place = take(path)
    try:
        os.truncate(place, 0)
        os.write(place, f"{os.getpid()}\n".encode())
        yield
    finally:
        with suppress(OSError):  # the folder may be gone, and then so is the lock
            path.unlink()
        os.close(place)


def take(path: Path) -> int:
    """The lock file, open and locked by us."""
    while True:
        try:
            place = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise RegardError(f"{path}: can not be written: {error.strerror}") from None
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(place, 20).decode(errors="replace").strip()
            os.close(place)
            raise UsageError(f"{path.parent}: another process{f' ({owner})' if owner else ''} is training here; "
                             "wait for it, or choose another folder") from None  # fmt: skip
        except OSError as error:
            os.close(place)
            raise RegardError(f"{path}: can not be locked: {error.strerror}") from None
        if same_file(place, path):
            return place
        os.close(place)  # the one before us removed it between our opening and our locking


def same_file(place: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(place), os.stat(path))
    except FileNotFoundError:
        return False
