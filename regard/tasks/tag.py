"""Tokens in, one label for each out: parts of speech, names, slots, the parts of an address.

Tokens stand between spaces; a no-break space inside one stands for a space. What reads them may cut them finer, into
characters or subwords. The label then stands at the last piece of its token, for every body alike: one that sees only
the past has by then seen the whole token.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from regard import config
from regard.data.batch import Batch, pad
from regard.data.ragged import ragged
from regard.data.read import Example
from regard.data.shards import Rows
from regard.data.tokens import PAD, SPECIALS, TOKEN, UNKNOWN, Encoding
from regard.data.vocabulary import Vocabulary
from regard.engine.engine import Engine, engine
from regard.errors import DataError
from regard.layers.crf import Chain
from regard.models.model import Model
from regard.score.spans import marks_spans, tagged
from regard.tasks.loss import token_loss
from regard.tasks.reading import Reads, best_rows, read_states
from regard.tasks.task import Answer, Evaluation, Item, Loss, Wish, runs

FIRST = len(SPECIALS)  # label
Labelled = tuple[tuple[int, ...], float, float]  # ids of labels, log probability of all, and of the least sure one


@dataclass(frozen=True)
class Found:
    """What a body makes of one text: the scores of the labels of each token, and the best labellings."""

    log_TV: Tensor
    best: list[Labelled]


class Tag(Reads):
    """A label for each token, from the state at its last piece; each on its own, or all together by a chain."""

    scores: tuple[str, ...] = ("accuracy", "f1", "loss")
    why = "each token has its likeliest label"

    def __init__(self, c: config.Config, vocabulary: Vocabulary) -> None:
        super().__init__(c, vocabulary)
        self.with_spans = marks_spans(vocabulary.target.decode([id]) for id in range(FIRST, vocabulary.target.size))
        self.scores = ("f1", "accuracy", "loss") if self.with_spans else ("accuracy", "loss")

    # ── a text as numbers ────────────────────────────────────────────────────────────────────────────────────────────

    def encode(self, example: Example, folder: str) -> Item:
        """An item whose target has, at each place that the body reads, the label of the token that ends there."""
        read, labels = (
            self.vocabulary.encode_source(example.source),
            self.vocabulary.target.encode(example.target or ""),
        )
        places = self.places(read, example.source[0])
        if len(places) != len(labels.ids):
            raise DataError(f"found {len(places)} tokens and {len(labels.ids)} labels, expected as many of each, "
                            "with spaces between them")  # fmt: skip
        return Item((*read.ids, self.last), laid(places, labels.ids))

    def encode_all(self, examples: Sequence[Example], folder: str) -> Rows:
        items = [self.encode(example, folder) for example in examples]
        return Rows(ragged([item.source for item in items]), ragged([item.target for item in items]))

    def ask(self, columns: Sequence[str], folder: str) -> Item:
        """Places that are to be labelled have the label UNKNOWN."""
        read = self.vocabulary.encode_source(columns)
        places = self.places(read, columns[0])
        return Item((*read.ids, self.last), laid(places, [UNKNOWN] * len(places)))

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
            return token_loss(model.output, states_BTD, batch.label_BT, self.smoothing(model))
        assert isinstance(model.head, Chain)
        row, column = (batch.label_BT != PAD).nonzero(as_tuple=True)
        counts = (batch.label_BT != PAD).sum(1)
        states = side_by_side(states_BTD[row, column], counts)
        label_BT = side_by_side(batch.label_BT[row, column] - FIRST, counts)
        emissions_BTV = model.output(states)[..., FIRST:].float()
        log_B = model.head.log_likelihood(emissions_BTV, label_BT, lengths_mask(counts, label_BT.shape[1]))
        return Loss(-log_B.sum(), len(row))

    # ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @torch.inference_mode()
    def answer(self, model: Model | Engine, items: Sequence[Item], wish: Wish, numbers: Sequence[int]) -> list[Answer]:
        """The likeliest labels of each text, best first."""
        self.refuse_search(wish)
        found = dict(self.labelled(model, items, wish.batch, wish.n_best))
        return [self.named(found[i].best) for i in range(len(items))]

    def labelled(
        self, model: Model | Engine, items: Sequence[Item], batch: int, count: int
    ) -> Iterator[tuple[int, Found]]:
        """Each item's number and what was found."""
        head = (model.model if isinstance(model, Engine) else model).head
        for run in runs(items, batch):
            label_BT = self.labels([items[i] for i in run])
            states = [states_TD[row_T[: len(states_TD)] != PAD] for row_T, states_TD in
                      zip(label_BT, read_states(model, [items[i].source for i in run]), strict=True)]  # fmt: skip
            log_BTV = model.output(pad_sequence(states, batch_first=True)).float()[..., FIRST:]
            lengths = torch.tensor([len(each) for each in states], device=log_BTV.device)
            if isinstance(head, Chain):
                yield from zip(run, together(head, log_BTV, lengths, count), strict=True)
            else:
                yield from zip(run, apart(log_BTV.log_softmax(-1), lengths, count), strict=True)

    def named(self, best: Sequence[Labelled]) -> Answer:
        made = []
        for labels, log, lowest in best:
            ids, sure = tuple(FIRST + label for label in labels), math.exp(log)
            text = self.vocabulary.target.decode(ids)
            made.append(Answer(text, log, sure, ids, probability=sure, lowest=math.exp(lowest)))
        return replace(made[0], alternatives=tuple(made))

    # ── scores ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @torch.inference_mode()
    def evaluate(
        self, model: Model, items: Sequence[Item], examples: Sequence[Example], wish: Wish, intervals: bool = True,
        precision: str = "fp32",
    ) -> Evaluation:  # fmt: skip
        """How many labels, and spans, are right; a label that training never saw is always missed."""
        answers: dict[int, Answer] = {}
        total, known, unseen = 0.0, 0, 0
        for i, found in self.labelled(engine(model, precision), items, 64, 1):
            answers[i] = self.named(found.best)
            labels = [label for label in items[i].target if label != PAD][: len(found.log_TV)]
            foreseen = [
                log_V[label - FIRST] for log_V, label in zip(found.log_TV, labels, strict=True) if label >= FIRST
            ]
            total, known = total - float(sum(foreseen)), known + len(foreseen)
            unseen += len(labels) - len(foreseen)
        outputs = tuple(answers[i].text for i in range(len(items)))
        true = [(example.target or "").split() for example in examples]
        metrics = tagged([text.split() for text in outputs], true, self.with_spans, 1000 if intervals else 0)
        right = sum(text.split() == labels for text, labels in zip(outputs, true, strict=True))
        facts = {"loss": total / max(known, 1), "exact": 100.0 * right / max(len(items), 1), "unseen": float(unseen)}
        return Evaluation(metrics, outputs, facts, tuple(answers[i] for i in range(len(items))))


