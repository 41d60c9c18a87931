"""Spelled words in, one vector for each word out: that of the word, and what its characters say of it.

A convolution over the characters of a word and the maximum over its places (Ma & Hovy 2016,
https://arxiv.org/abs/1603.01354; Kim et al. 2016, https://arxiv.org/abs/1508.06615), so that a word that was never
seen has a vector too: by its ending, its capitals, its digits.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.data.tokens import PAD, UNKNOWN
from regard.layers.embedding import Embedding, drop_tokens

REACH = 2  # characters to each side that the convolution sees
FILTERS = 4  # times the width of a character


class Spelled(nn.Module):
    """Ids of words (B, S), each before the ids of its letters, to vectors (B, words, E).

    table[word] + W · max over its letters of relu(U · the letters around). The last `letters` ids of the vocabulary are
    letters. Special tokens and tags are words without any. In training a word is unknown with the probability
    `forgotten`, so that its letters learn to do without it, and a share of `unseen` words has no vector at all.
    """

    def __init__(
        self, table: Embedding, width: int, letters: int, forgotten: float, dropout: nn.Module, unseen: float = 0.0
    ) -> None:
        super().__init__()
        self.table = table
        self.first = table.table.num_embeddings  # letter
        self.letters = nn.Embedding(letters, width)
        self.convolution = nn.Linear((2 * REACH + 1) * width, FILTERS * width)
        self.projection = nn.Linear(FILTERS * width, table.table.embedding_dim, bias=False)
        self.forgotten = forgotten
        self.dropout = dropout
        self.unseen = unseen
        nn.init.normal_(self.letters.weight, std=1 / math.sqrt(width))

    def words(self, ids_BS: Tensor) -> Tensor:
        """The ids that are no letters, side by side, PAD after them: (B, words)."""
        heads_BS = self.heads(ids_BS)
        place_BS = heads_BS.cumsum(1) - 1
        ids_BT = ids_BS.new_full((len(ids_BS), int(heads_BS.sum(1).max())), PAD)
        row, column = heads_BS.nonzero(as_tuple=True)
        ids_BT[row, place_BS[row, column]] = ids_BS[row, column]
        return ids_BT

    def heads(self, ids_BS: Tensor) -> Tensor:
        return (ids_BS != PAD) & (ids_BS < self.first)

    def forward(self, ids_BS: Tensor) -> Tensor:
        ids_BT, heads_BS = self.words(ids_BS), self.heads(ids_BS)
        number_BS = (heads_BS.flatten().cumsum(0) - 1).view_as(ids_BS)  # of the word that a letter belongs to
        letters_BS = (ids_BS >= self.first) & (heads_BS.cumsum(1) > 0)
        word_N = number_BS[letters_BS]
        count = torch.bincount(word_N, minlength=int(heads_BS.sum()))  # of the letters of each word
        said = self.read(ids_BS[letters_BS] - self.first, word_N, count)
        vectors_BTE: Tensor = self.table(self.forget(ids_BT, count))
        said_BTE = torch.zeros_like(vectors_BTE)
        said_BTE[ids_BT != PAD] = self.projection(said).to(said_BTE.dtype)
        found_BTE: Tensor = self.dropout(vectors_BTE + said_BTE)
        return drop_tokens(found_BTE, self.unseen) if self.training else found_BTE

    def forget(self, ids_BT: Tensor, count: Tensor) -> Tensor:
        """In training, some words are known by their letters alone."""
        if not self.training or not self.forgotten:
            return ids_BT
        spelled_BT = torch.zeros_like(ids_BT, dtype=torch.bool)
        spelled_BT[ids_BT != PAD] = count > 0
        gone_BT = spelled_BT & (torch.rand(ids_BT.shape, device=ids_BT.device) < self.forgotten)
        return ids_BT.masked_fill(gone_BT, UNKNOWN)

    def read(self, letter_N: Tensor, word_N: Tensor, count: Tensor) -> Tensor:
        """What the letters say, one row for each word of the batch; zeros where a word has none."""
        seen_NF = F.relu(self.convolution(self.neighbours(self.letters(letter_N), word_N)))
        said: Tensor = torch.segment_reduce(seen_NF, "max", lengths=count, initial=0.0, unsafe=True)
        return said

    def neighbours(self, x_NE: Tensor, word_N: Tensor) -> Tensor:
        """Beside each letter those before and after it; zeros where these are of another word."""
        around, owner = F.pad(x_NE, (0, 0, REACH, REACH)), F.pad(word_N, (REACH, REACH), value=-1)
        windows = (slice(at, at + len(x_NE)) for at in range(2 * REACH + 1))
        return torch.cat([around[window] * (owner[window] == word_N)[:, None] for window in windows], 1)
