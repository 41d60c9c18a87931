"""Nothing in, the functions of native.cpp out; none where they were not built."""

import ctypes
from ctypes import POINTER, c_double, c_float, c_int32, c_void_p
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

Ints = POINTER(c_int32)
Floats = POINTER(c_float)
Doubles = POINTER(c_double)


class Instruction(ctypes.Structure):
    """As native.cpp has it."""

    _fields_: ClassVar = [("operation", c_int32), ("out", c_int32), ("a", c_int32), ("b", c_int32), ("c", c_int32),
                          ("number", c_int32 * 5), ("value", c_float)]  # fmt: skip


class Register(ctypes.Structure):
    """As native.cpp has it."""

    _fields_: ClassVar = [("width", c_int32), ("domain", c_int32)]


class Orders(ctypes.Structure):
    """What a search is to do: `Wish` of native.cpp."""

    _fields_: ClassVar = [("width", c_int32), ("batch", c_int32), ("workers", c_int32), ("first", c_int32),
                          ("min_length", c_int32), ("never_count", c_int32), ("prefix_count", c_int32),
                          ("penalty", c_double), ("never", Ints), ("prefix", Ints),
                          ("stop", Ints)]  # fmt: skip


SIGNATURES = {
    "sizes": ([Ints], None),
    "level": ([], c_int32),
    "engine": ([c_int32], c_void_p),
    "engine_free": ([c_void_p], None),
    "linear": ([c_void_p, Floats, Floats, c_int32, c_int32, c_int32], c_int32),
    "table": ([c_void_p, Floats, c_int32, c_int32], c_int32),
    "look": ([c_void_p, c_int32, c_int32, c_int32, c_int32, c_float, c_int32, c_int32, c_int32], c_int32),
    "program": ([c_void_p, c_int32, POINTER(Register), c_int32, POINTER(Instruction), c_int32], None),
    "finish": ([c_void_p, *[c_int32] * 6, Ints, Ints, Ints, c_int32], None),
    "pointer": ([c_void_p, *[c_int32] * 4, Ints, c_int32], c_int32),
    "search": ([c_void_p, Ints, Ints, Ints, Floats, c_int32, POINTER(Orders)], c_void_p),
    "found": ([c_void_p, Ints], None),
    "found_lengths": ([c_void_p, Ints, Doubles], None),
    "found_texts": ([c_void_p, Ints, Floats], None),
    "found_free": ([c_void_p], None),
    "session": ([c_void_p, Ints, Ints, Floats, c_int32], c_void_p),
    "step": ([c_void_p, Ints, Ints, c_int32, Floats], c_int32),
    "session_free": ([c_void_p], None),
    "states": ([c_void_p, Ints, Ints, c_int32, Floats], c_int32),
    "output": ([c_void_p, Floats, c_int32, Floats], c_int32),
}


class Library:
    """The functions by their names; each releases Python's lock while it works."""

    def __init__(self, path: Path) -> None:
        loaded = ctypes.CDLL(str(path))
        for name, (arguments, result) in SIGNATURES.items():
            function = getattr(loaded, f"regard_{name}")
            function.argtypes, function.restype = arguments, result
            setattr(self, name, function)
        theirs = (c_int32 * 3)()
        loaded.regard_sizes(theirs)
        if list(theirs) != [ctypes.sizeof(each) for each in (Instruction, Register, Orders)]:
            raise OSError(f"{path} was built from another version")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


@cache
def library() -> Library | None:
    """What `pip install` built beside this file, if it could."""
    for path in sorted(Path(__file__).parent.glob("native*.so")):
        try:
            return Library(path)
        except (OSError, AttributeError):  # of another machine or another version: as if there were none
            continue
    return None
