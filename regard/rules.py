"""What was said and a file in, one config out: what nobody says is chosen from the data, by the rules on this page.

Each rule looks at a few facts of the file (`data.measure`) and at the minutes that there are, and gives settings with
the reason for them. They are laid below everything that is said: a flag, a setting or a config file overrules each
singly. A preset that is named is taken as it is; then only its tokens, how long texts may be, and how long it is
trained are chosen. `bench/study.csv` holds the runs that the numbers rest on; docs/rules.md tells which.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard import config
from regard.data.guess import Guess, guess, guessed_words, refuse_pictures
from regard.data.measure import Facts, Side, measure
from regard.data.read import Columns
from regard.errors import ConfigError

CHOSEN = "chosen: "  # how a line begins that tells of a rule
FEW = 300  # pairs, below which little can be expected
MOST_MINUTES = 30.0  # that are taken without being asked for
LONGEST = 1024  # tokens of a text; a longer one is left out


@dataclass(frozen=True)
class Choice:
    """Settings that belong together, and why they are as they are."""

    words: tuple[str, ...] = ()
    why: str = ""  # a line for the person; "" = nothing that has to be told
    preset: str = ""


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def kind(side: Side, other: Side) -> str:
    """Words where these are symbols, pieces of words in sentences, characters elsewhere.

    Beside sentences, texts of several words are pieces too; one that knows no spaces is characters.
    """
    if side.is_closed:
        return "words"
    if side.is_prose or (other.is_prose and not other.is_closed and side.words >= 2):
        return "bpe"
    return "characters"


def kinds(facts: Facts) -> tuple[str, str]:
    return kind(facts.source, facts.target), kind(facts.target, facts.source)


def lengths(facts: Facts) -> tuple[float, float]:
    """Tokens of a source and of a target on average, about."""
    source, target = (count(kind, side.words, side.characters)
                      for kind, side in zip(kinds(facts), (facts.source, facts.target), strict=True))  # fmt: skip
    return source, target


def longest(facts: Facts) -> tuple[int, int]:
    """Tokens of the longest source and target, about."""
    source, target = (math.ceil(count(kind, 1.5 * side.wordiest, side.longest)) + 1
                      for kind, side in zip(kinds(facts), (facts.source, facts.target), strict=True))  # fmt: skip
    return source, target


def count(kind: str, words: float, characters: float) -> float:
    return min(characters, {"words": words, "bpe": 1.3 * words}.get(kind, characters))


# Pieces of words, by the number of pairs: as many as are still seen often.
SIZES = ((2_500, 1000), (15_000, 2000), (50_000, 8000), (math.inf, 12_000))


def tokens(facts: Facts, shared: bool = False) -> Choice:
    """What a token is on each side; with one vocabulary that is `shared`, the same on both."""
    source, target = kinds(facts)
    if shared and source != target:
        source = target = "bpe" if "bpe" in (source, target) else "characters"
    told = source if source == target else f"{source},{target}"
    words = [f"tokens.source={source}", f"tokens.target={target}"]
    if "bpe" in (source, target):
        size = next(size for most, size in SIZES if facts.pairs <= most)
        words, told = [*words, f"tokens.size={size}"], f"{told} of {size:,} pieces"
    counted = " and ".join(f"{side.words:.1f}" for side in (facts.source, facts.target))
    return Choice(tuple(words), f"tokens {told}: {counted} words a text, {facts.source.vocabulary:,} and "
                  f"{facts.target.vocabulary:,} kinds; --tokens overrules it")  # fmt: skip


def tying(facts: Facts) -> Choice:
    """One vocabulary, and one table of vectors, for two sides that are written with the same letters."""
    if set(kinds(facts)) != {"bpe"} or facts.alike < 0.5:
        return Choice()
    return Choice(("tokens.shared=true", "embedding.tie_source=true", "embedding.tie_output=true"))


# ── the model ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Size:
    """A body, and about how many tokens of the longer side it learns from in a second on two cores."""

    preset: str
    layers: int
    width: int
    feedforward: int
    heads: int
    speed: float
    passes: int = 0  # over the data that it should have at least

    @property
    def words(self) -> Iterator[str]:
        for side in ("encoder", "decoder"):
            yield f"{side}.layers={self.layers}"
            yield f"{side}.width={self.width}"
            if self.preset == "transformer":
                yield f"{side}.feedforward={self.feedforward}"
                yield f"{side}.heads={self.heads}"


ENOUGH = 20_000  # pairs for a Transformer; with fewer, a loop learns more in the same time
TRANSFORMERS = (
    Size("transformer", 3, 256, 1024, 4, 3_500, 30),
    Size("transformer", 4, 128, 256, 4, 8_000, 10),
)
LOOPS = ((3_000, Size("rnn-attention", 1, 128, 0, 1, 10_000)), (math.inf, Size("rnn-attention", 1, 256, 0, 1, 5_000)))


def body(facts: Facts, minutes: float) -> Choice:
    chosen = size(facts, minutes)
    dropout = 0.3 if facts.pairs <= 50_000 else 0.1
    words = [*chosen.words, *(f"{side}.dropout={dropout}" for side in ("encoder", "decoder"))]
    shape = f"{chosen.layers} layer{'s' * (chosen.layers > 1)} of {chosen.width}"
    why = f"{facts.pairs:,} pairs and {minutes:g} minutes; --preset overrules it"
    return Choice(tuple(words), f"preset {chosen.preset}, {shape}, dropout {dropout}: {why}", chosen.preset)


def size(facts: Facts, minutes: float) -> Size:
    """The largest Transformer that sees enough data often enough in the time there is; else a loop with attention."""
    tokens = facts.pairs * max(lengths(facts))
    able = [each for each in TRANSFORMERS if 60 * minutes * each.speed >= each.passes * tokens]
    if able and facts.pairs >= ENOUGH:
        return able[0]
    return next(loop for most, loop in LOOPS if facts.pairs <= most)


COPIED = 0.3  # of a target, beyond chance


def copying(facts: Facts) -> Choice:
    source, target = kinds(facts)
    if facts.copied < COPIED or config.ALIKE[source] != config.ALIKE[target]:
        return Choice()
    return Choice(("decoder.copy=true",), f"copies from the source: {100 * facts.copied:.0f} % of what is written "
                  "stands in it; --set decoder.copy=false overrules it")  # fmt: skip


# ── training and decoding ────────────────────────────────────────────────────────────────────────────────────────────


def deserved(facts: Facts) -> float:
    """Minutes for data of this size, where nobody says how many: with the square root of what there is to be read."""
    return min(MOST_MINUTES, max(1.0, round(3.0 * math.sqrt(facts.pairs * sum(lengths(facts)) / 15_000))))


def duration(facts: Facts, minutes: float) -> Choice:
    why = f"what {facts.pairs:,} pairs of some {sum(lengths(facts)):.0f} tokens deserve"
    return Choice((f"train.minutes={minutes}", f"train.steps={config.ENDLESS}"),
                  f"{minutes:g} minutes: {why}; --minutes or --steps overrules it")  # fmt: skip


def few(facts: Facts) -> Choice:
    """An honest word for who has little data."""
    return Choice((), f"{facts.pairs:,} pairs are few: with less than {FEW} a model learns examples by heart "
                  "and gets right what is very like them; set its score beside the baselines of `regard check`, and "
                  "expect more of every further hundred pairs than of any setting")  # fmt: skip


def limits(facts: Facts) -> Choice:
    """Texts that are longer than usual are read too, and outputs may become as long as those that were seen."""
    source, target = (min(LONGEST, length) for length in longest(facts))
    words = [f"data.{name}={length}" for name, length in (("max_source", source), ("max_target", target))
             if length > config.Data().max_source]  # fmt: skip
    return Choice((*words, *([f"search.length_extra={target}"] if target > 64 else [])))


UPDATES = 60  # in a pass over the data at least: of few examples each is learnt from often


def learning(facts: Facts, minutes: float) -> Choice:
    """Rates, batches, and the score that decides: in sentences exact matches are too few to tell models apart."""
    prose = facts.target.is_prose and not facts.target.is_closed
    chosen = size(facts, minutes)
    rate = 4e-3 if chosen.width == 128 and chosen.preset == "transformer" else 2e-3
    batch = min(4096, max(512, 256 * round(facts.pairs * max(lengths(facts)) / UPDATES / 256)))
    metric = ["train.metric=bleu"] if prose else []
    return Choice((f"train.learning_rate={rate}", f"train.tokens_per_batch={batch}", "train.label_smoothing=0.1",
                   "train.average=5", "train.patience=20", "search.beam=5", *metric))  # fmt: skip


# ── one config ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Configured:
    """A config, and a line for each guess and each rule that is in it."""

    config: config.Config
    why: tuple[str, ...] = ()


Resolve = Callable[[str | None, str | Path | None, list[str]], config.Config]


def configured(
    path: str, preset: str | None, file: str | Path | None, given: Sequence[str], resolve: Resolve | None = None
) -> Configured:
    """One config out of a preset, a file and `a.b=c` words, and what these leave open as the data suggest it.

    A trained model that the words are laid over has a `resolve` of its own, and tokens that are no longer open.
    """
    said = config.said(file, list(given))
    name = preset or said.get("preset")
    ground = config.preset_says(str(name)) if name else {}
    task = str(said.get("task") or ground.get("task", ""))
    try:
        asked = config.Data.model_validate(said.get("data", {}))
    except ValueError:  # the config says what is wrong with it
        return Configured((resolve or config.resolve)(preset, file, list(given)))
    columns = Columns(asked.source, asked.target)
    found = guess(path, columns, task, asked.images)
    refuse_pictures(path, found, task)
    settled = "tokens" in said or "source" in ground.get("tokens", {}) or resolve is not None
    shared = ground.get("tokens", {}).get("shared", False)
    guessed = [*guessed_words(found, said.get("data", {}), not task, bool(found.tokens) and not settled)]
    facts = measure(path, found.asked(columns)) if found.task == "transduce" and resolve is None else None
    chosen = [*choices(facts, said, name is not None, shared)]
    why = (*found.why, *([found.why_tokens] if found.tokens and not settled else []), *reasons(chosen))
    words = [*(word for each in chosen for word in each.words if not is_said(word, said)), *guessed, *given]
    above = preset or (None if name else next((each.preset for each in chosen if each.preset), None))
    try:
        made = (resolve or config.resolve)(above, file, words)
        return Configured(made, (*why, *config.idle(made, said)))
    except ConfigError as error:
        raise ConfigError("\n".join([str(error), *blamed(found, chosen, task)])) from None


def advice(path: str, found: Guess, columns: Columns) -> tuple[str, ...]:
    """What the rules would choose for a file of which nothing more is said."""
    facts = measure(path, found.asked(columns)) if found.task == "transduce" else None
    return reasons([*choices(facts, {})])


def reasons(chosen: Sequence[Choice]) -> tuple[str, ...]:
    return tuple(CHOSEN + each.why for each in chosen if each.why)


def choices(facts: Facts | None, said: config.Tree, named: bool = False, shared: bool = False) -> Iterator[Choice]:
    """What the rules choose, where nobody has: with a preset that is `named`, whose one vocabulary may be `shared`."""
    settled = bool({"source", "target", "shared"} & said.get("tokens", {}).keys())
    minutes = said.get("train", {}).get("minutes")
    if minutes is not None and "steps" not in said.get("train", {}):
        yield Choice((f"train.steps={config.ENDLESS}",))
    if facts is None:
        return
    if not settled:
        yield tokens(facts, shared)
    yield limits(facts)
    if named:
        return
    if facts.pairs < FEW:
        yield few(facts)
    minutes = minutes or deserved(facts)
    if not {"minutes", "steps"} & said.get("train", {}).keys():
        yield duration(facts, minutes)
    if not settled:
        yield tying(facts)
    if not any("kind" in said.get(side, {}) for side in ("encoder", "decoder")):
        yield body(facts, minutes)
        if not settled:
            yield copying(facts)
    yield learning(facts, minutes)


def is_said(word: str, said: config.Tree) -> bool:
    """Whether a flag, a setting or a config file has this setting already."""
    section, _, name = word.partition("=")[0].partition(".")
    return name in said.get(section, {})


def blamed(found: Guess, chosen: Sequence[Choice], task: str) -> list[str]:
    """What was guessed or chosen before an error, and may have led to it."""
    guesses = [found.why[0]] if found.why and not task else []
    return [*(f"guessed before that: {line}" for line in guesses), *reasons(chosen)]
