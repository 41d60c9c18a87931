"""Every preset, made small, learns its built-in task within seconds: trained on a file, scored on what it never saw.

The settings were measured with two seeds on one core; each bar stands well below the worse of the two.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import torch

from regard import config
from regard.data.builtin import generate, sequences, write
from regard.models.build import build
from regard.tasks.task import Evaluation, Wish
from regard.trained import Trained
from regard.training.prepare import prepare
from regard.training.run import train

LETTERS = "abcdefgh"
BATCH = ["train.warmup=20", "train.tokens_per_batch=400", "train.validate_steps=10000", "train.checkpoint_steps=10000"]
STILL = ["encoder.dropout=0.0", "decoder.dropout=0.0"]
WIDE = ["encoder.width=64", "decoder.width=64"]
BLOCK = ["encoder.layers=1", "encoder.feedforward=128"]


@dataclass(frozen=True)
class Course:
    """A preset made small, how fast it learns, and the share of held-out answers it must get right."""

    preset: str
    steps: int
    rate: float
    bar: float
    words: list[str]

    def __str__(self) -> str:
        return self.preset

    def config(self) -> config.Config:
        return config.resolve(
            self.preset, None, [*BATCH, *self.words, f"train.steps={self.steps}", f"train.learning_rate={self.rate}"]
        )


SINGLE = ["decoder.width=128", "decoder.embedding=32"]
SUMMARY = ["encoder.width=96", "encoder.embedding=32", "decoder.width=96", "decoder.embedding=32"]
REVERSE = [
    Course("rnn-single", 400, 0.008, 60.0, SINGLE),
    Course("rnn", 300, 0.008, 80.0, SUMMARY),
    Course("rnn-context", 300, 0.008, 80.0, SUMMARY),
    Course("rnn-attention", 450, 0.006, 60.0, WIDE),
    Course("conv", 250, 0.004, 80.0, [*WIDE, *STILL, "encoder.layers=2", "decoder.layers=2", "encoder.kernel=3",
                                      "decoder.kernel=3"]),
    Course("attention-encoder", 400, 0.004, 80.0, [*WIDE, *BLOCK, *STILL]),
    Course("transformer", 250, 0.005, 80.0, [*WIDE, *BLOCK, *STILL, "decoder.layers=1", "decoder.feedforward=128"]),
    Course("decoder", 300, 0.005, 70.0, ["decoder.width=64", "decoder.layers=2", "decoder.feedforward=128",
                                         "decoder.dropout=0.0"]),
]  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Small models gain nothing from a second core, and the numbers stay those that were measured."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def short_words() -> tuple[str, ...]:
    """Different words of two to four letters, in no order."""
    draw = random.Random(0)
    found: dict[str, None] = {}
    while len(found) < 3900:
        found["".join(draw.choices(LETTERS, k=draw.randint(2, 4)))] = None
    return tuple(found)


@pytest.fixture
def reversal(tmp_path: Path) -> tuple[str, str]:
    """A file to learn from and one with other words to be judged by."""
    answer = sequences.RULES["reverse"][1]
    parts = {"train.tsv": short_words()[:3750], "valid.tsv": short_words()[3750:]}
    for name, sources in parts.items():
        text = "".join(f"{source}\t{answer(source)}\n" for source in sources)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return str(tmp_path / "train.tsv"), str(tmp_path / "valid.tsv")


def untrained(c: config.Config, path: str, valid: str) -> Evaluation:
    """The scores of the same model before its first step."""
    data = prepare(c, path, valid)
    model = build(c, data.vocabulary.source.size, data.vocabulary.target.size).eval()
    fresh = Trained(c, data.vocabulary, model)
    return fresh.task.evaluate(fresh.model, data.valid.items, data.valid.examples, Wish(), intervals=False)


@pytest.mark.parametrize("course", REVERSE, ids=str)
def test_text_presets_learn_to_reverse(course: Course, reversal: tuple[str, str]) -> None:
    c = course.config()
    trained, found = train(c, *reversal, quiet=True)
    exact = found.metrics["exact"].value
    assert exact >= course.bar
    before = untrained(c, *reversal)
    assert before.metrics["exact"].value < 5.0
    assert found.facts["loss"] < before.facts["loss"] / 4
    words = [word for word in short_words()[3750:] if len(word) == 2]
    assert sum(trained(word) == word[::-1] for word in words) > len(words) / 2
