"""TOML and `a.b=c` words in, one checked Config out: every setting of the project stands on this page.

A config is laid in four layers, each over the one before: the defaults here, a preset (`regard/presets/*.toml`), a
file (`--config`), the words of the command line (`--set encoder.layers=4`). What contradicts itself is refused here,
before anything is built.
"""

import tomllib
import warnings
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from regard.errors import ConfigError, MissingError

Positive = Annotated[int, Field(ge=1, le=1_000_000)]
Layers = Annotated[int, Field(ge=1, le=1000)]
Share = Annotated[float, Field(ge=0.0, lt=1.0, allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


def as_names(value: Any) -> Any:
    """Columns as the command line writes them: `lemma,tags`, or a position as a number."""
    if isinstance(value, str):
        return tuple(each.strip() for each in value.split(",") if each.strip())
    listed = [value] if type(value) is int else value
    return tuple(str(each) if type(each) is int else each for each in listed) if isinstance(listed, list) else listed


Name = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) is int else value)]
Names = Annotated[tuple[str, ...], BeforeValidator(as_names)]

Kind = Literal["characters", "bytes", "words", "bpe", "unigram"]
SourceKind = Literal["characters", "jamo", "bytes", "words", "bpe", "unigram", "spelled", "sentences"]
ScoreName = Literal["dot", "scaled", "bilinear", "reduced-rank", "additive", "distance", "mean"]
PositionName = Literal["sinusoidal", "learned", "relative", "rotary", "sinusoidal+rotary", "alibi", "none"]
CellName = Literal["elman", "gru", "lstm"]
TaskName = Literal["transduce", "generate", "fill", "classify", "tag", "embed", "extract", "caption"]

TASKS: tuple[str, ...] = get_args(TaskName)
READING = ("fill", "classify", "tag", "embed", "extract")  # tasks that answer from what was read, and write no target
LABELLED = ("classify", "tag")  # … and whose targets are labels
ENDLESS = 1_000_000  # steps, the most that can be said: minutes end such a run
LONG = 1024  # tokens of a source whose words are spelled: some 200 words
ONE_SIDE = ("embed", "extract")  # … or texts in the tokens of the source
BY_SOURCE = ("tag", "embed")  # tasks whose targets may be as long as sources, so that data.max_source bounds both
USUAL = {"generate": "decoder", "fill": "encoder", "caption": "caption"}  # presets for tasks; rnn-attention for others

# Settings that are idle for some tasks; a preset may hold them, and whoever asks for one is told.
IDLE = (
    ("search", ("beam", "length_penalty", "length_ratio", "length_extra"), READING, "nothing is searched for"),
    ("search", ("length_ratio", "length_extra"), ("generate",), "there is no source that could be so much longer"),
    ("fill", ("share", "mask", "random"), tuple(task for task in TASKS if task != "fill"), "no token is hidden"),
    ("train", ("agreement",), (*READING, "generate"), "no source is turned into a target twice"),
    ("tokens", ("target", "target_size", "shared"), READING, "no target is written"),
    ("tokens", ("source",), ("generate", "caption"), "there is no source of tokens"),
    ("data", ("max_source",), ("generate", "caption"), "there is no source of tokens"),
    ("data", ("max_target",), ("fill", "classify"), "there is no target of tokens"),
)

WORDS = ("literal_error", "union_tag_invalid")  # what pydantic calls a word that is none of those expected

# Kinds of tokens that cut a text in a like way, so that many are the same on both sides.
ALIKE = {"characters": "characters", "bytes": "characters", "words": "words", "bpe": "subwords", "unigram": "subwords",
         "sentences": "sentences", "jamo": "jamo"}  # fmt: skip

TOLD = 3  # settings that are named where others are asked for

# Positions that act on embeddings serve any network; the others act inside self-attention.
ADDED = ("sinusoidal", "learned", "none")
TURNABLE = ("dot", "scaled", "distance")  # scores that are products of what rotary positions turn


