"""Text in, text out: a model together with its tokens and its task, loaded from a folder or fresh from training."""

import hashlib
import sys
import warnings
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from regard import config, folder
from regard.data.read import Columns, Example, Table, escape, read
from regard.data.recent import Recent
from regard.data.text import is_running, read_text
from regard.data.tokens import CLASS, END, mend
from regard.data.vocabulary import Vocabulary
from regard.engine.engine import Engine, check_precision, engine
from regard.errors import DataError, RegardError, UsageError
from regard.models.build import side_width
from regard.models.model import Model
from regard.models.threads import threads
from regard.score.calibration import Calibration, Look, calibrate, quality
from regard.score.retrieval import Hit, Vectors, nearest
from regard.search.write import Sampling
from regard.stop import go_on
from regard.tasks.choose import task
from regard.tasks.embed import Embed, body_vectors, gathered
from regard.tasks.generate import Generate, page
from regard.tasks.reading import Reads
from regard.tasks.task import Alignment, Answer, Evaluation, Item, Token, Wish, require
from regard.tasks.transduce import Transduce
from regard.view.carry import Without, word_by_word
from regard.view.change import Change
from regard.view.derive import derive as derived
from regard.view.look import evaluating, look, places, recorded, with_room
from regard.view.record import Record

Text = str | tuple[str, ...]  # a source: one text, or one for each source column (in one string: tabs between them)
Question = Text | Item  # a source, or what `Trained.item` made of it

CHUNK = 16  # batches that are sorted by length together
DIGITS = 4  # of an alignment
ANY = sys.maxsize  # tokens: as many as there are
SHORT = 4096  # characters of a text that is encoded whole, so that it can be told how long it is
PROBABLE = 16  # characters of a token at most, as a rule: so much of a longer text is tried first
TORN = 5  # tokens of a `[mask]` that was cut in two: all that the end of a text can change before it
REMEMBERED = 1_000_000  # tokens of sources and answers, some tens of megabytes
STRANGE = 0.1  # of the sources of a file hold what was never learnt, from which on that is told
NOTHING = Answer("", 0.0, 1.0)


