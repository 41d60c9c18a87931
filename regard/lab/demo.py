"""Nothing in, the whole story out: dates are made; a model is trained, scored on dates it never saw, looked into."""

import sys
import time
from pathlib import Path

from regard import config
from regard.data import builtin
from regard.errors import UsageError
from regard.training.run import Call, train
from regard.view import terminal

TRAIN, TEST = 10_000, 1_000
EXAMPLE = "Saturday 9th of May, 2018"
BUDGET = ["train.steps=700", "train.tokens_per_batch=1024", "train.validate_steps=350", "train.checkpoint_steps=350"]


def demo(folder: Path, preset: str, words: list[str]) -> float:
    """Leaves data, model and picture in `folder`; gives the exact match on held-out dates, in per cent."""
    c = config.resolve(preset, None, [*BUDGET, *words])
    if c.task != "transduce":
        raise UsageError(f"--preset {preset}: the demo turns dates into dates; {preset} is for the task {c.task}")
    started = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    data, test = folder / "dates.tsv", folder / "dates-test.tsv"
    builtin.write("dates", TRAIN, data)
    builtin.write("dates", TEST, test, part="test")
    say(f"{TRAIN} English dates in {data}, {TEST} others in {test}; no source is in both.")
    say("Training, scoring and looking take about a minute on two cores.\n")
    call = Call(force=True, command=f"regard demo --preset {preset}")
    trained, _ = train(c, str(data), None, folder / "model", call)
    exact = trained.score(test).metrics["exact"]
    record = trained.look(EXAMPLE)
    print(f"\nexact match on {TEST} held-out dates: {exact.value:.2f} % ({exact.low:.2f} – {exact.high:.2f})")
    print(f"\n{EXAMPLE}  →  {record.output}\n\n{terminal.alignment(record)}\n")
    record.save(folder / "look.html")
    files = "model/ (README.md is its card, report.html tells how it went), look.html"
    if record.alignment() is not None:
        record.save(folder / "alignment.svg")
        record.save(folder / "alignment.png")
        files += ", alignment.svg, alignment.png"
    print(f"{time.monotonic() - started:.0f} seconds. In {folder}/: {files}")
    print(f"Next: echo '31 December 1999' | {terminal.command()} run {folder}/model")
    print(f"      {terminal.command()} serve {folder}/model")
    return exact.value


def say(line: str) -> None:
    print(line, file=sys.stderr)
