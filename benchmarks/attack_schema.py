"""Requests that schemathesis makes from the API's own description: no server error, every answer as it is described.

    python benchmarks/attack_schema.py --requests 10000

First each by itself: half of them fit the description and half break it somewhere, and four in five name a study that
there is. Then as many in chains that follow the links of the description from study to decision to reward and on, with
its examples for most bodies: so the service comes to where a study has thousands of trials, corrections and failures.
It prints how many of each operation were done.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.attacks.chains import attack_chains
from tests.attacks.schema import attack_schema, summary


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=["alone", "chains"])
    options = parser.parse_args()
    failed = False
    for name, attack in (("alone", attack_schema), ("chains", attack_chains)):
        if options.only in (None, name):
            statuses, failures = attack(options.requests, seed=options.seed)
            print(f"{'Each by itself' if name == 'alone' else 'In chains'}:", summary(statuses, failures), sep="\n")
            failed = failed or bool(failures)
    sys.exit(failed)


if __name__ == "__main__":
    main()
