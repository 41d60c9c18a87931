"""A number in, so many lemmas with tags and their forms out, of two made-up languages.

Inflection is what many two-column files are about, and there is no public file of it here. The first language glues
suffixes to a stem, whose vowels and last consonant decide how they sound; the second weaves vowels into three
consonants. Both are regular, so all that is new in a test is the lemma; every lemma comes with one bundle of tags.
"""

import random
from itertools import product

FRONT, BACK = "eiöü", "aouy"
VOICELESS, VOICED = "ptkfsc", "bdgvzj"
OTHERS = "mnlrh"
CASES = {"NOM": "", "ACC": "nI", "GEN": "nIr", "DAT": "jA", "LOC": "DA", "ABL": "DAn"}
OWNERS = {"": "", "PSS1S": "Im", "PSS2S": "In", "PSS3S": "sI"}
TENSES = {"PST": "DI", "PRS": "Ijor", "FUT": "AcAk"}
PERSONS = {"1;SG": "Im", "2;SG": "sIn", "3;SG": "", "1;PL": "Ik", "2;PL": "sInIz", "3;PL": "lAr"}
WOVEN = {"PRF;ACT": "{0}a{1}a{2}a", "PRF;PASS": "{0}u{1}i{2}a", "IPF;ACT": "ya{0}{1}u{2}u", "IPF;PASS": "yu{0}{1}a{2}u",
         "IMP": "u{0}{1}u{2}", "PTCP;ACT": "{0}aa{1}i{2}", "PTCP;PASS": "ma{0}{1}uu{2}",
         "CAUS": "a{0}{1}a{2}a", "INT": "{0}a{1}{1}a{2}a"}  # fmt: skip
ENDINGS = {"MASC": "", "FEM": "t", "PL": "uu"}


def rows(count: int, seed: int = 0) -> list[tuple[str, str, str]]:
    """Lemma, tags and form; no lemma twice."""
    draw, found = random.Random(f"forms {seed}"), dict[str, tuple[str, str, str]]()
    while len(found) < count:
        made = (glued if draw.random() < 0.6 else woven)(draw)
        found.setdefault(made[0], made)
    return list(found.values())


def glued(draw: random.Random) -> tuple[str, str, str]:
    """A stem with suffixes: plural, owner and case, or denial, tense and person."""
    stem = stem_of(draw)
    if draw.random() < 0.5:
        many, (owner, own), (case, end) = draw.random() < 0.5, drawn(draw, OWNERS), drawn(draw, CASES)
        tags = ["N", case, "PL" if many else "SG", owner]
        return stem, ";".join(filter(None, tags)), joined(stem, ["lAr" * many, own, end])
    denied, (tense, time), (person, end) = draw.random() < 0.3, drawn(draw, TENSES), drawn(draw, PERSONS)
    tags = ["V", tense, person, "NEG" if denied else ""]
    return stem, ";".join(filter(None, tags)), joined(stem, ["mA" * denied, time, end])


def drawn(draw: random.Random, table: dict[str, str]) -> tuple[str, str]:
    return draw.choice(sorted(table.items()))


def stem_of(draw: random.Random) -> str:
    vowels = draw.choice((FRONT, BACK))
    syllables = [
        draw.choice(VOICELESS + VOICED + OTHERS) + draw.choice(vowels) for _ in range(draw.choice((1, 2, 2, 3)))
    ]
    return "".join(syllables) + draw.choice(("", *VOICELESS, *VOICELESS, *OTHERS))


def joined(stem: str, suffixes: list[str]) -> str:
    """Suffixes take the stem's vowels; D is t after a voiceless sound; p, t, k soften between vowels."""
    found = stem
    for suffix in filter(None, suffixes):
        last = next(letter for letter in reversed(found) if letter in FRONT + BACK)
        open_, wide = ("e", "i") if last in FRONT else ("a", "y")
        wide = {"ö": "ü", "ü": "ü", "o": "u", "u": "u"}.get(last, wide)
        voiced = "t" if found[-1] in VOICELESS else "d"
        made = suffix.replace("A", open_).replace("I", wide).replace("D", voiced)
        if made[0] in FRONT + BACK and found[-1] in FRONT + BACK:
            made = made[1:]  # of two vowels the second is lost
        elif made[0] in FRONT + BACK and found[-1] in "ptk":
            found = found[:-1] + VOICED[VOICELESS.index(found[-1])]
        found += made
    return found


def woven(draw: random.Random) -> tuple[str, str, str]:
    """Three consonants with the vowels of a pattern between them; after a weak one in the middle these are long."""
    root = [draw.choice("btdkqslmnrfhjzw") for _ in range(3)]
    lemma = "{}a{}a{}".format(*root)
    (tags, pattern), (agrees, end) = draw.choice(list(product(WOVEN.items(), ENDINGS.items())))
    form = pattern.format(*root) + end
    form = form.replace("awa", "aa").replace("uwi", "ii").replace("wu", "uu")
    return lemma, f"R;{tags};{agrees}", form