class Section(BaseModel):
    """A group of settings: unknown words are refused, values never change after checking."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def unset(cls, given: Any) -> Any:
        """The word `none` takes back a setting that may be none."""
        if not isinstance(given, dict):
            return given
        may = {name for name, field in cls.model_fields.items() if type(None) in get_args(field.annotation)}
        return {name: None if value == "none" and name in may else value for name, value in given.items()}

    def refuse_idle(self, names: tuple[str, ...], where: str, why: str) -> None:
        """Settings that would do nothing here are refused when they were changed."""
        for name in names:
            if getattr(self, name) != type(self).model_fields[name].default:
                refuse(f"{where}.{name}", why)


# ── data and tokens ──────────────────────────────────────────────────────────────────────────────────────────────────


class Data(Section):
    """What is read from the file."""

    source: Names = ()  # columns by name or position from 1; () = the first of two
    target: Name = ""  # one column; "" = the second of two
    tags: Names = ()  # source columns whose words are tags, each one token
    max_source: Positive = 256  # tokens; longer lines are left out of training and cut, with a warning, in `run`
    max_target: Positive = 256
    skip_bad: bool = False  # leave bad lines out instead of stopping
    images: str = ""  # caption: an .npz with the pictures, whose row numbers stand in the source column; "" = paths do
    jitter: Annotated[int, Field(ge=0, le=4096)] = 0  # caption: pixels by which pictures are shifted in training
    zoom: Share = 0.0  # caption: share by which pictures become higher and wider, or less so, in training
    recolour: Share = 0.0  # caption: how far colours of pictures are bent in training: powers up to 1 + this


class Tokens(Section):
    """What a token is, on each side."""

    source: SourceKind = "characters"  # jamo = Hangul by its letters; spelled = words with their characters
    target: Kind = "characters"
    size: Positive = 8000  # of a vocabulary: words, bpe or unigram pieces, characters at most
    target_size: Positive | None = None  # of the target's, where it has its own; none = size
    shared: bool = False  # one vocabulary for both sides

    @model_validator(mode="after")
    def check(self) -> Self:
        if self.shared and self.source != self.target:
            alone = "" if self.source in get_args(Kind) else f"; {self.source} need one of their own, and an encoder"
            refuse("tokens.shared", f"one vocabulary can not hold {self.source} and {self.target} tokens{alone}")
        if self.shared and self.target_size is not None:
            refuse("tokens.target_size", "with tokens.shared=true there is one vocabulary, of tokens.size")
        return self


# ── encoders ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Nothing(Section):
    """No network on this side: decoder-only or encoder-only models."""

    kind: Literal["none"] = "none"


class Lookup(Section):
    """How one attention compares queries with keys."""

    score: ScoreName = "scaled"
    rank: Positive = 16  # of the reduced-rank score
    heads: Positive = 1
    projections: bool = True  # queries, keys and values are projections of what is compared

    def check_heads(self, width: int, where: str) -> None:
        if width % self.heads:
            refuse(f"{where}.heads", f"width {width} can not be divided by {self.heads} heads")


LOOKUP = ("score", "rank", "heads", "projections")


class RecurrentEncoder(Section):
    """A loop over the source."""

    kind: Literal["recurrent"] = "recurrent"
    cell: CellName = "gru"
    layers: Layers = 1
    width: Positive = 128  # of the states; both directions together
    embedding: Positive | None = None  # width of the embeddings; none = width
    directions: Literal["forward", "backward", "both"] = "both"
    position: PositionName = "none"
    dropout: Share = 0.0

    @model_validator(mode="after")
    def check(self) -> Self:
        if self.directions == "both" and self.width % 2:
            refuse("encoder.width", f"{self.width} can not be divided between two directions")
        check_added(self.position, "encoder", "a recurrent network")
        return self


class ConvolutionalEncoder(Section):
    """Stacked convolutions with gates and residuals."""

    kind: Literal["convolutional"] = "convolutional"
    layers: Layers = 4
    width: Positive = 128
    kernel: Annotated[int, Field(ge=1, le=1001)] = 3
    position: PositionName = "learned"
    dropout: Share = 0.1

    @model_validator(mode="after")
    def check(self) -> Self:
        if self.kernel % 2 == 0:
            refuse("encoder.kernel", f"an even kernel ({self.kernel}) has no middle; an encoder needs an odd one")
        check_added(self.position, "encoder", "a convolutional network")
        return self


class AttentionBlocks(Lookup):
    """Blocks of attention and feed-forward, as an encoder or a decoder."""

    layers: Layers = 2
    width: Positive = 128
    heads: Positive = 4
    feedforward: Positive | None = None  # width inside; none = 4 × width
    gated: bool = False  # a gated feed-forward instead of a plain one
    activation: Literal["relu", "gelu", "silu"] = "relu"
    norm: Literal["layer", "rms"] = "layer"
    norm_first: bool = True  # before the part, inside the residual; false = after it, as in the original
    position: PositionName = "sinusoidal"
    dropout: Share = 0.1


class AttentionEncoder(AttentionBlocks):
    """Self-attention over the source."""

    kind: Literal["attention"] = "attention"

    @model_validator(mode="after")
    def check(self) -> Self:
        self.check_heads(self.width, "encoder")
        check_blocks(self, "encoder")
        return self


class ImageEncoder(AttentionBlocks):
    """A picture as a row of places: a convolutional grid, or patches with self-attention between them."""

    kind: Literal["image"] = "image"
    form: Literal["grid", "patches"] = "grid"
    size: Annotated[int, Field(ge=1, le=4096)] = 32  # pixels a side; pictures are resized to it
    channels: Literal[1, 3] = 3
    patch: Positive = 4  # pixels a side of one place

    @model_validator(mode="after")
    def check(self) -> Self:
        if self.size % self.patch:
            refuse("encoder.patch", f"size {self.size} can not be divided into places of {self.patch} pixels")
        if self.form == "grid" and self.patch & (self.patch - 1):
            refuse("encoder.patch", f"a grid halves the picture again and again; {self.patch} is not a power of two")
        check_added(self.position, "encoder", "a picture")
        if self.form == "grid":
            blocks = (
                "score",
                "rank",
                "projections",
                "heads",
                "feedforward",
                "gated",
                "activation",
                "norm",
                "norm_first",
            )
            self.refuse_idle(blocks, "encoder", "a grid has no blocks of attention; encoder.form=patches has")
        else:
            self.check_heads(self.width, "encoder")
        return self


# ── decoders ─────────────────────────────────────────────────────────────────────────────────────────────────────────


with warnings.catch_warnings():
    warnings.filterwarnings("ignore", 'Field name "copy"')  # pydantic had a method of that name, which is not used here

    class Copying(Section):
        """A head that points into the source: each token is written, or copied from there (See et al. 2017)."""

        copy: bool = False  # type: ignore[assignment]  # tokens may be copied from the source


class RecurrentDecoder(Lookup, Copying):
    """A loop over the target. `context` says how it sees the source:

    none    only through the state it starts from
    fixed   one vector, the summary of the source, fed in at every step (Cho et al. 2014)
    output  attention with the new state, joined to the output (Luong et al. 2015, without input feeding)
    feed    as `output`, and what was joined is fed into the next step (Luong et al. 2015)
    input   attention with the old state, joined to the input and the output (Bahdanau et al. 2015)
    """

    kind: Literal["recurrent"] = "recurrent"
    cell: CellName = "gru"
    layers: Layers = 1
    width: Positive = 128
    embedding: Positive | None = None
    context: Literal["none", "fixed", "output", "feed", "input"] = "output"
    bridge: Literal["copy", "last", "mean", "zero"] = "last"  # what the first state is made of
    position: PositionName = "none"
    dropout: Share = 0.0

    @property
    def attends(self) -> bool:
        return self.context in ("output", "feed", "input")

    @model_validator(mode="after")
    def check(self) -> Self:
        if self.attends:
            self.check_heads(self.width, "decoder")
        else:
            self.refuse_idle(LOOKUP, "decoder", f"with decoder.context={self.context} there is no attention")
        check_added(self.position, "decoder", "a recurrent network")
        return self


class ConvolutionalDecoder(Lookup, Copying):
    """Stacked causal convolutions with gates and residuals; attention to the source in each."""

    kind: Literal["convolutional"] = "convolutional"
    layers: Layers = 4
    width: Positive = 128
    kernel: Annotated[int, Field(ge=2, le=1001)] = 3
    position: PositionName = "learned"
    dropout: Share = 0.1

    @model_validator(mode="after")
    def check(self) -> Self:
        self.check_heads(self.width, "decoder")
        check_added(self.position, "decoder", "a convolutional network")
        return self


class AttentionDecoder(AttentionBlocks, Copying):
    """Causal self-attention over the target, attention to the source."""

    kind: Literal["attention"] = "attention"

    @model_validator(mode="after")
    def check(self) -> Self:
        self.check_heads(self.width, "decoder")
        check_blocks(self, "decoder")
        return self


Encoder = Annotated[
    Nothing | RecurrentEncoder | ConvolutionalEncoder | AttentionEncoder | ImageEncoder, Field(discriminator="kind")
]
Decoder = Annotated[Nothing | RecurrentDecoder | ConvolutionalDecoder | AttentionDecoder, Field(discriminator="kind")]


class Embedding(Section):
    """The tables of token vectors."""

    scale: bool = True  # multiplied by the square root of their width
    tie_source: bool = False  # source and target share one table
    tie_output: bool = False  # the output layer is the target's table
    dropout: Share = 0.0
    token_dropout: Share = 0.0  # how often, in training, a token is not seen at all: its whole vector is dropped
    ngrams: Annotated[int, Field(ge=1, le=6)] = 1  # runs of up to so many source tokens have vectors too; 1 = none
    buckets: Annotated[int, Field(ge=2, le=1_000_000)] = 4096  # ngrams: vectors for each length and place of a run
    characters: Positive = 32  # spelled words: width of the vectors of characters
    word_dropout: Share = 0.1  # spelled words: how often, in training, only the characters tell a word


# ── training and decoding ────────────────────────────────────────────────────────────────────────────────────────────


class Fill(Section):
    """Which tokens the `fill` task hides, and behind what."""

    share: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.15
    mask: Probability = 0.8
    random: Probability = 0.1  # the rest keep their token

    @model_validator(mode="after")
    def check(self) -> Self:
        if self.mask + self.random > 1.0:
            refuse("fill.random", f"fill.mask {self.mask} and fill.random {self.random} are more than all")
        return self


class Generate(Section):
    """How the `generate` task goes through running text."""

    block: Annotated[int, Field(ge=2, le=1_000_000)] = 128  # tokens that a gradient goes back through
    carry: Positive | None = None  # blocks in a row, a state carried from each to the next; none = 8 for a loop, else 1


class Head(Section):
    """What stands on a body that reads, where the task has a choice."""

    pool: Literal["mean", "max", "class", "attention"] = "mean"  # classify, embed: how a text becomes one vector
    crf: bool = False  # tag: labels are chosen together, by a conditional random field
    width: Positive | None = None  # embed: numbers in a vector; none = the width of the body
    temperature: Annotated[float, Field(gt=0.0, le=100.0)] = 0.05  # embed: of the contrastive loss


class Train(Section):
    """One run of training."""

    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    steps: Positive = 2000  # updates at most
    minutes: Annotated[float, Field(gt=0.0)] | None = None  # at most this long
    tokens_per_batch: Positive = 2048  # padded tokens of the longer side
    accumulate: Positive = 1  # batches an update
    learning_rate: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] = 2e-3
    optimizer: Literal["adamw", "muon"] = "adamw"  # muon = matrices inside a side are turned straight, the rest AdamW
    schedule: Literal["inverse-sqrt", "cosine", "constant"] = "cosine"
    warmup: Annotated[int, Field(ge=0)] | None = None  # steps; none = 100, or a tenth of all where that is less
    weight_decay: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = 0.01
    beta1: Share = 0.9
    beta2: Share = 0.98
    clip: Annotated[float, Field(gt=0.0)] = 1.0  # greatest norm of the gradient
    label_smoothing: Share = 0.0
    agreement: Annotated[float, Field(ge=0.0, le=100.0)] = 0.0  # that two passes with other dropout agree; forcing is 1
    forcing: Probability = 1.0  # how often a decoder is fed the true token rather than its own; 0 = free running
    forcing_end: Probability | None = None  # where `forcing` has come by the last step; none = it stays
    validate_steps: Positive = 250
    checkpoint_steps: Positive = 250  # a checkpoint after so many steps; those that `average` counts
    checkpoint_minutes: Annotated[float, Field(gt=0.0)] = 5.0  # … and after so many minutes, which changes no result
    validate_examples: Positive = 500  # decoded at each validation
    patience: Positive | None = None  # validations without a better one before the run ends
    perfect: Positive | None = None  # validations, the last without a mistake, since the first such before the run ends
    metric: str = "auto"  # decides which weights are best: a score of the task; auto = its first
    average: Annotated[int, Field(ge=0)] = 0  # last checkpoints whose mean is tried at the end; 0 = none
    layer_decay: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0  # learning rate × this for each layer below the top
    freeze: bool = False  # what was taken from another model does not change
    precision: Literal["auto", "fp32", "bf16"] = "auto"  # auto = bf16 for large models where it is native
    device: str = "auto"
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None  # none = one for little work, else all cores
    tensorboard: bool = False  # write the logs as events for TensorBoard too

    @model_validator(mode="after")
    def check(self) -> Self:
        if self.average == 1:
            refuse("train.average", "the mean of one checkpoint is that checkpoint; say 0 or at least 2")
        if self.freeze and self.layer_decay < 1.0:
            refuse("train.layer_decay", "with train.freeze=true the layers that it would slow down do not learn at all")
        if self.agreement and (self.forcing < 1.0 or self.forcing_end is not None):
            refuse("train.agreement", "two passes can agree only where both are fed the same tokens, and with "
                   "train.forcing below 1 or train.forcing_end each is fed its own; say one or the other")  # fmt: skip
        if self.warmup_steps >= self.steps and self.schedule == "cosine" and self.warmup is not None:
            refuse("train.warmup", f"{self.warmup} steps of warm-up leave nothing of {self.steps} steps")
        return self

    @property
    def length(self) -> str:
        """How long, as one would say it."""
        steps, minutes = f"{self.steps:,} steps", in_minutes(self.minutes or 0)
        if self.minutes is None:
            return steps
        return minutes if self.steps >= ENDLESS else f"{steps} or {minutes}"

    @property
    def warmup_steps(self) -> int:
        return min(100, self.steps // 10) if self.warmup is None else self.warmup


class Search(Section):
    """How outputs are found when nobody says otherwise."""

    beam: Annotated[int, Field(ge=1, le=1000)] = 1
    length_penalty: Annotated[float, Field(ge=0.0, le=10.0)] = 1.0  # log probability ÷ length to this power
    length_ratio: Annotated[float, Field(ge=0.0, le=1000.0)] = 2.0  # longest output: ratio × source + extra
    length_extra: Annotated[int, Field(ge=0, le=1_000_000)] = 32


class Config(Section):
    """Everything that makes one model and one run."""

    about: str = ""
    preset: str = ""
    task: TaskName = "transduce"
    data: Data = Data()
    tokens: Tokens = Tokens()
    encoder: Encoder = Field(default_factory=RecurrentEncoder)
    decoder: Decoder = Field(default_factory=RecurrentDecoder)
    embedding: Embedding = Embedding()
    fill: Fill = Fill()
    generate: Generate = Generate()
    head: Head = Head()
    train: Train = Train()
    search: Search = Search()

    @property
    def limits(self) -> Data:
        """How long a source and a target may be, the end of a source not counted and that of a target counted."""
        both = {"max_target": self.data.max_source + 1}
        return self.data.model_copy(update=both) if self.task in BY_SOURCE else self.data

    @model_validator(mode="after")
    def check(self) -> Self:
        check_sides(self)
        check_head(self)
        check_decoder(self)
        check_tying(self)
        check_ngrams(self)
        check_spelled(self)
        check_sentences(self)
        check_copying(self)
        if (self.train.forcing < 1.0 or self.train.forcing_end is not None) and self.decoder.kind == "none":
            refuse("train.forcing", "without a decoder there is no token to feed back")
        check_generate(self)
        return self

    @property
    def row(self) -> int:
        """Tokens of running text that are gone through in a row, a state carried from block to block."""
        return self.generate.block * (self.generate.carry or (8 if self.decoder.kind == "recurrent" else 1))

    @property
    def places(self) -> int:
        """Tokens that a decoder meets in a row at most, ends counted; learned positions are a vector for each."""
        if self.task == "generate":
            return self.row + 1
        written = self.data.max_target + 1
        if self.encoder.kind != "none":
            return written
        return self.data.max_source + 1 + (0 if self.task in READING else written)

    @property
    def copies(self) -> bool:
        """Whether tokens may be copied from the source."""
        return isinstance(self.decoder, Copying) and self.decoder.copy

    @property
    def endless(self) -> bool:
        """Whether a decoder can write on for ever: its state does not grow, and no place has a number."""
        return self.decoder.kind != "attention" and getattr(self.decoder, "position", "none") == "none"


# ── contradictions ───────────────────────────────────────────────────────────────────────────────────────────────────


def in_minutes(count: float) -> str:
    return f"{count:g} minute{'s' * (count != 1)}"


def refuse(where: str, why: str) -> NoReturn:
    """Stops the checking of a config with a place and a reason."""
    raise ValueError(f"{where}: {why}")


def check_added(position: str, where: str, what: str) -> None:
    if position not in ADDED:
        refuse(f"{where}.position", f"{position} acts on the scores of self-attention, and {what} has none; "
               f"expected one of {', '.join(ADDED)}")  # fmt: skip


def check_blocks(blocks: AttentionBlocks, where: str) -> None:
    """Rotary positions need a score that is a product of the turned vectors themselves."""
    if "rotary" not in blocks.position:
        return
    if blocks.score not in TURNABLE:
        refuse(f"{where}.position", f"rotary turns queries and keys so that their product knows the distance; "
               f"with the score {blocks.score} it does not reach the result")  # fmt: skip
    if (blocks.width // blocks.heads) % 2:
        refuse(f"{where}.position", f"rotary turns pairs of numbers; a head of width "
               f"{blocks.width // blocks.heads} is odd")  # fmt: skip


def check_sides(c: Config) -> None:
    """The task and the two sides fit each other."""
    encoder, decoder = c.encoder.kind, c.decoder.kind
    if encoder == "none" and decoder == "none":
        refuse("decoder.kind", "a model needs an encoder or a decoder; both are none")
    if (c.task == "caption") != (encoder == "image"):
        refuse("encoder.kind", f"the task {c.task} can not read from the encoder {encoder}; "
               "captions need encoder.kind=image, and nothing else has pictures")  # fmt: skip
    if c.task == "fill" and (decoder != "none" or encoder == "none"):
        refuse("decoder.kind", "the task fill answers at each source position: it needs an encoder and no decoder")
    if c.task in READING and encoder != "none" and decoder != "none":
        refuse(
            "decoder.kind", f"the task {c.task} writes nothing: it reads with an encoder or with a decoder; say none"
        )
    if c.task == "generate" and encoder != "none":
        refuse("encoder.kind", "the task generate has no source to encode; say none")
    if c.task not in READING and decoder == "none":
        refuse("decoder.kind", f"the task {c.task} writes a target: it needs a decoder")
    if encoder == "none" and c.task in ("transduce", "generate") and not c.tokens.shared:
        refuse("tokens.shared", "a model without an encoder reads source and target as one text: "
               "it needs tokens.shared=true")  # fmt: skip


def check_head(c: Config) -> None:
    """Of a head only what the task has is set."""
    known = {"classify": ("pool",), "tag": ("crf",), "embed": ("pool", "width", "temperature")}.get(c.task, ())
    idle = tuple(name for name in Head.model_fields if name not in known)
    c.head.refuse_idle(idle, "head", f"the task {c.task} has no such part")
    if c.task != "caption":
        c.data.refuse_idle(("images", "jitter", "zoom", "recolour"), "data", f"the task {c.task} reads no pictures")
    if c.task != "generate":
        c.generate.refuse_idle(("block", "carry"), "generate", f"the task {c.task} does not go through running text")
    if c.task == "tag" and c.head.crf and c.train.label_smoothing:
        refuse("train.label_smoothing", "a chain (head.crf) gives whole labellings a probability, not each label")
    if c.task in BY_SOURCE:
        why = "there are as many labels as tokens" if c.task == "tag" else "both sides are read by the same body"
        c.data.refuse_idle(("max_target",), "data", f"{why}: data.max_source bounds both")
    if c.head.pool == "class" and getattr(c.encoder, "directions", "") == "backward":
        refuse("head.pool", "class is the state at the end, and what reads backwards has read nothing there")
    if c.task in READING and c.task != "fill" and c.embedding.tie_output:
        refuse("embedding.tie_output", f"the task {c.task} predicts no tokens, so there is nothing to tie")
    if c.task in ONE_SIDE and c.train.label_smoothing:
        refuse("train.label_smoothing", f"the task {c.task} has no list of labels that could be smoothed")


def check_generate(c: Config) -> None:
    """One column is read, as it is."""
    if c.task != "generate":
        return
    if len(c.data.source) > 1:
        refuse("data.source", f"the task generate reads one column, found {', '.join(c.data.source)}")
    c.data.refuse_idle(("target", "tags"), "data", "the task generate reads one column of text")
    c.train.refuse_idle(("forcing", "forcing_end"), "train", "the task generate is always fed the true text")


def check_decoder(c: Config) -> None:
    """What a decoder expects of the encoder before it."""
    if isinstance(c.decoder, RecurrentDecoder):
        if isinstance(c.encoder, Nothing) and c.decoder.context != "none":
            refuse("decoder.context", f"{c.decoder.context} reads an encoder, and there is none; say none")
        if c.decoder.bridge == "copy" and not isinstance(c.encoder, Nothing):
            check_copy(c)
        if isinstance(c.encoder, Nothing) and c.decoder.bridge != "zero":
            refuse("decoder.bridge", f"{c.decoder.bridge} comes from an encoder, and there is none; say zero")
        if not isinstance(c.encoder, Nothing) and c.decoder.context == "none" and c.decoder.bridge == "zero":
            refuse(
                "decoder.bridge", "with the bridge zero and the context none nothing of the source reaches the decoder"
            )
    if isinstance(c.decoder, ConvolutionalDecoder) and isinstance(c.encoder, Nothing):
        c.decoder.refuse_idle(LOOKUP, "decoder", "without an encoder there is nothing to attend to")
    if not isinstance(c.encoder, Nothing) and not isinstance(c.decoder, Nothing):
        check_lookup(c.encoder.width, c.decoder)


def check_copy(c: Config) -> None:
    encoder, decoder = c.encoder, c.decoder
    if not isinstance(encoder, RecurrentEncoder) or not isinstance(decoder, RecurrentDecoder):
        refuse("decoder.bridge", f"copy hands over the states of a recurrent encoder; this one is {encoder.kind}")
    for name in ("cell", "layers", "width"):
        if getattr(encoder, name) != getattr(decoder, name):
            refuse("decoder.bridge", f"copy needs the same {name} on both sides; found {getattr(encoder, name)} "
                   f"and {getattr(decoder, name)}; the bridge last has no such need")  # fmt: skip


def check_lookup(width: int, decoder: RecurrentDecoder | ConvolutionalDecoder | AttentionDecoder) -> None:
    """Without projections the two sides are compared as they are, so they must fit."""
    if not decoder.projections and width != decoder.width:
        refuse("decoder.projections", f"without projections encoder and decoder need one width; found "
               f"{width} and {decoder.width}")  # fmt: skip


def check_tying(c: Config) -> None:
    source, target = embedding_width(c.encoder), embedding_width(c.decoder)
    if c.embedding.tie_source:
        if c.encoder.kind in ("none", "image") or c.decoder.kind == "none":
            refuse("embedding.tie_source", "there is only one table of embeddings, nothing to tie")
        if not c.tokens.shared:
            refuse("embedding.tie_source", "one table needs one vocabulary: tokens.shared=true")
        if source != target:
            refuse("embedding.tie_source", f"one table has one width; found {source} and {target}")
    if c.embedding.tie_output:
        side = c.encoder if isinstance(c.decoder, Nothing) else c.decoder
        if embedding_width(side) != getattr(side, "width", None):
            refuse("embedding.tie_output", f"the output layer can be the table only at one width; found embeddings "
                   f"of {embedding_width(side)} and states of {getattr(side, 'width', None)}")  # fmt: skip


def check_ngrams(c: Config) -> None:
    """Runs of tokens are seen whole, so only what reads its source at once can be told of them."""
    if c.embedding.ngrams == 1:
        c.embedding.refuse_idle(("buckets",), "embedding", "only runs of tokens have them: embedding.ngrams=3")
    elif c.encoder.kind in ("none", "image"):
        refuse("embedding.ngrams", "runs of tokens are those of a source, and there is no encoder that reads tokens")
    elif c.tokens.source == "spelled":
        refuse("embedding.ngrams", "spelled words are told from the letters in them already")


def check_spelled(c: Config) -> None:
    """Spelled words are read and never written."""
    if c.tokens.source != "spelled":
        names = ("characters", "word_dropout")
        c.embedding.refuse_idle(names, "embedding", "only spelled words have such a part: tokens.source=spelled")
    elif c.task in ("fill", "generate", "caption"):
        why = "a picture has none" if c.task == "caption" else f"the task {c.task} writes the tokens that it reads"
        refuse("tokens.source", f"spelled words are read and never written; {why}")
    elif c.task == "extract":
        refuse("tokens.source", "the task extract points at tokens, and spelled words are read by their characters")


def check_sentences(c: Config) -> None:
    """Whole sentences are read by tasks that answer something else than a part of them."""
    if c.tokens.source == "sentences" and c.task not in ("transduce", "classify"):
        refuse("tokens.source", f"whole sentences are for the tasks transduce and classify; the task {c.task} wants "
               "smaller tokens, such as words")  # fmt: skip


def check_copying(c: Config) -> None:
    """Copying needs tokens of a source, attention that could point at them, and the same text in both sides' tokens."""
    if not c.copies:
        return
    if c.task != "transduce":
        why = "writes no target" if c.task in READING else "has no tokens of a source"
        refuse("decoder.copy", f"the task {c.task} {why}, so nothing can be copied; say false")
    context = getattr(c.decoder, "context", "")
    if isinstance(c.decoder, RecurrentDecoder) and not c.decoder.attends:
        refuse("decoder.copy", f"with decoder.context={context} nothing looks at the tokens of the source, so none can "
               "be pointed at; expected output, feed or input, as in rnn-attention")  # fmt: skip
    if isinstance(c.encoder, Nothing) and not isinstance(c.decoder, AttentionDecoder):
        refuse("decoder.copy", f"a {c.decoder.kind} decoder alone looks at no token of its source, so none can be "
               "pointed at; an encoder before it could be")  # fmt: skip
    if c.tokens.source == "spelled":
        refuse("decoder.copy", "spelled words are known without their capitals and digits, and what is copied must be "
               "the text itself; say tokens.source=words")  # fmt: skip
    if ALIKE[c.tokens.source] != ALIKE[c.tokens.target]:
        refuse("decoder.copy", f"a token is copied as the same text, and {c.tokens.source} of the source are no "
               f"{c.tokens.target} of the target; say the same for both")  # fmt: skip


