"""A path in, its examples on disk out, to be gone through as often as is wanted; memory does not grow with them.

The file itself is read once, so a pipe will do, and what is packed or quoted is unpacked once. One example a line: its
line number and its columns, target last, with tabs between them. A NUL, which no example holds, escapes what would end
a column or a line.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from regard.data.read import CHOOSE, Columns, Example, Stream, folder_of, without_returns
from regard.errors import RegardError

Watch = Callable[[tuple[str, ...]], None]


class Spool:
    """The examples of one file, as `read` would give them."""

    def __init__(self, stream: Stream, place: Path, count: int) -> None:
        self.path, self.folder = stream.path, folder_of(stream.path)
        self.source_names, self.target_name = stream.source_names, stream.target_name
        self.notes, self.returns = stream.notes, stream.returns
        self.place, self.count = place, count

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Example]:
        made = self._examples()
        return (without_returns(example, self.returns) for example in made) if self.returns else made

    def _examples(self) -> Iterator[Example]:
        has_target = self.target_name is not None
        with open(self.place, encoding="utf-8", newline="\n") as file:
            for text in file:
                number, *columns = text[:-1].split("\t")
                if "\0" in text:
                    columns = [_unescape(each) for each in columns]
                target = columns.pop() if has_target else None
                yield Example(tuple(columns), target, int(number))

    def remove(self) -> None:
        self.place.unlink(missing_ok=True)


def spool(
    path: str, place: Path, columns: Columns = CHOOSE, skip_bad: bool = False, watch: Watch | None = None
) -> Spool:
    """Reads the file and writes its examples to `place`; `watch` is shown every source, with the `returns` still on."""
    stream = Stream(path, columns, skip_bad)
    try:
        with open(place, "w", encoding="utf-8", newline="\n") as file:
            count = _write(stream, file.write, watch)
    except OSError as error:
        raise RegardError(f"{place}: can not be written: {error.strerror}") from None
    return Spool(stream, place, count)


def _write(stream: Stream, write: Callable[[str], object], watch: Watch | None) -> int:
    count = 0
    for example in stream:
        count += 1
        columns = example.source if example.target is None else (*example.source, example.target)
        text = "\t".join(columns)
        if "\n" in text or text.count("\t") >= len(columns):
            text = "\t".join(map(_escape, columns))
        write(f"{example.line}\t{text}\n")
        if watch is not None:
            watch(example.source)
    return count


def _escape(text: str) -> str:
    return text.replace("\t", "\0t").replace("\n", "\0n")


def _unescape(text: str) -> str:
    return text.replace("\0t", "\t").replace("\0n", "\n")
