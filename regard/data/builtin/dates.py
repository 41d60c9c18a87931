"""A part, a count and locales in, pairs of a date as people write it and its ISO form (`2018-05-09`) out.

The words and orders are CLDR's, through Babel; English has more ways to write a date, ordinals and upper and lower case
among them. Years run from 1950 to 2049, so that two digits of a year say which century is meant.

Within English one source means one date: where only digits stand, the month comes before the day. Between locales the
same source may mean two dates (`1/2/2003`, or `9 lis 2018`: October in Croatian, November in Polish); in a mixed set
each source is given once, with one of its meanings.

A row belongs to a part when its calendar date does *and* its source does: held-out dates are new dates, and an
ambiguous source is on one side only.
"""

import random
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache, lru_cache
from string import Formatter

from babel import Locale
from babel.dates import DateTimeFormat, tokenize_pattern
from babel.localedata import locale_identifiers

from regard.data.builtin.parts import SHARES, distinct, generator, nearest, part_of, too_few
from regard.errors import UsageError

Pair = tuple[str, str]
Day = tuple[int, int, int, int]  # year since 1950, month, day, weekday; each counted from 0
Words = tuple[str, ...]

FIRST_YEAR, YEARS = 1950, 100
YEAR, MONTH, DAY, WEEKDAY = range(4)
FIELDS = {"y": YEAR, "M": MONTH, "L": MONTH, "d": DAY, "E": WEEKDAY, "c": WEEKDAY}

LENGTHS = ("full", "long", "medium", "short")
SKELETONS = ("yMd", "yMEd", "yMMMd", "yMMMEd", "yMMMMd", "yMMMMEd", "yMMMMEEEEd")
NAMELESS = {f"M{month:02}" for month in range(1, 13)}  # what CLDR calls a month that it has no word for

ENGLISH = (
    "EEEE d MMMM y",
    "EEEE, d MMMM y",
    "E d MMM y",
    "E, d MMM yy",
    "EEEE, MMM d, y",
    "d MMMM y",
    "d MMMM, y",
    "d MMM y",
    "d. MMM y",
    "dd MMM y",
    "dd-MMM-yy",
    "d-MMM-y",
    "MMMM d y",
    "MMM d y",
    "y MMMM d",
    "y MMM dd",
)
ENGLISH_ORDINALS = (
    "d 'of' MMMM, y",
    "d 'of' MMMM y",
    "d MMMM y",
    "MMMM d, y",
    "EEEE, MMMM d, y",
    "EEEE 'the' d 'of' MMMM, y",
    "'the' d 'of' MMMM y",
)
AMERICAN = ("MM/dd/y", "MM/dd/yy", "M-d-y", "E M/d/y", "y-MM-dd")  # digits alone: the month first

# Babel names a locale's numbering system, and writes dates in ASCII digits all the same. The zero of each system:
ZEROS = {
    "latn": 0x30,
    "adlm": 0x1E950,
    "arab": 0x660,
    "arabext": 0x6F0,
    "beng": 0x9E6,
    "cakm": 0x11136,
    "deva": 0x966,
    "hmnp": 0x1E140,
    "mtei": 0xABF0,
    "mymr": 0x1040,
    "nkoo": 0x7C0,
    "olck": 0x1C50,
    "tibt": 0xF20,
}


@dataclass(frozen=True)
class Spelling:
    """One way to write a date: a text with gaps, and for each gap the field it shows and the words for its values."""

    template: str
    gaps: tuple[tuple[int, Words], ...]

    def write(self, day: Day) -> str:
        return self.template.format(*[words[day[field]] for field, words in self.gaps])

    def places(self, day: Day) -> dict[int, tuple[int, int]]:
        """Where each field stands in what `write` gives: first character, and the one after its last."""
        found, at, gaps = {}, 0, iter(self.gaps)
        for text, gap, _, _ in Formatter().parse(self.template):
            at += len(text)
            if gap is not None:
                field, words = next(gaps)
                found[field] = at, at + len(words[day[field]])
                at += len(words[day[field]])
        return found

    def upper(self) -> "Spelling":
        return Spelling(self.template.upper(), tuple((f, tuple(w.upper() for w in words)) for f, words in self.gaps))

    def lower(self) -> "Spelling":
        return Spelling(self.template.lower(), tuple((f, tuple(w.lower() for w in words)) for f, words in self.gaps))

    @property
    def tells_the_date(self) -> bool:
        """Year, month and day are all there, every month has a name, and no two have the same."""
        shown = dict(self.gaps)
        return {YEAR, MONTH, DAY} <= shown.keys() and len({*shown[MONTH]} - NAMELESS) == 12


