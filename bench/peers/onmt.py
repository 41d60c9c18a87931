"""eole, which OpenNMT-py became: its own single-process training, from its config to its optimizer.

Turned to its advantage where a user could: attention entropy is not logged, one bucket holds one epoch, batches are
made in the process itself (its loading processes would take one of two cores). It sorts by length, and puts the layer
norm before each part.
"""

from pathlib import Path
from typing import Any

import eole
import torch
from eole import train_single
from eole.config.run import TrainConfig
from eole.trainer import Trainer

from bench.peers import corpus, gate
from bench.peers.gate import Gate, Job
from bench.peers.sizes import SIZES, SMOOTHING, Transformer

NEVER = 1_000_000


def settings(job: Job, examples: int) -> dict[str, Any]:
    """What one would write into its YAML file."""
    folder = Path(job.folder)
    size = SIZES[job.size]
    assert isinstance(size, Transformer)
    parts = {"layers": size.layers, "heads": size.heads, "transformer_ff": size.feedforward, "add_qkvbias": True,
             "add_ffnbias": True}  # fmt: skip
    return {
        "seed": job.seed,
        "src_vocab": str(folder / "vocabulary.txt"),
        "share_vocab": True,
        "data": {"train": {"path_src": str(folder / "train.source"), "path_tgt": str(folder / "train.target")}},
        "transforms": [],
        "report_every": 100,
        "training": {
            "model_path": str(folder / f"eole-{job.size}"), "world_size": 1, "gpu_ranks": [], "num_workers": 0,
            "bucket_size": examples, "batch_type": "tokens", "batch_size": job.tokens, "accum_count": [1],
            "normalization": "tokens", "optim": "adamw", "learning_rate": 1e-3, "decay_method": "none",
            "max_grad_norm": 1.0, "dropout": [size.dropout], "attention_dropout": [0.0], "dropout_steps": [0],
            "label_smoothing": SMOOTHING, "param_init_method": "xavier_uniform", "train_steps": NEVER,
            "save_checkpoint_steps": NEVER, "valid_steps": NEVER, "log_attention_entropy": False,
        },
        "model": {
            "architecture": "transformer", "hidden_size": size.width, "share_embeddings": True,
            "share_decoder_embeddings": True, **parts,
            "embeddings": {"word_vec_size": size.width, "position_encoding_type": "SinusoidalInterleaved"},
        },
    }  # fmt: skip


def stand_in_the_way(door: Gate) -> None:
    """The gate at the beginning of each training step."""
    step = Trainer._train_step

    def guarded(self: Any, batches: Any, *rest: Any, **named: Any) -> Any:
        batch = batches[0]
        door.facts |= {"parameters": sum(weight.numel() for weight in self.model.parameters())}
        door.update(corpus.counted(batch["src"], batch["tgt"][:, 1:], self.train_loss.padding_idx))
        return step(self, batches, *rest, **named)

    Trainer._train_step = guarded


def main() -> None:
    job, door = gate.begin()
    torch.set_num_threads(job.threads)
    door.facts |= {"version": eole.__version__}
    stand_in_the_way(door)
    examples = len(corpus.load(job.folder).pairs)
    train_single.main(TrainConfig(**settings(job, examples)), device_id=-1)


if __name__ == "__main__":
    main()
