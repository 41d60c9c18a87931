"""Lines in, an SVG that any reader of XML can read out, with every number in its place and no markup of the data."""

import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest

from regard.view.chart import Axes, Line, Point, chart, ticks

AXES = Axes("score by length", "tokens", "score", ((0.0, "1–4"), (1.0, "5–9")))


def line(name: str, *values: float) -> Line:
    return Line(name, tuple(Point(place, value, value - 1, value + 1, f"{name} {value}")
                            for place, value in enumerate(values)))  # fmt: skip


@pytest.mark.parametrize(("low", "high"), [(0.0, 100.0), (97.3, 99.9), (0.0, 0.0), (-3.0, 12.0), (1e-4, 3e-4)])
def test_ticks_hold_all_and_are_few(low: float, high: float) -> None:
    found = ticks(low, high)
    assert found[0] <= low + 1e-9
    assert found[-1] >= high - 1e-9
    assert 2 <= len(found) <= 8


def test_every_line_has_its_path_its_whiskers_and_its_name() -> None:
    found = ElementTree.fromstring(chart(AXES, [line(f"preset {number}", 50 + number, 90) for number in range(9)]))
    kinds = [each.get("class") for each in found.iter()]
    assert kinds.count("series") == 2 * 9  # the line, and a sample beside its name
    assert kinds.count("whisker") == 2 * 9
    assert kinds.count("dot") == 3 * 9
    texts = [each.text for each in found.iter() if each.tag == "text"]
    assert {f"preset {number}" for number in range(9)} <= set(texts)
    names = sorted(float(each.get("y", "0")) for each in found.iter() if each.get("class") == "series-name")
    assert all(after - before >= 12.9 for before, after in pairwise(names))


def test_no_name_is_markup() -> None:
    found = chart(AXES, [line("<script>alert(1)</script>", 1, 2), line('"a"&b', 3, 4)])
    assert "<script" not in found
    ElementTree.fromstring(found)


def test_one_point_without_an_interval() -> None:
    found = chart(AXES, [Line("a", (Point(0, 3.0, None, None, "a"),))])
    assert "whisker" not in found
    ElementTree.fromstring(found)