class Trained:
    """A model that answers: `model(text)`, `model.run(texts)`, `model.stream(texts)`, `model.score(file)`,
    `model.look(text)`, `model.embed(texts)`, `model.search(texts, query)`."""

    def __init__(
        self,
        c: config.Config,
        vocabulary: Vocabulary,
        model: Model,
        precision: str = "fp32",
        calibration: Calibration | None = None,
        name: str = "model",
    ) -> None:
        self.name = name
        self.config = c
        self.vocabulary = vocabulary
        self.model = model
        self.precision = precision
        self.calibration = calibration  # none = `Answer.confidence` is the raw probability of the output
        self.task = task(c, vocabulary)
        self.made: tuple[list[tuple[int, int]], Model | Engine] | None = None  # what decodes, and of which weights

    @classmethod
    def load(cls, path: str | Path, precision: str = "fp32") -> "Trained":
        """A saved model; it decodes in `fp32` or, sooner and a little less exactly, in `int8`."""
        check_precision(precision)
        saved = folder.load(Path(path))
        return cls(saved.config, saved.vocabulary, saved.model, precision, saved.calibration, Path(path).resolve().name)

    def with_images(self, path: str | Path) -> "Trained":
        """The same model, for which a number is a row of this .npz of pictures."""
        if self.config.task != "caption":
            raise UsageError(f"{path}: the task {self.config.task} reads no pictures")
        data = self.config.data.model_copy(update={"images": str(path)})
        c = self.config.model_copy(update={"data": data})
        return Trained(c, self.vocabulary, self.model, self.precision, self.calibration, self.name)

    @property
    def decoding(self) -> Model | Engine:
        """What decodes: an engine made of the weights, anew when they have changed; or the model itself."""
        weights = [(weight.data_ptr(), weight._version) for weight in self.model.parameters()]
        if self.made is None or self.made[0] != weights:
            with evaluating(self.model):
                self.made = weights, engine(self.model, self.precision)
        return self.made[1]

    def save(self, path: str | Path, others: dict[str, bytes] | None = None) -> None:
        more = {"calibration.json": folder.calibration_bytes(self.calibration)} if self.calibration else {}
        folder.save(Path(path), self.config, self.vocabulary, self.model, {**more, **(others or {})})

    def __call__(self, text: Text, beam: int | None = None) -> str:
        return self.run([text], beam=beam)[0].text

    def run(
        self, texts: Iterable[Text], beam: int | None = None, wish: Wish | None = None, first_number: int = 0
    ) -> list[Answer]:
        """One answer for each text, in order. An empty text has an empty answer; a text that is too long is cut."""
        if isinstance(texts, str):
            raise UsageError("run takes a list of texts; for one text say model(text)")
        return self.answer(list(texts), self.wanted(beam, wish), Recent(0), first_number)

    def stream(
        self, texts: Iterable[Question | list[Question]], beam: int | None = None, wish: Wish | None = None
    ) -> Iterator[Answer]:
        """One answer for each text, in order, while texts are still coming; memory does not grow with their number.

        The first is answered at once, later ones in ever larger groups; whoever hands over lists has grouped them.
        What was answered a while ago is not searched for again; a picture goes by what is in it, not by its name.
        """
        if isinstance(texts, str):
            raise UsageError("stream takes texts, one after the other; for one text say model(text)")
        wanted, number = self.wanted(beam, wish), 0
        recent = Recent[Answer](0 if wanted.sampling else REMEMBERED)
        for chunk in chunks(texts, CHUNK * wanted.batch):
            yield from self.answer(chunk, wanted, recent, number)
            number += len(chunk)

    def answer(self, texts: Sequence[Question], wish: Wish, recent: Recent[Answer], first_number: int) -> list[Answer]:
        """One answer for each text; equal ones, and those that `recent` holds, are searched for once."""
        numbers = range(first_number, first_number + len(texts))
        items = {number: text if isinstance(text, Item) else self.item(text, f"text {number + 1}")
                 for number, text in zip(numbers, texts, strict=True)
                 if isinstance(text, Item) or any(columns(text)) or self.task.any_length}  # fmt: skip
        # Each line draws on its own.
        keys = {number: number if wish.sampling else identity(item) for number, item in items.items()}
        found = {key: known for key in dict.fromkeys(keys.values()) if (known := recent.get(key)) is not None}
        new = {key: number for number, key in reversed(keys.items()) if key not in found}
        asked = sorted(new.values())
        for number, answer in zip(asked, self.find([items[number] for number in asked], wish, asked), strict=True):
            found[keys[number]] = answer
            recent.put(keys[number], answer, weight(items[number], answer))
        return [found[keys[number]] if number in keys else NOTHING for number in numbers]

    def find(self, items: Sequence[Item], wish: Wish, numbers: Sequence[int]) -> list[Answer]:
        """Answers with how sure they are and, where that is wished for, what they looked at."""
        if not items:
            return []
        with threads(self.model), evaluating(self.model):
            answers = self.task.answer(self.decoding, items, wish, numbers)
            if wish.align:
                answers = [replace(answer, alignment=self.alignment(item, answer))
                           for item, answer in zip(items, answers, strict=True)]  # fmt: skip
        return answers if wish.sampling else [self.judged(answer) for answer in answers]

    # ── how sure ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def judged(self, answer: Answer) -> Answer:
        """The answer with the chance of being right as confidence.

        Only one answer is right: its alternatives have what it leaves, each its share by the probabilities of all that
        could be answered instead.
        """
        if self.calibration is None:
            return answer
        sure, others = self.calibration.confidence(certainty(answer)), answer.alternatives[1:]
        instead = max(1.0 - answer.probability, sum(each.probability for each in others), sys.float_info.min)
        share = (1.0 - sure) / instead
        first = tuple(replace(each, confidence=sure) for each in answer.alternatives[:1])
        shared = tuple(replace(each, confidence=share * each.probability) for each in others)
        return replace(answer, confidence=sure, alternatives=first + shared)

    def calibrate(self, answers: Sequence[Answer], targets: Sequence[str]) -> Calibration | None:
        """Learns from answers, and what they should have been, how likely an answer is right; too few teach nothing."""
        right = [self.task.is_right(answer.text, target) for answer, target in zip(answers, targets, strict=True)]
        self.calibration = calibrate([certainty(answer) for answer in answers], right)
        return self.calibration

    def likelihood(self, texts: Sequence[Text], targets: Sequence[str]) -> list[Answer]:
        """How likely the model finds each target for its text: its `.probability`."""
        if not isinstance(self.task, Transduce):
            raise UsageError(f"the task {self.config.task} writes no target that could be rated")
        items = [replace(self.item(text, f"text {number + 1}"), target=self.vocabulary.target.encode(target).ids)
                 for number, (text, target) in enumerate(zip(texts, targets, strict=True))]  # fmt: skip
        with threads(self.model), evaluating(self.model):
            return self.task.likelihood(self.decoding, items, self.wish())

    # ── vectors ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def embed(self, texts: Iterable[Text], batch: int = 64) -> Vectors:
        """A vector of length 1 for each text, (texts, width); zeros for an empty one.

        Of a model that was not trained to embed: the mean of the states of what reads the source.
        """
        if isinstance(texts, str):
            raise UsageError("embed takes a list of texts; for one text say model.embed([text])")
        require("batch", batch, 1)
        self.refuse_pictures()
        asked = [self.item(text, f"text {number}") if any(columns(text)) else None
                 for number, text in enumerate(texts, 1)]  # fmt: skip
        return self.embedded(asked, batch)

    def embedded(self, items: Sequence[Item | None], batch: int) -> Vectors:
        """The vectors of what `item` made of texts; zeros where there is none."""
        self.refuse_pictures()
        found: Vectors = np.zeros((len(items), self.vector_width), np.float32)
        read = [place for place, item in enumerate(items) if item is not None]
        sources = [item.source for item in items if item is not None]
        if read:
            make = self.task.vectors if isinstance(self.task, Embed) else body_vectors
            with threads(self.model), evaluating(self.model):
                found[read] = gathered(make, self.decoding, sources, batch)
        return found

    def refuse_pictures(self) -> None:
        """Before texts are taken for paths, which are not there."""
        if self.config.encoder.kind == "image":
            raise UsageError(f"this model reads pictures (its task is {self.config.task}); only texts have vectors "
                             "that can be compared")  # fmt: skip

    @property
    def vector_width(self) -> int:
        """How many numbers the vector of a text has."""
        if isinstance(self.task, Embed):
            return len(self.model.output.weight)
        side = self.config.decoder if self.config.encoder.kind == "none" else self.config.encoder
        return side_width(side)

    def search(self, corpus: Sequence[Text], query: Text, count: int = 5) -> list[Hit]:
        """The texts of a corpus that are nearest to a query, best first."""
        require("count", count, 1)
        if isinstance(corpus, str) or not len(corpus):
            raise UsageError("search goes through a list of texts, and wants at least one")
        if not any(columns(query)):
            raise UsageError("there is nothing to search for in an empty text")
        numbers, cosines = nearest(self.embed([query]), self.embed(corpus), count)
        return [Hit(number, "\t".join(columns(corpus[number])), float(cosine))
                for number, cosine in zip(numbers[0].tolist(), cosines[0], strict=True)]  # fmt: skip

    def word_by_word(self, text: Text) -> Iterator[Without]:
        """What is left of a text without each of its words that are read; `embedded` gives the vectors of these."""
        if not any(columns(text)):
            return
        item = self.fitting(self.whole(self.within_reach(columns(text))))
        yield from word_by_word(self.vocabulary, item, self.source_tokens(text, item), mend("\t".join(columns(text))))

    def wanted(self, beam: int | None, wish: Wish | None) -> Wish:
        if wish is not None and beam is not None:
            raise UsageError(f"beam={beam} and a wish, which has its own beam ({wish.beam}): say one of them")
        return wish or self.wish(beam)

    def wish(self, beam: int | None = None, sampling: Sampling | None = None) -> Wish:
        """What the config says about searching, or another beam."""
        return Wish(
            beam=self.config.search.beam if beam is None else beam,
            length_penalty=self.config.search.length_penalty,
            sampling=sampling,
        )

    def item(self, text: Text, where: str = "text 1") -> Item:
        """A source as numbers, cut with a warning that says `where` if it is longer than the model was made for."""
        parts = self.parts(text, where)
        near = self.within_reach(parts)
        return self.fitting(self.whole(near, where), where, near == parts)

    def parts(self, text: Text, where: str) -> tuple[str, ...]:
        """The columns of a source, as many as the model reads."""
        found, wanted = columns(text), len(self.vocabulary.is_tags)
        if len(found) != wanted and not (isinstance(self.task, Embed) and len(found) == 1):
            raise DataError(f"{where}: expected {wanted} source columns with tabs between them, found {len(found)}: "
                            f"{escape(' ⇥ '.join(found))[:60]!r}")  # fmt: skip
        return found

    def within_reach(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """The columns, of a long one only as much as shows which tokens the model will read, and that there are more.

        Each is whole, or has by itself more tokens than the model reads; so in whichever order columns are read, what
        is read stays the same. A task that answers for what it has not read has it all.
        """
        if self.task.any_length or self.config.encoder.kind == "image":
            return parts
        if isinstance(self.task, Reads) and self.task.beyond:
            return parts
        return tuple(self.beginning(parts, place) for place in range(len(parts)))

    def beginning(self, parts: tuple[str, ...], place: int) -> str:
        """As much of a column as has enough tokens, each as in the whole column: tried with more and more of it."""
        text, is_tags = parts[place], self.vocabulary.is_tags
        end = max(SHORT, PROBABLE * self.config.data.max_source)
        while not (len(parts) == len(is_tags) and is_tags[place]):
            end = self.vocabulary.source.seam(text, end)
            if end >= len(text):
                break
            alone = [text[:end] if number == place else "" for number in range(len(parts))]
            found = len(self.task.encoded(alone).ids) - (len(parts) - 1)
            if found > self.config.data.max_source + TORN:
                return text[:end]
            end *= 2
        return text

    def whole(self, text: Text, where: str = "text 1") -> Item:
        """A source as numbers, however long."""
        go_on()
        return self.task.ask(self.parts(text, where), ".")

    def excess(self, item: Item) -> int:
        """Tokens of a source beyond data.max_source, its end not counted."""
        longest = ANY if self.task.any_length else self.config.data.max_source
        return max(0, len(item.source) - len(ending(item)) - longest)

    def fitting(self, item: Item, where: str = "", is_whole: bool = True) -> Item:
        """The item with a source of at most data.max_source tokens, its end not counted; a warning says `where`."""
        excess, end = self.excess(item), ending(item)
        if not excess:
            return item
        longest = self.config.data.max_source
        if where:
            rest = f"; {self.task.beyond}" if isinstance(self.task, Reads) and self.task.beyond else ""
            found = f"{longest + excess} tokens" if is_whole else f"more than {longest} tokens"
            warnings.warn(f"{where}: {found}, cut to {longest} (data.max_source){rest}", stacklevel=2)
        return replace(item, source=item.source[:longest] + end)

    def score(
        self, path: str | Path, beam: int | None = None, skip_bad: bool = False, columns: Columns | None = None
    ) -> Evaluation:
        """Scores on a file with the columns that this model was trained on, or others of the same number."""
        return self.judge(*self.examples(path, skip_bad, columns), beam)

    def examples(
        self, path: str | Path, skip_bad: bool = False, columns: Columns | None = None
    ) -> tuple[list[Item], list[Example]]:
        """What a file holds, as numbers and as text."""
        table = self.table(str(path), columns or self.task.columns(), skip_bad or self.config.data.skip_bad)
        if len(table.source_names) != len(self.vocabulary.is_tags):
            raise DataError(f"{path}: {len(table.source_names)} source columns, the model reads "
                            f"{len(self.vocabulary.is_tags)}")  # fmt: skip
        for line in table.notes:
            warnings.warn(line.removeprefix("warning: "), stacklevel=3)
        items, examples = self.read_items(table, skip_bad or self.config.data.skip_bad)
        if isinstance(self.task, Reads) and (new := self.task.strangers(examples)):
            warnings.warn(f"{escape(str(path))}: {new}", stacklevel=3)
        unknown = self.vocabulary.source.strangers
        strange = sum(item.picture is None and not unknown.isdisjoint(item.source) for item in items)
        if strange >= STRANGE * max(1, len(items)):
            told = f"{strange:,} of {len(items):,} sources hold what the model never learnt to read"
            warnings.warn(f"{escape(str(path))}: {told}", stacklevel=3)
        return items, examples

    def judge(self, items: Sequence[Item], examples: Sequence[Example], beam: int | None = None) -> Evaluation:
        """Scores on examples."""
        with threads(self.model), evaluating(self.model):
            found = self.task.evaluate(self.model, items, examples, self.wish(beam), precision=self.precision)
        return replace(found, facts={**found.facts, **self.sureness(found, examples)})

    def read_items(self, table: Table, skip_bad: bool) -> tuple[list[Item], list[Example]]:
        """The examples of a file as numbers; those that can not be read are an error, or left out with a warning."""
        made: list[tuple[Item, Example]] = []
        errors: list[DataError] = []
        for example in table.examples:
            try:
                made.append((self.read_item(example, table), example))
            except DataError as error:
                if not skip_bad:
                    raise
                errors.append(error)
        if errors and not made:
            raise errors[0]
        if errors:
            left = f"{len(errors)} of {len(table.examples)} examples can not be used; skipped. The first: {errors[0]}"
            warnings.warn(left, stacklevel=3)
        return [item for item, _ in made], [example for _, example in made]

    def table(self, path: str, wanted: Columns, skip_bad: bool) -> Table:
        """The examples of a file; running text in pages."""
        if isinstance(self.task, Generate) and is_running(path, wanted.source):
            return read_text(path, page(self.config), skip_bad)
        return read(path, wanted, skip_bad)

    def sureness(self, found: Evaluation, examples: Sequence[Example]) -> dict[str, float]:
        """How well confidences fit what came true; nothing where a task does not know right from wrong."""
        sure = [self.judged(answer).confidence for answer in found.answers]
        if not sure:
            return {}
        right = [
            self.task.is_right(answer.text, example.target or "")
            for answer, example in zip(found.answers, examples, strict=True)
        ]
        judged = quality(sure, right)
        return {"brier": judged.brier, "calibration_error": judged.error}

    def read_item(self, example: Example, table: Table) -> Item:
        """An example of a file as numbers; what is wrong with it is told with file and line."""
        where = f"{table.path}:{example.line}"
        try:
            item = self.task.encode(example, table.folder)
        except RegardError as error:
            raise DataError(f"{where}: {error}") from None
        if isinstance(self.task, Embed):
            target = self.fitting(Item(item.target, ()), f"{where}: the target").source
            return self.fitting(replace(item, target=target), where)
        longest = ANY if self.task.any_length else self.config.limits.max_target
        if len(item.target) > longest:
            warnings.warn(f"{where}: a target of {len(item.target)} tokens, more than data.max_target={longest}; "
                          "it can not be written, and only its beginning is foreseen", stacklevel=3)  # fmt: skip
        return self.fitting(replace(item, target=item.target[:longest]), where)

    def look(
        self,
        text: Text,
        beam: int | None = None,
        wish: Wish | None = None,
        change: Change | None = None,
        derive: bool = False,
        item: Item | None = None,
    ) -> Record:
        """What was answered, and what each token of it looked at; with a `change`, what would be answered then.

        `derive` adds what only more passes tell: erasure, gradients, heads switched off. No output changes by it.
        `item` is the text as numbers, where that is known already: a picture that has no path.
        """
        if not any(columns(text)) and not self.task.any_length:
            raise UsageError("there is nothing to look at in an empty text")
        asked = item or self.item(text)
        shown = mend("\t".join(columns(text)))  # an argument of a command line may be no text at all
        item, source, wanted = self.in_view(text, asked, self.wanted(beam, wish))
        with threads(self.model), evaluating(self.model):
            found, read = look(self.task, self.model, self.decoding, item, source, shown, wanted, change)
            if derive:
                found = replace(found, derived=derived(found, self.task, self.model, read))
        answer = found.answer if wanted.sampling else self.judged(found.answer)
        if isinstance(self.task, Generate):
            unread = asked.source[: len(asked.source) - len(item.source)]
            answer = self.task.whole(replace(read, source=unread + read.source), answer)
        return replace(found, answer=answer, model={**self.about, "precision": self.precision_of(change)})

    def precision_of(self, change: Change | None) -> str:
        """In what a look searches: as `run` does, unless heads are off, which is a matter of the model itself."""
        engine = None if change is not None and change.off else self.decoding
        return engine.precision if isinstance(engine, Engine) else "fp32"

    def in_view(self, text: Text, item: Item, wish: Wish) -> tuple[Item, Sequence[Token], Wish]:
        """What a look reads of a text: its tokens as the record numbers them, of a long prompt only the end."""
        return with_room(self.task, item, self.source_tokens(text, item), wish)

    @property
    def about(self) -> dict[str, object]:
        """What it is, in a few words."""
        return {"name": mend(self.name), "task": self.config.task, "preset": self.config.preset,
                "parameters": self.model.size}  # fmt: skip

    def alignment(self, item: Item, answer: Answer) -> Alignment | None:
        """What each token of an answer looked at, but for the end; alone in its batch, so that no mate changes it."""
        if not isinstance(self.task, Transduce) or isinstance(self.task, Generate) or not answer.tokens:
            return None
        places = [Token("", 0, 0)] * len(item.source)
        with evaluating(self.model):
            found = recorded(self.task, self.model, item, places, "", answer).alignment()
        return None if found is None else tuple(tuple(row) for row in found[:-1].astype(float).round(DIGITS).tolist())

    def spelled(self, answer: Answer) -> list[str]:
        """The tokens of an answer as they are shown: a row of its alignment for each."""
        written = self.vocabulary.source if self.config.task in ("fill", "extract") else self.vocabulary.target
        return [written.token(id) for id in answer.tokens]

    def spelled_source(self, text: Text, item: Item | None = None) -> list[str]:
        """The tokens of a text as they are shown: a column of an alignment for each. `item` is the text as numbers."""
        if item is None:
            item = self.fitting(self.whole(self.within_reach(columns(text))))
        return [token.text for token in self.source_tokens(text, item)]

    def source_tokens(self, text: Text, item: Item) -> list[Token]:
        """The tokens a map's columns stand for: pieces of the text, or places of a picture."""
        if item.picture is not None:
            rows, across = places(self.model, item)
            return [Token(f"{place // across},{place % across}", 0, 0) for place in range(rows * across)]
        given = columns(text)
        # Of several columns none is shortened: those after it would stand elsewhere.
        spans = self.task.encoded(given if len(given) > 1 else self.within_reach(given)).spans
        end = len("\t".join(columns(text)))
        read = len(item.source) - len(ending(item))  # the sign at the end of a text that was cut stands for none of it
        where = [*spans[:read], *[(end, end)] * len(item.source)]
        return [Token(self.vocabulary.source.token(item.source[at]), *where[at], item.source[at])
                for at in self.vocabulary.source.heads(item.source)]  # fmt: skip


def columns(text: Text) -> tuple[str, ...]:
    if isinstance(text, str):
        return tuple(text.split("\t"))
    if not isinstance(text, tuple) or not all(isinstance(part, str) for part in text):
        raise UsageError(f"a text is a string, or a tuple with a string for each source column; found {text!r:.60}")
    return text


def ending(item: Item) -> tuple[int, ...]:
    """The sign at the end of a source, where there is one."""
    return item.source[-1:] if item.source[-1:] in ((END,), (CLASS,)) else ()


def identity(item: Item) -> Hashable:
    """The same for items that have the same answer: a file may hold another picture the next time it is named."""
    if item.picture is None:
        return item.source, item.target, item.passage  # a task may mark in the target where it answers
    return hashlib.blake2b(item.picture.tobytes(), digest_size=16).digest()


def chunks(texts: Iterable[Question | list[Question]], most: int) -> Iterator[list[Question]]:
    """One text, then two, four and so on up to `most` together; lists as they come."""
    waiting: list[Question] = []
    wanted = 1
    for each in texts:
        waiting += each if isinstance(each, list) else [each]
        if isinstance(each, list) or len(waiting) >= wanted:
            yield waiting
            waiting, wanted = [], min(2 * wanted, most)
    if waiting:
        yield waiting


def certainty(answer: Answer) -> Look:
    return Look(answer.probability, answer.lowest, len(answer.tokens))


def weight(item: Item, answer: Answer) -> int:
    """About how many numbers are kept for an answer."""
    written = sum(len(each.tokens) for each in answer.alternatives or (answer,))
    told = len(answer.chances) + (0 if item.passage is None else 2 * len(item.passage.spans))
    return 8 + len(item.source) + written + told + len(answer.text) // 8 + sum(map(len, answer.alignment or ()))
