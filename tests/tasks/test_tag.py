"""One label for each token: where it stands for every kind of tokens, how labels are chosen, and what is refused."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import regard
from regard import config
from regard.data.read import Example
from regard.data.tokens import END, PAD, SPECIALS, UNKNOWN
from regard.data.vocabulary import learn
from regard.engine.engine import engine
from regard.errors import ConfigError, DataError, UsageError
from regard.lab.laws import laws, render
from regard.models.build import build
from regard.models.model import Model
from regard.tasks.choose import deciding
from regard.tasks.tag import Tag
from regard.tasks.task import Item, Wish
from regard.trained import Trained
from regard.training.prepare import prepare

SIZE = ["encoder.width=16", "train.warmup=5"]
TEXTS = ["the cat saw Ann Bee", "Ann Bee ran", "a\u00a0b the 猫 ran", "the the cat"]
LABELS = ["O B-n O B-p I-p", "B-p I-p O", "B-n O B-n O", "O O B-n"]
EXAMPLES = [Example((text,), labels, 1) for text, labels in zip(TEXTS, LABELS, strict=True)]
KINDS = ("spelled", "characters", "bytes", "words", "bpe", "unigram")
BODIES = ("rnn-attention", "conv", "transformer", "decoder")


def made(*words: str, preset: str = "rnn-attention", seed: int = 1) -> tuple[Tag, Model]:
    size = ["decoder.width=16"] if preset == "decoder" else SIZE[:1]
    c = config.resolve(preset, None, ["task=tag", *size, *words])
    vocabulary = learn(EXAMPLES, c, [False])
    return Tag(c, vocabulary), build(c, vocabulary.source.size, vocabulary.target.size, seed=seed).eval()


def item(tag: Tag, text: str, labels: str) -> Item:
    return tag.encode(Example((text,), labels, 1), ".")


def run(tag: Tag, model: Model, texts: list[str], wish: Wish | None = None) -> list[str]:
    answers = tag.answer(model, [tag.ask([text], ".") for text in texts], wish or Wish(), range(len(texts)))
    return [each.text for each in answers]


# ── where labels stand ───────────────────────────────────────────────────────────────────────────────────────────────


def test_words_are_what_is_read_where_they_are_spelled() -> None:
    tag, model = made()
    batch = tag.batch([item(tag, *pair) for pair in zip(TEXTS, LABELS, strict=True)], range(4), 0)
    assert [tag.vocabulary.target.decode([id for id in row if id != PAD]) for row in batch.label_BT.tolist()] == LABELS
    assert batch.label_BT[1].tolist()[3:] == [PAD] * 3  # the end, and padding
    read = model(batch)
    assert read.states_BTD.shape[:2] == batch.label_BT.shape == (4, 6)
    assert read.mask_BT.sum(1).tolist() == [6, 4, 5, 4]


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_label_stands_at_the_last_piece_of_its_token(kind: str) -> None:
    tag, _ = made(f"tokens.source={kind}", "tokens.size=300")
    for text, labels in zip(TEXTS, LABELS, strict=True):
        read, found = tag.vocabulary.encode_source([text]), item(tag, text, labels).target
        places = [place for place, label in enumerate(found) if label != PAD]
        ends = [sum(map(len, text.split(" ")[: i + 1])) + i for i in range(len(labels.split()))]
        assert [read.spans[place][1] for place in places] == ends
        after = [read.spans[place + 1][0] for place in places if place + 1 < len(read.spans)]
        assert all(start >= end for start, end in zip(after, ends, strict=False))
        assert tag.vocabulary.target.decode([found[place] for place in places]) == labels


def test_white_space_of_all_kinds_but_the_no_break_space_parts_tokens() -> None:
    tag, _ = made()
    found = [label for label in tag.ask(["  a\u00a0b\u2003the   cat "], ".").target if label != PAD]
    assert found == [UNKNOWN] * 3


def test_only_the_first_column_is_labelled() -> None:
    c = config.resolve("rnn-attention", None, ["task=tag"])
    tag = Tag(c, learn([Example(("the cat", "in French"), "O O", 1)], c, [False, False]))
    assert sum(label != PAD for label in tag.ask(["the cat", "in French"], ".").target) == 2


@pytest.mark.parametrize("crf", ["true", "false"])
def test_what_was_cut_has_a_label_too(crf: str) -> None:
    """One label for each token, always; what stands for those that were not read is said."""
    tag, model = made("data.max_source=12", f"head.crf={crf}")
    trained = Trained(tag.config, tag.vocabulary, model)
    with pytest.warns(UserWarning, match="text 1: .* tokens, cut to 12 .*; tokens beyond have the label O unread"):
        answer = trained.run(["the cat saw Ann Bee"], wish=Wish(n_best=3))[0]
    for each in answer.alternatives:
        assert len(each.text.split()) == len(each.tokens) == 5
        assert each.text.split()[3:] == ["O", "O"]  # three spelled words begin within twelve tokens


def test_what_was_cut_is_not_looked_at() -> None:
    tag, model = made("data.max_source=12")
    with pytest.warns(UserWarning, match="cut to 12"):
        record = Trained(tag.config, tag.vocabulary, model).look("the cat saw Ann Bee")
    assert len(record.target) == len(record.probabilities) == 3


def test_without_an_outside_the_most_frequent_label_stands_for_what_was_cut() -> None:
    c = config.resolve("rnn-attention", None, ["task=tag"])
    tag = Tag(c, learn([Example(("the cat ran",), "D N N", 1)], c, [False]))
    assert tag.vocabulary.target.decode([tag.filler]) == "N"


# ── wrong input ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_unequal_counts_are_told_with_file_line_and_both(tmp_path: Path) -> None:
    path = tmp_path / "bad.tsv"
    path.write_text("the cat\tO N\nthe\tO\nthe cat ran\tO N\na b\tO O\n" * 2, encoding="utf-8")
    with pytest.raises(DataError, match=r"bad.tsv:3: found 3 tokens and 2 labels, expected as many of each"):
        regard.train(path, settings=["task=tag", *SIZE, "train.steps=20"])


def test_a_bad_line_that_would_be_held_out_is_skipped_too(tmp_path: Path) -> None:
    """Bad lines are gone before anything is held out: else nothing would be left to validate with."""
    lines = [f"the cat {i}\tO N O" for i in range(4)]
    c = config.resolve("rnn-attention", None, ["task=tag", "data.skip_bad=true"])
    for place in range(5):
        (tmp_path / "few.tsv").write_text("\n".join([*lines[:place], "the cat\tO", *lines[place:]]), encoding="utf-8")
        found = prepare(c, str(tmp_path / "few.tsv"), None, tmp_path / f"store-{place}")
        assert len(found.train.items) + len(found.valid.items) == 4
        assert any(note.startswith("warning: 1 of 5 lines can not be used: 1 × another number") for note in found.notes)


@pytest.mark.no_shapes
def test_labels_that_training_never_saw_are_named(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("".join(f"the cat {i}\tO N O\n" for i in range(8)), encoding="utf-8")
    (tmp_path / "valid.tsv").write_text("a cat\tX N\nb cat\tX Y\n", encoding="utf-8")
    c = config.resolve("rnn-attention", None, ["task=tag", *SIZE])
    found = prepare(c, str(tmp_path / "train.tsv"), str(tmp_path / "valid.tsv"), tmp_path / "store")
    told = '3 validation tokens have labels that no training example has, and count as wrong: "X", "Y"'
    assert f"warning: {told}" in found.notes
    model = Trained(c, found.vocabulary, build(c, found.vocabulary.source.size, found.vocabulary.target.size))
    with pytest.warns(UserWarning, match='valid.tsv: 3 tokens have labels that no training example has.*"X", "Y"'):
        model.score(tmp_path / "valid.tsv")


# ── a token and its label on each line ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.no_shapes
def test_a_file_with_a_token_on_each_line_is_trained_on_and_scored(tmp_path: Path) -> None:
    lines = [f"{a}\tO\n{b}\tB-x\n" for a in ("the", "a", "my", "one") for b in ("cat", "dog", "hen", "cow", "pig")]
    (tmp_path / "x.conll").write_text("\n".join(lines), encoding="utf-8")
    model = regard.train(tmp_path / "x.conll", settings=[SIZE[0], "train.steps=3"])
    assert model.config.task == "tag"
    assert len(model.score(tmp_path / "x.conll").outputs) == 20
    assert len(model("the cat").split()) == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["data.max_target=9"], "data.max_target: there are as many labels as tokens"),
        (["head.crf=true", "train.label_smoothing=0.1"], "train.label_smoothing"),
        (["head.pool=max"], "head.pool"),
        (["tokens.source=words", "embedding.word_dropout=0.3"], "embedding.word_dropout: only spelled words"),
        (["tokens.source=words", "embedding.characters=8"], "embedding.characters: only spelled words"),
        (["tokens.target=spelled"], "tokens.target: found 'spelled'"),
    ],
)
def test_what_would_do_nothing_is_refused(words: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        config.resolve("rnn-attention", None, ["task=tag", *words])


@pytest.mark.parametrize("task", ["fill", "generate"])
def test_spelled_words_are_never_written(task: str) -> None:
    with pytest.raises(ConfigError, match=r"tokens.source: spelled words are read|tokens.shared"):
        config.resolve(None, None, [f"task={task}", "tokens.source=spelled"])


def test_nothing_is_searched_for() -> None:
    tag, model = made()
    with pytest.raises(UsageError, match=r"only --n-best, --batch, --json, .* apply to the task tag"):
        tag.answer(model, [tag.ask(["the"], ".")], Wish(prefix="O"), [0])


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("crf", ["false", "true"])
def test_one_label_for_each_token_in_order(crf: str) -> None:
    tag, model = made(f"head.crf={crf}")
    texts = [*TEXTS, "unheard of", " "]
    found = run(tag, model, texts)
    assert [len(each.split()) for each in found] == [5, 3, 4, 3, 2, 0]
    assert [run(tag, model, [text])[0] for text in texts] == found
    assert not {label for text in found for label in text.split()} & {*SPECIALS}


@pytest.mark.parametrize("crf", ["false", "true"])
def test_the_n_best_are_different_and_all_that_there_are(crf: str) -> None:
    tag, model = made(f"head.crf={crf}")
    answer = tag.answer(model, [tag.ask(["the cat"], ".")], Wish(n_best=20), [0])[0]
    labels = tag.vocabulary.target.size - len(SPECIALS)
    assert len(answer.alternatives) == len({each.text for each in answer.alternatives}) == labels**2
    chances = [each.probability for each in answer.alternatives]
    assert chances == sorted(chances, reverse=True)
    assert sum(chances) == pytest.approx(1.0, abs=1e-5)
    assert answer.text == answer.alternatives[0].text
    assert all(each.probability <= each.lowest + 1e-6 for each in answer.alternatives)


def test_the_loss_is_minus_the_log_probability_of_the_labels() -> None:
    """What is learnt from and what is answered are one distribution, with a chain and without."""
    for crf in ("false", "true"):
        tag, model = made(f"head.crf={crf}")
        loss = tag.loss(model, tag.batch([item(tag, TEXTS[1], LABELS[1])], [0], 0), 1.0, 0)
        answer = tag.answer(model, [tag.ask([TEXTS[1]], ".")], Wish(n_best=200), [0])[0]
        chance = next(each for each in answer.alternatives if each.text == LABELS[1]).probability
        assert loss.count == 3
        expected = -torch.tensor(chance).log()
        if crf == "true":
            assert float(loss.total.detach()) == pytest.approx(float(expected), abs=1e-4)
        else:  # the logits of special tokens count in the loss, and are left out of answers
            assert float(loss.total.detach()) >= float(expected)


@pytest.mark.parametrize("crf", ["false", "true"])
def test_a_batch_that_counts_for_nothing_has_no_loss(crf: str) -> None:
    tag, model = made(f"head.crf={crf}")
    loss = tag.loss(model.train(), tag.batch([item(tag, TEXTS[1], LABELS[1])], [0], 0).idle(), 1.0, 0)
    assert (float(loss.total.detach()), loss.count) == (0.0, 0)
    torch.autograd.backward(loss.total)


# ── scores ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_spans_decide_where_there_are_any() -> None:
    tag, _ = made()
    assert deciding(tag.config, tag) == "f1"
    c = tag.config
    plain = Tag(c, learn([Example(("a b",), "X Y", 1)], c, [False]))
    assert deciding(c, plain) == "accuracy"
    asked = config.resolve("rnn-attention", None, ["task=tag", "train.metric=f1"])
    with pytest.raises(ConfigError, match=r"f1 is not a score of the task tag.*it has accuracy, loss"):
        deciding(asked, plain)


def test_a_label_that_was_never_seen_is_always_missed() -> None:
    tag, model = made()
    examples = [Example(("the cat",), "O B-new", 1)]
    found = tag.evaluate(model, [item(tag, "the cat", "O B-new")], examples, Wish())
    assert found.facts["unseen"] == 1.0
    assert found.metrics["accuracy"].value <= 50.0
    assert found.facts["exact"] == 0.0


@pytest.mark.parametrize("preset", BODIES)
@pytest.mark.parametrize("kind", ["spelled", "characters"])
@pytest.mark.parametrize("crf", ["false", "true"])
def test_the_laws_hold(preset: str, kind: str, crf: str) -> None:
    tag, model = made(f"tokens.source={kind}", f"head.crf={crf}", preset=preset)
    found = laws(Trained(tag.config, tag.vocabulary, model), count=4)
    assert not [law for law in found if not law.holds], render(found)


@pytest.mark.parametrize("kind", KINDS)
def test_the_engine_reads_what_it_can_and_answers_alike(kind: str) -> None:
    tag, model = made(f"tokens.source={kind}", "tokens.size=300")
    reading = engine(model)
    assert (reading is model) == (kind == "spelled")
    items = [tag.ask([text], ".") for text in TEXTS]
    one, other = (tag.answer(each, items, Wish(), range(4)) for each in (model, reading))
    assert [each.text for each in one] == [each.text for each in other]


def test_a_body_that_sees_the_past_alone_labels_by_it() -> None:
    tag, model = made(preset="decoder")
    one, other = (tag.answer(model, [tag.ask([text], ".")], Wish(), [0])[0] for text in ("the cat", "the cat ran Ann"))
    assert one.text.split() == other.text.split()[:2]


# ── the public way ───────────────────────────────────────────────────────────────────────────────────────────────────


def write(path: Path, count: int, seed: int) -> Path:
    """Two names in a row are a person, whatever the second is; a word in -ed is a verb."""
    draw = random.Random(seed)
    lines = []
    for _ in range(count):
        tokens, labels = [], []
        for _ in range(draw.randint(1, 5)):
            stem = "".join(draw.choices("bcdfglmnprst", k=3))
            kind = draw.choice(["noun", "verb", "person"])
            tokens += {"noun": [stem], "verb": [stem + "ed"], "person": ["Ann", stem]}[kind]
            labels += {"noun": ["O"], "verb": ["B-verb"], "person": ["B-person", "I-person"]}[kind]
        lines.append(" ".join(tokens) + "\t" + " ".join(labels) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("crf", ["false", "true"])
def test_trained_saved_loaded_and_scored(tmp_path: Path, crf: str) -> None:
    """Unknown words are told by their characters; the same model comes back from its folder."""
    words = ["encoder.width=32", "train.steps=120", "train.warmup=10", "train.learning_rate=0.01",
             "train.validate_steps=60", "train.tokens_per_batch=1500", f"head.crf={crf}"]  # fmt: skip
    file, test = write(tmp_path / "train.tsv", 400, 0), write(tmp_path / "test.tsv", 60, 1)
    model = regard.train(file, out=tmp_path / "model", settings=["task=tag", *words])
    assert model("Ann gst ltred ggg") == "B-person I-person B-verb O"
    found = model.score(test)
    assert found.metrics["f1"].value > 95.0
    assert found.metrics["accuracy"].value > 97.0
    assert found.facts["unseen"] == 0.0
    again = regard.load(tmp_path / "model")
    texts = [line.split("\t")[0] for line in test.read_text(encoding="utf-8").splitlines()]
    assert [each.text for each in again.run(texts)] == [each.text for each in model.run(texts)]
    assert again.score(test).metrics == found.metrics


def test_spaces_between_labels_make_no_answer_wrong(tmp_path: Path) -> None:
    tag, model = made()
    trained = Trained(tag.config, tag.vocabulary, model)
    answers = trained.run(TEXTS)
    learnt = trained.calibrate(answers * 10, [each.text.replace(" ", "  ") for each in answers] * 10)
    assert learnt is not None
    assert (learnt.right, learnt.examples) == (40, 40)
    for name, space in (("one", " "), ("two", "  ")):
        lines = [f"{text}\t{each.text.replace(' ', space)}\n" for text, each in zip(TEXTS, answers, strict=True)]
        (tmp_path / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    one, two = (trained.score(tmp_path / f"{name}.tsv").facts for name in ("one", "two"))
    assert one == two
    assert one["exact"] == 100.0
    assert not tag.is_right("O B-n", "O B-p")


def test_spelled_words_can_be_translated(small_model: Callable[..., Trained]) -> None:
    """The columns of an alignment are the words, and the end."""
    model = small_model("rnn-attention", "tokens.source=spelled")
    answer = model.run(["abcd ab"], wish=Wish(align=True, max_length=3, min_length=2))[0]
    assert answer.alignment is not None
    assert {len(row) for row in answer.alignment} == {3}
    assert model.spelled_source("abcd ab") == ["<unknown>", "<unknown>", "<end>"]
    looked = model.look("abcd ab")
    assert [(token.start, token.end) for token in looked.source] == [(0, 4), (5, 7), (7, 7)]
    assert model.item("abcd ab").source[-1] == END


@pytest.mark.parametrize(
    "text", ["a \u00a0 b", "\u00a0 a", "\u00a0", "a \u00a0", "\u00a0 \u00a0 \u00a0", "New\u00a0York ran"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_every_token_has_a_label_even_one_that_holds_nothing_to_be_read(kind: str, text: str) -> None:
    tag, model = made(f"tokens.source={kind}")
    count = len(text.split(" "))
    (labels,) = run(tag, model, [text])
    assert len(labels.split()) == count
    known = item(tag, text, " ".join(["O"] * count))
    assert [label for label in known.target if label != PAD] == [*tag.vocabulary.target.encode("O").ids] * count
    assert known.source == tag.ask([text], ".").source
    assert len(tag.encoded([text]).spans) == len(known.source) - 1
