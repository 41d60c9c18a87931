"""What a server promises, measured on a server: load, memory, clients that dawdle, its end, requests drawn at random.

    python -m bench.serve                     trains a small model of dates; table into bench/README.md
    python -m bench.serve --model FOLDER      another model that turns text into text
    python -m bench.serve --brief             a tenth of everything, printed and not written

The server is a process of its own; the clients share one other process, so they compete with it for the same cores.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import regard
from bench.fuzz import fuzz
from bench.page import put
from regard.data import builtin
from regard.data.read import read
from regard.serve.app import make_app
from regard.serve.desk import Desk
from regard.serve.guard import Allowed
from regard.trained import Trained

PAGE = Path(__file__).resolve().with_name("README.md")
CLIENTS, EACH = 64, 20
REQUESTS = 10_000
SLOW = 200  # of each kind
CASES = 2_000
HEAD = "| | to be reached | measured | |\n|---|---|---|---|"
FINE = (200, 429, 503)


# ── a server and its clients ─────────────────────────────────────────────────────────────────────────────────────────


class Server:
    """A process that serves one model."""

    def __init__(self, model: Path, *words: str) -> None:
        command = [sys.executable, "-m", "regard", "serve", str(model), "--port", "0", *words]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        found = None
        for line in self.process.stderr:
            found = found or re.search(r"serving at http://([^:]+):(\d+)/", line)
            if line.startswith("try: "):
                break
        if found is None:
            raise SystemExit("the server did not start")
        self.host, self.port = found[1], int(found[2])

    def resident(self) -> float:
        """MB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def end(self) -> tuple[int, float]:
        begun = time.perf_counter()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60), time.perf_counter() - begun


@dataclass
class Seen:
    """What clients saw."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)  # seconds until a 503
    wrong: int = 0  # answers that are not those of the model

    def add(self, status: int, seconds: float) -> None:
        self.statuses[status] += 1
        (self.refused if status == 503 else self.seconds).append(seconds)


class Client:
    """One connection, asked again and again."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def ask(self, path: str, body: object = None) -> tuple[int, bytes]:
        """A request, on a new connection where the last was closed."""
        if self.writer is None or self.reader is None:
            self.reader, self.writer = await asyncio.open_connection(self.server.host, self.server.port)
        content = b"" if body is None else json.dumps(body).encode()
        method = "GET" if body is None else "POST"
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        self.writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        answer = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        found = re.search(r"content-length: (\d+)", answer)
        read = await self.reader.readexactly(int(found[1]) if found else 0)
        if "connection: close" in answer:
            self.close()
        return int(answer.split()[1]), read

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


async def keep_asking(server: Server, texts: Sequence[str], offline: dict[str, str], seen: Seen) -> None:
    client = Client(server)
    for text in texts:
        begun = time.perf_counter()
        status, body = await client.ask("/v1/run", {"texts": [text]})
        seen.add(status, time.perf_counter() - begun)
        if status == 200 and json.loads(body)["results"][0]["text"] != offline[text]:
            seen.wrong += 1
    client.close()


async def crowd(server: Server, texts: Sequence[str], offline: dict[str, str], clients: int, each: int) -> Seen:
    """So many clients at once, each with so many requests one after the other."""
    seen = Seen()
    rows = [[texts[(who * each + number) % len(texts)] for number in range(each)] for who in range(clients)]
    await asyncio.gather(*(keep_asking(server, row, offline, seen) for row in rows))
    return seen


LONE = """
import http.client, json, sys, time
host, port, ends, path, body = sys.argv[1:]
took = []
while time.time() < float(ends):
    if len(took) % 100 == 0:
        connection = http.client.HTTPConnection(host, int(port))
    begun = time.perf_counter()
    connection.request("POST" if body else "GET", path, body or None, {"Content-Type": "application/json"})
    assert connection.getresponse().read()
    took.append(time.perf_counter() - begun)
    time.sleep(0.01)
print(json.dumps(took))
"""


async def lone(server: Server, seconds: float, path: str, body: str = "") -> list[float]:
    """How long a client in a process of its own waited each time."""
    ends = str(time.time() + seconds)
    command = [sys.executable, "-c", LONE, server.host, str(server.port), ends, path, body]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    out, _ = await process.communicate()
    found: list[float] = json.loads(out)
    return found


async def probed(server: Server, during: Callable[[], Awaitable[Seen]], seconds: float) -> tuple[Seen, list[float]]:
    """What clients saw, and how long /healthz took meanwhile."""
    probe = asyncio.ensure_future(lone(server, seconds, "/healthz"))
    seen = await during()
    while not probe.done():
        more = await during()
        seen.seconds += more.seconds
        seen.refused += more.refused
        seen.statuses += more.statuses
        seen.wrong += more.wrong
    return seen, await probe


