"""Columns of some rows in, what they hold out: text; or numbers, one text throughout, one template; tags; labels.

A column that carries no text is set aside, unless fewer than two would be left. Tags are symbols of few kinds, such as
V;PST, V PST 3 SG, pos=V,tense=PST or PLURAL, beside words that they say something about.
"""

import math
import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence

from regard.data.measure import copied
from regard.data.read import NEARLY_ALL
from regard.data.tokens import split_tags

MOST_TAGS = 300  # kinds of tags
FEW = 4  # rows, of which one may have another number of tags than words; with fewer, nothing is set aside
EACH = 10  # times that a symbol comes on average, and that an example of a label does
SEEN = 5  # times that most of them come at least
MOST_CLASSES = 20  # kinds of numbers that may be classes, such as ratings; more are numbers
WORDS = 3  # in a text, on average, from which on it is no word or two
ALIKE = 0.1  # of a form that stands in its lemma, beyond chance
ECHOED = 0.1  # of the rows; where more have a word of one column in another, the one tells of the other
MANY_KINDS = 0.25  # of the cells of a source and of its target are different from all before them …
FOLLOWS = 0.5  # … and their lengths go together as much as that: those of a name and a text do not
HARDLY = 0.95  # of the cells are the same where a column carries nothing
ALL_OTHERS = 0.9  # of the cells of a template are unlike any other …
FORMS = 0.05  # … have so few forms, for each cell …
IDS = 0.5  # … and so many different numbers: those of a task are of fewer kinds

GAP = re.compile(r"[^\S\u00a0]+")  # white space; a no-break space stands inside a word
ASKING = ("?", "？", "؟")  # how a question ends, which may be the same throughout
PART = re.compile(r"\w+")
DIGITS = re.compile(r"\d+")
PIECE = re.compile(r"\d+|[^\W\d]+")  # letters and numbers, be they joined or not
NUMBER = re.compile(r"[-+−]?(?:\d+(?:[.,]\d+)*|\.\d+)(?:[eE][-+]?\d+)?\s?%?")
BUNDLE = re.compile(r"[^\s;|]+([;|][^\s;|]+)+")
SYMBOL = re.compile(r"[\w.:=+*/{}()<>#@&-]+")  # no ordinary text has such words alone
CHANGING = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\d+")  # numbers and names of a template

Table = Mapping[str, Sequence[str]]  # the cells of columns by their names


def words(text: str) -> list[str]:
    return [word for word in GAP.split(text) if word]


def are_numbers(cells: Sequence[str]) -> bool:
    """Whether nearly all are plain numbers."""
    return sum(bool(NUMBER.fullmatch(cell.strip())) for cell in cells) >= max(1, NEARLY_ALL * len(cells))


def are_classes(cells: Sequence[str]) -> bool:
    """Whether numbers are of so few kinds that they may be labels."""
    return len(set(cells)) <= min(MOST_CLASSES, len(cells) / 2)


# ── what carries no text ─────────────────────────────────────────────────────────────────────────────────────────────


def without_text(table: Table) -> dict[str, str]:
    """The columns that carry no text, each with why, where two others are left; the last may be left as a target."""
    found = {name: why for name in table if (why := emptiness(name, table))}
    *_, last = table
    for aside in (found, {name: why for name, why in found.items() if name != last}):
        left = [name for name in table if name not in aside]
        if len(left) >= 2 and not (last in aside and are_answers(table[last], table[left[-1]])):
            return aside
    return {}


def emptiness(name: str, table: Table) -> str:
    """Why a column carries no text; nothing where it may."""
    cells, others = table[name], [cells for other, cells in table.items() if other != name]
    if len(cells) < FEW:
        return ""
    (usual, often), *_ = Counter(cells[1:]).most_common(1)  # the first may be a header that is not known as one
    if often >= HARDLY * (len(cells) - 1):
        asked = usual.endswith(ASKING) or any(is_tagged([*zip(other, cells, strict=True)]) for other in others)
        return "" if asked else "never changes" if often == len(cells) - 1 else "hardly changes"
    if are_numbers(cells):
        return "" if are_classes(cells) and not are_pairs(others) else "holds numbers"
    texts = [other for other in others if not are_numbers(other)]
    return "holds one text with other numbers and names" if is_template(cells, texts) else ""


def are_pairs(columns: Sequence[Sequence[str]]) -> bool:
    """Whether two columns are source and target: of many kinds, the longer one the other, but in other words.

    A third that tells something about such a pair is no target: how often it was seen, its language, where it is from.
    """
    if len(columns) != 2 or min(len(set(cells)) for cells in columns) < max(FEW, MANY_KINDS * len(columns[0])):
        return False
    left, right = columns
    lengths = [[math.log1p(len(cell)) for cell in cells] for cells in columns]
    if is_echoed(left, [right]) or min(len(set(each)) for each in lengths) < 2:
        return False
    return statistics.correlation(*lengths) >= FOLLOWS


