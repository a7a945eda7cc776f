"""Hostile and malformed requests at a server of one's own: who gets in, and whether it goes on serving.

    python benchmarks/attack_service.py --requests 100000

Broken HTTP over raw sockets, headers and bodies without end, paths out of every folder, useless tokens in every place,
pages of other sites, guesses at the form, and somebody with good tokens of another tenant; a server on 127.0.0.1 and a
fresh database, with the limits on rates lifted so that everything is looked at. Meanwhile an honest caller decides, and
afterwards every decision that was acknowledged must be on record, and nothing else.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.attacks.service import attack, summary


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--slow", type=int, default=300, help="connections that send a byte now and then")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = attack(options.requests, folder, seed=options.seed, slow_lines=options.slow)
    print(summary(report))
    sys.exit(bool(report.faults))


if __name__ == "__main__":
    main()
