"""Hypervolume regret of the scalarised upper bound and Thompson draw, on samples of the processes that they are told.

    python benchmarks/fronts.py --runs 24 [--rounds N] --first 0 --jobs 1 [--picture FILE] [--markdown]
    python benchmarks/fronts.py --runs 24 --picture docs/pictures/hypervolume-regret.png
    python benchmarks/fronts.py --runs 2                             # a look

Objectives are independent samples on arms, and the reference is fixed at two standard deviations below the mean. The
regret of a round is that of its random direction (Paria et al. 2019, eq. 5), as a volume: c_k times the difference of
s_lambda(f)^k between the best arm and the arm played. "Missing" is the share of the volume under the front of all arms
that the arms played leave out, by true values. "Power of T" is the slope of regret from a quarter of the rounds on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import bench
import numpy as np

import nilregret as nr
from nilregret._utils.randomness import Randomness
from nilregret.environments import gp_sample
from nilregret.theory.fronts import hypervolume, scalarised, sphere, volume_constant

RULES = BOUND, DRAW, GAIN, RANDOM = "hypervolume_ucb", "hypervolume_thompson", "expected gain of volume", "random"
LOOKS = (25, 100, 400)
NOISE, REFERENCE = 0.1, -2.0


class Task(NamedTuple):
    """A kind of functions."""

    name: str
    domain: Any
    kernel: Any
    objectives: int


TASKS = (
    Task("2 objectives, SE 0.2, 21 x 21 arms", bench.square(21, 2), nr.SquaredExponential(0.2), 2),
    Task("3 objectives, SE 0.2, 21 x 21 arms", bench.square(21, 2), nr.SquaredExponential(0.2), 3),
    Task("2 objectives, Matern-5/2 0.3, 21 x 21 arms", bench.square(21, 2), nr.Matern(2.5, 0.3), 2),
)


def policy_of(rule, task):
    make = nr.algorithms.hypervolume_thompson if rule == DRAW else nr.algorithms.hypervolume_ucb
    policy = make(task.domain, task.kernel, noise=NOISE, reference=(REFERENCE,) * task.objectives)
    if rule == GAIN:
        return policy.using(score=nr.slots.HypervolumeImprovement())
    return policy.using(explore=nr.slots.Uniform(1.0)) if rule == RANDOM else policy


def played(task, rule, rounds, seed):
    """The regret of each round and the share missing after it, `(2, rounds)`."""
    k, corner = task.objectives, np.full(task.objectives, REFERENCE)
    values = np.stack([gp_sample(task.kernel, task.domain, seed=[seed, j])(task.domain.points) for j in range(k)], 1)
    noise = NOISE * np.random.default_rng([seed, 1]).standard_normal((rounds, k))
    study, front = nr.Study(policy_of(rule, task), seed=seed), np.zeros((0, k))
    whole, regret, missing = hypervolume(values, corner), [], []
    for t in range(rounds):
        trial = study.ask()
        study.tell(trial, tuple((values[trial.arm] + noise[t]).tolist()))
        weights = sphere(Randomness(seed, trial.number).draws, 1, k)[0]
        heights = np.maximum(scalarised(values, weights, corner), 0.0) ** k
        regret.append(volume_constant(k) * (heights.max() - heights[trial.arm]))
        front = np.concatenate([front, values[trial.arm][None]])
        missing.append(1.0 - hypervolume(front, corner) / whole)
    return np.array([regret, missing])


def table(task, runs, rounds, args):
    """Prints the regret of each rule, and returns it, `(rules, runs, 2, rounds)`."""
    tasks = [(task, rule, rounds, seed) for rule in RULES for seed in range(args.first, args.first + runs)]
    found = np.reshape(bench.mapped(args.jobs, played, tasks), (len(RULES), runs, 2, rounds))
    looks = [look for look in LOOKS if look < rounds] + [rounds]
    rows = []
    for rule, (regret, missing) in zip(RULES, np.moveaxis(found, 2, 1), strict=True):
        total = regret.cumsum(axis=1)
        mean, half = total.mean(axis=0), rounds // 4
        power = np.log(mean[-1] / mean[half - 1]) / np.log(rounds / half)
        row = [rule, *(f"{mean[look - 1]:.1f}" for look in looks), f"{power:.2f}"]
        rows.append(row + [f"{missing[:, look - 1].mean():.2%}" for look in looks])
    head = ["rule", *(f"regret of {look}" for look in looks), "power of T"]
    head += [f"missing after {look}" for look in looks]
    bench.table(f"{task.name}, {rounds} rounds, {runs} pairs of functions", head, rows, markdown=args.markdown)
    return found


def draw(found, path):
    """Draws the regret of each rule of the first task over T, and the share missing."""
    import matplotlib.pyplot as plt

    rounds = np.arange(1, found.shape[-1] + 1)
    fig, axes = plt.subplots(1, 2, figsize=(8.0, 3.2), layout="constrained")
    for rule, (regret, missing) in zip(RULES, np.moveaxis(found, 2, 1), strict=True):
        if rule == GAIN:  # It sees no directions.
            continue
        axes[0].loglog(rounds, regret.cumsum(axis=1).mean(axis=0), label=rule)
        axes[1].loglog(rounds, missing.mean(axis=0), label=rule)
    axes[0].loglog(rounds, found[0, :, 0].cumsum(axis=1).mean(axis=0)[0] * np.sqrt(rounds), "k:", label="sqrt(T)")
    axes[0].set(xlabel="round T", ylabel="cumulative hypervolume regret")
    axes[1].set(xlabel="round T", ylabel="share of the volume missing")
    axes[0].legend()
    fig.savefig(path, dpi=150)


@bench.command(__doc__)
def main(args):
    rounds = args.rounds or LOOKS[-1]
    found = [table(task, args.runs, rounds, args) for task in TASKS]
    least = min(each[0, :, 0].sum() / each[-1, :, 0].sum() for each in found)
    print(f"the scalarised bound has {least:.2f} of the regret of random arms at least\n")
    if args.picture:
        draw(found[0], args.picture)
