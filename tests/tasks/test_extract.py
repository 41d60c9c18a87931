"""Answers that are pieces of a context: where they stand, what is learnt, what is cut out, and what can not be."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard import config
from regard.data.read import Columns, Example, read
from regard.data.tokens import END, SEPARATOR
from regard.data.vocabulary import learn
from regard.errors import ConfigError, DataError, UsageError
from regard.models.build import build
from regard.tasks.extract import Extract
from regard.tasks.task import Wish
from regard.trained import Trained

SMALL = {
    "rnn": ["encoder.width=16", "encoder.embedding=16"],
    "conv": ["encoder.width=16", "encoder.layers=1", "encoder.dropout=0.0"],
    "transformer": ["encoder.width=16", "encoder.heads=2", "encoder.layers=1", "encoder.dropout=0.0"],
    "decoder": ["decoder.width=16", "decoder.heads=2", "decoder.layers=1", "decoder.dropout=0.0"],
    "rnn-single": ["decoder.width=16", "decoder.embedding=16"],
}
CONTEXT, QUESTION = "Anna  went to São Paulo, Bo to Kyiv", "where did Anna go?"


def made(preset: str = "transformer", *words: str, columns: int = 2) -> Trained:
    c = config.resolve(preset, None, ["task=extract", *SMALL[preset], *words])
    vocabulary = learn([Example((CONTEXT, QUESTION)[:columns], "Kyiv", 1)], c, [False] * columns)
    return Trained(c, vocabulary, build(c, vocabulary.source.size, vocabulary.target.size, seed=1).eval())


def extract(model: Trained) -> Extract:
    assert isinstance(model.task, Extract)
    return model.task


# ── where an answer stands ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["characters", "bytes", "words", "bpe", "unigram"])
@pytest.mark.parametrize("columns", [1, 2])
def test_places_lead_back_to_the_answer(kind: str, columns: int) -> None:
    model = made("transformer", f"tokens.source={kind}", columns=columns)
    task, source = extract(model), (CONTEXT, QUESTION)[:columns]
    for answer in ("Anna", "Kyiv", "to", "went to São", CONTEXT):
        first, last = task.encode(Example(source, answer, 1), ".").target
        assert task.spelled(task.ask(source, "."), first - 1, last - 1) == answer


def test_the_question_is_read_first_and_is_no_place_for_an_answer() -> None:
    model = made("transformer", "tokens.source=words")
    item = model.item((CONTEXT, QUESTION))
    inside = extract(model).context(torch.tensor([item.source]))[0].tolist()
    assert item.source.index(SEPARATOR) == 4
    assert (item.source[-1], inside) == (END, [False] * 5 + [True] * 8 + [False])


def test_the_first_of_several_places_is_taken_and_spaces_do_not_count() -> None:
    task = extract(made("transformer", "tokens.source=words", columns=1))
    assert task.encode(Example(("to be or to go",), " to\r", 1), ".").target == (1, 1)


def test_an_answer_that_is_not_there_is_an_error() -> None:
    with pytest.raises(DataError, match="'Lima' is not in its context"):
        made().task.encode(Example((CONTEXT, QUESTION), "Lima", 1), ".")


def test_what_is_ambiguous_or_torn_is_said() -> None:
    task = extract(made("transformer", "tokens.source=words", columns=1))
    examples = [Example((text,), answer, 1) for text, answer in (("a b a", "a"), ("abc", "b"), ("a b", "b"))]
    several, torn = task.remarks(examples, [])
    assert several.startswith("1 answers stand more than once")
    assert torn.startswith("warning: 1 answers begin or end inside a token")
    assert task.remarks(examples[2:], []) == []


# ── learning and answering ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("preset", SMALL)
def test_the_loss_is_that_of_start_and_end_among_the_context(preset: str) -> None:
    model = made(preset, "tokens.source=words")
    examples = [
        Example((CONTEXT, QUESTION), "Kyiv", 1),
        Example(("Bo is in São Paulo", "where is Bo?"), "São Paulo", 2),
    ]
    items = [model.task.encode(each, ".") for each in examples]
    loss = model.task.loss(model.model, model.task.batch(items, [0, 1], 0), 1.0, 0)
    total = 0.0
    for item, logs_TV in zip(items, extract(model).logs(model.model, items), strict=True):
        total -= sum(float(logs_TV[place - 1, side].detach()) for side, place in enumerate(item.target))
    assert (loss.count, float(loss.total.detach())) == (4, pytest.approx(total, rel=1e-4))
    assert model.task.loss(model.model, model.task.batch(items, [0, 1], 0).idle(), 1.0, 0).count == 0


@pytest.mark.parametrize("at_once", [1, 6, 1000])
def test_the_best_pieces_are_those_of_all_that_are_tried(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr("regard.tasks.extract.AT_ONCE", at_once)
    model = made("transformer", "data.max_target=3", "tokens.source=words", columns=1)
    task, item = extract(model), model.item("a b c d e")
    (logs_TV,) = task.logs(model.model, [item])
    logs = {(first, last): float(logs_TV[first, 0] + logs_TV[last, 1])
            for first in range(5) for last in range(first, min(first + 3, 5))}  # fmt: skip
    total = math.log(sum(map(math.exp, logs.values())))
    expected = sorted(((*span, log - total) for span, log in logs.items()), key=lambda each: -each[2])
    found = task.spans(logs_TV, 100)
    assert [span[:2] for span in found] == [span[:2] for span in expected]
    assert [span[2] for span in found] == pytest.approx([span[2] for span in expected], abs=1e-5)
    assert task.spans(logs_TV, 4) == found[:4]


@pytest.mark.parametrize("at_once", [1, 6, 1000])
def test_of_pieces_that_are_as_good_the_first_come_first(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr("regard.tasks.extract.AT_ONCE", at_once)
    task = extract(made("transformer", "data.max_target=2"))
    logs_TV = torch.tensor([[-torch.inf, -torch.inf], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [-torch.inf, -torch.inf]])
    expected = [(1, 1), (1, 2), (2, 2), (2, 3), (3, 3)]
    for count in (3, 5, 9):
        found = task.spans(logs_TV, count)
        assert [span[:2] for span in found] == expected[:count]
        assert [span[2] for span in found] == pytest.approx([-math.log(5)] * len(found))


@pytest.mark.parametrize("preset", SMALL)
def test_answers_are_pieces_of_the_context_whatever_their_mates(preset: str) -> None:
    model = made(preset)
    texts = [(CONTEXT, QUESTION), ("x", "?"), ("a  b\u00e9", "which?")]
    answers = model.run(texts, wish=Wish(n_best=3))
    assert answers == [model.run([text], wish=Wish(n_best=3))[0] for text in texts]
    for (text, _), answer in zip(texts, answers, strict=True):
        assert answer.text in text
        assert len({each.text for each in answer.alternatives}) == len(answer.alternatives) <= 3
        assert 0.0 < answer.probability <= 1.0


def test_equal_tokens_of_different_texts_have_their_own_answers() -> None:
    model = made("transformer", "tokens.source=words", columns=1)
    assert [answer.text for answer in model.stream(["Zoë", "Zoé"])] == ["Zoë", "Zoé"]  # both unknown


def test_a_context_that_is_cut_still_answers() -> None:
    model = made("transformer", "data.max_source=24")
    with pytest.warns(UserWarning, match="cut to 24"):
        assert model.run([(CONTEXT, QUESTION)])[0].text in CONTEXT[:5]
    model = made("transformer", "data.max_source=4")
    with pytest.warns(UserWarning, match="cut to 4"):
        assert model.run([(CONTEXT, QUESTION)])[0].text == ""  # nothing of the context is left


@pytest.mark.parametrize("preset", SMALL)
def test_a_question_that_leaves_no_room_for_its_context_has_no_answer(preset: str) -> None:
    """It is not answered out of the question itself."""
    model = made(preset, "tokens.source=words", "data.max_source=8")
    for count in (7, 8, 20):  # of words: up to the separator, without it, and far beyond
        text = (CONTEXT, " ".join(["Anna"] * count))
        with pytest.warns(UserWarning, match="cut to 8"):
            answer = model.run([text])[0]
        assert (answer.text, answer.confidence, answer.places) == ("", 0.0, None)
        with pytest.warns(UserWarning, match="cut to 8"):
            record = model.look(text, derive=True)
        assert (record.output, record.target, record.answer.confidence) == ("", (), 0.0)


def test_nothing_is_searched_for_or_smoothed() -> None:
    with pytest.raises(UsageError, match="piece of the context"):
        made().run([(CONTEXT, QUESTION)], wish=Wish(prefix="A"))
    with pytest.raises(ConfigError, match="label_smoothing"):
        made("transformer", "train.label_smoothing=0.1")
    with pytest.raises(ConfigError, match="points at tokens"):
        made("transformer", "tokens.source=spelled")
    with pytest.raises(ConfigError, match="no such part"):
        made("transformer", "head.pool=max")


# ── the public way ───────────────────────────────────────────────────────────────────────────────────────────────────


def rows(count: int) -> list[tuple[str, str, str]]:
    """Letters, among them one digit and one capital: the question says which is wanted."""
    draw = np.random.default_rng(count)
    made = []
    for _ in range(count):
        letters = draw.choice(list("abcdef"), 6)
        digit, capital = draw.permutation(6)[:2]
        letters[digit], letters[capital] = draw.choice(list("6789")), draw.choice(list("WXYZ"))
        asked = int(draw.integers(2))
        made.append((" ".join(letters), ("digit", "capital")[asked], str(letters[(digit, capital)[asked]])))
    return made


def write(path: Path, lines: list[tuple[str, str, str]]) -> Path:
    path.write_text("context\tquestion\tanswer\n" + "".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")
    return path


WORDS = ["task=extract", "data.source=context,question", "data.target=answer", "tokens.source=words"]


@pytest.mark.no_shapes
def test_it_learns_saves_loads_and_scores(tmp_path: Path) -> None:
    settings = [*WORDS, "encoder.width=32", "encoder.embedding=16", "train.steps=100", "train.learning_rate=0.01",
                "train.warmup=10", "train.tokens_per_batch=640", "train.validate_steps=1000"]  # fmt: skip
    model = regard.train(
        write(tmp_path / "train.tsv", rows(600)), out=tmp_path / "model", preset="rnn", settings=settings
    )
    found = model.score(write(tmp_path / "test.tsv", rows(100)))
    assert found.metrics["exact"].value > 90.0  # 50 for whoever does not read the question
    assert tuple(found.metrics) == ("exact", "f1")
    loaded = regard.load(tmp_path / "model")
    questions = [("b c 9 d W a", "digit"), ("b c 9 d W a", "capital")]
    assert loaded.run(questions) == model.run(questions)
    assert [answer.text for answer in loaded.run(questions)] == ["9", "W"]


@pytest.mark.no_shapes
def test_lines_whose_answer_is_not_there_are_named_or_left_out(tmp_path: Path) -> None:
    lines = rows(30)
    lines[4] = ("a 6 b X", "digit", "12")
    path = write(tmp_path / "train.tsv", lines)
    with pytest.raises(DataError, match=r'train\.tsv:6: found the answer "12", expected a piece of its context'):
        regard.train(path, preset="rnn", settings=WORDS)
    few = [*WORDS, *SMALL["rnn"], "train.steps=2", "train.warmup=0", "data.skip_bad=true"]
    model = regard.train(path, preset="rnn", settings=few)
    with pytest.warns(UserWarning, match="1 × answer that is not in its context"):
        assert len(model.score(path).outputs) == 29


def test_lines_that_end_in_two_characters_are_no_bad_lines(tmp_path: Path) -> None:
    path = tmp_path / "train.tsv"
    path.write_bytes(b"".join("\t".join(line).encode() + b"\r\n" for line in rows(9)))
    found = read(str(path), Columns(("1", "2"), "3", within=True))
    assert [example.target for example in found.examples] == [answer for _, _, answer in rows(9)]


def test_scores_of_a_place_that_was_cut_off_are_still_numbers() -> None:
    model = made("transformer", "data.max_source=24")
    example = Example((CONTEXT, QUESTION), "Kyiv", 1)
    item = model.fitting(model.task.encode(example, "."))
    found = model.task.evaluate(model.model, [item], [example], Wish())
    assert found.facts["loss"] == 0.0
    assert found.metrics["exact"].value == 0.0
    assert replace(item, passage=None).target == item.target


def test_spaces_around_an_answer_make_none_wrong() -> None:
    model = made()
    answers = model.run([(CONTEXT, QUESTION)])
    learnt = model.calibrate(answers * 40, [f" {answers[0].text} "] * 40)
    assert learnt is not None
    assert learnt.right == 40
    assert not model.task.is_right("Kyiv", "Bo")
