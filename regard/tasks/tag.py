"""Tokens in, one label for each out: parts of speech, names, slots, the parts of an address.

Tokens stand between spaces; a no-break space inside one stands for a space. What reads them may cut them finer, into
characters or subwords. The label then stands at the last piece of its token, for every body alike: one that sees only
the past has by then seen the whole token.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from regard import config
from regard.data.batch import Batch, cut, pad
from regard.data.read import Columns, Example
from regard.data.tokens import PAD, SPECIALS, TOKEN, UNKNOWN, Encoding
from regard.data.vocabulary import Vocabulary
from regard.engine.engine import Engine, engine
from regard.errors import DataError
from regard.layers.crf import Chain
from regard.models.model import Model
from regard.score.intervals import Bootstrap
from regard.score.metrics import measured
from regard.score.spans import OUTSIDE, marks_spans, tag_tallies
from regard.tasks.loss import token_loss
from regard.tasks.reading import ReadsPlaces, best_rows, read_states, strangers
from regard.tasks.task import Answer, Evaluation, Foresight, Item, Loss, Token, Wish, runs

FIRST = len(SPECIALS)  # label
Labelled = tuple[tuple[int, ...], float, float]  # ids of labels, log probability of all, and of the least sure one
NO_LABEL: Labelled = ((), 0.0, 0.0)


@dataclass(frozen=True)
class Found:
    """What a body makes of one text: the scores of the labels of each token, and the best labellings."""

    log_TV: Tensor
    best: list[Labelled]


class Tag(ReadsPlaces):
    """A label for each token, from the state at its last piece; each on its own, or all together by a chain."""

    scores: tuple[str, ...] = ("accuracy", "f1", "loss")
    why = "each token has its likeliest label"
    counted = "tokens"

    def __init__(self, c: config.Config, vocabulary: Vocabulary) -> None:
        super().__init__(c, vocabulary)
        self.with_spans = marks_spans(vocabulary.target.decode([id]) for id in range(FIRST, vocabulary.target.size))
        self.scores = ("f1", "accuracy", "loss") if self.with_spans else ("accuracy", "loss")
        # What was not read has no label of its own: O, or the most frequent one, so that every token has one.
        self.filler = next(iter(vocabulary.target.encode(OUTSIDE).ids), UNKNOWN)
        self.filler = FIRST if self.filler == UNKNOWN else self.filler

    @property
    def beyond(self) -> str:  # type: ignore[override]
        """What is said of a text that was cut."""
        return f"tokens beyond have the label {self.vocabulary.target.decode([self.filler])} unread"

    def labels_of(self, example: Example) -> list[str]:
        return (example.target or "").split()

    def remarks(self, train: Iterable[Example], valid: Iterable[Example]) -> list[str]:
        """Labels that are validated with and were never trained on."""
        known, asked = (Counter(label for example in side for label in self.labels_of(example)) for side in
                        (train, valid))  # fmt: skip
        new = strangers(known, asked, "validation tokens")
        return [f"warning: {new}"] if new else []

    def columns(self) -> Columns:
        return replace(super().columns(), tagged=True)

    # ── a text as numbers ────────────────────────────────────────────────────────────────────────────────────────────

    def encode(self, example: Example, folder: str) -> Item:
        """An item whose target has, at each place that the body reads, the label of the token that ends there."""
        read, labels = self.encoded(example.source), self.vocabulary.target.encode(example.target or "")
        places = self.places(read, example.source[0])
        if len(places) != len(labels.ids):
            raise DataError(f"found {len(places)} tokens and {len(labels.ids)} labels, expected as many of each, "
                            "with spaces between them")  # fmt: skip
        return Item((*read.ids, self.last), laid(places, labels.ids))

    def ask(self, columns: Sequence[str], folder: str) -> Item:
        """Places that are to be labelled have the label UNKNOWN."""
        read = self.encoded(columns)
        places = self.places(read, columns[0])
        return Item((*read.ids, self.last), laid(places, [UNKNOWN] * len(places)))

    def encoded(self, columns: Sequence[str]) -> Encoding:
        """What is read. Every token has a place in it: one that holds nothing to be read, such as a lone no-break space
        among words, is UNKNOWN."""
        read = super().encoded(columns)
        ids, spans, before = list(read.ids), list(read.spans), -1
        for token, last in zip(TOKEN.finditer(columns[0]), self.places(read, columns[0]), strict=True):
            if last == before:
                at = last + 1 + len(ids) - len(read.ids)
                ids.insert(at, UNKNOWN)
                spans.insert(at, token.span())
            before = last
        return Encoding(tuple(ids), tuple(spans))

    def places(self, read: Encoding, text: str) -> list[int]:
        """Where each token of the first column ends, among the places that the body has."""
        starts = [read.spans[place][0] for place in self.vocabulary.source.heads(read.ids)]
        found, at = [], 0
        for token in TOKEN.finditer(text):
            while at < len(starts) and starts[at] < token.end():
                at += 1
            found.append(at - 1)
        return found

    def labels(self, items: Sequence[Item]) -> Tensor:
        """As wide as what the body reads; a text that was cut has fewer."""
        counts = [len(self.vocabulary.source.heads(item.source)) for item in items]
        rows = [item.target[: count - 1] for item, count in zip(items, counts, strict=True)]
        return pad([(*row, *(PAD,) * (count - len(row))) for row, count in zip(rows, counts, strict=True)])

    # ── learning ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def loss(self, model: Model, batch: Batch, forcing: float, seed: int) -> Loss:
        states_BTD = model(batch).states_BTD
        if model.head is None:
            return token_loss(model.output, states_BTD, batch.label_BT, self.smoothing(model), FIRST)
        assert isinstance(model.head, Chain)
        real_BT = batch.label_BT != PAD
        emissions = model.output(side_by_side(states_BTD, real_BT))[..., FIRST:].float()
        labels = (side_by_side(batch.label_BT, real_BT) - FIRST).clamp(min=0)
        log_B = model.head.log_likelihood(emissions, labels, first_places(real_BT.sum(1), labels.shape[1]))
        return Loss(-log_B.sum(), int(real_BT.sum()))

    # ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @torch.inference_mode()
    def answer(self, model: Model | Engine, items: Sequence[Item], wish: Wish, numbers: Sequence[int]) -> list[Answer]:
        """The likeliest labels of each text, best first."""
        self.refuse_search(wish)
        found = dict(self.labelled(model, items, wish.batch, wish.n_best))
        return [self.named(found[i], items[i]) for i in range(len(items))]

    def labelled(
        self, model: Model | Engine, items: Sequence[Item], batch: int, count: int
    ) -> Iterator[tuple[int, Found]]:
        """Each item's number and what was found; by an engine every chain alone, so that no mate changes a bit."""
        head = (model.model if isinstance(model, Engine) else model).head
        for run in runs(items, batch):
            scores = self.emissions(model, [items[i] for i in run])
            if not isinstance(head, Chain):
                yield from zip(run, (apart(each.log_softmax(-1), count) for each in scores), strict=True)
                continue
            for some in cut(range(len(run)), [1] * len(run), 1 if isinstance(model, Engine) else batch):
                found = together(head, [scores[row] for row in some], count)
                yield from zip([run[row] for row in some], found, strict=True)

    def emissions(self, model: Model | Engine, items: Sequence[Item]) -> list[Tensor]:
        """The score of every label at each token of each item: (tokens, labels)."""
        states = []
        for item, states_TD in zip(items, read_states(model, [item.source for item in items]), strict=True):
            places = [place for place, label in enumerate(item.target[: len(states_TD) - 1]) if label != PAD]
            states.append(states_TD[places])
        scores = model.output(torch.cat(states)[None])[0].float()[:, FIRST:]
        return list(torch.split(scores, [len(each) for each in states]))

    def named(self, found: Found, item: Item) -> Answer:
        """The labels by their names; after what was read, one for each token that was cut off."""
        made, missing = [], sum(label != PAD for label in item.target) - len(found.log_TV)
        for labels, log, lowest in found.best:
            ids, sure = (*(FIRST + label for label in labels), *(self.filler,) * missing), math.exp(log)
            text = self.vocabulary.target.decode(ids)
            made.append(Answer(text, log, sure, ids, probability=sure, lowest=math.exp(lowest)))
        return replace(made[0], alternatives=tuple(made))

    # ── looking in ───────────────────────────────────────────────────────────────────────────────────────────────────

    def foresee(self, model: Model, items: Sequence[Item], answers: Sequence[Answer]) -> list[Foresight]:
        """The label of each token; of a chain, whatever the others are."""
        found = dict(self.labelled(model, items, len(items), 1))
        made = []
        for i, (item, answer) in enumerate(zip(items, answers, strict=True)):
            log_TV = F.pad(found[i].log_TV, (FIRST, 0), value=-math.inf)
            at = tuple(place for place, label in enumerate(item.target) if label != PAD)[: len(log_TV)]
            made.append(Foresight(log_TV, answer.tokens[: len(log_TV)], at))
        return made

    def pieces(self, item: Item, answer: Answer) -> tuple[Token, ...]:
        """Of a text that was cut, the labels that were read off it."""
        places = len(self.vocabulary.source.heads(item.source)) - 1
        count = sum(label != PAD for label in item.target[:places])
        words = [self.vocabulary.target.decode([id]) for id in answer.tokens[:count]]
        starts = accumulate([0, *(len(word) + 1 for word in words)])
        return tuple(Token(word, start, start + len(word), id)
                     for word, start, id in zip(words, starts, answer.tokens, strict=False))  # fmt: skip

    # ── scores ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def is_right(self, text: str, target: str) -> bool:
        """Whether all labels are; how far they stand apart says nothing."""
        return text.split() == target.split()

    @torch.inference_mode()
    def evaluate(
        self, model: Model, items: Sequence[Item], examples: Sequence[Example], wish: Wish, intervals: bool = True,
        precision: str = "fp32",
    ) -> Evaluation:  # fmt: skip
        """How many labels, and spans, are right; a label that training never saw is always missed."""
        answers: dict[int, Answer] = {}
        total, known, unseen = 0.0, 0, 0
        for i, found in self.labelled(engine(model, precision), items, 64, 1):
            answers[i] = self.named(found, items[i])
            labels = [label for label in items[i].target if label != PAD][: len(found.log_TV)]
            foreseen = [
                log_V[label - FIRST] for log_V, label in zip(found.log_TV, labels, strict=True) if label >= FIRST
            ]
            total, known = total - float(sum(foreseen)), known + len(foreseen)
            unseen += len(labels) - len(foreseen)
        outputs = tuple(answers[i].text for i in range(len(items)))
        true = [(example.target or "").split() for example in examples]
        bootstrap = Bootstrap(samples=1000 if intervals else 0)
        tallies = tag_tallies([text.split() for text in outputs], true, self.with_spans, bootstrap)
        right = sum(self.is_right(text, example.target or "") for text, example in zip(outputs, examples, strict=True))
        facts = {"loss": total / max(known, 1), "exact": 100.0 * right / max(len(items), 1), "unseen": float(unseen)}
        given = tuple(answers[i] for i in range(len(items)))
        return Evaluation(measured(tallies, bootstrap), outputs, facts, given, tallies=tallies)


