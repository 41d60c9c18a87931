"""What waits together is answered together; who has left costs nothing more; a folder that changes is loaded anew."""

import asyncio
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from regard.errors import UsageError
from regard.serve import ask
from regard.serve.ask import Ask, Options
from regard.serve.meter import Meter
from regard.serve.refusal import Refusal
from regard.serve.shelf import Place, names
from regard.serve.worker import Job, Worker
from regard.trained import Trained
from tests.serve.clients import SOON, Client, Make

LONG = 1_000_000
SmallModel = Callable[..., Trained]
Work = Callable[[str, Path], Worker]


@pytest.fixture
def endless(tmp_path: Path, small_model: SmallModel) -> Path:
    """A model that writes for minutes, if it is let."""
    model = small_model("rnn", f"data.max_target={LONG}", "search.length_extra=1000000")
    model.model.output.bias.data[2] = -1e9  # the end is as good as never written
    model.save(tmp_path / "endless")
    return tmp_path / "endless"


@pytest.fixture
def work() -> Iterator[Work]:
    """Makes workers, and ends them."""
    made: list[Worker] = []

    def make(name: str, path: Path) -> Worker:
        made.append(Worker(Place(name, path, print, Meter()), 4, Meter()))
        return made[-1]

    yield make
    for each in made:
        each.end()


@pytest.fixture
def worker(work: Work, copy_folder: Path) -> Worker:
    return work("model", copy_folder)


def hold(worker: Worker) -> Callable[[], None]:
    """Keeps the thread busy until what is returned is called."""
    go, begun = threading.Event(), threading.Event()

    def wait(_: Trained) -> None:
        begun.set()
        go.wait(30)

    worker.put(wait)
    assert begun.wait(30)
    return go.set


def run(*texts: str, **options: Any) -> Ask:
    return Ask(texts, Options(**options))


def counted(worker: Worker, name: str) -> int:
    return worker.meter.counts[name, worker.label]


# ── together ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_waits_together_is_answered_together(worker: Worker, copy_model: Trained) -> None:
    go = hold(worker)
    jobs = [worker.put(run("abc")), worker.put(run("d", beam=2)), worker.put(run("ab", "cd")), worker.put(run("b"))]
    go()
    found = [[each.text for each in job.future.result(30)] for job in jobs]
    assert found == [["abc"], ["d"], ["ab", "cd"], ["b"]]
    assert [each.score for each in jobs[2].future.result()] == [each.score for each in copy_model.run(["ab", "cd"])]
    assert counted(worker, "regard_groups_total") == 3  # the one that held it, and one for each beam
    assert counted(worker, "regard_texts_total") == 1 + 5


def test_draws_are_not_mixed(worker: Worker) -> None:
    go = hold(worker)
    sampling = ask.Sampling(seed=1, temperature=3.0)
    jobs = [worker.put(run("abc", "abc", sampling=sampling)) for _ in range(2)]
    go()
    first, second = ([each.text for each in job.future.result(30)] for job in jobs)
    assert first == second
    assert counted(worker, "regard_groups_total") == 3


def test_beyond_a_number_more_are_sent_away_at_once(worker: Worker) -> None:
    go = hold(worker)
    jobs = [worker.put(run("a")) for _ in range(4)]
    begun = time.perf_counter()
    with pytest.raises(Refusal) as refused:
        worker.put(run("a"))
    assert time.perf_counter() - begun < SOON
    assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "1"})
    jobs[1].leave()
    jobs.append(worker.put(run("b")))  # whoever has left makes room
    go()
    assert [each.text for each in jobs[-1].future.result(30)] == ["b"]
    assert counted(worker, "regard_dropped_total") == 1
    assert not jobs[1].future.done()


def test_one_defect_ends_nobody_else(worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: Trained) -> None:
        raise ZeroDivisionError("secret")

    job = worker.put(broken)
    with pytest.raises(Refusal) as refused:
        job.future.result(30)
    assert (refused.value.status, refused.value.code) == (500, "defect")
    assert "secret" not in refused.value.message
    assert "ZeroDivisionError" in caplog.text
    assert worker.put(run("a")).future.result(30)[0].text == "a"


