"""Losses against torch's own, and what a decoder is fed: the true tokens, its own, or some of each."""

from collections.abc import Callable, Sequence
from typing import cast

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from regard import config
from regard.data.batch import Batch
from regard.data.read import Example
from regard.data.tokens import PAD
from regard.data.vocabulary import learn
from regard.layers.dropout import Dropout
from regard.layers.embedding import Output
from regard.layers.plain import plain
from regard.models.build import build
from regard.models.model import Model
from regard.tasks.loss import fed, token_loss
from regard.tasks.transduce import Transduce

Same = Callable[[Tensor, Tensor], None]

PAIRS = [("abcde", "edcba"), ("ab", "ba"), ("h", "h"), ("gfed", "defg"), ("cab", "bac"), ("ffff", "ffff")]
SMALL = {
    "recurrent": ("rnn-attention", ["encoder.width=12", "decoder.width=12"]),
    "feed": ("rnn-attention", ["encoder.width=12", "decoder.width=12", "decoder.context=feed", "decoder.cell=lstm"]),
    "convolutional": ("conv", ["encoder.width=12", "decoder.width=12", "encoder.layers=1", "decoder.layers=2"]),
    "attention": ("transformer", ["encoder.width=12", "decoder.width=12", "encoder.heads=2", "decoder.heads=2",
                                  "encoder.layers=1", "decoder.layers=1"]),
    "decoder-only": ("decoder", ["decoder.width=12", "decoder.heads=2", "decoder.layers=2"]),
    "recurrent, copying": ("rnn-attention", ["encoder.width=12", "decoder.width=12", "decoder.context=input",
                                             "decoder.copy=true"]),
    "attention, copying": ("transformer", ["encoder.width=12", "decoder.width=12", "encoder.heads=2", "decoder.heads=2",
                                           "encoder.layers=1", "decoder.layers=1", "decoder.copy=true"]),
    "decoder-only, copying": ("decoder", ["decoder.width=12", "decoder.heads=2", "decoder.layers=2",
                                          "decoder.copy=true"]),
}  # fmt: skip
each_kind = pytest.mark.parametrize("kind", SMALL)


def made(kind: str, smoothing: float = 0.0, words: Sequence[str] = ()) -> tuple[Transduce, Model]:
    """A task and a fresh model without dropout, in fp64."""
    preset, small = SMALL[kind]
    still = [f"{side}.dropout=0.0" for side in ("encoder", "decoder") if preset != "decoder" or side == "decoder"]
    c = config.resolve(preset, None, [*small, *still, *words, f"train.label_smoothing={smoothing}"])
    examples = [Example((source,), target, 1) for source, target in PAIRS]
    vocabulary = learn(examples, c, [False])
    sizes = vocabulary.source.size, vocabulary.target.size
    model = build(c, *sizes, seed=3, copies=vocabulary.copies()).double()
    return Transduce(c, vocabulary), model


def batch_of(task: Transduce, numbers: Sequence[int]) -> Batch:
    items = [task.encode(Example((PAIRS[i][0],), PAIRS[i][1], i), ".") for i in numbers]
    return task.batch(items, numbers, 0)


def everything(task: Transduce) -> Batch:
    return batch_of(task, range(len(PAIRS)))


# ── the loss ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_loss_is_the_cross_entropy_of_torch(smoothing: float, dtype: torch.dtype, same: Same) -> None:
    output = Output(11, 6).to(dtype)
    states_BTD = torch.randn(3, 5, 6, dtype=dtype)
    label_BT = torch.randint(1, 11, (3, 5))
    label_BT[0, 3:] = PAD
    label_BT[2, 1:] = PAD
    found = token_loss(output, states_BTD, label_BT, smoothing)
    real = label_BT.flatten() != PAD
    logits = output(states_BTD).flatten(0, 1)[real]
    mean = F.cross_entropy(logits, label_BT.flatten()[real], label_smoothing=smoothing)
    assert found.count == int(real.sum()) == 9
    same(found.total / found.count, mean)


