"""A stream of lines and a model in, one line out for each line in: `regard run`, without its flags.

What can not be read, or is less sure than is asked for, leaves an empty output and a reason. Memory does not grow with
the number of lines, and lines are answered in their order.
"""

import math
import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BufferedIOBase
from itertools import chain
from typing import Any, TextIO

from regard.data.lines import Format, Layout, Line, Output, Tell, bundles
from regard.data.read import EMPTY, escape
from regard.errors import DataError, RegardError, UsageError
from regard.tasks.task import Answer, Item, Wish
from regard.trained import CHUNK, NOTHING, Question, Trained

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


class Filter:
    """Lines on their way through a model."""

    def __init__(self, model: Trained, ask: Ask, tell: Tell, watch: Watch = nobody) -> None:
        self.model = model
        self.ask = ask
        self.tell = tell
        self.watch = watch
        self.waiting: deque[Read] = deque()  # for their answers: never more than one bundle
        self.wanted = len(model.vocabulary.is_tags)
        self.lines, self.size = 0, 0  # that are out, and their bytes

    def run(self, stream: BufferedIOBase, out: TextIO) -> None:
        """Reads until the stream ends; what is answered is out before anything more is waited for."""
        coming = bundles(stream, CHUNK * self.ask.wish.batch, self.tell)
        first = self.opening(coming, out)
        if not first:
            return
        names = self.model.task.columns().source
        format = self.ask.layout.suited(names, self.wanted, first[0].text)
        if (head := header(first[0], format)) is not None:
            self.put(head, first.pop(0), out)
            self.pause(out)
        for answer in self.model.stream(self.texts(chain([first], coming), format), wish=self.ask.wish):
            read = self.waiting.popleft()
            self.put(format.write(read.line.text, self.output(read, answer)), read.line, out)
            if not self.waiting:
                self.pause(out)

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
            return Read(line, columns, self.model.item(columns, f"line {line.number}") if asks else None)
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
            raise DataError(f"expected {self.wanted} columns, found {len(columns)}")
        if len(columns) > self.wanted:
            self.tell(f"warning: line {line.number}: {len(columns)} columns, the first {self.wanted} are read")
        columns = columns[: self.wanted]
        if self.model.config.task == "fill" and not any("[mask]" in text for text in columns):
            self.tell(f"warning: line {line.number}: no [mask] in it, so there is nothing to fill")
        return columns

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
