"""Nothing in, a lesson out: ten small models trained alike, scored and measured, in a folder with lesson.json.

Text systems learn the same dates, in the same number of steps, from the same seed; the last system needs pictures, and
those joined by one vector learn to reverse letters besides.
"""

import json
import sys
import time
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from regard import config
from regard.data import builtin
from regard.folder import write_file
from regard.lab.lesson import kept
from regard.lab.lesson.curves import ALL, Taught
from regard.lab.lesson.pages import EXAMPLE, PAGES, Page
from regard.tasks.task import Evaluation
from regard.trained import Trained
from regard.training.run import Call, train
from regard.view.html import page as as_html

TRAIN, TEST = 10_000, 1_000
REVERSING = ("rnn", "rnn-context")
BUDGET = ("train.steps=1000", "train.tokens_per_batch=2048", "train.learning_rate=0.005", "train.validate_steps=500",
          "train.validate_examples=100", "train.threads=1", "train.precision=fp32")  # fmt: skip


def make(folder: Path, words: Sequence[str] = ()) -> dict[str, Any]:
    """Leaves a model for each page, lesson.json and lesson.html in `folder`; gives what is in lesson.json."""
    with TemporaryDirectory() as place:
        data = Path(place)
        taught = Taught({}, {}, data / "dates-test.tsv", data / "reverse-test.tsv")
        scores = {}
        for number, page in enumerate(PAGES, 1):
            trained, found = teach(page, page.data, data, words)
            trained.save(folder / page.name)
            taught.models[page.name] = Trained.load(folder / page.name)
            scores[page.name] = scored(found)
            first = scores[page.name][0]
            say(f"{number:2} of {len(PAGES)} · {page.name} · {trained.model.size:,} parameters · {first['name']} "
                f"{first['value']:.1f} % ({first['low']:.1f} – {first['high']:.1f})")  # fmt: skip
        for page in PAGES:
            if page.name in REVERSING:
                taught.reversing[page.name], _ = teach(page, "reverse", data, words)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # who fills holes reads one column of two, as it should
            return written(folder, lesson(taught, scores, words))


def teach(page: Page, task: str, data: Path, words: Sequence[str]) -> tuple[Trained, Evaluation]:
    """A small model of a page's preset, trained on a built-in task, and its scores on examples it never saw."""
    began, test = time.monotonic(), data / f"{task}-test.tsv"
    if not test.exists():
        builtin.write(task, TRAIN, data / f"{task}.tsv")
        builtin.write(task, TEST, test, part="test")
    c = config.resolve(page.name, None, [*BUDGET, *page.settings, *words])
    trained, _ = train(c, str(data / f"{task}.tsv"), call=Call(quiet=True, command=ALL))
    say(f"{page.name} has learnt {task} in {time.monotonic() - began:.0f} s")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # captions have a header, which is no surprise
        return trained, trained.score(test)


def scored(found: Evaluation) -> list[dict[str, Any]]:
    """The score that decides, and what is known of single tokens."""
    first = next(iter(found.metrics.values()))
    made = [{"name": first.name, "value": first.value, "low": first.low, "high": first.high}]
    facts = ("token_accuracy_forced", "token_accuracy_free")
    return made + [{"name": name, "value": found.facts[name]} for name in facts if name in found.facts]


def lesson(taught: Taught, scores: dict[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """All that a page shows but for what its model makes of the example."""
    pages = []
    for page in PAGES:
        model = taught.models[page.name]
        pages.append({
            "name": page.name, "title": page.title, "sentences": list(page.sentences), "example": page.example,
            "diagram": diagram(model.config), "curve": page.curve(taught), "data": page.data,
            "parameters": model.model.size, "scores": scores[page.name],
        })  # fmt: skip
        say(f"measured: {pages[-1]['curve']['title']}")
    command = " ".join([ALL, *(f"--set {word}" for word in words)])
    made = f"regard {version('regard')}, torch {version('torch')}"
    return {"kind": "lesson", "example": EXAMPLE, "command": command, "made": made, "examples": [TRAIN, TEST],
            "settings": list(BUDGET), "pages": pages}  # fmt: skip


def written(folder: Path, made: dict[str, Any]) -> dict[str, Any]:
    """As values, and as one page with the records in it."""
    write_file(folder / kept.FILE, (json.dumps(made, ensure_ascii=False, indent=1) + "\n").encode())
    pages = [{**page, "record": kept.record(Trained.load(folder / page["name"]), page)} for page in made["pages"]]
    write_file(folder / "lesson.html", as_html({**made, "pages": pages}, "regard: the lesson").encode())
    return made


# ── what a diagram is drawn from ─────────────────────────────────────────────────────────────────────────────────────

KINDS = {"recurrent": "recurrent", "convolutional": "convolution", "attention": "attention", "image": "image",
         "none": "none"}  # fmt: skip


def diagram(c: config.Config) -> dict[str, Any]:
    """The system in the words of its config."""
    fixed = isinstance(c.decoder, config.RecurrentDecoder) and c.decoder.context == "fixed"
    looking = looks(c)
    return {
        "encoder": KINDS[c.encoder.kind],
        "decoder": KINDS[c.decoder.kind] + (", the context at every step" if fixed else ""),
        "bidirectional": isinstance(c.encoder, config.RecurrentEncoder) and c.encoder.directions == "both",
        "attention": "none" if looking is None else looking.score,
        "layers": [getattr(side, "layers", 0) for side in (c.encoder, c.decoder)],
        "heads": 1 if looking is None else looking.heads,
        "bottleneck": isinstance(c.decoder, config.RecurrentDecoder) and not c.decoder.attends,
    }


def looks(c: config.Config) -> config.Lookup | None:
    """The attention that writes, or where nothing writes the one that reads."""
    if isinstance(c.decoder, config.RecurrentDecoder) and not c.decoder.attends:
        return None
    side = c.encoder if isinstance(c.decoder, config.Nothing) else c.decoder
    return side if isinstance(side, config.Lookup) else None


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
