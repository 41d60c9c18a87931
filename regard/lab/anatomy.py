"""A config in, what the built model costs out: parameters, operations, chain and path, each beside its formula.

Parameters and operations are counted on the model itself, built on the `meta` device, where it takes no memory; so are
the chains of encoder, decoder and training pass. Paths, and the chain of generating token by token, do not depend on
the width: they are counted on a twin with the same parts and layers, but narrow and with real numbers.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import chain as joined
from typing import Any

import torch
from torch import Tensor

from regard import config
from regard.errors import UsageError
from regard.lab import formulas
from regard.lab.count import Chain, Operations, apart, part
from regard.lab.formulas import NOT_THERE, Formula, Sizes
from regard.lab.paths import Paths
from regard.layers.rows import over
from regard.models.build import build, outline
from regard.models.model import Model

TOKENS = 64  # in the vocabulary of a twin
TWIN = {"width": 8, "embedding": 8, "feedforward": 8, "rank": 2}
SEVERAL = (
    "The textbook counts a layer's step as one; built, it is several in a row, with embedding and output round it."
)
LEGEND = (
    "S source · T target positions · V vocabulary · L layers · d width · e embedding · m encoder width\n"
    "h width of one direction · g gates · k kernel · f feed-forward · n heads · r rank · p pixels a side · c channels\n"
    "q width by which a copy head compares · – no formula · ∞ no path"
)


@dataclass(frozen=True)
class Count:
    """One line: what was counted on the built model, and what the textbook says of it."""

    what: str
    value: int | None  # None = there is no path
    formula: str = ""
    formula_value: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Anatomy:
    """All that is counted for one config at one length."""

    preset: str
    length: int
    vocabulary: int
    width: int
    parameters: list[Count]
    operations: list[Count]
    chain: list[Count]
    path: list[Count]


def usual_vocabulary(c: config.Config) -> int:
    """As many tokens as the config asks for; for characters and bytes, whose number the data decide, 320."""
    kind = c.tokens.source if isinstance(c.decoder, config.Nothing) else c.tokens.target
    return c.tokens.target_size or c.tokens.size if kind in ("words", "sentences", "bpe", "unigram") else 320


def anatomy(c: config.Config, length: int = 64, vocabulary: int | None = None) -> Anatomy:
    """Counts everything on the model that `c` describes, for a source and a target of `length` tokens."""
    if c.tokens.source == "spelled":
        raise UsageError("anatomy: how many letters a word has, the data decide; count with tokens.source=words")
    vocabulary = usual_vocabulary(c) if vocabulary is None else vocabulary
    for name, value in (("length", length), ("vocabulary", vocabulary)):
        if value < 1:
            raise UsageError(f"anatomy: {name} is {value}; expected 1 or more")
    sizes = Sizes(formulas.places(c, length), length, vocabulary)
    parts = count_parameters(outline(c, vocabulary, vocabulary))
    passed = run(c, outline(with_room(c, length), vocabulary, vocabulary).eval(), sizes)
    return Anatomy(
        preset=c.preset,
        length=length,
        vocabulary=vocabulary,
        width=getattr(c.encoder if isinstance(c.decoder, config.Nothing) else c.decoder, "width", 0),
        parameters=parameter_lines(c, parts, sizes),
        operations=operation_lines(c, passed, sizes),
        chain=list(chain_lines(c, passed, sizes)),
        path=list(path_lines(c, sizes)),
    )


def with_room(c: config.Config, length: int) -> config.Config:
    """The same config, with learned positions for at least `length` tokens."""
    longest = {"max_source": max(length, c.data.max_source)}
    if c.task not in config.BY_SOURCE:
        longest["max_target"] = max(length, c.data.max_target)
    return config.check_tree(config.lay(config.to_tree(c), {"data": longest}), "anatomy")


def twin(c: config.Config, length: int) -> Model:
    """The same parts, layers and kernels at a width of 8: paths and chains are those of the model itself."""
    return build(narrow(c, length), TOKENS, TOKENS).eval()


def narrow(c: config.Config, length: int) -> config.Config:
    """Copied without checking: what makes no sense in a twin does nothing there."""
    room = with_room(c, length)
    sides = {}
    for name in ("encoder", "decoder"):
        side = getattr(room, name)
        changed = {key: value for key, value in TWIN.items() if getattr(side, key, None) is not None}
        changed |= {"heads": 2} if getattr(side, "heads", 1) > 1 else {}
        sides[name] = side.model_copy(update=changed)
    return room.model_copy(update=sides)


def inputs(c: config.Config, sizes: Sizes, rows: int, device: str) -> tuple[Tensor, Tensor]:
    """A source and a target without padding."""
    target_BT = torch.arange(sizes.target, device=device).expand(rows, -1) % sizes.vocabulary
    if isinstance(c.encoder, config.ImageEncoder):
        return torch.ones(rows, c.encoder.channels, c.encoder.size, c.encoder.size, device=device), target_BT
    return torch.arange(sizes.source, device=device).expand(rows, -1) % sizes.vocabulary, target_BT


# ── parameters ───────────────────────────────────────────────────────────────────────────────────────────────────────


def count_parameters(model: Model) -> Counter[str]:
    """Parameters by part; weights that are tied stand where they are first used."""
    found: Counter[str] = Counter()
    read, written = (getattr(each, "table", None) for each in (model.source_embedding, model.target_embedding))
    shared = read is not None and read is written
    for name, weight in model.named_parameters():
        label = part(name) or name
        found["source and target embedding" if shared and label == "source embedding" else label] += weight.numel()
    return found


def parameter_lines(c: config.Config, parts: Counter[str], sizes: Sizes) -> list[Count]:
    lines = beside(parts, formulas.parameters(c, sizes.vocabulary))
    return [*lines, total(lines), *layer_lines(c, parts, sizes, 0)]


def beside(measured: Counter[str], expected: formulas.Formulas) -> list[Count]:
    return [line(what, value, expected.get(what, NOT_THERE)) for what, value in measured.items() if value]


def line(what: str, value: int | None, formula: Formula, note: str = "") -> Count:
    return Count(what, value, formula.text, formula.value, formula.note or note)


def total(lines: list[Count]) -> Count:
    """The sum of measured values, beside the sum of all formulas."""
    known = [one.formula_value for one in lines if one.formula_value is not None]
    whole = sum(known) if len(known) == len(lines) else None
    measured = sum(one.value or 0 for one in lines)
    note = "" if measured == whole else "The sum differs where a part above does."
    return Count("total", measured, "sum of the above", whole, note)


def layer_lines(c: config.Config, parts: Counter[str], sizes: Sizes, which: int) -> Iterator[Count]:
    """One layer of each side against the textbook's single term: its parameters (0) or its multiply-adds (1)."""
    sides = (("encoder", c.encoder, sizes.source, "S"), ("decoder", c.decoder, sizes.target, "T"))
    for name, side, length, letter in sides:
        if name == "decoder" and isinstance(c.encoder, config.Nothing):
            length, letter = sizes.source + sizes.target, "(S + T)"
        label, *terms = formulas.layer(side, length, letter)
        if label:
            whole = sum(value for what, value in parts.items() if what.startswith(f"{name} {label}"))
            each = whole // getattr(side, "layers", 1) // (2 if which else 1)
            unit = ", multiply-adds" if which else ""
            yield line(f"one layer of {name} {label}{unit}", each, terms[which])


