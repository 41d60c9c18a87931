"""A Model in, an Engine out that decodes as the model does: sooner, and the same for a source in every company."""

import ctypes
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import c_float, c_int32
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.engine.draft import Domain, Draft
from regard.engine.library import Doubles, Floats, Instruction, Ints, Library, Orders, Register, library
from regard.engine.lower import Unknown, lower
from regard.errors import UsageError
from regard.layers.embedding import Embedding
from regard.layers.positions import beyond
from regard.models.model import Model
from regard.search.demands import Demands, Rules
from regard.search.write import Hypothesis
from regard.stop import go_on, listening

PRECISIONS = ("fp32", "int8")
NO_ENGINE = ("{} needs the engine, and there is none for this model here (no C++ compiler when regard was installed, "
             "a GPU, words that are spelled, or a part of one's own): it decodes in fp32")  # fmt: skip
SHORT = 1000  # tokens that may be written before anybody would want to interrupt


@dataclass(frozen=True)
class Reading:
    """Rows of a search that the engine keeps: which of them, as it knows them since the last step."""

    session: "Session"
    index_R: Tensor
    source: int  # tokens of the longest
    target: int = 0  # tokens fed so far

    def rows(self, index_R: Tensor) -> "Reading":
        return replace(self, index_R=self.index_R[index_R])


class Session:
    """Sources that were read, and the rows that go on from them; given back to the engine when nobody holds it."""

    def __init__(self, engine: "Engine", handle: int) -> None:
        self.engine = engine
        self.handle = handle
        self.fed = 0  # tokens so far: a reading of before can not be gone on from
        weakref.finalize(self, engine.library.session_free, handle).atexit = False


