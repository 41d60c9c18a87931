"""The ten pages in the order of the lineage: title, three sentences, the settings that make the model small."""

from collections.abc import Callable
from dataclasses import dataclass

from regard.lab.lesson import curves
from regard.lab.lesson.curves import Curve, Taught
from regard.tasks.fill import HOLE

EXAMPLE = "Saturday 9th of May, 2018"
HOLES = f"Satur{HOLE}ay 9th of M{HOLE}y, 2018"


@dataclass(frozen=True)
class Page:
    """One system: what is said of it, what its small model is made of, and what is measured."""

    name: str
    title: str
    sentences: tuple[str, str, str]
    settings: tuple[str, ...]  # over the preset of the same name
    curve: Callable[[Taught], Curve]
    data: str = "dates"
    example: str = EXAMPLE


PAGES = (
    Page(
        "rnn-single",
        "One recurrent network reads, then writes",
        (
            "One recurrent network reads the source character by character, meets a separator, and goes on "
            "writing as a language model does.",
            "Only the use is new: whatever it still knows of the source when it begins to write is held in one "
            "state, and every character that it writes changes this state.",
            "It learns to go on from true characters and has to go on from its own, so that a slip is carried "
            "along; the curve sets the two side by side.",
        ),
        ("decoder.width=128", "decoder.embedding=32"),
        curves.exposure,
    ),
    Page(
        "rnn",
        "Two recurrent networks joined by one vector",
        (
            "An encoder reads and a decoder writes, each with weights of its own, and the decoder starts from the "
            "state in which the encoder has ended.",
            "The two may now differ in kind and size, but all that is known of the source must pass through one "
            "vector of fixed width.",
            "The longer the source, the more this vector has to hold: of letters to be written backwards, long "
            "ones come out whole less often than short ones.",
        ),
        ("encoder.width=128", "encoder.embedding=32", "decoder.width=128", "decoder.embedding=32"),
        curves.bottleneck,
    ),
    Page(
        "rnn-context",
        "The same vector at every step",
        (
            "The decoder is handed the vector of the source at every step, beside the last character that it "
            "wrote.",
            "It need not keep in its own state what it was asked, at the price of a wider input and more weights.",
            "It is still one vector of fixed width: on the same letters it falls with their number, too.",
        ),
        ("encoder.width=72", "encoder.embedding=32", "decoder.width=72", "decoder.embedding=32"),
        curves.context,
    ),
    Page(
        "rnn-attention",
        "The decoder looks back at every state",
        (
            "At each step the decoder compares its state with every state of the encoder, and reads a mixture of "
            "them in which those that fit best weigh most.",
            "Nothing has to pass through one vector any more, and nobody said where to look: most characters of the "
            "answer have found the year, month or day that tells them.",
            "It costs one comparison for each pair of a source and a target position.",
        ),
        ("encoder.width=64", "encoder.embedding=32", "decoder.width=64", "decoder.embedding=32"),
        curves.alignment,
    ),
    Page(
        "conv",
        "Windows instead of loops",
        (
            "Convolutions take the place of both loops: each position sees a few neighbours, and each layer that "
            "is stacked on top sees a little further.",
            "All positions are computed at once, so that a training pass is as deep as there are layers, however "
            "long the text is.",
            "Two positions far apart meet only after many layers: fewer than the steps of a loop, and still more "
            "the further they are apart.",
        ),
        ("encoder.width=36", "encoder.layers=2", "decoder.width=36", "decoder.layers=2", "decoder.kernel=3",
         "data.max_source=64", "data.max_target=64"),
        curves.reach,
    ),
    Page(
        "attention-encoder",
        "An encoder without a loop",
        (
            "Every source position looks at every other one through self-attention; the decoder is the recurrent "
            "one of before, and looks at the outcome.",
            "To read a long text takes no more steps in a row than to read a short one, where a recurrent encoder "
            "takes one for each token.",
            "Order has to be told by a signal that is added to each token, and the comparisons grow with the "
            "square of the length.",
        ),
        ("encoder.width=40", "encoder.feedforward=80", "encoder.dropout=0", "decoder.width=56",
         "decoder.embedding=32"),
        curves.chain,
    ),
    Page(
        "transformer",
        "No loop left in training",
        (
            "The decoder is self-attention as well, with the future hidden from it, so that in training all of "
            "the target goes through in one pass.",
            "Several heads look at several things at once, each in its slice of the width, so that together they "
            "cost as much as one.",
            "Only training is parallel: whoever writes token by token still waits for each before the next.",
        ),
        ("encoder.width=40", "encoder.feedforward=80", "encoder.dropout=0",
         "decoder.width=40", "decoder.feedforward=80", "decoder.dropout=0"),
        curves.parallel,
    ),
    Page(
        "decoder",
        "One stack reads and writes",
        (
            "The encoder is gone: one causal stack reads the source as the beginning of a text and goes on with "
            "the target.",
            "One kind of layer is left, without attention across, and each position looks at all before it, be "
            "they read or written.",
            "Keys and values of what was seen are kept, which takes memory; without them each new token would "
            "cost a pass over all others.",
        ),
        ("decoder.width=40", "decoder.feedforward=80", "decoder.dropout=0"),
        curves.keeping,
    ),
    Page(
        "encoder",
        "One stack that only reads",
        (
            "The decoder is gone: every position looks to both sides, and there is one output for each position "
            "of the input.",
            "It writes nothing by itself: it learns to fill what was hidden, and what it has learnt can carry "
            "other heads, such as a class, a label for each word or a vector for the whole.",
            "Each hole is filled without knowing what stands in the others, and only with what the rest of the "
            "text tells: letters of a name can be found, most digits can not.",
        ),
        ("encoder.width=48", "encoder.feedforward=96", "encoder.dropout=0", "fill.share=0.3"),
        curves.holes,
        example=HOLES,
    ),
    Page(
        "caption",
        "A picture as the source",
        (
            "The source is a picture, cut into a grid of places; the decoder is recurrent again, with attention "
            "over places instead of characters.",
            "The two halves speak through a row of states alone, so that one can be exchanged without the other "
            "noticing.",
            "Each word costs a look at all places, and the looks can be checked: the curve tells how much of them "
            "falls on the shape that is being described.",
        ),
        ("encoder.width=32", "decoder.width=64", "decoder.embedding=32"),
        curves.places,
        data="captions",
        example="picture",
    ),
)  # fmt: skip
