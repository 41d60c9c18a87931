"""A language and the spellings of tokens in, which tokens may follow what was written out.

Whatever is allowed still comes to a legal end within the length limit: a token after which no end could be reached in
time is never written. So no output breaks a constraint, and no search runs into a dead end.
"""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data.ragged import Numbers, ragged
from regard.data.read import quote
from regard.data.tokens import END, REPLACEMENT, UNKNOWN, Tokenizer
from regard.errors import UsageError
from regard.search.languages import Both, Choices, Language, Phrases, Remembered, Without, holds, weight
from regard.search.pattern import Pattern

NOWHERE = -1  # the state of a row that is no part of the beam any more
FIRST = 0
MOST_KEPT = 4096  # masks that are remembered, at most
MOST_BYTES = 1 << 26  # of rows, of masks and of banks, each
MOST_HELD = 1 << 28  # bytes of states; one search can need a hundred megabytes, and should not for ever begin anew
STATE_BYTES = 500  # of a state itself
MOST_TRIED = 200_000  # states that are looked through for one that ends
SHOWN = 3  # texts that an error names
MOST_TOKENS = 1 << 16  # a text that needs more is none

Tail = tuple[int, ...]


@dataclass(frozen=True)
class Spellings:
    """The bytes that each token adds to a text, where it is the first and where it is not."""

    first: dict[int, bytes]
    later: dict[int, bytes]
    size: int  # of the vocabulary, tokens that are never written included


def spellings(tokenizer: Tokenizer, unknown: bool = False) -> Spellings:
    """What `decode` does with each piece of text, and with UNKNOWN if it may be written."""
    pieces = tokenizer.pieces
    parts = dict(enumerate(pieces.spellings, pieces.first)) | ({UNKNOWN: REPLACEMENT.encode()} if unknown else {})
    first = {id: pieces.join([part]) for id, part in parts.items()}
    later = {id: pieces.join([b"x", part])[1:] for id, part in parts.items()}
    return Spellings(first, later, tokenizer.size)


class Bytes:
    """The spellings of many tokens, to be followed side by side."""

    def __init__(self, spelled: dict[int, bytes]) -> None:
        self.ids = np.array(sorted(spelled), np.int64)
        parts = ragged([spelled[id] for id in self.ids.tolist()])
        self.flat, self.starts, self.lengths = parts.ids, parts.starts, parts.lengths
        self.empty = (self.lengths == 0).nonzero()[0]
        full = self.lengths.nonzero()[0]
        heads = self.flat[self.starts[full]]
        self.by_head = {int(head): full[heads == head] for head in np.unique(heads)}

    def lead(self, language: Language, start: Any) -> dict[Any, Numbers]:
        """The tokens whose bytes a language can follow from `start`, by the state that they lead to.

        Most are gone after the first byte, so this is one question for each first byte there is.
        """
        steps = {head: language.follow(start, head) for head in self.by_head}
        places = list(dict.fromkeys([start, *(state for state in steps.values() if state is not None)]))
        number = {state: place for place, state in enumerate(places)}
        going = [(self.by_head[head], number[state]) for head, state in steps.items() if state is not None]
        which = np.concatenate([self.empty, *(tokens for tokens, _ in going)])
        at = np.concatenate([self.empty * 0, *(np.full(len(tokens), state) for tokens, state in going)])
        for place in range(1, int(self.lengths[which].max(initial=0))):
            on = (at != NOWHERE) & (self.lengths[which] > place)
            at[on] = further(language, number, at[on] << 8 | self.flat[self.starts[which[on]] + place])
        order = np.argsort(at, kind="stable")
        groups = np.split(self.ids[which[order]], np.searchsorted(at[order], range(len(number))))[1:]
        return {state: np.sort(ids) for state, ids in zip(number, groups, strict=True) if len(ids)}


def further(language: Language, number: dict[Any, int], steps: Numbers) -> Numbers:
    """The numbers of states one byte on, new ones added; a step is the number of a state × 256 + the byte."""
    distinct, which = np.unique(steps, return_inverse=True)
    states = list(number)
    reached = [language.follow(states[step >> 8], step & 255) for step in distinct.tolist()]
    found = [NOWHERE if state is None else number.setdefault(state, len(number)) for state in reached]
    return np.array(found, np.int64)[which]


