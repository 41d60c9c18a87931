"""Items in, an endless row of batches out, each a pure function of (seed, epoch)."""

from collections.abc import Iterator

from regard.config import Train
from regard.data.batch import Batch, plan
from regard.tasks.task import Task
from regard.training.prepare import Part


def batches(task: Task, part: Part, t: Train) -> Iterator[Batch]:
    """Epoch after epoch, without end."""
    lengths = [item.length for item in part.items]
    epoch = 0
    while True:
        for numbers in plan(lengths, t.tokens_per_batch, t.seed, epoch):
            yield task.batch([part.items[i] for i in numbers], numbers, epoch)
        epoch += 1
