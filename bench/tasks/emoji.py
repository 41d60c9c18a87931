"""Pictures of one artist and their English names: train on Twemoji, judge on its test part, and on Noto's drawings.

    python -m bench.tasks.emoji                                the test part, once settings are chosen
    python -m bench.tasks.emoji --valid --set train.steps=500  the validation part; nothing is kept
    python -m bench.tasks.emoji --trained                      the model that the last run left, on the test part

Beside the model stands the nearest neighbour: the name of the training picture whose pixels are nearest. The tables
are made of captions.tsv, whose column `split` says which part a picture belongs to; a source is a row of an .npz.
"""

import argparse
import csv
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import regard
from bench.page import put
from bench.tasks.__main__ import CACHE, DATA, HERE, PAGE
from regard import config
from regard.score import Metric, corpus_scores
from regard.training.run import Call, train

PARTS = {"train": "train", "valid": "val", "test": "test"}
ARTISTS = {"twitter": "Twemoji, as trained on", "google": "Noto, another artist"}
METRICS = ("exact", "bleu")

Pixels = NDArray[np.float32]


@dataclass(frozen=True)
class Part:
    """Rows of the array of pictures, and the name of each."""

    rows: list[int]
    names: list[str]


def parts(captions: Path) -> dict[str, Part]:
    with open(captions, encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    chosen = {part: [line for line in lines if line["split"] == split] for part, split in PARTS.items()}
    return {part: Part([int(line["index"]) for line in some], [line["en"] for line in some])
            for part, some in chosen.items()}  # fmt: skip


def write_tables(found: dict[str, Part], folder: Path) -> dict[str, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = {part: folder / f"{part}.tsv" for part in found}
    for part, path in paths.items():
        rows = "".join(f"{row}\t{name}\n" for row, name in zip(found[part].rows, found[part].names, strict=True))
        path.write_text(rows, encoding="utf-8")
    return paths


def nearest(known: Pixels, asked: Pixels) -> list[int]:
    """For each asked picture the known one at the least distance, pixel by pixel."""
    left, right = (each.reshape(len(each), -1) for each in (asked, known))
    distances = (right * right).sum(1) - 2 * left @ right.T
    return [int(row) for row in distances.argmin(1)]


def neighbours(found: dict[str, Part], images: dict[str, Pixels], artist: str, judged: str) -> dict[str, Metric]:
    """The baseline: names of Twemoji's training pictures for the judged ones of an artist."""
    known = images["twitter"][found["train"].rows]
    places = nearest(known, images[artist][found[judged].rows])
    outputs = [found["train"].names[place] for place in places]
    return corpus_scores(outputs, [[name] for name in found[judged].names])


def line(system: str, artist: str, scores: dict[str, Metric]) -> str:
    cells = [f"{scores[name].value:.1f} ({scores[name].low:.1f} – {scores[name].high:.1f})" for name in METRICS]
    return f"| {system} | {ARTISTS[artist]} | {' | '.join(cells)} |"


def learn(data: Path, words: Sequence[str]) -> None:
    """Leaves a model in the cache, and beside it the minutes that it took."""
    paths, out = write_tables(parts(data / "captions.tsv"), CACHE / "emoji-data"), CACHE / "emoji"
    c = config.resolve(None, HERE / "emoji.toml", [f"data.images={data / 'twitter_32.npz'}", *words])
    started = time.monotonic()
    train(c, str(paths["train"]), str(paths["valid"]), out, Call(force=True))
    out.with_suffix(".minutes").write_text(f"{(time.monotonic() - started) / 60}\n")


def judge(data: Path, judged: str) -> list[str]:
    """The table: both systems on both artists."""
    found = parts(data / "captions.tsv")
    paths = write_tables(found, CACHE / "emoji-data")
    archives = {artist: data / f"{artist}_32.npz" for artist in ARTISTS}
    images = {artist: np.load(path)["images"].astype(np.float32) / 255 for artist, path in archives.items()}
    trained, minutes = regard.load(CACHE / "emoji"), float((CACHE / "emoji.minutes").read_text())
    lines = ["| system | drawings | exact match (95 %) | BLEU (95 %) |", "|---|---|--:|--:|"]
    for artist in ARTISTS:
        lines.append(line("nearest neighbour on pixels", artist, neighbours(found, images, artist, judged)))
        scores = trained.with_images(archives[artist]).score(paths[judged]).metrics
        lines.append(line("`emoji.toml`", artist, scores))
    size = f"{trained.model.size:,} parameters, {minutes:.1f} minutes of training, seed {trained.config.train.seed}"
    return [*lines, "", f"{len(found[judged].rows)} pictures of the {judged} part; {size}."]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--valid", action="store_true")
    parser.add_argument("--trained", action="store_true")
    asked = parser.parse_args()
    if not (asked.data / "emoji").is_dir():
        sys.exit(f"{asked.data}: no folder emoji in it; the data are not part of this repository")
    if not asked.trained:
        learn(asked.data / "emoji", asked.set)
    lines = judge(asked.data / "emoji", "valid" if asked.valid else "test")
    print("\n".join(lines))
    if not asked.valid:
        put(PAGE, "tasks emoji", "\n".join(lines))


if __name__ == "__main__":
    main()
