"""What it is worth to take the decoding step out of Python: the same step, run in several ways, in turns.

    python -m bench.choices                     the table into bench/README.md: some minutes, most of them compiling
    python -m bench.choices --models gru --rows 1 --choices eager,compile --page none

A step is one token for each row in, logits and the new state out, after 16 tokens of a source of 16: the small
Transformer of bench.train and its GRU with attention, random weights, one thread. Milliseconds are processor time,
medians over the rounds. Starting up is what a first call costs with an empty cache, the compiler itself being loaded.
`compile` is told every size and compiled again for another; `compile, dynamic` is compiled once for all; both and
`ahead of time` (AOTInductor) are torch's own. The rows of `regard.engine` are there when it can be imported.
"""

import argparse
import importlib
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch._inductor.utils import fresh_cache

from bench.page import put
from bench.peers import ours
from bench.peers.sizes import PIECES
from bench.train import processor
from regard import config
from regard.data.tokens import SPECIALS, START
from regard.layers.rows import over
from regard.models.build import build
from regard.models.decoders import AttentionState
from regard.models.memory import Memory, Reading
from regard.models.model import Model

PAGE = Path(__file__).resolve().with_name("README.md")
MODELS = {"small": "small Transformer", "gru": "GRU with attention"}
SOURCE, WRITTEN = 16, 16
COMPILED = ("compile", "dynamic", "ahead")
ENGINE = "regard.engine.engine"
BLOCK = 0.2  # seconds of processor time that are measured together

Run = Callable[[], Any]


@dataclass
class Choice:
    """One way to run the step: what starting up costs, and milliseconds a step in each round."""

    name: str
    make: Callable[[Model, Tensor, Reading], Run]
    run: Run | None = None
    starting: float = 0.0
    steps: list[float] = field(default_factory=list)
    failed: str = ""


# ── the step as a function of tensors ────────────────────────────────────────────────────────────────────────────────


