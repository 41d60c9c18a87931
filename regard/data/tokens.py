"""Text in, token ids with their places in the text out; and ids back to text.

Ids are laid out as special tokens, then tags, then the pieces of text. The text side knows only its own pieces, so no
text, whatever it says, can produce a special token or a tag. Subwords are byte-pair encoding (Sennrich et al. 2016,
https://arxiv.org/abs/1508.07909) and the unigram model (Kudo 2018, https://arxiv.org/abs/1804.10959), both over bytes.
Spelled words are a word and then its characters, as two layers of tokens in one row. Sentences are whole ones, each a
token: for texts whose sentences come again and again. Jamo are characters too, but for the syllables of Hangul, which
are cut into the letters that they are made of.
"""

import difflib
import json
import os
import re
import string
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from regard.data.ragged import Numbers, Ragged, join, ragged, repeated
from regard.errors import ConfigError, FolderError, UsageError

if TYPE_CHECKING:
    import tokenizers

PAD, START, END, SEPARATOR, MASK, UNKNOWN, CLASS = range(7)
SPECIALS = ("<pad>", "<start>", "<end>", "<separator>", "<mask>", "<unknown>", "<class>")

LEARNT_CHARACTERS = ("characters", "jamo")  # kinds that spell what is not among their characters by its bytes

WITHIN, BEGINS = 1, 2  # what a subword is: a word with the space before it, or its beginning; or what follows that

Kind = Literal["characters", "jamo", "bytes", "words", "bpe", "unigram", "spelled", "sentences", "labels"]
KINDS: tuple[Kind, ...] = tuple(kind for kind in get_args(Kind) if kind != "labels")  # of text

MOST_PIECES = 1_000_000
LONGEST_PIECE = 32  # bytes of one subword; without a limit, a hostile file's merges could double a piece sixty times
LOWEST_SCORE = -1000.0
MOST_REGIONS = 2_000_000  # words that the unigram model is learnt from; counts beyond are scaled down
MARKER = "\x01"  # not among the symbols by which bytes are written

PORTION = 4096  # texts that are counted at a time
MOST_TYPES = 1 << 19  # different words that are counted, at least four times those that are wanted
MOST_KNOWN = 1 << 17  # words whose pieces are remembered
LETTERS = 512  # ids at the end of a spelled vocabulary: the 256 bytes, and room for as many other characters

REPLACEMENT = "\ufffd"
SURROGATE = re.compile("[\ud800-\udfff]")
WORD = re.compile(r"\S+")
TOKEN = re.compile(r"(?:\S|\u00a0)+")  # a word in which a no-break space stands for a space
SENTENCE = re.compile(r"\S+(?: \S+)*")
STOPS = (".", "!", "?", "…")  # a sentence ends with a word that ends so,
CLOSING = "\"'’”»)]"  # or so with some of these after it
LABEL = re.compile(r"[^\0]+")
SYLLABLE = re.compile("[가-힣]")
JAMO = re.compile("[\u1100-\u11ff]")
PARTS_OF_SYLLABLE = re.compile("[\u1100-\u1112][\u1161-\u1175][\u11a8-\u11c2]?")
SEAM = re.compile(r"(?<=\S) ")  # no word and no region of subwords reaches across, nor looks at what follows
TAG = re.compile(r"[^;|,\s]+")
DIGIT = re.compile(r"\d")
# Letters keep their combining marks, which the library's own pattern cuts off (and with them most Indic words).
# Possessive, so that a line of millions of letters costs no backtracking.
SUBWORD_REGION = r" ?[\p{L}\p{M}]++| ?\p{N}++| ?[^\s\p{L}\p{M}\p{N}]++|\s+(?!\S)|\s++"


@dataclass(frozen=True, slots=True)
class Encoding:
    """Token ids and, for each, where it stands in the text as given: `text[start:end]`."""

    ids: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]


