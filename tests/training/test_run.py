"""From a file to a folder: what is in it, what is refused, what replaces what."""

import hashlib
import json
import re
import xml.etree.ElementTree as ElementTree
from inspect import signature
from pathlib import Path

import pytest
import torch

import regard
from regard import config
from regard.data import builtin
from regard.errors import ConfigError, DataError, UsageError
from regard.rules import Why
from regard.training.run import Call, Given, train

pytestmark = pytest.mark.no_shapes

QUICK = ["encoder.width=16", "decoder.width=16", "train.steps=4", "train.warmup=1", "train.validate_steps=2",
         "train.checkpoint_steps=2", "train.tokens_per_batch=64", "train.validate_examples=5"]  # fmt: skip


def quick(*words: str, preset: str = "rnn-attention") -> config.Config:
    return config.resolve(preset, None, [*QUICK, *words])


def test_a_run_is_asked_for_in_few_words() -> None:
    assert [*signature(train).parameters] == ["c", "path", "valid", "out", "call", "given"]


# ── what is said ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_warnings_are_shown_to_whoever_wants_to_hear_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.tsv").write_text("".join(f"s{i}\tt{i}\n" for i in range(20)) + "s" * 90 + "\tt\n" + "bad\n")
    (tmp_path / "valid.tsv").write_text("s1\tt1\nx\ty\n")
    words = quick("data.max_source=20", "data.skip_bad=true")
    given = Given(Why(("task transduce: said by nobody", "warning: of the guess")))
    train(words, str(tmp_path / "train.tsv"), str(tmp_path / "valid.tsv"), None, Call(quiet=True), given)
    told = capsys.readouterr().err.splitlines()
    assert [line for line in told if not line.startswith("warning: ")] == []
    for what in ("of the guess", "1 of 22 lines can not be used", "1 of 2 sources are in the training file too",
                 "1 examples left out"):  # fmt: skip
        assert sum(what in line for line in told) == 1


# ── what is in the folder ────────────────────────────────────────────────────────────────────────────────────────────


def test_files_of_the_folder(copy_folder: Path) -> None:
    assert {path.name for path in copy_folder.iterdir()} == {
        "README.md", "calibration.json", "checkpoints", "config.toml", "curves.svg", "manifest.json", "metrics.jsonl",
        "model.safetensors", "report.html", "report.json", "run.json", "times.jsonl", "tokenizer.json",
    }  # fmt: skip


def test_manifest_lists_every_file_with_its_hash(copy_folder: Path) -> None:
    manifest = json.loads((copy_folder / "manifest.json").read_text(encoding="utf-8"))
    files = {path.name: path.read_bytes() for path in copy_folder.iterdir() if path.is_file()}
    del files["manifest.json"]
    assert manifest["format"] == 1
    assert manifest["files"] == {name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
                                 for name, content in files.items()}  # fmt: skip


