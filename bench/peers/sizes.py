"""The models that are measured, as numbers: every system builds the same one out of them."""

from dataclasses import dataclass

SMOOTHING = 0.1  # of the labels
PIECES = 8000  # of the vocabulary that source and target share; each system adds its own few special tokens


@dataclass(frozen=True)
class Transformer:
    """Encoder and decoder of `layers` each; one table of vectors for source, target and output."""

    layers: int
    width: int
    feedforward: int
    heads: int
    dropout: float


@dataclass(frozen=True)
class Recurrent:
    """A GRU reading both ways (`width` // 2 each), a GRU writing, attention between them; one table as above.

    Attention is read with the new state and joined to it (tanh of a linear layer) before the output. `additive`
    compares by vᵀ tanh(W₁ k + W₂ q), otherwise qᵀ W k does; with `feeding` what was joined goes into the next step.
    """

    width: int
    additive: bool
    feeding: bool
    dropout: float  # on the embeddings and at the joining, where each system has it


SIZES: dict[str, Transformer | Recurrent] = {
    "tiny": Transformer(layers=4, width=128, feedforward=256, heads=4, dropout=0.3),
    "small": Transformer(layers=3, width=256, feedforward=1024, heads=8, dropout=0.1),
    "gru": Recurrent(width=256, additive=False, feeding=False, dropout=0.1),
    "gru-feeding": Recurrent(width=256, additive=True, feeding=True, dropout=0.1),
}
