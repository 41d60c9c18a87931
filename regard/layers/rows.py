"""A tree of tensors and row numbers in, the same tree holding those rows out."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from torch import Tensor

Tree = TypeVar("Tree")


def over(tree: Tree, change: Callable[[Tensor], Tensor]) -> Tree:
    """The same tree with every tensor in it changed."""
    found: Any = tree
    if isinstance(found, Tensor):
        found = change(found)
    elif isinstance(found, tuple):
        found = tuple(over(leaf, change) for leaf in found)
    elif is_dataclass(found) and not isinstance(found, type):
        found = replace(found, **{f.name: over(getattr(found, f.name), change) for f in fields(found)})
    result: Tree = found
    return result


def detached(tree: Tree) -> Tree:
    """The same numbers, through which no gradient goes back."""
    return over(tree, lambda leaf: leaf.detach())


def rows(tree: Tree, index_R: Tensor) -> Tree:
    """Rows `index_R` of every tensor in a tree; a record that knows better has a method `rows` of its own."""
    known: Any = getattr(tree, "rows", None)
    result: Tree = known(index_R) if known is not None else over(tree, lambda leaf: leaf.index_select(0, index_R))
    return result
