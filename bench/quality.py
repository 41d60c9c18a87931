"""Whether the fast means cost quality: the same model, seeds and steps with them and without, on validation data.

    python -m bench.quality                     what bench/quality.csv does not hold yet, and then the table
    python -m bench.quality --seeds 0,1 --steps 500 --page none

Each run is a process of its own and leaves one line in bench/quality.csv; a run whose line is there is not run again,
so the command may be stopped at any time. Lines of other settings are left alone; when the code has changed, take the
old lines out.

The rule: a difference between two means is within noise when it is no greater than what Student's t allows for the
spread over the seeds (95 %, two-sided). The table says from which difference on it would have been seen.
"""

import argparse
import math
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, stdev

import regard
from bench import lines, tokenised
from bench.lines import append
from bench.page import put
from bench.peers import ours
from bench.peers.gate import Job
from regard.errors import RegardError
from regard.layers.plain import plain

PAGE = Path(__file__).resolve().with_name("README.md")
LINES = Path(__file__).resolve().with_name("quality.csv")
FAST, PLAIN = "fast", "plain"
PRECISION = {FAST: "auto", PLAIN: "fp32"}
STUDENT = {2: 4.303, 3: 2.776, 4: 2.447, 5: 2.306, 6: 2.228}  # for two groups of so many, 95 %, two-sided
# A high rate, a long warm-up (a quarter of the steps), the last weights and no choice.
RECIPE = ("train.learning_rate=4e-3", "train.schedule=inverse-sqrt", "train.clip=1.0",
          "train.weight_decay=0.0", "train.validate_examples=1")  # fmt: skip


@dataclass(frozen=True)
class Run:
    """What is trained; two runs that differ in nothing here are the same run."""

    variant: str
    seed: int
    steps: int
    tokens: int
    threads: int


@dataclass(frozen=True)
class Outcome(Run):
    """A run and what came out: one line of the file."""

    loss: float
    bleu: float
    seconds: float

    @property
    def run(self) -> Run:
        return Run(self.variant, self.seed, self.steps, self.tokens, self.threads)


def reference() -> AbstractContextManager[None]:
    """The means that everybody knows in place of the fast ones: cross-entropy on whole logits, `F.dropout` and such."""
    return plain()


def trained(run: Run, data: Path) -> Outcome:
    """One model from the first step to the last, then judged on all of the validation set, greedily."""
    job = Job(str(data), "tiny", run.threads, run.tokens, run.seed, PRECISION[run.variant])
    words = [*ours.words(job), *RECIPE, f"train.steps={run.steps}", f"train.warmup={run.steps // 4}",
             f"train.validate_steps={run.steps}",
             f"train.checkpoint_steps={run.steps}"]  # fmt: skip
    train, valid = data / "train.tsv", data / "valid.tsv"
    started = time.perf_counter()
    with reference() if run.variant == PLAIN else nullcontext():
        model = regard.train(train, valid, preset=ours.preset("tiny"), settings=words, quiet=False)
    seconds = time.perf_counter() - started
    found = model.score(valid)
    return Outcome(**asdict(run), loss=found.facts["loss"], bleu=found.metrics["bleu"].value, seconds=seconds)


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def read(path: Path) -> list[Outcome]:
    return lines.read(path, Outcome)


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Comparison:
    """Two groups of figures, one of which was made without the fast means."""

    fast: Sequence[float]
    plain: Sequence[float]
    more_is_better: bool

    @property
    def difference(self) -> float:
        return mean(self.fast) - mean(self.plain)

    @property
    def visible(self) -> float | None:
        """From this difference on it would be seen above the noise; none = too few seeds to tell."""
        count = min(len(self.fast), len(self.plain))
        if count < 2:
            return None
        error = math.sqrt(stdev(self.fast) ** 2 / len(self.fast) + stdev(self.plain) ** 2 / len(self.plain))
        return STUDENT.get(count, 2.0 if count > 6 else math.inf) * error

    @property
    def verdict(self) -> str:
        if self.visible is None:
            return "too few seeds to tell"
        if abs(self.difference) <= self.visible:
            return "within noise"
        return "better" if (self.difference > 0) == self.more_is_better else "worse"


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """The two means side by side, with spread and verdict."""
    fast, plain = ([each for each in outcomes if each.variant == name] for name in (FAST, PLAIN))
    losses = Comparison([each.loss for each in fast], [each.loss for each in plain], more_is_better=False)
    scores = Comparison([each.bleu for each in fast], [each.bleu for each in plain], more_is_better=True)
    return [
        "| | validation loss | BLEU, validation |",
        "|---|--:|--:|",
        f"| with the fast means | {shown(losses.fast, 4)} | {shown(scores.fast, 2)} |",
        f"| without them | {shown(losses.plain, 4)} | {shown(scores.plain, 2)} |",
        f"| difference | {losses.difference:+.4f} | {scores.difference:+.2f} |",
        f"| would be seen from | {seen(losses.visible, 4)} | {seen(scores.visible, 2)} |",
        f"| verdict | {losses.verdict} | {scores.verdict} |",
    ]


def shown(values: Sequence[float], digits: int) -> str:
    """Mean ± spread, and each."""
    spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{spread} ({', '.join(f'{value:.{digits}f}' for value in values)})"


def seen(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=tokenised.DATA, help="folder with train.tsv and valid.tsv")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--tokens", type=int, default=2048, help="most in a batch: the longer side, padded")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--lines", type=Path, default=LINES, help="the file with a line for each run")
    parser.add_argument("--page", default=str(PAGE), help="where the table goes; none = only to stdout")
    parser.add_argument("--one", help="a single run in this process: VARIANT,SEED")
    return parser.parse_args()


def wanted(asked: argparse.Namespace) -> list[Run]:
    """Seed by seed, so that a stopped command leaves pairs behind."""
    seeds = [int(seed) for seed in asked.seeds.split(",")]
    return [Run(name, seed, asked.steps, asked.tokens, asked.threads) for seed in seeds for name in (FAST, PLAIN)]


def run_apart(run: Run, asked: argparse.Namespace) -> None:
    """One run as a process of its own, which adds its line to the file."""
    settings = ("data", "steps", "tokens", "threads", "lines")
    given = [word for name in settings for word in (f"--{name}", str(getattr(asked, name)))]
    command = [sys.executable, "-m", "bench.quality", "--one", f"{run.variant},{run.seed}", *given]
    code = subprocess.run(command, check=False).returncode
    if code:
        sys.exit(code)  # it has said why


def conclude(outcomes: Sequence[Outcome], asked: argparse.Namespace) -> None:
    text = "\n".join([*table(outcomes), "", f"tiny, {asked.steps:,} steps of {asked.tokens:,} tokens, seeds "
                      f"{asked.seeds}, threads: {asked.threads}; the last weights, greedy. Mean ± standard deviation "
                      "over the seeds, each in brackets. Made by `python -m bench.quality`."])  # fmt: skip
    print(text)
    if asked.page != "none":
        put(Path(asked.page), "quality", text)


def main() -> None:
    asked = options()
    try:
        tokenised.check(asked.data)
        if asked.one:
            variant, seed = asked.one.split(",")
            run = Run(variant, int(seed), asked.steps, asked.tokens, asked.threads)
            append(asked.lines, trained(run, asked.data))
            return
        reference()  # that it is there is better known before the first hour than after it
        for run in wanted(asked):
            if run not in [line.run for line in read(asked.lines)]:
                run_apart(run, asked)
        chosen = set(wanted(asked))
        conclude([line for line in read(asked.lines) if line.run in chosen], asked)
    except RegardError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
