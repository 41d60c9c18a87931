"""A saved model is a folder: everything checked before anything is allocated, nothing in it that could run.

config.toml · tokenizer.json · model.safetensors · calibration.json · README.md · metrics.jsonl · times.jsonl ·
curves.svg · report.html · report.json · run.json · manifest.json. Checkpoints are folders of the same kind, so what is
here writes and checks them too.
"""

import hashlib
import json
import os
import re
import shutil
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

import safetensors
import tomli_w
import torch
from pydantic import TypeAdapter, ValidationError
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor

from regard import config
from regard.data.vocabulary import Vocabulary
from regard.errors import FolderError, MissingError, RegardError
from regard.models.build import refuse_giants, unfilled
from regard.models.model import Model
from regard.score.calibration import Calibration

FORMAT = 1
KEYS = {"format", "finished", "files"}  # of a manifest
NEEDED = ("config.toml", "tokenizer.json", "model.safetensors")
FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")  # of plain files beside the manifest, nothing else
MOST_BYTES = {"config.toml": 1 << 20, "tokenizer.json": 1 << 28, "manifest.json": 1 << 20, "run.json": 1 << 20,
              "state.json": 1 << 20, "calibration.json": 1 << 16}  # fmt: skip
MOST_BYTES_OF_A_NAME = 1 << 10  # in the header of a weights file, for each tensor

Weights = dict[str, Tensor]
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Saved:
    """What a folder holds."""

    config: config.Config
    vocabulary: Vocabulary
    model: Model
    calibration: Calibration | None = None  # none in a folder that was saved without one


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def write_file(path: Path, content: bytes) -> None:
    """All of the file or nothing of it: written beside its place, synced, renamed into it."""
    beside = path.with_name(f".{path.name}.new")
    try:
        with open(beside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        sync(path.parent)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise RegardError(f"{path}: can not be written: {error.strerror}") from None


def sync(path: Path) -> None:
    """What was written to this file, or renamed in this folder, is on the disk when this returns."""
    place = os.open(path, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)


def remove(path: Path) -> None:
    """A file, a folder with all in it, or a link and not what it leads to; gone is gone."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def weights_bytes(weights: Weights) -> bytes:
    """The weights as safetensors."""
    return to_bytes({name: weight.detach().cpu().contiguous() for name, weight in weights.items()})


def config_bytes(c: config.Config) -> bytes:
    return tomli_w.dumps(config.to_tree(c)).encode()


def vocabulary_bytes(vocabulary: Vocabulary) -> bytes:
    return json.dumps(vocabulary.as_dict(), ensure_ascii=False, sort_keys=True).encode()


def calibration_bytes(calibration: Calibration) -> bytes:
    return json.dumps(asdict(calibration), indent=1).encode()


def listing(content: bytes) -> dict[str, Any]:
    """What a manifest says of one file."""
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def manifest_bytes(listed: dict[str, Any], finished: bool = True) -> bytes:
    unfinished = {} if finished else {"finished": False}
    return json.dumps({"format": FORMAT, **unfinished, "files": dict(sorted(listed.items()))}, indent=1).encode()


def save(
    folder: Path,
    c: config.Config,
    vocabulary: Vocabulary,
    model: Model,
    others: dict[str, bytes],
    finished: bool = True,
) -> None:
    """Writes the folder; the manifest comes last, so a folder with a fitting manifest is whole."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RegardError(f"{folder}: can not be made: {error.strerror}") from None
    files = {
        "config.toml": config_bytes(c),
        "tokenizer.json": vocabulary_bytes(vocabulary),
        "model.safetensors": weights_bytes(dict(model.named_parameters())),  # tied ones once
        **others,
    }
    for name, content in files.items():
        write_file(folder / name, content)
    listed = {name: listing(content) for name, content in files.items()}
    write_file(folder / "manifest.json", manifest_bytes(listed, finished))


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def load(folder: Path) -> Saved:
    """Manifest, config, tokenizer, shapes of weights: each is checked before the next is read, weights last."""
    listed = check_model(folder)
    c, vocabulary = read_config(folder), read_vocabulary(folder)
    calibration = read_calibration(folder / "calibration.json") if "calibration.json" in listed else None
    sizes = vocabulary.source.size, vocabulary.target.size
    expected = shapes_of(refuse_giants(c, *sizes))
    model = fill(unfilled(c, *sizes, vocabulary.copies()), read_weights(folder / "model.safetensors", expected))
    return Saved(c, vocabulary, model, calibration)


def read_config(folder: Path) -> config.Config:
    return config.from_toml(read_text(folder / "config.toml"), str(folder / "config.toml"))


def read_vocabulary(folder: Path) -> Vocabulary:
    return Vocabulary.from_dict(parse_json(folder / "tokenizer.json"))


def read_calibration(path: Path) -> Calibration:
    try:
        found = TypeAdapter(Calibration).validate_python(parse_json(path))
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise FolderError(f"{path}: not a calibration: {where[:60]}: {error.errors()[0]['msg']}") from None
    if not all(abs(weight) < 1e6 for weight in (found.bias, found.probability, found.lowest, found.length)):
        raise FolderError(f"{path}: holds a weight that is not finite, or far too great")
    return found


def shapes_of(model: Model) -> Shapes:
    return {name: tuple(weight.shape) for name, weight in model.named_parameters()}


def check_model(folder: Path) -> set[str]:
    """A model folder is one, and whole: the names of its files."""
    if folder.is_file():
        raise FolderError(f"{folder}: expected a model folder, found a file{pickle_hint(folder)}")
    if not folder.is_dir():
        raise MissingError(f"{folder}: no such model folder")
    missing = not (folder / "manifest.json").exists()
    if missing and (folder / "run.json").is_file() and (folder / "tokens").is_dir():  # which a finished run removes
        raise FolderError(f"{folder}: its training has not finished; regard resume {folder} goes on with it")
    if missing and (folder / "model.safetensors").is_file():
        raise FolderError(f"{folder / 'manifest.json'}: missing; the folder is incomplete")
    if missing:
        raise FolderError(f"{folder}: not a model folder (no manifest.json); regard train … -o {folder} makes one")
    return check_manifest(folder, NEEDED)


def check_manifest(folder: Path, needed: tuple[str, ...]) -> set[str]:
    """The manifest can be read, and every file it lists, and every one that is needed, is what it says: their names."""
    path = folder / "manifest.json"
    if path.is_symlink() or not path.is_file():
        raise FolderError(f"{path}: missing, or not a plain file")
    manifest = parse_json(path)
    if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), dict):
        raise FolderError(f"{path}: expected an object with format and files")
    found = manifest.get("format")
    if type(found) is not int or found < 1:
        raise FolderError(f"{path}: format {str(found)[:20]!r}, expected a number from 1: damaged")
    if found > FORMAT:
        raise FolderError(f"{folder}: format {found}; this version of regard reads up to format {FORMAT}: upgrade it")
    for key in sorted(manifest.keys() - KEYS):
        raise FolderError(f"{path}: {key[:60]!r} is no word of a manifest: damaged or changed by hand")
    for name in sorted({*needed, *manifest["files"]}):
        check_file(folder, name, manifest["files"].get(name))
    return set(manifest["files"])


