"""The cells of the study: their pairs, their plan, and that a trial is trained as its line says."""

from pathlib import Path

import pytest

from bench import study
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


def test_the_table_has_the_best_of_each_preset() -> None:
    known = [trial({**BASE, "tokens": "characters"}, 40.0),
             trial({**BASE, **study.TRANSFORMER, "tokens": "characters"}, 50.0)]  # fmt: skip
    assert study.table(known)[2].startswith("| cmudict-1000 | 4 | 2 | exact | 50.0 | 40.0 | 50.0 | – | transformer")


def trial(chosen: dict[str, object], score: float) -> study.Trial:
    return study.Trial("cmudict-1000", 4.0, 0, **chosen, metric="exact", score=score, loss=1.0, steps=9, best_step=9,
                       parameters=9, seconds=1.0)  # type: ignore[arg-type]  # fmt: skip
