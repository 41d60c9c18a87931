"""A language and the spellings of tokens in, which tokens may follow what was written out.

Whatever is allowed still comes to a legal end within the length limit: a token after which no end could be reached in
time is never written. So no output breaks a constraint, and no search runs into a dead end.
"""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from regard.data.read import quote
from regard.data.tokens import END, REPLACEMENT, UNKNOWN, Tokenizer
from regard.errors import UsageError
from regard.search.languages import Both, Choices, Language, Phrases, holds
from regard.search.pattern import Pattern

NOWHERE = -1  # the state of a row that is no part of the beam any more
FIRST = 0
MOST_KEPT = 4096  # masks that are remembered
MOST_TRIED = 200_000  # states that are looked through for one that ends
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


@dataclass
class Node:
    """A place in the tree of spellings: the tokens that end here, and where further bytes lead."""

    ids: list[int] = field(default_factory=list)
    children: dict[int, "Node"] = field(default_factory=dict)


def tree(spelled: dict[int, bytes]) -> Node:
    root = Node()
    for id, part in spelled.items():
        node = root
        for byte in part:
            node = node.children.setdefault(byte, Node())
        node.ids.append(id)
    return root


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
        self.first, self.later = tree(spelled.first), tree(spelled.later)
        self.banned = frozenset(banned)
        self.tails = {gram[:length] for gram in self.banned for length in range(len(gram))} | {()}
        self.in_banned = {token for gram in self.banned for token in gram}
        self.longest = max(map(len, (*spelled.first.values(), *spelled.later.values())), default=1) or 1
        # If every byte can be written by itself, so many bytes can be written as so many tokens.
        single = {part for part in spelled.later.values() if len(part) == 1}
        self.any_byte = len(single) == 256 and not self.banned
        self.states: list[State] = []
        self.numbers: dict[Hashable, int] = {}
        self.successors: dict[int, dict[int, list[int]]] = {}
        self.answers: dict[tuple[int, int, int], bool] = {}
        self.masks: dict[tuple[int, int, int], Tensor] = {}
        self.banks: dict[int, Tensor] = {}
        self.number(False, language.start, ())

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

    def limits(self, limits: Sequence[int], prefix: Sequence[int], fixed: bool, longest: int) -> list[int]:
        """The limits, lifted where nothing legal is that short; `fixed` ones are not lifted but refused.

        A list ends by itself, so with one the length of a source need not guess how long an output may become: all of
        it can be written, up to the `longest` length that the model was made for.
        """
        begun = self.begin(prefix)
        most = self.language.most(self.language.start)
        asked = limits if fixed or most == math.inf else [max(limit, min(int(most), longest)) for limit in limits]
        least = min(asked, default=0)
        if not self.reaches(begun, 0, least - len(prefix)):
            least = self.least_length(begun, least - len(prefix)) + len(prefix)
        if fixed and least > max([len(prefix), *asked]):
            raise UsageError(f"max_length {max(asked)}: the shortest text {self.name} has {least} tokens; "
                             "allow more, or change what is asked of outputs")  # fmt: skip
        return [max(limit, least) for limit in asked]

    # ── states ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def number(self, begun: bool, at: Any, tail: Tail) -> int:
        key = (begun, at, tail)
        if key not in self.numbers:
            self.numbers[key] = len(self.states)
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

    def row(self, state: int) -> dict[int, list[int]]:
        """Every state that one more token leads to, with the tokens that do."""
        if state not in self.successors:
            if len(self.successors) >= MOST_KEPT * 16:
                self.successors.clear()
            before = self.states[state]
            found = self.walk(self.later if before.begun else self.first, before.at)
            self.successors[state] = self.numbered(found, before.tail)
        return self.successors[state]

    def walk(self, root: Node, start: Any) -> dict[Any, list[int]]:
        """The tokens whose bytes the language can follow, by where they lead in it: two trees walked side by side."""
        found: dict[Any, list[int]] = {}
        left = [(root, start)]
        follow = self.language.follow
        while left:
            node, at = left.pop()
            if node.ids:
                found.setdefault(at, []).extend(node.ids)
            for byte, child in node.children.items():
                after = follow(at, byte)
                if after is not None:
                    left.append((child, after))
        return found

    def numbered(self, found: dict[Any, list[int]], tail: Tail) -> dict[int, list[int]]:
        """What was found, without the tokens that would complete a banned n-gram."""
        row: dict[int, list[int]] = {}
        for at, ids in found.items():
            plain = [id for id in ids if id not in self.in_banned]
            if plain:
                row[self.number(True, at, ())] = plain
            for id in ids if len(plain) < len(ids) else ():
                if id in self.in_banned and not self.banned.intersection(ends_of((*tail, id))):
                    row.setdefault(self.number(True, at, self.tail(tail, id)), []).append(id)
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
        low, high = max(high, 0), max(high, 0) + 1
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
        """True for each token that may follow; where nothing is long enough, what is legal and shorter."""
        key = (state, low, high)
        if key not in self.masks:
            if len(self.masks) >= MOST_KEPT:
                self.masks.clear()
            found = self.tokens(state, low, high) or self.tokens(state, 0, high) or [END]
            mask_V = torch.zeros(self.size, dtype=torch.bool)
            mask_V[found] = True
            self.masks[key] = mask_V
        return self.masks[key]

    def tokens(self, state: int, low: int, high: int) -> list[int]:
        if state == NOWHERE:
            return []
        found = [END] if low <= 0 and self.states[state].ends else []
        for to, ids in self.row(state).items() if high > 0 else ():
            if self.reaches(to, max(low - 1, 0), high - 1):
                found += ids
        return found

    def met_after(self, state: int) -> Tensor:
        if state not in self.banks:
            if len(self.banks) >= MOST_KEPT:
                self.banks.clear()
            met_V = torch.zeros(self.size, dtype=torch.long)
            if state != NOWHERE:
                for to, ids in self.row(state).items():
                    met_V[ids] = self.language.met(self.states[to].at)
                met_V[END] = self.language.met(self.states[state].at)
            self.banks[state] = met_V
        return self.banks[state]


def ends_of(tokens: Tail) -> list[Tail]:
    """The whole, the whole without its first token, … and nothing."""
    return [tokens[start:] for start in range(len(tokens) + 1)]


def constraint(tokenizer: Tokenizer, pattern: str, choices: Sequence[str], required: Sequence[str],
               banned: Iterable[Tail]) -> Constraint | None:  # fmt: skip
    """What outputs must match, be among and hold, as one; none if nothing is asked of them."""
    phrases = tuple(dict.fromkeys(phrase for phrase in required if phrase))
    matching = Pattern(pattern) if pattern else None
    language: Language | None = matching
    if phrases:
        language = Phrases(phrases) if matching is None else Both(matching, Phrases(phrases))
    if choices:
        language = Choices(text for text in choices if language is None or holds(language, text))
        if not language.lines:
            raise UsageError(f"found no text {described(pattern, choices, phrases)}")
    if language is None:
        return None
    spelled = spellings(tokenizer, unknown=not pattern and not choices)
    return Constraint(language, spelled, banned, described(pattern, choices, phrases))


def described(pattern: str, choices: Sequence[str], phrases: Sequence[str]) -> str:
    """The constraints as they continue "a text …"."""
    parts = [f"that matches {quote(pattern)}"] if pattern else []
    parts += [f"among the {len(choices)} choices"] if choices else []
    parts += [f"that holds {', '.join(map(quote, phrases))}"] if phrases else []
    return " and ".join(parts)
