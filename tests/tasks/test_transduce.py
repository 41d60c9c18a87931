"""Sources to targets: how a batch is laid out, how long an answer may be, and what an evaluation tells."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from regard import config
from regard.data.builtin import write
from regard.data.read import Columns, Example, read
from regard.data.tokens import END, PAD, SEPARATOR, START
from regard.data.vocabulary import learn
from regard.models.build import build
from regard.models.model import Model
from regard.search.write import Sampling
from regard.tasks.choose import task as choose
from regard.tasks.fill import Fill
from regard.tasks.task import Answer, Item, Wish
from regard.tasks.transduce import Caption, Transduce, bent, factors, offsets, runs, shifted, zoomed

PAIRS = [("abcde", "edcba"), ("ab", "ba"), ("h", "h"), ("gfedcba", "abcdefg"), ("cab", "bac"), ("ffff", "ffff"),
         ("abc", "cba"), ("hg", "gh"), ("dead", "daed")]  # fmt: skip
EXAMPLES = [Example((source,), target, line) for line, (source, target) in enumerate(PAIRS, 1)]
SMALL = {
    "rnn-attention": ["encoder.width=12", "decoder.width=12"],
    "transformer": ["encoder.width=12", "decoder.width=12", "encoder.heads=2", "decoder.heads=2"],
    "decoder": ["decoder.width=12", "decoder.heads=2"],
}
LIMIT = ["search.length_ratio=1.0", "search.length_extra=1"]


def made(preset: str, *words: str) -> tuple[Transduce, Model]:
    c = config.resolve(preset, None, [*SMALL[preset], *LIMIT, *words])
    vocabulary = learn(EXAMPLES, c, [False])
    model = build(c, vocabulary.source.size, vocabulary.target.size, seed=2).eval()
    with torch.no_grad():  # a fresh model is nearly uniform; a bolder one that keeps to letters has more to show
        for weight in model.parameters():
            weight.mul_(3.0)
        model.output.bias[[*vocabulary.target.encode("abcdefgh").ids]] += 20.0
        model.output.bias[END] += 18.0
    return Transduce(c, vocabulary), model


def encoded(task: Transduce) -> list[Item]:
    return [task.encode(example, ".") for example in EXAMPLES]


def ask(task: Transduce, model: Model, wish: Wish) -> list[Answer]:
    return task.answer(model, encoded(task), wish, range(len(PAIRS)))


each_preset = pytest.mark.parametrize("preset", SMALL)


# ── batches ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("preset", "first", "last"),
    [("rnn-attention", START, [END]), ("transformer", START, [END]), ("decoder", SEPARATOR, [])],
)
def test_a_batch_is_laid_out_by_what_reads_it(preset: str, first: int, last: list[int]) -> None:
    """An encoder reads a source and its end; without one the source runs on into the target after a separator."""
    task, _ = made(preset)
    spell = task.vocabulary
    batch = task.batch([task.encode(EXAMPLES[1], "."), task.encode(EXAMPLES[0], ".")], [1, 0], 0)
    assert batch.target_BT is not None
    assert batch.source_mask_BS is not None
    ab, ba = list(spell.source.encode("ab").ids), list(spell.target.encode("ba").ids)
    assert batch.source[0].tolist() == [*ab, *last, PAD, PAD, PAD]
    assert batch.source_mask_BS[0].tolist() == [True] * len([*ab, *last]) + [False] * 3
    assert batch.target_BT[0].tolist() == [first, *ba, PAD, PAD, PAD]
    assert batch.label_BT[0].tolist() == [*ba, END, PAD, PAD, PAD]
    assert batch.label_BT[1, -1] == END
    assert batch.index == (1, 0)


@each_preset
def test_targets_are_labels_moved_by_one(preset: str) -> None:
    task, _ = made(preset)
    batch = task.batch(encoded(task), range(len(PAIRS)), 0)
    assert batch.target_BT is not None
    for target, label in zip(batch.target_BT.tolist(), batch.label_BT.tolist(), strict=True):
        real = label[: label.index(END)]
        assert target[: len(real) + 1] == [task.first, *real]


def test_each_task_has_its_name() -> None:
    for preset, kind in (("rnn", Transduce), ("caption", Caption), ("encoder", Fill)):
        c = config.resolve(preset)
        assert type(choose(c, learn(EXAMPLES, c, [False]))) is kind


def test_several_columns_are_joined_by_a_separator() -> None:
    c = config.resolve("rnn-attention")
    vocabulary = learn([Example(("ab", "cd"), "x", 1)], c, [False, False])
    ids = Transduce(c, vocabulary).encode(Example(("ab", "cd"), "x", 1), ".").source
    assert (ids[2], ids[-1], len(ids)) == (SEPARATOR, END, 6)


def test_runs_hold_every_item_once_and_similar_lengths_together() -> None:
    items = [Item(tuple(range(length)), ()) for length in (5, 1, 4, 1, 3, 9, 2)]
    found = list(runs(items, 3))
    assert sorted(number for run in found for number in run) == list(range(7))
    assert [[len(items[number].source) for number in run] for run in found] == [[1, 1, 2], [3, 4, 5], [9]]


def test_long_ones_run_with_fewer_beside_them() -> None:
    items = [Item((7,) * 3000, (7,) * 100), Item((7,), (7,)), Item((7,) * 9, (7,) * 2500), Item((7,) * 4, (7,))]
    found = [[len(items[number].source) for number in run] for run in runs(items, 64)]
    assert found == [[1, 4], [9], [3000]]


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_length_of_the_source_limits_the_answer() -> None:
    task, _ = made("rnn-attention", "search.length_ratio=1.5", "search.length_extra=2", "data.max_target=9")
    short, long = Item((7, 8, END), ()), Item((7,) * 40, ())
    assert task.limit(short, Wish()) == 6  # 1.5 × 3 + 2
    assert task.limit(long, Wish()) == 9
    assert task.limit(short, Wish(max_length=3)) == 3
    assert task.limit(short, Wish(max_length=99)) == 9


@each_preset
def test_no_answer_is_longer_than_its_own_source_allows(preset: str) -> None:
    task, model = made(preset)
    model.output.bias.data[END] = -99.0  # it would never end
    items = encoded(task)
    lengths = [len(answer.tokens) for answer in ask(task, model, Wish())]
    assert lengths == [len(item.source) + 1 for item in items]
    assert [len(answer.tokens) for answer in ask(task, model, Wish(max_length=2))] == [2] * len(items)


@each_preset
@pytest.mark.parametrize("beam", [1, 3])
def test_answers_are_in_order_whatever_the_batch(preset: str, beam: int) -> None:
    task, model = made(preset)
    alone = ask(task, model, Wish(batch=1, beam=beam))
    assert len({answer.text for answer in alone}) > 3
    for size in (2, 7, 64):
        found = ask(task, model, Wish(batch=size, beam=beam))
        assert [answer.text for answer in found] == [answer.text for answer in alone]
        scores = [answer.score for answer in alone]
        assert [answer.score for answer in found] == pytest.approx(scores, rel=1e-5, abs=1e-5)  # rounding of fp32


@each_preset
def test_samples_do_not_depend_on_the_batch(preset: str) -> None:
    task, model = made(preset)
    alone = [answer.text for answer in ask(task, model, Wish(batch=1, sampling=Sampling(seed=4)))]
    assert alone == [answer.text for answer in ask(task, model, Wish(batch=7, sampling=Sampling(seed=4)))]
    assert alone != [answer.text for answer in ask(task, model, Wish(batch=7, sampling=Sampling(seed=5)))]
    shifted = task.answer(model, encoded(task)[2:], Wish(sampling=Sampling(seed=4)), range(2, len(PAIRS)))
    assert [answer.text for answer in shifted] == alone[2:]


@each_preset
def test_the_next_best_come_in_order(preset: str) -> None:
    task, model = made(preset)
    for answer in ask(task, model, Wish(beam=5, n_best=3, length_penalty=0.6)):
        assert len(answer.alternatives) == 3
        scores = [each.score for each in answer.alternatives]
        assert scores == sorted(scores, reverse=True)
        assert len({each.tokens for each in answer.alternatives}) == 3
        assert (answer.text, answer.score) == (answer.alternatives[0].text, scores[0])


@each_preset
def test_confidence_is_the_probability_of_the_whole_answer(preset: str) -> None:
    task, model = made(preset)
    item = encoded(task)[0]
    answer = task.answer(model, [item], Wish(beam=3, length_penalty=1.0), [0])[0]
    batch = task.batch([Item(item.source, answer.tokens)], [0], 0)
    log_BTV = model.output(model(batch).states_BTD).log_softmax(-1)
    total = float(log_BTV.gather(-1, batch.label_BT[..., None]).sum())
    assert answer.confidence == pytest.approx(math.exp(total), rel=1e-4)
    assert answer.score == pytest.approx(total / (len(answer.tokens) + 1), abs=1e-5)


@each_preset
@pytest.mark.parametrize("beam", [1, 3])
def test_wishes_reach_the_search(preset: str, beam: int) -> None:
    task, model = made(preset)
    plain = [answer.text for answer in ask(task, model, Wish(beam=beam))]
    begun = [answer.text for answer in ask(task, model, Wish(beam=beam, prefix="hg"))]
    assert all(text.startswith("hg") for text in begun)
    assert not all(text.startswith("hg") for text in plain)
    used = max("abcdefgh", key="".join(plain).count)
    assert not [text for text in (a.text for a in ask(task, model, Wish(beam=beam, banned=(used,)))) if used in text]
    assert used in "".join(plain)
    long = [answer.tokens for answer in ask(task, model, Wish(beam=beam, min_length=2))]
    assert min(map(len, long)) >= 2
    once = [answer.tokens for answer in ask(task, model, Wish(beam=beam, no_repeat=1))]
    assert all(len(set(tokens)) == len(tokens) for tokens in once)


def test_a_prefix_longer_than_the_limit_is_written_whole() -> None:
    task, model = made("rnn-attention")
    assert [answer.text for answer in ask(task, model, Wish(max_length=1, prefix="abcabc"))] == ["abcabc"] * len(PAIRS)


# ── scores ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@each_preset
def test_an_evaluation_tells_forced_and_free_accuracy_side_by_side(preset: str) -> None:
    task, model = made(preset)
    items = encoded(task)
    found = task.evaluate(model, items, EXAMPLES, Wish(), intervals=False)
    facts = found.facts
    batch = task.batch(items, range(len(items)), 0)
    logits_BTV = model.output(model(batch).states_BTD)
    real_BT = batch.label_BT != PAD
    loss = torch.nn.functional.cross_entropy(logits_BTV[real_BT], batch.label_BT[real_BT])
    right = (logits_BTV.argmax(-1) == batch.label_BT)[real_BT].double().mean()
    assert facts["loss"] == pytest.approx(float(loss), abs=1e-5)
    assert facts["perplexity"] == pytest.approx(math.exp(float(loss)), rel=1e-4)
    assert facts["token_accuracy_forced"] == pytest.approx(100.0 * float(right), abs=1e-4)
    assert facts["exposure_gap"] == pytest.approx(facts["token_accuracy_forced"] - facts["token_accuracy_free"])
    assert list(found.outputs) == [answer.text for answer in ask(task, model, Wish())]
    assert {"exact", "bleu", "chrf", "cer"} <= set(found.metrics)


def test_exact_match_counts_right_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    task, model = made("rnn-attention")

    def echo(_: Model, items: list[Item], wish: Wish, numbers: list[int]) -> list[Answer]:
        right = [Answer(target, 0.0, 1.0, item.target) for (_, target), item in zip(PAIRS, items, strict=True)]
        return [*right[:6], *[Answer("", 0.0, 1.0)] * 3]

    monkeypatch.setattr(task, "answer", echo)
    found = task.evaluate(model, encoded(task), EXAMPLES, Wish(), intervals=False)
    assert found.metrics["exact"].value == pytest.approx(100.0 * 6 / 9)
    assert 50.0 < found.facts["token_accuracy_free"] < 100.0


# ── captions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_captions_read_pictures_from_the_folder_of_the_file(tmp_path: Path) -> None:
    paths = write("captions", 6, tmp_path / "shapes.tsv")
    c = config.resolve("caption", None, ["encoder.size=16", "encoder.width=8", "decoder.width=8", *LIMIT])
    table = read(str(paths[0]), Columns((), ""), False)
    vocabulary = learn(table.examples, c, [False])
    task = Caption(c, vocabulary)
    items = [task.encode(example, str(tmp_path)) for example in table.examples]
    batch = task.batch(items, range(6), 0)
    assert batch.source.shape == (6, 3, 16, 16)
    assert batch.source_mask_BS is None
    assert batch.target_BT is not None
    assert batch.target_BT[:, 0].tolist() == [START] * 6
    assert vocabulary.target.decode(items[0].target) == table.examples[0].target
    pictures: Tensor = batch.source
    assert pictures.dtype == torch.float32
    assert 0.0 <= float(pictures.min()) < float(pictures.max()) <= 1.0
    assert np.array_equal(pictures.numpy(), np.stack([item.picture for item in items if item.picture is not None]))
    model = build(c, vocabulary.source.size, vocabulary.target.size).eval()
    alone = [answer.text for answer in task.answer(model, items, Wish(batch=1, max_length=4), range(6))]
    assert alone == [answer.text for answer in task.answer(model, items, Wish(batch=4, max_length=4), range(6))]
    found = task.evaluate(model, items, table.examples, Wish(max_length=4), intervals=False)
    assert {"exposure_gap", "token_accuracy_forced", "token_accuracy_free"} <= set(found.facts)


# ── varied pictures ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_pictures_are_shifted_and_edges_repeated() -> None:
    picture_BCYX = torch.arange(2 * 3 * 4 * 5, dtype=torch.float32).view(2, 3, 4, 5)
    moved_BCYX = shifted(picture_BCYX, torch.tensor([[1, -2], [0, 0]]))
    assert moved_BCYX[1].equal(picture_BCYX[1])
    assert moved_BCYX[0, :, 1:, :3].equal(picture_BCYX[0, :, :3, 2:])
    assert moved_BCYX[0, :, 0, :3].equal(picture_BCYX[0, :, 0, 2:])
    assert (moved_BCYX[0, :, 1:, 3:] == picture_BCYX[0, :, :3, 4:]).all()


def test_offsets_belong_to_the_example_and_reach_both_ends() -> None:
    found = offsets(7, range(300), 2)
    assert (found.min(), found.max()) == (-2, 2)
    assert found[[5, 17]].equal(offsets(7, [5, 17], 2))
    assert not found.equal(offsets(8, range(300), 2))


def test_factors_belong_to_the_example_and_reach_both_ends() -> None:
    found = factors(7, range(500), ("height", "width"), 0.25)
    assert found.shape == (500, 2)
    assert 0.8 <= found.min() < 0.81
    assert 1.24 < found.max() <= 1.25
    assert found[[5, 17]].equal(factors(7, [5, 17], ("height", "width"), 0.25))
    assert not found.equal(factors(8, range(500), ("height", "width"), 0.25))
    assert (found[:, 0] != found[:, 1]).any()


def test_bent_colours_keep_black_and_white() -> None:
    picture_BCYX = torch.tensor([0.0, 0.25, 1.0]).repeat(2, 3, 1, 1)
    bent_BCYX = bent(picture_BCYX, torch.tensor([[1.0, 2.0, 0.5], [1.0, 1.0, 1.0]]))
    assert bent_BCYX[1].equal(picture_BCYX[1])
    assert bent_BCYX[0, :, 0].tolist() == [[0.0, 0.25, 1.0], [0.0, 0.0625, 1.0], [0.0, 0.5, 1.0]]


def test_zoomed_pictures_grow_about_their_middle() -> None:
    picture_BCYX = torch.zeros(2, 3, 8, 8)
    picture_BCYX[:, :, 2:6, 3:5] = 1.0
    assert torch.allclose(zoomed(picture_BCYX, torch.ones(2, 2)), picture_BCYX, atol=1e-6)
    found_BCYX = zoomed(picture_BCYX, torch.tensor([[1.0, 2.0], [0.5, 1.0]]))
    assert found_BCYX[0, 0].sum() == pytest.approx(16, abs=1e-4)  # as high, twice as wide
    assert found_BCYX[1, 0].sum() == pytest.approx(4, abs=1e-4)  # half as high
    assert torch.allclose(found_BCYX, found_BCYX.flip(2, 3), atol=1e-6)
    assert zoomed(torch.full((1, 1, 4, 4), 0.7), torch.tensor([[0.5, 0.5]])).min() == pytest.approx(0.7)  # edges


@pytest.mark.parametrize("setting", ["data.jitter=3", "data.zoom=0.3", "data.recolour=0.9"])
def test_only_what_is_trained_on_is_varied(setting: str, tmp_path: Path) -> None:
    write("captions", 6, tmp_path / "c.tsv")
    examples = read(str(tmp_path / "c.tsv")).examples
    losses = []
    for settings in ([], [setting]):
        still = ["encoder.dropout=0.0", "decoder.dropout=0.0", "encoder.width=12", "decoder.width=12"]
        c = config.resolve("caption", None, [*still, *settings])
        vocabulary = learn(examples, c, [False])
        task, model = Caption(c, vocabulary), build(c, vocabulary.source.size, vocabulary.target.size, seed=2)
        batch = task.batch([task.encode(example, str(tmp_path)) for example in examples], range(6), 0)
        losses.append([float(task.loss(part, batch, 1.0, 5).total.detach()) for part in (model.train(), model)])
        losses[-1].append(float(task.loss(model.eval(), batch, 1.0, 5).total.detach()))
    plain, varied = losses
    assert varied[0] == varied[1]
    assert varied[0] != plain[0]
    assert varied[2] == plain[2]
