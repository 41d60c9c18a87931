"""What anatomy counts is held against sums done by hand, against torch's own counter, and against the textbook."""

import json
import warnings
from functools import cache

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from regard import config
from regard.errors import UsageError
from regard.lab import anatomy as lab
from regard.lab import formulas
from regard.lab.anatomy import Anatomy, Count, anatomy, as_dict, render
from regard.lab.count import MOVES, PRODUCTS, Chain, Operations, apart
from regard.lab.formulas import Sizes
from regard.lab.paths import Paths
from regard.layers.attention import Attention, Sight
from regard.layers.recurrent import Cell, Gru, Lstm
from regard.layers.scores import Score
from regard.models.build import build, outline

ALONE = ["encoder.kind=none", "tokens.shared=true"]
RECURRENT = ["encoder.width=16", "decoder.width=16"]
pytestmark = pytest.mark.no_shapes  # a mode that sees every call, under a profiler that does too, takes minutes
KINDS = {
    "rnn-single": [*ALONE, "decoder.width=16", "decoder.context=none", "decoder.bridge=zero"],
    "rnn": [*RECURRENT, "decoder.context=none"],
    "rnn-context": [*RECURRENT, "decoder.context=fixed", "decoder.bridge=mean"],
    "rnn-attention": [*RECURRENT, "encoder.layers=2", "decoder.layers=2", "decoder.context=input", "decoder.cell=lstm"],
    "conv": ["encoder.kind=convolutional", "decoder.kind=convolutional", *RECURRENT, "encoder.layers=2"],
    "attention-encoder": ["encoder.kind=attention", *RECURRENT],
    "transformer": ["encoder.kind=attention", "decoder.kind=attention", *RECURRENT, "decoder.layers=2"],
    "decoder": [*ALONE, "decoder.kind=attention", "decoder.width=16"],
    "rnn-attention, copying": ["encoder.width=10", "decoder.width=16", "decoder.copy=true"],
    "decoder, copying": [*ALONE, "decoder.kind=attention", "decoder.width=16", "decoder.copy=true"],
    "encoder": ["task=fill", "decoder.kind=none", "encoder.kind=attention", "encoder.width=16"],
    "caption": ["task=caption", "encoder.kind=image", "encoder.size=16", *RECURRENT],
}
SCORES = ["dot", "scaled", "bilinear", "reduced-rank", "additive", "distance", "mean"]


def settings(*words: str) -> config.Config:
    return config.check_tree(tree(words), "test")


def tree(words: tuple[str, ...]) -> config.Tree:
    found: config.Tree = {}
    for word in words:
        found = config.lay(found, config.parse_word(word))
    return found


def value(lines: list[Count], what: str) -> int | None:
    return next(line.value for line in lines if line.what == what)


def steps(a: Anatomy, what: str) -> int | None:
    return value(a.path, f"{what}: steps")


def training_chain(a: Anatomy, unit: str = "operations") -> int:
    found = value(a.chain, f"training pass, source to output: {unit}")
    assert found is not None
    return found


@cache
def counted_kind(kind: str) -> Anatomy:
    return anatomy(settings(*KINDS[kind]), length=6, vocabulary=11)


# ── every kind ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_counted_in_full(kind: str) -> None:
    a = counted_kind(kind)
    assert all([a.parameters, a.operations, a.chain, a.path])
    assert (a.length, a.width) == (6, 16)
    plain = json.loads(json.dumps(as_dict(a)))
    assert plain["parameters"][0]["value"] == a.parameters[0].value
    text = render(a)
    assert all(line.what in text for part in (a.parameters, a.operations, a.chain, a.path) for line in part)


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_add_up_to_those_of_the_model(kind: str) -> None:
    model = build(settings(*KINDS[kind]), 11, 11)
    assert value(counted_kind(kind).parameters, "total") == sum(weight.numel() for weight in model.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_operations_are_those_that_torch_counts(kind: str) -> None:
    c = settings(*KINDS[kind])
    model = build(c, 11, 11).eval()
    sizes = Sizes(formulas.places(c, 6), 6, 11)
    counter = FlopCounterMode(display=False)
    with apart(), counter:
        source, target = lab.inputs(c, sizes, 1, "cpu")
        memory = model.encode(source)
        if model.decoder is None:
            model.output(memory.states_BSM)
        else:
            model.decode(target, memory, model.start(memory))
    assert value(counted_kind(kind).operations, "total") == counter.get_total_flops()


@pytest.mark.parametrize("kind", KINDS)
def test_what_differs_from_its_formula_is_explained(kind: str) -> None:
    a = counted_kind(kind)
    for line in [*a.parameters, *a.operations, *a.chain, *a.path]:
        if line.value != line.formula_value and line.formula:
            assert line.note, line
        assert line.note.count("\n") == 0


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.endswith("copying")])
def test_a_copy_head_is_counted_as_its_formula_says(kind: str) -> None:
    a = counted_kind(kind)
    found = [line for line in [*a.parameters, *a.operations] if line.what.startswith("decoder copy")]
    assert len(found) == 3
    assert all(line.value == line.formula_value for line in found)
    assert steps(a, "first source position to last output") == (2 if kind.startswith("rnn") else 1)
    assert steps(a, "last target token to first output") is None


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("projections", ["true", "false"])
def test_formulas_know_every_score(score: str, projections: str) -> None:
    words = [f"{side}.{name}" for side in ("encoder", "decoder") for name in
             ("kind=attention", "width=16", f"score={score}", "rank=3", f"projections={projections}")]  # fmt: skip
    a = anatomy(settings(*words), length=3, vocabulary=5)
    compared = [line for line in a.parameters + a.operations if line.formula and not line.what.startswith("one layer")]
    assert [line.value for line in compared] == [line.formula_value for line in compared]


