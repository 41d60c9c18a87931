"""JoeyNMT: its own `train`, from its config to its optimizer, stopped only between updates.

Its batches are not sorted by length, so about half of each is padding; that is how it is, not how it is run here.
Dropout also on the attention weights of its Transformer, as it knows no other way.
"""

from pathlib import Path
from typing import Any

import joeynmt
import torch
from joeynmt import training

from bench.peers import corpus, gate
from bench.peers.gate import Gate, Job
from bench.peers.sizes import SIZES, SMOOTHING, Recurrent, Transformer

NEVER = 1_000_000


def settings(job: Job) -> dict[str, Any]:
    """What one would write into its YAML file."""
    folder = Path(job.folder)
    side = {"level": "word", "voc_file": str(folder / "vocabulary.txt"), "max_length": 1024}
    place = folder / f"joey-{job.size}"
    place.mkdir(exist_ok=True)
    return {
        "name": job.size,
        "joeynmt_version": joeynmt.__version__,
        "model_dir": str(place),
        "use_cuda": False,
        "random_seed": job.seed,
        "data": {"train": str(folder / "train"), "dev": str(folder / "valid"), "dataset_type": "plain",
                 "src": {"lang": "source", **side}, "trg": {"lang": "target", **side}},
        "model": model(job.size),
        "training": {"optimizer": "adamw", "learning_rate": 1e-3, "scheduling": "warmupinversesquareroot",
                     "clip_grad_norm": 1.0, "label_smoothing": SMOOTHING,
                     "batch_size": job.tokens, "batch_type": "token", "normalization": "tokens", "epochs": NEVER,
                     "validation_freq": NEVER, "logging_freq": 100, "learning_rate_min": 0.0},
        "testing": {"beam_size": 1},
    }  # fmt: skip


def model(name: str) -> dict[str, Any]:
    match SIZES[name]:
        case Transformer() as size:
            part: dict[str, Any] = {
                "type": "transformer", "num_layers": size.layers, "num_heads": size.heads, "hidden_size": size.width,
                "ff_size": size.feedforward, "dropout": size.dropout, "layer_norm": "pre",
                "embeddings": {"embedding_dim": size.width, "scale": True, "dropout": size.dropout}}  # fmt: skip
            return {"tied_embeddings": True, "tied_softmax": True, "encoder": dict(part), "decoder": dict(part)}
        case Recurrent() as size:
            vectors = {"embedding_dim": size.width, "scale": False, "dropout": size.dropout}
            encoder = {"type": "recurrent", "rnn_type": "gru", "hidden_size": size.width // 2, "num_layers": 1,
                       "bidirectional": True, "embeddings": vectors}  # fmt: skip
            decoder = {"type": "recurrent", "rnn_type": "gru", "hidden_size": size.width, "num_layers": 1,
                       "attention": "bahdanau" if size.additive else "luong", "input_feeding": size.feeding,
                       "init_hidden": "bridge", "hidden_dropout": size.dropout, "embeddings": vectors}  # fmt: skip
            return {"tied_embeddings": True, "tied_softmax": True, "encoder": encoder, "decoder": decoder}


def stand_in_the_way(door: Gate) -> None:
    """The gate at the beginning of each training step."""
    step = training.TrainManager._train_step

    def guarded(self: Any, batch: Any) -> Any:
        door.facts |= {"parameters": sum(weight.numel() for weight in self.model.parameters())}
        door.update(corpus.counted(batch.src, batch.trg, self.model.pad_index))
        return step(self, batch)

    training.TrainManager._train_step = guarded


def main() -> None:
    job, door = gate.begin()
    torch.set_num_threads(job.threads)
    door.facts |= {"version": joeynmt.__version__}
    stand_in_the_way(door)
    training.train(0, 0, settings(job), skip_test=True)


if __name__ == "__main__":
    main()
