"""Numbers in, the same with some of them dropped out, while training.

Draws come from torch's default generator, which the training loop seeds anew for each step from (seed, step, rank):
so a mask is a pure function of the step and there is nothing to save.
"""

from torch import Tensor, nn
from torch.nn import functional as F


class Dropout(nn.Module):
    """Zeroes a share of the numbers and scales up the rest (Srivastava et al. 2014)."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.share, self.training) if self.share else x
