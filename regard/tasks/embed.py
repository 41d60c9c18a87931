"""A text in, a vector of length 1 out; texts that belong together are near each other.

Both sides of a pair are read by the same body. A text is to find its partner among those of its batch, and the partner
the text: the contrastive loss of van den Oord et al. (2018), https://arxiv.org/abs/1807.03748, in both directions.
"""

import json
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.data.batch import Batch
from regard.data.ragged import join, repeated
from regard.data.read import Example
from regard.data.shards import Rows
from regard.data.tokens import PAD, Encoding
from regard.engine.engine import Engine, engine
from regard.errors import UsageError
from regard.layers.pool import segments
from regard.models.model import Model
from regard.score.intervals import Bootstrap
from regard.score.metrics import measured
from regard.score.retrieval import RETRIEVAL, Vectors, nearest, rank_tallies, ranks
from regard.tasks.reading import Reads, read_states
from regard.tasks.task import Answer, Evaluation, Foresight, Item, Loss, Wish, runs

Make = Callable[[Model | Engine, Sequence[Sequence[int]]], Tensor]  # sources to vectors

DIGITS = 6  # of a number in a vector that is written as text


class Embed(Reads):
    """One vector for a text: pooled states, projected, made as long as 1.

    In a batch the sources are sources and the targets labels, so that pairs stay pairs wherever a batch is cut.
    """

    scores: tuple[str, ...] = RETRIEVAL
    why = "a text has one vector"

    def encode(self, example: Example, folder: str) -> Item:
        return Item(self.ask(example.source, folder).source, self.target(example.target or ""))

    def target(self, text: str) -> tuple[int, ...]:
        return (*self.vocabulary.target.encode(text).ids, self.last)

    def encode_all(self, examples: Sequence[Example], folder: str) -> Rows:
        """What `encode` gives for each, sooner."""
        last = repeated(self.last, len(examples))
        rows = super().encode_all(examples, folder)
        return Rows(rows.source, join(rows.target, last))

    def encoded(self, columns: Sequence[str]) -> Encoding:
        """A text alone may be a target too, where sources are several columns."""
        if len(columns) == 1 and len(self.vocabulary.is_tags) > 1:
            return self.vocabulary.target.encode(columns[0])
        return super().encoded(columns)

    # ── learning ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def loss(self, model: Model, batch: Batch, forcing: float, seed: int) -> Loss:
        """Summed over pairs. Who else is in a batch decides what a text is told apart from.

        So a batch that is cut, for want of memory or between processes, has fewer to tell apart.
        """
        real_B = (batch.label_BT != PAD).any(1)
        source_ND = self.projected(model, batch.source)[real_B]
        target_ND = self.projected(model, partners(batch.source, batch.label_BT, real_B))[real_B]
        same_NN = same_rows(batch.source[real_B]) | same_rows(batch.label_BT[real_B])
        return Loss(contrast(source_ND @ target_ND.t() / self.config.head.temperature, same_NN), len(same_NN))

    def projected(self, model: Model, source_BS: Tensor) -> Tensor:
        """The vectors of a padded batch, in which every row has a token."""
        assert model.head is not None
        read = model(Batch(source_BS, source_BS != PAD, None, source_BS))
        pooled_BD = model.head(read.states_BTD, read.mask_BT)
        return F.normalize(model.output(pooled_BD[:, None])[:, 0], dim=-1)

    # ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @torch.inference_mode()
    def answer(self, model: Model | Engine, items: Sequence[Item], wish: Wish, numbers: Sequence[int]) -> list[Answer]:
        """Each text's vector, as a JSON list."""
        self.refuse_search(wish)
        if wish.n_best > 1:
            raise UsageError(f"{self.why}: only --batch, --json and --precision apply to the task embed")
        found: dict[int, Answer] = {}
        for run in runs(items, wish.batch):
            vectors_BV = self.vectors(model, [items[i].source for i in run])
            found.update({i: spelled(row_V) for i, row_V in zip(run, vectors_BV, strict=True)})
        return [found[i] for i in range(len(items))]

    def vectors(self, model: Model | Engine, sources: Sequence[Sequence[int]]) -> Tensor:
        """One vector for each source, whatever the others are."""
        pooled_BD = self.pooled(model, [Item(tuple(source), ()) for source in sources])
        return F.normalize(model.output(pooled_BD[:, None])[:, 0].float(), dim=-1)

    def foresee(self, model: Model, items: Sequence[Item], answers: Sequence[Answer]) -> list[Foresight]:
        """Nothing is foreseen; but the texts are read, for whoever listens."""
        self.vectors(model, [item.source for item in items])
        return super().foresee(model, items, answers)

    @torch.inference_mode()
    def evaluate(
        self, model: Model, items: Sequence[Item], examples: Sequence[Example], wish: Wish, intervals: bool = True,
        precision: str = "fp32",
    ) -> Evaluation:  # fmt: skip
        """How well each source finds its target among all different targets of the set."""
        decoding = engine(model, precision)
        texts = list(dict.fromkeys(example.target or "" for example in examples))
        place = {text: number for number, text in enumerate(texts)}
        right = [place[example.target or ""] for example in examples]
        ids = {number: item.target for number, item in zip(right, items, strict=True)}
        queries = gathered(self.vectors, decoding, [item.source for item in items])
        corpus = gathered(self.vectors, decoding, [ids[number] for number in range(len(texts))])
        found, (best, _) = ranks(queries, corpus, right), nearest(queries, corpus, 1)
        bootstrap = Bootstrap(samples=1000 if intervals else 0)
        tallies = rank_tallies(found, len(texts), bootstrap)
        facts = {"targets": float(len(texts)), "median_rank": float(np.median(found))}
        outputs = tuple(texts[number] for number in best[:, 0])
        return Evaluation(measured(tallies, bootstrap), outputs, facts, tallies=tallies)