@pytest.mark.parametrize("words", [
    ["encoder.kind=attention", "encoder.position=relative", "encoder.norm=rms", "encoder.gated=true",
     "decoder.kind=convolutional", "decoder.position=learned"],
    ["encoder.kind=convolutional", "encoder.position=sinusoidal", "decoder.context=feed", "decoder.cell=elman"],
    ["encoder.directions=backward", "encoder.embedding=10", "decoder.embedding=6", "decoder.cell=lstm",
     "encoder.cell=lstm", "decoder.bridge=copy", "decoder.context=none"],
    ["task=caption", "encoder.kind=image", "encoder.form=patches", "encoder.size=16", "encoder.position=learned",
     "decoder.kind=attention", "decoder.position=rotary", "decoder.norm_first=false", "embedding.tie_output=true"],
    ["encoder.kind=attention", "decoder.kind=attention", "encoder.position=alibi", "tokens.shared=true",
     "embedding.tie_source=true", "embedding.tie_output=true", "decoder.activation=gelu"],
])  # fmt: skip
def test_formulas_know_mixtures(words: list[str]) -> None:
    a = anatomy(settings("encoder.width=16", "decoder.width=16", *words), length=5, vocabulary=7)
    exact = [line for line in a.parameters + a.operations if line.formula and not line.what.startswith("one layer")]
    assert [line.value for line in exact] == [line.formula_value for line in exact]


def test_tied_weights_are_counted_once() -> None:
    words = [*KINDS["transformer"], "tokens.shared=true"]
    apart_ = anatomy(settings(*words), length=2, vocabulary=11)
    tied = anatomy(settings(*words, "embedding.tie_source=true", "embedding.tie_output=true"), 2, 11)
    first, second = value(apart_.parameters, "total"), value(tied.parameters, "total")
    assert first is not None
    assert second is not None
    assert first - second == 2 * 11 * 16
    assert value(tied.parameters, "output") == 11
    assert value(tied.operations, "output") == 2 * 2 * 16 * 11


# ── operations by hand ───────────────────────────────────────────────────────────────────────────────────────────────


def counted(module: nn.Module, *given: torch.Tensor) -> tuple[Operations, Chain]:
    seen = Operations(module)
    with seen.watching(module):
        made = module(seen.follow(given[0]), *given[1:])
    return seen, seen.chain(made)


def test_a_linear_layer_costs_two_for_each_weight_and_row() -> None:
    seen, chain = counted(nn.Linear(5, 7), torch.ones(3, 5))
    assert sum(seen.products.values()) == 2 * 3 * 5 * 7
    assert seen.elementwise == 0
    assert chain == Chain(1, 1)


def test_a_convolution_costs_two_for_each_weight_and_output() -> None:
    seen, _ = counted(nn.Conv1d(4, 6, 3), torch.ones(2, 4, 10))
    assert sum(seen.products.values()) == 2 * 2 * 8 * (4 * 6 * 3)


