"""A folder in, the home of one run out: what a run needs to be resumed, what is refused, what replaces what."""

import hashlib
import json
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from regard import folder as folders
from regard.errors import FolderError, MissingError, RegardError, UsageError
from regard.folder import Shapes, read_text, remove, sync, write_file
from regard.training.lock import locked

BODY = "body.safetensors"  # what a run took from another model: its first weights
TRIALS, SEARCH = "tune", "search.json"  # folder of a search for settings, while it goes on, and its memory …
TUNED = "tune.csv"  # … and what is left of it beside the model
OURS = ("checkpoints", "tokens", BODY, TUNED, "model.safetensors", "README.md", "curves.svg", "metrics.jsonl",
        "times.jsonl", "report.json", "report.html", "tensorboard", "config.toml", "tokenizer.json", "calibration.json",
        "run.json", "manifest.json")  # fmt: skip
NAMED = ("regard", "torch", "numpy", "tokenizers", "safetensors", "sacrebleu")
FRESH = ".tokens.new"  # the store of a run that has not yet begun


@dataclass(frozen=True)
class Origin:
    """The trained model that a run started from."""

    path: str  # as it was given
    task: str
    data_hash: str | None  # of what it was trained on; none = its folder does not say
    kept: int  # parameters taken from it


@dataclass(frozen=True)
class Start:
    """What a run was started with, as run.json keeps it; it never changes."""

    command: str
    data: str
    valid: str | None
    data_hash: str
    notes: tuple[str, ...]
    files: dict[str, dict[str, str | int]]  # config.toml, tokenizer.json, first weights, tune.csv: sha256 and bytes
    outline: str  # a hash of the names and shapes of the weights
    versions: dict[str, str]
    device: str
    precision: str
    threads: int
    world: int
    origin: Origin | None = None
    format: int = folders.FORMAT
    seal: str = ""  # a hash of all the rest


START = TypeAdapter(Start)


def versions() -> dict[str, str]:
    return {name: version(name) for name in NAMED} | {"Python": platform.python_version()}


def outline(shapes: Shapes) -> str:
    return hashlib.sha256(json.dumps(sorted(shapes.items())).encode()).hexdigest()


def start_bytes(start: Start) -> bytes:
    tree = START.dump_python(start, mode="json")
    return json.dumps(tree | {"seal": sealed(tree)}, indent=1, ensure_ascii=False).encode()


