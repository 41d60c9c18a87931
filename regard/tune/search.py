"""A file and minutes in, a trained model out: short runs with other settings each, then one with the best of them.

The trials stand in FOLDER/tune/trial-NN while the search goes on. What is left at the end is a model folder as any
other, with tune.csv in it.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from regard import folder as folders
from regard.errors import RegardError
from regard.training.home import TUNED, begun, finished, occupied, read_start, refuse_others
from regard.training.log import reached
from regard.training.run import Call, Given, resume, train
from regard.tune.budget import LEAST_MINUTES
from regard.tune.memory import Memory, Trial, remembered
from regard.tune.plan import Asked, Search, announced, plan_of, planned
from regard.tune.propose import Known, propose, refuse_without_optuna
from regard.tune.space import Values
from regard.tune.trial import Found, bounded, heard, interrupted, tokens_for, trial_of, worth


def tuned(asked: Asked, spent: float = 0.0) -> Found:
    """The model that a search ends with, in its folder if one is named; repeated after an interruption, it goes on.

    `spent` are seconds that count as taken already.
    """
    began = time.monotonic() - spent
    refuse_without_optuna()
    search = planned(asked, began)
    with place_of(asked) as folder:
        with occupied(folder):
            memory = remembered(folder, plan_of(search), asked.force)
            going = is_final(memory)
            if not going:
                refuse_others(folder, memory.may_replace)
                try:
                    search, memory = tried(search, memory)
                except KeyboardInterrupt:  # no run was there to hear it
                    raise interrupted(search, "interrupted by SIGINT between two trials") from None
        if going:
            search.say("the search has ended already; its final run goes on")
            return resume(folder, asked.quiet)
        return final(search, memory)


@contextmanager
def place_of(asked: Asked) -> Iterator[Path]:
    """Where the trials are made: in the folder of the model, or where nobody looks."""
    if asked.out is not None:
        yield Path(asked.out)
        return
    with TemporaryDirectory() as place:
        yield Path(place)


def tried(search: Search, memory: Memory) -> tuple[Search, Memory]:
    """Trials until all are done or their share of the time is spent; those that are known are taken as they are."""
    search.say(*announced(search))
    count = search.budget.trials
    earlier = 60 * sum(trial.minutes for trial in memory.trials) + reached(memory.place(len(memory.trials) + 1))[1]
    search = replace(search, began=search.began - earlier)
    if memory.trials:
        search.say(f"{len(memory.trials)} of {count} trials have finished already, and are taken as they are")
    memory.write()
    while len(memory.trials) < count:
        longest = 60 * max([trial.minutes for trial in memory.trials], default=0.0)
        if memory.trials and not search.budget.allows(search.seconds, longest):
            search.say(f"the search ends with trial {len(memory.trials)}: trials take longer than was planned")
            break
        values = proposed(search, memory)
        if values is None:
            search.say(f"the search ends with trial {len(memory.trials)}: there is nothing else to be tried")
            break
        memory = memory.add(trial_of(search, memory, values))
        search.say(line(search, memory))
    return search, memory


def proposed(search: Search, memory: Memory) -> Values | None:
    """The first trial is what was chosen without a search."""
    if not memory.trials:
        return search.space.start
    known = [Known(trial.values, None if trial.score is None else worth(trial)) for trial in memory.trials]
    return propose(search.space, known, search.space.first.train.seed)


# ── what is told of the trials ───────────────────────────────────────────────────────────────────────────────────────


def line(search: Search, memory: Memory) -> str:
    """The last trial, for a person."""
    trial, best = memory.trials[-1], max(memory.trials, key=worth)
    what = search.space.told(trial.values) or "what is chosen without a search"
    place = f"trial {trial.number} of {search.budget.trials}: {what} · {scored(trial)}"
    if best.score is None:
        return place
    return place + (" · the best so far" if best is trial else f" · best so far {scored(best)}, of trial {best.number}")


def scored(trial: Trial) -> str:
    return f"failed: {trial.failure}" if trial.score is None else f"{trial.metric} {trial.score:.4g}"


def notes(search: Search, memory: Memory, best: Trial) -> tuple[str, ...]:
    """For the card: what was searched, what was found, and what that means for the scores."""
    count, first = len(memory.trials), memory.trials[0]
    had = scored(first) if first.score is None else f"had {scored(first)}"
    chosen = (f"trial {best.number}, {search.space.told(best.values)}: {scored(best)}; trial 1, without these changes, "
              f"{had}" if best is not first else f"trial 1, no other having done better: {scored(best)}")  # fmt: skip
    return (
        f"tuned: {count} trial{'s' * (count > 1)} of {search.budget.each:.2g} minutes, the first of them with what is "
        f"chosen without a search; varied: {', '.join(search.space.start)}; tune.csv has them all",
        f"tuned: chosen was {chosen}",
        f"tuned: the best of {count} was chosen on the same held-out examples that give the scores, which makes these "
        "somewhat too good; a fresh test file is the better judge",
    )  # fmt: skip


# ── the final run ────────────────────────────────────────────────────────────────────────────────────────────────────


def final(search: Search, memory: Memory) -> Found:
    """One run with the best settings, in the minutes that are left; the trials are gone by then."""
    asked, best = search.asked, best_of(memory)
    c = search.space.config(best.values)
    tokens, known = tokens_for(c, memory), heard(search, memory)
    memory.sweep()
    c = bounded(c, max(LEAST_MINUTES, search.budget.minutes - search.seconds / 60))
    why = replace(search.why, guesses=(*search.why.guesses, *notes(search, memory, best)))
    call = Call(memory.may_replace, asked.quiet, asked.command, known=known)
    given = Given(why, asked.body, tokens, {TUNED: memory.table()})
    return train(c, asked.path, asked.valid, asked.out, call, given)


def is_final(memory: Memory) -> bool:
    """Whether the final run of this very search stands in the folder, and has not finished."""
    if not memory.trials or not begun(memory.folder) or finished(memory.folder):
        return False
    return read_start(memory.folder).files.get(TUNED) == folders.listing(memory.table())


def best_of(memory: Memory) -> Trial:
    """Of equals the earlier, which differs less from what was chosen without a search."""
    best = max(memory.trials, key=worth)
    if best.score is None:
        raise RegardError(f"none of {len(memory.trials)} trials came to an end; the first: {best.failure}")
    return best


__all__ = ["Asked", "tuned"]
