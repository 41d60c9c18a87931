"""A part and a count in, pairs of short strings out: reverse, copy, sort (letters) and addition (digits)."""

import random
from collections.abc import Callable
from string import ascii_lowercase

from regard.data.builtin.parts import distinct, generator

Pair = tuple[str, str]

SHORTEST, LONGEST = 3, 12  # letters
MOST_DIGITS = 4


def letters(random_: random.Random) -> str:
    """Three to twelve lowercase letters, each length as likely as another."""
    return "".join(random_.choices(ascii_lowercase, k=random_.randint(SHORTEST, LONGEST)))


def sum_of_two(random_: random.Random) -> str:
    """`345+28`: each number has one to four digits, each length as likely as another, no leading zero."""
    return f"{whole_number(random_)}+{whole_number(random_)}"


def whole_number(random_: random.Random) -> int:
    digits = random_.randint(1, MOST_DIGITS)
    return random_.randrange(10 ** (digits - 1) if digits > 1 else 0, 10**digits)


def add(source: str) -> str:
    first, second = source.split("+")
    return str(int(first) + int(second))


# The question of each task, and the rule that answers it.
RULES: dict[str, tuple[Callable[[random.Random], str], Callable[[str], str]]] = {
    "addition": (sum_of_two, add),
    "copy": (letters, str),
    "reverse": (letters, lambda source: source[::-1]),
    "sort": (letters, lambda source: "".join(sorted(source))),
}


def pairs(task: str, count: int, seed: int, part: str) -> list[Pair]:
    """`count` different sources of the part, each with its answer."""
    draw, answer = RULES[task]
    random_ = generator(task, str(seed), part)
    sources = distinct(lambda: draw(random_), str, task, part, count)
    return [(source, answer(source)) for source in sources]
