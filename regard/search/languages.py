"""Texts that outputs must be among, must hold or must not in, what may follow each byte of an output out.

A language is a deterministic automaton over the UTF-8 bytes of a text. Its states are made when they are first asked
for, so a list of a hundred thousand lines or an expression with many ways through it costs only what is met of it.
"""

from array import array
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence
from sys import getsizeof
from typing import Any, Protocol

import numpy as np

from regard.data.tokens import mend

NO_WAY, NOT_ASKED = -1, -2
UNASKED = array("i", [NOT_ASKED] * 256)
OVERHEAD = 50  # bytes of a place in a list and in a dictionary


class Language(Protocol):
    """Which texts are legal, byte by byte.

    `least` and `most` bound how many bytes follow a state before a legal end; `known` are counts of which it is certain
    that so many can. `met` of `total` tells how much of what every text must hold is there already.
    """

    start: Any
    total: int

    def follow(self, state: Any, byte: int) -> Hashable | None: ...

    def ends(self, state: Any) -> bool: ...

    def least(self, state: Any) -> float: ...

    def most(self, state: Any) -> float: ...

    def known(self, state: Any) -> tuple[int, ...]: ...

    def met(self, state: Any) -> int: ...


def holds(language: Language, text: str) -> bool:
    """Whether a text belongs to a language."""
    state = language.start
    for byte in mend(text).encode():
        state = language.follow(state, byte)
        if state is None:
            return False
    return language.ends(state)


class Choices:
    """A list of texts, one of which is written. A state is the run of sorted lines that begin alike, and how far."""

    total = 0

    def __init__(self, texts: Iterable[str]) -> None:
        self.lines = sorted({mend(text).encode() for text in texts})
        self.lengths = np.fromiter(map(len, self.lines), np.int64, len(self.lines))
        self.start = (0, len(self.lines), 0)

    def follow(self, state: tuple[int, int, int], byte: int) -> tuple[int, int, int] | None:
        first, end, depth = state
        begun = self.lines[first][:depth]
        first = bisect_left(self.lines, begun + bytes([byte]), first, end)
        if first == end or self.lines[first][: depth + 1] != begun + bytes([byte]):
            return None
        # No byte of UTF-8 is 255, so there is a next one.
        return first, bisect_left(self.lines, begun + bytes([byte + 1]), first, end), depth + 1

    def ends(self, state: tuple[int, int, int]) -> bool:
        return int(self.lengths[state[0]]) == state[2]

    def least(self, state: tuple[int, int, int]) -> float:
        return int(self.lengths[state[0] : state[1]].min()) - state[2]

    def most(self, state: tuple[int, int, int]) -> float:
        return int(self.lengths[state[0] : state[1]].max()) - state[2]

    def known(self, state: tuple[int, int, int]) -> tuple[int, ...]:
        return int(self.least(state)), int(self.most(state))

    def met(self, state: tuple[int, int, int]) -> int:
        return 0


class Phrases:
    """Texts that an output must hold, anywhere and in any order; they may overlap. A state is how far each has come.

    How far a phrase falls back when a byte does not fit is the table of Knuth, Morris and Pratt (1977).
    """

    def __init__(self, phrases: Sequence[str]) -> None:
        self.phrases = [mend(phrase).encode() for phrase in phrases]
        self.back = [fallbacks(phrase) for phrase in self.phrases]
        self.total = sum(map(len, self.phrases))
        self.start = (0,) * len(self.phrases)

    def follow(self, state: tuple[int, ...], byte: int) -> tuple[int, ...]:
        return tuple([self.longer(number, matched, byte) for number, matched in enumerate(state)])

    def longer(self, number: int, matched: int, byte: int) -> int:
        """How much of one phrase stands at the end of the text after another byte; all of it, once it was there."""
        phrase, back = self.phrases[number], self.back[number]
        if matched == len(phrase):
            return matched
        while matched and phrase[matched] != byte:
            matched = back[matched - 1]
        return matched + (phrase[matched] == byte)

    def ends(self, state: tuple[int, ...]) -> bool:
        return sum(state) == self.total

    def least(self, state: tuple[int, ...]) -> float:
        return max(len(phrase) - matched for phrase, matched in zip(self.phrases, state, strict=True))

    def most(self, state: tuple[int, ...]) -> float:
        return float("inf")

    def known(self, state: tuple[int, ...]) -> tuple[int, ...]:
        """One phrase is brought to its end and all that are missing follow it whole."""
        missing = [(len(phrase), matched) for phrase, matched in zip(self.phrases, state, strict=True)
                   if matched < len(phrase)]  # fmt: skip
        furthest = max((matched for _, matched in missing), default=0)
        return (sum(length for length, _ in missing) - furthest,)

    def met(self, state: tuple[int, ...]) -> int:
        return sum(state)


