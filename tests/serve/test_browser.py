"""The page and the server together, in a real browser: what is seen is what the model says offline, for every task."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

import regard
from regard.lab.lesson import kept
from regard.trained import Trained
from regard.view.change import Change
from regard.view.record import Record
from tests.serve.clients import Server
from tests.view.small import READING, made
from tests.watched import PAYLOADS, Watched, drawn, wait_for_output, weights

TASKS = {task: ("encoder" if task in ("fill", "extract") else "transformer") for task in READING}
TEXTS = {task: text for task, (_, text) in READING.items()}


@pytest.fixture(scope="module")
def folders(
    copy_folder: Path, small_model: Callable[..., Trained], tmp_path_factory: pytest.TempPathFactory
) -> list[Path]:
    """A model that was trained to copy, another to compare it with, and one for each other task, never trained."""
    folder = tmp_path_factory.mktemp("served")
    for preset in ("transformer", "caption"):
        small_model(preset).save(folder / preset)
    for task, preset in TASKS.items():
        made(task, preset).save(folder / task)
    taught = kept.folders()[f"{kept.PREFIX}rnn-attention"]  # of the lesson: it knows dates
    return [copy_folder, *(folder / name for name in ("transformer", *TASKS, "caption")), taught]


@pytest.fixture(scope="module")
def models(folders: list[Path]) -> dict[str, Trained]:
    """By the names they are served under."""
    return {path.name: regard.load(path) for path in folders}


@pytest.fixture(scope="module")
def server(folders: list[Path]) -> Iterator[Server]:
    begun = Server(*map(str, folders))
    yield begun
    assert begun.end() == 0


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    """The page of the server; when a test is done, nothing was said on the console and nobody else was asked."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    watched = Watched(context.new_page(), server.url)
    watched.page.goto(server.url)
    yield watched.page
    assert watched.wrong == []
    context.close()


def text_of(record: Record) -> str:
    """The output as the page spells it, without signs of the model."""
    return "".join(record.output[token.start : token.end] for token in record.target)


def ask(page: Page, text: str, expected: Record) -> None:
    page.fill("#text", text)
    wait_for_output(page, text_of(expected))


def numbers(page: Page, selector: str, name: str) -> list[float]:
    drawn(page)
    return [float(one) for one in page.locator(selector).evaluate_all(f"all => all.map(one => one.dataset.{name})")]


def sees(page: Page, record: Record) -> None:
    """The run on show is this one: its tokens, and how likely each of them was."""
    wait_for_output(page, text_of(record))
    shown = "#output [data-index]"
    page.wait_for_function(f"() => document.querySelectorAll('{shown}').length === {len(record.target)}")
    np.testing.assert_allclose(numbers(page, shown, "probability"), record.probabilities, atol=1e-6)


def choose(page: Page, model: str, text: str = "") -> None:
    page.goto(f"{page.url.split('#')[0]}#model={quote(model)}&text={quote(text)}")


# ── the main screen ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_typed_is_answered(page: Page, models: dict[str, Trained]) -> None:
    page.fill("#text", "")
    page.type("#text", "dab", delay=15)
    sees(page, models["model"].look("dab"))
    assert page.locator("#output").inner_text().startswith("dab")
    assert page.locator("[data-example]").count() > 0


def test_the_weights_of_a_word_are_those_of_the_record(page: Page, models: dict[str, Trained]) -> None:
    record = models["model"].look("bca")
    ask(page, "bca", record)
    expected = record.alignment()
    assert expected is not None
    for step in (0, 2):
        page.click(f'[data-token="target-{step}"]')
        np.testing.assert_allclose(weights(page, "source"), expected[step], atol=1e-6)
    page.click('[data-token="source-1"]')
    np.testing.assert_allclose(weights(page, "target"), expected[:, 1], atol=1e-6)


def test_a_word_is_erased(page: Page, models: dict[str, Trained]) -> None:
    ask(page, "bca", models["model"].look("bca"))
    page.click('[data-token="source-1"]')
    page.click("#erase")
    changed = models["model"].look("bca", change=Change(erase=(1,)))
    assert changed.output != "bca"
    expect(page.locator("#changed")).to_have_text(changed.output)
    expect(page.locator("#original")).to_have_text("bca")
    sees(page, changed)
    page.click("#undo")
    sees(page, models["model"].look("bca"))


