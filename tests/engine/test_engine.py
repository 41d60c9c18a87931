"""The engine beside the model it was made of, for every preset, on every kind of processor that this one can play."""

import copy
import math
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from regard import config
from regard.data.batch import pad
from regard.data.tokens import END, SEPARATOR, UNKNOWN
from regard.engine import engine as engine_module
from regard.engine.engine import Engine, Sources, cores, engine
from regard.engine.library import Library, library
from regard.errors import RegardError, UsageError
from regard.layers.rows import rows
from regard.layers.scores import Distance, Score
from regard.models.model import Model
from regard.search.beam import beam
from regard.search.demands import Rules, demands
from regard.search.write import Hypothesis, Sampling, greedy
from regard.tasks.task import Item, Wish
from regard.trained import Trained

found = library()
pytestmark = pytest.mark.skipif(found is None, reason="the engine was not built: no C++ compiler at install")
TEXTS = [name for name in config.presets() if name not in ("caption", "encoder", "bert", "xu2015")
         and not name[-1].isdigit()]  # fmt: skip
COPYING = {  # every way to copy: a preset, and what is said beside it
    "rnn-attention, copying": [],
    "rnn-attention, feed, copying": ["decoder.context=feed", "decoder.cell=lstm", "decoder.layers=2"],
    "rnn-attention, input, copying": ["decoder.context=input", "tokens.shared=true"],
    "conv, copying": [],
    "attention-encoder, copying": ["encoder.width=6"],  # another width than the decoder's
    "transformer, copying": [],
    "decoder, copying": [],
    "decoder, rotary, copying": ["decoder.position=rotary", "embedding.tie_output=true"],
}
JOINING = {  # vectors for runs of source tokens
    "rnn-attention, runs": ["embedding.ngrams=2", "embedding.buckets=40"],
    "transformer, runs": ["embedding.ngrams=4", "embedding.buckets=30", "tokens.shared=true",
                          "embedding.tie_source=true"],
}  # fmt: skip
KINDS = [*TEXTS, *COPYING, *JOINING]
CPU = torch.device("cpu")
SmallModel = Callable[..., Trained]


def built() -> Library:
    assert found is not None
    return found


LEVELS = range(built().level() + 1) if found is not None else []


def sources(model: Trained, count: int, seed: int = 0, longest: int = 11) -> list[tuple[int, ...]]:
    draw = np.random.default_rng(seed)
    size, last = model.vocabulary.source.size, () if model.config.encoder.kind == "none" else (2,)
    return [(*draw.integers(7, size, draw.integers(1, longest)).tolist(), *last) for _ in range(count)]


def model_of(small_model: SmallModel, kind: str) -> Trained:
    """A preset, one with vectors for runs, which begin at zero; or one that copies: with larger weights than it starts
    with, so that it points at some places."""
    if kind in JOINING:
        trained = small_model(kind.split(",")[0], *JOINING[kind])
        with torch.no_grad():
            trained.model.source_embedding.ngrams.table.weight.normal_()  # type: ignore[union-attr]
        return trained
    if kind not in COPYING:
        return small_model(kind)
    trained = small_model(kind.split(",")[0], "decoder.copy=true", *COPYING[kind])
    assert trained.model.decoder is not None
    assert trained.model.decoder.copy is not None
    with torch.no_grad():
        for weight in trained.model.decoder.copy.parameters():
            weight.mul_(4)
    return trained


def padded(ids: list[tuple[int, ...]]) -> tuple[torch.Tensor, torch.Tensor]:
    source_BS = pad(ids)
    return source_BS, source_BS != 0


def written(hypotheses: list[list[Hypothesis]]) -> list[list[tuple[int, ...]]]:
    return [[each.tokens for each in source] for source in hypotheses]


