"""Who asks a server in tests: without a socket, or a process of its own; and what it says."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from regard.serve.desk import Desk
from regard.serve.guard import Guard

ROOT = Path(__file__).resolve().parents[2]
HERE = "http://localhost"
SOON = 20.0  # seconds: far more than it takes, far less than what it must not wait for; bench.serve has the figures


@dataclass(frozen=True)
class Client:
    """Asks an application as a browser or curl would, without a socket."""

    guard: Guard
    desk: Desk

    def ask(self, method: str, path: str, **given: Any) -> httpx.Response:
        return self.together([(method, path, given)])[0]

    def post(self, path: str, body: Any, **given: Any) -> httpx.Response:
        return self.ask("POST", path, json=body, **given)

    def get(self, path: str, **given: Any) -> httpx.Response:
        return self.ask("GET", path, **given)

    def together(self, asked: list[tuple[str, str, dict[str, Any]]]) -> list[httpx.Response]:
        """All of them at once."""

        async def all_of_them() -> list[httpx.Response]:
            transport = httpx.ASGITransport(self.guard, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=HERE, timeout=60) as client:
                return await asyncio.gather(*(client.request(method, path, **given) for method, path, given in asked))

        return asyncio.run(all_of_them())


Make = Callable[..., Client]


class Server:
    """A process that serves, and what it says."""

    def __init__(self, *words: str) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "regard", "serve", *words, "--port", "0"]
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self.ready = threading.Event()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        assert self.ready.wait(60), self.lines
        found = next(match for line in self.lines if (match := re.search(r"serving at http://([^:]+):(\d+)/", line)))
        self.host, self.port = found[1], int(found[2])
        self.url = f"http://{self.host}:{self.port}"

    def read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            if line.startswith("try: "):
                self.ready.set()
        self.ready.set()

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(30)
        self.reader.join(5)
        return code
