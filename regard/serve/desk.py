"""A request in, its answer out: the desk where requests are handed to the thread of their model and waited for."""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from starlette.requests import Request

from regard.lab.lesson import kept
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
        self.room = room
        self.shelf = Shelf(paths, tell, self.meter)
        self.workers = {name: Worker(place, room, self.meter) for name, place in self.shelf.places.items()}
        self.lesson_pages: bytes | None = None  # made when first asked for

    @property
    def is_full(self) -> bool:
        """Whether nobody could be answered; where the lesson alone is served, one model of it may still have room."""
        named = self.shelf.places
        return bool(named) and all(self.workers[name].is_full for name in named)

    async def ask(self, place: Place, work: Work, request: Request) -> Any:
        """What the model says; while it is waited for, others have their turn."""
        if place.name not in self.workers:  # of the lesson: it has a thread as soon as it has work
            self.workers[place.name] = Worker(place, self.room, self.meter)
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

    async def lesson(self, request: Request) -> bytes | None:
        """The lesson, its pages with what their models make of the example; none where none is shipped."""
        if self.lesson_pages is None and (found := kept.read()) is not None:
            pages = []
            for page in found["pages"]:
                place = self.shelf.place(kept.PREFIX + page["name"])
                record = await self.ask(place, partial(kept.record, page=page), request)
                pages.append({**page, "record": record})
            self.lesson_pages = json.dumps({**found, "pages": pages}, ensure_ascii=False).encode()
        return self.lesson_pages

    def end(self) -> None:
        """Stops all work; whoever still waits is told."""
        self.shelf.ended.set()
        for worker in self.workers.values():
            worker.end()

    def gauges(self) -> list[Gauge]:
        waiting = [((("model", name),), float(len(each.waiting))) for name, each in self.workers.items()]
        loaded = [
            ((("model", name),), float(each.loaded is not None))
            for name, each in {**self.shelf.places, **self.shelf.taught}.items()
        ]
        return [("regard_waiting", "Requests that wait, by model.", waiting),
                ("regard_loaded", "Whether a model is in memory.", loaded)]  # fmt: skip


async def left(receive: Receive) -> None:
    """Returns when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