class Tokenizer:
    """One vocabulary: special tokens, then tags, then pieces of text of one kind."""

    def __init__(self, pieces: "Pieces", tags: Sequence[str] = ()) -> None:
        self.pieces = pieces
        self.tags = tuple(tags)
        self._tag_ids = {tag: id for id, tag in enumerate(self.tags, len(SPECIALS))}
        self.size = pieces.first + len(pieces.spellings)
        self.letters = self.size - LETTERS if pieces.kind == "spelled" else self.size  # the first that spells a word

    @classmethod
    def learn(cls, texts: Iterable[str], kind: Kind, size: int = 8000, tags: Iterable[str] = ()) -> "Tokenizer":
        """The tokenizer of these texts, of at most `size` characters, words or subwords.

        The 256 bytes are always there: within `size` for subwords, beside it for characters. A tag that is itself
        several (`V;PST`) counts as several.
        """
        if kind not in LEARNERS:
            raise ConfigError(unknown_kind("tokens", kind))
        if not 1 <= size <= MOST_PIECES:
            raise ConfigError(f"tokens: found a vocabulary of {size} pieces, expected 1 to {MOST_PIECES}")
        found = sorted({tag for cell in tags for tag in split_tags(mend(cell))})
        return cls(LEARNERS[kind](map(mend, texts), size, len(SPECIALS) + len(found)), found)

    @property
    def kind(self) -> Kind:
        """What the pieces are."""
        return self.pieces.kind

    def encode(self, text: str) -> Encoding:
        """The pieces of one text, with no special token added."""
        return self.pieces.encode(mend(text))

    def encode_batch(self, texts: Iterable[str]) -> list[Encoding]:
        """The same as `encode` of each text, quicker for subwords."""
        return self.pieces.encode_batch([mend(text) for text in texts])

    def encode_flat(self, texts: Sequence[str]) -> Ragged:
        """The ids that `encode` gives, of many texts at once and without their places."""
        return self.pieces.encode_flat([mend(text) for text in texts])

    def encode_pieces(self, pieces: Sequence[str]) -> list[Encoding]:
        """The pieces of one text that something unknown stands between: as they would be in a whole one.

        Subwords begin with the space before them, so that a space before the unknown belongs to that, and only the
        first piece is read with one of its own.
        """
        return self.pieces.encode_pieces([mend(piece) for piece in pieces])

    def seam(self, text: str, at: int) -> int:
        """The first place from `at` on before which a text has the tokens that it has there as a whole; or its end."""
        if isinstance(self.pieces, Characters):
            return min(at, len(text))
        found = SEAM.search(text, at)
        return found.start() if found else len(text)

    @cached_property
    def spacing(self) -> NDArray[np.int8]:
        """Of each id of text, counted from the first: BEGINS with a space and is more than that; or is WITHIN."""
        spaced = [(each[:1] == b" ", bool(each.strip())) for each in self.pieces.spellings]
        return np.array([BEGINS * more if begins else WITHIN for begins, more in spaced], np.int8)

    @cached_property
    def strangers(self) -> frozenset[int]:
        """The ids of what was not learnt: unknown words and tags, and bytes of characters that have no id of their own.

        Subwords and bytes spell any text, and so does a spelled word that is not known.
        """
        first = self.pieces.first
        spelling = range(first, first + 256) if self.kind in LEARNT_CHARACTERS else ()
        return frozenset(spelling) | (frozenset() if self.kind == "spelled" else {UNKNOWN})

    @property
    def has_spaces(self) -> bool:
        """Whether the space before a word is in its first token."""
        return isinstance(self.pieces, Subwords)

    def encode_columns(self, columns: Sequence[str], is_tags: Sequence[bool]) -> Encoding:
        """Several columns as one sequence with SEPARATOR between them; spans are into the columns joined by tabs."""
        if len(columns) != len(is_tags):
            raise UsageError(f"columns: found {len(columns)} columns, but {len(is_tags)} marks of which are tags")
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        begin = 0
        for column, tagged in zip(columns, is_tags, strict=True):
            if begin:
                ids.append(SEPARATOR)
                spans.append((begin - 1, begin - 1))
            encoding = self._encode_tags(column) if tagged else self.encode(column)
            ids.extend(encoding.ids)
            spans.extend((begin + start, begin + end) for start, end in encoding.spans)
            begin += len(column) + 1
        return Encoding(tuple(ids), tuple(spans))

    def encode_columns_flat(self, columns: Sequence[Sequence[str]], is_tags: Sequence[bool]) -> Ragged:
        """The ids that `encode_columns` gives, of many rows at once: `columns` are whole columns, not rows."""
        parts: list[Ragged] = []
        for texts, tagged in zip(columns, is_tags, strict=True):
            parts += [repeated(SEPARATOR, len(texts))] if parts else []
            parts.append(ragged([self._encode_tags(text).ids for text in texts]) if tagged else self.encode_flat(texts))
        return join(*parts)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of these ids: special tokens are left out, UNKNOWN is shown as the replacement character.

        Tags stand with semicolons between them, set off from text by a space.
        """
        kept = [self._known(id) for id in ids if id == UNKNOWN or not 0 <= id < len(SPECIALS)]
        runs = groupby(kept, key=lambda id: len(SPECIALS) <= id < self.pieces.first)
        return " ".join(self._join_tags(run) if tagged else self._join_text(run) for tagged, run in runs)

    def heads(self, ids: Sequence[int]) -> list[int]:
        """Which of these have a place of their own in what a model reads: all but the letters of spelled words."""
        return [place for place, id in enumerate(ids) if id < self.letters]

    def token(self, id: int) -> str:
        """How one token is shown to a person: spaces made visible, control characters and loose bytes spelled out."""
        if self._known(id) < len(SPECIALS):
            return SPECIALS[id]
        if id < self.pieces.first:
            return visible(self.tags[id - len(SPECIALS)].encode())
        return visible(self.pieces.spellings[id - self.pieces.first])

    def as_dict(self) -> dict[str, object]:
        """All of it as plain values for JSON."""
        return {"kind": self.kind, "tags": list(self.tags), **self.pieces.as_dict()}

    @classmethod
    def from_dict(cls, data: object) -> "Tokenizer":
        """The tokenizer that `as_dict` told of; every part is checked before anything is built from it."""
        if not isinstance(data, Mapping):
            refuse(f"found {shown(data)}, expected a table with a kind")
        kind = data.get("kind")
        if not isinstance(kind, str) or kind not in READERS:
            raise FolderError(unknown_kind("tokenizer.json", kind))
        check_keys(data, {"kind", "tags", *PARTS[kind]})
        tags = read_strings(data, "tags", TAG)
        if tags != sorted(tags):
            refuse("found tags out of order, expected them sorted")
        return cls(READERS[kind](data, len(SPECIALS) + len(tags)), tags)

    def _encode_tags(self, text: str) -> Encoding:
        found = list(TAG.finditer(mend(text)))
        ids = tuple(self._tag_ids.get(match[0], UNKNOWN) for match in found)
        return Encoding(ids, tuple(match.span() for match in found))

    def _join_tags(self, ids: Iterable[int]) -> str:
        return ";".join(self.tags[id - len(SPECIALS)] for id in ids)

    def _join_text(self, ids: Iterable[int]) -> str:
        return self.pieces.join([self._part(id) for id in ids]).decode("utf-8", errors="replace")

    def _part(self, id: int) -> bytes:
        if self.kind == "spelled" and id < self.letters:
            return b" "  # the word is told by its letters
        return REPLACEMENT.encode() if id == UNKNOWN else self.pieces.spellings[id - self.pieces.first]

    def _known(self, id: int) -> int:
        if not 0 <= id < self.size:
            raise UsageError(f"token {id}: expected an id from 0 to {self.size - 1}")
        return id


def split_tags(text: str) -> list[str]:
    """The tags of one cell of a tag column: what stands between semicolons, commas, bars and white space."""
    return TAG.findall(text)


def mend(text: str) -> str:
    """The same text, as long, with half characters (lone surrogates, which no file can hold) replaced."""
    return text if text.isascii() else SURROGATE.sub(REPLACEMENT, text)


def in_letters(text: str) -> str:
    """The same text with the letters of each syllable of Hangul in its place."""
    return text if text.isascii() else SYLLABLE.sub(lambda found: unicodedata.normalize("NFD", found[0]), text)


def in_syllables(spelled: bytes) -> bytes:
    """The same text with letters of Hangul that make a syllable as that; bytes that are no text stay as they are."""
    text = spelled.decode("utf-8", errors="surrogateescape")
    joined = PARTS_OF_SYLLABLE.sub(lambda found: unicodedata.normalize("NFC", found[0]), text)
    return joined.encode("utf-8", errors="surrogateescape")


def visible(spelling: bytes) -> str:
    """A piece as a person can see it; nothing in it can act on a terminal."""
    try:
        text = spelling.decode()
    except UnicodeDecodeError:
        return "".join(f"<0x{byte:02X}>" for byte in spelling)
    return "".join("␣" if c == " " else c if c.isprintable() else f"<U+{ord(c):04X}>" for c in text)


# --- kinds of pieces -------------------------------------------------------------------------------------------------


class Pieces(Protocol):
    """The text side of a tokenizer: ids count from `first`, and `spellings[id - first]` are the bytes of one."""

    @property
    def kind(self) -> Kind: ...

    @property
    def first(self) -> int: ...

    @property
    def spellings(self) -> Sequence[bytes]: ...

    def encode(self, text: str) -> Encoding: ...

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]: ...

    def encode_flat(self, texts: Sequence[str]) -> Ragged: ...

    def encode_pieces(self, pieces: Sequence[str]) -> list[Encoding]: ...

    def join(self, parts: Sequence[bytes]) -> bytes: ...

    def as_dict(self) -> dict[str, object]: ...


class Characters:
    """The 256 bytes and then the characters of `alphabet`; what is not among them is spelled by its UTF-8 bytes."""

    kind: Kind = "characters"

    def __init__(self, alphabet: str, first: int) -> None:
        self.alphabet, self.first = alphabet, first
        self.spellings = [bytes([byte]) for byte in range(256)] + [character.encode() for character in alphabet]
        # ASCII is its own byte, so that the quick way below serves the bytes tokenizer as well.
        self._ids = {chr(byte): first + byte for byte in range(128)}
        self._ids.update((character, id) for id, character in enumerate(alphabet, first + 256))

    def encode(self, text: str) -> Encoding:
        ids = [self._ids.get(character, -1) for character in text]
        if -1 in ids:
            return self._spell(text)
        return Encoding(tuple(ids), places(len(text)))

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        return [self.encode(text) for text in texts]

    def encode_flat(self, texts: Sequence[str]) -> Ragged:
        """All characters are looked up at once; one that is not known takes the room of its bytes."""
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        codes = code_points("".join(texts))
        ids = self._id_of[codes]
        unknown = ids < 0
        if not unknown.any():
            return Ragged(ids, lengths)
        room = np.where(unknown, 1 + (codes > 0x7F) + (codes > 0x7FF) + (codes > 0xFFFF), 1)
        spelled = np.repeat(ids, room)
        raw = codes[unknown].tobytes().decode("utf-32-le").encode()
        spelled[np.repeat(unknown, room)] = self.first + np.frombuffer(raw, np.uint8).astype(np.int64)
        return Ragged(spelled, sums(room, np.cumsum(lengths)))

    def encode_pieces(self, pieces: Sequence[str]) -> list[Encoding]:
        return self.encode_batch(pieces)

    @cached_property
    def _id_of(self) -> Numbers:
        """The id of every code point there is, -1 where it has none of its own."""
        table = np.full(sys.maxunicode + 1, -1, np.int64)
        table[code_points("".join(self._ids))] = list(self._ids.values())
        return table

    def join(self, parts: Sequence[bytes]) -> bytes:
        return b"".join(parts)

    def as_dict(self) -> dict[str, object]:
        return {"characters": self.alphabet}

    def _spell(self, text: str) -> Encoding:
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        for at, character in enumerate(text):
            known = self._ids.get(character)
            spelled = [self.first + byte for byte in character.encode()] if known is None else [known]
            ids += spelled
            spans += [(at, at + 1)] * len(spelled)
        return Encoding(tuple(ids), tuple(spans))


class Jamo(Characters):
    """Characters, but for a syllable of Hangul, which is its letters: of 11,172 syllables few would be seen often."""

    kind: Kind = "jamo"

    def encode(self, text: str) -> Encoding:
        opened = in_letters(text)
        if len(opened) == len(text):
            return super().encode(text)
        places = [place for place, character in enumerate(text) for _ in in_letters(character)]
        found = super().encode(opened)
        return Encoding(found.ids, tuple((places[start], places[start] + 1) for start, _ in found.spans))

    def encode_flat(self, texts: Sequence[str]) -> Ragged:
        return super().encode_flat([in_letters(text) for text in texts])

    def join(self, parts: Sequence[bytes]) -> bytes:
        return in_syllables(super().join(parts))


class Bytes(Characters):
    """The 256 bytes and nothing else."""

    kind: Kind = "bytes"

    def __init__(self, first: int) -> None:
        super().__init__("", first)

    def as_dict(self) -> dict[str, object]:
        return {}


class Words:
    """What stands between white space; a word that was not learnt is UNKNOWN."""

    kind: Kind = "words"

    def __init__(self, words: Sequence[str], first: int) -> None:
        self.words, self.first = list(words), first
        self.spellings = [word.encode() for word in words]
        self._ids = {word: id for id, word in enumerate(words, first)}

    def encode(self, text: str) -> Encoding:
        found = list(WORD.finditer(text))
        ids = tuple([self._ids.get(match[0], UNKNOWN) for match in found])
        return Encoding(ids, tuple([match.span() for match in found]))

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        return [self.encode(text) for text in texts]

    def encode_flat(self, texts: Sequence[str]) -> Ragged:
        return ragged([[self._ids.get(word, UNKNOWN) for word in text.split()] for text in texts])

    def encode_pieces(self, pieces: Sequence[str]) -> list[Encoding]:
        return self.encode_batch(pieces)

    def join(self, parts: Sequence[bytes]) -> bytes:
        return b" ".join(parts)

    def as_dict(self) -> dict[str, object]:
        return {"words": self.words}


class Labels(Words):
    """Each text is one piece, whatever stands in it: the labels of a classification."""

    kind: Kind = "labels"

    def encode(self, text: str) -> Encoding:
        return Encoding((self._ids.get(text, UNKNOWN),), ((0, len(text)),))

    def encode_flat(self, texts: Sequence[str]) -> Ragged:
        return ragged([(self._ids.get(text, UNKNOWN),) for text in texts])

    def as_dict(self) -> dict[str, object]:
        return {"labels": self.words}


class Sentences(Words):
    """Whole sentences, however much white space is in them; one that was not learnt is UNKNOWN.

    An abbreviation ends one too, always at the same place, so that equal texts are cut alike.
    """

    kind: Kind = "sentences"

    def encode(self, text: str) -> Encoding:
        spans = tuple(sentence_spans(text))
        ids = tuple(self._ids.get(even(text[start:end]), UNKNOWN) for start, end in spans)
        return Encoding(ids, spans)

    def encode_flat(self, texts: Sequence[str]) -> Ragged:
        return ragged([self.encode(text).ids for text in texts])

    def as_dict(self) -> dict[str, object]:
        return {"sentences": self.words}


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each sentence stands: from a word to the next that ends with a stop, or to the last of the text."""
    start, end = -1, -1
    for word in WORD.finditer(text):
        start, end = word.start() if start < 0 else start, word.end()
        if word[0].rstrip(CLOSING).endswith(STOPS):
            yield start, end
            start = -1
    if start >= 0:
        yield start, end


