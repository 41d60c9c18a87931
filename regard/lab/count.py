"""A model and its inputs in, what it computes out: operations by part, and the longest chain of dependent ones.

The model runs as it is, under a dispatch mode that sees every kernel call. On the `meta` device only shapes flow, so
the largest model costs no memory and no arithmetic. Three kinds of calls are told apart:

    product      matrix products and convolutions: 2 operations for each multiply-add
    elementwise  all other arithmetic (sums, gates, norms, softmax): 1 operation for each number made
    move         views, copies, look-ups, masks, new constants: no operation

A chain counts calls, not numbers: two calls are one after the other when one needs what the other made. Only what
depends on the input is on a chain; weights, masks and positions could be made beforehand.
"""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakTensorKeyDictionary

from regard.layers.plain import plain

PRODUCTS = frozenset({"mm", "addmm", "bmm", "baddbmm", "convolution"})
MOVES = frozenset({
    "alias", "as_strided", "cat", "clone", "constant_pad_nd", "contiguous", "copy", "detach", "embedding", "expand",
    "flip", "gather", "index", "index_select", "lift_fresh", "masked_fill", "permute", "reshape", "select", "slice",
    "split", "split_with_sizes", "squeeze", "stack", "t", "transpose", "tril", "unbind", "unsafe_split", "unsqueeze",
    "view", "where", "_to_copy", "_unsafe_view",
})  # fmt: skip
CREATED = frozenset({
    "arange", "empty", "full", "new_zeros", "ones", "ones_like", "scalar_tensor", "zeros", "zeros_like",
})  # fmt: skip

COPY = "decoder copy"

# Where a weight or a module belongs, by its name; the first that fits. Norms stand before the parts they are named for.
PARTS = (
    (r"^source_embedding\.ngrams", "source n-grams"),
    (r"^source_embedding", "source embedding"),
    (r"^target_embedding", "target embedding"),
    (r"^output", "output"),
    (r"^decoder\.bridge", "bridge"),
    (r"^(\w+)\.position", r"\1 positions"),
    (r"^(\w+)\..*norm", r"\1 norms"),
    (r"^(\w+)\.(cells|.*_cell)\b", r"\1 cells"),
    (r"^(\w+)\..*self_attention", r"\1 self-attention"),
    (r"^(\w+)\..*cross_attention", r"\1 cross-attention"),
    (r"^(\w+)\..*feedforward", r"\1 feed-forward"),
    (r"^(\w+)\..*convolution", r"\1 convolutions"),
    (r"^decoder\.joined", "decoder join"),
    (r"^decoder\.copy", COPY),
)
PROJECTIONS, COMPARISONS, SUMMARY = ": projections", ": comparing and mixing", "summary of the source"


@cache
def part(name: str) -> str | None:
    """The part of a model that a weight or a module belongs to, in the words of the table."""
    for pattern, label in PARTS:
        if found := re.match(pattern, name):
            return found.expand(label)
    return None


@cache
def call_name(function: Any) -> str:
    """`aten::add_.Tensor` as `add`: the kernel's name, whether it works in place or not."""
    name = str(function._schema.name).removeprefix("aten::")
    return name[:-1] if name.endswith("_") else name


def tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    """All tensors among the arguments of a call."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from tensors(value)


def product_operations(name: str, arguments: tuple[Any, ...], made: Tensor) -> int:
    """2 for each multiply-add of one product; a bias that is added on the way is not counted."""
    if name == "convolution":
        kernel: Tensor = arguments[1]
        return 2 * made.numel() * prod(kernel.shape[1:])
    left: Tensor = arguments[1] if name in ("addmm", "baddbmm") else arguments[0]
    return 2 * made.numel() * left.shape[-1]


class Kernels(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every kernel call, and knows which tensors are weights or mere views of them."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.weights: Any = WeakTensorKeyDictionary()
        for name, weight in model.named_parameters():
            self.weights[weight] = name

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), named: Mapping[str, Any] | None = None
    ) -> Any:
        name = call_name(function)
        if name == "_local_scalar_dense" and arguments[0].is_meta:
            # A mask without padding is all True; learned positions are asked whether they are too far, and are not.
            return arguments[0].dtype == torch.bool
        made = function(*arguments, **(named or {}))
        if name in MOVES and isinstance(arguments[0], Tensor) and (owner := self.weights.get(arguments[0])):
            for piece in () if name == "embedding" else tensors([made]):
                self.weights[piece] = owner
        self.see(name, arguments, made)
        return made

    def see(self, name: str, arguments: tuple[Any, ...], made: Any) -> None:
        """One call: what it was given and what it made."""
        raise NotImplementedError

    def weight_of(self, arguments: tuple[Any, ...]) -> str | None:
        """The name of the weight that a product multiplies by, if it does."""
        factors = arguments[-2:] if len(arguments) <= 3 else arguments[:2]
        return next((self.weights[factor] for factor in tensors(factors) if factor in self.weights), None)


@dataclass(frozen=True)
class Chain:
    """Calls that must come one after the other: all that compute, and the products among them."""

    operations: int = 0
    products: int = 0


class Operations(Kernels):  # type: ignore[no-untyped-call]
    """Adds up operations by part, and gives each tensor the length of the longest chain that leads to it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model)
        self.products: Counter[str] = Counter()
        self.elementwise = 0
        self._chains: Any = WeakTensorKeyDictionary()
        self._open: list[str] = []

    def follow(self, tensor: Tensor) -> Tensor:
        """An input: chains begin here."""
        self._chains[tensor] = (0, 0)
        return tensor

    def chain(self, tensor: Tensor) -> Chain:
        return Chain(*self._chains.get(tensor, (0, 0)))

    def see(self, name: str, arguments: tuple[Any, ...], made: Any) -> None:
        if name in PRODUCTS:
            self.products[self.where(arguments)] += product_operations(name, arguments, made)
        elif name not in MOVES and name not in CREATED:
            self.elementwise += next((piece.numel() for piece in tensors([made])), 0)
        if name not in CREATED:
            self.lengthen(arguments, made, (name not in MOVES, name in PRODUCTS))

    def lengthen(self, arguments: tuple[Any, ...], made: Any, more: tuple[int, int]) -> None:
        behind = [self._chains[given] for given in tensors(arguments) if given in self._chains]
        if behind:
            chain = tuple(max(lengths) + one for lengths, one in zip(zip(*behind, strict=True), more, strict=True))
            for piece in tensors([made]):
                self._chains[piece] = chain

    def where(self, arguments: tuple[Any, ...]) -> str:
        """The part that a product belongs to; of attention, whether it projects or compares and mixes."""
        weight, module = self.weight_of(arguments), self._open[-1] if self._open else ""
        if weight is None:
            found = part(module)
            return f"{found}{COMPARISONS}" if found and ("attention" in found or found == COPY) else SUMMARY
        # A tied output multiplies by an embedding's weight: there the module says where we are.
        found = part(module) if module == "output" else part(weight)
        if found and ("attention" in found or found == COPY):
            return found + (COMPARISONS if weight.endswith("score.vector") else PROJECTIONS)
        return found or weight

    @contextmanager
    def watching(self, model: nn.Module) -> Iterator[None]:
        """Counts all that `model` does inside; fused kernels are taken apart, so that their steps are seen."""
        with ExitStack() as stack:
            for name, module in model.named_modules():
                stack.callback(module.register_forward_pre_hook(self.opener(name)).remove)
                stack.callback(module.register_forward_hook(self.close).remove)
            stack.enter_context(apart())
            stack.enter_context(self)
            yield

    def opener(self, name: str) -> Callable[..., None]:
        return lambda *_: self._open.append(name)

    def close(self, *_: Any) -> None:
        self._open.pop()


@contextmanager
def apart() -> Iterator[None]:
    """Fused attention and fused loops run as the kernels they are made of; nothing is recorded for gradients."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # thousands of tiny calls: threads would only wait for each other
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="TF32 acceleration")  # said whenever oneDNN is switched
            with plain(), torch.no_grad(), torch.backends.mkldnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH):
                yield
    finally:
        torch.set_num_threads(threads)
