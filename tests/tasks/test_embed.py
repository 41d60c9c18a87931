"""Vectors of texts: pairs stay pairs, equal partners are no rivals, and any body can be asked."""

import json
import math
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard import config
from regard.data.batch import Batch
from regard.data.read import Example, read
from regard.data.tokens import CLASS, PAD
from regard.data.vocabulary import learn
from regard.errors import ConfigError, DataError, UsageError
from regard.models.build import build
from regard.tasks.embed import Embed
from regard.tasks.task import Wish
from regard.trained import Trained

SMALL = {
    "rnn": ["encoder.width=16", "encoder.embedding=16"],
    "conv": ["encoder.width=16", "encoder.layers=1", "encoder.dropout=0.0"],
    "transformer": ["encoder.width=16", "encoder.heads=2", "encoder.layers=1", "encoder.dropout=0.0"],
    "decoder": ["decoder.width=16", "decoder.heads=2", "decoder.layers=1", "decoder.dropout=0.0"],
    "rnn-single": ["decoder.width=16", "decoder.embedding=16"],
}
PAIRS = [("abc", "cba"), ("ab", "ba"), ("abcd", "dcba"), ("dd", "d")]


def made(preset: str = "transformer", *words: str, is_tags: tuple[bool, ...] = (False,)) -> Trained:
    c = config.resolve(preset, None, ["task=embed", *SMALL[preset], *words])
    vocabulary = learn([Example(("abcdefgh",) * len(is_tags), "xyz", 1)], c, is_tags)
    return Trained(c, vocabulary, build(c, vocabulary.source.size, vocabulary.target.size, seed=1).eval())


def embed(model: Trained) -> Embed:
    assert isinstance(model.task, Embed)
    return model.task


def batch(model: Trained, pairs: list[tuple[str, str]]) -> Batch:
    items = [model.task.encode(Example((source,), target, 1), ".") for source, target in pairs]
    return model.task.batch(items, range(len(pairs)), 0)


# ── learning ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_vocabulary_serves_both_sides() -> None:
    model = made()
    assert model.vocabulary.shared
    assert model.task.encode(Example(("xyz",), "xyz", 1), ".") == replace(
        model.item("xyz"), target=model.item("xyz").source
    )


def by_hand(model: Trained, pairs: list[tuple[str, str]], rivals: list[list[int]]) -> float:
    sources, targets = (model.embed(list(side)) for side in zip(*pairs, strict=True))
    cosines = sources.astype(np.float64) @ targets.T.astype(np.float64) / model.config.head.temperature
    total = 0.0
    for own, others in enumerate(rivals):
        for row in (cosines, cosines.T):
            total += math.log(sum(math.exp(row[own][each] - row[own][own]) for each in (own, *others))) / 2
    return total


@pytest.mark.parametrize("preset", SMALL)
def test_the_loss_is_that_of_the_equation(preset: str) -> None:
    model = made(preset, "head.temperature=0.5")
    loss = model.task.loss(model.model, batch(model, PAIRS), 1.0, 0)
    rivals = [[each for each in range(4) if each != own] for own in range(4)]
    assert (loss.count, float(loss.total.detach())) == (4, pytest.approx(by_hand(model, PAIRS, rivals), rel=1e-4))


def test_the_same_target_or_source_is_no_rival() -> None:
    model = made("transformer", "head.temperature=0.5")
    pairs = [("abc", "x"), ("ab", "x"), ("ab", "y")]
    loss = model.task.loss(model.model, batch(model, pairs), 1.0, 0)
    assert float(loss.total.detach()) == pytest.approx(by_hand(model, pairs, [[2], [], [0]]), rel=1e-4)


