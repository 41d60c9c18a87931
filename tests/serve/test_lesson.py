"""The lesson is served beside the models that were named: its pages, and its models under their own names."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from regard.lab.lesson import kept
from regard.trained import Trained
from tests.serve.clients import Client, Server
from tests.watched import Watched


def test_the_lesson_comes_with_what_its_models_make_of_the_example(client: Client) -> None:
    answer = client.get("/v1/lesson")
    assert answer.status_code == 200
    found = answer.json()
    assert found["kind"] == "lesson"
    assert len(found["pages"]) == 10
    for page in found["pages"]:
        assert page["record"]["model"]["name"] == f"lesson/{page['name']}"
        assert len(page["sentences"]) == 3
        assert page["curve"]["series"]
    assert client.get("/v1/lesson").content == answer.content


@pytest.mark.parametrize("name", ["rnn", "transformer", "decoder"])
def test_its_models_answer_under_their_own_names(name: str, client: Client) -> None:
    answer = client.post("/v1/look", {"text": "3 June 2021", "model": f"lesson/{name}"})
    assert answer.status_code == 200, answer.text
    expected = Trained.load(kept.FOLDER / name).look("3 June 2021")
    assert answer.json()["output"] == expected.output
    assert answer.json()["model"]["name"] == f"lesson/{name}"
    run = client.post("/v1/run", {"texts": ["3 June 2021"], "model": f"lesson/{name}"})
    assert run.json()["results"][0]["text"] == expected.output


def test_they_are_not_among_the_models_that_were_named(client: Client) -> None:
    assert not any(each["name"].startswith("lesson/") for each in client.get("/v1/models").json()["models"])
    assert client.post("/v1/look", {"text": "a", "model": "lesson/nothing"}).status_code == 404


def test_a_picture_of_the_lesson_is_described(client: Client) -> None:
    page = client.get("/v1/lesson").json()["pages"][-1]
    answer = client.post("/v1/look", {"picture": page["record"]["picture"]["data"], "model": "lesson/caption"})
    assert answer.json()["output"] == page["record"]["output"]


def test_all_pages_are_gone_through_in_a_browser(
    start: Callable[..., Server], copy_folder: Path, browser: Browser
) -> None:
    """On a narrow window, with the keys; each page is answered by its own model, and nothing is wider than it."""
    server, lesson = start(str(copy_folder)), kept.read()
    assert lesson is not None
    watched = Watched(browser.new_page(viewport={"width": 390, "height": 800}), server.url)
    page = watched.page
    page.set_default_timeout(30_000)
    page.goto(f"{server.url}/#tab=lesson")
    for number, each in enumerate(lesson["pages"]):
        if number:
            page.keyboard.press("ArrowRight")
        expect(page.locator(".lesson h1")).to_have_text(each["title"], timeout=60_000)  # all its models are loaded
        expect(page.locator(".lesson .heading h2")).to_have_text(f"lesson/{each['name']}")
        expect(page.locator(".lesson .sentence")).to_have_count(3)
        expect(page.locator(".lesson .problem:visible")).to_have_count(0)
        assert page.locator(".lesson-curve .series").count() == len(each["curve"]["series"])
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.close()
    assert watched.wrong == []
