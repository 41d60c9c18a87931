"""A model folder: saved and loaded it is the same, and whatever is wrong with it is told before it can do harm."""

import hashlib
import json
import os
import random
import shutil
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
import torch
from safetensors.torch import load_file, save_file

from regard import config, folder
from regard.data.batch import Batch
from regard.errors import ConfigError, FolderError, MissingError, RegardError
from regard.tasks.task import Answer, Item
from regard.trained import Trained

TEN = ["attention-encoder", "caption", "conv", "decoder", "encoder", "rnn", "rnn-attention", "rnn-context",
       "rnn-single", "transformer"]  # fmt: skip
DAMAGED = ["config.toml", "manifest.json", "model.safetensors", "tokenizer.json", "README.md", "metrics.jsonl",
           "curves.svg", "calibration.json"]  # fmt: skip

SmallModel = Callable[..., Trained]


@pytest.fixture
def saved(small_model: SmallModel, tmp_path: Path) -> Path:
    """A small folder of one's own, to be damaged."""
    path, model = tmp_path / "m", small_model("rnn-attention")
    model.calibrate([Answer("a", 0.0, 0.5, (8,), (), 0.5, 0.5)] * 20, ["a", "b"] * 10)
    model.save(path, {"README.md": b"# card\n", "metrics.jsonl": b"{}\n", "curves.svg": b"<svg/>"})
    return path


def refusal(path: Path) -> str:
    """What loading says; it must be one of our errors, short, and quick."""
    started = time.monotonic()
    with pytest.raises((FolderError, MissingError, ConfigError)) as caught:
        folder.load(path)
    assert time.monotonic() - started < 5.0
    message = str(caught.value)
    assert message
    assert len(message.splitlines()) <= 3
    return message


def sign(path: Path) -> None:
    """Makes the manifest fit the files as they are: what a careful forger would do."""
    files = {each.name: each.read_bytes() for each in path.iterdir() if each.name != "manifest.json"}
    listed = {name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
              for name, content in files.items()}  # fmt: skip
    (path / "manifest.json").write_text(json.dumps({"format": folder.FORMAT, "files": listed}), encoding="utf-8")


