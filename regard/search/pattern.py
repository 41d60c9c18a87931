"""A regular expression in, the language of the texts that match it as a whole out.

The syntax is that of Python's `re`, and so is what a character class holds: each is asked of `re` itself. What makes an
expression more than regular (back-references, looking around) is refused by name. The expression becomes a
nondeterministic automaton over characters (Thompson 1968), of which sets of nodes are followed, byte by byte.
"""

import heapq
import importlib
import re
import warnings
from bisect import bisect_right
from functools import lru_cache
from typing import Any, NamedTuple

from regard.data.read import quote
from regard.errors import UsageError

# The parser that `re` itself uses. It is not public, but nothing public tells what an expression is made of.
PARSER: Any = importlib.import_module("re._parser")

MOST_NODES = 50_000
SURROGATES = (0xD800, 0xDFFF)
HIGHEST = 0x10FFFF
SMALLEST = {1: 0, 2: 0x80, 3: 0x800, 4: 0x10000}  # code point that is spelled with so many bytes
CATEGORIES = {"DIGIT": r"\d", "NOT_DIGIT": r"\D", "SPACE": r"\s", "NOT_SPACE": r"\S", "WORD": r"\w",
              "NOT_WORD": r"\W"}  # fmt: skip
CLASS_FLAGS = re.IGNORECASE | re.DOTALL | re.ASCII  # what decides whether one character belongs
REFUSED = {
    "GROUPREF": "a reference back to a group",
    "GROUPREF_EXISTS": "a choice that depends on a group",
    "ASSERT": "looking ahead or behind",
    "ASSERT_NOT": "looking ahead or behind",
    "ATOMIC_GROUP": "an atomic group",
    "POSSESSIVE_REPEAT": "a possessive repeat",
    "AT_BOUNDARY": r"a word boundary (\b)",
    "AT_NON_BOUNDARY": r"a word boundary (\B)",
}

Ranges = tuple[tuple[int, int], ...]  # code points from … to, sorted and apart


class Place(NamedTuple):
    """A state: nodes, and how much of a character is spelled.

    `spelled` are its first bytes, and the nodes those before it. But where any further bytes lead to the same nodes,
    these are the nodes after it and `owed` counts the bytes that are missing: thousands of states are then one.
    """

    nodes: frozenset[int]
    spelled: bytes = b""
    owed: int = 0


