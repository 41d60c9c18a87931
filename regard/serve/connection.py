"""A socket and an application in, connections that end out: hypercorn's, with less of it and with stricter clocks.

Only HTTP/1.1 is spoken: a connection that changes to HTTP/2 leaves hypercorn's idle timer behind and may stay open for
minutes without a word. Whoever does not take an answer is cut off.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Any, cast

from hypercorn.asyncio.task_group import TaskGroup
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config
from hypercorn.events import Event
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.typing import AppWrapper, ConnectionState, LifespanState
from hypercorn.utils import parse_socket_addr, wrap_app

from regard.serve import limits

LAST_SECONDS = 0.5  # for answers on their way, after all work has been stopped


class Plain(H11Protocol):
    """HTTP/1.1 that never becomes anything else."""

    async def _check_protocol(self, event: Any) -> None:
        """Nothing that a request says changes the protocol."""


class Connection(TCPServer):
    """One client. It has a time for its headers, and one for taking each piece of an answer."""

    async def run(self) -> None:
        wire = self.writer.get_extra_info("socket")
        try:
            client, server = (parse_socket_addr(wire.family, each) for each in (wire.getpeername(), wire.getsockname()))
            async with TaskGroup(self.loop) as group:
                self._task_group = group
                state = ConnectionState(self.state)
                self.protocol = cast(Any, Plain(self.app, self.config, self.context, group, state, False, client,
                                                server, self.protocol_send))  # fmt: skip
                await self.idle_task.restart(group, self._idle_timeout)
                await self._read_data()
        except OSError:
            pass
        finally:
            await self._close()

    async def protocol_send(self, event: Event) -> None:
        try:
            await asyncio.wait_for(super().protocol_send(event), limits.SEND_SECONDS)
        except TimeoutError:
            self.writer.transport.abort()


class Listener:
    """Takes connections until it is told to end."""

    def __init__(self, app: Any, wire: socket.socket) -> None:
        self.app: AppWrapper = wrap_app(app, 0, "asgi")
        self.wire = wire
        self.config = settings()
        self.context = WorkerContext(None)
        self.open: dict[asyncio.Task[Any], asyncio.StreamWriter] = {}

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self.open) >= limits.MOST_CONNECTIONS:
            writer.transport.abort()
            return
        self.open[task] = writer
        task.add_done_callback(self.open.pop)
        loop, nothing = asyncio.get_running_loop(), LifespanState({})
        await Connection(self.app, loop, self.config, self.context, nothing, reader, writer)

    async def until(self, ended: asyncio.Event, stop: Callable[[], None]) -> None:
        """Takes connections until `ended`; lets those that are answered finish, then stops their work, then cuts."""
        # asyncio takes as many connections at once as its backlog says, and makes the system's queue as short.
        server = await asyncio.start_server(self.connect, sock=self.wire, backlog=limits.MOST_AT_WORK)
        self.wire.listen(limits.MOST_QUEUED)
        await ended.wait()
        server.close()
        await self.context.terminated.set()
        if self.open:
            await asyncio.wait(self.open, timeout=limits.END_SECONDS)
        stop()
        if self.open:
            await asyncio.wait(self.open, timeout=LAST_SECONDS)
        for writer in list(self.open.values()):
            writer.transport.abort()


def settings() -> Config:
    """hypercorn's own settings; its idle timer also runs until the headers of a request are whole."""
    config = Config()
    config.keep_alive_timeout = limits.HEADER_SECONDS
    config.keep_alive_max_requests = limits.MOST_REQUESTS
    config.read_timeout = int(limits.ANSWER_SECONDS) + 30  # also runs while a client waits for its answer
    config.h11_max_incomplete_size = limits.MOST_HEADER
    config.include_server_header = False
    config.accesslog = None
    return config
