"""A request in, its answer out: the desk where requests are handed to the thread of their model and waited for."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from starlette.requests import Request

from regard.serve.guard import TURN
from regard.serve.limits import ANSWER_SECONDS, MOST_WAITING
from regard.serve.meter import Gauge, Meter
from regard.serve.refusal import Refusal, busy
from regard.serve.shelf import Place, Shelf, Tell
from regard.serve.worker import Job, Work, Worker

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Desk:
    """The models, their threads, and what is counted."""

    def __init__(self, paths: Sequence[Path], tell: Tell, room: int = MOST_WAITING) -> None:
        self.meter = Meter()
        self.shelf = Shelf(paths, tell, self.meter)
        self.workers = {name: Worker(place, room, self.meter) for name, place in self.shelf.places.items()}

    @property
    def is_full(self) -> bool:
        return all(worker.is_full for worker in self.workers.values())

    async def ask(self, place: Place, work: Work, request: Request) -> Any:
        """What the model says; while it is waited for, others have their turn."""
        turn: asyncio.Semaphore | None = request.scope.get(TURN)
        job = self.workers[place.name].put(work)
        if turn is None:
            return await self.wait(job, request.receive)
        turn.release()
        try:
            return await self.wait(job, request.receive)
        finally:
            await turn.acquire()

    async def wait(self, job: Job, receive: Receive) -> Any:
        """The answer; whoever leaves before it is there costs nothing more."""
        answer = asyncio.wrap_future(job.future)
        gone = asyncio.ensure_future(left(receive))
        try:
            await asyncio.wait({answer, gone}, timeout=ANSWER_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return answer.result()
            if gone.done():
                raise Refusal(499, "the client has left")
            raise busy(f"there was no answer after {ANSWER_SECONDS:g} s", "too_slow")
        finally:
            gone.cancel()
            if not answer.done():
                job.leave()
                answer.cancel()

    def end(self) -> None:
        """Stops all work; whoever still waits is told."""
        self.shelf.ended.set()
        for worker in self.workers.values():
            worker.end()

    def gauges(self) -> list[Gauge]:
        waiting = [((("model", name),), float(len(each.waiting))) for name, each in self.workers.items()]
        loaded = [((("model", name),), float(each.loaded is not None)) for name, each in self.shelf.places.items()]
        return [("regard_waiting", "Requests that wait, by model.", waiting),
                ("regard_loaded", "Whether a model is in memory.", loaded)]  # fmt: skip


async def left(receive: Receive) -> None:
    """Returns when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
