"""regard itself, through its public door: `regard.train`, as a user calls it, stopped only between updates."""

from typing import Any

import torch

import regard
from bench.peers import corpus, gate
from bench.peers.gate import Gate, Job
from bench.peers.sizes import PIECES, SIZES, SMOOTHING, Recurrent, Transformer
from regard.data.tokens import PAD
from regard.tasks.transduce import Transduce

NEVER = 1_000_000
TOKENS = ("tokens.source=bpe", "tokens.target=bpe", f"tokens.size={PIECES}", "tokens.shared=true")
TIED = ("embedding.tie_source=true", "embedding.tie_output=true")


def words(job: Job) -> list[str]:
    """The settings, as on the command line."""
    run = (f"train.seed={job.seed}", f"train.threads={job.threads}", f"train.precision={job.precision}",
           f"train.tokens_per_batch={job.tokens}", f"train.label_smoothing={SMOOTHING}", f"train.steps={NEVER}",
           f"train.validate_steps={NEVER}", f"train.checkpoint_steps={NEVER}")  # fmt: skip
    return [*model(job.size), *TOKENS, *TIED, *run]


def model(name: str) -> list[str]:
    match SIZES[name]:
        case Transformer() as size:
            part = (f"layers={size.layers}", f"width={size.width}", f"heads={size.heads}",
                    f"feedforward={size.feedforward}", f"dropout={size.dropout}")  # fmt: skip
            both = [f"{side}.{word}" for side in ("encoder", "decoder") for word in part]
            return [*both, f"embedding.dropout={size.dropout}"]
        case Recurrent() as size:
            return [f"encoder.width={size.width}", f"decoder.width={size.width}", "decoder.bridge=last",
                    f"decoder.context={'feed' if size.feeding else 'output'}", "decoder.projections=false",
                    f"decoder.score={'additive' if size.additive else 'bilinear'}", "embedding.scale=false",
                    f"decoder.dropout={size.dropout}", f"embedding.dropout={size.dropout}"]  # fmt: skip


def preset(name: str) -> str:
    return "transformer" if isinstance(SIZES[name], Transformer) else "rnn-attention"


def stand_in_the_way(door: Gate) -> None:
    """The gate at the beginning of each training step: all that is known here of regard's inside."""
    loss = Transduce.loss

    def guarded(self: Transduce, model: Any, batch: Any, *rest: Any) -> Any:
        computed = "bf16" if torch.is_autocast_enabled("cpu") else "fp32"
        door.facts |= {"precision": computed, "parameters": model.size}
        door.update(corpus.counted(batch.source, batch.label_BT, PAD))
        return loss(self, model, batch, *rest)

    setattr(Transduce, "loss", guarded)  # noqa: B010 (a checker would not let a method be put in the place of another)


def main() -> None:
    job, door = gate.begin()
    door.facts |= {"version": regard.__version__}
    stand_in_the_way(door)
    regard.train(f"{job.folder}/train.tsv", f"{job.folder}/valid.tsv", preset=preset(job.size), settings=words(job))


if __name__ == "__main__":
    main()
