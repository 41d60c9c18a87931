"""The page in a real browser: record, report and lesson as files, and the live page against made-up answers."""

import base64
import re
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, Route, expect

import regard
from regard.view import html
from tests.view.made import SHAPES, Json, lesson, made, report
from tests.watched import PAYLOADS, Watched, drawn, settled, wait_for_output, weights

PAGE = Path(regard.__file__).parent / "view" / "page"
DATE = "Saturday 9th of May, 2018"
TEXTS = {"answers": "Where is the tower?\tThe tower stands in Paris.", "holes": "the <mask> runs through <mask>",
         "names": "Ada went to Paris", "pictures": "disc.png"}  # fmt: skip
ORIGIN = "http://regard.test"
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'"


@pytest.fixture
def watched(browser: Browser) -> Iterator[Watched]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    watched = Watched(context.new_page(), ORIGIN)
    yield watched
    assert watched.wrong == []
    context.close()


def saved(data: Json, folder: Path) -> str:
    """A file that holds the page and its data; gives its address."""
    file = folder / "page.html"
    file.write_text(html.page(data, "a page"), encoding="utf-8")
    return file.as_uri()


def alignment(record: Json) -> np.ndarray:
    crossing = [np.mean(map["weights"], 0) for map in record["maps"] if map["keys"] == "source" != map["queries"]]
    return np.asarray(np.mean(crossing, 0))


# ── a record in a file ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", SHAPES)
def test_each_task_is_drawn_from_a_file_and_fits_every_width(name: str, watched: Watched, tmp_path: Path) -> None:
    address = saved(made(name, TEXTS.get(name, DATE)), tmp_path)
    page = watched.page
    for width in (1280, 390):
        for scheme in ("light", "dark"):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            page.goto(address)
            expect(page.locator(".sheet h2").first).to_have_text(name)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert page.locator(".words [data-index]").count() > 0


def test_a_word_that_is_clicked_shows_the_weights_of_the_record(watched: Watched, tmp_path: Path) -> None:
    record = made("dates-transformer", DATE)
    watched.page.goto(saved(record, tmp_path))
    expected = alignment(record)
    for step in (0, 4):
        watched.page.click(f'[data-token="target-{step}"]')
        np.testing.assert_allclose(weights(watched.page, "source"), expected[step], atol=1e-6)
    watched.page.click('[data-token="source-7"]')
    np.testing.assert_allclose(weights(watched.page, "target"), expected[:, 7], atol=1e-6)


@pytest.mark.parametrize("packed", [False, True])
def test_a_head_that_is_clicked_becomes_the_heat_map(packed: bool, watched: Watched, tmp_path: Path) -> None:
    watched.page.goto(saved(made("dates-transformer", DATE, packed=packed), tmp_path))
    watched.page.click('[data-head="decoder.1.cross/2"]')
    expect(watched.page.locator(".heatmap .title")).to_contain_text("decoder.1.cross · head 2")
    cells = watched.page.locator(".heat .cell").evaluate_all("all => all.map(one => Number(one.dataset.weight))")
    expected = next(
        map["weights"] for map in made("dates-transformer", DATE)["maps"] if map["name"] == "decoder.1.cross"
    )
    np.testing.assert_allclose(cells, np.ravel(expected[2]), atol=1e-6)
    watched.page.wait_for_url(re.compile("decoder.1.cross"))


def test_a_head_that_is_off_looked_at_nothing(watched: Watched, tmp_path: Path) -> None:
    page = watched.page
    page.goto(saved(made("dates", DATE, {"erase": [], "off": [["decoder.0.cross", 0]], "begin": []}), tmp_path))
    page.click('[data-token="target-1"]')
    assert set(weights(page, "source")) == {0}
    assert page.locator("path.thread").count() == 0
    expect(page.locator(".heatmap .title")).to_contain_text("switched off")
    expect(page.locator(".readout")).to_have_text("“\u20680\u2069” looked at nothing: switched off")
    record = made("dates-transformer", DATE, {"erase": [], "off": [["decoder.1.cross", 2]], "begin": []})
    page.goto(saved(record, tmp_path))
    page.reload()
    crossing = [map["weights"] for map in record["maps"] if map["name"].endswith("cross")]
    expected = np.mean([np.mean(crossing[0], 0), np.mean(np.delete(crossing[1], 2, 0), 0)], 0)
    page.click('[data-token="target-1"]')
    np.testing.assert_allclose(weights(page, "source"), expected[1], atol=1e-6)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_picture_is_veiled_alike_on_light_and_dark_pages(scheme: str, watched: Watched, tmp_path: Path) -> None:
    watched.page.emulate_media(color_scheme=scheme)
    record = made("pictures", "disc.png")
    watched.page.goto(saved(record, tmp_path))
    watched.page.click(".frame >> nth=1")
    drawn(watched.page)
    looked = alignment(record)[1]
    least, most = int(looked.argmin()), int(looked.argmax())
    pixel = """place => {
        const veil = document.querySelector('.photo canvas'), size = veil.width / 6;
        const [x, y] = [(place % 6 + 0.5) * size, (Math.floor(place / 6) + 0.5) * size];
        return [...veil.getContext('2d').getImageData(x, y, 1, 1).data];
    }"""
    *grey, alpha = watched.page.evaluate(pixel, least)
    assert max(grey) - min(grey) < 16
    assert 80 < min(grey) < 140
    assert alpha > 150
    assert watched.page.evaluate(pixel, most)[3] == 0


