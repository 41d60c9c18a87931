"""A tap hears what attention looked at and changes nothing."""

import threading
from typing import Any

import pytest
import torch
from torch import Tensor

from regard import config
from regard.layers.attention import Attention, split, weights
from regard.layers.tap import Tap, listening
from regard.models.build import build
from regard.models.model import Model

SOURCE = torch.tensor([[3, 4, 5, 1], [6, 1, 0, 0]])
REAL = torch.tensor([[True, True, True, True], [True, True, False, False]])
TARGET = torch.tensor([[2, 4, 3], [2, 5, 5]])


def attention_model(score: Any = "scaled", position: Any = "sinusoidal") -> config.Config:
    encoder = config.AttentionEncoder(width=12, heads=3, layers=2, score=score, position=position, dropout=0.0)
    return config.Config(encoder=encoder, decoder=config.AttentionDecoder(**encoder.model_dump()))


def recurrent_model(context: Any) -> config.Config:
    side = config.RecurrentEncoder(width=12)
    return config.Config(encoder=side, decoder=config.RecurrentDecoder(width=12, context=context, score="additive"))


MODELS = {
    "attention": attention_model(),
    "relative": attention_model(position="relative"),
    "rotary": attention_model("distance", "rotary"),
    "additive": attention_model("additive", "alibi"),
    **{f"recurrent-{context}": recurrent_model(context) for context in ("output", "feed", "input")},
    "convolutional": config.Config(
        encoder=config.ConvolutionalEncoder(width=12, layers=2, dropout=0.0),
        decoder=config.ConvolutionalDecoder(width=12, layers=2, dropout=0.0),
    ),
}
NAMES = {
    "attention": [f"{side}.{layer}.{kind}" for layer in (0, 1)
                  for side, kind in (("encoder", "self"), ("decoder", "self"), ("decoder", "cross"))],
    "recurrent-output": ["decoder.cross"],
    "recurrent-feed": ["decoder.cross"],
    "recurrent-input": ["decoder.cross"],
    "convolutional": ["decoder.0.cross", "decoder.1.cross"],
}  # fmt: skip


def built(c: config.Config) -> Model:
    return build(c, 7, 7, seed=3).eval()


def logits(model: Model, source: Tensor = SOURCE, real: Tensor = REAL, target: Tensor = TARGET) -> Tensor:
    memory = model.encode(source, real)
    return model.decode(target, memory, model.start(memory))[0]


@pytest.mark.parametrize("name", list(MODELS))
def test_outputs_are_the_same_to_the_bit(name: str) -> None:
    model = built(MODELS[name])
    silent = logits(model)
    with Tap(model) as tap:
        heard = logits(model)
    assert heard.equal(silent)
    assert tap.maps


@pytest.mark.parametrize("name", list(NAMES))
def test_names_are_as_people_say_them(name: str) -> None:
    model = built(MODELS[name])
    with Tap(model) as tap:
        logits(model)
    assert sorted(tap.maps) == sorted(NAMES[name])


@pytest.mark.parametrize("name", list(MODELS))
def test_what_is_heard_is_the_explicit_weights(name: str) -> None:
    """A hook on each attention takes down what it was asked; the weights are made again from that."""
    model = built(MODELS[name])
    expected: dict[int, list[Tensor]] = {}

    def take_down(module: Any, asked: tuple[Any, ...]) -> None:
        x, held, sight, *query = asked
        query = module.score.prepare_queries(sight.turn(split(query[0] if query else module.query(x), module.heads)))
        expected.setdefault(id(module), []).append(weights(query, held, module.score, sight))

    attentions = {n: module for n, module in model.named_modules() if isinstance(module, Attention)}
    for module in attentions.values():
        module.register_forward_pre_hook(take_down)
    with Tap(model) as tap:
        logits(model)
    by_name = {n.replace("layers.", "").removesuffix("_attention"): expected[id(m)] for n, m in attentions.items()}
    assert by_name.keys() == tap.maps.keys()
    for spoken, heard in tap.maps.items():
        assert len(heard) == len(by_name[spoken])
        assert all(map(torch.equal, heard, by_name[spoken]))
        assert not any(one.requires_grad for one in heard)


@pytest.mark.parametrize("name", list(MODELS))
def test_rows_sum_to_one_and_padding_is_never_seen(name: str) -> None:
    model = built(MODELS[name])
    with Tap(model) as tap:
        logits(model)
    for spoken, heard in tap.maps.items():
        for one in heard:
            torch.testing.assert_close(one.sum(-1), torch.ones(one.shape[:-1]))
            if spoken != "decoder.0.self" and spoken != "decoder.1.self":
                assert (one[1, :, :, 2:] == 0).all()
            else:
                assert (one.triu(1) == 0).all()


def test_a_recurrent_decoder_is_heard_at_each_step() -> None:
    model = built(MODELS["recurrent-feed"])
    with Tap(model) as tap:
        logits(model)
    assert [tuple(one.shape) for one in tap.maps["decoder.cross"]] == [(2, 1, 1, 4)] * 3


def test_only_while_it_is_entered() -> None:
    model, other = built(MODELS["attention"]), built(MODELS["attention"])
    with Tap(model) as outer:
        logits(other)  # not the model that is listened to
        assert not outer.maps
        with Tap(model) as inner:
            logits(model)
        assert inner.maps
        assert not outer.maps
        assert listening() is outer
    logits(model)
    assert not outer.maps
    assert listening() is None


def test_an_error_closes_the_tap() -> None:
    with pytest.raises(ZeroDivisionError), Tap(built(MODELS["attention"])):
        raise ZeroDivisionError
    assert listening() is None


def test_two_threads_do_not_hear_each_other() -> None:
    model = built(MODELS["attention"])
    meet = threading.Barrier(3, timeout=20)
    heard: dict[int, set[int]] = {}

    def work(batch: int) -> None:
        """Listens to a batch of its own size while all threads have the model open."""
        source = torch.full((batch, 3), 4)
        with Tap(model) as tap:
            for _ in range(5):
                meet.wait()
                logits(model, source, torch.ones(batch, 3, dtype=torch.bool), torch.full((batch, 2), 3))
        heard[batch] = {len(one) for maps in tap.maps.values() for one in maps}
        heard[-batch] = {len(maps) for maps in tap.maps.values()}

    def silent() -> None:
        for _ in range(5):
            meet.wait()
            logits(model)
        heard[0] = set() if listening() is None else {1}

    threads = [threading.Thread(target=work, args=(batch,)) for batch in (3, 5)] + [threading.Thread(target=silent)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == {3: {3}, -3: {5}, 5: {5}, -5: {5}, 0: set()}
