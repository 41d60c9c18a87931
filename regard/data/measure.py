"""A file in, the few numbers out that tell what kind of data it holds: how many pairs, how long, of how many words.

A file is gone through once, and only so far: what is known of two hundred thousand pairs holds for all. Lines that can
not be read are left to the reader, which says what is wrong with them.
"""

import math
import os
import random
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

from regard.data.read import Columns, Example, Stream, files_of
from regard.data.tokens import JAMO, SYLLABLE, split_tags
from regard.errors import RegardError

MOST = 200_000  # pairs that are counted
LOOKED = 20_000  # of these, evenly spread, whose words are counted
LONG = 4000  # characters of a text, beyond which its letters are known
SELDOM = 3  # times: a word that came less often has hardly been seen
PLAIN = 0.9  # of the words of a language hold no digit
AGAIN = 20  # times on average that a word comes which stands alone, and is one of a few answers
SYMBOLS, WELL_KNOWN = 200, 50  # kinds of words at most, each seen so often: symbols, however few letters spell them
PARTED = 3  # characters of a word with its space, where it is rather a letter
NARROW = 0.1  # of such letters may have hardly come; where more do, their marks are better read one by one
FIRST = 200  # characters of a target that tell a form: in longer texts of one language all runs come again
EVENED = 100  # characters from which on a ratio of lengths evens out by itself
RUN = 3  # characters whose return in a target counts as copied …
PAIRS = 2000  # … in so many pairs
UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")  # no spaces between words


@dataclass(frozen=True)
class Side:
    """One half of all pairs."""

    characters: float  # a text, on average
    words: float
    longest: int  # text in characters, and in words, but for one in a thousand
    wordiest: int
    alphabet: int  # different characters
    vocabulary: int  # different words
    seldom: float  # of all words, the share of those that hardly came
    often: float = 1.0  # times that a word came, on average
    plain: float = 1.0  # of all words, the share of those without a digit
    unspaced: float = 0.0  # of all characters, the share of those of scripts without spaces
    syllables: float = 0.0  # of all characters, the share of those that are syllables of Hangul …
    hangul: float = 0.0  # … or the letters of such

    @property
    def is_closed(self) -> bool:
        """Whether words are symbols like letters: about as few kinds, each seen again and again, hardly any new."""
        again = self.words >= 2 or self.often >= AGAIN
        few = self.vocabulary <= 3 * self.alphabet or (self.vocabulary <= SYMBOLS and self.often >= WELL_KNOWN)
        return (again and few and self.seldom <= 0.01) or (self.is_parted and self.seldom <= NARROW)

    @property
    def is_parted(self) -> bool:
        """Whether spaces part letters, some of them with marks: sounds, or signs, and no words of a language."""
        few = self.vocabulary <= max(3 * self.alphabet, 2 * SYMBOLS)
        return self.words >= 2 and self.characters < PARTED * self.words and few

    @property
    def is_prose(self) -> bool:
        """Whether texts are sentences, long enough that their letters would be too many."""
        long = self.characters >= (20 if self.plain >= PLAIN else 30)
        return self.words >= 4 and long and not self.is_parted

    @property
    def is_phrase(self) -> bool:
        """Whether texts are a few words, as a language has them: they come again, and hardly one holds a digit."""
        return self.words >= 3 and self.is_language and not self.is_parted

    @property
    def is_language(self) -> bool:
        """Whether words come again as those of a language do: the more are read, the more often; names do not."""
        return self.often >= 0.3 * (self.often * self.vocabulary) ** 0.2 and self.plain >= PLAIN

    @property
    def is_dense(self) -> bool:
        """Whether texts are sentences of a script without spaces."""
        return self.unspaced >= 0.5 and self.characters >= 6


@dataclass(frozen=True)
class Facts:
    """What the rules look at."""

    pairs: int  # different ones
    source: Side
    target: Side
    alike: float  # how much of what is written on both sides is in the same letters, each as often as it comes
    copied: float  # of the target's runs of characters, how many stand in their own source beyond chance
    own: float = 0.0  # the same, of those that two other targets have not: what is filled into a form
    formal: float = 0.0  # of the target's runs of characters, how many another target has too
    uneven: float = 1.0  # how much the ratio of the lengths of target and source varies: e to this power, about
    tags: float = 0.0  # of a source, on average; they stand in columns of their own and are no text
    examples: int = 0  # with those that came before

    @property
    def lines(self) -> int:
        """Examples that are gone through in a pass."""
        return max(self.pairs, self.examples)

    @property
    def worth(self) -> float:
        """Examples that teach about as much as these: what comes again teaches little more."""
        return math.sqrt(self.pairs * self.lines)


@dataclass
class Tally:
    """One side while it is gone through."""

    lengths: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)  # of words
    letters: Counter[str] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)

    def add(self, text: str) -> None:
        words = text.split()
        self.lengths.append(len(text))
        self.counts.append(len(words))
        self.letters.update(text[:LONG])
        self.words.update(words)

    def side(self) -> Side:
        texts, total = len(self.lengths), self.words.total()
        seldom = sum(often for often in self.words.values() if often < SELDOM)
        plain = sum(often for word, often in self.words.items() if not any(map(str.isdigit, word)))
        unspaced = sum(often for letter, often in self.letters.items() if is_unspaced(letter))
        syllables, jamo = (sum(often for letter, often in self.letters.items() if kind.match(letter))
                           for kind in (SYLLABLE, JAMO))  # fmt: skip
        letters = max(1, self.letters.total())
        return Side(sum(self.lengths) / texts, total / texts, nearly_most(self.lengths), nearly_most(self.counts),
                    len(self.letters), len(self.words), seldom / max(1, total), total / max(1, len(self.words)),
                    plain / max(1, total), unspaced / letters, syllables / letters,
                    (syllables + jamo) / letters)  # fmt: skip


