"""A token in, a few signs that a person can read out."""

import re
from collections.abc import Sequence

from regard.data.read import escape
from regard.tasks.task import Token

BYTE = re.compile("<0x[0-9A-F]{2}>")  # of a character that the vocabulary does not hold


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
        if piece and (sign == "·" or BYTE.fullmatch(token.text)):
            sign = piece if span != before else "·"
        found.append(sign)
        before = span
    return found