# ── operations and chain ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Pass:
    """What one training pass was seen to do, and the generation of as many tokens."""

    products: Counter[str]
    elementwise: int
    encoder: Chain | None
    decoder: Chain | None
    whole: Chain
    generation: Chain | None


def run(c: config.Config, model: Model, sizes: Sizes) -> Pass:
    """Encoder, decoder and output once, all of the target at once."""
    seen = Operations(model)
    with seen.watching(model):
        source, target_BT = inputs(c, sizes, 1, "meta")
        memory = model.encode(seen.follow(source))
        if model.decoder is None:
            logits = model.output(memory.states_BSM)
        else:
            logits, _ = model.decode(seen.follow(target_BT), memory, model.start(memory))
    both = model.decoder is not None and not model.prefix
    return Pass(
        products=seen.products,
        elementwise=seen.elementwise,
        encoder=None if model.prefix else seen.chain(memory.states_BSM),
        decoder=decoder_chain(model, memory, target_BT) if both else None,
        whole=seen.chain(logits),
        generation=None if model.decoder is None else generation_chain(c, sizes),
    )


def decoder_chain(model: Model, memory: Any, target_BT: Tensor) -> Chain:
    """From encoder states that are simply there, and the whole target, to the logits."""
    seen = Operations(model)
    assert model.decoder is not None
    with seen.watching(model):
        # A mask tells of no token; what is made from it alone is on no chain.
        given = over(memory, lambda leaf: leaf if leaf.dtype == torch.bool else seen.follow(leaf))
        given = model.decoder.read(given)
        logits, _ = model.decode(seen.follow(target_BT), given, model.start(given))
    return seen.chain(logits)


