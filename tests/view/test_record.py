"""Records drawn: in the terminal, as SVG and PNG; and the curves of a run."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from rich.cells import cell_len

from regard.data.tokens import END
from regard.tasks.task import Answer, Item, Token
from regard.trained import Trained
from regard.view import fonts, plot, terminal
from regard.view.look import whole
from regard.view.record import Picture, Record
from tests.view.small import made

TEXT = "{http://www.w3.org/2000/svg}text"
SVG = "{http://www.w3.org/2000/svg}svg"
DATE = b"<dc:date>"


def drawn(*rows: list[float], maps: bool = True) -> Record:
    weights = np.array([rows], dtype=np.float32)
    source = tuple(Token(text, i, i + 1, id) for i, (text, id) in enumerate([("a", 9), ("\x1b", 8), ("<end>", END)]))
    target = tuple(Token(text, i, i + 1, id) for i, (text, id) in enumerate([("x", 9), ("<end>", END)]))
    return Record("a\x1b", source, "x", target, (0.5, 1.0), {"decoder.cross": weights} if maps else {})


RECORD = drawn([0.0, 0.3, 0.7], [0.0, 0.0, 1.0])


# ── the record ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_alignment_is_the_mean_over_heads_and_layers() -> None:
    one, two = np.zeros((2, 2, 3), np.float32), np.ones((2, 2, 3), np.float32)
    one[0, 0, 0] = 1.0
    record = Record("", RECORD.source, "", RECORD.target, (1.0, 1.0), {"decoder.0.cross": one, "decoder.1.cross": two,
                                                                       "decoder.0.self": two * 9})  # fmt: skip
    found = record.alignment()
    assert found is not None
    assert found.tolist() == [[0.75, 0.5, 0.5], [0.5, 0.5, 0.5]]


def test_steps_of_one_attention_become_one_map() -> None:
    calls = [torch.ones(1, 2, 1, 1), torch.full((1, 2, 1, 2), 0.5)]
    found = whole(calls)
    assert found.shape == (2, 2, 2)
    assert found[0].tolist() == [[1.0, 0.0], [0.5, 0.5]]


COPYING = replace(RECORD, maps={**RECORD.maps, "decoder.copy": np.array([[[1.0, 0, 0], [1.0, 0, 0]]], np.float32)},
                  copied=(0.875, 0.0))  # fmt: skip


def test_a_copy_head_looks_from_target_to_source() -> None:
    found = COPYING.alignment()
    assert found is not None
    assert found[1].tolist() == [0.5, 0.0, 0.5]  # beside what else looks there
    row = replace(COPYING, kind="row", maps={"decoder.0.self": np.ones((2, 5, 5), np.float32), **COPYING.maps})
    del row.maps["decoder.cross"]
    assert row.axes("decoder.copy") == ("target", "source")
    alone = row.alignment()  # in one row, nothing else is between the two
    assert alone is not None
    assert alone.tolist() == [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    assert len(COPYING.bertviz()["cross_attention"]) == 1


def test_how_much_was_copied_is_told() -> None:
    assert COPYING.as_json()["copied"] == [0.875, 0.0]
    assert RECORD.as_json()["copied"] is None
    lines = terminal.alignment(COPYING).splitlines()
    assert [line.split("  ")[-2:] for line in lines[1:3]] == [["0.500", "copied 0.875"], ["1.000", "copied 0.000"]]


# ── in the terminal ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_blocks_of_ink() -> None:
    lines = terminal.alignment(RECORD).splitlines()
    assert lines[0] == "       a\\x1b⏎"
    assert lines[1].split("  ")[-1] == "0.500"
    assert lines[1].startswith("    x   ░░░░▓")
    assert lines[2].startswith("    ⏎       ")
    assert "█" in lines[2]


def test_words_of_a_text_are_no_signs() -> None:
    """`<end>` may stand in anybody's text; the end of a text is known by its number."""
    record = replace(RECORD, source=(Token("<end>", 0, 5, 20), Token("<b>", 6, 9, 21), RECORD.source[-1]))
    assert terminal.alignment(record).splitlines()[0] == "       <end><b>⏎"


