"""One label for a text: every pool and body, chances of all labels, and what is said of lopsided or wrong files."""

from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard import config
from regard.data.read import Columns, Example
from regard.data.tokens import CLASS, END, SPECIALS, UNKNOWN
from regard.data.vocabulary import learn
from regard.errors import ConfigError, DataError, UsageError
from regard.models.build import build
from regard.search.write import Sampling
from regard.tasks.classify import Classify
from regard.tasks.task import Wish
from regard.trained import Trained

POOLS = ["mean", "max", "class", "attention"]
BODIES = ["rnn", "conv", "transformer", "decoder", "rnn-single"]
QUICK = ["train.learning_rate=0.01", "train.warmup=5", "train.tokens_per_batch=512", "train.validate_steps=1000",
         "train.checkpoint_steps=1000"]  # fmt: skip
SMALL = {
    "rnn": ["encoder.width=16", "encoder.embedding=16"],
    "conv": ["encoder.width=16", "encoder.layers=1", "encoder.dropout=0.0"],
    "transformer": ["encoder.width=16", "encoder.heads=2", "encoder.layers=1", "encoder.dropout=0.0"],
    "decoder": ["decoder.width=16", "decoder.heads=2", "decoder.layers=1", "decoder.dropout=0.0"],
    "rnn-single": ["decoder.width=16", "decoder.embedding=16"],
}


def made(preset: str = "transformer", *words: str, labels: tuple[str, ...] = ("yes", "no", "may be")) -> Trained:
    c = config.resolve(preset, None, ["task=classify", *SMALL[preset], *words])
    vocabulary = learn([Example(("abcdefgh",), label, 1) for label in labels], c, [False])
    return Trained(c, vocabulary, build(c, vocabulary.source.size, vocabulary.target.size, seed=1).eval())