def test_a_word_is_replaced(page: Page, models: dict[str, Trained]) -> None:
    ask(page, "bca", models["model"].look("bca"))
    page.click('[data-token="source-0"]')
    page.fill("#replace", "dd")
    page.press("#replace", "Enter")
    sees(page, models["model"].look("dd"))


def test_all_that_is_done_is_one_run(page: Page, models: dict[str, Trained]) -> None:
    """A word replaced, another erased, a head off and a token forced: what the model says offline to all of it."""
    model = models["model"]
    map = next(iter(model.look("bca").maps))
    begin = model.vocabulary.target.encode("c").ids
    choose(page, "model", "bca")
    page.goto(f"{page.url}&replace=0-1-dd&erase=2&off={quote(map)}/0&begin={begin[0]}")
    page.reload()
    sees(page, model.look("ddca", change=Change((3,), ((map, 0),), begin)))
    page.locator("#done button").nth(2).click()
    sees(page, model.look("ddca", change=Change((3,), (), begin)))
    page.locator("#done button").nth(0).click()
    sees(page, model.look("ddca", change=Change(begin=begin)))
    page.locator("#done button").nth(1).click()
    sees(page, model.look("ddca"))


@pytest.mark.parametrize("name", ["model", "transformer"])
def test_a_head_is_switched_off(name: str, page: Page, models: dict[str, Trained]) -> None:
    choose(page, name, "bca")
    sees(page, models[name].look("bca"))
    head = page.locator("[data-head]:not(.all)").last
    map, _, number = (head.get_attribute("data-head") or "").rpartition("/")
    head.click(modifiers=["Alt"])
    expect(page.locator("#done")).to_have_text(f"off: {map} head {number}")
    changed = models[name].look("bca", change=Change(off=((map, int(number)),)))
    expect(page.locator("#changed")).to_have_text(changed.output)
    sees(page, changed)


def test_the_next_word_is_forced(page: Page, models: dict[str, Trained]) -> None:
    record = models["model"].look("bca")
    ask(page, "bca", record)
    page.click('[data-token="target-1"]')
    page.click(".alternatives li:nth-child(2) button")
    begin = (record.target[0].id, record.alternatives[1][1].id)
    changed = models["model"].look("bca", change=Change(begin=begin))
    assert changed.output != record.output
    sees(page, changed)


def test_a_beam_is_drawn_as_a_tree(page: Page, models: dict[str, Trained]) -> None:
    record = models["model"].look("bca", beam=3)
    assert record.beam is not None
    ask(page, "bca", models["model"].look("bca"))
    page.click(".manner summary")
    page.select_option("#beam", "3")
    page.wait_for_selector(".beam .node")
    sees(page, record)
    assert page.locator(".beam .node").count() > len(record.target)


def test_erasure_can_be_seen_beside_attention(page: Page, models: dict[str, Trained]) -> None:
    record = models["model"].look("bca", derive=True)
    assert record.derived is not None
    ask(page, "bca", record)
    page.click('[data-view="erasure"]')
    page.click('[data-token="target-1"]')
    page.wait_for_selector(".heatmap .cell")
    np.testing.assert_allclose(weights(page, "source"), record.derived.erasure[1], atol=1e-5)


def test_two_models_stand_side_by_side(page: Page, models: dict[str, Trained]) -> None:
    ask(page, "bca", models["model"].look("bca"))
    page.click("#compare")
    other = page.locator(".sheet h2").nth(1)
    expect(other).to_have_text("transformer")
    page.wait_for_selector('.words[data-side="target"][data-panel="1"] [data-index]')
    expected = models["transformer"].look("bca").alignment()
    assert expected is not None
    page.click('[data-panel="1"] [data-token="target-1"]')
    np.testing.assert_allclose(weights(page, "source", 1), expected[1], atol=1e-6)


def test_what_is_done_is_done_to_every_model(page: Page, models: dict[str, Trained]) -> None:
    choose(page, "model", "bca")
    page.goto(f"{page.url}&model=transformer&erase=1")
    page.reload()
    for name, place in (("model", 0), ("transformer", 1)):
        changed = models[name].look("bca", change=Change(erase=(1,)))
        expect(page.locator(f'[data-result="{place}"] .outcome').first).to_have_text(text_of(changed))
    (forced,), begun = (models[name].vocabulary.target.encode("d").ids for name in ("transformer", "model"))
    page.goto(page.url.replace("erase=1", f"begin={forced}@1"))  # in the tokens of the second
    page.reload()
    for name, place, ids in (("transformer", 1, (forced,)), ("model", 0, begun)):
        expected = models[name].look("bca", change=Change(begin=ids))
        assert expected.output.startswith("d")
        expect(page.locator(f'[data-result="{place}"] .outcome').first).to_have_text(text_of(expected))


