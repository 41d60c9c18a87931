"""An image reference in, a float32 array (channels, height, width) between 0 and 1 out.

A reference is the path of a PNG or JPEG, or `FILE.npz#ROW`: a row of the array `images` in that file.
"""

import os
import re
import zipfile
import zlib
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from regard.data.read import quote
from regard.errors import DataError, MissingError, RegardError, UsageError

ROW = re.compile(r"(?s)(.+\.npz)#([0-9]{1,9})")
LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)  # ITU-R BT.601: how bright each colour looks

Pixels = NDArray[np.float32]


def load_image(reference: str, folder: Path, size: int, channels: int = 3) -> Pixels:
    """The image as numbers, `size` × `size`; transparent parts are white, grey fills every channel."""
    if channels not in (1, 3):
        raise UsageError(f"image channels: found {channels}, expected 1 (grey) or 3 (colour)")
    found = ROW.fullmatch(reference)
    path = _locate(found[1] if found else reference, reference, folder)
    pixels = _load_row(path, int(found[2]), reference) if found else _load_file(path, reference)
    pixels = _resize(_recolour(pixels, channels, reference), size)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def _locate(name: str, reference: str, folder: Path) -> str:
    """Where the file really is. Data may not lead out of their folder, unless they say an absolute path openly."""
    root = os.path.realpath(folder)
    try:
        path = os.path.realpath(os.path.join(root, name))
        exists = os.path.isfile(path)
    except (OSError, ValueError) as error:
        raise DataError(f"image {quote(reference)}: found no usable path ({error})") from error
    if not os.path.isabs(name) and os.path.commonpath([root, path]) != root:
        raise DataError(f"image {quote(reference)}: leads out of its folder, expected a path inside {quote(root)}")
    if not exists:
        raise MissingError(f"image {quote(reference)}: no such file in {quote(root)}")
    return path


def _load_row(path: str, row: int, reference: str) -> Pixels:
    state = os.stat(path)
    try:
        images = _open_images(path, state.st_mtime_ns, state.st_size)
    except DataError as error:
        raise DataError(f"image {quote(reference)}: {error}") from error
    if row >= len(images):
        raise DataError(f"image {quote(reference)}: found {len(images)} rows, expected more than {row}")
    return np.asarray(images[row], dtype=np.float32) / np.float32(255)


@lru_cache(maxsize=4)
def _open_images(path: str, modified: int, length: int) -> NDArray[np.uint8]:
    """The array `images` of a file; time and length are there so that a changed file is opened anew."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            images = arrays["images"]
    except (OSError, ValueError, KeyError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"found no readable array `images` ({_reason(error)})") from error
    if images.dtype != np.uint8 or images.ndim not in (3, 4):
        found = f"{images.dtype} of shape {images.shape}"
        raise DataError(f"found `images` as {found}, expected uint8 (N, H, W, 3) or (N, H, W)")
    images.setflags(write=False)
    checked: NDArray[np.uint8] = images
    return checked


def _reason(error: BaseException) -> str:
    return str(error).splitlines()[0][:80] if str(error) else type(error).__name__


def _pillow(reference: str) -> ModuleType:
    try:
        from PIL import Image
    except ImportError as error:
        raise RegardError(f"image {quote(reference)}: needs Pillow: pip install 'regard[images]'") from error
    return Image


def _load_file(path: str, reference: str) -> Pixels:
    pillow = _pillow(reference)
    try:
        with pillow.open(path, formats=("PNG", "JPEG")) as image:
            if image.mode.startswith("I"):  # 16 bits of grey, which convert() would cut off at 255
                return np.asarray(image, dtype=np.float32) / np.float32(65535)
            return np.asarray(image.convert("RGBA"), dtype=np.float32) / np.float32(255)
    except PermissionError as error:
        raise MissingError(f"image {quote(reference)}: no permission to read it") from error
    except (OSError, ValueError, SyntaxError, MemoryError, zlib.error, pillow.DecompressionBombError) as error:
        raise DataError(f"image {quote(reference)}: found no whole PNG or JPEG ({_reason(error)})") from error


def _recolour(pixels: Pixels, channels: int, reference: str) -> Pixels:
    """Any of grey, grey + alpha, RGB, RGBA as (height, width, channels), laid on white."""
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    height, width, depth = pixels.shape
    if not height or not width or depth not in (1, 2, 3, 4):
        raise DataError(f"image {quote(reference)}: found shape {pixels.shape}, expected (H, W) or (H, W, 1 to 4)")
    if depth in (2, 4):
        alpha = pixels[:, :, -1:]
        pixels = pixels[:, :, :-1] * alpha + (1 - alpha)
    if pixels.shape[2] == 3 and channels == 1:
        pixels = (pixels @ LUMA)[:, :, None]
    return pixels if pixels.shape[2] == channels else np.repeat(pixels, channels, axis=2)


def _resize(pixels: Pixels, size: int) -> Pixels:
    """Means over whole blocks or repeated pixels where sizes divide, so that Pillow is not needed; else bilinear."""
    height, width, depth = pixels.shape
    if height % size == 0 and width % size == 0:
        blocks = pixels.reshape(size, height // size, size, width // size, depth)
        mean: Pixels = blocks.mean(axis=(1, 3), dtype=np.float32)
        return mean
    if size % height == 0 and size % width == 0:
        return pixels.repeat(size // height, axis=0).repeat(size // width, axis=1)
    pillow = _pillow(f"{height} × {width} to {size} × {size}")
    planes = [pillow.fromarray(np.ascontiguousarray(pixels[:, :, plane])) for plane in range(depth)]
    resized = [np.asarray(plane.resize((size, size), pillow.Resampling.BILINEAR)) for plane in planes]
    return np.stack(resized, axis=2).clip(0, 1)