def write(path: Path, rows: list[tuple[str, ...]]) -> Path:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def vowels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Words of six letters, and whether one of them is an a."""
    draw = np.random.default_rng(0)
    words = sorted({"".join(draw.choice(list("abcdefg"), 6)) for _ in range(400)})
    return write(
        tmp_path_factory.mktemp("vowels") / "vowels.tsv", [(word, "has a" if "a" in word else "none") for word in words]
    )


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("preset", BODIES)
@pytest.mark.parametrize("pool", POOLS)
def test_every_pool_serves_every_body(preset: str, pool: str) -> None:
    model = made(preset, f"head.pool={pool}")
    answer = model.run(["abc"])[0]
    assert answer.text in ("yes", "no", "may be")
    batch = model.task.batch([model.task.encode(Example(("abc",), "no", 1), ".")] * 2, [0, 1], 0)
    loss = model.task.loss(model.model, batch, 1.0, 0)
    assert (loss.count, float(loss.total.detach()) > 0) == (2, True)


def test_every_label_has_its_chance_the_likeliest_first() -> None:
    answer = made().run(["abc"], wish=Wish(n_best=2))[0]
    names, chances = zip(*answer.chances, strict=True)
    assert sorted(names) == ["may be", "no", "yes"]
    assert sum(chances) == pytest.approx(1.0)
    assert list(chances) == sorted(chances, reverse=True)
    assert (answer.text, answer.probability) == answer.chances[0]
    assert [each.text for each in answer.alternatives] == list(names[:2])
    assert answer.tokens[0] >= len(SPECIALS)


def test_more_are_wished_for_than_there_are_labels() -> None:
    assert len(made().run(["abc"], wish=Wish(n_best=50))[0].alternatives) == 3


@pytest.mark.parametrize("preset", BODIES)
def test_mates_change_no_answer_to_the_bit(preset: str) -> None:
    model = made(preset, "head.pool=attention")
    texts = ["abc", "a", "hgfedcba" * 4, "bb"]
    assert model.run(texts) == [model.run([text])[0] for text in texts]


def test_a_class_token_ends_the_text_where_it_is_pooled() -> None:
    assert made("transformer", "head.pool=class").item("abc").source[-1] == CLASS
    assert made().item("abc").source[-1] == END


def test_a_text_that_is_too_long_keeps_its_class_token() -> None:
    model = made("transformer", "head.pool=class", "data.max_source=4")
    with pytest.warns(UserWarning, match="cut to 4"):
        assert len(model.item("abcdefgh").source) == 5
    assert model.fitting(model.task.ask(["abcdefgh"], "."), "").source[-1] == CLASS


@pytest.mark.parametrize("wish", [Wish(prefix="y"), Wish(sampling=Sampling(0)), Wish(max_length=3), Wish(pattern="y+")])
def test_there_is_nothing_to_search_for(wish: Wish) -> None:
    with pytest.raises(UsageError, match="likeliest label"):
        made().run(["abc"], wish=wish)


def test_encoding_at_once_is_encoding_one_by_one() -> None:
    task = made().task
    examples = [Example((text,), label, 1) for text, label in (("abc", "no"), ("", "yes"), ("xyz", "never seen"))]
    rows, items = task.encode_all(examples, "."), [task.encode(each, ".") for each in examples]
    assert rows.source.ids.tolist() == [id for item in items for id in item.source]
    assert rows.target.ids.tolist() == [item.target[0] for item in items]
    assert items[2].target == (UNKNOWN,)


@pytest.mark.parametrize("word", ["head.crf=true", "head.width=3", "head.temperature=1.0", "embedding.tie_output=true"])
def test_settings_of_other_heads_are_refused(word: str) -> None:
    with pytest.raises(ConfigError, match=r"no such part|predicts no tokens"):
        made("transformer", word)


# ── what is said of the data ─────────────────────────────────────────────────────────────────────────────────────────


def remarks(train: str, valid: str) -> list[str]:
    task = made().task
    assert isinstance(task, Classify)
    return task.remarks(*([Example(("x",), label, 1) for label in side.split()] for side in (train, valid)))


def test_labels_are_counted() -> None:
    (note,) = remarks("a a a b", "a")
    assert note == '2 labels: a 3, b 1; always saying "a" would be right for 75.0 %'
    assert "and 12 more" in remarks(" ".join(f"label{i}" for i in range(20)), "label1")[0]


def test_imbalance_is_said() -> None:
    assert len(remarks("a " * 10 + "b", "a")) == 1
    warning = remarks("a " * 11 + "b", "a")[1]
    assert "imbalanced" in warning
    assert "macro F1" in warning


def test_labels_that_training_never_saw_are_named() -> None:
    (_, warning) = remarks("a a b", "a new new other")
    assert warning.startswith("warning: 3 validation examples")
    assert '"new", "other"' in warning


@pytest.mark.no_shapes
def test_one_label_alone_is_refused_before_training(tmp_path: Path) -> None:
    path = write(tmp_path / "one.tsv", [(f"text {i}", "same") for i in range(20)])
    with pytest.raises(DataError, match=r'one\.tsv: found one label alone, "same", for all'):
        regard.train(path, settings=["task=classify"], out=tmp_path / "model")
    assert not (tmp_path / "model").exists()


# ── the public way ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.no_shapes
def test_it_learns_saves_loads_and_scores(vowels: Path, tmp_path: Path) -> None:
    words = ["task=classify", *SMALL["rnn"], *QUICK, "train.steps=60", "head.pool=max"]
    model = regard.train(vowels, out=tmp_path / "model", preset="rnn", settings=words)
    found = model.score(vowels)
    assert found.metrics["accuracy"].value > 90.0
    assert found.confusion is not None
    assert set(found.confusion.labels) == {"has a", "none"}
    assert found.facts["majority"] < 75.0
    loaded = regard.load(tmp_path / "model")
    texts = ["bcdefg", "bcdaef", ""]
    assert loaded.run(texts) == model.run(texts)
    assert [answer.text for answer in loaded.run(texts)] == ["none", "has a", ""]


@pytest.mark.no_shapes
def test_a_label_that_was_never_seen_is_wrong_and_several_columns_are_one_input(tmp_path: Path) -> None:
    rows = [(a + b, b + a, "same" if a == b else "other") for a in "abcdefgh" for b in "abcdefgh"]
    path = write(tmp_path / "pairs.tsv", rows)
    words = [
        "task=classify",
        *SMALL["transformer"],
        *QUICK,
        "train.steps=9",
        'data.source=["1", "2"]',
        'data.target="3"',
    ]
    model = regard.train(path, preset="transformer", settings=words)
    assert model("ab\tba") in ("same", "other")
    other = write(tmp_path / "test.tsv", [("ab", "ba", "unheard of"), ("aa", "aa", "unheard of")])
    found = model.score(other, columns=Columns(("1", "2"), "3"))
    assert found.metrics["accuracy"].value == 0.0
    assert found.facts["loss"] == 0.0  # nothing known to be foreseen
    with pytest.raises(DataError, match="expected 2 source columns"):
        model("ab")


def test_padding_changes_no_chance() -> None:
    model = made()
    task, exact = model.task, model.model.double()
    assert isinstance(task, Classify)
    items = [model.item(text) for text in ("a", "abcd", "ab")]
    with torch.inference_mode():
        together = task.log_probabilities(exact, items)
        alone = torch.cat([task.log_probabilities(exact, [item]) for item in items])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-6)
