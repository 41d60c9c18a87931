"""What a body that has read the texts is worth where labels are few: a learning curve with it and without it.

    python -m bench.tasks.transfer                        what bench/tasks/transfer.csv does not hold yet, and the table
    python -m bench.tasks.transfer --sets names --shares 0.1 --seeds 0 --page none

A body learns by `fill` from the texts of a training file, its labels unused. Then models learn the labels of a share of
that file, drawn by the seed: once from scratch (tokens of their own, learnt from the share), once from the body. Both
have the same settings, steps and examples; the validation file chooses the weights, the test file judges them once.

Each run is a process of its own and leaves one line in the CSV; a run whose line is there is not run again, so the
command may be stopped at any time. Bodies are kept in bench/.cache.
"""

import argparse
import base64
import random
import subprocess
import sys
import time
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory

import numpy as np

import regard
from bench import lines as kept_lines
from bench.lines import append
from bench.page import put
from regard.data.read import Columns, read
from regard.errors import MissingError, RegardError, UsageError
from regard.score.intervals import Bootstrap
from regard.score.metrics import ratio
from regard.score.tallies import Paired, Statistics, compare
from regard.score.tallies import drawn as resampled

HERE = Path(__file__).resolve().parent
DATA = HERE.parent.parent.parent / "shared" / "data"
PAGE = HERE.parent / "README.md"
LINES = HERE / "transfer.csv"
CACHE = HERE.parent / ".cache" / "transfer"
SCRATCH, BODY = "scratch", "body"


@dataclass(frozen=True)
class Labelled:
    """A file with labels, and what its tokens are."""

    folder: str
    task: str
    target: int
    tokens: str
    size: int = 8000


SETS = {
    "snips-intent": Labelled("snips", "classify", 3, "words"),
    "names": Labelled("names", "classify", 2, "characters"),
    "ewt": Labelled("ewt", "tag", 2, "words"),
}
ENCODER = ("encoder.layers=2", "encoder.width=128", "encoder.heads=4", "encoder.feedforward=256")
RECIPE = ("train.threads=1", "train.tokens_per_batch=1024", "train.validate_examples=2000")


@dataclass(frozen=True)
class Run:
    """What is trained; two runs that differ in nothing here are the same run."""

    set: str
    share: float
    variant: str
    seed: int
    steps: int
    body_steps: int


@dataclass(frozen=True)
class Outcome(Run):
    """A run and what came out: one line of the file."""

    examples: int  # with a label that was seen
    valid: float  # accuracy, per cent
    test: float
    right: str  # of each test example, how many labels are right: bytes, compressed, base64
    seconds: float

    @property
    def run(self) -> Run:
        return Run(self.set, self.share, self.variant, self.seed, self.steps, self.body_steps)


# ── one run ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def body_of(name: str, steps: int, data: Path, cache: Path) -> Path:
    """A body that has read the texts of the training file; made if it is not there yet."""
    labelled, folder = SETS[name], cache / f"{name}-{steps}"
    if (folder / "manifest.json").is_file():
        return folder
    words = ["task=fill", "data.source=1", f"tokens.source={labelled.tokens}", f"tokens.size={labelled.size}", *ENCODER,
             *RECIPE, f"train.steps={steps}", f"train.validate_steps={max(1, steps // 4)}",
             "train.metric=loss"]  # fmt: skip
    files = [data / labelled.folder / f"{part}.tsv" for part in ("train", "valid")]
    regard.train(files[0], files[1], out=folder, preset="encoder", settings=words, force=True, quiet=False)
    return folder


def drawn(path: Path, share: float, seed: int, out: Path) -> int:
    """A share of the lines of a file, drawn by the seed, into another; how many there are."""
    lines = path.read_text(encoding="utf-8").splitlines()
    count = max(1, round(share * len(lines)))
    chosen = random.Random(f"{seed} {share}").sample(lines, count)
    out.write_text("\n".join(chosen) + "\n", encoding="utf-8")
    return count


