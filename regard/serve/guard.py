"""A request from anywhere in; what is let through to the application, whole and in time, out.

Before anything is read: the Host must be one of ours (a name that leads here by trickery is not), an Origin must be
the same as the Host, and where a token is asked for it must be there. A body is read here, up to a size and within a
time that do not depend on how it is sent. Every answer leaves with the same strict headers.
"""

import asyncio
import hmac
import ipaddress
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from regard.serve import limits
from regard.serve.meter import Meter
from regard.serve.refusal import Refusal, busy

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
COOKIE = "regard"
TURN = "regard.turn"  # in a scope: what is given back while a request waits for its model
OPEN = ("/", "/app.js", "/app.css", "/favicon.ico", "/healthz", "/readyz")  # nothing of anybody's is in these
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")  # fmt: skip
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


@dataclass(frozen=True)
class Allowed:
    """Who may ask."""

    hosts: frozenset[str] = frozenset(LOOPBACK)
    addresses: bool = False  # any Host that is a number: no trickery with names leads there
    token: str = ""

    def host(self, given: str) -> bool:
        name = host_name(given)
        return name in self.hosts or (self.addresses and is_address(name))

    def bearer(self, headers: dict[str, str]) -> bool:
        """Whether the token is there: as `Authorization: Bearer …`, or as the cookie that the page was given."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        shown = [given.strip()] if scheme.lower() == "bearer" else cookies(headers.get("cookie", ""))
        return any(hmac.compare_digest(each.encode(), self.token.encode()) for each in shown)


class Guard:
    """Stands before the application."""

    def __init__(
        self, app: App, allowed: Allowed, meter: Meter, paths: Iterable[str], full: Callable[[], bool]
    ) -> None:
        self.app = app
        self.full = full  # whether there is no room for anybody
        self.allowed = allowed
        self.meter = meter
        self.paths = frozenset(paths)  # that are counted by name; others could be without number
        self.ending = False
        self.turn = asyncio.Semaphore(limits.MOST_AT_WORK)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http":
            await self.pass_on(scope, receive, Sending(send, self.ending))
        else:
            await self.app(scope, receive, send)

    async def pass_on(self, scope: Scope, receive: Receive, sending: "Sending") -> None:
        begun = time.perf_counter()
        body: bytes | None = None
        try:
            self.check(scope)
            if scope["method"] == "POST":
                body = await read(receive, check_body(scope))
                await self.in_turn(scope, replay(body, receive), sending)
            else:
                await self.app(scope, receive, sending)
        except Refusal as refusal:
            await sending.refuse(refusal, last=body is None)
            if body is None and refusal.status not in (408, 499):
                await linger(receive)
            await sending.close()
        finally:
            path = scope["path"] if scope["path"] in self.paths else "other"
            labels = (("path", path), ("method", known_method(scope["method"])), ("status", str(sending.status)))
            self.meter.count("regard_requests_total", labels)
            self.meter.took(path, time.perf_counter() - begun)

    async def in_turn(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A few at a time: a crowd that comes at once must not keep the loop from everybody else."""
        if self.full():
            raise busy("too many requests wait; try again soon")
        async with self.turn:
            await self.app({**scope, TURN: self.turn}, receive, send)

    def check(self, scope: Scope) -> None:
        """Everything that can be refused before a byte of the body is read."""
        if scope["http_version"] not in ("1.0", "1.1"):
            raise Refusal(505, "this server speaks HTTP/1.1")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or not self.allowed.host(hosts[0]):
            raise Refusal(421, "the Host of this request is not one that this server answers for")
        if "origin" in headers and not same_origin(headers["origin"], hosts[0]):
            raise Refusal(403, "a request from a page of another origin")
        if self.allowed.token and scope["path"] not in OPEN and not self.allowed.bearer(headers):
            raise Refusal(401, "expected Authorization: Bearer and the token of this server",
                          headers={"WWW-Authenticate": "Bearer"})  # fmt: skip
        if self.ending and scope["path"] not in ("/healthz", "/readyz"):
            raise busy("the server is ending", "ending")


class Sending:
    """Answers on their way out: with our headers, and in pieces, so that each can have its own time."""

    def __init__(self, send: Send, last: bool) -> None:
        self.send = send
        self.last = last  # of its connection
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            await self.send({**message, "headers": [*with_ours(message["headers"]), *self.closing()]})
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        for start in range(0, max(1, len(body)), limits.PIECE):
            rest = more or start + limits.PIECE < len(body)
            await self.send({**message, "body": body[start : start + limits.PIECE], "more_body": rest})

    def closing(self) -> list[tuple[bytes, bytes]]:
        return [(b"connection", b"close")] if self.last else []

    async def refuse(self, refusal: Refusal, last: bool) -> None:
        """The whole refusal, its end left open."""
        body = refusal.body()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        headers += [(name.lower().encode(), value.encode()) for name, value in refusal.headers.items()]
        self.last = self.last or last
        await self({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await self({"type": "http.response.body", "body": body, "more_body": True})

    async def close(self) -> None:
        await self({"type": "http.response.body", "body": b"", "more_body": False})


# ── bodies ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def check_body(scope: Scope) -> int:
    """The length that a body promises to have at most, once it is known to be JSON and not too long."""
    headers = dict(scope["headers"])
    kind = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, f"found a body of the type {kind[:60] or 'unknown'!r}, expected application/json")
    length = headers.get(b"content-length", b"").decode("latin-1")
    if length.isdecimal() and int(length) > limits.MOST_BODY:
        raise too_large()
    return limits.MOST_BODY


def too_large() -> Refusal:
    return Refusal(413, f"the body has more than {limits.MOST_BODY:,} bytes")


async def read(receive: Receive, most: int) -> bytes:
    """The whole body, if it comes in time and is not too long."""
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refusal(499, "the client left before its request was whole")
                pieces.append(message.get("body", b""))
                size += len(pieces[-1])
                if size > most:
                    raise too_large()
                if not message.get("more_body", False):
                    return b"".join(pieces)
    except TimeoutError:
        raise Refusal(408, f"the body was not whole after {limits.BODY_SECONDS:g} s") from None


async def linger(receive: Receive) -> None:
    """Reads on for a while: a connection that is closed with bytes unread takes the refusal with it."""
    try:
        async with asyncio.timeout(limits.LINGER_SECONDS):
            while (message := await receive())["type"] != "http.disconnect" and message.get("more_body", False):
                pass
    except TimeoutError:
        pass


def replay(body: bytes, receive: Receive) -> Receive:
    """The body at once, and then whatever else comes: that the client has left."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def next() -> Message:
        return waiting.pop() if waiting else await receive()

    return next


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def host_name(given: str) -> str:
    """`LOCALHOST:8000` as `localhost`; an address of version 6 keeps its brackets."""
    if given.startswith("["):
        return given[: given.find("]") + 1].lower()
    return given.partition(":")[0].lower().removesuffix(".")


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def same_origin(origin: str, host: str) -> bool:
    found = urlsplit(origin)
    return found.scheme in ("http", "https") and found.netloc.lower() == host.lower()


def cookies(header: str) -> list[str]:
    """What our cookies hold; a token with `/` or `=` in it stands in quotation marks there."""
    pairs = (each.strip().partition("=") for each in header.split(";"))
    return [value.strip('"') for name, _, value in pairs if name == COOKIE]


def known_method(method: str) -> str:
    return method if method in ("GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS") else "other"


def with_ours(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Our headers, unless the answer has one of them already."""
    given = [(name.lower(), value) for name, value in headers]
    there = {name for name, _ in given}
    return [*given, *(each for each in HEADERS if each[0] not in there)]
