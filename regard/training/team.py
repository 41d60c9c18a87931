"""Numbers of this process in, numbers that all processes of a run agree on out; alone, they are the same.

`torchrun --nproc-per-node 2 -m regard train …` starts the processes and tells each its rank; torch carries the
messages. All that differs between ranks is in here and in `Share`: the loop is the same for one process and for many.
"""

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from traceback import clear_frames
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from regard.errors import RegardError, UsageError
from regard.models.model import Model
from regard.training.stream import Share

PATIENCE = timedelta(days=1)  # the others wait while the first reads the data or decodes; a dead peer is seen at once
LOST = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "NCCL", "Socket Timeout")


@dataclass(frozen=True)
class Team:
    """The processes that train one model together; the first of them writes, logs and validates."""

    share: Share = field(default_factory=Share)
    local: int = 0  # the rank among the processes of this machine

    @property
    def first(self) -> bool:
        return self.share.rank == 0

    @property
    def many(self) -> bool:
        return self.share.world > 1

    def sum(self, numbers: Sequence[float]) -> list[float]:
        """Each number summed over all processes, in one message."""
        if not self.many:
            return list(numbers)
        table = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(table)
        found: list[float] = table.tolist()
        return found

    def told(self, value: Any) -> Any:
        """What the first process says; what the others would have said does not count."""
        if not self.many:
            return value
        said = [float(value)] if self.first else [0.0]
        table = torch.tensor(said, dtype=torch.float64)
        dist.broadcast(table, 0)
        return type(value)(table.item())

    def wait(self) -> None:
        """Until all processes have come here."""
        self.sum([0.0])

    def give(self, model: Model) -> None:
        """The first one's weights to all."""
        if self.many:
            for weight in model.parameters():
                dist.broadcast(weight.detach(), 0)

    def joined(self, module: nn.Module) -> nn.Module:
        """The module, its gradients averaged over all processes as the backward pass makes them."""
        if not self.many:
            return module
        return DistributedDataParallel(module, forward_sync_buffers=False)


def apart(module: nn.Module, last: bool) -> AbstractContextManager[None]:
    """Around a backward pass: gradients stay with their process unless it is the update's last."""
    if isinstance(module, DistributedDataParallel) and not last:
        return module.no_sync()
    return nullcontext()


@contextmanager
def gathered() -> Iterator[Team]:
    """The team that a launcher has started; alone without one."""
    world = processes()
    if world < 2 or "MASTER_ADDR" not in os.environ:
        yield Team()
        return
    meet()
    try:
        yield Team(Share(dist.get_rank(), world), int(os.environ.get("LOCAL_RANK", "0")))
    except RuntimeError as error:
        if not any(sign in str(error) for sign in LOST):
            raise
        raise RegardError("another process of this run is gone, so this one ends too; what was saved is kept") from None
    finally:
        let_go(sys.exception())
        dist.destroy_process_group()


def let_go(error: BaseException | None) -> None:
    """Frees what the frames of an error hold: a learner that outlives its group may wait for ever for a thread of it,
    which waits for the interpreter.
    """
    while error is not None:
        clear_frames(error.__traceback__)
        error = error.__context__
    gc.collect()


def meet() -> None:
    """Connects the processes. The launcher's store outlives them and still has the addresses of those that died (seen
    in torch 2.13), so each attempt uses names of its own.
    """
    store, rank, world = next(rendezvous("env://", timeout=PATIENCE))
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    own = PrefixStore(f"attempt-{attempt()}", store)
    dist.init_process_group(backend, store=own, rank=rank, world_size=world, timeout=PATIENCE)


def processes() -> int:
    """How many a launcher has started; one without one."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def refuse_many(what: str) -> None:
    """What has runs of its own to start can not be one of several processes itself."""
    if processes() > 1:
        raise UsageError(f"{what} trains one run after the other, each in one process; start it without torchrun")


def attempt() -> int:
    """How often a launcher has started this team anew because one of it died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
