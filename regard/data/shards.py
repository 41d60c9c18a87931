"""Portions of token ids in, files of bounded size out; and those files as rows that are read when they are touched.

A shard is two or three files: `.ids` (source and target of each row, one after another, little-endian), `.index` (for
each row where it starts and how long its two sides are) and, where the source is a picture, `.pictures`. They are
mapped, not loaded: what a row needs is read when it is asked for, and given back when enough has been read.
"""

import hashlib
import mmap
import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from regard.data.ragged import Numbers, Ragged, join
from regard.errors import FolderError, RegardError

LARGEST = 256 << 20  # bytes of a shard, all its files together
INDEX = np.dtype([("start", "<u4"), ("source", "<u4"), ("target", "<u4")])
PIXEL = np.dtype("<f4")
HELD = 32 << 20  # bytes that are read before memory is given back …
TOUCH = 4096  # … where a row counts as its own bytes and a page

Pixels = NDArray[np.float32]


@dataclass(frozen=True)
class Rows:
    """A portion of examples as numbers."""

    source: Ragged
    target: Ragged
    pictures: Pixels | None = None  # in place of a source

    def __len__(self) -> int:
        return len(self.target)

    def rows(self, chosen: NDArray[np.bool_]) -> "Rows":
        pictures = None if self.pictures is None else self.pictures[chosen]
        return Rows(self.source.rows(chosen), self.target.rows(chosen), pictures)


@dataclass(frozen=True)
class Written:
    """One file and what a manifest says of it."""

    name: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Layout:
    """What must be known to read shards again."""

    name: str
    counts: tuple[int, ...]  # rows of each shard
    width: int  # bytes of an id
    picture: tuple[int, ...] = ()  # shape of one


def id_width(vocabulary: int) -> int:
    """Bytes of an id: two as long as that is enough."""
    return 2 if vocabulary <= 1 << 16 else 4


class HashedFile:
    """A file that is written from its start to its end, and knows the hash of what was written."""

    def __init__(self, path: Path) -> None:
        self.path, self.size = path, 0
        self._digest = hashlib.sha256()
        self._file = open(path, "wb")  # noqa: SIM115 (until `close`)

    def write(self, content: bytes) -> None:
        try:
            self._file.write(content)
        except OSError as error:
            raise unwritable(self.path, error) from None
        self._digest.update(content)
        self.size += len(content)

    def close(self) -> Written:
        """On the disk, not only on its way there."""
        try:
            with self._file:
                self._file.flush()
                os.fsync(self._file.fileno())
        except OSError as error:
            raise unwritable(self.path, error) from None
        return Written(self.path.name, self._digest.hexdigest(), self.size)


def unwritable(path: Path, error: OSError) -> RegardError:
    return RegardError(f"{path}: can not be written: {error.strerror}")


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Writer:
    """Writes rows, a portion at a time; a portion that would make a shard too large begins the next one."""

    folder: Path
    name: str
    width: int
    largest: int = LARGEST
    counts: list[int] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)
    picture: tuple[int, ...] = ()
    _files: dict[str, HashedFile] = field(default_factory=dict)

    def add(self, rows: Rows) -> None:
        both = join(rows.source, rows.target)
        parts = {"ids": both.ids.astype(f"<u{self.width}").tobytes()}
        if rows.pictures is not None:
            parts["pictures"] = rows.pictures.astype(PIXEL).tobytes()
            self.picture = rows.pictures.shape[1:]
        size = sum(map(len, parts.values())) + len(rows) * INDEX.itemsize
        if not self._files or sum(file.size for file in self._files.values()) + size > self.largest:
            self._next([*parts, "index"])
        parts["index"] = self._index(rows, both).tobytes()
        for kind, content in parts.items():
            self._files[kind].write(content)
        self.counts[-1] += len(rows)

    def _index(self, rows: Rows, both: Ragged) -> NDArray[np.void]:
        index = np.empty(len(rows), INDEX)
        index["start"] = both.starts + self._files["ids"].size // self.width
        index["source"], index["target"] = rows.source.lengths, rows.target.lengths
        return index

    def _next(self, kinds: Sequence[str]) -> None:
        self._finish()
        stem = f"{self.name}-{len(self.counts):05}"
        try:
            self._files = {kind: HashedFile(self.folder / f"{stem}.{kind}") for kind in kinds}
        except OSError as error:
            raise unwritable(self.folder / stem, error) from None
        self.counts.append(0)

    def _finish(self) -> None:
        self.written += [file.close() for file in self._files.values()]
        self._files = {}

    def close(self) -> Layout:
        self._finish()
        return Layout(self.name, tuple(self.counts), self.width, self.picture)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Row:
    """One example as it stands in its shard: nothing is copied."""

    source: NDArray[np.unsignedinteger[Any]]
    target: NDArray[np.unsignedinteger[Any]]
    picture: Pixels | None


