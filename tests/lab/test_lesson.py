"""The lesson that is shipped holds what it says, and the command that made it makes another."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.lesson import PAGE, table
from regard import config
from regard.data.builtin import captions, dates
from regard.lab.lesson import curves, kept, make
from regard.lab.lesson.pages import EXAMPLE, HOLES, PAGES
from regard.trained import Trained

NAMES = ["rnn-single", "rnn", "rnn-context", "rnn-attention", "conv", "attention-encoder", "transformer", "decoder",
         "encoder", "caption"]  # fmt: skip
FILES = {"config.toml", "tokenizer.json", "model.safetensors", "manifest.json", "calibration.json"}
MOST = 4_000_000  # bytes of all that is shipped


@pytest.fixture(scope="module")
def shipped() -> dict[str, Any]:
    found = kept.read()
    assert found is not None
    return found


def test_the_shipped_lesson_names_what_is_there(shipped: dict[str, Any]) -> None:
    assert [page["name"] for page in shipped["pages"]] == NAMES == [page.name for page in PAGES]
    folders = {path.name for path in kept.FOLDER.iterdir() if path.is_dir()}
    assert folders == set(NAMES)
    assert {path.name for path in kept.FOLDER.iterdir() if path.is_file()} == {kept.FILE}
    for name in NAMES:
        assert {path.name for path in (kept.FOLDER / name).iterdir()} | {"calibration.json"} == FILES
        assert (kept.FOLDER / name / "model.safetensors").stat().st_size < 1_000_000
    assert sum(path.stat().st_size for path in kept.FOLDER.rglob("*") if path.is_file()) < MOST


def test_its_pages_say_what_the_code_says(shipped: dict[str, Any]) -> None:
    for page, written in zip(shipped["pages"], PAGES, strict=True):
        assert (page["title"], tuple(page["sentences"])) == (written.title, written.sentences), "make lesson"
        assert all(sentence.endswith(".") and sentence.count(". ") == 0 for sentence in page["sentences"])
        assert page["curve"]["command"].startswith("regard ")
        assert all(len(series["points"]) > 3 for series in page["curve"]["series"])


def test_its_scores_stand_in_the_document() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), "run python -m bench.lesson"


@pytest.mark.parametrize("name", NAMES)
def test_its_models_answer_the_example(name: str, shipped: dict[str, Any]) -> None:
    page = next(page for page in shipped["pages"] if page["name"] == name)
    model = Trained.load(kept.FOLDER / name)
    assert model.config.preset == name
    assert model.model.size == page["parameters"]
    assert page["diagram"] == make.diagram(model.config)
    record = kept.record(model, page)
    assert record is not None
    assert record["model"]["name"] == f"lesson/{name}"
    right = {HOLES: EXAMPLE, "picture": kept.drawing().caption}.get(page["example"], "2018-05-09")
    if page["scores"][0]["value"] > 90 or name == "encoder":
        assert record["output"] == right


def test_the_command_makes_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("LOOKED", 4), ("FILLED", 20), ("LENGTHS", (4, 8)), ("APART", (1, 4))):
        monkeypatch.setattr(curves, name, value)
    monkeypatch.setattr(make, "TRAIN", 120)
    monkeypatch.setattr(make, "TEST", 30)
    made = make.make(tmp_path, ["train.steps=2", "train.validate_steps=2", "train.validate_examples=4"])
    assert json.loads((tmp_path / kept.FILE).read_text(encoding="utf-8")) == made
    assert [page["name"] for page in made["pages"]] == NAMES
    assert made["command"].startswith("regard demo --all --set train.steps=2")
    assert set(kept.folders(tmp_path)) == {f"lesson/{name}" for name in NAMES}
    for name in NAMES:
        assert config.from_toml((tmp_path / name / "config.toml").read_text(encoding="utf-8"), "").train.steps == 2
    assert '"kind":"lesson"' in (tmp_path / "lesson.html").read_text(encoding="utf-8")


def test_what_is_counted_is_what_the_textbook_says() -> None:
    nothing = curves.Taught({}, {}, Path(), Path())
    paths = {each["name"]: dict(each["points"]) for each in curves.reach(nothing)["series"]}
    for apart in curves.APART:
        assert paths["recurrent"][apart] == apart + 1
        assert paths["convolution"][apart] == max(1, -(-apart // 2))  # a kernel of five reaches two to each side
        assert paths["self-attention"][apart] == 1


def test_keeping_what_was_seen_is_cheaper() -> None:
    c = config.resolve("decoder", None, ["decoder.width=8", "decoder.heads=2"])
    sizes = curves.Sizes(8, 8, 16)
    assert curves.step_by_step(c, sizes) < curves.from_the_start(c, sizes)
    assert curves.training_chain(c, sizes) == curves.training_chain(c, curves.Sizes(16, 16, 16))


def test_a_shape_touches_its_places() -> None:
    shape = captions.Shape("square", "red", "small", 4, 2, 1.0, 0, 0)  # five pixels round the middle, 16
    found = curves.touched(shape, 8, 8).reshape(8, 8)
    assert found.sum() == 4
    assert found[3:5, 3:5].all()


def test_fields_of_a_date_are_found() -> None:
    for source, target, where in dates.marked(200, 0, "test"):
        first, after = where[dates.YEAR]
        assert source[first:after] in (target[:4], target[2:4])
        first, after = where[dates.DAY]
        assert int("".join(filter(str.isdigit, source[first:after]))) == int(target[-2:])
        assert {dates.YEAR, dates.MONTH, dates.DAY} <= where.keys()
