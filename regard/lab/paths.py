"""A model and marked inputs in, the shortest path from each mark to each number it makes out.

Beside every tensor goes a shadow of the same shape: for each number, the least count of what lies between it and the
marked input of its row of the batch; infinite where the mark can not be felt. Rows never mix, so each row can have a
mark of its own. What is counted is one of two things:

    operations   every call that computes (see count.py)
    steps        what the textbook counts: one step of a cell, one look-up of an attention, one convolution

Numbers are real here, because what a mask hides is no path: a weight that is exactly 0 lets nothing through.
"""

from collections.abc import Callable
from math import inf
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.weak import WeakTensorKeyDictionary

from regard.errors import RegardError
from regard.lab.count import CREATED, MOVES, PRODUCTS, Kernels, tensors
from regard.layers.recurrent import Cell, Cells

SOFTMAX = frozenset({"_softmax", "_safe_softmax"})
NORMS = frozenset({"native_layer_norm", "_fused_rms_norm"})
REDUCED = frozenset({"sum", "mean", "amax"})


class Paths(Kernels):  # type: ignore[no-untyped-call]
    """Carries the shadows along; with `steps` it counts the textbook's steps, else all operations."""

    def __init__(self, model: nn.Module, steps: bool) -> None:
        super().__init__(model)
        self.steps = steps
        self._shadows: Any = WeakTensorKeyDictionary()
        self._rules: dict[str, Callable[[str, tuple[Any, ...], Tensor], Tensor]] = {
            **dict.fromkeys(PRODUCTS, self.product),
            **dict.fromkeys(SOFTMAX, self.softmax),
            **dict.fromkeys(NORMS, self.norm),
            **dict.fromkeys(REDUCED, self.reduce),
            "convolution": self.convolve,
            "_log_softmax": self.log_softmax,
            "scatter_add": self.gather_up,
            "glu": lambda name, given, made: torch.minimum(*self.shadow(given[0]).chunk(2, given[1])) + self.cost,
        }
        if steps:
            for cell in (module for module in model.modules() if isinstance(module, Cell)):
                for name, method in (("run", self.counted_run(cell.run)), ("step", self.counted_step(cell.step))):
                    setattr(cell, name, method)

    @property
    def cost(self) -> int:
        """Of a call that computes within a position."""
        return 0 if self.steps else 1

    def mark(self, tensor: Tensor, at: Tensor) -> Tensor:
        """Paths begin where `at` is True."""
        self._shadows[tensor] = torch.where(at, 0.0, inf)
        return tensor

    def shadow(self, tensor: Tensor) -> Tensor:
        found = self._shadows.get(tensor)
        return torch.full(tensor.shape, inf) if found is None else found

    def least(self, tensor: Tensor) -> int | None:
        """The shortest path to any of these numbers, or None if there is none."""
        found = float(self.shadow(tensor).min())
        return None if found == inf else int(found)

    def see(self, name: str, arguments: tuple[Any, ...], made: Any) -> None:
        if name in CREATED or not any(given in self._shadows for given in tensors(arguments)):
            return
        if name in MOVES:
            found: Any = self.move(name, arguments, made)
        else:
            found = self._rules.get(name, self.pointwise)(name, arguments, next(tensors([made])))
        for piece, its in zip(tensors([made]), tensors([found]), strict=False):
            self._shadows[piece] = its

    def move(self, name: str, given: tuple[Any, ...], made: Any) -> Any:
        """What is moved takes its shadow along: the first argument is moved, the others say where."""
        match name:
            case "embedding":
                return self.shadow(given[1])[..., None].expand(made.shape)
            case "where":
                return torch.where(given[0], self.shadow(given[1]), self.shadow(given[2])).expand(made.shape)
            case "masked_fill":
                return self.shadow(given[0]).masked_fill(given[1], inf)
            case "constant_pad_nd":
                return F.pad(self.shadow(given[0]), given[1], value=inf)
            case "_to_copy" | "copy" | "tril":
                return self.shadow(given[0]).clone()
            case "view" | "_unsafe_view":
                return self.shadow(given[0]).reshape(made.shape)
            case "cat" | "stack":
                return getattr(torch, name)([self.shadow(piece) for piece in given[0]], *given[1:])
            case _:
                return getattr(torch.ops.aten, name)(self.shadow(given[0]), *given[1:])

    def pointwise(self, name: str, given: tuple[Any, ...], made: Tensor) -> Tensor:
        """Each number from those in its place; an infinite one (a mask added to scores) no longer tells of them."""
        found = torch.tensor(inf)
        for tensor in tensors(given):
            found = torch.minimum(found, self.shadow(tensor))
        if found.ndim > made.ndim or any(
            a not in (1, b) for a, b in zip(found.shape[::-1], made.shape[::-1], strict=False)
        ):
            raise RegardError(f"anatomy: the operation {name} is not elementwise and has no rule; give it one in Paths")
        return (found.expand(made.shape) + self.cost).masked_fill(made.isinf(), inf)

    def softmax(self, name: str, given: tuple[Any, ...], made: Tensor) -> Tensor:
        """Each weight from all scores of its row, unless it is exactly 0."""
        nearest = self.shadow(given[0]).amin(given[1], keepdim=True)
        return (nearest.expand(made.shape) + self.cost).masked_fill(made == 0, inf)

    def log_softmax(self, name: str, given: tuple[Any, ...], made: Tensor) -> Tensor:
        return self.shadow(given[0]).amin(given[1], keepdim=True).expand(made.shape) + self.cost

    def gather_up(self, name: str, given: tuple[Any, ...], made: Tensor) -> Tensor:
        """What is added to a row can reach all of it: where it goes, the data decide."""
        nearest = torch.minimum(self.shadow(given[0]), self.shadow(given[3]).amin(given[1], keepdim=True))
        return nearest.expand(made.shape) + self.cost

    def norm(self, name: str, given: tuple[Any, ...], made: Tensor) -> Tensor:
        over = list(range(-len(given[1]), 0))
        return self.shadow(given[0]).amin(over, keepdim=True).expand(made.shape) + self.cost

    def reduce(self, name: str, given: tuple[Any, ...], made: Tensor) -> Tensor:
        shadow = self.shadow(given[0])
        over = given[1] if len(given) > 1 and given[1] is not None else list(range(shadow.ndim))
        return shadow.amin(over, keepdim=len(given) > 2 and bool(given[2])) + self.cost

    def product(self, name: str, given: tuple[Any, ...], made: Tensor) -> Tensor:
        """Each number from a row and a column; what is multiplied by an exact 0 is not felt."""
        left, right = given[-2:]
        found = torch.minimum(
            through(self.shadow(left), right),
            through(self.shadow(right).mT, left.mT).mT,
        )
        return found + (int(self.weight_of(given) is None) if self.steps else 1)

    def convolve(self, name: str, given: tuple[Any, ...], made: Tensor) -> Tensor:
        """Each number from all channels of its window."""
        kernel, strides, padding = given[1].shape[2:], given[3], given[4]
        nearest = -self.shadow(given[0]).amin(1, keepdim=True)
        pool = F.max_pool1d if len(kernel) == 1 else F.max_pool2d
        return (1 - pool(nearest, tuple(kernel), tuple(strides), tuple(padding))).expand(made.shape)

    def counted_run(self, run: Callable[..., tuple[Tensor, Cells]]) -> Callable[..., tuple[Tensor, Cells]]:
        """A loop as the textbook sees it: a state is one step from its input and from the state before."""

        def counted(x_BTE: Tensor, state: Cells, lengths_B: Tensor | None) -> tuple[Tensor, Cells]:
            out_BTD, last = run(x_BTE, state, lengths_B)
            before_B, found = self.nearest(state), []
            for nearest_B in self.shadow(x_BTE).amin(-1).unbind(1):
                before_B = torch.minimum(before_B, nearest_B) + 1
                found.append(before_B)
            self._shadows[out_BTD] = torch.stack(found, 1)[..., None].expand(out_BTD.shape)
            return out_BTD, self.reached(last, before_B)

        return counted

    def counted_step(self, step: Callable[..., Cells]) -> Callable[..., Cells]:
        def counted(x_BE: Tensor, state: Cells) -> Cells:
            return self.reached(step(x_BE, state), self.nearest((x_BE, *state)) + 1)

        return counted

    def nearest(self, parts: Cells) -> Tensor:
        """The least of several vectors, for each row."""
        return torch.stack([self.shadow(part).amin(-1) for part in parts]).amin(0)

    def reached(self, state: Cells, shadow_B: Tensor) -> Cells:
        for part in state:
            self._shadows[part] = shadow_B[:, None].expand(part.shape)
        return state


def through(shadow: Tensor, factor: Tensor) -> Tensor:
    """The least of each row of `shadow` over what a product with `factor` lets through: (…, N, K) and (…, K, M)."""
    passes = factor != 0
    if bool(passes.all()) or bool(shadow.isinf().all()):
        return shadow.amin(-1, keepdim=True).expand(*shadow.shape[:-1], factor.shape[-1])
    return shadow[..., None].masked_fill(~passes[..., None, :, :], inf).amin(-2)
