"""Memory is flat in the number of lines: the short form of `python -m bench.memory`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.memory import lines

pytestmark = pytest.mark.no_shapes  # other processes are measured
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc to ask")
def test_five_times_the_lines_and_hardly_more_memory(tmp_path: Path) -> None:
    """Held in memory, 40,000 more of these lines would take 14 MB as examples and 26 MB as numbers."""
    found = []
    for count in (10_000, 50_000):
        path = tmp_path / f"{count}.tsv"
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(lines(count))
        command = [sys.executable, "-m", "bench.memory", "--one", str(path), "--store", str(tmp_path / str(count)),
                   "--steps", "2"]  # fmt: skip
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        found.append(json.loads(done.stdout))
    assert found[1]["store"] > 4 * found[0]["store"]
    growth = [after["preparing"] - after["imports"] for after in found]
    assert growth[1] - growth[0] < 8
