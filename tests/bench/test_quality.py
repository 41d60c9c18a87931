"""The comparison of quality: its rule, its file, and that a finished run is not run again."""

import argparse
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from bench import quality
from bench.quality import FAST, PLAIN, Comparison, Outcome, Run
from regard.layers.plain import is_plain


def line(variant: str, seed: int, loss: float, bleu: float) -> Outcome:
    return Outcome(variant, seed, 10, 256, 1, loss, bleu, 1.5)


def test_within_noise_is_what_students_t_allows() -> None:
    """Standard deviation 1 in both groups of three: 2.776 × √(2/3) = 2.27 would be seen."""
    plain = [10.0, 11.0, 12.0]
    near = Comparison([12.2, 13.2, 14.2], plain, more_is_better=True)
    far = Comparison([12.3, 13.3, 14.3], plain, more_is_better=True)
    assert near.visible == pytest.approx(2.2666, abs=1e-3)
    assert near.verdict == "within noise"
    assert far.verdict == "better"
    assert Comparison([12.3, 13.3, 14.3], plain, more_is_better=False).verdict == "worse"
    assert Comparison(plain, [12.3, 13.3, 14.3], more_is_better=True).verdict == "worse"
    assert Comparison([1.0], [2.0], more_is_better=True).verdict == "too few seeds to tell"


def test_the_table_shows_mean_spread_and_verdict() -> None:
    found = [line(FAST, 0, 2.0, 30.0), line(FAST, 1, 2.2, 31.0), line(PLAIN, 0, 2.1, 30.2), line(PLAIN, 1, 2.1, 31.2)]
    text = "\n".join(quality.table(found))
    assert "| with the fast means | 2.1000 ± 0.1414 (2.0000, 2.2000) | 30.50 ± 0.71 (30.00, 31.00) |" in text
    assert "| difference | +0.0000 | -0.20 |" in text
    assert text.count("within noise") == 2


def test_a_line_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "lines.csv"
    assert quality.read(path) == []
    found = [line(FAST, 0, 1 / 3, 30.123456789), line(PLAIN, 0, 2.5, 0.0)]
    for each in found:
        quality.append(path, each)
    assert quality.read(path) == found
    assert found[0].run == Run(FAST, 0, 10, 256, 1)


def test_a_finished_run_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lines.csv"
    quality.append(path, line(FAST, 0, 2.0, 30.0))
    quality.append(path, Outcome(PLAIN, 0, 11, 256, 1, 2.0, 30.0, 1.0))  # other steps: another run
    ran: list[Run] = []

    def pretend(run: Run, asked: argparse.Namespace) -> None:
        ran.append(run)
        quality.append(asked.lines, line(run.variant, run.seed, 2.0, 30.0))

    monkeypatch.setattr(quality, "run_apart", pretend)
    monkeypatch.setattr(quality, "reference", nullcontext)
    monkeypatch.setattr(quality.tokenised, "check", lambda data: None)
    words = ["--seeds", "0,1", "--steps", "10", "--tokens", "256", "--threads", "1", "--lines", str(path)]
    monkeypatch.setattr(sys, "argv", ["quality", *words, "--page", "none"])
    quality.main()
    assert ran == [Run(PLAIN, 0, 10, 256, 1), Run(FAST, 1, 10, 256, 1), Run(PLAIN, 1, 10, 256, 1)]


def test_the_reference_is_the_plain_way() -> None:
    with quality.reference():
        assert is_plain()
    assert not is_plain()


def test_a_run_is_judged_on_validation_data(tmp_path: Path) -> None:
    for part, count in (("train", 40), ("valid", 4)):
        text = "".join(f"a man {i % 7}\tein mann {i % 7}\n" for i in range(count))
        (tmp_path / f"{part}.tsv").write_text(text, encoding="utf-8")
    found = quality.trained(Run(FAST, 0, 2, 128, 1), tmp_path)
    assert found.run == Run(FAST, 0, 2, 128, 1)
    assert found.loss > 0
    assert 0 <= found.bleu <= 100
