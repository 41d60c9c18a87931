"""What was said and a file in, one config out: what nobody says is chosen from the data, by the rules on this page.

Each rule looks at a few facts of the file (`data.measure`) and at the minutes that there are, and gives settings with
the reason for them. They are laid below everything that is said: a flag, a setting or a config file overrules each
singly. A preset that is named is taken as it is; then only its tokens, how long texts may be, and how long it is
trained are chosen. `bench/study.csv` holds the runs that the numbers rest on; docs/rules.md tells which.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

from regard import config
from regard.data.guess import Guess, guess, guessed_words, refuse_parted, refuse_pictures
from regard.data.measure import MOST, Facts, Side, facts_of, measure
from regard.data.read import Columns, Example
from regard.errors import ConfigError

CHOSEN = "chosen: "  # how a line begins that tells of a rule …
HONEST = "expect little: "  # … and one that promises nothing
OF_DATA = ("task=", "data.", "tokens.")  # how words begin that say what the data are; no preset has a say in them
WRITTEN = get_args(config.Kind)  # kinds of tokens that a target may have
BOTH = ("encoder", "decoder")
PLAIN = ("about", "preset", "task")  # of a config, what is no section
FEW = 300  # pairs, below which little can be expected
MOST_MINUTES = 30.0  # that are taken without being asked for
LONGEST = 4096  # tokens of a text; a longer one is left out
EDITED = 0.5  # of a target that stands in its source, from which on it is the source with changes …
LOOSE = 0.1  # … if the ratio of their lengths does not vary more
EVEN = 0.06  # variation of that ratio, up to which letters follow letters whatever these are: another script, accents
FORMAL = 0.35  # of a target that stands in another too, from which on it is a form that is filled in: queries, records


@dataclass(frozen=True)
class Choice:
    """Settings that belong together, and why they are as they are."""

    words: tuple[str, ...] = ()
    why: str = ""  # a line for the person; "" = nothing that has to be told
    preset: str = ""

    @property
    def line(self) -> str:
        """What is told of it; where nothing was chosen, the word alone."""
        return f"{CHOSEN}{self.why}" if self.words or self.preset else self.why

    def settles(self, name: str) -> bool:
        """Whether it says what this setting is."""
        return any(word.startswith(f"{name}=") for word in self.words)


@dataclass(frozen=True)
class Case:
    """What the rules look at: the facts of a file, what was said, what a preset that is named says of tokens."""

    facts: Facts
    said: config.Tree = field(default_factory=dict)
    ground: config.Tree = field(default_factory=dict)

    def has(self, section: str, *names: str) -> bool:
        """Whether any of these settings was said."""
        return bool(self.said.get(section, {}).keys() & set(names))

    @property
    def is_shared(self) -> bool:
        """Whether there has to be one vocabulary."""
        return bool(self.said.get("tokens", {}).get("shared", self.ground.get("shared", False)))

    @property
    def is_alike(self) -> bool:
        """Whether both sides have to be cut in one way: what is copied is the same token on both."""
        return self.is_shared or self.said.get("decoder", {}).get("copy") is True

    @property
    def kinds(self) -> tuple[str, str]:
        """The tokens of both sides: as they were said, or as they fit the texts; one kind where they must be alike."""
        told = self.ground | self.said.get("tokens", {})
        source, target = told.get("source"), told.get("target")
        if self.is_alike and (source or target):
            source, target = source or target, target or (source if source in WRITTEN else None)
        facts, way, blind = self.facts, self.way, self.said.get("decoder", {}).get("copy") is False
        fit = fitting(facts.source, facts.target, way), fitting(facts.target, facts.source, way)
        copied = facts.own >= COPIED and {*fit} == {"words", "bpe"} and not blind  # the same token on both sides
        if (self.is_alike or copied) and fit[0] != fit[1]:
            fit = ("bpe", "bpe") if "bpe" in fit else ("characters", "characters")
        elif not self.is_alike and fit[0] == "characters" and facts.source.hangul >= 0.5 > facts.target.hangul:
            fit = ("jamo" if facts.own < COPIED or blind else fit[0], fit[1])
        return str(source or fit[0]), str(target or fit[1])

    @property
    def way(self) -> str:
        """Whether targets are `edited` sources, or follow them `even`ly; if there is time to see the letters often."""
        facts, said = self.facts, self.said.get("train", {}).get("minutes")
        letters = facts.lines * max(facts.source.characters, facts.target.characters)
        seconds = 60 * (float(said) if isinstance(said, int | float) else MOST_MINUTES)
        if letters * OFTEN > seconds * LOOP.letters or facts.formal >= FORMAL:
            return ""
        return "edited" if facts.copied >= EDITED and facts.uneven <= LOOSE else "even" * (facts.uneven <= EVEN)

    @property
    def lengths(self) -> tuple[float, float]:
        """Tokens of a source and of a target on average, about."""
        (source, target), facts = self.kinds, self.facts
        return count(source, facts.source) + facts.tags, count(target, facts.target)

    @property
    def longest(self) -> tuple[int, int]:
        """Tokens that no source and no target has more of, but for one in a thousand: some words are many pieces."""
        (source, target), facts = self.kinds, self.facts
        return most(source, facts.source), most(target, facts.target)

    @property
    def deserved(self) -> float:
        """Minutes: with the square root of what there is to be read."""
        return min(MOST_MINUTES, max(1.0, round(3.0 * math.sqrt(self.facts.lines * sum(self.lengths) / 15_000))))

    @property
    def minutes(self) -> float:
        """That were said, or that the data deserve."""
        minutes = self.said.get("train", {}).get("minutes")
        return float(minutes) if isinstance(minutes, int | float) else self.deserved


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def fitting(side: Side, other: Side, way: str = "") -> str:
    """Words where these are symbols, pieces of words in sentences, characters elsewhere.

    Beside sentences, texts of several words are pieces too, and short ones if both sides are; one that knows no spaces
    is characters. Where targets are "edited" sources, a slip in a word makes other pieces of it (misspelt, 1,000 pairs:
    0.9 % right, characters 5.8 %), and where letters follow letters, pieces of both sides do not match.
    """
    if way == "edited" and not (side.is_closed and other.is_closed):
        return "characters"
    if side.is_closed:
        return "words"
    if way == "even" and not other.is_closed:
        return "characters"
    beside = other.is_prose and not other.is_closed and side.words >= 2
    open_ones = all(each.is_language and each.words >= 2 and not each.is_closed for each in (side, other))
    short = (side.is_phrase or other.is_phrase) and open_ones
    if side.is_prose or beside or short:
        return "bpe"
    return "characters"


PIECE = 2.5  # characters, in a word that hardly came


def count(kind: str, side: Side) -> float:
    """Tokens of a text, about: a word that is known is little more than one piece, a rare one is many."""
    if kind in ("bpe", "unigram"):
        return min(side.characters, 1.2 * (1 - side.seldom) * side.words + side.seldom * side.characters / PIECE)
    if kind == "jamo":
        return side.characters * (1 + 1.5 * side.syllables)
    each = {"words": 1.0, "sentences": 0.2}.get(kind)
    return side.characters if each is None else min(side.characters, each * side.words)


def most(kind: str, side: Side) -> int:
    """Tokens that nearly every text has room in."""
    longest = 3 * side.longest if kind == "jamo" and side.syllables else side.longest  # one text may be all syllables
    return 1 + (side.wordiest if kind in ("words", "sentences") else longest)


# Pieces of words, by the number of pairs: as many as are still seen often.
# Multi30k: of 1,000 pairs 13.3, 11.9, 12.7 with 1,000, 2,000, 4,000; of 5,000 25.3, 26.2, 25.5 with 2,000 to 8,000.
SIZES = ((2_500, 1000), (15_000, 4000), (50_000, 8000), (math.inf, 12_000))


def tokens(case: Case) -> Choice:
    """What a token is on each side."""
    if case.ground.keys() & {"source", "target"}:
        return Choice()
    (source, target), facts = case.kinds, case.facts
    told = source if source == target else f"{source},{target}"
    words = [f"tokens.source={source}", f"tokens.target={target}"]
    if {"bpe", "unigram"} & {source, target}:
        fit = next(size for pairs, size in SIZES if facts.pairs <= pairs)
        cut = [side for kind, side in zip((source, target), (facts.source, facts.target), strict=True)
               if kind in ("bpe", "unigram")]  # fmt: skip
        letters = 256 + 2 * max(side.alphabet for side in cut)  # each is some bytes, to be joined first
        pieces = max(fit, 500 * math.ceil(min(letters, 4 * fit) / 500))
        words.append(f"tokens.size={pieces}")
        size = case.said.get("tokens", {}).get("size", pieces)
        told = f"{told} of {size:,} pieces" if isinstance(size, int) else told  # the config tells what is wrong with it
    if case.has("tokens", "source", "target"):
        pieces_told = f"{told}, by the number of pairs; --set tokens.size overrules it" if "pieces" in told else ""
        return Choice(tuple(words), "" if case.has("tokens", "size") else pieces_told)
    counted = " and ".join(f"{side.words:.1f}" for side in (facts.source, facts.target))
    return Choice(tuple(words), f"tokens {told}: {counted} words a text, {facts.source.vocabulary:,} and "
                  f"{facts.target.vocabulary:,} kinds; --tokens overrules it")  # fmt: skip


def tying(case: Case) -> Choice:
    """One vocabulary, and one table of vectors, for two sides that are written with the same letters."""
    sizes = case.has("encoder", "width", "embedding") or case.has("decoder", "width", "embedding")
    apart = case.has("tokens", "target_size") or case.said.get("tokens", {}).get("shared") is False
    if set(case.kinds) != {"bpe"} or case.facts.alike < 0.5 or sizes or apart:
        return Choice()
    return Choice(("tokens.shared=true", "embedding.tie_source=true", "embedding.tie_output=true"),
                  f"one vocabulary: {100 * case.facts.alike:.0f} % of both sides is in the same letters; --set "
                  "tokens.shared=false overrules it")  # fmt: skip


# ── the model ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Size:
    """A body, and about how many tokens of the longer side it learns from in a second on two cores: pieces, letters."""

    preset: str
    layers: int
    width: int
    feedforward: int
    heads: int
    pieces: float
    letters: float
    passes: int = 0  # over the data that it should have at least
    reading: int = 0  # layers of the encoder, if it has others

    def words(self, said: config.Tree) -> Iterator[str]:
        """The settings; what is said of a width goes for the parts that belong to it."""
        for side, layers in zip(BOTH, self.depths, strict=True):
            told = said.get(side, {})
            yield f"{side}.layers={layers}"
            yield f"{side}.width={self.width}"
            if self.preset == "transformer":
                yield f"{side}.feedforward={round(self.feedforward * sized(told, 'width', self.width))}"
                yield f"{side}.heads={self.cut(told)}"

    def cut(self, told: config.Tree) -> int:
        """As many heads as a width that was said can be cut into, each with pairs of numbers to be turned."""
        width, heads = told.get("width"), self.heads
        while isinstance(width, int) and heads > 1 and width % (2 * heads):
            heads //= 2
        return heads

    def place(self, told: config.Tree) -> str:
        """How a Transformer is told where a token stands, if its scores and the width of its heads allow it."""
        width, heads = told.get("width", self.width), told.get("heads", self.cut(told))
        odd = isinstance(width, int) and isinstance(heads, int) and heads > 0 and width // heads % 2
        return PLACES if odd or told.get("score", "scaled") not in config.TURNABLE else TURNED

    def slower(self, said: config.Tree) -> float:
        """How many times as long a step takes with the sizes that were said."""
        each = [sized(said.get(side, {}), "width", self.width) ** 2 * sized(said.get(side, {}), "layers", layers)
                for side, layers in zip(BOTH, self.depths, strict=True)]  # fmt: skip
        return max(1.0, sum(each) / len(each))

    @property
    def depths(self) -> tuple[int, int]:
        return self.reading or self.layers, self.layers


def sized(told: config.Tree, name: str, usual: int) -> float:
    """How many times the usual number of a setting was said."""
    found = told.get(name, usual)
    return found / usual if isinstance(found, int) and found > 0 else 1.0


# A Transformer learns by Muon, is told where a token stands and turns its vectors by it. So it is ahead of a loop as
# soon as it goes through few data often: in some minutes of one thread, loop and Transformer, forms-1000 93.9 and 97.2
# (85 times), cmudict-1000 28.3 and 31.0 (85), cmudict-5000 46.5 and 47.8 (56), snips-1000 32.7 and 37.3 (31),
# multi30k-5000 25.5 and 28.9 (21); but locales-1000 57.9 and 54.7, multi30k-1000 14.8 and 12.8. With less time a loop
# has learnt more: cmudict-5000 after 29 times 44.4, multi30k-5000 after 14 21.0. Of many sentences both have learnt as
# much after ten times (28,000 of Multi30k: 35.4 and 35.2, by AdamW). Of 500 pairs, sixty times or so: dates 4.2 and
# 77.0, numbers 36.1 and 72.6, forms 70.2 and 78.2, snips 7.3 and 10.7, but cmudict 18.3 and 12.2.
OFTEN_ENOUGH = {"pieces": 20, "letters": 45}
PLENTY = 20_000  # pairs of sentences …
OFTEN = 10  # … that need not be seen as often
BLOCKS = Size("transformer", 4, 128, 256, 4, 10_000, 14_000)
WIDE = Size("transformer", 3, 256, 1024, 4, 5_000, 7_000, passes=40)
# For many pairs of letters or symbols, in an hour: all of cmudict, 26.7 % of words wrong, DEEP 27.3 %. With dropout of
# 0.2 it had 73.7 % of the pairs right that it learnt from, and 67.3 % of others: too little was learnt, not too much.
# Since a step takes one pass over memory, and bf16 where processors have it, an hour is 70 times, with 0.1: 22.7 %.
SPELLED = Size("transformer", 3, 256, 512, 4, 8_000, 15_000, passes=30)
# Then the held-out loss rose from 0.245 after 30 times to 0.256 at the end: too much was learnt.
LEARNT_BY_HEART = 40
# Turned alone, and told where they stand too: cmudict-5000 46.3 and 47.8, multi30k-5000 27.8 and 28.9, locales-5000
# 77.6 and 77.3, locales-1000 55.4 and 54.7, cmudict-1000 29.2 (in 4 minutes) and 31.0 (in 2).
TURNED = "sinusoidal+rotary"
# Width 256 beside 128: Multi30k, 5,000 pairs, 22.9 and 19.8; snips, 1,000, 28.9 and 23.1 (with tokens unseen); cmudict,
# 1,000, 22.7 and 23.6, which is no difference. 512 wide: 25.0 in three times the minutes in which 256 has 25.3.
LOOP = Size("rnn-attention", 1, 256, 0, 1, 8_000, 16_000)
DEEP = replace(LOOP, reading=2, pieces=6_000, letters=12_000, passes=10)
SLOWED = 0.3  # power of a batch's size by which a Transformer is slower on smaller ones
# Pairs beyond which less is kept from a body: 100,000 of cmudict in 15 minutes, 65.8; with positions 64.8, and 62.7 in
# 20 minutes with tokens unseen too. There a second layer reads: 63.7 at a loss of 0.271, one layer 63.9 at 0.274; and
# the usual dropout does no harm if the data are gone through often (0.1, 15 minutes: a loss of 0.274).
MANY = 50_000
# Tokens that a loop does not see: Multi30k, 5,000 pairs, 20.7 with 0.1, 19.8 with none; 0.2 is less than 0.1 (24.3 and
# 25.3, 2,000 pieces); cmudict, 1,000, 23.3 and 23.1.
UNSEEN = 0.1
# Where a token stands, told to a loop too: it finds what to look at sooner. cmudict, 1,000 pairs, 28.3 with and 25.5
# without; 5,000, 46.5 and 45.8; snips 29.3 and 28.9; dates of all locales, 5,000, 75.7 and 77.4, at a lower loss.
PLACES = "sinusoidal"
# Pairs up to which a loop's embeddings are dropped out too. With and without, mean of the last checkpoints: 1,000 pairs
# of forms 93.9 and 92.0, snips 32.7 and 29.0, Multi30k 14.8 and 13.1, cmudict 26.9 and 26.5, dates of all locales 57.9
# and 59.6; 5,000 of cmudict 46.1 and 46.6, of locales 78.1 and 80.5. A Transformer's always are: on Multi30k, in
# 45 minutes, the held-out loss rose from step 2,600 on without it, and fell to the end with it.
LITTLE = 2_500
OF_LOOPS = ("cell", "directions", "context", "bridge", "embedding")  # settings that only a loop has …
OF_BLOCKS = ("feedforward", "gated", "activation", "norm", "norm_first")  # … and only blocks of attention …
OF_LOOKING = ("score", "rank", "projections")  # … and an encoder only if it is made of such; of a decoder they are
OF_READING = ("heads", *OF_LOOKING)  # said for the one attention of a loop


def body(case: Case) -> Choice:
    """What reads and writes."""
    chosen, pairs = size(case), case.facts.pairs
    dropout = dropping(case, chosen)
    words = [*chosen.words(case.said), *(f"{side}.dropout={dropout}" for side in BOTH)]
    is_loop = chosen.preset == LOOP.preset
    beside = [] if is_loop and pairs > LITTLE else [f"embedding.dropout={dropout}"]
    if not is_loop:
        beside += [f"{side}.position={chosen.place(case.said.get(side, {}))}" for side in BOTH]
    elif pairs <= MANY:
        beside += [f"embedding.token_dropout={UNSEEN}", *(f"{side}.position={PLACES}" for side in BOTH)]
    timed = "" if case.has("train", "steps") else f" and {config.in_minutes(case.minutes)}"
    shape = ", ".join([shaped(case, chosen, dropout), *(word for word in beside if not is_said(word, case.said))])
    why = f"preset {chosen.preset}, {shape}: {pairs:,} pairs{timed}; --preset overrules it"
    return Choice((*words, *beside), why, chosen.preset)


def dropping(case: Case, chosen: Size) -> float:
    """What is kept from a body at each step: less of it where there is much to learn from."""
    often = times(case, chosen)
    if case.facts.pairs <= MANY or (chosen.preset == LOOP.preset and often >= OFTEN):
        return 0.3
    return 0.2 if often >= LEARNT_BY_HEART else 0.1


def shaped(case: Case, chosen: Size, dropout: float) -> str:
    """A body in words, as it will be: with what was said of it."""
    told = []
    for side, layers in zip(BOTH, chosen.depths, strict=True):
        said = {"layers": layers, "width": chosen.width, "dropout": dropout} | case.said.get(side, {})
        told.append(
            f"{said['layers']} layer{'s' * (said['layers'] != 1)} of {said['width']}, dropout {said['dropout']}"
        )
    return told[0] if told[0] == told[1] else "; ".join(f"{side} {each}" for side, each in zip(BOTH, told, strict=True))


def size(case: Case) -> Size:
    """The first Transformer that goes through the data often enough in the time there is; else a loop.

    What was said may be of one of them alone.
    """
    places = [case.said.get(side, {}).get("position", PLACES) for side in BOTH]
    turned = any(place not in config.ADDED for place in places)
    blocks = turned or case.has("encoder", *OF_READING) or any(case.has(side, *OF_BLOCKS) for side in BOTH)
    loops = "none" in places or case.has("decoder", *OF_LOOKING) or any(case.has(side, *OF_LOOPS) for side in BOTH)
    able = [each for each in transformers(case) if times(case, each) >= each.passes]
    if blocks or (able and not loops):
        return next(iter(able), BLOCKS)
    return DEEP if case.facts.pairs > MANY and times(case, DEEP) >= DEEP.passes else LOOP


def transformers(case: Case) -> Iterator[Size]:
    """Those that suit so many pairs, the largest first."""
    pairs = case.facts.pairs
    if pairs <= LITTLE and is_written(case.facts.target) and not copies(case):
        return  # text that is written anew is learnt by heart
    if is_worded(case):
        if pairs >= PLENTY:
            yield WIDE
        yield replace(BLOCKS, passes=OFTEN if pairs >= PLENTY else OFTEN_ENOUGH["pieces"])
    else:
        yield SPELLED if pairs > MANY else replace(BLOCKS, passes=OFTEN_ENOUGH["letters"])


def is_written(side: Side) -> bool:
    """Whether texts are written as a language is, however they are cut."""
    return not side.is_closed and (side.is_prose or side.is_phrase or side.is_dense)


def is_worded(case: Case) -> bool:
    """Whether any side is pieces of words."""
    return any(kind in ("bpe", "unigram") for kind in case.kinds)


COPIED = 0.3  # of what a target has and others have not, beyond chance


def copies(case: Case) -> bool:
    """Whether the decoder can copy, by what was said or by the rule."""
    return case.said.get("decoder", {}).get("copy") is True or bool(copying(case).words)


def copying(case: Case) -> Choice:
    source, target = (config.ALIKE.get(kind) for kind in case.kinds)
    blind = case.said.get("decoder", {}).get("context") in ("none", "fixed")
    if case.facts.own < COPIED or source != target or blind or case.has("decoder", "copy"):
        return Choice()
    return Choice(("decoder.copy=true",), f"copies from the source: {100 * case.facts.own:.0f} % of what targets do "
                  "not share stands in it; --set decoder.copy=false overrules it")  # fmt: skip


# ── training and decoding ────────────────────────────────────────────────────────────────────────────────────────────


# Times that the data are gone through; more is learnt by heart, and a rate that ends with the minutes ends too late:
# cmudict, 1,000 pairs: 60 times 25.5, 120 times 24.8, 240 times 19.9. Of many sentences less is known by then: the loss
# on Multi30k's held-out pairs still fell after 36 times.
PASSES, MORE_PASSES = 60, 100
LEARNT = 0.9  # of the pairs; the others are held out
LEAST_STEPS = 400


def duration(case: Case) -> Choice:
    """Minutes and passes; whichever ends first ends a run, and the learning rate comes down with it."""
    steps = f"train.steps={last(case)}"
    again = case.facts.pairs < 0.9 * case.facts.lines
    many = f", each pair {passes(case)} times" if not again and LEAST_STEPS < last(case) < config.ENDLESS else ""
    often = f"at most {last(case):,} steps{many}"
    if case.has("train", "minutes"):
        return Choice((steps,), f"{often}: what follows is learnt by heart; --steps overrules it")
    why = f"what {case.facts.pairs:,} pairs of some {sum(case.lengths):.0f} tokens deserve"
    told = f"{config.in_minutes(case.minutes)}, {often}: {why}; --minutes or --steps overrules it"
    return Choice((f"train.minutes={case.minutes}", steps), told)


def few(case: Case) -> Choice:
    """An honest word for who has little data."""
    if case.facts.pairs >= FEW:
        return Choice()
    return Choice((), f"{HONEST}{case.facts.pairs:,} pairs are few: with less than {FEW} a model learns examples by "
                  "heart and gets right what is very like them; set its score beside the baselines of `regard check`, "
                  "and expect more of every further hundred pairs than of any setting")  # fmt: skip


FEWEST = 3  # times through the data, with less than which hardly anything is learnt


def short(case: Case, body: Size) -> Choice:
    """An honest word for who has little time."""
    often = times(case, body)
    if often >= FEWEST or expected(case, body) == case.said.get("train", {}).get("steps"):
        return Choice()
    fit = math.ceil(case.minutes * OFTEN / max(often, 0.01))
    return Choice((), f"{HONEST}in {config.in_minutes(case.minutes)} two cores go through the data {often:.1f} times, "
                  f"about; a model begins to be good after {OFTEN}, which would be --minutes {fit}")  # fmt: skip


def limits(case: Case) -> Choice:
    """Texts that are longer than usual are read too, and outputs may become as long as those that were seen."""
    bound = bool(case.ground.keys() & {"source", "target"})
    if bound and not case.has("tokens", "source", "target"):
        return Choice()  # such a preset has limits for its tokens
    source, target = (min(LONGEST, length) for length in case.longest)
    usual = config.Data().max_source
    words = [f"data.{name}={max(usual, length)}" for name, length in (("max_source", source), ("max_target", target))
             if length > usual or bound]  # fmt: skip
    (read, written), twice = case.lengths, config.Search().length_ratio
    room = min(target, math.ceil(1.5 * case.facts.target.longest * written / max(1.0, case.facts.target.characters)))
    extra = [f"search.length_extra={room}"] if room > config.Search().length_extra else []
    ratio = round(min(twice, max(0.1, twice * written / max(1.0, read))), 1)
    facts = case.facts
    longest = max(side.longest * size / max(1.0, side.characters)
                  for side, size in ((facts.source, read), (facts.target, written)))  # fmt: skip
    why = (f"texts of up to {LONGEST:,} tokens: the longest have some {longest:,.0f}, and what is longer is left out; "
           "--set data.max_source and data.max_target overrule it") if longest > LONGEST else ""  # fmt: skip
    return Choice((*words, *extra, *([f"search.length_ratio={ratio}"] if ratio < twice else [])), why)


UPDATES = 60  # in a pass over the data, if a batch then has some hundred tokens: of few examples each is learnt often
VALIDATIONS = 25  # in a run, about; the mean of the last five checkpoints is then of its last fifth
PERFECT = 5  # validations, from the first without a mistake on, that end a run; as many are averaged
WITNESSED = 3000  # pairs, a tenth of which tells that nearly all is learnt: of 75 right ones one of twenty may be wrong
LONGEST_WARMUP = 800  # steps


def learning(case: Case, chosen: Size | None) -> Choice:
    """Rates, batches, and the score that decides."""
    body = chosen or LOOP
    width = body.width * max(sized(case.said.get(side, {}), "width", body.width) for side in BOTH)
    rate = 3e-3 if width <= 128 and body.preset == "transformer" else 2e-3
    steps = expected(case, body)
    every = min(500, max(50, 50 * round(steps / VALIDATIONS / 50)))
    warmup = min(LONGEST_WARMUP, steps // 10)
    blocks = ["train.optimizer=muon", *([f"train.warmup={warmup}"] if warmup > 100 else [])]
    words = (*(blocks if body.preset == "transformer" else []), f"train.learning_rate={rate}",
             f"train.tokens_per_batch={batch(case)}", "train.label_smoothing=0.1", f"train.validate_steps={every}",
             f"train.checkpoint_steps={every}", "train.average=5",
             *([f"train.perfect={PERFECT}"] if is_believed(case) else []), "search.beam=5", *judging(case))  # fmt: skip
    left = ", ".join(word for word in words if not is_said(word, case.said))
    return Choice(words, left and f"{left}: usual for such a body and so many pairs; --set overrules each")


def is_believed(case: Case) -> bool:
    """Whether so many examples are held out that a run may end where all are right; and no steps were said."""
    return case.facts.pairs >= WITNESSED and not case.has("train", "steps")


def judging(case: Case) -> list[str]:
    """The score that decides: of sentences too few are exactly right to tell models apart.

    BLEU needs four words in a row, and words. Of a form that is filled in it counts the form: the most frequent answer
    has 64 to queries, none of them right.
    """
    target, pieces = case.facts.target, case.kinds[1] in ("bpe", "unigram")
    if target.is_dense and target.words >= 4:  # signs that spaces part
        return ["train.metric=chrf"]
    if target.is_closed or case.facts.formal >= FORMAL:
        return []
    if target.is_dense or (pieces and 3 <= target.words < 4):
        return ["train.metric=chrf"]
    return ["train.metric=bleu"] if target.words >= 4 and (pieces or target.is_prose) else []


def batch(case: Case) -> int:
    """Tokens of an update: that were said, or as many as make enough updates of a pass."""
    said = case.said.get("train", {}).get("tokens_per_batch")
    if isinstance(said, int) and said > 0:
        return said
    return min(4096, max(512, 256 * round(case.facts.lines * max(case.lengths) / UPDATES / 256)))


def passes(case: Case) -> int:
    return MORE_PASSES if case.facts.pairs >= (PLENTY if is_worded(case) else MANY) else PASSES


def last(case: Case) -> int:
    """The update after which more would be learnt by heart, about; none where there are more pairs than are counted."""
    if case.facts.lines >= MOST:
        return config.ENDLESS
    tokens = LEARNT * case.facts.worth * (1 + max(case.lengths))
    warmup = case.said.get("train", {}).get("warmup")
    least = max(LEAST_STEPS, 10 * warmup) if isinstance(warmup, int) else LEAST_STEPS
    return min(config.ENDLESS, max(least, 50 * round(passes(case) * tokens / batch(case) / 50)))


def expected(case: Case, body: Size) -> int:
    """Updates of a run, about: those that were said, or what two cores do in its minutes, if not all that help."""
    steps = case.said.get("train", {}).get("steps")
    speed = (body.pieces if is_worded(case) else body.letters) / body.slower(case.said)
    if body.preset == "transformer":
        speed *= min(1.0, batch(case) / 4096) ** SLOWED
    within = 60 * case.minutes * speed / batch(case)
    if isinstance(steps, int) and steps < config.ENDLESS:
        return round(min(steps, within)) if case.has("train", "minutes") else steps
    return round(min(last(case), within))


def times(case: Case, body: Size) -> float:
    """How often the data are gone through, about."""
    return expected(case, body) * batch(case) / (LEARNT * case.facts.worth * (1 + max(case.lengths)))


# ── one config ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Why:
    """How a config came about: what was guessed from the data, which may surprise, and what the rules chose."""

    guesses: tuple[str, ...] = ()
    choices: tuple[Choice, ...] = ()

    def __iter__(self) -> Iterator[str]:
        """A line for each of them that has to be told."""
        yield from (*self.guesses, *reasons(self.choices))


@dataclass(frozen=True)
class Configured:
    """A config, and why it is as it is."""

    config: config.Config
    why: Why = Why()


Resolve = Callable[[str | None, str | Path | None, list[str]], config.Config]


def configured(
    path: str, preset: str | None, file: str | Path | None, given: Sequence[str], resolve: Resolve | None = None
) -> Configured:
    """One config out of a preset, a file and `a.b=c` words, and what these leave open as the data suggest it.

    A trained model that the words are laid over has a `resolve` of its own, and tokens that are no longer open.
    """
    said = config.said(file, list(given))
    config.refuse_words(said, str(file or "config"))
    named = preset or said.get("preset")
    led = Choice() if named or resolve else leading(said)
    name = named or led.preset
    ground = config.preset_says(str(name)) if name else {}
    task = str(said.get("task") or ground.get("task", ""))
    try:
        asked = config.Data.model_validate(said.get("data", {}))
        refuse_shapes(said)
    except ValueError:  # the config says what is wrong with it
        return Configured((resolve or config.resolve)(preset, file, list(given)))
    columns = Columns(asked.source, asked.target)
    found = guess(path, columns, task, asked.images)
    refuse_pictures(path, found, task)
    refuse_parted(path, found, task)
    settled = "tokens" in said or "source" in ground.get("tokens", {}) or resolve is not None
    guessed = [*guessed_words(found, said.get("data", {}), not task, bool(found.tokens) and not settled)]
    tags = tuple(asked.tags or found.tags)
    facts = measure(path, found.asked(columns), tags) if found.task == "transduce" and resolve is None else None
    chosen = [
        led,
        *endless(said),
        *(choices(Case(facts, said, ground.get("tokens", {})), bool(name)) if facts else ()),
    ]
    guesses = (*found.why, *([found.why_tokens] if found.tokens and not settled else []))
    words = [*(word for each in chosen for word in each.words if not is_said(word, said)), *guessed, *given]
    above = preset or (None if named else next((each.preset for each in chosen if each.preset), None))
    try:
        made = (resolve or config.resolve)(above, file, words)
        return Configured(made, Why((*guesses, *config.idle(made, said)), tuple(chosen)))
    except ConfigError as error:
        raise ConfigError("\n".join([str(error), *blamed(str(error), found, chosen, task)])) from None


def refuse_shapes(said: config.Tree) -> None:
    """What the rules count on: sections that are tables, and minutes that are a number, or none."""
    tables = all(isinstance(said.get(name, {}), dict) for name in config.Config.model_fields if name not in PLAIN)
    minutes = said.get("train", {}).get("minutes", "none") if tables else None
    if not (minutes == "none" or (isinstance(minutes, int | float) and not isinstance(minutes, bool) and minutes > 0)):
        raise ValueError


def advice(found: Guess, examples: Sequence[Example], minutes: float | None = None) -> tuple[str, ...]:
    """What the rules would choose for examples of which nothing more is said than, perhaps, the minutes."""
    tags = [found.source.index(name) for name in found.tags if name in found.source]
    facts = facts_of(examples, tags) if found.task == "transduce" else None
    said: config.Tree = {} if minutes is None else {"train": {"minutes": minutes}}
    return reasons([*choices(Case(facts, said))]) if facts else ()


def reasons(chosen: Sequence[Choice]) -> tuple[str, ...]:
    return tuple(each.line for each in chosen if each.why)


def leading(said: config.Tree) -> Choice:
    """The preset that a word leads to where none is named."""
    encoder = said.get("encoder")
    if not isinstance(encoder, dict) or encoder.get("kind") != "none":
        return Choice()
    why = "preset decoder: without an encoder a decoder reads and writes; --preset overrules it"
    return Choice((), why, "decoder")


def endless(said: config.Tree) -> Iterator[Choice]:
    """Minutes that are said bound a run alone, unless steps are said too."""
    train = said.get("train", {})
    if train.get("minutes", "none") != "none" and "steps" not in train:
        yield Choice((f"train.steps={config.ENDLESS}",))


def choices(case: Case, named: bool = False) -> Iterator[Choice]:
    """What the rules choose, where nobody has; of a preset that is `named`, little is left to be chosen."""
    yield tokens(case)
    yield limits(case)
    if named:
        return
    yield few(case)
    if not case.has("train", "steps"):
        yield duration(case)
    yield tying(case)
    is_open = not case.has("encoder", "kind") and not case.has("decoder", "kind")
    if is_open:
        yield body(case)
        yield copying(case)
    yield learning(case, size(case) if is_open else None)
    yield short(case, size(case) if is_open else LOOP)


def is_said(word: str, said: config.Tree) -> bool:
    """Whether a flag, a setting or a config file has this setting already."""
    section, _, name = word.partition("=")[0].partition(".")
    return name in said.get(section, {})


def blamed(error: str, found: Guess, chosen: Sequence[Choice], task: str) -> list[str]:
    """What was guessed or chosen before an error, and may have led to it."""
    guesses = [found.why[0]] if found.why and not task else []
    led = [each for each in chosen if any(f"{word.partition('.')[0]}." in error for word in each.words)]
    return [*(f"guessed before that: {line}" for line in guesses), *reasons(led)]
