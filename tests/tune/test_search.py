"""A search from the file to the model: ordinary runs, what is left of them, what goes on, what is refused."""

import csv
import io
import json
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import regard
from regard import folder as folders
from regard.config import Config
from regard.errors import ConfigError, DataError, DivergedError, FolderError, Interrupted, RegardError, UsageError
from regard.training.home import finished, read_start, tidy
from regard.training.run import Call, Given
from regard.tune import plan, search, trial
from regard.tune.budget import Budget

TINY = ("encoder.width=16", "decoder.width=16", "data.max_source=12", "data.max_target=12", "train.warmup=1",
        "train.tokens_per_batch=128", "train.validate_examples=10", "train.threads=1",
        "train.minutes=10.0")  # fmt: skip
ALL = ["trial-01", "trial-02", "trial-03", "m"]
STOPPED = Interrupted("interrupted by SIGINT at step 2; regard resume x goes on from there", 2)


def few_steps(c: Config, minutes: float) -> Config:
    return c.model_copy(update={"train": c.train.model_copy(update={"steps": 3})})


def shorten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three trials, of three steps each."""
    monkeypatch.setattr(plan, "budget", lambda minutes: Budget(minutes, 3, 1.0))
    monkeypatch.setattr(trial, "bounded", few_steps)
    monkeypatch.setattr(search, "bounded", few_steps)


def tune(path: Path, out: Path | None, **more: Any) -> Any:
    return regard.train(path, out=out, **{"settings": TINY, "tune": True, **more})


def table(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


@dataclass
class Runs:
    """In place of training: each run is written down, and has the score that is said, or the error."""

    results: dict[str, float | Exception] = field(default_factory=dict)
    calls: list[tuple[str, Config, Given]] = field(default_factory=list)

    def train(self, c: Config, path: str, valid: str | None, out: Path | None, call: Call, given: Given) -> Any:
        name = "m" if out is None else out.name
        self.calls.append((name, c, given))
        result = self.results.get(name, 50.0)
        if isinstance(result, Exception):
            raise result
        found = SimpleNamespace(metrics={"exact": SimpleNamespace(value=result)}, facts={})
        return SimpleNamespace(config=c, task=None), found

    @property
    def names(self) -> list[str]:
        return [name for name, _, _ in self.calls]

    @property
    def table(self) -> list[dict[str, str]]:
        return table(self.calls[-1][2].files["tune.csv"])


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    found = Runs()
    shorten(monkeypatch)
    monkeypatch.setattr(trial, "train", found.train)
    monkeypatch.setattr(search, "train", found.train)
    return found


# ── one that is trained in earnest ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Made:
    folder: Path
    said: str
    tokens: list[tuple[str, bool, bool]]  # of each run: whether it copies, and whether it was given tokens


@pytest.fixture(scope="module")
def made(copy_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A model that was searched for, and what was said meanwhile; treat it as read-only."""
    folder, said, tokens = tmp_path_factory.mktemp("tune") / "m", io.StringIO(), []
    usual: Callable[..., Any] = trial.train

    def train(c: Config, path: str, valid: str | None, out: Path, call: Call, given: Given) -> Any:
        tokens.append((out.name, c.copies, given.tokens is not None))
        return usual(c, path, valid, out, call, given)

    with pytest.MonkeyPatch.context() as patch, redirect_stderr(said):
        shorten(patch)
        patch.setattr(trial, "train", train)
        patch.setattr(search, "train", train)
        tune(copy_file, folder, quiet=False)
    return Made(folder, said.getvalue(), tokens)


def test_a_model_folder_as_any_other_with_the_table_of_its_trials(made: Made) -> None:
    assert finished(made.folder)
    assert not (made.folder / "tune").exists()
    assert "tune.csv" in json.loads((made.folder / "manifest.json").read_text())["files"]
    assert isinstance(regard.load(made.folder)("abc"), str)
    rows = table((made.folder / "tune.csv").read_bytes())
    assert [row["number"] for row in rows] == ["1", "2", "3"]
    assert list(rows[0])[:5] == ["number", "settings", "score", "steps", "minutes"]
    assert all(float(row["minutes"]) > 0 and int(row["steps"]) == 3 for row in rows)
    assert len({row["settings"] for row in rows}) == 3