class Mapped:
    """A file as an array whose pages are read when they are touched."""

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        kind = np.dtype(dtype)
        try:
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                # Nothing can not be mapped.
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else None
        except OSError as error:
            raise FolderError(f"{path}: can not be read: {error.strerror}") from None
        if size % kind.itemsize:
            raise FolderError(f"{path}: {size} bytes, expected a multiple of {kind.itemsize}: damaged")
        self.values: NDArray[Any] = np.frombuffer(self._map if self._map is not None else b"", kind)

    def forget(self) -> None:
        """Its pages come back when they are touched again."""
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)


class Shard:
    """The files of one shard, mapped."""

    def __init__(self, folder: Path, layout: Layout, number: int) -> None:
        stem = f"{layout.name}-{number:05}"
        self.ids = Mapped(folder / f"{stem}.ids", f"<u{layout.width}")
        self.index = Mapped(folder / f"{stem}.index", INDEX)
        self.pictures = Mapped(folder / f"{stem}.pictures", (PIXEL, layout.picture)) if layout.picture else None
        if len(self.index.values) != layout.counts[number]:
            raise FolderError(f"{folder / stem}.index: found {len(self.index.values)} rows, "
                              f"expected {layout.counts[number]}: damaged")  # fmt: skip

    def row(self, place: int) -> Row:
        start, source, target = self.index.values[place].item()
        ids = self.ids.values[start : start + source + target]
        return Row(ids[:source], ids[source:], None if self.pictures is None else self.pictures.values[place])

    def lengths(self, start: int, stop: int) -> Numbers:
        """Of source and target, (rows, 2)."""
        index = self.index.values[start:stop]
        return np.stack([index["source"], index["target"]], 1).astype(np.int64)

    def forget(self) -> None:
        for each in (self.ids, self.index, self.pictures):
            if each is not None:
                each.forget()


class Shards:
    """All rows that one `Writer` wrote."""

    def __init__(self, folder: Path, layout: Layout) -> None:
        self.shards = [Shard(folder, layout, number) for number in range(len(layout.counts))]
        self.ends = list(accumulate(layout.counts))
        self._read = 0

    def __len__(self) -> int:
        return self.ends[-1] if self.ends else 0

    def row(self, number: int) -> Row:
        shard = bisect_right(self.ends, number)
        found = self.shards[shard].row(number - (self.ends[shard - 1] if shard else 0))
        self._count(TOUCH + (0 if found.picture is None else found.picture.nbytes))
        return found

    def lengths(self, start: int, stop: int) -> Numbers:
        """Of source and target of the rows from `start` up to `stop`."""
        found = [np.empty((0, 2), np.int64)]
        for shard, end in zip(self.shards, self.ends, strict=True):
            first = end - len(shard.index.values)
            if start < end and stop > first:
                found.append(shard.lengths(max(start - first, 0), stop - first))
        self._count(TOUCH + (stop - start) * INDEX.itemsize)
        return np.concatenate(found)

    def _count(self, size: int) -> None:
        self._read += size
        if self._read > HELD:
            self.forget()

    def forget(self) -> None:
        """What was read leaves the memory of this process; rows that were given out stay as they are."""
        self._read = 0
        for shard in self.shards:
            shard.forget()