class Flat(nn.Module):
    """`Model.step` with the tensors of a reading laid out one after the other, as compilers want them."""

    def __init__(self, model: Model, reading: Reading) -> None:
        super().__init__()
        self.model = model
        self.form = reading

    def forward(self, token_R: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        following = iter(tensors)
        reading = over(self.form, lambda _: next(following))
        if isinstance(reading.state, AttentionState) and reading.state.held[0] is not None:
            state = replace(reading.state, length=reading.state.held[0].key_BHSK.shape[2])
            reading = replace(reading, state=state)
        logits_RV, new = self.model.step(token_R, reading)
        return logits_RV, *leaves(new.state)


def leaves(tree: Any) -> list[Tensor]:
    """The tensors of a tree, in order."""
    found: list[Tensor] = []

    def keep(leaf: Tensor) -> Tensor:
        found.append(leaf)
        return leaf

    over(tree, keep)
    return found


@contextmanager
def nobody_listens() -> Iterator[None]:
    """Without taps and plain twins: the compiler can not see into a context variable, and would break off at each."""
    modules = [module for name, module in sys.modules.items() if name.startswith("regard.")]
    with ExitStack() as stack:
        for module, name in product(modules, ("listening", "is_plain")):
            if callable(getattr(module, name, None)):
                stack.enter_context(patch.object(module, name, lambda: False))
        yield


def eager(model: Model, token_R: Tensor, reading: Reading) -> Run:
    return lambda: model.step(token_R, reading)


def compiled(dynamic: bool) -> Callable[[Model, Tensor, Reading], Run]:
    def make(model: Model, token_R: Tensor, reading: Reading) -> Run:
        step = torch.compile(Flat(model, reading), dynamic=dynamic, fullgraph=True)
        tensors = leaves(reading)
        return lambda: step(token_R, *tensors)

    return make


def ahead_of_time(model: Model, token_R: Tensor, reading: Reading) -> Run:
    tensors = tuple(leaves(reading))
    exported = torch.export.export(Flat(model, reading), (token_R, *tensors))
    with tempfile.TemporaryDirectory() as place:
        package = torch._inductor.aoti_compile_and_package(exported, package_path=f"{place}/step.pt2")
        step = torch._inductor.aoti_load_package(package)
    return lambda: step(token_R, *tensors)


class Growing:
    """A step of regard's own engine, which writes on where it stands: from nothing to twice as far as the others are.

    What it takes to begin anew is not counted.
    """

    def __init__(self, made: Any, token_R: Tensor, memory: Memory) -> None:
        self.made, self.token_R, self.memory = made, token_R, memory
        self.lost, self.written = 0.0, 2 * WRITTEN

    def __call__(self) -> None:
        if self.written == 2 * WRITTEN:
            started = time.process_time()
            self.reading = self.made.reading(self.memory.source_BS, self.memory.mask_BS)
            self.lost += time.process_time() - started
            self.written = 0
        _, self.reading = self.made.step(self.token_R, self.reading)
        self.written += 1


def engine(precision: str) -> Callable[[Model, Tensor, Reading], Run]:
    def make(model: Model, token_R: Tensor, reading: Reading) -> Run:
        made = importlib.import_module(ENGINE).engine(model, precision)
        if isinstance(made, Model):
            raise RuntimeError("it could not be built here")
        return Growing(made, token_R, reading.memory)

    return make


def choices(names: Sequence[str]) -> list[Choice]:
    known = {
        "eager": Choice("eager", eager),
        "compile": Choice("compile", compiled(False)),
        "dynamic": Choice("compile, dynamic", compiled(True)),
        "ahead": Choice("ahead of time", ahead_of_time),
    }
    if importlib.util.find_spec(ENGINE.rpartition(".")[0]) is not None:
        known |= {"engine": Choice("regard.engine, fp32", engine("fp32")),
                  "engine-int8": Choice("regard.engine, int8", engine("int8"))}  # fmt: skip
    return [known[name] for name in names if name in known]


# ── measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────


def model_of(name: str) -> Model:
    """The model of bench.train, with random weights."""
    c = config.resolve(ours.preset(name), None, [*ours.model(name), *ours.TOKENS, *ours.TIED])
    torch.manual_seed(0)
    size = len(SPECIALS) + PIECES
    return build(c, size, size).eval()


def reading_of(model: Model, rows: int) -> tuple[Tensor, Reading]:
    """So many sources read and 16 tokens written for each."""
    source_BS = torch.randint(len(SPECIALS), PIECES, (rows, SOURCE))
    token_R = torch.full((rows,), START)
    reading = model.reading(source_BS, torch.ones_like(source_BS, dtype=torch.bool))
    for _ in range(WRITTEN):
        _, reading = model.step(token_R, reading)
    return token_R, reading


def start(choice: Choice, model: Model, token_R: Tensor, reading: Reading) -> None:
    """The first call, with all that must be made for it; whoever can not is left out with the reason."""
    torch._dynamo.reset()
    started = time.perf_counter()
    try:
        with fresh_cache():
            choice.run = choice.make(model, token_R, reading)
            choice.run()
    except Exception as error:
        choice.run = None
        choice.failed = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"[:100]
    choice.starting = time.perf_counter() - started
    print(f"{choice.name}: started in {choice.starting:.1f} s {choice.failed}", file=sys.stderr, flush=True)


def measure(name: str, rows: int, names: Sequence[str], rounds: int) -> list[Choice]:
    model = model_of(name)
    token_R, reading = reading_of(model, rows)
    made = choices(names)
    for choice in made:
        start(choice, model, token_R, reading)
    for _ in range(rounds):
        for choice in made:
            if choice.run is not None:
                choice.steps.append(milliseconds(choice.run))
    return made


def milliseconds(run: Run) -> float:
    """Of processor time for one call, over as many as fill a block of it; who else wants the core is not counted."""
    before = getattr(run, "lost", 0.0)
    count, started = 0, time.process_time()
    while (passed := time.process_time() - started) < BLOCK:
        run()
        count += 1
    return 1000 * (passed - getattr(run, "lost", 0.0) + before) / count


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────


def lines(name: str, rows: int, made: Sequence[Choice]) -> Iterator[str]:
    base = made[0]
    for choice in made:
        where = f"| {MODELS[name]} | {rows} | {choice.name} "
        if choice.run is None:
            yield f"{where}| {choice.failed} | | |"
            continue
        each = [mine / its for mine, its in zip(base.steps, choice.steps, strict=True)]
        yield f"{where}| {median(choice.steps):.3f} | {median(each):.2f} | {choice.starting:.1f} |"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--rows", default="1,64")
    parser.add_argument("--choices", default="eager,compile,dynamic,ahead,engine,engine-int8")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page", default=str(PAGE), help="where the table goes; none = only to stdout")
    return parser.parse_args()


def main() -> None:
    asked = options()
    torch.set_num_threads(1)
    found = ["| decoder | rows | the step | ms a step | × eager | starting up, s |", "|---|--:|---|--:|--:|--:|"]
    with torch.inference_mode(), nobody_listens():
        if set(asked.choices.split(",")) & set(COMPILED):
            torch.compile(torch.neg)(torch.zeros(3))  # loads the compiler, which is nobody's cost in particular
        for name in asked.models.split(","):
            for rows in map(int, asked.rows.split(",")):
                made = measure(name, rows, asked.choices.split(","), asked.rounds)
                found += lines(name, rows, made)
    text = "\n".join([*found, "", f"{asked.rounds} rounds, one thread, random weights; torch {torch.__version__}; "
                      f"{processor()}. Made by `python -m bench.choices`."])  # fmt: skip
    print(text)
    if asked.page != "none":
        put(Path(asked.page), "choices", text)


if __name__ == "__main__":
    main()
