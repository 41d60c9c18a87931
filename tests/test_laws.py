"""The laws of `regard.lab.laws`: kept by all presets and by drawn combinations of parts, and seen when broken."""

import copy
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle, product
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
from regard.lab.laws import Probe, causal, draw_items, laws, render
from regard.layers import attention
from regard.layers.crf import Chain
from regard.layers.pointer import Copied, Offer, Pointer
from regard.layers.pool import Pool
from regard.layers.tap import listening
from regard.models.build import build
from regard.models.decoders import AttentionDecoder
from regard.models.encoders import AttentionEncoder
from regard.models.memory import Reading
from regard.models.model import Model
from regard.search.write import Sampling, sample
from regard.tasks import transduce
from regard.tasks.classify import Classify
from regard.tasks.reading import Reads
from regard.trained import Trained

PRESETS = ("rnn-single", "rnn", "rnn-context", "rnn-attention", "conv", "attention-encoder", "transformer", "decoder",
           "encoder", "caption")  # fmt: skip
# Fresh weights seldom write an end; without a short limit every answer would be as long as it may be.
SHORT = ["search.length_ratio=0.0", "search.length_extra=4", "data.max_source=14", "data.max_target=14"]


def trained(preset: str, words: list[str]) -> Trained:
    """Fresh weights for a few letters, larger than they start: what is small anyway breaks no law."""
    short = SHORT[:-1] if {"task=embed", "task=tag"} & {*words} else SHORT  # data.max_source bounds both sides there
    c = config.resolve(preset, None, [*short, *words])
    targets = {"tag": ["x y z"], "classify": ["x", "y", "z"]}.get(c.task, ["xyzabcd"])
    vocabulary = learn([Example(("abcdefgh",), target, 1) for target in targets], c, [False])
    model = build(c, vocabulary.source.size, vocabulary.target.size, copies=vocabulary.copies()).eval()
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
        if getattr(side, key, None) is not None
        and not (key == "heads" and (getattr(side, key) == 1 or getattr(side, "form", "") == "grid"))
    ]


def broken(found: Trained) -> set[str]:
    return {law.name for law in laws(found, count=5) if not law.holds}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_keeps_the_laws(preset: str) -> None:
    found = laws(trained(preset, shrink(preset)), count=5)
    assert not [law for law in found if not law.holds], render(found)
    applies = {law.name for law in found if law.difference is not None}
    without_decoder = {"causal", "cached = uncached", "beam 1 = greedy"}
    assert {law.name for law in found} - applies == (without_decoder if preset == "encoder" else set())


COPYING = {
    "rnn-attention": [],
    "feed": ["decoder.context=feed", "decoder.cell=lstm"],
    "input": ["decoder.context=input", "tokens.shared=true"],
    "conv": [],
    "attention-encoder": ["tokens.source=words", "tokens.target=words"],
    "transformer": ["encoder.width=8"],  # another width than the decoder's
    "decoder": [],
    "decoder, rotary": ["decoder.position=rotary", "embedding.tie_output=true"],
}


@pytest.mark.parametrize("case", COPYING)
def test_every_preset_that_copies_keeps_the_laws(case: str) -> None:
    preset = case.split(",")[0] if case.split(",")[0] in PRESETS else "rnn-attention"
    made = trained(preset, [*shrink(preset), "decoder.copy=true", *COPYING[case]])
    found = laws(made, count=5)
    assert not [law for law in found if not law.holds], render(found)
    assert all(law.difference is not None for law in found)
    record = made.look("abcdefgh")
    assert record.copied is not None
    assert any(share > 0 for share in record.copied)


def test_copying_what_is_to_come_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Pointer.forward

    def peek(self: Pointer, states_BTD: Tensor, offer: Offer) -> Copied:
        found = honest(self, states_BTD, offer)
        return replace(found, gate_BT=found.gate_BT.roll(-1, 1))

    monkeypatch.setattr(Pointer, "forward", peek)
    assert "causal" in broken(trained("transformer", [*shrink("transformer"), "decoder.copy=true"]))