@pytest.mark.parametrize("where", ["whole", "find"])
def test_one_defective_text_spoils_no_other_answer(worker: Worker, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Whether it is met while a text is read or while all are decoded together."""
    right: Any = getattr(Trained, where)

    def wrong(model: Trained, asked: Any, *rest: Any) -> Any:
        if asked == "dd" or (where == "find" and any(len(item.source) == 3 for item in asked)):
            raise IndexError("secret")
        return right(model, asked, *rest)

    monkeypatch.setattr(Trained, where, wrong)
    go = hold(worker)
    jobs = [worker.put(run("abc")), worker.put(run("dd")), worker.put(run("b"))]
    go()
    assert [jobs[place].future.result(30)[0].text for place in (0, 2)] == ["abc", "b"]
    with pytest.raises(Refusal) as refused:
        jobs[1].future.result(30)
    assert refused.value.status == 500


# ── gone ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def gone(job: Job, seconds: float) -> None:
    time.sleep(seconds)
    job.leave()


def test_a_search_stops_when_its_client_leaves(work: Work, endless: Path) -> None:
    worker = work("endless", endless)
    for options in ({}, {"beam": 3}, {"sampling": ask.Sampling()}):
        job = worker.put(run("ab", "cd", **options))
        gone(job, 0.5)
        begun = time.perf_counter()
        with pytest.raises(Refusal):
            job.future.result(30)
        assert time.perf_counter() - begun < SOON
    assert counted(worker, "regard_stopped_total") == 3


def test_a_search_goes_on_while_anybody_waits(work: Work, endless: Path) -> None:
    worker = work("endless", endless)
    go = hold(worker)
    first, second = worker.put(run("ab", max_length=300_000)), worker.put(run("cd", max_length=300_000))
    go()
    gone(first, 0.2)
    assert len(second.future.result(60)[0].text) > 1000
    assert counted(worker, "regard_stopped_total") == 0


def test_the_route_notices_that_its_client_left(make_client: Make, endless: Path) -> None:
    """The application as a server calls it: the body, then the word that the client has gone."""
    client = make_client(endless)
    sent: list[Any] = []

    async def ask_and_leave() -> None:
        body = json.dumps({"texts": ["ab"]}).encode()
        messages = [{"type": "http.disconnect"}, {"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            if len(messages) == 1:
                await asyncio.sleep(0.5)
            return messages.pop() if messages else await asyncio.Event().wait()

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": "/v1/run", "headers": headers, "http_version": "1.1",
                 "query_string": b"", "scheme": "http", "raw_path": b"/v1/run", "root_path": ""}  # fmt: skip
        await client.guard(scope, receive, send)

    asyncio.run(asyncio.wait_for(ask_and_leave(), 20))
    assert sent[0]["status"] == 499
    until(lambda: client.desk.meter.counts["regard_stopped_total", (("model", "endless"),)] == 1)


def until(happened: Callable[[], bool], seconds: float = 20.0) -> None:
    ends = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < ends
        time.sleep(0.05)


# ── folders ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def answer(client: Client) -> str:
    found = client.post("/v1/run", {"texts": ["abc"]})
    assert found.status_code == 200, found.text
    return str(found.json()["results"][0]["text"])


def test_a_folder_that_changes_is_loaded_anew(
    make_client: Make, copy_folder: Path, saved: Callable[..., Path], tmp_path: Path
) -> None:
    place, told = tmp_path / "model", list[str]()
    shutil.copytree(saved("rnn-attention"), place)
    client = make_client(place, told=told)
    before = answer(client)
    assert before != "abc"
    texts, ended = [before], threading.Event()

    def keep_asking() -> None:
        while not ended.is_set():
            texts.append(answer(client))

    asking = threading.Thread(target=keep_asking)
    asking.start()
    try:
        damaged = (copy_folder / "model.safetensors").read_bytes()[:-1]
        (place / "model.safetensors").write_bytes(damaged)
        shutil.copy(copy_folder / "manifest.json", place / "manifest.json")
        until(lambda: any("the old one goes on" in line for line in told))
        assert answer(client) == before
        for file in sorted(copy_folder.iterdir(), key=lambda file: file.name == "manifest.json"):
            if file.is_file():
                shutil.copy(file, place / file.name)
        (place / "manifest.json").touch()
        until(lambda: any("the new model answers" in line for line in told))
        assert answer(client) == "abc"
    finally:
        ended.set()
        asking.join(30)
    assert set(texts) <= {before, "abc"}
    assert sum("the old one goes on" in line for line in told) == 1


def test_a_model_that_can_not_be_loaded_is_told(make_client: Make, saved: Callable[..., Path]) -> None:
    place = saved("rnn")
    client = make_client(place)
    whole = (place / "model.safetensors").read_bytes()
    (place / "model.safetensors").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    found = client.post("/v1/run", {"texts": ["a"]})
    assert (found.status_code, found.json()["error"]["code"]) == (503, "model_unavailable")
    (place / "model.safetensors").write_bytes(whole)
    assert client.post("/v1/run", {"texts": ["a"]}).status_code == 200


def test_names_are_those_of_folders(tmp_path: Path) -> None:
    first, second = tmp_path / "a" / "dates", tmp_path / "b" / "dates"
    assert list(names([first, second, tmp_path / "other"])) == ["dates", "dates-2", "other"]
    with pytest.raises(UsageError, match="named twice"):
        names([first, first / ".." / "dates"])