def trained(run: Run, data: Path, cache: Path) -> Outcome:
    """One model from the first step to the last, chosen on the validation file and judged on the test file."""
    labelled = SETS[run.set]
    files = {part: data / labelled.folder / f"{part}.tsv" for part in ("train", "valid", "test")}
    words = [f"task={labelled.task}", "data.source=1", f"data.target={labelled.target}", *RECIPE,
             f"train.steps={run.steps}", f"train.validate_steps={max(1, run.steps // 4)}", f"train.seed={run.seed}",
             "train.metric=accuracy"]  # fmt: skip
    own = [*words, *ENCODER, f"tokens.source={labelled.tokens}", f"tokens.size={labelled.size}"]
    with TemporaryDirectory() as place:
        share = Path(place) / "share.tsv"
        count = drawn(files["train"], run.share, run.seed, share)
        started = time.perf_counter()
        if run.variant == BODY:
            body = body_of(run.set, run.body_steps, data, cache)
            model = regard.train(share, files["valid"], settings=words, start_from=body)
        else:
            model = regard.train(share, files["valid"], preset="encoder", settings=own)
        seconds = time.perf_counter() - started
    valid, test = (model.score(files[part]) for part in ("valid", "test"))
    return Outcome(**asdict(run), examples=count, valid=valid.metrics["accuracy"].value,
                   test=test.metrics["accuracy"].value, right=packed(rights(files["test"], labelled, test.outputs)),
                   seconds=seconds)  # fmt: skip


def references(path: Path, labelled: Labelled) -> list[list[str]]:
    """The labels of each example: one, or one for each token."""
    targets = [example.target or "" for example in read(str(path), Columns(("1",), str(labelled.target))).examples]
    return [target.split() if labelled.task == "tag" else [target] for target in targets]


def rights(path: Path, labelled: Labelled, outputs: Sequence[str]) -> list[int]:
    """How many labels of each example are right."""
    found = [output.split() if labelled.task == "tag" else [output] for output in outputs]
    pairs = zip(found, references(path, labelled), strict=True)
    return [sum(a == b for a, b in zip(output, labels, strict=False)) for output, labels in pairs]


def packed(counts: Sequence[int]) -> str:
    return base64.b64encode(zlib.compress(np.array(counts, "<u2").tobytes(), 9)).decode()


def unpacked(text: str) -> "np.ndarray[tuple[int], np.dtype[np.uint16]]":
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), "<u2")


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def lines_of(path: Path) -> list[Outcome]:
    return kept_lines.read(path, Outcome)


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────


def statistics(lines: Sequence[Outcome], counts: Sequence[int]) -> Statistics:
    """Right labels and all labels of each test example, summed over the seeds: examples are what is drawn anew."""
    right = np.sum([unpacked(line.right) for line in lines], axis=0, dtype=np.float64)
    return Statistics(np.stack([right, len(lines) * np.asarray(counts, np.float64)], 1), ratio, "")


def paired(lines: Sequence[Outcome], counts: Sequence[int]) -> Paired | None:
    """With the body against without it, over the seeds that both have."""
    sides = [{line.seed: line for line in lines if line.variant == name} for name in (BODY, SCRATCH)]
    seeds = sorted(sides[0].keys() & sides[1].keys())
    if not seeds:
        return None
    with_body, without = (statistics([side[seed] for seed in seeds], counts) for side in sides)
    bootstrap = Bootstrap(0, 1000)
    return compare(resampled([with_body], bootstrap), resampled([without], bootstrap), share=True)


