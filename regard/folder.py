"""A saved model is a folder: everything checked before anything is allocated, nothing in it that could run.

config.toml · tokenizer.json · model.safetensors · README.md · metrics.jsonl · curves.svg · manifest.json
"""

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import tomli_w
import torch
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes

from regard import config
from regard.data.vocabulary import Vocabulary
from regard.errors import FolderError, MissingError, RegardError
from regard.models.build import refuse_giants, unfilled
from regard.models.model import Model

FORMAT = 1
NEEDED = ("config.toml", "tokenizer.json", "model.safetensors")
FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")  # of plain files beside the manifest, nothing else
MOST_BYTES = {"config.toml": 1 << 20, "tokenizer.json": 1 << 28, "manifest.json": 1 << 20}


@dataclass(frozen=True)
class Saved:
    """What a folder holds."""

    config: config.Config
    vocabulary: Vocabulary
    model: Model


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
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise RegardError(f"{path}: can not be written: {error.strerror}") from None


def weights_bytes(model: Model) -> bytes:
    """The weights as safetensors, tied ones once."""
    return to_bytes({name: weight.detach().cpu().contiguous() for name, weight in model.named_parameters()})


def save(folder: Path, c: config.Config, vocabulary: Vocabulary, model: Model, others: dict[str, bytes]) -> None:
    """Writes the folder; the manifest comes last, so a folder with a fitting manifest is whole."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RegardError(f"{folder}: can not be made: {error.strerror}") from None
    files = {
        "config.toml": tomli_w.dumps(config.to_tree(c)).encode(),
        "tokenizer.json": json.dumps(vocabulary.as_dict(), ensure_ascii=False, sort_keys=True).encode(),
        "model.safetensors": weights_bytes(model),
        **others,
    }
    for name, content in files.items():
        write_file(folder / name, content)
    listed = {name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
              for name, content in sorted(files.items())}  # fmt: skip
    manifest = {"format": FORMAT, "files": listed}
    write_file(folder / "manifest.json", json.dumps(manifest, indent=1).encode())


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def load(folder: Path) -> Saved:
    """Manifest, config, tokenizer, shapes of weights: each is checked before the next is read, weights last."""
    check_manifest(folder)
    c = config.from_toml(read_text(folder / "config.toml"), str(folder / "config.toml"))
    vocabulary = Vocabulary.from_dict(parse_json(folder / "tokenizer.json"))
    sizes = vocabulary.source.size, vocabulary.target.size
    shapes = refuse_giants(c, *sizes)
    path = folder / "model.safetensors"
    check_weights(path, {name: tuple(weight.shape) for name, weight in shapes.named_parameters()})
    return Saved(c, vocabulary, fill(unfilled(c, *sizes), path))


def check_manifest(folder: Path) -> None:
    if folder.is_file():
        raise FolderError(f"{folder}: expected a model folder, found a file{pickle_hint(folder)}")
    if not folder.is_dir():
        raise MissingError(f"{folder}: no such model folder")
    if (folder / "manifest.json").is_symlink():
        raise FolderError(f"{folder / 'manifest.json'}: expected a plain file, found a link that leads elsewhere")
    if not (folder / "manifest.json").is_file():
        raise FolderError(f"{folder}: not a model folder (no manifest.json); regard train … -o {folder} makes one")
    manifest = parse_json(folder / "manifest.json")
    if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), dict):
        raise FolderError(f"{folder / 'manifest.json'}: expected an object with format and files")
    found = manifest.get("format")
    if type(found) is not int or found < 1:
        raise FolderError(f"{folder / 'manifest.json'}: format {str(found)[:20]!r}, expected a number from 1: damaged")
    if found > FORMAT:
        raise FolderError(f"{folder}: format {found}; this version of regard reads up to format {FORMAT}: upgrade it")
    for name in sorted({*NEEDED, *manifest["files"]}):
        check_file(folder, name, manifest["files"].get(name))


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


def check_weights(path: Path, expected: dict[str, tuple[int, ...]]) -> None:
    """Names, shapes and types in the file's header against the model that the config describes."""
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


def fill(model: Model, path: Path) -> Model:
    """The model with the weights of the file in it."""
    tensors = load_file(path)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if not bool(torch.isfinite(tensors[name]).all()):
                raise FolderError(f"{path}: {name} holds numbers that are not finite")
            weight.copy_(tensors[name])
    return model.eval()
