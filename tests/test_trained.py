"""A model that answers: one answer for each text, scores of a file, and a record of what it looked at."""

import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard import config, trained
from regard.data import builtin
from regard.data.read import Example
from regard.data.tokens import END, KINDS, Encoding
from regard.data.vocabulary import learn
from regard.errors import DataError, MissingError, UsageError
from regard.models.build import build
from regard.score.calibration import Calibration, Quality
from regard.search.write import Sampling
from regard.tasks.task import Answer, Item, Wish
from regard.tasks.transduce import Transduce
from regard.trained import Trained, columns
from tests.view.small import made

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


PIECES = st.sampled_from(
    ["ab", "abc", "é", "日本", "12", "..", " ", " ", "  ", "\u00a0", "\u2003", "\n", "[mask]", "\x1f"]
)
LONG = st.lists(PIECES, max_size=60).map("".join)


@pytest.fixture(scope="module")
def readers() -> dict[str, Trained]:
    """Small models of every kind of tokens and of the tasks that read in ways of their own; two columns each."""
    found = {}
    for task, kind in [*product(["transduce"], KINDS), *product(["fill", "extract"], ["characters", "words", "bpe"])]:
        words = [f"task={task}", f"tokens.source={kind}", "data.max_source=9", *(
            ["data.source=1,2", "data.target=3"] if task == "extract" else [])]  # fmt: skip
        preset = "rnn-attention" if task == "transduce" else "encoder"
        widths = [f"{side}.width=16" for side in (("encoder", "decoder") if task == "transduce" else ("encoder",))]
        c = config.resolve(preset, None, [*words, *widths])
        examples = [Example(("ab abc  ab é 12", "abc .. ab"), None if task == "fill" else "abc", 1)] * 3
        vocabulary = learn(examples, c, [False, False])
        made = build(c, vocabulary.source.size, vocabulary.target.size)
        found[f"{task} {kind}"] = Trained(c, vocabulary, made.eval())
    return found


