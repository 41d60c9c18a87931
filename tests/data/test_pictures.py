"""Folders of pictures in, examples out: texts from a table, from files beside, from folders, from names."""

import os
import zipfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.data.check import check, with_guess
from regard.data.doctor.sheet import render
from regard.data.guess import guess
from regard.data.images import load_image
from regard.data.pictures import origin, shown, words
from regard.data.read import Columns, Stream, read
from regard.errors import DataError, MissingError, UsageError

pillow = pytest.importorskip("PIL.Image")

COLOURS = {"red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200)}
QUICK = ["train.steps=2", "train.warmup=1", "encoder.width=16", "encoder.size=8", "decoder.width=16"]


def paint(path: Path, colour: str = "red", size: tuple[int, int] = (8, 8)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pillow.new("RGB", size, COLOURS[colour]).save(path)


def pairs(folder: Path) -> list[tuple[str, str | None]]:
    return [(example.source[0], example.target) for example in read(str(folder)).examples]


# ── where the texts come from ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "text"),
    [("red_square.png", "red square"), ("red_square_07.png", "red square"), ("red-square-2.jpg", "red-square"),
     ("cat (3).png", "cat"), ("007.png", "007"), ("Ünë.jpeg", "Ünë"), ("area51.png", "area")],
)  # fmt: skip
def test_a_name_as_words(name: str, text: str) -> None:
    assert words(name) == text


def test_names(tmp_path: Path) -> None:
    for name in ("red_cat_1.png", "red_cat_2.PNG", "dog.jpg", ".hidden.png"):
        paint(tmp_path / name)
    (tmp_path / "notes.md").write_text("no picture")
    assert pairs(tmp_path) == [("dog.jpg", "dog"), ("red_cat_1.png", "red cat"), ("red_cat_2.PNG", "red cat")]
    assert "3 pictures; their texts are the names of the pictures" in read(str(tmp_path)).notes[0]


def test_folders(tmp_path: Path) -> None:
    for name in ("cat/1.png", "cat/2.png", "big_dog/1.png", "deep/owl/1.png", ".git/1.png"):
        paint(tmp_path / name)
    assert dict(pairs(tmp_path)) == {"big_dog/1.png": "big dog", "cat/1.png": "cat", "cat/2.png": "cat",
                                     "deep/owl/1.png": "owl"}  # fmt: skip
    paint(tmp_path / "lonely.png")
    with pytest.raises(DataError, match=r"\"lonely\.png\": the picture stands in no folder"):
        read(str(tmp_path))
    assert read(str(tmp_path), skip_bad=True).skipped == 1


def test_texts_beside(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        paint(tmp_path / name)
    (tmp_path / "a.txt").write_text("a red\nsquare\n", encoding="utf-8")
    assert origin(str(tmp_path)) == "text"
    with pytest.raises(DataError, match=r":2: \"b\.png\": no text beside the picture"):
        read(str(tmp_path))
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe")
    assert [each.flaw for each in shown(str(tmp_path))] == ["", "the text beside the picture is not UTF-8"]
    (tmp_path / "b.txt").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="empty target"):
        read(str(tmp_path))
    (tmp_path / "b.txt").write_text("another", encoding="utf-8")
    assert pairs(tmp_path) == [("a.png", "a red square"), ("b.png", "another")]


def test_texts_beside_are_files_of_the_folder(tmp_path: Path) -> None:
    """Not what a link leads to elsewhere, and no pipe that would be waited for."""
    folder = tmp_path / "pictures"
    for name in ("a.png", "b.png", "c.png", "d/e.png"):
        paint(folder / name)
    (tmp_path / "elsewhere.txt").write_text("secret", encoding="utf-8")
    (folder / "a.txt").write_text("a red square", encoding="utf-8")
    (folder / "b.txt").symlink_to(tmp_path / "elsewhere.txt")
    os.mkfifo(folder / "c.txt")
    (folder / "d" / "e.txt").symlink_to("../a.txt")
    assert {each.picture: each.text or each.flaw for each in shown(str(folder))} == {
        "a.png": "a red square",
        "b.png": "the text beside the picture leads out of its folder",
        "c.png": "no text beside the picture, expected a .txt of the same name",
        "d/e.png": "a red square",
    }


def test_a_table_in_the_folder(tmp_path: Path) -> None:
    paint(tmp_path / "a.png")
    (tmp_path / "list.tsv").write_text("a.png\tfrom the list\n", encoding="utf-8")
    assert pairs(tmp_path) == [("a.png", "from the list")]
    (tmp_path / "captions.csv").write_text("a.png,from the captions\n", encoding="utf-8")
    assert pairs(tmp_path) == [("a.png", "from the captions")]
    assert Stream(str(tmp_path)).path.endswith("captions.csv")


def test_a_folder_without_pictures(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="found a folder without pictures"):
        read(str(tmp_path))
    (tmp_path / "pairs.tsv").write_text("a\tb\n", encoding="utf-8")
    with pytest.raises(MissingError, match="found a folder without pictures"):
        read(str(tmp_path))


# ── what is wrong with pictures ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Twenty-six good pictures, and one of every bad kind."""
    for number in range(26):
        paint(tmp_path / f"{number}.png", [*COLOURS][number % 3])
    paint(tmp_path / "cut.png", size=(64, 64))
    (tmp_path / "cut.png").write_bytes((tmp_path / "cut.png").read_bytes()[:80])
    (tmp_path / "text.png").write_text("no picture")
    (tmp_path / "empty.jpg").write_bytes(b"")
    names = [f"{number}.png" for number in range(26)] + ["cut.png", "text.png", "empty.jpg", "gone.png"]
    rows = "".join(f"{name}\t{[*COLOURS][number % 3]} thing {number}\n" for number, name in enumerate(names))
    (tmp_path / "captions.tsv").write_text(rows, encoding="utf-8")
    return tmp_path


def test_bad_pictures_are_named_or_skipped(broken: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"captions\.tsv:\d+: image \"(cut|text|empty|gone)\."):
        regard.train(broken, settings=QUICK)
    model = regard.train(broken, settings=[*QUICK, "data.skip_bad=true"], out=tmp_path / "m")
    card = (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    assert "can not be used; skipped. The first: " in card
    assert "task caption: " in card
    with pytest.warns(UserWarning, match="4 of 30 examples can not be used"):
        assert len(model.score(broken, skip_bad=True).outputs) == 26


def test_a_check_opens_pictures(broken: Path) -> None:
    table = read(str(broken))
    report = with_guess(check(table), guess(str(broken)), table)
    assert report.pictures is not None
    assert (report.pictures.opened, report.pictures.failed, report.pictures.sizes) == (30, 4, (("8 × 8", 26),))
    text = render(report)
    assert "task caption" in text
    assert "captions.tsv:27: image" in text.replace("\n            ", "")
    assert report.as_dict()["task"] == "caption"


def test_a_giant_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paint(tmp_path / "a.png", size=(300, 200))
    monkeypatch.setattr("regard.data.images.MOST_PIXELS", 50_000)
    table = read(str(tmp_path))
    report = with_guess(check(table), guess(str(tmp_path)), table)
    assert report.pictures is not None
    assert "found 300 × 200 pixels, expected at most 50,000" in report.pictures.shown[0]


def test_large_pictures_are_made_smaller_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half = np.zeros((64, 64, 3), dtype=np.uint8)
    half[:, 32:] = 255
    pillow.fromarray(half).save(tmp_path / "a.png")
    plain = load_image("a.png", tmp_path, 8)
    monkeypatch.setattr("regard.data.images.MANY_PIXELS", 256)
    np.testing.assert_allclose(load_image("a.png", tmp_path, 8), plain)


@pytest.mark.parametrize(
    ("shape", "kind", "found"),
    [((2, 8, 8, 3), "bool", "expected uint8"), ((8, 8), "uint8", "expected uint8"),
     ((70_000, 200, 200), "uint8", "expected at most")],
)  # fmt: skip
def test_an_archive_is_judged_by_its_header(tmp_path: Path, shape: Sequence[int], kind: str, found: str) -> None:
    """The header may promise more than there is; nothing is made room for."""
    header = BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": np.dtype(kind).str, "fortran_order": False, "shape": shape})  # type: ignore[no-untyped-call]
    with zipfile.ZipFile(tmp_path / "p.npz", "w") as archive:
        archive.writestr("images.npy", header.getvalue())
    with pytest.raises(DataError, match=found):
        load_image("p.npz#0", tmp_path, 8)


def test_a_cut_archive_is_told(tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", images=np.zeros((4, 8, 8, 3), dtype=np.uint8))
    (tmp_path / "p.npz").write_bytes((tmp_path / "p.npz").read_bytes()[:300])
    with pytest.raises(DataError, match="no readable array"):
        load_image("p.npz#0", tmp_path, 8)


# ── the public way ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_folder_is_learnt_saved_and_asked(tmp_path: Path) -> None:
    for colour in COLOURS:
        for number in range(12):
            paint(tmp_path / "data" / colour / f"{number}.png", colour)
    quick = ["train.steps=60", "train.learning_rate=0.01", "encoder.width=16", "encoder.size=8", "decoder.width=16"]
    model = regard.train(tmp_path / "data", settings=quick, out=tmp_path / "m")
    asked = [str(tmp_path / "data" / colour / "1.png") for colour in COLOURS]
    assert [str(answer) for answer in model.run(asked)] == [*COLOURS]
    assert [str(answer) for answer in regard.load(tmp_path / "m").run(asked)] == [*COLOURS]
    assert model.score(tmp_path / "data").metrics["exact"].value == 100


def test_rows_of_an_archive_are_learnt_and_others_asked(tmp_path: Path) -> None:
    colours = np.array([*COLOURS.values()], dtype=np.uint8)
    np.savez(tmp_path / "p.npz", images=np.tile(colours[:, None, None], (12, 8, 8, 1)))
    rows = "".join(f"{row}\t{[*COLOURS][row % 3]}\n" for row in range(36))
    (tmp_path / "x.tsv").write_text(rows, encoding="utf-8")
    quick = ["train.steps=60", "train.learning_rate=0.01", "encoder.width=16", "encoder.size=8", "decoder.width=16"]
    model = regard.train(tmp_path / "x.tsv", settings=[*quick, f"data.images={tmp_path / 'p.npz'}", "data.jitter=1"])
    assert model.config.task == "caption"
    assert [str(answer) for answer in model.run(["0", "1", "2"])] == [*COLOURS]
    np.savez(tmp_path / "q.npz", images=np.tile(colours[::-1, None, None], (1, 8, 8, 1)))
    other = model.with_images(tmp_path / "q.npz")
    assert [str(answer) for answer in other.run(["0", "1", "2"])] == [*COLOURS][::-1]
    with pytest.raises(DataError, match="found 3 rows, expected more than 7"):
        other.run(["7"])


def test_only_pictures_have_rows(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("".join(f"a{row}\tb{row}\n" for row in range(20)), encoding="utf-8")
    model = regard.train(tmp_path / "x.tsv", settings=["train.steps=1", "train.warmup=0"])
    with pytest.raises(UsageError, match="reads no pictures"):
        model.with_images("p.npz")


def test_columns_of_a_folder(tmp_path: Path) -> None:
    paint(tmp_path / "a.png")
    assert read(str(tmp_path), Columns(("1",), "2")).examples[0].target == "a"
