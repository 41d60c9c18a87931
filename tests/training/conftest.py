"""Runs that die and are resumed: a process of its own for each, and what two folders must have in common."""

import faulthandler
import gc
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from regard import config
from regard.training import checkpoint
from regard.training.run import Call, resume, train

WORDS = ["encoder.width=16", "decoder.width=16", "decoder.dropout=0.2", "train.steps=12", "train.warmup=2",
         "train.learning_rate=0.01", "train.validate_steps=4", "train.checkpoint_steps=3", "train.validate_examples=5",
         "train.tokens_per_batch=64", "train.average=2", "train.accumulate=2"]  # fmt: skip

PATIENCE = 120.0  # seconds that a process may take


def forked(work: Callable[[], Any]) -> int:
    """A process of its own that does something and then ends with the exit code of what it met."""
    gc.collect()  # a stream that only a traceback still holds ends its thread
    for thread in threading.enumerate():  # what a thread has locked stays locked in a child for ever
        if thread.name in ("batches", "watch") or thread.name.startswith("model "):
            thread.join(10)
            assert not thread.is_alive(), f"the thread {thread.name} was left running by an earlier test"
    child = os.fork()
    if not child:
        code = 99
        try:
            faulthandler.dump_traceback_later(PATIENCE - 10, file=sys.__stderr__)  # where it hangs, should it hang
            work()
            code = 0
        except BaseException as error:
            code = getattr(error, "exit_code", 98)
            if code == 98:
                traceback.print_exc()
        finally:
            os._exit(code)
    return child


def ended(children: list[int], wait: float = PATIENCE) -> list[int]:
    """The exit code of each, or the signal that ended it as a negative number; none may take longer than `wait`."""
    deadline, codes = time.monotonic() + wait, dict[int, int]()
    while len(codes) < len(children) and time.monotonic() < deadline:
        for child in set(children) - set(codes):
            found, status = os.waitpid(child, os.WNOHANG)
            codes |= {child: os.waitstatus_to_exitcode(status)} if found else {}
        time.sleep(0.01)
    for child in set(children) - set(codes):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert len(codes) == len(children), f"not over after {wait} s"
    return [codes[child] for child in children]


def in_child(work: Callable[[], Any]) -> int:
    return ended([forked(work)])[0]


def together(work: Callable[[int], Any], world: int = 2) -> list[int]:
    """The same work in processes that are told of each other, as a launcher would; it is given its rank."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def member(rank: int) -> None:
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_PORT": str(port),
                       "MASTER_ADDR": "127.0.0.1"}  # fmt: skip
        work(rank)

    return ended([forked(lambda rank=rank: member(rank)) for rank in range(world)])


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Runs:
    """Short runs on one file, always the same config but for what is said."""

    data: str
    preset: str = "rnn-attention"
    words: tuple[str, ...] = tuple(WORDS)

    def config(self, *words: str) -> config.Config:
        return config.resolve(self.preset, None, [*self.words, *words])

    def train(self, folder: Path, *words: str, force: bool = False) -> None:
        train(self.config(*words), self.data, None, folder, Call(force, quiet=True))

    def train_together(self, folder: Path, *words: str) -> list[int]:
        return together(lambda rank: self.train(folder, *words))

    def resume_together(self, folder: Path) -> list[int]:
        return together(lambda rank: resume(folder, quiet=True))

    def train_in_child(self, folder: Path, *words: str) -> int:
        return in_child(lambda: self.train(folder, *words))

    def train_until(self, folder: Path, name: str, number: int, *words: str) -> None:
        """Begins a run that dies when it passes a boundary for the n-th time."""
        before = checkpoint.boundary
        try:
            checkpoint.boundary = dies_at(name, number)
            assert self.train_in_child(folder, *words) == -signal.SIGKILL
        finally:
            checkpoint.boundary = before

    def resume_until(self, folder: Path, name: str, number: int) -> None:
        before = checkpoint.boundary
        try:
            checkpoint.boundary = dies_at(name, number)
            assert in_child(lambda: resume(folder, quiet=True)) == -signal.SIGKILL
        finally:
            checkpoint.boundary = before


def dies_at(name: str, number: int) -> Callable[[str], None]:
    passed: list[str] = []

    def boundary(found: str) -> None:
        passed.extend([found] if found == name else [])
        if len(passed) == number:
            die()

    return boundary


@pytest.fixture(scope="session")
def runs(copy_file: Path) -> Runs:
    return Runs(str(copy_file))


@pytest.fixture(scope="session", name="in_child")
def in_child_fixture() -> Callable[[Callable[[], Any]], int]:
    return in_child


@pytest.fixture(scope="session")
def in_a_team() -> Callable[..., list[int]]:
    return together


@pytest.fixture(scope="session")
def unbroken(runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that nothing happened to; treat it as read-only."""
    folder = tmp_path_factory.mktemp("unbroken") / "m"
    runs.train(folder)
    return folder


@pytest.fixture(scope="session")
def same_result() -> Callable[[Path, Path], None]:
    """Weights, optimizer, averaging window, log and choice of best are the same to the bit."""

    def check(found: Path, expected: Path) -> None:
        confidence = ["calibration.json"] if (expected / "calibration.json").exists() else []
        for name in ("model.safetensors", "metrics.jsonl", "config.toml", "tokenizer.json", "curves.svg", *confidence):
            assert (found / name).read_bytes() == (expected / name).read_bytes(), name
        last = sorted(path.name for path in (expected / "checkpoints").iterdir())[-1]
        assert sorted(path.name for path in (found / "checkpoints").iterdir())[-1] == last
        for name in ("weights", "optimizer", "best", "window"):
            files = [load_file(folder / "checkpoints" / last / f"{name}.safetensors") for folder in (found, expected)]
            assert {key: value.tobytes() for key, value in files[0].items()} == {
                key: value.tobytes() for key, value in files[1].items()
            }, name

    return check
