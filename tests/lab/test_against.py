"""Two models on one file: the difference with its interval, who has what right, where they differ; for every task."""

import json
from pathlib import Path

import pytest
import torch

import regard
from regard.data import builtin
from regard.errors import DataError, UsageError
from regard.lab.compare.against import Against, against, render
from regard.models.build import build
from regard.score import paired_test
from regard.trained import Trained
from regard.view.terminal import difference_text

pytestmark = pytest.mark.no_shapes

WORDS = (
    "train.steps=2",
    "train.warmup=1",
    "train.validate_examples=8",
    "train.threads=1",
    "train.tokens_per_batch=256",
)


def stranger(model: Trained, seed: int = 5) -> Trained:
    """The same config and tokens, and weights that know nothing."""
    torch.manual_seed(seed)
    made = build(model.config, model.vocabulary.source.size, model.vocabulary.target.size).eval()
    return Trained(model.config, model.vocabulary, made, name="stranger")


@pytest.fixture(scope="module")
def test(copy_model: Trained, copy_file: Path) -> Against:
    return against(copy_model, stranger(copy_model), copy_file)


def test_the_difference_is_the_paired_test_of_the_outputs(test: Against, copy_model: Trained, copy_file: Path) -> None:
    _, examples = copy_model.examples(copy_file)
    outputs = [copy_model.score(copy_file).outputs, stranger(copy_model).score(copy_file).outputs]
    for each in test.differences:
        expected = paired_test(*outputs, [[example.target or ""] for example in examples], each.first.name)
        assert each.paired == expected
        assert each.paired.difference == pytest.approx(each.first.value - each.second.value)
    assert {each.first.name for each in test.differences} >= {"exact", "chrf", "cer"}
    assert "bleu" not in {each.first.name for each in test.differences}  # it says nothing of words of three letters


def test_who_has_what_right(test: Against) -> None:
    assert test.rights is not None
    assert test.judged_by == "exact"
    r = test.rights
    assert r.both + r.first + r.second + r.neither == test.examples == 84
    exact = test.differences[0]
    assert 100 * (r.both + r.first) / 84 == pytest.approx(exact.first.value)
    assert r.first > r.second
    assert r.p_value < 0.01


def test_where_they_differ(test: Against) -> None:
    assert 1 <= len(test.shown) <= 5
    for each in test.shown:
        assert each.first != each.second
        assert each.right == (each.first == each.target, each.second == each.target)
    assert test.shown[0].right == (True, False)


def test_a_difference_without_an_interval_tells_where_it_was_seen() -> None:
    assert difference_text(0.0, None, None, 1030) == "no difference seen on 1,030 examples"
    assert difference_text(-4.0, None, None, 30) == "-4.00 (alike on 30 examples)"
    assert difference_text(-4.0, None, None, 1) == "-4.00 (on one example)"
    assert difference_text(-4.0, -5.0, 1.0, 30) == "-4.00 (-5.00 – +1.00)"


def test_as_text_and_as_json(test: Against) -> None:
    text = render(test)
    assert "84 examples" in text
    assert "McNemar" in text
    assert "✓" in text
    found = json.loads(json.dumps(test.as_dict()))
    assert found["models"] == ["model", "stranger"]
    assert found["metrics"]["exact"]["p_value"] == test.differences[0].paired.p_value
    assert set(found["right"]) == {"both", "first", "second", "neither", "p_value"}


def test_a_model_against_itself(copy_model: Trained, copy_file: Path) -> None:
    found = against(copy_model, copy_model, copy_file)
    assert all(each.paired.difference == 0 and each.paired.p_value == 1 for each in found.differences)
    text = render(found)
    assert "no difference seen on 84 examples" in text  # by the error rate
    assert "+0.00 (-4.37 – +4.37)" in text  # by exact match: Wilson's bound of none in 84
    assert found.shown == ()
    assert found.rights is not None
    assert found.rights.p_value == 1


@pytest.mark.parametrize(
    ("task", "builtin_name", "by"),
    [
        ("classify", "intents", "accuracy"),
        ("tag", "slots", "accuracy"),
        ("fill", "intents", "accuracy"),
        ("embed", "paraphrases", "recall_at_1"),
        ("extract", "questions", "exact"),
        ("caption", "captions", "exact"),
        ("generate", "story", ""),
    ],
)
def test_every_task(task: str, builtin_name: str, by: str, tmp_path: Path) -> None:
    suffix = ".txt" if builtin_name == "story" else ".tsv"
    path = builtin.write(builtin_name, 60, tmp_path / f"data{suffix}")[0]
    more = {"extract": ["data.source=['context', 'question']", "data.target=answer"], "fill": ["data.source=['1']"],
            "embed": ["tokens.source=words"]}.get(task, [])  # fmt: skip
    model = regard.train(path, task=task, settings=[*WORDS, *more])
    found = against(model, stranger(model), path)
    assert found.judged_by == by
    assert (found.rights is not None) == bool(by)
    for each in found.differences:
        assert each.paired.difference == pytest.approx(each.first.value - each.second.value, abs=1e-6)
        assert 0 < each.paired.p_value <= 1
    assert render(found)
    json.dumps(found.as_dict())


# ── what can not be compared ─────────────────────────────────────────────────────────────────────────────────────────


def test_models_of_two_tasks(copy_model: Trained, small_model: object, copy_file: Path) -> None:
    other = regard.train(copy_file, preset="encoder", settings=[*WORDS, "encoder.width=16"])
    with pytest.raises(UsageError, match=r"of the task transduce and model of fill: only models of one task"):
        against(copy_model, other, copy_file)


def test_a_file_that_one_can_not_read(copy_model: Trained, tmp_path: Path) -> None:
    forms = tmp_path / "forms.tsv"
    forms.write_text("lemma\ttags\tform\n" + "".join(f"w{i}\tV;{i % 3}\tw{i}ed\n" for i in range(20)))
    words = [*WORDS, "data.source=['lemma', 'tags']", "data.target=form", "encoder.width=16", "decoder.width=16"]
    other = regard.train(forms, settings=words)
    other.name = "forms"
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("a\tb\nc\td\n")
    with pytest.raises(DataError, match=r"forms can not read it: .*lemma"):
        against(copy_model, other, pairs)


def test_holes_in_other_places(tmp_path: Path) -> None:
    [path, *_] = builtin.write("intents", 40, tmp_path / "data.tsv")
    words = [*WORDS, "data.source=['1']"]
    models = [regard.train(path, task="fill", settings=[*words, f"tokens.source={kind}", f"tokens.target={kind}"])
              for kind in ("characters", "words")]  # fmt: skip
    with pytest.raises(UsageError, match="do not count the same places"):
        against(*models, path)
