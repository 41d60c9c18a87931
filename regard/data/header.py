"""The first row of a table and some below it in, the names of the columns out, where it holds them.

It does where columns are asked for by name, or where all its cells are names that columns usually have. Of other names
it has to be clear, for a pair that is taken for a header is lost: no cell comes again in its column, and either every
one is a word by which columns are called, such as a language, or one is unlike all that stand below it.
"""

import re
from collections import Counter
from collections.abc import Sequence

LABEL_NAMES = ["label", "labels", "intent", "sentiment", "category"]  # of targets that are one of few
TARGET_NAMES = ["target", "output", "form", "answer", "response", "phonemes", "caption", "tgt", "trg", "translation",
                "summary", "highlights", "query", "sql", "completion", *LABEL_NAMES]  # fmt: skip
SOURCE_NAMES = ["source", "src", "input", "lemma", "text", "sentence", "question", "prompt", "word", "tags", "image",
                "picture", "premise", "hypothesis", "sentence1", "sentence2", "review", "comment"]  # fmt: skip
ASIDE_NAMES = ["split", "index", "id"]  # columns about a row, no part of what is learnt
HEADER_NAMES = {*SOURCE_NAMES, *TARGET_NAMES, *ASIDE_NAMES, "features", "tokens", "context"}

SPOKEN = """
    afrikaans albanian amharic arabic armenian azerbaijani basque belarusian bengali bosnian breton bulgarian burmese
    catalan cebuano chinese croatian czech danish dutch english esperanto estonian faroese finnish french frisian
    galician georgian german greek gujarati hausa hawaiian hebrew hindi hungarian icelandic igbo indonesian irish
    italian japanese javanese kannada kazakh khmer korean kurdish kyrgyz lao latin latvian lithuanian luxembourgish
    macedonian malagasy malay malayalam maltese mandarin maori marathi mongolian nepali norwegian occitan pashto persian
    polish portuguese punjabi quechua romanian russian sanskrit scots serbian sinhala slovak slovene slovenian somali
    spanish sundanese swahili swedish tagalog tajik tamil tatar telugu thai tibetan turkish turkmen ukrainian urdu uzbek
    vietnamese welsh xhosa yiddish yoruba zulu deutsch français francais español espanol italiano português portugues
"""
ABBREVIATED = """
    af am ar az be bg bn bs ca cs cy da de el en eo es et eu fa fi fr ga gl gu he hi hr hu hy id is it ja ka kk km kn ko
    ky la lt lv mk ml mn mr ms mt my nb ne nl nn no pa pl ps pt ro ru sa si sk sl sq sr sv sw ta te th tl tr uk ur uz vi
    xh yi yo zh zu eng deu ger fra fre spa ita por nld dut rus ukr pol ces cze swe dan nor fin hun tur ara heb hin jpn
    kor zho chi lat
"""
CALLED = """
    abbreviation accent article audio author base body class code content conversion count date definition description
    dialect dialogue digits document domain expansion expression file filename forms gender gloss gold grapheme
    graphemes headline inflected inflection infinitive instruction ipa key kind lang language lemmas lexeme line meaning
    message name normalized number original paragraph passage phoneme phonetic phonetics plural pos pronunciation query
    raw reference reply request result role romanization score sentences sequence singular solution speaker speech
    spelling spoken stem string summary tag term texts title topic transcript transcription translated transliteration
    type url utterance value variant words written
"""  # no words that have their opposites beside them in lists, as left and right do
LANGUAGES, CODES = frozenset(SPOKEN.split()), frozenset(ABBREVIATED.split())
COLUMN_WORDS = LANGUAGES | HEADER_NAMES | frozenset(CALLED.split())

LONGEST = 30  # characters of a name
FEWEST = 3  # rows below, from which on numbers in a column are no chance …
ENOUGH = 20  # … and other likenesses
NEARLY_ALL = 0.95  # of the rows are as wide as the first, and of cells are alike
OFTEN = 5  # times that each label comes
WORDS = 3  # in a text at least

NAME = re.compile(r"[^\W\d]+(?:[ .-][^\W\d]+){0,2}")  # without digits
PART = re.compile(r"[^\W\d_]+")
NUMBER = re.compile(r"[^\w]*\d[\d\W]*(?:[eE][-+]?\d+)?\W*")
MISSING = {"nan", "na", "null", "none", "nil", "inf", "nd"}  # what stands in a column where something is not there


