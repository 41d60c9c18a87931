"""What the page offers, the server does: in a real browser, with models for each of the cases."""

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from regard.lab.lesson import kept
from regard.trained import Trained
from tests.serve.clients import Server
from tests.view.small import made
from tests.watched import Watched


@pytest.fixture(scope="module")
def server(
    copy_folder: Path, small_model: Callable[..., Trained], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("offers")
    made("classify", "transformer", "head.pool=attention").save(folder / "pooled")
    small_model("caption").save(folder / "caption")
    begun = Server(str(copy_folder), str(folder / "pooled"), str(folder / "caption"))
    yield begun
    assert begun.end() == 0


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    watched = Watched(context.new_page(), "http://127.0.0.1")
    yield watched.page
    assert watched.wrong == []  # a request that the server refused would be told here
    context.close()


def test_what_pools_is_not_switched_off(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/#model=pooled&text={quote('ab dc')}")
    pooling, within = page.locator('[data-head="head/0"]'), page.locator('[data-head="encoder.0.self/0"]')
    expect(pooling).to_be_visible()
    pooling.click(modifiers=["Alt"])
    pooling.press("o")
    expect(page.locator("#what-if")).not_to_have_class("active")
    assert pooling.get_attribute("aria-keyshortcuts") is None
    assert "can not be switched off" in (pooling.get_attribute("data-tip") or "")
    within.click(modifiers=["Alt"])
    expect(page.locator("#changed")).not_to_have_text("…")
    expect(page.locator(".problem:visible")).to_have_count(0)


def test_signs_are_not_offered_to_be_written(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/#model=model&text=abc&step=3")
    end = page.locator('[data-alternative="2"]')
    expect(end).to_be_disabled()
    assert "write this" not in (end.get_attribute("aria-label") or "")
    choices = page.locator("[data-alternative]")
    offered = choices.evaluate_all("all => all.map(one => [Number(one.dataset.alternative), !one.disabled])")
    assert [free for _, free in offered] == [id >= 7 for id, _ in offered]
    assert any(free for _, free in offered)
    page.goto(f"{server.url}/#model=model&text=ab&begin=2")  # an address may say so; it is not asked
    expect(page.locator("#output")).to_contain_text("ab")
    expect(page.locator(".problem:visible")).to_have_count(0)


def test_another_picture_of_the_same_name_and_size_is_another(page: Page, server: Server, tmp_path: Path) -> None:
    page.goto(f"{server.url}/#model=caption")
    seen = []
    for place, colour in (("first", (200, 30, 30)), ("second", (30, 30, 200))):
        (tmp_path / place).mkdir()
        Image.new("RGB", (8, 8), colour).save(tmp_path / place / "picture.png")
        page.set_input_files("#picture", tmp_path / place / "picture.png")
        if seen:
            page.wait_for_function("before => document.querySelector('.photo img').src !== before", arg=seen[0])
        expect(page.locator(".photo img")).to_be_visible(timeout=20_000)
        seen.append(page.locator(".photo img").get_attribute("src"))
    sizes = {(tmp_path / place / "picture.png").stat().st_size for place in ("first", "second")}
    assert len(sizes) == 1


def test_what_was_not_read_is_seen(page: Page, server: Server) -> None:
    """The model takes twelve letters."""
    page.goto(f"{server.url}/#model=model&text={'abcd' * 3}dcba")
    rest = page.locator('.words[data-side="source"] .unread').first
    expect(rest).to_have_text("dcba")
    assert rest.get_attribute("data-tip") == "not read: the model takes 12 tokens at most"
    assert page.locator('.words[data-side="source"] .token.sign').first.inner_text() == "<end>"
    page.fill("#text", "abcd")
    expect(page.locator(".unread")).to_have_count(0)


def test_without_a_folder_the_lesson_is_served(page: Page, start: Callable[..., Server]) -> None:
    server, lesson = start(), kept.read()
    assert lesson is not None
    assert any("the lesson alone is served" in line for line in server.lines)
    page.goto(server.url)
    expect(page.locator(".lesson h1")).to_have_text(lesson["pages"][0]["title"], timeout=60_000)
    assert httpx.get(f"{server.url}/v1/models").json() == {"models": [], "lesson": True}
    assert httpx.get(f"{server.url}/readyz").status_code == 200
    asked = httpx.post(f"{server.url}/v1/run", json={"texts": [lesson["example"]]}, timeout=60).json()
    assert asked["model"] == f"{kept.PREFIX}{lesson['pages'][0]['name']}"
    assert len(asked["results"]) == 1
    assert server.end() == 0
