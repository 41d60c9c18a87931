"""How fast regard decodes beside others: the same weights, the same lines, one machine, in turns.

    python -m bench.decode                      all of it into bench/README.md: an hour, most of it training
    python -m bench.decode --model DIR --rounds 1 --lines 100 --singles 20 --page none
    python -m bench.decode --random --systems regard,transformers --presets none --page none

Each system is a process that decodes with its own code (bench/peers/decode_*.py); in each round every one decodes all
lines while the others wait. Texts go in and texts come out. Figures are medians over the rounds, ratios are medians of
the ratios within a round. The model is the small one of bench.train; it is trained once and kept in bench/.cache.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import regard
from bench import tokenised
from bench.interleave import Lost, Process, turned
from bench.ladder import PRESETS
from bench.page import put
from bench.peers import environments, ours
from bench.peers.decoding import Decoded, Job, Order
from bench.peers.environments import NotInstalled
from bench.peers.gate import Job as Training
from bench.peers.gate import argument
from bench.ported import export
from bench.table import Aim, aims_table, spread
from bench.train import place, processor
from regard import config
from regard.data import builtin
from regard.data.read import read
from regard.data.vocabulary import learn
from regard.errors import MissingError, RegardError
from regard.models.build import build
from regard.score import corpus_scores
from regard.trained import Trained

HERE = Path(__file__).resolve().parent
PAGE, CACHE = HERE / "README.md", HERE / ".cache"
SIZE = "small"
HUGGING_FACE, CTRANSLATE2_INT8, REGARD, REGARD_INT8 = "HF generate", "CTranslate2 int8", "regard fp32", "regard int8"
PRESET_STEPS = 300
LONGEST = 64  # tokens of an output, for all; no reference of test2016 is longer
# A rate and a schedule that this model learns well with in so few steps.
RECIPE = ("train.learning_rate=2e-3", "train.schedule=cosine", "train.warmup=200", "train.metric=bleu",
          "train.validate_examples=200")  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One way to be asked, and what is to be reached in it."""

    name: str
    beam: int
    batch: int  # of the file; 1 = a line at a time
    hugging_face: float | None  # at least so many times as fast
    first: float | None = None  # … as CTranslate2 in int8, at once
    goal: float | None = None  # … and as the goal


CASES = (
    Case("greedy, a file", 1, 64, 4.0, 0.7, 1.0),
    Case("greedy, a line at a time", 1, 1, 3.0, None, 1.0),
    Case("beam 5, a file", 5, 64, 2.5, None, 1.0),
    Case("beam 5, a line at a time", 5, 1, None),
)


@dataclass(frozen=True)
class System:
    """One row of the table, or one of several ways to run it of which the best is shown."""

    name: str
    module: str
    peer: str | None = None
    precision: str = "fp32"
    workers: int = 1
    threads: int = 1

    @property
    def way(self) -> str:
        return f"{self.workers} × {self.threads}"


@dataclass
class Measured:
    """All that is known of one system: facts it told of itself, what it decoded in each round of each case."""

    system: System
    facts: dict[str, Any] = field(default_factory=dict)
    rounds: dict[str, list[Decoded]] = field(default_factory=dict)
    failed: str = ""

    def rates(self, case: Case) -> list[float]:
        """Sentences a second, round by round; the first, in which all were warming up, is left out."""
        return [len(each.texts) / each.seconds for each in self.rounds.get(case.name, [])[1:]]


def systems(names: Sequence[str], threads: int) -> list[System]:
    """Every way of the systems asked for; CTranslate2 with its threads in one worker, and with a worker for each."""
    ways = [(1, threads), (threads, 1)] if threads > 1 else [(1, 1)]
    known = {
        "regard": [System(REGARD, "decode_ours", threads=threads),
                   System(REGARD_INT8, "decode_ours", precision="int8", threads=threads)],
        "transformers": [System(HUGGING_FACE, "decode_hf", "transformers", threads=threads)],
        "ctranslate2": [System(name, "decode_ctranslate2", "ctranslate2", precision, *way)
                        for name, precision in (("CTranslate2 float32", "fp32"), (CTRANSLATE2_INT8, "int8"))
                        for way in ways],
        "joeynmt": [System("JoeyNMT", "decode_joey", "joeynmt", threads=threads)],
    }  # fmt: skip
    return [system for name in names for system in known[name]]


SYSTEMS = ("regard", "transformers", "ctranslate2", "joeynmt")


# ── measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Scope:
    """How many lines are decoded together, how many one at a time, and how long an output may be."""

    lines: int
    singles: int
    longest: int


class Decoder(Process):
    """The process of one system, its model loaded."""

    def __init__(self, system: System, folder: str, model: Path) -> None:
        python = sys.executable if system.peer is None else str(environments.interpreter(system.peer))
        job = Job(folder, str(model), system.precision, system.workers, system.threads)
        log = Path(folder) / f"{system.module}-{system.precision}-{system.workers}.log"
        threads = system.workers * system.threads if system.peer is None else system.threads
        super().__init__(python, [f"bench.peers.{system.module}", argument(job)], threads, log)

    def decode(self, order: Order) -> Decoded:
        return Decoded(**self.ask(asdict(order)))


def measure(
    chosen: Sequence[System], folder: str, model: Path, cases: Sequence[Case], scope: Scope, rounds: int
) -> list[Measured]:
    """Every system started; in each round each decodes every case, beginning with another system each time."""
    found = [Measured(system) for system in chosen]
    workers: dict[int, Decoder] = {}
    try:
        for number, one in enumerate(found):
            start(one, number, workers, folder, model)
        for turn in range(rounds + 1):
            for case in cases:
                for number in turned(list(workers), turn):
                    step(found[number], number, workers, case, scope)
    finally:
        for worker in workers.values():
            worker.end()
    return found


def start(one: Measured, number: int, workers: dict[int, Decoder], folder: str, model: Path) -> None:
    try:
        workers[number] = Decoder(one.system, folder, model)
        one.facts = workers[number].facts
    except (NotInstalled, Lost) as error:
        one.failed = f"{'not installed' if isinstance(error, NotInstalled) else 'failed'}: {error}"
        tell(one, one.failed)


def step(one: Measured, number: int, workers: dict[int, Decoder], case: Case, scope: Scope) -> None:
    try:
        found = workers[number].decode(
            Order(case.beam, case.batch, scope.lines if case.batch > 1 else scope.singles, scope.longest)
        )
        one.rounds.setdefault(case.name, []).append(found)
        tell(one, f"{case.name}: {len(found.texts) / found.seconds:,.1f} a second")
    except (Lost, BrokenPipeError) as error:
        one.failed = f"failed: {error}"
        del workers[number]
        tell(one, one.failed)


def tell(one: Measured, what: str) -> None:
    print(f"{one.system.name}, {one.system.way}: {what}", file=sys.stderr, flush=True)


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────

HEAD = ("system", "sentences a second", "ms a sentence", "× HF", "× CTranslate2 int8", "BLEU", "equal to regard fp32",
        "cores busy")  # fmt: skip


def bests(found: Sequence[Measured], case: Case) -> list[Measured]:
    """Of each name the way that was quickest in this case; of one that never answered, any."""
    names = dict.fromkeys(one.system.name for one in found)
    return [max((one for one in found if one.system.name == name), key=lambda one: median(one.rates(case) or [0.0]))
            for name in names]  # fmt: skip


def named(found: Sequence[Measured], name: str) -> Measured | None:
    return next((one for one in found if one.system.name == name), None)


def ratios(one: Measured | None, other: Measured | None, case: Case) -> list[float]:
    """Of the rates, round by round; empty where one of the two is missing."""
    if one is None or other is None:
        return []
    return [mine / its for mine, its in zip(one.rates(case), other.rates(case), strict=False)]


def table(found: Sequence[Measured], case: Case, references: Sequence[str]) -> list[str]:
    best = bests(found, case)
    head, rule = "| " + " | ".join(HEAD) + " |", "|---" + "|--:" * (len(HEAD) - 1) + "|"
    return [head, rule, *[row(one, best, case, references) for one in best]]


def row(one: Measured, best: Sequence[Measured], case: Case, references: Sequence[str]) -> str:
    rates = one.rates(case)
    if not rates:
        return f"| {one.system.name} | {one.failed} " + "| " * (len(HEAD) - 2) + "|"
    runs = one.rounds[case.name]
    texts = runs[-1].texts
    bleu = corpus_scores(texts, [[text] for text in references[: len(texts)]], samples=0)["bleu"].value
    cells = (
        f"{one.system.name} ({one.system.way})" if one.system.workers * one.system.threads > 1 else one.system.name,
        f"{median(rates):,.1f}",
        f"{1000 / median(rates):,.2f}",
        spread(ratios(one, named(best, HUGGING_FACE), case)),
        spread(ratios(one, named(best, CTRANSLATE2_INT8), case)),
        f"{bleu:.2f}",
        equal(texts, named(best, REGARD), case),
        f"{median(each.cpu / each.seconds for each in runs[1:]):.2f}",
    )
    return "| " + " | ".join(cells) + " |"


