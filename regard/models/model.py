"""A batch in, states or logits out: embeddings, an encoder, a decoder and the output layer, either side optional.

memory = model.encode(source, mask)              once a source
state = model.start(memory)
logits, state = model.decode(target, memory, state)       all at once, or a token at a time: the same numbers
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.data.batch import Batch, pad
from regard.data.tokens import PAD
from regard.layers.embedding import Embedding, Output
from regard.layers.pointer import Copied, mixed
from regard.layers.spelled import Spelled
from regard.models.decoders import Decoder
from regard.models.encoders import Encoder, everywhere
from regard.models.memory import Memory, Read, Reading


class Model(nn.Module):
    """Hand it parts of your own, or let `build` make them from a config.

    With `prefix`, there is no encoder network: the decoder reads the source first and goes on with the target.
    A `head` is what a task puts between the states and the output layer; the task calls it, the model only holds it.
    """

    def __init__(
        self,
        source_embedding: nn.Module,
        encoder: Encoder,
        target_embedding: Embedding | None,
        decoder: Decoder | None,
        output: Output,
        prefix: bool = False,
        head: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.source_embedding = source_embedding
        self.encoder = encoder
        self.target_embedding = target_embedding
        self.decoder = decoder
        self.output = output
        self.prefix = prefix
        self.head = head

    @property
    def size(self) -> int:
        """How many parameters it has, tied ones once."""
        return sum(weight.numel() for weight in self.parameters())

    @property
    def device(self) -> torch.device:
        return self.output.weight.device

    def encode(self, source: Tensor, mask_BS: Tensor | None = None) -> Memory:
        """Token ids (B, S) with their mask, or pictures (B, C, Y, X), as a memory that is ready to be looked up.

        Of spelled words only the words have a place in it.
        """
        x = self.source_embedding(source)
        if isinstance(self.source_embedding, Spelled):
            source = self.source_embedding.words(source)
            mask = source != PAD
        else:
            mask = everywhere(x) if mask_BS is None else mask_BS
        memory: Memory = self.encoder(x, mask)
        memory = memory if source.is_floating_point() else replace(memory, source_BS=source)
        return memory if self.decoder is None else self.offered(self.decoder.read(memory))

    def offered(self, memory: Memory) -> Memory:
        """The memory with what a copy head can point at: encoder states, or the decoder's own over its prefix."""
        if self.decoder is None or self.decoder.copy is None or memory.source_BS is None:
            return memory
        states_BSM, begun = self.through(memory) if self.prefix else (memory.states_BSM, None)
        offer = self.decoder.copy.offer(states_BSM, memory.source_BS, memory.mask_BS)
        return replace(memory, offer=offer, begun=begun)

    def start(self, memory: Memory) -> Any:
        """The decoder's first state."""
        assert self.decoder is not None
        if memory.begun is not None:
            return memory.begun
        return self.through(memory)[1] if self.prefix else self.decoder.start(memory)

    def through(self, memory: Memory) -> tuple[Tensor, Any]:
        """The decoder's own states over a source that it reads as its prefix, and the state after it."""
        assert self.decoder is not None
        state = self.decoder.start(memory)
        if not memory.mask_BS.shape[1]:
            return memory.states_BSM, state
        states_BTD, state = self.decoder(memory.states_BSM, memory, state, memory.mask_BS)
        return states_BTD, state

    def states(self, target_BT: Tensor, memory: Memory, state: Any) -> tuple[Tensor, Any]:
        """Decoder states, from which the output layer makes logits."""
        assert self.decoder is not None
        assert self.target_embedding is not None
        states_BTD, state = self.decoder(self.target_embedding(target_BT), memory, state)
        return states_BTD, state

    def decode(self, target_BT: Tensor, memory: Memory, state: Any) -> tuple[Tensor, Any]:
        """Logits of what follows each token of `target_BT`, and the state after the last."""
        states_BTD, state = self.states(target_BT, memory, state)
        return self.logits(states_BTD, memory), state

    def logits(self, states_BTD: Tensor, memory: Memory) -> Tensor:
        """What the output layer makes of states; with a copy head, the logarithm of what the two mix."""
        return mixed(self.output(states_BTD), self.copied(states_BTD, memory))

    def copied(self, states_BTD: Tensor, memory: Memory) -> Copied | None:
        """What a copy head says of states, where there is one."""
        if self.decoder is None or self.decoder.copy is None or memory.offer is None:
            return None
        found: Copied = self.decoder.copy(states_BTD, memory.offer)
        return found

    def forward(self, batch: Batch) -> Read:
        """States at every position that a loss may count: of the target, or of the source if there is no target."""
        memory = self.encode(batch.source, batch.source_mask_BS)
        if batch.target_BT is not None:
            states_BTD, _ = self.states(batch.target_BT, memory, self.start(memory))
            return Read(states_BTD, batch.target_BT != PAD, memory)
        return Read(self.through(memory)[0] if self.prefix else memory.states_BSM, memory.mask_BS, memory)

    def read(self, sources: Sequence[Sequence[int]]) -> list[Tensor]:
        """The states at each token of each source: of the encoder, or of a decoder that reads it as its prefix."""
        source_BS = pad(sources).to(self.device)
        read = self(Batch(source_BS, source_BS != PAD, None, source_BS))
        return [row_SD[mask_S] for row_SD, mask_S in zip(read.states_BTD, read.mask_BT, strict=True)]

    def reading(self, source: Tensor, mask_BS: Tensor | None = None) -> Reading:
        """What a search starts from, one row for each source."""
        memory = self.encode(source, mask_BS)
        number_R = torch.arange(len(memory.mask_BS), device=memory.mask_BS.device)
        return Reading(replace(memory, begun=None), self.start(memory), number_R)

    def step(self, token_R: Tensor, reading: Reading) -> tuple[Tensor, Reading]:
        """One token for each row in, logits of the next out: all that a search knows of a model."""
        logits_RTV, state = self.decode(token_R[:, None], reading.memory, reading.state)
        return logits_RTV[:, -1], Reading(reading.memory, state, reading.source_R)
