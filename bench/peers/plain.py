"""`nn.Transformer` in a plain loop: the model everybody writes first.

Layer norm before each part; `nn.Transformer` knows one dropout and also applies it to the attention weights, which
keeps its attention off the fused kernel. Cross-entropy with label smoothing on the whole logits, AdamW.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bench.peers import corpus, gate
from bench.peers.sizes import SIZES, SMOOTHING, Transformer

LONGEST = 512


class Model(nn.Module):
    """Ids of both sides in, logits out."""

    def __init__(self, size: Transformer, vocabulary: int, pad: int) -> None:
        super().__init__()
        self.pad, self.width = pad, size.width
        self.table = nn.Embedding(vocabulary, size.width, pad)
        nn.init.normal_(self.table.weight, std=size.width**-0.5)
        self.register_buffer("places_TD", sinusoids(LONGEST, size.width))
        self.dropout = nn.Dropout(size.dropout)
        self.inner = nn.Transformer(size.width, size.heads, size.layers, size.layers, size.feedforward, size.dropout,
                                    batch_first=True, norm_first=True)  # fmt: skip

    def embed(self, ids_BT: Tensor) -> Tensor:
        places_TD = self.get_buffer("places_TD")[: ids_BT.shape[1]]
        embedded: Tensor = self.dropout(self.table(ids_BT) * math.sqrt(self.width) + places_TD)
        return embedded

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        future_TT = torch.ones(target_BT.shape[1], target_BT.shape[1], dtype=torch.bool).triu(1)
        hidden_BS, hidden_BT = source_BS == self.pad, target_BT == self.pad
        states_BTD = self.inner(self.embed(source_BS), self.embed(target_BT), tgt_mask=future_TT, tgt_is_causal=True,
                                src_key_padding_mask=hidden_BS, memory_key_padding_mask=hidden_BS,
                                tgt_key_padding_mask=hidden_BT)  # fmt: skip
        return F.linear(states_BTD, self.table.weight)


def sinusoids(length: int, width: int) -> Tensor:
    """(T, D)"""
    angle = torch.arange(length)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(10_000) / width))
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


def main() -> None:
    job, door = gate.begin()
    torch.set_num_threads(job.threads)
    torch.manual_seed(job.seed)
    size = SIZES[job.size]
    assert isinstance(size, Transformer)
    text = corpus.load(job.folder)
    model = Model(size, text.size, text.pad).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    door.facts |= {"version": torch.__version__, "parameters": sum(w.numel() for w in model.parameters())}
    for batch in corpus.batches(text, job.tokens, job.seed):
        door.update(batch.counts)
        logits_BTV = model(batch.source_BS, batch.target_BT)
        loss = F.cross_entropy(logits_BTV.flatten(0, 1), batch.label_BT.flatten(), ignore_index=text.pad,
                               label_smoothing=SMOOTHING)  # fmt: skip
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


if __name__ == "__main__":
    main()
