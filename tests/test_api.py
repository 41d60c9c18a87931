"""The verbs as Python functions, and the public names."""

from pathlib import Path

import pytest

import regard

QUICK = ["encoder.width=16", "decoder.width=16", "train.steps=2", "train.warmup=1", "train.tokens_per_batch=64"]


def test_train_without_a_folder_writes_nothing(
    copy_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    model = regard.train(copy_file, settings=QUICK)
    assert isinstance(model, regard.Trained)
    assert isinstance(model("abc"), str)
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr() == ("", "")


def test_train_save_and_load(copy_file: Path, tmp_path: Path) -> None:
    model = regard.train(str(copy_file), str(copy_file), tmp_path / "a", "rnn", settings=QUICK)
    assert model.config.preset == "rnn"
    model.save(tmp_path / "b")
    texts = ["abc", "d"]
    for path in (tmp_path / "a", str(tmp_path / "b")):
        assert regard.load(path).run(texts) == model.run(texts)


def test_config_file(copy_file: Path, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('preset = "rnn"\n[encoder]\nwidth = 16\n', encoding="utf-8")
    model = regard.train(copy_file, config_file=tmp_path / "c.toml", settings=[*QUICK[1:], "train.seed=3"])
    assert (model.config.preset, getattr(model.config.encoder, "width", 0), model.config.train.seed) == ("rnn", 16, 3)


def test_settings_that_are_wrong(copy_file: Path) -> None:
    with pytest.raises(regard.ConfigError, match=r"did you mean train\.steps\?"):
        regard.train(copy_file, settings=["train.step=3"])


def test_errors_are_one_tree() -> None:
    for name in (
        "ConfigError",
        "DataError",
        "DivergedError",
        "FolderError",
        "Interrupted",
        "MissingError",
        "UsageError",
    ):
        assert issubclass(getattr(regard, name), regard.RegardError)
    codes = {error.__name__: error.exit_code for error in (regard.RegardError, regard.UsageError, regard.ConfigError,
             regard.DataError, regard.MissingError, regard.FolderError, regard.DivergedError)}  # fmt: skip
    assert codes == {"RegardError": 1, "UsageError": 2, "ConfigError": 2, "DataError": 65, "MissingError": 66,
                     "FolderError": 1, "DivergedError": 70}  # fmt: skip
    assert [regard.Interrupted("", number).exit_code for number in (2, 15)] == [130, 143]


def test_public_names() -> None:
    assert sorted(regard.__all__) == regard.__all__
    for name in regard.__all__:
        assert getattr(regard, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        regard.trian  # noqa: B018


def test_force_replaces_another_run(copy_file: Path, tmp_path: Path) -> None:
    for seed, force in ((1, False), (2, True)):
        regard.train(copy_file, out=tmp_path / "m", settings=[*QUICK, f"train.seed={seed}"], force=force)
    assert regard.load(tmp_path / "m").config.train.seed == 2
    with pytest.raises(regard.UsageError, match="holds another run"):
        regard.train(copy_file, out=tmp_path / "m", settings=QUICK)


def test_one_setting_as_one_string(copy_file: Path) -> None:
    assert regard.train(copy_file, preset="rnn", settings="train.steps=1").config.train.steps == 1


def test_names_can_be_looked_up() -> None:
    assert dir(regard) == sorted(regard.__all__)
    assert {"load", "train", "Trained"} <= set(dir(regard))