def partners(source_BS: Tensor, label_BT: Tensor, real_B: Tensor) -> Tensor:
    """The labels; in place of a row that has none, its source, so that there is something to read."""
    if real_B.all():
        return label_BT
    wide = max(source_BS.shape[1], label_BT.shape[1])
    source, label = (F.pad(each, (0, wide - each.shape[1]), value=PAD) for each in (source_BS, label_BT))
    return torch.where(real_B[:, None], label, source)


def same_rows(ids_NT: Tensor) -> Tensor:
    """Which rows are the same as which."""
    number_N = torch.unique(ids_NT, dim=0, return_inverse=True)[1]
    same_NN: Tensor = number_N[:, None] == number_N
    return same_NN


def contrast(score_NN: Tensor, same_NN: Tensor) -> Tensor:
    """Σ over pairs of − log of the share that a text's own partner has, the mean of both directions.

    Pairs with the same text on one side are no rivals: either partner would be right.
    """
    right_N = torch.arange(len(score_NN), device=score_NN.device)
    rivals_NN = score_NN.float().masked_fill(same_NN & (right_N[:, None] != right_N), -torch.inf)
    return (F.cross_entropy(rivals_NN, right_N, reduction="sum")
            + F.cross_entropy(rivals_NN.t(), right_N, reduction="sum")) / 2  # fmt: skip


def spelled(vector_V: Tensor) -> Answer:
    numbers = [float(f"{number:.{DIGITS}g}") for number in vector_V.tolist()]
    return Answer(json.dumps(numbers, separators=(",", ":")), 0.0, 1.0)


# ── vectors of any body ──────────────────────────────────────────────────────────────────────────────────────────────


def body_vectors(model: Model | Engine, sources: Sequence[Sequence[int]]) -> Tensor:
    """Of a body that was made for another task: the mean of its states at the tokens of a source, as long as 1."""
    states = read_states(model, sources)
    count_B = torch.tensor([len(each) for each in states], device=states[0].device)
    return F.normalize(segments(torch.cat(states), count_B, "mean").float(), dim=-1)


@torch.inference_mode()
def gathered(make: Make, model: Model | Engine, sources: Sequence[Sequence[int]], batch: int = 64) -> Vectors:
    """A vector for each source, in order; sources of similar length are read together."""
    found: dict[int, Vectors] = {}
    for run in runs([Item(tuple(source), ()) for source in sources], batch):
        found.update(zip(run, make(model, [sources[i] for i in run]).cpu().numpy(), strict=True))
    return np.stack([found[i] for i in range(len(sources))])
