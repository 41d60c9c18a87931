"""Plain values in, JSON that every reader understands out: it has no word for what is not finite, so that is null."""

import json
import math
from typing import Any


def json_text(value: Any, separators: tuple[str, str] | None = None) -> str:
    """The value in readable letters."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=separators)
    except ValueError:  # seldom, so that nothing is gone through twice as a rule
        return json.dumps(without_infinities(value), ensure_ascii=False, allow_nan=False, separators=separators)


def without_infinities(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: without_infinities(each) for name, each in tree.items()}
    if isinstance(tree, list | tuple):
        return [without_infinities(each) for each in tree]
    return finite(tree) if isinstance(tree, float) else tree


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