def generation_chain(c: config.Config, sizes: Sizes) -> Chain:
    """Source to the last of T tokens, each chosen before the next is begun."""
    model, sizes = twin(c, sizes.target), replace(sizes, vocabulary=TOKENS)
    seen = Operations(model)
    with seen.watching(model):
        source, target_BT = inputs(c, sizes, 1, "cpu")
        reading, token_R = model.reading(seen.follow(source)), seen.follow(target_BT[:, 0])
        for _ in range(sizes.target):
            logits_RV, reading = model.step(token_R, reading)
            token_R = logits_RV.argmax(-1)
    return seen.chain(token_R)


def operation_lines(c: config.Config, passed: Pass, sizes: Sizes) -> list[Count]:
    lines = beside(passed.products, formulas.operations(c, sizes))
    made = "One for each number made by a sum, a gate, a norm or a softmax; the textbook leaves them out."
    elementwise = Count("elementwise, all parts", passed.elementwise, note=made)
    whole = total(lines)
    return [*lines, whole, elementwise, *layer_lines(c, passed.products, sizes, 1)]


def chain_lines(c: config.Config, passed: Pass, sizes: Sizes) -> Iterator[Count]:
    encoder, decoder = formulas.encoder_steps(c, sizes.source), formulas.decoder_steps(c, sizes)
    if passed.encoder is not None:
        yield from chain_pair("encoder", passed.encoder, encoder)
    if passed.decoder is not None:
        yield from chain_pair("decoder, all of the target at once", passed.decoder, decoder)
    steps = (encoder.value or 0) + (decoder.value or 0)
    both = passed.decoder is not None
    whole = Formula("encoder + decoder", steps) if both else decoder if passed.encoder is None else encoder
    yield from chain_pair("training pass, source to output", passed.whole, whole)
    if passed.generation is not None:
        yield from chain_pair("generating token by token", passed.generation, formulas.generation_steps(c, sizes))


def chain_pair(what: str, measured: Chain, steps: Formula) -> Iterator[Count]:
    """The chain in all operations and in products alone, against the textbook's steps."""
    for unit, value in (("operations", measured.operations), ("products", measured.products)):
        note = SEVERAL if value != steps.value and steps.value is not None else ""
        yield Count(f"{what}: {unit}", value, steps.text, steps.value, steps.note or note)


# ── paths ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def path_lines(c: config.Config, sizes: Sizes) -> Iterator[Count]:
    """Each path in the textbook's steps, beside the formula, and in operations, for which no textbook has one."""
    steps, operations = (find_paths(c, sizes, counted) for counted in (True, False))
    for what, formula in path_formulas(c, sizes).items():
        yield line(f"{what}: steps", steps[what], formula)
        yield Count(f"{what}: operations", operations[what])


def path_formulas(c: config.Config, sizes: Sizes) -> formulas.Formulas:
    """The paths that are looked for, in the order of the table."""
    found: formulas.Formulas = {}
    if not isinstance(c.encoder, config.Nothing):
        found["first source position to last encoder state"] = formulas.encoder_path(c, sizes.source)
    if isinstance(c.decoder, config.Nothing):
        return found | {"first source position to last output": formulas.encoder_path(c, sizes.source)}
    for where, at in marks(sizes.source).items():
        found[f"{where} source position to last output"] = formulas.source_path(c, at, sizes)
    found["first target token to last output"] = formulas.target_path(c, sizes.target - 1, "T")
    hidden = "The future is hidden: what comes later is felt by no earlier output."
    return found | {"last target token to first output": Formula("", None, hidden if sizes.target > 1 else "")}


