"""Image references in, arrays or one clear error out."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.data.images import load_image
from regard.errors import DataError, MissingError, RegardError, UsageError


@pytest.fixture
def images() -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(0).integers(0, 256, (5, 8, 8, 3), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path: Path, images: np.ndarray[Any, np.dtype[np.uint8]]) -> Path:
    """A folder with colour, grey and transparent rows."""
    data = tmp_path / "data"
    data.mkdir()
    np.savez_compressed(data / "colour.npz", images=images)
    np.savez(data / "grey.npz", images=images[..., 0])
    np.savez(data / "clear.npz", images=np.zeros((1, 2, 2, 4), dtype=np.uint8))
    return data


def test_a_row_as_it_is(folder: Path, images: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
    loaded = load_image("colour.npz#3", folder, 8)
    assert loaded.shape == (3, 8, 8)
    assert loaded.dtype == np.dtype("float32")
    np.testing.assert_allclose(loaded, images[3].transpose(2, 0, 1) / 255, atol=1e-6)


def test_halves_are_means_and_doubles_are_repeats(folder: Path, images: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
    half, double = load_image("colour.npz#0", folder, 4), load_image("colour.npz#0", folder, 16)
    assert half[1, 0, 3] == pytest.approx(images[0, 0:2, 6:8, 1].mean() / 255, abs=1e-6)
    assert double[2, 5, 15] == pytest.approx(images[0, 2, 7, 2] / 255, abs=1e-6)


def test_other_sizes_are_bilinear(folder: Path) -> None:
    pytest.importorskip("PIL")
    loaded, whole = load_image("colour.npz#0", folder, 5), load_image("colour.npz#0", folder, 8)
    assert loaded.shape == (3, 5, 5)
    assert 0 <= loaded.min() <= loaded.max() <= 1
    np.testing.assert_allclose(loaded.mean((1, 2)), whole.mean((1, 2)), atol=0.05)


def test_grey_fills_channels_and_colour_can_be_grey(folder: Path) -> None:
    grey = load_image("grey.npz#1", folder, 8)
    assert (grey[0] == grey[1]).all()
    assert (grey[0] == grey[2]).all()
    assert load_image("grey.npz#1", folder, 8, channels=1).shape == (1, 8, 8)
    colour = load_image("colour.npz#1", folder, 8)
    bright = load_image("colour.npz#1", folder, 8, channels=1)
    np.testing.assert_allclose(bright[0], 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2], atol=1e-6)


def test_what_is_transparent_is_white(folder: Path) -> None:
    assert (load_image("clear.npz#0", folder, 2) == 1).all()


def test_a_changed_file_is_opened_anew(folder: Path) -> None:
    before = load_image("grey.npz#0", folder, 8)
    np.savez(folder / "grey.npz", images=np.full((1, 8, 8), 255, dtype=np.uint8))
    os.utime(folder / "grey.npz", ns=(1, 1))
    assert (before != 1).any()
    assert (load_image("grey.npz#0", folder, 8) == 1).all()


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_png_of_every_mode(folder: Path, mode: str) -> None:
    pillow = pytest.importorskip("PIL.Image")
    if mode == "I;16":
        image = pillow.fromarray(np.full((4, 4), 65535, dtype=np.uint16))
    else:
        image = pillow.new("RGBA", (4, 4), (255, 255, 255, 255)).convert(mode)
    image.save(folder / "white.png")
    np.testing.assert_allclose(load_image("white.png", folder, 4), 1)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_jpeg_of_every_mode(folder: Path, mode: str) -> None:
    pillow = pytest.importorskip("PIL.Image")
    pillow.new("RGB", (8, 8), (200, 200, 200)).convert(mode).save(folder / "grey.jpg")
    np.testing.assert_allclose(load_image("grey.jpg", folder, 4), 200 / 255, atol=0.03)


def test_half_transparent_is_laid_on_white(folder: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    pillow.new("RGBA", (2, 2), (255, 0, 0, 51)).save(folder / "red.png")
    np.testing.assert_allclose(load_image("red.png", folder, 2)[:, 0, 0], [1, 0.8, 0.8], atol=1e-6)


def test_paths_stay_in_their_folder(folder: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "outside.npz", images=np.zeros((1, 2, 2), dtype=np.uint8))
    (folder / "link.npz").symlink_to(tmp_path / "outside.npz")
    for reference in ("../outside.npz#0", "link.npz#0", "../data/../outside.npz#0"):
        with pytest.raises(DataError, match="leads out of its folder"):
            load_image(reference, folder, 2)
    assert load_image(f"{tmp_path / 'outside.npz'}#0", folder, 2).shape == (3, 2, 2)
    assert load_image("../data/grey.npz#0", folder, 8).shape == (3, 8, 8)


@pytest.mark.parametrize("reference", ["no.png", "no.npz#0", "colour.npz#-1", "", "sub/no.png"])
def test_missing(folder: Path, reference: str) -> None:
    with pytest.raises(MissingError, match="no such file"):
        load_image(reference, folder, 8)


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("colour.npz#5", "found 5 rows, expected more than 5"),
        ("text.npz#0", "no readable array"),
        ("other.npz#0", "no readable array"),
        ("objects.npz#0", "expected uint8"),
        ("floats.npz#0", "expected uint8"),
        ("deep.npz#0", "found shape"),
        ("a\0b.png", "no usable path"),
    ],
)
def test_bad_rows_are_named(folder: Path, reference: str, reason: str) -> None:
    (folder / "text.npz").write_text("no archive")
    np.savez(folder / "other.npz", pictures=np.zeros(3))
    np.savez(folder / "objects.npz", images=np.array([{}], dtype=object))
    np.savez(folder / "floats.npz", images=np.zeros((1, 2, 2)))
    np.savez(folder / "deep.npz", images=np.zeros((1, 2, 2, 7), dtype=np.uint8))
    with pytest.raises(DataError, match=reason) as caught:
        load_image(reference, folder, 8)
    assert str(caught.value).startswith('image "')
    assert len(str(caught.value).splitlines()) == 1


def test_broken_pictures_are_named(folder: Path, images: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
    pillow = pytest.importorskip("PIL.Image")
    pillow.fromarray(images[0]).resize((64, 64)).save(folder / "cut.png")
    (folder / "cut.png").write_bytes((folder / "cut.png").read_bytes()[:200])
    (folder / "text.png").write_text("no picture")
    pillow.fromarray(images[0]).save(folder / "other.gif")
    for name in ("cut.png", "text.png", "other.gif"):
        with pytest.raises(DataError, match=f'image "{name}": found no whole PNG or JPEG'):
            load_image(name, folder, 8)


def test_without_pillow(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    (folder / "a.png").write_bytes(b"")
    assert load_image("colour.npz#0", folder, 16).shape == (3, 16, 16)
    for reference, size in (("a.png", 8), ("colour.npz#0", 5)):
        with pytest.raises(RegardError, match=r"pip install 'regard\[images\]'"):
            load_image(reference, folder, size)


def test_channels_are_one_or_three(folder: Path) -> None:
    with pytest.raises(UsageError, match="found 2, expected 1"):
        load_image("colour.npz#0", folder, 8, channels=2)