def equal(texts: Sequence[str], reference: Measured | None, case: Case) -> str:
    """The share of outputs that regard in fp32 wrote too."""
    if reference is None or not reference.rates(case):
        return "–"
    theirs = reference.rounds[case.name][-1].texts
    return f"{100 * sum(one == other for one, other in zip(texts, theirs, strict=True)) / len(texts):.1f} %"


def aims(found: Sequence[Measured], case: Case) -> list[Aim]:
    """What the project set itself, beside what was measured: the quicker of fp32 and int8 counts."""
    best = bests(found, case)
    ours = max((one for one in best if one.system.name in (REGARD, REGARD_INT8)), default=None,
               key=lambda one: median(one.rates(case) or [0.0]))  # fmt: skip
    wanted = [
        ("HF generate", HUGGING_FACE, case.hugging_face),
        ("CTranslate2 int8, at once", CTRANSLATE2_INT8, case.first),
        ("CTranslate2 int8, the goal", CTRANSLATE2_INT8, case.goal),
    ]
    made = []
    for what, name, needed in wanted:
        each = ratios(ours, named(best, name), case)
        if needed is not None:
            made.append(Aim(f"{case.name}, against {what}", needed, median(each) if each else None))
    return made


def report(found: Sequence[Measured], cases: Sequence[Case], references: Sequence[str], about: str) -> str:
    parts = []
    for case in cases:
        parts += [f"**{case.name}** (batch {case.batch})", "", *table(found, case, references), ""]
    wanted = [aim for case in cases for aim in aims(found, case)]
    versions = dict.fromkeys(f"{one.system.name} {one.facts['version']}" for one in found if one.facts)
    return "\n".join([*parts, *aims_table(wanted), "", f"{about} {', '.join(versions)}."])


# ── regard alone, for every preset ───────────────────────────────────────────────────────────────────────────────────


