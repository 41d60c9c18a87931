"""Values of what is varied in, a trial out: one run as `regard train` makes it, and how good it was.

All have the same examples on the same sides and the same tokens, and are judged by the score that decides.
"""

import math
import signal
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from rich.text import Text

from regard import config
from regard import folder as folders
from regard.config import Config
from regard.data.vocabulary import Vocabulary
from regard.errors import ConfigError, DivergedError, Interrupted, RegardError
from regard.folder import remove
from regard.tasks.choose import deciding
from regard.tasks.task import Evaluation
from regard.trained import Trained
from regard.training.home import begun, finished, read_start
from regard.training.keep import Keeper
from regard.training.log import reached
from regard.training.loop import figure
from regard.training.pace import about
from regard.training.run import WARNING, Call, Given, resume, train
from regard.tune.memory import Memory, Trial
from regard.tune.plan import Search
from regard.tune.space import Values
from regard.view.terminal import console

Found = tuple[Trained, Evaluation | None]


def trial_of(search: Search, memory: Memory, values: Values) -> Trial:
    """One run, and how good it was; what it can not bring to an end counts, as the worst."""
    number, began = len(memory.trials) + 1, time.monotonic()
    place, before = memory.place(number), reached(memory.place(number))[1]
    c = bounded(search.space.config(values), search.budget.each)
    done = Trial(number, values, search.space.words(values), None, "", 0, 0.0)
    try:
        with waiting(search, number):
            trained, found = trained_trial(search, memory, place, c)
        assert found is not None
        metric = deciding(trained.config, trained.task)
        score = figure(found, metric)
        if math.isfinite(score):
            done = replace(done, metric=metric, score=score)
        else:
            done = replace(done, failure=f"{metric} is not a number")
    except Interrupted as error:
        raise interrupted(search, f"{str(error).split(';')[0]} of trial {number}", error.exit_code - 128) from None
    except RegardError as error:
        if not is_failure(error, number):
            raise
        done = replace(done, failure=str(error).split("\n")[0])
    return replace(done, steps=reached(place)[0], minutes=round((before + time.monotonic() - began) / 60, 4))


def trained_trial(search: Search, memory: Memory, place: Path, c: Config) -> Found:
    """Goes on with what was begun, if it is the same."""
    asked = search.asked
    if begun(place) and not finished(place) and config.to_tree(folders.read_config(place)) == config.to_tree(c):
        return resume(place, quiet=True)
    remove(place)
    place.parent.mkdir(exist_ok=True)
    call = Call(quiet=True, command=asked.command, known=heard(search, memory))
    given = Given(body=asked.body, tokens=tokens_for(c, memory))
    return train(c, asked.path, asked.valid, place, call, given)


def bounded(c: Config, minutes: float) -> Config:
    """The same run in so many minutes."""
    return c.model_copy(update={"train": c.train.model_copy(update={"minutes": math.floor(1000 * minutes) / 1000})})


def is_failure(error: RegardError, number: int) -> bool:
    """Whether an error is the settings' fault, rather than that of the data or the machine.

    The first trial has the settings that a run without a search would have had.
    """
    of_settings = number > 1 and isinstance(error, ConfigError)
    return of_settings or isinstance(error, DivergedError) or type(error) is RegardError  # out of memory


def interrupted(search: Search, where: str, number: int = signal.SIGINT) -> Interrupted:
    """What a signal leaves of a search."""
    goes_on = ("nothing is saved: no folder was named" if search.asked.out is None
               else f"the same command{', without --force,' * search.asked.force} goes on with the search")  # fmt: skip
    return Interrupted(f"{where}; {goes_on}", number)


def tokens_for(c: Config, memory: Memory) -> Vocabulary | None:
    """The tokens of the first trial that has made any; with a copy head they hold what sources have too."""
    places = [memory.place(trial.number) for trial in memory.trials]
    made = [place for place in places if (place / "tokenizer.json").is_file()]
    alike = [place for place in made if folders.read_config(place).copies == c.copies]
    return folders.read_vocabulary(alike[0]) if alike else None


def heard(search: Search, memory: Memory) -> tuple[str, ...]:
    """What the person has been told already: how the config came about, and what the first trial has warned of."""
    first = memory.place(1)
    notes = read_start(first).notes if memory.trials and (first / "run.json").is_file() else ()
    return *search.why, *(note for note in notes if note.startswith(WARNING))


def waiting(search: Search, number: int) -> AbstractContextManager[object]:
    """While a trial runs, a terminal shows it."""
    stderr = console(search.asked.quiet)
    if search.asked.quiet or not stderr.is_terminal:
        return nullcontext()
    return stderr.status(Text(f"trial {number} of {search.budget.trials}, {about(60 * search.budget.each)}"))


def worth(trial: Trial) -> float:
    """The higher the better; a trial that failed is worth less than any."""
    return -math.inf if trial.score is None else Keeper(trial.metric, 0).worth(trial.score)
