"""What was prepared in, a folder of shards out, written once; and such a folder in, checked, and its contents out.

train-*.ids, .index, .pictures · valid-* · valid.jsonl (the texts of the validation part) · known.jsonl (some of those
that are trained on, for the doctor) · data.json · manifest.json
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import overload

from pydantic import TypeAdapter, ValidationError

from regard.data.ragged import Numbers
from regard.data.read import Example, files_of
from regard.data.shards import Layout, Shards, Written
from regard.data.vocabulary import Vocabulary
from regard.errors import FolderError, RegardError
from regard.folder import check_file, parse_json, write_file
from regard.tasks.task import Item

FORMAT = 1
OURS = re.compile(r"\.?((train|valid)-\d{5}\.(ids|index|pictures)|(train|valid)\.spool|(valid|known)\.jsonl|data\.json|"
                  r"manifest\.json)(\.new)?")  # fmt: skip


@dataclass(frozen=True)
class Contents:
    """What data.json says: how the shards lie, and what they were made from."""

    train: Layout
    valid: Layout
    train_path: str
    valid_path: str
    data_hash: str
    vocabulary_hash: str
    files: dict[str, str]  # sha256 of each data file, by its whole path


class Items(Sequence[Item]):
    """The examples of a part as numbers, each read from its shard when it is asked for."""

    def __init__(self, shards: Shards) -> None:
        self.shards, self._size = shards, len(shards)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, number: int) -> Item: ...

    @overload
    def __getitem__(self, number: slice) -> list[Item]: ...

    def __getitem__(self, number: int | slice) -> Item | list[Item]:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(self._size))]
        if not -self._size <= number < self._size:
            raise IndexError(number)
        row = self.shards.row(number % self._size)
        return Item(tuple(row.source.tolist()), tuple(row.target.tolist()), row.picture)


class Lengths:
    """How long source and target of each example are, read as they are asked for: (examples, 2)."""

    def __init__(self, shards: Shards) -> None:
        self.shards = shards

    def __len__(self) -> int:
        return len(self.shards)

    def __getitem__(self, wanted: slice) -> Numbers:
        start, stop, _ = wanted.indices(len(self))
        return self.shards.lengths(start, stop)


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def make(store: Path) -> list[Path]:
    """The folder, without what an earlier start left in it; gives the folders that were made, innermost first."""
    made = [folder for folder in (store, *store.parents) if not folder.exists()]
    try:
        store.mkdir(parents=True, exist_ok=True)
        sweep(store)
    except OSError as error:
        raise RegardError(f"{store}: can not be made or cleared: {error.strerror}") from None
    return made


def sweep(store: Path) -> None:
    """Removes our files, the manifest first: without it the rest is nothing."""
    (store / "manifest.json").unlink(missing_ok=True)
    for path in store.iterdir():
        if OURS.fullmatch(path.name):
            path.unlink()


def seal(store: Path, contents: Contents, written: Iterable[Written]) -> None:
    """Describes what was written and lists it; the manifest comes last, so a store that has one is whole."""
    described = json.dumps(asdict(contents), indent=1).encode()
    write_file(store / "data.json", described)
    listed = {each.name: {"sha256": each.sha256, "bytes": each.bytes} for each in written}
    listed["data.json"] = {"sha256": hashlib.sha256(described).hexdigest(), "bytes": len(described)}
    manifest = {"format": FORMAT, "files": dict(sorted(listed.items()))}
    write_file(store / "manifest.json", json.dumps(manifest, indent=1).encode())


def hashes(*paths: str) -> dict[str, str]:
    """sha256 of the data files as they stand now, by their whole paths; of a pipe or a missing file there is none."""
    found = {}
    for name in (name for path in paths for name in files_of(path) if os.path.isfile(name)):
        with suppress(OSError), open(name, "rb") as file:  # whoever reads it will say what is wrong with it
            found[os.path.abspath(name)] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def vocabulary_hash(vocabulary: Vocabulary) -> str:
    text = json.dumps(vocabulary.as_dict(), ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def listed(store: Path) -> dict[str, object]:
    """The files that the manifest tells of."""
    path = store / "manifest.json"
    if path.is_symlink() or not path.is_file():
        raise FolderError(f"{store}: no whole store of tokens (no manifest.json): its writing was interrupted; "
                          "train again")  # fmt: skip
    manifest = parse_json(path)
    if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), dict):
        raise FolderError(f"{path}: expected an object with format and files")
    if manifest.get("format") != FORMAT:
        raise FolderError(f"{path}: found format {str(manifest.get('format'))[:20]!r}, expected {FORMAT}")
    found: dict[str, object] = manifest["files"]
    return found


def contents(store: Path) -> Contents:
    """What the store says it holds; of its files only data.json is looked at."""
    check_file(store, "data.json", listed(store).get("data.json"))
    try:
        return TypeAdapter(Contents).validate_json((store / "data.json").read_bytes())
    except ValidationError as error:
        raise FolderError(f"{store / 'data.json'}: {error.errors()[0]['msg']}; written by another version?") from None


def check(store: Path) -> Contents:
    """What the store holds, every file of it as it was written."""
    found = contents(store)
    files = listed(store)
    for name in sorted({*files, *expected(found)}):
        check_file(store, name, files.get(name))
    return found


def expected(found: Contents) -> Iterator[str]:
    """The files without which the store can not be read."""
    yield "valid.jsonl"
    for layout in (found.train, found.valid):
        for number in range(len(layout.counts)):
            for kind in ("ids", "index", *(["pictures"] if layout.picture else [])):
                yield f"{layout.name}-{number:05}.{kind}"


def read_texts(path: Path) -> list[Example]:
    """The examples that were written as lines of JSON."""
    with open(path, encoding="utf-8", newline="\n") as file:
        rows = [json.loads(line) for line in file]
    return [Example(tuple(source), target, line) for source, target, line in rows]


def read_known(store: Path) -> list[Example]:
    """Examples that were trained on, as the doctor wants to see them; none where an earlier version wrote the store."""
    path = store / "known.jsonl"
    return read_texts(path) if path.is_file() else []


def text_line(example: Example) -> bytes:
    return json.dumps([example.source, example.target, example.line], ensure_ascii=False).encode() + b"\n"


def changed(store: Path) -> list[str]:
    """One line for every data file that is no longer what was read; a missing one is none, its tokens are here."""
    known = contents(store).files
    now = hashes(*known)
    return [f"{path}: not what it was when training began (sha256 {now[path][:12]}…, then {known[path][:12]}…)"
            for path in known if now.get(path, known[path]) != known[path]]  # fmt: skip


def missing(store: Path) -> list[str]:
    """A note on every data file that is no longer there; the run can go on without it."""
    return [f"{path}: no longer there; its tokens are in {store}"
            for path in contents(store).files if not os.path.isfile(path)]  # fmt: skip