def test_lines_of_wrapped_text_pass_behind_it(watched: Watched, tmp_path: Path) -> None:
    page = watched.page
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto(saved(made("wide", "the quick brown fox jumps over a lazy dog and another one"), tmp_path))
    expect(page.locator(".readout")).to_have_text("point at a word, and its lines are drawn")
    assert page.locator("path.thread").count() == 0
    page.click('[data-token="target-1"]')
    page.wait_for_selector("path.thread")
    clear = "all => all.filter(one => /, 0\\)|transparent|\\/ 0/.test(getComputedStyle(one).backgroundColor)).length"
    assert page.locator(".words .token:not(.blank)").evaluate_all(clear) == 0
    between = page.evaluate("""() => {
        const [output, source] = [...document.querySelectorAll('.words')].map(one => one.getBoundingClientRect());
        return [...document.querySelectorAll('.strand .side')].filter(one => {
            const { top, bottom } = one.getBoundingClientRect();
            return top > output.bottom && bottom < source.top;
        }).length;
    }""")
    assert between == 0


def test_what_can_not_be_written_is_not_offered(watched: Watched, tmp_path: Path) -> None:
    record = made("dates", DATE)
    signs = [{"text": "<pad>", "id": 0, "probability": 0.0}, {"text": "<class>", "id": 6, "probability": 0.0}]
    record["alternatives"][0] += [*signs, {"text": "<end>", "id": 2, "probability": 0.0}]
    watched.page.goto(saved(record, tmp_path))
    shown = watched.page.locator(".alternatives .name").all_text_contents()
    assert "<end>" in shown
    assert not {"<pad>", "<class>"} & set(shown)


def test_a_text_that_goes_on_has_no_confidence_of_the_whole(watched: Watched, tmp_path: Path) -> None:
    record = made("tale", "once")
    watched.page.goto(saved(record, tmp_path))
    a_token = float(np.exp(np.mean(np.log(record["probabilities"]))))
    expect(watched.page.locator(".confidence")).to_have_text(f"probability a token {a_token:.3f}")


OVERLAPPING = """all => {
    const boxes = all.filter(one => one.textContent).map(one => one.getBoundingClientRect());
    const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
    return boxes.flatMap((a, i) => boxes.slice(i + 1).filter(b => !apart(a, b))).length;
}"""


@pytest.mark.parametrize("width", [1280, 390])
def test_a_caption_has_all_its_rows_named(width: int, watched: Watched, tmp_path: Path) -> None:
    watched.page.set_viewport_size({"width": width, "height": 900})
    record = made("pictures", "disc.png")
    watched.page.goto(saved(record, tmp_path))
    rows = watched.page.locator(".heatmap .row-label").all_text_contents()
    assert rows == [token["text"] for token in record["target"]]
    assert watched.page.locator(".heatmap .column-label").evaluate_all(OVERLAPPING) == 0


def test_steps_stay_in_their_place(watched: Watched, tmp_path: Path) -> None:
    page = watched.page
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto(saved(made("dates-vector", "the quick brown fox jumps over a lazy dog " * 4), tmp_path))
    buttons = ".player button:not(.bar), .strip"
    edges = "all => all.map(one => one.getBoundingClientRect()).map(box => [box.left, box.right, box.top, box.bottom])"
    *others, strip = sorted(page.locator(buttons).evaluate_all(edges), key=lambda box: box[2])
    assert strip[1] <= 390
    assert all(box[3] <= strip[2] for box in others)
    bars = page.locator(".strip .bar").evaluate_all(edges)
    assert max(box[1] for box in bars) <= strip[1] + 1


def test_self_attention_goes_from_word_to_word(watched: Watched, tmp_path: Path) -> None:
    record = made("dates-transformer", DATE)
    watched.page.goto(saved(record, tmp_path))
    watched.page.click('[data-head="encoder.0.self/1"]')
    watched.page.click('[data-token="source-3"]')
    looked = watched.page.locator("[data-copy]").evaluate_all("all => all.map(one => Number(one.dataset.weight))")
    np.testing.assert_allclose(looked, record["maps"][0]["weights"][1][3], atol=1e-6)
    assert watched.page.locator("path.thread").count() > 0


def test_what_was_derived_is_shown_and_doubt_is_said(watched: Watched, tmp_path: Path) -> None:
    record = made("dates", DATE)
    watched.page.goto(saved(record, tmp_path))
    expect(watched.page.locator(".agreement")).to_contain_text("agree little here (ρ = 0.12)")
    for view in ("rollout", "gradient", "erasure"):
        watched.page.click(f'[data-view="{view}"]')
        watched.page.click('[data-token="target-1"]')
        np.testing.assert_allclose(weights(watched.page, "source"), record["derived"][view][1], atol=1e-6)
        watched.page.keyboard.press("Escape")
    assert "entropy" in (watched.page.locator("[data-head]").first.get_attribute("aria-label") or "")


def test_without_attention_it_says_so(watched: Watched, tmp_path: Path) -> None:
    watched.page.goto(saved(made("dates-vector", DATE), tmp_path))
    expect(watched.page.locator(".agreement")).to_contain_text("no attention: everything went through one vector")
    watched.page.click('[data-view="erasure"]')
    expect(watched.page.locator(".heatmap .cell").first).to_be_visible()


