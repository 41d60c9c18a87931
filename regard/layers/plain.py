"""The switch between the quick ways and the plain ones: to show that they come to the same.

    with plain():
        train(...)          whole logits, torch's own dropout, norms and attention, separate projections

Only comparisons use it (bench/quality.py and the tests); nobody sets it in a run.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_plain: ContextVar[bool] = ContextVar("regard_plain", default=False)


def is_plain() -> bool:
    return _plain.get()


@contextmanager
def plain() -> Iterator[None]:
    """While this is open every part computes in torch's own, unhurried way."""
    token = _plain.set(True)
    try:
        yield
    finally:
        _plain.reset(token)
