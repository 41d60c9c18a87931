"""A context and a question in, the piece of the context that answers it out.

A start and an end are chosen among the tokens of the context, as in Seo et al. (2017) and Devlin et al. (2019). What is
asked is read before the context, so that a body that reads in one direction meets the answer knowing the question.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.data.batch import Batch
from regard.data.read import EMPTY, Columns, Example
from regard.data.tokens import END, PAD, SEPARATOR, Encoding
from regard.engine.engine import Engine, engine
from regard.errors import DataError
from regard.models.model import Model
from regard.score import EXTRACT
from regard.score.intervals import Bootstrap
from regard.score.metrics import corpus_tallies, measured
from regard.stop import go_on
from regard.tasks.reading import ReadsPlaces, read_states
from regard.tasks.task import Answer, Evaluation, Foresight, Item, Loss, Passage, Token, Wish, runs

Span = tuple[int, int, float]  # first and last token of an answer, and its log probability
AT_ONCE = 1 << 18  # spans that are compared before anybody is asked whether the answer is still wanted


class Extract(ReadsPlaces):
    """Where an answer starts and where it ends. Places of tokens count from 1, so that none of them is PAD."""

    scores: tuple[str, ...] = (*EXTRACT, "loss")
    why = "the answer is a piece of the context"

    def columns(self) -> Columns:
        return replace(super().columns(), within=True)

    def encode(self, example: Example, folder: str) -> Item:
        asked = self.ask(example.source, folder)
        assert asked.passage is not None
        return Item(asked.source, self.places(asked.passage, example.target or ""))

    def ask(self, columns: Sequence[str], folder: str) -> Item:
        encoding = self.turned(columns)
        return Item((*encoding.ids, END), (), passage=self.passage(columns, encoding))

    def encoded(self, columns: Sequence[str]) -> Encoding:
        """The questions, then the context, and where each token stands in the columns as they were given."""
        found, first, begin = self.turned(columns), len(columns[0]), asked_length(columns)
        spans = [(a - begin, b - begin) if a >= begin else (a + first + 1, b + first + 1) for a, b in found.spans]
        return Encoding(found.ids, tuple(spans))

    def turned(self, columns: Sequence[str]) -> Encoding:
        """The questions, then the context; spans as of columns in that order."""
        is_tags = self.vocabulary.is_tags
        return self.vocabulary.source.encode_columns([*columns[1:], columns[0]], [*is_tags[1:], is_tags[0]])

    def passage(self, columns: Sequence[str], encoding: Encoding) -> Passage:
        """The context, and where in it each token stands; those of the questions stand nowhere."""
        begin = asked_length(columns)
        spans = [(start - begin, end - begin) if start >= begin else (0, 0) for start, end in encoding.spans]
        return Passage(columns[0], tuple(spans))

    def places(self, passage: Passage, answer: str) -> tuple[int, int]:
        """The first and the last token of the first place where the answer stands."""
        answer = answer.strip(EMPTY)
        start = passage.text.find(answer)
        inside = [place for place, (first, last) in enumerate(passage.spans, 1)
                  if first < start + len(answer) and last > start and first < last]  # fmt: skip
        if start < 0 or not inside:
            raise DataError(f"the answer {answer[:40]!r} is not in its context")
        return inside[0], inside[-1]

    def remarks(self, train: Iterable[Example], valid: Iterable[Example]) -> list[str]:
        """How many answers leave open which place is meant, and how many no row of tokens can give."""
        several = torn = 0
        for example in train:
            asked, answer = self.ask(example.source, "."), (example.target or "").strip(EMPTY)
            assert asked.passage is not None
            first, last = self.places(asked.passage, answer)
            several += asked.passage.text.count(answer) > 1
            torn += cut_out(asked.passage, first, last) != answer
        notes = []
        if several:
            notes.append(f"{several} answers stand more than once in their context; the first place is learnt")
        if torn:
            notes.append(f"warning: {torn} answers begin or end inside a token, so that none can be given as it is; "
                         "other tokens (--tokens) may help")  # fmt: skip
        return notes

    # ── learning ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def context(self, source_BS: Tensor) -> Tensor:
        """Which tokens are of the context: those after the separators of all questions, and before the end.

        Of a text that was cut within a question, none.
        """
        separators_BS = (source_BS == SEPARATOR).cumsum(1)
        signs = torch.tensor((SEPARATOR, END, PAD), device=source_BS.device)
        inside_BS: Tensor = (separators_BS == len(self.vocabulary.is_tags) - 1) & ~torch.isin(source_BS, signs)
        return inside_BS

    def loss(self, model: Model, batch: Batch, forcing: float, seed: int) -> Loss:
        """Cross-entropy of the start and of the end, each over all tokens of the context."""
        real_B = (batch.label_BT != PAD).any(1)
        logits_NTV = model.output(model(batch).states_BTD)[real_B].float()
        logits_NTV = logits_NTV.masked_fill(~self.context(batch.source[real_B])[..., None], -torch.inf)
        place_NV = batch.label_BT[real_B] - 1
        return Loss(F.cross_entropy(logits_NTV, place_NV, reduction="sum"), place_NV.numel())

    # ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @torch.inference_mode()
    def answer(self, model: Model | Engine, items: Sequence[Item], wish: Wish, numbers: Sequence[int]) -> list[Answer]:
        """The likeliest pieces of each context, best first."""
        self.refuse_search(wish)
        found: dict[int, Answer] = {}
        for run in runs(items, wish.batch):
            for i, logs_TV in zip(run, self.logs(model, [items[i] for i in run]), strict=True):
                found[i] = self.best(items[i], logs_TV, wish.n_best)
        return [found[i] for i in range(len(items))]

    def logs(self, model: Model | Engine, items: Sequence[Item]) -> list[Tensor]:
        """Log probabilities of being the start and the end, of each token of each item."""
        found = []
        for item, states_TD in zip(items, read_states(model, [item.source for item in items]), strict=True):
            logits_TV = model.output(states_TD[None])[0].float()
            inside_T = self.context(torch.tensor([item.source], device=logits_TV.device))[0]
            found.append(logits_TV.masked_fill(~inside_T[:, None], -torch.inf).log_softmax(0))
        return found

    def best(self, item: Item, logs_TV: Tensor, count: int) -> Answer:
        """The likeliest pieces that differ in their text."""
        made: dict[str, Answer] = {}
        for first, last, log in self.spans(logs_TV, 2 * count + 8):
            text, ids = self.spelled(item, first, last), item.source[first : last + 1]
            if len(made) < count and text not in made:
                sure, lowest = math.exp(log), math.exp(float(torch.minimum(logs_TV[first, 0], logs_TV[last, 1])))
                made[text] = Answer(text, log, sure, ids, probability=sure, lowest=lowest, places=(first, last))
        answers = tuple(made.values()) or (Answer("", 0.0, 0.0, probability=0.0, lowest=0.0),)
        return replace(answers[0], alternatives=answers)

    def spans(self, logs_TV: Tensor, count: int) -> list[Span]:
        """The likeliest, best first, of at most data.max_target tokens, with their share in all such."""
        places = torch.isfinite(logs_TV[:, 0]).nonzero()[:, 0]
        if not len(places):
            return []
        begin, width = int(places[0]), min(len(places), self.config.data.max_target)
        starts = logs_TV[places, 0]
        ends = F.pad(logs_TV[places, 1], (0, width - 1), value=-torch.inf).unfold(0, width, 1)  # those a start may have
        found: list[Span] = []
        total, rows = starts.new_tensor(-torch.inf), max(1, AT_ONCE // width)
        for first in range(0, len(places), rows):
            go_on()
            some = starts[first : first + rows, None] + ends[first : first + rows]
            total = torch.logaddexp(total, some.flatten().logsumexp(0))
            found = sorted(found + likeliest(some, begin + first, count), key=lambda each: -each[2])[:count]
        return [(start, end, log - float(total)) for start, end, log in found]

    def spelled(self, item: Item, first: int, last: int) -> str:
        """The piece of the text as it stands there; of a question without its text, its tokens."""
        if item.passage is None:
            return self.vocabulary.source.decode(item.source[first : last + 1])
        return cut_out(item.passage, first + 1, last + 1)

    # ── looking in ───────────────────────────────────────────────────────────────────────────────────────────────────

    def foresee(self, model: Model, items: Sequence[Item], answers: Sequence[Answer]) -> list[Foresight]:
        """The token that the answer begins with, and the one it ends with, among all of the context."""
        places = [answer.places or () for answer in answers]
        return [Foresight(logs_TV.t()[: len(both)], both, both)
                for logs_TV, both in zip(self.logs(model, items), places, strict=True)]  # fmt: skip

    def token(self, item: Item, column: int) -> str:
        return self.vocabulary.source.token(item.source[column])

    def pieces(self, item: Item, answer: Answer) -> tuple[Token, ...]:
        """The first and the last token of the piece, and where they stand in it."""
        if answer.places is None or item.passage is None:
            return ()
        first, last = answer.places
        start, longest = item.passage.spans[first][0], len(answer.text)
        found = []
        for place in (first, last):
            a, b = (min(max(0, end - start), longest) for end in item.passage.spans[place])
            found.append(Token(self.token(item, place), a, b, item.source[place]))
        return tuple(found)

    def is_right(self, text: str, target: str) -> bool:
        """Spaces around an answer are no part of it."""
        return text == target.strip(EMPTY)

    @torch.inference_mode()
    def evaluate(
        self, model: Model, items: Sequence[Item], examples: Sequence[Example], wish: Wish, intervals: bool = True,
        precision: str = "fp32",
    ) -> Evaluation:  # fmt: skip
        """How many answers are exactly right, and how many words they share with the right ones."""
        decoding, answers, total, counted = engine(model, precision), {}, 0.0, 0
        asked = [replace(item, passage=self.ask(example.source, ".").passage)
                 for item, example in zip(items, examples, strict=True)]  # fmt: skip
        for run in runs(asked, 64):
            for i, logs_TV in zip(run, self.logs(decoding, [asked[i] for i in run]), strict=True):
                answers[i] = self.best(asked[i], logs_TV, 1)
                for place, log_T in zip(asked[i].target, logs_TV.t(), strict=True):
                    if place < len(log_T):  # else it was cut off, being too far on
                        total, counted = total - float(log_T[place - 1]), counted + 1
        outputs = tuple(answers[i].text for i in range(len(items)))
        references = [[(example.target or "").strip(EMPTY)] for example in examples]
        bootstrap = Bootstrap(samples=1000 if intervals else 0)
        tallies = corpus_tallies(outputs, references, EXTRACT, bootstrap)
        return Evaluation(measured(tallies, bootstrap), outputs, {"loss": total / max(counted, 1)},
                          tuple(answers[i] for i in range(len(items))), tallies=tallies)  # fmt: skip


def asked_length(columns: Sequence[str]) -> int:
    """Where the context begins among columns of which the questions come first."""
    return sum(len(text) + 1 for text in columns[1:])


def likeliest(logs: Tensor, begin: int, count: int) -> list[Span]:
    """Of spans in rows by their start, in columns by their length: the best that are possible, ties by their place."""
    flat, width = logs.flatten(), logs.shape[1]
    least = flat.topk(min(count, len(flat))).values[-1]
    among = ((flat >= least) & (flat > -torch.inf)).nonzero()[:, 0]
    best, order = flat[among].sort(descending=True, stable=True)
    places = among[order[:count]].tolist()
    return [(begin + at // width, begin + at // width + at % width, log)
            for at, log in zip(places, best[:count].tolist(), strict=True)]  # fmt: skip


def cut_out(passage: Passage, first: int, last: int) -> str:
    """The text from one token to another, places from 1, without the spaces around it."""
    return passage.text[passage.spans[first - 1][0] : passage.spans[last - 1][1]].strip()
