"""A model and its settings in, the weights that learn out, in groups of one learning rate and one kind of step each.

A layer further from the output may learn more slowly (Howard & Ruder 2018): what a body has learnt before lies lowest.
"""

import re
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from regard.config import Train
from regard.models.model import Model
from regard.training.muon import Muon

LAYER = re.compile(r"(encoder|decoder)\.(?:layers|cells)\.(\d+)\.")
SIDE = re.compile(r"(encoder|decoder)\.(?!position\.)")
BOTTOM = re.compile(r"(source_embedding|target_embedding|encoder\.position|decoder\.position)\.")


def optimizer_of(model: Model, t: Train, numbers: str = "fp32") -> Optimizer:
    """Over what learns; `share` of a group is its part of the learning rate, and `turned` are matrices for Muon."""
    groups = [{"params": weights, "share": t.layer_decay**distance, "turned": turned}
              for (distance, turned), weights in learning(model, t)]  # fmt: skip
    settings: dict[str, Any] = {"lr": t.learning_rate, "betas": (t.beta1, t.beta2), "weight_decay": t.weight_decay}
    if t.optimizer == "muon":
        return Muon(groups, numbers=torch.bfloat16 if numbers == "bf16" else torch.float32, **settings)
    return torch.optim.AdamW(groups, fused=True, **settings)


def learning(model: Model, t: Train) -> list[tuple[tuple[int, bool], list[nn.Parameter]]]:
    """The weights that learn, by their distance from the top and whether Muon turns them; else all in one group."""
    away = distances([name for name, _ in model.named_parameters()]) if t.layer_decay < 1.0 else {}
    groups: dict[tuple[int, bool], list[nn.Parameter]] = {}
    for name, weight in model.named_parameters():
        if weight.requires_grad:
            kind = away.get(name, 0), t.optimizer == "muon" and is_inner(name, weight)
            groups.setdefault(kind, []).append(weight)
    return sorted(groups.items(), key=lambda each: each[0])


def is_inner(name: str, weight: nn.Parameter) -> bool:
    """Whether this is a matrix inside a side, from vectors to vectors: no table of tokens or places, no output."""
    return weight.ndim == 2 and min(weight.shape) > 1 and name.endswith(".weight") and bool(SIDE.match(name))


def distances(names: list[str]) -> dict[str, int]:
    """How many layers lie above each weight: all above the embeddings, none above what is in no side, as the output.

    A decoder stands on its encoder. What belongs to no layer counts with the top one of its side.
    """
    heights = {"encoder": 0, "decoder": 0}
    for side, number in (found.groups() for found in map(LAYER.match, names) if found):
        heights[side] = max(heights[side], int(number) + 1)
    total = heights["encoder"] + heights["decoder"]

    def above(name: str) -> int:
        side, found = name.split(".")[0], LAYER.match(name)
        if BOTTOM.match(name):
            return total + 1
        if side not in heights:
            return 0
        height = int(found[2]) + 1 if found else heights[side]
        return 1 + total - height - (heights["encoder"] if side == "decoder" else 0)

    return {name: above(name) for name in names}
