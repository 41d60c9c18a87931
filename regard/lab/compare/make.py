"""What is asked for in, a comparison out: plans, trains what is not trained yet, measures, writes the page."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from regard.folder import write_file
from regard.lab.compare.measure import Comparison, measure
from regard.lab.compare.page import length_file, page
from regard.lab.compare.plan import Asked, plan
from regard.lab.compare.runs import train_all

JSON, HTML, CURVE = "compare.json", "compare.html", "by-length.svg"


def compare(
    path: str | Path,
    presets: str | Sequence[str],
    test: str | Path | None = None,
    out: str | Path = "compare",
    seeds: int = 3,
    minutes: float | None = None,
    steps: int | None = None,
    settings: str | Sequence[str] = (),
    valid: str | Path | None = None,
    task: str | None = None,
    seed: int = 0,
    quiet: bool = True,
) -> Comparison:
    """Presets on one file: same split, same tokens, same budget. Every run is a model folder in `out`.

    `minutes` (10 where no steps are named either) and `steps` bound each run. What has finished in `out` is not trained
    again, and what was interrupted goes on.
    """
    names = presets.split(",") if isinstance(presets, str) else list(presets)
    words = (settings,) if isinstance(settings, str) else tuple(settings)
    asked = Asked(str(path), tuple(name.strip() for name in names), None if test is None else str(test),
                  None if valid is None else str(valid), seeds, seed, minutes, steps, task, words)  # fmt: skip
    return make(asked, Path(out), quiet, "regard.compare")


def make(asked: Asked, folder: Path, quiet: bool, command: str) -> Comparison:
    """Leaves the runs, compare.json, compare.html and the curve of scores by length in the folder."""

    def say(line: str) -> None:
        if not quiet:
            print(line, file=sys.stderr, flush=True)

    planned = plan(asked)
    found = measure(train_all(planned, folder, quiet, command, say), folder, command, say)
    write_file(folder / JSON, (json.dumps(found.as_dict(), ensure_ascii=False, indent=1) + "\n").encode())
    write_file(folder / HTML, page(found).encode())
    if drawn := length_file(found):
        write_file(folder / CURVE, drawn.encode())
    return found


__all__ = ["Comparison", "compare", "make"]
