"""A step and a state in, the best few texts for each source out.

At each step the `width` best continuations of a source are taken, ended ones among them. What has ended is kept apart
and what has not goes on, spreading to `width` again. So at width 1 this is greedy, and at full width it tries every
text there is. A source is done when nothing goes on, or when nothing that goes on can still come among the best.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.data.tokens import END
from regard.layers.rows import rows
from regard.search.demands import Demands, Rules, followed, log_probabilities, obey
from regard.search.write import Hypothesis, Step, hypothesis, normalise
from regard.stop import go_on


@dataclass(frozen=True)
class Live:
    """Hypotheses still being written: `width` rows for each source, those with a sum of −∞ empty."""

    sum_BN: Tensor
    written_RT: Tensor
    log_RT: Tensor


@dataclass
class Source:
    """One source's finished hypotheses, best first, at most `width` of them."""

    number: int
    limit: int
    width: int
    penalty: float
    finished: list[Hypothesis] = field(default_factory=list)

    def add(self, found: Hypothesis) -> None:
        self.finished = sorted([*self.finished, found], key=lambda h: (-h.score, h.tokens))[: self.width]

    def done(self, best_live: float) -> bool:
        """A live one can only lose log probability; dividing by the longest length is the best it can hope for."""
        if best_live == -torch.inf:
            return True
        if len(self.finished) < self.width:
            return False
        return normalise(best_live, self.limit + 1, self.penalty) <= self.finished[-1].score


def beam(
    step: Step,
    state: Any,
    demand: Demands,
    width: int,
    rules: Rules,
    penalty: float = 1.0,
    seen: Callable[[Live], None] | None = None,
) -> list[list[Hypothesis]]:
    """For each source up to `width` finished hypotheses, best first; `seen` hears what is written after each step."""
    limits = demand.limit_R.tolist()
    sources = [Source(number, limit, width, penalty) for number, limit in enumerate(limits)]
    going = list(sources)
    device = demand.limit_R.device
    spread_R = torch.arange(len(sources), device=device).repeat_interleave(width)
    state, demand = rows(state, spread_R), rows(demand, spread_R)
    # Doubles: far down a text two tokens a hair apart would round to the same sum, and a beam of one not be greedy.
    sum_BN = torch.full((len(sources), width), -torch.inf, dtype=torch.float64, device=device)
    sum_BN[:, 0] = 0.0
    live = Live(sum_BN, spread_R.new_empty(len(spread_R), 0), torch.empty(len(spread_R), 0, device=device))
    token = torch.full_like(spread_R, rules.first)
    while going:  # sources leave when they are done, so R has no one size in here
        go_on()
        logits, state = step(token, state)
        exact = log_probabilities(logits)
        allowed = obey(exact, live.written_RT, rules, demand)
        live, origin = advance(live, exact, allowed, banks(rules, demand, width))
        if seen is not None:
            seen(live)
        live = set_apart(live, going)
        kept_rows = still_going(live, going)
        going = [source for source, kept in zip(going, kept_rows[::width].tolist(), strict=True) if kept]
        index = kept_rows.nonzero().flatten()
        state, demand = rows(state, origin[index]), rows(demand, origin[index])
        live = Live(live.sum_BN[kept_rows[::width]], live.written_RT[index], live.log_RT[index])
        token = live.written_RT[:, -1]
        demand = followed(demand, token, rules)
    return [source.finished for source in sources]


