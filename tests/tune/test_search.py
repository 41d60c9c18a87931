"""A search from the file to the model: ordinary runs, what is left of them, what goes on, what is refused."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import regard
from regard import folder as folders
from regard.config import Config
from regard.errors import DataError, DivergedError, Interrupted, RegardError, UsageError
from regard.training.home import finished, read_start, tidy
from regard.tune import plan, search, trial
from regard.tune.budget import Budget

TINY = ("encoder.width=16", "decoder.width=16", "data.max_source=12", "data.max_target=12", "train.warmup=1",
        "train.tokens_per_batch=128", "train.validate_examples=10", "train.threads=1", "train.minutes=10.0")  # fmt: skip
Calls = list[tuple[str, Config, dict[str, Any]]]


def few_steps(c: Config, minutes: float) -> Config:
    return c.model_copy(update={"train": c.train.model_copy(update={"steps": 3})})


def shorten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three trials, of three steps each."""
    monkeypatch.setattr(plan, "budget", lambda minutes: Budget(minutes, 3, 1.0))
    monkeypatch.setattr(trial, "bounded", few_steps)
    monkeypatch.setattr(search, "bounded", few_steps)


def tune(path: Path, out: Path | None, **more: Any) -> regard.Trained:
    return regard.train(path, out=out, **{"settings": TINY, "tune": True, **more})


def table(folder: Path) -> list[dict[str, str]]:
    with open(folder / "tune.csv", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, short: None) -> Calls:
    """Every run that is trained: the name of its folder, its config, and what else was said."""
    found: Calls = []
    usual: Callable[..., Any] = trial.train

    def train(*words: Any, **more: Any) -> Any:
        tokens = words[9] if len(words) > 9 else None
        found.append((Path(words[3]).name, words[0], {**more, "tokens": tokens}))
        return usual(*words, **more)

    monkeypatch.setattr(trial, "train", train)
    monkeypatch.setattr(search, "train", train)
    return found


