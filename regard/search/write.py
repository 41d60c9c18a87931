"""A step and a state in, one written text for each row out, token after token: greedy, sampling, and given targets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.data.batch import mix, pad
from regard.data.tokens import END
from regard.errors import UsageError
from regard.layers.rows import rows
from regard.search.demands import Demands, Rules, followed, log_probabilities, obey
from regard.stop import go_on

HOTTEST = 1e4  # a temperature at which all tokens are as good as equal
Step = Callable[[Tensor, Any], tuple[Tensor, Any]]
Choose = Callable[[Tensor, Tensor], Tensor]  # allowed log probabilities (R, V) and row numbers to tokens (R,)


@dataclass(frozen=True)
class Hypothesis:
    """One output: its tokens without the end, their log probabilities with it, and the score that ranks it."""

    tokens: tuple[int, ...]
    log_probabilities: tuple[float, ...]  # of each token; of the end too, if it was written
    score: float

    @property
    def log_probability(self) -> float:
        return sum(self.log_probabilities)


def normalise(log_probability: float, length: int, penalty: float) -> float:
    """Log probability ÷ length to the power of `penalty`; the end counts as a token."""
    return log_probability / float(max(length, 1) ** penalty)


def greedy(step: Step, state: Any, demand: Demands, rules: Rules, penalty: float = 0.0) -> list[Hypothesis]:
    """Always the likeliest token; of equal ones the lower id."""
    return write(step, state, demand, rules, lambda log_RV, _: log_RV.argmax(-1), penalty)


def write(
    step: Step, state: Any, demand: Demands, rules: Rules, choose: Choose, penalty: float = 0.0
) -> list[Hypothesis]:
    """Tokens as `choose` likes until each row has ended; ended rows leave the batch."""
    count = len(demand.limit_R)
    device = demand.limit_R.device
    row = torch.arange(count, device=device)
    token = torch.full((count,), rules.first, device=device)
    written = token.new_empty(count, 0)
    log = torch.empty(count, 0, device=device)
    finished: dict[int, Hypothesis] = {}
    while len(row):  # rows leave when they have ended, so R has no one size in here
        go_on()
        logits, state = step(token, state)
        exact = log_probabilities(logits)
        token = choose(obey(exact, written, rules, demand), row)
        log = torch.cat([log, exact.gather(1, token[:, None])], 1)
        demand = followed(demand, token, rules)
        ended = token == END
        for place in ended.nonzero().flatten().tolist():
            finished[int(row[place])] = hypothesis(written[place].tolist(), log[place].tolist(), penalty)
        written = torch.cat([written, token[:, None]], 1)
        if bool(ended.any()):
            kept = (~ended).nonzero().flatten()
            row, token, written, log = rows((row, token, written, log), kept)
            state, demand = rows(state, kept), rows(demand, kept)
    return [finished[row] for row in range(count)]


def hypothesis(tokens: Sequence[int], logs: Sequence[float], penalty: float) -> Hypothesis:
    return Hypothesis(tuple(tokens), tuple(logs), normalise(sum(logs), len(logs), penalty))


@dataclass(frozen=True)
class Sampling:
    """How to draw: from the `top_k` likeliest (0 = all), from the likeliest that together reach `top_p` (1 = all)."""

    seed: int = 0
    temperature: float = 1.0  # above 0: lower is bolder
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.temperature <= HOTTEST:
            raise UsageError(f"temperature={self.temperature}: expected a number above 0, at most {HOTTEST:g}")
        if self.top_k < 0 or not 0.0 <= self.top_p <= 1.0:
            raise UsageError(f"top_k={self.top_k}, top_p={self.top_p}: expected at least 0, and from 0 to 1")


def sample(
    step: Step, state: Any, demand: Demands, rules: Rules, sampling: Sampling, numbers: Sequence[int] | None = None
) -> list[Hypothesis]:
    """Tokens drawn at random. A row's draws depend on the seed and its number alone, not on who shares its batch."""
    numbers = numbers or range(len(demand.limit_R))
    longest = int(demand.limit_R.max()) + 2
    draws = torch.stack([uniform(sampling.seed, number, longest) for number in numbers]).to(demand.limit_R.device)
    at = 0

    def choose(log_RV: Tensor, row_R: Tensor) -> Tensor:
        nonlocal at
        at += 1
        return draw(narrow(log_RV, sampling), draws[row_R, at - 1])

    return write(step, state, demand, rules, choose)


def uniform(seed: int, number: int, count: int) -> Tensor:
    return torch.rand(count, generator=torch.Generator().manual_seed(mix(seed, "sample", number)))


def narrow(log_RV: Tensor, sampling: Sampling) -> Tensor:
    """Probabilities after temperature, top-k and top-p."""
    log_RV = log_RV / sampling.temperature
    ordered_RV, order_RV = log_RV.softmax(-1).sort(dim=-1, descending=True, stable=True)
    dropped_RV = ordered_RV.cumsum(-1) - ordered_RV >= sampling.top_p
    if sampling.top_k:
        dropped_RV[:, sampling.top_k :] = True
    dropped_RV[:, 0] = False
    return torch.zeros_like(ordered_RV).scatter(1, order_RV, ordered_RV.masked_fill(dropped_RV, 0.0))


def draw(probability_RV: Tensor, uniform_R: Tensor) -> Tensor:
    """The token at which the running sum of probabilities passes a number between 0 and 1."""
    sums_RV = probability_RV.double().cumsum(-1)
    wanted_R = uniform_R.double() * sums_RV[:, -1]
    return (sums_RV <= wanted_R[:, None]).sum(-1).clamp(max=last_possible(probability_RV))


def last_possible(probability_RV: Tensor) -> Tensor:
    """The highest token that can be drawn at all: rounding must not step beyond it."""
    at_V = torch.arange(probability_RV.shape[1], device=probability_RV.device)
    return (at_V * (probability_RV > 0)).amax(-1)


def given(
    step: Step,
    state: Any,
    targets: Sequence[Sequence[int]],
    rules: Rules,
    penalty: float = 0.0,
    device: torch.device | None = None,
) -> list[Hypothesis]:
    """Exact log probabilities of given targets, the end included."""
    target_BT = pad([[*ids, END] for ids in targets]).to(device)
    token_R = torch.full((len(targets),), rules.first, device=device)
    logs = []
    for next_R in target_BT.unbind(1):
        go_on()
        logits_RV, state = step(token_R, state)
        logs.append(log_probabilities(logits_RV).gather(1, next_R[:, None]))
        token_R = next_R
    table = torch.cat(logs, 1).tolist()
    return [hypothesis(ids, row[: len(ids) + 1], penalty) for ids, row in zip(targets, table, strict=True)]
