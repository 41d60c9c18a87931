"""Ten trained models in, one curve for each page out: measured on held-out examples, or counted on the built model."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard import config
from regard.data.builtin import captions, dates
from regard.lab.anatomy import find_paths, generation_chain, inputs, with_room
from regard.lab.count import Chain, Operations
from regard.lab.formulas import Sizes
from regard.models.build import outline
from regard.models.model import Model
from regard.report import report
from regard.tasks.fill import HOLE
from regard.tasks.task import Item
from regard.trained import Trained

Curve = dict[str, Any]
Point = tuple[float, float]

ALL = "regard demo --all"
LOOKED = 200  # examples that are looked into
FILLED = 300  # dates in which digits are hidden
LENGTHS = (8, 16, 24, 32, 48, 64)
APART = (1, 4, 8, 16, 24, 32)
DEEP = 16  # layers of a convolution that reach as far as the furthest of these
VOCABULARY = 64
PARTS = {0: dates.YEAR, 1: dates.YEAR, 2: dates.YEAR, 3: dates.YEAR, 5: dates.MONTH, 6: dates.MONTH,
         8: dates.DAY, 9: dates.DAY}  # fmt: skip # what the characters of 2018-05-09 tell


@dataclass(frozen=True)
class Taught:
    """The models of the ten pages by name, those that learnt to reverse, and files with held-out examples."""

    models: dict[str, Trained]
    reversing: dict[str, Trained]
    dates: Path
    letters: Path


def curve(title: str, x: str, y: str, series: Mapping[str, Sequence[Point]], command: str) -> Curve:
    made = [{"name": name, "points": [[round(float(a), 3), round(float(b), 3)] for a, b in points]}
            for name, points in series.items()]  # fmt: skip
    return {"title": title, "x": x, "y": y, "series": made, "command": command}


# ── on held-out examples ─────────────────────────────────────────────────────────────────────────────────────────────


def exposure(taught: Taught) -> Curve:
    """The next character given the true ones before it, and given the model's own."""
    model = taught.models["rnn-single"]
    items, examples = model.examples(taught.dates)
    found = report(model, model.judge(items, examples), examples, items)["exposure"]["by_position"]
    series = {"true before it": "forced", "its own": "free"}
    points = {name: [(each["position"], each[key]) for each in found] for name, key in series.items()}
    return curve("Characters right, going on from true ones and from its own", "character of the date", "right, %",
                 points, ALL)  # fmt: skip


def bottleneck(taught: Taught) -> Curve:
    return by_length(taught, ["rnn"])


def context(taught: Taught) -> Curve:
    return by_length(taught, ["rnn", "rnn-context"])


def by_length(taught: Taught, names: Iterable[str]) -> Curve:
    """How many words come out backwards without a slip, by the number of their letters."""
    series = {name: right_by_length(taught.reversing[name], taught.letters) for name in names}
    return curve("Letters written backwards without a slip", "letters", "exact match, %", series, ALL)


def right_by_length(model: Trained, path: Path) -> list[Point]:
    _, examples = model.examples(path)
    answers = model.run([example.source[0] for example in examples])
    groups: dict[int, list[bool]] = {}
    for example, answer in zip(examples, answers, strict=True):
        groups.setdefault(len(example.source[0]), []).append(answer.text == example.target)
    return [(length, 100.0 * float(np.mean(found))) for length, found in sorted(groups.items())]


def alignment(taught: Taught) -> Curve:
    """How much of each character's attention falls on the part of the source that tells it."""
    model = taught.models["rnn-attention"]
    looked: dict[int, list[float]] = {place: [] for place in PARTS}
    even: dict[int, list[float]] = {place: [] for place in PARTS}
    for source, _, where in dates.marked(LOOKED, 0, "test"):
        record = model.look(source)
        weights = record.alignment()
        if weights is None or len(record.target) < len("2018-05-09"):
            continue
        for place, part in PARTS.items():
            first, after = where[part]
            looked[place].append(float(weights[place, first:after].sum()))
            even[place].append((after - first) / len(record.source))
    series = {name: shares(found) for name, found in (("attention", looked), ("if it were even", even))}
    return curve("Attention on the year, month or day that a character tells", "character of the date",
                 "share of attention, %", series, ALL)  # fmt: skip