def header_names(fields: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The names of the columns where a first line holds them: asked for by name, or all of them well known."""
    names = cleaned(fields)
    named = any(not name.isdecimal() for name in wanted)
    known = len(set(names)) == len(names) and all(name.lower() in HEADER_NAMES for name in names)
    return names if named or known else []


def clear_names(fields: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The same of a line of which nothing is said, by the rows below it; where there is doubt, it is an example."""
    names, below = cleaned(fields), [cleaned(row) for row in rows if len(row) == len(fields)]
    if len(names) < 2 or len(below) < max(1.0, NEARLY_ALL * len(rows)):
        return []
    columns = [[row[place] for row in below] for place in range(len(names))]
    if not are_names(names, columns):
        return []
    return names if are_column_words(names, columns) or is_unlike(names, columns) else []


def cleaned(fields: Sequence[str]) -> list[str]:
    return [text.removesuffix("\r").strip() for text in fields]


def are_names(names: Sequence[str], columns: Sequence[Sequence[str]]) -> bool:
    """Whether all may be names: short, without digits, no two the same, and none that comes again in its column."""
    plain = [name.lower() for name in names]
    if len(set(plain)) < len(names) or not MISSING.isdisjoint(plain):
        return False
    if not all(len(name) <= LONGEST and NAME.fullmatch(name) for name in names):
        return False
    return all(name not in {cell.lower() for cell in cells} for name, cells in zip(plain, columns, strict=True))


# ── by words ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def are_column_words(names: Sequence[str], columns: Sequence[Sequence[str]]) -> bool:
    """Whether columns are called so; but a language above languages, or a code above codes, is the first of them."""
    if not all(map(is_column_word, names)):
        return False
    spoken = [cells for name, cells in zip(names, columns, strict=True) if is_language(name)]
    return not any(sum(map(is_language, cells)) > (1 - NEARLY_ALL) * len(cells) for cells in spoken)


def is_column_word(name: str) -> bool:
    """One word, or several such as English_text; a code such as en stands alone, for many are words too."""
    return is_language(name) or all(part in COLUMN_WORDS for part in PART.findall(name.lower()))


def is_language(text: str) -> bool:
    return text.lower() in LANGUAGES or text.lower() in CODES


# ── by what stands below ─────────────────────────────────────────────────────────────────────────────────────────────


def is_unlike(names: Sequence[str], columns: Sequence[Sequence[str]]) -> bool:
    """Whether a name can be none of the cells below it. A label may be a rare one: texts beside it have to tell too."""
    below = [[cell for cell in cells if cell] for cells in columns]
    if any(is_foreign(name, cells) for name, cells in zip(names, below, strict=True)):
        return True
    texts = [place for place, cells in enumerate(below) if are_texts(cells)]
    labels = [place for place, cells in enumerate(below) if place not in texts and are_labels(cells)]
    return bool(texts) and bool(labels) and all(len(names[place].split()) < WORDS for place in texts)


def is_foreign(name: str, cells: Sequence[str]) -> bool:
    """Whether all cells have what the name has not: they are numbers, hold digits, other letters, bundles of tags."""
    if len(cells) < FEWEST:
        return False
    if all(map(NUMBER.fullmatch, cells)):
        return True
    if len(cells) < ENOUGH:
        return False
    bundled = not name.isupper() and all(";" in cell or "|" in cell for cell in cells)
    dated = all(any(map(str.isdigit, cell)) for cell in cells)
    return bundled or dated or (name.isascii() and all(map(is_other, cells)))


def is_other(cell: str) -> bool:
    """Whether a text has letters, and none of them is Latin without accents."""
    letters = [sign for sign in cell if sign.isalpha()]
    return bool(letters) and not any(map(str.isascii, letters))


def are_labels(cells: Sequence[str]) -> bool:
    """Whether there are a few that come again and again, and none that is rare."""
    return len(cells) >= ENOUGH and min(Counter(cells).values()) >= OFTEN


def are_texts(cells: Sequence[str]) -> bool:
    """Whether nearly all have several words."""
    return len(cells) >= ENOUGH and sum(len(cell.split()) >= WORDS for cell in cells) >= NEARLY_ALL * len(cells)
