"""A config and a length in, the textbook's figures for each part out: parameters, operations, chain and path.

The letters, in every formula:

    S source positions · T target positions · V vocabulary · L layers · d width · e width of the embeddings · m width of
    the encoder states · h width of one direction · g gates of a cell · k kernel · f inner width of the feed-forward
    n heads · r rank · q width by which a copy head compares · p pixels a side of a place · c channels
"""

from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from regard import config
from regard.lab.count import COMPARISONS, COPY, PROJECTIONS, SUMMARY
from regard.layers.pointer import NARROW
from regard.layers.recurrent import CELLS

Blocks = config.AttentionEncoder | config.AttentionDecoder | config.ImageEncoder


@dataclass(frozen=True)
class Formula:
    """A formula as one would write it, its value, and a sentence where it differs from what is built."""

    text: str
    value: int | None
    note: str = ""


Formulas = dict[str, Formula]
NOT_THERE = Formula("", None)


@dataclass(frozen=True)
class Sizes:
    """Lengths and vocabulary of the model that is looked at."""

    source: int
    target: int
    vocabulary: int


def places(c: config.Config, length: int) -> int:
    """Source positions: tokens, or the places of a picture."""
    return (c.encoder.size // c.encoder.patch) ** 2 if isinstance(c.encoder, config.ImageEncoder) else length


def memory_width(c: config.Config) -> int:
    found = config.embedding_width(c.decoder) if isinstance(c.encoder, config.Nothing) else c.encoder.width
    return found or 0


def blocks_of(side: config.Section) -> Blocks | None:
    """The settings of a stack of blocks, if this side is one; a grid is an image encoder without blocks."""
    if isinstance(side, config.ImageEncoder) and side.form == "grid":
        return None
    if isinstance(side, config.AttentionEncoder | config.AttentionDecoder | config.ImageEncoder):
        return side
    return None


def cell_inputs(c: config.Config, side: config.RecurrentEncoder | config.RecurrentDecoder) -> list[int]:
    """What goes into the cells of each layer: embeddings, with what is looked up beside them, or the states below."""
    first = side.embedding or side.width
    if isinstance(side, config.RecurrentDecoder):
        first += {"fixed": memory_width(c), "feed": side.width, "input": side.width}.get(side.context, 0)
    return [first] + [side.width] * (side.layers - 1)


def directions(side: config.RecurrentEncoder | config.RecurrentDecoder) -> int:
    return 2 if isinstance(side, config.RecurrentEncoder) and side.directions == "both" else 1


def looks_back(c: config.Config) -> config.Lookup | None:
    """The settings of the attention to the source, if there is one."""
    if isinstance(c.encoder, config.Nothing) or isinstance(c.decoder, config.Nothing):
        return None
    if isinstance(c.decoder, config.RecurrentDecoder) and not c.decoder.attends:
        return None
    return c.decoder


def lookups(c: config.Config) -> int:
    """How many attentions look at the source."""
    return 1 if isinstance(c.decoder, config.Nothing | config.RecurrentDecoder) else c.decoder.layers


def grid(e: config.ImageEncoder) -> list[tuple[int, int, int]]:
    """Channels in, channels out and pixels out of each convolution of a grid."""
    halvings = e.patch.bit_length() - 1
    widths = [e.channels, *[max(8, e.width >> (halvings - i)) for i in range(1, halvings)], e.width]
    first = 1 if halvings else 0  # without a halving there is one convolution of all pixels
    halves = [(a, b, (e.size >> i) ** 2) for i, (a, b) in enumerate(pairwise(widths), start=first)]
    return [*halves, *[(e.width, e.width, (e.size // e.patch) ** 2)] * e.layers]


# ── parameters ───────────────────────────────────────────────────────────────────────────────────────────────────────


def parameters(c: config.Config, vocabulary: int) -> Formulas:
    """Weights and biases of each part."""
    found: Formulas = {}
    if isinstance(c.encoder, config.ImageEncoder):
        found["source embedding"] = picture_parameters(c.encoder)
    for label, side in (("source embedding", c.encoder), ("target embedding", c.decoder)):
        if width := config.embedding_width(side):
            found.setdefault(label, Formula("V·e", vocabulary * width))
    if isinstance(c.encoder, config.Nothing) or c.embedding.tie_source:
        found["source and target embedding"] = found["target embedding"]
    if c.embedding.ngrams > 1:
        found["source n-grams"] = ngram_parameters(c)
    for name, side in (("encoder", c.encoder), ("decoder", c.decoder)):
        found |= {f"{name} {label}": formula for label, formula in side_parameters(c, side).items()}
    width = getattr(c.encoder if isinstance(c.decoder, config.Nothing) else c.decoder, "width", 0)
    tied = Formula("V", vocabulary, "The output multiplies by the table of embeddings, which is counted there.")
    found["output"] = tied if c.embedding.tie_output else Formula("d·V + V", (width + 1) * vocabulary)
    return found | bridge_parameters(c) | copy_parameters(c)


def ngram_parameters(c: config.Config) -> Formula:
    """Two runs of two tokens cover a place, three of three, …"""
    longest, width = c.embedding.ngrams, config.embedding_width(c.encoder) or 0
    return Formula("(2 + … + n)·b·e", (longest * (longest + 1) // 2 - 1) * c.embedding.buckets * width)


def picture_parameters(e: config.ImageEncoder) -> Formula:
    if e.form == "patches":
        return Formula("p²·c·d + d", (e.patch**2 * e.channels + 1) * e.width)
    return Formula("Σ 9·in·out + out", sum(9 * a * b + b for a, b, _ in grid(e)))


def side_parameters(c: config.Config, side: config.Section) -> Formulas:
    """The networks of one side, without embeddings."""
    found = position_parameters(c, side)
    if isinstance(side, config.RecurrentEncoder | config.RecurrentDecoder):
        found["cells"] = cell_parameters(c, side)
    if isinstance(side, config.ConvolutionalEncoder | config.ConvolutionalDecoder):
        found["convolutions"] = Formula(
            "L·(2·k·d² + 2·d)", side.layers * 2 * side.width * (side.kernel * side.width + 1)
        )
    if blocks := blocks_of(side):
        found |= block_parameters(blocks, looks_back(c) is side)
    if looks_back(c) is side:
        found["cross-attention"] = lookup_parameters(c)
    return found


def position_parameters(c: config.Config, side: config.Section) -> Formulas:
    width, heads, longest = config.embedding_width(side) or 0, getattr(side, "heads", 1), c.data.max_source + 1
    if isinstance(side, config.ImageEncoder):
        longest = places(c, 0)
    elif side is c.decoder:
        longest = c.places
    match getattr(side, "position", "none"):
        case "learned":
            return {"positions": Formula("longest·e", longest * width)}
        case "relative":
            return {"positions": Formula("(2·32 + 1)·n", 65 * heads)}
        case _:
            return {}


def cell_parameters(c: config.Config, side: config.RecurrentEncoder | config.RecurrentDecoder) -> Formula:
    gates, ways, inputs = CELLS[side.cell].gates, directions(side), cell_inputs(c, side)
    each = side.width // ways
    text = f"Σ {'2·' if ways == 2 else ''}g·h·(in + h + 2)"
    return Formula(text, sum(ways * gates * each * (width + each + 2) for width in inputs))


def block_parameters(b: Blocks, looks: bool) -> Formulas:
    inner, matrices = b.feedforward or 4 * b.width, 3 if b.gated else 2
    feed = b.layers * (matrices * b.width * inner + (matrices - 1) * inner + b.width)
    norms = (b.layers * (3 if looks else 2) + b.norm_first) * (1 if b.norm == "rms" else 2) * b.width
    text = f"({'3' if looks else '2'}·L{' + 1' if b.norm_first else ''})·{'d' if b.norm == 'rms' else '2·d'}"
    matrices_seen = projected(b)
    own = matrices_seen * (b.width * b.width + b.width) + score_parameters(b, b.width)
    own_text = terms(f"{matrices_seen}·d² + {matrices_seen}·d" if matrices_seen else "", score_text(b))
    return {
        "self-attention": Formula(times_layers(own_text), b.layers * own),
        "feed-forward": Formula("L·(3·d·f + 2·f + d)" if b.gated else "L·(2·d·f + f + d)", feed),
        "norms": Formula(text, norms),
    }


def lookup_parameters(c: config.Config) -> Formula:
    look, wide, memory = looks_back(c), getattr(c.decoder, "width", 0), memory_width(c)
    assert look is not None
    own = projected(look) // 2 * (wide * (wide + memory) + 2 * wide) + score_parameters(look, wide)
    text = {4: "2·d² + 2·m·d + 4·d", 2: "d² + m·d + 2·d", 0: ""}[projected(look)]
    text = terms(text, score_text(look))
    return Formula(times_layers(text) if lookups(c) > 1 else text, lookups(c) * own)


def projected(look: config.Lookup) -> int:
    """How many matrices an attention has: for query, key, value and output; the mean compares nothing and has two."""
    return 0 if not look.projections else 2 if look.score == "mean" else 4


def score_parameters(look: config.Lookup, width: int) -> int:
    head = width // look.heads
    return {"bilinear": width * head, "reduced-rank": 2 * width * look.rank, "additive": 2 * width * head + width}.get(
        look.score, 0
    )


def score_text(look: config.Lookup) -> str:
    return {"bilinear": "d²/n", "reduced-rank": "2·d·r", "additive": "2·d²/n + d"}.get(look.score, "")


def terms(*several: str) -> str:
    return " + ".join(term for term in several if term) or "0"


def times_layers(text: str) -> str:
    return "0" if text == "0" else f"L·({text})" if "+" in text.replace("(S + T)", "") else f"L·{text}"


def bridge_parameters(c: config.Config) -> Formulas:
    d = c.decoder
    if not isinstance(d, config.RecurrentDecoder):
        return {}
    made = d.layers * CELLS[d.cell].parts * d.width
    return {
        "bridge": Formula(f"{parts_text(d)}L·(m·d + d)", made * (memory_width(c) + 1)),
        "decoder join": Formula("2·d² + d", 2 * d.width**2 + d.width),
    }


def copy_widths(c: config.Config) -> tuple[int, int, int]:
    """Of the states that point, of those that are pointed at, and of what both are compared by."""
    width = getattr(c.decoder, "width", 0)
    return width, width if isinstance(c.encoder, config.Nothing) else memory_width(c), min(width, NARROW)


def copy_parameters(c: config.Config) -> Formulas:
    wide, memory, each = copy_widths(c)
    return {COPY: Formula("q·(d + m + 1) + d + 1", each * (wide + memory + 1) + wide + 1)} if c.copies else {}


def copy_operations(c: config.Config, sizes: Sizes) -> Formulas:
    if not c.copies:
        return {}
    wide, memory, each = copy_widths(c)
    made = 2 * sizes.target * wide * (each + 1) + 2 * sizes.source * memory * each
    return {
        f"{COPY}{PROJECTIONS}": Formula("2·T·d·(q + 1) + 2·S·m·q", made),
        f"{COPY}{COMPARISONS}": Formula("2·T·S·q", 2 * sizes.target * sizes.source * each),
    }


def parts_text(d: config.RecurrentDecoder) -> str:
    return "2·" if CELLS[d.cell].parts == 2 else ""


# ── operations ───────────────────────────────────────────────────────────────────────────────────────────────────────


def operations(c: config.Config, sizes: Sizes) -> Formulas:
    """Of each part's products, 2 for each multiply-add; a source and a target of the given lengths, read once."""
    found: Formulas = {}
    alone, fill = isinstance(c.encoder, config.Nothing), isinstance(c.decoder, config.Nothing)
    if isinstance(c.encoder, config.ImageEncoder):
        found["source embedding"] = picture_operations(c.encoder, sizes)
    found |= side_operations(c, c.encoder, "encoder", sizes.source, "S")
    read, letter = (sizes.source + sizes.target, "(S + T)") if alone else (sizes.target, "T")
    found |= side_operations(c, c.decoder, "decoder", read, letter)
    if looks_back(c) is not None:
        found |= lookup_operations(c, sizes)
    wide = getattr(c.encoder if fill else c.decoder, "width", 0)
    letter, length = ("S", sizes.source) if fill else ("T", sizes.target)
    found["output"] = Formula(f"2·{letter}·d·V", 2 * length * wide * sizes.vocabulary)
    return found | bridge_operations(c, sizes) | copy_operations(c, sizes)


def picture_operations(e: config.ImageEncoder, sizes: Sizes) -> Formula:
    if e.form == "patches":
        return Formula("2·S·p²·c·d", 2 * sizes.source * e.patch**2 * e.channels * e.width)
    return Formula("Σ 2·9·in·out·pixels", sum(18 * a * b * pixels for a, b, pixels in grid(e)))


def side_operations(c: config.Config, side: config.Section, name: str, length: int, letter: str) -> Formulas:
    """The network of one side that reads `length` positions."""
    if isinstance(side, config.RecurrentEncoder | config.RecurrentDecoder):
        gates, ways = CELLS[side.cell].gates, directions(side)
        each = side.width // ways
        value = sum(2 * length * ways * gates * each * (width + each) for width in cell_inputs(c, side))
        return {f"{name} cells": Formula(f"Σ {2 * ways}·{letter}·g·h·(in + h)", value)}
    if isinstance(side, config.ConvolutionalEncoder | config.ConvolutionalDecoder):
        value = 4 * side.layers * side.kernel * length * side.width**2
        return {f"{name} convolutions": Formula(f"4·L·k·{letter}·d²", value)}
    if blocks := blocks_of(side):
        found = block_operations(blocks, length, letter)
        return {f"{name} {label}": formula for label, formula in found.items()}
    return {}


def block_operations(b: Blocks, length: int, letter: str) -> Formulas:
    inner, matrices = b.feedforward or 4 * b.width, 3 if b.gated else 2
    early = "The source is read first and never looks at the target: that quarter is not computed."
    own = 2 * projected(b) * length * b.width**2
    text = terms(f"{2 * projected(b)}·{letter}·d²" if projected(b) else "", preparing_text(b, letter, letter))
    return {
        f"self-attention{PROJECTIONS}": Formula(
            times_layers(text), b.layers * (own + preparing(b, b.width, length, length))
        ),
        f"self-attention{COMPARISONS}": Formula(
            f"L·{comparing_text(b, f'{letter}²')}",
            b.layers * comparing(b, b.width, length, length),
            early if "+" in letter else "",
        ),
        "feed-forward": Formula(f"{2 * matrices}·L·{letter}·d·f", b.layers * 2 * matrices * length * b.width * inner),
    }


def lookup_operations(c: config.Config, sizes: Sizes) -> Formulas:
    look, wide, layers = looks_back(c), getattr(c.decoder, "width", 0), lookups(c)
    assert look is not None
    each = projected(look)
    own = each * (sizes.target * wide**2 + sizes.source * memory_width(c) * wide)
    own += preparing(look, wide, sizes.target, sizes.source)
    text = terms(f"{each}·T·d² + {each}·S·m·d" if each else "", preparing_text(look, "T", "S"))
    compared = comparing(look, wide, sizes.target, sizes.source)
    return {
        f"decoder cross-attention{PROJECTIONS}": Formula(times_layers(text) if layers > 1 else text, layers * own),
        f"decoder cross-attention{COMPARISONS}": Formula(
            f"{'L·' if layers > 1 else ''}{comparing_text(look, 'T·S')}", layers * compared
        ),
    }


def preparing(look: config.Lookup, width: int, queries: int, keys: int) -> int:
    """What a score does to queries and keys before it compares them."""
    head = width // look.heads
    each = {"bilinear": keys * head, "reduced-rank": (keys + queries) * look.rank, "additive": (keys + queries) * head}
    return 2 * width * each.get(look.score, 0)


def preparing_text(look: config.Lookup, queries: str, keys: str) -> str:
    both = f"({queries} + {keys})"
    each = {"bilinear": f"2·{keys}·d²/n", "reduced-rank": f"2·{both}·d·r", "additive": f"2·{both}·d²/n"}
    return each.get(look.score, "")


def comparing(look: config.Lookup, width: int, queries: int, keys: int) -> int:
    """Each query with each key, and the values mixed by what comes out."""
    compared = {"reduced-rank": look.heads * look.rank, "distance": width + look.heads, "mean": look.heads}
    return 2 * queries * keys * (compared.get(look.score, width) + width)


def comparing_text(look: config.Lookup, pairs: str) -> str:
    each = {"reduced-rank": f"2·{pairs}·(n·r + d)", "distance": f"2·{pairs}·(2·d + n)", "mean": f"2·{pairs}·(n + d)"}
    return each.get(look.score, f"4·{pairs}·d")


def bridge_operations(c: config.Config, sizes: Sizes) -> Formulas:
    d, memory = c.decoder, memory_width(c)
    if not isinstance(d, config.RecurrentDecoder):
        return {}
    means = 2 if d.context == "fixed" else 1
    made = d.layers * CELLS[d.cell].parts * d.width
    return {
        "bridge": Formula(f"2·{parts_text(d)}L·m·d", 2 * made * memory),
        "decoder join": Formula("4·T·d²", 4 * sizes.target * d.width**2),
        SUMMARY: Formula(f"{2 * means}·S·m", 2 * means * sizes.source * memory),
    }


# ── one layer, as the textbook writes it ─────────────────────────────────────────────────────────────────────────────


def layer(side: config.Section, length: int, letter: str) -> tuple[str, Formula, Formula]:
    """The label of a side's layers, and the textbook's parameters and multiply-adds for one of them."""
    width = getattr(side, "width", 0)
    if isinstance(side, config.RecurrentEncoder | config.RecurrentDecoder):
        gates = CELLS[side.cell].gates
        halves = ", each direction with half the width" if directions(side) == 2 else ""
        note = f"The textbook counts one matrix; {gates} × 2 are built, for {gates} gates from input and state{halves}."
        return "cells", Formula("d²", width**2, note), Formula(f"{letter}·d²", length * width**2, note)
    if isinstance(side, config.ConvolutionalEncoder | config.ConvolutionalDecoder):
        note, value = "The textbook counts one output for each input; the gate doubles them.", side.kernel * width**2
        return "convolutions", Formula("k·d²", value, note), Formula(f"k·{letter}·d²", length * value, note)
    if blocks := blocks_of(side):
        four = "The textbook counts one matrix; queries, keys, values and output have one each."
        more = f", and four projections of {letter}·d² each" if blocks.projections else ""
        note = f"The textbook counts one product of {letter}²·d; to compare and to mix there are two{more}."
        four = four if blocks.projections else "The textbook counts one matrix; without projections there is none."
        return "self-attention", Formula("d²", width**2, four), Formula(f"{letter}²·d", length**2 * width, note)
    return "", NOT_THERE, NOT_THERE


# ── the longest chain ────────────────────────────────────────────────────────────────────────────────────────────────


def encoder_steps(c: config.Config, source: int) -> Formula:
    """Steps one after the other: a loop waits at each position, everything else only at each layer."""
    e = c.encoder
    match e:
        case config.Nothing():
            return NOT_THERE
        case config.RecurrentEncoder():
            note = (
                "A layer waits for the whole layer below; as a wave front it would be S + L − 1."
                if e.layers > 1
                else ""
            )
            return Formula("L·S", e.layers * source, note)
        case config.ImageEncoder() if e.form == "grid":
            return Formula("convolutions", len(grid(e)))
        case config.ImageEncoder():
            return Formula("L + 1", e.layers + 1)
        case _:
            return Formula("L", e.layers)


def decoder_steps(c: config.Config, sizes: Sizes) -> Formula:
    """The whole target at once, as in training."""
    d = c.decoder
    if isinstance(d, config.RecurrentDecoder):
        if isinstance(c.encoder, config.Nothing):
            return Formula("S + L·T", sizes.source + d.layers * sizes.target)
        return Formula("L·T", d.layers * sizes.target)
    return Formula("L", getattr(d, "layers", 0))


def generation_steps(c: config.Config, sizes: Sizes) -> Formula:
    """One token after the other, each through all layers: here no network is parallel."""
    layers, source = getattr(c.decoder, "layers", 0), encoder_steps(c, sizes.source)
    if source.value is None:
        loops = isinstance(c.decoder, config.RecurrentDecoder)
        first = layers * sizes.source if loops else layers
        return Formula("L·S + L·T" if loops else "L + L·T", first + layers * sizes.target)
    return Formula(f"encoder + {'L·' if layers > 1 else ''}T", source.value + layers * sizes.target)


# ── paths ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def encoder_path(c: config.Config, source: int) -> Formula:
    """From the first source position to the state of the last."""
    e = c.encoder
    match e:
        case config.RecurrentEncoder():
            blind = "A loop from the end has not seen the start when it reads the last position."
            note = blind if e.directions == "backward" else ""
            return Formula("S + L − 1", source + e.layers - 1, note)
        case config.ConvolutionalEncoder():
            return stack_path(source - 1, e.kernel // 2, e.layers, "(S − 1) / ⌊k/2⌋")
        case config.AttentionEncoder():
            return Formula("1", int(source > 1))
        case config.ImageEncoder() if e.form == "patches":
            return Formula("2", 1 + int(source > 1), "One to make places of pixels, one look-up between places.")
        case config.ImageEncoder():
            return Formula(
                "", None, "A grid sees as far as its convolutions reach; no position of it looks at all others."
            )
        case _:
            return NOT_THERE


def target_path(c: config.Config, distance: int, letter: str) -> Formula:
    """From an input of the decoder to the output `distance` positions later."""
    d = c.decoder
    match d:
        case config.RecurrentDecoder():
            return Formula(f"{letter} + L − 1", distance + d.layers)
        case config.ConvolutionalDecoder():
            return stack_path(distance, d.kernel - 1, d.layers, f"({letter} − 1) / (k − 1)")
        case config.AttentionDecoder():
            return Formula("1", int(distance > 0))
        case _:
            return NOT_THERE


def stack_path(distance: int, reach: int, layers: int, text: str) -> Formula:
    """Convolutions needed to bridge a distance when each reaches so far."""
    needed = ceil(distance / reach) if reach else None
    note = ""
    if needed is None or needed > layers:
        note = f"Layers here: {layers}, each reaching {reach} further; at this distance there is no path."
    return Formula(f"⌈{text}⌉ layers", needed, note)


def source_path(c: config.Config, position: int, sizes: Sizes) -> Formula:
    """From a source position to the last output."""
    if isinstance(c.encoder, config.Nothing):
        distance = sizes.source - position + sizes.target - 1
        return target_path(c, distance, "S + T" if position == 0 else f"{sizes.source - position} + T")
    own = layers_through(c)
    if looks_back(c) is not None:
        texts = {"recurrent": "L + 1", "image": "convolutions + 1"}
        return Formula(texts.get(c.encoder.kind, "1"), own + 1)
    return bridged_path(c, position, sizes)


def layers_through(c: config.Config) -> int:
    """Steps that a source position takes to its own encoder state; residuals take none."""
    if isinstance(c.encoder, config.RecurrentEncoder):
        return c.encoder.layers
    if isinstance(c.encoder, config.ImageEncoder):
        return len(grid(c.encoder)) - c.encoder.layers if c.encoder.form == "grid" else 1
    return 0


def bridged_path(c: config.Config, position: int, sizes: Sizes) -> Formula:
    """Without attention all passes through one vector, into the first state or into every step."""
    d, e = c.decoder, c.encoder
    if not isinstance(d, config.RecurrentDecoder) or not isinstance(e, config.RecurrentEncoder):
        return NOT_THERE
    if d.bridge == "zero" and d.context == "none":
        return Formula("", None, "Nothing passes from the encoder to this decoder.")
    ways = {"forward": sizes.source - position, "backward": position + 1}
    near = min(ways.values()) if e.directions == "both" else ways[e.directions]
    to_vector, text = (e.layers + 1, "L + 1") if d.bridge == "mean" else (near + e.layers - 1, "way + L − 1")
    if d.context == "fixed":
        return Formula(f"{text} + L", to_vector + d.layers)
    note = (
        "The way to the vector is that of the nearer direction."
        if e.directions == "both" and d.bridge != "mean"
        else ""
    )
    return Formula(f"{text} + T", to_vector + sizes.target, note)