# ── what is measured ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    what: str
    wanted: str
    measured: str
    reached: bool

    def __str__(self) -> str:
        return f"| {self.what} | {self.wanted} | {self.measured} | {'reached' if self.reached else 'missed'} |"


@dataclass(frozen=True)
class Bench:
    model: Path
    texts: list[str]
    offline: dict[str, str]
    share: float

    def count(self, whole: int) -> int:
        return max(1, int(whole * self.share))

    def crowd(self, server: Server, clients: int, each: int) -> Awaitable[Seen]:
        return crowd(server, self.texts, self.offline, clients, each)


def load(bench: Bench) -> list[Row]:
    server, seconds, each = Server(bench.model), 20 * bench.share, bench.count(EACH)
    try:
        asyncio.run(crowd(server, bench.texts, bench.offline, 8, 5))  # the model is loaded, and warm
        begun = time.perf_counter()
        seen, health = asyncio.run(probed(server, lambda: bench.crowd(server, CLIENTS, each), seconds))
        rate = len(seen.seconds) / (time.perf_counter() - begun)
    finally:
        server.end()
    said = ", ".join(f"{count:,} × {status}" for status, count in sorted(seen.statuses.items()))
    middle, last = statistics.median(seen.seconds), sorted(seen.seconds)[int(0.99 * len(seen.seconds))]
    slowest, usual = max(health), statistics.median(health)
    return [
        Row(f"{CLIENTS} clients × {each} requests, again and again", "200, 429 or 503", said,
            set(seen.statuses) <= {*FINE}),
        Row("answers that are not the offline output", "0", str(seen.wrong), seen.wrong == 0),
        Row("time of an answer, median and 99 %; answers a second", "–",
            f"{1000 * middle:.0f} ms, {1000 * last:.0f} ms; {rate:.0f}", True),
        Row(f"/healthz meanwhile, the slowest of {len(health):,}", "≤ 200 ms",
            f"{1000 * slowest:.0f} ms (median {1000 * usual:.0f} ms)", slowest <= 0.2),
    ]  # fmt: skip


async def sent_away(server: Server, bench: Bench, seconds: float) -> Seen:
    """One client more, while others keep the queue full with long requests."""
    seen, ends = Seen(), time.perf_counter() + seconds
    long = {"texts": bench.texts[:256], "beam": 32}

    async def fill() -> None:
        client = Client(server)
        while time.perf_counter() < ends:
            await client.ask("/v1/run", long)
            await asyncio.sleep(0.005)
        client.close()

    filling = asyncio.gather(*(fill() for _ in range(6)))
    await asyncio.sleep(0.5)
    client = Client(server)
    while time.perf_counter() < ends:
        begun = time.perf_counter()
        status, _ = await client.ask("/v1/run", {"texts": bench.texts[:1]})
        seen.add(status, time.perf_counter() - begun)
        await asyncio.sleep(0.02)
    client.close()
    await filling
    return seen


def refused(bench: Bench) -> list[Row]:
    """A queue of two, kept full."""
    server = Server(bench.model, "--queue", "2")
    try:
        asyncio.run(crowd(server, bench.texts, bench.offline, 2, 10))
        seen = asyncio.run(sent_away(server, bench, 2 + 10 * bench.share))
    finally:
        server.end()
    times = sorted(seen.refused) or [1.0]
    middle = statistics.median(times)
    return [Row(f"time until a 503 (queue of 2; {len(seen.refused)} of {seen.statuses.total()} sent away)", "≤ 50 ms",
                f"median {1000 * middle:.0f} ms, slowest {1000 * times[-1]:.0f} ms", middle <= 0.05)]  # fmt: skip


def memory(bench: Bench) -> list[Row]:
    server = Server(bench.model)
    try:
        asyncio.run(crowd(server, bench.texts, bench.offline, 16, 64))
        before, each = server.resident(), bench.count(REQUESTS) // 16
        asyncio.run(crowd(server, bench.texts, bench.offline, 16, each))
        growth = server.resident() - before
    finally:
        server.end()
    measured = f"{growth:+.1f} MB, from {before:.0f} MB"
    return [Row(f"memory after {16 * each:,} requests", "at most 50 MB more", measured, growth <= 50)]


async def dawdle(server: Server, first: str, piece: bytes, begun: float) -> float:
    """Sends a little each second; seconds until the other side closes."""
    reader, writer = await asyncio.open_connection(server.host, server.port)
    writer.write(first.encode())

    async def trickle() -> None:
        with suppress(ConnectionError):
            while not reader.at_eof():
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(1.0)

    trickling = asyncio.ensure_future(trickle())
    with suppress(ConnectionError):
        while await reader.read(65536):
            pass
    trickling.cancel()
    writer.close()
    return time.perf_counter() - begun


