"""Presets side by side: one split, one tokenizer, one budget; what stands there is taken; what can not be is not."""

import json
import random
import re
import shutil
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import regard
from regard import folder as folders
from regard.data import builtin
from regard.errors import ConfigError, DataError, DivergedError, Interrupted, MissingError, UsageError
from regard.lab.compare import runs as runs_of
from regard.lab.compare.make import Comparison
from regard.lab.compare.page import page
from regard.lab.compare.plan import Asked, plan
from regard.lab.compare.runs import ending
from regard.lab.compare.show import render
from regard.tasks.choose import deciding
from regard.training.home import finished, read_start

pytestmark = pytest.mark.no_shapes  # whole trainings: the watch would see nothing that the tests of the parts do not

TINY = ("encoder.width=16", "decoder.width=16", "data.max_source=12", "data.max_target=12", "train.warmup=1",
        "train.tokens_per_batch=128", "train.validate_examples=10", "train.threads=1")  # fmt: skip
PRESETS = "rnn,transformer"


def quick(path: Path, out: Path, presets: str = PRESETS, **more: Any) -> Comparison:
    return regard.compare(path, presets, out=out, **{"seeds": 2, "steps": 4, "settings": TINY, **more})


@pytest.fixture(scope="module")
def made(copy_file: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Comparison, Path]:
    """A finished comparison of two presets with two seeds; treat it as read-only."""
    out = tmp_path_factory.mktemp("compare") / "both"
    return quick(copy_file, out, test=copy_file), out


