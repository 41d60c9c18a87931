"""Decoder states and a source in, what is copied from it out: a token is written from the vocabulary, or pointed at.

p(token) = g · softmax(vocabulary) + (1 − g) · Σ of the pointer's weights at the places of the source where it stands
(Gu et al. 2016, https://arxiv.org/abs/1603.06393; See et al. 2017, https://arxiv.org/abs/1704.04368).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.data.tokens import PAD
from regard.layers.attention import Held, Sight, split, weights
from regard.layers.scores import Score
from regard.layers.tap import listening

NARROW = 64  # numbers by which a pointer compares, at most


@dataclass(frozen=True)
class Offer:
    """What a source offers to be copied: keys made once, and for each of its tokens the target's; PAD = none."""

    held: Held
    token_BS: Tensor


@dataclass(frozen=True)
class Copied:
    """What a pointer says at each position of a target."""

    weight_BTS: Tensor  # over the source; they sum to 1, or are all 0 where nothing can be copied
    token_BS: Tensor  # what each place of the source would be copied as
    gate_BT: Tensor  # log odds of writing from the vocabulary

    def logs(self) -> tuple[Tensor, Tensor]:
        """log g and log (1 − g); where nothing can be copied g is 1."""
        some_BT = self.weight_BTS.sum(-1) > 0
        return torch.where(some_BT, F.logsigmoid(self.gate_BT), 0.0), F.logsigmoid(-self.gate_BT)

    @property
    def share_BT(self) -> Tensor:
        """1 − g: how much of each position is left to the source."""
        return 1 - self.logs()[0].exp()

    def at(self, row_N: Tensor, column_N: Tensor) -> "Copied":
        """Single positions, each as a row of its own."""
        weight_NTS, gate_NT = self.weight_BTS[row_N, column_N][:, None], self.gate_BT[row_N, column_N][:, None]
        return Copied(weight_NTS, self.token_BS[row_N], gate_NT)

    def log_label(self, label_BT: Tensor) -> tuple[Tensor, Tensor]:
        """log g, and log (1 − g) · what the pointer gives a label: all that its probability takes beside the softmax.

        What is not in the source is given next to nothing, so that both have finite gradients.
        """
        there_BTS = self.token_BS[:, None, :] == label_BT[..., None]
        mass_BT = (self.weight_BTS * there_BTS).sum(-1)
        written_BT, copied_BT = self.logs()
        return written_BT, copied_BT + logarithm(mass_BT)

    def mix(self, logits_BTV: Tensor) -> Tensor:
        """log (g · softmax(logits) + (1 − g) · the pointer's weights, added up for each token)."""
        written_BT, copied_BT = self.logs()
        log_BTV = logits_BTV.to(self.gate_BT.dtype).log_softmax(-1) + written_BT[..., None]
        token_BTS = self.token_BS[:, None, :].expand(self.weight_BTS.shape)
        mass_BTV = torch.zeros_like(log_BTV).scatter_add(-1, token_BTS, self.weight_BTS)
        both_BTV = torch.logaddexp(log_BTV, logarithm(mass_BTV) + copied_BT[..., None])
        return torch.where(mass_BTV > 0, both_BTV, log_BTV)


def logarithm(mass: Tensor) -> Tensor:
    """The logarithm, of nothing that of the least number there is: without a gradient, and finite."""
    return mass.clamp(min=torch.finfo(mass.dtype).tiny).log()


def mixed(logits_BTV: Tensor, copied: Copied | None) -> Tensor:
    """Logits with what is copied among them, where something is."""
    return logits_BTV if copied is None else copied.mix(logits_BTV)


class Pointer(nn.Module):
    """One scaled look-up of the source by the decoder's last states, with small projections and a gate of its own.

    `copies` has for each token of the source the target's, PAD where there is none. It follows from the vocabulary, so
    it is made with the model and not saved.
    """

    heads = 1

    def __init__(self, width: int, memory_width: int, copies: Sequence[int]) -> None:
        super().__init__()
        narrow = min(width, NARROW)
        self.query = nn.Linear(width, narrow)
        self.key = nn.Linear(memory_width, narrow, bias=False)
        self.gate = nn.Linear(width, 1)
        self.score = Score(narrow**-0.5)
        self.copies: Tensor
        self.register_buffer("copies", torch.tensor(copies, dtype=torch.long), persistent=False)

    def offer(self, states_BSM: Tensor, source_BS: Tensor, mask_BS: Tensor) -> Offer:
        """A source as it can be pointed at."""
        key_BHSK = split(self.key(states_BSM), self.heads)
        return Offer(Held(key_BHSK, key_BHSK), self.copies[source_BS].masked_fill(~mask_BS, PAD))

    def forward(self, states_BTD: Tensor, offer: Offer) -> Copied:
        """Only what can be copied is looked at, so that the weights of the rest need not be made up for."""
        sight = Sight((offer.token_BS != PAD)[:, None, None, :])
        weight_BHTS = weights(split(self.query(states_BTD), self.heads), offer.held, self.score, sight)
        if tap := listening():
            tap.hear(self, weight_BHTS)
            weight_BHTS = tap.change(self, weight_BHTS)
        exact = torch.promote_types(weight_BHTS.dtype, torch.float32)
        return Copied(weight_BHTS[:, 0].to(exact), offer.token_BS, self.gate(states_BTD)[..., 0].to(exact))