def idle(c: Config, asked: dict[str, Any]) -> list[str]:
    """A warning for each setting that was asked for, is not what it would be anyway, and does nothing for the task."""
    found = []
    for section, names, tasks, why in IDLE:
        given = asked.get(section, {})
        for name in names if c.task in tasks and isinstance(given, dict) else ():
            here, other = getattr(c, section), {"target": "source", "source": "target"}.get(name, "")
            same_kind = section == "tokens" and other and given.get(other) == given.get(name)  # --tokens says both
            if name in given and not same_kind and getattr(here, name) != type(here).model_fields[name].default:
                found.append(f"warning: {section}.{name} does nothing for the task {c.task}: {why}")
    return found


def embedding_width(side: Section) -> int | None:
    """The width of a side's token vectors."""
    width = getattr(side, "embedding", None) or getattr(side, "width", None)
    return width if isinstance(width, int) else None


# ── reading and laying one over another ──────────────────────────────────────────────────────────────────────────────

Tree = dict[str, Any]


def presets() -> list[str]:
    """The names of all presets, sorted."""
    return sorted(p.name.removesuffix(".toml") for p in resources.files("regard.presets").iterdir()
                  if p.name.endswith(".toml"))  # fmt: skip


def preset_text(name: str) -> str:
    """The preset's file, as it stands."""
    if name not in presets():
        raise ConfigError(f"unknown preset {name!r}{nearest(name, presets())}; regard presets lists them")
    return resources.files("regard.presets").joinpath(f"{name}.toml").read_text(encoding="utf-8")


