"""A text in, what follows it out: a language model, of running text or of texts that begin and end.

Running text comes in pages, each with the page before it, and is gone through in rows of blocks: a state is carried
from block to block, and a gradient goes no further back than one (truncated back-propagation, Williams & Peng 1990).
START means that nothing is known of what stands before. END stands where a text ends; running text never does.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard import config
from regard.data.batch import Batch, cut, mix, pad
from regard.data.ragged import join, ragged, repeated
from regard.data.read import Columns, Example
from regard.data.shards import Rows
from regard.data.text import Cut
from regard.data.tokens import END, PAD, START, Encoding
from regard.engine.engine import Engine, Sources, engine
from regard.layers.rows import detached
from regard.models.model import Model
from regard.score import Metric, perplexity
from regard.score.intervals import Bootstrap, percentile_interval
from regard.score.tallies import Statistics
from regard.search.beam import Live
from regard.search.demands import Demands, Rules
from regard.search.write import Hypothesis, Sampling, hypothesis
from regard.tasks.loss import NOTHING_JUDGED, Judged, judged, token_loss
from regard.tasks.task import Answer, Evaluation, Foresight, Item, Loss, Token, Wish, runs
from regard.tasks.transduce import Transduce

CHARACTERS = 4  # of a word or subword, about
BEGINNINGS = 16  # one row in so many begins as if nothing were known of what stands before
AT_ONCE = 1 << 14  # tokens that are judged together
SHOWN, LONG = 3, 48  # pages that are continued at a validation, and by how many tokens
ENDLESS = 1 << 40


def page(c: config.Config) -> Cut:
    """How running text is cut: so that a page is about a row of tokens."""
    single = c.tokens.target in ("characters", "bytes")
    return Cut(c.row if single else CHARACTERS * c.row, single)


class Generate(Transduce):
    """Next token of a text, given all that stands before it."""

    scores: tuple[str, ...] = ("loss",)
    any_length = True
    limited_by = "half of generate.block × generate.carry"

    def columns(self) -> Columns:
        return Columns(self.config.data.source, None)

    # ── numbers ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def encode(self, example: Example, folder: str) -> Item:
        """A page as target and the page before it as source; or a text as target, with its end."""
        write = self.vocabulary.target.encode
        if example.target is None:
            return Item((), (*write(example.source[0]).ids, END))
        return Item(write(example.source[0]).ids, write(example.target).ids)

    def encode_all(self, examples: Sequence[Example], folder: str) -> Rows:
        """What `encode` gives for each, sooner."""
        write, first = self.vocabulary.target.encode_flat, [example.source[0] for example in examples]
        if any(example.target is None for example in examples):
            return Rows(ragged([()] * len(examples)), join(write(first), repeated(END, len(examples))))
        return Rows(write(first), write([example.target or "" for example in examples]))

    def ask(self, columns: Sequence[str], folder: str) -> Item:
        return Item((START, *self.vocabulary.target.encode(columns[0]).ids), ())

    def batch(self, items: Sequence[Item], numbers: Sequence[int], epoch: int) -> Batch:
        """A row for each item: a window over a page and the one before it, another one in every epoch."""
        made = [self.window(item, number, epoch) for item, number in zip(items, numbers, strict=True)]
        return rows_of([ids[:-1] for ids in made], [ids[1:] for ids in made], tuple(numbers))

    def window(self, item: Item, number: int, epoch: int) -> tuple[int, ...]:
        """One token more than a row; where it begins is a pure function of (seed, epoch, number of the example)."""
        ids, seed = text_of(item), self.config.train.seed
        length = min(self.config.row, item.length, len(ids) - 1)
        start = mix(seed, "shift", epoch, number) % (len(ids) - length)
        cold = start > 0 and mix(seed, "beginning", epoch, number) % BEGINNINGS == 0
        chosen = ids[start : start + length + 1]
        return (START, *chosen[1:]) if cold else chosen

    def loss(self, model: Model, batch: Batch, forcing: float, seed: int) -> Loss:
        """Block by block; what is carried on from a block is its numbers, not the way that led to them."""
        assert batch.target_BT is not None
        memory = model.encode(batch.source, batch.source_mask_BS)
        state, found = model.start(memory), []
        for block_BT in torch.split(batch.target_BT, self.config.generate.block, 1):
            states_BTD, state = model.states(block_BT, memory, state)
            state = detached(state)
            found.append(states_BTD)
        smoothing = self.config.train.label_smoothing if model.training else 0.0
        return token_loss(model.output, torch.cat(found, 1), batch.label_BT, smoothing)

    # ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def longest(self) -> int:
        """Tokens that are written in one search; what has no room for more goes on in another."""
        return ENDLESS if self.config.endless else self.config.row // 2

    @property
    def bounded(self) -> bool:
        return not self.config.endless

    def limit(self, item: Item, wish: Wish) -> int:
        return min(self.config.data.max_target if wish.max_length is None else wish.max_length, self.longest)

    def answer(self, model: Model | Engine, items: Sequence[Item], wish: Wish, numbers: Sequence[int]) -> list[Answer]:
        """The whole text as an answer, what was asked and what follows; its tokens and numbers are of what follows."""
        found = super().answer(model, items, wish, numbers)
        return [self.whole(item, answer) for item, answer in zip(items, found, strict=True)]

    def whole(self, item: Item, answer: Answer) -> Answer:
        text = self.vocabulary.target.decode((*item.source, *answer.tokens))
        return replace(answer, text=text, alternatives=tuple(self.whole(item, each) for each in answer.alternatives))

    def search_all(self, model: Model | Engine, items: Sequence[Item], wish: Wish,
                   numbers: Sequence[int]) -> list[list[Hypothesis]]:  # fmt: skip
        """In one search; or, where a row has no room for it all, in legs: each reads the end of what there is by then.

        What is ranked or judged as a whole can not be written in legs, and is cut with a warning.
        """
        left = self.config.data.max_target if wish.max_length is None else wish.max_length
        found: list[list[Hypothesis]] = [[NOTHING]] * len(items)
        going, leg = list(range(len(items))), 0
        while going and left:
            room = min(left, self.longest)
            some = [self.context(items[i], found[i][0].tokens, room) for i in going]
            asked = leg_wish(wish, leg, room, len(found[going[0]][0].tokens))
            more = super().search_all(model, some, asked, [numbers[i] for i in going])
            for i, each in zip(going, more, strict=True):
                found[i] = followed(found[i][0], each, room, wish.length_penalty)
            if judged_whole(wish):
                self.tell_cut(wish)
                break
            going = [i for i, each in zip(going, more, strict=True) if len(each[0].tokens) == room]
            left, leg = left - room, leg + 1
        return found

    def context(self, item: Item, written: tuple[int, ...], room: int) -> Item:
        """As much of the end of a text as leaves room in a row."""
        ids = (*item.source, *written)
        return Item(ids if self.config.endless else ids[-(self.config.row - room) :], ())

    # A search feeds the same first token to all: here it is the last of the prompt, so equal ones go together.

    def runs(self, items: Sequence[Item], size: int) -> Iterator[list[int]]:
        for some in alike(items):
            for run in runs([items[i] for i in some], size):
                yield [some[i] for i in run]

    def sources(self, items: Sequence[Item]) -> tuple[Tensor, Tensor | None]:
        source_BS = pad([item.source[:-1] for item in items])
        return source_BS, source_BS != PAD

    def laid_out(self, engine: Engine, items: Sequence[Item]) -> Sources:
        return Sources.of_ids(engine, [item.source[:-1] for item in items])

    def demands(self, items: Sequence[Item], wish: Wish, device: torch.device) -> tuple[Demands, Rules]:
        demand, rules = super().demands(items, wish, device)
        return demand, replace(rules, first=items[0].source[-1])

    def search_whole(self, engine: Engine, items: Sequence[Item], wish: Wish) -> list[list[Hypothesis]]:
        found: dict[int, list[Hypothesis]] = {}
        for some in alike(items):
            found.update(zip(some, super().search_whole(engine, [items[i] for i in some], wish), strict=True))
        return [found[i] for i in range(len(items))]

    # ── looking in ───────────────────────────────────────────────────────────────────────────────────────────────────

    def encoded(self, columns: Sequence[str]) -> Encoding:
        found = self.vocabulary.target.encode(columns[0])
        return Encoding((START, *found.ids), ((0, 0), *found.spans))

    def foresee(self, model: Model, items: Sequence[Item], answers: Sequence[Answer]) -> list[Foresight]:
        """What was written after each text, token by token."""
        source_BS, mask_BS = self.sources(items)
        fed = [(item.source[-1], *answer.tokens[:-1]) for item, answer in zip(items, answers, strict=True)]
        batch = Batch(source_BS, mask_BS, pad(fed), pad(fed)).to(model.device)
        log_BTV = model.output(model(batch).states_BTD).float().log_softmax(-1)
        return [Foresight(log_TV[: max(1, len(answer.tokens))], answer.tokens or (END,))
                for log_TV, answer in zip(log_BTV, answers, strict=True)]  # fmt: skip

    def pieces(self, item: Item, answer: Answer) -> tuple[Token, ...]:
        return self.spans_of(item, answer.tokens) if answer.tokens else (self.sign(END),)

    def added(self, item: Item, ids: Sequence[int]) -> str:
        """What a text has more than its prompt: between words, the space too."""
        decode = self.vocabulary.target.decode
        return decode((*item.source, *ids))[len(decode(item.source)) :]

    def grown(self, model: Model | Engine, item: Item, wish: Wish) -> tuple[Answer, list[Live]]:
        found, seen = super().grown(model, item, wish)
        return self.whole(item, found), seen

    def watched(self, model: Model | Engine, item: Item, wish: Wish) -> tuple[list[Hypothesis], list[Live]]:
        found, seen = super().watched(model, item, wish)
        return followed(NOTHING, found, self.limit(item, wish), wish.length_penalty), seen

    # ── scores ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def evaluate(
        self, model: Model, items: Sequence[Item], examples: Sequence[Example], wish: Wish, intervals: bool = True,
        precision: str = "fp32",
    ) -> Evaluation:  # fmt: skip
        """How well every token of every text is foreseen; and how the first few go on, for a person to read."""
        found = self.judged_each(model, items)
        total = sum(found, NOTHING_JUDGED)
        texts = [example.source[0] if example.target is None else example.target for example in examples]
        sums = np.array([each.total for each in found])
        tallies = {}
        if self.vocabulary.target.kind != "words":  # which do not tell all of a text: unknown ones, and white space
            tallies = {
                "loss_per_character": tallied(sums, [len(text) for text in texts]),
                "bits_per_byte": tallied(sums / math.log(2), [len(text.encode()) for text in texts]),
            }
        metrics = {name: measured_rate(name, tally, intervals) for name, tally in tallies.items()}
        facts = {
            "loss": total.loss,
            "perplexity": perplexity(total.total, max(total.count, 1)),
            "token_accuracy": total.accuracy,
        }
        shown = self.continued(engine(model, precision), items[:SHOWN])
        return Evaluation(metrics, (*shown, *[""] * (len(items) - len(shown))), facts, tallies=tallies)

    def continued(self, model: Model | Engine, items: Sequence[Item]) -> tuple[str, ...]:
        """What may follow the page before each page; where there is none, how a text may begin."""
        asked = [Item(item.source or (START,), ()) for item in items]
        found = super().answer(model, asked, Wish(max_length=LONG, sampling=Sampling()), range(len(items)))
        return tuple(each.text for each in found)

    @torch.inference_mode()
    def judged_each(self, model: Model, items: Sequence[Item]) -> list[Judged]:
        """Every token of every target once, with half a row before it where there is so much."""
        found = [NOTHING_JUDGED] * len(items)
        spans = [span for number, item in enumerate(items) for span in self.spans(number, item)]
        order = sorted(range(len(spans)), key=lambda i: spans[i].length)
        for run in cut(order, [span.length for span in spans], AT_ONCE):
            some = [spans[i] for i in run]
            texts = [text_of(items[span.item])[span.start : span.stop] for span in some]
            label = [labels(ids, span.first - span.start) for ids, span in zip(texts, some, strict=True)]
            batch = rows_of([ids[:-1] for ids in texts], label, ()).to(model.device)
            states_BTD = model(batch).states_BTD
            for row, span in enumerate(some):
                found[span.item] += judged(model.output, states_BTD[row][None], batch.label_BT[row][None])[0]
        return found

    def spans(self, number: int, item: Item) -> Iterator["Span"]:
        """Windows over an item in which each token of its target counts once."""
        row, size, first = self.config.row, len(text_of(item)), max(1, len(item.source))
        while first < size:
            start = max(0, first - row // 2)
            stop = min(size, start + row + 1)
            yield Span(number, start, first, stop)
            first = stop


@dataclass(frozen=True)
class Span:
    """Part of the text of an item; what stands before `first` is read and does not count."""

    item: int
    start: int
    first: int
    stop: int

    @property
    def length(self) -> int:
        return self.stop - self.start


NOTHING = Hypothesis((), (), 0.0)


def text_of(item: Item) -> tuple[int, ...]:
    """All that is known of a text: the page before and the page, or the text from its beginning."""
    return (*(item.source or (START,)), *item.target)


def labels(ids: tuple[int, ...], first: int) -> tuple[int, ...]:
    """What follows each token, with PAD for what stands before `first` and does not count."""
    return (*[PAD] * (first - 1), *ids[first:])


def rows_of(fed: Sequence[Sequence[int]], label: Sequence[Sequence[int]], numbers: tuple[int, ...]) -> Batch:
    """Rows of text; there is no source."""
    nothing_BS = torch.zeros(len(fed), 0, dtype=torch.long)
    return Batch(nothing_BS, nothing_BS != PAD, pad(fed), pad(label), numbers)


def alike(items: Sequence[Item]) -> Iterable[list[int]]:
    """Numbers of items whose sources end in the same token."""
    found: dict[int, list[int]] = {}
    for number, item in enumerate(items):
        found.setdefault(item.source[-1], []).append(number)
    return found.values()


def judged_whole(wish: Wish) -> bool:
    """Whether texts are ranked, or must obey what only the whole of them can."""
    return (wish.beam > 1 and wish.sampling is None) or not replace(wish, sampling=None).is_simple


def leg_wish(wish: Wish, leg: int, room: int, written: int) -> Wish:
    """What is wished of one leg; in each other draws are made."""
    if not leg:
        return replace(wish, max_length=room)
    drawn = wish.sampling and replace(wish.sampling, seed=mix(wish.sampling.seed, "leg", leg))
    return replace(wish, max_length=room, prefix="", min_length=max(0, wish.min_length - written), sampling=drawn)


def followed(before: Hypothesis, found: Sequence[Hypothesis], room: int, penalty: float) -> list[Hypothesis]:
    """What was written, with each of what may follow it; best first."""
    return sorted((longer(before, new, room, penalty) for new in found), key=lambda each: (-each.score, each.tokens))


def longer(before: Hypothesis, new: Hypothesis, room: int, penalty: float) -> Hypothesis:
    """What was written with what follows it; an end that was forced for want of room is none."""
    logs = (*before.log_probabilities, *new.log_probabilities[: room if len(new.tokens) == room else None])
    return hypothesis((*before.tokens, *new.tokens), logs, penalty)


def tallied(sums: Any, counts: Any) -> Statistics:
    """Σ sums ÷ Σ counts over texts."""
    rows = np.stack([sums, counts], 1).astype(np.float64)
    return Statistics(rows, lambda totals: totals[:, 0] / np.maximum(totals[:, 1], 1),
                      "nats and bits|interval:bootstrap over pages")  # fmt: skip


def measured_rate(name: str, tally: Statistics, intervals: bool) -> Metric:
    """The less the better, with an interval over texts drawn anew."""
    wanted = intervals and len(tally.rows) > 1
    low, high = percentile_interval(tally.resampled(Bootstrap())) if wanted else (None, None)
    return Metric(name, tally.value, low, high, False, tally.signature)
