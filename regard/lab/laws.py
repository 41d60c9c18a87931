"""A trained model in, the laws it must keep out, each with the largest difference that was seen.

The sources are drawn at random from the model's own vocabulary, so a folder alone can be judged. Differences of numbers
are taken in fp64, where a broken law stands out from rounding by many orders; differences of texts as the model runs.
"""

import copy
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from regard import config
from regard.data.batch import Batch, mix
from regard.data.tokens import END, MASK, PAD, SEPARATOR, SPECIALS, UNKNOWN
from regard.engine.engine import Engine
from regard.engine.engine import engine as make_engine
from regard.layers.crf import Chain
from regard.layers.pool import Pool
from regard.layers.tap import Tap
from regard.models.model import Model
from regard.tasks.reading import Reads, read_states
from regard.tasks.tag import FIRST, first_places, side_by_side
from regard.tasks.task import Answer, Item, Wish
from regard.tasks.transduce import Transduce
from regard.trained import Trained

ROUNDING = 1e-9  # what fp64 may lose on the way through a deep model
ENGINE_ROUNDING = 1e-3  # … and fp32; a part that is wrong is off by more


@dataclass(frozen=True)
class Law:
    """One law: what it says, the largest difference seen, the largest allowed; none = it does not apply."""

    name: str
    says: str
    difference: float | None
    limit: float
    unit: str = "in logits"

    @property
    def holds(self) -> bool:
        return self.difference is None or self.difference <= self.limit


@dataclass(frozen=True)
class Probe:
    """A model, its fp64 twin, and random examples of different lengths."""

    trained: Trained
    exact: Model
    items: list[Item]

    @property
    def batch(self) -> Batch:
        return self.batch_of(range(len(self.items)))

    def batch_of(self, numbers: Sequence[int]) -> Batch:
        made = self.trained.task.batch([self.items[i] for i in numbers], list(numbers), 0)
        return replace(made, source=made.source.double()) if made.source.is_floating_point() else made

    def logits(self, batch: Batch) -> Tensor:
        read = self.exact(batch)
        return self.exact.logits(read.states_BTD, read.memory)

    def judged(self, batch: Batch) -> Tensor:
        """What the head makes of the states: scores of a pooled text, or of each label in a chain."""
        read, head = self.exact(batch), self.exact.head
        if isinstance(head, Pool):
            pooled_BD = head(read.states_BTD, read.mask_BT)
            found: Tensor = self.exact.output(pooled_BD[:, None])
            return found
        assert isinstance(head, Chain)
        real_BT = batch.label_BT != PAD
        emissions = self.exact.output(side_by_side(read.states_BTD, real_BT))[..., FIRST:]
        return head.log_marginals(emissions, first_places(real_BT.sum(1), emissions.shape[1]))


def laws(trained: Trained, count: int = 9, seed: int = 0) -> list[Law]:
    """Every law that applies to the model, in the order in which it should be read."""
    probe = Probe(trained, copy.deepcopy(trained.model).double().eval(), draw_items(trained, count, seed))
    with torch.inference_mode():
        return [law(probe) for law in LAWS]


def draw_items(trained: Trained, count: int, seed: int) -> list[Item]:
    """Random sources and targets of 1 to a dozen tokens (or fewer, if the model allows fewer)."""
    draw = np.random.default_rng(mix(seed, "laws"))
    return [draw_item(trained, draw) for _ in range(count)]


