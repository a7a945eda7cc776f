"""Live decisions: the figures of this library against bandit peers, all in one run.

    python benchmarks/live.py                          # every row
    python benchmarks/live.py --only shares cost       # some of them
    python benchmarks/live.py --seeds 1 --rounds 200   # a look
    python benchmarks/live.py --json live.json         # every run, for a machine

| row | what is measured |
|---|---|
| shares | share right on digits and mnist, `nr.auto` over the best of LinUCB, LinTS and Vowpal Wabbit |
| smooth | bananas, and digits in 20 principal components |
| cost | CPU of a decision after 10,000, and over what it was at first |
| clicks | clicks of 1% to 5%: regret over that of Thompson sampling with beta distributions |
| together | a budget, a switch and delays, each alone and all at once: shortfall and overspend |
| banners | clicks under 504 contexts: CPU in the median and at the worst, regret |
| changed | classes permuted halfway; answers that come 100 rounds late |
| newcomers | an arm of 2% or 20% joins while clicks come late and noes at a deadline: its share, and regret |
| told | the same by an exact Thompson sampler that is told the law of delays: what lateness alone costs |
| rare | clicks and faults of .5% to 5% whose first 50 answers are equal: share of the best arm in the end |
| certainty | how often one of equal arms is called the best (A/A), and a better one found; what bounds hold |

A data set becomes a bandit: the contexts are its columns, an arm is a class, and the reward is 1 for the right one.
Peers have the best of their settings in hindsight, on the very seeds shown. Seeds are paired, intervals are 95%
bootstraps. CPU is of ask and tell, one BLAS thread. MNIST's test images are read from the folder that NILREGRET_DATA
names; Vowpal Wabbit is in the extra `bench`. What is not at hand is named and left out.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

from live_parts import budgets, certainty, classified, newcomers, rare, rates
from live_parts.peers import missing
from tabulate import tabulate
from tqdm import tqdm

ROWS = {  # one entry a row of the table
    "shares": classified.shares,
    "smooth": classified.smooth,
    "cost": classified.cost,
    "clicks": rates.clicks,
    "together": budgets.together,
    "banners": classified.clicks_under_contexts,
    "changed": classified.changed,
    "newcomers": newcomers.newcomers,
    "told": newcomers.told,
    "rare": rare.rare,
    "certainty": certainty.certainty,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=ROWS, default=list(ROWS), metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=1000, help="the first seed; those below 1000 are for development")
    parser.add_argument("--rounds", type=int, help="in place of the rounds of each row")
    parser.add_argument("--alone", action="store_true", help="without the peers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write a record of every run there")
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    form = "github" if args.markdown else "simple"

    def show(title, head, rows):
        print(f"{title}:\n\n{tabulate(rows, head, tablefmt=form, disable_numparse=True)}\n", flush=True)

    args.show = show
    print("\n".join(missing()))
    found = []
    for row in tqdm(args.only, leave=False):
        found += ROWS[row](args)
        if args.json:
            args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
