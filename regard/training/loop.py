"""Prepared data in, a trained model out: the loop, to be read straight down."""

import math
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.utils import clip_grad_norm_

from regard.config import Train
from regard.data.evenly import evenly
from regard.errors import DivergedError
from regard.models.model import Model
from regard.tasks.choose import deciding
from regard.tasks.task import Evaluation, Task, Wish
from regard.training.checkpoint import Checkpoint, Checkpoints, Standing, copied, put_moments
from regard.training.keep import Keeper, restore
from regard.training.pace import LAST
from regard.training.prepare import Part, Prepared
from regard.training.progress import Report
from regard.training.rates import optimizer_of
from regard.training.schedule import learning_rate
from regard.training.stop import Abandoned, Stop
from regard.training.stream import Place, updates
from regard.training.team import Team
from regard.training.update import Learner

SAMPLES = 3  # shown at each validation …
SHOWN = 40  # … and the end of a text that goes on
MOST_BAD_STEPS = 10  # updates in a row that were not numbers, before the run gives up


@dataclass(frozen=True)
class Crew:
    """Who works beside the loop: each does one thing, and the loop tells it when."""

    report: Report  # tells a person, and writes the logs
    keep: Keeper  # the best weights, and the last few
    stop: Stop  # signals and the clock
    checkpoints: Checkpoints  # what survives this process
    team: Team  # the other processes
    where: torch.device
    numbers: str = "fp32"  # in which products are computed
    run: str = ""  # the seal of run.json


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    step: int
    best_step: int
    why: str
    averaged: bool
    chosen: bool  # by validation; else these are just the last weights
    signal: int | None = None


def loop(data: Prepared, model: Model, crew: Crew, begin: Checkpoint | None = None) -> Outcome:
    """Steps until there is a reason to stop; afterwards the model holds the best weights that were seen.

    A checkpoint holds what is true between a step and the validation that may follow it. So whoever starts from one
    validates first, if that is due, and from there on does what was done or would have been done.
    """
    t = data.config.train
    report, keep, stop, team, checkpoints = crew.report, crew.keep, crew.stop, crew.team, crew.checkpoints
    model.to(crew.where).train()
    optimizer = optimizer_of(model, t, crew.numbers)
    standing = begin.standing if begin else Standing()
    if begin is not None:
        restore(model, begin.weights)
        put_moments(model, optimizer, begin.optimizer)
    learner = Learner(data.task, model, t, team, crew.where, crew.numbers)
    stream = updates(data.task, data.train, t, standing.place, team.share)
    step, place, bad = standing.step, standing.place, standing.bad
    asked = team.sum(stop.asked())

    def save() -> None:
        if not bad or stop.signal is not None:  # while steps fail, the checkpoints from before stay as they are
            checkpoints.save(step, lambda: copied(stand(crew, step, place, bad), model, optimizer, keep.kept))

    while True:
        if report.pace.is_due(step):
            report.pace.last = team.told(report.pace.affordable(step, stop.reserve()))
        ending = stop.reason(step, report.pace.last, asked, t.steps)
        if step and stop.signal is None and (step % t.checkpoint_steps == 0 or ending):
            keep.remember(model, step)
        if checkpoints.due(step) or ending or may_be_last(t, keep, step):
            save()
        if step and stop.signal is None and (step % t.validate_steps == 0 or ending):
            try:
                ending = validate(data, model, crew, step) or ending
            except Abandoned:
                ending = stop.interruption
                save()
        if ending:
            break

        batches, place = next(stream)
        step += 1
        rate = learning_rate(t, step, report.pace.last)
        for group in optimizer.param_groups:
            group["lr"] = rate * group["share"]
        sums = learner.gradients(step, batches, report.pace.last)
        total, count, *asked = team.sum([sums.total, sums.count, *stop.asked()])
        for weight in model.parameters():
            if weight.grad is not None:
                weight.grad.div_(max(1.0, count) / team.share.world)  # processes have been averaged, not summed
        norm = float(clip_grad_norm_(model.parameters(), t.clip))
        healthy = math.isfinite(norm) and math.isfinite(total)
        if healthy:
            optimizer.step()
        bad = 0 if healthy else bad + 1
        optimizer.zero_grad(set_to_none=True)
        report.step(step, total, int(count), rate, norm)
        if bad >= MOST_BAD_STEPS:
            raise DivergedError(f"step {step}: {bad} updates in a row were not finite (learning rate {rate:.2e}, "
                                f"gradient norm {norm:.2e}); a lower train.learning_rate or a longer train.warmup "
                                "may help")  # fmt: skip

    checkpoints.wait()
    averaged = try_mean(data, model, crew, step) if stop.signal is None else False
    if keep.best is not None:
        restore(model, keep.best.weights)
    chosen = keep.best is not None
    return Outcome(step, keep.best.step if keep.best else step, ending, averaged, chosen, stop.signal)


def may_be_last(t: Train, keep: Keeper, step: int) -> bool:
    """Whether the validation that is due after this step may end the run, patience being at its end."""
    if step % t.validate_steps:
        return False
    patient = t.patience is None or keep.since_best + 1 < keep.patience(t.patience)
    return not patient or (t.perfect is not None and (t.perfect == 1 or keep.since_best + 2 >= t.perfect))


