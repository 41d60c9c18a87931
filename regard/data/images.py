"""An image reference in, a float32 array (channels, height, width) between 0 and 1 out.

A reference is the path of a PNG or JPEG, or `FILE.npz#ROW`: a row of the array `images` in that file.
"""

import math
import os
import re
import zipfile
import zlib
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import IO

import numpy as np
from numpy.typing import NDArray

from regard.data.pictures import is_picture
from regard.data.read import quote
from regard.errors import DataError, MissingError, RegardError, UsageError

ROW = re.compile(r"(?s)(.+\.npz)#([0-9]{1,9})")
MOST_PIXELS = 64_000_000  # of one picture
MANY_PIXELS = 4_000_000  # from which on a picture is made smaller while it still has one byte a colour
MOST_BYTES = 2_000_000_000  # of an array of pictures
FORMATS = ("PNG", "JPEG")
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


def read_picture(content: bytes, name: str, size: int, channels: int = 3, most: int | None = None) -> Pixels:
    """The bytes of a PNG or JPEG of at most `most` pixels as numbers: as `load_image`, for what comes from outside."""
    pixels = _load_file(BytesIO(content), name, most)
    return np.ascontiguousarray(_resize(_recolour(pixels, channels, name), size).transpose(2, 0, 1))


def png(pixels: Pixels) -> bytes:
    """An image (channels, height, width) as a PNG file."""
    bytes_of = (pixels.clip(0, 1) * 255).round().astype(np.uint8)
    made = _pillow("to be written").fromarray(bytes_of[0] if len(bytes_of) == 1 else bytes_of.transpose(1, 2, 0).copy())
    file = BytesIO()
    made.save(file, format="PNG")
    return file.getvalue()


def measure(reference: str, folder: Path) -> tuple[int, int]:
    """Width and height of a picture that can be read to its end; an error says why one can not."""
    found = ROW.fullmatch(reference)
    path = _locate(found[1] if found else reference, reference, folder)
    if found:
        height, width = _load_row(path, int(found[2]), reference).shape[:2]
        return width, height
    _load_file(path, reference)
    size = _pillow(reference).open(path, formats=FORMATS).size
    return int(size[0]), int(size[1])


def looks_like_image(reference: str) -> bool:
    return is_picture(reference) or ROW.fullmatch(reference) is not None


def is_there(reference: str, folder: str) -> bool:
    """Whether there is a file where the reference says."""
    found = ROW.fullmatch(reference)
    try:
        return os.path.isfile(os.path.join(folder, found[1] if found else reference))
    except ValueError:
        return False


def row_reference(images: str, text: str) -> str:
    """A row number as a reference into a file of pictures; any other text is a reference already."""
    return f"{os.path.abspath(images)}#{text}" if images and text.isdecimal() and text.isascii() else text


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
        with zipfile.ZipFile(path) as archive:
            with archive.open("images.npy") as stream:
                _check_header(stream, archive.getinfo("images.npy").file_size)
            with archive.open("images.npy") as stream:
                images: NDArray[np.uint8] = np.lib.format.read_array(stream, allow_pickle=False)
    except (OSError, ValueError, KeyError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"found no readable array `images` ({_reason(error)})") from error
    images.setflags(write=False)
    return images


def _check_header(stream: IO[bytes], length: int) -> None:
    """What an array says of itself, before room is made for it."""
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    if dtype != np.uint8 or len(shape) not in (3, 4):
        raise DataError(f"found `images` as {dtype} of shape {shape}, expected uint8 (N, H, W, 3) or (N, H, W)")
    size = math.prod(shape)
    if size > MOST_BYTES:
        raise DataError(f"found `images` of {size:,} bytes, expected at most {MOST_BYTES:,}")
    if size != length - stream.tell():
        raise DataError(f"found `images` of shape {shape} in {length:,} bytes, expected {size:,} after its header")


def _reason(error: BaseException) -> str:
    return str(error).splitlines()[0][:80] if str(error) else type(error).__name__


def _pillow(reference: str) -> ModuleType:
    try:
        from PIL import Image
    except ImportError as error:
        raise RegardError(f"image {quote(reference)}: needs Pillow: pip install 'regard[images]'") from error
    return Image


def _load_file(path: str | BytesIO, reference: str, most: int | None = None) -> Pixels:
    pillow, most = _pillow(reference), MOST_PIXELS if most is None else most
    try:
        with pillow.open(path, formats=FORMATS) as image:
            if image.width * image.height > most:
                raise DataError(f"image {quote(reference)}: found {image.width:,} × {image.height:,} pixels, expected "
                                f"at most {most:,} in all")  # fmt: skip
            if image.mode.startswith("I"):  # 16 bits of grey, which convert() would cut off at 255
                return np.asarray(image, dtype=np.float32) / np.float32(65535)
            colours = image.convert("RGBA")
            if (times := math.isqrt(image.width * image.height // MANY_PIXELS)) > 1:
                colours = colours.reduce(times)
            return np.asarray(colours, dtype=np.float32) / np.float32(255)
    except PermissionError as error:
        raise MissingError(f"image {quote(reference)}: no permission to read it") from error
    except pillow.UnidentifiedImageError as error:  # its words tell of objects in memory
        raise DataError(f"image {quote(reference)}: found no whole PNG or JPEG (it begins like neither)") from error
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
