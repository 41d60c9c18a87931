"""Keys in, the values they had lately out: what was used last is kept, and all of it weighs no more than so much."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """A dictionary that forgets what was not asked for the longest."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.weight = 0
        self.kept: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self.kept)

    def get(self, key: Hashable) -> Value | None:
        found = self.kept.get(key)
        if found is None:
            return None
        self.kept.move_to_end(key)
        return found[0]

    def put(self, key: Hashable, value: Value, weight: int) -> None:
        """Keeps the value, unless it alone is too heavy."""
        if weight > self.most:
            return
        self.weight += weight - self.kept.pop(key, (None, 0))[1]
        self.kept[key] = value, weight
        while self.weight > self.most:
            self.weight -= self.kept.popitem(last=False)[1][1]
