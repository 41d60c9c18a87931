"""A score for each label at each place in, labels that are chosen together out: a conditional random field in a chain.

log p(y | x) = Σ e[t, y[t]] + Σ a[y[t-1], y[t]] + first[y[0]] + last[y[T]] − log Z (Lafferty et al. 2001; on the states
of a network, Lample et al. 2016, https://arxiv.org/abs/1603.01360). Vectorised over rows; only time is a loop.
"""

import torch
from torch import Tensor, nn

from regard.stop import go_on


class Chain(nn.Module):
    """Which label likes to follow which, to begin and to end. A mask is True for the first places of a row, alone.

    A row without any place has the probability 1 of the empty answer.
    """

    def __init__(self, labels: int) -> None:
        super().__init__()
        self.transitions = nn.Parameter(torch.empty(labels, labels))  # from a row to a column
        self.first = nn.Parameter(torch.empty(labels))
        self.last = nn.Parameter(torch.empty(labels))
        for weight in (self.transitions, self.first, self.last):
            nn.init.uniform_(weight, -0.1, 0.1)

    def log_likelihood(self, emissions_BTV: Tensor, label_BT: Tensor, mask_BT: Tensor) -> Tensor:
        """Of the labels of each row, together: (B,)."""
        chosen_BT = emissions_BTV.gather(2, label_BT[..., None])[..., 0] * mask_BT
        steps = self.transitions[label_BT[:, :-1], label_BT[:, 1:]] * mask_BT[:, 1:]
        last_B = label_BT.gather(1, (mask_BT.sum(1, keepdim=True) - 1).clamp(min=0))[:, 0]
        score_B = chosen_BT.sum(1) + steps.sum(1) + self.first[label_BT[:, 0]] + self.last[last_B]
        found_B: Tensor = (score_B - self.log_partition(emissions_BTV, mask_BT)) * mask_BT[:, 0]
        return found_B

    def log_partition(self, emissions_BTV: Tensor, mask_BT: Tensor) -> Tensor:
        """The logarithm of the sum over all labellings: the forward algorithm."""
        return (self.forwards(emissions_BTV, mask_BT)[-1] + self.last).logsumexp(-1)

    def forwards(self, emissions_BTV: Tensor, mask_BT: Tensor) -> list[Tensor]:
        """At each place, for each label there, the summed weight of all that can stand before it, as a logarithm."""
        found = [self.first + emissions_BTV[:, 0]]
        for at in range(1, emissions_BTV.shape[1]):
            go_on()
            next_BV = mixed(found[-1], self.transitions) + emissions_BTV[:, at]
            found.append(torch.where(mask_BT[:, at, None], next_BV, found[-1]))
        return found

    def backwards(self, emissions_BTV: Tensor, mask_BT: Tensor) -> list[Tensor]:
        """… and of all that can stand after it."""
        found = [self.last.expand(len(emissions_BTV), -1)]
        for at in range(emissions_BTV.shape[1] - 1, 0, -1):
            go_on()
            next_BV = mixed(found[-1] + emissions_BTV[:, at], self.transitions.T)
            found.append(torch.where(mask_BT[:, at, None], next_BV, found[-1]))
        return found[::-1]

    def log_marginals(self, emissions_BTV: Tensor, mask_BT: Tensor) -> Tensor:
        """The log probability of each label at each place, whatever stands at the others."""
        before, after = self.forwards(emissions_BTV, mask_BT), self.backwards(emissions_BTV, mask_BT)
        return (torch.stack(before, 1) + torch.stack(after, 1)).log_softmax(-1)

    def best(self, emissions_BTV: Tensor, mask_BT: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """The labels of the `count` likeliest labellings (B, N, T), best first, and their log probabilities (B, N).

        The algorithm of Viterbi with the N best ways to every label; where there are fewer labellings than N, the rest
        have the probability 0.
        """
        rows, length, labels = emissions_BTV.shape
        score_BNV = emissions_BTV.new_full((rows, count, labels), -torch.inf)
        score_BNV[:, 0] = self.first + emissions_BTV[:, 0]
        stay = torch.arange(count * labels, device=mask_BT.device).view(1, count, labels)
        ways = []
        for at in range(1, length):
            go_on()
            every = (score_BNV[..., None] + self.transitions).flatten(1, 2)  # (B, N × V, V)
            next_BNV, way_BNV = every.topk(count, 1)
            goes_on = mask_BT[:, at, None, None]
            score_BNV = torch.where(goes_on, next_BNV + emissions_BTV[:, at, None], score_BNV)
            ways.append(torch.where(goes_on, way_BNV, stay))
        score_BN, way_BN = (score_BNV + self.last).flatten(1).topk(count, 1)
        return walk_back(ways, way_BN, labels), score_BN - self.log_partition(emissions_BTV, mask_BT)[:, None]


def walk_back(ways: list[Tensor], way_BN: Tensor, labels: int) -> Tensor:
    """The labels on the ways that end at `way_BN`, from the first place to the last."""
    found = [way_BN % labels]
    for each in reversed(ways):
        go_on()
        way_BN = each.flatten(1).gather(1, way_BN)
        found.append(way_BN % labels)
    return torch.stack(found[::-1], 2)


def mixed(log_BV: Tensor, weights: Tensor) -> Tensor:
    """log Σ exp(log_BV[v] + weights[v, w]) for each w, as a product of matrices; the largest is taken out first."""
    top_B1 = log_BV.amax(-1, keepdim=True)
    return ((log_BV - top_B1).exp() @ weights.exp()).log() + top_B1
