"""The bytes of a file that is no UTF-8 in, the encoding it may be in out, and the words to type that convert it."""

import re
import shlex
from os.path import splitext

LOOKED = 1 << 22  # bytes of a file
MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
HALVES = 0.01  # of the bytes of UTF-16 are NUL at least: those of line ends, tabs and spaces
ACCENTS = 1.5  # bytes beyond ASCII that stand together on average; of other alphabets, whole words do

BEYOND = re.compile(rb"[\x80-\xff]+")
UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")


def marked(start: bytes) -> str:
    """The encoding that a mark at the beginning of a file tells of."""
    return next((name for mark, name in MARKS.items() if start.startswith(mark)), "")


def encoding_of(raw: bytes) -> str:
    """The likeliest encoding, as iconv calls it; ENCODING where a person has to know, nothing of damaged UTF-8."""
    if found := marked(raw) or without_mark(raw):
        return found
    runs = BEYOND.findall(raw)
    count = sum(map(len, runs))
    if 2 * sum(map(len, UTF8.findall(raw))) >= count:
        return ""
    return "WINDOWS-1252" if count <= ACCENTS * len(runs) and is_western(raw) else "ENCODING"


def without_mark(raw: bytes) -> str:
    """Which half of the characters of UTF-16 is NUL tells the order of their bytes."""
    first, second = raw[::2].count(0), raw[1::2].count(0)
    if first + second < max(1.0, HALVES * len(raw)) or 10 * min(first, second) > max(first, second):
        return ""
    return "UTF-16BE" if first > second else "UTF-16LE"


def is_western(raw: bytes) -> bool:
    try:
        raw.decode("cp1252")
    except UnicodeDecodeError:
        return False
    return True


def conversion(path: str, encoding: str) -> str:
    """What to type for a new file beside this one; what an error says is continued by it."""
    if not encoding:
        return ""
    root, suffix = splitext(path.removesuffix(".gz"))
    new = shlex.quote(f"{root}-utf8{suffix}")
    unpacked = f"gzip -dc {shlex.quote(path)} | " if path.endswith(".gz") else ""
    name = "" if unpacked else f" {shlex.quote(path)}"
    what = "if you know its encoding" if encoding == "ENCODING" else f"looks like {encoding}"
    return f"; {what}: {unpacked}iconv -f {encoding} -t UTF-8{name} > {new}"
