"""A Config and the sizes of the vocabularies in, a Model out: the one place where names become parts."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from regard import config
from regard.data.tokens import LETTERS, PAD, SPECIALS
from regard.errors import ConfigError
from regard.layers.attention import Attention
from regard.layers.block import Block
from regard.layers.convolution import GatedConvolution
from regard.layers.crf import Chain
from regard.layers.dropout import Dropout
from regard.layers.embedding import Embedding, Output
from regard.layers.feedforward import FeedForward
from regard.layers.image import Grid, Patches
from regard.layers.ngrams import NGrams
from regard.layers.pointer import Pointer
from regard.layers.pool import Pool
from regard.layers.positions import Alibi, Anchored, Learned, Position, Relative, Rotary, Sinusoidal, SinusoidalGrid
from regard.layers.recurrent import CELLS, Loop
from regard.layers.scores import Additive, Bilinear, Distance, Mean, ReducedRank, Score
from regard.layers.spelled import Spelled
from regard.models.bridge import Bridge
from regard.models.decoders import (
    AttentionDecoder,
    ConvolutionalDecoder,
    ConvolutionalLayer,
    Decoder,
    RecurrentDecoder,
)
from regard.models.encoders import AttentionEncoder, ConvolutionalEncoder, Encoder, RecurrentEncoder
from regard.models.model import Model

MOST_PARAMETERS = 20_000_000_000

Blocks = config.AttentionEncoder | config.AttentionDecoder | config.ImageEncoder


class Unfilled(TorchFunctionMode):
    """Weights that will be read from a file, or never used, need no fresh numbers: initialisers do nothing.

    On `meta` the first draw would also load a compiler, for a second or two.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        return given["tensor"] if getattr(func, "__module__", "") == "torch.nn.init" else func(*args, **given)


def build(
    c: config.Config, source_size: int, target_size: int, seed: int | None = None, copies: Sequence[int] | None = None
) -> Model:
    """A model with fresh weights, drawn from `seed` (the config's own if none is given).

    A copy head needs `copies` of the vocabulary; without them both sides are taken to have the same tokens.
    """
    refuse_giants(c, source_size, target_size)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(c.train.seed if seed is None else seed)
        return assemble(c, source_size, target_size, copies)


def outline(c: config.Config, source_size: int, target_size: int) -> Model:
    """The model as shapes alone: nothing is allocated."""
    with torch.device("meta"), Unfilled():
        return assemble(c, source_size, target_size)


def unfilled(c: config.Config, source_size: int, target_size: int, copies: Sequence[int] | None = None) -> Model:
    """The model with weights that are yet to be read."""
    with Unfilled():
        return assemble(c, source_size, target_size, copies)


def refuse_giants(c: config.Config, source_size: int, target_size: int) -> Model:
    """Counts before allocating, so that a slip of a digit is an answer and not a machine at a standstill.

    Gives the outline that was counted.
    """
    shapes = outline(c, source_size, target_size)
    if shapes.size > MOST_PARAMETERS:
        raise ConfigError(f"the config asks for {shapes.size:,} parameters; at most {MOST_PARAMETERS:,} are built here")
    return shapes


def assemble(c: config.Config, source_size: int, target_size: int, copies: Sequence[int] | None = None) -> Model:
    prefix = isinstance(c.encoder, config.Nothing)
    written = source_size if prefix else target_size  # a decoder alone reads and writes in one vocabulary
    spelled = c.tokens.source == "spelled"
    writes = not isinstance(c.decoder, config.Nothing) and not (prefix and spelled)
    target_embedding = embedding(c, c.decoder, written) if writes else None
    if spelled:
        source_embedding: nn.Module = spelled_words(c, c.decoder if prefix else c.encoder, source_size)
    elif prefix:
        assert target_embedding is not None
        source_embedding = target_embedding
    elif isinstance(c.encoder, config.ImageEncoder):
        source_embedding = picture(c.encoder)
    else:
        source_embedding = read_tokens(c, source_size, target_embedding if c.embedding.tie_source else None)
    made_encoder = encoder(c)
    made_decoder = decoder(c, made_encoder.width)
    width = side_width(c.encoder if made_decoder is None else c.decoder)
    tied_output = (target_embedding or source_embedding) if c.embedding.tie_output else None
    assert tied_output is None or isinstance(tied_output, Embedding)
    output = Output(output_size(c, width, source_size, target_size), width, tied_output)
    if made_decoder is not None and c.copies:
        copies = alike(source_size, target_size) if copies is None else copies
        made_decoder.copy = pointer(c, made_encoder.width, copies)
    labels = target_size - len(SPECIALS)
    return Model(source_embedding, made_encoder, target_embedding, made_decoder, output, prefix, head(c, width, labels))


