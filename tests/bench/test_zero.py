"""Ceilings that ambiguity sets, and the tables of what nothing said has reached."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import study, zero
from bench.ceiling import ceiling, meanings
from bench.zero import BLEU, ERROR, Figure
from regard.data.builtin.dates import pairs
from regard.score import any_target, corpus_scores
from regard.score.intervals import Bootstrap
from regard.score.metrics import measured
from regard.tasks.task import Evaluation


def figure(row: str, value: float, seed: int = 0) -> Figure:
    return Figure(row, seed, "exact", value, value - 1, value + 1, None, 1000, 4.0, "rnn-attention 1 × 128", 9, "2.13")


def trial(cell: str, score: float, width: int = 128) -> study.Trial:
    factors = {**study.BASE, "tokens": "characters", "width": width}
    return study.Trial(cell, zero.MINUTES, 0, **factors, metric="exact", score=score, loss=1.0, steps=9, best_step=9,
                       parameters=9, seconds=1.0)  # fmt: skip


def test_a_source_has_all_its_meanings() -> None:
    assert set(meanings("01/02/2003", "en,en_GB")) == {"2003-01-02", "2003-02-01"}
    assert set(meanings("13/02/2003", "en,en_GB")) == {"2003-02-13"}
    assert set(meanings("9 May 2018", "en")) == {"2018-05-09"}
    assert not meanings("no date", "en")


@pytest.mark.parametrize("locales", ["en", "de,fr,ja"])
def test_every_pair_of_the_task_has_its_own_meaning(locales: str) -> None:
    drawn = pairs(60, 0, "valid", locales)
    assert all(meanings(source, locales)[target] for source, target in drawn)
    assert ceiling(drawn, locales) > 90


def test_of_meanings_that_are_as_likely_each_has_its_share() -> None:
    known = meanings("01/02/2003", "en_GB")
    assert ceiling([("01/02/2003", next(iter(known)))], "en_GB") == 100.0
    assert ceiling([("01/02/2003", "1999-01-01")], "en_GB") == 0.0


def test_what_is_judged(tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    path.write_text("READ\tR IY D IH\nREAD\tR EH D IH\nGO\tG OW W W\n", encoding="utf-8")
    outputs, targets = ("R EH D IH", "R EH D IH", "G AH W W"), ["R IY D IH", "R EH D IH", "G OW W W"]
    tallies = any_target(outputs, ["READ", "READ", "GO"], targets)
    found = Evaluation(measured(tallies, Bootstrap()), outputs, tallies=tallies)
    assert zero.judged(ERROR, found, path)[0::3] == (50.0, 2)
    bleu = corpus_scores(outputs, [[target] for target in targets], ["bleu"], tokenize="none")["bleu"]
    assert zero.judged(BLEU, found, path)[0::3] == (bleu.value, 3)


def test_the_table_shows_every_run() -> None:
    assert zero.table([figure("dates", 99.9)])[2].startswith("| dates, seed 0 | exact | – | ≥ 99.8 | 99.9 (98.9 – ")


def test_a_subset_stands_beside_the_best_of_enough_configurations() -> None:
    found = [figure("cmudict-1000", 40.0), figure("cmudict-1000", 44.0, 1)]
    tried = [trial("cmudict-1000", 42.0 - place, width=100 + place) for place in range(zero.SEARCHED)]
    text = zero.subsets(found, [*tried, trial("scan-1000", 99.0)])
    assert text[2] == (
        "| cmudict-1000 | exact | 42.0 | 8 | 42.0 (40.0, 44.0) | 100.0 % | ≥ 95 % | rnn-attention 1 × 128 |"
    )
    assert "cmudict-1000" not in text[4]
    assert "cmudict-5000 8" in text[4]
    assert text[6].startswith("Still missing, of 3 seeds with nothing said: cmudict-1000 1, cmudict-5000 3")


def test_a_subset_with_too_few_configurations_is_no_row_but_is_named() -> None:
    tried = [trial("cmudict-1000", 42.0, width=100 + place) for place in range(zero.SEARCHED - 1)]
    text = zero.subsets([figure("cmudict-1000", 40.0)], [*tried, tried[0]])  # the same again is no other configuration
    assert text[2:4] == [
        "",
        "Still missing, of 8 configurations searched in 5 minutes each, without which a row is left out: "
        "cmudict-1000 1, cmudict-5000 8, multi30k-1000 8, multi30k-5000 8, locales-1000 8, locales-5000 8.",
    ]


def test_only_a_subset_is_run_as_the_study_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[list[str]] = []

    def train(path: Path, settings: list[str], **_: object) -> None:
        said.append(settings)
        raise InterruptedError

    monkeypatch.setattr(zero, "CACHE", tmp_path)
    monkeypatch.setattr(zero.regard, "train", train)
    for name in ("locales-1000", "dates"):
        with pytest.raises(InterruptedError):
            zero.measure(name, 1, tmp_path)
    assert said == [["train.seed=1", "train.minutes=5.0", "train.threads=1"], ["train.seed=1"]]


def test_what_is_in_the_file_is_not_run_again_unless_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[tuple[str, int]] = []

    def measure(name: str, seed: int, data: Path) -> Figure:
        if len(runs) == 2:
            raise KeyboardInterrupt
        runs.append((name, seed))
        return figure(name, 50.0 + len(runs), seed)

    monkeypatch.setattr(zero, "LINES", tmp_path / "zero.csv")
    monkeypatch.setattr(zero, "measure", measure)
    monkeypatch.setattr(zero, "alone", lambda name, seed, data: zero.keep(zero.measure(name, seed, data)))
    wanted = [("dates", 0), ("cmudict-1000", 0), ("cmudict-1000", 1)]
    with pytest.raises(KeyboardInterrupt):
        zero.go_on(wanted, tmp_path, again=False)
    assert runs == wanted[:2]
    runs.clear()
    zero.go_on(wanted, tmp_path, again=False)
    assert runs == wanted[2:]
    runs.clear()
    zero.go_on(wanted[:1], tmp_path, again=True)
    assert [(each.row, each.seed) for each in zero.lines.read(zero.LINES, Figure)] == [*wanted[1:], wanted[0]]


def test_a_subset_has_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], check: bool) -> SimpleNamespace:
        commands.append(command[1:])
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(zero, "LINES", tmp_path / "zero.csv")
    monkeypatch.setattr(zero.subprocess, "run", run)
    zero.go_on([("cmudict-1000", 2)], tmp_path, again=False)
    assert commands == [["-m", "bench.zero", "cmudict-1000", "--one", "2", "--data", str(tmp_path)]]