def test_columns_stand_below_each_other_in_every_script() -> None:
    """A Chinese sign takes two columns of a terminal, a mark that stands on the sign before it none."""
    texts = ["日", "a", "\u0301"]
    record = replace(drawn([0.9, 0.0, 0.9], [0.0, 0.0, 0.0]), source=tuple(Token(text, 0, 1, 9) for text in texts),
                     target=(Token("本", 0, 1, 9), RECORD.target[1]))  # fmt: skip
    lines = terminal.alignment(record).splitlines()
    assert lines[1].startswith("   本  ██ █  0.5")
    assert cell_len(lines[0]) == 7 + 2 + 1 + 1
    assert cell_len(lines[1]) == cell_len(lines[2])
    assert {cell_len(line) for line in terminal.bars([("日本", 1.0), ("ab", 0.5)])} == {4 + 2 + 20 + 2 + 5}


def test_no_control_character_reaches_the_terminal() -> None:
    assert "\x1b" not in terminal.alignment(RECORD)


@pytest.mark.parametrize(("weight", "ink"), [(0.0, " "), (0.2, "░"), (0.5, "▒"), (0.79, "▓"), (0.8, "█"), (1.0, "█")])
def test_shade(weight: float, ink: str) -> None:
    assert terminal.shade(weight) == ink


def test_without_attention_it_says_so() -> None:
    assert "no attention" in terminal.alignment(drawn(maps=False))


@pytest.mark.parametrize("preset", ["rnn", "rnn-attention", "transformer", "decoder", "conv", "rnn-single"])
def test_every_preset_can_be_shown(small_model: Callable[..., Trained], tmp_path: Path, preset: str) -> None:
    record = small_model(preset).look("abca")
    lines = terminal.alignment(record).splitlines()
    assert len(lines) == (1 if record.alignment() is None else 2 + len(record.target))


READ = [("classify", "its label"), ("tag", "each label"), ("fill", "what fills a hole"), ("extract", "its piece")]


@pytest.mark.parametrize(("task", "told"), READ)
def test_a_model_without_a_decoder_is_not_said_to_start_from_a_state(task: str, told: str) -> None:
    record = replace(drawn(maps=False), kind="read", model={"task": task})
    found = terminal.alignment(record)
    assert f"no attention, and no decoder: {told} comes from" in found
    assert "starts from" not in found
    assert "starts from" in terminal.alignment(drawn(maps=False))
    assert "carries along" in terminal.alignment(replace(drawn(maps=False), kind="row"))


def test_faint_weights_are_seen_and_the_scale_is_told() -> None:
    lines = terminal.alignment(drawn([0.01, 0.02, 0.1], [0.0, 0.05, 0.0])).splitlines()
    assert lines[1].startswith("    x  ░░░░░█")
    assert lines[2].startswith("    ⏎   ▒▒▒▒ ")
    assert lines[-1] == "█ is 0.080 to 0.100, the most of this map; ░ begins at 0.005"


def long(count: int, word: str = "ab") -> Record:
    source = tuple(Token(word, 3 * i, 3 * i + 2, 9) for i in range(count))
    weights = np.zeros((1, 2, count), np.float32)
    weights[0, :, 5], weights[0, :, -1] = 0.5, 0.4
    return replace(RECORD, text=f"{word} " * count, source=source, maps={"decoder.cross": weights})


@pytest.mark.parametrize(("count", "word"), [(40, "ab"), (256, "ab"), (256, "日本"), (2000, "ab")])
def test_no_line_is_wider_than_the_terminal(count: int, word: str) -> None:
    lines = terminal.alignment(long(count, word), width=80).splitlines()
    assert max(map(cell_len, lines)) <= 80
    drawn_tokens = sum(line.count(word) for line in lines)
    if drawn_tokens < count:
        assert f"the {drawn_tokens} of {count} tokens of the source that were looked at most:" == lines[0]
    assert sum(line.count("█") for line in lines) >= 4  # what was looked at is among what is shown