def test_log_parses_and_tells_what_was_promised(copy_folder: Path) -> None:
    lines = [json.loads(line) for line in (copy_folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    steps = [line for line in lines if "loss" in line]
    assert [line["step"] for line in steps] == list(range(15, 301, 15))
    for line in steps:
        assert line.keys() == {"step", "loss", "learning_rate", "gradient_norm"}  # nothing that depends on the clock
        assert all(isinstance(value, float | int) for value in line.values())
    assert max(line["learning_rate"] for line in steps) <= 0.005
    assert steps[-1]["loss"] < steps[0]["loss"] / 2
    validations = [line for line in lines if "valid_exact" in line]
    assert [line["step"] for line in validations] == [100, 200, 300]
    for line in validations:
        assert {"valid_token_accuracy_forced", "valid_token_accuracy_free", "valid_exposure_gap"} <= line.keys()


def test_times_have_a_log_of_their_own(copy_folder: Path) -> None:
    lines = [json.loads(line) for line in (copy_folder / "times.jsonl").read_text(encoding="utf-8").splitlines()]
    speeds = [line["tokens_per_second"] for line in lines if "tokens_per_second" in line]
    assert len(speeds) == 20
    assert min(speeds) > 0
    assert [line["step"] for line in lines if "validation_seconds" in line] == [100, 200, 300]
    seconds = [line["seconds"] for line in lines]
    assert seconds == sorted(seconds)


def test_curve_is_a_picture(copy_folder: Path) -> None:
    root = ElementTree.parse(copy_folder / "curves.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"


def test_card(copy_folder: Path, copy_file: Path) -> None:
    text = (copy_folder / "README.md").read_text(encoding="utf-8")
    assert "`rnn-attention`" in text
    assert re.search(r"sha256 `[0-9a-f]{64}`", text)
    assert "seed 0" in text
    assert f"torch {torch.__version__}" in text
    assert f"regard {regard.__version__}" in text
    assert re.search(r"\| chrf \|.*`nrefs:1\\\|.*version:", text, re.IGNORECASE)
    assert "| bleu |" not in text
    assert "bleu is left out: no reference has four words" in text
    assert "command: `regard.train`" in text
    assert "84 training and 84 validation examples" in text
    assert "sources are in the training file too" in text
    assert "exposure gap" in text
    assert "300 steps" in text


CARDS = {  # what a card of each task says, and what it does not
    "classify": (["`rnn-attention` (recurrent", "a label", "% that would be right if", "## Confusions", "2 labels"],
                 ["beam", "looks up", "→ characters"]),
    "tag": (["a label", "labels that training never saw"], ["beam", "looks up"]),
    "embed": (["regard embed FOLDER <", "different texts among which"], ["regard run", "beam"]),
    "fill": (["[mask]", "tokens that were hidden"], ["beam", "→"]),
    "generate": (["--sample", "without its encoder"], ["beam", "→"]),
}  # fmt: skip


@pytest.mark.parametrize("task", CARDS)
def test_cards_of_other_tasks_speak_of_what_is_there(tmp_path: Path, task: str) -> None:
    texts, labels = ["the cat sat", "a dog ran off", "cats sit"], ["B O O O", "B O O O O", "B O O"]
    targets = {"tag": [labels[i % 3] for i in range(20)], "classify": [f"l{i % 2}" for i in range(20)]}
    lines = [f"{texts[i % 3]} {i}\t{targets.get(task, texts * 7)[i]}\n" for i in range(20)]
    (tmp_path / "x.tsv").write_text("".join(lines), encoding="utf-8")
    words = [word for word in QUICK if not word.startswith("encoder" if task == "generate" else "decoder")]
    c = config.resolve("rnn-attention", None, [f"task={task}", *words])
    train(c, str(tmp_path / "x.tsv"), None, tmp_path / "m", Call(quiet=True))
    card = (tmp_path / "m" / "README.md").read_text(encoding="utf-8").split("- seed 0")[0]
    said, unsaid = CARDS[task]
    assert [text for text in said if text not in card] == []
    assert [text for text in unsaid if text in card] == []


def test_config_in_the_folder_is_the_one_that_was_used(copy_folder: Path) -> None:
    found = config.from_toml((copy_folder / "config.toml").read_text(encoding="utf-8"), "x")
    assert (found.preset, found.train.steps, found.encoder.kind) == ("rnn-attention", 300, "recurrent")


def test_trained_and_loaded_are_the_same(copy_file: Path, tmp_path: Path) -> None:
    trained, found = train(quick(), str(copy_file), None, tmp_path / "m", Call(quiet=True))
    loaded = regard.load(tmp_path / "m")
    for name, weight in trained.model.named_parameters():
        assert torch.equal(weight, loaded.model.get_parameter(name))
    assert len(found.outputs) == 16
    assert loaded.config == trained.config


def test_folder_of_a_run_twice_is_the_same_but_for_time(copy_file: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        train(quick(), str(copy_file), None, tmp_path / name, Call(quiet=True))
    for name in ("config.toml", "tokenizer.json", "model.safetensors", "metrics.jsonl", "curves.svg"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize(("preset", "metric"), [("encoder", "accuracy"), ("caption", "exact"), ("decoder", "loss")])
def test_other_tasks_leave_the_same_folder(tmp_path: Path, copy_file: Path, preset: str, metric: str) -> None:
    words = [word for word in QUICK if not word.startswith(("encoder", "decoder"))] + [f"train.metric={metric}"]
    if preset == "caption":
        builtin.write("captions", 20, tmp_path / "c.tsv")
    path = str(tmp_path / "c.tsv") if preset == "caption" else str(copy_file)
    trained, found = train(config.resolve(preset, None, words), path, None, tmp_path / "m", Call(quiet=True))
    assert metric in found.metrics or metric in found.facts
    assert regard.load(tmp_path / "m").config.task == trained.config.task
    ElementTree.parse(tmp_path / "m" / "curves.svg")


# ── refused ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_folder_that_holds_another_run(copy_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    train(quick(), str(copy_file), None, folder, Call(quiet=True))
    before = (folder / "manifest.json").read_bytes()
    with pytest.raises(UsageError, match="holds another run; choose another -o, or --force"):
        train(quick("train.seed=1"), str(copy_file), None, folder, Call(quiet=True))
    assert (folder / "manifest.json").read_bytes() == before
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    train(quick("train.seed=1"), str(copy_file), None, folder, Call(force=True, quiet=True))
    assert regard.load(folder).config.train.seed == 1
    assert (folder / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_forced_run_that_can_not_start_costs_nothing(copy_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    train(quick(), str(copy_file), None, folder, Call(quiet=True))
    (tmp_path / "bad.tsv").write_text("a\tb\n", encoding="utf-8")
    with pytest.raises(DataError):
        train(quick(), str(tmp_path / "bad.tsv"), None, folder, Call(force=True, quiet=True))
    regard.load(folder)


@pytest.mark.parametrize(
    ("words", "preset"),
    [
        (["train.device=gpu"], "rnn"),
        (["train.metric=accuracy"], "rnn"),
        (["train.metric=bleu"], "encoder"),
    ],
)
def test_what_can_not_end_well_is_refused_before_anything_is_written(
    copy_file: Path, tmp_path: Path, words: list[str], preset: str
) -> None:
    with pytest.raises(ConfigError, match=words[0].split("=")[0]):
        train(config.resolve(preset, None, words), str(copy_file), None, tmp_path / "m", Call(quiet=True))
    assert not (tmp_path / "m").exists()


def test_a_file_where_the_folder_should_be(copy_file: Path, tmp_path: Path) -> None:
    (tmp_path / "m").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="expected a folder to write the model into, found a file"):
        train(quick(), str(copy_file), None, tmp_path / "m", Call(quiet=True))
    with pytest.raises(UsageError, match="can not be made"):
        train(quick(), str(copy_file), None, tmp_path / "m" / "below", Call(quiet=True))
