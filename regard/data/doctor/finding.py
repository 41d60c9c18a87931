"""What the doctor looks at, and what it says: a view of some examples in, findings out, the worst first."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from regard.data.read import Example, escape, quote

LEVELS = ("trouble", "doubt", "remark")  # spoils what is learnt or measured; may be meant; is good to know
SHOWN_LINES = 5
QUOTED = 48  # characters of a text in an example


@dataclass(frozen=True)
class Finding:
    """One thing that was seen: how often, where, an example of it, and what to do about it."""

    kind: str
    level: str
    count: int  # examples that have it
    of: int  # examples that were looked at
    lines: tuple[int, ...]  # the first of them
    said: str  # what it is, in a few words after the count
    example: str
    cure: str

    @property
    def share(self) -> float:
        return self.count / max(self.of, 1)


def worst_first(findings: Iterable[Finding | None]) -> tuple[Finding, ...]:
    """What spoils most, and among equals what touches most examples."""
    found = [finding for finding in findings if finding is not None]
    return tuple(sorted(found, key=lambda finding: (LEVELS.index(finding.level), -finding.share, finding.kind)))


@dataclass(frozen=True)
class Sight:
    """Examples as the doctor sees them: with their task, and without asking where they come from."""

    examples: Sequence[Example]
    task: str = "transduce"

    def __len__(self) -> int:
        return len(self.examples)

    @cached_property
    def source_characters(self) -> Counter[str]:
        """How often each character stands in a source."""
        return counted(text for example in self.examples for text in example.source)

    @cached_property
    def target_characters(self) -> Counter[str]:
        return counted(example.target for example in self.examples if example.target is not None)

    @cached_property
    def characters(self) -> frozenset[str]:
        """All that occur: what is not among them need not be looked for line by line."""
        return frozenset(self.source_characters.keys() | self.target_characters.keys())

    @property
    def has_targets(self) -> bool:
        return any(example.target is not None for example in self.examples)

    @property
    def writes(self) -> bool:
        """Whether sources and targets are two texts of about the same content."""
        return self.task == "transduce" and self.has_targets


def counted(texts: Iterable[str]) -> Counter[str]:
    """Characters, counted. Portions are joined, for counting many short texts one by one is slow."""
    found: Counter[str] = Counter()
    waiting: list[str] = []
    for number, text in enumerate(texts, 1):
        waiting.append(text)
        if number % 1000 == 0:
            found.update("".join(waiting))
            waiting.clear()
    found.update("".join(waiting))
    return found


def texts_of(example: Example) -> Iterator[str]:
    """All columns of an example that were read, the target last."""
    yield from example.source
    if example.target is not None:
        yield example.target


def where(sight: Sight, test: Callable[[str], object]) -> list[tuple[Example, str]]:
    """The examples with a text that passes the test, each with the first such text."""
    found = []
    for example in sight.examples:
        for text in texts_of(example):
            if test(text):
                found.append((example, text))
                break
    return found


def lines_of(examples: Iterable[Example]) -> tuple[int, ...]:
    return tuple(example.line for example, _ in zip(examples, range(SHOWN_LINES), strict=False))


def pair(example: Example, limit: int = QUOTED) -> str:
    """An example as it is shown."""
    source = " + ".join(quote(text, limit) for text in example.source)
    return " → ".join(
        [*([source] if source else []), *([] if example.target is None else [quote(example.target, limit)])]
    )


def around(text: str, at: int, width: int = QUOTED) -> str:
    """The piece of a text about a place, in quotation marks; what can not be seen is spelled out."""
    start = max(0, at - width // 2)
    piece = text[start : start + width]
    return f'"{"…" * (start > 0)}{visible(piece)}{"…" * (start + width < len(text))}"'


def visible(text: str) -> str:
    """The text with everything spelled out that leaves no ink, but for plain spaces."""
    unseen = {character for character in text if character != " " and not character.isascii() and is_unseen(character)}
    spelled = str.maketrans({character: spell(character) for character in unseen})
    return escape(text.translate(spelled))


def is_unseen(character: str) -> bool:
    return not character.isprintable() or character.isspace()


def spell(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode()
