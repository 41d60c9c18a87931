"""A token in, a few signs that a person can read out."""

from collections.abc import Sequence

from regard.data.read import escape
from regard.tasks.task import Token


def shown(token: Token, width: int = 12) -> str:
    """A token in few columns; special tokens as one sign."""
    if token.text.startswith("<") and token.text.endswith(">") and len(token.text) > 2:
        return "⏎" if token.text == "<end>" else "·"
    return escape(token.text)[:width] or "·"


def labels(tokens: Sequence[Token], text: str, width: int = 12) -> list[str]:
    """Tokens of a text; what the vocabulary spells in bytes, or does not know, as it stands in the text, once."""
    found, before = [], (0, 0)
    for token in tokens:
        span, sign = (token.start, token.end), shown(token, width)
        piece = escape(text[token.start : token.end])[:width].strip()
        found.append(piece if sign == "·" and piece and span != before else sign)
        before = span
    return found
