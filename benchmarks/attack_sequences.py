"""Random sequences of operations on random studies: reopened copies continue, predictions are dense solves.

    python benchmarks/attack_sequences.py --sequences 5000

Each draws a policy (memory x pending x objective x explore x refit x score x domain x context) and thirty operations;
a fifth of them on an SQLite file. Printed are how many decisions were compared with those of a copy rebuilt from the
record, how many predictions with a dense solve (to 1e-8), and every sequence that went wrong, with its number: `--first
N --sequences 1` plays it again. What is checked is described in `tests/attacks/sequences.py`.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.attacks import sequences


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        compared, solved, wrong = sequences.run(range(options.first, options.first + options.sequences), folder)
    for seed, error, sequence in wrong:
        print(f"sequence {seed}: {type(error).__name__}: {error}")
        print(f"  {None if sequence is None else sequence.policy}")
        if not isinstance(error, sequences.Problem):
            traceback.print_exception(error, limit=-4, file=sys.stdout)
    foreign = sum(not isinstance(error, sequences.Problem) for _, error, _ in wrong)
    print(
        f"{options.sequences} sequences in {time.perf_counter() - start:.0f} s: {compared} decisions and {solved} "
        f"predictions compared, {len(wrong) - foreign} mismatches, {foreign} foreign exceptions"
    )


if __name__ == "__main__":
    main()