def are_answers(numbers: Sequence[str], asked: Sequence[str]) -> bool:
    """Whether numbers may answer what stands before them, which comes again and again as questions do."""
    return are_numbers(numbers) and 2 * len(set(asked)) <= len(asked)


def is_template(cells: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Whether cells are all different, have one form but for numbers and names, and tell nothing of their rows."""
    if len(set(cells)) < ALL_OTHERS * len(cells) or sum(map(may_be_text, others)) < 2:
        return False
    numbers = {number for cell in cells for number in DIGITS.findall(cell)}
    forms = {CHANGING.sub("", cell) for cell in cells}
    few = len(forms) <= max(1.0, FORMS * len(cells)) and len(numbers) >= IDS * len(cells)
    return few and min(len(PART.findall(form)) for form in forms) >= WORDS and not is_echoed(cells, others)


def may_be_text(cells: Sequence[str]) -> bool:
    return len({*cells[1:]}) > 1 and not are_numbers(cells)


def is_echoed(cells: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Whether words or numbers of a column often stand in the other columns of their row."""
    beside = (pieces(" ".join(row)) for row in zip(*others, strict=True))
    echoes = sum(not pieces(cell).isdisjoint(there) for cell, there in zip(cells, beside, strict=True))
    return echoes > ECHOED * len(cells)


def pieces(text: str) -> set[str]:
    return set(PIECE.findall(text.lower()))


# ── tags and labels ──────────────────────────────────────────────────────────────────────────────────────────────────


def holds_tags(name: str, table: Table, last: bool) -> bool:
    """Whether a column holds tags of the others and no text; the `last` holds labels, unless all speaks against it."""
    cells, others = table[name], [cells for other, cells in table.items() if other != name]
    if is_bundled(cells):
        return True
    if not are_symbols(cells) or is_echoed(cells, others):
        return False
    if last and are_pairs(others):
        return True
    if not all(map(are_words, others)) or 2 * len(set(cells)) > len(cells):
        return False
    if any(is_tagged([*zip(other, cells, strict=True)]) or resemble(cells, other) for other in others):
        return False
    if last:
        return are_spelled_as_tags(cells) and resemble(others[0], others[-1])
    return are_spelled_as_tags(cells) or sum(len(split_tags(cell)) for cell in cells) >= 1.5 * len(cells)


def is_bundled(cells: Sequence[str]) -> bool:
    """Whether cells are bundles of tags, such as V;PST;3;SG, of few kinds, and no text."""
    stripped = [cell.strip() for cell in cells]
    joined = sum(bool(BUNDLE.fullmatch(cell)) for cell in stripped)
    kinds = {tag for cell in stripped for tag in split_tags(cell)}
    few = 2 * len(kinds) <= len(stripped) and len(kinds) <= MOST_TAGS
    return few and joined >= 0.5 * len(stripped) and all(not GAP.search(cell) for cell in stripped)


def are_symbols(cells: Sequence[str]) -> bool:
    """Whether cells are made of few symbols that come again and again, and are not all numbers."""
    often = Counter(symbol for cell in cells for symbol in split_tags(cell))
    total = often.total()
    if not 2 <= len(often) <= MOST_TAGS or total < EACH * len(often) or not all(map(SYMBOL.fullmatch, often)):
        return False
    seen = sum(count for count in often.values() if count >= SEEN)
    lettered = sum(count for symbol, count in often.items() if any(map(str.isalpha, symbol)))
    return seen >= NEARLY_ALL * total and 2 * lettered >= total


def are_spelled_as_tags(cells: Sequence[str]) -> bool:
    """PLURAL, V PST 3 SG, Case=Nom, and no words in small letters."""
    return all(cell.isupper() or all("=" in tag for tag in split_tags(cell)) for cell in cells)


def are_words(cells: Sequence[str]) -> bool:
    """Whether cells have a word or two on average, so that they are no texts."""
    return sum(len(words(cell)) for cell in cells) < WORDS * len(cells)


def resemble(left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether what stands on the right is made of what stands beside it on the left, as a form is of its lemma."""
    return copied([*dict(zip(left, right, strict=True)).items()]) >= ALIKE  # each lemma once: a neighbour is chance


def is_tagged(rows: Sequence[tuple[str, str]]) -> bool:
    """Whether targets are tags: one for each word of the source, more than one a row, of few kinds.

    Targets most of whose words stand in sources too are texts: with slips taken out, say.
    """
    counted = [(words(source), words(target)) for source, target in rows]
    equal = [(source, target) for source, target in counted if len(source) == len(target)]
    flaws = max(0.01 * len(rows), float(len(rows) >= FEW))  # which the reader names
    if not rows or len(rows) - len(equal) > flaws or sum(len(target) for _, target in equal) < 1.5 * len(equal):
        return False
    tags = {tag for _, target in equal for tag in target}
    read = {word for source, _ in equal for word in source}
    return len(tags) <= MOST_TAGS and 2 * len(tags) <= len(read) and 2 * len(tags & read) <= len(tags)
