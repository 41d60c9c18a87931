"""The first lines of a file in; out, if it has a token and its labels on each line and blank lines between sentences,
where in a line these stand. So are most files of tagged text kept since the shared tasks of CoNLL.

A line that begins with # and has another number of columns is a comment. With ten columns and tabs between them
(CoNLL-U), the token is the second and its label, the part of speech, the fourth; else they are the first and the last.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MOST_LABELS = 300  # kinds of them
LONGEST = 60  # tokens of a sentence, on average; farther apart, blank lines part nothing
NEARLY_ALL = 0.95  # of the lines; the others may be flaws
MOSTLY = 0.75  # of the tokens are single words; the others hold a space
UNIVERSAL = (10, 1, 3)  # columns of CoNLL-U, the place of the token and of its part of speech
DOCUMENT = "-DOCSTART-"  # stands alone where a new document begins


@dataclass(frozen=True)
class Shape:
    """How a line is cut, and which of its columns are the token and its label."""

    width: int
    tabs: bool
    source: int
    target: int

    def cut(self, line: str) -> list[str] | None:
        """The columns of a line, however many; nothing of one that is no token."""
        fields = cut(line, self.tabs)
        if line.startswith("#") and len(fields) != self.width:
            return None
        if (self.width, self.source) == UNIVERSAL[:2] and not fields[0].isdecimal():
            return None  # several tokens that are written as one, or one that is not written at all
        return fields


def cut(line: str, tabs: bool) -> list[str]:
    """A space inside a column becomes a no-break space, which parts no tokens."""
    fields = line.rstrip("\r").split("\t") if tabs else line.split()
    return ["\u00a0".join(field.split()) for field in fields]


def shape_of(lines: Iterable[str]) -> Shape | None:
    """The shape of such a file; none where it is another."""
    groups = blocks(lines)
    rows = [line for group in groups for line in group if not line.startswith("#")]
    if len(groups) < 2 or not rows:
        return None
    tabs = all("\t" in line for line in rows)
    width, count = Counter(len(cut(line, tabs)) for line in rows).most_common(1)[0]
    if width < 2 or count < NEARLY_ALL * len(rows) or not 1.5 * len(groups) <= len(rows) <= LONGEST * len(groups):
        return None
    source, target = UNIVERSAL[1:] if tabs and width == UNIVERSAL[0] else (0, width - 1)
    made = Shape(width, tabs, source, target)
    return made if is_labelled([[made.cut(line) for line in group] for group in groups], made) else None


def blocks(lines: Iterable[str]) -> list[list[str]]:
    """Lines that follow each other without a blank one between them."""
    found: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [group for group in found if group]


def is_labelled(groups: Sequence[Sequence[list[str] | None]], shape: Shape) -> bool:
    """Whether tokens are mostly single words, and their labels of few kinds, several of them in one sentence."""
    pairs = [[(row[shape.source], row[shape.target]) for row in group if row is not None and len(row) == shape.width]
             for group in groups]  # fmt: skip
    flat = [pair for group in pairs for pair in group]
    kinds, words = {label for _, label in flat}, {token for token, _ in flat}
    single = sum("\u00a0" not in token + label and bool(token and label) for token, label in flat)
    if not flat or single < MOSTLY * len(flat) or len(kinds) > MOST_LABELS or 3 * len(kinds) > 2 * len(words):
        return False
    return any(len({label for _, label in group}) > 1 for group in pairs)
