"""The settings page: what is laid over what, what is refused and in which words, and that every preset stands."""

import re
from pathlib import Path
from typing import Any

import pytest
import tomli_w
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard import config
from regard.data.tokens import SPECIALS
from regard.errors import ConfigError, MissingError, UsageError
from regard.models.build import build

PAPERS = (
    "bahdanau2015",
    "bert",
    "cho2014",
    "gehring2017",
    "gpt2",
    "luong2015",
    "sutskever2014",
    "vaswani2017",
    "xu2015",
)

# Smallest trees of each kind of model; the refusals below spoil one of them at a time.
ALONE: config.Tree = {
    "tokens": {"shared": True},
    "encoder": {"kind": "none"},
    "decoder": {"kind": "recurrent", "context": "none", "bridge": "zero"},
}
FILL: config.Tree = {"task": "fill", "encoder": {"kind": "attention"}, "decoder": {"kind": "none"}}
CAPTION: config.Tree = {"task": "caption", "encoder": {"kind": "image"}}
BLOCKS: config.Tree = {"encoder": {"kind": "attention"}, "decoder": {"kind": "attention"}}


def tree_with(base: config.Tree, *words: str) -> config.Tree:
    for word in words:
        base = config.lay(base, config.parse_word(word))
    return base


def message_of(tree: config.Tree) -> str:
    """What a refused config says; every refusal is short and ends the command with code 2."""
    with pytest.raises(ConfigError) as caught:
        config.check_tree(tree, "x.toml")
    message = str(caught.value)
    assert message.startswith("x.toml: ")
    assert len(message.splitlines()) <= 3
    assert caught.value.exit_code == 2
    return message


def leaf_of(word: str) -> Any:
    (leaf,) = config.parse_word(word).values()
    return leaf


# ── unknown names ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("base", "word", "unknown", "nearest"),
    [
        ({}, "trian.steps=4", "trian", "train"),
        ({}, "tasc=fill", "tasc", "task"),
        ({}, "train.learning_rat=0.1", "train.learning_rat", "train.learning_rate"),
        ({}, "search.beams=4", "search.beams", "search.beam"),
        ({}, "encoder.widht=4", "encoder.widht", "encoder.width"),
        ({}, "decoder.bridg=last", "decoder.bridg", "decoder.bridge"),
        (BLOCKS, "encoder.head=4", "encoder.head", "encoder.heads"),
        (BLOCKS, "decoder.norm_frist=true", "decoder.norm_frist", "decoder.norm_first"),
        (CAPTION, "encoder.pach=4", "encoder.pach", "encoder.patch"),
        ({"encoder": {"kind": "convolutional"}}, "encoder.kernal=3", "encoder.kernal", "encoder.kernel"),
    ],
)
def test_unknown_setting_names_the_nearest(base: config.Tree, word: str, unknown: str, nearest: str) -> None:
    assert message_of(tree_with(base, word)) == f"x.toml: unknown setting {unknown} (did you mean {nearest}?)"


def test_setting_of_another_kind_is_unknown() -> None:
    assert "unknown setting encoder.kernel" in message_of({"encoder": {"kind": "attention", "kernel": 3}})


def test_far_name_gets_no_guess() -> None:
    assert message_of({"xyzzy": 1}) == "x.toml: unknown setting xyzzy"


@pytest.mark.parametrize(("side", "found", "nearest"), [("encoder", "atention", "attention"),
                                                        ("decoder", "recurent", "recurrent")])  # fmt: skip
def test_unknown_kind_lists_the_kinds(side: str, found: str, nearest: str) -> None:
    message = message_of({side: {"kind": found}})
    assert f"{side}.kind: {found!r} is not one of none, recurrent, convolutional, attention" in message
    assert f"(did you mean {nearest}?)" in message
    assert ("image" in message) == (side == "encoder")


