"""How often a rule gets stuck, and what it costs not to: two deviations, the theorem, widths that are drawn, Thompson.

    python benchmarks/recommended.py                       # 200 functions of each kind: some ten minutes
    python benchmarks/recommended.py --runs 10 --others 5  # a look
    python benchmarks/recommended.py --boxes 10            # and boxes, which take longer
    python benchmarks/recommended.py --auto 24             # and scores of auto on arms, where the kernel is learned
    python benchmarks/recommended.py --markdown            # the tables of docs/measured/recommended.md

Functions are samples of the process that the rules are told. Stuck: at the end of the run the arm of the best posterior
mean is more than 0.1 below the best arm. Regret is cumulative, its ratio to that of two deviations paired, with 95%
bootstrap intervals. Seeds from 1000 on were not looked at before; the halving of the theorem's shift was chosen below.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import warnings

import numpy as np
from common_parts import mapped, ratio
from tabulate import tabulate

import nilregret as nr
from nilregret.environments import gp_sample
from nilregret.slots import described
from nilregret.slots.envelope import ConstantWidth
from nilregret.slots.explore import Explore, InitialDesign, InTurn
from nilregret.slots.scores import ExpectedImprovement, RandomisedBound, ThompsonSample

FIRST_SEED = 1000
STUCK = 0.1  # reward units; functions vary by 1
FIXED = "two deviations"
DRAWN = "half"
RULES = (FIXED, "gp_ucb", "gp_ucb / 5", "theorem", DRAWN, "Thompson", "EI")  # the shifts of `irgp_ucb` by name
LEARNING = EI, HALF, ALONE, SAMPLE, THIRD = (
    "auto: expected improvement",
    "auto: half the shift",
    "auto: drawn, E alone",
    "auto: Thompson",
    "auto: expected improvement, every third round drawn",
)
LOOKS = (30, 60)  # rounds after which the gap is looked at, too


def grid(side: int, dimension: int):
    axis = np.linspace(0, 1, side)
    return nr.Arms(np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), -1).reshape(-1, dimension))


class Task(NamedTuple):
    """A kind of functions, the noise and the rounds."""

    name: str
    domain: Any
    kernel: Any
    noise: float
    rounds: int


MAIN = Task("SE 0.12, 26 x 26 arms, noise 0.1", grid(26, 2), nr.SquaredExponential(0.12), 0.1, 400)
OTHERS = (
    Task("Matern-5/2 0.1, 200 arms, noise 0.3", grid(200, 1), nr.Matern(2.5, 0.1), 0.3, 400),
    Task("Matern-3/2 0.3, 10 x 10 x 10 arms, noise 0.1", grid(10, 3), nr.Matern(1.5, 0.3), 0.1, 400),
    Task("SE 0.12, 26 x 26 arms, noise 1", grid(26, 2), nr.SquaredExponential(0.12), 1.0, 400),
    Task("100 unrelated arms, noise 0.5", grid(100, 1), nr.SquaredExponential(0.0005), 0.5, 400),
    Task("3 unrelated arms, noise 1", grid(3, 1), nr.SquaredExponential(0.01), 1.0, 400),
)
BOXES = (
    Task("SE 0.12 on a square, noise 0.1", nr.Box([0, 0], [1, 1]), nr.SquaredExponential(0.12), 0.1, 150),
    Task("Matern-5/2 0.1 on a line, noise 0.3", nr.Box(0, 1), nr.Matern(2.5, 0.1), 0.3, 150),
)
GAP = Task("3 arms, one better by 1, noise 1", grid(3, 1), nr.SquaredExponential(0.01), 1.0, 150)
LEARNED = (
    MAIN,
    Task("Matern-5/2 0.5, 5 x 5 x 5 arms, noise 0.3", grid(5, 3), nr.Matern(2.5, 0.5), 0.3, 60),
    Task("SE 0.3, 26 x 26 arms, noise 0.01", grid(26, 2), nr.SquaredExponential(0.3), 0.01, 60),
    Task("Matern-5/2 0.5, 6 x 6 x 6 x 6 arms, noise 0.01", grid(6, 4), nr.Matern(2.5, 0.5), 0.01, 60),
    GAP,
)


def policy_of(rule, task):
    known = {"noise": task.noise}
    if rule == "Thompson":
        return nr.gp_ts(task.domain, task.kernel, v=1.0, regularization=task.noise**2, **known)
    if rule == "EI":
        return nr.expected_improvement(task.domain, task.kernel, **known)
    if rule in ("theorem", DRAWN):
        return nr.irgp_ucb(task.domain, task.kernel, shift=rule, **known)
    width = ConstantWidth(value=2.0) if rule == FIXED else None
    return nr.gp_ucb(task.domain, task.kernel, width=width, scale=0.2 if rule == "gp_ucb / 5" else 1.0, **known)


@described
@dataclass(frozen=True, kw_only=True)
class NowAndThen(Explore):
    """Every so many rounds the width is drawn."""

    shift: float
    every: int = 3

    def due(self, uniform, history, randomness):  # noqa: ARG002 - by counting alone
        return randomness.number % self.every == 0

    @property
    def score(self):
        return RandomisedBound(shift=self.shift)


def learning_of(rule, task):
    """Auto, with another score."""
    policy, shift = nr.auto(task.domain), np.log(len(task.domain.points) / 2)
    if rule == SAMPLE:
        return policy.using(score=ThompsonSample(), confidence=ConstantWidth(value=1.0))
    if rule in (EI, THIRD):
        design = InTurn((InitialDesign(), NowAndThen(shift=shift))) if rule == THIRD else policy.explore
        return policy.using(score=ExpectedImprovement(), explore=design)
    return policy.using(score=RandomisedBound(shift=0.0 if rule == ALONE else shift))


def values_of(task, seed):
    """The best value, and the function."""
    if task.name == GAP.name:  # a copy, in another process
        values = np.random.default_rng([seed, 2]).permutation([0.0, 0.0, 1.0])
        return 1.0, lambda points: values[task.domain.index(points)]
    f = gp_sample(task.kernel, task.domain, seed=seed)
    if isinstance(task.domain, nr.Arms):
        return f(task.domain.points).max(), f
    fine = grid(2001 if task.domain.dimension == 1 else 61, task.domain.dimension).points
    return f(fine).max(), f


def played(task, rules, seed):
    """Of each rule cumulative regret, and how far what is recommended is from the best, also earlier, `(rules, 4)`."""
    world = values_of(task, seed)
    return [play(task, rule, seed, *world) for rule in rules]


def play(task, rule, seed, best, f):
    policy = learning_of(rule, task) if rule in LEARNING else policy_of(rule, task)
    study, regret, gaps = nr.Study(policy, seed=seed), 0.0, []
    noise = task.noise * np.random.default_rng([seed, 1]).standard_normal(task.rounds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nr.errors.NoRegretWarning)
        for t in range(task.rounds):
            trial = study.ask()
            value = float(f(trial.point[None])[0])
            study.tell(trial, value + noise[t])
            regret += best - value
            if t + 1 in LOOKS:
                gaps.append(best - recommended(study, task, f))
    end = best - recommended(study, task, f)
    return [regret, end, *(gaps + [end] * len(LOOKS))[: len(LOOKS)]]


def recommended(study, task, f):
    """The value of what is recommended."""
    arms = task.domain.points if isinstance(task.domain, nr.Arms) else None
    at = study.best().point if arms is None else arms[study.predict()[0].argmax()]
    return float(f(at[None])[0])


def table(task, rules, runs, args, form):
    seeds = range(args.first, args.first + runs)
    found = np.swapaxes(mapped(args.jobs, played, [(task, rules, seed) for seed in seeds]), 0, 1)
    rows = []
    for rule, (regret, gap, *earlier) in zip(rules, np.moveaxis(found, 2, 1), strict=True):
        stuck = gap > STUCK
        rows.append(
            [
                rule,
                f"{regret.mean():.1f}",
                ratio(regret, found[0, :, 0]),
                f"{np.quantile(regret, 0.9):.1f}",
                f"{stuck.sum()} of {runs}",
                f"{gap.mean():.3f}",
                *(f"{each.mean():.3f}" for each in earlier if rule in LEARNING),
            ]
        )
    print(f"{task.name}, {task.rounds} rounds, {runs} functions:\n")
    head = ["rule", "regret", f"over {rules[0]}'s", "90th percentile", "stuck", "mean gap"]
    head += [f"after {rounds}" for rounds in LOOKS if rules is LEARNING]
    print(tabulate(rows, head, tablefmt=form, disable_numparse=True), "\n", flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200, help="functions of the main task")
    parser.add_argument("--others", type=int, default=100, help="functions of each other task on arms")
    parser.add_argument("--boxes", type=int, default=0, help="functions on each box")
    parser.add_argument(
        "--auto",
        type=int,
        default=0,
        help="functions that auto plays, twice that of three arms",
    )
    parser.add_argument("--rounds", type=int, help="of every run, in place of the tasks' own")
    parser.add_argument("--first", type=int, default=FIRST_SEED, help="seed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    form = "github" if args.markdown else "simple"

    def shortened(task):
        return task if args.rounds is None else task._replace(rounds=args.rounds)

    if args.runs:
        found = table(shortened(MAIN), RULES, args.runs, args, form)
        regret, gap = found[RULES.index(DRAWN)].T[:2]
        ratio = regret.mean() / found[0, :, 0].mean()
        print(f"half the shift is stuck in {np.mean(gap > STUCK):.1%} and has {ratio:.2f} of the regret of {FIXED}\n")
    for task in OTHERS if args.others else ():
        table(shortened(task), RULES, args.others, args, form)
    for task in BOXES if args.boxes else ():
        table(shortened(task), [rule for rule in RULES if rule != "EI"], args.boxes, args, form)
    for task in LEARNED if args.auto else ():
        table(shortened(task), LEARNING, args.auto * (2 if task is GAP else 1), args, form)


if __name__ == "__main__":
    main()
