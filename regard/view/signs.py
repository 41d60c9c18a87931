"""A token in, a few signs that a person can read out; and texts in columns of a terminal, where some signs are wide."""

from rich.cells import cell_len, set_cell_size

from regard.data.read import escape
from regard.data.tokens import END, SPECIALS
from regard.tasks.task import Token


def shown(token: Token, width: int = 12) -> str:
    """A token in few columns; special tokens as one sign. What a text says is never one, whatever it looks like."""
    if 0 <= token.id < len(SPECIALS):
        return "⏎" if token.id == END else "·"
    return cut(escape(token.text), width) or "·"


def cut(text: str, width: int) -> str:
    """As much of a text as so many columns hold."""
    return text if cell_len(text) <= width else set_cell_size(text, width)


def right(text: str, width: int) -> str:
    """A text at the right end of so many columns."""
    return " " * (width - cell_len(text)) + text


def left(text: str, width: int) -> str:
    """A text at the left end of so many columns."""
    return text + " " * (width - cell_len(text))