def is_unspaced(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith(UNSPACED)


def nearly_most(lengths: Sequence[int]) -> int:
    return sorted(lengths)[int(0.999 * (len(lengths) - 1))]


def measure(path: str, columns: Columns, tags: Sequence[str] = ()) -> Facts | None:
    """The facts of the pairs in a file; none where there are none that could be read, or of a pipe, read once."""
    if not all(map(os.path.isfile, files_of(path))):
        return None
    places = tuple(columns.source.index(name) for name in tags if name in columns.source)
    return measured(path, columns, places, tuple(os.stat(each).st_mtime_ns for each in files_of(path)))


@lru_cache(maxsize=4)
def measured(path: str, columns: Columns, tags: tuple[int, ...], times: tuple[int, ...]) -> Facts | None:
    """The same, once for each state of the file: a comparison asks for every run."""
    return facts_of(streamed(path, columns), tags)


def streamed(path: str, columns: Columns) -> Iterator[Example]:
    yield from Stream(path, columns, skip_bad=True)


def facts_of(examples: Iterable[Example], tags: Sequence[int] = ()) -> Facts | None:
    """The facts of examples that are gone through once; none where there are none. `tags` are columns of a source."""
    seen, every, number, tagged, kept = set[int](), 1, -1, 0, list[tuple[str, str]]()
    with suppress(RegardError, OSError):  # what was read before it counts; the reader tells what is wrong
        for number, example in enumerate(islice(examples, MOST)):
            cells = [text for place, text in enumerate(example.source) if place not in tags]
            tagged += sum(len(split_tags(example.source[place])) for place in tags)
            pair = " ".join(cells), example.target or ""
            seen.add(hash((example.source, example.target)))  # what comes again teaches nothing more
            if number % every == 0:
                kept.append(pair)
            if len(kept) >= 2 * LOOKED:
                every, kept = 2 * every, kept[::2]
    return facts(len(seen), kept, tagged / (number + 1), number + 1) if kept else None


def facts(pairs: int, looked: Sequence[tuple[str, str]], tags: float = 0.0, examples: int = 0) -> Facts:
    source, target = Tally(), Tally()
    for left, right in looked:
        source.add(left)
        target.add(right)
    some = sorted({*looked})
    random.Random(0).shuffle(some)  # whatever the order in the file; and neighbours are no more alike than others
    some = some[:PAIRS]
    sources, targets = ([pieces(text) for text in side] for side in zip(*some, strict=True))
    filled = [target - targets[number - 1] - targets[(number - 2) % len(some)] for number, target in enumerate(targets)]
    begun = [pieces(text[:FIRST]) for _, text in some]
    formal = sum(share(target, begun[number - 1]) for number, target in enumerate(begun)) / len(some)
    return Facts(pairs, source.side(), target.side(), alike(source.letters, target.letters), gain(sources, targets),
                 gain(sources, filled), formal, uneven(some), tags, examples)  # fmt: skip


def alike(left: Counter[str], right: Counter[str]) -> float:
    """The share of letters that two sides have in common: a name in another script now and then does not count."""
    first, second = ({letter: often for letter, often in letters.items() if not letter.isspace()}
                     for letters in (left, right))  # fmt: skip
    one, other = max(1, sum(first.values())), max(1, sum(second.values()))
    return sum(min(often / one, second.get(letter, 0) / other) for letter, often in first.items())


def uneven(pairs: Sequence[tuple[str, str]]) -> float:
    """The deviation of the ratio of lengths, in logarithms: small where letters follow letters one by one.

    Of long texts it is small whatever they are, as that of a sum of many parts: there it counts for more.
    """
    length = sum(len(target) for _, target in pairs) / len(pairs)
    ratios = sorted(math.log((1 + len(target)) / (1 + len(source))) for source, target in pairs)
    usual = ratios[len(ratios) // 2]
    spread = 1.4826 * sorted(abs(ratio - usual) for ratio in ratios)[len(ratios) // 2]  # by medians, as of a bell
    return spread * max(1.0, math.sqrt(length / EVENED))


def copied(pairs: Sequence[tuple[str, str]]) -> float:
    """How much of a target stands in its own source, less what stands in another's, on average over all pairs."""
    return gain(*([pieces(text) for text in side] for side in zip(*pairs, strict=True)))


def gain(sources: Sequence[set[str]], wanted: Sequence[set[str]]) -> float:
    """How much of what is wanted stands in its own source, less what stands in another's, where anything is wanted."""
    gains = [
        share(each, sources[number]) - share(each, sources[number - 1]) for number, each in enumerate(wanted) if each
    ]
    return max(0.0, sum(gains) / max(1, len(gains)))


def pieces(text: str) -> set[str]:
    return {text[first : first + RUN] for first in range(max(1, min(LONG, len(text)) - RUN + 1))}


def share(wanted: set[str], there: set[str]) -> float:
    return len(wanted & there) / max(1, len(wanted))
