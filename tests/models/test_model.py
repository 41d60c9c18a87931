"""Models as wholes: what a forward pass gives, what a memory holds, empty prefixes, and no weight without a use."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from regard.data.batch import Batch, pad
from regard.data.tokens import PAD
from regard.layers.attention import Attention, Sight
from regard.layers.scores import Mean
from regard.layers.tap import Tap
from regard.tasks.task import Item, Wish
from regard.trained import Trained

SmallModel = Callable[..., Trained]
TEN = ["attention-encoder", "caption", "conv", "decoder", "encoder", "rnn", "rnn-attention", "rnn-context",
       "rnn-single", "transformer"]  # fmt: skip
PREFIXES = {
    "attention": [],
    "recurrent": ["decoder.kind=recurrent", "decoder.context=none", "decoder.bridge=zero", "decoder.position=none",
                  "decoder.score=scaled", "decoder.heads=1"],
    "convolutional": ["decoder.kind=convolutional", "decoder.position=learned", "decoder.heads=1"],
}  # fmt: skip


def items(model: Trained) -> list[Item]:
    """Two examples of unlike length."""
    picture = np.linspace(0, 1, 3 * 8 * 8, dtype=np.float32).reshape(3, 8, 8)
    if model.config.task == "caption":
        return [Item((), (8, 9, 10), picture), Item((), (8,), 1 - picture)]
    target = model.config.task != "fill"
    return [Item((8, 9, 10, 2), (8, 9, 10) if target else ()), Item((9, 2), (8,) if target else ())]


def some_batch(model: Trained) -> Batch:
    return model.task.batch(items(model), [0, 1], 0)


# ── no dead weights ──────────────────────────────────────────────────────────────────────────────────────────────────


def without_gradient(model: Trained) -> list[str]:
    torch.autograd.backward(model.task.loss(model.model.train(), some_batch(model), 1.0, 0).total)
    return [name for name, weight in model.model.named_parameters() if weight.grad is None]


@pytest.mark.parametrize("preset", TEN)
def test_every_weight_of_every_preset_gets_a_gradient(small_model: SmallModel, preset: str) -> None:
    assert without_gradient(small_model(preset)) == []


@pytest.mark.parametrize(
    ("preset", "words"),
    [
        ("rnn-attention", ["decoder.score=mean"]),
        ("conv", ["decoder.score=mean"]),
        ("decoder", ["decoder.score=mean"]),
        ("transformer", ["encoder.score=mean", "decoder.score=mean"]),
    ],
)
def test_the_mean_has_no_weights_to_compare_with(small_model: SmallModel, preset: str, words: list[str]) -> None:
    model = small_model(preset, *words)
    names = [name for name, _ in model.model.named_parameters() if "attention" in name]
    assert not [name for name in names if ".query." in name or ".key." in name]
    assert [name for name in names if ".value." in name]
    # The norm before a lookup that has no query is the one thing left without a use.
    assert [name for name in without_gradient(model) if "cross_norm" not in name] == []


def test_the_mean_gives_the_mean_of_the_values() -> None:
    attention = Attention(6, 4, 2, Mean())
    assert {name.split(".")[0] for name, _ in attention.named_parameters()} == {"value", "output"}
    query, memory = torch.randn(2, 3, 6), torch.randn(2, 5, 4)
    found = attention(query, attention.hold(memory), Sight(None))
    expected = attention.output(attention.value(memory).mean(1, keepdim=True)).expand(-1, 3, -1)
    torch.testing.assert_close(found, expected, rtol=0.0, atol=1e-5)


# ── forward and memory ───────────────────────────────────────────────────────────────────────────────────────────────


def test_forward_reads_the_target(small_model: SmallModel) -> None:
    model = small_model("transformer")
    batch = some_batch(model)
    with torch.inference_mode():
        read = model.model(batch)
    assert batch.target_BT is not None
    assert read.mask_BT.equal(batch.target_BT != PAD)
    assert read.mask_BT.tolist() == [[True] * 4, [True, True, False, False]]
    assert read.states_BTD.shape == (2, 4, 16)
    assert read.memory.mask_BS.tolist() == [[True] * 4, [True, True, False, False]]


def test_forward_without_a_target_reads_the_source(small_model: SmallModel) -> None:
    model = small_model("encoder")
    batch = some_batch(model)
    with torch.inference_mode():
        read = model.model(batch)
    assert batch.source_mask_BS is not None
    assert read.mask_BT.equal(batch.source_mask_BS)
    assert read.states_BTD.equal(read.memory.states_BSM)


@pytest.mark.parametrize("kind", list(PREFIXES))
def test_prefix_without_a_target_gives_the_states_of_the_decoder(small_model: SmallModel, kind: str) -> None:
    """The same as when the decoder is fed the source as if it were a target."""
    net = small_model("decoder", *PREFIXES[kind]).model
    source = pad([[8, 9, 10], [9]])
    with torch.inference_mode():
        read = net(Batch(source, source != PAD, None, source))
        assert net.decoder is not None
        fed, _ = net.states(source, read.memory, net.decoder.start(read.memory))
    assert read.mask_BT.equal(source != PAD)
    torch.testing.assert_close(read.states_BTD[read.mask_BT], fed[source != PAD], rtol=0.0, atol=1e-5)
    assert not read.states_BTD.equal(read.memory.states_BSM)


@pytest.mark.parametrize("preset", TEN)
def test_memory_holds_the_ids_that_were_read(small_model: SmallModel, preset: str) -> None:
    model = small_model(preset)
    batch = some_batch(model)
    with torch.inference_mode():
        memory = model.model.encode(batch.source, batch.source_mask_BS)
    if preset == "caption":
        assert memory.source_BS is None
    else:
        assert memory.source_BS is not None
        assert memory.source_BS.equal(batch.source)


# ── an empty prefix ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", list(PREFIXES))
@pytest.mark.parametrize("wish", [Wish(), Wish(beam=3)], ids=["greedy", "beam"])
def test_an_empty_source_is_answered_alone_as_among_others(small_model: SmallModel, kind: str, wish: Wish) -> None:
    model = small_model("decoder", *PREFIXES[kind])
    given = [Item((), ()), Item((8, 9, 10), ()), Item((9,), ())]
    together = model.task.answer(model.model, given, wish, range(3))
    for number, item in enumerate(given):
        (alone,) = model.task.answer(model.model, [item], wish, [number])
        assert alone.tokens == together[number].tokens
        assert alone.confidence == pytest.approx(together[number].confidence, rel=1e-4)


# ── a tap that intervenes ────────────────────────────────────────────────────────────────────────────────────────────


class Silencing(Tap):
    """Takes away what the heads of one attention found."""

    def __init__(self, model: nn.Module, silenced: nn.Module) -> None:
        super().__init__(model)
        self.silenced = silenced

    def change(self, module: nn.Module, found_BHTK: Tensor) -> Tensor:
        return torch.zeros_like(found_BHTK) if module is self.silenced else found_BHTK


def test_a_tap_that_changes_what_was_found_alters_the_output(small_model: SmallModel) -> None:
    model = small_model("rnn-attention")
    net, batch = model.model, some_batch(model)
    assert net.decoder is not None
    (attention,) = net.decoder.attentions()
    with torch.inference_mode():
        plain = net(batch).states_BTD
        with Silencing(net, attention):
            silenced = net(batch).states_BTD
        with Silencing(net, net.output):  # not an attention: nothing is taken away
            untouched = net(batch).states_BTD
        after = net(batch).states_BTD
    assert not torch.allclose(plain, silenced, atol=1e-4)
    assert untouched.equal(plain)
    assert after.equal(plain)
