"""Embeddings, their scale, and the output layer that shares their table."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard import config
from regard.layers.embedding import Embedding, Output
from regard.models.build import build

Same = Callable[[Tensor, Tensor], None]

IDS = torch.tensor([[1, 2, 2], [4, 0, 1]])


@pytest.mark.parametrize("scale", [False, True])
def test_vectors_are_scaled_by_the_root_of_their_width(scale: bool, dtype: torch.dtype, same: Same) -> None:
    own = Embedding(5, 9, scale, nn.Identity()).to(dtype)
    same(own(IDS), own.table.weight[IDS] * (3.0 if scale else 1.0))


@pytest.mark.parametrize("scale", [False, True])
def test_the_table_starts_so_that_scaled_vectors_have_a_variance_of_one(scale: bool) -> None:
    torch.manual_seed(0)
    own = Embedding(1000, 64, scale, nn.Identity())
    assert own(torch.arange(1000)[None]).std().item() == pytest.approx(1.0 if scale else 1 / 8, rel=0.02)


def test_logits_are_products_with_the_table(dtype: torch.dtype, same: Same) -> None:
    embedding = Embedding(5, 4, True, nn.Identity()).to(dtype)
    states = torch.randn(2, 3, 4, dtype=dtype)
    same(Output(5, 4, embedding).to(dtype)(states), states @ embedding.table.weight.T)
    own = Output(5, 4).to(dtype)
    own.bias.data.normal_()
    same(own(states), states @ own.weight.T + own.bias)


def test_a_tied_table_gets_the_gradients_of_both_uses(dtype: torch.dtype, same: Same) -> None:
    embedding = Embedding(5, 4, True, nn.Identity()).to(dtype)
    output = Output(5, 4, embedding).to(dtype)
    assert output.weight is embedding.table.weight
    assert sum(name.endswith("weight") for name, _ in nn.ModuleList([embedding, output]).named_parameters()) == 1
    first, second = (embedding.table.weight.detach().clone().requires_grad_() for _ in range(2))
    up = torch.randn(2, 3, 5, dtype=dtype)
    torch.autograd.backward(output(torch.tanh(embedding(IDS))), up)
    torch.autograd.backward(F.linear(torch.tanh(F.embedding(IDS, first) * 2.0), second), up)
    assert embedding.table.weight.grad is not None
    assert first.grad is not None
    assert second.grad is not None
    assert first.grad.abs().sum() > 0
    same(embedding.table.weight.grad, first.grad + second.grad)


@pytest.mark.parametrize(("tie_source", "tie_output"), [(False, False), (True, False), (False, True), (True, True)])
def test_models_share_what_the_config_ties(tie_source: bool, tie_output: bool) -> None:
    c = config.Config(
        tokens=config.Tokens(shared=True), embedding=config.Embedding(tie_source=tie_source, tie_output=tie_output)
    )
    model = build(c, 7, 7)
    assert isinstance(model.source_embedding, Embedding)
    assert model.target_embedding is not None
    target = model.target_embedding.table.weight
    assert (model.source_embedding.table.weight is target) == tie_source
    assert (model.output.weight is target) == tie_output
    assert (model.output.weight.data_ptr() == target.data_ptr()) == tie_output


def test_a_tied_model_is_still_tied_in_another_precision() -> None:
    c = config.Config(embedding=config.Embedding(tie_output=True))
    model = build(c, 7, 7).double()
    assert model.target_embedding is not None
    assert model.output.weight is model.target_embedding.table.weight


def test_unseen_tokens_have_no_vector_in_training_and_the_others_their_own() -> None:
    torch.manual_seed(0)
    own = Embedding(5, 4, True, nn.Identity(), unseen=0.3)
    ids = torch.randint(5, (40, 50))
    whole, found = own.eval()(ids), own.train()(ids)
    seen = (found != 0).any(-1)
    assert 0.25 < 1 - seen.float().mean().item() < 0.35
    assert torch.equal(found, whole * seen[..., None])


@pytest.mark.parametrize("kind", ["words", "spelled"])
def test_the_share_of_unseen_tokens_is_a_setting(kind: str) -> None:
    c = config.resolve(None, None, [f"tokens.source={kind}", "embedding.token_dropout=0.3"])
    model = build(c, 600, 7).train()
    torch.manual_seed(0)
    assert model.target_embedding is not None
    for embedding in (model.source_embedding, model.target_embedding):
        found = embedding(torch.randint(4, 7, (40, 50)))
        assert 0.25 < (found == 0).all(-1).float().mean().item() < 0.35
