"""States and labels in, a loss as a sum and a count out; with the true tokens fed, or the model's own."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.data.batch import Batch
from regard.data.tokens import PAD
from regard.layers.chunked import Beside, chunked_loss
from regard.layers.embedding import Output
from regard.layers.plain import is_plain
from regard.layers.pointer import Copied, mixed
from regard.models.memory import Read
from regard.models.model import Model
from regard.tasks.task import Loss

ROWS = 1024  # positions whose logits exist at a time when nothing is learnt


def token_loss(
    output: Output, states_BTD: Tensor, label_BT: Tensor, smoothing: float, first: int = 0,
    copied: Copied | None = None, agreement: float = 0.0,
) -> Loss:  # fmt: skip
    """Cross-entropy over all labels that are not padding, smoothed towards the uniform distribution.

    What stands before `first` is never an answer and takes no part. Where tokens may be copied too, a label has the
    probability of being written or copied, and what is written alone is smoothed. With `agreement` the second half of
    the rows are the first ones again, and both are to say the same.
    """
    real_N = in_pairs(label_BT) if agreement else (label_BT.flatten() != PAD).nonzero()[:, 0]
    beside = None if copied is None else beside_labels(copied, label_BT, real_N)
    states_ND = states_BTD.flatten(0, 1).index_select(0, real_N)
    label_N = label_BT.flatten().index_select(0, real_N) - first
    if is_plain():
        total = plain_loss(output(states_ND[None])[0, :, first:], label_N, smoothing, beside, agreement)
    else:
        weight, bias = output.weight[first:], output.bias[first:]
        total = chunked_loss(states_ND, weight, bias, label_N, smoothing, beside, agreement)
    return Loss(total, len(real_N))


def in_pairs(label_BT: Tensor) -> Tensor:
    """Places of labels that are not padding, each of the first half of the rows before its twin in the second."""
    half = label_BT.numel() // 2
    place_N = (label_BT.flatten()[:half] != PAD).nonzero()[:, 0]
    return torch.stack([place_N, place_N + half], 1).flatten()


def beside_labels(copied: Copied, label_BT: Tensor, real_N: Tensor) -> Beside:
    """log g, and the logarithm of what is copied, of the labels at these places."""
    written_BT, copied_BT = copied.log_label(label_BT)
    return written_BT.flatten().index_select(0, real_N), copied_BT.flatten().index_select(0, real_N)


def plain_loss(
    logits_NV: Tensor, label_N: Tensor, smoothing: float, beside: Beside | None, agreement: float = 0.0
) -> Tensor:
    """What `chunked_loss` gives, of logits that are all there."""
    if agreement:
        log_NV = logits_NV.to(torch.promote_types(logits_NV.dtype, torch.float32)).log_softmax(-1)
        one, other = log_NV[0::2], log_NV[1::2]
        apart = ((one.exp() - other.exp()) * (one - other)).sum()
        return plain_loss(logits_NV, label_N, smoothing, beside) + agreement / 2 * apart
    if beside is None:
        return F.cross_entropy(logits_NV, label_N, reduction="sum", label_smoothing=smoothing)
    log_NV = logits_NV.to(beside[0].dtype).log_softmax(-1)
    label = torch.logaddexp(beside[0] + log_NV.gather(1, label_N[:, None])[:, 0], beside[1])
    return -(1 - smoothing) * label.sum() - smoothing * log_NV.mean(1).sum()


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


def judged(
    output: Callable[[Tensor], Tensor], states_BTD: Tensor, label_BT: Tensor, copied: Copied | None = None
) -> tuple[Judged, Tensor]:
    """Sums over all labels that are not padding, and the likeliest token at each; few logits exist at a time."""
    total, best_BT = 0.0, torch.full_like(label_BT, PAD)
    for places in torch.split((label_BT != PAD).nonzero(), ROWS):
        at = (places[:, 0], places[:, 1])
        logits = output(states_BTD[at][None])[0]
        log = mixed(logits[:, None], None if copied is None else copied.at(*at))[:, 0].float().log_softmax(-1)
        total -= float(log.gather(-1, label_BT[at][:, None]).double().sum())
        best_BT[at] = log.argmax(-1)
    right = int((best_BT == label_BT)[label_BT != PAD].sum())
    return Judged(total, right, int((label_BT != PAD).sum())), best_BT


def fed(model: Model, batch: Batch, forcing: float, seed: int) -> Read:
    """What is read when a share `forcing` of the inputs are the true tokens and the rest the model's own.

    At 1 this is teacher forcing in one call; at 0 it is free running; between them scheduled sampling
    (Bengio et al. 2015). Which inputs are true is a pure function of the seed.
    """
    if forcing >= 1.0 or batch.target_BT is None:
        read: Read = model(batch)
        return read
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
            token_B = model.logits(states_B1D, memory)[:, 0].argmax(-1)
    return Read(torch.cat(found, 1), batch.target_BT != PAD, memory)
