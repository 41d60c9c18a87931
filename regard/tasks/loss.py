"""States and labels in, a loss as a sum and a count out; with the true tokens fed, or the model's own."""

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.data.batch import Batch
from regard.data.tokens import PAD
from regard.layers.embedding import Output
from regard.models.model import Model
from regard.tasks.task import Loss


def token_loss(output: Output, states_BTD: Tensor, label_BT: Tensor, smoothing: float) -> Loss:
    """Cross-entropy over all labels that are not padding, smoothed towards the uniform distribution."""
    logits_BTV = output(states_BTD)
    total = F.cross_entropy(
        logits_BTV.flatten(0, 1), label_BT.flatten(), ignore_index=PAD, reduction="sum", label_smoothing=smoothing
    )
    return Loss(total, int((label_BT != PAD).sum()))


def fed_states(model: Model, batch: Batch, forcing: float, seed: int) -> Tensor:
    """Decoder states when a share `forcing` of the inputs are the true tokens and the rest the model's own.

    At 1 this is teacher forcing in one call; at 0 it is free running; between them scheduled sampling
    (Bengio et al. 2015). Which inputs are true is a pure function of the seed.
    """
    if forcing >= 1.0 or batch.target_BT is None:
        states_BTD: Tensor = model(batch)
        return states_BTD
    draw = torch.rand(batch.target_BT.shape, generator=torch.Generator().manual_seed(seed))
    true_BT = (draw < forcing).to(batch.target_BT.device)
    memory = model.encode(batch.source, batch.source_mask_BS)
    state = model.start(memory)
    found = []
    token_B = batch.target_BT[:, 0]
    for at in range(batch.target_BT.shape[1]):
        if at:
            token_B = torch.where(true_BT[:, at], batch.target_BT[:, at], token_B)
        states_B1D, state = model.states(token_B[:, None], memory, state)
        found.append(states_B1D)
        token_B = model.output(states_B1D)[:, 0].argmax(-1).detach()
    return torch.cat(found, 1)
