"""A head and rows in, a table in Markdown out, its columns aligned so that a terminal shows it as well."""

from collections.abc import Sequence
from typing import Any


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    texts = [list(head), *([str(each) for each in row] for row in rows)]
    widths = [max(3, *(len(row[i]) for row in texts)) for i in range(len(head))]
    lines = ["| " + " | ".join(pad(text, width, not i) for i, (text, width) in enumerate(zip(row, widths, strict=True)))
             + " |" for row in texts]  # fmt: skip
    rule = "|" + "|".join("-" * (width + 1) + ("-" if not i else ":") for i, width in enumerate(widths)) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def pad(text: str, width: int, left: bool) -> str:
    return text.ljust(width) if left else text.rjust(width)
