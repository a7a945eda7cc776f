"""Hostile texts of policies and hostile rows of stored studies: what becomes of them.

    python benchmarks/attack_hostile.py --texts 2500 --rows 1900

Counts how many are refused in words and how many are used (they describe something that can be); anything else is a
fault, and is printed: another exception than the library's own, a change accepted that could not have come about, a
command run. The small form of it is part of the test suite (tests/attacks).
"""

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.attacks.hostile import attack_rows, attack_texts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=2500)
    parser.add_argument("--rows", type=int, default=1900)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # where a command would leave its mark
        results = {"texts": attack_texts(options.texts, options.seed)}
        results["rows"] = attack_rows(options.rows, folder, options.seed)
    for what, (counts, faults) in results.items():
        for fault in faults:
            print(fault)
        print(f"{what}: {dict(sorted(counts.items()))}")
        print(f"  {counts['executions']} executions, {counts['foreign']} foreign exceptions, {counts['silent']} silent")
    sys.exit(any(faults or counts["executions"] for counts, faults in results.values()))


if __name__ == "__main__":
    main()