def test_columns_line_up_where_characters_are_wide() -> None:
    head, first, *_ = terminal.alignment(long(6, "日本"), width=80).splitlines()
    assert cell_len(first.split("  0.500")[0]) == cell_len(head) == 7 + 6 * 4


def test_a_picture_is_shown_as_its_places() -> None:
    picture = Picture(np.zeros((3, 8, 8), np.float32), 8, 8)
    weights = np.zeros((1, 2, 64), np.float32)
    weights[0, 0, 0], weights[0, 1, 63] = 0.5, 1.0
    source = tuple(Token(f"{i // 8},{i % 8}", 0, 0) for i in range(64))
    record = replace(RECORD, source=source, maps={"decoder.cross": weights}, picture=picture)
    lines = terminal.alignment(record, width=60).splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[0].split() == ["0.500", "x", "1.000", "⏎"]
    assert lines[1].startswith("▒▒  ")
    assert lines[8].endswith("██")
    assert len(lines) == 1 + 8 + 1
    assert len(terminal.alignment(record, width=20).splitlines()) == 2 * (1 + 8) + 1 + 1


def test_a_vector_is_told_by_the_words_that_carry_it(tmp_path: Path) -> None:
    model = made("embed", "encoder")
    record = model.look("abc d bb")
    assert [record.text[word.start : word.end] for word in record.carried] == ["abc", "d", "bb"]
    ids = [token.id for token in record.source]
    whole, without = model.embedded([Item(tuple(ids), ()), Item(tuple(ids[4:]), ())], 2)  # "abc" is erased
    spaced = model.embedded([Item((ids[3], *ids[4:]), ())], 1)[0]
    assert record.carried[0].weight == pytest.approx(1 - float(whole @ spaced), abs=1e-5)
    assert record.carried[0].weight != pytest.approx(1 - float(whole @ without), abs=1e-9)
    lines = terminal.looked(record).splitlines()
    assert max(map(len, lines)) < 100
    assert [line.split()[0] for line in lines[-3:]] == ["abc", "d", "bb"]
    record.save(tmp_path / "x.png")
    with Image.open(tmp_path / "x.png") as picture:
        assert picture.width < 1200
        assert picture.height > 150
    assert [word["weight"] for word in record.as_json()["carried"]] == [word.weight for word in record.carried]
    assert model.look("a").carried == ()


