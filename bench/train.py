"""How fast regard trains beside others: the same models, the same tokens, one machine, in turns.

    python -m bench.train                       all of it into bench/README.md: an hour, and some minutes to install
    python -m bench.train --sizes tiny --systems regard,torch --rounds 1 --page none

Each system is a process that drives its own training code (bench/peers/); in each round every one trains for a slice
while the others wait. Figures are medians over the rounds, ratios are medians of the ratios within a round. The peers
are installed into .venv-peers, each in its own environment, at the versions in bench/peers/*.txt.
"""

import argparse
import platform
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from statistics import median

from bench import operations, tokenised
from bench.interleave import Measured, Order, System, measure
from bench.page import put
from bench.peers.corpus import Corpus
from bench.peers.gate import Job
from bench.peers.sizes import SIZES, Recurrent, Transformer
from bench.table import LIMIT, Aim, aims_table, memory, named, ratio, table
from regard.errors import RegardError

PAGE = Path(__file__).resolve().with_name("README.md")
HUGGING_FACE, JOEY = "HF Marian loop", "JoeyNMT"
REGARD, REGARD_FP32 = "regard", "regard, fp32"
SYSTEMS = {
    "regard": System(REGARD, "ours", precision="auto"),
    "transformers": System(HUGGING_FACE, "marian", "transformers"),
    "torch": System("nn.Transformer loop", "plain"),
    "eole": System("eole", "onmt", "eole"),
    "joeynmt": System(JOEY, "joey", "joeynmt"),
}
RECURRENT = ("regard", "joeynmt")  # the systems that have the GRU in the very same form
AIMS = {"tiny": 1.9, "small": 2.0}  # × the HF loop, as a user gets it
AIM_FP32, AIM_MEMORY, AIM_GRU = 1.25, 0.5, 3.0
LIMIT_SHARE = 0.1  # of a slice is enough for a matrix product
BUSY = 0.85  # of its threads a matrix product keeps busy on a machine that is left alone


def systems(names: Sequence[str], size: str) -> list[System]:
    """Those asked for that know this model; regard in fp32 as well where it chooses bf16 by itself."""
    known = [name for name in names if isinstance(SIZES[size], Transformer) or name in RECURRENT]
    found = [System("fp32 product", LIMIT, share=LIMIT_SHARE), *[SYSTEMS[name] for name in known]]
    if "regard" in known:
        fp32 = replace(SYSTEMS["regard"], name=REGARD_FP32, precision="fp32", beside="bf16")
        product = System("bf16 product", LIMIT, precision="bf16", share=LIMIT_SHARE, beside="bf16")
        at = found.index(SYSTEMS["regard"]) + 1
        found[at:at] = [fp32, product]
    return found


def aims(size: str, found: Sequence[Measured]) -> list[Aim]:
    """What the project set itself for this model, beside what was measured."""
    ours = named(found, REGARD)
    precision = ours.facts["precision"] if ours else "auto"
    fp32 = named(found, REGARD_FP32) if precision == "bf16" else ours
    if isinstance(SIZES[size], Recurrent):
        return [Aim(f"{size}, against {JOEY}", AIM_GRU, ratio(ours, named(found, JOEY)))]
    base = named(found, HUGGING_FACE)
    return [
        Aim(f"{size}, as a user gets it (here {precision}), against the HF loop", AIMS[size], ratio(ours, base)),
        Aim(f"{size}, in fp32, against the HF loop", AIM_FP32, ratio(fp32, base)),
        Aim(f"{size}, peak memory of the process, against HF's", AIM_MEMORY, memory(ours, base), at_most=True),
        Aim(f"{size}, what training adds to it, against HF's", AIM_MEMORY, memory(ours, base, growth=True),
            at_most=True),
    ]  # fmt: skip


def report(size: str, found: Sequence[Measured], corpus: Corpus, asked: argparse.Namespace) -> str:
    """The tables of one model, and how they came about."""
    model = SIZES[size]
    base = HUGGING_FACE if isinstance(model, Transformer) else JOEY
    needed = operations.per_target_token(model, corpus) if isinstance(model, Transformer) else None
    lines = [*table(found, base, needed), "", *aims_table(aims(size, found)), ""]
    return "\n".join([*lines, circumstances(found, asked, needed)])


def circumstances(found: Sequence[Measured], asked: argparse.Namespace, needed: float | None) -> str:
    versions = ", ".join(f"{one.system.name} {one.facts['version']} ({one.facts['parameters']:,} parameters)"
                         for one in found if one.slices and one.system.module != LIMIT)  # fmt: skip
    limits = ", ".join(f"{one.system.name} {median(each.rate for each in one.slices) / 1e9:.0f} GFLOP/s"
                       for one in found if one.slices and one.system.module == LIMIT)  # fmt: skip
    work = "" if needed is None else f"; {needed / 1e6:.1f} million operations a target token, by the formula"
    return (f"{asked.rounds} rounds of at least {asked.updates} updates and {asked.seconds:g} s each, "
            f"{asked.warm_up} updates before them not counted; {asked.tokens:,} tokens a batch; threads: "
            f"{asked.threads}; seed {asked.seed}; {processor()}; Python {platform.python_version()}; {limits}{work}. "
            f"{versions}.{disturbed(found, asked.threads)}")  # fmt: skip


def disturbed(found: Sequence[Measured], threads: int) -> str:
    """A warning where somebody else used the machine: a matrix product by itself keeps every thread busy, evenly."""
    slices = [each for one in found if one.system.module == LIMIT for each in one.slices]
    if all(each.cpu >= BUSY * threads * each.seconds for each in slices):
        return ""
    return " **Somebody else used the machine meanwhile: these figures are worth little.**"


def processor() -> str:
    """The name of the CPU, where the system tells it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} × {names[0]}" if names else platform.processor() or "unknown CPU"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=tokenised.DATA, help="folder with train.tsv and valid.tsv")
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20.0, help="least length of a slice")
    parser.add_argument("--updates", type=int, default=8, help="least updates of a slice")
    parser.add_argument("--warm-up", type=int, default=4, help="updates before the first round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=4096, help="most in a batch: the longer side, padded")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", default=str(PAGE), help="where the tables go; none = only to stdout")
    parser.add_argument("--work", type=Path, help="a folder to keep what the systems write, their logs above all")
    asked = parser.parse_args()
    for names, known in ((asked.sizes, SIZES), (asked.systems, SYSTEMS)):
        for name in set(names.split(",")) - set(known):
            parser.error(f"{name!r} is not one of {', '.join(known)}")
    return asked


def place(work: Path | None) -> AbstractContextManager[str]:
    """Where the systems write: the folder that was named, or one that is gone afterwards."""
    if work is None:
        return tempfile.TemporaryDirectory()
    work.mkdir(parents=True, exist_ok=True)
    return nullcontext(str(work.resolve()))


def run(asked: argparse.Namespace) -> None:
    tokenised.check(asked.data)
    names = asked.systems.split(",")
    with place(asked.work) as folder:
        corpus = tokenised.write(asked.data, Path(folder))
        for size in asked.sizes.split(","):
            job = Job(folder, size, asked.threads, asked.tokens, asked.seed)
            warm_up, order = Order(asked.warm_up, 0.0), Order(asked.updates, asked.seconds)
            found = measure(systems(names, size), job, asked.rounds, warm_up, order)
            text = report(size, found, corpus, asked)
            print(f"\n{size}\n\n{text}", flush=True)
            if asked.page != "none":
                put(Path(asked.page), f"train {size}", text)


def main() -> None:
    try:
        run(options())
    except RegardError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
