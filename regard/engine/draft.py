"""Operations in, the three programs of an engine out, as numbers and weights that native.cpp can be given."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum, auto
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Weights = NDArray[np.float32]
Whole = NDArray[np.int32]
NOTHING = -1


class Operation(IntEnum):
    """In the order of native.cpp."""

    EMBED = 0
    PLACE = auto()
    LINEAR = auto()
    NORM = auto()
    ADD = auto()
    CAT = auto()
    SLICE = auto()
    GLU = auto()
    MULTIPLY = auto()
    SELF = auto()
    CROSS = auto()
    WITHIN = auto()
    TURN = auto()
    CELL = auto()
    RUN = auto()
    MEAN = auto()
    LAST = auto()
    NEIGHBOURS = auto()
    HOLD = auto()
    ZERO = auto()
    OFFER = auto()
    NGRAMS = auto()


class Domain(IntEnum):
    """What a register has a vector for."""

    TOKENS = 0
    ROWS = 1


class Activation(IntEnum):
    NONE = 0
    RELU = 1
    GELU = 2
    SILU = 3
    TANH = 4


class Kind(IntEnum):
    """How an attention compares."""

    PRODUCT = 0
    ADDITIVE = 1
    DISTANCE = 2
    UNIFORM = 3


@dataclass(frozen=True)
class Look:
    """How one attention compares; tables by their numbers."""

    kind: Kind
    heads: int
    key_width: int  # of one head
    value_width: int
    scale: float = 1.0
    vector: int = NOTHING
    bias: int = NOTHING
    rate: int = NOTHING


class Point(NamedTuple):
    """A copy head: linears and a look by their numbers, and for each token of the source the target's."""

    query: int
    key: int
    gate: int
    look: int
    copies: Whole


class Line(NamedTuple):
    """One instruction."""

    operation: Operation
    out: int
    a: int = NOTHING
    b: int = NOTHING
    c: int = NOTHING
    number: tuple[int, ...] = ()
    value: float = 1.0


@dataclass
class Sheet:
    """Registers and the instructions that fill them, written one after the other."""

    registers: list[tuple[int, Domain]] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)

    def register(self, width: int, domain: Domain) -> int:
        self.registers.append((width, domain))
        return len(self.registers) - 1

    def width(self, register: int) -> int:
        return self.registers[register][0]

    def domain(self, register: int) -> Domain:
        return self.registers[register][1]


@dataclass
class Draft:
    """A whole model: weights, looks, and the three programs. `read` and `hold` share their registers."""

    read: Sheet = field(default_factory=Sheet)
    hold: list[Line] = field(default_factory=list)
    step: Sheet = field(default_factory=Sheet)
    linears: list[tuple[Weights, Weights | None]] = field(default_factory=list)
    tables: list[Weights] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    first_state: list[int] = field(default_factory=list)
    state: list[int] = field(default_factory=list)
    next_state: list[int] = field(default_factory=list)
    states: int = NOTHING
    last: int = NOTHING
    output: int = NOTHING
    pointer: Point | None = None
    memories: int = 0
    entries: int = 0
    prefix: bool = False
    most: dict[Domain, int] = field(default_factory=dict)  # learned positions of the source and of the target

    def linear(self, weight: Tensor, bias: Tensor | None) -> int:
        self.linears.append((numbers(weight), None if bias is None else numbers(bias)))
        return len(self.linears) - 1

    def table(self, values: Tensor) -> int:
        self.tables.append(numbers(values.reshape(len(values), -1)))
        return len(self.tables) - 1

    def look(self, look: Look) -> int:
        self.looks.append(look)
        return len(self.looks) - 1


def numbers(values: Tensor) -> Weights:
    return np.ascontiguousarray(values.detach().to("cpu").float().numpy())


class Writer:
    """Appends to a sheet; each method makes a register and gives its number."""

    def __init__(self, draft: Draft, sheet: Sheet, lines: list[Line]) -> None:
        self.draft = draft
        self.sheet = sheet
        self.lines = lines

    def add(
        self,
        operation: Operation,
        width: int,
        domain: Domain,
        inputs: Sequence[int] = (),
        number: tuple[int, ...] = (),
        value: float = 1.0,
    ) -> int:
        out = self.sheet.register(width, domain)
        a, b, c = (*inputs, NOTHING, NOTHING, NOTHING)[:3]
        self.lines.append(Line(operation, out, a, b, c, number, value))
        return out

    def like(self, operation: Operation, a: int, width: int, number: tuple[int, ...] = (), value: float = 1.0) -> int:
        """A register for the same tokens or rows as `a`."""
        return self.add(operation, width, self.sheet.domain(a), (a,), number, value)

    def linear(
        self, a: int, weight: Tensor, bias: Tensor | None = None, activation: Activation = Activation.NONE
    ) -> int:
        return self.like(Operation.LINEAR, a, len(weight), (self.draft.linear(weight, bias), activation))

    def sum(self, a: int, b: int, scale: float = 1.0) -> int:
        return self.add(Operation.ADD, self.sheet.width(a), self.sheet.domain(a), (a, b), value=scale)

    def multiply(self, a: int, b: int) -> int:
        return self.add(Operation.MULTIPLY, self.sheet.width(a), self.sheet.domain(a), (a, b))

    def cat(self, a: int, b: int) -> int:
        return self.add(Operation.CAT, self.sheet.width(a) + self.sheet.width(b), self.sheet.domain(a), (a, b))

    def slice(self, a: int, first: int, width: int) -> int:
        return self.like(Operation.SLICE, a, width, (first,))

    def glu(self, a: int) -> int:
        return self.like(Operation.GLU, a, self.sheet.width(a) // 2)

    def zero(self, width: int) -> int:
        return self.add(Operation.ZERO, width, Domain.ROWS)
