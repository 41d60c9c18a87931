"""A config in, its two Transformer stacks out if an engine can express them; what it can not is refused by name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard import config
from regard.config import AttentionBlocks, AttentionDecoder, AttentionEncoder
from regard.data.tokens import SPECIALS
from regard.errors import UsageError
from regard.layers.positions import Learned, Position
from regard.search.demands import Rules
from regard.trained import Trained

LEAST_POSITIONS = 1024  # a table of waves reaches as far as this at least; it costs nothing to be generous


@dataclass(frozen=True)
class Engine:
    """What an engine can express: for each setting of a stack its values, and what both stacks must have in common."""

    name: str
    may: Mapping[str, tuple[Any, ...]]
    common: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stacks:
    """The two halves of an encoder-decoder Transformer."""

    encoder: AttentionEncoder
    decoder: AttentionDecoder


def stacks(c: config.Config, engine: Engine) -> Stacks:
    """The stacks of a config that the engine can express to the last setting; any other config is refused."""
    encoder, decoder = c.encoder, c.decoder
    if not isinstance(encoder, AttentionEncoder) or not isinstance(decoder, AttentionDecoder):
        raise UsageError(f"encoder.kind={encoder.kind}, decoder.kind={decoder.kind}: {engine.name} has no such model\n"
                         "what can be ported has attention on both sides, as the preset transformer")  # fmt: skip
    if c.tokens.source == "spelled":
        raise UsageError(f"tokens.source=spelled: {engine.name} has nothing that reads words through their characters")
    if c.embedding.ngrams > 1:
        raise UsageError(f"embedding.ngrams={c.embedding.ngrams}: {engine.name} has no vectors for runs of tokens; a "
                         "model without them, embedding.ngrams=1, can be ported")  # fmt: skip
    if c.copies:
        raise UsageError(f"decoder.copy=true: {engine.name} has no head that copies from the source; a model without "
                         "one can be ported")  # fmt: skip
    wrong = [*unfit(encoder, "encoder", engine), *unfit(decoder, "decoder", engine),
             *unlike(encoder, decoder, engine)]  # fmt: skip
    if wrong:
        raise UsageError(f"{engine.name} can not express this model: {'; '.join(wrong)}")
    return Stacks(encoder, decoder)


def unfit(side: AttentionBlocks, where: str, engine: Engine) -> Iterator[str]:
    for name, may in engine.may.items():
        found = getattr(side, name)
        if found not in may:
            yield f"{where}.{name}={word(found)}, expected {' or '.join(map(word, may))}"
    if side.position == "sinusoidal" and side.width % 2:
        yield f"{where}.width={side.width}, expected an even one for sinusoidal positions"


def unlike(encoder: AttentionEncoder, decoder: AttentionDecoder, engine: Engine) -> Iterator[str]:
    for name in engine.common:
        mine, its = getattr(encoder, name), getattr(decoder, name)
        if mine != its:
            yield f"encoder.{name}={word(mine)} and decoder.{name}={word(its)}, expected the same"


def word(value: Any) -> str:
    """A value as the command line writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


# ── what every engine is told ────────────────────────────────────────────────────────────────────────────────────────


def positions(position: Position, longest: int, width: int) -> Tensor:
    """What is added to the embedding at each place: a table for waves, for learned vectors, and for nothing."""
    count = len(position.table) if isinstance(position, Learned) else longest
    return position.add(torch.zeros(1, count, width), torch.arange(count)[None])[0].detach()


def longest(c: config.Config) -> int:
    """How many places a table needs: the longer side, its end or start included."""
    return max(LEAST_POSITIONS, c.data.max_source + 1, c.data.max_target + 1)


def never(trained: Trained) -> list[int]:
    """Tokens that are never written: special ones, and tags."""
    tags = range(len(SPECIALS), len(SPECIALS) + len(trained.vocabulary.target.tags))
    return [*Rules().never, *tags]


def weight_of(module: Any, names: Sequence[str]) -> Tensor:
    """The weights of several linear layers, one under the other, as the engines that fuse them want them."""
    return torch.cat([getattr(module, name).weight for name in names])


def bias_of(module: Any, names: Sequence[str]) -> Tensor:
    return torch.cat([getattr(module, name).bias for name in names])