def test_pointing_at_padding_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Pointer.offer

    def blind(self: Pointer, states_BSM: Tensor, source_BS: Tensor, mask_BS: Tensor) -> Offer:
        return replace(made := honest(self, states_BSM, source_BS, mask_BS), token_BS=made.token_BS.clamp(min=9))

    monkeypatch.setattr(Pointer, "offer", blind)
    assert "padding-proof" in broken(trained("rnn-attention", [*shrink("rnn-attention"), "decoder.copy=true"]))


@pytest.mark.parametrize("preset", ["rnn", "conv", "transformer", "decoder", "rnn-single"])
@pytest.mark.parametrize("task", ["classify", "embed", "extract"])
def test_tasks_that_read_keep_the_laws_with_every_body(task: str, preset: str) -> None:
    side = "decoder" if config.resolve(preset).encoder.kind == "none" else "encoder"
    words = [word for word in shrink(preset) if word.startswith(side)]
    found = laws(trained(preset, [f"task={task}", *words]), count=5)
    assert not [law for law in found if not law.holds], render(found)
    applies = {law.name for law in found if law.difference is not None}
    assert {law.name for law in found} - applies == {"causal", "cached = uncached", "beam 1 = greedy"}


# ── combinations ─────────────────────────────────────────────────────────────────────────────────────────────────────

CELLS = ["elman", "gru", "lstm"]
SCORES = ["dot", "scaled", "bilinear", "reduced-rank", "additive", "distance", "mean"]
POSITIONS = ["sinusoidal", "learned", "relative", "rotary", "sinusoidal+rotary", "alibi", "none"]
CONTEXTS = ["none", "fixed", "output", "feed", "input"]
BRIDGES = ["last", "mean", "zero", "copy"]
ADDED = ["sinusoidal", "learned", "none"]
LOOKUP: dict[str, list[Any]] = {"score": SCORES, "heads": [1, 2], "projections": [True, True, False], "rank": [3]}
BLOCKS: dict[str, list[Any]] = LOOKUP | {
    "position": POSITIONS, "norm": ["layer", "rms"], "norm_first": [True, False], "gated": [True, False],
    "activation": ["relu", "gelu", "silu"], "feedforward": [12],
}  # fmt: skip
SIZES: dict[str, list[Any]] = {"layers": [1, 2], "width": [8, 8, 16]}  # mostly equal, because much needs equal widths
KINDS: dict[str, dict[str, dict[str, list[Any]]]] = {
    "encoder": {
        "recurrent": {"cell": CELLS, "directions": ["forward", "backward", "both"], "position": ADDED,
                      "embedding": [8, 8, 6]},
        "convolutional": {"kernel": [1, 3, 5], "position": ADDED},
        "attention": BLOCKS,
        "image": BLOCKS | {"form": ["grid", "patches"], "size": [8], "patch": [4], "position": ADDED},
        "none": {},
    },
    "decoder": {
        "recurrent": LOOKUP | {"cell": CELLS, "context": CONTEXTS,
                               "bridge": BRIDGES, "position": ADDED, "embedding": [8, 8, 6]},
        "convolutional": LOOKUP | {"kernel": [2, 3], "position": ADDED},
        "attention": BLOCKS,
    },
}  # fmt: skip


def setting(name: str, value: object) -> str:
    return f"{name}={str(value).lower() if isinstance(value, bool) else value}"


def idle_settings(drawn: dict[str, Any], encoder: str) -> set[str]:
    """What config refuses because it would do nothing: attention where none is."""
    if drawn.get("form") == "grid":
        return set(BLOCKS) - {"position"}
    alone = encoder == "none" and "kernel" in drawn
    return set(LOOKUP) if alone or drawn.get("context") in ("none", "fixed") else set()


