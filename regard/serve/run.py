"""Folders and an address in, a server that runs until it is told to end out.

After a signal nothing new is begun, what is being answered is finished, and the process ends with 0 within ten seconds.
"""

import asyncio
import gc
import ipaddress
import json
import logging
import os
import re
import shlex
import signal
import socket
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.errors import RegardError, UsageError
from regard.serve import limits
from regard.serve.app import make_app
from regard.serve.connection import Listener
from regard.serve.desk import Desk
from regard.serve.guard import LOOPBACK, Allowed, Guard, host_name
from regard.serve.shelf import Place, Tell

SWITCH_SECONDS = 0.0005  # at each send the event loop gives Python's lock away; a model's thread keeps it no longer
TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{16,200}=*")


@dataclass(frozen=True)
class Address:
    """Where a server listens, who may ask, and how many may wait."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str = ""
    hosts: tuple[str, ...] = ()  # other names of this machine
    room: int = limits.MOST_WAITING

    def __post_init__(self) -> None:
        if self.token and not TOKEN.fullmatch(self.token):
            raise UsageError("the token: expected 16 to 200 letters, digits or any of ._~+/-")
        if not self.token and not is_loopback(self.host):
            raise UsageError(f"--host {self.host}: others could reach this server, so it needs a --token too "
                             "(or REGARD_TOKEN); 127.0.0.1 needs none")  # fmt: skip

    @property
    def allowed(self) -> Allowed:
        own = f"[{self.host}]" if ":" in self.host else self.host.lower()
        hosts = frozenset({*LOOPBACK, own, *(host_name(each) for each in self.hosts)})
        return Allowed(hosts, not is_loopback(self.host), self.token)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(paths: Sequence[Path], address: Address, tell: Tell) -> None:
    """Answers until a signal comes."""
    logging.basicConfig(handlers=[Told(tell)], level=logging.WARNING, force=True)
    warnings.simplefilter("ignore")  # of each text that is cut: whoever asks could fill a disk
    sys.setswitchinterval(SWITCH_SECONDS)
    desk = Desk(paths, tell, address.room)
    listener = listen(address.host, address.port)
    greet(list(desk.shelf.places.values()), desk.shelf.place(None), listener, address, tell)
    guard = make_app(desk, address.allowed)
    gc.freeze()  # what is here stays: looking through it for rubbish would stop everybody for a tenth of a second
    asyncio.run(until_signal(guard, desk, listener))
    tell("ended")


class Told(logging.Handler):
    """Whatever is logged goes where everything is told."""

    def __init__(self, tell: Tell) -> None:
        super().__init__()
        self.tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self.tell(self.format(record))


async def until_signal(guard: Guard, desk: Desk, wire: socket.socket) -> None:
    ended, loop = asyncio.Event(), asyncio.get_running_loop()

    def end() -> None:
        if ended.is_set():
            os._exit(130)  # whoever says it twice means it
        guard.ending = True
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    await Listener(guard, wire).until(ended, desk.end)


def listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(place)
        made.listen(limits.MOST_QUEUED)
        made.setblocking(False)
    except (OSError, OverflowError) as error:
        raise RegardError(f"{host}, port {port}: can not be listened at: {getattr(error, 'strerror', None) or error}; "
                          "--port 0 takes one that is free") from None  # fmt: skip
    return made


def greet(places: Sequence[Place], first: Place, listener: socket.socket, address: Address, tell: Tell) -> None:
    """What is served, where, and a line to copy for the first of it."""
    host, port = listener.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    for place in places:
        about = place.answer()
        tell(f"{place.name}: {about.task}, {about.preset}, {about.parameters:,} parameters, from {place.path}")
    if not places:
        tell("no model folder was named: the lesson alone is served, with its own small models")
    tell(f"serving at {url}/  (Ctrl-C ends it)")
    bearer = ' -H "Authorization: Bearer $REGARD_TOKEN"' if address.token else ""
    about = first.answer()
    if about.reads == "picture":
        tell(f"try: curl -s{bearer} {url}/v1/models")
        return
    text = about.examples[0] if about.examples else "\t".join(["hello"] * about.columns)
    body = shlex.quote(json.dumps({"texts": [text]}, ensure_ascii=False))
    tell(f"try: curl -s{bearer} {url}/v1/run -H 'Content-Type: application/json' -d {body}")
