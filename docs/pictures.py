"""Nothing in, docs/pictures/*.png and docs/gallery.md out: small models are trained and served, every view is taken.

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
from playwright.sync_api import Browser, FloatRect, Page, sync_playwright

import regard
from regard.data.builtin import generate, write
from regard.data.images import png

HERE = Path(__file__).resolve().parent
OUT = HERE / "pictures"
CHROMIUM = "/usr/bin/chromium"
DATE = "Saturday 9th of May, 2018"
REQUEST = "ring grandmother up at quarter to ten"
COLOURS = 256  # of a picture: it stays small, and nobody sees the difference
MOST = 120_000  # bytes of one
MOST_ALL = 6_000_000  # … and of all
TALLEST = 3400  # pixels: what stands below of a long page is left out
FORMS = ("1280-light", "1280-dark", "390-light", "390-dark")


@dataclass(frozen=True)
class Recipe:
    """One model: the built-in task it learns, and the settings that make it learn in a minute or less."""

    task: str
    count: int
    steps: int
    preset: str | None = None
    kind: str | None = None
    words: tuple[str, ...] = ()
    ending: str = "tsv"


RECIPES = {
    "dates": Recipe("dates", 4000, 600, "rnn-attention"),
    "dates-transformer": Recipe("dates", 4000, 800, "transformer", words=("encoder.width=64", "decoder.width=64")),
    "intents": Recipe("intents", 800, 120, words=("head.pool=attention",)),
    "slots": Recipe("slots", 800, 200),
    "holes": Recipe("intents", 1500, 400, "encoder", "fill", ("data.source=1", "tokens.source=words")),
    "near": Recipe("paraphrases", 2000, 500, kind="embed", words=("tokens.source=words", "tokens.target=words")),
    "captions": Recipe("captions", 3000, 1200, "caption"),
    "story": Recipe("story", 3000, 600, "decoder", "generate", ("decoder.width=96",), "txt"),
    "answers": Recipe("questions", 6000, 1500, "encoder", "extract", (
        "data.source=context,question", "data.target=answer", "tokens.source=bpe")),
}  # fmt: skip


def train(folder: Path) -> None:
    """Every model that is not there yet."""
    for name, recipe in RECIPES.items():
        if (folder / name / "manifest.json").exists():
            continue
        print(f"training {name}", file=sys.stderr)
        file = folder / f"{name}-data" / f"data.{recipe.ending}"
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
    page.locator("#lines").evaluate("one => { one.blur(); one.scrollTop = 0; }")


def picture(page: Page) -> None:
    """A picture that no model has seen, put where pictures are chosen, and its second word pinned."""
    images = generate("captions", 6, 0, "test").images
    assert images is not None
    data = png(images[3].transpose(2, 0, 1).astype("float32") / 255)
    page.set_input_files("#picture", {"name": "shapes.png", "mimeType": "image/png", "buffer": data})
    page.locator(".frame").nth(2).click()


def change(page: Page) -> None:
    """Three things at once: a word erased, another replaced, and the first token forced."""
    click('[data-token="source-2"]', "#erase-word")(page)
    page.wait_for_selector('[data-side="source"] .erased')
    page.click('[data-token="source-8"]')  # without what was erased, the month begins here
    page.fill("#replace", "July,")
    page.press("#replace", "Enter")
    page.wait_for_selector('[data-side="source"] .differs')
    click('[data-token="target-0"]', ".alternatives li:nth-child(2) button")(page)
    page.wait_for_function("() => document.querySelectorAll('#changed mark').length > 2")
    page.click('[data-token="target-6"]')


@dataclass(frozen=True)
class View:
    """One view: what is said of it, the state that its address names, what is done there, what of it is seen."""

    said: str
    address: str = ""
    steps: Steps = nothing
    report: str = ""  # the model whose report is seen, instead of the page that is served
    sections: tuple[str, ...] = ()  # the first and the last part of the page that are seen; none = all


def look(model: str, text: str, more: str = "") -> str:
    return f"#model={model}&text={quote(text)}{more}"


STORY, QUESTION, _ = generate("questions", 1, 3, "test").rows[0]
VIEWS = {
    "look": View("A date as it is typed, its answer, and where the chosen token of it looked.",
                 look("dates", DATE), click('[data-token="target-6"]')),
    "heads": View("A Transformer: every head small, one of them chosen and seen large.",
                  look("dates-transformer", DATE), click('[data-head="decoder.1.cross/1"]', '[data-token="target-6"]')),
    "self": View("Self-attention: a letter of the source, and the letters it looked at.",
                 look("dates-transformer", DATE), click('[data-head="encoder.1.self/3"]', '[data-token="source-22"]')),
    "beam": View("A date that can be read in two ways: the beam as a tree, and the alternatives of a step.",
                 look("dates", "1/2/03", "&beam=5"), click('[data-token="target-5"]')),
    "what-if": View("What if: a word erased, another replaced, a token forced; all in one run, and each undone singly.",
                    look("dates", DATE), change),
    "erasure": View("What counted, by erasing: the log probability that each letter of the source is worth.",
                    look("dates", DATE), click('[data-view="erasure"]', '[data-token="target-6"]')),
    "compare": View("Two models on the same date, and the same place of it chosen in both.",
                    look("dates", DATE, "&model=dates-transformer"), click('[data-token="target-6"]')),
    "class": View("A class for a text: bars of probability, and the words that the pooling looked at.",
                  look("intents", REQUEST), click('[data-token="target-0"]')),
    "tags": View("A label for each word, and the words that the chosen label rests on.",
                 look("slots", REQUEST, "&view=erasure"), click('[data-target="1"]')),
    "fill": View("Holes filled, and what else could stand there.", look("holes", "wake me at [mask] on [mask]")),
    "extract": View("A question answered by a piece of the text: where it begins, where it ends.",
                    look("answers", f"{STORY}\t{QUESTION}")),
    "search": View("The nearest lines for a text, and the words that carry its vector and each match.",
                   look("near", "ring the plumber up when it is quarter to ten"), lines),
    "caption": View("A picture described: the places that the chosen word looked at, and a small frame for each word.",
                    "#model=captions", picture),
    "generate": View("A text that goes on from a prompt: what each token looked back at.",
                     look("story", "sven: wake me at "), click('[data-token="target-3"]')),
    "lesson": View("The lesson: one example through ten systems; this is the fourth.",
                   "#tab=lesson&page=rnn-attention"),
    "report": View("The report of a training: scores with intervals, curves, lengths, exposure, best and worst.",
                   report="dates", sections=(".masthead", '[data-section="best-and-worst"]')),
    "doctor": View("Further down in the report: what fails, and what the data doctor says of the training file.",
                   report="dates-transformer", sections=('[data-section="what-fails"]', '[data-section="data"]')),
}  # fmt: skip


def shoot(browser: Browser, address: str, name: str, view: View) -> None:
    """The picture of one view in each of its forms."""
    for form in FORMS:
        width, scheme = form.split("-")
        context = browser.new_context(viewport={"width": int(width), "height": 800}, color_scheme=scheme)
        page = context.new_page()
        page.set_default_timeout(120_000)  # a machine may have other things to do
        page.goto(address)
        view.steps(page)
        page.mouse.move(2, 2)
        page.wait_for_timeout(700)  # what costs more is asked for when typing has rested
        page.wait_for_function("() => !document.querySelector('.flight.busy')")
        page.set_viewport_size({"width": int(width), "height": height(page)})
        page.wait_for_timeout(500)  # what sticks to the edge of the window is drawn anew
        save(page.screenshot(clip=seen(page, int(width), view)), OUT / f"{name}-{form}.png")
        context.close()


def seen(page: Page, width: int, view: View) -> FloatRect:
    """The part of the page that is in the picture: from its top, or from one section to another."""
    top, bottom = 0.0, float(height(page))
    if view.sections:
        first, last = (page.locator(place).first.bounding_box() for place in view.sections)
        assert first is not None
        assert last is not None
        top, bottom = first["y"], last["y"] + last["height"]
    return {"x": 0, "y": top, "width": width, "height": min(TALLEST, bottom - top)}


def height(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollHeight"))


def save(content: bytes, path: Path) -> None:
    """In few colours; a page is paper, ink and one hue."""
    image = Image.open(BytesIO(content)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    image.save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size:,} bytes, {image.width} × {image.height}", file=sys.stderr)
    assert path.stat().st_size <= MOST, f"{path} is larger than {MOST:,} bytes"


def gallery() -> str:
    """The page that shows every picture that is there, each view with its line."""
    parts = ["# Every view of the page\n\nMade by `make pictures` with small models that it trains in minutes; each "
             "view at 1280 and at 390 pixels, light and dark.\n"]  # fmt: skip
    for name, view in VIEWS.items():
        files = [f"{name}-{form}.png" for form in FORMS]
        shown = [f"![{file.removesuffix('.png')}](pictures/{file})" for file in files if (OUT / file).exists()]
        if shown:
            parts.append(f"\n## {name}\n\n{view.said}\n\n{' '.join(shown)}\n")
    return "".join(parts)


def main(folder: Path) -> None:
    train(folder)
    OUT.mkdir(exist_ok=True)
    with served(folder) as address, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for name, view in VIEWS.items():
            file = (folder / view.report / "report.html").as_uri()
            shoot(browser, file if view.report else address + view.address, name, view)
        browser.close()
    (HERE / "gallery.md").write_text(gallery(), encoding="utf-8")
    total = sum(path.stat().st_size for path in OUT.iterdir())
    assert total <= MOST_ALL, f"{OUT}: {total:,} bytes, expected at most {MOST_ALL:,}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
