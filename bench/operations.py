"""A Transformer's numbers and a corpus in, the operations that training needs for one target token out.

Only what the tokens themselves need, padding not counted, so the figure is the same for every system: products with
weights, attention, and the output layer; two operations for each multiplication; the way back costs twice as much.
"""

from bench.peers.corpus import Corpus
from bench.peers.sizes import Transformer

FORTH_AND_BACK = 3
MULTIPLY_AND_ADD = 2


def per_target_token(size: Transformer, corpus: Corpus) -> float:
    total = sum(products(size, len(source) + 1, len(target) + 1, corpus.size) for source, target in corpus.pairs)
    return MULTIPLY_AND_ADD * FORTH_AND_BACK * total / sum(len(target) + 1 for _, target in corpus.pairs)


def products(size: Transformer, source: int, target: int, vocabulary: int) -> int:
    """Multiplications of one example on the way forth."""
    width, inside = size.width, 2 * size.width * size.feedforward
    square = width * width
    encoder = source * (4 * square + inside) + 2 * source * source * width
    itself = target * 4 * square + 2 * target * target * width
    across = (target + source) * 2 * square + 2 * target * source * width
    return size.layers * (encoder + itself + across + target * inside) + target * width * vocabulary
