"""Memory against the number of lines: a file that is a few times larger than the other, prepared and trained on.

    python -m bench.memory                          200,000 and 5,000,000 lines, characters; table into bench/README.md
    python -m bench.memory --lines 1000000 --tokens bpe

Each file is generated, then read by a process of its own that prepares it and trains a small model for some steps on
one thread. Peak memory is what the system saw resident at most, mapped files included; beside it what was resident when
torch and regard had been imported. Seconds are those of the processor.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from bench.page import put

PAGE = Path(__file__).resolve().with_name("README.md")
HEAD = ("| lines | file MB | store MB | imports MB | peak preparing MB | peak training MB | seconds to prepare "
        "| lines a second |")  # fmt: skip
STEPS = 20
MODEL = ["encoder.width=32", "encoder.layers=1", "decoder.width=32", "decoder.layers=1", "train.tokens_per_batch=4096",
         "encoder.feedforward=64", "decoder.feedforward=64"]  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """One run; sizes in MB."""

    imports: float
    preparing: float
    training: float
    store: float
    seconds: float


def lines(count: int) -> Iterator[str]:
    """Some words and a number that no other line has, and the same words the other way round."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyzäöü", k=draw.randint(2, 9))) for _ in range(5000)]
    for number in range(count):
        some = draw.choices(words, k=draw.randint(1, 8))
        yield f"{' '.join(some)} {number}\t{' '.join(reversed(some))}\n"


def resident(word: str) -> float:
    """Of this process, in MB: VmRSS now, VmHWM at most. (What getrusage says would count the parent's memory too.)"""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith(word))) / 1024


def measure(path: Path, store: Path, tokens: str, steps: int) -> Measured:
    """Prepares the file and trains on it, in this process."""
    import torch

    from regard import config
    from regard.models.build import build
    from regard.training.prepare import prepare
    from regard.training.stream import updates

    torch.set_num_threads(1)
    c = config.resolve("transformer", None, [*MODEL, f"tokens.source={tokens}", f"tokens.target={tokens}"])
    imports, started = resident("VmRSS"), time.process_time()
    data = prepare(c, str(path), None, store)
    preparing, seconds = resident("VmHWM"), time.process_time() - started
    model = build(c, data.vocabulary.source.size, data.vocabulary.target.size).train()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for batches, _ in islice(updates(data.task, data.train, c.train), steps):
        torch.autograd.backward(data.task.loss(model, batches[0], 1.0, 0).total)
        optimizer.step()
        optimizer.zero_grad()
    size = sum(each.stat().st_size for each in store.iterdir())
    return Measured(imports, preparing, resident("VmHWM"), size / 1e6, seconds)


def measured(path: Path, tokens: str, steps: int = STEPS) -> Measured:
    """The same, in a process of its own."""
    with tempfile.TemporaryDirectory(dir=path.parent) as store:
        command = [sys.executable, "-m", "bench.memory", "--one", str(path), "--store", store, "--tokens", tokens,
                   "--steps", str(steps)]  # fmt: skip
        found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return Measured(**json.loads(found))


def row(count: int, path: Path, found: Measured) -> str:
    cells = [f"{count:,}", f"{path.stat().st_size / 1e6:.0f}", f"{found.store:.0f}", f"{found.imports:.0f}",
             f"{found.preparing:.0f}", f"{found.training:.0f}", f"{found.seconds:.0f}",
             f"{count / found.seconds:,.0f}"]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=5_000_000)
    parser.add_argument("--small", type=int, default=200_000)
    parser.add_argument("--tokens", default="characters")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--page", default=str(PAGE), help="where the table goes; none = only to stdout")
    parser.add_argument("--one", type=Path, help="a single measurement of this file …")
    parser.add_argument("--store", type=Path, help="… that writes its store here")
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(asdict(measure(asked.one, asked.store, asked.tokens, asked.steps))))
        return
    table, found = [HEAD, "|--:" * 8 + "|"], []
    for count in (asked.small, asked.lines):
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "lines.tsv"
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(lines(count))
            found.append(measured(path, asked.tokens, asked.steps))
            table.append(row(count, path, found[-1]))
            print(table[-1], flush=True)
    growth = found[1].training - found[0].training
    table += ["", f"{asked.lines / asked.small:.0f} times as many lines: {growth:+.0f} MB. Tokens: {asked.tokens}; "
              f"{asked.steps} steps of a small Transformer, one thread. Made by `python -m bench.memory`."]  # fmt: skip
    print(table[-1])
    if asked.page != "none":
        put(Path(asked.page), "memory", "\n".join(table))


if __name__ == "__main__":
    main()
