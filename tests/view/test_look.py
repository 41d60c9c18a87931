"""Looking in, for every preset and every task: the record fits together, costs no output, and says what was changed."""

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import regard
from regard.errors import RegardError, UsageError
from regard.layers.tap import Off, Tap
from regard.search.write import Sampling
from regard.tasks.task import Wish
from regard.trained import Trained
from regard.view.change import Change, head_counts
from regard.view.derive import agreement, entropy, ranks, rollout, spearman
from regard.view.record import Record
from tests.view.small import READING, made

PAIRS = ("rnn", "rnn-context", "rnn-attention", "conv", "attention-encoder", "transformer", "decoder", "rnn-single")
BODIES = ("rnn", "conv", "transformer", "encoder", "decoder", "rnn-single")
ENCODERS = ("rnn", "conv", "transformer", "encoder")
EVERY = [
    *(("classify", preset) for preset in BODIES),
    *(("tag", preset) for preset in BODIES),
    *(("embed", preset) for preset in BODIES),
    *(("fill", preset) for preset in ENCODERS),
    *(("extract", preset) for preset in ENCODERS),
    *(("generate", preset) for preset in ("rnn", "conv", "transformer", "decoder")),
]


def fits(record: Record) -> None:
    """Every part has as many entries as the tokens it is about, and every row of a map sums to 1."""
    assert len(record.probabilities) == len(record.alternatives) == len(record.target)
    for name, map in record.maps.items():
        queries, keys = record.axes(name)
        assert map.shape[1:] == (len(record.tokens(queries)), len(record.tokens(keys)))
        np.testing.assert_allclose(map.sum(-1), 1.0, atol=1e-5)
    weights = record.alignment()
    assert weights is None or weights.shape == (len(record.target), len(record.source))
    for token in record.source:
        assert 0 <= token.start <= token.end <= len(record.text)
    for token in record.target:
        assert 0 <= token.start <= token.end <= len(record.output)
    derived = record.derived
    assert derived is not None
    assert derived.erasure.shape == derived.gradient.shape == (len(record.target), len(record.source))
    assert derived.rollout is None or derived.rollout.shape == derived.erasure.shape
    assert set(derived.entropy) == set(record.maps)
    json.dumps(record.as_json(), allow_nan=False)


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("preset", PAIRS)
def test_every_preset_is_looked_into(small_model: Callable[..., Trained], preset: str, beam: int) -> None:
    model = small_model(preset)
    record = model.look("abca", beam, derive=True)
    fits(record)
    assert record.output == model("abca", beam)
    assert (record.beam is not None) == (beam > 1)


@pytest.mark.parametrize(("task", "preset"), EVERY, ids=[f"{task}-{preset}" for task, preset in EVERY])
def test_every_task_is_looked_into(task: str, preset: str) -> None:
    model, question = made(task, preset), READING[task][1]
    wish = Wish(max_length=8) if task == "generate" else model.wish()
    record, (answer,) = model.look(question, wish=wish, derive=True), model.run([question], wish=wish)
    fits(record)
    assert (record.text if task == "generate" else "") + record.output == answer.text == record.answer.text
    assert record.answer.probability == pytest.approx(answer.probability, rel=1e-3)


def test_a_caption_is_looked_into(small_model: Callable[..., Trained], tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3)).save(tmp_path / "x.png")
    model = small_model("caption")
    record = model.look(str(tmp_path / "x.png"), derive=True)
    fits_picture = record.picture
    assert fits_picture is not None
    assert fits_picture.rows * fits_picture.columns == len(record.source)
    assert record.as_json()["picture"]["data"].startswith("data:image/png;base64,")
    changed = model.look(str(tmp_path / "x.png"), change=Change(erase=(0,)))
    assert changed.picture is not None
    assert not np.array_equal(changed.picture.pixels, fits_picture.pixels)
    record.save(tmp_path / "look.svg")
    assert (tmp_path / "look.svg").read_bytes().count(b"<image") >= len(record.target)


