"""The ladder: every text preset on the same dates, the same steps and the same tokens a batch.

    python -m bench.ladder                      trains all of them, prints the table, writes bench/ladder.md
    python -m bench.ladder --presets rnn,conv --steps 300 --out ladder.md

Parameters, exact match on held-out dates with its interval, the exposure gap (token accuracy given the true prefix
minus token accuracy given the model's own), and seconds of processor time spent training on one thread. The
encoder-only preset writes no target: its row is the accuracy at hidden characters of the same dates.
"""

import argparse
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from bench.page import put
from regard import config
from regard.data import builtin
from regard.training.run import Call, train

PRESETS = ("rnn-single", "rnn", "rnn-context", "rnn-attention", "conv", "attention-encoder", "transformer", "decoder",
           "encoder")  # fmt: skip
OUT = Path(__file__).resolve().with_name("ladder.md")
TOKENS = 1024  # padded tokens a batch
HEAD = "| preset | parameters | exact match % (95 %) | token accuracy forced / free % | exposure gap | CPU seconds |"


def row(preset: str, data: Path, test: Path, steps: int, seed: int) -> str:
    """Trains one preset and gives its line of the table."""
    every = max(1, steps // 4)
    words = [
        f"train.steps={steps}",
        f"train.seed={seed}",
        f"train.validate_steps={every}",
        f"train.tokens_per_batch={TOKENS}",
    ]
    c = config.resolve(preset, None, words)
    started = time.process_time()  # not the clock on the wall: others may want the machine
    trained, _ = train(c, str(data), call=Call(quiet=True))
    seconds = time.process_time() - started
    found = trained.score(test)
    parameters = trained.model.size
    if "accuracy" in found.metrics:
        m = found.metrics["accuracy"]
        return (f"| `{preset}` | {parameters:,} | – (hidden characters: {m.value:.1f}, {m.low:.1f} – {m.high:.1f}) "
                f"| – | – | {seconds:.0f} |")  # fmt: skip
    m, facts = found.metrics["exact"], found.facts
    return (f"| `{preset}` | {parameters:,} | {m.value:.1f} ({m.low:.1f} – {m.high:.1f}) "
            f"| {facts['token_accuracy_forced']:.2f} / {facts['token_accuracy_free']:.2f} "
            f"| {facts['exposure_gap']:.2f} | {seconds:.0f} |")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", default=",".join(PRESETS))
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        data, test = Path(place) / "dates.tsv", Path(place) / "dates-test.tsv"
        builtin.write("dates", asked.examples, data)
        builtin.write("dates", 2000, test, part="test")
        lines = [HEAD, "|---|--:|--:|--:|--:|--:|"]
        for preset in asked.presets.split(","):
            lines.append(row(preset, data, test, asked.steps, asked.seed))
            print(lines[-1], flush=True)
    budget = f"{asked.steps:,} steps of {TOKENS:,} tokens, seed {asked.seed}, greedy"
    lines += ["", f"{asked.examples:,} English dates, {budget}; 2,000 held out; torch {version('torch')}, "
              "one thread. Made by `python -m bench.ladder`."]  # fmt: skip
    asked.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if asked.out == OUT:
        put(OUT.parent.parent / "README.md", "ladder", "\n".join(lines))


if __name__ == "__main__":
    main()
