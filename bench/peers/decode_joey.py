"""JoeyNMT: its own model and its own search, with our weights put into them.

Its output layer has no bias and its norms another epsilon; both are set, so that the model is the same. It is handed
ids, so cutting into tokens does not count for it, and lines of similar length share a batch, which it would not do.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import joeynmt
import numpy as np
import torch
from joeynmt.model import build_model
from joeynmt.search import search
from torch import Tensor, nn

from bench.peers.corpus import padded
from bench.peers.decoding import Decode, Job, Order, by_length, serve

PAD, START, END, SEPARATOR, MASK, UNKNOWN, CLASS = range(7)  # as regard numbers them
EPSILON = 1e-5
NAMES = {
    "q_proj": "q_layer",
    "k_proj": "k_layer",
    "v_proj": "v_layer",
    "out_proj": "output_layer",
    "encoder_attn.": "src_trg_att.",
    "encoder_attn_layer_norm": "dec_layer_norm",
    "fc1": "feed_forward.pwff_layer.0",
    "fc2": "feed_forward.pwff_layer.3",
    "final_layer_norm": "feed_forward.layer_norm",
}
OWN = {"encoder": {"self_attn.": "src_src_att.", "self_attn_layer_norm": "layer_norm"},
       "decoder": {"self_attn.": "trg_trg_att.", "self_attn_layer_norm": "x_layer_norm"}}  # fmt: skip


class Ids:
    """A vocabulary that knows numbers only."""

    pad_index, bos_index, eos_index, sep_index, unk_index = PAD, START, END, SEPARATOR, UNKNOWN
    specials = (PAD, START, END, SEPARATOR)
    lang_tags = (MASK, CLASS)  # which it never writes

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def lookup(self, id: int) -> int:
        return id


def settings(told: dict[str, Any]) -> dict[str, Any]:
    """What one would write into its YAML file."""
    vectors = {"embedding_dim": told["d_model"], "scale": told["scale_embedding"]}
    sides = {side: {"type": "transformer", "num_layers": told[f"{side}_layers"],
                    "num_heads": told[f"{side}_attention_heads"], "hidden_size": told["d_model"],
                    "ff_size": told[f"{side}_ffn_dim"], "layer_norm": told["norm"],
                    "activation": told["activation_function"], "dropout": 0.0, "embeddings": vectors}
             for side in ("encoder", "decoder")}  # fmt: skip
    return {"tied_embeddings": True, "tied_softmax": True, **sides}


def renamed(name: str) -> str:
    """`model.encoder.layers.0.self_attn.q_proj.weight` as JoeyNMT calls it."""
    name = name.removeprefix("model.")
    for old, new in {**OWN.get(name.split(".")[0], {}), **NAMES}.items():
        name = name.replace(old, new)
    return name


def fill(model: nn.Module, weights: dict[str, Tensor]) -> None:
    """The weights of the Hugging Face form into its own model; every one has a place."""
    found = {renamed(name): weight for name, weight in weights.items()}
    table = found.pop("shared.weight")
    tied = ("src_embed.lut.weight", "trg_embed.lut.weight", "decoder.output_layer.weight")
    found |= dict.fromkeys(tied, table)
    for side in ("encoder", "decoder"):
        positions = found.pop(f"{side}.embed_positions.weight")[None]
        model.get_submodule(f"{side}.pe").register_buffer("pe", positions)
        found[f"{side}.pe.pe"] = positions
    output = model.get_submodule("decoder.output_layer")
    output.register_parameter("bias", nn.Parameter(found.pop("final_logits_bias")[0]))
    model.load_state_dict({**found, "decoder.output_layer.bias": output.bias})
    for part in model.modules():
        if isinstance(part, nn.LayerNorm):
            part.eps = EPSILON


def load(job: Job) -> tuple[Decode, dict[str, Any]]:
    torch.set_num_threads(job.threads)
    folder = Path(job.folder) / "joey"
    told = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    texts = json.loads((folder / "lines.json").read_text(encoding="utf-8"))
    ids = Ids(told["vocab_size"])
    model = build_model(settings(told), ids, ids)
    fill(model, {name: torch.from_numpy(value) for name, value in np.load(folder / "weights.npz").items()})
    model.eval()
    spellings = [bytes.fromhex(spelling) for spelling in texts["spellings"]]

    def text(row: Sequence[int]) -> str:
        written = row[: row.index(END)] if END in row else row
        parts = [spellings[id - texts["first"]] for id in written if id >= texts["first"]]
        return b"".join(parts).removeprefix(b" ").decode("utf-8", errors="replace")

    def decode(lines: Sequence[str], order: Order) -> list[str]:
        found: dict[int, str] = {}
        for run in by_length(lines, order.batch):
            source_BS = padded([texts["sources"][lines[number]] for number in run], PAD)
            mask = (source_BS != PAD)[:, None]
            batch = SimpleNamespace(src=source_BS, src_length=mask.sum(-1)[:, 0], src_mask=mask, has_trg=False)
            rows, _, _ = search(model, batch, order.longest, order.beam, 1.0, min_output_length=0)
            found.update(zip(run, map(text, rows.tolist()), strict=True))
        return [found[number] for number in range(len(lines))]

    return decode, {"version": joeynmt.__version__}


if __name__ == "__main__":
    serve(load)
