"""Blocks and whole stacks, built from a config, against torch's Transformer layers with the same weights."""

from collections.abc import Callable
from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from regard import config
from regard.layers.attention import Attention, Sight
from regard.layers.block import Block
from regard.models.build import build, norm
from regard.models.memory import Memory
from regard.models.model import Model

Same = Callable[[Tensor, Tensor], None]
Activation = Literal["relu", "gelu"]

WIDTH, HEADS, INNER = 12, 3, 20

CASES = [("relu", True), ("relu", False), ("gelu", True), ("gelu", False)]
each_case = pytest.mark.parametrize(("activation", "norm_first"), CASES)


def model(activation: Activation, norm_first: bool, layers: int, dtype: torch.dtype) -> Model:
    """Encoder and decoder of blocks, every weight moved away from where it started (norms start at 1 and 0)."""
    encoder = config.AttentionEncoder(
        layers=layers, width=WIDTH, heads=HEADS, feedforward=INNER, activation=activation, norm_first=norm_first,
        position="none", dropout=0.0,
    )  # fmt: skip
    decoder = config.AttentionDecoder(**encoder.model_dump())
    made = build(config.Config(encoder=encoder, decoder=decoder), 7, 7, seed=1).to(dtype).eval()
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.1)
    return made


def layers_of(side: nn.Module | None) -> list[Block]:
    assert side is not None
    stack = side.get_submodule("layers")
    return [layer for layer in stack.children() if isinstance(layer, Block)]


def copy(other: nn.Module, own: nn.Module) -> None:
    """Weights and biases of a linear layer or a norm."""
    for name in ("weight", "bias"):
        other.get_parameter(name).data.copy_(own.get_parameter(name).data)


def copy_attention(other: nn.MultiheadAttention, own: Attention | None) -> None:
    assert own is not None
    inputs = [own.query, own.key, own.value]
    other.in_proj_weight.data.copy_(torch.cat([layer.get_parameter("weight") for layer in inputs]))
    other.in_proj_bias.data.copy_(torch.cat([layer.get_parameter("bias") for layer in inputs]))
    copy(other.out_proj, own.output)


def copy_block(other: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer, own: Block) -> None:
    copy_attention(other.self_attn, own.self_attention)
    copy(other.norm1, own.self_norm)
    copy(other.linear1, own.feedforward.get_submodule("inner"))
    copy(other.linear2, own.feedforward.get_submodule("outer"))
    if isinstance(other, nn.TransformerDecoderLayer):
        copy_attention(other.multihead_attn, own.cross_attention)
        assert own.cross_norm is not None
        copy(other.norm2, own.cross_norm)
        copy(other.norm3, own.feedforward_norm)
    else:
        copy(other.norm2, own.feedforward_norm)


def torch_encoder(own: Model, activation: Activation, norm_first: bool, dtype: torch.dtype) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, INNER, 0.0, activation, batch_first=True, norm_first=norm_first, dtype=dtype
    )
    blocks = layers_of(own.encoder)
    last = nn.LayerNorm(WIDTH, dtype=dtype) if norm_first else None
    stack = nn.TransformerEncoder(layer, len(blocks), last, enable_nested_tensor=False).eval()
    for other, block in zip(stack.layers, blocks, strict=True):
        assert isinstance(other, nn.TransformerEncoderLayer)
        copy_block(other, block)
    if last is not None:
        copy(last, own.encoder.get_submodule("norm"))
    return stack


def torch_decoder(own: Model, activation: Activation, norm_first: bool, dtype: torch.dtype) -> nn.TransformerDecoder:
    layer = nn.TransformerDecoderLayer(
        WIDTH, HEADS, INNER, 0.0, activation, batch_first=True, norm_first=norm_first, dtype=dtype
    )
    blocks = layers_of(own.decoder)
    last = nn.LayerNorm(WIDTH, dtype=dtype) if norm_first else None
    stack = nn.TransformerDecoder(layer, len(blocks), last).eval()
    for other, block in zip(stack.layers, blocks, strict=True):
        assert isinstance(other, nn.TransformerDecoderLayer)
        copy_block(other, block)
    if last is not None:
        assert own.decoder is not None
        copy(last, own.decoder.get_submodule("norm"))
    return stack


