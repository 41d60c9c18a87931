"""A stream of lines and a model in, one line out for each line in: `regard run`, without its flags.

What can not be read, or is less sure than is asked for, leaves an empty output and a reason. Memory does not grow with
the number of lines, and lines are answered in their order. `regard embed` and `regard search` pass lines too.
"""

import math
import re
import shlex
import shutil
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BufferedIOBase
from itertools import chain
from tempfile import TemporaryFile
from typing import Any, BinaryIO, TextIO

import numpy as np

from regard.data.lines import Format, Layout, Line, Output, Tell, bundles, header_of_commas, sentences
from regard.data.read import EMPTY, escape, json_line, listed, numbered_lines, quote
from regard.data.tokens import LEARNT_CHARACTERS
from regard.errors import DataError, RegardError, UsageError
from regard.score.retrieval import Hit, nearest
from regard.tasks.task import Answer, Item, Wish
from regard.trained import CHUNK, NOTHING, Question, Trained

SHOWN = 5  # different texts that a model never learnt …
SOUGHT = 100  # … for which so many lines are searched that hold one

Watch = Callable[[int, int], None]  # is told how many lines, and how many bytes of them, are done


@dataclass(frozen=True)
class Ask:
    """How a line is to be answered, and how the answer is written."""

    wish: Wish
    layout: Layout = field(default_factory=Layout)
    as_json: bool = False
    min_confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class Read:
    """A line, the columns of it that the model reads, as numbers too, and why there are none where that is so."""

    line: Line
    columns: tuple[str, ...]
    item: Item | None = None  # none = nothing is asked
    flaw: str = ""


def nobody(lines: int, size: int) -> None:
    """Watches nothing."""


class Strangers:
    """What a model never learnt to read, met in lines: these are counted, and the first few texts remembered."""

    def __init__(self, model: Trained) -> None:
        self.model = model
        self.ids = model.vocabulary.source.strangers
        self.lines, self.first = 0, 0
        self.texts: dict[str, None] = {}

    def meet(self, line: Line, columns: tuple[str, ...], item: Item) -> None:
        if item.picture is not None or self.ids.isdisjoint(item.source):
            return
        self.lines, self.first = self.lines + 1, self.first or line.number
        if len(self.texts) <= SHOWN and self.lines <= SOUGHT:
            read, text = self.model.task.encoded(columns), "\t".join(columns)
            found = zip(read.ids, read.spans, strict=True)
            self.texts |= {text[start:end]: None for id, (start, end) in found if id in self.ids}

    def told(self) -> str:
        """A line for all of them, for a person; nothing where there was none."""
        if not self.lines:
            return ""
        shown = [quote(text, 24) for text in [*self.texts][:SHOWN]]
        more = ["…"] if len(self.texts) > SHOWN else []
        where = f"line {self.first} has" if self.lines == 1 else f"{self.lines:,} lines have"
        first = "" if self.lines == 1 else f" (the first is line {self.first})"
        return f"warning: {where} {self.what} that the model never learnt{first}: {', '.join([*shown, *more])}"

    @property
    def what(self) -> str:
        source, tags = self.model.vocabulary.source, ["tags"] if any(self.model.vocabulary.is_tags) else []
        strange = source.kind in (*LEARNT_CHARACTERS, "words", "sentences")
        return " or ".join([*([source.kind] if strange else []), *tags])


