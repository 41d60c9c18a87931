"""A part and a count in, rows of context, question and answer out: small worlds of facts, one of them asked for.

A context has two to five facts. At least two are of the kind that is asked for, so the question has to be read; no
person, place or thing is named twice, so it has one answer, and the answer stands in the context word for word.
"""

import random
from dataclasses import dataclass

from regard.data.builtin.parts import distinct, generator

Row = tuple[str, str, str]


def words(text: str, before: str = "") -> tuple[str, ...]:
    return tuple(before + word for word in text.split())


POOLS = {
    "person": words(
        "Ada Ben Carla Daniel Emma Felix Grace Hugo Iris Jonas Kira Leo Mara Nils Olga Paul Rosa Sven Tara Viktor"
    ),
    "professor": words(
        "Abel Brandt Chen Diaz Evans Fischer Gupta Haas Ito Jansen Khan Lin Moreau Novak Okoye Petrov", "Professor "
    ),
    "subject": words(
        "algebra anatomy astronomy biology botany chemistry drawing ethics geography geometry grammar history latin "
        "law logic medicine music optics physics poetry rhetoric statistics"
    ),
    "place": words(
        "attic bakery bridge cellar garden gym harbour kitchen library market museum office park square stable station "
        "theatre tower workshop zoo",
        "the ",
    ),
    "thing": words(
        "apple basket bell book bottle camera clock coin flute hammer hat key knife lamp letter map mirror pencil ring "
        "rope spoon violin",
        "the ",
    ),
    "event": words(
        "concert dinner exam film game lecture lesson lunch meeting party race rehearsal sermon speech storm walk",
        "the ",
    ),
}


@dataclass(frozen=True)
class Fact:
    """A sentence with slots, and the questions it answers: each beside the number of the slot that has the answer."""

    slots: tuple[str, ...]  # the pool of each
    sentence: str
    questions: tuple[tuple[str, int], ...]


FACTS = (
    Fact(
        ("professor", "subject"),
        "{0} taught them {1}.",
        (("Who taught them {1}?", 0), ("What did {0} teach them?", 1)),
    ),
    Fact(
        ("person", "place", "event"),
        "{0} went to {1} after {2}.",
        (("Who went to {1}?", 0), ("Where did {0} go after {2}?", 1), ("After what did {0} go to {1}?", 2)),
    ),
    Fact(
        ("person", "person", "thing"),
        "{0} gave {1} {2}.",
        (("Who gave {1} {2}?", 0), ("To whom did {0} give {2}?", 1), ("What did {0} give {1}?", 2)),
    ),
    Fact(
        ("person", "thing", "place"),
        "{0} left {1} in {2}.",
        (("Who left {1} in {2}?", 0), ("What did {0} leave in {2}?", 1), ("Where is {1}?", 2)),
    ),
)
FEWEST, MOST = 2, 5  # facts in a context


def rows(count: int, seed: int, part: str) -> list[Row]:
    """`count` different contexts of the part, each with one question."""
    random_ = generator("questions", str(seed), part)
    return distinct(lambda: world(random_), lambda row: row[0], "questions", part, count)


def world(random_: random.Random) -> Row:
    """One context, one question about it, and the answer."""
    asked = random_.choice(FACTS)
    kinds = [asked, asked, *random_.choices(FACTS, k=random_.randint(FEWEST, MOST) - 2)]
    used: set[str] = set()
    filled = [[fresh(pool, used, random_) for pool in kind.slots] for kind in kinds]
    told = [kind.sentence.format(*chosen) for kind, chosen in zip(kinds, filled, strict=True)]
    random_.shuffle(told)
    question, slot = random_.choice(asked.questions)
    return " ".join(told), question.format(*filled[0]), filled[0][slot]


def fresh(pool: str, used: set[str], random_: random.Random) -> str:
    """A word that this world does not have yet; every pool holds more than a world can use."""
    while (word := random_.choice(POOLS[pool])) in used:
        pass
    used.add(word)
    return word