@pytest.fixture
def again(made: tuple[Comparison, Path], tmp_path: Path) -> Path:
    """A copy of it that may be changed."""
    return Path(shutil.copytree(made[1], tmp_path / "again"))


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be trained."""

    def refuse(*words: Any, **more: Any) -> None:
        raise AssertionError("something is trained")

    monkeypatch.setattr(runs_of, "train", refuse)
    monkeypatch.setattr(runs_of, "resume", refuse)


# ── what comes out ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_run_is_a_model_folder_with_the_same_tokens_and_examples(made: tuple[Comparison, Path]) -> None:
    names = ["rnn-0", "rnn-1", "transformer-0", "transformer-1"]
    places = [made[1] / name for name in names]
    assert [finished(place) for place in places] == [True] * 4
    assert len({read_start(place).data_hash for place in places}) == 1
    assert len({(place / "tokenizer.json").read_bytes() for place in places}) == 1
    assert [folders.read_config(place).train.seed for place in places] == [0, 1, 0, 1]
    assert isinstance(regard.load(places[3])("abc"), str)
    assert sorted(row.preset for row in made[0].rows) == ["rnn", "transformer"]
    assert made[0].rows[1].runs == ("transformer-0", "transformer-1")


def test_scores_are_means_over_seeds_with_intervals(made: tuple[Comparison, Path], copy_file: Path) -> None:
    c = made[0]
    assert (c.metric, c.examples, c.seeds, c.task) == ("exact", 84, (0, 1), "transduce")
    for row in c.rows:
        own = [regard.load(made[1] / name).score(copy_file) for name in row.runs]
        for name, spread in row.scores.items():
            assert spread.runs == pytest.approx([found.metrics[name].value for found in own])
            assert spread.value == pytest.approx(sum(spread.runs) / 2)
            assert spread.low is not None
            assert spread.high is not None
            assert spread.low <= spread.value <= spread.high
        assert row.exposure is not None
        assert row.exposure.gap == pytest.approx(sum(found.facts["exposure_gap"] for found in own) / 2)


def test_speeds_steps_and_lengths(made: tuple[Comparison, Path]) -> None:
    rnn, transformer = made[0].rows
    for row in (rnn, transformer):
        assert row.speed.training is None or row.speed.training > 0
        assert row.speed.greedy is not None
        assert row.speed.beam is not None
        assert [steps for steps, _ in row.trained] == [4, 4]
        assert sum(group.examples for group in row.by_length) == 84
        assert row.steps is not None
    assert rnn.steps is not None
    assert transformer.steps is not None
    assert (rnn.steps.path or 0) > (transformer.steps.path or 0) > 0
    assert rnn.parameters != transformer.parameters


def test_one_test_for_each_pair(made: tuple[Comparison, Path], copy_file: Path, tmp_path: Path) -> None:
    assert [(test.first, test.second) for test in made[0].tests] == [("rnn", "transformer")]
    assert made[0].tests[0].corrected == made[0].tests[0].p_value
    three = quick(copy_file, tmp_path / "c", "rnn,rnn-attention,transformer", seeds=1, steps=2)
    assert len(three.tests) == 3
    assert all(test.corrected >= test.p_value for test in three.tests)
    assert "one seed" in " ".join(three.notes)
    assert three.test == ""
    assert three.examples < 84


def test_the_files_tell_the_same(made: tuple[Comparison, Path]) -> None:
    kept = json.loads((made[1] / "compare.json").read_text(encoding="utf-8"))
    assert kept == json.loads(json.dumps(made[0].as_dict()))
    text = render(made[0])
    assert "mean of 2 seeds, with its 95 % interval over seeds and examples" in text
    assert "Holm" in text
    assert "exact by source length" in text


def test_the_curve_by_length_is_a_picture_of_its_own(made: tuple[Comparison, Path]) -> None:
    drawn = ElementTree.parse(made[1] / "by-length.svg").getroot()
    said = "".join(drawn.itertext())
    assert drawn.tag.endswith("svg")
    assert all(row.preset in said for row in made[0].rows)
    assert "source tokens" in said
    assert "--ink" in said  # its own colours


def test_the_page_asks_for_nothing_and_runs_nothing(made: tuple[Comparison, Path]) -> None:
    text = (made[1] / "compare.html").read_text(encoding="utf-8")
    assert "default-src &#x27;none&#x27;" in text
    assert "<script" not in text
    assert not re.search(r"(?:src|href|style)=", text)
    assert text.count("<svg") == 3
    assert {"rnn", "transformer"} <= set(re.findall(r'scope="row">([^<]+)<', text))


def test_no_text_of_the_data_is_markup(made: tuple[Comparison, Path]) -> None:
    from dataclasses import replace

    text = page(replace(made[0], data="<img src=x>", command="<script>alert(1)</script>", notes=("<b>",)))
    assert "<img" not in text
    assert "<script" not in text


# ── what stands there already ────────────────────────────────────────────────────────────────────────────────────────


def test_what_has_finished_is_not_trained_again(
    made: tuple[Comparison, Path], again: Path, copy_file: Path, untrained: None
) -> None:
    found = quick(copy_file, again, test=copy_file)
    assert [row.scores for row in found.rows] == [row.scores for row in made[0].rows]
    assert found.tests == made[0].tests


def test_one_more_seed_is_trained_alone(again: Path, copy_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[Path] = []
    usual: Callable[..., Any] = runs_of.train

    def train(*words: Any) -> Any:
        trained.append(words[3])
        assert words[5].tokens is not None
        return usual(*words)

    monkeypatch.setattr(runs_of, "train", train)
    assert quick(copy_file, again, seeds=3).seeds == (0, 1, 2)
    assert [path.name for path in trained] == ["rnn-2", "transformer-2"]


def test_what_was_interrupted_goes_on(again: Path, copy_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (again / "transformer-1" / "manifest.json").unlink()
    resumed: list[Path] = []

    def stop(place: Path, quiet: bool) -> None:
        resumed.append(place)
        raise Interrupted("interrupted by SIGINT at step 3; regard resume x goes on from there", 2)

    monkeypatch.setattr(runs_of, "resume", stop)
    with pytest.raises(Interrupted, match=r"step 3 of transformer-1; the same command goes on") as caught:
        quick(copy_file, again)
    assert caught.value.exit_code == 130
    assert [place.name for place in resumed] == ["transformer-1"]


def test_a_run_that_diverges_is_left_out_and_told(
    copy_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    train = runs_of.train

    def diverging(c: Any, *words: Any, **more: Any) -> Any:
        if (c.preset, c.train.seed) in lost:
            raise DivergedError("step 3: no number")
        return train(c, *words, **more)

    lost = [("rnn", 1)]
    monkeypatch.setattr(runs_of, "train", diverging)
    found = quick(copy_file, tmp_path / "one", quiet=False)
    assert [each.preset for each in found.rows] == ["rnn", "transformer"]
    assert any(note.startswith("rnn-1 is left out of the comparison: step 3") for note in found.notes)
    assert "warning: rnn-1 is left out of the comparison: step 3" in capsys.readouterr().err
    lost += [("rnn", 0)]
    assert [each.preset for each in quick(copy_file, tmp_path / "two").rows] == ["transformer"]
    lost += [("transformer", 0), ("transformer", 1)]
    with pytest.raises(DivergedError):
        quick(copy_file, tmp_path / "none")


def test_other_settings_are_refused(again: Path, copy_file: Path, untrained: None) -> None:
    with pytest.raises(UsageError, match=r"holds a run with train\.steps=4 where 5 is asked for"):
        quick(copy_file, again, steps=5)


def test_other_data_are_refused(again: Path, copy_file: Path, tmp_path: Path, untrained: None) -> None:
    other = tmp_path / "other.tsv"
    other.write_text(copy_file.read_text() + "dddd\tdddd\n")
    with pytest.raises(UsageError, match="not what the runs in"):
        quick(other, again)


def test_how_long_it_will_take() -> None:
    assert ending(6, [], 10.0).startswith("; all of them: at most about 60 minutes, until ")
    assert ending(3, [], None) == ""
    assert ending(3, [30.0, 50.0], None).startswith("; all of them: about 2 minutes, until ")


# ── what is refused before anything is trained ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("presets", "more", "complaint"),
    [
        ("rnn", {}, "expected at least two"),
        ("rnn,rnn", {}, "rnn stands there twice"),
        ("rnn,trasformer", {}, "did you mean transformer"),
        ("rnn,encoder", {}, "--presets encoder: .*needs a decoder"),
        ("rnn,caption", {}, "--presets caption: .*captions need"),
        (PRESETS, {"settings": ("train.seed=3",)}, "every run has its own"),
        (PRESETS, {"settings": ("encoder.layer=3",)}, r"--presets rnn: .*did you mean encoder\.layers"),
        (PRESETS, {"settings": ("train.metric=blue",)}, "is not a score of the task"),
        (PRESETS, {"seeds": 0}, "--seeds 0"),
        (PRESETS, {"minutes": -1.0}, "--minutes -1"),
    ],
)
def test_what_makes_no_comparison(
    copy_file: Path, tmp_path: Path, untrained: None, presets: str, more: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        quick(copy_file, tmp_path / "none", presets, **more)
    assert not (tmp_path / "none").exists()


def test_several_processes(copy_file: Path, tmp_path: Path, untrained: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match=r"compare trains one run after the other.*without torchrun"):
        quick(copy_file, tmp_path / "none")


def test_files_that_are_missing_or_can_not_be_read(copy_file: Path, tmp_path: Path, untrained: None) -> None:
    bad = tmp_path / "bad.tsv"
    bad.write_text("a\tb\nalone\n")
    for more in ({"test": tmp_path / "none.tsv"}, {"valid": tmp_path / "none.tsv"}):
        with pytest.raises(MissingError, match=r"none\.tsv: no such file"):
            quick(copy_file, tmp_path / "none", **more)
    with pytest.raises(DataError, match=r"bad\.tsv:2: expected 2 columns"):
        quick(copy_file, tmp_path / "none", test=bad)
    assert not (tmp_path / "none").exists()


def test_a_setting_that_one_preset_can_not_have(copy_file: Path) -> None:
    with pytest.raises(ConfigError, match="--presets decoder: "):
        plan(Asked(str(copy_file), ("transformer", "decoder"), settings=("encoder.layers=3",)))


# ── what all have in common ──────────────────────────────────────────────────────────────────────────────────────────


def test_one_vocabulary_for_all_if_one_can_not_do_without(copy_file: Path) -> None:
    apart, shared = (plan(Asked(str(copy_file), ("rnn", other))).runs for other in ("transformer", "decoder"))
    assert [run.config.tokens.shared for run in apart] == [False] * 6
    assert [run.config.tokens.shared for run in shared] == [True] * 6


def test_tokens_and_limits_are_those_of_all(copy_file: Path) -> None:
    found = plan(Asked(str(copy_file), ("rnn", "sutskever2014"), seeds=1)).runs
    assert found[0].config.tokens == found[1].config.tokens
    assert found[0].config.data == found[1].config.data
    assert found[0].config.tokens.source == "characters"
    assert {run.config.train.minutes for run in found} == {10.0}


@pytest.mark.parametrize(
    ("words", "settings", "metric"),
    [
        ("{2} {3} the man {0} {4} {5} town {1} {6}", (), "bleu"),  # as `train` decides for sentences
        ("the man {0} went to the town of {1} and saw it", (), "exact"),  # a form that is filled in
        ("the man {0} went to the town of {1} and saw it", ("train.metric=chrf",), "chrf"),
        ("wo{0}rd{1}", (), "exact"),
    ],
)
def test_the_score_that_decides_is_that_of_train(
    write: Callable[[str, str], str], words: str, settings: tuple[str, ...], metric: str
) -> None:
    draw = random.Random(0)
    some = [["".join(draw.choices(string.ascii_lowercase, k=6)) for _ in range(5)] for _ in range(60)]
    rows = (f"{words.format(f'a{i}', i, *some[i])}\t{words.format(f'b{i}', 7 * i, *some[-i])}\n" for i in range(60))
    made = plan(Asked(write("x.tsv", "".join(rows)), ("rnn", "transformer"), seeds=1, settings=settings))
    assert {deciding(run.config) for run in made.runs} == {metric}


def test_steps_alone_need_no_minutes(copy_file: Path) -> None:
    words = Asked(str(copy_file), ("rnn", "conv"), seeds=1, steps=7)
    assert {(run.config.train.steps, run.config.train.minutes) for run in plan(words).runs} == {(7, None)}


def test_the_task_is_the_data_s_or_that_of_all_presets(copy_file: Path) -> None:
    assert plan(Asked(str(copy_file), ("encoder", "bert"), seeds=1)).runs[0].config.task == "fill"
    said = plan(Asked(str(copy_file), ("encoder", "transformer"), task="fill", seeds=1))
    assert [run.config.task for run in said.runs] == ["fill", "fill"]


@pytest.mark.parametrize(
    ("task", "presets", "metric"),
    [
        ("intents", "rnn,transformer", "accuracy"),
        ("slots", "rnn,encoder", "f1"),
        ("story", "rnn,decoder", "loss_per_character"),
    ],
)
def test_other_tasks(tmp_path: Path, task: str, presets: str, metric: str) -> None:
    """Those that read, and text that goes on, whose pages each preset cuts in its own way."""
    [path, *_] = builtin.write(task, 120, tmp_path / f"{task}{'.txt' if task == 'story' else '.tsv'}")
    words = ("train.validate_examples=10", "train.threads=1", "train.tokens_per_batch=256")
    found = regard.compare(path, presets, out=tmp_path / "out", seeds=1, steps=1, settings=words)
    assert found.metric == metric
    assert all(row.exposure is None and row.speed.beam is None for row in found.rows)
    assert (tmp_path / "out" / "compare.html").is_file()
    assert render(found)


@pytest.mark.parametrize(
    "presets", [("transformer", "rnn-attention"), ("rnn-attention", "decoder"), ("rnn", "sutskever2014")]
)
@pytest.mark.parametrize("words", ["the man {0} went to the town of {1} and saw it", "wo{0}rd{1}"])
def test_every_run_has_the_tokens_that_are_told(
    write: Callable[[str, str], str], presets: tuple[str, ...], words: str
) -> None:
    path = write(
        "x.tsv", "".join(f"{words.format(f'a{i}', i % 9)}\t{words.format(f'b{i}', i % 7)}\n" for i in range(60))
    )
    made = plan(Asked(path, presets, seeds=1))
    (kind,) = {(run.config.tokens.source, run.config.tokens.target, run.config.tokens.shared) for run in made.runs}
    told = next(line for line in made.why if line.startswith("chosen: tokens "))
    assert kind[0] == kind[1]
    assert told.startswith(f"chosen: tokens {kind[0]}")
