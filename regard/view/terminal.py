"""A record in, lines for a terminal out: who looked at what, in blocks of ink."""

from regard.data.read import escape
from regard.view.record import Record, Token

INK = " ░▒▓█"


def alignment(record: Record) -> str:
    """Target below target, source across: the darker, the more it looked there."""
    weights = record.alignment()
    if weights is None:
        return "this model has no attention: all it knows of the source is the state it starts from"
    columns = [shown(token) for token in record.source]
    lines = ["       " + "".join(columns)]
    for token, row, sure in zip(record.target, weights, record.probabilities, strict=True):
        ink = "".join(shade(weight) * len(column) for weight, column in zip(row, columns, strict=True))
        lines.append(f"{shown(token, 5):>5}  {ink}  {sure:.3f}")
    return "\n".join(lines)


def shade(weight: float) -> str:
    return INK[min(len(INK) - 1, int(weight * len(INK)))]


def shown(token: Token, width: int = 12) -> str:
    """A token in few columns; special tokens as one sign."""
    if token.text.startswith("<") and token.text.endswith(">") and len(token.text) > 2:
        return "⏎" if token.text == "<end>" else "·"
    return escape(token.text)[:width] or "·"
