"""The laws of `regard.lab.laws`: kept by all presets and by drawn combinations of parts, and seen when broken."""

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard import config, folder
from regard.data.read import Example
from regard.data.vocabulary import Vocabulary, learn
from regard.errors import ConfigError
from regard.lab.laws import laws, render
from regard.layers import attention
from regard.layers.tap import listening
from regard.models.build import build
from regard.models.decoders import AttentionDecoder
from regard.models.encoders import AttentionEncoder
from regard.models.memory import Reading
from regard.models.model import Model
from regard.search.write import Sampling, sample
from regard.tasks import transduce
from regard.trained import Trained

PRESETS = ("rnn-single", "rnn", "rnn-context", "rnn-attention", "conv", "attention-encoder", "transformer", "decoder",
           "encoder", "caption")  # fmt: skip
# Fresh weights seldom write an end; without a short limit every answer would be as long as it may be.
SHORT = ["search.length_ratio=0.5", "search.length_extra=2", "data.max_source=14", "data.max_target=14"]


def trained(preset: str, words: list[str]) -> Trained:
    """Fresh weights for a few letters, larger than they start: what is small anyway breaks no law."""
    c = config.resolve(preset, None, [*SHORT, *words])
    vocabulary = learn([Example(("abcdefgh",), "xyzabcd", 1)], c, [False])
    model = build(c, vocabulary.source.size, vocabulary.target.size).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(weight.numel())), alpha=0.2)
    return Trained(c, vocabulary, model)


def shrink(preset: str) -> list[str]:
    """Words that make a preset tiny and leave its kind alone."""
    c = config.resolve(preset)
    small = {"width": 16, "embedding": 8, "feedforward": 16, "heads": 2, "layers": 2, "size": 8}
    return [
        f"{name}.{key}={value}"
        for name, side in (("encoder", c.encoder), ("decoder", c.decoder))
        for key, value in small.items()
        if getattr(side, key, None) is not None and not (key == "heads" and getattr(side, key) == 1)
    ]


def broken(found: Trained) -> set[str]:
    return {law.name for law in laws(found) if not law.holds}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_keeps_the_laws(preset: str) -> None:
    found = laws(trained(preset, shrink(preset)))
    assert not [law for law in found if not law.holds], render(found)
    applies = {law.name for law in found if law.difference is not None}
    without_decoder = {"causal", "cached = uncached", "beam 1 = greedy"}
    assert {law.name for law in found} - applies == (without_decoder if preset == "encoder" else set())


# ── combinations ─────────────────────────────────────────────────────────────────────────────────────────────────────

CELLS = ["elman", "gru", "lstm"]
SCORES = ["dot", "scaled", "bilinear", "reduced-rank", "additive", "distance", "mean"]
POSITIONS = ["sinusoidal", "learned", "relative", "rotary", "alibi", "none"]
ADDED = ["sinusoidal", "learned", "none"]
LOOKUP: dict[str, list[Any]] = {"score": SCORES, "heads": [1, 2], "projections": [True, False], "rank": [3]}
BLOCKS: dict[str, list[Any]] = LOOKUP | {
    "position": POSITIONS, "norm": ["layer", "rms"], "norm_first": [True, False], "gated": [True, False],
    "activation": ["relu", "gelu", "silu"], "feedforward": [12],
}  # fmt: skip
SIZES: dict[str, list[Any]] = {"layers": [1, 2], "width": [8, 16]}
KINDS: dict[str, dict[str, dict[str, list[Any]]]] = {
    "encoder": {
        "recurrent": {"cell": CELLS, "directions": ["forward", "backward", "both"], "position": ADDED,
                      "embedding": [6, 8]},
        "convolutional": {"kernel": [1, 3, 5], "position": ADDED},
        "attention": BLOCKS,
        "image": BLOCKS | {"form": ["grid", "patches"], "size": [8], "patch": [4], "position": ADDED},
        "none": {},
    },
    "decoder": {
        "recurrent": LOOKUP | {"cell": CELLS, "context": ["none", "fixed", "output", "feed", "input"],
                               "bridge": ["copy", "last", "mean", "zero"], "position": ADDED, "embedding": [6, 8]},
        "convolutional": LOOKUP | {"kernel": [2, 3], "position": ADDED},
        "attention": BLOCKS,
    },
}  # fmt: skip


@st.composite
def combinations(draw: st.DrawFn) -> tuple[str, ...]:
    """Words of one config; some of them contradict each other, and config has to say so."""
    words = []
    kinds = {}
    for side, choices in KINDS.items():
        kinds[side] = draw(st.sampled_from(sorted(choices)))
        words.append(f"{side}.kind={kinds[side]}")
        for name, values in ({} if kinds[side] == "none" else SIZES | choices[kinds[side]]).items():
            words.append(f"{side}.{name}={str(draw(st.sampled_from(values))).lower()}")
    tied, output, scaled = draw(st.tuples(st.booleans(), st.booleans(), st.booleans()))
    if kinds["encoder"] == "none":  # the one setting that fits, so that some without an encoder come through
        words += ["decoder.context=none", "decoder.bridge=zero"] if kinds["decoder"] == "recurrent" else []
        tied = False
    words.append(f"task={'caption' if kinds['encoder'] == 'image' else 'transduce'}")
    words.append(f"tokens.shared={str(tied or kinds['encoder'] == 'none').lower()}")
    words += [f"embedding.tie_source={str(tied).lower()}", f"embedding.tie_output={str(output).lower()}"]
    return (*words, f"embedding.scale={str(scaled).lower()}")


