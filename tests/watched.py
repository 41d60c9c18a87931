"""A browser for tests, and a page in it that tells all that it should not have done."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import Browser, Page, Request, sync_playwright

PAYLOADS = ["<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "\"'><svg onload=alert(1)>",
            "javascript:alert(1)", "{{7*7}}${7*7}", "\u202etxt.exe\u0000"]  # fmt: skip


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as play:
        words = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=words)
        yield browser
        browser.close()


@dataclass
class Watched:
    """A page and all that it should not have done: errors, dialogs, requests to elsewhere than `origin`."""

    page: Page
    origin: str = "file:"
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(10_000)
        self.page.on("console", lambda said: self.wrong.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.wrong.append(f"dialog {dialog.message}"), dialog.dismiss()))
        self.page.on("request", self.request)

    def request(self, request: Request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:", self.origin)):
            self.wrong.append(f"request {request.url}")


def drawn(page: Page) -> None:
    """Waits until what was asked for last has been drawn."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def weights(page: Page, line: str, panel: int = 0) -> list[float]:
    """What the tokens of a line carry, once what was asked for last has been drawn."""
    drawn(page)
    found = page.locator(f'.words[data-side="{line}"][data-panel="{panel}"] [data-index]')
    return [float(value) for value in found.evaluate_all("all => all.map(one => one.dataset.weight)")]


def wait_for_output(page: Page, text: str) -> None:
    page.wait_for_function(
        """text => text === [...document.querySelectorAll('#output [data-index]:not(.sign)')]
            .map(one => one.textContent).join('')""",
        arg=text,
    )


def settled(page: Page) -> None:
    """Nothing is asked for any more: what is drawn stays where it is, and a click finds what it was meant for."""
    page.wait_for_function("() => !document.querySelector('.flight.busy')")
