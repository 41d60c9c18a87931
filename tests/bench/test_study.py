"""The cells of the study: their pairs, their plan, and that a trial is trained as its line says."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from bench import forms, lines, numbers, study
from bench.study import BASE, CHANGES, SOURCES
from regard import config


def test_judges_share_no_source_with_what_is_trained_on(tmp_path: Path) -> None:
    train, test = study.cut("dates-300", tmp_path, tmp_path)
    sources = [{line.split("\t")[0] for line in path.read_text("utf-8").splitlines()} for path in (train, test)]
    assert len(sources[0]) == 300
    assert len(sources[1]) == study.HELD
    assert not sources[0] & sources[1]


def test_a_sentence_and_what_it_means() -> None:
    text, meaning = study.parsed(
        "play the beatles on google music", "O B-artist I-artist O B-service I-service", "Play"
    )
    assert (text, meaning) == (
        "play the beatles on google music",
        "Play | artist : the beatles | service : google music",
    )


def test_slips_are_the_same_each_time_and_not_in_the_target() -> None:
    text = "one two three four five six seven eight nine"
    wrong, right = study.misspelt(text, "")
    assert right == "one two three four five six seven eight"
    assert wrong != right
    assert (wrong, right) == study.misspelt(text, "")


def test_made_up_data_are_the_same_each_time_and_no_source_comes_twice(tmp_path: Path) -> None:
    for name in study.MADE_UP:
        train, test = study.cut(f"{name}-200", tmp_path, tmp_path)
        both = [line.split("\t")[0] for path in (train, test) for line in path.read_text("utf-8").splitlines()]
        assert len(both) == len(set(both)) == 200 + study.HELD
        before = train.read_text("utf-8")
        assert study.cut(f"{name}-200", tmp_path, tmp_path)[0].read_text("utf-8") == before


@pytest.mark.parametrize(
    ("number", "said"),
    [(1, "eins"), (21, "einundzwanzig"), (100, "einhundert"), (301, "dreihunderteins"), (1016, "eintausendsechzehn"),
     (630_135, "sechshundertdreißigtausendeinhundertfünfunddreißig")],
)  # fmt: skip
def test_numbers_in_german(number: int, said: str) -> None:
    assert numbers.words(number) == said


def test_forms_by_hand() -> None:
    assert forms.joined("köbet", ["mA", "Ijor", ""]) == "köbetmejor"
    assert forms.joined("rocozup", ["", "Ijor", "sInIz"]) == "rocozubujorsunuz"
    assert forms.joined("nysalot", ["", "DI", "Ik"]) == "nysalottuk"


@pytest.mark.parametrize("name", SOURCES)
def test_every_planned_trial_is_a_config(name: str) -> None:
    for chosen in study.planned(f"{name}-1000"):
        words = study.words(chosen, 1.0, 0, "exact")
        assert config.resolve(chosen["preset"], None, words).train.agreement == chosen["agreement"]


def test_after_the_plan_what_is_proposed_is_possible() -> None:
    known = [trial(chosen, float(number)) for number, chosen in enumerate(study.planned("cmudict-1000"))]
    assert len(known) > len(CHANGES) / 2
    chosen = study.propose("cmudict-1000", known)
    assert set(chosen) == set(study.FACTORS)
    config.resolve(chosen["preset"], None, study.words(chosen, 1.0, 0, "exact"))


def planned_trials() -> list[study.Trial]:
    return [trial(chosen, float(number)) for number, chosen in enumerate(study.planned("cmudict-1000"))]


@pytest.mark.parametrize("other", [{"width": 512}, {"tokens_per_batch": 256}, {"dropout": 0.2}, {"token_dropout": 0.2},
                                   {"learning_rate": 0.1}, {"more": "train.patience=3"}])  # fmt: skip
def test_lines_outside_the_space_do_not_end_the_study(other: dict[str, object]) -> None:
    outside = {**BASE, "tokens": "characters,words", **other}
    known = [*planned_trials(), trial(outside, 99.0)]
    assert study.possible(study.propose("cmudict-1000", known))


def test_the_same_settings_alone_count_as_tried() -> None:
    first, second, *_ = study.planned("cmudict-1000")
    assert study.propose("cmudict-1000", []) == first
    assert study.propose("cmudict-1000", [trial({**first, "width": 512}, 9.0)]) == first
    assert study.propose("cmudict-1000", [trial(first, 9.0)]) == second


def test_what_has_failed_is_not_proposed_again() -> None:
    first, second, *_ = study.planned("cmudict-1000")
    assert study.propose("cmudict-1000", [], [first]) == second
    known = planned_trials()
    found = study.propose("cmudict-1000", known)
    assert study.propose("cmudict-1000", known, [found]) != found


def test_a_study_goes_on_when_trials_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = argparse.Namespace(hours=1.0, minutes=4.0, cells="cmudict-1000,scan-1000", trials=3, data=tmp_path,
                               lines=tmp_path / "study.csv")  # fmt: skip
    tried: list[dict[str, Any]] = []

    def alone(one: dict[str, Any], asked: argparse.Namespace) -> int:
        tried.append(one)
        if one["cell"] == "scan-1000":
            return 1
        lines.append(asked.lines, trial(one["chosen"], 9.0))
        return 0

    monkeypatch.setattr(study, "alone", alone)
    study.go_on(asked)
    seeds = {cell: [one["seed"] for one in tried if one["cell"] == cell] for cell in ("cmudict-1000", "scan-1000")}
    assert seeds == {"cmudict-1000": [0, 1, 2], "scan-1000": [0, 0, 0]}
    assert all(one not in tried[:place] for place, one in enumerate(tried))


def test_the_table_tells_what_was_set_beside_the_factors() -> None:
    known = [trial({**BASE, "tokens": "characters", "more": "train.weight_decay=0.1"}, 40.0)]
    assert study.table(known)[2].endswith("smoothing 0.1, train.weight_decay=0.1 |")


def test_the_table_has_the_best_of_each_preset() -> None:
    known = [trial({**BASE, "tokens": "characters"}, 40.0),
             trial({**BASE, **study.TRANSFORMER, "tokens": "characters"}, 50.0)]  # fmt: skip
    assert study.table(known)[2].startswith("| cmudict-1000 | 4 | 2 | exact | 50.0 | 40.0 | 50.0 | – | transformer")


def trial(chosen: dict[str, object], score: float) -> study.Trial:
    return study.Trial("cmudict-1000", 4.0, 0, **chosen, metric="exact", score=score, loss=1.0, steps=9, best_step=9,
                       parameters=9, seconds=1.0)  # type: ignore[arg-type]  # fmt: skip