@dataclass(slots=True)
class State:
    """A state of the language, whether anything is written, and the end of the text that begins a banned n-gram."""

    begun: bool
    at: Any
    tail: Tail
    ends: bool
    least: float  # bytes to a legal end, at least and at most
    most: float
    known: tuple[int, ...]  # tokens to a legal end, some counts that are certain
    reached: float = math.inf  # the fewest tokens in which a search found an end
    missed: int = -1  # within so many tokens there is none

    def certain(self, low: int, high: int) -> bool:
        """Whether it is known that an end is `low` to `high` tokens away."""
        if low <= 0 and self.fewest <= high:
            return True
        return any(low <= count <= high for count in self.known)

    def possible(self, low: int, high: int, longest: int) -> bool:
        """A bound: no token adds more than `longest` bytes, and only the first can add nothing."""
        return high > self.missed and self.least <= high * longest and self.most + 1 >= low

    @property
    def fewest(self) -> float:
        """In so many tokens an end can be reached; perhaps in fewer."""
        return 0 if self.ends else min((self.reached, *self.known))


class Constraint:
    """An automaton over tokens.

    States are numbered as they are met, 0 first, so that rows of a search can carry them in a tensor. `banned` n-grams
    belong to the automaton because the way to an end must lead around them.
    """

    def __init__(self, language: Language, spelled: Spellings, banned: Iterable[Tail] = (), name: str = "") -> None:
        self.language, self.size, self.name = language, spelled.size, name
        self.spelled = spelled
        self.first, self.later = Bytes(spelled.first), Bytes(spelled.later)
        self.texts = len(language.lines) if isinstance(language, Choices) else math.inf  # that there are, at most
        self.banned = frozenset(banned)
        self.tails = {gram[:length] for gram in self.banned for length in range(len(gram))} | {()}
        self.in_banned = sorted({token for gram in self.banned for token in gram})
        self.longest = max(map(len, (*spelled.first.values(), *spelled.later.values())), default=1) or 1
        # If every byte can be written by itself, so many bytes can be written as so many tokens.
        single = {part for part in spelled.later.values() if len(part) == 1}
        self.any_byte = len(single) == 256 and not self.banned
        self.held = self.row_bytes = 0
        self.states: list[State] = []
        self.numbers: dict[Hashable, int] = {}
        self.successors: dict[int, dict[int, Numbers]] = {}
        self.answers: dict[tuple[int, int, int], bool] = {}
        self.masks: dict[tuple[int, int, int], Tensor] = {}
        self.banks: dict[int, Tensor] = {}
        self.number(False, language.start, ())

    @property
    def is_large(self) -> bool:
        """Whether it has met so much that the next search had better begin with a new one, which allows the same.

        A search that goes on carries the numbers of its states, so nothing is forgotten under it.
        """
        learnt = self.language.held if isinstance(self.language, Remembered) else 0
        return self.held + learnt > MOST_HELD

    # ── for a search ─────────────────────────────────────────────────────────────────────────────────────────────────

    def legal(self, state_R: Tensor, low: int, high_R: Tensor) -> Tensor:
        """For each row the tokens after which the text can end, `low` to `high` tokens from here."""
        wanted = zip(state_R.tolist(), high_R.tolist(), strict=True)
        return torch.stack([self.mask(state, max(low, 0), high) for state, high in wanted]).to(state_R.device)

    def after(self, state_R: Tensor, token_R: Tensor) -> Tensor:
        """The state of each row when it has written a token."""
        moves = zip(state_R.tolist(), token_R.tolist(), strict=True)
        return torch.tensor([self.follow(state, token) for state, token in moves], device=state_R.device)

    def met(self, state_R: Tensor) -> Tensor:
        """For each row and next token how much of what is required would be there, up to `language.total`."""
        return torch.stack([self.met_after(state) for state in state_R.tolist()]).to(state_R.device)

    def limits(
        self, limits: Sequence[int], prefix: Sequence[int], fixed: bool, longest: int, bounded: bool = False
    ) -> list[int]:
        """The limits, lifted where nothing legal is that short; `fixed` ones are not lifted but refused.

        A list ends by itself, so with one the length of a source need not guess how long an output may become: all of
        it can be written, up to the `longest` length that the model was made for. Nothing longer is tried if it is
        `bounded` by that.
        """
        begun = self.begin(prefix)
        most = self.language.most(self.language.start)
        asked = limits if fixed or most == math.inf else [max(limit, min(int(most), longest)) for limit in limits]
        room = max(min(asked, default=0) - len(prefix), 0)
        least = len(prefix) + (room if self.reaches(begun, 0, room) else self.least_length(begun, room))
        if (fixed and least > max([len(prefix), *asked])) or (bounded and least > longest):
            raise self.too_long(least, max(asked), longest, bounded)
        return [max(limit, least) for limit in asked]

    def too_long(self, least: int, asked: int, longest: int, bounded: bool) -> UsageError:
        if least <= longest:
            return UsageError(f"max_length {asked}: the shortest text {self.name} has {least} tokens; "
                              "allow more, or change what is asked of outputs")  # fmt: skip
        cure = "" if bounded else ", or leave out max_length to try longer ones"
        return UsageError(f"the shortest text {self.name} has {least} tokens, "
                          f"expected at most {longest} (data.max_target); ask for something shorter{cure}")  # fmt: skip

    # ── states ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def number(self, begun: bool, at: Any, tail: Tail) -> int:
        key = (begun, at, tail)
        if key not in self.numbers:
            self.numbers[key] = len(self.states)
            self.held += STATE_BYTES + weight(at)
            ask = self.language
            known = ask.known(at) if begun and self.any_byte else ()
            self.states.append(State(begun, at, tail, ask.ends(at), ask.least(at), ask.most(at), known))
        return self.numbers[key]

    def follow(self, state: int, token: int) -> int:
        """The next state; what is not legal leads nowhere. A prefix may write what is banned."""
        if state == NOWHERE:
            return NOWHERE
        before = self.states[state]
        at, part = before.at, (self.spelled.later if before.begun else self.spelled.first).get(token)
        for byte in part or b"":
            at = None if at is None else self.language.follow(at, byte)
        return NOWHERE if at is None or part is None else self.number(True, at, self.tail(before.tail, token))

    def begin(self, prefix: Sequence[int]) -> int:
        """The state after a prefix."""
        state = FIRST
        for token in prefix:
            state = self.follow(state, token)
        if state == NOWHERE:
            raise UsageError(f"the prefix can not begin a text {self.name}; leave one of them out")
        return state

    def row(self, state: int) -> dict[int, Numbers]:
        """Every state that one more token leads to, with the tokens that do."""
        if state not in self.successors:
            if self.row_bytes > MOST_BYTES:
                self.successors.clear()
                self.row_bytes = 0
            before = self.states[state]
            found = (self.later if before.begun else self.first).lead(self.language, before.at)
            self.successors[state] = self.numbered(found, before.tail)
            self.row_bytes += STATE_BYTES + sum(weight(ids) for ids in self.successors[state].values())
        return self.successors[state]

    def numbered(self, found: dict[Any, Numbers], tail: Tail) -> dict[int, Numbers]:
        """What was found, without the tokens that would complete a banned n-gram."""
        row: dict[int, Numbers] = {}
        for at, ids in found.items():
            watched = np.isin(ids, self.in_banned)
            if not watched.all():
                row[self.number(True, at, ())] = ids[~watched]
            for id in ids[watched].tolist():
                if not self.banned.intersection(ends_of((*tail, id))):
                    to = self.number(True, at, self.tail(tail, id))
                    row[to] = np.append(row.get(to, ids[:0]), id)
        return row

    def tail(self, tail: Tail, token: int) -> Tail:
        """The longest end of the text that begins a banned n-gram."""
        return next(end for end in ends_of((*tail, token)) if end in self.tails)

    # ── the way to an end ────────────────────────────────────────────────────────────────────────────────────────────

    def reaches(self, number: int, low: int, high: int) -> bool:
        """Whether a legal end is `low` to `high` tokens away."""
        state = self.states[number]
        if state.certain(low, high) or not state.possible(low, high, self.longest):
            return state.certain(low, high)
        key = (number, low, high)
        if key not in self.answers:
            if len(self.answers) >= MOST_KEPT * 16:
                self.answers.clear()
            self.answers[key] = self.search(number, low, high)
        return self.answers[key]

    def search(self, number: int, low: int, high: int) -> bool:
        """Level by level, all states that so many tokens lead to; what is found out is kept with the first."""
        begun, level, seen, tried = self.states[number], {number}, set[int](), 0
        for count in range(high + 1):
            states = [self.states[each] for each in level]
            if any(state.certain(low - count, high - count) for state in states):
                begun.reached = min(begun.reached, *(count + state.fewest for state in states))
                return True
            seen |= level if count >= low else set()
            tried += len(level)
            if tried > MOST_TRIED:
                raise UsageError(f"finding a text {self.name} takes too long; ask for something simpler")
            level = {to for each in level for to in self.row(each) if to not in seen
                     and self.states[to].possible(low - count - 1, high - count - 1, self.longest)}  # fmt: skip
        begun.missed = high if low <= 0 else begun.missed
        return False

    def least_length(self, state: int, high: int) -> int:
        """How many tokens the nearest end is away, which is more than `high`."""
        low, high = high, high + 1
        while not self.reaches(state, 0, high):
            if high >= MOST_TOKENS:
                raise UsageError(f"found no text {self.name} among what the model can write; "
                                 "are all its words in the vocabulary?")  # fmt: skip
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.reaches(state, 0, middle) else (middle, high)
        return high

    # ── tokens ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def mask(self, state: int, low: int, high: int) -> Tensor:
        """True for each token that may follow; where nothing legal is long enough, what leads to the longest."""
        key = (state, low, high)
        if key not in self.masks:
            if len(self.masks) >= most_kept(self.size):
                self.masks.clear()
            tries = (self.tokens(state, least, high) for least in range(max(min(low, high), 0), -1, -1))
            found = next((ids for ids in tries if len(ids)), [END])
            mask = np.zeros(self.size, np.bool_)
            mask[found] = True
            self.masks[key] = torch.from_numpy(mask)
        return self.masks[key]

    def tokens(self, state: int, low: int, high: int) -> Numbers:
        found = [np.empty(0, np.int64)]
        if state == NOWHERE:
            return found[0]
        if low <= 0 and self.states[state].ends:
            found.append(np.array([END]))
        for to, ids in self.row(state).items() if high > 0 else ():
            if self.reaches(to, max(low - 1, 0), high - 1):
                found.append(ids)
        return np.concatenate(found)

    def met_after(self, state: int) -> Tensor:
        if state not in self.banks:
            if len(self.banks) >= most_kept(8 * self.size):
                self.banks.clear()
            met = np.zeros(self.size, np.int64)
            if state != NOWHERE:
                for to, ids in self.row(state).items():
                    met[ids] = self.language.met(self.states[to].at)
                met[END] = self.language.met(self.states[state].at)
            self.banks[state] = torch.from_numpy(met)
        return self.banks[state]