# ── looking changes nothing ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("preset", PAIRS)
def test_in_training_a_look_is_the_same_and_training_goes_on(small_model: Callable[..., Trained], preset: str) -> None:
    model = small_model(preset, "decoder.dropout=0.5")
    before = model.look("abca")
    model.model.train()
    state = torch.get_rng_state()
    found = model.look("abca", derive=True)
    assert model.model.training
    assert torch.equal(torch.get_rng_state(), state)
    assert (found.output, found.probabilities) == (before.output, before.probabilities)
    model.model.eval()


def test_probabilities_are_those_of_the_answer(copy_model: Trained) -> None:
    record = copy_model.look("abca")
    assert np.prod(record.probabilities) == pytest.approx(record.answer.probability, rel=1e-4)
    for place, others in zip(record.probabilities, record.alternatives, strict=True):
        assert [other.probability for other in others] == sorted((o.probability for o in others), reverse=True)
        assert any(other.probability == pytest.approx(place) for other in others)


# ── the beam ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_beam_is_a_tree_to_the_output(copy_model: Trained) -> None:
    record = copy_model.look("abca", beam=4)
    assert record.beam is not None
    best = [node for node in record.beam if node.best]
    assert [node.id for node in best] == [token.id for token in record.target]
    assert best[-1].ended
    assert best[-1].sum == pytest.approx(float(np.log(record.probabilities).sum()), abs=1e-3)
    for number, node in enumerate(record.beam):
        assert node.parent < number
        parent = record.beam[node.parent] if node.parent >= 0 else None
        assert node.step == (0 if parent is None else parent.step + 1)
        assert node.sum == pytest.approx((parent.sum if parent else 0.0) + node.log, abs=1e-4)
        assert parent is None or parent.kept
    assert max(sum(node.step == step for node in record.beam) for step in range(4)) <= 4


def test_sampled_looks_have_no_tree(copy_model: Trained) -> None:
    assert copy_model.look("abca", wish=Wish(beam=4, sampling=Sampling())).beam is None


# ── what if ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_erased_token_is_not_read(copy_model: Trained) -> None:
    record = copy_model.look("abca", change=Change(erase=(1,)))
    assert record.output == copy_model("aca")
    assert [token.text for token in record.source] == ["a", "c", "a", "<end>"]
    assert record.change == Change(erase=(1,))
    assert copy_model.look("abca").change is None


def test_an_erased_word_that_is_labelled_leaves_its_place() -> None:
    record = made("tag", "encoder", "tokens.source=words").look("ab cd", change=Change(erase=(0,)))
    assert [token.text for token in record.source] == ["<unknown>", "cd", "<end>"]
    assert len(record.target) == 2


def test_a_head_that_is_off_adds_nothing(small_model: Callable[..., Trained]) -> None:
    model = small_model("transformer")
    every = tuple((name, head) for name, count in head_counts(model.model).items() for head in range(count))
    record = model.look("abca", change=Change(off=every))
    assert record.probabilities != model.look("abca", change=Change(off=every[:1])).probabilities
    with Off(model.model, [("decoder.0.cross", 1)]) as tap:
        found = tap.change(model.model.decoder.layers[0].cross_attention, torch.ones(1, 2, 1, 4))  # type: ignore[union-attr]
    assert found.sum(-1).flatten().tolist() == [4.0, 0.0]


def test_off_without_heads_is_a_tap(small_model: Callable[..., Trained]) -> None:
    """It hears what a tap hears, and every attention finds what it found."""
    model = small_model("transformer")
    item, (answer,) = model.item("abca"), model.run(["abca"])
    heard, foreseen = [], []
    for tap in (Tap(model.model), Off(model.model, []), Off(model.model, [("decoder.0.cross", 0)])):
        with tap, torch.inference_mode():
            foreseen.append(model.task.foresee(model.model, [item], [answer])[0].log_TV)
        heard.append({name: [call.shape for call in calls] for name, calls in tap.maps.items()})
    assert heard[0] == heard[1] == heard[2]
    assert set(heard[0]) == set(head_counts(model.model))
    assert torch.equal(foreseen[0], foreseen[1])
    assert not torch.equal(foreseen[0], foreseen[2])


@pytest.mark.parametrize("beam", [1, 3])
def test_a_beginning_is_kept(copy_model: Trained, beam: int) -> None:
    begin = copy_model.vocabulary.target.encode("dd").ids
    assert copy_model.look("abca", beam, change=Change(begin=begin)).output.startswith("dd")


