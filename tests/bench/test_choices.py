"""The ways to run a decoding step: the flat one computes what the model computes, and the command gives its table."""

import subprocess
import sys
from pathlib import Path

import torch

from bench.choices import Flat, leaves, model_of, reading_of

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_flat_step_is_the_step() -> None:
    for name in ("small", "gru"):
        model = model_of(name)
        with torch.inference_mode():
            token_R, reading = reading_of(model, 2)
            logits_RV, new = model.step(token_R, reading)
            flat_RV, *tensors = Flat(model, reading)(token_R, *leaves(reading))
        assert torch.equal(flat_RV, logits_RV)
        assert all(torch.equal(one, other) for one, other in zip(tensors, leaves(new.state), strict=True))


def test_the_command_gives_a_table() -> None:
    words = ["--models", "gru", "--rows", "1,2", "--choices", "eager", "--rounds", "1", "--page", "none"]
    done = subprocess.run([sys.executable, "-m", "bench.choices", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("| GRU with attention | 2 | eager | ")]
