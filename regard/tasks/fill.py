"""A text with hidden tokens in, the tokens out: masked language modelling (Devlin et al. 2019).

In a text to be filled, `[mask]` stands for one hidden token. Of subwords, whose tokens hold the space before a word, a
hole after a space is a word, or the beginning of one, with that space; elsewhere it goes on with what stands before.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from regard.data.batch import Batch, mix, pad, scattered
from regard.data.ragged import Numbers, Ragged, join, ragged, repeated
from regard.data.read import Columns, Example
from regard.data.shards import Rows
from regard.data.tokens import BEGINS, END, MASK, PAD, SEPARATOR, SPECIALS, WITHIN, Encoding
from regard.engine.engine import Engine, engine
from regard.models.model import Model
from regard.score import perplexity
from regard.score.intervals import Bootstrap
from regard.score.metrics import measured, ratio
from regard.score.tallies import Statistics
from regard.tasks.loss import NOTHING_JUDGED, judged, token_loss
from regard.tasks.reading import Reads, best_rows, read_states
from regard.tasks.task import Answer, Evaluation, Foresight, Item, Loss, Token, Wish, runs

HOLE = "[mask]"


class Fill(Reads):
    """The hidden tokens of a text, given all the others on both sides."""

    scores: tuple[str, ...] = ("accuracy", "loss")
    why = "holes are filled by their likeliest tokens"

    def columns(self) -> Columns:
        return Columns(self.config.data.source, None)

    def encode(self, example: Example, folder: str) -> Item:
        return Item((*self.vocabulary.encode_source(example.source).ids, END), ())

    def encode_all(self, examples: Sequence[Example], folder: str) -> Rows:
        """What `encode` gives for each, sooner."""
        source = self.vocabulary.encode_sources([example.source for example in examples])
        return Rows(join(source, repeated(END, len(examples))), ragged([()] * len(examples)))

    def ask(self, columns: Sequence[str], folder: str) -> Item:
        """Only in a question does `[mask]` mean a hidden token; in data it is six characters.

        The target tells of each hole what it is, where that is known.
        """
        texts = [text for text, is_tags in zip(columns, self.vocabulary.is_tags, strict=True) if not is_tags]
        kinds = tuple(kind for text in texts for kind in kinds_of_holes(text))
        return Item((*self.encoded(columns).ids, END), kinds if self.vocabulary.source.has_spaces else ())

    def batch(self, items: Sequence[Item], numbers: Sequence[int], epoch: int) -> Batch:
        source, label = self.hide(ragged([item.source for item in items]), np.asarray(numbers), epoch)
        source_BS = pad(source)
        return Batch(source_BS, source_BS != PAD, None, pad(label), tuple(numbers))

    def hide(self, rows: Ragged, numbers: Numbers, epoch: int) -> tuple[Ragged, Ragged]:
        """The ids with some hidden, and labels that are PAD but at the chosen places; at least one a row is chosen.

        What is hidden is a pure function of (seed, epoch, number of the example), whatever else is in the batch.
        """
        rule, seed = self.config.fill, self.config.train.seed
        row, place = np.repeat(numbers, rows.lengths), np.arange(len(rows.ids)) - np.repeat(rows.starts, rows.lengths)
        chance, fate, other = (scattered(mix(seed, word, epoch), row, place) for word in ("hide", "replace", "token"))
        chance = np.where(rows.ids < len(SPECIALS), np.inf, chance)
        limit = np.maximum(np.minimum.reduceat(chance, rows.starts), rule.share)
        chosen = (chance <= np.repeat(limit, rows.lengths)) & (chance < np.inf)
        label = np.where(chosen, rows.ids, PAD)
        token = len(SPECIALS) + (other * (self.vocabulary.source.size - len(SPECIALS))).astype(np.int64)
        new = np.where(fate < rule.mask, MASK, np.where(fate < rule.mask + rule.random, token, rows.ids))
        return Ragged(np.where(chosen, new, rows.ids), rows.lengths), Ragged(label, rows.lengths)

    def loss(self, model: Model, batch: Batch, forcing: float, seed: int) -> Loss:
        return token_loss(model.output, model(batch).states_BTD, batch.label_BT, self.smoothing(model))

    @torch.inference_mode()
    def answer(self, model: Model | Engine, items: Sequence[Item], wish: Wish, numbers: Sequence[int]) -> list[Answer]:
        """Each text with its holes filled by the likeliest tokens, every hole on its own."""
        self.refuse_search(wish)
        found: dict[int, Answer] = {}
        for run in runs(items, wish.batch):
            for i, states_SD in zip(run, read_states(model, [items[i].source for i in run]), strict=True):
                log_TV = self.log_fillings(model, items[i], states_SD)
                found[i] = self.best_fillings(items[i], log_TV, max(1, wish.n_best))
        return [found[i] for i in range(len(items))]

    def holes(self, item: Item) -> list[int]:
        return [place for place, token in enumerate(item.source) if token == MASK]

    def log_fillings(self, model: Model | Engine, item: Item, states_SD: Tensor) -> Tensor:
        """Of each hole the log probability of every token; −∞ of those that can not be filled in."""
        log_TV = model.output(states_SD[None, self.holes(item)])[0].float().log_softmax(-1)
        return log_TV.masked_fill(~self.fillings(item).to(log_TV.device), -torch.inf)

    def best_fillings(self, item: Item, log_TV: Tensor, count: int) -> Answer:
        """The likeliest combinations of one token for each hole, best first."""
        made: list[Answer] = []
        for tokens, logs in best_rows(log_TV, min(count, log_TV.shape[1] - self.first), count):
            chosen = dict(zip(self.holes(item), tokens, strict=True))
            if min(logs, default=0.0) > -math.inf or not made:
                made.append(self.spell([chosen.get(i, each) for i, each in enumerate(item.source)], logs))
        return replace(made[0], alternatives=tuple(made))

    @property
    def first(self) -> int:
        """The first token of text: a hole is never filled by a sign or a tag."""
        return len(SPECIALS) + len(self.vocabulary.source.tags)

    def fillings(self, item: Item) -> Tensor:
        """Which tokens each hole can be filled by, (holes, vocabulary).

        What is filled in has a space before it where the text has one, and none where it has none.
        """
        allowed_TV = torch.ones(len(self.holes(item)), self.vocabulary.source.size, dtype=torch.bool)
        allowed_TV[:, : self.first] = False
        spacing = torch.from_numpy(self.vocabulary.source.spacing)
        for allowed_V, kind in zip(allowed_TV, item.target, strict=False):  # a text that was cut has fewer holes
            if (spacing == kind).any():
                allowed_V[self.first :] = spacing == kind
        return allowed_TV

    def spell(self, ids: list[int], logs: Sequence[float] = ()) -> Answer:
        """Ids without their end as text, a tab between columns; `logs` of what was filled in."""
        columns: list[list[int]] = [[]]
        for id in ids[:-1]:
            columns.append([]) if id == SEPARATOR else columns[-1].append(id)
        text = "\t".join(self.vocabulary.source.decode(column) for column in columns)
        score, lowest = float(sum(logs)), math.exp(min(logs, default=0.0))
        return Answer(text, score, math.exp(score), tuple(ids[:-1]), probability=math.exp(score), lowest=lowest)

    # ── looking in ───────────────────────────────────────────────────────────────────────────────────────────────────

    def encoded(self, columns: Sequence[str]) -> Encoding:
        """What is read and where it stands; a hole where `[mask]` stands."""
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        start = 0
        for number, (text, is_tags) in enumerate(zip(columns, self.vocabulary.is_tags, strict=True)):
            if number:
                ids, spans = [*ids, SEPARATOR], [*spans, (start - 1, start)]
            pieces = [text] if is_tags else text.split(HOLE)
            source = self.vocabulary.source
            encoded = [source.encode_columns(pieces, [True])] if is_tags else source.encode_pieces(pieces)
            for place, (piece, found) in enumerate(zip(pieces, encoded, strict=True)):
                if place:
                    ids, spans = [*ids, MASK], [*spans, (start, start + len(HOLE))]
                    start += len(HOLE)
                ids += found.ids
                spans += [(start + a, start + b) for a, b in found.spans]
                start += len(piece)
            start += 1
        return Encoding(tuple(ids), tuple(spans))

    def foresee(self, model: Model, items: Sequence[Item], answers: Sequence[Answer]) -> list[Foresight]:
        """What fills each hole."""
        made = []
        for item, answer, states_SD in zip(items, answers, model.read([item.source for item in items]), strict=True):
            holes, log_TV = self.holes(item), self.log_fillings(model, item, states_SD)
            made.append(Foresight(log_TV, tuple(answer.tokens[hole] for hole in holes), tuple(holes)))
        return made

    def token(self, item: Item, column: int) -> str:
        return self.vocabulary.source.token(column)

    def pieces(self, item: Item, answer: Answer) -> tuple[Token, ...]:
        until = [len(self.spell([*answer.tokens[:end], END]).text) for end in range(len(answer.tokens) + 1)]
        return tuple(Token(self.token(item, answer.tokens[hole]), until[hole], until[hole + 1], answer.tokens[hole])
                     for hole in self.holes(item))  # fmt: skip

    @torch.inference_mode()
    def evaluate(
        self, model: Model, items: Sequence[Item], examples: Sequence[Example], wish: Wish, intervals: bool = True,
        precision: str = "fp32",
    ) -> Evaluation:  # fmt: skip
        """Accuracy and loss at hidden places, the same places whenever the same examples are evaluated."""
        decoding = engine(model, precision)
        found, outputs, rows = NOTHING_JUDGED, {}, np.zeros((len(items), 2))
        for run in runs(items, 64):
            batch = self.batch([items[i] for i in run], run, -1).to(model.device)
            hidden = [row_S[: len(items[i].source)].tolist() for i, row_S in zip(run, batch.source, strict=True)]
            states_BTD = pad_sequence(read_states(decoding, hidden), batch_first=True)
            more, best_BS = judged(decoding.output, states_BTD, batch.label_BT)
            found += more
            hidden_BS = batch.label_BT != PAD
            right_BS = hidden_BS & (best_BS == batch.label_BT)
            rows[run] = torch.stack([right_BS.sum(1), hidden_BS.sum(1)], 1).cpu().numpy()
            filled_BS = torch.where(hidden_BS, best_BS, batch.source)
            for row, i in enumerate(run):
                outputs[i] = self.spell(filled_BS[row, : len(items[i].source)].tolist()).text
        tallies = {"accuracy": Statistics(rows, ratio, "hidden places|interval:wilson")}
        facts = {
            "loss": found.loss,
            "perplexity": perplexity(found.total, max(found.count, 1)),
            "hidden": float(found.count),
        }
        metrics = measured(tallies, Bootstrap(samples=0))
        return Evaluation(metrics, tuple(outputs[i] for i in range(len(items))), facts, tallies=tallies)


def kinds_of_holes(text: str) -> list[int]:
    """Whether each hole of a text begins a word, after a space or at the very start, or stands within one."""
    before = text.split(HOLE)[:-1]
    return [BEGINS if piece.endswith(" ") or not (place or piece) else WITHIN for place, piece in enumerate(before)]
