"""A source in, a target out: the task of the lineage, for texts and, as captions, for pictures."""

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from regard import config
from regard.data.batch import Batch, mix, pad
from regard.data.images import load_image, row_reference
from regard.data.ragged import join, ragged, repeated
from regard.data.read import Columns, Example
from regard.data.shards import Rows
from regard.data.tokens import END, PAD, SEPARATOR, SPECIALS, START, UNKNOWN, Encoding
from regard.data.vocabulary import Vocabulary
from regard.engine.engine import Engine, Sources, engine
from regard.errors import UsageError
from regard.layers.pointer import mixed
from regard.models.memory import Read
from regard.models.model import Model
from regard.score import TRANSDUCE, any_target, mute, perplexity, position_accuracy
from regard.score.intervals import Bootstrap
from regard.score.metrics import corpus_tallies, measured
from regard.search.beam import Live, beam
from regard.search.constrain import Constraint, constraint
from regard.search.demands import Demands, Rules, demands
from regard.search.write import Hypothesis, given, greedy, sample
from regard.tasks.loss import NOTHING_JUDGED, Judged, fed, judged, token_loss
from regard.tasks.task import Answer, Evaluation, Exact, Foresight, Item, Loss, Token, Wish, runs

TIMES_WIDER = 2  # that a beam is doubled to find texts which differ


