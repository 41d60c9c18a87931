"""A model in, the weights of its attentions out, while it computes as always.

    with Tap(model) as tap:
        model.step(...)
    tap.maps["decoder.0.cross"]     one tensor (B, H, T, S) for each call

Nothing is returned through the layers and nothing stays on a module; without a tap an attention asks once and goes on.
The listener is bound to the running context, so two threads never hear each other.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, Token
from typing import Self

import torch
from torch import Tensor, nn

_listener: ContextVar["Tap | None"] = ContextVar("regard_tap", default=None)


class Tap:
    """Hears the weights of every attention of `model` as long as it is entered."""

    def __init__(self, model: nn.Module) -> None:
        self.maps: dict[str, list[Tensor]] = {}
        self._names = {id(module): short(name) for name, module in model.named_modules()}
        self._token: Token[Tap | None] | None = None

    def hear(self, module: nn.Module, weights_BHTS: Tensor) -> None:
        name = self._names.get(id(module))
        if name is not None:
            self.maps.setdefault(name, []).append(weights_BHTS.detach())

    def change(self, module: nn.Module, found_BHTK: Tensor) -> Tensor:
        """What each head found, on its way on; a tap that intervenes overrides this, and one that listens leaves it."""
        return found_BHTK

    def __enter__(self) -> Self:
        self._token = _listener.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        assert self._token is not None
        _listener.reset(self._token)


class Off(Tap):
    """Listens too, while some heads find nothing: what they would have added is zero."""

    def __init__(self, model: nn.Module, heads: Sequence[tuple[str, int]]) -> None:
        super().__init__(model)
        self.off: dict[str, list[int]] = {}
        for name, head in heads:
            self.off.setdefault(name, []).append(head)

    def change(self, module: nn.Module, found_BHTK: Tensor) -> Tensor:
        heads = self.off.get(self._names.get(id(module), ""))
        if not heads:
            return found_BHTK
        return found_BHTK.index_fill(1, torch.tensor(heads, device=found_BHTK.device), 0.0)


def without(model: nn.Module, heads: Sequence[tuple[str, int]]) -> AbstractContextManager[object]:
    """Some heads switched off; where there are none, nothing listens, and what is quick stays quick."""
    return Off(model, heads) if heads else nullcontext()


def listening() -> Tap | None:
    """The tap that is open in this context, if there is one."""
    return _listener.get()


def short(name: str) -> str:
    """`decoder.layers.0.cross_attention` as people say it: `decoder.0.cross`."""
    return name.replace(".layers.", ".").replace("_attention", "")