def most_kept(size: int) -> int:
    """How many tensors of so many bytes are remembered."""
    return max(1, min(MOST_KEPT, MOST_BYTES // size))


def ends_of(tokens: Tail) -> list[Tail]:
    """The whole, the whole without its first token, … and nothing."""
    return [tokens[start:] for start in range(len(tokens) + 1)]


def constraint(tokenizer: Tokenizer, pattern: str, choices: Sequence[str], required: Sequence[str],
               banned: Sequence[str]) -> Constraint | None:  # fmt: skip
    """What outputs must match, be among, hold and not hold, as one; none if nothing is asked of them."""
    phrases, without = (tuple(dict.fromkeys(text for text in texts if text)) for texts in (required, banned))
    name = described(pattern, choices, phrases, without)
    parts: list[Language] = [*([Pattern(pattern)] if pattern else []), *([Phrases(phrases)] if phrases else []),
                             *([Without(without)] if without else [])]  # fmt: skip
    language = Remembered(reduce(Both, parts)) if parts else None
    if choices:
        fitting = Choices(text for text in choices if language is None or holds(language, text))
        if not fitting.lines:
            raise UsageError(f"found no text {name}")
        return Constraint(fitting, spellings(tokenizer), name=name)
    if language is None:
        return None
    return Constraint(language, spellings(tokenizer, unknown=not pattern), name=name)


def described(pattern: str, choices: Sequence[str], phrases: Sequence[str], without: Sequence[str]) -> str:
    """The constraints as they continue "a text …"."""
    parts = [f"that matches {quote(pattern)}"] if pattern else []
    parts += [f"among the {len(choices)} choices"] if choices else []
    parts += [f"that holds {some(phrases)}"] if phrases else []
    parts += [f"that does not hold {some(without)}"] if without else []
    return " and ".join(parts)


def some(texts: Sequence[str]) -> str:
    return ", ".join(map(quote, texts[:SHOWN])) + (" …" if len(texts) > SHOWN else "")
