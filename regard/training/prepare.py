"""Paths and a Config in, examples as numbers out, split into what is trained on and what is held out.

A file is read once and spooled; its examples are then gone through as often as needed, and memory does not grow with
their number. What comes out is a store of shards (`training.store`), mapped into memory.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress, count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard import config
from regard.data.division import Division
from regard.data.evenly import evenly
from regard.data.read import Columns, Example, Table
from regard.data.shards import HashedFile, Layout, Rows, Shards, Writer, Written, id_width
from regard.data.spool import Spool, spool
from regard.data.text import Pages, divided, is_running, write_down
from regard.data.tokens import CLASS, END, LEARNT_CHARACTERS, UNKNOWN, Tokenizer
from regard.data.vocabulary import Vocabulary, learn
from regard.errors import ConfigError, DataError, FolderError, RegardError
from regard.tasks.choose import task
from regard.tasks.generate import page
from regard.tasks.reading import Reads
from regard.tasks.task import Item, Task
from regard.training import store as stored
from regard.training.store import Contents, Items, changed, hashes, missing, read_texts

KNOWN = 100_000  # training examples whose texts are kept until the report is made, evenly spread
NAMED = 10  # lines that are named beside the first bad one
BYTES = 256  # that spell what a vocabulary of characters does not hold
PORTION = 4096  # examples turned into numbers at a time …
PICTURES = 64  # … and pictures …
TOKENS = 1 << 20  # … and tokens of running text, about

Known = Tokenizer | Vocabulary | None  # tokens that are not learnt: the source's, or those of both sides

__all__ = ["Part", "Prepared", "changed", "columns_of", "hashes", "held_out", "missing", "prepare", "reopen"]


@dataclass(frozen=True)
class Part:
    """Examples and their numbers, side by side; of what is trained on no loop needs the texts, and there are none."""

    path: str
    examples: Sequence[Example]
    items: Sequence[Item]


@dataclass(frozen=True)
class Prepared:
    """All that a training run reads."""

    config: config.Config
    vocabulary: Vocabulary
    task: Task
    train: Part
    valid: Part
    notes: list[str]
    data_hash: str
    store: Path | None = None  # where all of it lies


def prepare(c: config.Config, path: str, valid_path: str | None, store: Path, known: Known = None) -> Prepared:
    """Reads, splits, learns the tokens from the training part alone, and writes the numbers into the store.

    Where the source's tokens are `known`, or those of both sides, they are taken as they are.
    """
    made = stored.make(store)
    try:
        vocabulary, notes = fill(c, path, valid_path, store, known)
        return opened(c, vocabulary, store, stored.contents(store), notes)
    except BaseException:
        with suppress(OSError):  # what could not be used leaves nothing behind
            stored.sweep(store)
            for folder in made:
                folder.rmdir()
        raise


def reopen(c: config.Config, vocabulary: Vocabulary, store: Path) -> Prepared:
    """What `prepare` wrote, every file of it checked."""
    found = stored.check(store)
    if found.vocabulary_hash != stored.vocabulary_hash(vocabulary):
        raise FolderError(f"{store}: made with another vocabulary than tokenizer.json holds; train again")
    return opened(c, vocabulary, store, found, [])


def opened(c: config.Config, vocabulary: Vocabulary, store: Path, found: Contents, notes: list[str]) -> Prepared:
    train = Part(found.train_path, (), Items(Shards(store, found.train)))
    valid = Part(found.valid_path, read_texts(store / "valid.jsonl"), Items(Shards(store, found.valid)))
    return Prepared(c, vocabulary, task(c, vocabulary), train, valid, notes, found.data_hash, store)


def fill(
    c: config.Config, path: str, valid_path: str | None, store: Path, known: Known
) -> tuple[Vocabulary, list[str]]:
    """All that stands between the data files and a store that is whole."""
    paths = [path] if valid_path is None else [path, valid_path]
    files = hashes(*paths)
    train, valid, notes = sides(c, path, valid_path, store)
    vocabulary = vocabulary_of(train, c, known)
    notes = notes + remarks(task(c, vocabulary), train, valid)
    digest = hashlib.sha256()
    parts = [
        write_part(c, vocabulary, side, store, name, digest) for name, side in (("train", train), ("valid", valid))
    ]
    for side in (train, valid):
        side.table.remove()
    if hashes(*paths) != files:
        raise DataError(f"{path}: changed while it was read; train again when it rests")
    told = Contents(parts[0].layout, parts[1].layout, train.table.path, valid.table.path, digest.hexdigest(),
                    stored.vocabulary_hash(vocabulary), files)  # fmt: skip
    stored.seal(store, told, [each for part in parts for each in part.written])
    if isinstance(known, Tokenizer) and parts[0].unknown:
        notes.append(f"warning: {path}: {100 * parts[0].unknown:.2g} % of the source's tokens are unknown to the model "
                     "that this run starts from")  # fmt: skip
    return vocabulary, [*notes, *(note for part in parts for note in part.notes)]


def vocabulary_of(train: "Side", c: config.Config, known: Known) -> Vocabulary:
    """The tokens of both sides: learnt, but for what is known."""
    is_tags = tag_columns(train.table.source_names, c)
    if isinstance(known, Vocabulary):
        if list(known.is_tags) != is_tags:
            raise ConfigError(f"data.source: the tokens that were given are for {len(known.is_tags)} source columns, "
                              f"found {len(is_tags)}, or other ones among them are tags")  # fmt: skip
        return known
    if known is not None and any(is_tags) and not known.tags:
        raise ConfigError("data.tags: the model that this run starts from knows no tags")
    return learn(train, c, is_tags, known)


def held_out(c: config.Config, vocabulary: Vocabulary, path: str, valid_path: str | None) -> Table:
    """The examples that a run validates with, as text: those that `prepare` writes down, and no others."""
    asked, kept = task(c, vocabulary), list[Example]()
    with TemporaryDirectory() as place:
        _, side, _ = sides(c, path, valid_path, Path(place))
        for portion in portions(side, portion_size(c)):
            usable, rows = encode_usable(asked, portion, side.table, [] if c.data.skip_bad else None)
            fits = () if rows is None else (True,) * len(usable) if asked.any_length else fitting(rows, c.limits)
            kept += compress(usable, fits)
    return Table(side.table.path, kept, [], tuple(side.table.source_names), getattr(side.table, "target_name", None))


def remarks(asked: Task, train: "Side", valid: "Side") -> list[str]:
    """What a task that reads has to say of the examples."""
    try:
        return asked.remarks(train, valid) if isinstance(asked, Reads) else []
    except RegardError as error:
        raise DataError(f"{train.table.path}: {error}") from None


def tag_columns(names: Sequence[str], c: config.Config) -> list[bool]:
    """Which source columns are tags; a declared one that is not read is an error."""
    asked = dict(zip(c.data.source, names, strict=False))  # a column may be asked for by its position
    tags = [asked.get(name, name) for name in c.data.tags]
    for name in tags:
        if name not in names:
            raise ConfigError(f"data.tags: {name} is not among the source columns {', '.join(names)}")
    return [name in tags for name in names]


# ── what is held out ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Side:
    """Those examples of a file that are held out, or all the others; gone through as often as is wanted."""

    table: Spool | Pages
    held: frozenset[tuple[str, ...]]
    inside: bool
    count: int

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Example]:
        if not self.held:
            return iter(self.table)
        return (example for example in self.table if (example.source in self.held) is self.inside)


def sides(c: config.Config, path: str, valid_path: str | None, store: Path) -> tuple[Side, Side, list[str]]:
    """The examples to train on, those to validate with, and notes."""
    if c.task == "generate" and is_running(path, c.data.source):
        return text_sides(c, path, valid_path, store)
    columns, division = columns_of(c), Division()
    table = spool(path, store / "train.spool", columns, c.data.skip_bad, None if valid_path else division.add)
    if table.target_name in table.source_names:
        raise ConfigError(f"data.target: the column {table.target_name} is read as a source too")
    if valid_path is None:
        return split(table, division)
    other = spool(valid_path, store / "valid.spool", columns, c.data.skip_bad)
    everything = [Side(each, frozenset(), False, len(each)) for each in (table, other)]
    return everything[0], everything[1], table.notes + other.notes + overlap(table, other)


def columns_of(c: config.Config) -> Columns:
    """What a run of this config reads of a table."""
    target = None if c.task in ("fill", "generate") else c.data.target
    return Columns(c.data.source, target, within=c.task == "extract", tagged=c.task == "tag")


def text_sides(c: config.Config, path: str, valid_path: str | None, store: Path) -> tuple[Side, Side, list[str]]:
    """The same of running text, whose end is held out if there is no other text to validate with."""
    cut = page(c)
    whole = write_down(path, store / "train.spool", cut, c.data.skip_bad)
    if valid_path is None:
        *parts, note = divided(whole)
    elif is_running(valid_path, ()):
        parts, note = [whole, write_down(valid_path, store / "valid.spool", cut, c.data.skip_bad)], ""
    else:
        raise DataError(f"{valid_path}: found a table, expected running text, as {path} is")
    made = [Side(part, frozenset(), False, len(part)) for part in parts]
    told = [*whole.notes, *([note] if note else parts[1].notes)]
    return made[0], made[1], told


def split(table: Spool, division: Division) -> tuple[Side, Side, list[str]]:
    """One file in two, no source on both sides."""
    if table.returns:  # the sources were not seen as they are
        division = Division()
        for example in table:
            division.add(example.source)
    counts = division.held(table.path)
    held, count = frozenset(counts), sum(counts.values())
    note = f"{count} of {len(table)} examples are held out for validation, chosen by a hash of their source"
    return Side(table, held, False, len(table) - count), Side(table, held, True, count), [*table.notes, note]


def overlap(train: Iterable[Example], valid: Spool) -> list[str]:
    """A warning if sources of the validation file, which alone are remembered, stand in the training file too."""
    sources = {example.source for example in valid}
    common = {example.source for example in train if example.source in sources}
    count = sum(example.source in common for example in valid)
    return [f"warning: {valid.path}: {count} of {len(valid)} sources are in the training file too"] if count else []


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Numbered:
    """A part that was written into the store."""

    layout: Layout
    written: list[Written]
    notes: list[str]
    unknown: float  # share of the source's tokens


def write_part(c: config.Config, vocabulary: Vocabulary, side: Side, store: Path, name: str, digest: Any) -> Numbered:
    """Examples as numbers, portion by portion; those longer than the config allows are left out and counted."""
    asked = task(c, vocabulary)
    largest = max(vocabulary.source.size, vocabulary.target.size, c.data.max_source + 2)  # ids, or places of tokens
    writer = Writer(store, name, id_width(largest))
    texts = text_file(store, name, c.task)
    kept = set(evenly(range(len(side)), len(side) if name == "valid" else KNOWN))
    numbered = count()
    bad: list[str] = []  # why examples were left out
    unknown, tokens = 0, 0
    for portion in portions(side, portion_size(c)):
        portion, rows = encode_usable(asked, portion, side.table, bad if c.data.skip_bad else None)
        digest.update("".join(map(imprint, portion)).encode())
        if rows is None:
            continue
        read = rows.target if c.task == "generate" else rows.source
        unknown, tokens = unknown + unlearnt(read.ids, vocabulary.source), tokens + len(read.ids)
        fits = np.ones(len(rows), np.bool_) if asked.any_length else fitting(rows, c.limits)
        writer.add(rows.rows(fits))
        if texts is not None:
            some = (example for example in compress(portion, fits) if next(numbered) in kept)
            texts.write(b"".join(map(stored.text_line, some)))
    digest.update(b"\x1d")
    layout = writer.close()
    written = [*writer.written, *([texts.close()] if texts is not None else [])]
    notes = [*skipped(side, bad), *left_out(side, sum(layout.counts), c, len(bad))]
    return Numbered(layout, written, notes, unknown / max(1, tokens))


def text_file(store: Path, name: str, task: str) -> HashedFile | None:
    """Where the texts of a part are written: all that are held out, and some of the others for the doctor to see."""
    if name == "valid":
        return HashedFile(store / "valid.jsonl")
    return None if task in ("generate", "fill") else HashedFile(store / "known.jsonl")


def unlearnt(ids: NDArray[Any], known: Tokenizer) -> int:
    """How many tokens a vocabulary was not learnt with: unknown words, bytes of characters that it does not hold."""
    first = known.pieces.first
    spelled = (ids >= first) & (ids < first + BYTES) & (known.kind in LEARNT_CHARACTERS)
    return int(((ids == UNKNOWN) | spelled).sum())


def portion_size(c: config.Config) -> int:
    """Examples that are turned into numbers together; of long ones, such as pages, fewer."""
    usual = PICTURES if c.task == "caption" else PORTION
    return max(1, min(usual, TOKENS // c.row)) if c.task == "generate" else usual


def portions(examples: Iterable[Example], size: int) -> Iterator[list[Example]]:
    rest = iter(examples)
    while portion := list(islice(rest, size)):
        yield portion


def imprint(example: Example) -> str:
    """What the hash of the data is made of: every example in order, and the split."""
    return "\x1f".join([*example.source, example.target or ""]) + "\x1e"


def encode(asked: Task, examples: Sequence[Example], table: Spool | Pages) -> Rows:
    """Examples as numbers; what is wrong with one is told with its file and line."""
    try:
        return asked.encode_all(examples, table.folder)
    except RegardError:
        refuse(asked, examples, table)
        raise


def refuse(asked: Task, examples: Sequence[Example], table: Spool | Pages) -> None:
    """Tells what is wrong with the first bad example, and on which lines others stand, as far as they were read."""
    bad: list[tuple[int, DataError]] = []
    for example in examples:
        try:
            encode_one(asked, example, table)
        except DataError as error:
            bad.append((example.line, error))
    if bad:
        (_, first), others = bad[0], [str(line) for line, _ in bad[1:]]
        more = f" and at least {len(others) - NAMED} more" if len(others) > NAMED else ""
        rest = f"\n{table.path}: nor can line{'s' * (len(others) > 1)} {', '.join(others[:NAMED])}{more} be used"
        raise DataError(f"{first}{rest if others else ''}") from None


def encode_usable(
    asked: Task, examples: list[Example], table: Spool | Pages, bad: list[str] | None
) -> tuple[list[Example], Rows | None]:
    """Examples and their numbers; with `bad`, which is told why, without those that can not be turned into any."""
    try:
        return examples, asked.encode_all(examples, table.folder)
    except RegardError:
        if bad is None:
            return examples, encode(asked, examples, table)
    kept = []
    for example in examples:
        try:
            encode_one(asked, example, table)
            kept.append(example)
        except DataError as error:
            bad.append(str(error))
    return kept, encode(asked, kept, table) if kept else None


def encode_one(asked: Task, example: Example, table: Spool | Pages) -> Item:
    try:
        return asked.encode(example, table.folder)
    except RegardError as error:
        raise DataError(f"{table.path}:{example.line}: {error}") from None


def fitting(rows: Rows, limits: config.Data) -> NDArray[np.bool_]:
    """Which rows are short enough; the end of a source is not counted."""
    last = rows.source.ids[rows.source.starts + rows.source.lengths - 1] if len(rows.source.ids) else np.zeros(1)
    length = rows.source.lengths - ((rows.source.lengths > 0) & np.isin(last, (END, CLASS)))
    fits: NDArray[np.bool_] = (length <= limits.max_source) & (rows.target.lengths <= limits.max_target)
    return fits


def skipped(side: Side, bad: list[str]) -> list[str]:
    """A note on the examples that could not be used, or an error if none could."""
    if bad and len(bad) == len(side):
        raise DataError(f"{bad[0]}\n{side.table.path}: none of {len(side)} examples can be used")
    if not bad:
        return []
    return [f"warning: {len(bad)} of {len(side)} examples can not be used; skipped. The first: {bad[0]}"]


def left_out(side: Side, kept: int, c: config.Config, bad: int = 0) -> list[str]:
    """A note on the examples that are too long, or an error if all are."""
    target = "" if c.task in config.BY_SOURCE else f" or data.max_target={c.data.max_target}"
    path, bounds = side.table.path, f"data.max_source={c.data.max_source}{target} tokens"
    if not kept:
        raise DataError(f"{path}: all {len(side)} examples are longer than {bounds}; --set data.max_source=N lets more "
                        "in, at the cost of memory and time")  # fmt: skip
    dropped = len(side) - kept - bad
    return [f"warning: {path}: {dropped} examples left out: longer than {bounds}"] if dropped else []
