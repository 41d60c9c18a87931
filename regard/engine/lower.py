"""A Model in, a Draft out: every part of the lineage in the engine's few operations.

The numbers are those of the model's own forward pass, written once more for one token at a time and without padding;
tests hold the two together for every preset and every combination of parts.
"""

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.engine.draft import NOTHING, Activation, Domain, Draft, Kind, Line, Look, Operation, Point, Writer
from regard.layers.attention import Attention
from regard.layers.block import Block
from regard.layers.convolution import GatedConvolution
from regard.layers.dropout import Dropout
from regard.layers.embedding import Embedding, Output
from regard.layers.feedforward import FeedForward
from regard.layers.image import Grid, Patches
from regard.layers.ngrams import NGrams
from regard.layers.pointer import Pointer
from regard.layers.positions import Alibi, Anchored, Learned, Position, Relative, Rotary, Sinusoidal, waves
from regard.layers.recurrent import Cell, Gru, Loop, Lstm
from regard.layers.scores import Additive, Bilinear, Distance, Mean, ReducedRank, Score
from regard.models.bridge import Bridge
from regard.models.decoders import AttentionDecoder, ConvolutionalDecoder, ConvolutionalLayer, RecurrentDecoder
from regard.models.encoders import AttentionEncoder, ConvolutionalEncoder, Encoder, RecurrentEncoder
from regard.models.model import Model

NEAR = 1024  # positions that are laid out; sines of further ones are computed where they are wanted
CELLS: dict[type, int] = {Cell: 0, Gru: 1, Lstm: 2}
BENDS = {F.relu: Activation.RELU, F.gelu: Activation.GELU, F.silu: Activation.SILU}


# What is translated. Exactly these: a subclass may do something else, and only torch would know what.
PARTS = {
    AttentionDecoder, AttentionEncoder, ConvolutionalDecoder, ConvolutionalEncoder, ConvolutionalLayer, Encoder, Model,
    RecurrentDecoder, RecurrentEncoder, Bridge, Attention, Block, Cell, Dropout, Embedding, FeedForward,
    GatedConvolution, Gru, Loop, Lstm, Output, Alibi, Anchored, Learned, Position, Relative, Rotary, Sinusoidal,
    Additive, Bilinear, Distance, Mean, NGrams, Pointer, ReducedRank, Score, nn.Conv1d, nn.Embedding, nn.Identity,
    nn.LayerNorm, nn.Linear, nn.ModuleList, nn.RMSNorm,
}  # fmt: skip


class Unknown(Exception):
    """A part that the engine has no operation for."""


def check_parts(model: Model) -> None:
    """A part of one's own, or one with a hook, is left to torch; so is what reads pictures, and a head, which
    always are."""
    pictures = isinstance(model.source_embedding, Grid | Patches)
    in_torch = [model.source_embedding, model.encoder] if pictures else []
    in_torch += [] if model.head is None else [model.head]
    left = {part for each in in_torch for part in each.modules()}
    for part in model.modules():
        if part not in left and (type(part) not in PARTS or part._forward_hooks or part._forward_pre_hooks):
            raise Unknown(type(part).__name__)


def lower(model: Model) -> Draft:
    """The model as instructions."""
    check_parts(model)
    return Lowering(model).draft