def laid(places: Sequence[int], labels: Sequence[int]) -> tuple[int, ...]:
    """Labels at their places, PAD at the others before them."""
    row = [PAD] * (places[-1] + 1 if places else 0)
    for place, label in zip(places, labels, strict=True):
        row[place] = label
    return tuple(row)


def side_by_side(rows: Tensor, counts: Tensor) -> Tensor:
    """Rows one after another, `counts` of them for each text, as a batch with zeros after the shorter ones."""
    mask = lengths_mask(counts, max(1, int(counts.max())))
    found = rows.new_zeros((*mask.shape, *rows.shape[1:]))
    found[mask] = rows
    return found


def lengths_mask(counts: Tensor, length: int) -> Tensor:
    return torch.arange(length, device=counts.device) < counts[:, None]


def apart(log_BTV: Tensor, lengths: Tensor, count: int) -> Iterator[Found]:
    """Each token by itself."""
    for log_TV, length in zip(log_BTV, lengths.tolist(), strict=True):
        few = min(count, log_TV.shape[-1])
        best = [(labels, sum(logs), min(logs, default=0.0)) for labels, logs in best_rows(log_TV[:length], few, count)]
        yield Found(log_TV[:length], best)


def together(chain: Chain, emissions_BTV: Tensor, lengths: Tensor, count: int) -> Iterator[Found]:
    """All tokens of a text at once; how sure one is, whatever the others are, is its marginal."""
    if not emissions_BTV.shape[1]:
        yield from (Found(each_TV, [((), 0.0, 0.0)]) for each_TV in emissions_BTV)
        return
    mask_BT = lengths_mask(lengths, emissions_BTV.shape[1])
    labels_BNT, log_BN = chain.best(emissions_BTV, mask_BT, count)
    sure_BTV = chain.log_marginals(emissions_BTV, mask_BT)
    for row, length in enumerate(lengths.tolist()):
        best: list[Labelled] = []
        for label_T, log in zip(labels_BNT[row, :, :length], log_BN[row].tolist(), strict=True):
            lowest = min(sure_BTV[row, range(length), label_T].tolist(), default=0.0)
            best.append((tuple(label_T.tolist()), log if length else 0.0, lowest))
        yield Found(sure_BTV[row, :length], [each for each in best if each[1] > -math.inf][: count if length else 1])
