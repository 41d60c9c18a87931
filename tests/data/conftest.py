"""Fixtures for the tests of data."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], str]:
    """Write a file and give its path; a name that ends in .gz is packed."""

    def write_file(name: str, content: str | bytes) -> str:
        raw = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(gzip.compress(raw, mtime=0) if name.endswith(".gz") else raw)
        return str(tmp_path / name)

    return write_file