def check_file(folder: Path, name: str, listed: Any) -> None:
    """One file is where the manifest says, plain, and unchanged."""
    path = folder / name
    if not FILE_NAME.fullmatch(name):
        raise FolderError(f"{folder / 'manifest.json'}: {name[:60]!r} is not the name of a file in this folder")
    if path.is_symlink() or not path.is_file():
        raise FolderError(f"{path}: missing or not a plain file; the folder is incomplete")
    if not isinstance(listed, dict) or not isinstance(listed.get("sha256"), str):
        raise FolderError(f"{path}: not listed in manifest.json")
    if path.stat().st_size != listed.get("bytes"):
        raise FolderError(
            f"{path}: {path.stat().st_size} bytes, the manifest says {listed.get('bytes')}: damaged or changed by hand"
        )
    with open(path, "rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != listed["sha256"]:
            raise FolderError(f"{path}: its content is not what the manifest says: damaged or changed by hand")


def pickle_hint(path: Path) -> str:
    if path.suffix in (".pt", ".pth", ".bin", ".pkl", ".ckpt"):
        return "; such files can run code when they are opened, so regard never opens them"
    return ""


def read_text(path: Path) -> str:
    if path.stat().st_size > MOST_BYTES.get(path.name, 1 << 30):
        raise FolderError(f"{path}: {path.stat().st_size} bytes are more than such a file ever has")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FolderError(f"{path}: not UTF-8 text: {error}") from None


def parse_json(path: Path) -> Any:
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError) as error:  # ValueError: also a number of more digits than Python reads
        raise FolderError(f"{path}: not JSON: {error}") from None


def read_weights(path: Path, expected: Shapes, finite: bool = True) -> Weights:
    """The tensors of a file, which must have just these names and shapes; none of them is read before that is known."""
    check_weights(path, expected)
    tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}  # the file may go, the numbers stay
    for name, tensor in tensors.items():
        if finite and not bool(torch.isfinite(tensor).all()):
            raise FolderError(f"{path}: {name} holds numbers that are not finite")
    return tensors


def check_weights(path: Path, expected: Shapes) -> None:
    """Names, shapes and types in the file's header against what the config describes."""
    most = sum(4 * prod(shape) + MOST_BYTES_OF_A_NAME for shape in expected.values()) + MOST_BYTES_OF_A_NAME
    if path.stat().st_size > most:
        raise FolderError(f"{path}: {path.stat().st_size} bytes, and the model that config.toml describes has fewer")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            found = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            described = {name: (tuple(each.get_shape()), each.get_dtype()) for name, each in found.items()}
    except safetensors.SafetensorError as error:
        raise FolderError(f"{path}: not a safetensors file: {error}") from None
    for name in sorted(expected.keys() ^ described.keys()):
        where = "missing from" if name in expected else "not expected in"
        raise FolderError(f"{path}: the tensor {name} is {where} this file")
    for name, shape in expected.items():
        if described[name] != (shape, "F32"):
            raise FolderError(f"{path}: {name} is {described[name][1]} {list(described[name][0])}, "
                              f"config.toml and tokenizer.json ask for F32 {list(shape)}")  # fmt: skip


def fill(model: Model, weights: Weights) -> Model:
    """The model with these weights in it."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(weights[name])
    return model.eval()