def sealed(tree: dict[str, Any]) -> str:
    rest = {name: value for name, value in tree.items() if name != "seal"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read_start(folder: Path) -> Start:
    """What run.json says, if it says what was written."""
    path = folder / "run.json"
    if not folder.is_dir():
        raise MissingError(f"{folder}: no such folder")
    if is_search(folder) and not path.is_file():
        raise FolderError(f"{folder}: holds a search for settings; the command that began it (--tune) goes on with it")
    if path.is_symlink() or not path.is_file():
        raise FolderError(f"{folder}: no run to resume here (no run.json); regard train … -o {folder} starts one")
    tree = folders.parse_json(path)
    if isinstance(tree, dict) and type(tree.get("format")) is int and tree["format"] > folders.FORMAT:
        raise FolderError(f"{folder}: format {tree['format']}; this version of regard reads up to {folders.FORMAT}")
    if not isinstance(tree, dict) or tree.get("seal") != sealed(tree):
        raise FolderError(f"{path}: its content is not what was written: damaged or changed by hand")
    try:
        return START.validate_json(read_text(path))
    except ValidationError as error:
        raise FolderError(f"{path}: not the start of a run: {str(error).splitlines()[0]}") from None


def identity(folder: Path) -> str:
    """The seal of run.json: its checkpoints carry it."""
    return read_start(folder).seal


# ── whose folder it is ───────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def occupied(folder: Path) -> Iterator[None]:
    """While this is open nobody else writes here; what a process that died was writing beside its place is swept.

    A folder made for a run that could not begin does not stay.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: expected a folder to write the model into, found a file")
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: can not be made: {error.strerror}") from None
    try:
        with locked(folder):
            for left in (FRESH, *(f".{name}.new" for name in OURS)):
                remove(folder / left)
            try:
                yield
            finally:
                with suppress(OSError):
                    remove(folder / FRESH)
    finally:
        if made:
            with suppress(OSError):
                folder.rmdir()


def refuse_others(folder: Path | None, force: bool) -> None:
    """What no run of ours wrote is never touched; a run of ours only by force."""
    if folder is None:
        return
    standing = [name for name in OURS if (folder / name).exists()]
    if standing and not is_run(folder):
        raise UsageError(f"{folder}: holds {standing[0]}, and no run of regard wrote it; choose another -o")
    if stillborn(folder):
        return
    if standing and not force and not finished(folder):
        raise UsageError(f"{folder}: holds a run that has not finished; regard resume {folder} goes on with it\n"
                         "choose another -o, or --force to replace it")  # fmt: skip
    if standing and not force:
        raise UsageError(f"{folder}: holds another run; choose another -o, or --force to replace it")


def is_run(folder: Path) -> bool:
    """Whether a run of ours wrote what stands here: its start or its manifest says so."""
    return "seal" in tree_of(folder / "run.json") or {"format", "files"} <= tree_of(folder / "manifest.json").keys()


def stillborn(folder: Path) -> bool:
    """Whether a run died here before all was laid out for its first step: nothing can be resumed, or lost."""
    living = any((folder / name).exists() for name in ("checkpoints", "model.safetensors", "manifest.json"))
    listed = tree_of(folder / "run.json").get("files")
    needed = {"tokens", "config.toml", "tokenizer.json", *(listed if isinstance(listed, dict) else ())}
    laid_out = all((folder / name).exists() for name in needed)
    return is_run(folder) and not living and not laid_out


def begun(folder: Path) -> bool:
    """Whether a run stands in this folder, finished or such that it can go on."""
    return (folder / "run.json").is_file() and not stillborn(folder)


def finished(folder: Path) -> bool:
    """Whether the run in this folder has come to its end."""
    manifest = tree_of(folder / "manifest.json")
    return isinstance(manifest.get("files"), dict) and manifest.get("finished", True) is True


def tidy(folder: Path) -> None:
    """A finished run has no use for a copy of its data, its first weights, or what is left of a search; they stay where
    a process died just before they were removed."""
    remove(folder / "tokens")
    remove(folder / BODY)
    if is_search(folder):
        remove(folder / TRIALS)


def is_search(folder: Path) -> bool:
    """Whether a search of ours has written into this folder, and its final run has not finished."""
    return tree_of(folder / TRIALS / SEARCH).get("kind") == "search"


def tree_of(path: Path) -> dict[str, Any]:
    """An object in a JSON file; an empty one where there is none."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def claim(folder: Path, start: Start, files: dict[str, bytes]) -> None:
    """The folder, empty of other runs, with all in it that a resumed run needs: the store, and the start's files.

    run.json is replaced, never missing: from whatever moment a process dies, the folder is known as ours.
    """
    try:
        for name in OURS:
            if name not in ("run.json", "manifest.json"):
                remove(folder / name)
        write_file(folder / "run.json", start_bytes(start))
        remove(folder / "manifest.json")
        (folder / FRESH).rename(folder / "tokens")
        for name, content in files.items():
            write_file(folder / name, content)
        sync(folder)
    except OSError as error:
        raise RegardError(f"{folder}: can not be made or cleared: {error.strerror}") from None


# ── what has changed ─────────────────────────────────────────────────────────────────────────────────────────────────


def changed_files(folder: Path, start: Start) -> list[str]:
    """The files of the start, where they are not what the run was started with."""
    found = []
    for name, listed in start.files.items():
        try:
            folders.check_file(folder, name, listed)
        except FolderError as error:
            found.append(str(error))
    return found


def refuse_changes(folder: Path, found: list[str]) -> None:
    if found:
        raise UsageError(f"{folder}: can not be resumed, because something has changed: {'; '.join(found)}\n"
                         f"put it back as it was, or start anew: regard train … -o {folder} --force")  # fmt: skip


def other_versions(start: Start) -> list[str]:
    """A warning if the run would go on with other versions; bits are promised for the same ones alone."""
    now = versions()
    other = [f"{name} {was}, now {now.get(name, 'none')}" for name, was in start.versions.items()
             if now.get(name) != was]  # fmt: skip
    return [f"started with {', '.join(other)}: the result may differ in its last bits"] if other else []
