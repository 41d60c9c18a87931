"""Which weights learn together, and how fast, layer by layer."""

from collections.abc import Callable

import pytest
import torch

from regard import config
from regard.config import Train
from regard.errors import ConfigError
from regard.trained import Trained
from regard.training.checkpoint import moments, put_moments
from regard.training.rates import distances, learning, optimizer_of

pytestmark = pytest.mark.no_shapes


def away(model: Trained) -> dict[str, int]:
    return distances([name for name, _ in model.model.named_parameters()])


def test_output_first_then_layer_by_layer_embeddings_last(small_model: Callable[..., Trained]) -> None:
    found = away(small_model("encoder", "encoder.layers=2"))
    assert found["output.weight"] == found["output.bias"] == 0
    assert found["encoder.norm.weight"] == found["encoder.layers.1.self_norm.weight"] == 1
    assert found["encoder.layers.0.self_norm.weight"] == 2
    assert found["source_embedding.table.weight"] == 3


def test_what_is_in_no_side_is_at_the_top() -> None:
    assert distances(["chain.first", "encoder.layers.0.weight"]) == {"chain.first": 0, "encoder.layers.0.weight": 1}


def test_a_decoder_stands_on_its_encoder(small_model: Callable[..., Trained]) -> None:
    found = away(small_model("transformer", "encoder.layers=2", "decoder.layers=2"))
    order = [f"{side}.layers.{layer}.self_norm.weight" for side in ("decoder", "encoder") for layer in (1, 0)]
    assert [found[name] for name in order] == [1, 2, 3, 4]
    assert (found["decoder.norm.weight"], found["encoder.norm.weight"]) == (1, 3)
    assert {found[name] for name in found if "embedding" in name} == {5}


@pytest.mark.parametrize("preset", ["rnn-attention", "conv", "decoder", "caption", "rnn-single"])
def test_every_weight_has_its_place(small_model: Callable[..., Trained], preset: str) -> None:
    found = away(small_model(preset))
    assert min(found.values()) == 0
    assert all(distance > 0 for name, distance in found.items() if not name.startswith("output."))
    assert sorted(set(found.values())) == list(range(max(found.values()) + 1))


def test_groups_share_the_rate_by_their_distance(small_model: Callable[..., Trained]) -> None:
    model = small_model("encoder", "encoder.layers=2").model
    groups = optimizer_of(model, Train(layer_decay=0.5)).param_groups
    assert [group["share"] for group in groups] == [1.0, 0.5, 0.25, 0.125]
    assert sum(len(group["params"]) for group in groups) == len(list(model.parameters()))


def test_without_decay_all_is_one_group_in_order(small_model: Callable[..., Trained]) -> None:
    model = small_model("encoder").model
    ((kind, weights),) = learning(model, Train())
    assert kind == (0, False)
    assert all(a is b for a, b in zip(weights, model.parameters(), strict=True))


def test_what_is_frozen_is_in_no_group(small_model: Callable[..., Trained]) -> None:
    model = small_model("encoder").model
    model.encoder.requires_grad_(False)
    names = {id(weight): name for name, weight in model.named_parameters()}
    found = {names[id(weight)] for _, weights in learning(model, Train()) for weight in weights}
    assert found == {name for name in names.values() if not name.startswith("encoder.")}


def test_a_lower_layer_moves_less(small_model: Callable[..., Trained]) -> None:
    """The first step of AdamW is as long as the rate, whatever the gradient."""
    model = small_model("encoder", "encoder.layers=2").model
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    optimizer = optimizer_of(model, Train(layer_decay=0.5, weight_decay=0.0))
    for group in optimizer.param_groups:
        group["lr"] = 0.01 * group["share"]
    for weight in model.parameters():
        weight.grad = torch.ones_like(weight)
    optimizer.step()
    moved = {name: float((weight.detach() - before[name]).abs().max()) for name, weight in model.named_parameters()}
    expected = {"output.bias": 0.01, "encoder.layers.1.self_norm.weight": 0.005,
                "encoder.layers.0.self_norm.weight": 0.0025, "source_embedding.table.weight": 0.00125}  # fmt: skip
    assert {name: moved[name] for name in expected} == pytest.approx(expected, rel=1e-3)


def test_moments_go_by_name_whatever_the_groups(small_model: Callable[..., Trained]) -> None:
    model = small_model("encoder", "encoder.layers=2").model
    first = optimizer_of(model, Train(layer_decay=0.5))
    for number, weight in enumerate(model.parameters()):
        weight.grad = torch.full_like(weight, float(number))
    first.step()
    kept = moments(model, first)
    again = optimizer_of(model, Train(layer_decay=0.5))
    put_moments(model, again, kept)
    for weight in model.parameters():
        for moment in ("exp_avg", "exp_avg_sq", "step"):
            assert torch.equal(first.state[weight][moment], again.state[weight][moment])
    assert [group["share"] for group in again.param_groups] == [group["share"] for group in first.param_groups]


@pytest.mark.parametrize("value", ["0", "1.5", "-0.1", "nan"])
def test_a_decay_is_a_share(value: str) -> None:
    with pytest.raises(ConfigError, match=r"train.layer_decay: found"):
        config.resolve("encoder", None, [f"train.layer_decay={value}"])