def change_manifest(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    change(manifest)
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def change_weights(path: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    weights = load_file(path / "model.safetensors")
    change(weights)
    save_file(weights, path / "model.safetensors")
    sign(path)


def change_config(path: Path, *words: str) -> None:
    tree = config.parse_toml((path / "config.toml").read_text(encoding="utf-8"), "x")
    for word in words:
        tree = config.lay(tree, config.parse_word(word))
    (path / "config.toml").write_text(tomli_w.dumps(tree), encoding="utf-8")
    sign(path)


# ── the same ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def some_batch(model: Trained) -> Batch:
    size = 8 if model.config.task == "caption" else 0
    picture = np.linspace(0, 1, 3 * size * size, dtype=np.float32).reshape(3, size, size) if size else None
    item = Item(() if size else (8, 9, 10, 2), () if model.config.task == "fill" else (8, 9), picture)
    return model.task.batch([item, item], [0, 1], 0)


@pytest.mark.parametrize("preset", TEN)
def test_saved_and_loaded_is_the_same(small_model: SmallModel, tmp_path: Path, preset: str) -> None:
    model = small_model(preset)
    model.save(tmp_path / "m")
    found = folder.load(tmp_path / "m")
    assert found.config == model.config
    assert found.vocabulary.as_dict() == model.vocabulary.as_dict()
    assert not found.model.training
    batch = some_batch(model)
    with torch.inference_mode():
        assert torch.equal(
            model.model.output(model.model(batch).states_BTD), found.model.output(found.model(batch).states_BTD)
        )
    assert all(weight.requires_grad for weight in found.model.parameters())


@pytest.mark.parametrize("words", [["embedding.tie_output=true"], ["tokens.shared=true", "embedding.tie_source=true"],
                                   ["encoder.position=learned"], ["decoder.position=relative"],
                                   ["encoder.norm=rms", "encoder.norm_first=false"]])  # fmt: skip
def test_tied_and_positioned_ones_too(small_model: SmallModel, tmp_path: Path, words: list[str]) -> None:
    model = small_model("transformer", *words)
    model.save(tmp_path / "m")
    found = folder.load(tmp_path / "m").model
    batch = some_batch(model)
    with torch.inference_mode():
        assert torch.equal(model.model.output(model.model(batch).states_BTD), found.output(found(batch).states_BTD))
    assert len(list(found.parameters())) == len(list(model.model.parameters()))


def test_saving_again_gives_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    found = folder.load(saved)
    folder.save(tmp_path / "again", found.config, found.vocabulary, found.model, {})
    for name in folder.NEEDED:
        assert (saved / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_no_trace_of_the_writing(saved: Path) -> None:
    assert {path.name for path in saved.iterdir()} == set(DAMAGED)


def test_folder_that_can_not_be_written(small_model: SmallModel, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(RegardError, match="can not be made"):
        small_model("rnn").save(tmp_path / "file" / "m")
    (tmp_path / "m" / "config.toml").mkdir(parents=True)
    with pytest.raises(RegardError, match=r"config\.toml: can not be written"):
        small_model("rnn").save(tmp_path / "m")
    assert [path.name for path in (tmp_path / "m").iterdir()] == ["config.toml"]


# ── damage ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def truncate(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randrange(len(content))]


def flip(content: bytes, draw: random.Random) -> bytes:
    place, bit = draw.randrange(len(content)), draw.randrange(8)
    return content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]


def zero(content: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(len(content))
    end = min(len(content), start + draw.randint(1, 512))
    return content[:start] + bytes(end - start) + content[end:]


def grow(content: bytes, draw: random.Random) -> bytes:
    return content + b"}"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("damage", [truncate, flip, zero, grow])
@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_seen(saved: Path, name: str, damage: Callable[[bytes, random.Random], bytes], seed: int) -> None:
    content = (saved / name).read_bytes()
    damaged = damage(content, random.Random(f"{seed} {name} {damage.__name__}"))
    if damaged == content:
        pytest.skip("zeros in place of zeros")
    (saved / name).write_bytes(damaged)
    assert str(saved) in refusal(saved)


def test_every_bit_of_the_manifest_counts(saved: Path) -> None:
    """All of them in the head, where the format stands, and a few hundred of the rest."""
    content = (saved / "manifest.json").read_bytes()
    draw = random.Random(0)
    places = [*range(min(24, len(content))), *(draw.randrange(len(content)) for _ in range(30))]
    for place in places:
        for bit in range(8):
            (saved / "manifest.json").write_bytes(
                content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]
            )
            refusal(saved)


@pytest.mark.parametrize("name", [*folder.NEEDED, "README.md"])
def test_missing_file(saved: Path, name: str) -> None:
    (saved / name).unlink()
    assert f"{name}: missing or not a plain file" in refusal(saved)


def test_missing_manifest_of_a_finished_model(saved: Path) -> None:
    """Its training has finished, so nobody is sent to resume it."""
    (saved / "run.json").write_text("{}", encoding="utf-8")
    (saved / "manifest.json").unlink()
    assert "manifest.json: missing; the folder is incomplete" in refusal(saved)


def test_missing_file_that_is_not_listed_either(saved: Path) -> None:
    (saved / "tokenizer.json").unlink()
    sign(saved)
    assert "tokenizer.json: missing" in refusal(saved)


def test_file_that_is_not_listed(saved: Path) -> None:
    change_manifest(saved, lambda manifest: manifest["files"].pop("config.toml"))
    assert "config.toml: not listed in manifest.json" in refusal(saved)


@pytest.mark.parametrize(("one", "other"), [("config.toml", "tokenizer.json"), ("model.safetensors", "README.md")])
def test_swapped_files(saved: Path, one: str, other: str) -> None:
    contents = [(saved / name).read_bytes() for name in (one, other)]
    (saved / one).write_bytes(contents[1])
    (saved / other).write_bytes(contents[0])
    refusal(saved)
    sign(saved)
    refusal(saved)


def test_file_of_another_model(saved: Path, small_model: SmallModel, tmp_path: Path) -> None:
    small_model("rnn-attention", "train.seed=1").save(tmp_path / "other")
    for name in ("model.safetensors", "config.toml"):
        shutil.copy(saved / name, tmp_path / "kept")
        shutil.copy(tmp_path / "other" / name, saved / name)
        assert f"{name}: " in refusal(saved)
        shutil.copy(tmp_path / "kept", saved / name)
    folder.load(saved)


# ── links and names that lead elsewhere ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", DAMAGED)
def test_symlink(saved: Path, tmp_path: Path, name: str) -> None:
    os.rename(saved / name, tmp_path / name)
    (saved / name).symlink_to(tmp_path / name)
    assert name in refusal(saved)


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "..", ".", "", "a/../../x", "c:\\x", "a\x00b", "\ud800",
                                  "a\nb\nc", "\x1b[2J", "checkpoints/best.safetensors", "x" * 5000],
                         ids=range(13))  # fmt: skip
def test_name_that_leads_out(saved: Path, name: str) -> None:
    entry = {"sha256": "0" * 64, "bytes": 1}
    change_manifest(saved, lambda manifest: manifest["files"].update({name: entry}))
    message = refusal(saved)
    assert "is not the name of a file in this folder" in message or "missing" in message
    assert "\x1b" not in message
    assert len(message) < 6000


def test_name_of_a_folder(saved: Path) -> None:
    (saved / "checkpoints").mkdir()
    change_manifest(saved, lambda m: m["files"].update({"checkpoints": {"sha256": "0" * 64, "bytes": 1}}))
    assert "checkpoints: missing or not a plain file" in refusal(saved)


# ── not one of ours ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_not_a_folder(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no such model folder"):
        folder.load(tmp_path / "none")
    with pytest.raises(FolderError, match=r"not a model folder \(no manifest.json\); regard train"):
        folder.load(tmp_path)
    (tmp_path / "x.txt").write_text("", encoding="utf-8")
    assert refusal(tmp_path / "x.txt").endswith("expected a model folder, found a file")


@pytest.mark.parametrize("ending", ["pt", "pth", "bin", "pkl", "ckpt"])
def test_pickle_is_never_opened(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"model.{ending}"
    path.write_bytes(b"cos\nsystem\n(S'touch canary'\ntR.")
    assert "can run code when they are opened, so regard never opens them" in refusal(path)


@pytest.mark.parametrize("number", [2, 99, 10**30])
def test_newer_format(saved: Path, number: int) -> None:
    change_manifest(saved, lambda manifest: manifest.update(format=number))
    assert "reads up to format 1: upgrade it" in refusal(saved)


@pytest.mark.parametrize("found", [0, -1, True, None, "1", 1.0, [1], {}])
def test_format_that_never_was(saved: Path, found: object) -> None:
    change_manifest(saved, lambda manifest: manifest.update(format=found))
    assert "format" in refusal(saved)


@pytest.mark.parametrize("text", ["", "null", "[]", "{", '"x"', '{"format": 1}', '{"format": 1, "files": []}',
                                  "[" * 100_000, '{"format": ' + "1" * 5000 + "}",
                                  '{"format": 1, "files": {"config.toml": null}}'])  # fmt: skip
def test_manifest_that_is_none(saved: Path, text: str) -> None:
    (saved / "manifest.json").write_text(text, encoding="utf-8")
    refusal(saved)


@pytest.mark.parametrize("entry", [None, 1, "x", [], {}, {"sha256": 1}, {"sha256": "0" * 64}, {"bytes": 1},
                                   {"sha256": None, "bytes": None}])  # fmt: skip
def test_entry_that_says_nothing(saved: Path, entry: object) -> None:
    change_manifest(saved, lambda manifest: manifest["files"].update({"config.toml": entry}))
    assert "config.toml" in refusal(saved)


# ── a fitting manifest, and yet ──────────────────────────────────────────────────────────────────────────────────────

NAME = "output.weight"


def some_name(weights: dict[str, torch.Tensor]) -> str:
    return sorted(weights)[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda w: w.pop(some_name(w)), "is missing from this file"),
        (lambda w: w.update(extra=torch.zeros(1)), "the tensor extra is not expected in this file"),
        (lambda w: w.update({some_name(w): torch.zeros(3, 5)}), "F32 [3, 5]"),
        (lambda w: w.update({some_name(w): w[some_name(w)].double()}), "is F64"),
        (lambda w: w.update({some_name(w): w[some_name(w)].half()}), "is F16"),
        (lambda w: w.update({some_name(w): w[some_name(w)].int()}), "is I32"),
        (lambda w: w.update({some_name(w): torch.full_like(w[some_name(w)], torch.nan)}), "not finite"),
        (lambda w: w[some_name(w)].view(-1)[0].fill_(torch.inf), "not finite"),
    ],
    ids=["missing", "extra", "shape", "fp64", "fp16", "int", "nan", "inf"],
)
def test_weights_that_do_not_fit(saved: Path, change: Callable[[Any], object], said: str) -> None:
    change_weights(saved, lambda weights: (change(weights), None)[1])
    message = refusal(saved)
    assert said in message
    assert "model.safetensors" in message


