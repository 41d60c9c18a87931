"""A server for tests: one without a socket, for what is asked and answered, and one that is a process of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from regard.serve.app import make_app
from regard.serve.desk import Desk
from regard.serve.guard import Allowed
from regard.trained import Trained
from tests.serve.clients import Client, Make, Server


@pytest.fixture(scope="module")
def make_client() -> Iterator[Make]:
    desks: list[Desk] = []

    def make(*paths: Path, token: str = "", room: int = 64, told: list[str] | None = None) -> Client:
        desks.append(Desk(list(paths), (told if told is not None else []).append, room))
        return Client(make_app(desks[-1], Allowed(token=token)), desks[-1])

    yield make
    for desk in desks:  # no thread of a server outlives the tests of its file
        desk.end()


@pytest.fixture(scope="module")
def client(make_client: Make, copy_folder: Path) -> Client:
    return make_client(copy_folder)


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory, small_model: Callable[..., Trained]) -> Callable[..., Path]:
    """The folder of a small model that was never trained."""

    def save(preset: str, *words: str) -> Path:
        path = tmp_path_factory.mktemp("saved") / preset
        small_model(preset, *words).save(path)
        return path

    return save


@pytest.fixture
def start() -> Iterator[Callable[..., Server]]:
    """Starts servers, and ends what a test has left running."""
    started: list[Server] = []

    def begin(*words: str) -> Server:
        started.append(Server(*words))
        return started[-1]

    yield begin
    for server in started:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()