@pytest.mark.parametrize(
    "change",
    [Change(erase=(9,)), Change(erase=(4,)), Change(off=(("nowhere", 0),)), Change(off=(("decoder.cross", 7),)),
     Change(begin=(2,)), Change(begin=(100_000,)), Change(erase=(0, 1, 2, 3))],
)  # fmt: skip
def test_what_is_not_there_can_not_be_changed(copy_model: Trained, change: Change) -> None:
    with pytest.raises(UsageError):
        copy_model.look("abca", change=change)


# ── prompts ──────────────────────────────────────────────────────────────────────────────────────────────────────────

LONG = "ab cd ab cd ab cd ab cd"


def test_a_token_of_a_long_prompt_is_erased_by_the_number_it_is_shown_with() -> None:
    model = made("generate", "decoder")
    shown = model.look(LONG, 1).source
    assert len(shown) < len(LONG)
    for place, token in enumerate(shown):
        left = model.look(LONG, 1, change=Change(erase=(place,))).source
        assert left == shown[:place] + shown[place + 1 :], token
    with pytest.raises(UsageError, match="from 0 to 7"):
        model.look(LONG, 1, change=Change(erase=(len(shown),)))


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("prompt", ["ab", "", LONG])
@pytest.mark.parametrize("kind", ["characters", "words", "bpe"])
def test_what_follows_a_prompt_is_told_as_run_tells_it(kind: str, prompt: str, beam: int) -> None:
    """The answers are whole texts, at every beam, none of them twice; the output is what was added to the prompt."""
    model = made("generate", "decoder", f"tokens.source={kind}", f"tokens.target={kind}", *size(kind))
    record = model.look(prompt, wish=Wish(beam=beam, max_length=6))
    (answer,) = model.run([prompt], wish=Wish(beam=beam, max_length=6))
    told = [each["text"] for each in record.as_json()["answers"]]
    assert prompt + record.output == record.answer.text == told[0] == answer.text
    assert len(set(told)) == len(told)
    assert record.answer.probability == pytest.approx(answer.probability, rel=1e-3)
    if kind != "bpe":  # whose bytes may be part of a character
        assert "".join(record.output[token.start : token.end] for token in record.target) == record.output


def size(kind: str) -> list[str]:
    return ["tokens.size=280"] if kind == "bpe" else []


def test_a_beam_finds_no_text_twice(small_model: Callable[..., Trained]) -> None:
    """Bytes that are no text are all written as the same sign."""
    model = small_model("rnn-attention", "tokens.source=bytes", "tokens.target=bytes")
    for text in ("abca", "dd", "b"):
        told = [each["text"] for each in model.look(text, 16).as_json()["answers"]]
        assert len(set(told)) == len(told)


# ── what is there to be looked at ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["characters", "words"])
@pytest.mark.parametrize(
    ("task", "question"),
    [("fill", "[mask]"), ("fill", " "), ("tag", " "), ("classify", " "), ("extract", " \tab"), ("extract", "ab\t "),
     ("embed", "\u3000")],
)  # fmt: skip
def test_what_is_answered_can_be_looked_into(task: str, question: str, kind: str) -> None:
    model = made(task, "transformer", f"tokens.source={kind}")
    record = model.look(question, derive=True)
    fits(record)
    assert record.output == model(question)


def test_half_a_character_is_shown_whole(copy_model: Trained, tmp_path: Path) -> None:
    record = copy_model.look("ab\udcff")
    assert record.text == "ab\ufffd"
    for ending in ("json", "html"):
        record.save(tmp_path / f"x.{ending}")


