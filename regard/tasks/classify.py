"""A text in, one of a few labels out, with the probability of each."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from regard.data.batch import Batch
from regard.data.read import Example, escape, quote
from regard.data.tokens import SPECIALS, UNKNOWN
from regard.engine.engine import Engine, engine
from regard.errors import DataError
from regard.models.model import Model
from regard.score.labels import classified
from regard.tasks.loss import token_loss
from regard.tasks.reading import SHOWN, Reads, strangers
from regard.tasks.task import Answer, Evaluation, Foresight, Item, Loss, Token, Wish, runs

IMBALANCE = 10  # times as many examples of one label as of another, beyond which it is said


class Classify(Reads):
    """A label for the whole text, from one vector that is pooled from the states of its tokens."""

    scores: tuple[str, ...] = ("accuracy", "macro_f1", "loss")
    why = "the likeliest label is the answer"

    def loss(self, model: Model, batch: Batch, forcing: float, seed: int) -> Loss:
        assert model.head is not None
        read = model(batch)
        pooled_BD = model.head(read.states_BTD, read.mask_BT)
        return token_loss(model.output, pooled_BD[:, None], batch.label_BT, self.smoothing(model), len(SPECIALS))

    def remarks(self, train: Iterable[Example], valid: Iterable[Example]) -> list[str]:
        """How the labels are spread; one label alone is refused, because there is nothing to tell apart."""
        known, asked = (Counter(example.target or "" for example in side) for side in (train, valid))
        if len(known) < 2:
            raise DataError(f"found one label alone, {quote(next(iter(known), ''))}, for all {known.total()} examples, "
                            "expected at least two different ones")  # fmt: skip
        new = strangers(known, asked, "validation examples")
        return [*spread(known), *([f"warning: {new}"] if new else [])]

    def labels_of(self, example: Example) -> list[str]:
        return [example.target or ""]

    @torch.inference_mode()
    def answer(self, model: Model | Engine, items: Sequence[Item], wish: Wish, numbers: Sequence[int]) -> list[Answer]:
        """The likeliest labels of each text, best first."""
        self.refuse_search(wish)
        found: dict[int, Answer] = {}
        for run in runs(items, wish.batch):
            log_BV = self.log_probabilities(model, [items[i] for i in run])
            found.update(zip(run, self.ranked(log_BV, wish.n_best), strict=True))
        return [found[i] for i in range(len(items))]

    def log_probabilities(self, model: Model | Engine, items: Sequence[Item]) -> Tensor:
        """Of each label for each item, by its id: what is no label has none."""
        log_BV = model.output(self.pooled(model, items)[:, None])[:, 0].float()
        return log_BV.index_fill(1, torch.arange(len(SPECIALS), device=log_BV.device), -torch.inf).log_softmax(-1)

    def ranked(self, log_BV: Tensor, count: int) -> list[Answer]:
        """The labels of each row, best first; among equals the more frequent."""
        logs, ids = (
            each[:, : self.labels_known].tolist() for each in log_BV.sort(dim=-1, descending=True, stable=True)
        )
        return [self.named(log, id, count) for log, id in zip(logs, ids, strict=True)]

    @property
    def labels_known(self) -> int:
        return self.vocabulary.target.size - len(SPECIALS)

    def named(self, logs: list[float], ids: list[int], count: int) -> Answer:
        """The likeliest label, with `count` of the best beside it and the chances of all."""
        texts = [self.vocabulary.target.decode([id]) for id in ids]
        sure = [math.exp(log) for log in logs]
        made = [Answer(text, log, chance, (id,), probability=chance, lowest=chance)
                for text, log, chance, id in zip(texts[:count], logs, sure, ids, strict=False)]  # fmt: skip
        return replace(made[0], alternatives=tuple(made), chances=tuple(zip(texts, sure, strict=True)))

    def foresee(self, model: Model, items: Sequence[Item], answers: Sequence[Answer]) -> list[Foresight]:
        """The label."""
        log_BV = self.log_probabilities(model, items)
        return [Foresight(log_V[None], answer.tokens) for log_V, answer in zip(log_BV, answers, strict=True)]

    def pieces(self, item: Item, answer: Answer) -> tuple[Token, ...]:
        return (Token(answer.text, 0, len(answer.text), answer.tokens[0]),)

    @torch.inference_mode()
    def evaluate(
        self, model: Model, items: Sequence[Item], examples: Sequence[Example], wish: Wish, intervals: bool = True,
        precision: str = "fp32",
    ) -> Evaluation:  # fmt: skip
        """How many labels are right, over all and class by class; a label that training never saw is always missed."""
        decoding, answers, total, known = engine(model, precision), {}, 0.0, 0
        for run in runs(items, 64):
            log_BV = self.log_probabilities(decoding, [items[i] for i in run])
            for i, log_V, given in zip(run, log_BV, self.ranked(log_BV, 1), strict=True):
                answers[i] = replace(given, chances=())
                if (label := items[i].target[0]) != UNKNOWN:
                    total, known = total - float(log_V[label]), known + 1
        outputs = tuple(answers[i].text for i in range(len(items)))
        scores = classified(outputs, [example.target or "" for example in examples], 1000 if intervals else 0)
        facts = {"loss": total / max(known, 1), "majority": scores.majority}
        return Evaluation(
            scores.metrics, outputs, facts, tuple(answers[i] for i in range(len(items))), scores.confusion,
            tallies=scores.tallies,
        )  # fmt: skip


def spread(labels: Counter[str]) -> list[str]:
    """A note on how many labels there are, and a warning where few examples stand against many."""
    (most, often), *_, (least, seldom) = labels.most_common()
    share = 100.0 * often / labels.total()
    shown = ", ".join(f"{escape(label[:24])} {count:,}" for label, count in labels.most_common(SHOWN))
    more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
    notes = [f"{len(labels)} labels: {shown}{more}; always saying {quote(most, 24)} would be right for {share:.1f} %"]
    if often > IMBALANCE * seldom:
        notes.append(
            f"warning: imbalanced labels: {quote(most, 24)} has {often:,} examples, {quote(least, 24)} {seldom:,}; "
            "accuracy goes by the frequent ones, macro F1 weighs every label the same"
        )
    return notes
