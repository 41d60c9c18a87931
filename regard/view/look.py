"""A model, its task and one text as numbers in, the record of its answer out; nothing else changes by it."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.data.tokens import END, SPECIALS, UNKNOWN
from regard.engine.engine import Engine
from regard.errors import UsageError
from regard.layers.tap import Off, without
from regard.models.model import Model
from regard.search.beam import Live
from regard.tasks.embed import Embed
from regard.tasks.generate import Generate
from regard.tasks.task import Answer, Foresight, Item, Task, Token, Wish
from regard.tasks.transduce import Transduce
from regard.view.carry import carried
from regard.view.change import SIGNS, STAYING, Change, erased
from regard.view.record import Map, Node, Other, Picture, Record

SHOWN = 8  # alternatives of a token
FOLLOWING = 48  # tokens that are written after a prompt, unless more are asked for
BLANKS = " \t␣·▁"


def look(
    task: Task, model: Model, decoding: Model | Engine, item: Item, source: Sequence[Token], text: str, wish: Wish,
    change: Change | None = None,
) -> tuple[Record, Item]:  # fmt: skip
    """What is answered, with what was changed if anything was; and the item as it was read in the end.

    The model is one that is `evaluating`.
    """
    change = change or Change()
    change.check(model, source)
    began = time.perf_counter()
    grid = (1, 1) if item.picture is None else square(len(source))
    source, item = rest(source, change, task), erased(item, change.erase, task.vocabulary, task.config.task, grid)
    if change.erase and not any(token.id not in SIGNS for token in source):
        raise UsageError("nothing of the source would be left")
    answer, seen = answered(task, model, decoding, item, wish, change)
    searched = time.perf_counter()
    record = recorded(task, model, item, source, text, answer, change.off)
    return replace(
        record,
        beam=None if seen is None else tree(task, item, seen, answer),
        picture=None if item.picture is None else Picture(item.picture, *grid),
        carried=carried(task, model, item, source, text, change.off) if isinstance(task, Embed) else (),
        seconds={"search": searched - began, "look": time.perf_counter() - searched},
        change=None if change == Change() else change,
    ), item


@contextmanager
def evaluating(model: Model) -> Iterator[None]:
    """As it answers, without dropout; afterwards it goes on as it was, even in the middle of training."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def places(model: Model, item: Item) -> tuple[int, int]:
    """Rows and columns of the places that a picture is cut into."""
    if item.picture is None:
        return 1, 1
    with torch.inference_mode():
        count = model.encode(torch.from_numpy(np.stack([item.picture])).to(model.device)).mask_BS.shape[1]
    return square(count)


def square(count: int) -> tuple[int, int]:
    """The sides of a grid of so many places."""
    side = round(count**0.5)
    return side, side


def with_room(task: Task, item: Item, source: Sequence[Token], wish: Wish) -> tuple[Item, Sequence[Token], Wish]:
    """As much of the end of a prompt as leaves room for what is to be written in one row; other sources are whole."""
    if not isinstance(task, Generate):
        return item, source, wish
    room = min(FOLLOWING if wish.max_length is None else wish.max_length, task.longest)
    short = task.context(item, (), room)
    return short, source[len(source) - len(short.source) :], replace(wish, max_length=room)


def rest(source: Sequence[Token], change: Change, task: Task) -> tuple[Token, ...]:
    """The source tokens that are still read; where an erased one leaves its place, the unknown token in it."""
    if task.config.task in STAYING or task.config.task == "caption":
        return tuple(replace(token, text=SPECIALS[UNKNOWN], id=UNKNOWN) if place in change.erase else token
                     for place, token in enumerate(source))  # fmt: skip
    return tuple(token for place, token in enumerate(source) if place not in change.erase)