def draw_item(trained: Trained, draw: np.random.Generator) -> Item:
    c, vocabulary = trained.config, trained.vocabulary
    if isinstance(trained.task, Reads):  # some tokens are hidden and some have labels: there is something to answer
        # A piece is cut from what stands behind the questions: these are empty here.
        asked = (SEPARATOR,) * (len(vocabulary.is_tags) - 1) if c.task == "extract" else ()
        shown = draw_tokens(draw, vocabulary.source.size, max(1, c.data.max_source - len(asked)))
        labels = draw_tokens(draw, vocabulary.target.size, len(shown)) if c.task in config.LABELLED else ()
        return Item(
            (*asked, *[MASK if i % 3 == 0 else token for i, token in enumerate(shown)], trained.task.last), labels
        )
    room = max(1, c.row // 2) if c.task == "generate" else 12  # as much again is written
    target = draw_tokens(draw, vocabulary.target.size, min(c.data.max_target, room))
    if isinstance(c.encoder, config.ImageEncoder):
        picture = draw.random((c.encoder.channels, c.encoder.size, c.encoder.size), dtype=np.float32)
        return Item((), target, picture)
    last = () if c.encoder.kind == "none" else (END,)
    return Item(draw_tokens(draw, vocabulary.source.size, min(c.data.max_source, room)) + last, target)


def draw_tokens(draw: np.random.Generator, size: int, longest: int) -> tuple[int, ...]:
    count = int(draw.integers(1, min(12, longest) + 1))
    return tuple(draw.integers(len(SPECIALS), size, count).tolist())


# ── the laws ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def causal(probe: Probe) -> Law:
    """Changing target token t must leave every logit before t as it was, to the bit."""
    batch, worst = probe.batch, None
    if batch.target_BT is not None:
        before_BTV = probe.logits(batch)
        worst = 0.0
        for at in range(1, batch.target_BT.shape[1]):
            changed_BT = batch.target_BT.clone()
            changed_BT[:, at] = another(changed_BT[:, at], len(probe.exact.output.weight))
            after_BTV = probe.logits(replace(batch, target_BT=changed_BT))
            worst = max(worst, apart(before_BTV[:, :at], after_BTV[:, :at]))
    return Law("causal", "a later target token changes nothing before it", worst, 0.0)


def another(token_B: Tensor, vocabulary: int) -> Tensor:
    """A token of text that differs from each given one; UNKNOWN where there is but one."""
    text = vocabulary - len(SPECIALS)
    if text < 2:
        return torch.full_like(token_B, UNKNOWN)
    return len(SPECIALS) + (token_B - len(SPECIALS) + 1) % text


def padding_proof(probe: Probe) -> Law:
    """A row among longer ones gives what it gives alone, before a head and after it."""
    worst = 0.0
    for scores in (probe.logits,) if probe.exact.head is None else (probe.logits, probe.judged):
        together = scores(probe.batch)
        for row in range(len(probe.items)):
            alone = scores(probe.batch_of([row]))
            worst = max(worst, apart(together[row : row + 1, : alone.shape[1]], alone))
    return Law("padding-proof", "padding changes nothing", worst, ROUNDING)


def batch_proof(probe: Probe) -> Law:
    """Answers do not depend on the size of the batch or on who is in it."""
    alone = answers(probe, Wish(batch=1))
    differing = 0
    for size in (2, 7, len(probe.items)):
        for beam in (1, 3):
            base = alone if beam == 1 else answers(probe, Wish(batch=1, beam=beam))
            differing += unlike(base, answers(probe, Wish(batch=size, beam=beam)))
    return Law("batch-proof", "batch size, order and batch mates change no answer", differing, 0.0, "answers")


def cached(probe: Probe) -> Law:
    """Token by token with a state equals all at once."""
    batch, worst = probe.batch, None
    if batch.target_BT is not None:
        reading = probe.exact.reading(batch.source, batch.source_mask_BS)
        steps = []
        for token_R in batch.target_BT.unbind(1):
            logits_RV, reading = probe.exact.step(token_R, reading)
            steps.append(logits_RV)
        worst = apart(torch.stack(steps, 1), probe.logits(batch))
    return Law("cached = uncached", "token by token equals all at once", worst, ROUNDING)


def beam_is_greedy(probe: Probe) -> Law:
    """A beam of width 1 writes what greedy search writes."""
    differing: float | None = None
    if isinstance(probe.trained.task, Transduce):
        task, model = probe.trained.task, probe.trained.model
        narrow = task.search_beam(model, probe.items, Wish(beam=1))
        greedy = task.search(model, probe.items, Wish(), range(len(probe.items)))
        differing = sum(a[0].tokens != b[0].tokens for a, b in zip(narrow, greedy, strict=True))
    return Law("beam 1 = greedy", "a beam of one is greedy search", differing, 0.0, "answers")


def tap_changes_nothing(probe: Probe) -> Law:
    """Looking does not disturb, to the bit."""
    quiet_BTV = probe.logits(probe.batch)
    with Tap(probe.exact):
        heard_BTV = probe.logits(probe.batch)
    return Law("tap changes nothing", "looking in leaves every logit as it was", apart(quiet_BTV, heard_BTV), 0.0)


def reload_is_same(probe: Probe) -> Law:
    """Saved and loaded, the weights are the same to the bit, and so are the logits but for rounding.

    Where a copy stands in memory can change the last bit of a sum, and that is no other model.
    """
    with tempfile.TemporaryDirectory() as place:
        probe.trained.save(Path(place) / "model")
        loaded = Trained.load(Path(place) / "model").model
    pairs = zip(probe.trained.model.parameters(), loaded.parameters(), strict=True)
    same = all(torch.equal(saved, read) for saved, read in pairs)
    difference = apart(probe.logits(probe.batch), replace(probe, exact=loaded.double()).logits(probe.batch))
    return Law("reload = same", "saved and loaded it is the same model", difference if same else torch.inf, ROUNDING)


def engine_is_model(probe: Probe) -> Law:
    """The engine gives the model's logits but for the rounding of fp32, and its answers are the same to the bit however
    they are batched."""
    engine, worst = make_engine(probe.trained.model), None
    if isinstance(engine, Engine):
        engine_BTV, real_BT = engine_logits(engine, probe)
        worst = apart(engine_BTV[real_BT], probe.logits(probe.batch)[real_BT])
        alone = {beam: engine_answers(engine, probe, beam, 1) for beam in (1, 3)}
        for size in (2, 7):
            if any(engine_answers(engine, probe, beam, size) != alone[beam] for beam in alone):
                worst = torch.inf
    return Law("engine = model", "the engine writes what the model writes", worst, ENGINE_ROUNDING)


def engine_logits(engine: Engine, probe: Probe) -> tuple[Tensor, Tensor]:
    """Logits at every position that counts, as the engine has them, and which positions are real."""
    batch = probe.trained.task.batch(probe.items, range(len(probe.items)), 0)
    if batch.target_BT is None:
        real_BT = batch.source != PAD
        sources = [row_T[mask_T].tolist() for row_T, mask_T in zip(batch.source, real_BT, strict=True)]
        states = read_states(engine, sources)
        return engine.output(pad_sequence(states, batch_first=True)), real_BT
    reading = engine.reading(batch.source, batch.source_mask_BS)
    steps = []
    for token_R in batch.target_BT.unbind(1):
        logits_RV, reading = engine.step(token_R, reading)
        steps.append(logits_RV)
    return torch.stack(steps, 1), batch.target_BT != PAD


def engine_answers(engine: Engine, probe: Probe, beam: int, size: int) -> list[Answer]:
    return probe.trained.task.answer(engine, probe.items, Wish(beam=beam, batch=size), range(len(probe.items)))


LAWS: tuple[Callable[[Probe], Law], ...] = (
    causal,
    padding_proof,
    batch_proof,
    cached,
    beam_is_greedy,
    tap_changes_nothing,
    reload_is_same,
    engine_is_model,
)


def apart(a: Tensor, b: Tensor) -> float:
    """The largest difference; infinite where one side is not a number."""
    difference = (a - b).abs().max() if a.numel() else torch.tensor(0.0)
    return float(torch.nan_to_num(difference, nan=torch.inf))


def answers(probe: Probe, wish: Wish) -> list[Answer]:
    return probe.trained.task.answer(probe.trained.model, probe.items, wish, range(len(probe.items)))


def unlike(a: Sequence[Answer], b: Sequence[Answer]) -> int:
    return sum(not same(x, y) for x, y in zip(a, b, strict=True))


def same(a: Answer, b: Answer) -> bool:
    """The same tokens, or without any the same text, and the same probability but for rounding."""
    if a.tokens != b.tokens or not abs(a.probability - b.probability) <= ENGINE_ROUNDING:
        return False
    return bool(a.tokens) or a.text == b.text or near(json.loads(a.text), json.loads(b.text))


def near(a: Sequence[float], b: Sequence[float]) -> bool:
    """Whether two vectors are the same but for rounding."""
    return apart(torch.tensor(a), torch.tensor(b)) <= ENGINE_ROUNDING


def render(found: Sequence[Law]) -> str:
    """One line a law."""
    lines = []
    for law in found:
        verdict = "–" if law.difference is None else "holds" if law.holds else "BROKEN"
        seen = "does not apply" if law.difference is None else f"{law.difference:.1e} {law.unit}"
        lines.append(f"{verdict:7} {law.name:20} {law.says:52} {seen}")
    return "\n".join(lines)