class Pattern:
    """The texts that match an expression as a whole. A state is a set of nodes and a character half spelled."""

    total = 0

    def __init__(self, text: str) -> None:
        self.text = text
        self.free: list[list[int]] = []  # nodes reached with no character
        self.edges: list[list[tuple[Ranges, int]]] = []
        self.at_start: dict[int, int] = {}  # reached only before the first character
        self.at_end: dict[int, int] = {}  # reached only after the last
        first = self.node()
        self.final = self.whole(first)
        self.nearest = self.distances()
        self.start = Place(self.closure({first}, begun=False))
        if not self.start.nodes:
            raise UsageError(f"pattern {quote(text)}: no text matches it")

    # ── from the expression to nodes ─────────────────────────────────────────────────────────────────────────────────

    def whole(self, node: int) -> int:
        """The node in which the whole expression, begun at `node`, ends."""
        try:
            parsed = self.parse()
            return self.sequence(parsed, parsed.state.flags, node)
        except RecursionError:
            raise UsageError(f"pattern {quote(self.text)}: found groups within groups, too many to follow; "
                             "nest them less deeply") from None  # fmt: skip

    def parse(self) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)
                return PARSER.parse(self.text)
        except (re.error, OverflowError) as error:
            raise UsageError(f"pattern {quote(self.text)}: {error}; expected the syntax of Python's re") from None

    def refuse(self, what: str) -> None:
        raise UsageError(f"pattern {quote(self.text)}: found {what}, expected an expression without;\n"
                         "classes, groups, alternatives and repeats can be used")  # fmt: skip

    def node(self) -> int:
        if len(self.free) == MOST_NODES:
            raise UsageError(f"pattern {quote(self.text)}: its repeats unfold to more than {MOST_NODES} places; "
                             "write smaller numbers in braces")  # fmt: skip
        self.free.append([])
        self.edges.append([])
        return len(self.free) - 1

    def after(self, node: int) -> int:
        """A new node that is reached from another for nothing."""
        self.free[node].append(self.node())
        return self.free[node][-1]

    def sequence(self, items: Any, flags: int, node: int) -> int:
        """The node in which what begins at `node` ends."""
        for operation, value in items:
            node = self.item(str(operation), value, flags, node)
        return node

    def item(self, operation: str, value: Any, flags: int, node: int) -> int:
        match operation:
            case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
                if operation == "LITERAL" and not flags & re.IGNORECASE:  # the usual case, and sooner
                    ranges = without_surrogates(value, value)
                else:
                    ranges = characters(class_source(operation, value), flags & CLASS_FLAGS)
                self.edges[node].append((ranges, end := self.node()))
                return end
            case "SUBPATTERN":
                _, added, removed, inner = value
                return self.sequence(inner, (flags | added) & ~removed, node)
            case "BRANCH":
                return self.branch(value[1], flags, node)
            case "MAX_REPEAT" | "MIN_REPEAT":  # as a whole, what is eager and what is lazy match the same texts
                low, high, inner = value
                return self.repeat(low, high, inner, flags, node)
            case "AT":
                return self.place(str(value), flags, node)
            case "FAILURE":
                return self.node()
        self.refuse(REFUSED.get(operation, operation.lower()))
        return node

    def branch(self, alternatives: Any, flags: int, node: int) -> int:
        end = self.node()
        for alternative in alternatives:
            self.free[self.sequence(alternative, flags, self.after(node))].append(end)
        return end

    def repeat(self, low: int, high: int, inner: Any, flags: int, node: int) -> int:
        for _ in range(low):
            node = self.sequence(inner, flags, self.after(node))
        if high == PARSER.MAXREPEAT:
            head = self.after(node)
            self.free[self.sequence(inner, flags, self.after(head))].append(head)
            return self.after(head)
        end = self.node()
        self.free[node].append(end)
        for _ in range(high - low):
            node = self.sequence(inner, flags, self.after(node))
            self.free[node].append(end)
        return end

    def place(self, name: str, flags: int, node: int) -> int:
        """`^` and `$` hold at the two ends of the text alone; not, as in `re`, before a line break that ends it."""
        if name in ("AT_BEGINNING", "AT_END") and flags & re.MULTILINE:
            self.refuse("ends of lines (the flag m)")
        if name not in ("AT_BEGINNING", "AT_BEGINNING_STRING", "AT_END", "AT_END_STRING"):
            self.refuse(REFUSED.get(name, name.lower()))
        reached = self.at_start if name.startswith("AT_BEGINNING") else self.at_end
        reached[node] = self.node()
        return reached[node]

    # ── what is asked of a language ──────────────────────────────────────────────────────────────────────────────────

    def distances(self) -> list[float]:
        """For each node the fewest bytes to the end; infinitely many where there is no way."""
        into: list[list[tuple[int, int]]] = [[] for _ in self.free]
        for node, edges in enumerate(self.edges):
            for to in self.free[node]:
                into[to].append((node, 0))
            for ranges, to in edges:
                if ranges:
                    into[to].append((node, len(chr(ranges[0][0]).encode())))
        found = [float("inf")] * len(self.free)
        queue = [(0.0, node) for node in self.finals()]
        while queue:
            distance, node = heapq.heappop(queue)
            if distance < found[node]:
                found[node] = distance
                for source, cost in into[node]:
                    heapq.heappush(queue, (distance + cost, source))
        return found

    def finals(self) -> set[int]:
        """The nodes after which nothing more has to be written."""
        into: list[list[int]] = [[] for _ in self.free]
        for node, reached in enumerate(self.free):
            for to in [*reached, *([self.at_end[node]] if node in self.at_end else [])]:
                into[to].append(node)
        found, left = {self.final}, [self.final]
        while left:
            new = [node for node in into[left.pop()] if node not in found]
            found.update(new)
            left += new
        return found

    def closure(self, nodes: set[int], begun: bool = True) -> frozenset[int]:
        """The nodes reached for nothing, those alone from which the end can be reached."""
        found, left = set(nodes), list(nodes)
        while left:
            node = left.pop()
            reached = [*self.free[node], *([self.at_start[node]] if not begun and node in self.at_start else [])]
            left += [to for to in reached if to not in found]
            found.update(reached)
        return frozenset(node for node in found if self.nearest[node] < float("inf"))

    def follow(self, state: Place, byte: int) -> Place | None:
        return self.paid(state, byte) if state.owed else self.spell(state, byte)

    def paid(self, state: Place, byte: int) -> Place | None:
        return Place(state.nodes, owed=state.owed - 1) if byte & 0xC0 == 0x80 else None

    def spell(self, state: Place, byte: int) -> Place | None:
        spelled = state.spelled + bytes([byte])
        span = code_points(spelled)
        if span is None:
            return None
        low, high, missing = span
        edges = [edge for node in state.nodes for edge in self.edges[node] if meets(edge[0], low, high)]
        after = self.closure({to for _, to in edges})
        if not after:
            return None
        alike = high - low + 1 == 1 << 6 * missing and all(covers(ranges, low, high) for ranges, _ in edges)
        return Place(after, owed=missing) if alike else Place(state.nodes, spelled)

    def ends(self, state: Place) -> bool:
        return not state.spelled and not state.owed and any(self.nearest[node] == 0 for node in state.nodes)

    def least(self, state: Place) -> float:
        span = code_points(state.spelled) if state.spelled else None
        if span is None:
            return state.owed + min(self.nearest[node] for node in state.nodes)
        low, high, missing = span
        return missing + min(self.nearest[to] for node in state.nodes for ranges, to in self.edges[node]
                             if meets(ranges, low, high))  # fmt: skip

    def most(self, state: Place) -> float:
        return float("inf")  # a bound, and not worth a tighter one

    def known(self, state: Place) -> tuple[int, ...]:
        return (int(self.least(state)),)

    def met(self, state: Place) -> int:
        return 0