def output_size(c: config.Config, width: int, source_size: int, target_size: int) -> int:
    """How many numbers the task wants of a state: one for each token, label or end of a span, or a vector."""
    match c.task:
        case "fill":
            return source_size
        case "embed":
            return c.head.width or width
        case "extract":
            return 2
        case _:
            return target_size


def head(c: config.Config, width: int, labels: int) -> nn.Module | None:
    """What the task puts beside the output layer: before it, or behind."""
    if c.task in ("classify", "embed"):
        return Pool(c.head.pool, width)
    if c.task == "tag" and c.head.crf:
        return Chain(labels)
    return None


def side_width(side: config.Section) -> int:
    width = getattr(side, "width", None)
    assert isinstance(width, int)
    return width


def embedding(c: config.Config, side: config.Section, vocabulary: int) -> Embedding:
    width = config.embedding_width(side)
    assert width is not None
    return Embedding(vocabulary, width, c.embedding.scale, Dropout(c.embedding.dropout), c.embedding.token_dropout)


def read_tokens(c: config.Config, vocabulary: int, tied: Embedding | None) -> Embedding:
    """The embedding of a source: the target's own, or with its table, or none of it."""
    if c.embedding.ngrams == 1:
        return tied or embedding(c, c.encoder, vocabulary)
    made = embedding(c, c.encoder, vocabulary)
    made.ngrams = NGrams(c.embedding.ngrams, c.embedding.buckets, made.table.embedding_dim)
    if tied is not None:
        made.table = tied.table
    return made


def spelled_words(c: config.Config, side: config.Section, vocabulary: int) -> Spelled:
    e, width = c.embedding, config.embedding_width(side)
    assert width is not None
    table = Embedding(vocabulary - LETTERS, width, e.scale, nn.Identity())
    return Spelled(table, e.characters, LETTERS, e.word_dropout, Dropout(e.dropout), e.token_dropout)


def picture(e: config.ImageEncoder) -> nn.Module:
    if e.form == "grid":
        return Grid(e.channels, e.width, e.patch, e.layers, Dropout(e.dropout))
    return Patches(e.channels, e.width, e.patch)


def encoder(c: config.Config) -> Encoder:
    e = c.encoder
    match e:
        case config.Nothing():
            return Encoder(Position(), config.embedding_width(c.decoder) or 0)
        case config.RecurrentEncoder():
            inputs = [e.embedding or e.width] + [e.width] * (e.layers - 1)
            loops = nn.ModuleList(Loop(CELLS[e.cell], width, e.width, e.directions) for width in inputs)
            return RecurrentEncoder(position(e, c.data.max_source + 1), e.width, loops, Dropout(e.dropout))
        case config.ConvolutionalEncoder():
            layers = nn.ModuleList(GatedConvolution(e.width, e.kernel, e.dropout) for _ in range(e.layers))
            return ConvolutionalEncoder(position(e, c.data.max_source + 1), e.width, layers, Dropout(e.dropout))
        case config.AttentionEncoder():
            return blocks_encoder(e, position(e, c.data.max_source + 1))
        case config.ImageEncoder():
            where = grid_position(e)
            return Encoder(where, e.width) if e.form == "grid" else blocks_encoder(e, where)


def blocks_encoder(e: config.AttentionEncoder | config.ImageEncoder, where: Position) -> Encoder:
    layers = nn.ModuleList(block(e, None) for _ in range(e.layers))
    return AttentionEncoder(where, e.width, layers, last_norm(e))


