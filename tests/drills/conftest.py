"""One short run that nothing happens to, which all the others are compared with."""

from pathlib import Path

import pytest

from tests.drills import runs
from tests.drills.runs import FOLDER, Recipe, Timeline

STEPS = 30


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("drills")


@pytest.fixture(scope="session")
def recipe(place: Path) -> Recipe:
    return runs.recipe("rnn-attention", place, STEPS)


@pytest.fixture(scope="session")
def timeline(recipe: Recipe, place: Path) -> Timeline:
    return runs.unbroken(recipe, place / "unbroken")


@pytest.fixture(scope="session")
def reference(timeline: Timeline, place: Path) -> Path:
    """Its folder; treat it as read-only."""
    return place / "unbroken" / FOLDER
