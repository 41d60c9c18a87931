"""Whether an answer depends on who shares its batch: every preset, 1,000 lines, batches of 1, 2, 7, 32 and 128.

    python -m bench.invariance                  the report for all of them, printed and into bench/README.md
    python -m bench.invariance --presets rnn,transformer --lines 200 --page none

A preset with `+copy` behind it has a copy head. Each is trained for some steps on its built-in task, so that its
answers are those of a model and not of chance. The lines are decoded greedily, with a beam of five, by sampling, and
rated (the true targets); each batch size has an order of its own. An answer is the same when its text, tokens, score,
probability and least sure token are, to the last bit, and those of its n best.
*int8 = fp32* is how many greedy texts are the same in both precisions, *torch = engine* in both ways to compute fp32.
"""

import argparse
import random
import tempfile
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from bench.page import put
from regard import config
from regard.data import builtin
from regard.data.read import read
from regard.data.tokens import END, MASK
from regard.engine.library import library
from regard.search.write import Sampling
from regard.tasks.fill import Fill
from regard.tasks.task import Answer, Item, Wish
from regard.tasks.transduce import Transduce
from regard.trained import Trained
from regard.training.run import Call, train

PRESETS = ("rnn-single", "rnn", "rnn-context", "rnn-attention", "conv", "attention-encoder", "transformer", "decoder",
           "encoder", "caption", "rnn-attention+copy", "conv+copy", "attention-encoder+copy", "transformer+copy",
           "decoder+copy")  # fmt: skip
PAGE = Path(__file__).resolve().with_name("README.md")
SIZES = (2, 7, 32, 128)
WAYS = {
    "greedy": Wish(),
    "beam 5": Wish(beam=5, n_best=5),
    "sampled": Wish(sampling=Sampling(seed=1)),
}
HEAD = "| preset | greedy | beam 5 | sampled | rated | int8 greedy | int8 = fp32 | torch = engine |"


def answered(model: Trained, items: list[Item], wish: Wish, numbers: list[int]) -> list[Answer]:
    return model.task.answer(model.decoding, items, wish, numbers)


def rated(model: Trained, items: list[Item], wish: Wish, numbers: list[int]) -> list[Answer]:
    assert isinstance(model.task, Transduce)
    return model.task.likelihood(model.decoding, items, wish)


def differing(model: Trained, items: list[Item], wish: Wish, ask=answered) -> int:
    """How many answers are not the same at another batch size and in another order as alone."""
    numbers = list(range(len(items)))
    alone = ask(model, items, replace(wish, batch=1), numbers)
    count = 0
    for size in SIZES:
        order = random.Random(size).sample(numbers, len(numbers))
        found = ask(model, [items[i] for i in order], replace(wish, batch=size), order)
        count += sum(each != alone[i] for i, each in zip(order, found, strict=True))
    return count


def same(a: list[Answer], b: list[Answer]) -> int:
    return sum(x.text == y.text for x, y in zip(a, b, strict=True))


def row(preset: str, folder: Path, steps: int, lines: int) -> str:
    task = "captions" if preset == "caption" else "dates"
    builtin.write(task, 3000, folder / "train.tsv")
    builtin.write(task, lines, folder / "test.tsv", part="test")
    words = [f"train.steps={steps}", f"train.validate_steps={steps}", "train.validate_examples=1"]
    name, _, head = preset.partition("+")
    words += ["decoder.copy=true"] if head == "copy" else []
    model, _ = train(config.resolve(name, None, words), str(folder / "train.tsv"), call=Call(quiet=True))
    table = read(str(folder / "test.tsv"), model.task.columns(), False)
    items = [model.task.encode(example, table.folder) for example in table.examples]
    if isinstance(model.task, Fill):
        items = [Item((*(MASK if place % 3 == 0 else id for place, id in enumerate(item.source[:-1])), END), ())
                 for item in items]  # fmt: skip
    numbers, cells = list(range(len(items))), []
    searching = isinstance(model.task, Transduce)
    for name, wish in WAYS.items():
        cells.append(f"{differing(model, items, wish)}" if searching or name == "greedy" else "–")
    cells.append(f"{differing(model, items, Wish(), rated)}" if searching else "–")
    whole = Trained(model.config, model.vocabulary, model.model, "int8")
    cells.append(f"{differing(whole, items, Wish())}")
    greedy = answered(model, items, Wish(), numbers)
    cells.append(f"{same(greedy, answered(whole, items, Wish(), numbers))} of {len(items)}")
    cells.append(f"{same(greedy, model.task.answer(model.model, items, Wish(), numbers))} of {len(items)}")
    return f"| `{preset}` | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", default=",".join(PRESETS))
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--page", default=str(PAGE), help="where the table goes; none = only to stdout")
    asked = parser.parse_args()
    if library() is None:
        raise SystemExit("the engine was not built here; there is nothing to report")
    made = [HEAD, "|---" + "|--:" * 7 + "|"]
    print("\n".join(made))
    for preset in asked.presets.split(","):
        with tempfile.TemporaryDirectory() as place:
            made.append(row(preset, Path(place), asked.steps, asked.lines))
        print(made[-1], flush=True)
    made += ["", f"Answers that differ, of {asked.lines:,} lines × batches of {', '.join(map(str, SIZES))}, each in an "
             f"order of its own, beside one line at a time; {asked.steps} steps of training each; torch "
             f"{version('torch')}. Made by `python -m bench.invariance`."]  # fmt: skip
    if asked.page != "none":
        put(Path(asked.page), "invariance", "\n".join(made))


if __name__ == "__main__":
    main()