@pytest.mark.parametrize("beam", [1, 3])
def test_a_look_finds_what_whole_numbers_find(copy_folder: Path, beam: int) -> None:
    """The search is that of `run`; a model that was hardly trained tells the two precisions apart."""
    exact, coarse = regard.load(copy_folder), regard.load(copy_folder, "int8")
    texts = ["dbca", "abcdabcd", "ddddd", "acbdacbdab", "bbbbbbbbb"]
    sure = [model.run([text], beam)[0].probability for model in (exact, coarse) for text in texts]
    looked = [model.look(text, beam) for model in (exact, coarse) for text in texts]
    assert [record.answer.probability for record in looked] == pytest.approx(sure, rel=1e-5)
    assert sure[: len(texts)] != pytest.approx(sure[len(texts) :], rel=1e-5)
    assert [looked[0].model["precision"], looked[-1].model["precision"]] == ["fp32", "int8"]
    off = Change(off=(("decoder.cross", 0),))
    assert coarse.look(texts[0], beam, change=off).model["precision"] == "fp32"


# ── derived ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_erasure_is_what_erasing_costs(copy_model: Trained) -> None:
    record = copy_model.look("abc", derive=True)
    assert record.derived is not None
    after = copy_model.likelihood(["ac"], [record.output])[0]
    lost = np.log(record.answer.probability) - np.log(after.probability)
    assert record.derived.erasure[:, 1].sum() == pytest.approx(lost, rel=1e-3)
    assert record.derived.erasure[:, -1].tolist() == [0.0] * len(record.target)  # the end is never erased


def test_a_copy_is_made_of_what_is_copied(copy_model: Trained) -> None:
    """Trained to copy, each letter goes by the same letter of the source: erasure and the gradient both see it."""
    record = copy_model.look("dbc", derive=True)
    assert record.output == "dbc"
    assert record.derived is not None
    assert record.derived.erasure.sum(0)[:3].min() > 1.0
    np.testing.assert_allclose(record.derived.gradient.sum(-1), 1.0, atol=1e-5)


def test_importance_is_what_a_head_is_worth(copy_model: Trained) -> None:
    record = copy_model.look("abc", derive=True)
    assert record.derived is not None
    (lost,) = record.derived.importance["decoder.cross"]
    with Off(copy_model.model, [("decoder.cross", 0)]), torch.inference_mode():
        without = copy_model.task.foresee(copy_model.model, [copy_model.item("abc")], [record.answer])[0].given_T
    expected = np.log(record.probabilities) - without.numpy()
    assert expected.mean() > 0.1
    assert lost == pytest.approx(expected.mean(), rel=1e-4)


def test_what_is_derived_is_about_the_model_without_its_heads(small_model: Callable[..., Trained]) -> None:
    """Where nothing looks at the source any more, no token of it can matter, nor a head that is off already."""
    model = small_model("transformer")
    cross = tuple((name, head) for name, count in head_counts(model.model).items() if name.endswith("cross")
                  for head in range(count))  # fmt: skip
    whole = model.look("abca", derive=True).derived
    blind = model.look("abca", change=Change(off=cross), derive=True).derived
    assert whole is not None
    assert blind is not None
    assert np.abs(whole.erasure).max() > 1e-4
    assert np.abs(blind.erasure).max() < 1e-5
    assert blind.gradient.max() == 0.0
    assert all(abs(blind.importance[name][head]) < 1e-5 for name, head in cross)
    assert any(abs(each) > 1e-4 for each in blind.importance["decoder.0.self"])


@pytest.mark.parametrize("preset", ["rnn", "conv", "transformer", "decoder"])
def test_the_last_token_of_a_prompt_has_a_gradient(preset: str) -> None:
    derived = made("generate", preset).look("ab ", derive=True).derived
    assert derived is not None
    assert derived.gradient[:, -1].max() > 1e-3
    assert derived.gradient[0].sum() == pytest.approx(1.0)


def test_rollout_of_one_layer_is_half_itself(small_model: Callable[..., Trained]) -> None:
    model = small_model("encoder", "task=fill", "encoder.layers=1")
    record = model.look("ab[mask]a")
    map, found = record.maps["encoder.0.self"].mean(0), rollout(record)
    assert found is not None
    np.testing.assert_allclose(found, (0.5 * np.eye(len(map)) + 0.5 * map)[[2]], atol=1e-6)


def test_entropy_in_bits() -> None:
    map = np.array([[[0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]], [[0.25] * 4] * 2], np.float32)
    assert entropy(map) == pytest.approx((0.5, 2.0))