def test_pairs_stay_pairs_where_a_batch_is_cut() -> None:
    model = made()
    whole = batch(model, PAIRS)
    for start in (0, 2):
        part, fresh = whole.part(start, start + 2), batch(model, PAIRS[start : start + 2])
        losses = [float(model.task.loss(model.model, each, 1.0, 0).total.detach()) for each in (part, fresh)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_a_pair_alone_and_idle_rows_teach_nothing_but_have_a_gradient() -> None:
    model = made()
    for each, count in ((batch(model, PAIRS[:1]), 1), (batch(model, PAIRS).idle(), 0)):
        assert (each.label_BT == PAD).all() == (count == 0)
        loss = model.task.loss(model.model.train(), each, 1.0, 0)
        assert (loss.count, float(loss.total.detach())) == (count, pytest.approx(0.0, abs=1e-6))
        loss.total.backward()
        gradients = [weight.grad for weight in model.model.parameters()]
        assert all(each is not None and torch.isfinite(each).all() for each in gradients)


@pytest.mark.parametrize("tokens", ["characters", "spelled"])
@pytest.mark.parametrize("preset", SMALL)
def test_idle_rows_can_be_read_with_every_body_and_change_no_other(preset: str, tokens: str) -> None:
    model = made(preset, f"tokens.source={tokens}")
    whole = batch(model, PAIRS)
    loss = model.task.loss(model.model, whole.idle(), 1.0, 0)
    assert (loss.count, float(loss.total.detach())) == (0, 0.0)
    loss.total.backward()
    assert all(weight.grad is None or torch.isfinite(weight.grad).all() for weight in model.model.parameters())
    label_BT = whole.label_BT.clone()
    label_BT[2:] = PAD
    half = model.task.loss(model.model, replace(whole, label_BT=label_BT), 1.0, 0)
    alone = model.task.loss(model.model, batch(model, PAIRS[:2]), 1.0, 0)
    assert (half.count, float(half.total.detach())) == (2, pytest.approx(float(alone.total.detach()), rel=1e-4))


@pytest.mark.parametrize("word", ["head.crf=true", "train.label_smoothing=0.1", "embedding.tie_output=true"])
def test_settings_that_do_nothing_are_refused(word: str) -> None:
    with pytest.raises(ConfigError, match=r"embed"):
        made("transformer", word)


# ── lengths ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.no_shapes
@pytest.mark.parametrize("pool", ["mean", "class"])
def test_both_sides_may_have_as_many_tokens_as_there_are_places(pool: str, tmp_path: Path) -> None:
    """Learned positions end at data.max_source and the end; of a longer text the end is kept."""
    path = tmp_path / "pairs.tsv"
    path.write_text("abcd\tdcba\nabc\tcba\nab\tba\nabcde\ta\na\tabcde\n" * 4, encoding="utf-8")
    settings = ["task=embed", *SMALL["conv"], "encoder.position=learned", "data.max_source=4", f"head.pool={pool}",
                "train.steps=2", "train.validate_steps=1"]  # fmt: skip
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = regard.train(path, valid=path, out=tmp_path / "model", preset="conv", settings=settings)
        model.score(path)
    told = {str(each.message) for each in heard}
    assert f"{path}:4: 5 tokens, cut to 4 (data.max_source)" in told
    assert f"{path}:5: the target: 5 tokens, cut to 4 (data.max_source)" in told
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "8 examples left out: longer than data.max_source=4 tokens" in card
    item = model.read_item(Example(("a",), "abcde", 5), read(str(path), model.task.columns()))
    assert item.target == model.item("abcd").source


def test_what_bounds_nothing_is_refused_and_not_taken_from_a_preset() -> None:
    with pytest.raises(ConfigError, match=r"data\.max_target: both sides are read by the same body: data\.max_source"):
        made("transformer", "data.max_target=9")
    c = config.resolve("luong2015", None, ["task=embed"])
    assert (c.data.max_source, c.data.max_target, c.limits.max_target) == (50, 256, 51)
    c = config.resolve("gpt2", None, ["task=embed"])
    assert c.places == c.data.max_source + 1  # a decoder alone that reads has places for what it reads


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("preset", SMALL)
@pytest.mark.parametrize("pool", ["mean", "max", "class", "attention"])
def test_vectors_have_length_one_and_no_mates(preset: str, pool: str) -> None:
    model = made(preset, f"head.pool={pool}", "head.width=5")
    texts = ["abc", "a", "hgfedcba" * 4]
    vectors = model.embed(texts)
    assert (vectors.shape, vectors.dtype) == ((3, 5), np.float32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1.0] * 3, abs=1e-5)
    assert all(np.array_equal(model.embed([text])[0], vector) for text, vector in zip(texts, vectors, strict=True))
    assert (model.item("abc").source[-1] == CLASS) == (pool == "class")


def test_run_writes_a_list_of_numbers() -> None:
    model = made()
    answers = model.run(["abc", ""])
    assert json.loads(answers[0].text) == pytest.approx(model.embed(["abc"])[0].tolist(), rel=1e-5)
    assert answers[1].text == ""
    with pytest.raises(UsageError, match="one vector"):
        model.run(["abc"], wish=Wish(n_best=2))
    with pytest.raises(UsageError, match="one vector"):
        model.run(["abc"], wish=Wish(prefix="a"))


