"""Examples in, trouble with how they are written out: encodings, normal forms, and characters that nobody sees.

A file in which none of the characters occurs that a test looks for is not gone through for it.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from regard.data.doctor.finding import Finding, Sight, around, lines_of, pair, spell, where
from regard.data.read import Example, quote

MARK = "\ufeff"
JOINERS = "\u200c\u200d"  # letters of several scripts and emoji are joined by them
LOST = "\ufffd"
WIDE = "\u3000"  # the space of Chinese and Japanese
# Greek that can not be told from Latin by eye. Others, such as θ and β, are letters of phonetic alphabets.
GREEK_LIKE_LATIN = frozenset("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧοιν")
FOREIGN = ("CYRILLIC", "ARMENIAN", "CHEROKEE")

# What bytes 80 to BF of UTF-8 become when they are read as Windows-1252 or Latin-1.
REST = "\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
GARBLED = re.compile(f"(?:[Â-ß][{REST}]|[à-ï][{REST}]{{2}}|[ð-ô][{REST}]{{3}})+")
LOOSE = re.compile(r"^\s+|\s+$|[ \u00a0]{2,}")
SWAPPED = 0.05  # log odds of a character, on average, from which on a side is written like the other
QUOTES = frozenset("«»“”‘’„‚‹›…–—")  # stand after a letter in sound text too

Hits = list[tuple[Example, str]]


def find_writing(sight: Sight) -> Iterator[Finding | None]:
    """Everything about how texts are written."""
    yield garbled(sight)
    yield lost(sight)
    yield controls(sight)
    yield marks(sight)
    yield normal_forms(sight)
    yield scripts(sight)
    yield invisible(sight)
    yield spaces(sight)
    yield margins(sight)


def made(kind: str, level: str, hits: Hits, sight: Sight, said: str, example: str, cure: str) -> Finding:
    return Finding(kind, level, len(hits), len(sight), lines_of(each for each, _ in hits), said, example, cure)


def pattern(characters: Iterable[str]) -> re.Pattern[str]:
    return re.compile(f"[{''.join(map(re.escape, sorted(characters)))}]")


def searched(
    sight: Sight, characters: Iterable[str], kind: str, level: str, said: str, cure: str
) -> Finding | None:  # fmt: skip
    """A finding of those examples that have one of these characters."""
    present = sight.characters & frozenset(characters)
    if not present:
        return None
    wanted = pattern(present)
    hits = where(sight, wanted.search)
    found = wanted.search(hits[0][1])
    assert found is not None
    kinds = ", ".join(map(named, sorted(present)[:3])) + (" …" if len(present) > 3 else "")
    return made(kind, level, hits, sight, f"{said}: {kinds}", around(hits[0][1], found.start()), cure)


def named(character: str) -> str:
    """`\\u200b zero width space`."""
    name = unicodedata.name(character, "").lower()
    return f"{spell(character)} {name}".strip()


# ── encodings ────────────────────────────────────────────────────────────────────────────────────────────────────────


def garbled(sight: Sight) -> Finding | None:
    """UTF-8 that was read as something else once: Ã© for é."""
    if not any("Â" <= character <= "ô" for character in sight.characters):
        return None
    hits = where(sight, mended)
    if not hits:
        return None
    text = hits[0][1]
    was, right = mended(text) or ("", "")
    said = "with letters that were read in the wrong encoding"
    cure = "read the original as UTF-8 and write the file anew; text.encode('cp1252').decode('utf-8') mends most of it"
    return made("mojibake", "trouble", hits, sight, said, f"{quote(was)} for {quote(right)} in {quote(text)}", cure)


def mended(text: str) -> tuple[str, str] | None:
    """The first piece of a text that was read in the wrong encoding, and what it should have been."""
    for found in GARBLED.finditer(text) if not text.isascii() else ():
        piece = found[0]
        try:
            right = b"".join(map(byte, piece)).decode("utf-8")
        except (UnicodeDecodeError, UnicodeEncodeError):
            continue
        if is_plausible(piece, right):
            return piece, right
    return None


def byte(character: str) -> bytes:
    return character.encode("latin-1" if character < "\u0100" else "cp1252")


def is_plausible(piece: str, right: str) -> bool:
    """Not a letter and the quotation marks after it, which could be read as one other character by chance."""
    if len(right) > 1 or piece[0] in "ÂÃ" or piece.startswith("â€"):
        return all(character.isprintable() or character.isspace() for character in right)
    return right.isalpha() and not QUOTES & set(piece)


def lost(sight: Sight) -> Finding | None:
    return searched(sight, LOST, "lost characters", "trouble", "with characters that an earlier conversion lost",
                    "make the file again from its origin; what was lost can not be told from here")  # fmt: skip


def controls(sight: Sight) -> Finding | None:
    present = [each for each in sight.characters if unicodedata.category(each) == "Cc" and each not in "\t\n"]
    return searched(sight, present, "control characters", "trouble", "with characters that steer machines",
                    "remove them; a model would learn to write them")  # fmt: skip


def marks(sight: Sight) -> Finding | None:
    """Byte order marks inside, as they are left when files are joined; the reader takes off the very first."""
    if MARK not in sight.characters:
        return None
    return searched(sight, MARK, "byte order marks", "trouble", "with a byte order mark inside",
                    "remove them; files that were joined had one each")  # fmt: skip


# ── normal forms and scripts ─────────────────────────────────────────────────────────────────────────────────────────


def normal_forms(sight: Sight) -> Finding | None:
    """Letters with accents as one character here and as two there: the same to a reader, other tokens to a model."""
    if not any(map(is_composing, sight.characters)):
        return None
    hits = where(sight, lambda text: not unicodedata.is_normalized("NFC", text))
    if not hits:
        return None
    text = hits[0][1]
    at = next((place for place, each in enumerate(text) if is_composing(each)), 0)
    cure = "write all of it in one form: unicodedata.normalize('NFC', text)"
    example = around(text, at)
    if any(map(is_composed, sight.characters)):
        said = "with accents as characters of their own (NFD), where others have them in one (NFC)"
        return made("mixed normal forms", "trouble", hits, sight, said, example, cure)
    said = "with accents as characters of their own (NFD), like all others here"
    cure += "; texts that will be asked about must have the same form"
    return made("decomposed characters", "remark", hits, sight, said, example, cure)


def is_composing(character: str) -> bool:
    """Whether it may be one with the character before it; the parts of Korean syllables may."""
    if character.isascii():
        return False
    return bool(unicodedata.combining(character)) or "\u1160" <= character <= "\u11ff" or (
        unicodedata.normalize("NFC", character) != character)  # fmt: skip


def is_composed(character: str) -> bool:
    return not character.isascii() and unicodedata.normalize("NFD", character) != character


def scripts(sight: Sight) -> Finding | None:
    """Words with a letter of another script that looks like one of theirs."""
    foreign = {each for each in sight.characters if is_foreign(each)}
    latin = {each for each in sight.characters if each.isalpha() and unicodedata.name(each, "").startswith("LATIN")}
    if not foreign or not latin:
        return None
    one, other = pattern(latin).pattern, pattern(foreign).pattern
    touching = re.compile(f"{one}{other}|{other}{one}")
    hits = where(sight, touching.search)
    if not hits:
        return None
    found = touching.search(hits[0][1])
    assert found is not None
    strange = next(each for each in found[0] if each in foreign)
    example = f"{around(hits[0][1], found.start())}, where {strange} is {unicodedata.name(strange).lower()}"
    return made("mixed scripts in a word", "doubt", hits, sight, "with letters of two alphabets inside a word", example,
                "put the letters of one alphabet in their place; they look alike and are other tokens")  # fmt: skip


def is_foreign(character: str) -> bool:
    """Whether a letter is of an alphabet that is easily taken for Latin."""
    if character.isascii() or not character.isalpha():
        return False
    return character in GREEK_LIKE_LATIN or unicodedata.name(character, "").startswith(FOREIGN)


# ── what nobody sees ─────────────────────────────────────────────────────────────────────────────────────────────────


def invisible(sight: Sight) -> Finding | None:
    """Zero width spaces, soft hyphens, marks of direction; joiners only where nothing is to be joined."""
    present = {each for each in sight.characters if unicodedata.category(each) == "Cf" and each not in MARK + JOINERS}
    present -= {each for each in present if "ARABIC" in unicodedata.name(each, "")}  # signs of numbers and verses
    cure = "remove them; nobody will type them when the model is asked"
    found = searched(sight, present, "invisible characters", "doubt", "with characters that nobody sees", cure)
    if found is not None or not sight.characters & set(JOINERS):
        return found
    idle: Callable[[str], re.Match[str] | None] = re.compile(
        r"(?:[\x00-\x7f]|^)[\u200c\u200d]|[\u200c\u200d](?:[\x00-\x7f]|$)"
    ).search
    hits = where(sight, idle)
    if not hits:
        return None
    at = idle(hits[0][1])
    return made("invisible characters", "doubt", hits, sight, "with joiners that join nothing",
                around(hits[0][1], at.start() if at else 0), cure)  # fmt: skip


def spaces(sight: Sight) -> Finding | None:
    """Spaces that are none to whoever splits at spaces."""
    present = {each for each in sight.characters if unicodedata.category(each) == "Zs" and each != " "}
    if sight.task == "tag":
        present -= {"\u00a0"}  # a space inside a token
    if any("\u3041" <= each <= "\u9fff" for each in sight.characters):
        present -= {WIDE}
    if " " not in sight.characters:
        present = set()  # one kind alone is a choice
    return searched(sight, present, "odd spaces", "doubt", "with spaces that are no plain ones",
                    "replace them by plain ones, unless they are meant: they are other tokens")  # fmt: skip


def margins(sight: Sight) -> Finding | None:
    """Spaces at the ends of a text, and several in a row."""
    if sight.task in ("tag", "generate"):  # where spaces part tokens and nothing else, or belong to the text
        return None
    hits = where(sight, LOOSE.search)
    if not hits:
        return None
    found = LOOSE.search(hits[0][1])
    assert found is not None
    shown = LOOSE.sub(lambda gap: "␣" * len(gap[0]), hits[0][1])
    return made("loose spaces", "doubt", hits, sight, "with spaces at an end, or several in a row",
                around(shown, found.start()), "take them off; to a model and to an exact match they count")  # fmt: skip


# ── characters that are too rare to be learnt ────────────────────────────────────────────────────────────────────────


def find_rare(sight: Sight) -> Iterator[Finding | None]:
    once = {each for each, count in (sight.source_characters + sight.target_characters).items() if count == 1}
    if not once:
        return
    hits = where(sight, pattern(once).search)
    shown = " ".join(
        "␣" if each == " " else spell(each) if not each.isprintable() else each for each in sorted(once)[:20]
    )
    more = " …" if len(once) > 20 else ""
    yield made("characters seen once", "remark", hits, sight, f"with a character that occurs nowhere else: "
               f"{shown}{more}", pair(hits[0][0]),
               "mend them if they are slips; else a model can not learn them from one example")  # fmt: skip


def find_strangers(here: Sight, there: Sight, path: str) -> Iterator[Finding | None]:
    """Characters of a second file that the same side of the first never shows, or that its columns are swapped."""
    if are_swapped(here, there):
        hits = [(example, "") for example in there.examples]
        yield made("swapped columns", "trouble", hits, there, f"of {path}, whose sources are written like the targets "
                   "here and whose targets like the sources: columns swapped?", pair(hits[0][0]),
                   "swap the two columns of one of the files")  # fmt: skip
        return
    yield from strangers(there, here.source_characters, there.source_characters, "source", path)
    yield from strangers(there, here.target_characters, there.target_characters, "target", path)


def strangers(there: Sight, known: Counter[str], found: Counter[str], side: str, path: str) -> Iterator[Finding]:
    """Characters that one side of a second file has and that of the first has not."""
    new = found.keys() - known.keys()
    if not new or not known:
        return
    wanted = pattern(new)
    sides = [(example, "".join(example.source) if side == "source" else example.target or "")
             for example in there.examples]  # fmt: skip
    hits = [(example, text) for example, text in sides if wanted.search(text)]
    shown = " ".join(each if each.isprintable() and not each.isspace() else spell(each) for each in sorted(new)[:20])
    yield made("unseen characters", "doubt", hits, there, f"of {path} with characters in the {side} that no {side} "
               f"here has: {shown}{' …' if len(new) > 20 else ''}", pair(hits[0][0]),
               "add examples with them, or expect failures there")  # fmt: skip


def are_swapped(here: Sight, there: Sight) -> bool:
    """Whether each side of a second file is written like the other side of the first, by its characters."""
    if not here.has_targets or not there.has_targets:
        return False
    sources, targets = here.source_characters, here.target_characters
    turned = leaning(there.source_characters, targets, sources), leaning(there.target_characters, sources, targets)
    fewest = min(each.total() for each in (sources, targets, there.source_characters, there.target_characters))
    return min(turned) > SWAPPED + 2 * len(here.characters) / max(1, fewest)  # in short texts much is chance


def leaning(found: Counter[str], one: Counter[str], other: Counter[str]) -> float:
    """How much likelier characters are in one text than in another: the log of it, for each, on average."""
    room = len(one.keys() | other.keys() | found.keys())
    likely = [{each: (text[each] + 0.5) / (text.total() + 0.5 * room) for each in found} for text in (one, other)]
    gains = (count * math.log(likely[0][each] / likely[1][each]) for each, count in found.items())
    return sum(gains) / max(1, found.total())
