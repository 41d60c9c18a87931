"""A signal that comes inside an optimizer's step changes nothing of what that step's number asks for."""

import os
import signal
from pathlib import Path

import pytest
import torch

from regard import config
from regard.data import builtin
from regard.errors import Interrupted, RegardError
from regard.tasks.transduce import Transduce
from regard.training.checkpoint import step_of
from regard.training.run import Call, resume, train

WORDS = ["encoder.width=16", "decoder.width=16", "train.steps=15", "train.validate_steps=5", "train.average=3",
         "train.checkpoint_steps=5", "train.validate_examples=4", "train.tokens_per_batch=128"]  # fmt: skip


def trained(folder: Path, *words: str) -> Path:
    data = folder.parent / "dates.tsv"
    if not data.exists():
        builtin.write("dates", 120, data)
    train(config.resolve("rnn", None, [*WORDS, *words]), str(data), None, folder, Call(quiet=True))
    return folder


def signal_in_step(monkeypatch: pytest.MonkeyPatch, wanted: int) -> None:
    """SIGTERM at the end of the optimizer's step of this number."""
    step, done = torch.optim.AdamW.step, [0]

    def then_signal(self: torch.optim.AdamW, closure: None = None) -> None:
        step(self, closure)
        done[0] += 1
        if done[0] == wanted:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(torch.optim.AdamW, "step", then_signal)


@pytest.mark.parametrize("number", [9, 10])
def test_what_was_due_is_done(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Step 10 is validated and remembered for the mean, whether or not a signal came inside it."""
    whole = trained(tmp_path / "whole")
    with monkeypatch.context() as patched:
        signal_in_step(patched, number)
        with pytest.raises(Interrupted):
            trained(tmp_path / "broken")
    resume(tmp_path / "broken", quiet=True)
    for name in ("metrics.jsonl", "model.safetensors"):
        assert (tmp_path / "broken" / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize("word", ["train.patience=1", "train.perfect=2"])
def test_what_ends_at_a_validation_is_saved_before_the_last_scoring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    evaluate = Transduce.evaluate

    def interrupted(self: Transduce, *given: object, **named: object) -> object:
        if "intervals" not in named:  # the last scoring
            os.kill(os.getpid(), signal.SIGTERM)
        return evaluate(self, *given, **named)  # type: ignore[arg-type]

    words = (word, "train.learning_rate=1e-9", "train.checkpoint_steps=50", "train.average=0")
    with monkeypatch.context() as patched:
        patched.setattr(Transduce, "evaluate", interrupted)
        if "perfect" in word:
            patched.setattr("regard.training.loop.figure", lambda found, metric: 100.0)
        with pytest.raises(Interrupted, match="at step 10"):
            trained(tmp_path / "model", *words)
    assert max(step_of(path) for path in (tmp_path / "model" / "checkpoints").iterdir()) == 10


def test_out_of_memory_in_validation_says_what_to_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Transduce, "evaluate", too_much)
    with pytest.raises(RegardError, match=r"out of memory; lower train\.tokens_per_batch"):
        trained(tmp_path / "model")
