"""A trained Transformer in, a folder that Hugging Face transformers loads out; only JSON and safetensors are written.

Norms after each part are those of its `MarianMTModel`, norms before each part those of its
`PegasusForConditionalGeneration`; both read any table of positions. The class is named in config.json.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from regard.data.tokens import END, PAD, SPECIALS, START, UNKNOWN, BytePairs, Subwords, Unigram, assemble
from regard.folder import write_file
from regard.layers.block import Block
from regard.models.model import Model
from regard.port.fit import Engine, Stacks, longest, never, positions, stacks
from regard.trained import Trained

HF = Engine(
    "Hugging Face transformers",
    {
        "score": ("scaled",),
        "projections": (True,),
        "gated": (False,),
        "norm": ("layer",),
        "position": ("sinusoidal", "learned", "none"),
    },
    ("width", "activation", "norm_first"),
)
LOWEST_SCORE = -1e9  # of a piece that no text is ever cut into
IMPOSSIBLE = torch.finfo(torch.float32).min  # the bias of a token that is not there

ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
FEEDFORWARD = {"inner": "fc1", "outer": "fc2"}


def write(trained: Trained, folder: Path) -> None:
    """All files of the folder; README.md tells how they are used."""
    halves = stacks(trained.config, HF)
    files = {
        "config.json": as_json(settings(trained, halves)),
        "generation_config.json": as_json(generation(trained)),
        "model.safetensors": save(weights(trained, halves), metadata={"format": "pt"}),
        **tokenizer_files(trained),
    }
    for name, content in files.items():
        write_file(folder / name, content)


def as_json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def one_table(trained: Trained) -> bool:
    """One table for source, target and output; if any of the three differs, each is written by itself."""
    return trained.config.embedding.tie_source and trained.config.embedding.tie_output


# ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def settings(trained: Trained, halves: Stacks) -> dict[str, Any]:
    """config.json: the same model in their words."""
    encoder, decoder = halves.encoder, halves.decoder
    source, target = sizes(trained, encoder.norm_first)
    pegasus: dict[str, Any] = {"model_type": "pegasus", "architectures": ["PegasusForConditionalGeneration"]}
    marian: dict[str, Any] = {"model_type": "marian", "architectures": ["MarianMTModel"], "decoder_vocab_size": target,
                              "share_encoder_decoder_embeddings": one_table(trained)}  # fmt: skip
    return {
        **(pegasus if encoder.norm_first else marian),
        "vocab_size": source,
        "tie_word_embeddings": one_table(trained),
        "d_model": encoder.width,
        "encoder_layers": encoder.layers,
        "decoder_layers": decoder.layers,
        "encoder_attention_heads": encoder.heads,
        "decoder_attention_heads": decoder.heads,
        "encoder_ffn_dim": encoder.feedforward or 4 * encoder.width,
        "decoder_ffn_dim": decoder.feedforward or 4 * decoder.width,
        "activation_function": encoder.activation,
        "scale_embedding": trained.config.embedding.scale,
        "max_position_embeddings": longest(trained.config),
        "dropout": decoder.dropout,
        "attention_dropout": 0.0,
        "activation_dropout": decoder.dropout,
        "is_encoder_decoder": True,
        **special_ids(),
        "torch_dtype": "float32",
    }


def special_ids() -> dict[str, int]:
    return {
        "pad_token_id": PAD,
        "bos_token_id": START,
        "eos_token_id": END,
        "decoder_start_token_id": START,
        "forced_eos_token_id": END,
    }


def generation(trained: Trained) -> dict[str, Any]:
    """generation_config.json: what regard itself does unless told otherwise."""
    c = trained.config
    return {
        **special_ids(),
        "suppress_tokens": never(trained),
        "num_beams": c.search.beam,
        "length_penalty": c.search.length_penalty,
        "max_length": c.data.max_target + 2,  # the start and the end are counted there
        "do_sample": False,
    }


# ── weights ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def sizes(trained: Trained, joint: bool) -> tuple[int, int]:
    """Rows of the two tables; where they must be of one size (Pegasus) the smaller is filled up."""
    source, target = trained.vocabulary.source.size, trained.vocabulary.target.size
    return (max(source, target), max(source, target)) if joint else (source, target)


def weights(trained: Trained, halves: Stacks) -> dict[str, Tensor]:
    """All tensors under their names."""
    model, reach = trained.model, longest(trained.config)
    found = dict(tables(trained, halves))
    for side, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        assert isinstance(stack, nn.Module)
        table = positions(getattr(stack, "position"), reach, halves.encoder.width)  # noqa: B009
        found[f"model.{side}.embed_positions.weight"] = filled(table, reach)
        for number, block in enumerate(getattr(stack, "layers")):  # noqa: B009
            found |= {f"model.{side}.layers.{number}.{name}": tensor for name, tensor in block_weights(block)}
        if halves.encoder.norm_first:
            found |= dict(named(getattr(stack, "norm"), f"model.{side}.layer_norm"))  # noqa: B009
    return {name: tensor.detach().float().contiguous() for name, tensor in found.items()}


def tables(trained: Trained, halves: Stacks) -> Iterator[tuple[str, Tensor]]:
    """Embeddings and the output layer, whose bias is theirs too."""
    model: Model = trained.model
    source, target = sizes(trained, halves.encoder.norm_first)
    yield "final_logits_bias", filled(model.output.bias, target, IMPOSSIBLE)[None]
    if one_table(trained):
        yield "model.shared.weight", model.output.weight
        return
    assert model.target_embedding is not None
    own = filled(getattr(model.source_embedding, "table").weight, source)  # noqa: B009
    if halves.encoder.norm_first:
        yield "model.shared.weight", own.clone()  # which Pegasus has even where nothing is shared
    yield "model.encoder.embed_tokens.weight", own.clone()
    yield "model.decoder.embed_tokens.weight", filled(model.target_embedding.table.weight, target).clone()
    yield "lm_head.weight", filled(model.output.weight, target).clone()  # safetensors takes no tensor twice


def filled(tensor: Tensor, count: int, value: float = 0.0) -> Tensor:
    """The tensor with further rows, up to `count`."""
    more = tensor.new_full((max(0, count - len(tensor)), *tensor.shape[1:]), value)
    return torch.cat([tensor, more])


def block_weights(block: Block) -> Iterator[tuple[str, Tensor]]:
    """One block, its parts in the order in which they are passed."""
    yield from renamed(block.self_attention, "self_attn", ATTENTION)
    yield from named(block.self_norm, "self_attn_layer_norm")
    if block.cross_attention is not None and block.cross_norm is not None:
        yield from renamed(block.cross_attention, "encoder_attn", ATTENTION)
        yield from named(block.cross_norm, "encoder_attn_layer_norm")
    yield from ((f"{FEEDFORWARD[name.split('.')[0]]}.{name.split('.')[1]}", tensor)
                for name, tensor in block.feedforward.named_parameters())  # fmt: skip
    yield from named(block.feedforward_norm, "final_layer_norm")


def renamed(module: nn.Module, name: str, names: dict[str, str]) -> Iterator[tuple[str, Tensor]]:
    for ours, its in names.items():
        yield from named(module.get_submodule(ours), f"{name}.{its}")


def named(module: nn.Module, name: str) -> Iterator[tuple[str, Tensor]]:
    return ((f"{name}.{part}", tensor) for part, tensor in module.named_parameters())


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def has_tokenizer(trained: Trained) -> bool:
    """Whether its tokens can be said in their words: one vocabulary of subwords, one column, no tags."""
    vocabulary = trained.vocabulary
    pieces, plain = vocabulary.source.pieces, not vocabulary.source.tags
    return vocabulary.shared and plain and isinstance(pieces, Subwords) and vocabulary.is_tags == (False,)


def tokenizer_files(trained: Trained) -> dict[str, bytes]:
    """tokenizer.json and what belongs to it, where that is possible."""
    if not has_tokenizer(trained):
        return {}
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": SPECIALS[PAD],
        "bos_token": SPECIALS[START],
        "eos_token": SPECIALS[END],
        "unk_token": SPECIALS[UNKNOWN],
        "split_special_tokens": True,  # text that looks like a special token is text
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],
        "model_max_length": trained.config.data.max_source + 1,
    }
    pieces = trained.vocabulary.source.pieces
    return {"tokenizer.json": tokenizer(pieces).encode(), "tokenizer_config.json": as_json(about)}


def tokenizer(pieces: Any) -> str:
    """Their form of our subwords: a space before the text, the pieces, the end."""
    from tokenizers import decoders, normalizers, processors

    whole = assemble(tokenizer_model(pieces))
    whole.normalizer = normalizers.Prepend(" ")
    whole.post_processor = processors.TemplateProcessing(f"$A {SPECIALS[END]}", None, [(SPECIALS[END], END)])
    whole.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    return str(whole.to_str())


def tokenizer_model(pieces: Any) -> Any:
    """The same pieces at the same ids, the special tokens before them."""
    from tokenizers import models

    match pieces:
        case BytePairs():
            vocabulary = {piece: id for id, piece in enumerate([*SPECIALS, *pieces.symbols])}
            return models.BPE(vocab=vocabulary, merges=pieces.merges)
        case Unigram():
            scores = [*pieces.scores, *(score for _, score in pieces.scored)]
            scored = [*((name, LOWEST_SCORE) for name in SPECIALS), *zip(pieces.symbols, scores, strict=True)]
            return models.Unigram(scored, None, False)