def shares(found: dict[int, list[float]]) -> list[Point]:
    return [(place + 1, 100.0 * float(np.mean(each))) for place, each in found.items() if each]


def holes(taught: Taught) -> Curve:
    """Letters and digits that are filled in as they were, by how many characters are hidden."""
    model, draw = taught.models["encoder"], random.Random(0)
    _, examples = model.examples(taught.dates)
    texts = [example.source[0] for example in examples[:FILLED]]
    series: dict[str, list[Point]] = {"letters": [], "digits": []}
    for count in range(1, 9):
        found: dict[str, list[bool]] = {name: [] for name in series}
        hidden = [sorted(draw.sample([at for at, sign in enumerate(text) if sign.isalnum()], count)) for text in texts
                  if sum(map(str.isalnum, text)) >= 8]  # fmt: skip
        long = [text for text in texts if sum(map(str.isalnum, text)) >= 8]
        answers = model.run([with_holes(text, places) for text, places in zip(long, hidden, strict=True)])
        for text, places, answer in zip(long, hidden, answers, strict=True):
            for at in places:
                found["digits" if text[at].isdigit() else "letters"].append(answer.text[at : at + 1] == text[at])
        for name, each in found.items():
            series[name].append((count, 100.0 * float(np.mean(each))))
    return curve("Hidden characters filled in as they were", "characters hidden", "right, %", series, ALL)


def with_holes(text: str, places: Sequence[int]) -> str:
    return "".join(HOLE if place in places else letter for place, letter in enumerate(text))


def places(taught: Taught) -> Curve:
    """How much of each word's attention falls on the first and on the second shape of a picture."""
    model = taught.models["caption"]
    found: tuple[dict[int, list[float]], ...] = ({}, {})
    two = [each for each in captions.drawings(2 * LOOKED, 1, "test") if len(each.shapes) == 2][:LOOKED]
    for drawing in two:
        record = model.look("picture", item=seen(drawing))
        weights, words = record.alignment(), record.output.split(" ")
        if weights is None or record.picture is None or words.count("and") != 1:
            continue
        second = words.index("and") + 1
        for number, word in enumerate([*range(4), *range(second, second + 4)]):  # a, size, colour, kind
            for shape, into in zip(drawing.shapes, found, strict=True):
                on = touched(shape, record.picture.rows, record.picture.columns)
                into.setdefault(number, []).append(float(weights[word][on].sum()) if word < len(weights) else 0.0)
    series = {name: shares(each) for name, each in zip(("first shape", "second shape"), found, strict=True)}
    return curve("Attention on each of two shapes", "1–4: a, size, colour, kind of the first; 5–8: of the second",
                 "share of attention, %", series, ALL)  # fmt: skip


def seen(drawing: captions.Drawing) -> Item:
    """A drawing as a model reads it."""
    pixels = captions.paint(drawing).astype(np.float32) / np.float32(255)
    return Item((), (), np.ascontiguousarray(pixels.transpose(2, 0, 1)))


