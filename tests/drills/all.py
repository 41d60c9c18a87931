"""Nothing in, one report of all drills out: printed, and written to docs/drills.md.

python -m tests.drills.all                           75 kills, 500 mutations, 72 signals; a quarter of an hour
python -m tests.drills.all --seed 7 --out report.md
"""

import argparse
import os
import platform
import signal
import sys
from pathlib import Path

from regard.training.home import versions
from tests.drills import corrupt, kill, stop
from tests.drills.lives import ROOT
from tests.drills.runs import PRESETS

PAGE = """# Drills

What `docs/decisions.md` claims about runs that die and files that decay, tried. Made by `{command}` (`make drills`),
seed {seed}; {versions}; {machine}. A short form of each drill is in the test suite.

## Killed

An RNN, an RNN with attention and a Transformer, each trained for 120 steps with dropout, two batches an update, a
checkpoint every 10 steps, a validation every 15 and the mean of the last three checkpoints at the end. One run is left
alone; another is killed (SIGKILL) again and again, at moments drawn uniformly over its time or at a named place inside
a save, and resumed with `regard resume` until it ends. *Differences* counts whatever is not the same to the bit at the
end (the model; the last checkpoint's weights, optimizer, window, and state but for the clock; metrics.jsonl; the choice
of best) and all that was wrong on the way: a checkpoint that is not whole, none at all once there was one, something
left over after the next start, more steps done again than one interval. Checkpoints are written while the training goes
on, so a kill during the writing also costs the steps made meanwhile: those are counted apart. A killed process loses
nothing that the system has in its memory: what a cut of the power would do, this does not show.

{killed}

## Damaged

Each file of an unfinished run and of a finished model, damaged: in each cell how many mutations were seen and named in
one line, and after a plus sign how many did no harm and had no word: the run was then trained to its end and was the
same to the bit, or the model that was loaded was the same. Such are the lock, the log of times, what was logged after
the last checkpoint, and doubled blanks in JSON. Of the newest checkpoint, seen means that the one before was used and
announced (but where both were damaged, having swapped a file); of the one before, that the newest was used and that it
would have been refused. Milliseconds are those until it was known.

{damaged}

## Interrupted

SIGTERM, SIGINT and SIGUSR1, by what was going on when they were sent: reading the data, a step, a checkpoint being
written, a validation, what follows the last step. Seconds are those of a machine with other work to do.

{stopped}
"""


def machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, one thread"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kills", type=int, default=25, help="of each preset")
    parser.add_argument("--count", type=int, default=500, help="of mutations")
    parser.add_argument("--rounds", type=int, default=3, help="of signals")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "drills.md")
    words = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    killed = kill.measure(PRESETS, words.kills, min(3, words.kills), words.seed)
    print(kill.report(killed), flush=True)
    damaged = corrupt.measure(words.count, words.seed)
    print(corrupt.report(damaged), flush=True)
    stopped = stop.measure(words.rounds, words.seed)
    print(stop.report(stopped), flush=True)
    page = PAGE.format(
        command=" ".join(["python -m tests.drills.all", *sys.argv[1:]]), seed=words.seed, machine=machine(),
        versions=", ".join(f"{name} {number}" for name, number in versions().items()), killed=kill.report(killed),
        damaged=corrupt.report(damaged), stopped=stop.report(stopped),
    )  # fmt: skip
    wrong = [*(line for each in killed for line in each.wrong), *damaged.wrong, *stopped.wrong]
    print("\n".join(wrong))
    words.out.write_text(page, encoding="utf-8")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
