"""A model folder in, the same model as each peer wants to read it out: `hf/`, `ctranslate2/`, `joey/`.

JoeyNMT has no form that weights could be ported to from outside its own training, and its environment reads neither
safetensors nor tokenizer files: it is given the weights of the Hugging Face form as arrays, the lines as ids, and the
bytes of each token.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from regard.errors import UsageError
from regard.port import hf
from regard.port.out import out
from regard.trained import Trained

READERS = {"hf": ("transformers", "ctranslate2"), "ctranslate2": ("ctranslate2",), "joey": ("joeynmt",)}


def export(model: Path, folder: Path, peers: Sequence[str | None], lines: Sequence[str]) -> None:
    """What these peers read, into `folder`; who finds nothing there has a row that fails."""
    for form, readers in READERS.items():
        if not set(readers) & set(peers) or (folder / form).exists():
            continue
        try:
            write_joey(model, folder / form, lines) if form == "joey" else out(form, model, folder / form)
        except UsageError as error:
            print(f"{form}: {error}", file=sys.stderr, flush=True)


def write_joey(model: Path, folder: Path, lines: Sequence[str]) -> None:
    """weights.npz, settings.json, and lines.json with all that texts are made of."""
    trained = Trained.load(model)
    halves = hf.stacks(trained.config, hf.HF)
    if not hf.one_table(trained) or not trained.vocabulary.shared:
        raise UsageError("JoeyNMT is given only models with one table for source, target and output")
    folder.mkdir()
    weights = {name: tensor.numpy() for name, tensor in hf.weights(trained, halves).items()}
    np.savez(folder / "weights.npz", **weights)
    told = {**hf.settings(trained, halves), "norm": "pre" if halves.encoder.norm_first else "post"}
    (folder / "settings.json").write_text(json.dumps(told), encoding="utf-8")
    pieces = trained.vocabulary.target.pieces
    texts = {"sources": {line: trained.item(line).source for line in lines},
             "first": pieces.first, "spellings": [spelling.hex() for spelling in pieces.spellings]}  # fmt: skip
    (folder / "lines.json").write_text(json.dumps(texts), encoding="utf-8")
