"""How often a rule gets stuck, and what it costs not to: two deviations, the theorem, widths that are drawn, Thompson.

    python benchmarks/recommended.py --runs 200 --auto 0 [--rounds N] --first 1000 --jobs 1 [--markdown]
    python benchmarks/recommended.py --runs 10                       # a look
    python benchmarks/recommended.py --runs 0 --auto 24 --markdown   # scores of auto, where the kernel is learned

Functions are samples of the process that the rules are told; `auto` is told nothing. Stuck: at the end of the run the
arm of the best posterior mean is more than 0.1 below the best arm. Regret is cumulative, its ratio to that of the first
rule paired, with 95% bootstrap intervals. Seeds from 1000 on were not looked at before; the halving of the theorem's
shift was chosen below.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import bench
import numpy as np

import nilregret as nr
from nilregret.environments import gp_sample
from nilregret.slots import described
from nilregret.slots.envelope import ConstantWidth
from nilregret.slots.explore import Explore, InitialDesign, InTurn
from nilregret.slots.scores import ExpectedImprovement, RandomisedBound, ThompsonSample

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


class Task(NamedTuple):
    """A kind of functions, the noise and the rounds."""

    name: str
    domain: Any
    kernel: Any
    noise: float
    rounds: int


MAIN = Task("SE 0.12, 26 x 26 arms, noise 0.1", bench.square(26, 2), nr.SquaredExponential(0.12), 0.1, 400)
GAP = Task("3 arms, one better by 1, noise 1", bench.square(3, 1), nr.SquaredExponential(0.01), 1.0, 150)
LEARNED = (
    MAIN,
    Task("Matern-5/2 0.5, 5 x 5 x 5 arms, noise 0.3", bench.square(5, 3), nr.Matern(2.5, 0.5), 0.3, 60),
    Task("SE 0.3, 26 x 26 arms, noise 0.01", bench.square(26, 2), nr.SquaredExponential(0.3), 0.01, 60),
    Task("Matern-5/2 0.5, 6 x 6 x 6 x 6 arms, noise 0.01", bench.square(6, 4), nr.Matern(2.5, 0.5), 0.01, 60),
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
    """The function on the arms."""
    if task.name == GAP.name:  # a copy, in another process
        return np.random.default_rng([seed, 2]).permutation([0.0, 0.0, 1.0])
    return gp_sample(task.kernel, task.domain, seed=seed)(task.domain.points)


def played(task, rules, seed):
    """Of each rule cumulative regret, and how far what is recommended is from the best, also earlier, `(rules, 4)`."""
    values = values_of(task, seed)
    return [play(task, rule, seed, values) for rule in rules]


def play(task, rule, seed, values):
    policy = learning_of(rule, task) if rule in LEARNING else policy_of(rule, task)
    study, regret, gaps = nr.Study(policy, seed=seed), 0.0, []
    noise = task.noise * np.random.default_rng([seed, 1]).standard_normal(task.rounds)
    warnings.simplefilter("ignore", nr.errors.NoRegretWarning)
    for t in range(task.rounds):
        trial = study.ask()
        study.tell(trial, float(values[trial.arm]) + noise[t])
        regret += values.max() - values[trial.arm]
        if t + 1 in (*LOOKS, task.rounds):
            gaps.append(values.max() - values[study.predict()[0].argmax()])
    return [regret, gaps[-1], *(gaps + gaps[-1:] * len(LOOKS))[: len(LOOKS)]]


def table(task, rules, runs, args):
    """Prints what the rules have, and returns it, `(rules, runs, 4)`."""
    task = task if args.rounds is None else task._replace(rounds=args.rounds)
    tasks = [(task, rules, seed) for seed in range(args.first, args.first + runs)]
    found, rows = np.swapaxes(bench.mapped(args.jobs, played, tasks), 0, 1), []
    for rule, (regret, gap, *earlier) in zip(rules, np.moveaxis(found, 2, 1), strict=True):
        row = [rule, f"{regret.mean():.1f}", bench.ratio(regret, found[0, :, 0]), f"{np.quantile(regret, 0.9):.1f}"]
        row += [f"{(gap > STUCK).sum()} of {runs}", f"{gap.mean():.3f}"]
        rows.append([*row, *(f"{each.mean():.3f}" for each in earlier if rule in LEARNING)])
    head = ["rule", "regret", f"over {rules[0]}'s", "90th percentile", "stuck", "mean gap"]
    head += [f"after {rounds}" for rounds in LOOKS if rules is LEARNING]
    title = f"{task.name}, {task.rounds} rounds, {runs} functions"
    bench.table(title, head, rows, markdown=args.markdown)
    return found


@bench.command(__doc__)
def main(args):
    if args.runs:
        found = table(MAIN, RULES, args.runs, args)
        regret, gap = found[RULES.index(DRAWN)].T[:2]
        ratio = regret.mean() / found[0, :, 0].mean()
        print(f"half the shift is stuck in {np.mean(gap > STUCK):.1%} and has {ratio:.2f} of the regret of {FIXED}\n")
    for task in LEARNED if args.auto else ():
        table(task, LEARNING, args.auto * (2 if task is GAP else 1), args)
