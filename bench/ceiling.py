"""Dates of many locales in, the best exact match there can be out: all that a source may mean.

`1/2/2003` is a day in January to some and in February to others. Whoever knows all spellings and how often each is
drawn, and not which was drawn, answers with the likeliest meaning; how often that is right is the ceiling.
"""

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from functools import lru_cache
from itertools import product
from string import Formatter

from regard.data.builtin.dates import DAY, FIRST_YEAR, MONTH, WEEKDAY, YEAR, Spelling, locale_names, spellings


@lru_cache(maxsize=2)
def readers(locales: str) -> list[tuple[re.Pattern[str], Spelling, int]]:
    """Every spelling as a pattern, and how many cards of the deck it has."""
    deck = Counter(spellings(locale_names(locales)))
    return [(re.compile(pattern(each)), each, cards) for each, cards in deck.items()]


def pattern(spelling: Spelling) -> str:
    """A group for each gap, of all the words that may stand there, the longest first."""
    found, gaps = "", iter(spelling.gaps)
    for text, gap, _, _ in Formatter().parse(spelling.template):
        found += re.escape(text)
        if gap is not None:
            words = sorted(set(next(gaps)[1]), key=len, reverse=True)
            found += f"({'|'.join(map(re.escape, words))})"
    return found


def meanings(source: str, locales: str) -> Counter[str]:
    """The dates that a source may stand for, each with how many cards write it so."""
    found: Counter[str] = Counter()
    for reader, spelling, cards in readers(locales):
        if (match := reader.fullmatch(source)) is not None:
            for day in days(spelling, match.groups()):
                found[day] += cards
    return found


def days(spelling: Spelling, words: Sequence[str]) -> list[str]:
    """Dates whose fields are these words; months of one name are told apart by nothing."""
    wanted = [(field, {number for number, word in enumerate(known) if word == given})
              for (field, known), given in zip(spelling.gaps, words, strict=True)]  # fmt: skip
    fields = [set.intersection(*(those for field, those in wanted if field == each)) for each in (YEAR, MONTH, DAY)]
    weekday = [those for field, those in wanted if field == WEEKDAY]
    found = []
    for year, month, day in product(*fields):
        with suppress(ValueError):  # there is no such day
            made = date(FIRST_YEAR + year, month + 1, day + 1)
            if all(made.weekday() in those for those in weekday):
                found.append(made.isoformat())
    return found


def ceiling(pairs: Sequence[tuple[str, str]], locales: str) -> float:
    """The share of pairs, in per cent, whose target is the likeliest meaning of the source; of k alike, 1/k."""
    total = 0.0
    for source, target in pairs:
        known = meanings(source, locales)
        best = [day for day, cards in known.items() if cards == max(known.values())]
        total += (target in best) / len(best) if best else 0.0
    return 100 * total / len(pairs)
