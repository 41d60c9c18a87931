"""A model and its settings in, the weights that learn out, in groups of one learning rate each.

A layer further from the output may learn more slowly (Howard & Ruder 2018): what a body has learnt before lies lowest.
"""

import re

import torch
from torch import nn
from torch.optim import Optimizer

from regard.config import Train
from regard.models.model import Model

LAYER = re.compile(r"(encoder|decoder)\.(?:layers|cells)\.(\d+)\.")
BOTTOM = re.compile(r"(source_embedding|target_embedding|encoder\.position|decoder\.position)\.")


def optimizer_of(model: Model, t: Train) -> Optimizer:
    """AdamW over what learns; `share` of a group is its part of the learning rate."""
    groups = [
        {"params": weights, "share": t.layer_decay**distance} for distance, weights in learning(model, t.layer_decay)
    ]
    return torch.optim.AdamW(
        groups, lr=t.learning_rate, betas=(t.beta1, t.beta2), weight_decay=t.weight_decay, fused=True
    )


def learning(model: Model, decay: float) -> list[tuple[int, list[nn.Parameter]]]:
    """The weights that learn, by their distance from the top; where no layer is slowed down, all in one group."""
    away = distances([name for name, _ in model.named_parameters()]) if decay < 1.0 else {}
    groups: dict[int, list[nn.Parameter]] = {}
    for name, weight in model.named_parameters():
        if weight.requires_grad:
            groups.setdefault(away.get(name, 0), []).append(weight)
    return sorted(groups.items())


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