def test_unknown_preset() -> None:
    with pytest.raises(ConfigError, match=r"unknown preset 'vaswani' \(did you mean vaswani2017\?\)"):
        config.resolve("vaswani")
    with pytest.raises(ConfigError, match="regard presets lists them"):
        config.preset_text("../config")


def test_many_problems_are_summed_up_in_three_lines() -> None:
    lines = message_of(tree_with({}, "trian=1", "tasc=1", "serch=1", "embeding=1")).splitlines()
    assert len(lines) == 3
    assert lines[2] == "… and 2 more"


# ── wrong values ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("encoder.layers=two", "encoder.layers: found 'two'; input should be a valid integer"),
        ("encoder.layers=2.0", "encoder.layers: found 2.0; input should be a valid integer"),
        ("encoder.layers=true", "encoder.layers: found True; input should be a valid integer"),
        ("encoder.layers=0", "encoder.layers: found 0; input should be greater than or equal to 1"),
        ("encoder.layers=-1", "encoder.layers: found -1;"),
        ("encoder.width=1000000000000", "encoder.width: found 1000000000000; input should be less than or equal"),
        ("encoder.dropout=1.0", "encoder.dropout: found 1.0; input should be less than 1"),
        ("decoder.dropout=1.5", "decoder.dropout: found 1.5; input should be less than 1"),
        ("embedding.dropout=-0.1", "embedding.dropout: found -0.1; input should be greater than or equal to 0"),
        ("decoder.dropout=nan", "decoder.dropout: found nan;"),
        ("train.learning_rate=-0.1", "train.learning_rate: found -0.1; input should be greater than 0"),
        ("train.learning_rate=0.0", "train.learning_rate: found 0.0; input should be greater than 0"),
        ("train.learning_rate=nan", "train.learning_rate: found nan;"),
        ("train.learning_rate=inf", "train.learning_rate: found inf; input should be a finite number"),
        ("train.learning_rate=fast", "train.learning_rate: found 'fast'; input should be a valid number"),
        ("train.clip=nan", "train.clip: found nan;"),
        ("train.beta2=1.0", "train.beta2: found 1.0; input should be less than 1"),
        ("train.steps=0", "train.steps: found 0;"),
        ("train.forcing=1.1", "train.forcing: found 1.1; input should be less than or equal to 1"),
        ("train.seed=-1", "train.seed: found -1;"),
        ("search.beam=0", "search.beam: found 0;"),
        ("search.length_penalty=-1.0", "search.length_penalty: found -1.0;"),
        ("data.skip_bad=1", "data.skip_bad: found 1; input should be a valid boolean"),
        ("data.source=4.5", "data.source: found 4.5;"),
        ("train=fast", "train: found 'fast';"),
    ],
)
def test_wrong_value_says_where_what_and_what_was_expected(word: str, expected: str) -> None:
    assert message_of(tree_with({}, word)).startswith(f"x.toml: {expected}")


@pytest.mark.parametrize(
    ("word", "nearest", "expected"),
    [
        ("task=transduse", "transduce", "transduce, generate, fill, classify, tag, embed, extract, caption"),
        ("tokens.source=word", "words", "characters, jamo, bytes, words, bpe, unigram, spelled, sentences"),
        ("decoder.score=aditive", "additive", "dot, scaled, bilinear, reduced-rank, additive, distance, mean"),
        ("encoder.cell=ltsm", "lstm", "elman, gru, lstm"),
        ("train.schedule=inverse_sqrt", "inverse-sqrt", "inverse-sqrt, cosine, constant"),
    ],
)
def test_wrong_word_names_the_nearest_and_lists_all(word: str, nearest: str, expected: str) -> None:
    name, _, found = word.partition("=")
    message = message_of(tree_with({}, word))
    assert message == f"x.toml: {name}: found {found!r} (did you mean {nearest}?); expected one of {expected}"


def test_a_word_that_is_near_to_none_is_told_what_there_is() -> None:
    message = message_of(tree_with({}, "tokens.target=letters"))
    assert message == "x.toml: tokens.target: found 'letters'; expected one of characters, bytes, words, bpe, unigram"