@pytest.fixture(scope="module")
def made(copy_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that was searched for; treat it as read-only."""
    folder = tmp_path_factory.mktemp("tune") / "m"
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        tune(copy_file, folder)
    return folder


# ── what comes out ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_model_folder_as_any_other_with_the_table_of_its_trials(made: Path) -> None:
    assert finished(made)
    assert not (made / "tune").exists()
    assert "tune.csv" in json.loads((made / "manifest.json").read_text())["files"]
    assert isinstance(regard.load(made)("abc"), str)
    rows = table(made)
    assert [row["number"] for row in rows] == ["1", "2", "3"]
    assert list(rows[0])[:5] == ["number", "settings", "score", "steps", "minutes"]
    assert all(float(row["minutes"]) > 0 and int(row["steps"]) == 3 for row in rows)
    assert len({row["settings"] for row in rows}) == 3


def test_the_final_run_has_the_best_settings(made: Path) -> None:
    rows = table(made)
    best = max(rows, key=lambda row: float(row["score"]))
    words = dict(word.split("=") for word in best["settings"].split(" "))
    c = folders.read_config(made)
    assert float(words["train.learning_rate"]) == c.train.learning_rate
    assert words["preset"] == c.preset
    assert words["decoder.copy"] == str(c.copies).lower()


def test_the_card_tells_of_the_search(made: Path) -> None:
    card = (made / "README.md").read_text(encoding="utf-8")
    assert "tuned: 3 trials of 1 minutes" in card
    assert "varied: learning rate, preset, dropout, layers, label smoothing, copy" in card
    assert "tuned: chosen was trial" in card
    assert "somewhat too good" in card
    assert [note for note in read_start(made).notes if note.startswith("tuned: ")]


def test_trials_have_the_same_examples_and_tokens(copy_file: Path, tmp_path: Path, calls: Calls) -> None:
    tune(copy_file, tmp_path / "m", settings=(*TINY, "decoder.copy=false"))
    names = [name for name, _, _ in calls]
    assert names == ["trial-01", "trial-02", "trial-03", "m"]
    assert [more["tokens"] is None for _, _, more in calls] == [True, False, False, False]
    assert len({(c.data, c.tokens, c.task, c.train.seed) for _, c, _ in calls}) == 1
    assert read_start(tmp_path / "m").files["tune.csv"]


def test_a_search_without_a_folder(copy_file: Path, short: None) -> None:
    assert isinstance(tune(copy_file, None)("abc"), str)


def test_what_is_told(copy_file: Path, tmp_path: Path, short: None, capsys: pytest.CaptureFixture[str]) -> None:
    tune(copy_file, tmp_path / "m", quiet=False)
    said = capsys.readouterr().err
    assert "tuning for 10 minutes in all: 3 trials of about 60 seconds, then one run of about 7 minutes" in said
    assert "trial 1 of 3: what is chosen without a search · exact " in said
    assert "trial 3 of 3: learning rate " in said
    assert said.index("trial 3 of 3") < said.index("tuned: chosen was") < said.index("training ")
    assert said.count("preset rnn-attention, ") == 1
    assert said.count("pairs are few") == 1


def test_quiet_is_quiet_but_for_warnings(
    copy_file: Path, tmp_path: Path, short: None, capsys: pytest.CaptureFixture[str]
) -> None:
    tune(copy_file, tmp_path / "m")
    assert [line.startswith("warning: 84 pairs are few") for line in capsys.readouterr().err.splitlines()] == [True]


# ── what goes on ─────────────────────────────────────────────────────────────────────────────────────────────────────


def stop_at(monkeypatch: pytest.MonkeyPatch, name: str, error: Exception) -> None:
    """The run in a folder of this name ends with an error."""
    usual: Callable[..., Any] = trial.train

    def train(*words: Any, **more: Any) -> Any:
        if Path(words[3]).name == name:
            raise error
        return usual(*words, **more)

    monkeypatch.setattr(trial, "train", train)
    monkeypatch.setattr(search, "train", train)


STOPPED = Interrupted("interrupted by SIGINT at step 2; regard resume x goes on from there", 2)


def test_finished_trials_are_read(
    made: Path, copy_file: Path, tmp_path: Path, calls: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, "trial-03", STOPPED)
        with pytest.raises(Interrupted, match=r"step 2 of trial 3; the same command goes on with the search") as caught:
            tune(copy_file, tmp_path / "m")
    assert caught.value.exit_code == 130
    calls.clear()
    tune(copy_file, tmp_path / "m", quiet=False)
    assert [name for name, _, _ in calls] == ["trial-03", "m"]
    assert "2 of 3 trials have finished already, and are taken as they are" in capsys.readouterr().err
    columns = [[row["settings"], row["score"]] for row in table(tmp_path / "m")]
    assert columns == [[row["settings"], row["score"]] for row in table(made)]


def test_a_trial_that_was_begun_goes_on(
    copy_file: Path, tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, "trial-02", STOPPED)
        with pytest.raises(Interrupted):
            tune(copy_file, tmp_path / "m")
    resumed: list[Path] = []

    def resume(place: Path, quiet: bool) -> None:
        resumed.append(place)
        raise STOPPED

    shutil.copytree(tmp_path / "m" / "tune" / "trial-01", tmp_path / "m" / "tune" / "trial-02")
    (tmp_path / "m" / "tune" / "trial-02" / "manifest.json").unlink()
    calls.clear()
    monkeypatch.setattr(trial, "resume", resume)
    monkeypatch.setattr(search, "propose", lambda space, known, seed: space.start)
    with pytest.raises(Interrupted):
        tune(copy_file, tmp_path / "m")
    assert [place.name for place in resumed] == ["trial-02"]
    assert not calls


def test_the_final_run_goes_on(copy_file: Path, tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("regard.training.run.tidy", lambda folder: None)
        tune(copy_file, tmp_path / "m")
    assert [path.name for path in (tmp_path / "m" / "tune").iterdir()] == ["search.json"]
    (tmp_path / "m" / "manifest.json").unlink()
    calls.clear()
    monkeypatch.setattr(search, "resume", lambda place, quiet: (place.name, None))
    assert tune(copy_file, tmp_path / "m") == "m"  # type: ignore[comparison-overlap]
    assert not calls
    tidy(tmp_path / "m")
    assert not (tmp_path / "m" / "tune").exists()


# ── what fails, and what is refused ──────────────────────────────────────────────────────────────────────────────────


def test_a_trial_that_fails_is_noted(copy_file: Path, tmp_path: Path, short: None) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, "trial-02", DivergedError("step 7: updates were not finite"))
        tune(copy_file, tmp_path / "m")
    second = table(tmp_path / "m")[1]
    assert (second["score"], second["failure"]) == ("", "step 7: updates were not finite")


def test_all_fail(copy_file: Path, tmp_path: Path, short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(*words: Any, **more: Any) -> None:
        raise RegardError("out of memory; …")

    monkeypatch.setattr(trial, "train", train)
    with pytest.raises(RegardError, match="none of 3 trials came to an end; the first: out of memory"):
        tune(copy_file, tmp_path / "m")


def test_what_is_wrong_with_the_data_ends_it(copy_file: Path, tmp_path: Path, short: None) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, "trial-01", DataError("x.tsv:1: no"))
        with pytest.raises(DataError):
            tune(copy_file, tmp_path / "m")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("train.steps=5",), "--steps: a search is bounded by minutes"),
        (("train.minutes=-1.0",), r"train\.minutes"),
        (("train.minutes=inf",), "expected a number that ends"),
        (("train.metric=blue",), "is not a score of the task"),
        (("encoder.layer=2",), "did you mean"),
    ],
)
def test_what_makes_no_search(copy_file: Path, tmp_path: Path, words: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        tune(copy_file, tmp_path / "m", settings=words)
    assert not (tmp_path / "m").exists()


def test_nothing_is_left_to_vary(copy_file: Path, tmp_path: Path) -> None:
    said = (*TINY, "train.learning_rate=0.001", "encoder.layers=1", "decoder.layers=1", "encoder.dropout=0.0",
            "decoder.dropout=0.0", "train.label_smoothing=0.0", "decoder.copy=false")  # fmt: skip
    with pytest.raises(UsageError, match="all that a search would vary is said already"):
        tune(copy_file, tmp_path / "m", settings=said, preset="rnn-attention")


def test_several_processes(copy_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="without torchrun"):
        tune(copy_file, tmp_path / "m")


def test_another_search_is_replaced_by_force_alone(copy_file: Path, tmp_path: Path, calls: Calls) -> None:
    other = (*TINY, "train.seed=5")
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, "trial-02", STOPPED)
        with pytest.raises(Interrupted):
            tune(copy_file, tmp_path / "m")
        with pytest.raises(UsageError, match=r"holds a search with train\.seed=0 where 5 is asked for"):
            tune(copy_file, tmp_path / "m", settings=other)
    calls.clear()
    tune(copy_file, tmp_path / "m", settings=other, force=True)
    assert [name for name, _, _ in calls] == ["trial-01", "trial-02", "trial-03", "m"]


def test_what_nobody_of_us_wrote_is_not_touched(made: Path, copy_file: Path, tmp_path: Path, short: None) -> None:
    (tmp_path / "m" / "tune").mkdir(parents=True)
    (tmp_path / "m" / "tune" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds tune, and no search of regard wrote it"):
        tune(copy_file, tmp_path / "m")
    tidy(tmp_path / "m")
    assert (tmp_path / "m" / "tune" / "mine.txt").exists()
    with pytest.raises(UsageError, match="holds another run"):
        tune(copy_file, made)
    assert finished(made)