def test_an_attention_costs_four_projections_and_two_products() -> None:
    class Alone(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.decoder = nn.ModuleDict({"self_attention": Attention(8, 8, 2, Score())})

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            attention = self.decoder["self_attention"]
            assert isinstance(attention, Attention)
            found: torch.Tensor = attention(x, attention.hold(x), Sight())
            return found

    seen, chain = counted(Alone(), torch.ones(1, 5, 8))
    assert seen.products["decoder self-attention: projections"] == 4 * 2 * 5 * 8 * 8
    assert seen.products["decoder self-attention: comparing and mixing"] == 2 * 2 * 5 * 5 * 8
    assert chain.products == 4  # project, compare, mix, project


@pytest.mark.parametrize(("cell", "gates", "deep"), [(Cell, 1, 3), (Gru, 3, 9), (Lstm, 4, 7)])
def test_a_loop_is_one_product_after_the_other(cell: type[Cell], gates: int, deep: int) -> None:
    made = cell(6, 4)
    for length in (3, 4):
        seen = Operations(made)
        with seen.watching(made):
            out, _ = made.run(seen.follow(torch.randn(1, length, 6)), made.empty(1), None)
        assert sum(seen.products.values()) == 2 * length * gates * 4 * (6 + 4)
        assert seen.chain(out).products == length
        # The first step needs no product of a state, so it is no shorter than the input's.
        assert deep * (length - 1) < seen.chain(out).operations <= deep * length + 1


def test_the_kinds_of_calls_do_not_overlap() -> None:
    assert not MOVES & PRODUCTS


# ── chain ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def chain_at(words: list[str], length: int, unit: str = "products") -> int:
    found: int = getattr(passed(words, length).whole, unit)
    return found


def passed(words: list[str], length: int) -> lab.Pass:
    c = settings(*words)
    return lab.run(c, outline(c, 11, 11).eval(), Sizes(formulas.places(c, length), length, 11))


def test_the_chain_of_a_loop_grows_with_the_length_by_the_same_for_each_token() -> None:
    lengths = [chain_at(KINDS["rnn"], length) for length in (3, 5, 7)]
    assert lengths[1] - lengths[0] == lengths[2] - lengths[1] == 2 * 2  # one product in each of the two loops


@pytest.mark.parametrize("kind", ["transformer", "conv", "decoder", "encoder"])
def test_without_a_loop_the_chain_does_not_grow(kind: str) -> None:
    assert chain_at(KINDS[kind], 3, "operations") == chain_at(KINDS[kind], 7, "operations")


def test_generating_is_a_chain_for_all() -> None:
    for kind in ("rnn", "transformer", "conv", "decoder"):
        short, long = (passed(KINDS[kind], length).generation for length in (3, 5))
        assert short is not None
        assert long is not None
        assert long.products - short.products >= 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_twin_has_the_chain_of_the_model(kind: str) -> None:
    """Generation is counted on a narrow twin with real numbers: its chains must be those of the model itself."""
    c = settings(*KINDS[kind])
    sizes = Sizes(formulas.places(c, 5), 5, 11)
    found = []
    for built, device in ((outline(c, 11, 11).eval(), "meta"), (lab.twin(c, 5), "cpu")):
        seen = Operations(built)
        with seen.watching(built):
            source, target = lab.inputs(c, sizes, 1, device)
            memory = built.encode(seen.follow(source))
            states = memory.states_BSM
            if built.decoder is not None:
                states, _ = built.decode(seen.follow(target), memory, built.start(memory))
        found.append(seen.chain(states))
    assert found[0] == found[1]
    assert found[0].operations > 0


# ── paths ────────────────────────────────────────────────────────────────────────────────────────────────────────────

ACROSS = "first source position to last encoder state"
SOURCE = "first source position to last output"
TARGET = "first target token to last output"


def test_a_path_through_a_loop_is_as_long_as_the_sequence() -> None:
    for length in (5, 9):
        a = anatomy(settings(*KINDS["rnn"], "encoder.directions=forward"), length, 11)
        assert steps(a, ACROSS) == length
        assert steps(a, SOURCE) == 2 * length
        assert steps(a, TARGET) == length


def test_two_directions_bring_both_ends_near() -> None:
    a = counted_kind("rnn")
    assert steps(a, SOURCE) == steps(a, "last source position to last output") == 1 + 6
    assert steps(a, "middle source position to last output") == 3 + 6


def test_attention_takes_one_step_at_any_length() -> None:
    for length in (5, 9):
        a = anatomy(settings(*KINDS["transformer"]), length, 11)
        assert [steps(a, what) for what in (ACROSS, SOURCE, TARGET)] == [1, 1, 1]


@pytest.mark.parametrize(("kernel", "across", "along"), [(3, 12, 6), (5, 6, 3), (7, 4, 2)])
def test_a_wider_kernel_takes_fewer_steps(kernel: int, across: int, along: int) -> None:
    layers = [f"{side}.{name}" for side in ("encoder", "decoder") for name in ("layers=12", f"kernel={kernel}")]
    a = anatomy(settings(*KINDS["conv"], *layers), 13, 11)
    assert (steps(a, ACROSS), steps(a, TARGET)) == (across, along)
    assert 1 < across < 13


def test_too_few_convolutions_leave_no_path() -> None:
    a = anatomy(settings(*KINDS["conv"]), 13, 11)
    line = next(one for one in a.path if one.what == f"{ACROSS}: steps")
    assert (line.value, line.formula_value) == (None, 12)
    assert "no path" in line.note
    assert "∞" in render(a)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "encoder"])