def test_rank_correlation() -> None:
    assert ranks(np.array([3.0, 1.0, 3.0])).tolist() == [2.5, 1.0, 2.5]
    assert spearman(np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 21.0])) == pytest.approx(1.0)
    assert spearman(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])) == pytest.approx(-1.0)
    assert spearman(np.array([1.0, 1.0]), np.array([1.0, 2.0])) is None


def test_agreement_goes_by_what_matters(copy_model: Trained) -> None:
    record = copy_model.look("abcd")
    looked = np.array([[0.9, 0.04, 0.03, 0.03, 0.0]] * 5, np.float32)
    lost = np.array([[9.0, 0.0, 0.1, 0.2, 0.0]] + [[0.0, 0.0, 0.0, 0.0, 0.0]] * 4, np.float32)
    assert agreement(record, looked, lost, lost) == pytest.approx(1.0)
    assert (agreement(record, looked[:, ::-1], lost, lost) or 0.0) < 0.0
    assert agreement(record, looked, 0 * lost, 0 * lost) is None
    assert agreement(record, None, lost, lost) is None


# ── out ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_bertviz_gets_its_arrays(small_model: Callable[..., Trained]) -> None:
    found = small_model("transformer").look("abca").bertviz()
    assert [map.shape for map in found["encoder_attention"]] == [(1, 2, 5, 5)] * 2
    assert len(found["cross_attention"]) == len(found["decoder_attention"]) == 2
    rows = small_model("decoder").look("abca").bertviz()
    assert rows["attention"][0].shape[-1] == len(rows["tokens"])


def test_packed_numbers_are_the_same(small_model: Callable[..., Trained]) -> None:
    import base64

    record = small_model("rnn-attention").look("abca")
    packed = record.as_json(packed=True)["maps"][0]["weights"]
    found = np.frombuffer(base64.b64decode(packed["float32"]), "<f4").reshape(packed["shape"])
    assert np.array_equal(found, record.maps["decoder.cross"])


@pytest.mark.parametrize("preset", ["rnn", "rnn-attention", "transformer", "decoder", "conv"])
@pytest.mark.parametrize("ending", ["png", "svg", "json"])
def test_files(small_model: Callable[..., Trained], tmp_path: Path, preset: str, ending: str) -> None:
    path, record = tmp_path / f"x.{ending}", small_model(preset).look("abca")
    record.save(path)
    match ending:
        case "json":
            assert json.loads(path.read_text(encoding="utf-8")) == json.loads(json.dumps(record.as_json()))
        case "png":
            pixels = np.asarray(Image.open(path).convert("L"))
            assert len(np.unique(pixels)) > 4  # more than ink on paper
        case "svg":
            assert ElementTree.parse(path).getroot().tag.endswith("svg")
            other = replace(record, maps={name: map[..., ::-1] for name, map in record.maps.items()},
                            probabilities=tuple(sure / 2 for sure in record.probabilities))  # fmt: skip
            other.save(tmp_path / "other.svg")
            assert path.read_bytes() != (tmp_path / "other.svg").read_bytes()


def test_files_hold_no_infinities(copy_model: Trained, tmp_path: Path) -> None:
    """JSON has no word for them, and a browser would stop at Python's."""
    record = copy_model.look("ab", derive=True)
    assert record.derived is not None
    record.derived.erasure[0, 0], record.derived.erasure[0, 1] = np.inf, np.nan
    record = replace(record, answer=replace(record.answer, score=-np.inf, alternatives=()))
    record.save(tmp_path / "x.json")
    record.save(tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    held = page.partition('id="regard">')[2].partition("</script>")[0]
    for text in ((tmp_path / "x.json").read_text(encoding="utf-8"), held):
        found = json.loads(text, parse_constant=pytest.fail)
        assert found["score"] is None
        assert found["derived"]["erasure"][0][:2] == [None, None]


def test_a_file_of_no_known_kind_is_refused(copy_model: Trained, tmp_path: Path) -> None:
    record = copy_model.look("ab")
    with pytest.raises(UsageError, match=r"\.html"):
        record.save(tmp_path / "x.pdf")
    with pytest.raises(RegardError):
        record.save(tmp_path / "no" / "x.json")