def laid(places: Sequence[int], labels: Sequence[int]) -> tuple[int, ...]:
    """Labels at their places, PAD at the others before them."""
    row = [PAD] * (places[-1] + 1 if places else 0)
    for place, label in zip(places, labels, strict=True):
        row[place] = label
    return tuple(row)


def side_by_side(values: Tensor, real_BT: Tensor) -> Tensor:
    """The values at real places, row by row from the first place on, with zeros after them."""
    mask = first_places(real_BT.sum(1), max(1, int(real_BT.sum(1).max())))
    found = values.new_zeros((*mask.shape, *values.shape[2:]))
    found[mask] = values[real_BT]
    return found


def first_places(counts: Tensor, length: int) -> Tensor:
    """The mask of rows that have so many places."""
    return torch.arange(length, device=counts.device) < counts[:, None]


def apart(log_TV: Tensor, count: int) -> Found:
    """Each token by itself."""
    rows = best_rows(log_TV, min(count, log_TV.shape[-1]), count)
    return Found(log_TV, [(labels, sum(logs), min(logs, default=0.0)) for labels, logs in rows])


def together(chain: Chain, scores: Sequence[Tensor], count: int) -> list[Found]:
    """All tokens of a text at once; how sure one is, whatever the others are, is its marginal."""
    emissions_BTV = pad_sequence(list(scores), batch_first=True)
    if not emissions_BTV.shape[1]:
        return [Found(each, [NO_LABEL]) for each in scores]
    lengths = torch.tensor([len(each) for each in scores], device=emissions_BTV.device)
    mask_BT = first_places(lengths, emissions_BTV.shape[1])
    labels_BNT, log_BN = chain.best(emissions_BTV, mask_BT, count)
    sure_BTV = chain.log_marginals(emissions_BTV, mask_BT)
    return [chosen(labels_NT[:, :length], log_N, sure_TV[:length]) for labels_NT, log_N, sure_TV, length in
            zip(labels_BNT, log_BN, sure_BTV, lengths.tolist(), strict=True)]  # fmt: skip


def chosen(labels_NT: Tensor, log_N: Tensor, sure_TV: Tensor) -> Found:
    """The labellings of one text that are possible at all."""
    if not len(sure_TV):
        return Found(sure_TV, [NO_LABEL])
    lowest_N = sure_TV.T.gather(0, labels_NT).amin(1)
    rows = zip(labels_NT.tolist(), log_N.tolist(), lowest_N.tolist(), strict=True)
    return Found(sure_TV, [(tuple(labels), log, lowest) for labels, log, lowest in rows if log > -math.inf])