@st.composite
def combinations(draw: st.DrawFn, encoder: str, decoder: str) -> tuple[str, ...]:
    """Words of one config; some of them contradict each other, and config has to say so."""
    words = [f"encoder.kind={encoder}", f"decoder.kind={decoder}"]
    words.append(f"task={'caption' if encoder == 'image' else 'transduce'}")
    for side, kind in (("encoder", encoder), ("decoder", decoder)):
        choices = {} if kind == "none" else SIZES | KINDS[side][kind]
        if "bridge" in choices and encoder != "recurrent":
            choices = choices | {"bridge": BRIDGES[:-1]}
        drawn = {name: draw(st.sampled_from(values)) for name, values in choices.items()}
        idle = idle_settings(drawn, encoder)
        words += [setting(f"{side}.{name}", value) for name, value in drawn.items() if name not in idle]
    if (encoder, decoder) == ("none", "recurrent"):  # the only ones that fit
        words = [word for word in words if word.split("=")[0].removeprefix("decoder.") not in LOOKUP]
        words += ["decoder.context=none", "decoder.bridge=zero"]
    tied = encoder not in ("none", "image") and draw(st.integers(0, 3)) == 3
    words += [setting("embedding.tie_source", tied), setting("tokens.shared", tied or encoder == "none")]
    if encoder not in ("none", "image") and draw(st.booleans()):
        words += [f"embedding.ngrams={draw(st.integers(2, 4))}", "embedding.buckets=50"]
    return (*words, *(setting(f"embedding.{name}", draw(st.booleans())) for name in ("tie_output", "scale")))


def collect(encoder: str, decoder: str, judge: Callable[[Trained], None]) -> tuple[list[config.Config], int]:
    """The different configs among a few drawn ones that are accepted, each judged once; and how many are refused."""
    accepted: dict[str, config.Config] = {}
    refused = set()

    @settings(max_examples=5, deadline=None, derandomize=True, database=None, suppress_health_check=[*HealthCheck])
    @given(combinations(encoder, decoder))
    def check(words: tuple[str, ...]) -> None:
        try:
            made = trained("rnn", list(words))
        except ConfigError:
            refused.add(words)
            return
        if repr(made.config) not in accepted:
            judge(made)
            accepted[repr(made.config)] = made.config

    check()
    return list(accepted.values()), len(refused)


def keeps_the_laws(made: Trained) -> None:
    found = laws(made, count=3)
    assert not [law for law in found if not law.holds], render(found)


def test_drawn_combinations_keep_the_laws() -> None:
    """Every encoder with every decoder, and of each pair a few that differ in all else."""
    accepted: list[config.Config] = []
    drawn = 0
    for encoder, decoder in product(KINDS["encoder"], KINDS["decoder"]):
        found, refused = collect(encoder, decoder, keeps_the_laws)
        assert found, f"no accepted combination of {encoder} and {decoder}"
        accepted += found
        drawn += len(found) + refused
    assert drawn >= 60
    assert len({repr(c) for c in accepted}) >= 40
    for name, values in (("cell", CELLS), ("score", SCORES), ("norm", ["layer", "rms"])):
        seen = {getattr(side, name, None) for c in accepted for side in (c.encoder, c.decoder)}
        assert set(values) <= seen, name


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("preset", ["transformer", "decoder", "encoder"])
def test_every_position_keeps_the_laws(preset: str, position: str) -> None:
    sides = {"transformer": ("encoder", "decoder")}.get(preset, (preset,))
    keeps_the_laws(trained(preset, [*shrink(preset), *(f"{side}.position={position}" for side in sides)]))


@pytest.mark.parametrize(("context", "bridge"), [*zip(CONTEXTS, cycle(BRIDGES), strict=False), ("none", "copy")])
def test_every_context_and_bridge_keeps_the_laws(context: str, bridge: str) -> None:
    words = [f"decoder.context={context}", f"decoder.bridge={bridge}", "encoder.cell=lstm", "decoder.cell=lstm"]
    keeps_the_laws(trained("rnn", [*shrink("rnn"), *words]))


