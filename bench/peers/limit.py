"""How many operations a second a plain matrix product reaches here: the limit beside which the systems are seen.

One update is ten products of 1024 × 1024, told as the operations they take: two for each multiplication.
"""

import torch

from bench.peers import gate
from bench.peers.gate import Counts

SIDE = 1024
PRODUCTS = 10
KINDS = {"fp32": torch.float32, "bf16": torch.bfloat16}


def main() -> None:
    job, door = gate.begin()
    torch.set_num_threads(job.threads)
    left, right, out = torch.randn(3, SIDE, SIDE, dtype=KINDS[job.precision]).unbind()
    door.facts |= {"version": torch.__version__}
    while True:
        door.update(Counts(target=PRODUCTS * 2 * SIDE**3, source=0, places=0))
        for _ in range(PRODUCTS):
            torch.mm(left, right, out=out)


if __name__ == "__main__":
    main()
