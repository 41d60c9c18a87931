"""How a search is planned: what the rules choose for each preset is what its trials begin with."""

from collections.abc import Callable
from pathlib import Path

import pytest

from regard import config, rules
from regard.config import Config
from regard.data import builtin
from regard.rules import BLOCKS, LOOP, UNSEEN, configured
from regard.tune.plan import LEADS, Asked, Search, planned

Write = Callable[[str, str | bytes], str]


@pytest.fixture
def dates(tmp_path: Path) -> str:
    return str(builtin.write("dates", 400, tmp_path / "dates.tsv")[0])


def search(path: str, *words: str, preset: str | None = None) -> Search:
    return planned(Asked(path, words=(*words, "train.minutes=20.0"), preset=preset), 0.0)


def other(found: Search, **values: float) -> Config:
    """The trial with the preset that the rules did not choose, and nothing else that differs."""
    (name,) = set(LEADS) - {found.space.first.preset}
    return found.space.config({**found.space.start, "preset": name, **values})


@pytest.mark.parametrize(("name", "word"), LEADS.items())
def test_the_word_that_leads_to_a_preset_changes_nothing_in_it(dates: str, name: str, word: str) -> None:
    led = configured(dates, None, None, [word]).config
    assert led.preset == name
    section, _, key = word.partition("=")[0].partition(".")
    usual = config.resolve(name)
    assert getattr(getattr(led, section), key) == getattr(getattr(usual, section), key)


def test_beside_a_loop_stands_the_transformer_of_the_rules(dates: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "transformers", lambda case: ())
    found = search(dates)
    first = found.space.first
    assert first.preset == LOOP.preset
    assert first.embedding.token_dropout == UNSEEN
    c = other(found)
    assert isinstance(c.encoder, config.AttentionEncoder)
    assert (c.encoder.layers, c.encoder.width, c.encoder.feedforward) == (
        BLOCKS.layers,
        BLOCKS.width,
        BLOCKS.feedforward,
    )
    assert c.embedding.token_dropout == 0.0
    assert (c.tokens, c.data, c.search, c.copies) == (first.tokens, first.data, first.search, first.copies)
    differ = {"optimizer": "muon", "learning_rate": 3e-3, "warmup": 0}
    assert c.train.model_copy(update={"warmup": 0}) == first.train.model_copy(update=differ)


def test_beside_a_transformer_stands_the_loop_of_the_rules(dates: str) -> None:
    found = search(dates)
    assert found.space.first.preset == "transformer"
    c = other(found)
    assert isinstance(c.decoder, config.RecurrentDecoder)
    assert (c.decoder.layers, c.decoder.width) == (LOOP.layers, LOOP.width)
    assert c.embedding.token_dropout == UNSEEN


def test_what_is_said_holds_for_the_other_preset_too(dates: str) -> None:
    said = ("encoder.width=96", "decoder.width=96", "embedding.token_dropout=0.2", "train.metric=exact")
    c = other(search(dates, *said))
    assert isinstance(c.encoder, config.RecurrentEncoder)
    assert (c.encoder.width, c.embedding.token_dropout, c.train.metric) == (96, 0.2, "exact")


@pytest.mark.parametrize("word", ["encoder.kind=recurrent", "encoder.directions=forward", "decoder.gated=true"])
def test_what_only_one_preset_can_have_leaves_no_other(dates: str, word: str) -> None:
    assert "preset" not in search(dates, word).space.start


def test_a_preset_that_is_named_stays(dates: str) -> None:
    assert "preset" not in search(dates, preset="transformer").space.start


def test_another_task_keeps_its_preset(write: Write) -> None:
    path = write("x.tsv", "".join(f"some text {i}\t{'ab'[i % 2]}\n" for i in range(60)))
    assert "preset" not in search(path, "task=classify").space.start
