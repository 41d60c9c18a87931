"""Nothing in, docs/pictures/*.png out: trains small models, serves them, and takes a picture of every view of the page.

python -m docs.pictures [FOLDER]     models that are in FOLDER already are not trained again
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

import regard
from regard.data.builtin import generate, write
from regard.data.images import png

HERE = Path(__file__).resolve().parent
OUT = HERE / "pictures"
CHROMIUM = "/usr/bin/chromium"
DATE = "Saturday 9th of May, 2018"
REQUEST = "ring grandmother up at quarter to ten"
COLOURS = 256  # of a picture: it stays small, and nobody sees the difference
MOST = 150_000  # bytes of one
TALLEST = 2400  # pixels: what stands below of a long page is left out


@dataclass(frozen=True)
class Recipe:
    """One model: the built-in task it learns, and the settings that make it learn in a minute or less."""

    task: str
    count: int
    steps: int
    preset: str | None = None
    kind: str | None = None
    words: tuple[str, ...] = ()


RECIPES = {
    "dates": Recipe("dates", 4000, 600, "rnn-attention"),
    "dates-transformer": Recipe("dates", 4000, 800, "transformer", words=("encoder.width=64", "decoder.width=64")),
    "intents": Recipe("intents", 800, 120, words=("head.pool=attention",)),
    "slots": Recipe("slots", 800, 200),
    "holes": Recipe("intents", 1500, 400, "encoder", "fill", ("data.source=1", "tokens.source=words")),
    "near": Recipe("paraphrases", 2000, 500, kind="embed", words=("tokens.source=words", "tokens.target=words")),
    "captions": Recipe("captions", 3000, 1200, "caption"),
}  # fmt: skip


def train(folder: Path) -> None:
    """Every model that is not there yet."""
    for name, recipe in RECIPES.items():
        if (folder / name / "manifest.json").exists():
            continue
        print(f"training {name}", file=sys.stderr)
        file = folder / f"{name}-data" / "data.tsv"
        file.parent.mkdir(parents=True, exist_ok=True)
        write(recipe.task, recipe.count, file)
        words = [f"train.steps={recipe.steps}", f"train.validate_steps={recipe.steps // 4}", *recipe.words]
        regard.train(file, out=folder / name, preset=recipe.preset, settings=words, task=recipe.kind)


# ── a server and a browser ───────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of all the models."""
    words = [sys.executable, "-m", "regard", "serve", *(str(folder / name) for name in RECIPES), "--port", "0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=HERE.parent) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if line.startswith("serving at "))
        yield line.split()[2]
        process.terminate()


Steps = Callable[[Page], None]


def nothing(page: Page) -> None:
    page.wait_for_selector(".words [data-index]")


def click(*places: str) -> Steps:
    """Clicks one after the other, each as soon as it is there."""

    def steps(page: Page) -> None:
        nothing(page)
        for place in places:
            page.locator(place).first.click()

    return steps


def lines(page: Page) -> None:
    page.fill("#lines", "\n".join(source for source, _ in generate("paraphrases", 12).rows))
    page.wait_for_selector("[data-hit]")


def picture(page: Page) -> None:
    """A picture that no model has seen, put where pictures are chosen, and its second word pinned."""
    images = generate("captions", 6, 0, "test").images
    assert images is not None
    data = png(images[3].transpose(2, 0, 1).astype("float32") / 255)
    page.set_input_files("#picture", {"name": "shapes.png", "mimeType": "image/png", "buffer": data})
    page.locator(".frame").nth(2).click()


def erase(page: Page) -> None:
    click('[data-token="source-17"]', "#erase-word")(page)
    page.wait_for_selector("#changed:not(:empty)")


@dataclass(frozen=True)
class View:
    """One view: the state that its address names, what is done there, and in which forms its picture is taken."""

    address: str
    steps: Steps = nothing
    forms: tuple[str, ...] = ("1280-light", "390-light")


EVERY = ("1280-light", "1280-dark", "390-light", "390-dark")


def look(model: str, text: str, more: str = "") -> str:
    return f"#model={model}&text={quote(text)}{more}"


VIEWS = {
    "look": View(look("dates", DATE), click('[data-token="target-6"]'), EVERY),
    "heads": View(look("dates-transformer", DATE), click('[data-head="decoder.1.cross/1"]', '[data-token="target-6"]'),
                  ("1280-light", "1280-dark", "390-light")),
    "self": View(look("dates-transformer", DATE), click('[data-head="encoder.0.self/0"]', '[data-token="source-17"]')),
    "beam": View(look("dates", "1/2/03", "&beam=5"), click('[data-token="target-5"]'), ("1280-light", "390-dark")),
    "what-if": View(look("dates", DATE), erase, ("1280-light", "1280-dark", "390-light")),
    "erasure": View(look("dates", DATE), click('[data-view="erasure"]', '[data-token="target-6"]')),
    "compare": View(look("dates", DATE, "&model=dates-transformer"), click('[data-token="target-6"]'), EVERY[:3]),
    "class": View(look("intents", REQUEST)),
    "tags": View(look("slots", REQUEST), forms=("1280-light", "390-dark")),
    "fill": View(look("holes", "wake me at [mask] on [mask]")),
    "search": View(look("near", "ring the plumber up when it is quarter to ten"), lines),
    "caption": View("#model=captions", picture, ("1280-light", "1280-dark", "390-light")),
    "lesson": View("#tab=lesson&page=rnn-attention", forms=EVERY[:3]),
}  # fmt: skip


def shoot(browser: Browser, address: str, name: str, view: View) -> None:
    """The picture of one view in each of its forms."""
    for form in view.forms:
        width, scheme = form.split("-")
        context = browser.new_context(viewport={"width": int(width), "height": 800}, color_scheme=scheme)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.goto(address + view.address)
        view.steps(page)
        page.mouse.move(2, 2)
        page.wait_for_timeout(700)  # what costs more is asked for when typing has rested
        page.wait_for_function("() => !document.querySelector('.flight.busy')")
        page.set_viewport_size({"width": int(width), "height": min(TALLEST, height(page))})
        page.wait_for_timeout(100)
        save(page.screenshot(), OUT / f"{name}-{form}.png")
        context.close()


def height(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollHeight"))


def save(content: bytes, path: Path) -> None:
    """In few colours; a page is paper, ink and one hue."""
    image = Image.open(BytesIO(content)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    image.save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size:,} bytes, {image.width} × {image.height}", file=sys.stderr)
    assert path.stat().st_size <= MOST, f"{path} is larger than {MOST:,} bytes"


def main(folder: Path) -> None:
    train(folder)
    OUT.mkdir(exist_ok=True)
    with served(folder) as address, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for name, view in VIEWS.items():
            shoot(browser, address, name, view)
        report = (folder / "dates" / "report.html").as_uri()
        shoot(browser, report, "report", View("", forms=("1280-light", "390-dark")))
        browser.close()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