class Filter:
    """Lines on their way through a model."""

    def __init__(self, model: Trained, ask: Ask, tell: Tell, watch: Watch = nobody) -> None:
        self.model = model
        self.ask = ask
        self.tell = tell
        self.watch = watch
        self.waiting: deque[Read] = deque()  # for their answers: never more than one bundle
        self.wanted = len(model.vocabulary.is_tags)
        self.strangers = Strangers(model)
        self.shown = False  # how columns are parted
        self.lines, self.size = 0, 0  # that are out, and their bytes

    def run(self, stream: BufferedIOBase, out: TextIO) -> None:
        """Reads until the stream ends; what is answered is out before anything more is waited for."""
        coming = bundles(stream, CHUNK * self.ask.wish.batch, self.tell)
        if self.ask.layout.format == "conll":
            if self.model.config.task != "tag":
                raise UsageError(f"--format conll has a label for each token, and the task is {self.model.config.task}")
            coming = sentences(coming)
        first = self.opening(coming, out)
        if not first:
            return
        names = self.model.task.columns().source
        if self.ask.layout.is_whole and (looks := header_of_commas(first[0].text)):
            self.tell(f"warning: line 1 looks like a header of CSV ({listed(looks)}), but lines are read whole: say "
                      "--input-column NAME to read a column")  # fmt: skip
        format = self.ask.layout.suited(names, self.wanted, first[0].text)
        if (head := header(first[0], format)) is not None:
            self.put(head, first.pop(0), out)
            self.pause(out)
        for answer in self.model.stream(self.texts(chain([first], coming), format), wish=self.ask.wish):
            read = self.waiting.popleft()
            self.put(format.write(read.line.text, self.output(read, answer)), read.line, out)
            if not self.waiting:
                self.pause(out)
        if told := self.strangers.told():
            self.tell(told)

    def opening(self, coming: Iterator[list[Line]], out: TextIO) -> list[Line]:
        """The first lines, from the first on that can tell a format; blank ones before it stay blank lines."""
        for bundle in coming:
            while bundle and not self.ask.layout.is_whole and not bundle[0].text.strip(EMPTY):
                self.put("", bundle.pop(0), out)
            if bundle:
                return bundle
            self.pause(out)
        return []

    def texts(self, coming: Iterator[list[Line]], format: Format) -> Iterator[list[Question]]:
        """What the model is asked, bundle by bundle; the lines wait meanwhile."""
        for bundle in coming:
            self.waiting.extend(self.read(line, format) for line in bundle)
            yield [read.item or "" for read in self.waiting]

    # ── in ───────────────────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, line: Line, format: Format) -> Read:
        """Whatever the line: what can not be read asks for nothing, and is told. No place to write is an error."""
        try:
            columns = self.readable(line, format)
            asks = any(columns) or self.model.task.any_length
            item = self.model.item(columns, f"line {line.number}") if asks else None
            if item is not None:
                self.strangers.meet(line, columns, item)
            return Read(line, columns, item)
        except UsageError as error:
            raise UsageError(f"line {line.number}: {error}") from None
        except RegardError as error:
            self.tell(f"warning: line {line.number}: {error}; left empty")
            return Read(line, ("",) * self.wanted, None, str(error))

    def readable(self, line: Line, format: Format) -> tuple[str, ...]:
        columns = format.read(line.text)
        if surplus := format.surplus(line.text):
            self.tell(f"warning: line {line.number}: {surplus}; the output stands before the others")
        if not any(columns) and len(columns) <= self.wanted:
            return ("",) * self.wanted
        if len(columns) < self.wanted:
            raise DataError(f"expected {self.wanted} columns, found {len(columns)}{self.example()}")
        if len(columns) > self.wanted:
            self.tell(f"warning: line {line.number}: {len(columns)} columns, the first {self.wanted} are read")
        columns = columns[: self.wanted]
        if self.model.config.task == "fill" and not any("[mask]" in text for text in columns):
            self.tell(f"warning: line {line.number}: no [mask] in it, so there is nothing to fill")
        return columns

    def example(self) -> str:
        """How columns are parted; told once."""
        before, self.shown = self.shown, True
        names = self.model.task.columns().source or [str(place + 1) for place in range(self.wanted)]
        names = [f"column {name}" if name.isdecimal() else escape(name) for name in names]
        line = shlex.quote("\\t".join(names) + "\\n")
        return "" if before else f"; a tab parts them, as in: printf {line} | regard run MODEL"

    # ── out ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, text: str, line: Line, out: TextIO) -> None:
        """What is written for a line."""
        emit(text, out)
        self.lines, self.size = self.lines + 1, self.size + line.size

    def pause(self, out: TextIO) -> None:
        """Before more is waited for."""
        out.flush()
        self.watch(self.lines, self.size)

    def output(self, read: Read, answer: Answer) -> Output:
        answer = NOTHING if read.flaw else answer
        reason = read.flaw or self.doubt(answer)
        if reason and not read.flaw and not self.ask.as_json:
            self.tell(f"line {read.line.number}: {reason}; left empty")
        if self.ask.as_json:
            return Output((), self.record(read, answer, reason))
        best = answer.alternatives[: self.ask.wish.n_best] or (answer,)
        return Output(("",) if reason else tuple(each.text for each in best))

    def doubt(self, answer: Answer) -> str:
        """Why an answer is left to a person; nothing where it is sure enough."""
        if answer.confidence >= self.ask.min_confidence:
            return ""
        return f"confidence {math.floor(answer.confidence * 1e4) / 1e4:g} < {self.ask.min_confidence:g}"

    def record(self, read: Read, answer: Answer, reason: str) -> dict[str, Any]:
        """All that is known of an answer; where it is left to a person, why, and what it would have been."""
        alignment = answer.alignment
        made: dict[str, Any] = {**described(answer), "n_best": [], "tokens": self.model.spelled(answer)}
        made["n_best"] = [described(each) for each in answer.alternatives[: self.ask.wish.n_best] or (answer,)]
        if answer.chances:
            made["probabilities"] = {text: digits(chance) for text, chance in answer.chances}
        if self.ask.wish.align:
            made["source_tokens"] = None if alignment is None else self.model.spelled_source(read.columns, read.item)
            made["alignment"] = alignment
        if read.item is None and not read.flaw:  # nothing was asked, so there is nothing to be sure of
            return {**made, **dict.fromkeys(("score", "confidence", "probability", "lowest")), "n_best": [],
                    "empty": True}  # fmt: skip
        if read.flaw:
            return {**made, "score": 0.0, "confidence": 0.0, "probability": 0.0, "lowest": 0.0, "n_best": [],
                    "left": reason}  # fmt: skip
        return {**made, "text": "", "left": reason, "best": answer.text} if reason else made


