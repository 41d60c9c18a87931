"""Trials and how good they were in, the values of one more out, as optuna's TPE proposes them.

Every proposal is made from all trials before it and a seed of its own, so a search that was interrupted goes on as it
would have gone on.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from regard.errors import UsageError
from regard.tune.space import Setting, Space, Value, Values

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

DRAWN = 4  # trials before what was better is asked for; the first is one of them
ATTEMPTS = 200  # before it is believed that there is nothing new to be tried
MISSING = '--tune: the package optuna is not installed; pip install "regard[tune]" brings it'


@dataclass(frozen=True)
class Known:
    """The values of a trial, and what it was worth: the higher the better; none = it failed."""

    values: Values
    worth: float | None


def refuse_without_optuna() -> None:
    """Said before anything is trained."""
    if find_spec("optuna") is None:
        raise UsageError(MISSING)


def propose(space: Space, known: Sequence[Known], seed: int) -> Values | None:
    """Values that were not tried and that can be; none where there are none."""
    import optuna  # an extra

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(n_startup_trials=DRAWN, seed=(seed * 1009 + len(known)) % (1 << 32))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    within = {setting.name: distribution(setting) for setting in space.settings}
    for each, worth in zip(known, worths(known), strict=True):
        study.add_trial(optuna.trial.create_trial(params=each.values, distributions=within, value=worth))
    tried = [each.values for each in known]
    for _ in range(ATTEMPTS):
        trial = study.ask(within)
        values = {name: rounded(name, value) for name, value in trial.params.items()}
        if values not in tried and space.possible(values):
            return values
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    return None


def worths(known: Sequence[Known]) -> list[float]:
    """One that failed is worth less than all others."""
    worst = min((each.worth for each in known if each.worth is not None and math.isfinite(each.worth)), default=0.0)
    return [each.worth if each.worth is not None and math.isfinite(each.worth) else worst - 1.0 for each in known]


def distribution(setting: Setting) -> "BaseDistribution":
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    if setting.choices:
        return CategoricalDistribution(setting.choices)
    return FloatDistribution(setting.low, setting.high, log=setting.log)


def rounded(name: str, value: Value) -> Value:
    """A number that one would write: what differs less than that can not be told apart by a short run."""
    if name == "learning rate":
        return float(f"{value:.2g}")
    return round(float(value), 2) if name == "dropout" else value
