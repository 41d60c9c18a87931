"""A body trained on one task and used for another: what is kept, what is new, what is refused, and that it survives."""

import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import regard
from regard import config
from regard.data.read import Example
from regard.data.tokens import Tokenizer
from regard.data.vocabulary import learn
from regard.errors import ConfigError, FolderError, MissingError, RegardError, UsageError
from regard.folder import shapes_of
from regard.models.build import build
from regard.training import home, run
from regard.training.prepare import prepare
from regard.training.run import Call, Given, resume, train
from regard.training.transfer import Body, kept_names, kept_weights, read_body, resolve

pytestmark = pytest.mark.no_shapes

Same = Callable[[Path, Path], None]

BLOCKS = ["{side}.width=16", "{side}.heads=2", "{side}.layers=2", "{side}.feedforward=16"]
QUICK = ["train.steps=6", "train.warmup=1", "train.validate_steps=3", "train.checkpoint_steps=2", "train.average=2",
         "train.tokens_per_batch=128", "train.validate_examples=5"]  # fmt: skip
CLASSIFY = [*QUICK, "task=classify"]


def blocks(side: str) -> list[str]:
    return [word.format(side=side) for word in BLOCKS]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts with a label that says whether an `a` comes before the first `b`, and the texts alone."""
    folder = tmp_path_factory.mktemp("transfer")
    texts = ["".join(letters) for length in (3, 4) for letters in product("abcd", repeat=length)]
    labels = ["first" if "a" in text.split("b")[0] else "later" for text in texts]
    labelled = "".join(f"{text}\t{label}\n" for text, label in zip(texts, labels, strict=True))
    (folder / "labels.tsv").write_text(labelled, encoding="utf-8")
    (folder / "texts.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    tagged = "".join(f"{' '.join(text)}\t{' '.join(text.upper())}\n" for text in texts)
    (folder / "tags.tsv").write_text(tagged, encoding="utf-8")
    (folder / "pairs.tsv").write_text("".join(f"{text}\t{text[::-1]}\n" for text in texts), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def filled(place: Path) -> Path:
    """A model of the task fill; treat it as read-only."""
    words = [*blocks("encoder"), *QUICK, "task=fill", "data.source=1"]
    regard.train(place / "pairs.tsv", out=place / "filled", settings=words)
    return place / "filled"


@pytest.fixture(scope="module")
def body(filled: Path) -> Body:
    return read_body(filled)


@pytest.fixture(scope="module")
def translator(place: Path) -> Path:
    """A model with both sides; treat it as read-only."""
    words = ["encoder.width=16", "decoder.width=16", *QUICK]
    regard.train(place / "pairs.tsv", out=place / "translator", preset="rnn-attention", settings=words)
    return place / "translator"


@pytest.fixture(scope="module")
def alone(place: Path) -> Path:
    """A model that is a decoder alone; treat it as read-only."""
    words = [*blocks("decoder"), *QUICK]
    regard.train(place / "pairs.tsv", out=place / "alone", preset="decoder", settings=words)
    return place / "alone"


@pytest.fixture(scope="module")
def speaker(place: Path) -> Path:
    """A model of the task generate; treat it as read-only."""
    words = ["task=generate", "decoder.width=16", "decoder.layers=1", "generate.block=8", *QUICK]
    regard.train(place / "texts.txt", out=place / "speaker", preset="rnn-single", settings=words)
    return place / "speaker"


@pytest.fixture(scope="module")
def numbered(place: Path) -> Path:
    """A model of the task generate whose positions are learned: 17 places; treat it as read-only."""
    words = ["task=generate", "decoder.width=16", "decoder.layers=1", "generate.block=16", *QUICK]
    regard.train(place / "texts.txt", out=place / "numbered", preset="conv", settings=words)
    return place / "numbered"


def made(body: Body, *words: str, preset: str | None = None) -> config.Config:
    return resolve(body, preset, None, list(words))


def started(place: Path, folder: Path, *words: str, data: str = "labels.tsv") -> Path:
    """A run from a model, its folder beside the data."""
    out = place / f"from {folder.name} {'-'.join(words)}".replace("=", " ")
    regard.train(place / data, out=out, settings=list(words), start_from=folder)
    return out


def weights(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "model.safetensors")


# ── the config ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_body_is_kept_and_the_old_run_is_not(body: Body) -> None:
    c = made(body, "task=classify", "train.steps=7")
    assert (c.encoder, c.tokens, c.preset) == (body.config.encoder, body.config.tokens, "encoder")
    assert (c.task, c.decoder.kind, c.train.steps) == ("classify", "none", 7)
    assert c.data == config.Data()
    assert c.train.tokens_per_batch == config.resolve("encoder").train.tokens_per_batch != 128


def test_dropout_is_no_part_of_a_body(body: Body) -> None:
    c = made(body, "task=classify", "encoder.dropout=0.3", "embedding.dropout=0.2")
    assert c.encoder.dropout == 0.3  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("encoder.width=32", "encoder.width: found 32, but the model in .*filled was made with 16; its weights would"),
        ("encoder.kind=recurrent", "encoder.kind: found recurrent, but the model in .*filled was made with attention"),
        ("encoder.layers=3", "encoder.layers: found 3, but .* was made with 2"),
        ("encoder.position=rotary", "encoder.position: found rotary, but .* was made with sinusoidal"),
        ("embedding.scale=false", "embedding.scale: found False, but .* was made with True"),
        ("tokens.source=words", "tokens.source: found words, but .* made with characters; its weights know its own"),
        ("tokens.size=100", "tokens.size: found 100, but .* was made with 8000"),
        ("encoder.wdith=32", r"unknown setting encoder.wdith \(did you mean encoder.width\?\)"),
        ("task=generate", "--from .*filled: the body of this model is an encoder, and the task generate has no source"),
        ("task=caption", "--from .*filled: this model reads text, which is of no use to the task caption"),
        ("task=transduce", "the task transduce writes a target, and the model in .*filled has no decoder; name one"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(body: Body, word: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        made(body, "task=classify", word)


def test_learned_positions_bound_the_length(place: Path, tmp_path: Path) -> None:
    words = [*blocks("encoder"), *QUICK, "task=fill", "data.source=1", "encoder.position=learned", "data.max_source=9"]
    regard.train(place / "pairs.tsv", out=tmp_path / "b", settings=words)
    found = read_body(tmp_path / "b")
    assert made(found, "task=classify").data.max_source == 9
    with pytest.raises(ConfigError, match=r"data.max_source: found 12, .* with 9; it has learned positions for so"):
        made(found, "task=classify", "data.max_source=12")


@pytest.mark.parametrize(
    ("task", "longest"),
    [("classify", (16, 256)), ("tag", (16, 256)), ("embed", (16, 256)), ("extract", (16, 256)), ("transduce", (8, 7))],
)
def test_learned_positions_of_running_text_are_divided(numbered: Path, task: str, longest: tuple[int, int]) -> None:
    found = read_body(numbered)
    c = made(found, f"task={task}")
    assert (c.data.max_source, c.data.max_target, c.places) == (*longest, found.config.places)
    with pytest.raises(ConfigError, match=r"data.max_source.*: found room for .* places, but .* positions for 17"):
        made(found, f"task={task}", "data.max_source=12")


def test_learned_positions_may_be_divided_otherwise(numbered: Path, tmp_path: Path) -> None:
    found = read_body(numbered)
    assert made(found, "task=transduce", "data.max_source=12", "data.max_target=3").places == 17
    with pytest.raises(ConfigError, match=r"generate.block: found room for 9 places, .* positions for 17; the task"):
        made(found, "task=generate", "generate.block=8")
    words = ["task=transduce", "data.max_source=12", "data.max_target=3"]
    written = replace(found, config=made(found, *words))
    assert made(written, "task=transduce").data.max_source == 12
    back = made(written, "task=generate")
    assert (back.row, back.places, back.data) == (16, 17, config.Data())
    short = replace(
        found, config=made(found, "task=generate").model_copy(update={"generate": config.Generate(block=2)})
    )
    assert made(short, "task=classify").data.max_source == 2
    with pytest.raises(UsageError, match=r"learned positions for 3 places, and the task transduce needs at least 4"):
        made(short, "task=transduce")


def test_a_preset_only_adds_a_decoder(body: Body, place: Path, translator: Path) -> None:
    c = made(body, "task=transduce", preset="transformer")
    assert (c.encoder, c.decoder) == (body.config.encoder, config.resolve("transformer").decoder)
    with pytest.raises(UsageError, match=r"--preset rnn: the body is that of the model in .*filled; with --from a"):
        made(body, "task=classify", preset="rnn")
    with pytest.raises(UsageError, match=r"--preset rnn: the body is that of the model in .*translator"):
        made(read_body(translator), preset="rnn")


def test_a_file_is_laid_over_the_body(body: Body, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('task = "classify"\n[train]\nsteps = 3\n', encoding="utf-8")
    c = resolve(body, None, tmp_path / "c.toml", ["train.seed=4"])
    assert (c.task, c.train.steps, c.train.seed) == ("classify", 3, 4)


def test_a_decoder_alone_serves_what_reads_and_what_writes(alone: Path) -> None:
    found = read_body(alone)
    for task in ("classify", "tag", "generate", "transduce"):
        c = made(found, f"task={task}")
        assert (c.decoder, c.encoder.kind, c.task) == (found.config.decoder, "none", task)
    with pytest.raises(UsageError, match="this model reads from left to right, and the task fill looks at both sides"):
        made(found, "task=fill")


def test_a_copy_head_may_be_added_and_taken_away(alone: Path, translator: Path) -> None:
    found = read_body(translator)
    c = made(found, "decoder.copy=true")
    vocabulary = found.vocabulary
    fresh = build(c, vocabulary.source.size, vocabulary.target.size, copies=vocabulary.copies())
    kept = kept_weights(found, c, vocabulary, shapes_of(fresh))
    assert {name for name in shapes_of(fresh) if name not in kept and name.startswith("decoder.")} == {
        f"decoder.copy.{name}" for name in ("query.weight", "query.bias", "key.weight", "gate.weight", "gate.bias")
    }
    copying = replace(found, config=c, weights=dict(fresh.named_parameters()))
    assert made(copying).copies
    assert not made(copying, "decoder.copy=false").copies
    single = read_body(alone)
    copying = replace(single, config=made(single, "decoder.copy=true"))
    assert not made(copying, "task=classify").copies
    assert not made(copying, "task=generate").copies


# ── what is kept ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("base", "words", "kept"),
    [
        ("filled", ["task=classify"], ("source_embedding.", "encoder.")),
        ("filled", ["task=fill"], ("source_embedding.", "encoder.", "output.", "head.")),
        ("filled", ["task=transduce", "decoder.kind=recurrent"], ("source_embedding.", "encoder.")),
        ("translator", ["task=classify"], ("source_embedding.", "encoder.")),
        ("translator", ["task=transduce"], ("source_embedding.", "encoder.", "decoder.")),
        ("alone", ["task=classify"], ("source_embedding.", "encoder.", "target_embedding.", "decoder.")),
    ],
)
def test_names_of_what_is_kept(place: Path, request: Any, base: str, words: list[str], kept: tuple[str, ...]) -> None:
    found = read_body(request.getfixturevalue(base))
    c = made(found, *words)
    examples = [Example(("ab",), None if c.task == "fill" else "x", 1)]
    assert kept_names(found, c, learn(examples, c, [False], found.vocabulary.source)) == kept


@pytest.mark.parametrize(
    ("words", "data", "other"),
    [
        (["task=tag"], "tags.tsv", "head.crf=true"),
        (["task=tag", "head.crf=true"], "tags.tsv", "head.crf=false"),
        (["task=classify", "head.pool=attention"], "labels.tsv", "head.pool=mean"),
        (["task=embed"], "pairs.tsv", "head.width=8"),
        (["task=extract", "data.source=1", "data.target=2"], "pieces.tsv", ""),
    ],
)
def test_the_same_labels_by_the_same_head_keep_it(
    place: Path, filled: Path, tmp_path: Path, words: list[str], data: str, other: str
) -> None:
    """A run that learns next to nothing gives what its body gives, whatever its seed; another head is a new one."""
    still = ["train.steps=1", "train.learning_rate=1e-9", "train.validate_examples=5", "train.tokens_per_batch=128"]
    (place / "pieces.tsv").write_text("abcd\tbc\nbcda\tda\nabdc\tab\n" * 9, encoding="utf-8")
    first = started(place, filled, *QUICK, *words, data=data)
    once = regard.train(place / data, out=tmp_path / "m", settings=[*still, *words, "train.seed=1"], start_from=first)
    before, after = weights(first), weights(tmp_path / "m")
    assert before.keys() == after.keys()
    for name, weight in before.items():
        torch.testing.assert_close(after[name], weight, rtol=0.0, atol=1e-6)
    scores = [model.score(place / data).metrics for model in (regard.load(first), once)]
    assert {name: each.value for name, each in scores[0].items()} == {
        name: each.value for name, each in scores[1].items()
    }
    if other:
        found = read_body(first)
        assert "output." not in kept_names(found, made(found, *words, other), found.vocabulary)


def test_other_labels_need_another_head(place: Path, filled: Path) -> None:
    found = read_body(started(place, filled, *QUICK, "task=tag", "train.seed=5", data="tags.tsv"))
    c = made(found, "task=tag")
    assert "output." not in kept_names(found, c, learn([Example(("ab",), "X", 1)], c, [False], found.vocabulary.source))
    assert "output." not in kept_names(found, made(found, "task=classify"), found.vocabulary)


def test_before_its_first_step_a_run_has_the_body_and_a_fresh_head(
    place: Path, filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Tensor] = {}

    def loop(data: Any, model: Any, *_: Any) -> None:
        seen.update({name: weight.detach().clone() for name, weight in model.named_parameters()})
        raise RegardError("seen")

    monkeypatch.setattr(run, "loop", loop)
    with pytest.raises(RegardError, match="seen"):
        regard.train(place / "labels.tsv", settings=CLASSIFY, start_from=filled)
    before = weights(filled)
    c, fresh = made(read_body(filled), *CLASSIFY), {name for name in seen if name.startswith("output.")}
    assert fresh == seen.keys() - {name for name in before if not name.startswith("output.")}
    assert all(torch.equal(seen[name], before[name]) for name in seen.keys() - fresh)
    drawn = dict(build(c, len(before["source_embedding.table.weight"]), len(seen["output.bias"])).named_parameters())
    assert all(torch.equal(seen[name], drawn[name]) for name in fresh)


def test_tokens_are_those_of_the_body(place: Path, filled: Path, tmp_path: Path) -> None:
    (tmp_path / "two.tsv").write_text("abz\tcd\tx\nbca\td\ty\n" * 20, encoding="utf-8")
    words = [*CLASSIFY, "data.source=1,2", "data.target=3"]
    found = regard.train(tmp_path / "two.tsv", tmp_path / "two.tsv", settings=words, start_from=filled)
    assert found.vocabulary.source.as_dict() == read_body(filled).vocabulary.source.as_dict()
    assert found(("ab", "c")) in ("x", "y")  # another number of columns


def test_words_that_the_body_does_not_know_are_told(
    place: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "old.txt").write_text("red green blue\n green blue red\nblue\n" * 9, encoding="utf-8")
    (tmp_path / "new.tsv").write_text("red cat\tx\nred green blue\ty\n" * 9, encoding="utf-8")
    words = [*blocks("encoder"), *QUICK, "task=fill", "tokens.source=words"]
    regard.train(tmp_path / "old.txt", tmp_path / "old.txt", out=tmp_path / "b", settings=words)
    new = tmp_path / "new.tsv"
    regard.train(new, new, settings=CLASSIFY, start_from=tmp_path / "b", quiet=False)
    said = " ".join(capfd.readouterr().err.split())
    assert "14 % of the source's tokens are unknown to the model that this run starts from" in said  # 1 of 7, ends too


def test_characters_that_the_body_does_not_know_are_told_however_few(place: Path, tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("abcd\nbcda\n" * 9, encoding="utf-8")
    rows = "".join(f"{'abcd' * 30}\tx\n{'dcba' * 30}\ty\n" for _ in range(9))
    c = config.resolve("encoder", None, ["task=classify"])
    known = Tokenizer.learn(["abcd"], "characters")
    for text, share in ((rows + "abz\tx\n" + "é\ty\n", "0.14 %"), (rows, "")):
        (tmp_path / "new.tsv").write_text(text, encoding="utf-8")
        found = prepare(c, *[str(tmp_path / "new.tsv")] * 2, tmp_path / f"store{len(text)}", known)
        told = [note for note in found.notes if "unknown to the model that this run starts from" in note]
        assert [share in note and note.startswith("warning: ") for note in told] == [True] * bool(share)


def test_tags_that_the_body_does_not_know(place: Path, filled: Path, tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("ab\tV;PST\tx\nbc\tN\ty\n" * 20, encoding="utf-8")
    words = [*CLASSIFY, "data.source=1,2", "data.target=3", "data.tags=2"]
    with pytest.raises(ConfigError, match=r"data.tags: the model that this run starts from knows no tags"):
        regard.train(tmp_path / "t.tsv", tmp_path / "t.tsv", settings=words, start_from=filled)


@pytest.mark.parametrize(
    ("base", "words", "data"),
    [
        ("translator", ["task=classify"], "labels.tsv"),
        ("translator", ["task=fill", "data.source=1"], "pairs.tsv"),
        ("translator", ["task=transduce"], "pairs.tsv"),
        ("alone", ["task=classify", "head.pool=class"], "labels.tsv"),
        ("alone", ["task=transduce", "train.layer_decay=0.5"], "pairs.tsv"),
        ("filled", [], "labels.tsv"),
        ("alone", ["task=generate", "generate.block=8"], "texts.txt"),
        ("alone", ["task=tag"], "tags.tsv"),
        ("filled", ["task=tag", "head.crf=true", "train.layer_decay=0.5"], "tags.tsv"),
        ("speaker", ["task=generate", "generate.block=8"], "texts.txt"),
        ("speaker", ["task=classify"], "labels.tsv"),
        ("numbered", ["task=classify"], "labels.tsv"),
        ("numbered", ["task=tag"], "tags.tsv"),
        ("numbered", ["task=embed"], "pairs.tsv"),
        ("numbered", ["task=transduce"], "pairs.tsv"),
        ("numbered", ["task=generate"], "texts.txt"),
        ("filled", ["task=transduce", "decoder.kind=recurrent", "decoder.width=16"], "pairs.tsv"),
    ],
)
def test_every_body_trains_saves_and_loads(place: Path, request: Any, base: str, words: list[str], data: str) -> None:
    folder = request.getfixturevalue(base)
    out = started(place, folder, *QUICK, *words, data=data)
    assert isinstance(regard.load(out)("abca"), str)
    assert regard.load(out).config.task == ("classify" if not words else words[0].removeprefix("task="))
    assert not (out / "body.safetensors").exists()  # a finished folder needs it no more


# ── what is frozen, and what learns slowly ───────────────────────────────────────────────────────────────────────────


def test_a_frozen_body_does_not_change(place: Path, filled: Path) -> None:
    """Neither by gradients nor by weight decay; and an optimizer remembers nothing of it."""
    out = started(place, filled, *CLASSIFY, "train.freeze=true", "train.weight_decay=0.5")
    before, after = weights(filled), weights(out)
    kept = [name for name in after if name.startswith(("source_embedding.", "encoder."))]
    assert kept
    assert all(torch.equal(before[name], after[name]) for name in kept)
    moments = load_file(next((out / "checkpoints").iterdir()) / "optimizer.safetensors")
    assert {name.rsplit(".", 1)[0] for name in moments} == after.keys() - set(kept)
    assert any(moment.any() for moment in moments.values())
    assert "which did not change" in (out / "README.md").read_text(encoding="utf-8")


def test_what_is_not_frozen_changes_everywhere(place: Path, filled: Path) -> None:
    before, after = weights(filled), weights(started(place, filled, *CLASSIFY))
    assert not any(torch.equal(before[name], after[name]) for name in after if name.startswith("encoder.layers"))


def test_freeze_needs_something_to_freeze_and_something_to_learn(place: Path, filled: Path) -> None:
    with pytest.raises(ConfigError, match=r"train.freeze: there is nothing to keep as it is without --from MODEL"):
        regard.train(place / "labels.tsv", settings=["task=classify", "train.freeze=true"])
    with pytest.raises(ConfigError, match=r"train.freeze: every weight comes from the model .* none would learn"):
        regard.train(place / "texts.txt", settings=[*QUICK, "task=fill", "train.freeze=true"], start_from=filled)
    with pytest.raises(ConfigError, match=r"train.layer_decay: with train.freeze=true the layers that it would slow"):
        config.resolve("encoder", None, ["train.freeze=true", "train.layer_decay=0.5"])


# ── it survives ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("words", [[], ["train.freeze=true"], ["train.layer_decay=0.5"]])
@pytest.mark.parametrize("step", [1, 5])
def test_killed_and_resumed_without_the_body_is_the_same(
    place: Path, filled: Path, tmp_path: Path, same_result: Same, monkeypatch: pytest.MonkeyPatch,
    in_child: Callable[[Callable[[], Any]], int], words: list[str], step: int,
) -> None:  # fmt: skip
    """Before the first checkpoint and after it."""
    shutil.copytree(filled, tmp_path / "body")
    found = read_body(tmp_path / "body")
    c, data = made(found, *CLASSIFY, "encoder.dropout=0.2", *words), str(place / "labels.tsv")
    train(c, data, None, tmp_path / "unbroken", Call(quiet=True), Given(body=found))
    told = run.Report.step

    def report(self: Any, at: int, *rest: Any) -> None:
        told(self, at, *rest)
        if at == step:
            os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(run.Report, "step", report)
        assert (
            in_child(lambda: train(c, data, None, tmp_path / "m", Call(quiet=True), Given(body=found)))
            == -signal.SIGKILL
        )
    shutil.rmtree(tmp_path / "body")
    resume(tmp_path / "m", quiet=True)
    same_result(tmp_path / "m", tmp_path / "unbroken")


def test_first_weights_that_were_changed_are_refused(
    place: Path, filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "go", lambda *_: (None, None))
    regard.train(place / "labels.tsv", out=tmp_path / "m", settings=CLASSIFY, start_from=filled)
    monkeypatch.undo()
    first = tmp_path / "m" / "body.safetensors"
    assert not home.stillborn(tmp_path / "m")
    content = bytearray(first.read_bytes())
    content[-1] ^= 1
    first.write_bytes(content)
    with pytest.raises(UsageError, match=r"can not be resumed, because something has changed: .*body.safetensors"):
        resume(tmp_path / "m", quiet=True)
    first.unlink()
    assert home.stillborn(tmp_path / "m")  # nothing was trained yet, so nothing is lost
    with pytest.raises(FolderError, match="the run died before its first step"):
        resume(tmp_path / "m", quiet=True)


def test_a_run_may_take_the_place_of_its_body(place: Path, filled: Path, tmp_path: Path) -> None:
    shutil.copytree(filled, tmp_path / "m")
    regard.train(place / "labels.tsv", out=tmp_path / "m", settings=CLASSIFY, start_from=tmp_path / "m", force=True)
    assert regard.load(tmp_path / "m").config.task == "classify"


def test_two_processes_start_from_the_same_weights(
    place: Path, filled: Path, tmp_path: Path, in_a_team: Callable[..., list[int]]
) -> None:
    found = read_body(filled)
    c = made(found, *CLASSIFY, "encoder.dropout=0.0", "train.freeze=true")
    data = str(place / "labels.tsv")
    train(c, data, None, tmp_path / "alone", Call(quiet=True), Given(body=found))
    assert in_a_team(lambda rank: train(c, data, None, tmp_path / "two", Call(quiet=True), Given(body=found))) == [0, 0]
    one, two = weights(tmp_path / "alone"), weights(tmp_path / "two")
    for name, weight in one.items():
        torch.testing.assert_close(two[name], weight, rtol=1e-4, atol=1e-5)


# ── what is told ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_card_and_start_tell_where_it_came_from(place: Path, filled: Path) -> None:
    out = started(place, filled, *CLASSIFY, "train.seed=3")
    was = json.loads((out / "run.json").read_text(encoding="utf-8"))["origin"]
    hashed = json.loads((filled / "run.json").read_text(encoding="utf-8"))["data_hash"]
    kept = sum(weight.numel() for name, weight in weights(out).items() if not name.startswith("output."))
    assert was == {"path": str(filled), "task": "fill", "data_hash": hashed, "kept": kept}
    card = (out / "README.md").read_text(encoding="utf-8")
    assert re.search(rf"started from `{filled}`, a fill model \(data sha256 `{hashed}`\): {kept:,} of", card)


def test_a_folder_without_a_start_serves_too(place: Path, filled: Path, tmp_path: Path) -> None:
    regard.load(filled).save(tmp_path / "saved")
    assert read_body(tmp_path / "saved").data_hash is None
    out = started(place, tmp_path / "saved", *CLASSIFY)
    assert "its folder does not say on what data" in (out / "README.md").read_text(encoding="utf-8")


def test_the_first_line_tells_what_is_kept(place: Path, filled: Path, capfd: pytest.CaptureFixture[str]) -> None:
    regard.train(place / "labels.tsv", settings=CLASSIFY, start_from=filled, quiet=False)
    said = capfd.readouterr().err
    assert re.search(r"training encoder \([\d,]+ parameters; from a fill model [\d,]+ kept, \d+ new\) on", said)


def test_a_body_must_be_there_and_whole(place: Path, filled: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no such model folder"):
        read_body(tmp_path / "nowhere")
    with pytest.raises(FolderError, match="expected a model folder, found a file"):
        read_body(place / "labels.tsv")
    broken = replace(read_body(filled), weights={"encoder.norm.weight": torch.zeros(3)})
    with pytest.raises(ConfigError, match=r"encoder.norm.weight: the model in .* has the shape \[3\], and the new one"):
        train(made(broken, *CLASSIFY), str(place / "labels.tsv"), call=Call(quiet=True), given=Given(body=broken))


# ── it helps ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_body_that_knows_the_texts_learns_from_few_labels(tmp_path: Path) -> None:
    """Words of two kinds, each with many members that never mix: which word is of which kind, only the texts tell."""
    generator = torch.Generator().manual_seed(0)

    def text(kind: str) -> str:
        return " ".join(f"{kind}{number}" for number in torch.randint(100, (6,), generator=generator).tolist())

    def write(name: str, count: int, labelled: bool) -> str:
        kinds = ["k" if number % 2 else "q" for number in range(count)]
        lines = [text(kind) + (f"\t{'good' if kind == 'k' else 'bad'}" if labelled else "") for kind in kinds]
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return str(tmp_path / name)

    few, test = write("few.tsv", 4, True), write("test.tsv", 200, True)
    texts = write("texts.txt", 2000, False)
    quick = ["train.learning_rate=0.005", "train.validate_steps=10000", "train.tokens_per_batch=1024"]
    words = ["tokens.source=words", "encoder.width=32", "encoder.layers=1", "encoder.feedforward=64"]
    regard.train(texts, out=tmp_path / "body", settings=["task=fill", *words, *quick, "train.steps=150"])
    run_words = ["task=classify", *quick, "train.steps=20"]
    helped = regard.train(few, test, settings=run_words, start_from=tmp_path / "body")
    scratch = regard.train(few, test, preset="encoder", settings=[*words, *run_words])
    found = [model.score(test).metrics["accuracy"].value for model in (helped, scratch)]
    assert found[0] > 95.0
    assert found[0] > found[1] + 10.0