def even(sentence: str) -> str:
    """The same words with one space between them."""
    return " ".join(sentence.split())


class Spelled:
    """Each word and then its characters: `[the] t h e [cat] c a t`; a word that was not learnt is UNKNOWN and spelled.

    Which word it is takes no notice of capitals, digits and signs around it (`plain_word`): these are told by the
    characters, and so is the text.
    """

    kind: Kind = "spelled"

    def __init__(self, words: Sequence[str], alphabet: str, first: int) -> None:
        self.words, self.first = list(words), first
        self.characters = Characters(alphabet, first + len(words))
        room = [b""] * (LETTERS - len(self.characters.spellings))
        self.spellings = [*(word.encode() for word in words), *self.characters.spellings, *room]
        self._ids = {word: id for id, word in enumerate(words, first)}
        self._known: dict[str, tuple[int, ...]] = {}  # words that were spelled before

    def encode(self, text: str) -> Encoding:
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        for found in TOKEN.finditer(text):
            letters = self.characters.encode(found[0])
            ids += (self._word(found[0]), *letters.ids)
            spans += (found.span(), *((found.start() + start, found.start() + end) for start, end in letters.spans))
        return Encoding(tuple(ids), tuple(spans))

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        return [self.encode(text) for text in texts]

    def encode_flat(self, texts: Sequence[str]) -> Ragged:
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        return ragged([[id for word in TOKEN.findall(text) for id in self._spell(word)] for text in texts])

    def encode_pieces(self, pieces: Sequence[str]) -> list[Encoding]:
        return self.encode_batch(pieces)

    def join(self, parts: Sequence[bytes]) -> bytes:
        return b"".join(parts).removeprefix(b" ")

    def as_dict(self) -> dict[str, object]:
        return {"words": self.words, **self.characters.as_dict()}

    def _word(self, word: str) -> int:
        return self._ids.get(plain_word(word), UNKNOWN)

    def _spell(self, word: str) -> tuple[int, ...]:
        if word not in self._known:
            self._known[word] = (self._word(word), *self.characters.encode(word).ids)
        return self._known[word]