def test_offsets_count_code_points_and_text_keeps_its_direction(watched: Watched, tmp_path: Path) -> None:
    record = made("dates", "😀 ٩ مايو 𝒳")
    watched.page.goto(saved(record, tmp_path))
    shown = watched.page.locator('.words[data-side="source"] [data-index]').all_text_contents()
    assert shown == [token["text"] for token in record["source"]]
    direction = "one => getComputedStyle(one).direction"
    assert watched.page.locator('.words[data-side="source"]').evaluate(direction) == "rtl"
    assert watched.page.locator('.words[data-side="source"]').inner_text().replace("\n", "") == record["text"]


def test_the_keyboard_is_enough(watched: Watched, tmp_path: Path) -> None:
    record = made("dates-transformer", DATE)
    page = watched.page
    page.goto(saved(record, tmp_path))
    page.locator("#output").wait_for()
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.token") == "target-0":
            break
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.token") == "target-2"
    page.wait_for_selector('[data-token="target-2"].chosen')
    np.testing.assert_allclose(weights(page, "source"), alignment(record)[2], atol=1e-6)
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("at=target-2"))
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.token").startswith("source-")
    page.keyboard.press("Escape")
    page.wait_for_function("() => !location.hash.includes('at=')")
    page.focus("svg.heat")
    for key in ("ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    page.wait_for_selector("svg.heat[data-weight]")


def test_the_address_names_the_view(watched: Watched, tmp_path: Path) -> None:
    address = saved(made("dates-transformer", DATE), tmp_path)
    watched.page.goto(f"{address}#view=attention&map=decoder.0.cross/1&at=target-3-query-0-&theme=dark")
    expect(watched.page.locator(".heatmap .title")).to_contain_text("decoder.0.cross · head 1")
    expect(watched.page.locator('[data-token="target-3"]')).to_have_class(re.compile("chosen"))
    assert watched.page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_steps_can_be_gone_through(watched: Watched, tmp_path: Path) -> None:
    watched.page.goto(saved(made("dates", DATE), tmp_path))
    watched.page.click('[data-step="on"]')
    watched.page.click('[data-step="on"]')
    expect(watched.page.locator(".alternatives .hint")).to_have_text("step 2 of 11")
    assert watched.page.locator('[data-side="target"] .later').count() == 9
    grown = watched.page.locator(".beam .node").count()
    watched.page.click('[data-step="whole"]')
    watched.page.wait_for_function(f"() => document.querySelectorAll('.beam .node').length > {grown}")


def test_pictures_are_saved(watched: Watched, tmp_path: Path) -> None:
    watched.page.goto(saved(made("dates-transformer", DATE), tmp_path))
    watched.page.click('[data-token="target-2"]')
    for name in ("lines", "heat map", "heads", "steps", "everything"):
        watched.page.click("#save")
        with watched.page.expect_download() as download:
            watched.page.click(f'[data-save="{name}.svg"]')
        tree = ElementTree.parse(download.value.path())
        words = {"".join(one.itertext()) for one in tree.iter("{http://www.w3.org/2000/svg}text")}
        assert words
        assert not {"play", "whole", "▶", "erasure", "mean of all"} & words  # nothing that could be pressed
        if name == "lines":
            assert float(tree.getroot().attrib["width"]) < 1000  # as wide as the text, not as the page
            assert "S" in words
            assert len(list(tree.iter("{http://www.w3.org/2000/svg}path"))) > 3
    watched.page.click("#save")
    with watched.page.expect_download() as download:
        watched.page.click('[data-save="heat map.png"]')
    assert download.value.path().read_bytes().startswith(b"\x89PNG")


WORK = ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
MOVES = """async () => {
    for (let index = 2; index < 18; index++) {
        const word = document.querySelector(`[data-token="target-${index}"]`);
        word.dispatchEvent(new PointerEvent("pointerover", {bubbles: true, pointerType: "mouse"}));
        await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    }
}"""


def work_of_moving(page: Page) -> float:
    """Processor time that the page takes while the pointer goes over its words."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def worked() -> float:
        metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        return float(sum(metrics[name] for name in WORK))

    page.evaluate(MOVES)
    before = worked()
    page.evaluate(MOVES)
    return worked() - before


def test_two_hundred_tokens_and_eight_heads_stay_smooth(watched: Watched, tmp_path: Path) -> None:
    """Ten times the tokens are a hundred times the weights; following the pointer may not cost so much more."""
    times = []
    for length in (20, 200):
        text = ("the quick brown fox jumps over a lazy dog " * 5)[:length]
        watched.page.goto(saved(made("wide", text, packed=True, derive=False), tmp_path))
        expect(watched.page.locator(f'[data-token="target-{length - 1}"]')).to_be_visible()
        assert watched.page.locator(".stage canvas.cells").count() == (length > 64)
        times.append(work_of_moving(watched.page))
    assert times[1] < 25 * times[0], times


@pytest.mark.parametrize("payload", PAYLOADS)
def test_what_looks_like_markup_stays_text(payload: str, watched: Watched, tmp_path: Path) -> None:
    record = made("dates", f"{payload} 9 May 2018")
    for token in [*record["source"], *record["target"]]:
        token["text"] = payload
    for alternative in record["alternatives"]:
        alternative[0]["text"] = payload
    record["model"] = {"name": payload, "task": "transduce", "preset": payload, "parameters": 1}
    record["maps"][0]["name"] = payload
    for node in record["beam"]:
        node["token"] = payload
    watched.page.goto(saved(record, tmp_path))
    watched.page.locator("#output").wait_for()
    watched.page.click('[data-token="target-0"]')
    assert watched.page.locator("img, #page script, [onload], [onerror]").count() == 0
    assert payload.split("\u0000")[0] in (watched.page.locator(".sheet h2").text_content() or "")


# ── report and lesson ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("width", [1280, 390])
def test_the_report_has_all_its_chapters(width: int, watched: Watched, tmp_path: Path) -> None:
    watched.page.set_viewport_size({"width": width, "height": 900})
    watched.page.goto(saved(report(), tmp_path))
    chapters = watched.page.locator("[data-section]").evaluate_all("all => all.map(one => one.dataset.section)")
    assert set(chapters) == {
        "scores",
        "curves",
        "by-length",
        "exposure",
        "confusion",
        "calibration",
        "best-and-worst",
        "what-fails",
        "data",
        "card",
    }
    assert watched.page.locator('[data-score="exact"]').get_attribute("data-value") == "97.5"
    expect(watched.page.locator('[data-score="exact"]')).to_contain_text("96.2 … 98.6")
    assert watched.page.locator(".whisker").count() == 5
    expect(watched.page.locator(".prose td").nth(1)).to_have_text("97.5 nrefs:1|case:mixed")
    assert len((watched.page.locator(".prose pre").last.text_content() or "").splitlines()) == 3
    for chart in watched.page.locator(".chart").all():
        assert chart.locator(".tick, .axis").evaluate_all(OVERLAPPING) == 0
    assert watched.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    watched.page.select_option("#example", "4")
    wait_for_output(watched.page, "2015-06-05")
    watched.page.wait_for_url(re.compile("example=4"))


@pytest.mark.parametrize("width", [1280, 390])
def test_the_doctor_in_the_report(width: int, watched: Watched, tmp_path: Path) -> None:
    """What stands out is shown with examples and a cure, the rest is folded away; findings have lines and cures."""
    watched.page.set_viewport_size({"width": width, "height": 900})
    watched.page.goto(saved(report(), tmp_path))
    clear, dim = (watched.page.locator(f'[data-cause="{kind} source"]') for kind in ("long", "short"))
    expect(clear).to_contain_text("51.4 %")
    expect(clear).to_contain_text("<b>9 May</b>")
    expect(clear).to_contain_text("Likely cure: add long examples.")
    expect(dim).to_be_hidden()
    watched.page.locator("details.folded summary").click()
    expect(dim).to_be_visible()
    expect(watched.page.locator('[data-rule="nearest neighbour"]')).to_contain_text("4.3")
    expect(watched.page.locator('[data-finding="mojibake"]')).to_contain_text("lines 1, 2, 3, 4, 5 …")
    expect(watched.page.locator('[data-section="data"]')).to_contain_text("On 150 of 300 held-out examples")
    assert watched.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_report_of_an_earlier_version_is_drawn(watched: Watched, tmp_path: Path) -> None:
    old = {name: value for name, value in report().items() if name not in ("failures", "check")}
    watched.page.goto(saved(old, tmp_path))
    expect(watched.page.locator('[data-section="data"]')).to_be_visible()
    assert watched.page.locator('[data-section="what-fails"]').count() == 0


def test_an_error_rate_beyond_all_stays_on_its_line(watched: Watched, tmp_path: Path) -> None:
    score = {"name": "ter", "value": 420.0, "low": 300.0, "high": 500.0, "percent": True, "signature": ""}
    watched.page.goto(saved(report() | {"scores": [score]}, tmp_path))
    expect(watched.page.locator('[data-score="ter"]')).to_contain_text("420.0")
    assert watched.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_axes_fit_what_was_measured(watched: Watched, tmp_path: Path) -> None:
    """One validation has an axis that can be read, and what is between nought and one keeps that axis."""
    given = report()
    metric = given["curves"]["metric"]
    given["curves"]["points"] = [{"step": 600, f"valid_{metric}": 99.0}]
    watched.page.goto(saved(given, tmp_path))
    ticks = watched.page.locator('[data-section="curves"] .tick').all_text_contents()
    assert max(map(len, ticks)) <= 5, ticks
    assert max(map(float, ticks[:-1])) == 100
    assert ticks[-1] == "600"
    sure = watched.page.locator('[data-section="calibration"] .tick').all_text_contents()
    assert {"0.0", "1.0"} <= set(sure), sure


def test_nothing_is_said_of_returning_where_nothing_left(watched: Watched, tmp_path: Path) -> None:
    given = report()
    given["exposure"] |= {"left": 0.0, "returned": None}
    watched.page.goto(saved(given, tmp_path))
    said = watched.page.locator('[data-section="exposure"] p').first
    expect(said).to_contain_text("0.0 % of the outputs leave the true path.")
    expect(said).not_to_contain_text("return")


def test_a_report_without_some_chapters_is_drawn(watched: Watched, tmp_path: Path) -> None:
    gone = {"exposure": None, "confusion": None, "calibration": None, "by_length": None, "records": [], "card": ""}
    none = {"curves": None, "examples": {"best": [], "worst": []}, "data": []}
    bare = report() | gone | none | {"failures": None, "check": None}
    watched.page.goto(saved(bare, tmp_path))
    chapters = watched.page.locator("[data-section]").evaluate_all("all => all.map(one => one.dataset.section)")
    assert chapters == ["scores"]


def test_the_lesson_is_gone_through_by_keys(watched: Watched, tmp_path: Path) -> None:
    given = lesson()
    watched.page.goto(saved(given, tmp_path))
    expect(watched.page.locator(".lesson h1")).to_have_text(given["pages"][0]["title"])
    assert watched.page.locator(".bottleneck").count() == 1
    watched.page.keyboard.press("ArrowRight")
    watched.page.keyboard.press("ArrowRight")
    expect(watched.page.locator(".lesson h1")).to_have_text(given["pages"][2]["title"])
    assert "page=rnn-attention" in watched.page.url
    assert watched.page.locator(".bottleneck:not(.gone)").count() == 0
    assert watched.page.locator(".look").count() > 0
    thick = "all => new Set(all.map(one => getComputedStyle(one).strokeWidth)).size"
    assert watched.page.locator(".look").evaluate_all(thick) == 1
    touching = """drawing => [...drawing.querySelectorAll('.word')].filter(word => word.textContent).some(word => {
        const label = word.getBoundingClientRect();
        return [...drawing.querySelectorAll('circle.step:not(.given)')].map(one => one.getBoundingClientRect())
            .some(({ left, right, top, bottom }) =>
                left < label.right && label.left < right && top < label.bottom - 2 && label.top + 2 < bottom);
    })"""
    assert not watched.page.locator("svg.system").evaluate(touching)
    watched.page.keyboard.press("ArrowLeft")
    expect(watched.page.locator(".lesson h1")).to_have_text(given["pages"][1]["title"])
    watched.page.go_back()
    expect(watched.page.locator(".lesson h1")).to_have_text(given["pages"][2]["title"])


# ── live ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def answer(route: Route) -> None:
    """What a server would answer, made up; the page itself under a strict policy."""
    path = route.request.url.removeprefix(ORIGIN).split("#")[0].split("?")[0]
    match path:
        case "/v1/models":
            cards = [{"name": name, "task": shape.task, "preset": shape.preset, "parameters": 9, "beam": 5,
                      "loaded": True, "reads": "picture" if shape.task == "caption" else "text",
                      "columns": 2 if shape.task == "extract" else 1, "examples": [TEXTS.get(name, DATE)],
                      "names": ["question", "context"] if shape.task == "extract" else []}
                     for name, shape in SHAPES.items()]  # fmt: skip
            route.fulfill(json={"models": cards, "lesson": True})
        case "/v1/lesson":
            route.fulfill(json=lesson())
        case "/v1/look":
            looked(route)
        case "/v1/search":
            asked = route.request.post_data_json
            carried = [0.5, 0.25, 0.01, -0.3]
            hits = [{"number": i, "text": text, "cosine": 0.9 - i,
                     "words": [{"start": 0, "end": 3, "weight": carried[i % len(carried)]}]}
                    for i, text in enumerate(asked["texts"])]  # fmt: skip
            route.fulfill(json={"model": asked["model"], "hits": hits})
        case _:
            file = PAGE / (path.strip("/") or "index.html")
            kind = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}[file.suffix]
            headers = {"content-type": kind, "content-security-policy": POLICY}
            route.fulfill(body=file.read_bytes(), headers=headers)


def looked(route: Route) -> None:
    asked = route.request.post_data_json
    text = asked["text"] if isinstance(asked["text"], str) else "\t".join(asked["text"])
    if "trouble" in text:
        said = {"code": "bad", "message": f"{PAYLOADS[0]} is not wanted", "field": "text"}
        return route.fulfill(status=422, json={"error": said})
    name = asked["model"].removeprefix("lesson/")
    known = name if name in SHAPES else "dates"
    return route.fulfill(json=made(known, text, asked.get("change"), asked["packed"], asked.get("derive", False)))


@pytest.fixture
def live(watched: Watched) -> Page:
    watched.page.route(f"{ORIGIN}/**", answer)
    return watched.page


def test_it_answers_as_one_types(live: Page) -> None:
    live.goto(ORIGIN)
    wait_for_output(live, "2018-05-09")
    live.fill("#text", "")
    live.type("#text", "3 June 2021", delay=20)
    wait_for_output(live, "2021-06-03")
    live.wait_for_url(re.compile("text=3"))


def put_in(live: Page, token: str, word: str) -> None:
    """Another word in the place of the one that a token is of."""
    live.click(f'[data-token="{token}"]')
    live.fill("#replace", word)
    live.press("#replace", "Enter")


def test_a_word_is_erased_replaced_and_brought_back(live: Page) -> None:
    live.goto(f"{ORIGIN}/#text={quote(DATE)}")
    wait_for_output(live, "2018-05-09")
    live.click('[data-token="source-16"]')
    live.click("#erase-word")
    wait_for_output(live, "2018-00-09")
    expect(live.locator("#done")).to_have_text("erased “\u2068May,\u2069”")
    expect(live.locator("#original")).to_have_text("2018-05-09")
    expect(live.locator("#changed mark")).to_have_text("0")
    expect(live.locator('[data-side="source"] .erased')).to_have_text(["M", "a", "y", ","])
    live.click("#undo")
    wait_for_output(live, "2018-05-09")
    put_in(live, "source-16", "July,")
    wait_for_output(live, "2018-07-09")
    live.click("#show")
    wait_for_output(live, "2018-05-09")
    live.click("#undo-all")
    expect(live.locator("#done")).to_have_count(0)


def test_all_that_was_done_goes_into_one_run_and_each_goes_singly(live: Page) -> None:
    """Erased, replaced, switched off and forced: each token is numbered as the text that is read then has it."""
    asked: list[Json] = []
    live.on("request", lambda one: asked.append(one.post_data_json) if one.url.endswith("/v1/look") else None)
    live.goto(f"{ORIGIN}/#model=dates-transformer&text={quote(DATE)}")
    wait_for_output(live, "2018-05-09")
    put_in(live, "source-16", "September,")
    wait_for_output(live, "2018-09-09")
    live.click('[data-token="source-28"]')  # of the year, which has moved
    live.click("#erase-word")
    expect(live.locator('[data-side="source"] .erased')).to_have_text(["2", "0", "1", "8"])
    assert asked[-1]["text"] == DATE.replace("May", "September")
    assert asked[-1]["change"]["erase"] == [27, 28, 29, 30]
    live.locator('[data-head="decoder.0.cross/1"]').click(modifiers=["Alt"])
    settled(live)
    live.click('[data-token="target-1"]')
    expect(live.locator(".alternatives .hint")).to_contain_text("step 2 of")
    live.click(".alternatives li:nth-child(3) button")
    expect(live.locator("#done button")).to_have_count(4)
    said = live.locator("#done button").all_text_contents()
    assert said[:3] == ["erased “\u20682018\u2069”", "“\u2068May,\u2069” replaced by “\u2068September,\u2069”",
                        "off: decoder.0.cross head 1"]  # fmt: skip
    assert asked[-1]["change"]["off"] == [["decoder.0.cross", 1]]
    assert len(asked[-1]["change"]["begin"]) == 2
    address = live.evaluate("() => new Promise(done => setTimeout(() => done(location.href), 400))")
    live.click("#done button >> nth=1")
    expect(live.locator("#done button")).to_have_count(3)
    settled(live)
    assert asked[-1]["text"] == DATE
    assert asked[-1]["change"]["erase"] == [21, 22, 23, 24]
    live.click("#undo")  # what was undone comes back, too
    expect(live.locator("#done button")).to_have_count(4)
    live.goto("about:blank")
    live.goto(address)
    expect(live.locator("#done button")).to_have_text(said)


def test_a_word_that_was_put_in_goes_or_gives_way(live: Page) -> None:
    live.goto(f"{ORIGIN}/#text={quote(DATE)}&replace=16-20-July,&replace=21-25-1999")
    wait_for_output(live, "1999-07-09")
    put_in(live, "source-18", "June,")
    wait_for_output(live, "1999-06-09")
    expect(live.locator('[data-side="source"] .differs')).to_have_text(list("June,1999"))
    live.click('[data-token="source-18"]')
    live.click("#bring-back")
    wait_for_output(live, "1999-05-09")
    expect(live.locator("#done")).to_have_text("“\u20682018\u2069” replaced by “\u20681999\u2069”")


def test_what_is_done_is_done_to_every_model_and_a_head_is_of_one(live: Page) -> None:
    asked: list[Json] = []
    live.on("request", lambda one: asked.append(one.post_data_json) if one.url.endswith("/v1/look") else None)

    def last(model: str) -> Json:
        """What views beside the attention ask of the run that nothing was done to may come later."""
        changes = (one["change"] for one in reversed(asked) if one["model"] == model and "change" in one)
        found: Json = next(changes, {})
        return found

    def waits(reached: Callable[[], bool]) -> None:
        """A change is drawn before it is asked for, so what was asked for last may be older than what is seen."""
        ends = time.monotonic() + 20
        while not reached():
            assert time.monotonic() < ends, asked[-2:]
            live.wait_for_timeout(50)

    live.goto(f"{ORIGIN}/#model=dates-transformer&model=wide&text={quote(DATE)}")
    live.wait_for_selector('[data-panel="1"] [data-token="target-0"]')
    settled(live)
    live.click('[data-panel="1"] [data-token="source-16"]')
    live.click("#erase-word")
    expect(live.locator('[data-panel="1"] [data-side="source"] .erased')).not_to_have_count(0)
    for model in ("dates-transformer", "wide"):
        waits(lambda name=model: last(name).get("erase") == [16, 17, 18, 19])
    live.locator('[data-panel="1"] [data-head="decoder.0.cross/1"]').click(modifiers=["Alt"])
    expect(live.locator("#done")).to_contain_text("off: decoder.0.cross head 1 of wide")
    waits(lambda: last("wide").get("off") == [["decoder.0.cross", 1]])
    waits(lambda: last("dates-transformer").get("off") == [])
    assert live.locator('[data-panel="0"] [data-off="true"]').count() == 0
    settled(live)
    live.click('[data-panel="1"] [data-token="target-2"]')
    expect(live.locator('[data-panel="1"] .alternatives .hint')).to_contain_text("step 3 of")
    live.locator('[data-panel="1"] .alternatives li:nth-child(3) button').click()
    live.wait_for_url(re.compile("begin=[^&]*%401"))
    expect(live.locator('[data-result="0"] #changed')).not_to_have_text("…")
    waits(lambda: len(last("wide").get("begin", [])) == 3)
    spelled = made("wide", DATE, last("wide"))["output"][:3]  # the tokens of the one are a text to the other
    waits(lambda: last("dates-transformer").get("begin") == spelled)


def test_a_head_is_switched_off_by_pointer_and_by_key(live: Page) -> None:
    live.goto(f"{ORIGIN}/#model=dates-transformer")
    head = live.locator('[data-head="decoder.0.cross/1"]')
    with live.expect_request(lambda one: "decoder.0.cross" in (one.post_data or "")) as asked:
        head.click(modifiers=["Alt"])
    assert asked.value.post_data_json["change"]["off"] == [["decoder.0.cross", 1]]
    expect(head).to_have_attribute("data-off", "true")
    head.focus()
    live.keyboard.press("o")
    expect(head).to_have_attribute("data-off", "false")


def test_the_next_word_is_forced(live: Page) -> None:
    live.goto(ORIGIN)
    live.click('[data-token="target-2"]')
    expect(live.locator(".alternatives .hint")).to_contain_text("step 3 of")
    ids = [token["id"] for token in made("dates", DATE)["target"]]
    with live.expect_request(
        lambda one: '"begin":[' in (one.post_data or "") and '"begin":[]' not in (one.post_data or "")
    ) as asked:
        live.click(".alternatives li:nth-child(3) button")
    begin = asked.value.post_data_json["change"]["begin"]
    assert begin[:2] == ids[:2]
    assert len(begin) == 3


def test_two_models_stand_side_by_side(live: Page) -> None:
    live.goto(ORIGIN)
    live.click("#compare")
    expect(live.locator(".sheet")).to_have_count(2)
    expect(live.locator(".sheet h2").nth(1)).to_have_text("dates-transformer")
    live.hover('[data-panel="0"] [data-token="source-3"]')
    expect(live.locator('[data-panel="1"] [data-token="source-3"]')).to_have_class(re.compile("chosen"))
    live.click('[data-drop="1"]')
    expect(live.locator(".sheet h2")).to_have_count(1)


def test_beam_and_chance_are_asked_for(live: Page) -> None:
    live.goto(ORIGIN)
    live.click(".manner summary")
    with live.expect_request(lambda one: '"beam":10' in (one.post_data or "")):
        live.select_option("#beam", "10")
    with live.expect_request(lambda one: '"sample":{' in (one.post_data or "")):
        live.check("#sampling")


def test_a_picture_is_captioned_and_lines_are_searched(live: Page, tmp_path: Path) -> None:
    data = made("pictures", "disc.png")["picture"]["data"].split(",")[1]
    (tmp_path / "disc.png").write_bytes(base64.b64decode(data))
    live.goto(f"{ORIGIN}/#model=pictures")
    live.set_input_files("#picture", tmp_path / "disc.png")
    expect(live.locator(".frame")).to_have_count(7)
    live.hover(".frame >> nth=1")
    live.wait_for_selector('.photo [data-token="source-0"][data-weight]')
    live.goto("about:blank")  # the address of the page before may still be written
    live.goto(f"{ORIGIN}/#model=near")
    live.fill("#lines", "one line\nanother line\nthe third\nand a fourth")
    expect(live.locator("[data-hit]")).to_have_count(4)
    ink = "all => all.map(one => Number(one.style.getPropertyValue('--weight')))"  # on one scale, and none for nothing
    np.testing.assert_allclose(live.locator(".hit .token").evaluate_all(ink), [0.9, 0.45, 0, 0])


def test_words_that_carry_a_vector_are_dark(live: Page) -> None:
    live.goto(f"{ORIGIN}/#model=near&text={quote('😀 ring the plumber')}")
    words = live.locator("#answer .carrying .token")
    expect(words).to_have_text(["😀", "ring", "the", "plumber"])
    shown = words.evaluate_all("all => all.map(one => [one.dataset.weight, one.style.getPropertyValue('--weight')])")
    np.testing.assert_allclose(np.array(shown, float)[:, 0], [0.4, 0.2, 0.1, 0.05])
    np.testing.assert_allclose(np.array(shown, float)[:, 1], [0.9, 0.45, 0.225, 0.1125])


def test_a_picture_that_an_address_speaks_of_is_chosen_again(live: Page, tmp_path: Path) -> None:
    data = made("pictures", "disc.png")["picture"]["data"].split(",")[1]
    for name in ("disc.png", "other.png"):
        (tmp_path / name).write_bytes(base64.b64decode(data))
    live.goto(f"{ORIGIN}/#model=pictures&picture=disc.png&at=target-2-query-0-&off=decoder.0.cross/0")
    notice = live.locator(".look .notice")
    expect(notice).to_contain_text("the picture “\u2068disc.png\u2069”")
    expect(notice).to_contain_text("choose it again")
    assert live.locator(".frame").count() == 0
    with live.expect_request(lambda one: '"off":[["decoder.0.cross",0]]' in (one.post_data or "")):
        live.set_input_files("#picture", tmp_path / "disc.png")
    expect(live.locator(".look .notice")).to_be_hidden()
    expect(live.locator('#output [data-token="target-2"]')).to_have_class(re.compile("chosen"))
    live.set_input_files("#picture", tmp_path / "other.png")
    live.wait_for_url(re.compile("picture=other.png"))
    assert "off=" not in live.url
    assert "at=" not in live.url


def test_an_error_is_said_and_is_text(live: Page, watched: Watched) -> None:
    live.goto(ORIGIN)
    wait_for_output(live, "2018-05-09")
    live.fill("#text", "trouble")
    expect(live.locator(".problem").first).to_contain_text(PAYLOADS[0])
    assert live.locator("img").count() == 0
    watched.wrong[:] = [said for said in watched.wrong if "422" not in said]  # the browser itself notes the status


def test_a_huge_text_is_refused_in_plain_words(live: Page, watched: Watched) -> None:
    live.goto(ORIGIN)
    wait_for_output(live, "2018-05-09")
    said = {"code": "invalid_field", "message": "String should have at most 10000 characters", "field": "text"}
    live.route(f"{ORIGIN}/v1/look", lambda route: route.fulfill(status=422, json={"error": said}))
    live.fill("#text", "9 May 2018 " * 1000)
    expect(live.locator(".problem").first).to_have_text(
        "The text is too long: the server reads 10,000 characters at most."
    )
    assert live.locator(".problem").first.evaluate("one => one.getBoundingClientRect().bottom < innerHeight")
    watched.wrong[:] = [said for said in watched.wrong if "422" not in said]


def test_columns_have_names_and_are_waited_for(live: Page) -> None:
    asked: list[str] = []
    live.on("request", lambda request: asked.append(request.url) if "/v1/look" in request.url else None)
    live.goto(f"{ORIGIN}/#model=answers&text=where")
    expect(live.locator(".nothing")).to_have_text("Write something into context, too.")
    expect(live.locator(".column .hint")).to_have_text(["question", "context"])
    assert live.locator(".problem:visible").count() == 0
    assert asked == []
    live.fill("#text-1", "here it is")
    expect(live.locator("mark.piece")).to_be_visible()


def test_an_address_that_names_what_is_not_there_is_told_so(live: Page) -> None:
    live.goto(f"{ORIGIN}/#model=nope&erase=99&view=sideways&off=decoder.9.cross/0&text={quote(DATE)}")
    wait_for_output(live, "2018-05-09")
    notice = live.locator(".look .notice")
    for said in (
        "no model “\u2068nope\u2069”",
        "no source token 99",
        "view=sideways",
        "no head “\u2068decoder.9.cross/0",
    ):
        expect(notice).to_contain_text(said)
    live.click("#undo-all")
    live.fill("#text", "3 June 2021")
    wait_for_output(live, "2021-06-03")
    expect(notice).to_be_hidden()


def test_the_lesson_has_nothing_of_what_was_done_elsewhere(live: Page) -> None:
    live.goto(f"{ORIGIN}/#model=dates-transformer&off=decoder.0.cross/1&view=erasure&text={quote(DATE)}")
    expect(live.locator('[data-off="true"]')).to_have_count(1)
    live.click('[data-tab="lesson"]')
    live.click('[data-page="transformer"]')
    expect(live.locator(".lesson [data-head]").first).to_be_visible()
    assert live.locator('.lesson [data-off="true"]').count() == 0
    expect(live.locator('.lesson [data-view="attention"]')).to_have_attribute("aria-checked", "true")
    assert "off=" not in live.url
    assert "view=" not in live.url
    live.click('[data-tab="look"]')
    live.wait_for_url(re.compile("off=decoder.0.cross"))
    expect(live.locator('.look [data-view="erasure"]')).to_have_attribute("aria-checked", "true")


@pytest.mark.parametrize("width", [1280, 390])
def test_the_menu_of_pictures_is_seen_whole(width: int, live: Page) -> None:
    live.set_viewport_size({"width": width, "height": 900})
    live.goto(ORIGIN)
    wait_for_output(live, "2018-05-09")
    live.click("#save")
    box = live.locator(".save .sheet-menu").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    expect(live.locator("#tip")).to_be_hidden()


def test_the_lesson_answers_live(live: Page) -> None:
    live.goto(f"{ORIGIN}/#tab=lesson&page=rnn-attention")
    with live.expect_request(lambda one: "lesson/rnn-attention" in (one.post_data or "")):
        live.fill("#lesson-text", "3 June 2021")
    wait_for_output(live, "2021-06-03")


def test_without_a_lesson_nobody_asks_for_one(live: Page) -> None:
    cards = {"models": [{"name": "dates", "task": "transduce", "preset": "rnn", "parameters": 9, "beam": 5,
                         "loaded": True, "reads": "text", "columns": 1, "examples": [DATE]}],
             "lesson": False}  # fmt: skip
    live.route(f"{ORIGIN}/v1/models", lambda route: route.fulfill(json=cards))
    live.route(f"{ORIGIN}/v1/lesson", lambda route: route.fulfill(status=404, json={}))  # of which a browser would tell
    live.goto(f"{ORIGIN}/#tab=lesson")
    wait_for_output(live, "2018-05-09")
    expect(live.locator(".tabs")).to_be_hidden()


@pytest.mark.parametrize("payload", PAYLOADS[:4])
def test_what_is_typed_stays_text(payload: str, live: Page) -> None:
    live.goto(f"{ORIGIN}/#text={quote(payload)}&lines={quote(payload)}&say={quote(payload)}")
    expect(live.locator("#text")).to_have_value(payload)
    live.wait_for_selector("#output")
    assert live.locator("#page script, img").count() == 0
