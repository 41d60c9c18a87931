"""A process in, the same process set up for training out: memory kept between steps, no denormal numbers.

Every step asks for the same tensors again. The C library gives large blocks back to the system and gets them anew, page
by page and each page cleared: up to a quarter of a step on a CPU. And numbers too small to be normal, into which the
moments of rarely used weights fade, are a hundred times slower to compute with than zero.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of mallopt(3)
LARGEST = 1 << 30  # bytes of a block that is kept
USUAL = 128 << 10  # what glibc begins with, for both


@contextmanager
def tuned() -> Iterator[None]:
    """While this is open; afterwards free memory goes back to the system and small numbers are as they were."""
    keep(LARGEST)
    denormal = torch.tensor(1e-40) * 1.0 != 0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(not bool(denormal))
        keep(USUAL)
        if (library := glibc()) is not None:
            library.malloc_trim(0)


def keep(size: int) -> None:
    """Blocks up to this size stay with the process when they are freed; nothing happens without glibc."""
    if (library := glibc()) is not None:
        library.mallopt(M_MMAP_THRESHOLD, size)
        library.mallopt(M_TRIM_THRESHOLD, size)


@cache
def glibc() -> Any:
    """The C library, if it is the one that has these doors."""
    try:
        library = ctypes.CDLL(None)
    except (OSError, TypeError):  # TypeError: Windows has no library of the process itself
        return None
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None