def test_the_final_run_has_the_best_settings(made: Made) -> None:
    best = max(table((made.folder / "tune.csv").read_bytes()), key=lambda row: float(row["score"]))
    words = dict(word.split("=") for word in best["settings"].split(" "))
    c = folders.read_config(made.folder)
    assert float(words["train.learning_rate"]) == c.train.learning_rate
    assert words["preset"] == c.preset
    assert words["decoder.copy"] == str(c.copies).lower()


def test_the_card_tells_of_the_search(made: Made) -> None:
    card = (made.folder / "README.md").read_text(encoding="utf-8")
    assert "tuned: 3 trials of 1 minutes" in card
    assert "varied: learning rate, preset, dropout, layers, label smoothing, copy" in card
    assert "tuned: chosen was trial" in card
    assert "somewhat too good" in card
    assert len([note for note in read_start(made.folder).notes if note.startswith("tuned: ")]) == 3


def test_tokens_are_made_once_with_and_once_without_copying(made: Made) -> None:
    assert [name for name, _, _ in made.tokens] == ALL
    for copies in {copies for _, copies, _ in made.tokens}:
        assert [given for _, each, given in made.tokens if each is copies].count(False) == 1


def test_what_is_told(made: Made) -> None:
    said = made.said
    assert "tuning for 10 minutes in all: 3 trials of about 60 seconds, then one run of about 7 minutes" in said
    assert "trial 1 of 3: what is chosen without a search · exact " in said
    assert "trial 3 of 3: learning rate " in said
    assert said.index("trial 3 of 3") < said.index("tuned: chosen was") < said.index("training ")
    assert said.count("preset rnn-attention, ") == 1
    assert said.count("pairs are few") == 1


# ── what comes of the trials ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_best_is_trained_last_on_the_same_examples(copy_file: Path, tmp_path: Path, runs: Runs) -> None:
    runs.results = {"trial-01": 20.0, "trial-02": 60.0, "trial-03": 40.0}
    tune(copy_file, tmp_path / "m")
    assert runs.names == ALL
    configs = [c for _, c, _ in runs.calls]
    assert configs[3] == configs[1]
    assert len({(c.data, c.tokens, c.task, c.train.seed) for c in configs}) == 1
    assert [row["score"] for row in runs.table] == ["20.0000", "60.0000", "40.0000"]


def test_of_equals_the_first_is_taken(copy_file: Path, tmp_path: Path, runs: Runs) -> None:
    tune(copy_file, tmp_path / "m")
    assert runs.calls[3][1] == runs.calls[0][1]


def test_less_is_better_where_the_score_is_an_error(copy_file: Path, tmp_path: Path, runs: Runs) -> None:
    runs.results = {"trial-01": 50.0, "trial-02": 60.0, "trial-03": 40.0}

    def train(*words: Any) -> Any:
        model, found = runs.train(*words)
        return model, SimpleNamespace(metrics={"cer": found.metrics["exact"]}, facts={})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial, "train", train)
        tune(copy_file, tmp_path / "m", settings=(*TINY, "train.metric=cer"))
    assert runs.calls[3][1] == runs.calls[2][1]


def test_a_search_without_a_folder(copy_file: Path, runs: Runs) -> None:
    tune(copy_file, None)
    assert runs.names == ALL


