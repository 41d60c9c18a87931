"""States and labels in, a loss as a sum and a count out; with the true tokens fed, or the model's own."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.data.batch import Batch
from regard.data.tokens import PAD
from regard.layers.chunked import chunked_loss
from regard.layers.embedding import Output
from regard.layers.plain import is_plain
from regard.models.memory import Read
from regard.models.model import Model
from regard.tasks.task import Loss

ROWS = 1024  # positions whose logits exist at a time when nothing is learnt


def token_loss(output: Output, states_BTD: Tensor, label_BT: Tensor, smoothing: float, first: int = 0) -> Loss:
    """Cross-entropy over all labels that are not padding, smoothed towards the uniform distribution.

    What stands before `first` is never an answer and takes no part.
    """
    real_N = (label_BT.flatten() != PAD).nonzero()[:, 0]
    states_ND = states_BTD.flatten(0, 1).index_select(0, real_N)
    label_N = label_BT.flatten().index_select(0, real_N) - first
    if is_plain():
        logits_NV = output(states_ND)[:, first:]
        total = F.cross_entropy(logits_NV, label_N, reduction="sum", label_smoothing=smoothing)
    else:
        total = chunked_loss(states_ND, output.weight[first:], output.bias[first:], label_N, smoothing)
    return Loss(total, len(real_N))


@dataclass(frozen=True)
class Judged:
    """How well labels were foreseen, as sums."""

    total: float  # negative log probability of the labels
    right: int
    count: int

    def __add__(self, other: "Judged") -> "Judged":
        return Judged(self.total + other.total, self.right + other.right, self.count + other.count)

    @property
    def loss(self) -> float:
        return self.total / max(self.count, 1)

    @property
    def accuracy(self) -> float:
        """In per cent."""
        return 100.0 * self.right / max(self.count, 1)


NOTHING_JUDGED = Judged(0.0, 0, 0)


def judged(output: Callable[[Tensor], Tensor], states_BTD: Tensor, label_BT: Tensor) -> tuple[Judged, Tensor]:
    """Sums over all labels that are not padding, and the likeliest token at each; few logits exist at a time."""
    total, best_BT = 0.0, torch.full_like(label_BT, PAD)
    for places in torch.split((label_BT != PAD).nonzero(), ROWS):
        at = (places[:, 0], places[:, 1])
        log = output(states_BTD[at][None])[0].float().log_softmax(-1)
        total -= float(log.gather(-1, label_BT[at][:, None]).double().sum())
        best_BT[at] = log.argmax(-1)
    right = int((best_BT == label_BT)[label_BT != PAD].sum())
    return Judged(total, right, int((label_BT != PAD).sum())), best_BT


def fed_states(model: Model, batch: Batch, forcing: float, seed: int) -> Tensor:
    """Decoder states when a share `forcing` of the inputs are the true tokens and the rest the model's own.

    At 1 this is teacher forcing in one call; at 0 it is free running; between them scheduled sampling
    (Bengio et al. 2015). Which inputs are true is a pure function of the seed.
    """
    if forcing >= 1.0 or batch.target_BT is None:
        read: Read = model(batch)
        return read.states_BTD
    draw = torch.rand(batch.target_BT.shape, generator=torch.Generator().manual_seed(seed))
    true_BT = (draw < forcing).to(batch.target_BT.device)
    memory = model.encode(batch.source, batch.source_mask_BS)
    state = model.start(memory)
    found = []
    token_B = batch.target_BT[:, 0]
    for at in range(batch.target_BT.shape[1]):
        if at:
            token_B = torch.where(true_BT[:, at], batch.target_BT[:, at], token_B)
        states_B1D, state = model.states(token_B[:, None], memory, state)
        found.append(states_B1D)
        with torch.no_grad():
            token_B = model.output(states_B1D)[:, 0].argmax(-1)
    return torch.cat(found, 1)