class Transduce(Exact):
    """Next token of the target, given the source and the target so far."""

    scores: tuple[str, ...] = (*TRANSDUCE, "loss")
    any_length = False
    limited_by = "data.max_target"

    def __init__(self, c: config.Config, vocabulary: Vocabulary) -> None:
        self.config = c
        self.vocabulary = vocabulary
        # Without an encoder source and target are one text, and what stands between them is the separator.
        self.first = SEPARATOR if c.encoder.kind == "none" else START
        self.last = () if c.encoder.kind == "none" else (END,)
        self.told: set[int] = set()  # lengths that were warned of
        self.kept: tuple[object, Constraint | None] = ((), None)  # the last constraint, and what it was made of

    def columns(self) -> Columns:
        return Columns(self.config.data.source, self.config.data.target)

    def encode(self, example: Example, folder: str) -> Item:
        source = self.vocabulary.encode_source(example.source).ids + self.last
        return Item(source, self.vocabulary.target.encode(example.target or "").ids)

    def encode_all(self, examples: Sequence[Example], folder: str) -> Rows:
        """What `encode` gives for each, sooner."""
        source = self.vocabulary.encode_sources([example.source for example in examples])
        target = self.vocabulary.target.encode_flat([example.target or "" for example in examples])
        return Rows(join(source, *(repeated(id, len(examples)) for id in self.last)), target)

    def ask(self, columns: Sequence[str], folder: str) -> Item:
        return self.encode(Example(tuple(columns), None, 0), folder)

    def batch(self, items: Sequence[Item], numbers: Sequence[int], epoch: int) -> Batch:
        source, mask_BS = self.sources(items)
        target = ragged([item.target for item in items])
        fed, label = join(repeated(self.first, len(items)), target), join(target, repeated(END, len(items)))
        return Batch(source, mask_BS, pad(fed), pad(label), tuple(numbers))

    def sources(self, items: Sequence[Item]) -> tuple[Tensor, Tensor | None]:
        source_BS = pad([item.source for item in items])
        return source_BS, source_BS != PAD

    def laid_out(self, engine: Engine, items: Sequence[Item]) -> Sources:
        return Sources.of_ids(engine, [item.source for item in items])

    def loss(self, model: Model, batch: Batch, forcing: float, seed: int) -> Loss:
        t = self.config.train
        smoothing, agreement = (t.label_smoothing, t.agreement) if model.training else (0.0, 0.0)
        if agreement:  # dropout draws other masks for the second half
            batch = batch.twice()
        read = fed(model, batch, forcing, seed)
        copied = model.copied(read.states_BTD, read.memory)
        return token_loss(model.output, read.states_BTD, batch.label_BT, smoothing, copied=copied, agreement=agreement)

    # ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @torch.inference_mode()
    def answer(self, model: Model | Engine, items: Sequence[Item], wish: Wish, numbers: Sequence[int]) -> list[Answer]:
        """One answer for each item, in order; items of similar length share a batch, which changes no answer."""
        found = self.search_all(model, items, wish, numbers)
        if wish.n_best > 1 and wish.beam > 1 and wish.sampling is None:
            found = self.widened(model, items, wish, numbers, found)
        return [self.spell(each[: max(1, wish.n_best)]) for each in found]

    def runs(self, items: Sequence[Item], size: int) -> Iterable[list[int]]:
        """Numbers of items that are searched side by side."""
        return runs(items, size)

    def search_all(self, model: Model | Engine, items: Sequence[Item], wish: Wish,
                   numbers: Sequence[int]) -> list[list[Hypothesis]]:  # fmt: skip
        """For each item all that a search finds, best first."""
        if isinstance(model, Engine) and items and wish.is_simple:
            return self.search_whole(model, items, wish)
        found: dict[int, list[Hypothesis]] = {}
        for run in self.runs(items, wish.batch):
            hypotheses = self.search(model, [items[i] for i in run], wish, [numbers[i] for i in run])
            found.update(zip(run, hypotheses, strict=True))
        return [found[i] for i in range(len(items))]

    def widened(self, model: Model | Engine, items: Sequence[Item], wish: Wish, numbers: Sequence[int],
                found: list[list[Hypothesis]]) -> list[list[Hypothesis]]:  # fmt: skip
        """Different texts only; where these are too few and there may be more, a beam twice as wide looks for them.

        A beam that finds fewer than its width has found everything there is.
        """
        different, going = [self.different(each) for each in found], list(range(len(items)))
        wanted = min(wish.n_best, wish.beam, self.most_texts(wish))
        full = [len(each) == wish.beam for each in found]
        for _ in range(TIMES_WIDER):
            going = [i for i in going if full[i] and len(different[i]) < wanted]
            if not going:
                break
            wish = replace(wish, beam=2 * wish.beam, batch=max(1, wish.batch // 2))
            more = self.search_all(model, [items[i] for i in going], wish, [numbers[i] for i in going])
            for i, each in zip(going, more, strict=True):
                different[i], full[i] = self.different([*different[i], *each]), len(each) == wish.beam
        return different

    def most_texts(self, wish: Wish) -> float:
        made = self.constraint(wish)
        return math.inf if made is None else made.texts

    def different(self, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        """The best spelling of each text, best first."""
        kept: dict[str, Hypothesis] = {}
        for each in sorted(hypotheses, key=lambda found: (-found.score, found.tokens)):
            kept.setdefault(self.vocabulary.target.decode(each.tokens), each)
        return list(kept.values())

    def search_whole(self, engine: Engine, items: Sequence[Item], wish: Wish) -> list[list[Hypothesis]]:
        """All items in one search: the engine makes its batches itself."""
        demand, rules = self.demands(items, wish, engine.device)
        sources = self.laid_out(engine, items)
        return engine.search(sources, demand, rules, wish.beam, wish.batch, wish.length_penalty)

    def search(
        self, model: Model | Engine, items: Sequence[Item], wish: Wish, numbers: Sequence[int]
    ) -> list[list[Hypothesis]]:
        """Greedy where a beam of one is wanted: the same texts, sooner."""
        if wish.sampling is None and wish.beam > 1:
            return self.search_beam(model, items, wish)
        reading, demand, rules = self.begin(model, items, wish)
        if wish.sampling is not None:
            return [[each] for each in sample(model.step, reading, demand, rules, wish.sampling, numbers)]
        return [[each] for each in greedy(model.step, reading, demand, rules, wish.length_penalty)]

    def search_beam(self, model: Model | Engine, items: Sequence[Item], wish: Wish) -> list[list[Hypothesis]]:
        reading, demand, rules = self.begin(model, items, wish)
        return beam(model.step, reading, demand, wish.beam, rules, wish.length_penalty)

    def begin(self, model: Model | Engine, items: Sequence[Item], wish: Wish) -> tuple[Any, Demands, Rules]:
        """What a search starts from."""
        source, mask_BS = self.sources(items)
        reading = model.reading(source.to(model.device), None if mask_BS is None else mask_BS.to(model.device))
        return reading, *self.demands(items, wish, model.device)

    def demands(self, items: Sequence[Item], wish: Wish, device: torch.device) -> tuple[Demands, Rules]:
        """What each output, and what every output must obey."""
        prefix, rules = self.prefix_ids(wish.prefix), self.rules(wish)
        limits = [self.limit(item, wish) for item in items]
        self.tell_cut(wish)
        if rules.constraint is not None:
            fixed, longest = wish.max_length is not None, self.longest
            limits = rules.constraint.limits(limits, prefix, fixed, longest, self.bounded)
        return demands(limits, [prefix] * len(items), device), rules

    @torch.inference_mode()
    def likelihood(self, model: Model | Engine, items: Sequence[Item], wish: Wish) -> list[Answer]:
        """The targets of the items as answers, with the log probability the model gives them."""
        found: dict[int, Answer] = {}
        free = replace(wish, pattern="", choices=(), required=(), banned=())
        for run in self.runs(items, wish.batch):
            reading, demand, rules = self.begin(model, [items[i] for i in run], free)
            targets = [items[i].target for i in run]
            hypotheses = given(model.step, reading, targets, rules, wish.length_penalty, demand.limit_R.device)
            found.update({i: self.spell_one(each) for i, each in zip(run, hypotheses, strict=True)})
        return [found[i] for i in range(len(items))]

    def rules(self, wish: Wish) -> Rules:
        """What the wish forbids, and tags: they name a source, they are never written."""
        tags = tuple(range(len(SPECIALS), len(SPECIALS) + len(self.vocabulary.target.tags)))
        never = (*Rules().never, *tags)
        return Rules(self.first, wish.min_length, wish.no_repeat, never=never, constraint=self.constraint(wish))

    def constraint(self, wish: Wish) -> Constraint | None:
        """What the wish demands of the text; kept, because it learns about the vocabulary as it is used.

        What is banned is a text and not its tokens: other tokens can spell it too.
        """
        asked = (wish.pattern, wish.choices, wish.required, wish.banned)
        if not any(asked):
            return None
        made = self.kept[1]
        if self.kept[0] != asked or (made is not None and made.is_large):
            made = constraint(self.vocabulary.target, *asked)
            self.kept = (asked, made)
        return made

    def prefix_ids(self, text: str | tuple[int, ...]) -> tuple[int, ...]:
        """A text, or tokens, that outputs must begin with; the model must have tokens for it."""
        target = self.vocabulary.target
        ids = target.encode(text).ids if isinstance(text, str) else text
        if not isinstance(text, str) and not all(len(SPECIALS) <= id < target.size for id in ids):
            raise UsageError(
                f"prefix {text!r:.60}: expected numbers of tokens, from {len(SPECIALS)} to {target.size - 1}"
            )
        if UNKNOWN in ids:
            raise UsageError(f"prefix text {text!r}: holds a word that is not in the model's vocabulary")
        if self.bounded and len(ids) > (longest := self.longest):
            raise UsageError(f"the prefix has {len(ids)} tokens, expected at most {longest} ({self.limited_by})")
        return ids

    @property
    def longest(self) -> int:
        """Tokens of an output at most."""
        return self.config.data.max_target

    @property
    def bounded(self) -> bool:
        """Whether nothing longer than data.max_target can be written at all: there are vectors for no more places."""
        return getattr(self.config.decoder, "position", "none") == "learned"

    def tell_cut(self, wish: Wish) -> None:
        """A warning, once, that outputs will be shorter than was allowed."""
        longest = self.longest
        if wish.max_length is not None and wish.max_length > longest and wish.max_length not in self.told:
            self.told.add(wish.max_length)
            warnings.warn(f"max_length {wish.max_length}: cut to {longest} ({self.limited_by})", stacklevel=2)

    def limit(self, item: Item, wish: Wish) -> int:
        """The longest output of one source: its own length decides, never that of its batch mates."""
        if wish.max_length is not None:
            return min(wish.max_length, self.longest)
        asked = int(self.config.search.length_ratio * len(item.source)) + self.config.search.length_extra
        return min(asked, self.longest)

    def spell(self, hypotheses: Sequence[Hypothesis]) -> Answer:
        made = tuple(self.spell_one(each) for each in hypotheses)
        return replace(made[0], alternatives=made)

    def spell_one(self, found: Hypothesis) -> Answer:
        text = self.vocabulary.target.decode(found.tokens)
        sure, lowest = math.exp(found.log_probability), math.exp(min(found.log_probabilities, default=0.0))
        return Answer(text, found.score, sure, found.tokens, probability=sure, lowest=lowest)

    # ── looking in ───────────────────────────────────────────────────────────────────────────────────────────────────

    def encoded(self, columns: Sequence[str]) -> Encoding:
        return self.vocabulary.encode_source(columns)

    def foresee(self, model: Model, items: Sequence[Item], answers: Sequence[Answer]) -> list[Foresight]:
        """Every token of each answer given those before it, and the end."""
        asked = [replace(item, target=answer.tokens) for item, answer in zip(items, answers, strict=True)]
        batch = self.batch(asked, range(len(asked)), 0).to(model.device)
        read: Read = model(batch)
        copied = model.copied(read.states_BTD, read.memory)
        log_BTV = mixed(model.output(read.states_BTD), copied).float().log_softmax(-1)
        shares = [None] * len(answers) if copied is None else copied.share_BT
        return [Foresight(log_TV[: len(answer.tokens) + 1], (*answer.tokens, END),
                          copied_T=None if share_T is None else share_T[: len(answer.tokens) + 1])
                for log_TV, share_T, answer in zip(log_BTV, shares, answers, strict=True)]  # fmt: skip

    def token(self, item: Item, column: int) -> str:
        return self.vocabulary.target.token(column)

    def pieces(self, item: Item, answer: Answer) -> tuple[Token, ...]:
        """The tokens with their places in the text, and the end."""
        return (*self.spans_of(item, answer.tokens), self.sign(END, answer.tokens))

    def added(self, item: Item, ids: Sequence[int]) -> str:
        """The text of what was written."""
        return self.vocabulary.target.decode(ids)

    def spans_of(self, item: Item, ids: Sequence[int]) -> tuple[Token, ...]:
        """A token begins where the text before it ends."""
        ends = [len(self.added(item, ids[: i + 1])) for i in range(len(ids))]
        return tuple(Token(self.token(item, id), a, b, id) for id, a, b in zip(ids, [0, *ends], ends, strict=False))

    def sign(self, id: int, after: Sequence[int] = ()) -> Token:
        """A token that is no text."""
        at = len(self.vocabulary.target.decode(after))
        return Token(self.vocabulary.target.token(id), at, at, id)

    def grown(self, model: Model | Engine, item: Item, wish: Wish) -> tuple[Answer, list[Live]]:
        """What a beam search finds, other texts it finishes beside it; and what was being written after each step."""
        found, seen = self.watched(model, item, wish)
        return self.spell(self.different(found)), seen

    def watched(self, model: Model | Engine, item: Item, wish: Wish) -> tuple[list[Hypothesis], list[Live]]:
        reading, demand, rules = self.begin(model, [item], wish)
        seen: list[Live] = []
        found = beam(model.step, reading, demand, wish.beam, rules, wish.length_penalty, seen.append)[0]
        return found, seen

    # ── scores ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def evaluate(
        self, model: Model, items: Sequence[Item], examples: Sequence[Example], wish: Wish, intervals: bool = True,
        precision: str = "fp32",
    ) -> Evaluation:  # fmt: skip
        """Scores of free-running outputs, and beside them how well the next token is known given the true ones."""
        answers = self.answer(engine(model, precision), items, wish, range(len(items)))
        outputs = [each.text for each in answers]
        references = [[example.target or ""] for example in examples]
        forced = self.forced(model, items)
        free = position_accuracy([[*a.tokens, END] for a in answers], [[*item.target, END] for item in items])
        facts = {
            "loss": forced.loss,
            "perplexity": perplexity(forced.total, max(forced.count, 1)),
            "token_accuracy_forced": forced.accuracy,
            "token_accuracy_free": free,
            "exposure_gap": forced.accuracy - free,
        }
        bootstrap = Bootstrap(samples=1000 if intervals else 0)
        targets, sources = [target for (target,) in references], [example.source for example in examples]
        tallies = corpus_tallies(outputs, references, bootstrap=bootstrap) | any_target(outputs, sources, targets)
        metrics = measured(tallies, bootstrap)
        return Evaluation(metrics, tuple(outputs), facts, tuple(answers), mute=mute(references), tallies=tallies)

    @torch.inference_mode()
    def forced(self, model: Model, items: Sequence[Item]) -> Judged:
        """How well the next token is foreseen given the true ones before it."""
        found = NOTHING_JUDGED
        for run in runs(items, 64):
            batch = self.batch([items[i] for i in run], run, 0).to(model.device)
            read: Read = model(batch)
            copied = model.copied(read.states_BTD, read.memory)
            found += judged(model.output, read.states_BTD, batch.label_BT, copied)[0]
        return found


class Caption(Transduce):
    """A picture in, a sentence about it out: the same task with another source."""

    def encode(self, example: Example, folder: str) -> Item:
        e = self.config.encoder
        assert isinstance(e, config.ImageEncoder)
        reference = row_reference(self.config.data.images, example.source[0])
        picture = load_image(reference, Path(folder), e.size, e.channels)
        return Item((), self.vocabulary.target.encode(example.target or "").ids, picture)

    def encode_all(self, examples: Sequence[Example], folder: str) -> Rows:
        items = [self.encode(example, folder) for example in examples]
        pictures = np.stack([item.picture for item in items if item.picture is not None])
        return Rows(ragged([item.source for item in items]), ragged([item.target for item in items]), pictures)

    def loss(self, model: Model, batch: Batch, forcing: float, seed: int) -> Loss:
        if model.training:
            batch = replace(batch, source=self.varied(batch.source, batch.index, seed))
        return super().loss(model, batch, forcing, seed)

    def varied(self, picture_BCYX: Tensor, numbers: Sequence[int], seed: int) -> Tensor:
        """The pictures as they are trained on: never twice in the same place, size and colours, if so wished."""
        d = self.config.data
        if d.recolour:
            colours = [f"colour {channel}" for channel in range(picture_BCYX.shape[1])]
            picture_BCYX = bent(picture_BCYX, factors(seed, numbers, colours, d.recolour))
        if d.zoom:
            picture_BCYX = zoomed(picture_BCYX, factors(seed, numbers, ("height", "width"), d.zoom))
        if d.jitter:
            picture_BCYX = shifted(picture_BCYX, offsets(seed, numbers, d.jitter))
        return picture_BCYX

    def sources(self, items: Sequence[Item]) -> tuple[Tensor, Tensor | None]:
        return torch.from_numpy(np.stack([item.picture for item in items if item.picture is not None])), None

    def laid_out(self, engine: Engine, items: Sequence[Item]) -> Sources:
        return Sources.of_pictures(engine, self.sources(items)[0])


def offsets(seed: int, numbers: Sequence[int], most: int) -> Tensor:
    """Pixels down and across for each example, (B, 2): a pure function of the seed and the example's number."""
    return torch.tensor(
        [[mix(seed, word, number) % (2 * most + 1) - most for word in ("down", "across")] for number in numbers]
    )


def factors(seed: int, numbers: Sequence[int], words: Sequence[str], most: float) -> Tensor:
    """For each example and word a factor between 1 / (1 + most) and 1 + most, as pure a function as `offsets`."""
    draws = [[mix(seed, word, number) * 2.0**-62 - 1 for word in words] for number in numbers]
    return (1 + most) ** torch.tensor(draws)


def bent(picture_BCYX: Tensor, power_BC: Tensor) -> Tensor:
    """Each colour of each picture raised to its own power: other light, other tints, but black and white remain."""
    bent_BCYX: Tensor = picture_BCYX ** power_BC.to(picture_BCYX)[:, :, None, None]
    return bent_BCYX


def zoomed(picture_BCYX: Tensor, by: Tensor) -> Tensor:
    """Each picture about its middle as many times as high and wide as `by` (B, 2) says; edges are repeated."""
    turn = torch.zeros(len(by), 2, 3).to(picture_BCYX)
    turn[:, 0, 0], turn[:, 1, 1] = 1 / by[:, 1], 1 / by[:, 0]
    places = F.affine_grid(turn, list(picture_BCYX.shape), align_corners=False)
    return F.grid_sample(picture_BCYX, places, padding_mode="border", align_corners=False)


def shifted(picture_BCYX: Tensor, by: Tensor) -> Tensor:
    """Each picture moved by its own pixels; what comes in at an edge repeats that edge."""
    batch, channels, height, width = picture_BCYX.shape
    by = by.to(picture_BCYX.device)
    row_BY = (torch.arange(height, device=by.device) - by[:, :1]).clamp(0, height - 1)
    column_BX = (torch.arange(width, device=by.device) - by[:, 1:]).clamp(0, width - 1)
    example, channel = (torch.arange(count, device=by.device) for count in (batch, channels))
    return picture_BCYX[
        example[:, None, None, None], channel[:, None, None], row_BY[:, None, :, None], column_BX[:, None, None]
    ]
