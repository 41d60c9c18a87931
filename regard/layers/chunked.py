"""States and labels in, the sum of their losses out: the output layer and cross-entropy, some rows at a time.

The logits of a batch are by far its greatest tensor: tokens × vocabulary. Here they exist for a few hundred tokens at a
time, and while they do, the gradient is computed too; so nothing of that size is kept for the backward pass.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

ROWS = 256  # positions whose logits exist at a time on a CPU: fewer make the products slow, more leave the cache
MORE_ROWS = 4096  # elsewhere


def chunked_loss(states_ND: Tensor, weight_VD: Tensor, bias_V: Tensor, label_N: Tensor, smoothing: float) -> Tensor:
    """Σ over the rows of the cross-entropy with a label that is smoothed towards the uniform distribution."""
    found: Tensor = ChunkedLoss.apply(states_ND, weight_VD, bias_V, label_N, smoothing)  # type: ignore[no-untyped-call]
    return found


class ChunkedLoss(Function):
    """The loss with its gradients, which are all there before the backward pass begins."""

    @staticmethod
    def forward(
        ctx: Any, states_ND: Tensor, weight_VD: Tensor, bias_V: Tensor, label_N: Tensor, smoothing: float
    ) -> Tensor:
        device = states_ND.device.type
        kind = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight_VD.dtype
        with torch.autocast(device, enabled=False):
            total, *gradients = total_and_gradients(
                states_ND.to(kind), weight_VD.to(kind), bias_V.to(kind), label_N, smoothing
            )
        ctx.save_for_backward(*(gradient.to(each.dtype) for gradient, each in
                                zip(gradients, (states_ND, weight_VD, bias_V), strict=True)))  # fmt: skip
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *factors: Tensor) -> tuple[Tensor | None, ...]:
        (factor,) = factors
        if factor.device.type == "cpu" and float(factor) == 1.0:
            return *ctx.saved_tensors, None, None
        return *(gradient * factor for gradient in ctx.saved_tensors), None, None


def total_and_gradients(
    states_ND: Tensor, weight_VD: Tensor, bias_V: Tensor, label_N: Tensor, smoothing: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """With logits z, V of them, and ε the smoothing: loss = log Σ exp z − (1 − ε) z[label] − ε mean(z).

    Its gradient for z is softmax(z), less 1 − ε at the label, less ε/V everywhere. What is the same everywhere is never
    written into the logits: it reaches the states as a sum of weights, and the weights as a sum of states.
    """
    vocabulary = len(weight_VD)
    exact = torch.promote_types(weight_VD.dtype, torch.float32)
    count = min(ROWS if weight_VD.device.type == "cpu" else MORE_ROWS, max(1, len(label_N)))
    logits, chances = (weight_VD.new_empty(count, vocabulary, dtype=kind) for kind in (weight_VD.dtype, exact))
    to_states_ND = torch.empty_like(states_ND)
    to_weight_VD, to_bias_V = torch.zeros_like(weight_VD, dtype=exact), torch.zeros_like(bias_V, dtype=exact)
    total = weight_VD.new_zeros((), dtype=torch.float64)

    for start in range(0, len(label_N), count):
        rows = slice(start, start + count)
        states, label = states_ND[rows], label_N[rows]
        z = torch.addmm(bias_V, states, weight_VD.t(), out=logits[: len(label)])
        p = torch.softmax(z, 1, exact, out=chances[: len(label)])
        total += unsmoothed(z, p, label, smoothing)
        to_bias_V += p.sum(0)
        p.scatter_add_(1, label[:, None], p.new_full((len(label), 1), smoothing - 1))
        slope = p.to(weight_VD.dtype)
        torch.mm(slope, weight_VD, out=to_states_ND[rows])
        if exact == weight_VD.dtype:
            to_weight_VD.addmm_(slope.t(), states)
        else:
            to_weight_VD += torch.mm(slope.t(), states)

    to_bias_V.index_add_(0, label_N, to_bias_V.new_full(label_N.shape, smoothing - 1))
    if smoothing:
        share = smoothing / vocabulary
        weight_sum_D, state_sum_D = weight_VD.sum(0, dtype=exact), states_ND.sum(0, dtype=exact)
        total -= share * (state_sum_D @ weight_sum_D + len(label_N) * bias_V.sum(dtype=exact))
        to_states_ND -= (share * weight_sum_D).to(to_states_ND.dtype)
        to_weight_VD -= share * state_sum_D
        to_bias_V -= share * len(label_N)
    return total.to(exact), to_states_ND, to_weight_VD, to_bias_V


def unsmoothed(z_RV: Tensor, p_RV: Tensor, label_R: Tensor, smoothing: float) -> Tensor:
    """Σ log Σ exp z − (1 − ε) z[label]. The likeliest label is never too unlikely for a logarithm."""
    log_sum_R = z_RV.amax(1).to(p_RV.dtype) - p_RV.amax(1).log()
    return (log_sum_R - (1 - smoothing) * z_RV.gather(1, label_R[:, None])[:, 0]).sum(dtype=torch.float64)