def pairs(count: int, seed: int, part: str, locales: str) -> list[Pair]:
    """`count` different sources of the part; an error with the number there is when there are not so many."""
    names = locale_names(locales)
    deck, days = spellings(names), days_of(part)
    random_ = generator("dates", str(seed), part, *names)
    different = tuple(dict.fromkeys(deck))
    likely = len(days) * len(different) * SHARES.count(part) // len(SHARES)
    if 2 * count > likely:  # drawing would meet the same sources again and again
        return shuffled(every_pair(different, days, part), random_, part, count)

    def draw() -> Pair:
        day = days[random_.randrange(len(days))]
        return deck[random_.randrange(len(deck))].write(day), iso(day)

    return distinct(draw, lambda pair: pair[0], "dates", part, count)


def marked(count: int, seed: int, part: str) -> list[tuple[str, str, dict[int, tuple[int, int]]]]:
    """English dates as `pairs` gives them, and where year, month, day and weekday stand in the source."""
    deck, days = spellings(("en",)), days_of(part)
    random_ = generator("marked dates", str(seed), part)

    def draw() -> tuple[str, str, dict[int, tuple[int, int]]]:
        day, card = days[random_.randrange(len(days))], deck[random_.randrange(len(deck))]
        return card.write(day), iso(day), card.places(day)

    return distinct(draw, lambda made: made[0], "dates", part, count)


def every_pair(different: tuple[Spelling, ...], days: tuple[Day, ...], part: str) -> list[Pair]:
    """All there is in a part; a source with two meanings keeps the first."""
    found: dict[str, str] = {}
    for day in days:
        target = iso(day)
        for spelling in different:
            found.setdefault(spelling.write(day), target)
    return [(source, target) for source, target in found.items() if part_of("dates", source) == part]


def shuffled(there: list[Pair], random_: random.Random, part: str, count: int) -> list[Pair]:
    if count > len(there):
        raise too_few("dates", part, count, len(there))
    return random_.sample(there, count)


@cache
def days_of(part: str) -> tuple[Day, ...]:
    """The calendar dates that belong to a part, in order."""
    first, after = date(FIRST_YEAR, 1, 1), date(FIRST_YEAR + YEARS, 1, 1)
    all_days = (day_of(first + timedelta(days)) for days in range((after - first).days))
    return tuple(day for day in all_days if part_of("calendar", iso(day)) == part)


def day_of(value: date) -> Day:
    return value.year - FIRST_YEAR, value.month - 1, value.day - 1, value.weekday()


def iso(day: Day) -> str:
    return f"{day[YEAR] + FIRST_YEAR}-{day[MONTH] + 1:02}-{day[DAY] + 1:02}"


def locale_names(locales: str) -> tuple[str, ...]:
    """`en`, `de,fr,ja` or `all` as the names Babel knows, sorted and each once."""
    known = set(locale_identifiers())
    if locales.strip() == "all":
        return tuple(sorted(known))
    names = sorted({name.strip().replace("-", "_") for name in locales.split(",")})
    for name in names:
        if name not in known:
            raise UsageError(
                f"--locales {locales}: found {name!r}{nearest(name, known)}; expected `all` or names such as de,fr,ja"
            )
        if not usable(Locale.parse(name)):
            raise UsageError(f"--locales {locales}: Babel has no Gregorian month names or no digits for {name!r}")
    return tuple(names)


def usable(locale: Locale) -> bool:
    named = NAMELESS.isdisjoint(locale.months["format"]["wide"].values())
    return named and locale.default_numbering_system in ZEROS