def header(line: Line, format: Format) -> str | None:
    try:
        return format.head(line.text)
    except DataError as error:
        raise DataError(f"line {line.number}: {error}") from None


def described(answer: Answer) -> dict[str, Any]:
    numbers = {"score": answer.score, "confidence": answer.confidence, "probability": answer.probability,
               "lowest": answer.lowest}  # fmt: skip
    return {"text": answer.text} | {name: digits(number) for name, number in numbers.items()}


def digits(number: float) -> float:
    return float(f"{number:.6g}")


def emit(line: str, out: TextIO) -> None:
    """One line; on a terminal nothing in it may steer that."""
    shown = "".join(part if part in "\t\n" else escape(part) for part in re.split("([\t\n])", line))
    print(shown if out.isatty() else line, file=out)


# ── vectors ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def asked_item(model: Trained, line: Line, tell: Tell) -> Item | None:
    """A line as the model reads it; nothing where it is empty, or can not be read, which is told."""
    try:
        return model.item(line.text, f"line {line.number}") if line.text.strip(EMPTY) else None
    except DataError as error:
        tell(f"{error}; zeros")
        return None


def write_vectors(model: Trained, stream: BufferedIOBase, out: BinaryIO, batch: int, tell: Tell) -> int:
    """A row for each line, as a .npy of float32; of an empty or unreadable line zeros. Gives the number of rows.

    How many there are is known at the end and stands at the beginning, so the rows wait on the disk.
    """
    model.refuse_pictures()
    count = 0
    with TemporaryFile() as waiting:
        for bundle in bundles(stream, CHUNK * batch, tell):
            found = model.embedded([asked_item(model, line, tell) for line in bundle], batch)
            waiting.write(found.astype("<f4").tobytes())
            count += len(bundle)
        shape = (count, model.vector_width)
        np.lib.format.write_array_header_1_0(out, {"descr": "<f4", "fortran_order": False, "shape": shape})
        waiting.seek(0)
        shutil.copyfileobj(waiting, out)
    return count


class Searcher:
    """The lines of a file, to be searched through."""

    def __init__(self, model: Trained, path: str, batch: int) -> None:
        model.refuse_pictures()
        self.model, self.batch = model, batch
        self.lines = numbered_lines(path)
        items = [model.item(text, f"{path}:{number}") for number, text in self.lines]
        self.vectors = model.embedded(items, batch)

    def run(
        self, coming: Iterator[list[Line]], count: int, tell: Tell, out: TextIO, as_json: bool, named: bool
    ) -> None:
        """The nearest lines for each query, cosine before them, and the query before that if there may be several."""
        for bundle in coming:
            for line, hits in zip(bundle, self.found(bundle, count, tell), strict=True):
                if as_json:
                    results = [{"text": hit.text, "score": digits(hit.score), "line": hit.number} for hit in hits]
                    print(json_line({"query": line.text, "results": results}), file=out)
                for hit in () if as_json else hits:
                    emit(f"{line.text}\t" * named + f"{hit.score:.4f}\t{hit.text}", out)
            out.flush()

    def found(self, bundle: list[Line], count: int, tell: Tell) -> list[list[Hit]]:
        """Hits by the number of their line in the file; none for a line that asks for nothing."""
        asked = [asked_item(self.model, line, tell) for line in bundle]
        pairs = zip(*nearest(self.model.embedded(asked, self.batch), self.vectors, count), strict=True)
        hits = [[self.hit(place, cosine) for place, cosine in zip(*each, strict=True)] for each in pairs]
        return [each if item is not None else [] for each, item in zip(hits, asked, strict=True)]

    def hit(self, place: int, cosine: float) -> Hit:
        number, text = self.lines[place]
        return Hit(number, text, float(cosine))