def resolve(preset: str | None = None, file: str | Path | None = None, words: list[str] | None = None) -> Config:
    """One config out of a preset, a file and `a.b=c` words, each laid over the one before."""
    from_file = read_toml(Path(file)) if file else {}
    task = asked_task(from_file, words or [])
    name = preset or from_file.get("preset") or USUAL.get(str(task), "rnn-attention")
    below = lay(parse_toml(preset_text(str(name)), f"preset {name}"), {"preset": name})
    below = below if task is None else for_task(below, str(task))
    below = lay(below, {key: value for key, value in from_file.items() if key != "preset"})
    for word in words or []:
        below = lay(below, parse_word(word))
    return check_tree(below, str(file) if file else "config")


def said(file: str | Path | None, words: list[str]) -> Tree:
    """What a file and `a.b=c` words ask for, the words laid over the file: no preset, no defaults, nothing checked."""
    tree = read_toml(Path(file)) if file else {}
    for word in words:
        tree = lay(tree, parse_word(word))
    return tree


def preset_says(name: str) -> Tree:
    """What stands in a preset's file: no task where any will do."""
    return parse_toml(preset_text(name), f"preset {name}")


def asked_task(from_file: Tree, words: list[str]) -> object:
    """The task that the words or the file ask for, the last word first; none = what the preset says."""
    named = [tree["task"] for tree in map(parse_word, words) if "task" in tree]
    return named[-1] if named else from_file.get("task")