# ── contradictions ───────────────────────────────────────────────────────────────────────────────────────────────────

REFUSALS: list[tuple[config.Tree, list[str], str, str]] = [
    # what is spoiled, how, where it is refused, a piece of the reason
    ({}, ["tokens.shared=true", "tokens.source=words"], "tokens.shared", "can not hold words and characters"),
    ({}, ["encoder.width=129"], "encoder.width", "129 can not be divided between two directions"),
    ({}, ["encoder.position=rotary"], "encoder.position", "a recurrent network has none"),
    ({}, ["decoder.position=alibi"], "decoder.position", "a recurrent network has none"),
    ({}, ["decoder.heads=3"], "decoder.heads", "width 128 can not be divided by 3 heads"),
    ({}, ["encoder.kind=convolutional", "encoder.kernel=4"], "encoder.kernel", "an even kernel (4) has no middle"),
    ({}, ["encoder.kind=convolutional", "encoder.position=relative"], "encoder.position", "a convolutional network"),
    ({}, ["decoder.kind=convolutional", "decoder.position=rotary"], "decoder.position", "a convolutional network"),
    ({}, ["decoder.kind=convolutional", "decoder.heads=7"], "decoder.heads", "divided by 7 heads"),
    (BLOCKS, ["encoder.heads=3"], "encoder.heads", "width 128 can not be divided by 3 heads"),
    (BLOCKS, ["decoder.width=130"], "decoder.heads", "width 130 can not be divided by 4 heads"),
    (BLOCKS, ["encoder.position=rotary", "encoder.score=additive"], "encoder.position", "with the score additive"),
    (BLOCKS, ["decoder.position=rotary", "decoder.score=mean"], "decoder.position", "with the score mean"),
    (BLOCKS, ["decoder.position=rotary", "decoder.width=12"], "decoder.position", "a head of width 3 is odd"),
    (CAPTION, ["encoder.size=30"], "encoder.patch", "size 30 can not be divided into places of 4 pixels"),
    (CAPTION, ["encoder.size=33", "encoder.patch=3"], "encoder.patch", "3 is not a power of two"),
    (CAPTION, ["encoder.position=relative"], "encoder.position", "a picture has none"),
    (CAPTION, ["encoder.form=patches", "encoder.heads=5"], "encoder.heads", "divided by 5 heads"),
    (CAPTION, ["encoder.heads=2"], "encoder.heads", "a grid has no blocks of attention"),
    (CAPTION, ["decoder.context=none", "decoder.bridge=zero"], "decoder.bridge", "nothing of the source reaches"),
    ({}, ["decoder.context=none", "decoder.heads=4"], "decoder.heads", "there is no attention"),
    ({}, ["tokens.shared=true", "tokens.target_size=9"], "tokens.target_size", "one vocabulary"),
    ({}, ["fill.mask=0.9", "fill.random=0.2"], "fill.random", "are more than all"),
    ({}, ["train.average=1"], "train.average", "say 0 or at least 2"),
    ({}, ["train.steps=10", "train.warmup=10"], "train.warmup", "10 steps of warm-up leave nothing of 10 steps"),
    (FILL, ["encoder.kind=none"], "decoder.kind", "both are none"),
    ({}, ["task=caption"], "encoder.kind", "captions need encoder.kind=image"),
    (CAPTION, ["task=transduce"], "encoder.kind", "can not read from the encoder image"),
    (FILL, ["decoder.kind=recurrent"], "decoder.kind", "it needs an encoder and no decoder"),
    (ALONE, ["task=fill"], "decoder.kind", "it needs an encoder and no decoder"),
    (FILL, ["task=transduce"], "decoder.kind", "writes a target: it needs a decoder"),
    (ALONE, ["tokens.shared=false"], "tokens.shared", "it needs tokens.shared=true"),
    (ALONE, ["decoder.context=fixed"], "decoder.context", "fixed reads an encoder, and there is none"),
    (ALONE, ["decoder.bridge=last"], "decoder.bridge", "last comes from an encoder, and there is none"),
    (ALONE, ["decoder.bridge=copy"], "decoder.bridge", "copy comes from an encoder, and there is none"),
    (BLOCKS, ["decoder.kind=recurrent", "decoder.bridge=copy"], "decoder.bridge", "this one is attention"),
    ({}, ["decoder.bridge=copy", "decoder.cell=lstm"], "decoder.bridge", "the same cell on both sides; found gru and"),
    ({}, ["decoder.bridge=copy", "decoder.layers=2"], "decoder.bridge", "the same layers on both sides; found 1 and 2"),
    ({}, ["decoder.bridge=copy", "encoder.width=64"], "decoder.bridge", "the same width on both sides; found 64 and"),
    ({}, ["decoder.projections=false", "encoder.width=64"], "decoder.projections", "one width; found 64 and 128"),
    ({}, ["decoder.kind=convolutional", "decoder.projections=false", "encoder.width=64"],
     "decoder.projections", "one width; found 64 and 128"),
    (BLOCKS, ["decoder.projections=false", "encoder.width=64"], "decoder.projections", "found 64 and 128"),
    (ALONE, ["embedding.tie_source=true"], "embedding.tie_source", "nothing to tie"),
    (CAPTION, ["embedding.tie_source=true"], "embedding.tie_source", "nothing to tie"),
    (FILL, ["embedding.tie_source=true"], "embedding.tie_source", "nothing to tie"),
    ({}, ["embedding.tie_source=true"], "embedding.tie_source", "one table needs one vocabulary"),
    ({}, ["embedding.tie_source=true", "tokens.shared=true", "encoder.embedding=32"],
     "embedding.tie_source", "one table has one width; found 32 and 128"),
    ({}, ["embedding.tie_output=true", "decoder.embedding=32"],
     "embedding.tie_output", "found embeddings of 32 and states of 128"),
    (FILL, ["encoder.kind=recurrent", "encoder.embedding=32", "embedding.tie_output=true"],
     "embedding.tie_output", "found embeddings of 32 and states of 128"),
    (FILL, ["train.forcing=0.5"], "train.forcing", "there is no token to feed back"),
    (FILL, ["train.forcing_end=0.5"], "train.forcing", "there is no token to feed back"),
    ({}, ["train.agreement=1.0", "train.forcing=0.5"], "train.agreement", "with train.forcing below 1"),
    ({}, ["train.agreement=1.0", "train.forcing_end=0.0"], "train.agreement", "both are fed the same tokens"),
    ({}, ["decoder.context=none", "decoder.copy=true"], "decoder.copy", "with decoder.context=none nothing looks at"),
    ({}, ["decoder.context=fixed", "decoder.copy=true"], "decoder.copy", "with decoder.context=fixed nothing looks at"),
    (ALONE, ["decoder.copy=true"], "decoder.copy", "nothing looks at the tokens of the source"),
    (ALONE, ["decoder.kind=convolutional", "decoder.copy=true"], "decoder.copy", "looks at no token of its source"),
    (ALONE, ["decoder.kind=attention", "task=generate", "decoder.copy=true"], "decoder.copy", "no tokens of a source"),
    (ALONE, ["decoder.kind=attention", "task=classify", "decoder.copy=true"], "decoder.copy", "writes no target"),
    (CAPTION, ["decoder.copy=true"], "decoder.copy", "the task caption has no tokens of a source"),
    (FILL, ["decoder.copy=true"], "decoder.copy", "without a decoder no target is written"),
    ({}, ["tokens.source=words", "decoder.copy=true"], "decoder.copy", "words of the source are no characters"),
    ({}, ["tokens.source=bpe", "tokens.target=words", "decoder.copy=true"], "decoder.copy", "bpe of the source are no"),
    ({}, ["tokens.source=spelled", "tokens.target=words", "decoder.copy=true"], "decoder.copy", "without their cap"),
    ({}, ["tokens.source=sentences", "tokens.target=words", "decoder.copy=true"], "decoder.copy", "are no words"),
    (FILL, ["tokens.source=sentences"], "tokens.source", "the task fill wants smaller tokens"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("base", "words", "where", "why"), REFUSALS, ids=[f"{where} {' '.join(words)}" for _, words, where, _ in REFUSALS]
)
def test_contradiction_is_refused_with_its_reason(base: config.Tree, words: list[str], where: str, why: str) -> None:
    message = message_of(tree_with(base, *words))
    assert message.startswith(f"x.toml: {where}: ")
    assert why in message


@pytest.mark.parametrize("base", [{}, ALONE, FILL, CAPTION, BLOCKS])
def test_what_the_refusals_spoil_is_sound_before(base: config.Tree) -> None:
    config.check_tree(base, "x.toml")


@pytest.mark.parametrize(
    ("base", "words"),
    [
        ({}, ["encoder.width=129", "encoder.directions=forward"]),
        ({}, ["decoder.bridge=copy"]),
        ({}, ["decoder.projections=false"]),
        ({}, ["train.steps=10", "train.warmup=10", "train.schedule=inverse-sqrt"]),
        (BLOCKS, ["encoder.position=rotary", "decoder.position=alibi"]),
        (CAPTION, ["encoder.form=patches", "encoder.size=33", "encoder.patch=3"]),
        (CAPTION, ["decoder.kind=attention"]),
        (FILL, ["embedding.tie_output=true"]),
        ({}, ["decoder.copy=true"]),
        ({}, ["decoder.copy=true", "tokens.source=bytes"]),
        ({}, ["decoder.kind=convolutional", "decoder.copy=true", "tokens.source=bpe", "tokens.target=unigram"]),
        (BLOCKS, ["decoder.copy=true", "tokens.source=words", "tokens.target=words"]),
        (ALONE, ["decoder.kind=attention", "decoder.copy=true"]),
        (ALONE, ["decoder.copy=false"]),
    ],
)
def test_what_makes_sense_is_not_refused(base: config.Tree, words: list[str]) -> None:
    config.check_tree(tree_with(base, *words), "x.toml")


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_broken_toml_is_shown_by_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text("[train]\nsteps = \n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"x\.toml: not TOML: .*line 2, column 9"):
        config.resolve("vaswani2017", file=path)


@pytest.mark.parametrize("text", ["[train]\nsteps = [1", '[train]\nmetric = "exact', "[train"])
def test_toml_that_breaks_off_is_shown_by_line_and_column(text: str) -> None:
    with pytest.raises(ConfigError, match=r"line \d, column \d"):
        config.from_toml(text, "x.toml")


def test_toml_nested_too_deep_is_refused() -> None:
    with pytest.raises(ConfigError):
        config.from_toml("about = " + "[" * 5000, "x.toml")


def test_config_file_that_is_missing_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no such config file"):
        config.resolve("vaswani2017", file=tmp_path / "none.toml")
    with pytest.raises(MissingError):
        config.resolve("vaswani2017", file=tmp_path)
    path = tmp_path / "latin.toml"
    path.write_bytes(b'about = "\xe9"\n')
    with pytest.raises(ConfigError, match="can not be read as UTF-8"):
        config.resolve("vaswani2017", file=path)


def test_error_in_a_file_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[train]\nstep = 3\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"mine\.toml: unknown setting train\.step \(did you mean train\.steps\?\)"):
        config.resolve("vaswani2017", file=path)


# ── words of the command line ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("word", "leaf"),
    [
        ("a=4", 4),
        ("a=-4", -4),
        ("a=4e-3", 4e-3),
        ("a=true", True),
        ("a=false", False),
        ("a=lstm", "lstm"),
        ('a="4"', "4"),
        ("a=inverse-sqrt", "inverse-sqrt"),
        ("a=x=y", "x=y"),
        ("a=", ""),
        ("a=[1, 2]", [1, 2]),
        ('a=["lemma", "tags"]', ["lemma", "tags"]),
        (" a =4", 4),
    ],
)
def test_word_becomes_a_value(word: str, leaf: object) -> None:
    found = leaf_of(word)
    assert found == leaf
    assert type(found) is type(leaf)


