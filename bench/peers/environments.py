"""The name of a peer in, the interpreter of its environment out: made and filled when it is not there.

Each peer has its own (`.venv-peers/NAME`), because they can not live together: JoeyNMT wants protobuf below 3.21, eole
wants 7.36.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PLACE = ROOT / ".venv-peers"
TORCH = "torch=="


class NotInstalled(Exception):
    """A peer that this machine can not have; the message is what pip said last."""


def interpreter(name: str) -> Path:
    """Its python, after its pinned packages were installed unless they were already."""
    pins = Path(__file__).with_name(f"{name}.txt")
    place = PLACE / name
    stamp = place / "installed"
    wanted = pins.read_text(encoding="utf-8")
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != wanted:
        print(f"installing {name} into {place.relative_to(ROOT)}: some minutes", file=sys.stderr, flush=True)
        run(sys.executable, "-m", "venv", "--clear", str(place))
        for torch in (line for line in wanted.splitlines() if line.startswith(TORCH)):
            install(place, torch)  # first, so that no other package asks for a torch of its own choice
        install(place, "--requirement", str(pins))
        stamp.write_text(wanted, encoding="utf-8")
    return place / "bin" / "python"


def install(place: Path, *words: str) -> None:
    run(str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words)


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        wrong = [line for line in said if line.startswith("ERROR")] or said or ["no reason was given"]
        raise NotInstalled(wrong[-1])
