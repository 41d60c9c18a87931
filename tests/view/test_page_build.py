"""The page that is shipped is the one that its source builds, it is small, and nothing in it reaches outside."""

import gzip
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import regard

PAGE = Path(regard.__file__).parent / "view" / "page"
SOURCE = Path(__file__).parents[2] / "web"
FILES = ["app.css", "app.js", "index.html"]
MOST = 150_000  # bytes, compressed
NAMESPACES = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml", "http://www.w3.org/1999/xlink",
              "http://www.w3.org/XML/1998/namespace", "http://www.w3.org/2000/xmlns/"}  # fmt: skip


def run(*words: str, folder: Path, **more: str) -> None:
    done = subprocess.run(words, cwd=folder, env={**os.environ, **more}, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)} failed:\n{done.stdout}\n{done.stderr}"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build of the source as it stands, made elsewhere."""
    assert shutil.which("npm"), "npm was not found: the page is built with Node 20.19 or later, see https://nodejs.org"
    copy = tmp_path_factory.mktemp("page") / "web"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("node_modules"))
    run("npm", "ci", "--no-audit", "--no-fund", folder=copy)
    run("npm", "run", "build", folder=copy, REGARD_PAGE=str(copy / "page"))
    return copy / "page"


def test_the_committed_build_is_a_build_of_its_source(built: Path) -> None:
    assert sorted(path.name for path in built.iterdir()) == FILES
    assert sorted(path.name for path in PAGE.iterdir()) == FILES
    stale = [name for name in FILES if (built / name).read_bytes() != (PAGE / name).read_bytes()]
    assert stale == [], "`make page` builds them anew"


def test_it_is_small() -> None:
    assert sum(len(gzip.compress((PAGE / name).read_bytes())) for name in FILES) < MOST


def test_nothing_in_it_reaches_outside() -> None:
    for name in FILES:
        found = set(
            re.findall(r"(?:https?:)?//[\w.-]+\.[a-z]{2,}[^\s\"'`)]*", (PAGE / name).read_text(encoding="utf-8"))
        )
        assert found <= NAMESPACES, name


def test_no_script_and_no_style_stand_in_the_markup() -> None:
    text = (PAGE / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=", text) == []
    assert "</script" not in (PAGE / "app.js").read_text(encoding="utf-8")  # so that it can be put into a saved page
    assert "</style" not in (PAGE / "app.css").read_text(encoding="utf-8")


def test_text_is_never_made_into_markup() -> None:
    words = (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "createContextualFragment",
        ".html(",
    )
    wrong = [f"{path.name}: {word}" for path in sorted((SOURCE / "src").glob("*.ts")) for word in words
             if word in path.read_text(encoding="utf-8")]  # fmt: skip
    assert wrong == []


def test_versions_are_exact_and_no_registry_is_named() -> None:
    package = json.loads((SOURCE / "package.json").read_text(encoding="utf-8"))
    versions = [*package["dependencies"].values(), *package["devDependencies"].values()]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions)
    assert '"resolved"' not in (SOURCE / "package-lock.json").read_text(encoding="utf-8")
