"""A trained model, its held-out examples and what it made of them in, a report of the run out: values, and one page.

The values are kept in the folder as report.json, so that the page can be made again without the data; of the examples
only a few dozen are in it.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from regard.data.check import check
from regard.data.doctor.failures import Case, failures
from regard.data.evenly import evenly
from regard.data.read import Example, Table
from regard.data.tokens import UNKNOWN
from regard.errors import FolderError, RegardError
from regard.score.intervals import wilson_interval
from regard.score.metrics import ERRORS
from regard.tasks.fill import HOLE
from regard.tasks.generate import Generate
from regard.tasks.task import Answer, Evaluation, Item, runs
from regard.tasks.transduce import Transduce
from regard.trained import Trained
from regard.view.html import page
from regard.view.record import write

FORMAT = 1
BEST_AND_WORST = 12  # examples of each
RECORDS = 20  # examples that are looked into
LONGEST = 200  # source tokens of a record: a page of longer ones would be too heavy to open
BINS = 8  # of lengths and of confidences
POSITIONS = 40  # of a target that the exposure is told of
JUDGED = 500  # examples that are gone through once more for it
FILE = "report.json"

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Judged:
    """One held-out example, what was answered, and whether that is right."""

    example: Example
    item: Item
    answer: Answer
    right: bool

    @property
    def length(self) -> int:
        return len(self.item.source)

    def as_json(self) -> dict[str, Any]:
        return {"source": "\t".join(self.example.source), "target": self.example.target or "",
                "output": self.answer.text, "confidence": self.answer.confidence, "right": self.right}  # fmt: skip


def report(
    trained: Trained, found: Evaluation, examples: Sequence[Example], items: Sequence[Item],
    log: Sequence[dict[str, Any]] = (), metric: str = "", card: str = "", facts: Sequence[tuple[str, str]] = (),
    known: Sequence[Example] = (),
) -> dict[str, Any]:  # fmt: skip
    """All of it as plain values, but for the records, which are made when the page is.

    `known` are examples that were trained on; with them the doctor can say what is wrong with them, and why some fail.
    """
    judged = [Judged(example, item, trained.judged(answer), trained.task.is_right(answer.text, example.target or ""))
              for example, item, answer in zip(examples, items, found.answers, strict=False)]  # fmt: skip
    return {
        "kind": "report",
        "format": FORMAT,
        "model": trained.about,
        "made": f"regard {version('regard')}, torch {version('torch')}",
        "scores": [{"name": m.name, "value": m.value, "low": m.low, "high": m.high, "percent": m.name not in NATS,
                    "signature": m.signature} for m in found.telling],
        "facts": [[name.replace("_", " "), value] for name, value in found.facts.items()],
        "curves": {"metric": metric, "points": [entry for entry in log if "weights" not in entry]} if log else None,
        "examples": best_and_worst(judged),
        "by_length": by_length(judged),
        "exposure": exposure(trained, judged),
        "confusion": None if found.confusion is None else found.confusion.as_dict(),
        "calibration": calibration(judged),
        "data": [list(pair) for pair in (("held-out examples", f"{len(examples):,}"), *facts)],
        "failures": diagnosis(trained, judged, known),
        "check": checked(known, examples, trained.config.task),
        "card": card,
        "looked": [{"number": number, "source": question(examples[number], trained.config.task)}
                   for number in spread(judged, items)],
    }  # fmt: skip


NATS = ("loss_per_character", "bits_per_byte", "mrr")  # scores that are no percentages


# ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def best_and_worst(judged: Sequence[Judged]) -> dict[str, list[dict[str, Any]]]:
    """Right ones that were surest, the longest first; wrong ones that were surest, for there is most to learn."""
    sure_and_long: Callable[[Judged], Any] = lambda each: (-round(each.answer.confidence, 2), -each.length)  # noqa: E731
    right = sorted((each for each in judged if each.right), key=sure_and_long)
    wrong = sorted((each for each in judged if not each.right), key=lambda each: -each.answer.confidence)
    return {"best": [each.as_json() for each in right[:BEST_AND_WORST]],
            "worst": [each.as_json() for each in wrong[:BEST_AND_WORST]]}  # fmt: skip


def share(judged: Sequence[Judged]) -> dict[str, Any]:
    """How many are right, in per cent, with an interval."""
    right = sum(each.right for each in judged)
    low, high = wilson_interval(right, len(judged))
    return {"count": len(judged), "value": 100.0 * right / len(judged), "low": low, "high": high}


def groups(judged: Sequence[Thing], key: Callable[[Thing], float]) -> list[list[Thing]]:
    """Up to a few groups of about as many, in order; those with the same key are never parted."""
    order = sorted(judged, key=key)
    found: list[list[Thing]] = [[]]
    ready = 0  # that are in groups already, but for the last one
    for _, equals in groupby(order, key=key):
        block, size = list(equals), len(found[-1])
        fair = fair_size(len(order), ready, len(found) - 1)
        if size and size + len(block) - fair > fair - size:  # too many with them, by more than too few without
            ready += size
            found.append([])
        found[-1] += block
    return [group for group in found if group]


def fair_size(count: int, ready: int, made: int) -> float:
    """How many the next group should hold. Where equals make one large, there are fewer others, none the smaller."""
    parts = min(round(BINS * (count - ready) / count), BINS - made)
    return (count - ready) / max(1, parts)


def by_length(judged: Sequence[Judged]) -> dict[str, Any] | None:
    """How many are right among sources of about the same length: where a bottleneck shows."""
    made = [{"from": group[0].length, "to": group[-1].length, **share(group)}
            for group in groups(judged, lambda each: each.length)]  # fmt: skip
    return {"metric": "right", "bins": made} if len(made) > 1 else None


def calibration(judged: Sequence[Judged]) -> list[dict[str, Any]] | None:
    """How sure the answers were, and how many of them were right."""
    made = []
    for group in groups(judged, lambda each: each.answer.confidence):
        sure = [each.answer.confidence for each in group]
        made.append({"from": sure[0], "to": sure[-1], "count": len(group), "sure": 100.0 * float(np.mean(sure)),
                     "right": share(group)["value"]})  # fmt: skip
    return made or None


@torch.inference_mode()
def exposure(trained: Trained, judged: Sequence[Judged]) -> dict[str, Any] | None:
    """The next token given the true ones, beside what was written freely; how many left the true path, and came back.

    To come back is to end as the target does, from some place after the first difference on.
    """
    if not isinstance(trained.task, Transduce) or isinstance(trained.task, Generate) or not judged:
        return None
    some = judged[:JUDGED]
    forced, free, count = np.zeros(POSITIONS), np.zeros(POSITIONS), np.zeros(POSITIONS)
    for run in runs([each.item for each in some], 64):
        items = [some[i].item for i in run]
        true = [Answer("", 0.0, 0.0, item.target) for item in items]
        for i, found in zip(run, trained.task.foresee(trained.model, items, true), strict=True):
            hits = found.log_TV.argmax(-1).cpu().numpy() == np.array(found.chosen)
            same = [a == b for a, b in zip((*some[i].answer.tokens, -1), found.chosen, strict=False)]
            for place in range(min(POSITIONS, len(found.chosen) - 1)):
                forced[place] += hits[place]
                free[place] += place < len(same) and same[place]
                count[place] += 1
    left = [each for each in some if each.answer.tokens != each.item.target]
    back = sum(returned(each.answer.tokens, each.item.target) for each in left)
    known = int((count > 0).sum())
    return {
        "forced": 100.0 * forced.sum() / max(count.sum(), 1), "free": 100.0 * free.sum() / max(count.sum(), 1),
        "examples": len(some), "left": len(left) / len(some), "returned": back / len(left) if left else None,
        "by_position": [{"position": place + 1, "forced": 100.0 * forced[place] / count[place],
                         "free": 100.0 * free[place] / count[place], "count": int(count[place])}
                        for place in range(known)],
    }  # fmt: skip


def returned(written: Sequence[int], true: Sequence[int]) -> bool:
    """Whether both end alike, after they have differed."""
    return bool(written) and bool(true) and written[-1] == true[-1]


def diagnosis(trained: Trained, judged: Sequence[Judged], known: Sequence[Example]) -> dict[str, Any] | None:
    """What the wrong answers have in common."""
    cases = [Case(each.example.source, each.example.target or "", each.answer.text, each.right,
                  unknown=UNKNOWN in each.item.source) for each in judged]  # fmt: skip
    found = failures(cases, known, trained.config.task)
    return None if found is None else found.as_dict()


def checked(known: Sequence[Example], held: Sequence[Example], task: str) -> dict[str, Any] | None:
    """What the data doctor says of the training examples, and what can be had on the held-out ones without learning."""
    if not known:
        return None
    columns = tuple(str(place + 1) for place in range(len(known[0].source)))
    target = None if known[0].target is None else "target"
    here, there = (Table(path, list(each), [], columns, target) for path, each in
                   (("the training examples", known), ("the held-out examples", held)))  # fmt: skip
    found = check(here, there, task).as_dict()
    return {name: found[name] for name in ("examples", "source_lengths", "target_lengths", "ceiling", "findings",
                                           "baselines")}  # fmt: skip


def spread(judged: Sequence[Judged], items: Sequence[Item]) -> list[int]:
    """Numbers of examples to look into: half of them wrong where there are so many, short and long ones."""
    fitting = [number for number, item in enumerate(items) if len(item.source) <= LONGEST]
    right = {number for number, each in enumerate(judged) if each.right}
    wrong = [number for number in fitting if number < len(judged) and number not in right][: RECORDS // 2]
    rest = sorted(set(fitting) - set(wrong), key=lambda number: (len(items[number].source), number))
    return [*evenly(rest, RECORDS - len(wrong)), *wrong]


def question(example: Example, task: str) -> list[str]:
    """What is asked about an example: its source, in which a model that fills holes finds one."""
    if task != "fill":
        return list(example.source)
    words = example.source[0].split(" ")
    words[len(words) // 2] = HOLE
    return [" ".join(words), *example.source[1:]]


# ── the page, and the folder ─────────────────────────────────────────────────────────────────────────────────────────


def render(trained: Trained, values: dict[str, Any], items: Sequence[Item] = ()) -> str:
    """The report as one HTML file; looks into its examples anew, for pictures among the `items` it was made from.

    What took how long is left out: it is never the same.
    """
    records = []
    for each in values["looked"]:
        item = items[each["number"]] if items and trained.config.task == "caption" else None
        try:
            record = trained.look(tuple(each["source"]), item=item)
        except RegardError:  # such as a picture that is not there any more
            continue
        records.append(replace(record, seconds={}).as_json(packed=True))
    shown = {key: value for key, value in values.items() if key != "looked"}
    return page({**shown, "records": records}, f"{trained.name}: report")


def kept(folder: Path) -> dict[str, Any]:
    """The values of the report that the training left in a folder."""
    try:
        values = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FolderError(f"{folder}: has no {FILE}; regard report MODEL FILE makes a report on a file") from None
    except (OSError, ValueError) as error:
        raise FolderError(f"{folder / FILE}: can not be read: {error}") from None
    if not isinstance(values, dict) or values.get("kind") != "report" or values.get("format") != FORMAT:
        raise FolderError(f"{folder / FILE}: expected a report of format {FORMAT}")
    return values


def write_report(
    model: str, file: str | None = None, out: str | None = None, tell: Callable[[str], object] = str
) -> Path:
    """The page of a folder's own report, or of a report on a file; `tell` hears in one line what fails."""
    trained, made = Trained.load(model), Path(model) / "report.html"
    if file is None:
        tell(told_failures(Path(model)))
        if out is None and made.is_file():
            return made  # as the training left it; the manifest tells that it is whole
    place = Path(out or f"{trained.name}-report.html")
    if file is None:
        return write(place, render(trained, {**kept(Path(model)), "model": trained.about}))
    items, examples = trained.examples(file)
    values = report(trained, trained.judge(items, examples), examples, items, facts=[("file", file)])
    tell((values["failures"] or {}).get("said", ""))
    return write(place, render(trained, values, items))


def told_failures(folder: Path) -> str:
    """What fails, in one line, as the report of a folder has it; nothing where it has none."""
    try:
        values = kept(folder)
    except FolderError:
        return ""
    said = (values.get("failures") or {}).get("said", "")
    return "; ".join(filter(None, (said if isinstance(said, str) else "", unlearnt(values))))


def unlearnt(values: dict[str, Any]) -> str:
    """A word on a model that is no better than what can be had without learning."""
    own = {score["name"]: score["value"] for score in values.get("scores") or ()}
    for rule in ((values.get("check") or {}).get("baselines") or {}).get("rules", ()):
        both = [(name, value, own[name]) for name, value in rule["scores"] if name in own and name not in ERRORS]
        if both and all(value >= reached for _, value, reached in both) and any(value for _, value, _ in both):
            told = ", ".join(f"{name} {reached:.1f} against {value:.1f}" for name, value, reached in both)
            return (f"no better than without learning ({rule['name']}: {told}): more minutes, more examples or another "
                    "--preset may help")  # fmt: skip
    return ""
