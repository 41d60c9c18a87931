"""Fixtures for all tests: numbers of both precisions, and a watch on the names of shapes."""

import gzip
import os
import re
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Self

import pytest
import torch
from playwright.sync_api import Browser
from torch import Tensor

import regard
from regard import config
from regard.data.read import Example
from regard.data.vocabulary import learn
from regard.models.build import build
from regard.trained import Trained
from tests.watched import chromium

PACKAGE = Path(regard.__file__).parent
SUFFIX = re.compile(r"^_?[a-z][a-z0-9_]*_([A-Z][A-Z1]*)$")  # x_B1D: a dimension that is always 1
WATCHED = {
    "layers",
    "models",
    "search",
    "tasks",
    "training",
    "lab",
    "laws",
}  # folders of tests; and tests/test_laws*.py

SMALL = {
    "recurrent": ["{side}.width=16"],
    "convolutional": ["{side}.width=16", "{side}.layers=2"],
    "attention": ["{side}.width=16", "{side}.layers=2", "{side}.heads=2"],
    "image": ["{side}.width=16", "{side}.size=8", "{side}.patch=4"],
    "none": [],
}

Same = Callable[[Tensor, Tensor], None]

torch.set_num_threads(1)  # the tensors are small and the tests already run side by side; threads would only wait


class ShapeWatch:
    """Reads the locals of every function below `folder` at its start and its end; `wrong` tells which names lied.

    A suffix has one letter for each dimension, and one letter has one size within a call; 1 broadcasts. The start is
    read too, so that an argument can not come to mean another width half way down.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder) + os.sep
        self.wrong: set[str] = set()
        # Keyed by id because a code object hashes slowly; the value keeps it alive, so an id is never used again.
        self._named: dict[int, tuple[CodeType, dict[str, str]]] = {}
        self._entered: dict[FrameType, dict[str, int]] = {}

    def __enter__(self) -> Self:
        self._before = sys.getprofile()
        sys.setprofile(self.see)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(self._before)
        self._entered.clear()

    def see(self, frame: FrameType, event: str, value: Any) -> None:
        """Called by the interpreter for every call and return, of C functions too: the first lines must be quick."""
        if event != "return" and event != "call":
            return
        code = frame.f_code
        known = self._named.get(id(code))
        if known is None:
            known = self._named[id(code)] = (code, self.suffixed(code))
        if not known[1]:
            return
        if event == "call":
            self._entered[frame] = self.check(frame, known[1], {"1": 1})
        else:
            self.check(frame, known[1], self._entered.pop(frame, {"1": 1}))

    def suffixed(self, code: CodeType) -> dict[str, str]:
        """The names in one function that promise a shape, and what they promise."""
        if not code.co_filename.startswith(self.folder):
            return {}
        names = (*code.co_varnames, *code.co_cellvars, *code.co_freevars)
        return {name: found[1] for name in names if (found := SUFFIX.match(name))}

    def check(self, frame: FrameType, names: dict[str, str], sizes: dict[str, int]) -> dict[str, int]:
        """The size of each letter, those of `sizes` included; whatever contradicts goes into `wrong`."""
        values = frame.f_locals
        for name, letters in names.items():
            tensor = values.get(name)
            if not isinstance(tensor, Tensor):
                continue
            if tensor.ndim != len(letters):
                self.blame(frame, name, f"{tensor.ndim} dimensions")
                continue
            for letter, size in zip(letters, tensor.shape, strict=True):
                if size != 1 and sizes.setdefault(letter, size) != size:
                    self.blame(frame, name, f"{letter} is {size} here, {sizes[letter]} elsewhere")
        return sizes

    def blame(self, frame: FrameType, name: str, what: str) -> None:
        code = frame.f_code
        self.wrong.add(f"{Path(code.co_filename).name} {code.co_qualname} {name}: {what}")


@pytest.fixture(scope="session")
def shape_watch() -> type[ShapeWatch]:
    """The watch itself, for the test that it sees lies."""
    return ShapeWatch


@pytest.fixture(autouse=True)
def shapes_are_true(request: pytest.FixtureRequest) -> Iterator[None]:
    """No shape suffix in the package lies while a test of networks runs; `@pytest.mark.no_shapes` switches it off."""
    place = request.path.relative_to(Path(__file__).parent)
    watched = place.parts[0] in WATCHED or place.name.startswith("test_laws")
    if not watched or request.node.get_closest_marker("no_shapes"):
        yield
        return
    with ShapeWatch(PACKAGE) as watch:
        yield
    assert not watch.wrong, "\n".join(sorted(watch.wrong))


@pytest.fixture(params=[torch.float32, torch.float64], ids=["fp32", "fp64"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    """Both precisions, each with a generator that starts anew."""
    torch.manual_seed(0)
    found: torch.dtype = request.param
    return found


@pytest.fixture(scope="session")
def same() -> Same:
    """Equal within 1e-5 in fp32 and 1e-10 in fp64, by the precision of what is tested."""

    def check(found: Tensor, expected: Tensor) -> None:
        tolerance = 1e-5 if found.dtype == torch.float32 else 1e-10
        torch.testing.assert_close(found, expected, rtol=0.0, atol=tolerance)

    return check


# ── small models ─────────────────────────────────────────────────────────────────────────────────────────────────────


def small_words(preset: str) -> list[str]:
    """Settings that shrink a preset until a test hardly notices it."""
    c = config.resolve(preset)
    sides = [("encoder", c.encoder.kind), ("decoder", c.decoder.kind)]
    words = [word.format(side=side) for side, kind in sides for word in SMALL[kind]]
    return [*words, "data.max_source=12", "data.max_target=12"]


@pytest.fixture(scope="session")
def small_model() -> Callable[..., Trained]:
    """Any preset, tiny and untrained, that reads and writes the letters a to d."""

    def make(preset: str, *words: str) -> Trained:
        c = config.resolve(preset, None, [*small_words(preset), *words])
        examples = [Example(("abcd",), None if c.task == "fill" else "a b c d", 1)]
        vocabulary = learn(examples, c, [False])
        sizes = vocabulary.source.size, vocabulary.target.size
        return Trained(c, vocabulary, build(c, *sizes, copies=vocabulary.copies()).eval())

    return make


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], str]:
    """Write a file and give its path; a name that ends in .gz is packed."""

    def write_file(name: str, content: str | bytes) -> str:
        raw = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(gzip.compress(raw, mtime=0) if name.endswith(".gz") else raw)
        return str(tmp_path / name)

    return write_file


@pytest.fixture(scope="session")
def copy_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of pairs: every word of at most three letters, copied."""
    words = ["".join(letters) for length in (1, 2, 3) for letters in product("abcd", repeat=length)]
    path = tmp_path_factory.mktemp("copy") / "copy.tsv"
    path.write_text("".join(f"{word}\t{word}\n" for word in words), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def copy_folder(copy_file: Path) -> Path:
    """A model folder that was trained to copy; treat it as read-only."""
    words = ["encoder.width=32", "decoder.width=32", "data.max_source=12", "data.max_target=12", "train.steps=300",
             "train.warmup=20", "train.learning_rate=0.005", "train.validate_steps=100", "train.checkpoint_steps=100",
             "train.tokens_per_batch=512"]  # fmt: skip
    folder = copy_file.parent / "model"
    regard.train(copy_file, valid=copy_file, out=folder, preset="rnn-attention", settings=words)
    return folder


@pytest.fixture(scope="session")
def copy_model(copy_folder: Path) -> Trained:
    return regard.load(copy_folder)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for all pages that the tests of a file open."""
    with chromium() as browser:
        yield browser
