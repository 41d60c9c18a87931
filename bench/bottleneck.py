"""The ladder compared, and its curve by source length: `regard compare` on dates and on Multi30k, for the front page.

    python -m bench.bottleneck                      both; what has finished in bench/.cache is taken
    python -m bench.bottleneck dates --minutes 1    one of them, with other minutes for each run

The reports are bench/.cache/bottleneck/NAME/compare.html; the curves go to docs/, the table into bench/README.md.
"""

import argparse
import shutil
from dataclasses import dataclass
from pathlib import Path

import regard
from bench.page import put
from bench.study import DATA
from regard.data import builtin

HERE = Path(__file__).resolve().parent
PAGE = HERE / "README.md"
PICTURES = HERE.parent / "docs"
CACHE = HERE / ".cache" / "bottleneck"
PRESETS = ("rnn-single", "rnn", "rnn-context", "rnn-attention", "conv", "attention-encoder", "transformer", "decoder")


@dataclass(frozen=True)
class Ladder:
    """Data, and minutes for each preset."""

    train: str  # a path below the data folder, or a built-in task
    test: str
    minutes: float


LADDERS = {
    "dates": Ladder("dates:en", "dates:en", 1.0),
    "multi30k": Ladder("multi30k-en-de/train.tsv", "multi30k-en-de/valid.tsv", 4.0),  # the test file is left alone
}


def files(ladder: Ladder, data: Path, folder: Path) -> list[Path]:
    """What is trained on, and what judges."""
    if not ladder.train.startswith("dates:"):
        return [data / ladder.train, data / ladder.test]
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", 10_000), ("test", 2000)):
        builtin.write("dates", count, folder / f"{part}.tsv", part=part)
    return [folder / "train.tsv", folder / "test.tsv"]


def climb(name: str, minutes: float | None, data: Path) -> regard.Comparison:
    """All presets on one file; the curve by length is left in docs/."""
    ladder, folder = LADDERS[name], CACHE / name
    train, test = files(ladder, data, CACHE / f"{name}.data")
    found = regard.compare(train, PRESETS, test, folder, 1, minutes or ladder.minutes, quiet=False)
    shutil.copy(folder / "by-length.svg", PICTURES / f"by-length-{name}.svg")
    return found


def table(name: str, found: regard.Comparison) -> list[str]:
    """A line for each preset: its score on all, and on the shortest and the longest sources."""
    rows = [f"| {name}: preset | {found.metric} (95 %) | shortest sources | longest | exposure gap | steps |",
            "|---|--:|--:|--:|--:|--:|"]  # fmt: skip
    for row in found.rows:
        score = row.scores[found.metric]
        ends = [f"{each.score.value:.1f} ({each.first} – {each.last} tokens)"
                for each in (row.by_length[0], row.by_length[-1])]  # fmt: skip
        gap = "–" if row.exposure is None else f"{row.exposure.gap:.1f}"
        rows.append(f"| `{row.preset}` | {score.value:.1f} ({score.low:.1f} – {score.high:.1f}) | {' | '.join(ends)} | "
                    f"{gap} | {row.trained[0][0]:,} |")  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=", ".join(LADDERS))
    parser.add_argument("--minutes", type=float, help="for each run")
    parser.add_argument("--data", type=Path, default=DATA)
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(LADDERS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; expected {' or '.join(LADDERS)}")
    for name in asked.names or LADDERS:
        minutes = asked.minutes or LADDERS[name].minutes
        made = f"{minutes:g} minutes each on two cores, seed 0. Made by `python -m bench.bottleneck {name}`."
        put(PAGE, f"bottleneck {name}", "\n".join([*table(name, climb(name, minutes, asked.data)), "", made]))


if __name__ == "__main__":
    main()
