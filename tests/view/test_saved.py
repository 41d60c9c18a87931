"""Records that `regard look -o x.html` saved, opened from a file with the network cut: drawn, and nothing asked for."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Route, expect
from typer.testing import CliRunner

from regard.cli import app
from regard.trained import Trained
from tests.watched import Watched

PRESETS = ("rnn-single", "rnn", "rnn-context", "rnn-attention", "conv", "attention-encoder", "transformer", "decoder",
           "encoder", "caption")  # fmt: skip
WITHOUT = ("rnn-single", "rnn", "rnn-context")  # presets in which nothing looks at anything


def question(preset: str, folder: Path) -> str:
    """What a preset is asked: a text, a text with a hole, or the path of a picture."""
    if preset == "caption":
        Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3)).save(folder / "picture.png")
        return str(folder / "picture.png")
    return "ab[mask]d" if preset == "encoder" else "abca"


@pytest.mark.parametrize("preset", PRESETS)
def test_a_saved_record_needs_nothing_but_itself(
    preset: str, browser: Browser, small_model: Callable[..., Trained], tmp_path: Path
) -> None:
    small_model(preset).save(tmp_path / preset)
    file = tmp_path / "look.html"
    words = ["look", str(tmp_path / preset), question(preset, tmp_path), "--derive", "-o", str(file)]
    assert CliRunner().invoke(app, words).exit_code == 0
    context = browser.new_context(offline=True)
    watched = Watched(context.new_page())

    def only_itself(route: Route) -> None:
        if route.request.url.split("#")[0] == file.as_uri():
            return route.continue_()
        watched.wrong.append(f"request {route.request.url}")
        return route.abort()

    context.route("**/*", only_itself)
    watched.page.goto(file.as_uri())
    expect(watched.page.locator(".sheet .heading")).to_contain_text(preset)
    assert watched.page.locator("[data-token]").count() > 0
    if preset in WITHOUT:
        assert watched.page.locator("[data-head]").count() == 0
        watched.page.click('[data-view="erasure"]')
    else:
        watched.page.locator("[data-head]").last.click()
    expect(watched.page.locator(".heatmap .cell").first).to_be_visible()
    assert watched.wrong == []
    context.close()