def test_quiet_is_quiet_but_for_warnings(
    copy_file: Path, tmp_path: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tune(copy_file, tmp_path / "m")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(plan, "budget", lambda minutes: Budget(minutes, 3, 0.1))
    tune(copy_file, tmp_path / "n")
    assert capsys.readouterr().err.splitlines() == [
        "warning: 3 trials of 6 seconds tell little; --minutes 4 or more gives more and better ones"
    ]


def test_the_final_run_has_what_is_left(copy_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Runs()
    monkeypatch.setattr(trial, "train", runs.train)
    monkeypatch.setattr(search, "train", runs.train)
    tune(copy_file, tmp_path / "m", settings=(*TINY, "train.minutes=30.0"))
    assert len(runs.names) == 11
    assert {c.train.minutes for _, c, _ in runs.calls[:10]} == {1.5}
    last = runs.calls[10][1].train
    assert last.minutes is not None
    assert 25 < last.minutes < 30  # the trials took no time


def test_minutes_are_what_the_data_deserve_whatever_preset_there_is(copy_file: Path) -> None:
    words = [plan.Asked(str(copy_file), preset=name, words=tuple(said)) for name, said in
             ((None, []), ("decoder", []), (None, ["encoder.kind=none"]))]  # fmt: skip
    assert len({plan.minutes_of(each) for each in words}) == 1


def test_the_search_ends_where_trials_take_too_long(
    copy_file: Path, tmp_path: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "budget", lambda minutes: Budget(1e-6, 3, 1e-7))
    tune(copy_file, tmp_path / "m")
    assert runs.names == ["trial-01", "m"]


# ── what goes on ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_finished_trials_are_read(
    copy_file: Path, tmp_path: Path, runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    tune(copy_file, tmp_path / "whole")
    whole, runs.calls = runs.table, []
    runs.results = {"trial-03": STOPPED}
    with pytest.raises(Interrupted, match=r"step 2 of trial 3; the same command goes on with the search") as caught:
        tune(copy_file, tmp_path / "m")
    assert caught.value.exit_code == 130
    with pytest.raises(FolderError, match="holds a search for settings; the command that began it"):
        regard.resume(tmp_path / "m")
    runs.calls, runs.results = [], {}
    tune(copy_file, tmp_path / "m", quiet=False)
    assert runs.names == ["trial-03", "m"]
    assert "2 of 3 trials have finished already, and are taken as they are" in capsys.readouterr().err
    assert [row["settings"] for row in runs.table] == [row["settings"] for row in whole]


def test_a_trial_that_was_begun_goes_on(
    copy_file: Path, tmp_path: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    resumed: list[str] = []

    def resume(place: Path, quiet: bool) -> Any:
        resumed.append(place.name)
        return runs.train(few_steps(config, 1.0), "", None, place, Call(), Given())

    runs.results = {"trial-02": STOPPED}
    with pytest.raises(Interrupted):
        tune(copy_file, tmp_path / "m")
    config, runs.calls, runs.results = runs.calls[1][1], [], {}
    monkeypatch.setattr(trial, "begun", lambda place: place.name == "trial-02")
    monkeypatch.setattr(folders, "read_config", lambda place: config)
    monkeypatch.setattr(trial, "resume", resume)
    tune(copy_file, tmp_path / "m")
    assert resumed == ["trial-02"]
    assert runs.names == ["trial-02", "trial-03", "m"]


def test_only_the_final_run_is_left(copy_file: Path, tmp_path: Path, runs: Runs) -> None:
    runs.results = {"m": STOPPED}
    with pytest.raises(Interrupted, match="regard resume x goes on"):
        tune(copy_file, tmp_path / "m")
    runs.calls, runs.results = [], {}
    tune(copy_file, tmp_path / "m")
    assert runs.names == ["m"]


def test_the_final_run_goes_on(copy_file: Path, tmp_path: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    usual: Callable[..., Any] = regard.api.run_training
    monkeypatch.setattr(search, "train", usual)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("regard.training.run.tidy", lambda folder: None)
        tune(copy_file, tmp_path / "m")
    assert [path.name for path in (tmp_path / "m" / "tune").iterdir()] == ["search.json"]
    (tmp_path / "m" / "manifest.json").unlink()
    runs.calls = []
    monkeypatch.setattr(search, "resume", lambda place, quiet: (place.name, None))
    assert tune(copy_file, tmp_path / "m") == "m"
    assert not runs.calls
    tidy(tmp_path / "m")
    assert not (tmp_path / "m" / "tune").exists()


# ── what fails, and what is refused ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("error", [DivergedError("step 7: no number"), ConfigError("step 7: no number"), float("nan")])
def test_a_trial_that_fails_is_noted(
    copy_file: Path, tmp_path: Path, runs: Runs, error: Exception | float, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.results = {"trial-02": error}
    tune(copy_file, tmp_path / "m", quiet=False)
    assert runs.names == ALL
    assert runs.table[1]["score"] == ""
    assert runs.table[1]["failure"] in ("step 7: no number", "exact is not a number")
    assert " · failed: " in capsys.readouterr().err


def test_all_fail(copy_file: Path, tmp_path: Path, runs: Runs) -> None:
    runs.results = {name: RegardError("out of memory; …") for name in ALL}
    with pytest.raises(RegardError, match="none of 3 trials came to an end; the first: out of memory"):
        tune(copy_file, tmp_path / "m")


@pytest.mark.parametrize("error", [DataError("x.tsv:1: no"), ConfigError("encoder.layers: no")])
def test_what_is_wrong_without_a_search_ends_it(copy_file: Path, tmp_path: Path, runs: Runs, error: Exception) -> None:
    runs.results = {"trial-01": error}
    with pytest.raises(type(error)):
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


def test_another_search_is_replaced_by_force_alone(copy_file: Path, tmp_path: Path, runs: Runs) -> None:
    other = (*TINY, "train.seed=5")
    runs.results = {"trial-02": STOPPED}
    with pytest.raises(Interrupted):
        tune(copy_file, tmp_path / "m")
    with pytest.raises(UsageError, match=r"holds a search with train\.seed=0 where 5 is asked for"):
        tune(copy_file, tmp_path / "m", settings=other)
    runs.calls, runs.results = [], {}
    tune(copy_file, tmp_path / "m", settings=other, force=True)
    assert runs.names == ALL


def test_an_equal_search_is_begun_anew_by_force(copy_file: Path, tmp_path: Path, runs: Runs) -> None:
    runs.results = {"trial-02": STOPPED}
    for force, how in ((False, "the same command goes on"), (True, "the same command, without --force, goes on")):
        with pytest.raises(Interrupted, match=how):
            tune(copy_file, tmp_path / "m", force=force)
    assert runs.names == ["trial-01", "trial-02"] * 2
    runs.calls, runs.results = [], {"m": STOPPED}
    with pytest.raises(Interrupted):
        tune(copy_file, tmp_path / "m")
    assert runs.names == ["trial-02", "trial-03", "m"]
    runs.calls, runs.results = [], {}
    tune(copy_file, tmp_path / "m", force=True)
    assert runs.names == ALL


def test_force_is_said_once(made: Made, copy_file: Path, tmp_path: Path, runs: Runs) -> None:
    """A search that was begun in place of a model goes on without it, as long as that model stands there."""
    shutil.copytree(made.folder, tmp_path / "m")
    runs.results = {"trial-02": STOPPED}
    with pytest.raises(Interrupted):
        tune(copy_file, tmp_path / "m", force=True)
    assert finished(tmp_path / "m")
    with pytest.raises(Interrupted):
        tune(copy_file, tmp_path / "m")
    assert runs.names == ["trial-01", "trial-02", "trial-02"]
    other = regard.load(tmp_path / "m")
    next(other.model.parameters()).data += 1.0
    other.save(tmp_path / "m")
    with pytest.raises(UsageError, match="holds another run"):
        tune(copy_file, tmp_path / "m")


def test_another_body_is_another_search(copy_file: Path, copy_folder: Path, tmp_path: Path, runs: Runs) -> None:
    """A body is known by its weights, not by where it lies."""
    body, moved = tmp_path / "body", tmp_path / "moved"
    words = {"settings": ("train.minutes=10.0",), "out": tmp_path / "m"}
    shutil.copytree(copy_folder, body)
    runs.results = {"trial-02": STOPPED}
    with pytest.raises(Interrupted):
        tune(copy_file, start_from=body, **words)
    body.rename(moved)
    runs.calls, runs.results = [], {"trial-03": STOPPED}
    with pytest.raises(Interrupted):
        tune(copy_file, start_from=moved, **words)
    assert runs.names == ["trial-02", "trial-03"]
    other = regard.load(moved)
    next(other.model.parameters()).data += 1.0
    other.save(moved)
    with pytest.raises(UsageError, match="holds a search with from="):
        tune(copy_file, start_from=moved, **words)


def test_what_others_wrote_is_not_touched(made: Made, copy_file: Path, tmp_path: Path, runs: Runs) -> None:
    (tmp_path / "m" / "tune").mkdir(parents=True)
    (tmp_path / "m" / "tune" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds tune, and no search of regard wrote it"):
        tune(copy_file, tmp_path / "m")
    tidy(tmp_path / "m")
    assert (tmp_path / "m" / "tune" / "mine.txt").exists()
    with pytest.raises(UsageError, match="holds another run"):
        tune(copy_file, made.folder)
    assert finished(made.folder)