@lru_cache(maxsize=8)
def spellings(names: tuple[str, ...]) -> tuple[Spelling, ...]:
    """The deck to draw from: ten cards for each spelling; in English one of them in capitals, one without."""
    deck: dict[Spelling, tuple[Spelling, ...]] = {}
    for locale in filter(usable, map(Locale.parse, names)):
        english = locale.language == "en"
        for plain in locale_spellings(locale):
            # Capitals are an English matter: elsewhere Python's rules may be wrong (Turkish i) or empty.
            deck.setdefault(plain, (plain,) * 8 + ((plain.upper(), plain.lower()) if english else (plain,) * 2))
    return tuple(card for cards in deck.values() for card in cards)


def locale_spellings(locale: Locale) -> tuple[Spelling, ...]:
    """The ways in which one locale writes a date, without those that leave the date open."""
    patterns = [locale.date_formats[length].pattern for length in LENGTHS]
    patterns += [str(locale.datetime_skeletons[name]) for name in SKELETONS if name in locale.datetime_skeletons]
    patterns += ENGLISH if locale.language == "en" else ()
    patterns += AMERICAN if str(locale) in ("en", "en_US") else ()
    tables: dict[tuple[str, int], Words] = {}
    made = [spelling(pattern, locale, tables) for pattern in patterns]
    if locale.language == "en":
        made += [spelling(pattern, locale, {("d", 1): ordinals()}) for pattern in ENGLISH_ORDINALS]
    return tuple(dict.fromkeys(one for one in made if one is not None and one.tells_the_date))


def spelling(pattern: str, locale: Locale, tables: dict[tuple[str, int], Words]) -> Spelling | None:
    """A CLDR pattern as a Spelling, or None when it asks for more than a date has. Fills `tables` as it goes."""
    template, gaps = "", []
    for kind, value in tokenize_pattern(pattern):
        if kind == "chars":
            template += str(value).replace("{", "{{").replace("}", "}}")
        elif value[0] == "G":  # the era: the same for every date here
            template += era(locale, int(value[1]))
        elif value[0] in FIELDS:
            field = (str(value[0]), int(value[1]))
            if field not in tables:
                tables[field] = field_words(field, locale)
            template += "{}"
            gaps.append((FIELDS[field[0]], tables[field]))
        else:
            return None
    return Spelling(template.strip(), tuple(gaps))


def field_words(field: tuple[str, int], locale: Locale) -> Words:
    """How the locale writes each value of a field: `d` is 31 numbers, `MMMM` twelve names."""
    shown, width = FIELDS[field[0]], field[1]
    if shown == YEAR:
        years = map(str, range(FIRST_YEAR, FIRST_YEAR + YEARS))
        return numbers([year[-2:] if width == 2 else year for year in years], locale)
    if shown == DAY:
        return numbers([f"{day:0{width}}" for day in range(1, 32)], locale)
    if shown == MONTH and width < 3:
        return numbers([f"{month:0{width}}" for month in range(1, 13)], locale)
    if shown == MONTH:
        return tuple(name(date(2001, month, 1), field, locale) for month in range(1, 13))
    return tuple(name(date(2001, 1, day), field, locale) for day in range(1, 8))  # 1 January 2001 was a Monday


def name(value: date, field: tuple[str, int], locale: Locale) -> str:
    return str(DateTimeFormat(value, locale)[field[0] * field[1]])


def era(locale: Locale, width: int) -> str:
    return name(date(2001, 1, 1), ("G", width), locale)


def numbers(written: list[str], locale: Locale) -> Words:
    """ASCII numbers in the locale's own digits."""
    zero = ZEROS[locale.default_numbering_system]
    return tuple("".join(chr(zero + int(digit)) for digit in word) for word in written)


def ordinals() -> Words:
    """1st, 2nd, 3rd, 4th … 11th, 12th, 13th … 31st."""
    endings = {1: "st", 2: "nd", 3: "rd"}
    return tuple(f"{day}{'th' if day in (11, 12, 13) else endings.get(day % 10, 'th')}" for day in range(1, 32))
