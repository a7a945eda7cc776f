"""Widths that hold for functions of bounded norm: what each costs in regret, and how often it fails.

    python benchmarks/widths.py --seeds 32 --rounds 400 --runs 400 --cover 100 --exact 32 --jobs 2 [--markdown]
    python benchmarks/widths.py --seeds 4 --runs 0 --exact 0    # a look
    python benchmarks/widths.py --seeds 0 --runs 0    # without noise

Regret: IGP-UCB with the greedy bound on the information gain (the paper's lambda) against the gain realised, AY, AMM
and DMM (lambda = R^2), on the same functions and noise, over 400 rounds; ratios of mean regret with 95% bootstrap
intervals, paired. Coverage: runs of `--cover` rounds in which f leaves the bounds anywhere, in any round, of `--runs`
for each width; half of the functions have one centre, where the norm is all at one place; then B told half. Without
noise: mean regret after 20, 100 and 500 rounds, over `--exact` functions. The paper's lambda 1 + 2/T against a tiny one
with the width B (Iwazaki 2025) and with the narrower width that `noise=0` plays, also with twice B told. Seeds from
1000 on were not looked at before.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import bench
import numpy as np
from scipy.stats import binom

import nilregret as nr
from nilregret.environments import rkhs_function

DELTA = 0.1
FIRST_SEED = 1000
RULES = ("igp greedy", "igp", "ay", "amm", "dmm")
AT = (20, 100, 500)  # rounds at which the regret without noise is shown
EXACT = {
    "lambda 1 + 2/T": {"width": "igp", "horizon": AT[-1]},
    "tiny lambda, width B": {"width": "ay"},
    "`noise=0`": {},
    "`noise=0`, 2 B told": {"norm_bound": 4.0},
}
SMOOTHNESS = {"SE": nr.SquaredExponential, "Matern-5/2": partial(nr.Matern, 2.5), "Matern-1/2": partial(nr.Matern, 0.5)}
COVERED = ("ay", "amm", "dmm", "dmm, B told half")
MIDDLE = 0.37  # where the one centre is


class Cell(NamedTuple):
    """A kind of functions, and the noise."""

    dimension: int
    noise: float
    norm: float

    def __str__(self):
        kernel = "Matern-5/2, 200 arms" if self.dimension == 1 else "SE, 24 x 24 arms"
        return f"{kernel}, R = {self.noise:g}, B = {self.norm:g}"

    def problem(self):
        if self.dimension == 1:
            return nr.Arms.grid(0, 1, 200), nr.Matern(2.5, 0.2)
        return bench.square(24), nr.SquaredExponential(0.2)


CELLS = [Cell(d, *known) for d in (1, 2) for known in ((0.1, 2.0), (1.0, 2.0), (0.1, 5.0))]


def policy_of(rule, cell, rounds, told=1.0):
    arms, kernel = cell.problem()
    known = {"noise": cell.noise, "norm_bound": told * cell.norm, "delta": DELTA}
    if rule.startswith("igp"):
        gain = "greedy" if rule.endswith("greedy") else "realised"
        return nr.igp_ucb(arms, kernel, horizon=rounds, information_gain=gain, **known)
    return nr.igp_ucb(arms, kernel, width=rule.split(",")[0], **known)


def regret(cell, rule, seed, rounds):
    arms, kernel = cell.problem()
    world = nr.Environment(rkhs_function(kernel, arms, norm=cell.norm, seed=seed), domain=arms, noise=cell.noise)
    return nr.simulate(policy_of(rule, cell, rounds), world, rounds, seed=seed).regret.sum()


def covered(cell, rule, seed, rounds):
    """Whether f stayed inside, whether the norm bound was raised, and the last round in which f was outside."""
    arms, kernel = cell.problem()
    if seed % 2:
        values = cell.norm * kernel.between_arms(arms.points, np.arange(len(arms)), [int(MIDDLE * len(arms))])[:, 0]
    else:
        values = rkhs_function(kernel, arms, norm=cell.norm, seed=seed)(arms.points)
    study = nr.Study(policy_of(rule, cell, rounds, told=0.5 if "half" in rule else 1.0), seed=seed)
    noise, outside = cell.noise * np.random.default_rng([seed, 1]).standard_normal(rounds), 0
    for t in range(rounds):
        lower, upper = study.bounds()
        if ((values < lower - 1e-9) | (values > upper + 1e-9)).any():
            outside = t + 1
        trial = study.ask()
        study.tell(trial, values[trial.arm] + noise[t])
    return outside, [at for at, _ in study.norm_bounds[1:]]


def regrets(args):
    seeds = range(FIRST_SEED, FIRST_SEED + args.seeds)
    found, rows = bench.regrets(args.jobs, regret, CELLS, RULES, seeds, args.rounds), []
    for cell, each in zip(CELLS, found, strict=True):
        rows.append([str(cell), f"{each[0].mean():.1f}", *(bench.ratio(other, each[0]) for other in each[1:])])
    means = found.mean(axis=2)
    logs = np.log(means[:, 1:] / means[:, :1])
    rows.append(["geometric mean", "", *(f"{x:.2f}" for x in np.exp(logs.mean(axis=0)))])
    rows.append(["largest", "", *(f"{x:.2f}" for x in np.exp(logs.max(axis=0)))])
    title = f"Regret over {args.rounds} rounds, {args.seeds} functions, over IGP-UCB's with the greedy gain"
    bench.table(title, ["cell", *RULES], rows, markdown=args.markdown)


def coverage(args):
    rows = []
    for rule in COVERED:
        seeds = range(FIRST_SEED, FIRST_SEED + args.runs)
        cells = [CELLS[seed // 2 % len(CELLS)] for seed in seeds]
        tasks = [(cell, rule, seed, args.cover) for cell, seed in zip(cells, seeds, strict=True)]
        found = bench.mapped(args.jobs, covered, tasks)
        raised = [at for _, at in found if at]
        failed = sum(outside > 0 for outside, _ in found)
        after = sum(bool(at) and outside > at[-1] + 1 for outside, at in found)
        verdict = "above delta" if binom.sf(failed - 1, args.runs, DELTA) < 0.05 else "no more than delta"
        latest = max((at[0] for at in raised), default="-")
        told_wrong = "half" in rule
        rows.append([rule, failed, "-" if told_wrong else verdict, len(raised), latest, after if told_wrong else "-"])
    head = ["width", "runs in which f was outside", "", "runs in which B was raised", "at the latest in round",
            "outside after it was raised"]  # fmt: skip
    title = f"Coverage, {args.runs} runs of {args.cover} rounds, delta = {DELTA:g}"
    bench.table(title, head, rows, markdown=args.markdown)


def exact(kind, dimension, rule, seed):
    """The regret at `AT` without noise."""
    arms, kernel = nr.Arms.grid(0, 1, 200) if dimension == 1 else bench.square(24), SMOOTHNESS[kind](0.2)
    world = nr.Environment(rkhs_function(kernel, arms, norm=2.0, seed=seed), domain=arms, noise=0.0)
    policy = nr.igp_ucb(arms, kernel, **{"noise": 0.0, "norm_bound": 2.0, **EXACT[rule]})
    return nr.simulate(policy, world, AT[-1], seed=seed).cumulative_regret[np.array(AT) - 1]


def without_noise(args):
    cells = [(kind, dimension) for dimension in (1, 2) for kind in SMOOTHNESS]
    seeds, rows = range(FIRST_SEED, FIRST_SEED + args.exact), []
    for cell in cells:
        means = [
            np.mean(bench.mapped(args.jobs, exact, [(*cell, rule, seed) for seed in seeds]), axis=0) for rule in EXACT
        ]
        where = "200 arms" if cell[1] == 1 else "24 x 24 arms"
        rows.append([f"{cell[0]}, {where}", *(", ".join(f"{x:.1f}" for x in each) for each in means)])
    title = f"Regret without noise after {', '.join(map(str, AT))} rounds, B = 2, {args.exact} functions"
    bench.table(title, ["cell", *EXACT], rows, markdown=args.markdown)


@bench.command(__doc__)
def main(args):
    if args.seeds:
        regrets(args)
    if args.runs:
        coverage(args)
    if args.exact:
        without_noise(args)
