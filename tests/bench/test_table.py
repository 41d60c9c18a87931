"""The table of training: medians within rounds, verdicts, and rows of systems that are not there."""

from collections.abc import Sequence

import pytest

from bench.interleave import Measured, Slice, System
from bench.table import LIMIT, Aim, aims_table, memory, named, ratio, table


def measured(name: str, rates: Sequence[int], peak: float = 1000.0, module: str = "ours") -> Measured:
    """A system that trained for one second in each round."""
    slices = [Slice(seconds=1.0, cpu=1.5, updates=3, target=rate, source=rate, places=4 * rate, peak=peak)
              for rate in rates]  # fmt: skip
    return Measured(System(name, module), {"before": 400.0}, slices)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_ratio_is_the_median_of_the_ratios_within_a_round() -> None:
    """The machine slowed down for both in the second round; the ratio of the medians would be 2.5."""
    ours, base = measured("regard", [200, 50, 300]), measured("HF", [100, 25, 80])
    assert ratio(ours, base) == 2.0
    line = table([ours, base], "HF", None)[2]
    assert cells(line)[3] == "2.00 (2.00 – 3.75)"


def test_a_row_tells_all() -> None:
    limit = measured("fp32 product", [1000, 1000, 1000], module=LIMIT)
    ours = measured("regard", [200, 100, 300], peak=900.0)
    head, _, line = table([limit, ours], "HF", operations=2.0)
    assert cells(head)[3] == "× HF"
    assert cells(line) == ["regard", "200", "400", "–", "40 %", "50.0 %", "900", "500", "1.50"]


def test_one_that_is_not_there_has_a_row_that_says_why() -> None:
    gone = Measured(System("eole", "onmt"), failed="not installed: no such package")
    lost = measured("JoeyNMT", [10])
    lost.failed = "failed: out of memory"
    head, _, first, second = table([gone, lost], "HF", None)
    assert cells(first)[:2] == ["eole", "not installed: no such package"]
    assert len(cells(first)) == len(cells(head))
    assert cells(second)[0] == "JoeyNMT (1 rounds, then failed: out of memory)"
    assert named([gone, lost], "eole") is None


def test_memory_is_compared_with_and_without_what_was_there_before() -> None:
    ours, base = measured("regard", [1], peak=700.0), measured("HF", [1], peak=1600.0)
    assert memory(ours, base) == pytest.approx(700 / 1600)
    assert memory(ours, base, growth=True) == pytest.approx(300 / 1200)
    assert memory(ours, None) is None


@pytest.mark.parametrize(
    ("aim", "verdict"),
    [
        (Aim("speed", 2.0, 2.0), "reached"),
        (Aim("speed", 2.0, 1.99), "missed"),
        (Aim("memory", 0.5, 0.5, at_most=True), "reached"),
        (Aim("memory", 0.5, 0.51, at_most=True), "missed"),
        (Aim("speed", 2.0, None), "not measured"),
    ],
)
def test_a_verdict_has_its_number_beside_it(aim: Aim, verdict: str) -> None:
    line = aims_table([aim])[-1]
    assert cells(line)[2] == verdict
    assert cells(line)[1] == ("–" if aim.found is None else f"{aim.found:.2f} ×")
    assert ("≤" if aim.at_most else "≥") in line