@pytest.mark.filterwarnings("ignore:.*cut to 9")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LONG, LONG)
def test_of_a_long_text_as_much_is_encoded_as_is_read(
    readers: dict[str, Trained], monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    """The first tokens of a text are those of its beginning, wherever that is cut."""
    monkeypatch.setattr(trained, "SHORT", 1)
    monkeypatch.setattr(trained, "PROBABLE", 1)
    for name, model in readers.items():
        found, whole = model.item((first, second)), model.fitting(model.whole((first, second)))
        assert found.source == whole.source, name
        if found.passage is not None and whole.passage is not None:
            assert whole.passage.text.startswith(found.passage.text), name
            assert whole.passage.spans[:9] == found.passage.spans[:9], name


@pytest.mark.parametrize("kind", KINDS)
def test_a_megabyte_is_not_encoded_for_a_few_tokens(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, stop = (
        made("classify", "encoder", f"tokens.source={kind}", "data.max_source=20"),
        "." * (kind == "sentences"),
    )
    seen: list[int] = []
    read = type(model.task).encoded

    def watched(task: Any, columns: Any) -> Encoding:
        seen.append(sum(map(len, columns)))
        return read(task, columns)

    monkeypatch.setattr(type(model.task), "encoded", watched)
    with pytest.warns(UserWarning, match=r"text 1: more than 20 tokens, cut to 20 \(data\.max_source\)$"):
        (long,) = model.run([f"ab cd{stop} dc " * 100_000])
    assert max(seen) < 5_000
    with pytest.warns(UserWarning, match=r"text 1: [0-9]+ tokens, cut to 20"):
        assert model.run([f"ab cd{stop} dc " * 30]) == [long]


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


def test_score_tells_that_sources_hold_what_was_never_learnt(copy_model: Trained, tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("жук\tжук\nдом\tдом\n", encoding="utf-8")
    with pytest.warns(UserWarning, match="2 of 2 sources hold what the model never learnt"):
        copy_model.score(tmp_path / "x.tsv")


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
def test_probabilities_multiply_to_the_answers(small_model: SmallModel, copy_model: Trained, preset: str) -> None:
    model = copy_model if preset == "copy" else small_model(preset)
    record = model.look("abca", beam=2)
    (answer,) = model.run(["abca"], beam=2)
    assert len(record.probabilities) == len(record.target)
    assert math.prod(record.probabilities) == pytest.approx(answer.probability, rel=1e-3, abs=0.0)
    assert min(record.probabilities) == pytest.approx(answer.lowest, rel=1e-3)


def test_record_of_a_picture(small_model: SmallModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builtin.write("captions", 2, tmp_path / "c.tsv")
    monkeypatch.chdir(tmp_path)
    record = small_model("caption").look("c.npz#1")
    assert [token.text for token in record.source] == ["0,0", "0,1", "1,0", "1,1"]
    assert record.maps["decoder.cross"].shape == (1, len(record.target), 4)


def test_nothing_to_look_at(small_model: SmallModel) -> None:
    with pytest.raises(UsageError, match="nothing to look at in an empty text"):
        small_model("rnn").look("")


def test_looking_changes_no_later_answer(copy_model: Trained) -> None:
    before = copy_model.run(["abc", "dab"])
    copy_model.look("abc")
    assert copy_model.run(["abc", "dab"]) == before


# ── likelihood ───────────────────────────────────────────────────────────────────────────────────────────────────────


def step_by_step(model: Trained, text: str, target: str) -> float:
    """The log probability of a target, one token after the other, through the model's own step."""
    assert isinstance(model.task, Transduce)
    ids = (*model.vocabulary.target.encode(target).ids, END)
    source, mask_BS = model.task.sources([model.item(text)])
    total = 0.0
    with torch.inference_mode():
        reading = model.model.reading(source, mask_BS)
        for token, following in zip((model.task.first, *ids), ids, strict=False):
            logits, reading = model.model.step(torch.tensor([token]), reading)
            total += float(logits[0].log_softmax(-1)[following])
    return total


@pytest.mark.parametrize("preset", WRITERS)
def test_likelihood_is_what_the_steps_multiply_to(small_model: SmallModel, preset: str) -> None:
    model = small_model(preset)
    texts, targets = ["abc", "d", "abca"], ["a b", "d c b a", ""]
    found = model.likelihood(texts, targets)
    assert [answer.text for answer in found] == targets
    for answer, text, target in zip(found, texts, targets, strict=True):
        assert answer.probability == pytest.approx(math.exp(step_by_step(model, text, target)), rel=1e-4)


def test_likelihood_of_its_own_answer_is_its_probability(copy_model: Trained) -> None:
    texts = ["abc", "d", "ba", "ccc"]
    answers = copy_model.run(texts)
    rated = copy_model.likelihood(texts, [answer.text for answer in answers])
    for answer, other in zip(answers, rated, strict=True):
        assert other.tokens == answer.tokens
        assert other.probability == pytest.approx(answer.probability, rel=1e-4)
        assert other.score == pytest.approx(answer.score, rel=1e-4)
    (wrong,) = copy_model.likelihood(["abc"], ["cba"])
    assert wrong.probability < rated[0].probability


def test_likelihood_of_what_writes_no_target(small_model: SmallModel) -> None:
    with pytest.raises(UsageError, match="the task fill writes no target that could be rated"):
        small_model("encoder").likelihood(["abc"], ["abc"])


# ── what once went wrong ─────────────────────────────────────────────────────────────────────────────────────────────


def test_one_text_where_a_list_belongs(copy_model: Trained) -> None:
    with pytest.raises(UsageError, match=r"run takes a list of texts; for one text say model\(text\)"):
        copy_model.run("abc")


def test_score_of_over_long_targets_is_a_warning(small_model: SmallModel, tmp_path: Path) -> None:
    """The learned positions of this decoder end where data.max_target does."""
    (tmp_path / "t.tsv").write_text("abc\tabc\nd\t" + "d" * 20 + "\n", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"t\.tsv:2: a target of 20 tokens, more than data\.max_target=12") as heard:
        found = small_model("conv").score(tmp_path / "t.tsv")
    assert len(heard) == 1
    assert len(found.outputs) == 2
    assert math.isfinite(found.facts["loss"])


def test_score_leaves_bad_lines_out_where_asked(copy_model: Trained, tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("abc\tabc\nalone\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"t\.tsv:2: expected 2 columns"):
        copy_model.score(tmp_path / "t.tsv")
    with pytest.warns(UserWarning, match="1 of 2 lines can not be used"):
        assert copy_model.score(tmp_path / "t.tsv", skip_bad=True).outputs == ("abc",)


# ── streams ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Counted:
    """Stands before the task's own `answer` and counts what it is asked."""

    def __init__(self, model: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
        self.honest = model.task.answer
        self.asked: list[int] = []
        monkeypatch.setattr(model.task, "answer", self)

    def __call__(self, model: object, items: list[Item], wish: Wish, numbers: list[int]) -> list[Answer]:
        self.asked.append(len(items))
        return self.honest(model, items, wish, numbers)  # type: ignore[arg-type]


def told(answers: Iterable[Answer]) -> list[tuple[str, float]]:
    """What answers have in common, whoever shared their batch."""
    return [(answer.text, pytest.approx(answer.score, rel=1e-4)) for answer in answers]


def test_a_stream_is_a_run_that_does_not_wait(copy_model: Trained) -> None:
    texts = ["abc", "d", "", "ba", "ccc", "", "a", "abc"]
    assert told(copy_model.stream(iter(texts), beam=2)) == told(copy_model.run(texts, beam=2))
    assert told(copy_model.stream([texts[:3], texts[3:]])) == told(copy_model.run(texts))
    assert list(copy_model.stream([])) == []
    with pytest.raises(UsageError, match="stream takes texts"):
        next(copy_model.stream("abc"))


def test_a_stream_without_end_is_read_no_further_than_needed(small_model: SmallModel) -> None:
    """The first answer needs the first text alone; later ones need a group at a time."""
    model, taken = small_model("rnn"), 0

    def forever() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield "abcd"[taken % 4] * (1 + taken % 3)

    coming = model.stream(forever(), wish=Wish(batch=2))
    for number in range(1, 200):
        assert isinstance(next(coming), Answer)
        assert taken <= 1 if number == 1 else taken <= number + 16 * 2


def test_equal_texts_are_searched_for_once(small_model: SmallModel, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model("rnn")
    counted = Counted(model, monkeypatch)
    texts = ["abc", "d", "abc", "", "abc", "d"]
    found = model.run(texts)
    assert counted.asked == [2]
    assert found[0] == found[2] == found[4] != found[3]
    assert told(model.stream(texts * 20)) == told(found * 20)
    assert sum(counted.asked[1:]) == 2


def test_draws_are_never_shared(small_model: SmallModel, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model("rnn")
    counted = Counted(model, monkeypatch)
    wish = Wish(sampling=Sampling(seed=1))
    drawn = list(model.stream(["abc"] * 30, wish=wish))
    assert sum(counted.asked) == 30
    assert len({answer.text for answer in drawn}) > 1
    assert told(drawn) == told(model.run(["abc"] * 30, wish=wish))


def test_a_stream_forgets_and_asks_again(small_model: SmallModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trained, "REMEMBERED", 60)
    model = small_model("rnn")
    counted = Counted(model, monkeypatch)
    list(model.stream(["a", "b", "c", "d", "ab", "bc", "cd", "a"], wish=Wish(batch=1)))
    assert sum(counted.asked) == 8


def test_an_over_long_text_is_named_each_time(copy_model: Trained) -> None:
    with pytest.warns(UserWarning, match="cut to 12") as heard:
        list(copy_model.stream(["a" * 20] * 3))
    assert [str(each.message).split(":")[0] for each in heard] == ["text 1", "text 2", "text 3"]


# ── how sure ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_training_teaches_how_sure_to_be(copy_model: Trained) -> None:
    assert copy_model.calibration is not None
    assert copy_model.calibration.examples == 84
    (answer,) = copy_model.run(["abc"], wish=Wish(beam=3, n_best=3))
    assert 0.5 < answer.confidence < 1.0
    assert answer.confidence != answer.probability
    assert 0.0 < answer.probability <= answer.lowest <= 1.0
    assert answer.alternatives[0].confidence == answer.confidence > answer.alternatives[1].confidence


def test_saved_and_loaded_is_as_sure(copy_model: Trained, tmp_path: Path) -> None:
    copy_model.save(tmp_path / "m")
    again = Trained.load(tmp_path / "m")
    assert again.calibration == copy_model.calibration
    assert again.run(["abc", "d"]) == copy_model.run(["abc", "d"])


def test_a_folder_without_a_calibration_gives_raw_probabilities(copy_model: Trained, tmp_path: Path) -> None:
    """Also where the file of an older save is left beside it: the manifest does not list it."""
    copy_model.save(tmp_path / "m")
    raw = Trained(copy_model.config, copy_model.vocabulary, copy_model.model)
    raw.save(tmp_path / "m")
    assert (tmp_path / "m" / "calibration.json").exists()
    found = Trained.load(tmp_path / "m")
    assert found.calibration is None
    (answer,) = found.run(["abc"])
    assert answer.confidence == answer.probability


def test_what_is_drawn_has_its_raw_probability(copy_model: Trained) -> None:
    for answer in copy_model.run(["abc", "dd"], wish=Wish(sampling=Sampling())):
        assert answer.confidence == answer.probability


def test_filled_holes_have_theirs(small_model: SmallModel) -> None:
    (answer,) = small_model("encoder").run(["a[mask]c[mask]"], wish=Wish(n_best=2))
    assert answer.confidence == answer.probability == pytest.approx(math.exp(answer.score))
    assert answer.probability < answer.lowest < 1.0


def test_alternatives_share_what_the_first_leaves(small_model: SmallModel) -> None:
    """Only one of several answers is right, so that their confidences are at most 1 together."""
    model = small_model("rnn-attention")
    model.calibration = Calibration(2.0, 0.1, 0.0, 0.0, 100, 90, Quality(0.1, 0.1), Quality(0.1, 0.1))
    others = tuple(Answer(f"other {chance}", 0.0, chance, probability=chance) for chance in (0.2, 0.1, 0.05))
    first = Answer("first", 0.0, 0.6, probability=0.6)
    found = model.judged(replace(first, alternatives=(first, *others)))
    sure = [each.confidence for each in found.alternatives]
    assert sure[0] == found.confidence == pytest.approx(0.886, abs=0.01)
    assert sure[1:] == pytest.approx([(1 - sure[0]) * chance / 0.4 for chance in (0.2, 0.1, 0.05)])
    assert sum(sure) < 1.0  # 0.05 is left for what was not listed
    certain = replace(first, probability=1.0, alternatives=(replace(first, probability=1.0), *others[:1]))
    assert sum(each.confidence for each in model.judged(certain).alternatives) <= 1.0 + 1e-9
    alone = model.judged(replace(first, probability=1.0, alternatives=(replace(first, probability=1.0),)))
    assert len(alone.alternatives) == 1


def test_scores_tell_whether_confidence_holds(copy_model: Trained, copy_file: Path, small_model: SmallModel) -> None:
    found = copy_model.score(copy_file)
    assert 0.0 <= found.facts["brier"] < 0.2
    assert 0.0 <= found.facts["calibration_error"] < 0.2


# ── alignments ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("preset", WRITERS)
def test_alignment_is_what_a_look_sees_whoever_shares_the_batch(small_model: SmallModel, preset: str) -> None:
    model = small_model(preset)
    answers = model.run(["abca", "d", "bb"], wish=Wish(align=True, batch=3))
    alone = [model.run([text], wish=Wish(align=True))[0] for text in ("abca", "d", "bb")]
    assert [each.alignment for each in answers] == [each.alignment for each in alone]
    seen = model.look("abca", beam=1).alignment()
    found = answers[0].alignment
    assert (found is None) == (seen is None)
    if found is not None and seen is not None:
        assert np.allclose(found, seen[:-1], atol=1e-4)
        assert len(found) == len(model.spelled(answers[0]))
        assert {len(row) for row in found} == {len(model.spelled_source("abca"))}
    assert model.run(["abca"])[0].alignment is None


def test_alignment_of_what_looks_at_nothing(small_model: SmallModel) -> None:
    assert small_model("encoder").run(["a[mask]c"], wish=Wish(align=True))[0].alignment is None
    assert small_model("rnn-attention").run([""], wish=Wish(align=True))[0].alignment is None


# ── wishes that can not be met ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"beam": 0}, "beam=0: expected a whole number, at least 1"),
        ({"beam": -1}, "beam=-1"),
        ({"beam": 2.5}, "beam=2.5"),
        ({"n_best": 0}, "n_best=0"),
        ({"batch": 0}, "batch=0"),
        ({"max_length": 0}, "max_length=0"),
        ({"length_penalty": math.nan}, "length_penalty=nan: expected a number from 0 to 10"),
        ({"choices": "2018"}, "choices: expected a tuple of texts, found '2018'"),
        ({"banned": ["a"]}, "banned: expected a tuple of texts"),
    ],
)
def test_a_wish_that_makes_no_sense_is_refused(wish: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        Wish(**wish)


@pytest.mark.parametrize("draw", [{"temperature": 0.0}, {"temperature": math.inf}, {"top_k": -1}, {"top_p": 1.5}])
def test_a_draw_that_makes_no_sense_is_refused(draw: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="expected"):
        Sampling(**draw)


def test_a_beam_of_nothing_and_a_beam_beside_a_wish_are_refused(copy_model: Trained) -> None:
    with pytest.raises(UsageError, match="beam=0"):
        copy_model.run(["abc"], beam=0)
    with pytest.raises(UsageError, match="a wish, which has its own beam"):
        copy_model.run(["abc"], beam=5, wish=Wish())


@pytest.mark.parametrize("text", [5, None, b"abc", ("a", 5)])
def test_what_is_no_text_is_refused(copy_model: Trained, text: Any) -> None:
    with pytest.raises(UsageError, match="a text is a string"):
        copy_model.run([text])


def test_answers_follow_weights_that_change(small_model: Callable[..., Trained]) -> None:
    model = small_model("rnn-attention")
    before = model.run(["abc", "d"])
    with torch.no_grad():
        for weight in model.model.parameters():
            weight.mul_(-1.5)
    changed = model.run(["abc", "d"])
    assert changed != before
    assert changed == Trained(model.config, model.vocabulary, model.model).run(["abc", "d"])


# ── pictures in a stream ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_picture_that_changes_between_lines_is_looked_at_again(
    small_model: SmallModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small_model("caption")
    counted = Counted(model, monkeypatch)
    monkeypatch.chdir(tmp_path)
    white, black = (np.full((1, 32, 32, 3), value, np.uint8) for value in (255, 0))
    texts = {"white.npz": white, "p.npz": white, "again.npz": black}

    def coming() -> Iterator[str]:
        for name, pixels in [*texts.items(), ("p.npz", black)]:
            np.savez(tmp_path / name, images=pixels)
            yield f"{name}#0"

    found = list(model.stream(coming(), wish=Wish(batch=1)))
    assert [answer.probability for answer in found] == [found[0].probability] * 2 + [found[2].probability] * 2
    assert found[0].probability != found[2].probability
    assert sum(counted.asked) == 2


def test_in_training_answers_are_the_same_and_training_goes_on(
    small_model: Callable[..., Trained], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the model itself decodes, for want of an engine."""
    monkeypatch.setattr(trained, "engine", lambda model, precision: model)
    model = small_model("transformer", "encoder.dropout=0.5", "decoder.dropout=0.5")

    def told() -> list[Any]:
        (answer,), (rated,) = model.run(["abca"]), model.likelihood(["abca"], ["a b"])
        return [answer.probability, rated.probability, *model.embed(["abca"])[0].tolist()]

    before = told()
    model.model.train()
    assert told() == before
    assert model.model.training
