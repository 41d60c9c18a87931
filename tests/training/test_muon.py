"""Steps that are as long in every direction: as torch's own takes them, for matrices alone, and kept like AdamW's."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from regard import config
from regard.config import Train
from regard.errors import ConfigError
from regard.trained import Trained
from regard.training.checkpoint import moments, put_moments
from regard.training.muon import FASTER, Muon, alike, straight
from regard.training.rates import optimizer_of
from regard.training.run import resume


@pytest.mark.parametrize("shape", [(24, 24), (8, 40), (40, 8)])
def test_what_is_straight_has_no_direction_that_is_longer(shape: tuple[int, int]) -> None:
    drawn = torch.randn(3, *shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = straight(drawn)
    assert found.shape == drawn.shape
    assert ((torch.linalg.svdvals(found) > 0.6) & (torch.linalg.svdvals(found) < 1.3)).all()
    u, _, v = torch.linalg.svd(drawn, full_matrices=False)
    assert (found * (u @ v)).sum() / (found.norm() * (u @ v).norm()) > 0.98


def test_each_matrix_is_turned_by_itself() -> None:
    drawn = torch.randn(4, 6, 10, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert torch.allclose(straight(drawn), torch.cat([straight(each[None]) for each in drawn]), atol=1e-6)
    assert straight(torch.zeros(1, 3, 5)).eq(0).all()


def test_matrices_step_as_torch_steps_them() -> None:
    generator = torch.Generator().manual_seed(2)
    own, theirs = ([nn.Parameter(weight.clone()) for weight in made] for made in [
        [torch.randn(shape, generator=torch.Generator().manual_seed(3)) for shape in ((16, 16), (16, 48), (16, 16))]
    ] * 2)  # fmt: skip
    group = {"params": own, "turned": True}
    first = Muon([group], numbers=torch.bfloat16, lr=0.01, weight_decay=0.1)
    second = torch.optim.Muon(theirs, lr=0.01 * FASTER, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    for _ in range(3):
        for mine, other in zip(own, theirs, strict=True):
            mine.grad = torch.randn(mine.shape, generator=generator)
            other.grad = mine.grad.clone()
        first.step()
        second.step()
    for mine, other in zip(own, theirs, strict=True):
        assert torch.allclose(mine, other, atol=0.01)  # bf16, and products in another order


def test_what_is_no_matrix_of_a_side_is_for_adamw(small_model: Callable[..., Trained]) -> None:
    model = small_model("transformer", "encoder.position=learned").model
    names = {id(weight): name for name, weight in model.named_parameters()}
    turned = {names[id(weight)] for group in optimizer_of(model, Train(optimizer="muon")).param_groups
              if group["turned"] for weight in group["params"]}  # fmt: skip
    assert "decoder.layers.0.cross_attention.query.weight" in turned
    assert all(name.startswith(("encoder.layers", "decoder.layers")) and name.endswith(".weight") for name in turned)
    assert not any("norm" in name for name in turned)
    plain = optimizer_of(model, Train()).param_groups
    assert [group["turned"] for group in plain] == [False]


def test_the_others_step_as_adamw_steps_them(small_model: Callable[..., Trained]) -> None:
    made = [small_model("transformer").model for _ in range(2)]
    made[1].load_state_dict(made[0].state_dict())
    for model, name in zip(made, ("adamw", "muon"), strict=True):
        optimizer = optimizer_of(model, Train(optimizer=name))
        for weight in model.parameters():
            weight.grad = torch.ones_like(weight)
        optimizer.step()
    first, second = (dict(model.named_parameters()) for model in made)
    for name in ("output.bias", "source_embedding.table.weight", "encoder.layers.0.self_norm.weight"):
        assert torch.equal(first[name], second[name])
    assert not torch.equal(first["encoder.layers.0.feedforward.inner.weight"],
                           second["encoder.layers.0.feedforward.inner.weight"])  # fmt: skip


def test_what_it_remembers_is_kept_by_name(small_model: Callable[..., Trained]) -> None:
    model = small_model("transformer").model
    first = optimizer_of(model, Train(optimizer="muon"))
    for number, weight in enumerate(model.parameters()):
        weight.grad = torch.full_like(weight, float(number))
    first.step()
    again = optimizer_of(model, Train(optimizer="muon"))
    put_moments(model, again, moments(model, first))
    for weight in model.parameters():
        assert torch.equal(first.state[weight]["exp_avg"], again.state[weight]["exp_avg"])


def test_weights_without_a_gradient_stay() -> None:
    weights = [nn.Parameter(torch.ones(3, 3)), nn.Parameter(torch.ones(3, 3))]
    weights[0].grad = torch.eye(3)
    assert [len(each) for each in alike(weights)] == [1]
    Muon([{"params": weights, "turned": True}], numbers=torch.float32, lr=0.1).step()
    assert not weights[0].eq(1).all()
    assert weights[1].eq(1).all()


@pytest.mark.parametrize("preset", ["transformer", "rnn-attention"])
def test_resumed_is_as_never_stopped(
    runs: Any, same_result: Callable[[Path, Path], None], tmp_path: Path, preset: str
) -> None:
    own = replace(runs, preset=preset)
    own.train(tmp_path / "whole", "train.optimizer=muon")
    own.train_until(tmp_path / "m", "after rename", 2, "train.optimizer=muon")
    resume(tmp_path / "m", quiet=True)
    same_result(tmp_path / "m", tmp_path / "whole")


def test_an_optimizer_that_is_none() -> None:
    with pytest.raises(ConfigError, match=r"train\.optimizer"):
        config.resolve("rnn", None, ["train.optimizer=sgd"])