def touched(shape: captions.Shape, rows: int, columns: int) -> NDArray[np.bool_]:
    """The places of a grid that a shape covers a pixel of, row by row."""
    inside = captions.covered(shape).reshape(rows, captions.SIDE // rows, columns, captions.SIDE // columns)
    found: NDArray[np.bool_] = inside.any((1, 3)).reshape(-1)
    return found


# ── on the built model ───────────────────────────────────────────────────────────────────────────────────────────────


def reach(taught: Taught) -> Curve:
    """Steps from the first source position to the last state of the encoder."""
    words = {"recurrent": ("rnn-attention", []), "convolution": ("conv", [f"encoder.layers={DEEP}"]),
             "self-attention": ("attention-encoder", [])}  # fmt: skip
    series = {}
    for name, (preset, more) in words.items():
        c = config.resolve(preset, None, more)
        found = {apart: find_paths(c, Sizes(apart + 1, 2, VOCABULARY), True) for apart in APART}
        steps = {apart: each["first source position to last encoder state"] for apart, each in found.items()}
        series[name] = [(apart, value) for apart, value in steps.items() if value is not None]
    command = f"regard anatomy conv --length 33 --set encoder.layers={DEEP}"
    return curve("Steps from one position of the source to another", "positions apart", "shortest path, steps", series,
                 command)  # fmt: skip


def chain(taught: Taught) -> Curve:
    """Operations that wait for one another while the source is read."""
    presets = {"recurrent": "rnn-attention", "self-attention": "attention-encoder"}
    series = {name: by_tokens(taught.models[preset].config, encoder_chain) for name, preset in presets.items()}
    return curve("Operations in a row while the source is read", "source tokens", "longest chain", series,
                 "regard anatomy attention-encoder --length 64")  # fmt: skip


def parallel(taught: Taught) -> Curve:
    """Operations that wait for one another in a training pass, and in writing token by token."""
    c = taught.models["transformer"].config
    series = {"training": by_tokens(c, training_chain),
              "writing": by_tokens(c, lambda c, sizes: generation_chain(c, sizes).operations)}  # fmt: skip
    return curve("Operations in a row from source to last output", "tokens of source and target", "longest chain",
                 series, "regard anatomy transformer --length 64")  # fmt: skip


def keeping(taught: Taught) -> Curve:
    """Multiply-adds of writing as many tokens as were read, with what was seen kept, and without."""
    c = taught.models["decoder"].config
    return curve("Multiply-adds of writing as many tokens as were read", "tokens of source and target", "millions",
                 {"kept": by_tokens(c, step_by_step), "not kept": by_tokens(c, from_the_start)}, ALL)  # fmt: skip


def by_tokens(c: config.Config, measure: Callable[[config.Config, Sizes], float]) -> list[Point]:
    return [(length, measure(c, Sizes(length, length, VOCABULARY))) for length in LENGTHS]


def bare(c: config.Config, sizes: Sizes) -> Model:
    """The model with room for so many tokens, and without numbers: only what it would do is counted."""
    return outline(with_room(c, sizes.target), sizes.vocabulary, sizes.vocabulary).eval()


def encoder_chain(c: config.Config, sizes: Sizes) -> float:
    model = bare(c, sizes)
    seen = Operations(model)
    with seen.watching(model):
        memory = model.encode(seen.follow(inputs(c, sizes, 1, "meta")[0]))
    return seen.chain(memory.states_BSM).operations


def training_chain(c: config.Config, sizes: Sizes) -> float:
    model = bare(c, sizes)
    seen = Operations(model)
    with seen.watching(model):
        source, target_BT = inputs(c, sizes, 1, "meta")
        memory = model.encode(seen.follow(source))
        logits, _ = model.decode(seen.follow(target_BT), memory, model.start(memory))
    found: Chain = seen.chain(logits)
    return found.operations


def step_by_step(c: config.Config, sizes: Sizes) -> float:
    model = bare(c, sizes)
    seen = Operations(model)
    with seen.watching(model):
        source, target_BT = inputs(c, sizes, 1, "meta")
        reading = model.reading(source)
        for place in range(sizes.target):
            _, reading = model.step(target_BT[:, place], reading)
    return seen.products.total() / 2e6


def from_the_start(c: config.Config, sizes: Sizes) -> float:
    model = bare(c, sizes)
    seen = Operations(model)
    with seen.watching(model):
        source, target_BT = inputs(c, sizes, 1, "meta")
        for place in range(sizes.target):
            memory = model.encode(source)
            model.decode(target_BT[:, : place + 1], memory, model.start(memory))
    return seen.products.total() / 2e6
