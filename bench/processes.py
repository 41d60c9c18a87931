"""Two processes of one thread beside one process of two: the same model, the same batches, the same updates.

    python -m bench.processes                   target tokens a second, medians of the rounds, and the ratio
    python -m bench.processes --rounds 3 --steps 20 --page none

A Transformer of three layers a side, width 256, on built-in dates. Each measurement is a run of `regard train` (under
torch's launcher for two processes); they take turns within a round. Tokens a second are what the run itself wrote into
times.jsonl, without its first line.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from statistics import median

from bench.page import put
from regard.data import builtin

PAGE = Path(__file__).resolve().with_name("README.md")
LAUNCHER = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
KINDS = {"one process, two threads": ([], 2), "two processes, one thread each": (LAUNCHER, 1)}
SIZES = [f"{side}.{name}" for side in ("encoder", "decoder") for name in ("layers=3", "width=256", "feedforward=1024")]


def tokens_a_second(kind: str, data: Path, steps: int, tokens: int) -> float:
    """One run, and the median of the speeds that it noted."""
    launcher, threads = KINDS[kind]
    words = [*SIZES, f"train.steps={steps}", f"train.validate_steps={steps}", "train.validate_examples=1",
             f"train.tokens_per_batch={tokens}", f"train.threads={threads}"]  # fmt: skip
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "model"
        command = [sys.executable, *launcher, "-m", "regard", "train", str(data), "-o", str(out), "--preset",
                   "transformer", *(part for word in words for part in ("--set", word))]  # fmt: skip
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        subprocess.run(command, check=True, capture_output=True, env=environment)
        lines = [json.loads(line) for line in (out / "times.jsonl").read_text(encoding="utf-8").splitlines()]
    speeds = [line["tokens_per_second"] for line in lines if "tokens_per_second" in line]
    return median(speeds[1:] or speeds)


def table(found: dict[str, list[float]], steps: int, tokens: int) -> str:
    first, second = found.values()
    ratios = [b / a for a, b in zip(first, second, strict=True)]
    rows = [f"| {kind} | {median(speeds):,.0f} |" for kind, speeds in found.items()]
    return "\n".join([
        "| | target tokens a second |", "|---|--:|", *rows, "",
        f"Two processes against one: {median(ratios):.2f} ({min(ratios):.2f} – {max(ratios):.2f}) over {len(ratios)} "
        f"rounds of {steps} updates of at most {tokens:,} tokens, gloo, torch {version('torch')}. Made by "
        "`python -m bench.processes`.",
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--examples", type=int, default=20_000)
    parser.add_argument("--page", default=str(PAGE), help="where the table goes; none = only to stdout")
    asked = parser.parse_args()
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "dates.tsv"
        builtin.write("dates", asked.examples, data)
        for number in range(asked.rounds):
            for kind in KINDS if number % 2 else reversed(KINDS):
                found[kind].append(tokens_a_second(kind, data, asked.steps, asked.tokens))
                print(f"round {number + 1} · {kind}: {found[kind][-1]:,.0f} tokens/s", file=sys.stderr, flush=True)
    made = table(found, asked.steps, asked.tokens)
    print(made)
    if asked.page != "none":
        put(Path(asked.page), "processes", made)


if __name__ == "__main__":
    main()
