"""A server as a process of its own, asked through sockets: deadlines, an end that loses nothing, the flags."""

import json
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from regard.errors import FolderError, MissingError, RegardError, UsageError
from regard.serve import limits
from regard.serve.desk import Desk
from regard.serve.run import Address, listen
from regard.trained import Trained
from tests.serve.clients import SOON, Server

Start = Callable[..., Server]
LONG = 1_000_000
HEAD = "POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
UPGRADE = (
    "GET /v1/run HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: {}\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
WORDS = [f"{a}{b}{c}{d}" for a in "abcd" for b in "abcd" for c in "abcd" for d in "abcd"]
CHUNK = b"1\r\n \r\n"


@pytest.fixture
def endless(tmp_path: Path, small_model: Callable[..., Trained]) -> Path:
    model = small_model("rnn", f"data.max_target={LONG}")
    model.model.output.bias.data[2] = -1e9
    model.save(tmp_path / "endless")
    return tmp_path / "endless"


def connected(server: Server, first: str = "") -> socket.socket:
    made = socket.create_connection((server.host, server.port), timeout=15)
    made.sendall(first.encode())
    return made


def rest(connection: socket.socket) -> bytes:
    """Everything until the other side closes; whoever resets has closed too."""
    found = b""
    try:
        while piece := connection.recv(65536):
            found += piece
    except ConnectionError:
        pass
    return found


def trickled(connection: socket.socket, piece: bytes, ended: threading.Event) -> None:
    while not ended.wait(0.2):
        try:
            connection.sendall(piece)
        except OSError:
            return


def metric(server: Server, line: str) -> int:
    found = re.search(rf"^{re.escape(line)} (\d+)$", httpx.get(f"{server.url}/metrics").text, re.MULTILINE)
    return int(found[1]) if found else 0


def test_whoever_dawdles_is_cut_off(start: Start, copy_folder: Path) -> None:
    """Headers that never end, bodies that come byte by byte, with a promised length and without, and silence."""
    server, begun = start(str(copy_folder)), time.monotonic()
    ended = threading.Event()
    cases = {
        "silence": ("", b""),
        "half a header": ("POST /v1/run HTTP/1.1\r\nHost: localhost\r\nX-A: ", b"b"),
        "a slow body": (f"{HEAD}Content-Length: 100000\r\n\r\n", b" "),
        "slow chunks": (f"{HEAD}Transfer-Encoding: chunked\r\n\r\n", CHUNK),
        "no body": (f"{HEAD}Content-Length: 10\r\n\r\n", b""),
    }
    connections = {name: connected(server, first) for name, (first, _) in cases.items()}
    for name, (_, piece) in cases.items():
        threading.Thread(target=trickled, args=(connections[name], piece, ended), daemon=True).start()
    answered = [httpx.post(f"{server.url}/v1/run", json={"texts": ["abc"]}) for _ in range(20)]
    assert [each.json()["results"][0]["text"] for each in answered] == ["abc"] * 20
    said = {name: rest(connection) for name, connection in connections.items()}
    assert time.monotonic() - begun < SOON
    ended.set()
    assert all(b"408" in said[name].split(b"\r\n")[0] for name in ("a slow body", "slow chunks", "no body"))
    assert b'"too_slow"' in said["a slow body"]
    assert said["half a header"] == b""


def test_a_large_body_is_refused_before_it_is_read(start: Start, copy_folder: Path) -> None:
    server = start(str(copy_folder))
    promised = connected(server, f"{HEAD}Content-Length: {limits.MOST_BODY + 1}\r\n\r\n")
    begun = time.monotonic()
    assert promised.recv(100).startswith(b"HTTP/1.1 413")
    assert time.monotonic() - begun < SOON
    unknown = connected(server, f"{HEAD}Transfer-Encoding: chunked\r\n\r\n")
    piece = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    for _ in range(limits.MOST_BODY // 0x100000 + 1):
        unknown.sendall(piece)
    assert rest(unknown).startswith(b"HTTP/1.1 413")
    assert httpx.get(f"{server.url}/healthz").status_code == 200


def test_only_plain_http_is_spoken(start: Start, copy_folder: Path) -> None:
    server = start(str(copy_folder))
    asked = {
        "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n": b"421",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": b"",
        "PRI * HTTP/1.1\r\nHost: localhost\r\n\r\n": b"404",
        UPGRADE.format("h2c"): b"405",
        UPGRADE.format("websocket"): b"403",
        "GET / HTTP/1.1\r\nHost: localhost\r\nX-A: " + "b" * 100_000: b"",
        "nonsense\r\n\r\n": b"400",
    }
    connections = [connected(server, first) for first in asked]
    for connection, (first, status) in zip(connections, asked.items(), strict=True):
        found = rest(connection)[:12]
        assert found.endswith(status), (first[:20], found)
        assert not found.endswith(b"200")
    assert httpx.get(f"{server.url}/healthz").status_code == 200


def test_a_client_that_left_costs_nothing_more(start: Start, endless: Path) -> None:
    server = start(str(endless))
    body = json.dumps({"texts": WORDS, "max_length": 1000, "beam": 60}).encode()
    asked = connected(server, f"{HEAD}Content-Length: {len(body)}\r\n\r\n")
    asked.sendall(body)
    time.sleep(1.5)
    assert metric(server, 'regard_groups_total{model="endless"}') == 1
    asked.close()
    time.sleep(1.0)
    assert metric(server, 'regard_stopped_total{model="endless"}') == 1
    assert metric(server, 'regard_requests_total{path="/v1/run",method="POST",status="499"}') == 1


def test_the_end_finishes_what_was_begun(start: Start, endless: Path) -> None:
    server = start(str(endless))
    idle = connected(server)
    asked = {"texts": ["ab", "cd"], "max_length": 4000, "beam": 16}
    found: list[httpx.Response] = []
    client = threading.Thread(target=lambda: found.append(httpx.post(f"{server.url}/v1/run", json=asked, timeout=30)))
    client.start()
    time.sleep(1.0)
    begun = time.monotonic()
    assert server.end() == 0
    assert time.monotonic() - begun < SOON
    client.join(10)
    assert found[0].status_code == 200
    assert len(found[0].json()["results"]) == 2
    assert rest(idle) == b""
    assert server.lines[-1] == "ended"


def test_the_end_waits_for_nobody_for_ever(start: Start, endless: Path) -> None:
    """A search that would take minutes, and a client that does not take its answer."""
    server = start(str(endless))
    asked = {"texts": WORDS, "max_length": 1000, "beam": 64}
    found: list[httpx.Response] = []
    client = threading.Thread(target=lambda: found.append(httpx.post(f"{server.url}/v1/run", json=asked, timeout=30)))
    client.start()
    time.sleep(1.0)
    begun = time.monotonic()
    assert server.end(signal.SIGINT) == 0
    assert time.monotonic() - begun < SOON
    client.join(10)
    assert (found[0].status_code, found[0].json()["error"]["code"]) == (503, "ending")


# ── the flags ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_line_that_is_shown_works(start: Start, copy_folder: Path) -> None:
    server = start(str(copy_folder))
    line = next(each for each in server.lines if each.startswith("try: "))
    done = subprocess.run(["bash", "-c", line.removeprefix("try: ")], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["model"] == "model"


def test_other_addresses_need_a_token(start: Start, copy_folder: Path) -> None:
    for wrong in ({"host": "0.0.0.0"}, {"host": "::"}, {"host": "models.example"}, {"token": "short"},
                  {"token": "0123456789 abcdef"}):  # fmt: skip
        with pytest.raises(UsageError, match="token"):
            Address(**wrong)
    for right in ("127.0.0.1", "127.1.2.3", "::1", "localhost"):
        assert Address(right).allowed.addresses is False
    token = "0123456789abcdef"
    server = start(str(copy_folder), "--host", "0.0.0.0", "--token", token, "--allow-host", "Models.example")
    url = f"http://127.0.0.1:{server.port}/v1/models"
    assert httpx.get(url).status_code == 401
    bearer = {"Authorization": f"Bearer {token}"}
    assert httpx.get(url, headers=bearer).status_code == 200
    assert httpx.get(url, headers=bearer | {"Host": "models.example:80"}).status_code == 200
    assert httpx.get(url, headers=bearer | {"Host": "10.1.2.3"}).status_code == 200
    assert httpx.get(url, headers=bearer | {"Host": "evil.example"}).status_code == 421
    assert not any(token in line for line in server.lines)


def test_a_port_in_use_and_folders_that_are_none(copy_folder: Path, tmp_path: Path) -> None:
    taken = listen("127.0.0.1", 0)
    with taken, pytest.raises(RegardError, match="--port 0"):
        listen("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(MissingError):
        Desk([copy_folder, tmp_path / "none"], print)
    with pytest.raises(FolderError):
        Desk([tmp_path], print)