def test_the_future_is_not_felt(kind: str) -> None:
    a = counted_kind(kind)
    assert steps(a, "last target token to first output") is None
    assert value(a.path, "last target token to first output: operations") is None
    assert (steps(a, TARGET) or 0) > 0 or kind == "conv"


@pytest.mark.parametrize("kind", KINDS)
def test_where_there_is_a_path_a_change_is_felt(kind: str) -> None:
    """The shadows against the model itself: what a changed first token changes is what they say it reaches."""
    c = settings(*KINDS[kind])
    model = lab.twin(c, 6)
    source = lab.inputs(c, Sizes(formulas.places(c, 6), 6, 11), 1, "cpu")[0].clone()
    at = torch.zeros_like(source, dtype=torch.bool)
    lab.set_mark(c, at[0], 2)
    other = torch.where(at, source + 1, source)
    paths = Paths(model, steps=False)
    with apart(), paths:
        states = model.encode(paths.mark(source, at)).states_BSM
        reached = [paths.least(state) is not None for state in states[0].unbind(0)]
    with torch.no_grad():
        changed = (model.encode(source).states_BSM != model.encode(other).states_BSM)[0].any(-1).tolist()
    assert reached == changed
    assert any(reached)


def test_a_weight_of_zero_is_no_path() -> None:
    mix = nn.Linear(3, 2, bias=False)
    with torch.no_grad():
        mix.weight.copy_(torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
    paths = Paths(mix, steps=False)
    with apart(), paths:
        made = F.linear(paths.mark(torch.ones(1, 3), torch.tensor([[True, False, False]])), mix.weight)
        found = [paths.least(made[0, 0]), paths.least(made[0, 1])]
    assert found == [1, None]


# ── lengths, sizes and words ─────────────────────────────────────────────────────────────────────────────────────────


def test_learned_positions_may_be_shorter_than_the_length() -> None:
    words = [*KINDS["conv"], "data.max_source=4", "data.max_target=4"]
    a = anatomy(settings(*words), 9, 11)
    assert value(a.parameters, "encoder positions") == 5 * 16  # those of the config, not those that were needed


@pytest.mark.parametrize("task", ["tag", "embed"])
def test_a_length_beyond_the_usual_where_one_limit_bounds_both_sides(task: str) -> None:
    c = config.resolve("conv", None, [f"task={task}"])
    assert lab.with_room(c, 2000).data.max_source == 2000


def test_a_length_of_one_is_enough() -> None:
    for kind in ("rnn", "transformer", "conv", "decoder", "encoder"):
        a = anatomy(settings(*KINDS[kind]), 1, 3)
        assert training_chain(a) > 0
        assert all(line.value == line.formula_value or line.note for line in a.path if line.formula)


@pytest.mark.parametrize(("length", "vocabulary", "word"), [(0, 5, "length is 0"), (5, -1, "vocabulary is -1")])
def test_nothing_is_not_counted(length: int, vocabulary: int, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        anatomy(settings(), length, vocabulary)


def test_a_large_model_takes_no_memory() -> None:
    wide = [f"{side}.{name}" for side in ("encoder", "decoder") for name in ("kind=attention", "width=8192")]
    a = anatomy(settings(*wide), 3, 1_000_000)
    total = value(a.parameters, "total")
    assert total is not None
    assert total > 24e9  # more than regard would build


def test_counting_leaves_torch_as_it_was() -> None:
    before = torch.get_num_threads(), torch.backends.mkldnn.enabled, torch.random.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        anatomy(settings(*KINDS["rnn"]), 2, 5)
    assert (torch.get_num_threads(), torch.backends.mkldnn.enabled) == before[:2]
    assert torch.equal(torch.random.get_rng_state(), before[2])