def test_an_empty_text_has_no_direction_and_wrong_calls_are_told() -> None:
    model = made()
    assert not model.embed(["", "a"])[0].any()
    assert model.embed([]).shape == (0, 16)
    with pytest.raises(UsageError, match=r"model\.embed\(\[text\]\)"):
        model.embed("abc")
    with pytest.raises(UsageError, match="batch=0"):
        model.embed(["a"], batch=0)


def test_several_source_columns_and_a_target_alone() -> None:
    model = made(is_tags=(False, False))
    assert model.embed(["ab\tcd", "xyz"]).shape == (2, 16)
    with pytest.raises(DataError, match="expected 2 source columns"):
        model.embed(["a\tb\tc"])


@pytest.mark.parametrize("preset", ["rnn", "rnn-attention", "conv", "transformer", "decoder", "rnn-single", "encoder"])
def test_every_body_that_reads_text_can_be_asked(preset: str) -> None:
    c = config.resolve(preset)
    vocabulary = learn([Example(("abcd",), None if c.task == "fill" else "abcd", 1)], c, [False])
    model = Trained(c, vocabulary, build(c, vocabulary.source.size, vocabulary.target.size).eval())
    vectors = model.embed(["abc", "d"])
    assert vectors.shape == (2, model.vector_width)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1.0, 1.0], abs=1e-5)
    assert np.array_equal(model.embed(["d"])[0], vectors[1])


def test_running_text_and_spelled_words_can_be_asked() -> None:
    for words in (
        ["task=generate"],
        ["task=embed", "tokens.source=spelled"],
        ["task=classify", "tokens.source=spelled"],
    ):
        c = config.resolve("transformer", None, words)
        vocabulary = learn([Example(("ab cd",), None if "generate" in words[0] else "ef", 1)], c, [False])
        model = Trained(c, vocabulary, build(c, vocabulary.source.size, vocabulary.target.size).eval())
        vectors = model.embed(["ab cd", "ef"])
        assert np.linalg.norm(vectors, axis=1) == pytest.approx([1.0, 1.0], abs=1e-5)
        assert model.embed(["ef"])[0] == pytest.approx(vectors[1], abs=1e-6)  # there may be no engine


def test_pictures_are_not_embedded() -> None:
    c = config.resolve("caption")
    vocabulary = learn([Example(("x.png",), "abcd", 1)], c, [False])
    model = Trained(c, vocabulary, build(c, vocabulary.source.size, vocabulary.target.size).eval())
    with pytest.raises(UsageError, match="pictures"):
        model.embedded([None], 1)


def test_search_finds_the_text_itself_first() -> None:
    model = made()
    hits = model.search(["abc", "hgf", "abd"], "hgf", 2)
    assert (hits[0].number, hits[0].text, len(hits)) == (1, "hgf", 2)
    assert hits[0].score == pytest.approx(1.0, abs=1e-5)
    assert hits[0].score >= hits[1].score
    for corpus, query in (([], "a"), ("abc", "a"), (["abc"], "")):
        with pytest.raises(UsageError):
            model.search(corpus, query)
    with pytest.raises(UsageError, match="count=0"):
        model.search(["abc"], "a", 0)


# ── the public way ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.no_shapes
def test_it_learns_saves_loads_and_scores(tmp_path: Path) -> None:
    """A word belongs to the letters it is made of, capitals for small ones: tokens that share nothing."""
    draw = np.random.default_rng(0)
    words = sorted({"".join(draw.choice(list("abcdefgh"), 5)) for _ in range(300)})
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{word}\t{word.upper()}\n" for word in words), encoding="utf-8")
    settings = ["task=embed", *SMALL["conv"], "encoder.width=32", "train.steps=80", "train.learning_rate=0.01",
                "train.warmup=5", "train.tokens_per_batch=384", "train.validate_steps=40"]  # fmt: skip
    model = regard.train(path, out=tmp_path / "model", preset="conv", settings=settings)
    found = model.score(path)
    assert found.metrics["recall_at_10"].value > 50.0  # 3 by chance
    assert found.metrics["mrr"].low is not None
    assert found.facts["targets"] == len(words)
    assert found.outputs[0] in {word.upper() for word in words}
    loaded = regard.load(tmp_path / "model")
    assert np.array_equal(loaded.embed(words[:9]), model.embed(words[:9]))


def test_a_target_alone_is_looked_into_where_sources_are_several_columns() -> None:
    model = made(is_tags=(False, False))
    record = model.look("xyz", derive=True)
    assert [(token.text, token.start, token.end) for token in record.source[:3]] == [
        ("x", 0, 1),
        ("y", 1, 2),
        ("z", 2, 3),
    ]
    assert record.output == model("xyz")
    assert len(model.look(("ab", "c")).source) == 2 + 1 + 1 + 1
