"""Log probabilities and what was written in, the same with everything forbidden at −∞ out.

Nothing is renormalised: what a rule leaves alone keeps its exact log probability.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.data.tokens import CLASS, END, MASK, PAD, SEPARATOR, START
from regard.search.constrain import FIRST, Constraint

NOTHING = -1  # a place where no token is demanded
LOWEST = -1e9  # the log probability of what can not be


@dataclass(frozen=True)
class Rules:
    """What every output must obey."""

    first: int = START  # the token a decoder is fed before the first
    min_length: int = 0
    no_repeat: int = 0  # no n-gram of this length twice; 0 = as often as it likes
    banned: tuple[tuple[int, ...], ...] = ()  # n-grams that are never written; one token is a 1-gram
    never: tuple[int, ...] = (PAD, START, SEPARATOR, MASK, CLASS)
    constraint: Constraint | None = None  # what the text must match, be among or hold; made with the same `banned`


@dataclass(frozen=True)
class Demands:
    """What differs from row to row: the longest length, the tokens to begin with, and how far the constraint is met."""

    limit_R: Tensor
    prefix_RT: Tensor
    state_R: Tensor  # of the constraint; stays as it is where there is none


def log_probabilities(logits_RV: Tensor) -> Tensor:
    """What a step said, as log probabilities that are always numbers.

    A model whose numbers have gone must not hold a search up for ever: what is not finite counts as next to impossible,
    so −∞ is left to the rules and the end can always be reached.
    """
    return logits_RV.float().log_softmax(-1).nan_to_num(nan=LOWEST, neginf=LOWEST)


def demands(limits: Sequence[int], prefixes: Sequence[Sequence[int]] | None, device: torch.device) -> Demands:
    """Limits and forced prefixes as tensors; a prefix longer than its limit lifts the limit."""
    given = prefixes or [()] * len(limits)
    longest = max((len(prefix) for prefix in given), default=0)
    table = [[*prefix, *[NOTHING] * (longest - len(prefix))] for prefix in given]
    limit = [max(a, len(prefix)) for a, prefix in zip(limits, given, strict=True)]
    prefix_RT = torch.tensor(table, dtype=torch.long, device=device).view(len(limits), longest)
    limit_R = torch.tensor(limit, dtype=torch.long, device=device)
    return Demands(limit_R, prefix_RT, torch.full_like(limit_R, FIRST))


def followed(demand: Demands, token_R: Tensor, rules: Rules) -> Demands:
    """What is demanded of rows that have written one more token."""
    if rules.constraint is None:
        return demand
    return replace(demand, state_R=rules.constraint.after(demand.state_R, token_R))


def obey(log_RV: Tensor, written_RT: Tensor, rules: Rules, demand: Demands) -> Tensor:
    """Log probabilities of the next token with everything forbidden at −∞; a row with no way on may end.

    With a constraint the way on is what it allows, which always leads to an end: other rules give way to it.
    """
    at = written_RT.shape[1]
    allowed_RV = torch.ones_like(log_RV, dtype=torch.bool)
    allowed_RV[:, list(rules.never)] = False
    for row, token in forbidden(written_RT, rules):
        allowed_RV[row, token] = False
    if at < rules.min_length:
        allowed_RV[:, END] = False
    allowed_RV = with_a_way_on(allowed_RV, at, rules, demand)
    if at < demand.prefix_RT.shape[1]:
        wanted_R = demand.prefix_RT[:, at]
        allowed_RV = only(allowed_RV, wanted_R != NOTHING, wanted_R.clamp(min=0))
    return log_RV.masked_fill(~allowed_RV, -torch.inf)


def with_a_way_on(allowed_RV: Tensor, at: int, rules: Rules, demand: Demands) -> Tensor:
    """What is allowed, and something at least in every row."""
    if rules.constraint is not None:
        legal_RV = rules.constraint.legal(demand.state_R, rules.min_length - at, demand.limit_R - at)
        both_RV = allowed_RV & legal_RV
        return torch.where(both_RV.any(1, keepdim=True), both_RV, legal_RV)
    stuck_R = ~allowed_RV.any(1) | (demand.limit_R <= at)
    return only(allowed_RV, stuck_R, torch.full_like(stuck_R, END, dtype=torch.long))


def only(allowed_RV: Tensor, where_R: Tensor, token_R: Tensor) -> Tensor:
    """In the rows `where_R` nothing but one token is allowed."""
    single_RV = torch.zeros_like(allowed_RV).scatter_(1, token_R[:, None], True)
    return torch.where(where_R[:, None], single_RV, allowed_RV)


def forbidden(written_RT: Tensor, rules: Rules) -> list[tuple[int, int]]:
    """Row and token of every continuation that would write a banned or a repeated n-gram."""
    if not rules.banned and not rules.no_repeat:
        return []
    found = []
    for row, written in enumerate(written_RT.tolist()):
        found += [(row, gram[-1]) for gram in rules.banned if ends_with(written, gram[:-1])]
        found += [(row, token) for token in repeats(written, rules.no_repeat)]
    return found


def ends_with(written: list[int], tail: tuple[int, ...]) -> bool:
    return not tail or tuple(written[-len(tail) :]) == tail


def repeats(written: list[int], length: int) -> list[int]:
    """Tokens that would complete an n-gram of this length which stands in `written` already."""
    if length == 0 or len(written) < length:
        return []
    tail = written[len(written) - length + 1 :]
    starts = range(len(written) - length + 1)
    return [written[i + length - 1] for i in starts if written[i : i + length - 1] == tail]