def stand(crew: Crew, step: int, place: Place, bad: int) -> Standing:
    """Where the run stands now, for a checkpoint."""
    kept = crew.keep.kept
    best = kept.best
    value, loss = (number if math.isfinite(number) else None
                   for number in ((best.value, best.loss) if best is not None else (math.nan, math.nan)))  # fmt: skip
    return Standing(
        run=crew.run, step=step, place=place, bad=bad, best_step=best.step if best else None, best_value=value,
        best_loss=loss, since_best=kept.since_best, window=tuple(each for each, _ in kept.window),
        seconds=crew.stop.clock.seconds(), ending=crew.stop.ending, last=crew.report.pace.last, log=crew.report.mark,
    )  # fmt: skip


def validate(data: Prepared, model: Model, crew: Crew, step: int, name: str = "") -> str | None:
    """The first process decodes part of the validation set; a reason to end, if that gives one.

    A signal breaks it off for all, and nothing of it is kept: it will be done anew when the run is resumed.
    """
    patience, abandoned = data.config.train.patience, False
    if crew.team.first:
        try:
            judge(data, model, crew, step, name)
        except Abandoned:
            abandoned = True
    if crew.team.told(abandoned):
        crew.stop.signal = crew.team.told(crew.stop.heard or 0)
        raise Abandoned
    since_best = crew.team.told(crew.keep.since_best)
    if patience is not None and since_best >= crew.team.told(crew.keep.patience(patience)):
        return f"{since_best} validations brought nothing better"
    if not name and crew.team.told(crew.keep.is_done(step, data.config.train.perfect)):
        return "validations find no mistake any more"
    return None


def judge(data: Prepared, model: Model, crew: Crew, step: int, name: str) -> None:
    """Tells what came out, and keeps the model if it is the best."""
    started = time.monotonic()
    part = few(data.valid, data.config.train.validate_examples)
    crew.report.doing(f"validating {len(part.items):,} examples")
    with crew.stop.abandoning():  # greedily: a beam would make each several times as long
        found = data.task.evaluate(model.eval(), part.items, part.examples, Wish(), intervals=bool(name))
    model.train()
    took = time.monotonic() - started
    crew.stop.ending = took * (LAST + last_scoring(data))
    metric, loss = deciding(data.config, data.task), found.facts.get("loss", math.nan)
    if name:
        crew.keep.prefer(model, step, figure(found, metric), noise(found, metric), loss)
    else:
        crew.keep.offer(model, step, figure(found, metric), loss)
    crew.report.validated(entry(found, step, name, crew.keep.metric), samples(part, found, data.task), crew.keep, took)


def last_scoring(data: Prepared) -> float:
    """How many times as long as a validation all that follows the last one will take: the mean, all by the beam."""
    judged = min(len(data.valid.items), data.config.train.validate_examples)
    return (1 if data.config.train.average else 0) + data.config.search.beam * len(data.valid.items) / max(1, judged)


def try_mean(data: Prepared, model: Model, crew: Crew, step: int) -> bool:
    """The mean of the last checkpoints takes the place of the best unless validation says clearly that it is worse."""
    weights = crew.keep.mean()
    if weights is None:
        return False
    restore(model, weights)
    before = crew.keep.best
    with suppress(Abandoned):
        validate(data, model, crew, step, f"mean of the last {len(crew.keep.window)}")
    return crew.keep.best is not before


def few(part: Part, count: int) -> Part:
    """So many examples, spread over all of them: a file may be sorted."""
    if len(part.items) <= count:
        return part
    places = evenly(range(len(part.items)), count)
    return Part(part.path, [part.examples[place] for place in places], [part.items[place] for place in places])


def figure(found: Evaluation, metric: str) -> float:
    """The number that decides, from the scores of a task."""
    return found.metrics[metric].value if metric in found.metrics else found.facts[metric]


def noise(found: Evaluation, metric: str) -> float:
    """How far the best of many validations may stand above the truth by chance alone: two standard errors, which is
    half of the 95 % interval of the number that decides; 0 where it has none."""
    judged = found.metrics.get(metric)
    return 0.0 if judged is None or judged.low is None or judged.high is None else (judged.high - judged.low) / 2


def entry(found: Evaluation, step: int, name: str, decides: str) -> dict[str, Any]:
    """A line of the log; metrics that say nothing of these examples are left out, unless one of them decides."""
    line: dict[str, Any] = {"step": step, "weights": name} if name else {"step": step}
    for key, metric in found.metrics.items():
        if key not in found.mute or key == decides:
            line[f"valid_{key}"] = metric.value
    return line | {f"valid_{key}": value for key, value in found.facts.items()}


def samples(part: Part, found: Evaluation, task: Task) -> list[tuple[str, str | None, str]]:
    """The first few of the validation set: source, reference, output; what goes on from a text has no reference."""
    few = list(zip(part.examples, found.outputs, strict=True))[:SAMPLES]
    if task.any_length:
        return [("…" * bool(before := example.source[0][-SHOWN:]) + before, None, output) for example, output in few]
    return [(" ⇥ ".join(example.source), example.target or " ⇥ ".join(example.source), output)
            for example, output in few]  # fmt: skip