def marks(source: int) -> dict[str, int]:
    return {"first": 0, "middle": source // 2, "last": source - 1}


def find_paths(c: config.Config, sizes: Sizes, steps: bool) -> dict[str, int | None]:
    """Runs the twin with five marks, one in each row: three in the source, two in the target."""
    model, sizes = twin(c, sizes.target), replace(sizes, vocabulary=TOKENS)
    source, target_BT = inputs(c, sizes, 5, "cpu")
    source_at, target_at_BT = torch.zeros_like(source, dtype=torch.bool), torch.zeros_like(target_BT, dtype=torch.bool)
    for row, at in enumerate(marks(sizes.source).values()):
        set_mark(c, source_at[row], at)
    target_at_BT[3, 0] = target_at_BT[4, -1] = True
    paths, found = Paths(model, steps), {}
    with apart(), paths:
        memory = model.encode(paths.mark(source, source_at))
        found["first source position to last encoder state"] = paths.least(memory.states_BSM[0, -1])
        if model.decoder is None:
            logits = model.output(memory.states_BSM)
        else:
            logits, _ = model.decode(paths.mark(target_BT, target_at_BT), memory, model.start(memory))
        for row, where in enumerate(marks(sizes.source)):
            found[f"{where} source position to last output"] = paths.least(logits[row, -1])
        found["first target token to last output"] = paths.least(logits[3, -1])
        found["last target token to first output"] = paths.least(logits[4, 0])
    return found


def set_mark(c: config.Config, at: Tensor, position: int) -> None:
    """Marks a token, or all pixels of a place."""
    if not isinstance(c.encoder, config.ImageEncoder):
        at[position] = True
        return
    row, column = divmod(position, c.encoder.size // c.encoder.patch)
    patch = c.encoder.patch
    at[:, row * patch : (row + 1) * patch, column * patch : (column + 1) * patch] = True


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────


def as_dict(a: Anatomy) -> dict[str, Any]:
    """The anatomy as plain values, for JSON."""
    return asdict(a)


def render(a: Anatomy) -> str:
    """A table for the terminal: measured beside formula, and below what explains the differences."""
    sections = {
        "parameters": a.parameters,
        f"operations of one pass, 2 for each multiply-add; {a.length} tokens": a.operations,
        "longest chain of dependent operations": a.chain,
        "shortest path": a.path,
    }
    notes = list(dict.fromkeys(one.note for one in joined.from_iterable(sections.values()) if one.note))
    cells = {title: [row(one, notes) for one in lines] for title, lines in sections.items()}
    widths = [max(len(r[i]) for rows in cells.values() for r in rows) for i in range(4)]
    head = f"{a.preset or 'model'}: width {a.width}, length {a.length}, vocabulary {a.vocabulary:,}"
    text = [head, "", line_of(("", "measured", "formula", "its value", ""), widths)]
    for title, rows in cells.items():
        text += ["", title, *(line_of(r, widths) for r in rows)]
    return "\n".join([*text, "", *(f"{i}. {note}" for i, note in enumerate(notes, 1)), "", LEGEND])


def row(one: Count, notes: list[str]) -> tuple[str, ...]:
    value = "∞" if one.value is None else f"{one.value:,}"
    expected = "–" if one.formula_value is None else f"{one.formula_value:,}"
    mark = f"  ({notes.index(one.note) + 1})" if one.note else ""
    return f"  {one.what}", value, one.formula or "–", expected, mark


def line_of(r: tuple[str, ...], widths: list[int]) -> str:
    what, measured, formula, value, mark = r
    aligned = f"{what:<{widths[0]}}  {measured:>{max(widths[1], 8)}}  {formula:<{widths[2]}}"
    return f"{aligned}  {value:>{max(widths[3], 9)}}{mark}".rstrip()
