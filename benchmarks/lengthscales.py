"""What not knowing the lengthscale costs: a bank of them, a fit, LB-GP-UCB, and the right and wrong ones.

    python benchmarks/lengthscales.py --seeds 32 --rounds 150 --norm 2.0 --jobs 2 [--markdown]

Functions are drawn from a process with the true lengthscale; those who do not know it are told a middle one, and the
bank and LB-GP-UCB have candidates from half of that to twice as much, a factor of 4 in all. All play mean + 2 standard
deviations but LB-GP-UCB, which plays its own bounds (told norm `--norm`). The noise and the variance of f are told to
all. Cumulative regret over 150 rounds, on the same functions and noise; its ratio to that under the true lengthscale
with 95% bootstrap intervals, paired; then the 90th percentiles: of the regret, over that of the true lengthscale, and
of the ratio in each run. Seeds from 1000 on were not looked at before.
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import bench
import numpy as np

import nilregret as nr
from nilregret.environments import gp_sample
from nilregret.slots.envelope import ConstantWidth

FIRST_SEED = 1000
NOISE = 0.1
WIDE = tuple(2.0 ** (i / 2) for i in range(-4, 5))
RULES = {
    "true": "the true lengthscale",
    "long": "4 times too long",
    "short": "4 times too short",
    "bank": "`LengthscaleBank()`",
    "wide": "the same from 1/4 to 4",
    "mle": "maximum likelihood, a fit every 10 answers",
    "map": "`Refit(every=10)`",
    "lb": "`lb_gp_ucb`",
}


class Cell(NamedTuple):
    """A kind of functions: the true lengthscale, and the one that is told."""

    dimension: int
    true: float
    told: float

    def __str__(self):
        return f"{'Matern-5/2, 200 arms' if self.dimension == 1 else 'SE, 24 x 24 arms'}, l = {self.true:g}"

    def arms(self):
        return nr.Arms.grid(0, 1, 200) if self.dimension == 1 else bench.square(24)

    def kernel(self, lengthscale):
        return nr.Matern(2.5, lengthscale) if self.dimension == 1 else nr.SquaredExponential(lengthscale)


CELLS = [*(Cell(1, true, 0.1) for true in (0.05, 0.1, 0.2)), Cell(2, 0.15, 0.2)]


def policy_of(rule, cell, norm):
    arms = cell.arms()
    if rule == "lb":
        d = cell.dimension
        factors = [math.exp(-i / d) for i in range(1 + math.ceil(d * math.log(4)))]  # from 2 l to l / 2
        return nr.algorithms.lb_gp_ucb(arms, cell.kernel(2 * cell.told), noise=NOISE, norm_bound=norm, factors=factors)
    known = {"true": cell.true, "long": 4 * cell.true, "short": cell.true / 4}.get(rule, cell.told)
    refit = {
        "bank": nr.slots.LengthscaleBank(),
        "wide": nr.slots.LengthscaleBank(factors=WIDE),
        "mle": nr.slots.Refit(every=10, prior="none", standardize=False, noise="given"),
        "map": nr.slots.Refit(every=10),
    }.get(rule)
    return nr.gp_ucb(arms, cell.kernel(known), noise=NOISE, width=ConstantWidth(value=2.0), refit=refit)


def regret(cell, rule, seed, rounds, norm):
    arms = cell.arms()
    world = nr.Environment(gp_sample(cell.kernel(cell.true), arms, seed=seed), domain=arms, noise=NOISE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nr.errors.NoRegretWarning)  # of fits to a few answers
        return nr.simulate(policy_of(rule, cell, norm), world, rounds, seed=seed).regret.sum()


@bench.command(__doc__)
def main(args):
    seeds = range(FIRST_SEED, FIRST_SEED + args.seeds)
    for cell in CELLS:
        (found,), rows = bench.regrets(args.jobs, regret, [cell], RULES, seeds, args.rounds, args.norm), []
        true = found[list(RULES).index("true")]
        for rule, values in zip(RULES.values(), found, strict=True):
            high = np.quantile(values, 0.9)
            rows.append([
                rule, f"{values.mean():.1f}", bench.ratio(values, true), f"{high:.1f}",
                f"{high / np.quantile(true, 0.9):.2f}", f"{np.quantile(values / true, 0.9):.2f}",
            ])  # fmt: skip
        head = [str(cell), "mean", "over the true one's", "90th percentile", "over the true one's", "of the ratios"]
        bench.table(f"Regret over {args.rounds} rounds, {args.seeds} functions", head, rows, markdown=args.markdown)
