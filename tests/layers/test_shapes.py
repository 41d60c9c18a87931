"""The watch on shape names is on where networks are tested."""

import sys
from typing import Any

import pytest
import torch

from regard.layers.attention import split


def test_it_is_on_here(shape_watch: type) -> None:
    assert isinstance(getattr(sys.getprofile(), "__self__", None), shape_watch)


@pytest.mark.no_shapes
def test_a_marker_switches_it_off() -> None:
    assert sys.getprofile() is None


def test_it_reads_this_package() -> None:
    """A lie told by a test: four dimensions handed over under a name of three."""
    watch: Any = getattr(sys.getprofile(), "__self__", None)
    with pytest.raises(ValueError, match="too many values"):
        split(torch.zeros(2, 3, 4, 4), 2)
    assert watch.wrong == {"attention.py split x_BTD: 4 dimensions"}
    watch.wrong.clear()