def parts(words: tuple[str, ...], name: str) -> str:
    """The value of one setting among words."""
    return next((word.split("=")[1] for word in words if word.startswith(f"{name}=")), "")


def test_drawn_combinations_keep_the_laws() -> None:
    accepted: set[tuple[str, ...]] = set()
    refused: set[tuple[str, ...]] = set()

    @settings(max_examples=130, deadline=None, derandomize=True, database=None, suppress_health_check=[*HealthCheck])
    @given(combinations())
    def check(words: tuple[str, ...]) -> None:
        try:
            made = trained("rnn", list(words))
        except ConfigError as error:
            assert len(str(error).splitlines()) <= 3
            refused.add(words)
            return
        if words not in accepted:
            accepted.add(words)
            found = laws(made, count=4)
            assert not [law for law in found if not law.holds], render(found)

    check()
    assert len(accepted) >= 40
    assert len(accepted | refused) >= 60
    kinds = {(parts(words, "encoder.kind"), parts(words, "decoder.kind")) for words in accepted}
    assert {encoder for encoder, _ in kinds} == set(KINDS["encoder"])
    assert {decoder for _, decoder in kinds} == set(KINDS["decoder"])


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("norm_first", ["true", "false"])
def test_encoder_only_models_keep_the_laws(position: str, norm_first: str) -> None:
    words = [*shrink("encoder"), f"encoder.position={position}", f"encoder.norm_first={norm_first}"]
    found = laws(trained("encoder", words), count=4)
    assert not [law for law in found if not law.holds], render(found)


# ── a law that is broken is seen ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def transformer() -> Trained:
    return trained("transformer", shrink("transformer"))


def test_a_decoder_that_peeks_is_not_causal(transformer: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = AttentionDecoder.sight

    def peek(self: AttentionDecoder, past: int, x_BTE: Tensor, mask_BS: Tensor | None) -> tuple[Any, Tensor]:
        sight, at_BT = honest(self, past, x_BTE, mask_BS)
        return replace(sight, mask=None), at_BT

    monkeypatch.setattr(AttentionDecoder, "sight", peek)
    assert "causal" in broken(transformer)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 8, 9])
def test_peeking_is_seen_whatever_the_size_of_the_vocabulary(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    c = config.resolve("transformer", None, [*SHORT, *shrink("transformer"), "tokens.target=words"])
    vocabulary = learn([Example(("abc",), " ".join("abcdefghi"[:count]), 1)], c, [False])
    made = Trained(c, vocabulary, build(c, vocabulary.source.size, vocabulary.target.size).eval())
    honest = AttentionDecoder.sight

    def peek(self: AttentionDecoder, past: int, x_BTE: Tensor, mask_BS: Tensor | None) -> tuple[Any, Tensor]:
        sight, at_BT = honest(self, past, x_BTE, mask_BS)
        return replace(sight, mask=None), at_BT

    monkeypatch.setattr(AttentionDecoder, "sight", peek)
    assert "causal" in broken(made)


def test_an_encoder_that_ignores_its_mask_is_not_padding_proof(
    transformer: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = AttentionEncoder.read

    def blind(self: AttentionEncoder, x_BSE: Tensor, at_BS: Tensor, mask_BS: Tensor) -> Any:
        return replace(honest(self, x_BSE, at_BS, torch.ones_like(mask_BS)), mask_BS=mask_BS)

    monkeypatch.setattr(AttentionEncoder, "read", blind)
    assert "padding-proof" in broken(transformer)


def test_rows_that_see_each_other_are_not_batch_proof(transformer: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Model.step

    def mixed(self: Model, token_R: Tensor, reading: Reading) -> tuple[Tensor, Reading]:
        logits_RV, reading = honest(self, token_R, reading)
        return logits_RV + 3.0 * logits_RV.mean(0, keepdim=True), reading

    monkeypatch.setattr(Model, "step", mixed)
    assert "batch-proof" in broken(transformer)


@pytest.mark.parametrize("preset", ["rnn-attention", "conv", "transformer", "decoder"])
def test_a_state_that_is_dropped_is_seen(preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = trained(preset, shrink(preset))
    honest = Model.step

    def forgetful(self: Model, token_R: Tensor, reading: Reading) -> tuple[Tensor, Reading]:
        return honest(self, token_R, reading)[0], reading

    monkeypatch.setattr(Model, "step", forgetful)
    assert "cached = uncached" in broken(made)


def test_a_greedy_search_that_gambles_is_seen(transformer: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    def gamble(step: Any, state: Any, demand: Any, rules: Any, penalty: float) -> Any:
        return sample(step, state, demand, rules, Sampling(temperature=3.0))

    monkeypatch.setattr(transduce, "greedy", gamble)
    assert "beam 1 = greedy" in broken(transformer)


def test_a_tap_that_disturbs_is_seen(transformer: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    honest: Callable[..., Tensor] = attention.lookup

    def disturbed(*given: Any) -> Tensor:
        found = honest(*given)
        return found * (1.0 + 1e-12) if listening() else found

    monkeypatch.setattr(attention, "lookup", disturbed)
    assert broken(transformer) == {"tap changes nothing"}


def test_a_folder_that_rounds_is_seen(transformer: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = folder.save

    def rounded(path: Path, c: config.Config, vocabulary: Vocabulary, model: Model, others: dict[str, bytes]) -> None:
        honest(path, c, vocabulary, copy.deepcopy(model).bfloat16().float(), others)

    monkeypatch.setattr(folder, "save", rounded)
    assert broken(transformer) == {"reload = same"}
