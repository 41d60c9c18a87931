"""Gradients in, steps out: of a matrix as far in every direction, of everything else by AdamW.

The gradient of a matrix lies mostly in a few directions, and what lies in others is learnt late. Muon (Jordan et al.
2024) steps along the orthogonal matrix that is nearest to its mean, as far in all of them; made as long as a step of
AdamW (Liu et al. 2025), it has the same rates. torch has one too, which computes in bf16 whatever the processor can do,
and for matrices alone; a test sets the two side by side.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

FASTER = 2.0  # than AdamW's rate: the Transformer of `bench.study` on 100,000 words had least loss so
LENGTH = 0.2  # root mean square of AdamW's steps, about
MEMORY = 0.95  # of the mean of gradients
TURNS = ((3.4445, -4.7750, 2.0315),) * 5  # Newton-Schulz by a polynomial that brings all singular values near one


class Muon(torch.optim.AdamW):
    """AdamW for all groups but those that are `turned`, whose weights are matrices; one state for both.

    What AdamW calls `exp_avg` is the mean of a matrix's gradients too, so that checkpoints know no difference.
    """

    def __init__(
        self, groups: list[dict[str, Any]], numbers: torch.dtype, lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.98), weight_decay: float = 0.01,
    ) -> None:  # fmt: skip
        super().__init__(groups, lr=lr, betas=betas, weight_decay=weight_decay, fused=True)
        self.numbers = numbers  # in which products are computed

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        groups = self.param_groups
        try:
            self.param_groups = [group for group in groups if not group["turned"]]
            super().step(closure)
        finally:
            self.param_groups = groups
        for group in groups:
            if group["turned"]:
                for weights in alike(group["params"]):
                    self.turn(weights, group["lr"] * FASTER, group["weight_decay"])

    def turn(self, weights: list[Tensor], rate: float, decay: float) -> None:
        """One step of matrices that have one shape."""
        means = [self.state[weight].setdefault("exp_avg", torch.zeros_like(weight)) for weight in weights]
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        torch._foreach_lerp_(means, gradients, 1 - MEMORY)
        ahead = torch.stack([gradient.lerp(mean, MEMORY) for gradient, mean in zip(gradients, means, strict=True)])
        length = LENGTH * max(ahead.shape[1:]) ** 0.5
        torch._foreach_mul_(weights, 1 - rate * decay)
        torch._foreach_add_(weights, [*straight(ahead.to(self.numbers)).to(ahead.dtype)], alpha=-rate * length)


def alike(weights: Iterable[Tensor]) -> list[list[Tensor]]:
    """Those that have a gradient, by shape."""
    found: dict[torch.Size, list[Tensor]] = {}
    for weight in weights:
        if weight.grad is not None:
            found.setdefault(weight.shape, []).append(weight)
    return [*found.values()]


def straight(matrices: Tensor) -> Tensor:
    """For each of many matrices the orthogonal one that is nearest to it, about: U Vᵀ of U Σ Vᵀ."""
    tall = matrices.size(-2) > matrices.size(-1)
    x: Tensor = matrices.mT if tall else matrices
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    for once, thrice, five in TURNS:
        square = x @ x.mT
        inner = torch.baddbmm(square, square, square, beta=thrice, alpha=five)
        x = torch.baddbmm(x, inner, x, beta=once)
    return x.mT if tall else x
