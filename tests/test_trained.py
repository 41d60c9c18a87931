"""A model that answers: one answer for each text, scores of a file, and a record of what it looked at."""

import math
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from regard.data import builtin
from regard.errors import DataError, MissingError, UsageError
from regard.search.write import Sampling
from regard.tasks.task import Wish
from regard.trained import Trained, columns

SmallModel = Callable[..., Trained]
WRITERS = ["attention-encoder", "conv", "decoder", "rnn", "rnn-attention", "rnn-context", "rnn-single", "transformer"]


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_has_learnt_to_copy(copy_model: Trained) -> None:
    assert copy_model("abc") == "abc"
    assert copy_model("dd", beam=4) == "dd"


def test_answers_stand_in_the_order_of_the_texts(copy_model: Trained) -> None:
    texts = ["abc", "d", "", "ba", "ccc", "", "a"]
    assert [answer.text for answer in copy_model.run(texts)] == texts
    assert [str(answer) for answer in copy_model.run(iter(texts))] == texts
    assert copy_model.run([]) == []


@pytest.mark.parametrize("preset", ["rnn", "encoder", "decoder", "transformer"])
def test_empty_text_empty_answer(small_model: SmallModel, preset: str) -> None:
    model = small_model(preset)
    assert model("") == ""
    (found,) = model.run([""])
    assert (found.text, found.tokens, found.confidence) == ("", (), 1.0)


def test_over_long_text_is_cut_with_a_warning_that_names_it(copy_model: Trained) -> None:
    with pytest.warns(UserWarning, match=r"text 2: 13 tokens, cut to 12 \(data\.max_source\)") as heard:
        long, cut = copy_model.run(["abc", "abcabcabcabca", "abcabcabcabc"])[1:]
    assert long == cut
    assert len(heard) == 1
    with pytest.warns(UserWarning, match="text 42: "):
        copy_model.run(["a", "b" * 50], first_number=40)


@pytest.mark.parametrize("preset", WRITERS)
def test_longest_and_over_long_texts_pass_through_every_preset(small_model: SmallModel, preset: str) -> None:
    model = small_model(preset, "encoder.position=learned") if preset == "transformer" else small_model(preset)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model("a" * 12)
    with pytest.warns(UserWarning, match="cut to 12"):
        assert model("a" * 13) == model("a" * 12)


def test_unknown_characters_are_answered_too(copy_model: Trained) -> None:
    for text in ("é", "\x00", "<end>", "\r", " ", "日本"):
        assert isinstance(copy_model(text), str)


def test_beam_and_batch_do_not_change_the_order(copy_model: Trained) -> None:
    texts = ["abc", "a", "dcb", "bb"]
    for wish in (Wish(batch=1), Wish(batch=3), Wish(beam=3, batch=2), Wish(beam=5, n_best=5)):
        assert [answer.text for answer in copy_model.run(texts, wish=wish)] == texts


def test_n_best_are_different_and_sorted(copy_model: Trained) -> None:
    (found,) = copy_model.run(["abc"], wish=Wish(beam=4, n_best=4))
    assert len(found.alternatives) == 4
    assert len({each.tokens for each in found.alternatives}) == 4
    scores = [each.score for each in found.alternatives]
    assert scores == sorted(scores, reverse=True)
    assert found.text == found.alternatives[0].text


def test_sampling_depends_on_seed_and_number_alone(copy_model: Trained) -> None:
    wishes = [Wish(sampling=Sampling(seed, 3.0, 0, 1.0), batch=batch) for seed, batch in ((1, 1), (1, 9), (2, 9))]
    texts = ["abc"] * 12
    one, again, other = ([answer.text for answer in copy_model.run(texts, wish=wish)] for wish in wishes)
    assert one == again
    assert one != other
    assert len(set(one)) > 1
    assert [a.text for a in copy_model.run(texts[:4], wish=wishes[0], first_number=8)] == one[8:]


def test_columns_of_a_text() -> None:
    assert columns("a\tb") == ("a", "b")
    assert columns(("a\tb", "c")) == ("a\tb", "c")
    assert columns("") == ("",)


@pytest.mark.parametrize("text", ["a\tb", ("a", "b")])
def test_wrong_number_of_columns(copy_model: Trained, text: str | tuple[str, ...]) -> None:
    with pytest.raises(DataError, match=r"text 2: expected 1 source columns .* found 2: 'a ⇥ b'"):
        copy_model.run(["a", text])


# ── scores ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_score_of_a_file(copy_model: Trained, copy_file: Path) -> None:
    found = copy_model.score(copy_file)
    assert found.metrics["exact"].value >= 95.0
    assert found.metrics["bleu"].signature
    assert found.facts["token_accuracy_forced"] - found.facts["token_accuracy_free"] == pytest.approx(
        found.facts["exposure_gap"]
    )
    assert len(found.outputs) == 84
    assert found.facts["perplexity"] == pytest.approx(math.exp(found.facts["loss"]))


