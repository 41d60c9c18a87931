"""The store: reopened as it was written, every damage seen, what was left half done swept, changed data told."""

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from regard import config
from regard.data import builtin
from regard.errors import DataError, FolderError, RegardError
from regard.training import prepare as prepare_module
from regard.training.prepare import Prepared, changed, hashes, missing, prepare, reopen
from regard.training.store import read_known

pytestmark = pytest.mark.no_shapes


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"source {i}\ttarget\u2028{i}\n" for i in range(60)), encoding="utf-8")
    return path


@pytest.fixture
def made(file: Path, tmp_path: Path) -> Prepared:
    return prepare(config.resolve("rnn"), str(file), None, tmp_path / "store")


def equal(a: Prepared, b: Prepared) -> bool:
    parts = [(a.train, b.train), (a.valid, b.valid)]
    return a.data_hash == b.data_hash and all(
        (x.path, list(x.examples)) == (y.path, list(y.examples)) and list(x.items) == list(y.items) for x, y in parts
    )


# ── reopened ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_reopened_as_it_was(made: Prepared, tmp_path: Path) -> None:
    found = reopen(made.config, made.vocabulary, tmp_path / "store")
    assert equal(found, made)
    assert found.notes == []
    assert len(found.valid.examples) == len(found.valid.items) == 12
    assert list(found.train.examples) == []
    assert found.store == tmp_path / "store"


def test_texts_that_were_trained_on_are_kept_for_the_doctor(made: Prepared, tmp_path: Path) -> None:
    known = read_known(tmp_path / "store")
    assert [made.task.encode(example, ".") for example in known] == list(made.train.items)
    assert not {example.source for example in known} & {example.source for example in made.valid.examples}
    (tmp_path / "store" / "known.jsonl").unlink()
    assert read_known(tmp_path / "store") == []  # as an earlier version left it