def advance(live: Live, exact_RV: Tensor, allowed_RV: Tensor, bank_RV: Tensor | None) -> tuple[Live, Tensor]:
    """The best continuations of each source, or of each of its banks, and the row that each goes on from."""
    batch, width = live.sum_BN.shape
    vocabulary = exact_RV.shape[1]
    total = (live.sum_BN.view(-1, 1) + allowed_RV).view(batch, width * vocabulary)
    sum_BN, best_BN = best(total, width) if bank_RV is None else shared_out(total, bank_RV.view_as(total), width)
    first_B = torch.arange(batch, device=best_BN.device) * width
    origin_R = (first_B[:, None] + best_BN // vocabulary).flatten()
    token_R = (best_BN % vocabulary).flatten()
    written_RT = torch.cat([live.written_RT[origin_R], token_R[:, None]], 1)
    log_RT = torch.cat([live.log_RT[origin_R], exact_RV[origin_R].gather(1, token_R[:, None])], 1)
    return Live(sum_BN, written_RT, log_RT), origin_R


def best(total: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The `width` greatest of each row, of equal ones the first; missing ones, where a row is shorter, are −∞."""
    count = min(width, total.shape[1])
    found, place = total.topk(min(count + 1, total.shape[1]), -1)
    edge = found[:, count - 1 :]
    if edge.shape[1] > 1 and bool(((edge[:, 0] == edge[:, 1]) & edge[:, 0].isfinite()).any()):
        # A tie at the edge, where `topk` promises no order.
        found, place = total.sort(dim=-1, descending=True, stable=True)
    else:
        place, order = place.sort(-1)
        found, order = found.gather(1, order).sort(dim=-1, descending=True, stable=True)
        place = place.gather(1, order)
    lack = width - count
    return F.pad(found[:, :count], (0, lack), value=-torch.inf), F.pad(place[:, :count], (0, lack))


def banks(rules: Rules, demand: Demands, width: int) -> Tensor | None:
    """Which part of the beam each continuation competes in: 0 nothing required is there, …, the last all of it.

    Otherwise a beam would hold nothing but texts that put off what is required. Dynamic beam allocation (Post & Vilar
    2018, https://arxiv.org/abs/1804.06609), by bytes. A beam of one has one bank, so it is still greedy.
    """
    total = 0 if rules.constraint is None else rules.constraint.language.total
    count = min(width, total + 1)
    if rules.constraint is None or count == 1:
        return None
    met_RV = rules.constraint.met(demand.state_R)
    between_RV = 1 + (met_RV - 1) * (count - 2) // max(total - 1, 1) if count > 2 else torch.zeros_like(met_RV)
    return torch.where(met_RV == total, count - 1, torch.where(met_RV == 0, 0, between_RV))


def shared_out(total: Tensor, bank: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The best of each bank, then the second of each, … until there are `width`; the bank with most in it goes first.

    What a bank has no use for goes to the others, so a wide beam still takes everything.
    """
    count = int(bank.max()) + 1
    found = [best(total.masked_fill(bank != number, -torch.inf), width) for number in reversed(range(count))]
    sums, places = (torch.stack(each, -1).flatten(1) for each in zip(*found, strict=True))
    empty = (sums == -torch.inf).long()
    order = empty.sort(dim=-1, stable=True).indices[:, :width]
    place, by_place = places.gather(1, order).sort(-1)
    chosen, by_sum = sums.gather(1, order).gather(1, by_place).sort(dim=-1, descending=True, stable=True)
    return chosen, place.gather(1, by_sum)


def set_apart(live: Live, going: list[Source]) -> Live:
    """Hypotheses that just ended leave the beam for their source's list."""
    batch, width = live.sum_BN.shape
    ended_BN = (live.written_RT[:, -1] == END).view(batch, width) & (live.sum_BN > -torch.inf)
    for b, n in ended_BN.nonzero().tolist():
        tokens, logs = live.written_RT[b * width + n].tolist(), live.log_RT[b * width + n].tolist()
        going[b].add(hypothesis(tokens[:-1], logs, going[b].penalty))
    return replace(live, sum_BN=live.sum_BN.masked_fill(ended_BN, -torch.inf))


def still_going(live: Live, going: list[Source]) -> Tensor:
    """For each row whether its source goes on."""
    best_live = live.sum_BN.amax(1).tolist()
    goes = [not source.done(value) for source, value in zip(going, best_live, strict=True)]
    return torch.tensor(goes, device=live.sum_BN.device).repeat_interleave(live.sum_BN.shape[1])
