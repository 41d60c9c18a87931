"""A token in, a few signs that a person can read out."""

from regard.data.read import escape
from regard.tasks.task import Token


def shown(token: Token, width: int = 12) -> str:
    """A token in few columns; special tokens as one sign."""
    if token.text.startswith("<") and token.text.endswith(">") and len(token.text) > 2:
        return "⏎" if token.text == "<end>" else "·"
    return escape(token.text)[:width] or "·"
