"""The report of a run: its values, its page, and both made anew from the folder."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from regard.data.read import Example
from regard.errors import FolderError
from regard.report import (
    FILE,
    Judged,
    best_and_worst,
    by_length,
    calibration,
    groups,
    kept,
    returned,
    told_failures,
    unlearnt,
    write_report,
)
from regard.tasks.task import Answer, Item
from regard.trained import Trained
from regard.view.html import inlined, page

DATA = re.compile(r'<script type="application/json" id="regard">(.*?)</script>', re.DOTALL)


def values(path: Path) -> dict[str, Any]:
    """What the page in a file draws."""
    found = DATA.search(path.read_text(encoding="utf-8"))
    assert found is not None
    data = json.loads(found[1])
    assert isinstance(data, dict)
    return data


def judged(length: int, right: bool, sure: float) -> Judged:
    return Judged(Example(("a" * length,), "b", 1), Item((7,) * length, ()), Answer("b", 0.0, sure), right)


# ── what the training leaves ─────────────────────────────────────────────────────────────────────────────────────────


def test_every_training_leaves_a_report(copy_folder: Path) -> None:
    found = values(copy_folder / "report.html")
    assert found["kind"] == "report"
    assert {score["name"] for score in found["scores"]} >= {"exact", "chrf"}
    assert found["curves"]["points"]
    assert 1 <= len(found["records"]) <= 20
    assert found["exposure"]["examples"] > 0
    assert found["card"].startswith("# A model")
    listed = json.loads((copy_folder / "manifest.json").read_text())["files"]
    assert {"report.html", FILE} <= set(listed)


def test_it_says_what_fails_and_what_the_data_are_like(copy_folder: Path) -> None:
    found = json.loads((copy_folder / FILE).read_text(encoding="utf-8"))
    assert str(found["failures"]["judged"]) == dict(found["data"])["held-out examples"]
    assert told_failures(copy_folder).startswith(found["failures"]["said"])
    assert found["failures"]["left_out"] == ""
    names = [rule["name"] for rule in found["check"]["baselines"]["rules"]]
    assert names == ["copy the input", "most frequent output", "nearest neighbour"]
    assert dict(found["check"]["baselines"]["rules"][0]["scores"])["exact"] == 100.0
    assert found["check"]["examples"] > 0


def test_the_page_asks_for_nothing_else(copy_folder: Path) -> None:
    text = (copy_folder / "report.html").read_text(encoding="utf-8")
    assert "default-src &#x27;none&#x27;" in text
    assert not re.search(r'(?:src|href)="(?!data:)', text.split('id="regard"')[0])


def test_it_is_made_again_from_the_folder_alone(copy_folder: Path, tmp_path: Path) -> None:
    assert write_report(str(copy_folder)) == copy_folder / "report.html"
    again = write_report(str(copy_folder), None, str(tmp_path / "again.html"))
    before, after = values(copy_folder / "report.html"), values(again)
    assert after["scores"] == before["scores"]
    assert [record["output"] for record in after["records"]] == [record["output"] for record in before["records"]]


def test_a_report_on_a_file(copy_folder: Path, copy_file: Path, tmp_path: Path) -> None:
    made = write_report(str(copy_folder), str(copy_file), str(tmp_path / "file.html"))
    found = values(made)
    assert found["data"][0] == ["held-out examples", "84"]
    assert found["curves"] is None
    assert found["check"] is None
    assert "not at hand" in found["failures"]["left_out"]


def test_what_fails_is_told_in_one_line(copy_folder: Path, copy_file: Path, tmp_path: Path) -> None:
    said: list[str] = []
    write_report(str(copy_folder), tell=said.append)
    write_report(str(copy_folder), str(copy_file), str(tmp_path / "file.html"), said.append)
    assert [" of " in line and "\n" not in line for line in said] == [True, True]
    assert told_failures(tmp_path) == ""


def test_a_model_that_is_no_better_than_without_learning_is_told_so() -> None:
    def found(exact: float, chrf: float) -> str:
        rules = [{"name": "copy the input", "scores": [["exact", 0.0], ["chrf", 9.0]]},
                 {"name": "nearest neighbour", "scores": [["exact", 2.0], ["chrf", 60.0]]}]  # fmt: skip
        scores = [{"name": "exact", "value": exact}, {"name": "chrf", "value": chrf}, {"name": "wer", "value": 99.0}]
        return unlearnt({"scores": scores, "check": {"baselines": {"rules": rules}}})

    assert "nearest neighbour: exact 1.0 against 2.0, chrf 50.0 against 60.0" in found(1.0, 50.0)
    assert found(3.0, 50.0) == found(1.0, 70.0) == unlearnt({}) == ""


def test_a_folder_without_one_says_so(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="regard report MODEL FILE"):
        kept(tmp_path)
    (tmp_path / FILE).write_text("{")
    with pytest.raises(FolderError, match="can not be read"):
        kept(tmp_path)


def test_no_text_of_the_data_is_markup(copy_model: Trained) -> None:
    text = page({"kind": "record", "text": "</script><script>alert(1)</script><!--\u2028"}, "<img src=x>")
    assert "<script>alert" not in text
    assert "<img" not in text
    assert json.loads(inlined({"a": "<\u2029"})) == {"a": "<\u2029"}


# ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_groups_part_no_equals() -> None:
    some = [judged(length, True, 0.5) for length in [1] * 50 + [2] * 3 + list(range(3, 50))]
    found = groups(some, lambda each: each.length)
    lengths = [{each.length for each in group} for group in found]
    assert sum(map(len, found)) == len(some)
    assert all(not a & b for place, a in enumerate(lengths) for b in lengths[:place])
    assert groups([], lambda each: each.length) == []


@pytest.mark.parametrize(
    ("counts", "wanted"),
    [
        ([13, 11, 20, 43, 13], [13, 11, 20, 43, 13]),  # two that fit are not thrown together
        ([5] * 80, [50] * 8),
        ([11] * 9, [11, 11, 11, 11, 11, 11, 11, 22]),
        ([500, 1, 1, 1], [500, 3]),
    ],
)
def test_groups_are_about_equal_where_ties_allow_it(counts: list[int], wanted: list[int]) -> None:
    some = [judged(length, True, 0.5) for length, count in enumerate(counts, 1) for _ in range(count)]
    assert sorted(map(len, groups(some, lambda each: each.length))) == sorted(wanted)


def test_right_by_length() -> None:
    found = by_length([judged(length, length < 10, 0.5) for length in range(1, 21) for _ in range(5)])
    assert found is not None
    assert found["bins"][0]["value"] == 100.0
    assert found["bins"][-1]["value"] == 0.0
    assert found["bins"][-1]["to"] == 20
    assert by_length([judged(3, True, 0.5)] * 9) is None


def test_best_and_worst() -> None:
    found = best_and_worst([judged(3, True, 0.9), judged(9, True, 0.9), judged(5, False, 0.8), judged(5, False, 0.2)])
    assert [len(each["source"]) for each in found["best"]] == [9, 3]
    assert [each["confidence"] for each in found["worst"]] == [0.8, 0.2]


def test_how_sure_and_how_right() -> None:
    found = calibration([judged(1, place % 4 != 0, place / 100) for place in range(100)])
    assert found is not None
    assert sum(each["count"] for each in found) == 100
    assert found[0]["from"] == 0.0
    assert calibration([]) is None


@pytest.mark.parametrize(
    ("written", "true", "back"), [((1, 9, 3), (1, 2, 3), True), ((1, 2), (1, 3), False), ((), (1,), False)]
)
def test_coming_back_to_the_true_path(written: tuple[int, ...], true: tuple[int, ...], back: bool) -> None:
    assert returned(written, true) == back