class Engine:
    """Reads, steps and searches as the model it was made of; its weights are a copy, as they were at that moment.

    Pictures are read by the model itself, so for them what encodes is not a copy.
    """

    def __init__(self, model: Model, found: Library, precision: str = "fp32", level: int = 9) -> None:
        self.model = model
        self.library = found
        self.precision = precision
        self.draft = lower(model)
        self.handle = load(found, self.draft, precision == "int8", level)
        weakref.finalize(self, found.engine_free, self.handle).atexit = False  # a thread may still be using it
        self.vocabulary = len(self.draft.linears[self.draft.output][0])

    device = torch.device("cpu")

    def check(self, source: int, target: int) -> None:
        """Learned positions end somewhere."""
        target += source if self.draft.prefix else 0
        for length, domain in ((source, Domain.TOKENS), (target, Domain.ROWS)):
            if length > self.draft.most.get(domain, length):
                raise beyond(length, self.draft.most[domain])

    # ── step by step ─────────────────────────────────────────────────────────────────────────────────────────────────

    def reading(self, source: Tensor, mask_BS: Tensor | None = None) -> Reading:
        """What a search starts from, one row for each source: as `Model.reading`."""
        sources = Sources.of(self, source, mask_BS)
        longest = int(sources.lengths.max(initial=0))
        self.check(longest, 0)
        count = len(sources.lengths)
        handle = enough(self.library.session(self.handle, *sources.pointers(), count), f"{count} sources")
        return Reading(Session(self, handle), torch.arange(len(sources.lengths)), longest)

    def step(self, token_R: Tensor, reading: Reading) -> tuple[Tensor, Reading]:
        """One token for each row in, logits of the next out: as `Model.step`. A reading serves for one step."""
        count = len(token_R)
        if reading.target != reading.session.fed or count != len(reading.index_R):
            raise ValueError("a reading serves for one step, with one token for each of its rows")
        check_ids(token_R, self.vocabulary)
        self.check(reading.source, reading.target + 1)
        reading.session.fed += 1
        logits_RV = torch.empty(count, self.vocabulary)
        index, token = integers(reading.index_R.numpy()), integers(token_R.numpy())
        out = ctypes.cast(logits_RV.data_ptr(), Floats)
        enough(self.library.step(reading.session.handle, pointer(index), pointer(token), count, out), f"{count} rows")
        return logits_RV, replace(reading, index_R=torch.arange(count), target=reading.target + 1)

    # ── whole searches ───────────────────────────────────────────────────────────────────────────────────────────────

    def search(
        self, sources: "Sources", demand: Demands, rules: Rules, width: int, batch: int, penalty: float
    ) -> list[list[Hypothesis]]:
        """What `search.beam.beam` finds (at width 1 `search.write.greedy`), for as many sources as are given.

        `batch` of them are on their way at once in each worker; a source that ends makes room for the next.
        """
        if width < 1:
            raise UsageError(f"a beam of {width}: expected at least 1")
        if not len(demand.limit_R):
            return []
        for ids in (demand.prefix_RT, torch.tensor((*rules.never, rules.first))):
            check_ids(ids, self.vocabulary)
        limits = integers(demand.limit_R.numpy())
        self.check(int(sources.lengths.max(initial=0)), int(limits.max(initial=0)) + 1)
        prefix, never = (integers(np.array(values)) for values in (common_prefix(demand), rules.never))
        stop = listening().flag
        workers = min(cores(), -(-len(limits) // 4))
        batch = max(1, min(batch, -(-len(limits) // workers)))
        orders = Orders(width, batch, workers, rules.first, rules.min_length, len(never), len(prefix), penalty,
                        pointer(never), pointer(prefix), pointer(stop))  # fmt: skip
        ids, offsets, states = sources.pointers()
        given = (self.handle, ids, offsets, pointer(limits), states, len(limits), ctypes.byref(orders))
        made = interruptible(lambda: self.library.search(*given), stop, self.library.found_free, int(limits.sum()))
        handle = enough(made, f"{len(limits)} sources, {batch} at a time with a beam of {width}")
        try:
            go_on()  # a search that was stopped has found something, but not all
            return self.found(handle, len(limits))
        finally:
            self.library.found_free(handle)

    def found(self, handle: int, sources: int) -> list[list[Hypothesis]]:
        """What a search left behind, source after source."""
        counts = np.empty(sources, np.int32)
        self.library.found(handle, pointer(counts))
        lengths, scores = np.empty(counts.sum(), np.int32), np.empty(counts.sum())
        self.library.found_lengths(handle, pointer(lengths), scores.ctypes.data_as(Doubles))
        tokens, logs = np.empty(lengths.sum(), np.int32), np.empty(lengths.sum(), np.float32)
        self.library.found_texts(handle, pointer(tokens), logs.ctypes.data_as(Floats))
        written, sure, ends = tokens.tolist(), logs.tolist(), lengths.cumsum().tolist()
        made = [Hypothesis(tuple(written[end - length : end - 1]), tuple(sure[end - length : end]), score)
                for end, length, score in zip(ends, lengths.tolist(), scores.tolist(), strict=True)]  # fmt: skip
        last = counts.cumsum().tolist()
        return [made[end - count : end] for end, count in zip(last, counts.tolist(), strict=True)]

    # ── reading alone ────────────────────────────────────────────────────────────────────────────────────────────────

    def states(self, ids: Sequence[Sequence[int]]) -> list[Tensor]:
        """The encoder's state at each token of each source. A decoder that reads is left to torch, row by row: there
        the last bits depend on the shape of a batch."""
        if self.draft.prefix:
            return [self.model.read([row])[0] for row in ids]
        sources = Sources.of_ids(self, ids)
        self.check(int(sources.lengths.max(initial=0)), 0)
        states_TD = torch.empty(int(sources.lengths.sum()), self.draft.read.width(self.draft.states))
        ids_pointer, offsets, _ = sources.pointers()
        out = ctypes.cast(states_TD.data_ptr(), Floats)
        enough(self.library.states(self.handle, ids_pointer, offsets, len(ids), out), f"{len(ids)} sources")
        return list(torch.split(states_TD, sources.lengths.tolist()))

    def output(self, states_BTD: Tensor) -> Tensor:
        """Logits of states: as `Model.output`."""
        states_BTD = states_BTD.float().contiguous()
        logits_BTV = torch.empty(*states_BTD.shape[:2], self.vocabulary)
        count = states_BTD.shape[:2].numel()
        given, out = (ctypes.cast(each.data_ptr(), Floats) for each in (states_BTD, logits_BTV))
        enough(self.library.output(self.handle, given, count, out), f"{count} states")
        return logits_BTV


@dataclass(frozen=True)
class Sources:
    """Texts laid one after the other, or the states of pictures."""

    ids: NDArray[np.int32] | None
    states: NDArray[np.float32] | None
    lengths: NDArray[np.int32]

    @classmethod
    def of(cls, engine: Engine, source: Tensor, mask_BS: Tensor | None) -> "Sources":
        """A padded batch of texts with its mask, or pictures."""
        if mask_BS is None:
            return cls.of_pictures(engine, source)
        return cls.of_ids(engine, [row_S[mask_S].tolist() for row_S, mask_S in zip(source, mask_BS, strict=True)])

    @classmethod
    def of_pictures(cls, engine: Engine, pictures_BCYX: Tensor) -> "Sources":
        """One at a time, so that none sees the shape of a batch."""
        with torch.inference_mode():
            made = [engine.model.encode(picture[None]).states_BSM[0].float() for picture in pictures_BCYX]
        states = np.ascontiguousarray(torch.cat(made).numpy())
        return cls(None, states, integers(np.array([len(each) for each in made])))

    @classmethod
    def of_ids(cls, engine: Engine, ids: Sequence[Sequence[int]]) -> "Sources":
        embedding = engine.model.source_embedding
        assert isinstance(embedding, Embedding)
        flat = integers(np.fromiter((id for each in ids for id in each), np.int64))
        check_ids(torch.from_numpy(flat), embedding.table.num_embeddings)
        return cls(flat, None, integers(np.array([len(each) for each in ids])))

    def pointers(self) -> tuple[Any, Any, Any]:
        """Ids, offsets and states as the library wants them; what is pointed at lives as long as the pointers."""
        offsets = integers(np.concatenate([[0], self.lengths.cumsum()]))
        ids = None if self.ids is None else pointer(self.ids)
        return ids, pointer(offsets), None if self.states is None else self.states.ctypes.data_as(Floats)


def cores() -> int:
    """Workers that may work side by side. They never wait for each other, so all cores are used, whatever the size."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # for each level of nesting; only one is here
    return max(1, min(allowed, int(asked) if asked.isdecimal() else allowed))


def check_ids(ids: Tensor, size: int) -> None:
    """Nothing behind the border looks whether a token is one."""
    if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < size:
        raise IndexError(f"tokens from {int(ids.min())} to {int(ids.max())}: expected 0 to {size - 1}")


def interruptible(
    search: Callable[[], int | None], stop: NDArray[np.int32], free: Callable[[int | None], None], tokens: int
) -> int | None:
    """What `search` gives. In the main thread it works beside it, because Python hears no signal inside a library."""
    if tokens < SHORT or threading.current_thread() is not threading.main_thread():
        return search()
    made: list[int | None] = []
    done = threading.Event()  # `join` forgets a thread when a signal interrupts it (Python 3.11)

    def work() -> None:
        try:
            made.append(search())
        finally:
            done.set()

    threading.Thread(target=work, daemon=True).start()
    try:
        done.wait()
    except BaseException:
        stop[0] = 1
        done.wait()
        free(made[0])
        raise
    return made[0]


def enough(done: int | None, what: str) -> int:
    """What the library gave, if it gave anything."""
    if not done:
        raise MemoryError(f"the engine found no room for {what}")
    return done


def common_prefix(demand: Demands) -> list[int]:
    """The tokens that every output begins with; the engine knows no others."""
    row: list[int] = demand.prefix_RT[0].tolist() if len(demand.prefix_RT) else []
    return row


def integers(values: NDArray[Any]) -> NDArray[np.int32]:
    return np.ascontiguousarray(values, dtype=np.int32)


def pointer(values: NDArray[np.int32]) -> Any:
    return values.ctypes.data_as(Ints)


def load(found: Library, draft: Draft, whole: bool, level: int) -> int:
    """The draft as the library keeps it: a handle."""
    handle: int = found.engine(level)
    for weight, bias in draft.linears:
        at = None if bias is None else bias.ctypes.data_as(Floats)
        size = (weight.shape[1], weight.shape[0], int(whole))
        enough(found.linear(handle, weight.ctypes.data_as(Floats), at, *size), "the weights")
    for table in draft.tables:
        enough(found.table(handle, table.ctypes.data_as(Floats), *table.shape), "the weights")
    for look in draft.looks:
        found.look(handle, look.kind, look.heads, look.key_width, look.value_width, c_float(look.scale), look.vector,
                   look.bias, look.rate)  # fmt: skip
    for which, (registers, lines) in enumerate(
        ((draft.read.registers, draft.read.lines), ([], draft.hold), (draft.step.registers, draft.step.lines))
    ):
        made = (Register * len(registers))(*(Register(*each) for each in registers))
        steps = (Instruction * len(lines))(*(instruction(line) for line in lines))
        found.program(handle, which, made, len(registers), steps, len(lines))
    lists = [(c_int32 * len(each))(*each) for each in (draft.first_state, draft.state, draft.next_state)]
    found.finish(handle, draft.states, draft.last, draft.output, draft.memories, draft.entries, int(draft.prefix),
                 *lists, len(draft.state))  # fmt: skip
    if draft.pointer is not None:
        *parts, copies = draft.pointer
        enough(found.pointer(handle, *parts, pointer(copies), len(copies)), "the weights")
    return handle


def instruction(line: Any) -> Instruction:
    numbers = (*line.number, 0, 0, 0, 0, 0)[:5]
    return Instruction(line.operation, line.out, line.a, line.b, line.c, numbers, line.value)


def check_precision(precision: str) -> None:
    if precision not in PRECISIONS:
        raise UsageError(f"precision {precision!r}: expected one of {', '.join(PRECISIONS)}")


def engine(model: Model, precision: str = "fp32") -> Engine | Model:
    """The model as an engine; the model itself where there is no library, or where it has a part of its own."""
    check_precision(precision)
    found = library()
    weight = model.output.weight
    if found is not None and weight.device.type == "cpu" and weight.dtype == torch.float32:
        with suppress(Unknown):
            return Engine(model.eval(), found, precision)
    if precision != "fp32":
        warnings.warn(NO_ENGINE.format(precision), stacklevel=3)
    return model
