"""A text with hidden tokens in, the tokens out: masked language modelling (Devlin et al. 2019).

In a text to be filled, `[mask]` stands for one hidden token.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from regard import config
from regard.data.batch import Batch, mix, pad
from regard.data.read import Columns, Example
from regard.data.tokens import END, MASK, PAD, SPECIALS
from regard.data.vocabulary import Vocabulary
from regard.models.model import Model
from regard.score import Metric, perplexity
from regard.score.intervals import wilson_interval
from regard.tasks.loss import token_loss
from regard.tasks.task import Answer, Evaluation, Item, Loss, Wish
from regard.tasks.transduce import runs

HOLE = "[mask]"


class Fill:
    """The hidden tokens of a text, given all the others on both sides."""

    scores: tuple[str, ...] = ("accuracy", "loss")

    def __init__(self, c: config.Config, vocabulary: Vocabulary) -> None:
        self.config = c
        self.vocabulary = vocabulary

    def columns(self) -> Columns:
        return Columns(self.config.data.source, None)

    def encode(self, example: Example, folder: str) -> Item:
        pieces = [self.vocabulary.source.encode(piece).ids for piece in "\t".join(example.source).split(HOLE)]
        ids = list(pieces[0])
        for piece in pieces[1:]:
            ids += [MASK, *piece]
        return Item((*ids, END), ())

    def batch(self, items: Sequence[Item], numbers: Sequence[int], epoch: int) -> Batch:
        """What is hidden is a pure function of (seed, epoch, number of the example)."""
        hidden = [self.hide(item.source, number, epoch) for item, number in zip(items, numbers, strict=True)]
        source_BS = pad([source for source, _ in hidden])
        return Batch(source_BS, source_BS != PAD, None, pad([label for _, label in hidden]), tuple(numbers))

    def hide(self, ids: tuple[int, ...], number: int, epoch: int) -> tuple[list[int], list[int]]:
        """The ids with some hidden, and labels that are PAD but at the chosen places; at least one is chosen."""
        rule = self.config.fill
        draw = np.random.default_rng(mix(self.config.train.seed, "fill", epoch, number))
        chance = draw.random((2, len(ids) - 1))
        chosen = {int(i) for i in (chance[0] < rule.share).nonzero()[0]} or {int(draw.integers(max(1, len(ids) - 1)))}
        source, label = list(ids), [PAD] * len(ids)
        for place in chosen - {len(ids) - 1}:
            label[place] = ids[place]
            if chance[1, place] < rule.mask:
                source[place] = MASK
            elif chance[1, place] < rule.mask + rule.random:
                source[place] = int(draw.integers(len(SPECIALS), self.vocabulary.source.size))
        return source, label

    def loss(self, model: Model, batch: Batch, forcing: float, seed: int) -> Loss:
        smoothing = self.config.train.label_smoothing if model.training else 0.0
        return token_loss(model.output, model(batch), batch.label_BT, smoothing)

    @torch.inference_mode()
    def answer(self, model: Model, items: Sequence[Item], wish: Wish, numbers: Sequence[int]) -> list[Answer]:
        """Each text with its holes filled by the likeliest tokens, every hole on its own."""
        found: dict[int, Answer] = {}
        for run in runs(items, wish.batch):
            source_BS = pad([items[i].source for i in run]).to(model.output.weight.device)
            log_BSV = model.output(model.encode(source_BS, source_BS != PAD).states_BSM).float().log_softmax(-1)
            log_BSV[..., : len(SPECIALS)] = -torch.inf
            for row, i in enumerate(run):
                found[i] = self.best_fillings(items[i].source, log_BSV[row], max(1, wish.n_best))
        return [found[i] for i in range(len(items))]

    def best_fillings(self, ids: tuple[int, ...], log_SV: Tensor, count: int) -> Answer:
        """The n-th alternative takes the n-th best token at every hole."""
        count = min(count, log_SV.shape[1] - len(SPECIALS))
        best_SN = log_SV.topk(count, -1).indices
        made = []
        for rank in range(count):
            places = [i for i, each in enumerate(ids) if each == MASK]
            filled = [int(best_SN[i, rank]) if each == MASK else each for i, each in enumerate(ids)]
            score = float(sum(log_SV[i, filled[i]] for i in places))
            tokens = tuple(filled[:-1])
            made.append(Answer(self.vocabulary.source.decode(tokens), score, float(np.exp(score)), tokens))
        return Answer(made[0].text, made[0].score, made[0].confidence, made[0].tokens, tuple(made))

    @torch.inference_mode()
    def evaluate(
        self, model: Model, items: Sequence[Item], examples: Sequence[Example], wish: Wish, intervals: bool = True
    ) -> Evaluation:
        """Accuracy and loss at hidden places, the same places whenever the same examples are evaluated."""
        total, right, count = 0.0, 0, 0
        outputs: dict[int, str] = {}
        for run in runs(items, 64):
            batch = self.batch([items[i] for i in run], run, -1).to(model.output.weight.device)
            log_BSV = model.output(model(batch)).float().log_softmax(-1)
            hidden_BS = batch.label_BT != PAD
            total -= float(log_BSV.gather(-1, batch.label_BT[..., None])[..., 0][hidden_BS].double().sum())
            best_BS = log_BSV.argmax(-1)
            right += int((best_BS == batch.label_BT)[hidden_BS].sum())
            count += int(hidden_BS.sum())
            filled_BS = torch.where(hidden_BS, best_BS, batch.source)
            outputs.update({i: self.vocabulary.source.decode(filled_BS[row].tolist()) for row, i in enumerate(run)})
        loss = total / max(count, 1)
        low, high = wilson_interval(right, max(count, 1))
        metric = Metric("accuracy", 100.0 * right / max(count, 1), low, high, True, "hidden places|interval:wilson")
        facts = {"loss": loss, "perplexity": perplexity(loss, 1), "hidden": float(count)}
        return Evaluation({"accuracy": metric}, tuple(outputs[i] for i in range(len(items))), facts)