def test_word_with_dots_becomes_a_tree() -> None:
    assert config.parse_word("encoder.layers=4") == {"encoder": {"layers": 4}}


@pytest.mark.parametrize("word", ["encoder.layers", "=4", " =4", ""])
def test_word_without_name_or_sign_is_refused(word: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"--set {word!r}: expected name=value")):
        config.parse_word(word)


def test_words_reach_the_config() -> None:
    words = ["decoder.layers=3", "train.learning_rate=1", "embedding.scale=false", 'data.source=["lemma","tags"]']
    found = config.resolve("vaswani2017", words=words)
    assert isinstance(found.decoder, config.AttentionDecoder)
    assert found.decoder.layers == 3
    assert found.train.learning_rate == 1.0
    assert found.embedding.scale is False
    assert found.data.source == ("lemma", "tags")


def test_one_name_is_a_list_of_one() -> None:
    assert config.resolve("vaswani2017", words=["data.source=lemma"]).data.source == ("lemma",)


NAMES = [f"{section}.{name}" for section, field in config.Config.model_fields.items()
         for name in getattr(field.annotation, "model_fields", {"kind": 0, "width": 0})]  # fmt: skip
LINE = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=12)


@settings(max_examples=100, deadline=None, database=None, derandomize=True)
@given(name=st.sampled_from(NAMES) | LINE, value=LINE | st.integers().map(str) | st.floats().map(str))
def test_any_word_is_taken_or_refused_in_few_lines(name: str, value: str) -> None:
    message = ""
    try:
        config.resolve("vaswani2017", words=[f"{name}={value}"])
    except ConfigError as error:
        message = str(error)
    assert message.count("\n") <= 2