def test_vocabulary_and_embedding_disagree(saved: Path, small_model: SmallModel) -> None:
    found = json.loads((saved / "tokenizer.json").read_text(encoding="utf-8"))
    found["source"] = small_model("rnn-attention", "tokens.source=words").vocabulary.source.as_dict()
    (saved / "tokenizer.json").write_text(json.dumps(found), encoding="utf-8")
    sign(saved)
    assert "config.toml and tokenizer.json ask for" in refusal(saved)


@pytest.mark.parametrize("word", ["encoder.width=18", "decoder.layers=2", "decoder.context=input", "encoder.cell=lstm"])
def test_config_and_weights_disagree(saved: Path, word: str) -> None:
    change_config(saved, word)
    assert "model.safetensors" in refusal(saved)


@pytest.mark.parametrize(
    "words",
    [
        ["encoder.width=1000000", "decoder.width=1000000"],
        ["encoder.kind=attention", "encoder.width=1000000", "encoder.feedforward=1000000", "encoder.layers=1"],
        ["encoder.layers=1000", "encoder.width=100000"],
    ],
)
def test_a_million_million_parameters_are_refused_at_once(saved: Path, words: list[str]) -> None:
    change_config(saved, *words)
    assert "parameters; at most" in refusal(saved)


@pytest.mark.parametrize(
    "text", ["", "[encoder", "task = 'else'", "x = 1", "[encoder]\nkind = 'os.system'", "\xff", "about = " + "[" * 9000]
)
def test_config_that_is_none(saved: Path, text: str) -> None:
    (saved / "config.toml").write_bytes(text.encode("latin-1"))
    sign(saved)
    refusal(saved)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"source": {}, "target": null, "tags": [false]}', "\xff"])