def plain_word(word: str) -> str:
    """The word in small letters, every digit a 0, without signs before and after it unless it is nothing else."""
    small = DIGIT.sub("0", word.lower())
    return small.strip(string.punctuation) or small


def sums(counts: Numbers, ends: Numbers) -> Numbers:
    """The sums of the runs of `counts` that end at `ends`; a run may be empty."""
    reached = np.concatenate([[0], np.cumsum(counts)])[ends]
    return np.diff(reached, prepend=0)


def code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le"), "<u4")


def places(count: int) -> tuple[tuple[int, int], ...]:
    """The spans (0, 1), (1, 2), ...; short ones are shared by all texts of that length."""
    return short_places(count) if count <= 256 else tuple(zip(range(count), range(1, count + 1), strict=True))


@lru_cache(maxsize=257)
def short_places(count: int) -> tuple[tuple[int, int], ...]:
    return tuple(zip(range(count), range(1, count + 1), strict=True))


# --- subwords --------------------------------------------------------------------------------------------------------


def byte_symbols() -> tuple[str, ...]:
    """The printable character by which the library writes each byte: itself if Latin-1 prints it, else one past 255."""
    shown_as_is = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(256, 512))
    return tuple(chr(byte if byte in shown_as_is else next(others)) for byte in range(256))


