"""The batches of one update in, the gradient of their summed loss out, in pieces where memory does not suffice."""

import gc
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.config import Train
from regard.data.batch import Batch, mix
from regard.errors import RegardError
from regard.models.model import Model
from regard.tasks.task import Task
from regard.training.device import autocast
from regard.training.schedule import forcing
from regard.training.team import Team, apart


class Asked(nn.Module):
    """A task's loss of a model as one module, so that DDP has one thing to wrap."""

    def __init__(self, task: Task, model: Model) -> None:
        super().__init__()
        self.task = task
        self.model = model

    def forward(self, batch: Batch, forced: float, seed: int) -> tuple[Tensor, int]:
        loss = self.task.loss(self.model, batch, forced, seed)
        return loss.total, loss.count


@dataclass(frozen=True)
class Sums:
    """Of one update on one process: the loss is divided by the count only when all are summed."""

    total: float
    count: int


class Learner:
    """Leaves in a model's weights the gradient of an update's summed loss."""

    def __init__(self, task: Task, model: Model, t: Train, team: Team, where: torch.device, numbers: str) -> None:
        self.asked = team.joined(Asked(task, model))
        self.model = model
        self.settings = t
        self.team = team
        self.where = where
        self.numbers = numbers
        self.told = False
        self.shared = False  # gradients of this update are on their way to the other processes

    def gradients(self, step: int, batches: Sequence[Batch], last: int | None = None) -> Sums:
        """Every batch whole; if memory runs out, all of them again in halves, in quarters, down to single rows.

        Sum and count are the same either way, so the update weighs every token as before; dropout draws other masks.
        """
        pieces = 1
        while (found := self.attempt(step, batches, pieces, last)) is None:
            if pieces >= max(len(batch.label_BT) for batch in batches):
                raise RegardError(f"step {step}: out of memory with one row; lower train.tokens_per_batch, "
                                  "data.max_source or data.max_target, or the size of the model")  # fmt: skip
            pieces *= 2
            if not self.told:
                warnings.warn(f"step {step}: out of memory, so its batches are computed in pieces and the run goes on; "
                              "a lower train.tokens_per_batch would be faster", stacklevel=2)  # fmt: skip
            self.told = True
        return found

    def attempt(self, step: int, batches: Sequence[Batch], pieces: int, last: int | None) -> Sums | None:
        """None where memory did not suffice; then it is free again when this has returned."""
        try:
            return self.through(step, [part for batch in batches for part in parts(batch, pieces)], last)
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            if self.shared:  # the others already have a part of it, so it can not be taken back
                raise RegardError(f"step {step}: out of memory while gradients went to the other processes; "
                                  "lower train.tokens_per_batch and start anew") from None  # fmt: skip
        self.model.zero_grad(set_to_none=True)
        gc.collect()
        if self.where.type == "cuda":
            torch.cuda.empty_cache()
        return None

    def through(self, step: int, batches: Sequence[Batch], last: int | None) -> Sums:
        t, rank = self.settings, self.team.share.rank
        share = forcing(t, step, last)
        torch.manual_seed(mix(t.seed, "dropout", step, rank))
        total, count = 0.0, 0
        for number, batch in enumerate(batches):
            ends = number + 1 == len(batches)
            with apart(self.asked, ends):
                with autocast(self.numbers, self.where):
                    seed = mix(t.seed, "forcing", step, number, rank)
                    loss, tokens = self.asked(batch.to(self.where), share, seed)
                self.shared = self.team.many and ends
                torch.autograd.backward(loss)
                self.shared = False
            total += float(loss.detach())
            count += tokens
        return Sums(total, count)


def parts(batch: Batch, pieces: int) -> Iterator[Batch]:
    """The rows of a batch in at most so many pieces."""
    rows = len(batch.label_BT)
    size = -(-rows // pieces)
    for start in range(0, rows, size):
        yield batch if size >= rows else batch.part(start, min(start + size, rows))


def out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)
