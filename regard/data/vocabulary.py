"""Examples in, the tokenizers of both sides out; and the two as one JSON value, as a model folder keeps them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress

from regard import config
from regard.data.ragged import Ragged
from regard.data.read import Example
from regard.data.tokens import MOST_PIECES, PAD, Encoding, Kind, Tokenizer, split_tags
from regard.errors import FolderError


@dataclass(frozen=True)
class Vocabulary:
    """What a token is on each side; with one vocabulary both are the same object."""

    source: Tokenizer
    target: Tokenizer
    is_tags: tuple[bool, ...] = (False,)  # for each source column

    @property
    def shared(self) -> bool:
        return self.source is self.target

    def encode_source(self, columns: Sequence[str]) -> Encoding:
        """Source columns as tokens, a separator between them."""
        return self.source.encode_columns(columns, self.is_tags)

    def encode_sources(self, rows: Sequence[Sequence[str]]) -> Ragged:
        """The ids that `encode_source` gives, of many examples at once."""
        columns = [[row[place] for row in rows] for place in range(len(self.is_tags))]
        return self.source.encode_columns_flat(columns, self.is_tags)

    def copies(self) -> list[int]:
        """For each token of the source the target's of the same text; PAD where it has none, and for signs and tags.

        A character that is a byte too is the character, as it is when a text is encoded.
        """
        read, written = self.source.pieces, self.target.pieces
        signs = [PAD] * read.first
        if self.shared:
            return [*signs, *range(read.first, self.source.size)]
        known = {text: id for id, text in enumerate(written.spellings, written.first)}
        return [*signs, *(known.get(text, PAD) for text in read.spellings)]

    def as_dict(self) -> dict[str, object]:
        target = None if self.shared else self.target.as_dict()
        return {"source": self.source.as_dict(), "target": target, "tags": list(self.is_tags)}

    @classmethod
    def from_dict(cls, data: object) -> "Vocabulary":
        if not isinstance(data, dict) or set(data) != {"source", "target", "tags"}:
            raise FolderError("tokenizer.json: expected an object with source, target and tags")
        is_tags = data["tags"]
        if not isinstance(is_tags, list) or not all(isinstance(each, bool) for each in is_tags) or not is_tags:
            raise FolderError(f"tokenizer.json: tags: expected a list of true and false, found {str(is_tags)[:60]}")
        source = Tokenizer.from_dict(data["source"])
        target = source if data["target"] is None else Tokenizer.from_dict(data["target"])
        return cls(source, target, tuple(is_tags))


def learn(
    examples: Iterable[Example], c: config.Config, is_tags: Sequence[bool], known: Tokenizer | None = None
) -> Vocabulary:
    """Tokenizers for the training examples, as the config wants them; goes through the examples more than once.

    Where the source's is known already, it is taken as it is.
    """
    size = c.tokens.target_size or c.tokens.size
    if c.task == "caption":
        target = known or Tokenizer.learn(targets(examples), c.tokens.target, size)
        return Vocabulary(target, target, tuple(is_tags))
    if c.task == "generate":  # the source of a page is the page before it, which is counted already
        written = known or Tokenizer.learn(written_texts(examples, is_tags), c.tokens.target, c.tokens.size)
        return Vocabulary(written, written, tuple(is_tags))
    labelled = c.task in config.LABELLED
    shared = c.tokens.shared or c.task in config.ONE_SIDE
    source = known or learn_source(examples, c, is_tags)
    if labelled:
        kind: Kind = "labels" if c.task == "classify" else "words"
        return Vocabulary(source, Tokenizer.learn(targets(examples), kind, MOST_PIECES), tuple(is_tags))
    if shared or not has_targets(examples):
        return Vocabulary(source, source, tuple(is_tags))
    return Vocabulary(source, learn_target(examples, c, is_tags, size), tuple(is_tags))


def learn_source(examples: Iterable[Example], c: config.Config, is_tags: Sequence[bool]) -> Tokenizer:
    """Of the source columns, and of the target too where both share one vocabulary."""
    tags = sorted({tag for text in cells(examples, is_tags) for tag in split_tags(text)}) if any(is_tags) else []
    texts = cells(examples, [not each for each in is_tags])
    shared = (c.tokens.shared or c.task in config.ONE_SIDE) and c.task not in config.LABELLED
    both = chain(texts, targets(examples)) if shared else texts
    return Tokenizer.learn(both, c.tokens.source, c.tokens.size, tags)


def learn_target(examples: Iterable[Example], c: config.Config, is_tags: Sequence[bool], size: int) -> Tokenizer:
    """Of the targets; of the sources too where these may be copied, which needs a token for what stands there alone.

    Words of sources take no room from those of targets; subwords are as many as they would be for one side.
    """
    if not c.copies:
        return Tokenizer.learn(targets(examples), c.tokens.target, size)
    both = chain(targets(examples), cells(examples, [not each for each in is_tags]))
    room = min(size + c.tokens.size, MOST_PIECES) if c.tokens.target == "words" else size
    return Tokenizer.learn(both, c.tokens.target, room)


def cells(examples: Iterable[Example], wanted: Sequence[bool]) -> Iterator[str]:
    """The texts of the source columns that are wanted."""
    for example in examples:
        yield from compress(example.source, wanted)


def written_texts(examples: Iterable[Example], is_tags: Sequence[bool]) -> Iterator[str]:
    """The targets, or the sources where there are none."""
    return targets(examples) if has_targets(examples) else cells(examples, [not each for each in is_tags])


def has_targets(examples: Iterable[Example]) -> bool:
    return next(targets(examples), None) is not None


def targets(examples: Iterable[Example]) -> Iterator[str]:
    return (example.target for example in examples if example.target is not None)