def test_smoothing_pulls_towards_the_uniform_distribution() -> None:
    output = Output(11, 6).double()
    states_BTD = torch.randn(2, 4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    label_BT = torch.tensor([[7, 8, 9, PAD], [1, 2, PAD, PAD]])
    log_BTV = output(states_BTD).log_softmax(-1)
    real_BT = label_BT != PAD
    exact = -log_BTV.gather(-1, label_BT[..., None])[..., 0][real_BT].sum()
    uniform = -log_BTV.mean(-1)[real_BT].sum()
    torch.testing.assert_close(token_loss(output, states_BTD, label_BT, 0.3).total, 0.7 * exact + 0.3 * uniform)


def test_padding_counts_for_nothing() -> None:
    output = Output(11, 6)
    states_BTD = torch.randn(1, 3, 6, generator=torch.Generator().manual_seed(0))
    found = token_loss(output, states_BTD, torch.full((1, 3), PAD), 0.1)
    assert (float(found.total), found.count) == (0.0, 0)


def test_labels_are_smoothed_in_training_only() -> None:
    task, model = made("recurrent", smoothing=0.2)
    batch = everything(task)
    exact = token_loss(model.output, model(batch).states_BTD, batch.label_BT, 0.0).total
    smoothed = token_loss(model.output, model(batch).states_BTD, batch.label_BT, 0.2).total
    assert not torch.allclose(exact, smoothed)
    torch.testing.assert_close(task.loss(model.train(), batch, 1.0, 0).total, smoothed)
    torch.testing.assert_close(task.loss(model.eval(), batch, 1.0, 0).total, exact)


@pytest.mark.parametrize("kind", [kind for kind in SMALL if kind.endswith("copying")])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_of_what_is_copied_too_is_the_plain_one(kind: str, smoothing: float) -> None:
    """In few rows at a time as with all logits at once, with every gradient; unsmoothed, as `decode` tells it."""
    task, model = made(kind, smoothing)
    batch = everything(task)
    weights = list(model.parameters())
    found = task.loss(model.train(), batch, 1.0, 0)
    with plain():
        expected = task.loss(model.train(), batch, 1.0, 0)
    torch.testing.assert_close(found.total, expected.total)
    both = zip(*(torch.autograd.grad(each.total, weights) for each in (found, expected)), strict=True)
    for one, other in both:
        torch.testing.assert_close(one, other, rtol=0.0, atol=1e-10)
    if not smoothing:
        torch.testing.assert_close(found.total, told(model, batch))


@each_kind
def test_two_passes_that_are_to_agree(kind: str) -> None:
    """Without dropout both say the same, and the mean is that of one; with it, what is apart is added, as plainly."""
    task, model = made(kind, smoothing=0.1, words=["train.agreement=2.0"])
    alone, _ = made(kind, smoothing=0.1)
    batch = everything(task)
    one, two = alone.loss(model.train(), batch, 1.0, 0), task.loss(model.train(), batch, 1.0, 0)
    assert two.count == 2 * one.count
    torch.testing.assert_close(two.total, 2 * one.total)
    torch.testing.assert_close(task.loss(model.eval(), batch, 1.0, 0).total, alone.loss(model, batch, 1.0, 0).total)
    apart = [part for part in model.modules() if isinstance(part, Dropout)]
    for part in apart:
        part.share = 0.5
    twice = batch.twice()
    read = model.train()(twice)
    copied = model.copied(read.states_BTD, read.memory)
    quick, without = (token_loss(model.output, read.states_BTD, twice.label_BT, 0.1, copied=copied, agreement=share)
                      for share in (2.0, 0.0))  # fmt: skip
    with plain():
        slow = token_loss(model.output, read.states_BTD, twice.label_BT, 0.1, copied=copied, agreement=2.0)
    torch.testing.assert_close(quick.total, slow.total)
    assert quick.count == without.count
    assert float(quick.total.detach()) > float(without.total.detach())


def told(model: Model, batch: Batch) -> Tensor:
    """The negative log probability of all labels, as a search would be told it."""
    assert batch.target_BT is not None
    memory = model.encode(batch.source, batch.source_mask_BS)
    logits_BTV, _ = model.decode(batch.target_BT, memory, model.start(memory))
    log_BT = logits_BTV.log_softmax(-1).gather(-1, batch.label_BT[..., None])[..., 0]
    return -log_BT[batch.label_BT != PAD].sum()


@pytest.mark.parametrize("kind", [kind for kind in SMALL if kind.endswith("copying")])
def test_what_is_judged_is_what_a_search_is_told(kind: str) -> None:
    task, model = made(kind)
    items = [task.encode(Example((source,), target, 1), ".") for source, target in PAIRS]
    found = task.forced(model.eval(), items)
    assert found.total == pytest.approx(float(told(model, everything(task)).detach()), rel=1e-6)


# ── what is fed ──────────────────────────────────────────────────────────────────────────────────────────────────────


def one_by_one(model: Model, batch: Batch, true_BT: Tensor) -> Tensor:
    """States when each input is the true token or else the likeliest after the last state, written out."""
    assert batch.target_BT is not None
    memory = model.encode(batch.source, batch.source_mask_BS)
    state = model.start(memory)
    found: list[Tensor] = []
    for at in range(batch.target_BT.shape[1]):
        token_B = batch.target_BT[:, at]
        if at:
            token_B = torch.where(true_BT[:, at], token_B, model.logits(found[-1], memory)[:, 0].argmax(-1))
        states_BTD, state = model.states(token_B[:, None], memory, state)
        found.append(states_BTD)
    return torch.cat(found, 1)


@each_kind
def test_always_forced_is_teacher_forcing(kind: str) -> None:
    task, model = made(kind)
    batch = everything(task)
    assert batch.target_BT is not None
    forced_BTD = fed(model, batch, 1.0, 0).states_BTD
    assert torch.equal(forced_BTD, model(batch).states_BTD)
    stepped_BTD = one_by_one(model, batch, torch.ones_like(batch.target_BT, dtype=torch.bool))
    torch.testing.assert_close(forced_BTD, stepped_BTD, rtol=0.0, atol=1e-10)


@each_kind
def test_almost_always_forced_is_teacher_forcing_token_by_token(kind: str) -> None:
    """The other path of the code, with a share at which no draw of this seed leaves the true tokens."""
    task, model = made(kind)
    batch = everything(task)
    found_BTD = fed(model, batch, 1.0 - 1e-9, 0).states_BTD
    torch.testing.assert_close(found_BTD, model(batch).states_BTD, rtol=0.0, atol=1e-10)


@each_kind
def test_never_forced_is_free_running(kind: str) -> None:
    task, model = made(kind)
    batch = everything(task)
    assert batch.target_BT is not None
    nothing_BT = torch.zeros_like(batch.target_BT, dtype=torch.bool)
    found_BTD = fed(model, batch, 0.0, 0).states_BTD
    torch.testing.assert_close(found_BTD, one_by_one(model, batch, nothing_BT), rtol=0.0, atol=1e-10)
    assert not torch.allclose(found_BTD, model(batch).states_BTD)  # a fresh model does not write the target


@each_kind
def test_scheduled_sampling_is_pure_in_the_seed(kind: str) -> None:
    task, model = made(kind)
    batch = everything(task)
    first_BTD = fed(model, batch, 0.5, 1).states_BTD
    torch.rand(100)  # the global generator has no part in it
    assert torch.equal(first_BTD, fed(model, batch, 0.5, 1).states_BTD)
    others = [fed(model, batch, 0.5, seed).states_BTD for seed in range(2, 6)]
    assert not all(torch.allclose(first_BTD, other_BTD) for other_BTD in others)


@each_kind
@pytest.mark.parametrize("forcing", [1.0, 0.5, 0.0])
def test_gradients_reach_every_weight(kind: str, forcing: float) -> None:
    task, model = made(kind)
    loss = task.loss(model.train(), everything(task), forcing, 0)
    torch.autograd.backward(loss.total)
    without = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    # A key's bias moves all scores of a query alike, and softmax takes that away again: its gradient is rounding.
    assert [name for name in without if not name.endswith("key.bias")] == []
    assert all(weight.grad is None or bool(weight.grad.isfinite().all()) for weight in model.parameters())


# ── accumulation ─────────────────────────────────────────────────────────────────────────────────────────────────────


def gradients(task: Transduce, model: Model, batches: Sequence[Batch]) -> list[Tensor]:
    """Sums added up, divided once by the tokens of all batches: as the training loop does it."""
    model.zero_grad()
    count = 0
    for batch in batches:
        loss = task.loss(model.train(), batch, 1.0, 0)
        torch.autograd.backward(loss.total)
        count += loss.count
    return [cast(Tensor, weight.grad) / count for weight in model.parameters()]


@each_kind
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_small_batches_add_up_to_a_large_one(kind: str, dtype: torch.dtype) -> None:
    """Though their lengths differ, and with them the padding."""
    task, model = made(kind, smoothing=0.1)
    model.to(dtype)
    whole = gradients(task, model, [everything(task)])
    for parts in ([[0, 1], [2, 3], [4, 5]], [[5], [4], [3], [2], [1], [0]], [[0, 2, 4], [1, 3, 5]]):
        summed = gradients(task, model, [batch_of(task, numbers) for numbers in parts])
        for a, b in zip(whole, summed, strict=True):
            torch.testing.assert_close(a, b, rtol=0.0, atol=1e-6 if dtype == torch.float32 else 1e-12)
