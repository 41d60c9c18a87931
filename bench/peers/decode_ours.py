"""regard itself, through its public door: `Trained.run`, in the precision that was asked for."""

import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import regard
from bench.peers.decoding import Decode, Job, Order, serve
from regard.errors import UsageError
from regard.trained import Trained


def load(job: Job) -> tuple[Decode, dict[str, Any]]:
    model = trained(job)

    def decode(lines: Sequence[str], order: Order) -> list[str]:
        wish = replace(model.wish(order.beam), batch=order.batch, max_length=order.longest)
        return [answer.text for answer in model.run(lines, wish=wish)]

    return decode, {"version": regard.__version__, "parameters": model.model.size}


def trained(job: Job) -> Trained:
    """fp32 needs no word; another precision is there when `Trained.load` knows the word."""
    if job.precision == "fp32":
        return Trained.load(job.model)
    if "precision" not in inspect.signature(Trained.load).parameters:
        raise UsageError(f"regard {regard.__version__} does not decode in {job.precision} yet")
    return Trained.load(job.model, precision=job.precision)  # type: ignore[call-arg, unused-ignore]


if __name__ == "__main__":
    serve(load)