def test_of_many_only_some_evenly_spread(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.training.prepare.KNOWN", 30)
    made = prepare(config.resolve("rnn"), str(file), None, tmp_path / "store")
    known = read_known(tmp_path / "store")
    assert len(known) == 30 < len(made.train.items)
    lines = [example.line for example in known]
    assert lines == sorted(lines)
    assert lines[-1] - lines[0] > len(made.train.items) // 2


def test_texts_and_numbers_of_the_validation_part_stand_side_by_side(made: Prepared) -> None:
    for example, item in zip(made.valid.examples, made.valid.items, strict=True):
        assert item == made.task.encode(example, ".")


def test_pictures_are_reopened(tmp_path: Path) -> None:
    builtin.write("captions", 12, tmp_path / "c.tsv")
    found = prepare(config.resolve("caption"), str(tmp_path / "c.tsv"), None, tmp_path / "store")
    shutil.rmtree(tmp_path / "c_images", ignore_errors=True)
    again = reopen(found.config, found.vocabulary, tmp_path / "store")
    for part, other in ((found.train, again.train), (found.valid, again.valid)):
        for a, b in zip(part.items, other.items, strict=True):
            assert a.picture is not None
            assert b.picture is not None
            assert np.array_equal(a.picture, b.picture)


@pytest.mark.parametrize("preset", ["rnn", "decoder", "encoder"])
def test_numbers_are_those_of_encode(file: Path, tmp_path: Path, preset: str) -> None:
    found = prepare(config.resolve(preset), str(file), str(file), tmp_path / "store")
    assert list(found.train.items) == [found.task.encode(example, ".") for example in found.valid.examples]


def test_items_are_a_sequence(made: Prepared) -> None:
    items = made.train.items
    everything = list(items)
    assert items[-1] == everything[-1]
    assert items[2:5] == everything[2:5]
    assert items[:] == everything
    for number in (len(items), -len(items) - 1):
        with pytest.raises(IndexError):
            items[number]


def test_twice_the_same_bytes(file: Path, tmp_path: Path) -> None:
    stores = [tmp_path / name for name in ("a", "b")]
    for store in stores:
        prepare(config.resolve("rnn"), str(file), None, store)
    names = {path.name for path in stores[0].iterdir()}
    assert names == {path.name for path in stores[1].iterdir()}
    assert names == {"manifest.json", "data.json", "valid.jsonl", "known.jsonl", "train-00000.ids",
                     "train-00000.index", "valid-00000.ids", "valid-00000.index"}  # fmt: skip
    assert all((stores[0] / name).read_bytes() == (stores[1] / name).read_bytes() for name in names)


def test_another_vocabulary_is_refused(made: Prepared, tmp_path: Path) -> None:
    (tmp_path / "other.tsv").write_text("".join(f"ä {i}\tö {i}\n" for i in range(20)), encoding="utf-8")
    other = prepare(made.config, str(tmp_path / "other.tsv"), None, tmp_path / "other").vocabulary
    with pytest.raises(FolderError, match="made with another vocabulary"):
        reopen(made.config, other, tmp_path / "store")


# ── damage ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def damage(path: Path, draw: random.Random) -> None:
    """A bit flipped, the end cut off, something added, a block of zeros, or gone."""
    raw = bytearray(path.read_bytes())
    match draw.randrange(5):
        case 0:
            raw[draw.randrange(len(raw))] ^= 1 << draw.randrange(8)
        case 1:
            raw = raw[: draw.randrange(len(raw))]
        case 2:
            raw += b"x"
        case 3:
            start = draw.randrange(len(raw))
            block = raw[start : start + 64]
            raw[start : start + 64] = bytes(len(block)) if any(block) else b"\1" * len(block)
        case 4:
            path.unlink()
            return
    path.write_bytes(raw)


@pytest.mark.parametrize("seed", range(40))
def test_damage_is_seen_or_does_no_harm(made: Prepared, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    path = draw.choice(sorted((tmp_path / "store").iterdir()))
    damage(path, draw)
    message = ""
    try:
        found = reopen(made.config, made.vocabulary, tmp_path / "store")
    except FolderError as error:
        message = str(error)
    if not message:  # a space more or less in the manifest is no damage
        assert path.name == "manifest.json"
        assert equal(found, made)
    else:
        assert len(message.splitlines()) == 1
        assert str(tmp_path / "store") in message
        assert path.name == "manifest.json" or path.name in message


def test_files_that_changed_places(made: Prepared, tmp_path: Path) -> None:
    store = tmp_path / "store"
    (store / "train-00000.ids").rename(store / "x")
    (store / "valid-00000.ids").rename(store / "train-00000.ids")
    (store / "x").rename(store / "valid-00000.ids")
    with pytest.raises(FolderError, match=r"train-00000\.ids"):
        reopen(made.config, made.vocabulary, store)


def test_a_manifest_that_forgets_a_file(made: Prepared, tmp_path: Path) -> None:
    path = tmp_path / "store" / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    del manifest["files"]["train-00000.ids"]
    path.write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(FolderError, match=r"train-00000\.ids: not listed"):
        reopen(made.config, made.vocabulary, tmp_path / "store")


@pytest.mark.parametrize("content", ["[]", '{"files": 3}', '{"format": 2, "files": {}}', "{", '{"format": 1}'])
def test_a_manifest_that_is_none(made: Prepared, tmp_path: Path, content: str) -> None:
    (tmp_path / "store" / "manifest.json").write_text(content, encoding="utf-8")
    with pytest.raises(FolderError, match=r"manifest\.json"):
        reopen(made.config, made.vocabulary, tmp_path / "store")


# ── half done ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Killed(BaseException):
    """As if the process were gone: nothing is tidied up."""


@pytest.mark.parametrize("where", ["learn", "write_part", "seal"])
def test_a_store_that_was_left_half_way_is_refused_and_begun_anew(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    store, c = tmp_path / "store", config.resolve("rnn")

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(prepare_module.stored if where == "seal" else prepare_module, where, die)
        patch.setattr(prepare_module.stored, "sweep", lambda _: None)
        with pytest.raises(Killed):
            prepare(c, str(file), None, store)
    assert list(store.iterdir())
    fresh = prepare(c, str(file), None, tmp_path / "fresh")
    with pytest.raises(FolderError, match=r"store: no whole store of tokens \(no manifest\.json\)"):
        reopen(c, fresh.vocabulary, store)
    assert equal(prepare(c, str(file), None, store), fresh)
    assert equal(reopen(c, fresh.vocabulary, store), fresh)
    assert not list(store.glob("*.spool"))


def test_an_old_store_makes_room(made: Prepared, file: Path, tmp_path: Path) -> None:
    (tmp_path / "store" / "mine.txt").write_text("kept", encoding="utf-8")
    file.write_text("".join(f"a{i}\tb{i}\n" for i in range(20)), encoding="utf-8")
    found = prepare(made.config, str(file), None, tmp_path / "store")
    assert (len(found.train.items), len(found.valid.items)) == (16, 4)
    assert (tmp_path / "store" / "mine.txt").read_text(encoding="utf-8") == "kept"


@pytest.mark.parametrize("text", ["a\tb\nc\n", "a\tb\n", ""])
def test_data_that_can_not_be_used_leave_nothing_behind(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError):
        prepare(config.resolve("rnn"), str(tmp_path / "bad.tsv"), None, tmp_path / "new" / "store")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.tsv"]


def test_a_store_that_can_not_be_made(file: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("", encoding="utf-8")
    with pytest.raises(RegardError, match="can not be made or cleared"):
        prepare(config.resolve("rnn"), str(file), None, tmp_path / "plain" / "store")


# ── the data files ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_changed_data_are_told_and_missing_ones_noted(made: Prepared, file: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert (changed(store), missing(store)) == ([], [])
    os.utime(file, (0, 0))
    assert changed(store) == []
    file.write_text(file.read_text(encoding="utf-8") + "one\tmore\n", encoding="utf-8")
    (line,) = changed(store)
    assert line.startswith(f"{file}: not what it was when training began")
    file.unlink()
    assert changed(store) == []
    assert missing(store) == [f"{file}: no longer there; its tokens are in {store}"]
    assert equal(reopen(made.config, made.vocabulary, store), made)


def test_parallel_files_and_a_validation_file_are_known_one_by_one(tmp_path: Path) -> None:
    for name in ("a.en", "a.de", "v.tsv"):
        text = "".join(f"{name}{i}\n" if name != "v.tsv" else f"v{i}\tw{i}\n" for i in range(9))
        (tmp_path / name).write_text(text, encoding="utf-8")
    both = f"{tmp_path / 'a.en'},{tmp_path / 'a.de'}"
    assert set(hashes(both, str(tmp_path / "v.tsv"))) == {str(tmp_path / name) for name in ("a.en", "a.de", "v.tsv")}
    prepare(config.resolve("rnn"), both, str(tmp_path / "v.tsv"), tmp_path / "store")
    for name in ("a.de", "v.tsv"):
        (tmp_path / name).write_text("x\n", encoding="utf-8")
    assert [line.split(":")[0] for line in changed(tmp_path / "store")] == [str(tmp_path / "a.de"),
                                                                            str(tmp_path / "v.tsv")]  # fmt: skip


def test_paths_are_whole_so_that_another_folder_does_not_matter(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(config.resolve("rnn"), "pairs.tsv", None, tmp_path / "store")
    monkeypatch.chdir("/")
    assert (changed(tmp_path / "store"), missing(tmp_path / "store")) == ([], [])
    file.write_text("x\ty\n", encoding="utf-8")
    assert len(changed(tmp_path / "store")) == 1


def test_data_that_change_while_they_are_read_are_refused(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn: Callable[..., object] = prepare_module.learn

    def meddle(*given: object) -> object:
        file.write_text("other\tdata\n", encoding="utf-8")
        return learn(*given)

    monkeypatch.setattr(prepare_module, "learn", meddle)
    with pytest.raises(DataError, match="changed while it was read"):
        prepare(config.resolve("rnn"), str(file), None, tmp_path / "store")