def fallbacks(phrase: bytes) -> list[int]:
    """For each beginning of a phrase, how long the longest shorter beginning is that it ends with."""
    back = [0] * len(phrase)
    for place in range(1, len(phrase)):
        matched = back[place - 1]
        while matched and phrase[matched] != phrase[place]:
            matched = back[matched - 1]
        back[place] = matched + (phrase[matched] == phrase[place])
    return back


class Without:
    """Texts that no output holds. A state is the longest of their beginnings that the text ends with, a node in a tree.

    Where to fall back to when a byte does not fit is told by the links of Aho and Corasick (1975).
    """

    total = 0
    start = 0

    def __init__(self, phrases: Iterable[str]) -> None:
        self.next: list[dict[int, int]] = [{}]
        self.whole: list[bool] = [False]  # whether the text of a node ends with a phrase
        for phrase in phrases:
            self.whole[self.node(mend(phrase).encode())] = True
        self.back = [0] * len(self.next)
        self.link()

    def node(self, phrase: bytes) -> int:
        at = 0
        for byte in phrase:
            if byte not in self.next[at]:
                self.next[at][byte] = len(self.next)
                self.next.append({})
                self.whole.append(False)
            at = self.next[at][byte]
        return at

    def link(self) -> None:
        """Short beginnings first: where a longer one falls back to is found from them."""
        level = [0]
        while level:
            for node in level:
                for byte, to in self.next[node].items():
                    self.back[to] = self.longest(self.back[node], byte) if node else 0
                    self.whole[to] |= self.whole[self.back[to]]
            level = [to for node in level for to in self.next[node].values()]

    def longest(self, state: int, byte: int) -> int:
        while state and byte not in self.next[state]:
            state = self.back[state]
        return self.next[state].get(byte, 0)

    def follow(self, state: int, byte: int) -> int | None:
        after = self.longest(state, byte)
        return None if self.whole[after] else after

    def ends(self, state: int) -> bool:
        return True

    def least(self, state: int) -> float:
        return 0

    def most(self, state: int) -> float:
        return float("inf")

    def known(self, state: int) -> tuple[int, ...]:
        return (0,)

    def met(self, state: int) -> int:
        return 0


class Both:
    """The texts of two languages at once. A state is a state of each."""

    def __init__(self, left: Language, right: Language) -> None:
        self.left, self.right = left, right
        self.start = (left.start, right.start)
        self.total = left.total + right.total

    def follow(self, state: tuple[Any, Any], byte: int) -> tuple[Any, Any] | None:
        left = self.left.follow(state[0], byte)
        right = None if left is None else self.right.follow(state[1], byte)
        return None if right is None else (left, right)

    def ends(self, state: tuple[Any, Any]) -> bool:
        return self.left.ends(state[0]) and self.right.ends(state[1])

    def least(self, state: tuple[Any, Any]) -> float:
        return max(self.left.least(state[0]), self.right.least(state[1]))

    def most(self, state: tuple[Any, Any]) -> float:
        return min(self.left.most(state[0]), self.right.most(state[1]))

    def known(self, state: tuple[Any, Any]) -> tuple[int, ...]:
        return ()  # what completes the one may break the other

    def met(self, state: tuple[Any, Any]) -> int:
        return self.left.met(state[0]) + self.right.met(state[1])


def weight(state: Any) -> int:
    """Bytes that a state takes, about: what is small beside it is not counted."""
    parts = sum(map(weight, state)) if isinstance(state, tuple) else 0
    return OVERHEAD + getsizeof(state) + parts


class Remembered:
    """A language whose states are numbers, and which is asked but once where a byte leads.

    For languages with few states, through which many tokens lead.
    """

    def __init__(self, language: Language) -> None:
        self.language = language
        self.total = language.total
        self.states: list[Any] = []
        self.next: list[array[int]] = []
        self.numbers: dict[Hashable, int] = {}
        self.held = 0  # bytes, about
        self.start = self.number(language.start)

    def number(self, state: Hashable) -> int:
        if state not in self.numbers:
            self.numbers[state] = len(self.states)
            self.states.append(state)
            self.next.append(UNASKED[:])
            self.held += UNASKED.itemsize * len(UNASKED) + weight(state)
        return self.numbers[state]

    def follow(self, state: int, byte: int) -> int | None:
        to = self.next[state][byte]
        if to == NOT_ASKED:
            after = self.language.follow(self.states[state], byte)
            to = self.next[state][byte] = NO_WAY if after is None else self.number(after)
        return None if to == NO_WAY else to

    def ends(self, state: int) -> bool:
        return self.language.ends(self.states[state])

    def least(self, state: int) -> float:
        return self.language.least(self.states[state])

    def most(self, state: int) -> float:
        return self.language.most(self.states[state])

    def known(self, state: int) -> tuple[int, ...]:
        return self.language.known(self.states[state])

    def met(self, state: int) -> int:
        return self.language.met(self.states[state])
