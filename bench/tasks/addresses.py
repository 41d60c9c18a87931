"""usaddress's own CRF on the split of the row `addresses`: as shipped, and trained on the same file.

    python -m bench.tasks.addresses

It is installed into .venv-peers/usaddress, and its figures go beside the table of `python -m bench.tasks`.
"""

import argparse
import json
import subprocess
from pathlib import Path

from bench.page import put
from bench.peers import environments
from bench.tasks.__main__ import DATA, PAGE
from regard.score.intervals import wilson_interval

SCRIPT = Path(environments.__file__).with_name("tag_usaddress.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    folder = parser.parse_args().data / "addresses"
    python = environments.interpreter("usaddress")
    done = subprocess.run([python, SCRIPT, folder / "train.tsv", folder / "test.tsv"], capture_output=True, text=True,
                          check=True)  # fmt: skip
    found = json.loads(done.stdout)
    lines = ["| system | token accuracy on the test file (95 %) |", "|---|--:|"]
    for name, what in (("shipped", "usaddress 0.5.16, the model it ships"),
                       ("trained", "its features and trainer on our training file")):  # fmt: skip
        low, high = wilson_interval(found[name], found["tokens"])
        lines.append(f"| {what} | {100 * found[name] / found['tokens']:.1f} ({low:.1f} – {high:.1f}) |")
    put(PAGE, "tasks addresses", "\n".join([*lines, "", f"{found['tokens']:,} tokens."]))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
