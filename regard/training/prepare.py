"""Paths and a Config in, examples as numbers out, split into what is trained on and what is held out."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from regard import config
from regard.data.read import Columns, Example, Table, read
from regard.data.tokens import END
from regard.data.vocabulary import Vocabulary, learn
from regard.errors import ConfigError, DataError, RegardError
from regard.tasks.choose import task
from regard.tasks.task import Item, Task

HELD_OUT = 0.05  # of the examples, where no validation file is given …
FEWEST, MOST = 50, 1000  # … but within these bounds, and never more than a fifth


@dataclass(frozen=True)
class Part:
    """Examples and their numbers, side by side."""

    path: str
    examples: list[Example]
    items: list[Item]


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


def prepare(c: config.Config, path: str, valid_path: str | None) -> Prepared:
    """Reads, splits, learns the tokens from the training part alone, and turns texts into numbers."""
    columns = Columns(c.data.source, None if c.task == "fill" else c.data.target)
    table = read(path, columns, c.data.skip_bad)
    if table.target_name in table.source_names:
        raise ConfigError(f"data.target: the column {table.target_name} is read as a source too")
    notes = list(table.notes)
    if valid_path is None:
        kept, held = split(table.examples, table.path)
        notes.append(f"{len(held)} of {len(table.examples)} examples are held out for validation, chosen by a hash "
                     "of their source")  # fmt: skip
        valid_table = table
    else:
        valid_table = read(valid_path, columns, c.data.skip_bad)
        kept, held = table.examples, valid_table.examples
        notes += valid_table.notes + overlap(kept, held, valid_path)
    vocabulary = learn(kept, c, tag_columns(table, c))
    asked = task(c, vocabulary)
    train, dropped = encode(asked, c, table, kept)
    valid, dropped_too = encode(asked, c, valid_table, held)
    notes += dropped + dropped_too
    return Prepared(c, vocabulary, asked, train, valid, notes, fingerprint(kept, held))


def tag_columns(table: Table, c: config.Config) -> list[bool]:
    """Which source columns are tags; a declared one that is not read is an error."""
    asked = dict(zip(c.data.source, table.source_names, strict=False))  # a column may be asked for by its position
    tags = [asked.get(name, name) for name in c.data.tags]
    for name in tags:
        if name not in table.source_names:
            raise ConfigError(f"data.tags: {name} is not among the source columns {', '.join(table.source_names)}")
    return [name in tags for name in table.source_names]


def split(examples: Sequence[Example], path: str) -> tuple[list[Example], list[Example]]:
    """Held out by a hash of the source, so that no source is on both sides and the data alone decide."""
    ranked = sorted({example.source for example in examples}, key=rank)
    if len(ranked) < 2:
        raise DataError(f"{path}: found {len(examples)} example(s) with {len(ranked)} distinct source, too few to "
                        "train and validate; expected at least two, or a validation file")  # fmt: skip
    wanted = min(max(int(HELD_OUT * len(ranked)), FEWEST), MOST, max(1, len(ranked) // 5))
    held = set(ranked[:wanted])
    return [e for e in examples if e.source not in held], [e for e in examples if e.source in held]


def rank(source: tuple[str, ...]) -> bytes:
    return hashlib.blake2b("\t".join(source).encode(), digest_size=8).digest()


def overlap(kept: Sequence[Example], held: Sequence[Example], path: str) -> list[str]:
    known = {example.source for example in kept}
    count = sum(example.source in known for example in held)
    return [f"warning: {path}: {count} of {len(held)} sources are in the training file too"] if count else []


def encode(asked: Task, c: config.Config, table: Table, examples: Sequence[Example]) -> tuple[Part, list[str]]:
    """Examples as numbers; those longer than the config allows are left out and counted."""
    path = table.path
    kept: list[Example] = []
    items: list[Item] = []
    for example in examples:
        item = encode_one(asked, path, example, table.folder)
        count = len(item.source) - (item.source[-1:] == (END,))
        if count <= c.data.max_source and len(item.target) <= c.data.max_target:
            kept.append(example)
            items.append(item)
    dropped = len(examples) - len(kept)
    if not kept:
        raise DataError(f"{path}: all {len(examples)} examples are longer than data.max_source={c.data.max_source} or "
                        f"data.max_target={c.data.max_target} tokens")  # fmt: skip
    notes = [f"{path}: {dropped} examples left out: longer than data.max_source={c.data.max_source} or "
             f"data.max_target={c.data.max_target} tokens"] if dropped else []  # fmt: skip
    return Part(path, kept, items), notes


def encode_one(asked: Task, path: str, example: Example, folder: str) -> Item:
    try:
        return asked.encode(example, folder)
    except RegardError as error:
        raise DataError(f"{path}:{example.line}: {error}") from None


def fingerprint(kept: Sequence[Example], held: Sequence[Example]) -> str:
    """A hash of every example in order, and of the split."""
    digest = hashlib.sha256()
    for part in (kept, held):
        for example in part:
            digest.update("\x1f".join([*example.source, example.target or ""]).encode() + b"\x1e")
        digest.update(b"\x1d")
    return digest.hexdigest()
