"""Every task with every preset that makes sense for it: learns its built-in toy, is saved, loaded, scored, and lawful.

Bars were measured with two seeds; each stands well below the worse of the two and well above what can be had without
reading the source (the most frequent label, a random text, the frequencies of characters).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

import regard
from regard import config
from regard.data import builtin
from regard.data.builtin import requests
from regard.lab.laws import laws
from regard.tasks.task import Evaluation
from regard.training.run import Call, train

ENCODERS = ("rnn", "rnn-context", "rnn-attention", "conv", "attention-encoder", "transformer", "encoder")
READERS = (*ENCODERS, "rnn-single", "decoder")
DECODERS = ("rnn", "conv", "transformer", "decoder")


@dataclass(frozen=True)
class Toy:
    """A built-in task for a task, what is set, and the score that must be reached."""

    data: str
    presets: tuple[str, ...]
    words: tuple[str, ...]
    score: str
    bar: float
    steps: int = 120
    rate: float = 0.005
    rows: int = 600
    question: str = ""

    @property
    def ending(self) -> str:
        return ".txt" if self.data == "story" else ".tsv"


WORDS = ("tokens.source=words",)
TOYS = {
    "classify": Toy("intents", READERS, WORDS, "accuracy", 80.0, question="wake me at noon on sunday"),
    "tag": Toy("slots", READERS, (), "f1", 60.0, question="wake me at noon on sunday"),
    "embed": Toy("paraphrases", READERS, ("tokens.source=words",), "recall_at_10", 40.0,
                 question="wake me at noon"),
    "extract": Toy("values", ENCODERS, (*WORDS, "data.source=1,2", "data.target=3"), "exact", 40.0,
                   question="wake me at noon on sunday\ttime"),
    "fill": Toy("intents", ENCODERS, (*WORDS, "data.source=1"), "accuracy", 25.0, question="wake me at [mask]"),
    "generate": Toy("story", DECODERS, ("generate.block=32",), "loss_per_character", 2.4, rate=0.01, question="sven: "),
}  # fmt: skip
EVERY = [(task, preset) for task, toy in TOYS.items() for preset in toy.presets]
SMALL = {"width": 48, "embedding": 32, "feedforward": 96, "heads": 2, "layers": 1, "kernel": 3, "dropout": 0.0}


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """A file to learn from and one to be judged by, for each toy."""
    folder = tmp_path_factory.mktemp("toys")
    made = {}
    for toy in TOYS.values():
        pair = folder / f"{toy.data}{toy.ending}", folder / f"{toy.data}-valid{toy.ending}"
        for path, count, part in ((pair[0], toy.rows, "train"), (pair[1], 60, "valid")):
            write_values(path, count, part) if toy.data == "values" else builtin.write(toy.data, count, path, part=part)
        made[toy.data] = pair
    return made


def write_values(path: Path, count: int, part: str) -> None:
    """A request, one of its slots, and what stands there: to be found in the request."""
    rows = [(request.text, *request.filled[number % len(request.filled)])
            for number, request in enumerate(requests.some("values", count, 0, part))]  # fmt: skip
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def settings(task: str, preset: str) -> config.Config:
    """The preset fitted to the task, and small."""
    toy = TOYS[task]
    c = config.resolve(preset, None, [f"task={task}"])
    words = [f"{name}.{key}={value}" for name, side in (("encoder", c.encoder), ("decoder", c.decoder))
             for key, value in SMALL.items() if getattr(side, key, None) is not None
             and not (key == "heads" and getattr(side, key) == 1)]  # fmt: skip
    words += [f"train.steps={toy.steps}", f"train.learning_rate={toy.rate}", "train.warmup=10",
              f"train.validate_steps={toy.steps}", "train.tokens_per_batch=512", *toy.words]  # fmt: skip
    return config.resolve(preset, None, [f"task={task}", *words])


def value(found: Evaluation, score: str) -> float:
    return found.metrics[score].value if score in found.metrics else found.facts[score]


@pytest.mark.parametrize(("task", "preset"), EVERY, ids=[f"{task}-{preset}" for task, preset in EVERY])
def test_every_task_is_learnt_by_every_preset_that_makes_sense(
    task: str, preset: str, files: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    toy = TOYS[task]
    data, valid = map(str, files[toy.data])
    trained, found = train(settings(task, preset), data, valid, tmp_path / "model", Call(quiet=True))
    assert found is not None
    reached = value(found, toy.score)
    sign = -1 if "loss" in toy.score else 1
    assert sign * reached >= sign * toy.bar
    loaded = regard.load(tmp_path / "model")
    assert loaded.run([toy.question]) == trained.run([toy.question])
    again = loaded.score(valid)
    assert value(again, toy.score) == pytest.approx(reached, rel=1e-5)
    broken = [law.name for law in laws(loaded) if not law.holds]
    assert broken == []
