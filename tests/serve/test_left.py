"""Whoever has left costs nothing more, whatever was asked: the work stops, and the next request is answered soon."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.serve import ask
from regard.serve.schema import SearchRequest
from regard.tasks.task import Item
from regard.trained import Trained
from tests.serve.clients import SOON, Client, Make
from tests.view.small import made

ROOM = ("data.max_source=4000", "data.max_target=4")
READ_SECONDS = 0.03  # that a text takes to be read
ASKED: dict[str, dict[str, Any]] = {
    "/v1/look": {"text": "ab" * 2000, "derive": True, "beam": 1},
    "/v1/search": {"query": "a", "texts": ["b"] * 1000},
    "/v1/run": {"texts": [f"{number} " + "[mask]" * 1600 for number in range(32)], "n_best": 64},
}


async def ask_and_leave(client: Client, path: str, body: Any, seconds: float) -> list[Any]:
    """The application as a server calls it: the body, then the word that the client has gone; what was sent."""
    sent: list[Any] = []
    messages = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]

    async def receive() -> Any:
        if messages:
            return messages.pop()
        await asyncio.sleep(seconds)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "http_version": "1.1",
             "query_string": b"", "scheme": "http", "raw_path": path.encode(), "root_path": ""}  # fmt: skip
    await client.guard(scope, receive, send)
    return sent


@pytest.fixture
def slow_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Trained.whole

    def slowly(model: Trained, text: Any, where: str = "") -> Item:
        time.sleep(READ_SECONDS)
        return read(model, text, where)

    monkeypatch.setattr(Trained, "whole", slowly)


@pytest.fixture
def client(make_client: Make, small_model: Callable[..., Trained], tmp_path: Path, request: Any) -> Client:
    """A model that has much to do."""
    trained = made("fill", "encoder", *ROOM) if request.param == "/v1/run" else small_model("rnn-attention", *ROOM)
    trained.save(tmp_path / "busy")
    return make_client(tmp_path / "busy")


@pytest.mark.usefixtures("slow_reading")
@pytest.mark.parametrize(("client", "path"), [(path, path) for path in ASKED], indirect=["client"], ids=list(ASKED))
def test_who_has_left_is_not_worked_for(client: Client, path: str) -> None:
    simple = {"texts": ["a"]}
    assert client.post("/v1/run", simple).status_code == 200  # the model is loaded
    sent = asyncio.run(ask_and_leave(client, path, ASKED[path], 2.5))
    assert sent[0]["status"] == 499
    begun = time.monotonic()
    assert client.post("/v1/run", simple).status_code == 200
    assert time.monotonic() - begun < SOON
    assert client.desk.meter.counts["regard_stopped_total", (("model", "busy"),)] == 1


@pytest.mark.filterwarnings("ignore:.*cut to 8")
def test_of_a_long_hit_only_what_is_read_is_tried(small_model: Callable[..., Trained]) -> None:
    """Words behind what the model reads are not left out one by one: they carry nothing."""
    model = small_model("rnn-attention", "data.max_source=8")
    (hit,) = ask.search(model, SearchRequest(query="ab", texts=["ab cd " * 1000], count=1))
    assert [(word.start, word.end) for word in hit.words] == [(0, 2), (3, 5), (6, 8)]
    query, read, left = model.embed(["ab", "ab cd ab", " cd ab"])
    assert hit.words[0].weight == pytest.approx(float(read @ query - left @ query), abs=1e-6)