def test_name_of_many_lines_is_refused_in_few() -> None:
    with pytest.raises(ConfigError) as caught:
        config.resolve("vaswani2017", words=["a\nb\nc\nd=1"])
    assert str(caught.value).count("\n") <= 2


def test_word_does_not_rename_the_preset() -> None:
    with pytest.raises(ConfigError):
        config.resolve("vaswani2017", words=["preset=gehring2017"])


# ── layers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_preset_then_file_then_words(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text("[train]\nsteps = 7\nwarmup = 8\n", encoding="utf-8")
    found = config.resolve("vaswani2017", path, ["train.steps=9", "train.patience=2", "train.patience=3"]).train
    assert (found.steps, found.warmup, found.beta2, found.patience) == (9, 8, 0.98, 3)
    assert found.seed == config.Train().seed


def test_file_may_name_its_preset_and_the_command_line_overrules_it(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text('preset = "luong2015"\n[search]\nbeam = 2\n', encoding="utf-8")
    named, overruled = config.resolve(file=path), config.resolve("gehring2017", path)
    assert (named.preset, named.decoder.kind, named.search.beam) == ("luong2015", "recurrent", 2)
    assert (overruled.preset, overruled.decoder.kind, overruled.search.beam) == ("gehring2017", "convolutional", 2)


def test_new_kind_keeps_what_both_know_and_drops_the_rest() -> None:
    found = config.resolve("vaswani2017", words=["encoder.kind=recurrent", "encoder.position=none"]).encoder
    assert isinstance(found, config.RecurrentEncoder)
    assert (found.layers, found.width, found.dropout) == (6, 512, 0.1)
    assert found.cell == "gru"


def test_same_kind_again_drops_nothing() -> None:
    assert config.resolve("vaswani2017", words=["encoder.kind=attention"]) == config.resolve("vaswani2017")


def test_laying_changes_neither_layer() -> None:
    below, above = {"train": {"steps": 1}}, {"train": {"warmup": 2}}
    assert config.lay(below, above) == {"train": {"steps": 1, "warmup": 2}}
    assert (below, above) == ({"train": {"steps": 1}}, {"train": {"warmup": 2}})


def test_side_without_a_kind_is_recurrent() -> None:
    assert config.check_tree({"encoder": {"layers": 2}}, "x.toml").encoder == config.RecurrentEncoder(layers=2)


def test_config_does_not_change_after_checking() -> None:
    with pytest.raises(ValueError, match="frozen"):
        config.Config().train.steps = 3


# ── presets ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", config.presets())
def test_preset_resolves_and_comes_back_from_its_own_toml(name: str) -> None:
    found = config.resolve(name)
    assert found.preset == name
    assert found.about
    assert "\n" not in found.about
    assert config.from_toml(tomli_w.dumps(config.to_tree(found)), name) == found


def test_every_paper_is_there_and_named() -> None:
    assert set(PAPERS) <= set(config.presets())
    for name in PAPERS:
        text = config.preset_text(name)
        assert text.startswith("about = ")
        assert re.search(r": [A-Z].* 20\d\d, [A-Z]", text.splitlines()[0]), name


@pytest.mark.parametrize("name", PAPERS)
def test_measured_parameters_of_a_paper_are_true(name: str) -> None:
    """The count in the preset's comment, to the digits it is written with."""
    found = config.resolve(name)
    source = found.tokens.size + len(SPECIALS)
    target = (found.tokens.target_size or found.tokens.size) + len(SPECIALS)
    with torch.device("meta"):
        model = build(found, source, target)
    count = sum(weight.numel() for weight in model.parameters())
    written = re.search(r"^# measured: ([\d.]+) M parameters", config.preset_text(name), re.MULTILINE)
    assert written is not None
    assert f"{count / 1e6:.3g}" == written[1]


def test_sutskever_has_the_published_vocabularies_and_weights() -> None:
    """160 000 and 80 000 words, 384 M parameters, 64 M of them recurrent (Sutskever et al. 2014, sections 3.1, 3.4)."""
    found = config.resolve("sutskever2014")
    assert (found.tokens.size, found.tokens.target_size) == (160_000, 80_000)
    with torch.device("meta"):
        model = build(found, 160_000, 80_000)
    count = sum(weight.numel() for weight in model.parameters())
    recurrent = sum(weight.numel() for name, weight in model.named_parameters() if name.startswith(("enc", "dec")))
    assert round(count / 1e6) == 384
    assert round(recurrent / 1e6) == 64


def test_vaswani_peaks_where_the_paper_does() -> None:
    found = config.resolve("vaswani2017").train
    assert found.learning_rate == pytest.approx(512**-0.5 * 4000**-0.5, rel=1e-8)


def test_refusal_is_an_error_of_usage() -> None:
    assert issubclass(ConfigError, UsageError)
    assert ConfigError("").exit_code == 2


def test_columns_are_said_as_on_the_command_line() -> None:
    assert config.resolve(words=["data.source=lemma,tags", "data.target=3"]).data.source == ("lemma", "tags")
    assert config.resolve(words=["data.source=1", "data.target=3"]).data.target == "3"
    assert config.resolve(words=["data.source=1"]).data.source == ("1",)


def test_none_takes_a_setting_back() -> None:
    assert config.resolve("rnn", words=["encoder.embedding=none", "train.patience=none"]).encoder.embedding is None
    assert config.resolve("rnn", words=["encoder.position=none"]).encoder.position == "none"


def test_what_reads_backwards_has_read_nothing_at_the_end() -> None:
    with pytest.raises(ConfigError, match=r"head\.pool: class is the state at the end"):
        config.resolve("rnn", None, ["task=classify", "head.pool=class", "encoder.directions=backward"])
