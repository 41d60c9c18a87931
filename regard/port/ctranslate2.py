"""A trained Transformer in, a folder that CTranslate2 loads out, written through that library's own converter."""

from pathlib import Path
from typing import Any

from torch import Tensor, nn

from regard.config import AttentionBlocks
from regard.data.tokens import END, SPECIALS, START, SYMBOLS, UNKNOWN, Tokenizer
from regard.errors import UsageError
from regard.layers.block import Block
from regard.port.fit import Engine, bias_of, longest, positions, stacks, weight_of
from regard.trained import Trained

CTRANSLATE2 = Engine(
    "CTranslate2",
    {
        "score": ("scaled",),
        "projections": (True,),
        "position": ("sinusoidal", "learned", "rotary", "none"),
    },
)
EPSILON = 1e-5  # of every norm
BENDS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH"}


def write(trained: Trained, folder: Path) -> None:
    """model.bin, config.json and the vocabularies."""
    halves = stacks(trained.config, CTRANSLATE2)
    library = specs()
    encoder = library.TransformerEncoderSpec(*shape(halves.encoder), **options(halves.encoder))
    decoder = library.TransformerDecoderSpec(*shape(halves.decoder), **options(halves.decoder))
    spec = library.TransformerSpec(encoder, decoder)
    fill(spec, trained)
    spec.config.layer_norm_epsilon = EPSILON
    spec.config.add_source_eos = True
    spec.config.unk_token, spec.config.bos_token = SPECIALS[UNKNOWN], SPECIALS[START]
    spec.config.eos_token, spec.config.decoder_start_token = SPECIALS[END], SPECIALS[START]
    spec.register_source_vocabulary(names(trained.vocabulary.source))
    spec.register_target_vocabulary(names(trained.vocabulary.target))
    spec.validate()
    spec.optimize(quantization=None)
    spec.save(str(folder))


def specs() -> Any:
    """The library's own description of models; it is not among what regard always needs."""
    try:
        from ctranslate2.specs import transformer_spec
    except ImportError:
        raise UsageError("CTranslate2 is not installed; pip install 'regard[port]' brings it") from None
    return transformer_spec


def shape(side: AttentionBlocks) -> tuple[int, int]:
    return side.layers, side.heads


def options(side: AttentionBlocks) -> dict[str, Any]:
    """The settings of one stack in the library's words."""
    from ctranslate2.specs import common_spec

    return {
        "pre_norm": side.norm_first,
        "activation": common_spec.Activation[BENDS[side.activation]],
        "ffn_glu": side.gated,
        "rms_norm": side.norm == "rms",
        "rotary_dim": 0 if side.position == "rotary" else None,
        "rotary_interleave": False,
    }


# ── weights ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def fill(spec: Any, trained: Trained) -> None:
    """Every weight of the model into its place."""
    model = trained.model
    assert model.decoder is not None
    assert model.target_embedding is not None
    spec.encoder.embeddings[0].weight = array(model.source_embedding.table.weight)  # type: ignore[union-attr, arg-type]
    spec.decoder.embeddings.weight = array(model.target_embedding.table.weight)
    spec.decoder.projection.weight = array(model.output.weight)
    spec.decoder.projection.bias = array(model.output.bias)
    for side, stack in ((spec.encoder, model.encoder), (spec.decoder, model.decoder)):
        side.scale_embeddings = trained.config.embedding.scale
        fill_stack(side, stack, longest(trained.config), trained)


def fill_stack(side: Any, stack: Any, reach: int, trained: Trained) -> None:
    if hasattr(side, "position_encodings"):
        width = stack.layers[0].self_attention.output.out_features
        side.position_encodings.encodings = array(positions(stack.position, reach, width))
    for layer, block in zip(side.layer, stack.layers, strict=True):
        fill_block(layer, block)
    if not isinstance(stack.norm, nn.Identity):
        fill_norm(side.layer_norm, stack.norm)


def fill_block(layer: Any, block: Block) -> None:
    fill_linear(layer.self_attention.linear[0], block.self_attention, "query", "key", "value")
    fill_linear(layer.self_attention.linear[1], block.self_attention, "output")
    fill_norm(layer.self_attention.layer_norm, block.self_norm)
    if block.cross_attention is not None:
        fill_linear(layer.attention.linear[0], block.cross_attention, "query")
        fill_linear(layer.attention.linear[1], block.cross_attention, "key", "value")
        fill_linear(layer.attention.linear[2], block.cross_attention, "output")
        fill_norm(layer.attention.layer_norm, block.cross_norm)
    fill_linear(layer.ffn.linear_0, block.feedforward, "inner")
    fill_linear(layer.ffn.linear_1, block.feedforward, "outer")
    if hasattr(layer.ffn, "linear_0_noact"):
        fill_linear(layer.ffn.linear_0_noact, block.feedforward, "gate")
    fill_norm(layer.ffn.layer_norm, block.feedforward_norm)


def fill_linear(place: Any, module: nn.Module, *parts: str) -> None:
    place.weight = array(weight_of(module, parts))
    place.bias = array(bias_of(module, parts))


def fill_norm(place: Any, norm: Any) -> None:
    place.gamma = array(norm.weight)
    if getattr(norm, "bias", None) is not None:
        place.beta = array(norm.bias)


def array(tensor: Tensor) -> Any:
    return tensor.detach().float().contiguous().numpy()


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def names(tokenizer: Tokenizer) -> list[str]:
    """A name for each token, no two alike: of a piece its bytes, written as printable characters."""
    found = dict.fromkeys([*SPECIALS, *(f"<tag:{tag}>" for tag in tokenizer.tags)])
    for id, spelling in enumerate(tokenizer.pieces.spellings, tokenizer.pieces.first):
        name = "".join(SYMBOLS[byte] for byte in spelling)
        while name in found:  # an ASCII character and its byte are two tokens
            name += f"<{id}>"
        found[name] = None
    return list(found)
