"""A request and a model in, what is answered out; on the thread of that model, off the event loop."""

from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from regard import config
from regard.data.images import read_picture
from regard.data.plain import finite, json_text
from regard.data.recent import Recent
from regard.errors import DataError, RegardError, UsageError
from regard.score.retrieval import nearest
from regard.search.write import Sampling
from regard.serve import limits
from regard.serve.refusal import Refusal
from regard.serve.schema import Alternative, HitAnswer, LookRequest, Result, RunRequest, Sample, SearchRequest, Word
from regard.tasks.embed import Embed
from regard.tasks.reading import Reads
from regard.tasks.task import Answer, Item, Wish
from regard.tasks.transduce import Transduce
from regard.trained import NOTHING, Question, Text, Trained, columns
from regard.view.change import Change

Pixels = np.ndarray[Any, np.dtype[np.float32]]
BATCH = 64  # texts with a word left out that are read together


@dataclass(frozen=True)
class Options:
    """How texts are to be answered. Requests with the same options can be answered together."""

    beam: int | None = None
    n_best: int | None = None
    max_length: int | None = None
    prefix: str = ""
    sampling: Sampling | None = None

    def width(self, c: config.Config) -> int:
        """Outputs of one text that a search holds at once."""
        if c.task in config.READING or self.sampling is not None:
            return 1
        return max(self.beam or c.search.beam, self.n_best or 1)

    def length(self, c: config.Config) -> int:
        """Tokens of an output at most."""
        return min(self.max_length or limits.MOST_LENGTH, c.limits.max_target)

    def refuse_too_much(self, c: config.Config, texts: int) -> None:
        """Before anything is begun: what would need more memory than one request may have."""
        length, answers = self.length(c), texts * (self.n_best or 1)
        sizes = (("beam × length", self.width(c) * length, limits.MOST_HELD),
                 ("texts × n_best × length", answers * length, limits.MOST_WRITTEN))  # fmt: skip
        for names, size, most in sizes:
            if size > most:
                raise Refusal(422, f"{names} of an output: found {size:,} tokens, expected at most {most:,}; ask for "
                              "less of any of them (max_length is the length)", "too_much")  # fmt: skip

    def wish(self, model: Trained) -> Wish:
        if isinstance(model.task, Reads):
            self.refuse_search(model.task)
        usual, width = model.config.search, self.width(model.config)
        together = min(limits.MOST_ROWS // width, limits.MOST_HELD // (width * self.length(model.config)))
        return Wish(
            beam=width,
            n_best=self.n_best or 1,
            batch=max(1, min(Wish.batch, together)),
            length_penalty=usual.length_penalty,
            sampling=self.sampling,
            max_length=self.max_length,
            prefix=self.prefix,
        )

    def refuse_search(self, task: Reads) -> None:
        """A task that reads its answer off the source searches for nothing; and there is one vector of a text."""
        many = self.n_best if isinstance(task, Embed) and self.n_best != 1 else None
        asked = {"beam": self.beam, "n_best": many, "sample": self.sampling, "max_length": self.max_length,
                 "prefix": self.prefix or None}  # fmt: skip
        if found := [name for name, value in asked.items() if value is not None]:
            raise UsageError(f"{task.why}: {' and '.join(found)} can not be asked of the task {task.config.task}")


@dataclass(frozen=True)
class Ask:
    """Texts, or pictures as data: URLs, and how they are to be answered."""

    texts: tuple[Text, ...]
    options: Options
    pictured: bool = False

    @property
    def size(self) -> int:
        return len(self.texts)


def sampling(asked: Sample | None) -> Sampling | None:
    return None if asked is None else Sampling(asked.seed, asked.temperature, asked.top_k, asked.top_p)


def as_text(text: str | list[str]) -> Text:
    return text if isinstance(text, str) else tuple(text)


def as_ask(request: RunRequest) -> Ask:
    """What /v1/run is asked."""
    options = Options(request.beam, request.n_best, request.max_length, request.prefix or "", sampling(request.sample))
    if request.pictures is not None:
        return Ask(tuple(request.pictures), options, True)
    return Ask(tuple(map(as_text, request.texts or [])), options)


# ── run ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def answer_together(model: Trained, asks: Sequence[Ask]) -> list[list[Result] | Exception]:
    """One list of results for each, or what is wrong with it: a bad text spoils nobody else's answer."""
    read = [read_or_error(model, ask) for ask in asks]
    items = [item for each in read if isinstance(each, list) for item, _ in each]
    answers = iter(model.answer(items, asks[0].options.wish(model), Recent(0), 0))
    return [each if isinstance(each, RegardError) else [result(next(answers), cut) for _, cut in each] for each in read]


def read_or_error(model: Trained, ask: Ask) -> list[tuple[Question, int]] | RegardError:
    try:
        return [read(model, text, ask.pictured, f"text {number}") for number, text in enumerate(ask.texts, 1)]
    except RegardError as error:
        return error


def read(model: Trained, text: Text, pictured: bool, where: str) -> tuple[Question, int]:
    """A text as numbers, an empty one as it is; and how many tokens of it are too many for the model.

    A text from outside is never taken for the path of a picture.
    """
    reads_pictures = model.config.encoder.kind == "image"
    if pictured != reads_pictures:
        found, expected = ("pictures", "texts") if pictured else ("texts", "pictures, as data: URLs")
        raise UsageError(f"found {found}; the task {model.config.task} reads {expected}")
    if pictured:
        return Item((), (), pixels(model, str(text), where)), 0
    if not any(columns(text)) and not model.task.any_length:
        return "", 0
    item = model.whole(text, where)
    return model.fitting(item), model.excess(item)


def pixels(model: Trained, url: str, where: str) -> Pixels:
    """A data: URL as the model's own size of picture; formats, bytes and pixels are limited."""
    encoder = model.config.encoder
    assert isinstance(encoder, config.ImageEncoder)
    try:
        content = b64decode(url.partition(",")[2], validate=True)
    except BadBase64 as error:
        raise DataError(f"{where}: not base64: {error}") from None
    return read_picture(content, where, encoder.size, encoder.channels, limits.MOST_PIXELS)


def result(answer: Answer, cut: int) -> Result:
    if answer is NOTHING:  # nothing was asked, so there is nothing to be sure of
        return Result(text="", score=None, confidence=None, alternatives=[], chances=[], cut=0, empty=True)
    return Result(
        text=answer.text,
        score=finite(answer.score),
        confidence=finite(answer.confidence),
        alternatives=[Alternative(text=each.text, score=finite(each.score), confidence=finite(each.confidence))
                      for each in answer.alternatives],
        chances=list(answer.chances),
        cut=cut,
        empty=False,
    )  # fmt: skip


# ── search ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def search(model: Trained, request: SearchRequest) -> list[HitAnswer]:
    """The nearest texts, as `Trained.search` finds them, and which of their words carry them."""
    if not any(columns(request.query)):
        raise UsageError("there is nothing to search for in an empty text")
    query = model.embed([request.query])
    numbers, cosines = nearest(query, model.embed(request.texts), request.count)
    hits = list(zip(numbers[0].tolist(), cosines[0].tolist(), strict=True))
    carried = weights(model, query, [(request.texts[number], cosine) for number, cosine in hits])
    return [HitAnswer(number=number, text=request.texts[number], cosine=cosine, words=words)
            for (number, cosine), words in zip(hits, carried, strict=True)]  # fmt: skip


def weights(model: Trained, query: Pixels, hits: Sequence[tuple[str, float]]) -> list[list[Word]]:
    """For each word of each hit how much nearer the hit is with it than without; of very many words the first."""
    every = ((number, word) for number, (text, _) in enumerate(hits) for word in model.word_by_word(text))
    tried = list(islice(every, limits.MOST_ERASED))
    left = (model.embedded([word.item for _, word in tried], BATCH) @ query[0]).tolist()
    made: list[list[Word]] = [[] for _ in hits]
    for (number, word), cosine in zip(tried, left, strict=True):
        made[number].append(Word(start=word.start, end=word.end, weight=hits[number][1] - cosine))
    return made


# ── look ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def look(model: Trained, name: str, request: LookRequest) -> bytes:
    """The record as JSON; written here and not on the event loop, because it may be long."""
    text, picture = looked_at(model, request)
    wish, changed = look_options(request).wish(model), change(model, request)
    found = model.look(text, wish=wish, change=changed, derive=request.derive, item=picture)
    return json_text(replace(found, model={**found.model, "name": name}).as_json(request.packed)).encode()


def looked_at(model: Trained, request: LookRequest) -> tuple[Text, Item | None]:
    """A text, or a picture by its name; and it as numbers, where it is not empty."""
    text = as_text(request.text or ("" if request.picture is None else "picture"))
    found, _ = read(model, request.picture or text, request.picture is not None, "what is looked at")
    return text, found if isinstance(found, Item) else None


def look_options(request: LookRequest) -> Options:
    return Options(beam=request.beam, sampling=sampling(request.sample))


def change(model: Trained, request: LookRequest) -> Change | None:
    asked = request.change
    return None if asked is None else Change(tuple(asked.erase), tuple(asked.off), beginning(model, asked.begin))


def beginning(model: Trained, asked: list[int] | str) -> tuple[int, ...]:
    """Tokens as they are asked for; a text becomes those of this model, for models side by side have others."""
    if asked and isinstance(model.task, Reads):
        raise UsageError(f"{model.task.why}: begin can not be asked of the task {model.config.task}")
    if isinstance(asked, str):
        return model.task.prefix_ids(asked) if isinstance(model.task, Transduce) else ()
    return tuple(asked)
