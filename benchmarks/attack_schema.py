"""Requests that schemathesis makes from the API's own description: no server error, every answer as it is described.

    python benchmarks/attack_schema.py --requests 10000

Half of them fit the description and half break it somewhere. Four in five name a study that there is.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.attacks.schema import attack_schema, summary


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    statuses, failures = attack_schema(options.requests, seed=options.seed)
    print(summary(statuses, failures))
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