def for_task(tree: Tree, task: str) -> Tree:
    """A preset for another task than its own: of its two sides the one that the task reads or writes with."""
    encoder, decoder = (dict(tree.get(side, {})) for side in ("encoder", "decoder"))
    if task != "transduce" and decoder.pop("copy", None) is not None:  # there is nothing to be copied
        tree = {**tree, "decoder": decoder}
    if tree.get("task", "transduce") == task or {encoder.get("kind"), decoder.get("kind")} & {"image"}:
        return {**tree, "task": task}
    embedding = {name: value for name, value in tree.get("embedding", {}).items() if not name.startswith("tie_")}
    if task == "tag":
        size = {name: value for name, value in tree.get("tokens", {}).items() if name == "size"}
        long = {"max_source": LONG, **tree.get("data", {})}
        tree = {**tree, "data": long, "tokens": {"source": "spelled", **size}}
    if task in BY_SOURCE and "data" in tree:
        tree = {**tree, "data": {name: value for name, value in tree["data"].items() if name != "max_target"}}
    if task in READING and encoder.get("kind") != "none":
        tied = {"tie_output": True} if task == "fill" and tree.get("embedding", {}).get("tie_output") else {}
        return {**tree, "task": task, "decoder": {"kind": "none"}, "embedding": embedding | tied}
    if task in READING:  # a decoder alone reads, in a vocabulary of the source's own
        tokens = {name: value for name, value in tree.get("tokens", {}).items() if name != "shared"}
        return {**tree, "task": task, "embedding": embedding, "tokens": tokens}
    if task == "generate" and decoder.get("kind") not in ("none", None) and encoder.get("kind") != "none":
        return {**tree, "task": task, "encoder": {"kind": "none"}, "decoder": alone(decoder), "embedding": embedding,
                "tokens": {**tree.get("tokens", {}), "shared": True}}  # fmt: skip
    return {**tree, "task": task}


