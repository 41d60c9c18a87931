"""What a search may vary: only what the config has, nobody has said, and leads to a config."""

from pathlib import Path

import pytest

from regard import config
from regard.config import TASKS, Config
from regard.errors import ConfigError
from regard.training.transfer import read_body, refuse_another_body
from regard.tune.propose import Known, propose
from regard.tune.space import Space, space

EVERY = ["learning rate", "dropout", "width", "layers", "tokens per batch"]


def made(*words: str, preset: str | None = None, others: tuple[str, ...] = ()) -> Space:
    c = config.resolve(preset, None, list(words))
    found = {name: config.resolve(name, None, list(words)) for name in others}
    return space(c, config.said(None, list(words)), found)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_something_to_vary_and_every_proposal_is_a_config(task: str) -> None:
    others = ("transformer",) if task == "transduce" else ()
    found = made(f"task={task}", "train.minutes=1.0", others=others)
    names = [setting.name for setting in found.settings]
    assert set(EVERY) <= set(names)
    assert ("preset" in names) is (task == "transduce")
    assert ("copy" in names) is (task == "transduce")
    assert ("label smoothing" in names) is (task not in ("embed", "extract"))
    known = [Known(found.start, 1.0)]
    for number in range(8):
        values = propose(found, known, seed=3)
        assert values is not None
        c = found.config(values)
        assert isinstance(c, Config)
        assert (c.task, c.train.minutes, c.data, c.tokens) == (task, 1.0, found.first.data, found.first.tokens)
        assert c != found.first
        assert found.told(values)
        assert {word.split(".")[0] for word in found.words(values)} <= {"preset", "train", "encoder", "decoder"}
        known.append(Known(values, float(number)))


def test_the_first_trial_is_what_was_chosen() -> None:
    found = made("task=transduce")
    assert found.config(found.start) is found.first
    assert found.told(found.start) == ""


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("train.learning_rate=0.001", "learning rate"),
        ("train.tokens_per_batch=512", "tokens per batch"),
        ("train.label_smoothing=0.2", "label smoothing"),
        ("decoder.width=64", "width"),
        ("decoder.copy=true", "copy"),
    ],
)
def test_what_is_said_is_not_varied(word: str, name: str) -> None:
    assert name in made().start
    assert name not in made(word).start


def test_what_is_said_of_one_side_holds_there() -> None:
    found = made("encoder.layers=2", "encoder.dropout=0.25")
    c = found.config({**found.start, "layers": 1, "dropout": 0.4})
    assert isinstance(c.encoder, config.RecurrentEncoder)
    assert isinstance(c.decoder, config.RecurrentDecoder)
    assert (c.encoder.layers, c.encoder.dropout) == (2, 0.25)
    assert (c.decoder.layers, c.decoder.dropout) == (2, 0.4)


def test_without_others_the_preset_stays() -> None:
    assert "preset" not in made().start


def test_another_preset_has_its_own_config_which_is_varied_in_the_same_way() -> None:
    own = ["train.metric=bleu", "encoder.width=96", "decoder.width=96", "train.learning_rate=4e-3"]
    other = config.resolve("transformer", None, [*own, "embedding.token_dropout=0.0"])
    first = config.resolve(None, None, ["embedding.token_dropout=0.1", "train.learning_rate=2e-3"])
    found = space(first, {}, {"transformer": other})
    assert found.config({**found.start, "preset": "transformer"}) == other
    c = found.config({**found.start, "preset": "transformer", "layers": 1, "learning rate": 3e-3})
    assert isinstance(c.encoder, config.AttentionEncoder)
    assert (c.encoder.width, c.encoder.layers, c.train.learning_rate) == (96, 3, 6e-3)
    assert (c.preset, c.about, c.embedding.token_dropout) == ("transformer", other.about, 0.0)


def test_widths_grow_together_with_what_belongs_to_them() -> None:
    found = made(preset="transformer")
    c = found.config({**found.start, "width": 2.0})
    assert isinstance(c.encoder, config.AttentionEncoder)
    assert (c.encoder.width, c.encoder.feedforward, c.encoder.heads) == (256, 512, 4)


def test_what_can_not_be_is_no_choice() -> None:
    odd = made("encoder.heads=128", "decoder.heads=128", preset="transformer")  # which do not divide half the width
    assert [setting.choices for setting in odd.settings if setting.name == "width"] == [(1.0, 2.0)]
    assert [setting.choices for setting in made().settings if setting.name == "layers"] == [(0, 1)]
    apart = made("tokens.source=words")  # of words no character can be copied
    assert "copy" not in apart.start
    found = made()
    with pytest.raises(ConfigError):
        found.config({**found.start, "layers": -1})


def test_a_body_that_was_trained_keeps_its_size(copy_folder: Path) -> None:
    body = read_body(copy_folder)
    found = space(body.resolve(None, None, []), {}, {}, lambda c: refuse_another_body(c, body))
    assert {"learning rate", "dropout"} <= set(found.start)
    assert not {"width", "layers", "preset"} & set(found.start)
