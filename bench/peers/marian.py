"""Hugging Face transformers' `MarianMTModel` in a plain loop, as a careful user would write it.

Its own model (layer norm after each part, fused attention) and its own loss, which knows no label smoothing: the one
thing it is spared and all others pay. AdamW as torch gives it; batches of similar lengths.
"""

import torch
import transformers
from torch.nn.utils import clip_grad_norm_
from transformers import MarianConfig, MarianMTModel

from bench.peers import corpus, gate
from bench.peers.corpus import Corpus
from bench.peers.sizes import SIZES, Transformer

NOT_JUDGED = -100  # what its loss leaves out


def settings(size: Transformer, text: Corpus) -> MarianConfig:
    return MarianConfig(
        vocab_size=text.size,
        d_model=size.width,
        encoder_layers=size.layers,
        decoder_layers=size.layers,
        encoder_ffn_dim=size.feedforward,
        decoder_ffn_dim=size.feedforward,
        encoder_attention_heads=size.heads,
        decoder_attention_heads=size.heads,
        dropout=size.dropout,
        activation_dropout=size.dropout,
        attention_dropout=0.0,
        activation_function="relu",
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        pad_token_id=text.pad,
        eos_token_id=text.end,
        forced_eos_token_id=text.end,
        decoder_start_token_id=text.start,
    )


def main() -> None:
    job, door = gate.begin()
    torch.set_num_threads(job.threads)
    torch.manual_seed(job.seed)
    size = SIZES[job.size]
    assert isinstance(size, Transformer)
    text = corpus.load(job.folder)
    model = MarianMTModel(settings(size, text)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    door.facts |= {
        "version": transformers.__version__,
        "parameters": sum(w.numel() for w in model.parameters() if w.requires_grad),
    }
    for batch in corpus.batches(text, job.tokens, job.seed):
        door.update(batch.counts)
        labels_BT = batch.label_BT.masked_fill(batch.label_BT == text.pad, NOT_JUDGED)
        found = model(
            input_ids=batch.source_BS,
            attention_mask=(batch.source_BS != text.pad).long(),
            decoder_input_ids=batch.target_BT,
            labels=labels_BT,
        )
        optimizer.zero_grad()
        found.loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


if __name__ == "__main__":
    main()