def preset_row(preset: str, asked: argparse.Namespace) -> str:
    """One preset, shortly trained on dates, by itself; the cases one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        builtin.write("dates", 3000, at / "dates.tsv")
        builtin.write("dates", asked.lines, at / "test.tsv", part="test")
        steps = asked.preset_steps
        words = [f"train.steps={steps}", f"train.validate_steps={steps}", "train.validate_examples=20"]
        model = regard.train(at / "dates.tsv", out=at / "model", preset=preset, settings=words)
        lines = [example.source[0] for example in read(str(at / "test.tsv")).examples]
        (at / "lines.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        scope = Scope(len(lines), min(asked.singles, len(lines)), asked.longest)
        found = measure(systems(["regard"], asked.threads), folder, at / "model", CASES, scope, asked.rounds)
    cells = [f"`{preset}`", f"{model.model.size:,}"]
    for case in CASES:
        cells.append(" / ".join(f"{median(one.rates(case)):,.1f}" if one.rates(case) else "–" for one in found))
    return "| " + " | ".join(cells) + " |"


def preset_table(asked: argparse.Namespace) -> str:
    head = [
        "| preset | parameters | " + " | ".join(case.name for case in CASES) + " |",
        "|---|--:" + "|--:" * len(CASES) + "|",
    ]
    rows = []
    for preset in asked.presets.split(","):
        rows.append(preset_row(preset, asked))
        print(rows[-1], file=sys.stderr, flush=True)
    about = (f"Sentences a second, fp32 / int8; each preset trained for {asked.preset_steps} steps on dates; "
             f"{asked.lines} lines in batches of 64, {asked.singles} one at a time; medians of {asked.rounds} rounds; "
             f"threads: {asked.threads}; {processor()}.")  # fmt: skip
    return "\n".join([*head, *rows, "", about])


# ── the model ────────────────────────────────────────────────────────────────────────────────────────────────────────


def words(asked: argparse.Namespace) -> list[str]:
    """The small model of bench.train, with a schedule that ends."""
    job = Training(str(asked.data), SIZE, asked.threads, asked.tokens, asked.seed, "auto")
    every = max(1, asked.steps // 4)
    return [*ours.words(job), *RECIPE, f"train.steps={asked.steps}", f"train.validate_steps={every}",
            f"train.checkpoint_steps={every}"]  # fmt: skip


def model_folder(asked: argparse.Namespace, folder: Path) -> tuple[Path, str]:
    """The model that was named, or a random one, or the one that is trained once and kept; and what it is."""
    if asked.model is not None:
        return asked.model, f"the model {asked.model.name}"
    tokenised.check(asked.data)
    train, valid = asked.data / "train.tsv", asked.data / "valid.tsv"
    if asked.random:
        c = config.resolve(ours.preset(SIZE), None, words(asked))
        vocabulary = learn(read(str(train)).examples, c, [False])
        model = build(c, vocabulary.source.size, vocabulary.target.size)
        Trained(c, vocabulary, model).save(folder / "random")
        return folder / "random", f"{SIZE}, random weights: BLEU means nothing"
    kept = CACHE / f"{SIZE}-{asked.steps}-{asked.tokens}-{asked.seed}"
    if not (kept / "manifest.json").is_file():
        print(f"training {SIZE} for {asked.steps} steps into {kept}", file=sys.stderr, flush=True)
        regard.train(train, valid, out=kept, preset=ours.preset(SIZE), settings=words(asked), force=True, quiet=False)
    return kept, f"{SIZE}, trained for {asked.steps} steps of {asked.tokens:,} tokens"


def test_pairs(asked: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Sources and references: of the test set, or of the validation set where there is none."""
    paths = [asked.data / f"{part}.tsv" for part in ("test2016", "test", "valid")]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        raise MissingError(f"{paths[0]}: no such file; expected sources and references as two columns\n"
                           "name the folder that holds test2016.tsv or valid.tsv with --data")  # fmt: skip
    examples = read(str(path)).examples[: asked.lines]
    return [example.source[0] for example in examples], [example.target or "" for example in examples]


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, default=tokenised.DATA, help="folder with train.tsv, valid.tsv, test2016.tsv"
    )
    parser.add_argument("--model", type=Path, help="a model folder to decode with, instead of training one")
    parser.add_argument("--random", action="store_true", help="random weights instead of training")
    parser.add_argument("--steps", type=int, default=2000, help="of training")
    parser.add_argument("--tokens", type=int, default=4096, help="most in a batch of training")
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--presets", default=",".join(name for name in PRESETS if name != "encoder"),
                        help="regard alone for each of these; none = not at all")  # fmt: skip
    parser.add_argument("--preset-steps", type=int, default=PRESET_STEPS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--singles", type=int, default=200, help="lines decoded one at a time")
    parser.add_argument("--longest", type=int, default=LONGEST, help="tokens of an output")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", default=str(PAGE), help="where the tables go; none = only to stdout")
    parser.add_argument("--work", type=Path, help="a folder to keep what the systems write, their logs above all")
    asked = parser.parse_args()
    for name in set(asked.systems.split(",")) - set(SYSTEMS):
        parser.error(f"{name!r} is not one of {', '.join(SYSTEMS)}")
    return asked


def run(asked: argparse.Namespace) -> None:
    sources, references = test_pairs(asked)
    with place(asked.work) as folder:
        model, about = model_folder(asked, Path(folder))
        (Path(folder) / "lines.txt").write_text("".join(f"{line}\n" for line in sources), encoding="utf-8")
        chosen = systems(asked.systems.split(","), asked.threads)
        export(model, Path(folder), [system.peer for system in chosen], sources)
        scope = Scope(len(sources), min(asked.singles, len(sources)), asked.longest)
        found = measure(chosen, folder, model, CASES, scope, asked.rounds)
        circumstances = (f"{about}; {asked.rounds} rounds of {scope.lines:,} lines ({scope.singles} one at a time), "
                         f"one round before them not counted; outputs of at most {scope.longest} tokens; threads: "
                         f"{asked.threads}; {processor()};")  # fmt: skip
        show(asked, "decode", report(found, CASES, references, circumstances))
    if asked.presets != "none":
        show(asked, "decode presets", preset_table(asked))


def show(asked: argparse.Namespace, name: str, text: str) -> None:
    print(f"\n{text}", flush=True)
    if asked.page != "none":
        put(Path(asked.page), name, text)


def main() -> None:
    try:
        run(options())
    except RegardError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