# ── the same numbers ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", KINDS)
def test_steps_give_the_model_s_logits_also_when_rows_are_picked(
    small_model: SmallModel, kind: str, level: int
) -> None:
    trained = model_of(small_model, kind)
    source_BS, mask_BS = padded(sources(trained, 5))
    made = Engine(trained.model, built(), level=level)
    draw = torch.Generator().manual_seed(0)
    with torch.inference_mode():
        theirs, ours = trained.model.reading(source_BS, mask_BS), made.reading(source_BS, mask_BS)
        for index in ([0, 1, 2, 3, 4], [4, 4, 0, 2], [1, 0, 3, 3, 3, 2], [0], [0, 0]):
            theirs, ours = rows(theirs, torch.tensor(index)), rows(ours, torch.tensor(index))
            token_R = torch.randint(7, trained.vocabulary.target.size, (len(index),), generator=draw)
            expected_RV, theirs = trained.model.step(token_R, theirs)
            found_RV, ours = made.step(token_R, ours)
            torch.testing.assert_close(found_RV, expected_RV, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_whole_searches_find_what_the_searches_in_python_find(small_model: SmallModel, kind: str, width: int) -> None:
    trained = model_of(small_model, kind)
    source_BS, mask_BS = padded(sources(trained, 9))
    made = engine(trained.model)
    assert isinstance(made, Engine)
    prefix = (8, 9)
    for rules, prefixes in ((Rules(first=trained.task.first), None),  # type: ignore[attr-defined]
                            (Rules(first=trained.task.first, min_length=4), [prefix] * 9)):  # fmt: skip # type: ignore[attr-defined]
        demand = demands([3, 10, 1, 7, 9, 10, 2, 6, 8], prefixes, CPU)
        with torch.inference_mode():
            ours = made.search(Sources.of(made, source_BS, mask_BS), demand, rules, width, 4, 1.0)
            stepped = beam(made.step, made.reading(source_BS, mask_BS), demand, width, rules, 1.0)
        assert written(ours) == written(stepped)
        for a, b in zip(ours, stepped, strict=True):
            assert [each.score for each in a] == pytest.approx([each.score for each in b], abs=1e-5)
            assert [each.score for each in a] == sorted((each.score for each in a), reverse=True)


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_search_writes_what_the_model_writes(small_model: SmallModel, kind: str) -> None:
    trained = model_of(small_model, kind)
    source_BS, mask_BS = padded(sources(trained, 9))
    demand, rules = demands([10] * 9, None, CPU), Rules(first=trained.task.first)  # type: ignore[attr-defined]
    made = engine(trained.model)
    assert isinstance(made, Engine)
    with torch.inference_mode():
        expected = greedy(trained.model.step, trained.model.reading(source_BS, mask_BS), demand, rules, 1.0)
        ours = made.search(Sources.of(made, source_BS, mask_BS), demand, rules, 1, 4, 1.0)
    assert [each[0].tokens for each in ours] == [each.tokens for each in expected]


@pytest.mark.parametrize("kind", COPYING)
def test_what_copies_writes_what_the_model_writes_in_every_batch(small_model: SmallModel, kind: str) -> None:
    trained = model_of(small_model, kind)
    made = engine(trained.model)
    assert isinstance(made, Engine)
    ids = [*sources(trained, 8), (UNKNOWN, END), (END,)]  # of the last two nothing can be copied
    for width in (1, 4):
        rules = Rules(first=trained.task.first)  # type: ignore[attr-defined]
        with torch.inference_mode():
            theirs = beam(trained.model.step, trained.model.reading(*padded(ids)), demands([9] * 10, None, CPU), width,
                          rules, 1.0)  # fmt: skip
        for size in (1, 3, 10):
            ours = made.search(Sources.of_ids(made, ids), demands([9] * 10, None, CPU), rules, width, size, 1.0)
            assert written(ours) == written(theirs)
            for a, b in zip(ours, theirs, strict=True):
                logs = [log for each in b for log in each.log_probabilities]
                assert [log for each in a for log in each.log_probabilities] == pytest.approx(logs, abs=2e-5, rel=1e-4)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", COPYING)
def test_where_nothing_can_be_copied_all_is_written(small_model: SmallModel, kind: str, level: int) -> None:
    trained = model_of(small_model, kind)
    plain = copy.deepcopy(trained.model)
    assert plain.decoder is not None
    plain.decoder.copy = None
    made, without = Engine(trained.model, built(), level=level), Engine(plain, built(), level=level)
    source_BS, mask_BS = padded([(UNKNOWN, SEPARATOR, END), (UNKNOWN, 8, END), (END,)])
    first_R = torch.tensor([trained.task.first] * 3)  # type: ignore[attr-defined]
    log_RV, _ = made.step(first_R, made.reading(source_BS, mask_BS))
    alone_RV = without.step(first_R, without.reading(source_BS, mask_BS))[0].log_softmax(-1)
    torch.testing.assert_close(log_RV[[0, 2]], alone_RV[[0, 2]], atol=2e-6, rtol=1e-6)
    copied = trained.model.decoder.copy.copies[8]  # type: ignore[union-attr]
    assert (log_RV[1] > alone_RV[1] + 1e-3).nonzero().flatten().tolist() == [int(copied)]


# ── in every company ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("preset", [*KINDS, "caption", "encoder"])
def test_batch_order_and_batch_mates_change_no_bit(small_model: SmallModel, preset: str, precision: str) -> None:
    trained = model_of(small_model, preset)
    made = engine(trained.model, precision)
    assert isinstance(made, Engine)
    draw = np.random.default_rng(1)
    if preset == "caption":
        c = trained.config.encoder
        assert isinstance(c, config.ImageEncoder)
        items = [Item((), (), draw.random((c.channels, c.size, c.size), dtype=np.float32)) for _ in range(12)]
    else:
        items = [Item(ids, ()) for ids in sources(trained, 12)]
    if preset == "encoder":
        items = [Item((4, *item.source), ()) for item in items]  # something to fill
    wishes = (
        [Wish(), Wish(beam=3, n_best=3), Wish(sampling=Sampling(seed=5))] if preset != "encoder" else [Wish(n_best=3)]
    )
    for wish in wishes:
        numbers = range(len(items))
        alone = [trained.task.answer(made, [item], wish, [i])[0] for i, item in enumerate(items)]
        for size in (2, 5, 32):
            order = draw.permutation(len(items)).tolist()
            sized = Wish(**{**vars(wish), "batch": size})
            mixed = trained.task.answer(made, [items[i] for i in order], sized, [numbers[i] for i in order])
            assert mixed == [alone[i] for i in order]  # texts, scores and probabilities


def test_the_number_of_workers_changes_no_bit(small_model: SmallModel, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = small_model("transformer")
    source_BS, mask_BS = padded(sources(trained, 40))
    demand = demands([10] * 40, None, CPU)
    made = Engine(trained.model, built())
    answers = []
    for count in ("1", "4"):
        monkeypatch.setenv("OMP_NUM_THREADS", count)
        monkeypatch.setattr(engine_module, "cores", lambda count=count: int(count))
        answers.append(made.search(Sources.of(made, source_BS, mask_BS), demand, Rules(), 3, 4, 1.0))
    assert answers[0] == answers[1]


def test_a_beam_of_one_is_greedy_to_the_bit(small_model: SmallModel) -> None:
    trained = small_model("rnn-attention")
    items = [Item(ids, ()) for ids in sources(trained, 6)]
    made = engine(trained.model)
    narrow = trained.task.answer(made, items, Wish(beam=1), range(6))
    wide = trained.task.answer(made, items, Wish(beam=4, n_best=4), range(6))
    assert all(b.score >= a.score - 1e-6 for a, b in zip(narrow, wide, strict=True))


# ── whole numbers ────────────────────────────────────────────────────────────────────────────────────────────────────


def whole_product(states: np.ndarray[Any, Any], weight: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The product as int8 has it: exact sums of whole numbers, a scale for each row on both sides."""
    scale_x = (np.abs(states).max(1) / np.float32(127)).astype(np.float32)
    scale_w = (np.abs(weight).max(1) / np.float32(127)).astype(np.float32)
    x = np.rint(states * (np.float32(127) / np.abs(states).max(1))[:, None]).astype(np.int64)
    w = np.rint(weight * (np.float32(127) / np.abs(weight).max(1))[:, None]).astype(np.int64)
    return (x @ w.T).astype(np.float32) * (scale_w[None] * scale_x[:, None])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("width", [3, 16, 41, 256])
def test_int8_sums_are_those_of_whole_numbers(small_model: SmallModel, level: int, width: int) -> None:
    trained = small_model("rnn", f"decoder.width={width}", "decoder.bridge=last")
    with torch.no_grad():
        trained.model.output.bias.zero_()
    made = Engine(trained.model, built(), "int8", level)
    states = np.random.default_rng(0).normal(size=(1, 9, width)).astype(np.float32)
    ours = made.output(torch.from_numpy(states))[0].numpy()
    expected = whole_product(states[0], trained.model.output.weight.detach().numpy())
    np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-6)


def test_a_row_of_zeros_is_no_trouble_for_int8(small_model: SmallModel) -> None:
    made = Engine(small_model("rnn").model, built(), "int8")
    logits_BTV = made.output(torch.zeros(1, 2, made.draft.linears[made.draft.output][0].shape[1]))
    assert torch.isfinite(logits_BTV).all()


def test_int8_is_near_fp32(copy_model: Trained) -> None:
    texts = ["abc", "dcb", "a", "bb", "cda"] * 8
    rounded = Trained(copy_model.config, copy_model.vocabulary, copy_model.model, "int8")
    same = sum(a.text == b.text for a, b in zip(copy_model.run(texts), rounded.run(texts), strict=True))
    assert same >= 39


# ── where it ends ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["transformer", *COPYING])
def test_numbers_that_have_gone_do_not_hold_a_search_up(small_model: SmallModel, kind: str) -> None:
    trained = model_of(small_model, kind)
    with torch.no_grad():
        trained.model.output.weight.fill_(torch.nan)
    answers = trained.task.answer(engine(trained.model), [Item((8, 9, 2), ())], Wish(beam=3), [0])
    assert len(answers) == 1


@pytest.mark.parametrize("gate", [-math.inf, -1e4, 1e4, math.inf, math.nan])
def test_a_gate_may_be_as_sure_as_it_likes(small_model: SmallModel, gate: float) -> None:
    trained = model_of(small_model, "rnn-attention, copying")
    with torch.no_grad():
        trained.model.decoder.copy.gate.bias.fill_(gate)  # type: ignore[union-attr]
    items = [Item(ids, ()) for ids in [*sources(trained, 4), (UNKNOWN, END)]]
    for wish in (Wish(), Wish(beam=3), Wish(beam=3, min_length=2)):
        ours, theirs = (
            trained.task.answer(each, items, wish, range(5)) for each in (engine(trained.model), trained.model)
        )
        assert [answer.tokens for answer in ours] == [answer.tokens for answer in theirs]


def test_learned_positions_end_with_the_same_words(small_model: SmallModel) -> None:
    trained = small_model("conv")
    source_BS, mask_BS = padded([tuple([8] * 40)])
    made = engine(trained.model)
    for each in (made, trained.model):
        with pytest.raises(RegardError, match="position 40: learned positions end at"):
            each.reading(source_BS, mask_BS)


@pytest.mark.parametrize("position", ["sinusoidal", "rotary", "sinusoidal+rotary"])
def test_positions_beyond_the_table_are_computed(
    small_model: SmallModel, position: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = small_model("decoder", f"decoder.position={position}")
    source_BS, mask_BS = padded([(8, 9, 7, 8, 9), (8,)])
    whole = Engine(trained.model, built())
    monkeypatch.setattr("regard.engine.lower.NEAR", 2)
    short = Engine(trained.model, built())
    token_R = torch.tensor([8, 9])
    a_RV, _ = whole.step(token_R, whole.reading(source_BS, mask_BS))
    b_RV, _ = short.step(token_R, short.reading(source_BS, mask_BS))
    torch.testing.assert_close(a_RV, b_RV, atol=1e-6, rtol=1e-6)


def test_without_a_library_the_model_decodes(small_model: SmallModel, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = small_model("transformer")
    with_engine = trained.run(["abc", "d"])
    monkeypatch.setattr(engine_module, "library", lambda: None)
    without = Trained(trained.config, trained.vocabulary, trained.model)
    assert without.decoding is trained.model
    assert [each.text for each in without.run(["abc", "d"])] == [each.text for each in with_engine]


def test_a_part_of_one_s_own_decodes_in_torch(small_model: SmallModel) -> None:
    from regard.layers.positions import Position

    class Mine(Position):
        pass

    trained = small_model("transformer")
    trained.model.encoder.position = Mine()
    assert isinstance(engine(trained.model), Model)


def test_other_precisions_are_refused(small_model: SmallModel) -> None:
    with pytest.raises(UsageError, match="precision 'int4': expected one of fp32, int8"):
        engine(small_model("rnn").model, "int4")


def test_the_environment_bounds_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert cores() == 1


def test_a_model_that_learns_on_is_not_followed(small_model: SmallModel) -> None:
    """The weights are a copy: whoever changes the model makes a new engine."""
    trained = small_model("rnn")
    made = Engine(trained.model, built())
    states = torch.ones(1, 1, made.draft.linears[made.draft.output][0].shape[1])
    before_BTV = made.output(states)
    with torch.no_grad():
        trained.model.output.weight.mul_(2)
    assert torch.equal(made.output(states), before_BTV)


def test_a_signal_ends_a_long_search_at_once(small_model: SmallModel) -> None:
    """Without a handler in Python being run while the engine works, this would go on for minutes."""
    trained = small_model("transformer", "data.max_target=100000")
    source_BS, mask_BS = padded(sources(trained, 64))
    demand = demands([100_000] * 64, None, CPU)
    made = Engine(trained.model, built())

    def stop(*_: object) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(InterruptedError):
            made.search(Sources.of(made, source_BS, mask_BS), demand, Rules(min_length=100_000), 1, 64, 1.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# ── at the border ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("beam", [0, -1])
def test_a_beam_of_nothing_is_refused(small_model: SmallModel, beam: int) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        small_model("transformer").run(["ab"], beam=beam)


def test_tokens_that_are_none_are_refused(small_model: SmallModel) -> None:
    made = engine(small_model("transformer").model)
    assert isinstance(made, Engine)
    source_BS, mask_BS = padded([(8, 10**6, 2)])
    with pytest.raises(IndexError):
        made.reading(source_BS, mask_BS)
    source_BS, mask_BS = padded([(8, 2)])
    with pytest.raises(IndexError):
        made.search(Sources.of(made, source_BS, mask_BS), demands([3], None, CPU), Rules(never=(10**6,)), 1, 1, 1.0)


def test_a_reading_serves_for_one_step(small_model: SmallModel) -> None:
    made = engine(small_model("transformer").model)
    assert isinstance(made, Engine)
    first = made.reading(*padded([(8, 2), (9, 2)]))
    made.step(torch.tensor([8, 8]), first)
    with pytest.raises(ValueError, match="serves for one step"):
        made.step(torch.tensor([8, 8]), first)


def test_what_a_subclass_does_is_left_to_torch(small_model: SmallModel) -> None:
    class Mine(torch.nn.Linear):
        pass

    trained = small_model("transformer")
    trained.model.encoder.layers[0].feedforward.inner.__class__ = Mine
    assert isinstance(engine(trained.model), Model)
    trained = small_model("transformer")
    trained.model.encoder.layers[0].feedforward.bend = torch.tanh
    assert isinstance(engine(trained.model), Model)


def test_a_copy_head_of_one_s_own_is_left_to_torch(small_model: SmallModel) -> None:
    trained = small_model("rnn-attention", "decoder.copy=true")
    assert isinstance(engine(trained.model), Engine)
    pointer = trained.model.decoder.copy  # type: ignore[union-attr]
    pointer.score = Distance(8)
    assert engine(trained.model) is trained.model
    pointer.score = Score()
    pointer.copies = pointer.copies + len(trained.model.output.weight)
    assert engine(trained.model) is trained.model
    pointer.copies = torch.zeros(3, dtype=torch.long)
    assert engine(trained.model) is trained.model
