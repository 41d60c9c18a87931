"""A token in, a few signs that a person can read out; and texts in columns of a terminal, where some signs are wide."""

import re
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from regard.data.read import escape
from regard.data.tokens import END, SPECIALS
from regard.tasks.task import Token

BYTE = re.compile(r"<0x[0-9A-F]{2}>")  # a byte that is no character by itself


def shown(token: Token, width: int = 12) -> str:
    """A token in few columns; special tokens as one sign. What a text says is never one, whatever it looks like."""
    if 0 <= token.id < len(SPECIALS):
        return "⏎" if token.id == END else "·"
    return cut(escape(token.text), width) or "·"


def cut(text: str, width: int) -> str:
    """As much of a text as so many columns hold."""
    return text if cell_len(text) <= width else set_cell_size(text, width)


def right(text: str, width: int) -> str:
    """A text at the right end of so many columns, cut to them."""
    return " " * (width - cell_len(text)) + cut(text, width)


def left(text: str, width: int) -> str:
    """A text at the left end of so many columns."""
    return text + " " * (width - cell_len(text))


def labels(tokens: Sequence[Token], text: str, width: int = 12) -> list[str]:
    """Tokens of a text; what the vocabulary spells in bytes, or does not know, as it stands in the text, once."""
    found, before = [], (0, 0)
    for token in tokens:
        span, sign = (token.start, token.end), shown(token, width)
        piece = cut(escape(text[token.start : token.end]).strip(), width)
        if piece and (sign == "·" or BYTE.fullmatch(token.text)):
            sign = piece if span != before else "·"
        found.append(left(sign, 1))  # a mark alone has no width of its own
        before = span
    return found