def alone(decoder: Tree) -> Tree:
    """A decoder's settings without what they say of an encoder."""
    looks = LOOKUP if decoder["kind"] != "attention" else ()
    kept = {name: value for name, value in decoder.items() if name not in (*looks, "context", "bridge")}
    return kept | ({"context": "none", "bridge": "zero"} if decoder["kind"] == "recurrent" else {})


def from_toml(text: str, where: str) -> Config:
    """A config out of a file that holds all of it, such as the one in a model folder."""
    return check_tree(parse_toml(text, where), where)


def to_tree(c: Config) -> Tree:
    """The config as plain values for TOML, what is None left out."""
    tree = c.model_dump(mode="json", exclude_none=True)
    assert isinstance(tree, dict)
    return tree


def flat(tree: Tree, before: str = "") -> dict[str, object]:
    """Settings by their whole names."""
    found: dict[str, object] = {}
    for name, value in tree.items():
        found |= flat(value, f"{before}{name}.") if isinstance(value, dict) else {f"{before}{name}": value}
    return found


def differences(has: Tree, wants: Tree) -> str:
    """Which settings, by their whole names, are other than asked for, in a few words; nothing if none is."""
    other = [f"{name}={has.get(name, 'none')} where {wants.get(name, 'none')} is asked for"
             for name in sorted(has.keys() | wants.keys()) if has.get(name) != wants.get(name)]  # fmt: skip
    more = f" and {len(other) - TOLD} more" if len(other) > TOLD else ""
    return ", ".join(other[:TOLD]) + more


