"""The gradient of an update, whole and in pieces: memory that does not suffice changes neither sum nor count."""

from pathlib import Path

import pytest
import torch

from regard import config
from regard.data.batch import Batch
from regard.errors import RegardError
from regard.models.build import build
from regard.models.model import Model
from regard.tasks.task import Loss
from regard.tasks.transduce import Transduce
from regard.training.prepare import Prepared, prepare
from regard.training.run import Call, train
from regard.training.stream import updates
from regard.training.team import Team
from regard.training.update import Learner, parts

pytestmark = pytest.mark.no_shapes

CPU = "[enforce fail at alloc_cpu.cpp:113] data. DefaultCPUAllocator: can't allocate memory: you tried to allocate 9."
ERRORS = [MemoryError(), torch.OutOfMemoryError("CUDA out of memory."), RuntimeError(CPU)]
WORDS = ["encoder.width=16", "decoder.width=16", "train.steps=4", "train.warmup=1", "train.tokens_per_batch=64",
         "train.accumulate=2", "train.validate_examples=5"]  # fmt: skip


@pytest.fixture
def data(copy_file: Path, tmp_path: Path) -> Prepared:
    return prepare(config.resolve("rnn-attention", None, WORDS), str(copy_file), None, tmp_path / "tokens")


def short_of_memory(monkeypatch: pytest.MonkeyPatch, rows: int, error: BaseException) -> list[int]:
    """A machine on which a batch of more than so many rows does not fit; the list tells the rows of each attempt."""
    sound, tried = Transduce.loss, []

    def loss(self: Transduce, model: Model, batch: Batch, forcing: float, seed: int) -> Loss:
        tried.append(len(batch.label_BT))
        if len(batch.label_BT) > rows:
            raise error
        return sound(self, model, batch, forcing, seed)

    monkeypatch.setattr(Transduce, "loss", loss)
    return tried


class Gradient:
    """Of the first update, in fp64, so that only a difference in kind can be seen."""

    def __init__(self, data: Prepared) -> None:
        self.model = build(data.config, data.vocabulary.source.size, data.vocabulary.target.size).double()
        learner = Learner(data.task, self.model, data.config.train, Team(), torch.device("cpu"), "fp32")
        batches, _ = next(updates(data.task, data.train, data.config.train))
        self.sums = learner.gradients(1, batches)
        self.gradients = {name: w.grad.clone() for name, w in self.model.named_parameters() if w.grad is not None}


@pytest.mark.parametrize("error", ERRORS, ids=["python", "gpu", "cpu"])
@pytest.mark.parametrize("rows", [7, 3, 1])
def test_an_update_in_pieces_is_the_same_update(
    data: Prepared, monkeypatch: pytest.MonkeyPatch, rows: int, error: BaseException
) -> None:
    whole = Gradient(data)
    tried = short_of_memory(monkeypatch, rows, error)
    with pytest.warns(UserWarning, match=r"out of memory.* lower train\.tokens_per_batch") as said:
        pieces = Gradient(data)
    assert len(said) == 1
    assert max(tried) > rows
    assert pieces.sums.count == whole.sums.count
    assert pieces.sums.total == pytest.approx(whole.sums.total, rel=1e-12)
    assert pieces.gradients.keys() == whole.gradients.keys()
    for name, gradient in whole.gradients.items():
        torch.testing.assert_close(pieces.gradients[name], gradient, rtol=0.0, atol=1e-10)


@pytest.mark.filterwarnings("ignore:.*out of memory")
def test_one_row_that_does_not_fit_ends_with_what_to_change(data: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    short_of_memory(monkeypatch, 0, MemoryError())
    with pytest.raises(
        RegardError, match=r"out of memory with one row; lower train\.tokens_per_batch, data\.max_source"
    ):
        Gradient(data)


def test_other_errors_are_not_taken_for_it(data: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = short_of_memory(monkeypatch, 0, RuntimeError("shapes do not fit"))
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        Gradient(data)
    assert len(tried) == 1


def test_a_run_goes_on_and_says_it_once(copy_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = short_of_memory(monkeypatch, 3, ERRORS[2])
    with pytest.warns(UserWarning, match="out of memory") as said:
        train(config.resolve("rnn-attention", None, WORDS), str(copy_file), None, tmp_path / "m", Call(quiet=True))
    assert len(said) == 1
    assert max(tried) > 3
    assert (tmp_path / "m" / "model.safetensors").is_file()


@pytest.mark.parametrize(("pieces", "sizes"), [(1, [7]), (2, [4, 3]), (4, [2, 2, 2, 1]), (8, [1] * 7), (100, [1] * 7)])
def test_parts_are_all_rows_in_order(pieces: int, sizes: list[int]) -> None:
    ids = torch.arange(14).reshape(7, 2)
    whole = Batch(ids, ids > 3, ids, ids, tuple(range(7)))
    found = list(parts(whole, pieces))
    assert [len(part.label_BT) for part in found] == sizes
    for name in ("source", "source_mask_BS", "target_BT", "label_BT"):
        assert torch.equal(torch.cat([getattr(part, name) for part in found]), getattr(whole, name))
    assert sum((part.index for part in found), ()) == whole.index
