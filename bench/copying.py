"""A copy head on and off: what it costs, measured in turns, and what it gains, by the same seed and steps.

    python -m bench.copying                             built-in dates
    python -m bench.copying --data FILE VALID --tokens words --presets rnn-attention --steps 300

Times are processor milliseconds of one thread for 64 examples, medians of the rounds; decoding is greedy, ten tokens
each, by the model in torch and by the engine.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch

from regard import config
from regard.data import builtin
from regard.data.batch import Batch
from regard.engine.engine import Engine, engine
from regard.models.build import build
from regard.models.model import Model
from regard.tasks.task import Item, Task, Wish
from regard.training.prepare import prepare
from regard.training.run import Call, train

EXAMPLES = 64
TEN = Wish(min_length=10, max_length=10)


@dataclass(frozen=True)
class Case:
    """A fresh model and examples for it."""

    task: Task
    model: Model
    items: list[Item]
    batch: Batch

    def step(self) -> None:
        self.model.train().zero_grad()
        torch.autograd.backward(self.task.loss(self.model, self.batch, 1.0, 0).total)

    def write(self, with_what: Model | Engine) -> None:
        self.model.eval()
        self.task.answer(with_what, self.items, TEN, range(len(self.items)))


def case(c: config.Config, files: tuple[str, str]) -> Case:
    with tempfile.TemporaryDirectory() as place:
        data = prepare(c, *files, Path(place))
    vocabulary, items = data.vocabulary, list(data.valid.items[:EXAMPLES])
    model = build(c, vocabulary.source.size, vocabulary.target.size, copies=vocabulary.copies())
    return Case(data.task, model, items, data.task.batch(items, range(len(items)), 0))


def milliseconds(act: Callable[[], None]) -> float:
    began = time.process_time()
    act()
    return 1000 * (time.process_time() - began)


def costs(off: Case, on: Case, rounds: int) -> dict[str, float]:
    """Medians over the rounds, one round before them not counted."""
    quick, pointing = engine(off.model), engine(on.model)
    acts: dict[str, Callable[[], None]] = {
        "step off": off.step,
        "step on": on.step,
        "write off": lambda: off.write(off.model),
        "write on": lambda: on.write(on.model),
        "engine off": lambda: off.write(quick),
        "engine on": lambda: on.write(pointing),
    }
    times = [{name: milliseconds(act) for name, act in acts.items()} for _ in range(rounds + 1)][1:]
    return {name: median(each[name] for each in times) for name in acts}


def settings(preset: str, copy: bool, tokens: str, steps: int) -> config.Config:
    words = [f"decoder.copy={str(copy).lower()}", f"tokens.source={tokens}", f"tokens.target={tokens}",
             f"train.steps={steps}", "train.validate_steps=1000000", "train.checkpoint_steps=1000000"]  # fmt: skip
    return config.resolve(preset, None, words)


def compare(preset: str, files: tuple[str, str], tokens: str, steps: int, rounds: int) -> None:
    off, on = (settings(preset, copy, tokens, steps) for copy in (False, True))
    found = costs(case(off, files), case(on, files), rounds)
    print(f"{preset}: a training step {found['step off']:.0f} ms, with a copy head {found['step on']:.0f} "
          f"(× {found['step on'] / found['step off']:.2f}); writing in torch {found['write off']:.0f} and "
          f"{found['write on']:.0f} (× {found['write on'] / found['write off']:.2f}); "
          f"by the engine {found['engine off']:.1f} and {found['engine on']:.1f} "
          f"(× {found['engine on'] / found['engine off']:.2f}; torch takes × "
          f"{found['write on'] / found['engine on']:.1f})", flush=True)  # fmt: skip
    for name, c in (("off", off), ("on", on)) if steps > 1 else ():
        _, judged = train(c, *files, call=Call(quiet=True))
        assert judged is not None
        print(f"{preset}: copying {name}, {steps} steps, seed {c.train.seed}: exact "
              f"{judged.metrics['exact'].value:.1f} %, loss {judged.facts['loss']:.4f}", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs=2, metavar=("FILE", "VALID"), help="two files of pairs; none = dates")
    parser.add_argument("--tokens", default="characters")
    parser.add_argument("--presets", default="rnn-attention,transformer,decoder")
    parser.add_argument("--steps", type=int, default=600, help="of training; 1 = only times")
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        files = asked.data or [str(Path(place) / name) for name in ("train.tsv", "valid.tsv")]
        if not asked.data:
            builtin.write("dates", 5000, Path(files[0]))
            builtin.write("dates", 1000, Path(files[1]), part="valid")
        for preset in asked.presets.split(","):
            compare(preset, (files[0], files[1]), asked.tokens, asked.steps, asked.rounds)


if __name__ == "__main__":
    main()