# ── a law that is broken is seen ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def transformer() -> Trained:
    return trained("transformer", shrink("transformer"))


@pytest.fixture
def peeking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoders that see the whole target."""
    honest = AttentionDecoder.sight

    def peek(self: AttentionDecoder, past: int, x_BTE: Tensor, mask_BS: Tensor | None) -> tuple[Any, Tensor]:
        sight, at_BT = honest(self, past, x_BTE, mask_BS)
        return replace(sight, mask=None), at_BT

    monkeypatch.setattr(AttentionDecoder, "sight", peek)


@pytest.mark.usefixtures("peeking")
def test_a_decoder_that_peeks_is_not_causal(transformer: Trained) -> None:
    assert "causal" in broken(transformer)


@pytest.mark.usefixtures("peeking")
@pytest.mark.parametrize("count", [1, 2, 3, 4, 8, 9])
def test_peeking_is_seen_whatever_the_size_of_the_vocabulary(count: int) -> None:
    """With a few words, counting on from a token may lead back to it; padding, which always changes, is left out."""
    c = config.resolve("transformer", None, [*SHORT, *shrink("transformer"), "tokens.target=words"])
    vocabulary = learn([Example(("abc",), " ".join("abcdefghi"[:count]), 1)], c, [False])
    made = Trained(c, vocabulary, build(c, vocabulary.source.size, vocabulary.target.size).eval())
    items = [item for item in draw_items(made, 9, 0) if len(item.target) > 3][:1]
    probe = Probe(made, copy.deepcopy(made.model).double(), items)
    with torch.inference_mode():
        assert not causal(probe).holds


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
        return logits_RV.roll(1, 0), reading  # each row hears its neighbour; one alone hears itself

    monkeypatch.setattr(Model, "step", mixed)
    assert "batch-proof" in broken(transformer)


# … of a head


def headed(task: str, *words: str) -> Trained:
    sizes = [word for word in shrink("transformer") if word.startswith("encoder")]
    return trained("transformer", [f"task={task}", *sizes, *words])


@pytest.mark.parametrize("task", ["classify", "embed"])
def test_a_pool_that_ignores_its_mask_is_not_padding_proof(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(self: Pool, states_BTD: Tensor, mask_BT: Tensor) -> Tensor:
        return states_BTD.mean(1)

    monkeypatch.setattr(Pool, "forward", blind)
    assert broken(headed(task)) == {"padding-proof"}


def test_a_chain_keeps_the_laws_and_one_that_ignores_its_mask_is_not_padding_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, honest = headed("tag", "head.crf=true"), Chain.backwards
    assert not broken(made)

    def blind(self: Chain, emissions_BTV: Tensor, mask_BT: Tensor) -> list[Tensor]:
        return honest(self, emissions_BTV, torch.ones_like(mask_BT))

    monkeypatch.setattr(Chain, "backwards", blind)
    assert "padding-proof" in broken(made)


def test_vectors_that_see_each_other_are_not_batch_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Reads.pooled

    def mixed(self: Reads, model: Any, items: Any) -> Tensor:
        return honest(self, model, items).roll(1, 0)

    monkeypatch.setattr(Reads, "pooled", mixed)
    assert "batch-proof" in broken(headed("embed"))


def test_a_probability_that_depends_on_mates_is_not_batch_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Classify.log_probabilities

    def surer(self: Classify, model: Any, items: Any) -> Tensor:
        return (honest(self, model, items) * len(items)).log_softmax(-1)

    made = headed("classify")
    monkeypatch.setattr(Classify, "log_probabilities", surer)
    assert "batch-proof" in broken(made)


@pytest.mark.parametrize("block", [2, 16])
def test_a_row_that_is_short_bounds_what_is_drawn(block: int) -> None:
    sizes = [word for word in shrink("conv") if word.startswith("decoder")]
    found = laws(trained("conv", ["task=generate", f"generate.block={block}", *sizes]), count=9)
    assert not [law for law in found if not law.holds], render(found)


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
