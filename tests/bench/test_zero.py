"""Ceilings that ambiguity sets, and the tables of what nothing said has reached."""

from pathlib import Path

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


def trial(cell: str, score: float) -> study.Trial:
    factors = {**study.BASE, "tokens": "characters"}
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


def test_the_tables_show_every_run_and_the_best_beside_it() -> None:
    assert zero.table([figure("dates", 99.9)])[2].startswith("| dates, seed 0 | exact | – | ≥ 99.8 | 99.9 (98.9 – ")
    found = [figure("cmudict-1000", 40.0), figure("cmudict-1000", 44.0, 1)]
    text = zero.subsets(found, [trial("cmudict-1000", 30.0), trial("cmudict-1000", 42.0), trial("scan-1000", 99.0)])
    assert text[2:] == [
        "| cmudict-1000 | exact | 42.0 | 2 | 42.0 (40.0, 44.0) | 100 % | ≥ 95 % | rnn-attention 1 × 128 |"
    ]