def drawn(length: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(3, length, WIDTH, dtype=dtype, requires_grad=True)


def real(length: int) -> Tensor:
    return torch.arange(length) < torch.tensor([length, length - 2, 1])[:, None]


def same_gradients(same: Same, found: Tensor, expected: Tensor, leaves: tuple[Tensor, ...]) -> None:
    up = torch.randn_like(found)
    own, other = torch.autograd.grad(found, leaves, up), torch.autograd.grad(expected, leaves, up)
    for own_gradient, other_gradient in zip(own, other, strict=True):
        same(own_gradient, other_gradient)


@each_case
def test_one_block_of_an_encoder(activation: Activation, norm_first: bool, dtype: torch.dtype, same: Same) -> None:
    own = model(activation, norm_first, 1, dtype)
    other = torch_encoder(own, activation, norm_first, dtype).layers[0]
    x, mask = drawn(6, dtype), real(6)
    sight = Sight(mask[:, None, None, :])
    found, held = layers_of(own.encoder)[0](x, sight, None, None, sight)
    expected = other(x, src_key_padding_mask=~mask)
    same(found, expected)
    same_gradients(same, found, expected, (x,))
    assert held.key_BHSK.shape == held.value_BHSK.shape == (3, HEADS, 6, WIDTH // HEADS)


@each_case
def test_one_block_of_a_decoder(activation: Activation, norm_first: bool, dtype: torch.dtype, same: Same) -> None:
    own = model(activation, norm_first, 1, dtype)
    other, block = torch_decoder(own, activation, norm_first, dtype).layers[0], layers_of(own.decoder)[0]
    x, memory, mask = drawn(4, dtype), drawn(6, dtype), real(6)
    future = torch.ones(4, 4, dtype=torch.bool).triu(1)
    assert block.cross_attention is not None
    held = block.cross_attention.hold(memory)
    found, _ = block(x, Sight(~future), None, held, Sight(mask[:, None, None, :]))
    expected = other(x, memory, tgt_mask=future, memory_key_padding_mask=~mask)
    same(found, expected)
    same_gradients(same, found, expected, (x, memory))


@each_case
def test_a_stack_of_encoder_blocks(activation: Activation, norm_first: bool, dtype: torch.dtype, same: Same) -> None:
    own = model(activation, norm_first, 3, dtype)
    other = torch_encoder(own, activation, norm_first, dtype)
    x, mask = drawn(6, dtype), real(6)
    memory = own.encoder(x, mask)
    expected = other(x, src_key_padding_mask=~mask)
    same(memory.states_BSM, expected)
    same(memory.last_BM, torch.stack([expected[0, 5], expected[1, 3], expected[2, 0]]))
    same_gradients(same, memory.states_BSM, expected, (x,))


@each_case
def test_a_stack_of_decoder_blocks(activation: Activation, norm_first: bool, dtype: torch.dtype, same: Same) -> None:
    own = model(activation, norm_first, 2, dtype)
    assert own.decoder is not None
    other = torch_decoder(own, activation, norm_first, dtype)
    x, states, mask = drawn(5, dtype), drawn(6, dtype), real(6)
    memory = own.decoder.read(Memory(states, mask, states[:, -1]))
    found, state = own.decoder(x, memory, own.decoder.start(memory))
    future = torch.ones(5, 5, dtype=torch.bool).triu(1)
    expected = other(x, states, tgt_mask=future, memory_key_padding_mask=~mask)
    same(found, expected)
    same_gradients(same, found, expected, (x, states))
    assert state.length == 5


def test_the_norm_by_root_mean_square(dtype: torch.dtype, same: Same) -> None:
    part = norm(config.AttentionEncoder(width=WIDTH, heads=HEADS, norm="rms"))().to(dtype)
    weight = part.get_parameter("weight")
    weight.data.normal_()
    x = torch.randn(2, 3, WIDTH, dtype=dtype) * 3 + 1
    same(part(x), x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight)
    assert [name for name, _ in part.named_parameters()] == ["weight"]