@pytest.mark.parametrize("pooling", [True, False])
def test_every_class_is_drawn_and_what_the_pooling_looked_at(tmp_path: Path, pooling: bool) -> None:
    chances = tuple((f"class {number}", 0.5**number) for number in range(1, 13))
    answer, maps = Answer("class 1", 0.0, 0.5, chances=chances), {"head": np.full((1, 1, 3), 0.3, np.float32)}
    record = Record("a b", RECORD.source, "class 1", (Token("class 1", 0, 7, 9),), (0.5,), maps if pooling else {},
                    kind="read", answer=answer)  # fmt: skip
    record.save(tmp_path / "x.svg")
    text = (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert [f">class {number}<" in text for number in range(1, 13)] == [True] * 10 + [False] * 2
    assert "2 less likely ones left out" in text
    assert ("what looked at what" in text) is pooling


# ── as files ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_heat_map_as_svg_and_png(tmp_path: Path) -> None:
    RECORD.save(tmp_path / "x.svg")
    RECORD.save(tmp_path / "x.png")
    assert ElementTree.parse(tmp_path / "x.svg").getroot().tag == SVG
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_text_from_data_is_text_in_the_picture(tmp_path: Path) -> None:
    text = "<script>&$x^2$ \\frac{ $"
    record = Record(text, RECORD.source, text, RECORD.target, (0.5, 1.0), RECORD.maps)
    record.save(tmp_path / "x.svg")
    assert b"<script" not in (tmp_path / "x.svg").read_bytes()


LETTERS = "9 مايو 日本 😀 Д \U000f0000"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("ending", [".png", ".svg"])
def test_letters_of_any_script_without_a_warning(
    small_model: Callable[..., Trained], tmp_path: Path, ending: str
) -> None:
    """The axis has the characters themselves, and not the bytes that spell what the vocabulary does not hold."""
    record = small_model("rnn-attention", "data.max_source=50").look(LETTERS)
    assert [label for label in record.labels("source") if label in LETTERS][:3] == ["9", "م", "ا"]
    record.save(tmp_path / f"x{ending}")
    if ending == ".svg":
        text = (tmp_path / "x.svg").read_text(encoding="utf-8")
        assert all(f">{letter}<" in text for letter in "م日Д😀")


def test_directions_do_not_mix_in_a_title() -> None:
    assert str(plot.Title("9 May", "2018")) == "9 May  →  2018"
    assert str(plot.Title("9 مايو 2018", "2018-05-09")) == "9 مايو 2018\n→  2018-05-09"
    assert str(plot.Title("日" * 200, "x")) == "日" * 90 + "…\n→  x"


def test_what_no_font_has_is_a_box() -> None:
    chosen = fonts.families(["a日\U000f0000"])
    assert chosen[0] == fonts.USUAL
    assert fonts.drawable("a\n\U000f0000\u2068", chosen).startswith("a\n")
    assert fonts.drawable("\U000effff", [fonts.USUAL]) in ("", fonts.BOX)
    assert fonts.drawable("日", [fonts.USUAL]) == fonts.BOX
    assert fonts.drawable("日", chosen) == ("日" if len(chosen) > 1 else fonts.BOX)


@pytest.mark.filterwarnings("error")
def test_a_picture_that_may_not_be_written_to(small_model: Callable[..., Trained]) -> None:
    model = small_model("caption")
    pixels = np.zeros((3, 32, 32), np.float32)
    pixels.setflags(write=False)
    assert model.look("x.png", item=Item((), (), pixels)).picture is not None


def test_pictures_are_the_same_every_time(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        RECORD.save(tmp_path / name)
    content = (tmp_path / "a.svg").read_bytes()
    assert content == (tmp_path / "b.svg").read_bytes()
    assert DATE not in content


@pytest.mark.parametrize(
    "log",
    [
        [],
        [{"step": 1, "loss": 2.0}],
        [{"step": i, "loss": 3.0 / i} for i in range(1, 60)] + [{"step": 59, "valid_loss": 1.0, "valid_exact": 50.0}],
        [{"step": 1, "loss": float("nan")}, {"step": 2, "loss": 0.0}],
    ],
    ids=["nothing", "one", "many", "odd"],
)
@pytest.mark.filterwarnings("error")
def test_curves(log: list[dict[str, float]]) -> None:
    found = BytesIO()
    plot.curves(log, "exact", found)
    assert ElementTree.fromstring(found.getvalue()).tag == SVG


def test_a_mean_of_weights_is_no_point_of_the_curve() -> None:
    log: list[dict[str, Any]] = [{"step": step, "valid_exact": 90.0 + step} for step in range(1, 6)]
    figure = plot.blank(4, 3)
    axes = figure.subplots()
    plot.line(axes, [*log, {"step": 5, "valid_exact": 60.0, "weights": "mean"}], "valid_exact", "exact", "black")
    assert [[*map(float, drawn.get_ydata())] for drawn in axes.lines] == [[91, 92, 93, 94, 95], [60]]


def test_axes_end_where_their_numbers_do() -> None:
    """A share is at most 100 %, and there is no half step, even of one validation or two."""
    for steps in ([86], [85, 86], [10, 20, 30]):
        log = [{"step": step, "loss": 1.0, "valid_exact": 99.0 + place} for place, step in enumerate(steps[:2])]
        found = BytesIO()
        plot.curves(log, "exact", found)
        numbers = [float(text.text) for text in ElementTree.fromstring(found.getvalue()).iter(TEXT) if is_number(text)]
        assert not [number for number in numbers if 9 < number < 98 and number % 1]
        assert not [number for number in numbers if 100 < number < 110]


def is_number(element: ElementTree.Element) -> bool:
    return bool(re.fullmatch(r"[0-9.]+", element.text or ""))
