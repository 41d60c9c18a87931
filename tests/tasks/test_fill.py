"""Hidden tokens: which are hidden and behind what, and how holes are filled."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from regard import config
from regard.data.ragged import ragged
from regard.data.read import Example
from regard.data.tokens import BEGINS, END, MASK, PAD, SPECIALS, WITHIN
from regard.data.vocabulary import learn
from regard.layers.embedding import Output
from regard.models.build import build
from regard.models.model import Model
from regard.tasks.fill import Fill
from regard.tasks.task import Item, Wish

WORDS = ["encoder.width=12", "encoder.heads=2", "encoder.layers=1", "encoder.feedforward=12"]
TEXTS = ["2018-05-12", "1999-12-31", "7", "2001-01-01 and 2002-02-02"]


def made(*words: str) -> tuple[Fill, Model]:
    c = config.resolve("encoder", None, [*WORDS, *words])
    vocabulary = learn([Example((text,), None, 1) for text in TEXTS], c, [False])
    return Fill(c, vocabulary), build(c, vocabulary.source.size, vocabulary.target.size, seed=1).eval()


@pytest.fixture(scope="module")
def fill() -> Fill:
    return made()[0]


@pytest.fixture(scope="module")
def model() -> Model:
    return made()[1]


def hide(fill: Fill, ids: tuple[int, ...], number: int, epoch: int) -> tuple[list[int], list[int]]:
    """One example alone."""
    source, label = fill.hide(ragged([ids]), np.array([number]), epoch)
    return source.ids.tolist(), label.ids.tolist()


def item(fill: Fill, text: str) -> Item:
    return fill.encode(Example((text,), None, 1), ".")


# ── hiding ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_hiding_is_pure_in_seed_epoch_and_number(fill: Fill) -> None:
    ids = item(fill, TEXTS[3]).source
    first = [hide(fill, ids, number, 0) for number in range(20)]
    assert first == [hide(fill, ids, number, 0) for number in range(20)]
    assert first != [hide(fill, ids, number, 1) for number in range(20)]
    assert len({str(each) for each in first}) > 10
    other, _ = made("train.seed=1")
    assert first != [hide(other, ids, number, 0) for number in range(20)]


def test_batch_mates_do_not_change_what_is_hidden(fill: Fill) -> None:
    items = [item(fill, text) for text in TEXTS]
    together = fill.batch(items, [10, 11, 12, 13], 2)
    for row, number in enumerate((10, 11, 12, 13)):
        alone = fill.batch([items[row]], [number], 2)
        length = alone.source.shape[1]
        assert torch.equal(together.source[row, :length], alone.source[0])
        assert torch.equal(together.label_BT[row, :length], alone.label_BT[0])


def test_shares_are_those_of_the_config(fill: Fill) -> None:
    """15 % are chosen; of those 80 % become a mask, 10 % another token, 10 % stay."""
    ids = (*range(len(SPECIALS), len(SPECIALS) + 200), END)
    chosen = masked = kept = 0
    for number in range(200):
        source, label = hide(fill, ids, number, 0)
        places = [i for i, each in enumerate(label) if each != PAD]
        chosen += len(places)
        masked += sum(source[i] == MASK for i in places)
        kept += sum(source[i] == ids[i] for i in places)
    assert chosen / 40_000 == pytest.approx(0.15, abs=0.01)
    assert masked / chosen == pytest.approx(0.8, abs=0.02)
    assert kept / chosen == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize(("share", "mask", "random"), [(0.5, 1.0, 0.0), (0.3, 0.0, 1.0), (0.3, 0.0, 0.0)])
def test_other_shares_can_be_had(share: float, mask: float, random: float) -> None:
    fill, _ = made(f"fill.share={share}", f"fill.mask={mask}", f"fill.random={random}")
    ids = (*range(len(SPECIALS), len(SPECIALS) + 200), END)
    hidden = [hide(fill, ids, number, 0) for number in range(50)]
    chosen = [(source[i], ids[i]) for source, label in hidden for i in range(200) if label[i] != PAD]
    assert len(chosen) / 10_000 == pytest.approx(share, abs=0.03)
    assert sum(new == MASK for new, _ in chosen) / len(chosen) == mask
    changed = sum(new not in (old, MASK) for new, old in chosen) / len(chosen)
    assert changed == pytest.approx(random, abs=0.03)  # a random token may be the old one


def test_labels_tell_what_was_hidden_and_nothing_else(fill: Fill) -> None:
    ids = item(fill, TEXTS[3]).source
    for number in range(100):
        source, label = hide(fill, ids, number, 0)
        assert len(source) == len(label) == len(ids)
        for new, old, told in zip(source, ids, label, strict=True):
            assert told == old if told != PAD else new == old
            assert new == MASK or new >= len(SPECIALS) or (new, old) == (END, END)


@pytest.mark.parametrize("text", ["7", "42", TEXTS[0]])
def test_something_is_hidden_in_every_text_but_never_the_end(fill: Fill, text: str) -> None:
    ids = item(fill, text).source
    for number in range(50):
        source, label = hide(fill, ids, number, 0)
        assert any(each != PAD for each in label)
        assert (source[-1], label[-1]) == (END, PAD)


def test_an_empty_text_hides_nothing(fill: Fill) -> None:
    assert hide(fill, (END,), 0, 0) == ([END], [PAD])


def test_a_batch_has_no_target(fill: Fill) -> None:
    batch = fill.batch([item(fill, "7"), item(fill, "1999")], [0, 1], 0)
    assert batch.target_BT is None
    assert batch.source_mask_BS is not None
    assert batch.source_mask_BS.tolist() == [[True, True, False, False, False], [True] * 5]
    assert batch.label_BT[0, 2:].tolist() == [PAD] * 3
    assert batch.index == (0, 1)


# ── filling ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def asked(fill: Fill, text: str) -> Item:
    return fill.ask([text], ".")


def run(fill: Fill, model: Model, texts: list[str], wish: Wish | None = None) -> list[str]:
    items = [asked(fill, text) for text in texts]
    return [each.text for each in fill.answer(model, items, wish or Wish(), range(len(texts)))]


def test_each_hole_is_one_mask(fill: Fill) -> None:
    ids = asked(fill, "20[mask]8-[mask][mask]").source
    assert [i for i, each in enumerate(ids) if each == MASK] == [2, 5, 6]
    assert ids[-1] == END
    assert len(ids) == 8


def test_holes_are_filled_and_the_rest_stays(fill: Fill, model: Model) -> None:
    found = run(fill, model, ["20[mask]8-05-1[mask]", "1999"])
    assert found[1] == "1999"
    assert found[0].startswith("20")
    assert "8-05-1" in found[0]
    assert "mask" not in found[0]


def prefer(output: Output, token: int) -> Callable[[Tensor], Tensor]:
    def biased(states_BTD: Tensor) -> Tensor:
        bias_V = torch.zeros(len(output.bias))
        bias_V[token] = 1000.0
        return Output.forward(output, states_BTD) + bias_V

    return biased


@pytest.mark.parametrize("special", range(len(SPECIALS)))
def test_no_special_token_fills_a_hole(special: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fill, model = made()
    monkeypatch.setattr(model.output, "forward", prefer(model.output, special))
    answer = fill.answer(model, [asked(fill, "20[mask]8")], Wish(), [0])[0]
    assert min(answer.tokens) >= len(SPECIALS)
    assert len(answer.tokens) == 4


def test_the_likeliest_token_fills_a_hole(monkeypatch: pytest.MonkeyPatch) -> None:
    fill, model = made()
    five = fill.vocabulary.source.encode("5").ids[0]
    monkeypatch.setattr(model.output, "forward", prefer(model.output, five))
    assert run(fill, model, ["20[mask]8", "[mask][mask]"]) == ["2058", "55"]


def test_alternatives_come_best_first(fill: Fill, model: Model) -> None:
    answer = fill.answer(model, [asked(fill, "20[mask]8")], Wish(n_best=4), [0])[0]
    scores = [each.score for each in answer.alternatives]
    assert len({each.tokens for each in answer.alternatives}) == 4
    assert scores == sorted(scores, reverse=True)
    assert answer.tokens == answer.alternatives[0].tokens
    ids = torch.tensor([asked(fill, "20[mask]8").source])
    log_V = model.output(model.encode(ids, ids != PAD).states_BSM)[0, 2].log_softmax(-1)
    assert scores == pytest.approx([float(log_V[each.tokens[2]]) for each in answer.alternatives], abs=1e-5)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_answers_are_in_order_whatever_the_batch(fill: Fill, model: Model, size: int) -> None:
    texts = [text[:cut] + "[mask]" + text[cut + 1 :] for text in TEXTS for cut in (0, 3)]
    assert run(fill, model, texts, Wish(batch=size)) == run(fill, model, texts, Wish(batch=64))


def test_evaluation_hides_the_same_places_each_time(fill: Fill, model: Model) -> None:
    examples = [Example((text,), None, 1) for text in TEXTS]
    items = [item(fill, text) for text in TEXTS]
    first = fill.evaluate(model, items, examples, Wish())
    again = fill.evaluate(model, items, examples, Wish())
    assert first == again
    metric = first.metrics["accuracy"]
    assert 0.0 <= metric.value <= 100.0
    assert first.facts["hidden"] >= len(TEXTS)
    assert first.facts["perplexity"] == pytest.approx(torch.tensor(first.facts["loss"]).exp().item(), rel=1e-5)
    assert len(first.outputs) == len(TEXTS)
    assert [len(output) for output in first.outputs] == [len(text) for text in TEXTS]


def test_accuracy_counts_hidden_places() -> None:
    """A model that always says 5 is right in a text of fives and wrong in a text of sixes."""
    fill, model = made()
    five = fill.vocabulary.source.encode("5").ids[0]
    with torch.no_grad():
        model.output.bias[five] = 1e4
    for text, expected in (("5" * 20, 100.0), ("1" * 20, 0.0)):
        found = fill.evaluate(model, [item(fill, text)], [Example((text,), None, 1)], Wish())
        assert found.metrics["accuracy"].value == expected
    assert found.outputs[0].count("5") == found.facts["hidden"]


def test_in_data_a_hole_is_six_characters(fill: Fill) -> None:
    ids = item(fill, "a[mask]").source
    assert MASK not in ids
    for number in range(30):
        assert MASK not in hide(fill, ids, number, 0)[1]


def test_columns_keep_their_separator_and_their_tags() -> None:
    c = config.resolve("encoder", None, WORDS)
    vocabulary = learn([Example(("walk", "V;PST"), None, 1)], c, [False, True])
    task = Fill(c, vocabulary)
    ids = task.encode(Example(("walk", "V;PST"), None, 1), ".").source
    assert ids == task.ask(["walk", "V;PST"], ".").source
    assert len(ids) == 4 + 1 + 2 + 1
    assert task.spell(list(ids)).text == "walk\tV;PST"
    for number in range(30):
        source, label = hide(task, ids, number, 0)
        assert (source[4], label[4], label[-1]) == (ids[4], PAD, PAD)


def test_alternatives_of_two_holes_are_the_best_pairs(fill: Fill, model: Model) -> None:
    question = asked(fill, "20[mask]8-[mask]")
    found = fill.answer(model, [question], Wish(n_best=6), [0])[0].alternatives
    ids = torch.tensor([question.source])
    log = model.output(model.encode(ids, ids != PAD).states_BSM)[0].log_softmax(-1)
    first, second = log[2, len(SPECIALS) :], log[5, len(SPECIALS) :]
    expected = (first[:, None] + second[None, :]).flatten().topk(6).values.tolist()
    assert [each.score for each in found] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("columns", [("", "ab"), ("ab", ""), ("a", "b")])
def test_an_empty_column_stays_a_column(columns: tuple[str, str]) -> None:
    c = config.resolve("encoder", None, WORDS)
    task = Fill(c, learn([Example(("ab", "ab"), None, 1)], c, [False, False]))
    assert task.spell(list(task.ask(columns, ".").source)).text == "\t".join(columns)


# ── spaces ───────────────────────────────────────────────────────────────────────────────────────────────────────────

SAID = ["wake me at noon", "wake me at seven", "call me at noon", "call us, us"] * 3


def subwords(kind: str) -> tuple[Fill, Model]:
    c = config.resolve("encoder", None, [*WORDS, f"tokens.source={kind}", "tokens.size=300"])
    vocabulary = learn([Example((text,), None, 1) for text in SAID], c, [False])
    return Fill(c, vocabulary), build(c, vocabulary.source.size, vocabulary.target.size, seed=1).eval()


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("text", ["wake me at [mask]", "[mask] me at noon", "wake [mask] at noon", "call us[mask] us",
                                  "[mask] me [mask] noon", "wake[mask]"])  # fmt: skip
def test_a_hole_takes_the_space_before_it(kind: str, text: str) -> None:
    """Around a hole stand the tokens that stand in the whole text: no lone space, and none too many."""
    fill, model = subwords(kind)
    asked = fill.ask([text], ".")
    whole = [fill.vocabulary.source.encode(each).ids for each in SAID]
    assert "␣" not in [fill.vocabulary.source.token(id) for id in asked.source]
    known = {ids[at : at + 2] for ids in whole for at in range(len(ids))}
    pairs = zip(asked.source[:-2], asked.source[1:-1], strict=True)
    assert all(pair in known for pair in pairs if MASK not in pair)
    for answer in fill.answer(model, [asked], Wish(n_best=5), [0])[0].alternatives:
        before, after = text.split("[mask]")[0], text.split("[mask]")[-1]
        assert answer.text.startswith(before)
        assert answer.text.endswith(after)
        filled = answer.text[len(before) : len(answer.text) - len(after)]
        assert filled == filled.lstrip(" ")
        assert filled


def test_a_hole_that_was_cut_away_asks_for_nothing() -> None:
    fill, model = subwords("bpe")
    asked = fill.ask(["wake me at [mask] and [mask]"], ".")
    cut = replace(asked, source=(*asked.source[:5], END))
    assert len(fill.answer(model, [cut], Wish(n_best=2), [0])[0].alternatives) >= 1


@pytest.mark.parametrize(("text", "kind"), [("wake me at [mask]", BEGINS), ("call us[mask] us", WITHIN)])
def test_what_is_foreseen_is_what_may_be_filled_in(text: str, kind: int) -> None:
    fill, model = subwords("bpe")
    asked = fill.ask([text], ".")
    (answer,) = fill.answer(model, [asked], Wish(n_best=4), [0])
    (found,) = fill.foresee(model, [asked], [answer])
    possible = found.log_TV[0].isfinite().nonzero()[:, 0].tolist()
    first = fill.vocabulary.source.pieces.first
    assert possible == [first + place for place, each in enumerate(fill.vocabulary.source.spacing) if each == kind]
    best = found.log_TV[0].topk(4)
    hole = asked.source.index(MASK)
    assert best.indices.tolist() == [each.tokens[hole] for each in answer.alternatives]
    assert best.values.tolist() == pytest.approx([each.score for each in answer.alternatives], abs=1e-5)


def test_no_tag_is_foreseen_in_a_hole() -> None:
    c = config.resolve("encoder", None, WORDS)
    vocabulary = learn([Example(("walk", "V;PST"), None, 1)], c, [False, True])
    fill, model = Fill(c, vocabulary), build(c, vocabulary.source.size, vocabulary.target.size, seed=1).eval()
    asked = fill.ask(["wa[mask]k", "V;PST"], ".")
    (found,) = fill.foresee(model, [asked], fill.answer(model, [asked], Wish(), [0]))
    assert not found.log_TV[0, : vocabulary.source.pieces.first].isfinite().any()
    assert found.log_TV[0, vocabulary.source.pieces.first :].isfinite().all()