def decoder(c: config.Config, memory_width: int) -> Decoder | None:
    d = c.decoder
    alone = isinstance(c.encoder, config.Nothing)
    match d:
        case config.Nothing():
            return None
        case config.RecurrentDecoder():
            return recurrent_decoder(d, memory_width, position(d, c.places))
        case config.ConvolutionalDecoder():
            convolutions = nn.ModuleList(
                ConvolutionalLayer(
                    GatedConvolution(d.width, d.kernel, d.dropout),
                    None if alone else attention(d, d.width, memory_width),
                    Dropout(d.dropout),
                )
                for _ in range(d.layers)
            )
            return ConvolutionalDecoder(position(d, c.places), convolutions, d.width, Dropout(d.dropout))
        case config.AttentionDecoder():
            layers = nn.ModuleList(block(d, None if alone else memory_width) for _ in range(d.layers))
            return AttentionDecoder(position(d, c.places), layers, last_norm(d))


def recurrent_decoder(d: config.RecurrentDecoder, memory_width: int, where: Position) -> RecurrentDecoder:
    extra = {"fixed": memory_width, "feed": d.width, "input": d.width}.get(d.context, 0)
    inputs = [(d.embedding or d.width) + extra] + [d.width] * (d.layers - 1)
    cell = CELLS[d.cell]
    return RecurrentDecoder(
        nn.ModuleList(cell(width, d.width) for width in inputs),
        Bridge(d.bridge, memory_width, d.width, d.layers, cell.parts),
        d.context,
        attention(d, d.width, memory_width) if d.attends else None,
        where,
        Dropout(d.dropout),
    )


def pointer(c: config.Config, memory_width: int, copies: Sequence[int]) -> Pointer:
    """A decoder without an encoder points at its own states over the source."""
    width = side_width(c.decoder)
    return Pointer(width, width if isinstance(c.encoder, config.Nothing) else memory_width, copies)


def alike(source_size: int, target_size: int) -> list[int]:
    """What each source token is copied as where both sides have the same tokens: as itself, and signs not at all."""
    return [id if len(SPECIALS) <= id < target_size else PAD for id in range(source_size)]


def block(b: Blocks, memory_width: int | None) -> Block:
    """One block; with a memory to look at if `memory_width` is given."""
    return Block(
        attention(b, b.width, b.width),
        None if memory_width is None else attention(b, b.width, memory_width),
        FeedForward(b.width, b.feedforward or 4 * b.width, b.activation, b.gated, Dropout(b.dropout)),
        norm(b),
        b.norm_first,
        Dropout(b.dropout),
    )


def attention(a: config.Lookup, width: int, memory_width: int) -> Attention:
    return Attention(width, memory_width, a.heads, score(a, width // a.heads), a.projections)


def score(a: config.Lookup, width: int) -> Score:
    """The score of one attention whose heads are `width` wide."""
    match a.score:
        case "dot":
            return Score()
        case "scaled":
            return Score(width**-0.5)
        case "bilinear":
            return Bilinear(a.heads, width)
        case "reduced-rank":
            return ReducedRank(a.heads, width, a.rank)
        case "additive":
            return Additive(a.heads, width)
        case "distance":
            return Distance(width)
        case "mean":
            return Mean()


def norm(b: Blocks) -> Callable[[], nn.Module]:
    return lambda: nn.RMSNorm(b.width, eps=1e-5) if b.norm == "rms" else nn.LayerNorm(b.width)


def last_norm(b: Blocks) -> nn.Module:
    """A stack whose norms stand before its parts needs one at the end."""
    return norm(b)() if b.norm_first else nn.Identity()


def position(side: config.Section, longest: int) -> Position:
    """Where a token stands, for one side; `longest` bounds learned positions."""
    heads = getattr(side, "heads", 1)
    match getattr(side, "position", "none"):
        case "sinusoidal":
            return Sinusoidal()
        case "learned":
            return Learned(longest, config.embedding_width(side) or 0)
        case "relative":
            return Relative(heads)
        case "rotary":
            return Rotary()
        case "sinusoidal+rotary":
            return Anchored()
        case "alibi":
            return Alibi(heads)
        case _:
            return Position()


def grid_position(e: config.ImageEncoder) -> Position:
    side = e.size // e.patch
    return SinusoidalGrid(side) if e.position == "sinusoidal" else position(e, side * side)
