"""What is set for training is set while it lasts, and the machine is as before afterwards."""

import pytest
import torch

from regard.training import machine
from regard.training.machine import tuned


def is_flushed() -> bool:
    return not bool(torch.tensor(1e-40) * 1.0 != 0)


def test_denormal_numbers_are_zero_while_it_is_open() -> None:
    before = is_flushed()
    with tuned():
        assert is_flushed()
    assert is_flushed() == before


def test_an_error_leaves_the_machine_as_it_was() -> None:
    before = is_flushed()
    with pytest.raises(ZeroDivisionError), tuned():
        raise ZeroDivisionError
    assert is_flushed() == before


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "glibc", lambda: None)
    with tuned():
        assert float(torch.ones(3).sum()) == 3.0
