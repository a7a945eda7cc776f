"""Public calls with hostile values: nothing foreign, nothing in silence, nothing without end.

    python benchmarks/attack_fuzz.py --calls 100000

Printed are how many calls worked, how many were refused by an error of the library, and every other one. What is
called, with what and how it is judged is described in `tests/attacks/fuzz.py`.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.attacks import fuzz


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.perf_counter()
    counts, wrong = fuzz.run(options.calls, seed=options.seed)
    for outcome in wrong:
        print(outcome)
    foreign = counts["foreign exception"]
    silent = counts["accepted in silence"] + counts["not finite"]
    print(
        f"{options.calls} calls of {len(fuzz.targets())} targets in {time.perf_counter() - start:.0f} s: "
        f"{counts['worked']} worked, {counts['refused']} refused, {foreign} foreign exceptions, {silent} accepted in "
        f"silence, {counts['hangs']} hangs, {len(wrong)} wrong in all"
    )


if __name__ == "__main__":
    main()