SYMBOLS = byte_symbols()
BYTE_OF = {symbol: byte for byte, symbol in enumerate(SYMBOLS)}


def chunks(text: str) -> list[str]:
    """The text cut at its spaces, where no piece can reach across; where spaces stand together it is left whole."""
    words = text.split(" ")
    return [text] if "" in words else words


class Subwords:
    """Pieces of words over bytes, the 256 bytes first, so that nothing is unknown.

    Each text is read with one space before it, so that a word has the same pieces at the start as in the middle; that
    space is in no span and is taken off again when pieces are joined.
    """

    def __init__(self, symbols: Sequence[str], first: int) -> None:
        self.symbols, self.first = list(symbols), first
        self.spellings = [bytes(BYTE_OF[symbol] for symbol in piece) for piece in symbols]
        self._known: dict[str, list[int]] = {}  # words whose pieces were looked up before

    def encode(self, text: str) -> Encoding:
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        # In portions, because what the library answers takes a hundred times the room of the text.
        portions = (texts[start : start + 1000] for start in range(0, len(texts), 1000))
        return [encoding for portion in portions for encoding in self._encode_portion(portion)]

    def encode_flat(self, texts: Sequence[str]) -> Ragged:
        """Word by word: most words of a text were met before, and looking them up is quicker than cutting them."""
        cut = [chunks(text) for text in texts]
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        self._know(sorted({word for words in cut for word in words if word not in self._known}))
        pieces = ragged([self._known[word] for words in cut for word in words])
        ends = np.cumsum(np.fromiter(map(len, cut), np.int64, len(cut)))
        return Ragged(self.first + pieces.ids, sums(pieces.lengths, ends))

    def _know(self, words: Sequence[str]) -> None:
        spaced = [" " + word if word else "" for word in words]
        found = self._library.encode_batch_fast(spaced, add_special_tokens=False)
        self._known.update((word, one.ids) for word, one in zip(words, found, strict=True))

    def encode_pieces(self, pieces: Sequence[str]) -> list[Encoding]:
        ends = [piece.removesuffix(" ") for piece in pieces[:-1]] + [*pieces[-1:]]
        found = self._library.encode_batch(ends[1:], add_special_tokens=False)
        later = [Encoding(tuple(self.first + id for id in one.ids), tuple(one.offsets)) for one in found]
        return [*self.encode_batch(ends[:1]), *later]

    def join(self, parts: Sequence[bytes]) -> bytes:
        return b"".join(parts).removeprefix(b" ")

    def _encode_portion(self, texts: Sequence[str]) -> list[Encoding]:
        found = self._library.encode_batch([" " + text if text else "" for text in texts], add_special_tokens=False)
        return [self._encoding(one.ids, one.offsets) for one in found]

    def _encoding(self, ids: list[int], offsets: list[tuple[int, int]]) -> Encoding:
        first = self.first
        spans = [(start - 1 if start else 0, end - 1) for start, end in offsets]
        return Encoding(tuple([first + id for id in ids]), tuple(spans))

    @cached_property
    def _library(self) -> "tokenizers.Tokenizer":
        return assemble(self._model())

    def _model(self) -> Any:
        raise NotImplementedError


class BytePairs(Subwords):
    """Byte-pair encoding: pairs of pieces that become one, in the order in which they were learnt."""

    kind: Kind = "bpe"

    def __init__(self, merges: Sequence[tuple[str, str]], first: int) -> None:
        self.merges = list(merges)
        # Two merges can make the same piece; it is one token.
        super().__init__(list(dict.fromkeys([*SYMBOLS, *(left + right for left, right in merges)])), first)

    def as_dict(self) -> dict[str, object]:
        return {"merges": [list(pair) for pair in self.merges]}

    def _model(self) -> Any:
        from tokenizers.models import BPE

        return BPE(vocab={piece: id for id, piece in enumerate(self.symbols)}, merges=self.merges)


