"""The shipped lesson in, its table in docs/lesson.md out.

python -m bench.lesson
"""

from pathlib import Path
from typing import Any

from bench.page import put
from regard.lab.lesson import kept

PAGE = Path(__file__).resolve().parent.parent / "docs" / "lesson.md"


def row(number: int, page: dict[str, Any]) -> str:
    score = page["scores"][0]
    what = {"exact": "", "accuracy": "hidden characters: "}[score["name"]]
    value = f"{what}{score['value']:.1f} ({score['low']:.1f} – {score['high']:.1f})"
    return f"| {number} | `{page['name']}` | {page['parameters']:,} | {value} | {page['curve']['title'].lower()} |"


def table() -> str:
    """A line for each page: its model, how many held-out examples it gets right, and what its curve shows."""
    found = kept.read()
    assert found is not None
    lines = ["| # | page | parameters | right, % (95 %) | its curve |", "|--:|---|--:|--:|---|"]
    lines += [row(number, page) for number, page in enumerate(found["pages"], 1)]
    return "\n".join([*lines, "", f"Made by `{found['command']}`, {found['made']}."])


if __name__ == "__main__":
    put(PAGE, "lesson", table())
