"""States and labels in, the sum of their losses out: the output layer and cross-entropy, some rows at a time.

The logits of a batch are by far its greatest tensor: tokens × vocabulary. Here they exist for a few hundred tokens at a
time, and while they do, the gradient is computed too; so nothing of that size is kept for the backward pass.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

from regard.layers import quick

ROWS = 256  # positions whose logits exist at a time on a CPU: fewer make the products slow, more leave the cache
MORE_ROWS = 4096  # elsewhere


Beside = tuple[Tensor, Tensor]  # for each row log g, and the logarithm of what its label has beside g · softmax


class Aim(NamedTuple):
    """What is asked of a softmax beside its label: to be smooth, and to agree with its twin."""

    smoothing: float
    agreement: float


def chunked_loss(
    states_ND: Tensor, weight_VD: Tensor, bias_V: Tensor, label_N: Tensor, smoothing: float,
    beside: Beside | None = None, agreement: float = 0.0,
) -> Tensor:  # fmt: skip
    """Σ over the rows of the cross-entropy with a label that is smoothed towards the uniform distribution.

    With something `beside` it, the softmax is one part of a mixture, and the label has the probability of both. With
    `agreement` rows come in pairs, and so many times half of KL(p‖q) + KL(q‖p) is added for the softmax p of the first
    and q of the second (R-Drop, Liang et al. 2021, https://arxiv.org/abs/2106.14448).
    """
    written_N, copied_N = (None, None) if beside is None else beside
    given = (states_ND, weight_VD, bias_V, label_N, Aim(smoothing, agreement), written_N, copied_N)
    found: Tensor = ChunkedLoss.apply(*given)  # type: ignore[no-untyped-call]
    return found


class ChunkedLoss(Function):
    """The loss with its gradients, which are all there before the backward pass begins."""

    @staticmethod
    def forward(
        ctx: Any, states_ND: Tensor, weight_VD: Tensor, bias_V: Tensor, label_N: Tensor, aim: Aim,
        written_N: Tensor | None, copied_N: Tensor | None,
    ) -> Tensor:  # fmt: skip
        device = states_ND.device.type
        kind = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight_VD.dtype
        beside = None if written_N is None or copied_N is None else (written_N, copied_N)
        with torch.autocast(device, enabled=False):
            total, *gradients = total_and_gradients(
                states_ND.to(kind), weight_VD.to(kind), bias_V.to(kind), label_N, aim, beside
            )
        given = (states_ND, weight_VD, bias_V, *(beside or ()))
        ctx.save_for_backward(*(gradient.to(each.dtype) for gradient, each in zip(gradients, given, strict=True)))
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *factors: Tensor) -> tuple[Tensor | None, ...]:
        (factor,) = factors
        found = ctx.saved_tensors
        if factor.device.type != "cpu" or float(factor) != 1.0:
            found = tuple(gradient * factor for gradient in found)
        return *found[:3], None, None, *(found[3:] or (None, None))


def total_and_gradients(
    states_ND: Tensor, weight_VD: Tensor, bias_V: Tensor, label_N: Tensor, aim: Aim, beside: Beside | None
) -> tuple[Tensor, ...]:
    """With logits z, V of them, and ε the smoothing: loss = log Σ exp z − (1 − ε) z[label] − ε mean(z).

    Its gradient for z is softmax(z), less 1 − ε at the label, less ε/V everywhere. What is the same everywhere is never
    written into the logits: it reaches the states as a sum of weights, and the weights as a sum of states.
    """
    vocabulary, smoothing = len(weight_VD), aim.smoothing
    exact = torch.promote_types(weight_VD.dtype, torch.float32)
    count = min(ROWS if weight_VD.device.type == "cpu" else MORE_ROWS, max(1, len(label_N)))
    logits = weight_VD.new_empty(count, vocabulary)
    swift = not aim.agreement and quick.fits(logits)
    chances = logits.new_empty(0 if swift else count, vocabulary, dtype=exact)
    to_states_ND = torch.empty_like(states_ND)
    to_weight_VD, to_bias_V = torch.zeros_like(weight_VD, dtype=exact), torch.zeros_like(bias_V, dtype=exact)
    total = weight_VD.new_zeros((), dtype=torch.float64)
    pull_N = weight_VD.new_full(label_N.shape, 1 - smoothing, dtype=exact)  # of the labels at their logits

    for start in range(0, len(label_N), count):
        rows = slice(start, start + count)
        states, label = states_ND[rows], label_N[rows]  # pairs are never parted: the count is even
        z = torch.addmm(bias_V, states, weight_VD.t(), out=logits[: len(label)])
        near = None if beside is None else (beside[0][rows].to(exact), beside[1][rows].to(exact))
        if swift:
            part, slope = swift_part(z, label, pull_N[rows], smoothing, near, to_bias_V)
        else:
            p = torch.softmax(z, 1, exact, out=chances[: len(label)])
            part = loss_of(z, p, label, pull_N[rows], aim, near)
            to_bias_V += p.sum(0)
            p.scatter_add_(1, label[:, None], -pull_N[rows, None])
            slope = p.to(weight_VD.dtype)
        total += part
        torch.mm(slope, weight_VD, out=to_states_ND[rows])
        if exact == weight_VD.dtype:
            to_weight_VD.addmm_(slope.t(), states)
        else:
            to_weight_VD += torch.mm(slope.t(), states)

    if not swift:
        to_bias_V.index_add_(0, label_N, -pull_N)
    if smoothing:
        share = smoothing / vocabulary
        weight_sum_D, state_sum_D = weight_VD.sum(0, dtype=exact), states_ND.sum(0, dtype=exact)
        total -= share * (state_sum_D @ weight_sum_D + len(label_N) * bias_V.sum(dtype=exact))
        to_states_ND -= (share * weight_sum_D).to(to_states_ND.dtype)
        to_weight_VD -= share * state_sum_D
        to_bias_V -= share * len(label_N)
    found = (total.to(exact), to_states_ND, to_weight_VD, to_bias_V)
    return found if beside is None else (*found, -pull_N, pull_N - (1 - smoothing))


def swift_part(
    z_RV: Tensor, label_R: Tensor, pull_R: Tensor, smoothing: float, beside: Beside | None, to_bias_V: Tensor
) -> tuple[Tensor, Tensor]:
    """What `loss_of` gives of some rows, and the gradient where the logits were; its sum is added to the bias's."""
    log_sum_R = quick.log_sums(z_RV)
    if beside is None:
        part, times_R = unsmoothed(z_RV, log_sum_R, label_R, smoothing), torch.ones_like(pull_R)
    else:
        share_R, part = mixture(z_RV, log_sum_R, label_R, smoothing, *beside)
        pull_R *= share_R
        times_R = pull_R + smoothing
    quick.slopes(z_RV, log_sum_R, times_R, pull_R, label_R.contiguous(), to_bias_V)
    return part, z_RV


def loss_of(z_RV: Tensor, p_RV: Tensor, label_R: Tensor, pull_R: Tensor, aim: Aim, beside: Beside | None) -> Tensor:
    """The loss of some rows but for ε mean(z). Its gradient takes the place of p, what the label pulls at left out.

    In a mixture (1 − ε) log softmax(z)[label] becomes (1 − ε) log (g · softmax(z)[label] + what is beside it), of which
    the softmax has the share r: all that the label pulls at is multiplied by r, and the rest pulls at g and what is
    beside it. What is smoothed is the softmax alone; a pointer is not asked to point at what the source does not have.
    """
    apart = agreeing(z_RV.to(p_RV.dtype).log_softmax(1), p_RV) if aim.agreement else None
    if beside is None:
        part = unsmoothed(z_RV, log_sum(z_RV, p_RV), label_R, aim.smoothing)
    else:
        share_R, part = mixture(z_RV, log_sum(z_RV, p_RV), label_R, aim.smoothing, *beside)
        pull_R *= share_R
        p_RV *= (pull_R + aim.smoothing)[:, None]
    if apart is not None:
        p_RV.add_(apart[0], alpha=aim.agreement / 2)
        part += aim.agreement / 2 * apart[1]
    return part


def agreeing(log_RV: Tensor, p_RV: Tensor) -> tuple[Tensor, Tensor]:
    """For pairs of rows p, q the gradient of Σ KL(p‖q) + KL(q‖p) for their logits, and that sum.

    For the logits of p it is p · (log p/q − KL(p‖q)) + p − q.
    """
    logs, chances = (each.view(-1, 2, each.shape[1]) for each in (log_RV, p_RV))  # pairs, two, V
    ratio = logs - logs.flip(1)
    divergence = (chances * ratio).sum(2, keepdim=True)
    slope = chances * (ratio - divergence) + chances - chances.flip(1)
    return slope.view(p_RV.shape), divergence.sum(dtype=torch.float64)


def unsmoothed(z_RV: Tensor, log_sum_R: Tensor, label_R: Tensor, smoothing: float) -> Tensor:
    """Σ log Σ exp z − (1 − ε) z[label]."""
    return (log_sum_R - (1 - smoothing) * z_RV.gather(1, label_R[:, None])[:, 0]).sum(dtype=torch.float64)


def log_sum(z_RV: Tensor, p_RV: Tensor) -> Tensor:
    """log Σ exp z. The likeliest label is never too unlikely for a logarithm."""
    return z_RV.amax(1).to(p_RV.dtype) - p_RV.amax(1).log()


def mixture(
    z_RV: Tensor, log_sum_R: Tensor, label_R: Tensor, smoothing: float, written_R: Tensor, copied_R: Tensor
) -> tuple[Tensor, Tensor]:
    """The share of the softmax in the probability of each label; and Σ ε log Σ exp z − (1 − ε) log of that."""
    inside_R = written_R + z_RV.gather(1, label_R[:, None])[:, 0] - log_sum_R
    part_R = smoothing * log_sum_R - (1 - smoothing) * torch.logaddexp(inside_R, copied_R)
    return torch.sigmoid(inside_R - copied_R), part_R.sum(dtype=torch.float64)