def test_score_sees_what_is_wrong(copy_model: Trained, tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("abc\tabc\nabc\tcba\nab\tab\nbb\tb\n", encoding="utf-8")
    found = copy_model.score(tmp_path / "t.tsv")
    assert found.metrics["exact"].value == pytest.approx(50.0)
    assert found.outputs == ("abc", "abc", "ab", "bb")


def test_score_of_over_long_sources_cuts_as_run_does(small_model: SmallModel, tmp_path: Path) -> None:
    model = small_model("conv")  # its learned positions end where data.max_source does
    (tmp_path / "t.tsv").write_text("abc\tabc\n" + "d" * 20 + "\tdd\n", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"t\.tsv:2: 20 tokens, cut to 12"):
        found = model.score(tmp_path / "t.tsv")
    assert found.outputs[1] == model("d" * 12)


def test_score_of_a_missing_file(copy_model: Trained, tmp_path: Path) -> None:
    with pytest.raises(MissingError):
        copy_model.score(tmp_path / "none.tsv")


def test_score_of_pictures_names_file_and_line(small_model: SmallModel, tmp_path: Path) -> None:
    builtin.write("captions", 4, tmp_path / "c.tsv")
    model = small_model("caption")
    assert len(model.score(tmp_path / "c.tsv").outputs) == 4
    with open(tmp_path / "c.tsv", "a", encoding="utf-8") as file:
        file.write("none.png\ta circle\n")
    with pytest.raises(DataError, match=r"c\.tsv:6: image \"none\.png\": no such file"):
        model.score(tmp_path / "c.tsv")


# ── looking ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_record_of_cross_attention(copy_model: Trained) -> None:
    record = copy_model.look("abc")
    assert (record.text, record.output) == ("abc", "abc")
    assert [token.text for token in record.source] == ["a", "b", "c", "<end>"]
    assert [(token.start, token.end) for token in record.source] == [(0, 1), (1, 2), (2, 3), (3, 3)]
    assert [(token.text, token.start, token.end) for token in record.target] == [
        ("a", 0, 1), ("b", 1, 2), ("c", 2, 3), ("<end>", 3, 3),
    ]  # fmt: skip
    assert set(record.maps) == {"decoder.cross"}
    assert record.maps["decoder.cross"].shape == (1, 4, 4)
    alignment = record.alignment()
    assert alignment is not None
    assert alignment.shape == (4, 4)


@pytest.mark.parametrize("preset", WRITERS)
def test_maps_have_heads_targets_sources_and_rows_sum_to_one(small_model: SmallModel, preset: str) -> None:
    record = small_model(preset).look("abca")
    crossing = [name for name in record.maps if name.endswith("cross")]
    for name, found in record.maps.items():
        assert found.ndim == 3
        np.testing.assert_allclose(found.sum(-1), 1.0, atol=1e-5)
        if name in crossing:
            assert found.shape[1:] == (len(record.target), len(record.source))
    alignment = record.alignment()
    if preset in ("rnn", "rnn-context"):
        assert record.maps == {}
        assert alignment is None
    elif preset == "rnn-single":
        assert alignment is None
    else:
        assert alignment is not None
        assert alignment.shape == (len(record.target), len(record.source))


def test_maps_of_a_transformer_have_names(small_model: SmallModel) -> None:
    record = small_model("transformer").look("abca")
    names = ("encoder.{}.self", "decoder.{}.self", "decoder.{}.cross")
    assert set(record.maps) == {name.format(layer) for name in names for layer in (0, 1)}
    assert record.maps["encoder.0.self"].shape == (2, 5, 5)


def test_alignment_of_a_decoder_alone_is_its_look_back_at_the_source(small_model: SmallModel) -> None:
    record = small_model("decoder").look("abca")
    alignment = record.alignment()
    assert alignment is not None
    both = len(record.source) + len(record.target)
    assert all(found.shape[1:] == (both, both) for found in record.maps.values())
    assert [token.text for token in record.source] == ["a", "b", "c", "a"]
    assert np.all(alignment.sum(-1) <= 1.0 + 1e-5)
    assert np.all(alignment > 0)


@pytest.mark.parametrize("preset", [*WRITERS, "copy"])
def test_probabilities_multiply_to_the_confidence(small_model: SmallModel, copy_model: Trained, preset: str) -> None:
    model = copy_model if preset == "copy" else small_model(preset)
    record = model.look("abca", beam=2)
    (answer,) = model.run(["abca"], beam=2)
    assert len(record.probabilities) == len(record.target)
    written = record.probabilities if len(answer.tokens) < 12 else record.probabilities[:-1]  # cut off: no end written
    assert math.prod(written) == pytest.approx(answer.confidence, rel=1e-3)


def test_record_of_a_picture(small_model: SmallModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builtin.write("captions", 2, tmp_path / "c.tsv")
    monkeypatch.chdir(tmp_path)
    record = small_model("caption").look("c.npz#1")
    assert [token.text for token in record.source] == ["0,0", "0,1", "1,0", "1,1"]
    assert record.maps["decoder.cross"].shape == (1, len(record.target), 4)


def test_nothing_to_look_at(small_model: SmallModel) -> None:
    with pytest.raises(UsageError, match="nothing to look at in an empty text"):
        small_model("rnn").look("")
    with pytest.raises(UsageError, match="the task fill writes no target"):
        small_model("encoder").look("abc")


def test_looking_changes_no_later_answer(copy_model: Trained) -> None:
    before = copy_model.run(["abc", "dab"])
    copy_model.look("abc")
    assert copy_model.run(["abc", "dab"]) == before