def test_a_picture_of_it_is_saved(page: Page, models: dict[str, Trained]) -> None:
    ask(page, "bca", models["model"].look("bca"))
    page.click("#save")
    with page.expect_download() as download:
        page.click('[data-save="heat map.svg"]')
    tree = ElementTree.parse(download.value.path())
    said = {"".join(one.itertext()) for one in tree.iter("{http://www.w3.org/2000/svg}text")}
    assert {"a", "b", "c"} <= said


def test_a_date_is_answered_rightly(page: Page, models: dict[str, Trained]) -> None:
    choose(page, "rnn-attention", "1/2/2003")
    ask(page, "Saturday 9th of May, 2018", models["rnn-attention"].look("Saturday 9th of May, 2018"))
    expect(page.locator("#output")).to_contain_text("2018-05-09")


# ── keys alone ───────────────────────────────────────────────────────────────────────────────────────────────────────


def tab_to(page: Page, found: str, key: str = "Tab") -> None:
    """Goes on by Tab until what has the focus matches."""
    for _ in range(60):
        page.keyboard.press(key)
        if page.evaluate("one => document.activeElement.matches(one)", found):
            return
    raise AssertionError(f"{found} is not reached by {key}")


def test_the_keyboard_is_enough(page: Page, models: dict[str, Trained]) -> None:
    record = models["model"].look("bca")
    page.wait_for_selector("#output")
    tab_to(page, "#text")
    page.keyboard.press("Control+A")
    page.keyboard.type("bca")
    sees(page, record)
    tab_to(page, '[data-token="target-0"]')
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("at=target-1"))
    expected = record.alignment()
    assert expected is not None
    np.testing.assert_allclose(weights(page, "source"), expected[1], atol=1e-6)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Home")
    page.keyboard.press("Delete")
    sees(page, models["model"].look("bca", change=Change(erase=(0,))))
    tab_to(page, "#undo")
    page.keyboard.press("Enter")
    sees(page, record)
    tab_to(page, "[data-head]", "Shift+Tab")
    page.keyboard.press("o")
    map, _, number = page.evaluate("document.activeElement.dataset.head").rpartition("/")
    sees(page, models["model"].look("bca", change=Change(off=((map, int(number)),))))
    tab_to(page, "#save", "Shift+Tab")
    page.keyboard.press("Enter")
    tab_to(page, '[data-save="lines.svg"]')
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert download.value.suggested_filename == "regard-lines.svg"


# ── nobody gets in ───────────────────────────────────────────────────────────────────────────────────────────────────


FIELDS = {"model": ["#text", "#replace"], "extract": ["#text", "#text-1"], "embed": ["#text", "#lines"]}


def put(page: Page, place: str, payload: str) -> None:
    """Types it into a field, and waits until the answer to it is drawn."""
    with page.expect_response(re.compile("/v1/(look|search)")) as answered:
        page.fill(place, payload)
        page.press(place, "Enter")
    assert answered.value.status == 200, (place, answered.value.text())
    drawn(page)
    assert page.locator("img, svg[onload], #page script").count() == 0


@pytest.mark.parametrize("payload", PAYLOADS)
def test_what_is_typed_stays_text(payload: str, page: Page) -> None:
    for model, places in FIELDS.items():
        choose(page, model, TEXTS.get(model, "bca"))
        page.wait_for_selector(f'.sheet[aria-label="answer of {model}"] [data-token="source-0"]')
        for place in places:
            if place == "#replace":
                page.click('[data-token="source-0"]')
            put(page, place, payload)


@pytest.mark.parametrize("task", [task for task in TASKS if task not in FIELDS])
def test_what_every_task_is_asked_stays_text(task: str, page: Page) -> None:
    choose(page, task, TEXTS[task])
    page.wait_for_selector(f'.sheet[aria-label="answer of {task}"] [data-token]')
    put(page, "#text", " ".join(PAYLOADS[:3]))


def test_what_an_address_says_stays_text(page: Page) -> None:
    payload = PAYLOADS[0]
    rest = "&".join(f"{name}={quote(payload)}" for name in ("lines", "say", "view", "map", "at", "page", "off"))
    page.goto(f"{page.url.split('#')[0]}#model={quote(payload)}&text={quote(payload)}&{rest}")
    page.reload()
    page.wait_for_selector("#output")
    assert page.locator("img, #page script").count() == 0


