"""Prepared data in, a trained model out: the loop, to be read straight down."""

import math
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.utils import clip_grad_norm_

from regard.data.batch import mix
from regard.errors import RegardError
from regard.models.model import Model
from regard.tasks.choose import deciding
from regard.tasks.task import Evaluation, Wish
from regard.training.device import device, precision
from regard.training.keep import Keeper, restore
from regard.training.prepare import Part, Prepared
from regard.training.progress import Report
from regard.training.schedule import forcing, learning_rate
from regard.training.stop import Stop
from regard.training.stream import updates

SAMPLES = 3  # shown at each validation
MOST_BAD_STEPS = 10  # updates in a row that were not numbers, before the run gives up


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    step: int
    best_step: int
    why: str
    averaged: bool
    chosen: bool  # by validation; else these are just the last weights
    signal: int | None = None


def loop(data: Prepared, model: Model, report: Report, keep: Keeper, stop: Stop) -> Outcome:
    """Steps until there is a reason to stop; afterwards the model holds the best weights that were seen."""
    t = data.config.train
    where = device(t)
    model.to(where).train()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=t.learning_rate, betas=(t.beta1, t.beta2), weight_decay=t.weight_decay, fused=True
    )
    stream = updates(data.task, data.train, t)
    step, bad, why = 0, 0, f"all {t.steps} steps are done"

    while step < t.steps:
        step += 1
        rate = learning_rate(t, step)
        for group in optimizer.param_groups:
            group["lr"] = rate
        torch.manual_seed(mix(t.seed, "dropout", step))

        total, count = 0.0, 0
        batches, _ = next(stream)
        for number, batch in enumerate(batches):
            with precision(t, where):
                loss = data.task.loss(model, batch.to(where), forcing(t, step), mix(t.seed, "forcing", step, number))
            torch.autograd.backward(loss.total)
            total += float(loss.total.detach())
            count += loss.count

        for weight in model.parameters():
            if weight.grad is not None:
                weight.grad.div_(max(1, count))
        norm = float(clip_grad_norm_(model.parameters(), t.clip))
        healthy = math.isfinite(norm) and math.isfinite(total)
        if healthy:
            optimizer.step()
        bad = 0 if healthy else bad + 1
        optimizer.zero_grad(set_to_none=True)
        report.step(step, total, count, rate, norm)
        if bad >= MOST_BAD_STEPS:
            raise RegardError(f"step {step}: {bad} updates in a row were not finite (learning rate {rate:.2e}, "
                              f"gradient norm {norm:.2e}); a lower train.learning_rate or a longer train.warmup "
                              "may help")  # fmt: skip

        ending = stop.reason()
        why = ending or why
        if step % t.checkpoint_steps == 0 or ending or step == t.steps:
            keep.checkpoint(model)
        if step % t.validate_steps == 0 or step == t.steps or (ending and stop.signal is None):
            validate(data, model, report, keep, step)
            if t.patience is not None and keep.since_best >= t.patience:
                ending = why = f"{keep.since_best} validations brought nothing better"
        if ending:
            break

    averaged = try_mean(data, model, report, keep, step) if stop.signal is None else False
    if keep.best is not None:
        restore(model, keep.best.weights)
    chosen = keep.best is not None
    return Outcome(step, keep.best.step if keep.best else step, why, averaged, chosen, stop.signal)


def validate(data: Prepared, model: Model, report: Report, keep: Keeper, step: int, name: str = "") -> None:
    """Decodes part of the validation set, tells what came out, and keeps the model if it is the best."""
    started = time.monotonic()
    model.eval()
    part = few(data.valid, data.config.train.validate_examples)
    search = data.config.search
    wish = Wish(beam=search.beam, length_penalty=search.length_penalty)
    found = data.task.evaluate(model, part.items, part.examples, wish, intervals=False)
    model.train()
    value = figure(found, deciding(data.config))
    best = keep.offer(model, step, value)
    report.validated(entry(found, step, name), samples(part, found), best, time.monotonic() - started)


def try_mean(data: Prepared, model: Model, report: Report, keep: Keeper, step: int) -> bool:
    """The mean of the last checkpoints takes the place of the best if it does better on validation."""
    weights = keep.mean()
    if weights is None:
        return False
    restore(model, weights)
    validate(data, model, report, keep, step, f"mean of the last {len(keep.last)}")
    return keep.since_best == 0


def few(part: Part, count: int) -> Part:
    return Part(part.path, part.examples[:count], part.items[:count])


def figure(found: Evaluation, metric: str) -> float:
    """The number that decides, from the scores of a task."""
    return found.metrics[metric].value if metric in found.metrics else found.facts[metric]


def entry(found: Evaluation, step: int, name: str) -> dict[str, Any]:
    line: dict[str, Any] = {"step": step, "weights": name} if name else {"step": step}
    for key, metric in found.metrics.items():
        line[f"valid_{key}"] = metric.value
    return line | {f"valid_{key}": value for key, value in found.facts.items()}


def samples(part: Part, found: Evaluation) -> list[tuple[str, str, str]]:
    """The first few of the validation set: source, reference, output."""
    return [(" ⇥ ".join(example.source), example.target or " ⇥ ".join(example.source), output)
            for example, output in list(zip(part.examples, found.outputs, strict=True))[:SAMPLES]]  # fmt: skip
