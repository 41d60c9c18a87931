"""The laws as a tool: what they are tried on, what counts as a difference, and how they are told."""

import math

import pytest
import torch

from regard import config
from regard.data.read import Example
from regard.data.tokens import END, SPECIALS
from regard.data.vocabulary import learn
from regard.lab.laws import LAWS, Law, apart, draw_items, laws, render
from regard.models.build import build
from regard.trained import Trained

NAMES = ["causal", "padding-proof", "batch-proof", "cached = uncached", "beam 1 = greedy", "tap changes nothing",
         "reload = same", "engine = model"]  # fmt: skip


def trained(preset: str, *words: str) -> Trained:
    c = config.resolve(preset, None, ["search.length_ratio=0.0", "search.length_extra=3", *words])
    vocabulary = learn([Example(("abcdefgh",), "xyzabcd", 1)], c, [False])
    return Trained(c, vocabulary, build(c, vocabulary.source.size, vocabulary.target.size).eval())


@pytest.fixture(scope="module")
def small() -> Trained:
    return trained("rnn", "encoder.width=8", "encoder.embedding=8", "decoder.width=8", "decoder.embedding=8")


def test_all_seven_laws_are_tried_in_order(small: Trained) -> None:
    found = laws(small, count=3)
    assert [law.name for law in found] == NAMES
    assert len(LAWS) == len(NAMES)
    assert all(law.holds and law.difference is not None for law in found)


def test_drawn_items_differ_in_length_and_stay_within_the_model(small: Trained) -> None:
    items = draw_items(small, 200, seed=0)
    assert {len(item.source) for item in items} == set(range(2, 14))  # 1 to 12 tokens and the end
    assert {len(item.target) for item in items} == set(range(1, 13))
    assert all(item.source[-1] == END for item in items)
    ids = {token for item in items for token in (*item.source[:-1], *item.target)}
    assert min(ids) >= len(SPECIALS)
    assert max(ids) < max(small.vocabulary.source.size, small.vocabulary.target.size)


def test_drawn_items_are_no_longer_than_the_config_allows() -> None:
    short = trained("rnn", "data.max_source=3", "data.max_target=2")
    items = draw_items(short, 50, seed=0)
    assert max(len(item.source) for item in items) == 4
    assert max(len(item.target) for item in items) == 2


def test_a_seed_draws_the_same_items_and_another_seed_others(small: Trained) -> None:
    assert draw_items(small, 9, seed=1) == draw_items(small, 9, seed=1)
    assert draw_items(small, 9, seed=1) != draw_items(small, 9, seed=2)


def test_sources_without_an_encoder_have_no_end() -> None:
    items = draw_items(trained("decoder", "decoder.width=8"), 20, seed=0)
    assert not [item for item in items if END in item.source]


def test_pictures_are_drawn_for_captions() -> None:
    made = trained("caption", "encoder.size=8", "encoder.width=8", "decoder.width=8")
    for item in draw_items(made, 3, seed=0):
        assert item.source == ()
        assert item.picture is not None
        assert item.picture.shape == (3, 8, 8)


def test_an_encoder_alone_has_no_law_about_targets() -> None:
    made = trained("encoder", "encoder.width=8", "encoder.heads=2", "encoder.feedforward=8")
    lines = render(laws(made, count=3)).splitlines()
    without = [line for line in lines if line.startswith("–") and line.endswith("does not apply")]
    assert [line.split()[1] for line in without] == ["causal", "cached", "beam"]
    assert all(not item.target for item in draw_items(made, 3, seed=0))


@pytest.mark.parametrize(("difference", "holds"), [(None, True), (0.0, True), (1e-9, True), (2e-9, False)])
def test_a_law_holds_up_to_its_limit(difference: float | None, holds: bool) -> None:
    assert Law("name", "says", difference, 1e-9).holds is holds


def test_what_is_not_a_number_breaks_every_law() -> None:
    nothing = torch.tensor([1.0, math.nan])
    assert apart(nothing, torch.tensor([1.0, 1.0])) == math.inf
    assert apart(torch.tensor([1.0, 1.5]), torch.tensor([1.0, 1.0])) == 0.5
    assert apart(torch.empty(0), torch.empty(0)) == 0.0
    assert not Law("name", "says", math.inf, 1e-9).holds


def test_laws_are_told_one_line_each() -> None:
    told = render([Law("causal", "a says", 0.0, 0.0), Law("cached", "b says", 1e-3, 1e-9)]).splitlines()
    assert [line.split()[0] for line in told] == ["holds", "BROKEN"]
    assert told[1].endswith("1.0e-03 in logits")
    assert "b says" in told[1]


def test_laws_leave_the_model_as_it_was(small: Trained) -> None:
    before = {name: weight.clone() for name, weight in small.model.named_parameters()}
    laws(small, count=2)
    for name, weight in small.model.named_parameters():
        assert weight.dtype == torch.float32
        assert torch.equal(weight, before[name])