# ── every other task ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_classes_have_their_chances(page: Page, models: dict[str, Trained]) -> None:
    choose(page, "classify", TEXTS["classify"])
    record = models["classify"].look(TEXTS["classify"])
    page.wait_for_selector("[data-class]")
    expected = sorted((chance for _, chance in record.answer.chances), reverse=True)
    np.testing.assert_allclose(numbers(page, "[data-class]", "probability"), expected, atol=1e-6)


def test_words_have_their_labels(page: Page, models: dict[str, Trained]) -> None:
    choose(page, "tag", TEXTS["tag"])
    expect(page.locator(".tagged .tag")).to_have_text(models["tag"](TEXTS["tag"]).split())


def test_holes_are_filled(page: Page, models: dict[str, Trained]) -> None:
    choose(page, "fill", TEXTS["fill"])
    record = models["fill"].look(TEXTS["fill"])
    page.wait_for_selector(".hole")
    np.testing.assert_allclose(numbers(page, ".hole", "probability"), record.probabilities, atol=1e-6)


def test_a_piece_is_cut_out(page: Page, models: dict[str, Trained]) -> None:
    choose(page, "extract", "ab\tdd")
    context, asked = TEXTS["extract"].split("\t")
    page.fill("#text", context)
    page.fill("#text-1", asked)
    record = models["extract"].look(TEXTS["extract"])
    expect(page.locator("mark.piece")).to_have_text(record.output)
    expect(page.locator("#answer .question")).to_have_text(asked)
    words = page.locator('.words[data-side="source"] [data-index]:not(.sign)')  # in the order in which they are read
    assert "".join(words.all_text_contents()).replace(" ", "") == (asked + context).replace(" ", "")
    places = [other.probability for one in record.alternatives for other in one]
    np.testing.assert_allclose(numbers(page, "[data-place]", "probability"), places, atol=1e-6)


def test_a_column_that_is_empty_is_waited_for(page: Page) -> None:
    choose(page, "extract", "ab")
    expect(page.locator(".nothing")).to_have_text("Write something into column 2, too.")
    assert page.locator(".problem:visible").count() == 0


def test_a_text_goes_on(page: Page, models: dict[str, Trained]) -> None:
    choose(page, "generate", TEXTS["generate"])
    sees(page, models["generate"].look(TEXTS["generate"]))


def test_the_nearest_lines_are_found(page: Page, models: dict[str, Trained]) -> None:
    lines = ["ab", "cd dc", "ab dc"]
    choose(page, "embed", TEXTS["embed"])
    page.fill("#lines", "\n".join(lines))
    expected = sorted(
        (models["embed"].embed(lines) @ models["embed"].embed([TEXTS["embed"]])[0]).tolist(), reverse=True
    )
    expect(page.locator("[data-hit]")).to_have_count(3)
    np.testing.assert_allclose(numbers(page, "[data-hit]", "cosine"), expected, atol=1e-5)
    expect(page.locator("[data-hit]").first).to_contain_text("ab dc")
    query = models["embed"].embed([TEXTS["embed"]])[0]
    lost = [expected[0] - float(models["embed"].embed([rest])[0] @ query) for rest in (" dc", "ab ")]
    np.testing.assert_allclose(numbers(page, "[data-hit]:first-child .token", "weight"), lost, atol=1e-5)
    carried = [word.weight for word in models["embed"].look(TEXTS["embed"]).carried]
    np.testing.assert_allclose(numbers(page, ".carrying .token", "weight"), carried, atol=1e-6)


@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_a_picture_is_described(kind: str, page: Page, models: dict[str, Trained], tmp_path: Path) -> None:
    file = tmp_path / f"picture.{kind}"
    Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3)).save(file)
    choose(page, "caption")
    page.set_input_files("#picture", file)
    record = models["caption"].look(str(file))
    sees(page, record)
    page.click('#output [data-token="target-0"]')
    expected = record.alignment()
    assert expected is not None
    np.testing.assert_allclose(numbers(page, ".places [data-index]", "weight"), expected[0], atol=1e-6)


def test_another_kind_of_picture_is_refused_in_words(page: Page, tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "picture.gif")
    choose(page, "caption")
    page.set_input_files("#picture", tmp_path / "picture.gif")
    expect(page.locator(".drop .problem")).to_contain_text("PNG or JPEG")
