"""A sequence in, the same sequence with more of its context in it out: one block of the Transformer."""

from collections.abc import Callable

from torch import Tensor, nn

from regard.layers.attention import Attention, Held, Sight
from regard.layers.dropout import Dropout
from regard.layers.norm import normed


class Block(nn.Module):
    """Self-attention, attention to a memory if there is one, feed-forward; a residual and a norm round each.

    The norm stands before a part (inside the residual) or after it, as in the original (Vaswani et al. 2017).
    """

    def __init__(
        self,
        self_attention: Attention,
        cross_attention: Attention | None,
        feedforward: nn.Module,
        norm: Callable[[], nn.Module],
        norm_first: bool,
        dropout: Dropout,
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feedforward = feedforward
        self.self_norm = norm()
        self.cross_norm = norm() if cross_attention is not None else None
        self.feedforward_norm = norm()
        self.norm_first = norm_first
        self.dropout = dropout

    def forward(
        self, x_BTD: Tensor, sight: Sight, past: Held | None, memory: Held | None, memory_sight: Sight
    ) -> tuple[Tensor, Held]:
        """The new sequence, and the keys and values of self-attention up to now."""
        seen_BTD = self.before(x_BTD, self.self_norm)
        found_BTD, held = self.self_attention.within(seen_BTD, past, sight)
        x_BTD = self.beyond(x_BTD, found_BTD, self.self_norm)
        if self.cross_attention is not None and self.cross_norm is not None and memory is not None:
            found_BTD = self.cross_attention(self.before(x_BTD, self.cross_norm), memory, memory_sight)
            x_BTD = self.beyond(x_BTD, found_BTD, self.cross_norm)
        changed_BTD = self.feedforward(self.before(x_BTD, self.feedforward_norm))
        return self.beyond(x_BTD, changed_BTD, self.feedforward_norm), held

    def before(self, x_BTD: Tensor, norm: nn.Module) -> Tensor:
        return normed(norm, x_BTD) if self.norm_first else x_BTD

    def beyond(self, x_BTD: Tensor, found_BTD: Tensor, norm: nn.Module) -> Tensor:
        summed_BTD = self.dropout.onto(x_BTD, found_BTD)
        return summed_BTD if self.norm_first else norm(summed_BTD)