def answered(
    task: Task, model: Model, decoding: Model | Engine, item: Item, wish: Wish, change: Change
) -> tuple[Answer, list[Live] | None]:
    """The answer; and of a beam search what it held after each step."""
    wish = replace(wish, prefix=change.begin) if change.begin else wish
    able = model if change.off else decoding  # an engine has no heads that could be switched off
    with without(model, change.off), torch.inference_mode():
        if isinstance(task, Transduce) and wish.beam > 1 and wish.sampling is None:
            return task.grown(able, item, wish)
        return task.answer(able, [item], wish, [0])[0], None


@torch.inference_mode()
def recorded(
    task: Task, model: Model, item: Item, source: Sequence[Token], text: str, answer: Answer,
    off: Sequence[tuple[str, int]] = (),
) -> Record:  # fmt: skip
    """Goes through `answer` once more, token by token given, while a tap listens: the same numbers, now heard."""
    with Off(model, off) as tap:
        found = task.foresee(model, [item], [answer])[0]
    maps = {name: whole(calls) for name, calls in tap.maps.items()}
    target, written = task.pieces(item, answer), ()
    if isinstance(task, Transduce):
        before = () if isinstance(task, Generate) else (task.sign(task.first),)
        written = (*before, *target[:-1])
    kind = "read" if not isinstance(task, Transduce) else "row" if model.prefix else "pair"
    output = task.added(item, answer.tokens) if isinstance(task, Generate) else answer.text
    return Record(text, tuple(source), output, target, tuple(found.given_T.exp().tolist()), maps, kind, written,
                  others(task, item, found), stretches(task, source, found.at), answer,
                  copied=None if found.copied_T is None else tuple(found.copied_T.tolist()))  # fmt: skip


def whole(calls: Sequence[Tensor]) -> Map:
    """The calls of one attention below each other; a call that saw fewer keys saw nothing of the later ones."""
    longest = max(call.shape[-1] for call in calls)
    rows = [F.pad(call[0], (0, longest - call.shape[-1])) for call in calls]
    joined: Map = torch.cat(rows, 1).float().cpu().numpy()
    return joined


def others(task: Task, item: Item, found: Foresight) -> tuple[tuple[Other, ...], ...]:
    """The likeliest at each place, best first."""
    best = found.log_TV.exp().topk(min(SHOWN, found.log_TV.shape[1]), -1)
    return tuple(tuple(Other(task.token(item, id), id, sure) for sure, id in zip(row, ids, strict=True) if sure > 0)
                 for row, ids in zip(best.values.tolist(), best.indices.tolist(), strict=True))  # fmt: skip


def stretches(task: Task, source: Sequence[Token], at: Sequence[int] | None) -> tuple[tuple[int, int], ...] | None:
    """The source tokens that each answer belongs to.

    A label stands at the last piece of its word, which begins behind the word before it and the space.
    """
    if at is None or task.config.task != "tag":
        return None if at is None else tuple((place, place) for place in at)
    found, begin = [], 0
    for last in at:
        while begin < last and not source[begin].text.strip(BLANKS):
            begin += 1
        found.append((min(begin, last), last))
        begin = last + 1
    return tuple(found)


def tree(task: Task, item: Item, seen: Sequence[Live], answer: Answer) -> tuple[Node, ...]:
    """What a beam held, as nodes: each text that was being written is its last token, below the text before it."""
    numbers: dict[tuple[int, ...], int] = {}
    nodes: list[Node] = []
    best = {(*answer.tokens, END)[: length + 1] for length in range(len(answer.tokens) + 1)}
    for step, live in enumerate(seen):
        rows = zip(live.sum_BN.flatten().tolist(), live.written_RT.tolist(), live.log_RT[:, -1].tolist(), strict=True)
        for sum, written, log in rows:
            if sum == -torch.inf:
                continue
            text, id = tuple(written), written[-1]
            numbers[text] = len(nodes)
            nodes.append(Node(numbers.get(text[:-1], -1), task.token(item, id), id, step, log, sum, id == END,
                              id == END, text in best))  # fmt: skip
    going = {node.parent for node in nodes}
    return tuple(replace(node, kept=node.kept or number in going) for number, node in enumerate(nodes))
