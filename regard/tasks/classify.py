"""A text in, one of a few labels out, with the probability of each."""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from regard.data.batch import Batch
from regard.data.read import Example
from regard.data.tokens import PAD, SPECIALS, UNKNOWN
from regard.engine.engine import Engine, engine
from regard.models.model import Model
from regard.score.labels import classified
from regard.tasks.loss import token_loss
from regard.tasks.reading import Reads
from regard.tasks.task import Answer, Evaluation, Item, Loss, Wish, runs


class Classify(Reads):
    """A label for the whole text, from one vector that is pooled from the states of its tokens."""

    scores: tuple[str, ...] = ("accuracy", "macro_f1", "loss")
    why = "the likeliest label is the answer"

    def loss(self, model: Model, batch: Batch, forcing: float, seed: int) -> Loss:
        assert model.head is not None
        read = model(batch)
        pooled_BD = model.head(read.states_BTD, read.mask_BT)
        return token_loss(model.output, pooled_BD[:, None], batch.label_BT, self.smoothing(model))

    @torch.inference_mode()
    def answer(self, model: Model | Engine, items: Sequence[Item], wish: Wish, numbers: Sequence[int]) -> list[Answer]:
        """The likeliest labels of each text, best first."""
        self.refuse_search(wish)
        found: dict[int, Answer] = {}
        for run in runs(items, wish.batch):
            for i, log_V in zip(run, self.log_probabilities(model, [items[i] for i in run]), strict=True):
                found[i] = self.ranked(log_V, wish.n_best)
        return [found[i] for i in range(len(items))]

    def log_probabilities(self, model: Model | Engine, items: Sequence[Item]) -> Tensor:
        """Of each label for each item, by its id: what is no label has none."""
        log_NV = model.output(self.pooled(model, items)[:, None])[:, 0].float()
        log_NV[:, : len(SPECIALS)] = -torch.inf
        return log_NV.log_softmax(-1)

    def ranked(self, log_V: Tensor, count: int) -> Answer:
        best = sorted(range(len(SPECIALS), len(log_V)), key=lambda id: (-float(log_V[id]), id))[:count]
        made = tuple(self.named(id, float(log_V[id])) for id in best)
        return replace(made[0], alternatives=made)

    def named(self, id: int, log: float) -> Answer:
        text, sure = self.vocabulary.target.decode([id]), math.exp(log)
        return Answer(text, log, sure, (id,), probability=sure, lowest=sure)

    @torch.inference_mode()
    def evaluate(
        self, model: Model, items: Sequence[Item], examples: Sequence[Example], wish: Wish, intervals: bool = True,
        precision: str = "fp32",
    ) -> Evaluation:  # fmt: skip
        """How many labels are right, over all and class by class; a label that training never saw is always missed."""
        decoding, answers, total, known = engine(model, precision), {}, 0.0, 0
        for run in runs(items, 64):
            for i, log_V in zip(run, self.log_probabilities(decoding, [items[i] for i in run]), strict=True):
                answers[i] = self.ranked(log_V, 1)
                if (label := items[i].target[0]) not in (UNKNOWN, PAD):
                    total, known = total - float(log_V[label]), known + 1
        outputs = tuple(answers[i].text for i in range(len(items)))
        scores = classified(outputs, [example.target or "" for example in examples], 1000 if intervals else 0)
        facts = {"loss": total / max(known, 1), "majority": scores.majority}
        return Evaluation(
            scores.metrics, outputs, facts, tuple(answers[i] for i in range(len(items))), scores.confusion
        )
