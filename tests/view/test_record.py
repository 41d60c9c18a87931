"""Records drawn: in the terminal, as SVG and PNG; and the curves of a run."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.cells import cell_len

from regard.data.tokens import END
from regard.tasks.task import Token
from regard.trained import Trained
from regard.view import plot, terminal
from regard.view.look import whole
from regard.view.record import Record

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
    assert [line.split("  ")[-2:] for line in lines[1:]] == [["0.500", "copied 0.875"], ["1.000", "copied 0.000"]]


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
    assert len(lines) == (1 if record.alignment() is None else 1 + len(record.target))


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
