"""Questions in, answers out, on one thread for each model: what waits together is answered together.

Nobody waits without end: beyond a number of waiting requests more are sent away at once. Whoever has left is not
answered, and a search that nobody waits for any more is stopped.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any

from regard.errors import RegardError, Stopped
from regard.serve.ask import Ask, Options, answer_together
from regard.serve.limits import MOST_TOGETHER
from regard.serve.meter import Meter
from regard.serve.refusal import Refusal, busy, does_not_fit
from regard.serve.schema import Result
from regard.serve.shelf import Place
from regard.stop import Stop
from regard.trained import Trained

LOG = logging.getLogger("regard.serve")
Work = Ask | Callable[[Trained], Any]  # texts with options that others may share, or anything to be done alone


class Job:
    """Something that a model is asked, for somebody who waits."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.future: Future[Any] = Future()
        self.left = False
        self.group: Group | None = None

    @property
    def shared(self) -> Options | None:
        """What others must have in common with it to be answered with it; none = it is answered alone."""
        return self.work.options if isinstance(self.work, Ask) and self.work.options.sampling is None else None

    @property
    def size(self) -> int:
        return self.work.size if isinstance(self.work, Ask) else 1

    def leave(self) -> None:
        """Whoever waited does so no more."""
        self.left = True
        if self.group is not None:
            self.group.stop_if_alone()

    def give(self, result: Any) -> None:
        with suppress(InvalidStateError):  # nobody waits
            self.future.set_result(result)

    def fail(self, error: Exception) -> None:
        with suppress(InvalidStateError):
            self.future.set_exception(error)


class Group:
    """Jobs that are answered together."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        self.stop = Stop()
        for job in jobs:
            job.group = self
        self.stop_if_alone()  # somebody may have left while this was made

    def stop_if_alone(self) -> None:
        if all(job.left for job in self.jobs):
            self.stop.set()


class Worker:
    """The thread of one model, and who waits for it."""

    def __init__(self, place: Place, room: int, meter: Meter) -> None:
        self.place = place
        self.room = room
        self.meter = meter
        self.label = (("model", place.name),)
        self.waiting: deque[Job] = deque()
        self.group: Group | None = None
        self.ended = False
        self.something = threading.Condition()
        threading.Thread(target=self.work, name=f"model {place.name}", daemon=True).start()

    # ── from outside ─────────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, work: Work) -> Job:
        """A job in the queue; refused at once where there is no room."""
        job = Job(work)
        with self.something:
            if self.ended:
                raise busy("the server is ending", "ending")
            if len(self.waiting) >= self.room:
                self.waiting = deque(each for each in self.waiting if not self.dropped(each))
            if len(self.waiting) >= self.room:
                raise busy(f"{len(self.waiting)} requests wait for the model {self.place.name}; try again soon")
            self.waiting.append(job)
            self.something.notify()
        return job

    @property
    def is_full(self) -> bool:
        """Whether one more would be sent away; who has left does not count."""
        return len(self.waiting) >= self.room and sum(not job.left for job in list(self.waiting)) >= self.room

    def end(self) -> None:
        """No more work; what waits is refused, what is being done stops."""
        with self.something:
            self.ended = True
            for job in self.waiting:
                job.fail(busy("the server is ending", "ending"))
            self.waiting.clear()
            if self.group is not None:
                self.group.stop.set()
            self.something.notify()

    # ── on its own thread ────────────────────────────────────────────────────────────────────────────────────────────

    def work(self) -> None:
        while (group := self.next()) is not None:
            try:
                with group.stop.heard():
                    self.answer(group.jobs)
            except Exception as error:
                self.blame(group.jobs, error)
            finally:
                with self.something:
                    self.group = None

    def next(self) -> Group | None:
        """The job that has waited longest, and all that can be answered with it; none at the end."""
        with self.something:
            while True:
                while self.waiting and self.dropped(self.waiting[0]):
                    self.waiting.popleft()
                if self.ended:
                    return None
                if self.waiting:
                    break
                self.something.wait()
            self.group = Group(self.together())
        return self.group

    def together(self) -> list[Job]:
        first = self.waiting.popleft()
        jobs, size = [first], first.size
        for job in list(self.waiting) if first.shared is not None else ():
            if job.shared == first.shared and size + job.size <= MOST_TOGETHER and not job.left:
                jobs.append(job)
                size += job.size
        taken = set(map(id, jobs))
        self.waiting = deque(job for job in self.waiting if id(job) not in taken)
        return jobs

    def dropped(self, job: Job) -> bool:
        if job.left:
            self.meter.count("regard_dropped_total", self.label)
        return job.left

    def answer(self, jobs: Sequence[Job]) -> None:
        try:
            model = self.place.model()
        except (RegardError, OSError) as error:
            LOG.error("%s: can not be loaded: %s", self.place.name, error)
            raise busy(f"the model {self.place.name} can not be loaded: {error}", "model_unavailable") from None
        self.meter.count("regard_groups_total", self.label)
        self.meter.count("regard_texts_total", self.label, sum(job.size for job in jobs))
        work = jobs[0].work
        if not isinstance(work, Ask):
            jobs[0].give(work(model))
            return
        asks = [job.work for job in jobs if isinstance(job.work, Ask)]
        for job, found in zip(jobs, self.answers(model, asks), strict=True):
            self.blame([job], found) if isinstance(found, Exception) else job.give(found)

    def answers(self, model: Trained, asks: Sequence[Ask]) -> list[list[Result] | Exception]:
        """Of all together; where that meets a defect, of each alone, so that it costs nobody else an answer."""
        try:
            return answer_together(model, asks)
        except Stopped:
            raise
        except Exception as error:
            return [error] if len(asks) == 1 else [self.answers(model, [ask])[0] for ask in asks]

    def blame(self, jobs: Sequence[Job], error: Exception) -> None:
        """All of them are told why there is no answer."""
        if isinstance(error, Stopped):
            self.meter.count("regard_stopped_total", self.label)
        told = as_refusal(error)
        if told.status == 500:
            LOG.error("%s: a defect of regard", self.place.name, exc_info=error)
        for job in jobs:
            job.fail(told)


def as_refusal(error: Exception) -> Refusal:
    match error:
        case Refusal():
            return error
        case Stopped():
            return busy("the server is ending", "ending")
        case RegardError():
            return does_not_fit(error)
        case MemoryError():
            return busy("there is not enough memory for this request", "no_memory")
    return Refusal(500, f"a defect of regard: {type(error).__name__}; the log of the server tells more")