def test_tokenizer_that_is_none(saved: Path, text: str) -> None:
    (saved / "tokenizer.json").write_bytes(text.encode("latin-1"))
    sign(saved)
    refusal(saved)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\xff" * 64, (1 << 62).to_bytes(8, "little") + b"{}",
                                     (2).to_bytes(8, "little") + b"{}", (1).to_bytes(8, "little") + b"{"])  # fmt: skip
def test_weights_that_are_none(saved: Path, content: bytes) -> None:
    (saved / "model.safetensors").write_bytes(content)
    sign(saved)
    assert "model.safetensors" in refusal(saved)


def test_config_of_a_megabyte(saved: Path) -> None:
    with open(saved / "config.toml", "ab") as file:
        file.write(b"\n" * (1 << 20))
    sign(saved)
    assert "more than such a file ever has" in refusal(saved)


# ── safely on disk ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_is_synced_before_it_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    sync, put = os.fsync, os.replace

    def fsync(number: int) -> None:
        found = os.fstat(number)
        events.append("synced the folder" if stat.S_ISDIR(found.st_mode) else f"synced {found.st_size}")
        sync(number)

    def replace(old: Path, new: Path) -> None:
        events.append(f"placed {new.name}")
        put(old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    folder.write_file(tmp_path / "x", b"12345")
    assert events == ["synced 5", "placed x", "synced the folder"]


def test_every_file_of_a_folder_is_synced_and_the_manifest_last(
    small_model: SmallModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    put = os.replace

    def replace(old: Path, new: Path) -> None:
        events.append(new.name)
        put(old, new)

    monkeypatch.setattr(os, "fsync", lambda number: events.append("synced"))
    monkeypatch.setattr(os, "replace", replace)
    small_model("rnn").save(tmp_path / "m", {"README.md": b"#"})
    assert events[::3] == events[2::3] == ["synced"] * 5  # the file before it is placed, the folder after it
    assert sorted(events[1::3]) == sorted(path.name for path in (tmp_path / "m").iterdir())
    assert events[-2] == "manifest.json"


# ── calibration ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("forged", "said"),
    [
        (b"[]", "not a calibration"),
        (b'{"bias": 0.0}', "not a calibration: probability: Field required"),
        (b"{", "not JSON"),
        (b"NaN", "not a calibration"),
    ],
)
def test_a_calibration_that_is_none(saved: Path, forged: bytes, said: str) -> None:
    (saved / "calibration.json").write_bytes(forged)
    sign(saved)
    assert said in refusal(saved)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e7", "-1e300"])
def test_weights_of_a_calibration_out_of_all_bounds(saved: Path, number: str) -> None:
    tree = json.loads((saved / "calibration.json").read_text(encoding="utf-8"))
    text = json.dumps({**tree, "bias": 12345.5}).replace("12345.5", number)
    (saved / "calibration.json").write_text(text, encoding="utf-8")
    sign(saved)
    assert "not finite, or far too great" in refusal(saved)