async def beside(server: Server, bench: Bench, count: int) -> tuple[list[float], list[float], list[float]]:
    """A client's times before, and among many that dawdle; and how long these were borne."""
    head = "POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    asked = json.dumps({"texts": bench.texts[:1]})
    await lone(server, 2.0, "/v1/run", asked)
    before = await lone(server, 6.0, "/v1/run", asked)
    begun = time.perf_counter()
    slow = [dawdle(server, head + "X-A: ", b"b", begun) for _ in range(count)]
    slow += [dawdle(server, f"{head}Content-Length: 100000\r\n\r\n", b" ", begun) for _ in range(count)]
    closing = asyncio.gather(*slow)
    among = await lone(server, 6.0, "/v1/run", asked)
    return before, among, await closing


def slow_clients(bench: Bench) -> list[Row]:
    server, count = Server(bench.model), bench.count(SLOW)
    try:
        before, among, closed = asyncio.run(beside(server, bench, count))
    finally:
        server.end()
    one, other = statistics.median(before), statistics.median(among)
    return [
        Row(f"{count} half-sent headers and {count} trickled bodies: all closed after", "≤ 10 s",
            f"{max(closed):.1f} s", max(closed) <= 10),
        Row("another client meanwhile, median time of an answer", "at most 20 % more",
            f"{1000 * one:.1f} → {1000 * other:.1f} ms ({100 * (other / one - 1):+.0f} %)", other <= 1.2 * one),
    ]  # fmt: skip


async def ended(server: Server, bench: Bench) -> tuple[Seen, int, float]:
    """A signal while all clients wait for many texts each."""
    seen = Seen()

    async def one(number: int) -> None:
        texts = [bench.texts[(number + each) % len(bench.texts)] for each in range(200)]
        status, body = await Client(server).ask("/v1/run", {"texts": texts, "beam": 5})
        seen.add(status, 0.0)
        if status == 200:
            seen.wrong += len(json.loads(body)["results"]) != len(texts)

    work = asyncio.gather(*(one(number) for number in range(CLIENTS)))
    await asyncio.sleep(1.0)
    code, seconds = await asyncio.to_thread(server.end)
    await work
    return seen, code, seconds


def end(bench: Bench) -> list[Row]:
    server = Server(bench.model)
    asyncio.run(crowd(server, bench.texts, bench.offline, 1, 1))
    seen, code, seconds = asyncio.run(ended(server, bench))
    said = ", ".join(f"{count} × {status}" for status, count in sorted(seen.statuses.items()))
    fine = code == 0 and seconds <= 10 and set(seen.statuses) <= {200, 503} and seen.statuses.total() == CLIENTS
    return [Row(f"SIGTERM while {CLIENTS} requests wait", "exit 0 within 10 s, all answered",
                f"exit {code} after {seconds:.1f} s; {said}", fine and not seen.wrong)]  # fmt: skip


def drawn(bench: Bench) -> list[Row]:
    desk = Desk([bench.model], print)
    try:
        tried, failures = fuzz(make_app(desk, Allowed()), bench.count(CASES) // 6 + 20)
    finally:
        desk.end()
    for failure in failures:
        print(failure, file=sys.stderr)
    return [Row("schemathesis: cases, and failures", f"{bench.count(CASES):,}, 0", f"{tried:,}, {len(failures)}",
                tried >= bench.count(CASES) and not failures)]  # fmt: skip


PARTS: list[Callable[[Bench], list[Row]]] = [load, refused, memory, slow_clients, end, drawn]


def dates(folder: Path) -> Path:
    """A small model that was trained for a minute or so."""
    file = builtin.write("dates", 5000, folder / "dates.tsv")[0]
    regard.train(file, out=folder / "dates", preset="rnn-attention", settings=["train.steps=500"])
    return folder / "dates"


def questions(model: Trained, folder: Path) -> tuple[list[str], dict[str, str]]:
    file = builtin.write("dates", 1000, folder / "test.tsv", part="test")[0]
    texts = list(dict.fromkeys(example.source[0] for example in read(str(file), model.task.columns()).examples))
    return texts, dict(zip(texts, [answer.text for answer in model.run(texts)], strict=True))


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--model", type=Path)
    words.add_argument("--brief", action="store_true")
    given = words.parse_args()
    with tempfile.TemporaryDirectory() as place:
        path = given.model or dates(Path(place))
        bench = Bench(path, *questions(regard.load(path), Path(place)), 0.1 if given.brief else 1.0)
        rows: list[Row] = []
        for part in PARTS:
            for row in part(bench):
                print(row, flush=True)
                rows.append(row)
    if not given.brief:
        size = regard.load(path).model.size if given.model else 0
        about = f"A model of {size:,} parameters; " if size else "A small model of dates; "
        where = f"{about}server and clients share {len(os.sched_getaffinity(0))} cores; regard {regard.__version__}."
        put(PAGE, "serve", "\n".join([HEAD, *map(str, rows), "", where]))


if __name__ == "__main__":
    main()