def table(outcomes: Sequence[Outcome], counts: dict[str, Sequence[int]]) -> list[str]:
    """A row for each data set and share."""
    head = "| data | labels | examples | from scratch | from the body | difference (95 %) | p |"
    rows = [head, "|---|--:|--:|--:|--:|--:|--:|"]
    for name, share in sorted({(line.set, line.share) for line in outcomes}):
        lines = [line for line in outcomes if (line.set, line.share) == (name, share)]
        scratch, body = ([line.test for line in lines if line.variant == each] for each in (SCRATCH, BODY))
        found = paired(lines, counts[name])
        if found is None:
            continue
        low, high = (found.low or 0.0, found.high or 0.0)
        rows.append(f"| {name} | {100 * share:g} % | {lines[0].examples:,} | {shown(scratch)} | {shown(body)} | "
                    f"{found.difference:+.2f} ({low:+.2f} – {high:+.2f}) | {found.p_value:.3f} |")  # fmt: skip
    return rows


def shown(values: Sequence[float]) -> str:
    """Mean ± standard deviation over the seeds."""
    return f"{mean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with a folder for each set")
    parser.add_argument("--sets", default="names,ewt")
    parser.add_argument("--shares", default="0.1,0.01,0.03,0.3,1.0")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--body-steps", type=int, default=1500)
    parser.add_argument("--lines", type=Path, default=LINES, help="the file with a line for each run")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where bodies are kept")
    parser.add_argument("--page", default=str(PAGE), help="where the table goes; none = only to stdout")
    parser.add_argument("--one", help="a single run in this process: SET,SHARE,VARIANT,SEED")
    return parser.parse_args()


def wanted(asked: argparse.Namespace) -> list[Run]:
    """Pair by pair, so that a stopped command leaves pairs behind."""
    names, shares, seeds = asked.sets.split(","), asked.shares.split(","), asked.seeds.split(",")
    for name in names:
        if name not in SETS:
            raise UsageError(f"--sets {name}: expected some of {', '.join(SETS)}")
    return [Run(name, float(share), variant, int(seed), asked.steps, asked.body_steps)
            for share in shares for seed in seeds for name in names for variant in (SCRATCH, BODY)]  # fmt: skip


def run_apart(run: Run, asked: argparse.Namespace) -> None:
    """One run as a process of its own, which adds its line to the file."""
    settings = ("data", "steps", "body_steps", "lines", "cache")
    given = [word for name in settings for word in (f"--{name.replace('_', '-')}", str(getattr(asked, name)))]
    one = f"{run.set},{run.share},{run.variant},{run.seed}"
    code = subprocess.run([sys.executable, "-m", "bench.tasks.transfer", "--one", one, *given], check=False).returncode
    if code:
        sys.exit(code)  # it has said why


def conclude(outcomes: Sequence[Outcome], asked: argparse.Namespace) -> None:
    counts = {name: [len(labels) for labels in references(asked.data / SETS[name].folder / "test.tsv", SETS[name])]
              for name in {line.set for line in outcomes}}  # fmt: skip
    text = "\n".join([*table(outcomes, counts), "", f"Accuracy on the test file, per cent; {asked.steps} steps of "
                      f"1,024 tokens, a body of {asked.body_steps:,} such steps of fill, seeds {asked.seeds}. Mean ± "
                      "standard deviation over the seeds; the difference with a paired bootstrap over the test "
                      "examples. Made by `python -m bench.tasks.transfer`."])  # fmt: skip
    print(text)
    if asked.page != "none":
        put(Path(asked.page), "transfer", text)


def check(asked: argparse.Namespace) -> None:
    """The files must be there; they are not ours to bring along."""
    for name in asked.sets.split(","):
        for part in ("train", "valid", "test"):
            path = asked.data / SETS[name].folder / f"{part}.tsv"
            if not path.is_file():
                raise MissingError(f"{path}: no such file; name the folder of data sets with --data")


def main() -> None:
    asked = options()
    try:
        runs = wanted(asked)
        check(asked)
        if asked.one:
            name, share, variant, seed = asked.one.split(",")
            run = Run(name, float(share), variant, int(seed), asked.steps, asked.body_steps)
            append(asked.lines, trained(run, asked.data, asked.cache))
            return
        for run in runs:
            if run not in [line.run for line in lines_of(asked.lines)]:
                run_apart(run, asked)
        conclude([line for line in lines_of(asked.lines) if line.run in set(runs)], asked)
    except RegardError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