class Lowering:
    """Goes through a model once, from the source's embedding to the output layer."""

    def __init__(self, model: Model) -> None:
        self.draft = Draft(prefix=model.prefix)
        self.reading = Writer(self.draft, self.draft.read, self.draft.read.lines)
        self.holding = Writer(self.draft, self.draft.read, self.draft.hold)
        self.stepping = Writer(self.draft, self.draft.step, self.draft.step.lines)
        self.finals: list[tuple[int, ...]] = []
        self.draft.states = self.source(model)
        if model.decoder is not None:
            self.draft.last = self.decoder(model)
        self.draft.output = self.draft.linear(model.output.weight, model.output.bias)
        if model.decoder is not None and model.decoder.copy is not None:
            self.draft.pointer = self.pointer(model, model.decoder.copy)

    # ── the source ───────────────────────────────────────────────────────────────────────────────────────────────────

    def source(self, model: Model) -> int:
        """The register of the encoder's states. Pictures come as states, and a prefix is fed to the decoder."""
        writer = self.reading
        if model.prefix or not isinstance(model.source_embedding, Embedding):
            return writer.sheet.register(model.encoder.width, Domain.TOKENS)
        x = self.embedded(writer, model.source_embedding, Domain.TOKENS)
        x = self.joined(writer, x, model.source_embedding)
        encoder = model.encoder
        x = self.placed(writer, x, encoder.position)
        match encoder:
            case RecurrentEncoder():
                for layer in encoder.layers:
                    x = self.loop(layer, x)
            case ConvolutionalEncoder():
                for layer in encoder.layers:
                    x = self.convolved(layer, x)
            case AttentionEncoder():
                for layer in encoder.layers:
                    x = self.block(writer, layer, x, encoder.position, NOTHING)
                x = self.normed(writer, x, encoder.norm)
            case _ if type(encoder) is not Encoder:
                raise Unknown(type(encoder).__name__)
        return x

    def embedded(self, writer: Writer, embedding: Embedding, domain: Domain) -> int:
        table = self.draft.table(embedding.table.weight)
        return writer.add(Operation.EMBED, embedding.table.embedding_dim, domain, (), (table,), embedding.scale)

    def joined(self, writer: Writer, x: int, embedding: Embedding) -> int:
        """Token vectors with those of the runs around them."""
        ngrams = embedding.ngrams
        if ngrams is None:
            return x
        numbers = (self.draft.table(ngrams.table.weight), ngrams.longest, ngrams.buckets)
        return writer.like(Operation.NGRAMS, x, writer.sheet.width(x), numbers, embedding.scale)

    def placed(self, writer: Writer, x: int, position: Position) -> int:
        """Positions added to embeddings; those that act on scores are left to attention."""
        width = writer.sheet.width(x)
        match position:
            case Sinusoidal():
                table = waves(torch.arange(NEAR)[None], width)[0]
            case Learned():
                table = position.table
                self.draft.most[writer.sheet.domain(x)] = len(table)
            case Rotary() | Relative() | Alibi():
                return x
            case _ if type(position) is Position:
                return x
            case _:
                raise Unknown(type(position).__name__)
        return writer.like(Operation.PLACE, x, width, (self.draft.table(table),))

    def loop(self, layer: nn.Module, x: int) -> int:
        assert isinstance(layer, Loop)
        made = [
            self.one_way(cell, x, back) for cell, back in ((layer.forward_cell, 0), (layer.backward_cell, 1)) if cell
        ]
        outs, finals = [out for out, _ in made], [final for _, final in made]
        if len(made) == 1:
            self.finals.append(finals[0])
            return outs[0]
        self.finals.append(tuple(self.reading.cat(a, b) for a, b in zip(*finals, strict=True)))
        return self.reading.cat(*outs)

    def one_way(self, cell: Cell, x: int, backward: int) -> tuple[int, tuple[int, ...]]:
        """A loop in one direction: the register of its states, and those of its last state."""
        writer = self.reading
        gates = writer.linear(x, cell.input.weight, cell.input.bias)
        final = tuple(writer.sheet.register(cell.width, Domain.ROWS) for _ in range(cell.parts))
        hidden = self.draft.linear(cell.hidden.weight, cell.hidden.bias)
        number = (hidden, CELLS[type(cell)], backward, final[0], final[1] if cell.parts > 1 else NOTHING)
        return writer.like(Operation.RUN, gates, cell.width, number), final

    def convolved(self, layer: nn.Module, x: int) -> int:
        assert isinstance(layer, GatedConvolution)
        writer = self.reading
        beside = writer.like(Operation.NEIGHBOURS, x, writer.sheet.width(x) * layer.kernel, (layer.kernel,))
        return writer.sum(x, self.gated(writer, layer, beside), math.sqrt(0.5))

    def gated(self, writer: Writer, layer: GatedConvolution, beside: int) -> int:
        weight = layer.convolution.weight.transpose(1, 2).flatten(1)
        return writer.glu(writer.linear(beside, weight, layer.convolution.bias))

    # ── blocks of attention ──────────────────────────────────────────────────────────────────────────────────────────

    def block(self, writer: Writer, block: nn.Module, x: int, position: Position, memory: int) -> int:
        """One block over the source, or over the rows of a step; `memory` is the number of the cross-attention."""
        assert isinstance(block, Block)
        found = self.self_attention(
            writer, block.self_attention, self.before(writer, block, x, block.self_norm), position
        )
        x = self.beyond(writer, block, x, found, block.self_norm)
        if block.cross_attention is not None and block.cross_norm is not None:
            seen = self.before(writer, block, x, block.cross_norm)
            x = self.beyond(writer, block, x, self.cross(block.cross_attention, seen, memory), block.cross_norm)
        seen = self.before(writer, block, x, block.feedforward_norm)
        return self.beyond(writer, block, x, self.feedforward(writer, block.feedforward, seen), block.feedforward_norm)

    def before(self, writer: Writer, block: Block, x: int, norm: nn.Module) -> int:
        return self.normed(writer, x, norm) if block.norm_first else x

    def beyond(self, writer: Writer, block: Block, x: int, found: int, norm: nn.Module) -> int:
        total = writer.sum(x, found)
        return total if block.norm_first else self.normed(writer, total, norm)

    def normed(self, writer: Writer, x: int, norm: nn.Module) -> int:
        if isinstance(norm, nn.Identity):
            return x
        if not isinstance(norm, nn.LayerNorm | nn.RMSNorm) or norm.weight is None or norm.eps is None:
            raise Unknown(f"{type(norm).__name__} as a norm")
        bias = norm.bias if isinstance(norm, nn.LayerNorm) else None
        number = (self.draft.table(norm.weight[None]), NOTHING if bias is None else self.draft.table(bias[None]),
                  int(isinstance(norm, nn.RMSNorm)))  # fmt: skip
        return writer.like(Operation.NORM, x, writer.sheet.width(x), number, norm.eps)

    def feedforward(self, writer: Writer, layer: nn.Module, x: int) -> int:
        if not isinstance(layer, FeedForward) or layer.bend not in BENDS:
            raise Unknown(f"{type(layer).__name__} as a feed-forward")
        inner = writer.linear(x, layer.inner.weight, layer.inner.bias, BENDS[layer.bend])
        if layer.gate is not None:
            inner = writer.multiply(inner, writer.linear(x, layer.gate.weight, layer.gate.bias))
        return writer.linear(inner, layer.outer.weight, layer.outer.bias)

    # ── attention ────────────────────────────────────────────────────────────────────────────────────────────────────

    def self_attention(self, writer: Writer, attention: Attention, x: int, position: Position) -> int:
        if not isinstance(attention, Attention):
            raise Unknown(f"{type(attention).__name__} as attention")
        query = self.prepared(writer, attention, self.projected(writer, attention.query, x), position, "query")
        value = self.projected(writer, attention.value, x)
        key = value
        if attention.score.compares:
            key = self.prepared(writer, attention, self.projected(writer, attention.key, x), position, "key")
        width, look = writer.sheet.width(value), self.look(writer, attention, key, value, position)
        if writer is self.reading:
            found = writer.add(Operation.WITHIN, width, Domain.TOKENS, (query, key, value), (look,))
        else:
            found = writer.add(Operation.SELF, width, Domain.ROWS, (query, key, value), (self.draft.entries, look))
            self.draft.entries += 1
        return self.projected(writer, attention.output, found)

    def cross(self, attention: Attention, x: int, memory: int) -> int:
        """Keys and values are made when the source is held; the query at each step."""
        holding, stepping = self.holding, self.stepping
        value = self.projected(holding, attention.value, self.draft.states)
        key = value
        if attention.score.compares:
            projected = self.projected(holding, attention.key, self.draft.states)
            key = self.prepared(holding, attention, projected, Position(), "key")
        look = self.look(holding, attention, key, value, Position())
        holding.lines.append(Line(Operation.HOLD, NOTHING, key, value, number=(memory, look)))
        query = self.prepared(stepping, attention, self.projected(stepping, attention.query, x), Position(), "query")
        width = holding.sheet.width(value)
        found = stepping.add(Operation.CROSS, width, Domain.ROWS, (query,), (memory, look))
        return self.projected(stepping, attention.output, found)

    def projected(self, writer: Writer, part: nn.Module, x: int) -> int:
        if isinstance(part, nn.Identity):
            return x
        assert isinstance(part, nn.Linear)
        return writer.linear(x, part.weight, part.bias)

    def prepared(self, writer: Writer, attention: Attention, x: int, position: Position, side: str) -> int:
        """Queries or keys turned by their position and prepared by their score."""
        if isinstance(position, Rotary):
            x = self.turned(writer, attention, x)
        match attention.score:
            case Bilinear() as score:
                return writer.linear(x, block_diagonal(score.weight)) if side == "key" else x
            case ReducedRank() | Additive() as score:
                weight = score.key_weight if side == "key" else score.query_weight
                return writer.linear(x, block_diagonal(weight.transpose(-2, -1)))
            case _:
                return x

    def turned(self, writer: Writer, attention: Attention, x: int) -> int:
        width = writer.sheet.width(x)
        half = width // attention.heads // 2
        rate = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
        angle = torch.arange(NEAR)[:, None] * rate
        number = (self.draft.table(angle.cos()), self.draft.table(angle.sin()), attention.heads)
        return writer.like(Operation.TURN, x, width, number)

    def look(self, writer: Writer, attention: Attention, key: int, value: int, position: Position) -> int:
        score, heads = attention.score, attention.heads
        kind, vector = Kind.PRODUCT, NOTHING
        match score:
            case Additive():
                kind, vector = Kind.ADDITIVE, self.draft.table(score.vector)
            case Distance():
                kind = Kind.DISTANCE
            case Mean():
                kind = Kind.UNIFORM
            case Bilinear() | ReducedRank():
                pass
            case _ if type(score) is not Score:
                raise Unknown(type(score).__name__)
        bias = self.draft.table(position.table) if isinstance(position, Relative) else NOTHING
        rate = NOTHING
        if isinstance(position, Alibi):
            rate = self.draft.table((2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads))[None])
        widths = (writer.sheet.width(key) // heads, writer.sheet.width(value) // heads)
        return self.draft.look(Look(kind, heads, *widths, score.scale, vector, bias, rate))

    # ── the target ───────────────────────────────────────────────────────────────────────────────────────────────────

    def decoder(self, model: Model) -> int:
        """The register of the decoder's states after a step."""
        decoder, writer = model.decoder, self.stepping
        assert model.target_embedding is not None
        x = self.embedded(writer, model.target_embedding, Domain.ROWS)
        match decoder:
            case RecurrentDecoder():
                self.draft.memories = int(decoder.cross_attention is not None)
                return self.recurrent(decoder, self.placed(writer, x, decoder.position))
            case ConvolutionalDecoder():
                x = self.placed(writer, x, decoder.position)
                for number, layer in enumerate(decoder.layers):
                    x = self.causal(layer, x, number)
                self.draft.memories = 0 if model.prefix else len(decoder.layers)
                return x
            case AttentionDecoder():
                x = self.placed(writer, x, decoder.position)
                for number, layer in enumerate(decoder.layers):
                    x = self.block(writer, layer, x, decoder.position, number)
                self.draft.memories = 0 if model.prefix else len(decoder.layers)
                return self.normed(writer, x, decoder.norm)
            case _:
                raise Unknown(type(decoder).__name__)

    def pointer(self, model: Model, part: Pointer) -> Point:
        """Keys are made where the source is read; query and gate with the logits, for rows that are past it."""
        check_pointer(model, part)
        draft, written, copies = self.draft, self.holding.lines, part.copies.cpu().numpy().astype(np.int32)
        states = draft.states
        if draft.prefix:
            written, states = self.stepping.lines, draft.last
        written.append(Line(Operation.OFFER, NOTHING, states))
        query, key, gate = (draft.linear(each.weight, each.bias) for each in (part.query, part.key, part.gate))
        width = part.query.out_features
        look = draft.look(Look(Kind.PRODUCT, part.heads, width, width, part.score.scale))
        return Point(query, key, gate, look, copies)

    def carry(self, first: int) -> int:
        """A register that goes from step to step, starting as `first` of the held source."""
        self.draft.first_state.append(first)
        self.draft.state.append(self.stepping.sheet.register(self.holding.sheet.width(first), Domain.ROWS))
        return self.draft.state[-1]

    def causal(self, layer: nn.Module, x: int, number: int) -> int:
        assert isinstance(layer, ConvolutionalLayer)
        writer, width, kernel = self.stepping, self.stepping.sheet.width(x), layer.convolution.kernel
        past = self.carry(self.holding.zero((kernel - 1) * width))
        seen = writer.cat(past, x)
        self.draft.next_state.append(writer.slice(seen, width, (kernel - 1) * width))
        found = self.gated(writer, layer.convolution, seen)
        if layer.cross_attention is not None:
            found = writer.sum(found, self.cross(layer.cross_attention, writer.sum(found, x), number))
        return writer.sum(x, found, math.sqrt(0.5))

    def recurrent(self, decoder: RecurrentDecoder, x: int) -> int:
        """As the decoder's own forward pass: what is looked up, and when, is its `context`."""
        writer = self.stepping
        cells = [tuple(self.carry(first) for first in firsts) for firsts in self.bridged(decoder)]
        fed = self.carry(self.holding.zero(decoder.bridge.width)) if decoder.context == "feed" else NOTHING
        looked = NOTHING
        if decoder.context == "fixed":
            fixed = self.carry(self.summary(decoder.bridge.kind))
            x = writer.cat(x, fixed)
        if decoder.context == "input":
            looked = self.looked(decoder, cells[-1][0])
            x = writer.cat(x, looked)
        if decoder.context == "feed":
            x = writer.cat(x, fed)
        for cell, old in zip(decoder.cells, cells, strict=True):
            x = self.climbed(cell, x, old)
        if decoder.cross_attention is not None:
            assert decoder.joined is not None
            looked = self.looked(decoder, x) if decoder.context != "input" else looked
            x = writer.linear(writer.cat(x, looked), decoder.joined.weight, decoder.joined.bias, Activation.TANH)
        if decoder.context == "feed":
            self.draft.next_state.append(x)
        if decoder.context == "fixed":
            self.draft.next_state.append(fixed)
        return x

    def looked(self, decoder: RecurrentDecoder, query: int) -> int:
        assert decoder.cross_attention is not None
        return self.cross(decoder.cross_attention, query, 0)

    def climbed(self, cell: nn.Module, x: int, old: tuple[int, ...]) -> int:
        """One step of one layer; its new state goes on to the next step."""
        assert isinstance(cell, Cell)
        writer = self.stepping
        gates = writer.linear(x, cell.input.weight, cell.input.bias)
        hidden = writer.linear(old[0], cell.hidden.weight, cell.hidden.bias)
        memory = writer.sheet.register(cell.width, Domain.ROWS) if cell.parts > 1 else NOTHING
        number = (CELLS[type(cell)], memory)
        out = writer.add(Operation.CELL, cell.width, Domain.ROWS, (gates, hidden, old[-1]), number)
        self.draft.next_state += [out] if memory == NOTHING else [out, memory]
        return out

    def bridged(self, decoder: RecurrentDecoder) -> list[tuple[int, ...]]:
        """Registers of the first state, a tuple for each layer."""
        bridge, writer = decoder.bridge, self.holding
        if bridge.kind == "copy":
            return self.finals
        if bridge.project is None:
            return [tuple(writer.zero(bridge.width) for _ in range(bridge.parts)) for _ in range(bridge.layers)]
        weights = bridge.project
        made = writer.linear(self.summary(bridge.kind), weights.weight, weights.bias, Activation.TANH)
        pieces = [writer.slice(made, i * bridge.width, bridge.width) for i in range(bridge.layers * bridge.parts)]
        return [tuple(pieces[i : i + bridge.parts]) for i in range(0, len(pieces), bridge.parts)]

    def summary(self, kind: str) -> int:
        """The source as one vector."""
        if self.draft.prefix:
            raise Unknown("a summary of a source that the decoder reads itself")
        width = self.holding.sheet.width(self.draft.states)
        if kind == "mean":
            return self.holding.add(Operation.MEAN, width, Domain.ROWS, (self.draft.states,))
        if self.finals:
            return self.finals[-1][0]
        return self.holding.add(Operation.LAST, width, Domain.ROWS, (self.draft.states,))


def check_pointer(model: Model, part: Pointer) -> None:
    """Nothing behind the border looks whether a token has a copy, and whether that is a token."""
    embedding, copies = model.source_embedding, part.copies
    if type(part.score) is not Score or part.heads != 1:
        raise Unknown("a copy head with a score of its own")
    if not isinstance(embedding, Embedding) or len(copies) < embedding.table.num_embeddings:
        raise Unknown("a copy head for other sources")
    if not 0 <= int(copies.min()) <= int(copies.max()) < len(model.output.weight):
        raise Unknown("a copy head for other targets")


def block_diagonal(weight_HRK: Tensor) -> Tensor:
    """The weights of each head on the diagonal of one matrix: (H R, H K)."""
    made: Tensor = torch.block_diag(*weight_HRK)  # type: ignore[no-untyped-call]
    return made