def read_toml(path: Path) -> Tree:
    if not path.is_file():
        raise MissingError(f"{path}: no such config file")
    try:
        text = path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{path}: can not be read as UTF-8 text: {error}") from None
    return parse_toml(text, str(path))


def parse_toml(text: str, where: str) -> Tree:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        lines = text.split("\n")
        end = f"line {len(lines)}, column {len(lines[-1]) + 1}"
        raise ConfigError(f"{where}: not TOML: {str(error).replace('end of document', end)}") from None
    except RecursionError:
        raise ConfigError(f"{where}: not TOML that anybody would write: nested too deep") from None


def parse_word(word: str) -> Tree:
    """`encoder.layers=4` as a tree; a value that is not TOML is taken as text."""
    name, sign, value = (part.strip() for part in word.partition("="))
    if not sign or not name or "\n" in word:
        raise ConfigError(f"--set {word!r}: expected name=value on one line, such as encoder.layers=4")
    if name == "preset":
        raise ConfigError(f"--set {word}: a preset is the ground the other words stand on; say --preset {value}")
    try:
        leaf = tomllib.loads(f"value = {value}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        leaf = value
    tree: Any = leaf
    for part in reversed(name.split(".")):
        tree = {part: tree}
    assert isinstance(tree, dict)
    return tree


def lay(below: Tree, above: Tree) -> Tree:
    """`above` over `below`; a section whose kind changes keeps only the settings that the new kind knows."""
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            if "kind" in value and value["kind"] != old.get("kind"):
                old = {name: kept for name, kept in old.items() if name in known_settings(key, value["kind"])}
            result[key] = lay(old, value)
        else:
            result[key] = value
    return result


def section_classes(side: str) -> dict[str, type[Section]]:
    union = get_args(get_args({"encoder": Encoder, "decoder": Decoder}[side])[0])
    return {c.model_fields["kind"].default: c for c in union}


def known_settings(side: str, kind: object) -> set[str]:
    """Settings of a kind of encoder or decoder, its kind left out."""
    if side not in ("encoder", "decoder"):
        return set()
    found = section_classes(side).get(str(kind))
    return set(found.model_fields) - {"kind"} if found else set()


def check_tree(tree: Tree, where: str) -> Config:
    for side in ("encoder", "decoder"):
        part = tree.get(side)
        if isinstance(part, dict) and "kind" not in part:
            tree = {**tree, side: {"kind": "recurrent", **part}}
    decoder = tree.get("decoder")
    if isinstance(decoder, dict) and decoder.get("kind") == "none" and decoder.get("copy"):
        raise ConfigError(f"{where}: decoder.copy: without a decoder no target is written, so nothing can be copied")
    try:
        return Config.model_validate(tree)
    except ValidationError as error:
        raise ConfigError(explain(error, where)) from None


def refuse_words(said: Tree, where: str) -> None:
    """Refuses a word that is none of those a setting may have, whatever else is said, guessed or chosen."""
    try:
        Config.model_validate(said)
    except ValidationError as error:
        wrong = [explain_one(dict(e)) for e in error.errors(include_url=False) if e["type"] in WORDS]
        if wrong:
            raise ConfigError("\n".join(f"{where}: {problem}" for problem in wrong)) from None


def explain(error: ValidationError, where: str) -> str:
    """At most three lines of what is wrong with a config, each with the place and the nearest right name."""
    problems = [explain_one(dict(e)) for e in error.errors(include_url=False)]
    more = [f"… and {len(problems) - 2} more"] if len(problems) > 2 else []
    return "\n".join([f"{where}: {problem}" for problem in problems[:2]] + more)


def explain_one(e: Tree) -> str:
    path = [str(part) for part in e["loc"]]
    if len(path) > 1 and path[0] in ("encoder", "decoder") and path[1] in section_classes(path[0]):
        fields = set(section_classes(path[0])[path[1]].model_fields)
        path = [path[0], *path[2:]]
    else:
        fields = fields_at(path[:-1])
    name = ".".join(path)
    match e["type"]:
        case "extra_forbidden":
            return f"unknown setting {name}{nearest(path[-1], fields, path[:-1])}"
        case "union_tag_invalid":
            kinds = section_classes(path[0])
            return f"{name}.kind: {e['ctx']['tag']!r} is not one of {', '.join(kinds)}" + nearest(
                str(e["ctx"]["tag"]), kinds
            )
        case "value_error":
            return str(e["ctx"]["error"])
        case "literal_error":
            expected = [str(word).strip("'") for word in e["ctx"]["expected"].replace(" or ", ", ").split(", ")]
            listed = ", ".join(expected)
            return f"{name}: found {e['input']!r}{nearest(str(e['input']), expected)}; expected one of {listed}"
        case _:
            return f"{name}: found {e['input']!r}; {e['msg'][0].lower()}{e['msg'][1:]}"


def fields_at(path: list[str]) -> set[str]:
    """The names that a config knows below `path`."""
    found: Any = Config
    for part in path:
        field = getattr(found, "model_fields", {}).get(part)
        found = field.annotation if field is not None else None
    return set(getattr(found, "model_fields", {}))


def nearest(name: str, names: Any, path: list[str] | None = None) -> str:
    """` (did you mean x?)` when some known name is close, else nothing."""
    close = get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f" (did you mean {'.'.join([*(path or []), close[0]])}?)" if close else ""