def code_points(spelled: bytes) -> tuple[int, int, int] | None:
    """The code points whose UTF-8 begins with these bytes, as lowest, highest and how many bytes are missing."""
    head = spelled[0]
    length = 1 if head < 0x80 else 2 if 0xC2 <= head < 0xE0 else 3 if 0xE0 <= head < 0xF0 else 4
    if 0x80 <= head < 0xC2 or head > 0xF4 or any(byte & 0xC0 != 0x80 for byte in spelled[1:]):
        return None
    value = head if length == 1 else head & (0x7F >> length)
    for byte in spelled[1:]:
        value = value << 6 | byte & 0x3F
    shift = 6 * (length - len(spelled))
    low, high = max(value << shift, SMALLEST[length]), min((value + 1 << shift) - 1, HIGHEST)
    return (low, high, length - len(spelled)) if low <= high else None


def meets(ranges: Ranges, low: int, high: int) -> bool:
    """Whether any code point from `low` to `high` is in the ranges."""
    place = bisect_right(ranges, (high, HIGHEST)) - 1
    return place >= 0 and ranges[place][1] >= low


def covers(ranges: Ranges, low: int, high: int) -> bool:
    """Whether all code points from `low` to `high` are in the ranges."""
    place = bisect_right(ranges, (low, HIGHEST)) - 1
    return place >= 0 and ranges[place][1] >= high


def class_source(operation: str, value: Any) -> str:
    """What stands for one character in an expression, written out again."""
    match operation:
        case "ANY":
            return "."
        case "LITERAL":
            return re.escape(chr(value))
        case "NOT_LITERAL":
            return f"[^{re.escape(chr(value))}]"
    return f"[{''.join(member_source(str(kind), member) for kind, member in value)}]"


def member_source(kind: str, member: Any) -> str:
    match kind:
        case "NEGATE":
            return "^"
        case "LITERAL":
            return re.escape(chr(member))
        case "RANGE":
            return f"{re.escape(chr(member[0]))}-{re.escape(chr(member[1]))}"
    return CATEGORIES[str(member).removeprefix("CATEGORY_")]


@lru_cache(maxsize=512)
def characters(source: str, flags: int) -> Ranges:
    """The code points that `re` takes for one character of a class."""
    found = [match.span() for match in re.compile(f"(?:{source})+", flags).finditer(every_character())]
    cut = [piece for start, end in found for piece in without_surrogates(start, end - 1)]
    return tuple(cut)


def without_surrogates(low: int, high: int) -> Ranges:
    pieces = ((low, min(high, SURROGATES[0] - 1)), (max(low, SURROGATES[1] + 1), high))
    return tuple(piece for piece in pieces if piece[0] <= piece[1])


@lru_cache(maxsize=1)
def every_character() -> str:
    return "".join(map(chr, range(HIGHEST + 1)))
