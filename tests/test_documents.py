"""The README and docs in, their commands run: what is shown works, with training cut short."""

import importlib.util
import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHORT = " --set train.steps=12 --set train.validate_steps=12 --set train.validate_examples=20"
FORMS = "lemma\ttags\tform\n" + "".join(f"w{i}\tV;PST;{i % 3 + 1}\tw{i}ed\n" for i in range(60))


def blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


def commands(page: Path) -> list[str]:
    """Every command line of a page, in order, comments cut off."""
    lines = [line.split("  #")[0].strip() for body in blocks(page, "sh") for line in body.splitlines()]
    return [line for line in lines if line and not line.startswith(("#", "make "))]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


SERVERS: list[subprocess.Popen[str]] = []
PORT = free_port()  # in place of 8000, where somebody else may listen


def shortened(command: str) -> str:
    """The same command with fewer steps; a test is no place to train to the end."""
    command = command.replace("127.0.0.1:8000", f"127.0.0.1:{PORT}").replace("curl -s ", "curl -sf ")
    if re.search(r"\bregard serve\b", command):
        return f"{command} --port {PORT}"
    if "--tune" in command:  # bounded by minutes alone
        return re.sub(r"--minutes \d+", "--minutes 0.2", command)
    if re.search(r"\bregard (train|demo|compare)\b", command):
        return command + SHORT
    return command.replace("-n 10000", "-n 300").replace("-n 1000", "-n 40")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the files that the pages speak of and do not make."""
    (tmp_path / "questions.txt").write_text("9 May 2018\n\n1/2/2003\n", encoding="utf-8")
    (tmp_path / "choices.txt").write_text("2018-05-09\n2003-02-01\n", encoding="utf-8")
    (tmp_path / "forms.tsv").write_text(FORMS, encoding="utf-8")
    (tmp_path / "orders.tsv").write_text("id\tdate\n1\t9 May 2018\n2\t1/2/2003\n", encoding="utf-8")
    (tmp_path / "orders.jsonl").write_text('{"id": 1, "date": "9 May 2018"}\n', encoding="utf-8")
    return tmp_path


def run(command: list[str], place: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)


def end(servers: list[subprocess.Popen[str]]) -> None:
    for server in servers:
        server.terminate()
        server.communicate(timeout=30)
    servers.clear()


def served(command: str, place: Path, request: pytest.FixtureRequest) -> None:
    """A server beside the commands that follow; another takes the place of the one before."""
    end(SERVERS)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    program = [sys.executable, "-m", *shlex.split(command)]
    SERVERS[:] = [subprocess.Popen(program, cwd=place, env=environment, stderr=subprocess.PIPE, text=True)]
    request.addfinalizer(lambda: end(SERVERS))
    assert SERVERS[0].stderr is not None
    said = [SERVERS[0].stderr.readline() for _ in range(3)]
    assert any("serving at" in line for line in said), said


SHOWN = [page for page in PAGES if commands(page) or blocks(page, "python")]
BEFORE = ["regard task dates -n 1000 -o dates.tsv", "regard train dates.tsv -o model"]  # what the README has made


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.name)
def test_every_command_of_a_page_runs(page: Path, place: Path, request: pytest.FixtureRequest) -> None:
    before = BEFORE if page.name in ("lesson.md", "serve.md") else []
    for command in [*before, *commands(page)]:
        if command.startswith("regard serve"):
            served(shortened(command), place, request)
            continue
        done = run(["bash", "-o", "pipefail", "-c", shortened(command)], place)
        assert done.returncode == 0, f"{page.name}: {command}\n{done.stderr}"
    for body in blocks(page, "python"):
        done = run([sys.executable, "-c", body], place)
        assert done.returncode == 0, f"{page.name}:\n{body}\n{done.stderr}"
        assert done.stdout.strip()


def test_pages_show_commands() -> None:
    assert len(SHOWN) >= 6
    assert sum(len(commands(page)) for page in SHOWN) >= 60


def test_every_make_target_of_the_pages_exists() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    targets = set(re.findall(r"`?make ([a-z]+)`?", text)) & set(re.findall(r"make ([a-z]+)(?:`|  )", text))
    assert {"demo", "test"} <= targets
    for target in targets:
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_links_and_pictures_of_the_pages_exist() -> None:
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert link.startswith("http") or (page.parent / link).exists(), f"{page.name}: {link}"


def test_every_picture_is_shown() -> None:
    shown = set(re.findall(r"pictures/([\w-]+\.png)", (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")))
    kept = list((ROOT / "docs" / "pictures").iterdir())
    assert {path.name for path in kept} == shown
    assert max(path.stat().st_size for path in kept) <= 120_000
    assert sum(path.stat().st_size for path in kept) <= 6_000_000


def test_settings_page_matches_the_config() -> None:
    spec = importlib.util.spec_from_file_location("settings_page", ROOT / "docs" / "settings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == module.page(), "run python docs/settings.py"


def test_readme_shows_the_measured_ladder() -> None:
    measured = (ROOT / "bench" / "ladder.md").read_text(encoding="utf-8")
    assert measured.strip() in (ROOT / "README.md").read_text(encoding="utf-8"), "run python -m bench.ladder"


def test_ladder_runs(tmp_path: Path) -> None:
    out = tmp_path / "ladder.md"
    options = ["--presets", "rnn,encoder", "--steps", "4", "--examples", "100", "--out", str(out)]
    done = run([sys.executable, "-m", "bench.ladder", *options], ROOT)
    assert done.returncode == 0, done.stderr
    assert out.read_text(encoding="utf-8").count("\n| `") == 2
