"""One thread or two for a small model, with and without another process that wants a core.

    python -m bench.threads                     milliseconds a step, median of the rounds, and the ratios

Each measurement is a process of its own; they are interleaved within a round. `regard.models.threads` rests on it.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from statistics import median

import torch

from regard import config
from regard.data import builtin
from regard.models.build import build
from regard.training.prepare import prepare
from regard.training.stream import updates


def step_time(preset: str, count: int, steps: int) -> float:
    """Milliseconds of one training step on dates."""
    torch.set_num_threads(count)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "dates.tsv"
        builtin.write("dates", 3000, path)
        data = prepare(config.resolve(preset), str(path), None, Path(place) / "store")
    model = build(data.config, data.vocabulary.source.size, data.vocabulary.target.size).train()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    started = 0.0
    stream = updates(data.task, data.train, data.config.train)
    for number, (batches, _) in enumerate(islice(stream, steps + 3)):
        if number == 3:
            started = time.perf_counter()
        torch.autograd.backward(data.task.loss(model, batches[0], 1.0, 0).total)
        optimizer.step()
        optimizer.zero_grad()
    return 1000 * (time.perf_counter() - started) / steps


@contextmanager
def company(busy: bool) -> Iterator[None]:
    """Another process that never rests, if there is to be one."""
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if busy else None
    try:
        yield
    finally:
        if other is not None:
            other.kill()
            other.wait()


def measured(preset: str, count: int, busy: bool, steps: int) -> float:
    with company(busy):
        command = [sys.executable, "-m", "bench.threads", "--one", f"{preset},{count}", "--steps", str(steps)]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", default="rnn-attention,transformer")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", help="a single measurement: PRESET,THREADS")
    asked = parser.parse_args()
    if asked.one:
        preset, count = asked.one.split(",")
        print(step_time(preset, int(count), asked.steps))
        return
    for preset in asked.presets.split(","):
        for busy in (False, True):
            rounds = [[measured(preset, count, busy, asked.steps) for count in (1, 2)] for _ in range(asked.rounds)]
            one, two = (median(column) for column in zip(*rounds, strict=True))
            print(f"{preset:16} {'busy' if busy else 'idle'}  one thread {one:7.1f} ms  two threads {two:7.1f} ms  "
                  f"two / one {two / one:.2f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