class Unigram(Subwords):
    """The unigram model: every piece has a log probability, and a text is cut where their sum is highest."""

    kind: Kind = "unigram"

    def __init__(self, scores: Sequence[float], pieces: Sequence[tuple[str, float]], first: int) -> None:
        self.scores, self.scored = list(scores), list(pieces)
        super().__init__([*SYMBOLS, *(piece for piece, _ in pieces)], first)

    def as_dict(self) -> dict[str, object]:
        return {"scores": self.scores, "pieces": [list(pair) for pair in self.scored]}

    def _model(self) -> Any:
        from tokenizers import models

        return models.Unigram([*zip(SYMBOLS, self.scores, strict=True), *self.scored], None, False)


def assemble(model: Any) -> "tokenizers.Tokenizer":
    """The library's tokenizer around a model: the same parts for everyone, and no special or added tokens."""
    # The library warns, and may hang, if a process forks after it has used threads; one thread is quick enough.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from tokenizers import Regex, Tokenizer, pre_tokenizers

    tokenizer = Tokenizer(model)
    regions = pre_tokenizers.Split(Regex(SUBWORD_REGION), "isolated")
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([regions, as_bytes])
    return tokenizer


# --- learning --------------------------------------------------------------------------------------------------------


def learn_characters(texts: Iterable[str], size: int, first: int) -> Characters:
    """The most frequent characters, equally frequent ones by code point."""
    counts: Counter[str] = Counter()
    rest = iter(texts)
    while portion := list(islice(rest, PORTION)):
        seen = np.bincount(code_points("".join(portion)))
        counts.update({chr(code): int(seen[code]) for code in seen.nonzero()[0]})
    return Characters("".join(most_frequent(counts, size)), first)


def learn_jamo(texts: Iterable[str], size: int, first: int) -> Jamo:
    """The same of texts whose syllables are cut."""
    return Jamo(learn_characters(map(in_letters, texts), size, first).alphabet, first)


def learn_bytes(_texts: Iterable[str], _size: int, first: int) -> Bytes:
    """Nothing to learn."""
    return Bytes(first)


def learn_words(texts: Iterable[str], size: int, first: int) -> Words:
    """The most frequent words, equally frequent ones in the order of their code points."""
    return Words(most_frequent(count_types(map(str.split, texts), size), size), first)


def learn_sentences(texts: Iterable[str], size: int, first: int) -> Sentences:
    """The most frequent sentences, equally frequent ones in the order of their code points."""
    groups = ([even(text[start:end]) for start, end in sentence_spans(text)] for text in texts)
    return Sentences(most_frequent(count_types(groups, size), size), first)


def learn_labels(texts: Iterable[str], size: int, first: int) -> Labels:
    """Every text that occurs, the most frequent first."""
    return Labels(most_frequent(count_types(([text] for text in texts), size), size), first)


def learn_spelled(texts: Iterable[str], size: int, first: int) -> Spelled:
    """The most frequent words of those that occur twice, and the characters beyond ASCII, which is its own bytes.

    What occurs once stays unknown, so that a model learns what unknown words are like.
    """
    words: Counter[str] = Counter()
    letters: Counter[str] = Counter()
    for word, count in count_types(map(TOKEN.findall, texts), size).items():
        words[plain_word(word)] += count
        letters.update({each: count * word.count(each) for each in set(word) if not each.isascii()})
    twice = Counter({word: count for word, count in words.items() if count > 1})
    return Spelled(most_frequent(twice, size), "".join(most_frequent(letters, LETTERS - 256)), first)


def count_types(groups: Iterable[list[str]], size: int) -> Counter[str]:
    """How often each text occurs. Of very many different ones the rarest are forgotten, so that memory has a bound."""
    counts: Counter[str] = Counter()
    most = max(MOST_TYPES, 4 * size)
    for group in groups:
        counts.update(group)
        if len(counts) > most:
            forget_rarest(counts, most // 2)
    return counts


def forget_rarest(counts: Counter[str], most: int) -> None:
    """Drops what occurred once, then what occurred twice, … until at most so many are left."""
    often = np.fromiter(counts.values(), np.int64, len(counts))
    limit = int(np.sort(often)[-most - 1])
    for rare in [each for each, count in counts.items() if count <= limit]:
        del counts[rare]


def most_frequent(counts: Counter[str], size: int) -> list[str]:
    return sorted(counts, key=lambda piece: (-counts[piece], piece))[:size]


def learn_bpe(texts: Iterable[str], size: int, first: int) -> BytePairs:
    """Merges of the most frequent pair, again and again, until there are `size` pieces or no pair occurs twice."""
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import CharDelimiterSplit
    from tokenizers.trainers import BpeTrainer

    trainer = BpeTrainer(
        vocab_size=max(size, len(SYMBOLS)),
        min_frequency=2,
        max_token_length=LONGEST_PIECE,
        initial_alphabet=list(SYMBOLS),
        special_tokens=[],
        show_progress=False,
    )
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = CharDelimiterSplit(MARKER)
    state = trained(tokenizer, trainer, repeated_regions(count_regions(texts, size)))
    return BytePairs([(left, right) for left, right in state["merges"]], first)


def learn_unigram(texts: Iterable[str], size: int, first: int) -> Unigram:
    """Pieces left when the least useful ones of a large set have been dropped until there are `size`."""
    from tokenizers import Tokenizer, models
    from tokenizers.trainers import UnigramTrainer

    trainer = UnigramTrainer(
        vocab_size=max(size, len(SYMBOLS)) + 1,  # one for the marker
        max_piece_length=LONGEST_PIECE,
        initial_alphabet=list(SYMBOLS),
        special_tokens=[],
        show_progress=False,
    )
    vocabulary = trained(Tokenizer(models.Unigram()), trainer, marked(count_regions(texts, size)))["vocab"]
    # With too little text to keep any longer piece the library's scores are not numbers, and then none matters.
    found = {piece: LOWEST_SCORE if score is None else round(score, 6) for piece, score in vocabulary}
    return settle(found, size, first)


def count_regions(texts: Iterable[str], size: int) -> Counter[str]:
    """How often each word, digit or run of signs occurs, written in byte symbols.

    Digits stand alone, and are never merged: a number that was not seen is read and copied like any other.
    """
    from tokenizers import models

    cut = assemble(models.Unigram()).pre_tokenizer.pre_tokenize_str
    regions: Counter[str] = Counter()
    for chunk, count in count_types(map(chunks, texts), size).items():
        for region, _ in cut(" " + chunk) if chunk else ():
            for part in digit_by_digit(region):
                regions[part] += count
    return regions


def digit_by_digit(region: str) -> list[str]:
    """Of a number its digits, and the space before it; anything else as it is. All in byte symbols."""
    text = bytes(BYTE_OF[symbol] for symbol in region).decode("utf-8")
    if not text[-1:].isnumeric():
        return [region]
    return ["".join(SYMBOLS[byte] for byte in character.encode("utf-8")) for character in text]


def repeated_regions(regions: Counter[str]) -> Iterator[str]:
    """Each region as often as it occurs, many in one text with a marker between them: the library only counts them."""
    for region, count in sorted(regions.items()):
        for start in range(0, count, PORTION):
            yield MARKER.join([region] * min(PORTION, count - start))


def marked(regions: Counter[str]) -> Iterator[str]:
    """Each region as often as it occurs, every second time with a marker at its end.

    The library takes as candidates only strings that two *different* regions share, so a word that occurs a thousand
    times but in no other (a month in dates) would be spelled letter by letter. With the marker it is in two. No
    candidate can hold the marker itself, because the end of the region always follows it.
    """
    thinning = max(1, regions.total() // MOST_REGIONS)
    for region, count in sorted(regions.items()):
        for turn in range(max(count // thinning, min(count, 2))):
            yield region + MARKER * (turn % 2)


def settle(found: Mapping[str, float], size: int, first: int) -> Unigram:
    """The library's pieces made the same on every run, and without the marker.

    Its sums are in the order of a hash table, so the last digits of a score differ (they are rounded by now); and the
    bytes that training did not keep are given scores up to 0.0257 above the lowest, in that same order. No data
    were seen on which the choice of pieces differs, tied counts included; but the library does not promise it.
    """
    lowest = min(found.values())
    scores = [found.get(symbol, lowest) for symbol in SYMBOLS]
    level = [lowest if score < lowest + 0.03 else score for score in scores]
    pieces = [(piece, score) for piece, score in found.items() if piece not in BYTE_OF and MARKER not in piece]
    ranked = sorted(pieces, key=lambda pair: (-pair[1], pair[0]))
    # It also gives a few pieces more than were asked for when there is hardly room for any.
    return Unigram(level, ranked[: max(size - len(SYMBOLS), 0)], first)


def trained(tokenizer: "tokenizers.Tokenizer", trainer: Any, texts: Iterable[str]) -> dict[str, Any]:
    """The library's model after training, as plain values."""
    tokenizer.train_from_iterator(texts, trainer)
    state: dict[str, Any] = json.loads(tokenizer.to_str())["model"]
    return state


LEARNERS: dict[str, Callable[[Iterable[str], int, int], Pieces]] = {
    "characters": learn_characters,
    "jamo": learn_jamo,
    "bytes": learn_bytes,
    "words": learn_words,
    "bpe": learn_bpe,
    "unigram": learn_unigram,
    "spelled": learn_spelled,
    "sentences": learn_sentences,
    "labels": learn_labels,
}


# --- reading what was saved ------------------------------------------------------------------------------------------


def read_characters(data: Mapping[str, object], first: int) -> Characters:
    """Characters from their alphabet, each in it once."""
    alphabet = data["characters"]
    if not isinstance(alphabet, str) or SURROGATE.search(alphabet):
        refuse(f"found {shown(alphabet)} as characters, expected text")
    if len(set(alphabet)) != len(alphabet):
        refuse(f"found the character {shown(Counter(alphabet).most_common(1)[0][0])} twice")
    return Characters(alphabet, first)


def read_jamo(data: Mapping[str, object], first: int) -> Jamo:
    """The same, of letters; no syllable is among them, which would never be met."""
    alphabet = read_characters(data, first).alphabet
    if found := SYLLABLE.search(alphabet):
        refuse(f"found the syllable {shown(found[0])} among the letters, expected the letters it is made of")
    return Jamo(alphabet, first)


def read_bytes(_data: Mapping[str, object], first: int) -> Bytes:
    """Bytes, which have nothing to read."""
    return Bytes(first)


def read_words(data: Mapping[str, object], first: int) -> Words:
    """Words from their list."""
    return Words(read_strings(data, "words", WORD), first)


def read_spelled(data: Mapping[str, object], first: int) -> Spelled:
    """Words from their list, and the characters that spell them."""
    alphabet = read_characters(data, first).alphabet
    if len(alphabet) > LETTERS - 256:
        refuse(f"found {len(alphabet)} characters of spelled words, expected at most {LETTERS - 256}")
    return Spelled(read_strings(data, "words", TOKEN), alphabet, first)


def read_sentences(data: Mapping[str, object], first: int) -> Sentences:
    """Sentences from their list."""
    return Sentences(read_strings(data, "sentences", SENTENCE), first)


def read_labels(data: Mapping[str, object], first: int) -> Labels:
    """Labels from their list."""
    return Labels(read_strings(data, "labels", LABEL), first)


def read_bpe(data: Mapping[str, object], first: int) -> BytePairs:
    """Merges whose two sides are pieces by then; otherwise the library would stop the whole process."""
    known, merges = set(SYMBOLS), []
    for pair in read_list(data, "merges"):
        match pair:
            case [str(left), str(right)] if left in known and right in known and len(left + right) <= LONGEST_PIECE:
                known.add(left + right)
                merges.append((left, right))
            case _:
                refuse(f"found the merge {shown(pair)}, expected two known pieces, {LONGEST_PIECE} bytes in all")
    if len(set(merges)) != len(merges):
        refuse(f"found the merge {shown(Counter(merges).most_common(1)[0][0])} twice")
    return BytePairs(merges, first)


def read_unigram(data: Mapping[str, object], first: int) -> Unigram:
    """A score for each byte, and longer pieces with theirs."""
    scores = [read_score(score) for score in read_list(data, "scores")]
    if len(scores) != len(SYMBOLS):
        refuse(f"found {len(scores)} scores of bytes, expected {len(SYMBOLS)}")
    pieces: dict[str, float] = {}
    for pair in read_list(data, "pieces"):
        match pair:
            case [str(piece), score] if 2 <= len(piece) <= LONGEST_PIECE and BYTE_OF.keys() >= set(piece):
                if piece in pieces:
                    refuse(f"found the piece {shown(piece)} twice")
                pieces[piece] = read_score(score)
            case _:
                refuse(f"found the piece {shown(pair)}, expected 2 to {LONGEST_PIECE} bytes and a score")
    return Unigram(scores, list(pieces.items()), first)


PARTS: dict[str, tuple[str, ...]] = {
    "characters": ("characters",),
    "jamo": ("characters",),
    "bytes": (),
    "words": ("words",),
    "bpe": ("merges",),
    "unigram": ("scores", "pieces"),
    "spelled": ("words", "characters"),
    "sentences": ("sentences",),
    "labels": ("labels",),
}
READERS: dict[str, Callable[[Mapping[str, object], int], Pieces]] = {
    "characters": read_characters,
    "jamo": read_jamo,
    "bytes": read_bytes,
    "words": read_words,
    "bpe": read_bpe,
    "unigram": read_unigram,
    "spelled": read_spelled,
    "sentences": read_sentences,
    "labels": read_labels,
}


def read_score(score: object) -> float:
    """A log probability."""
    if isinstance(score, bool) or not isinstance(score, int | float) or not LOWEST_SCORE <= score <= 0:
        refuse(f"found the score {shown(score)}, expected a number from {LOWEST_SCORE:g} to 0")
    return float(score)


def read_strings(data: Mapping[str, object], key: str, pattern: re.Pattern[str]) -> list[str]:
    """Distinct strings, each of which is one match of the pattern."""
    strings: dict[str, None] = {}
    for value in read_list(data, key):
        if not isinstance(value, str) or not pattern.fullmatch(value) or SURROGATE.search(value):
            refuse(f"found {shown(value)} among the {key}, expected text that is one of the {key}")
        if value in strings:
            refuse(f"found {shown(value)} twice among the {key}")
        strings[value] = None
    return list(strings)


def read_list(data: Mapping[str, object], key: str) -> list[object]:
    """A list that is not absurdly long."""
    value = data[key]
    if not isinstance(value, list):
        refuse(f"found {shown(value)} as {key}, expected a list")
    if len(value) > MOST_PIECES:
        refuse(f"found {len(value)} {key}, expected at most {MOST_PIECES}")
    return value


def check_keys(data: Mapping[str, object], expected: set[str]) -> None:
    """No key missing, none too many."""
    for key in sorted(expected.symmetric_difference(data), key=str):
        refuse(f"{'no' if key in expected else 'found'} {shown(key)}, expected {', '.join(sorted(expected))}")


def unknown_kind(where: str, kind: object) -> str:
    """What to say of a kind that is none."""
    near = difflib.get_close_matches(str(kind), KINDS, n=1, cutoff=0.4)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{where}: found the kind {shown(kind)}, expected one of {', '.join(KINDS)}{hint}"


def shown(value: object) -> str:
    """A value from outside, made short and harmless for an error."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def refuse(what: str) -> NoReturn:
    """Say what is wrong with the saved tokenizer."""
    raise FolderError(f"tokenizer.json: {what}; is the file damaged, or made by another program?")
