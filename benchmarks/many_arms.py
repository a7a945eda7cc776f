"""Asks on very many arms: time, memory, and regret over the exact posterior.

    python benchmarks/many_arms.py [--only asks|whole|regret] --rounds 100 [--cases N] --whole 5000
        --horizon 100 --seeds 6 --dimensions 2 4 6
    python benchmarks/many_arms.py --only asks
    python benchmarks/many_arms.py --only regret --seeds 10

1. `asks`: random arms in [0, 1]^d, a study made and asked --rounds times, each case in a process of its own. Seconds of
   CPU time for the study and its first ask (imports are made before), median and largest of later asks, and the peak
   memory of the process. Each time is also given over the *floor*: one exponential function for each arm, the least
   that a column of a kernel matrix costs.
2. `whole`: the same ask with a joint draw from the whole kernel matrix, as below 4,096 arms, over the draw by features
   and residuals, on --whole arms: CPU time of the first ask, of a later one, and peak memory.
3. `regret`: GP-TS with both kinds of draws on --whole arms, and the same seeds: total regret of one over the other.
   f is a sum of 500 random waves with the kernel's spectrum, T = --horizon.
"""

import statistics
import time
from unittest import mock

import bench
import numpy as np
import scipy.stats  # noqa: F401 - the first design imports it

import nilregret as nr
from nilregret.gp import distinct_arms

NOISE = 0.1
KERNELS = {"SE": nr.SquaredExponential(0.3), "Matern-5/2": nr.Matern(2.5, 0.3)}
POLICIES = {
    "gp_ucb": lambda arms, kernel: nr.gp_ucb(arms, kernel, noise=NOISE, scale=0.2),
    "ei": lambda arms, kernel: nr.expected_improvement(arms, kernel, noise=NOISE),
    "gp_ts": lambda arms, kernel: nr.gp_ts(arms, kernel, noise=NOISE, norm_bound=2.0),
    "auto": lambda arms, _: nr.auto(arms),
}
CASES = [
    (100_000, 1, "SE", "gp_ucb"), (100_000, 1, "Matern-5/2", "gp_ts"), (100_000, 2, "SE", "gp_ts"),
    (10_000, 4, "Matern-5/2", "gp_ts"), (100_000, 4, "Matern-5/2", "gp_ucb"), (100_000, 4, "Matern-5/2", "ei"),
    (100_000, 4, "Matern-5/2", "gp_ts"), (100_000, 6, "Matern-5/2", "gp_ts"), (10_000, 6, "Matern-5/2", "auto"),
    (100_000, 6, "Matern-5/2", "auto"),
]  # fmt: skip


def function(kernel, points, seed):
    """Values of a sum of random waves with the spectrum of the kernel, a sample of its process, `(N,)`."""
    rng = np.random.default_rng([1, seed])
    waves = kernel.frequencies(rng.uniform(size=(500, points.shape[1] + 1)))
    heights = rng.standard_normal((2, len(waves))) / np.sqrt(len(waves))
    return np.concatenate(
        [
            np.cos(part @ waves.T) @ heights[0] + np.sin(part @ waves.T) @ heights[1]
            for part in np.array_split(points, 64)
        ]
    )


def floor(count):
    """Seconds for one exponential function for each arm."""
    numbers = np.random.default_rng(0).uniform(-1, 0, count)
    return statistics.median(bench.timed(lambda: np.exp(numbers), 5)[0])


def played(count, dimension, kind, name, rounds, seed=0):
    """Times of each ask, the first with the study, and the regret of each."""
    points = np.random.default_rng(seed).uniform(size=(count, dimension))
    arms, kernel = nr.Arms(points), KERNELS[kind]
    f = function(kernel, points, seed)
    noise = NOISE * np.random.default_rng([2, seed]).standard_normal(rounds)
    nr.Study(POLICIES[name](nr.Arms(points[:50]), kernel), seed=seed).ask()  # imports
    times, regret, start = [], [], time.process_time()
    study = nr.Study(POLICIES[name](arms, kernel), seed=seed)
    for error in noise:
        trial = study.ask()
        times.append(time.process_time() - start)
        study.tell(trial, f[trial.arm] + error)
        regret.append(f.max() - f[trial.arm])
        start = time.process_time()
    return times, regret, bench.peak()


def asks(rounds, cases):
    print(f"1. CPU seconds: study and first ask; median and largest of {rounds - 1} later asks; peak memory")
    for count, dimension, kind, name in CASES[:cases]:
        times, _, peak = bench.apart(played, count, dimension, kind, name, rounds)
        first, later, least = times[0], times[1:], floor(count)
        print(
            f"   {count:7,} arms in {dimension}-d, {kind:10} {name:6}: {first:5.2f}, {statistics.median(later):6.3f}, "
            f"{max(later):6.3f}; {peak:4.0f} MB; over the floor {first / least:6.0f}, "
            f"{statistics.median(later) / least:4.0f}",
            flush=True,
        )


def from_whole(*arguments):
    """The same with draws from the whole kernel matrix."""
    with mock.patch.object(distinct_arms, "MOST_JOINT", 10**9):
        return played(*arguments)


def whole(count, dimensions):
    for dimension in dimensions:
        case = count, dimension, "Matern-5/2", "gp_ts", 12
        exact, by_features = bench.apart(from_whole, *case), bench.apart(played, *case)
        ratios = (
            exact[0][0] / by_features[0][0],
            statistics.median(exact[0][1:]) / statistics.median(by_features[0][1:]),
        )
        print(
            f"2. {count:,} arms in {dimension}-d: whole matrix over features: first ask {ratios[0]:.1f} "
            f"({exact[0][0]:.2f} s), later ask {ratios[1]:.2f}, memory {exact[2] / by_features[2]:.1f} "
            f"({exact[2]:.0f} MB)",
            flush=True,
        )


def regret(count, horizon, seeds, dimensions):
    for dimension in dimensions:
        pairs = []
        for seed in range(seeds):
            case = count, dimension, "Matern-5/2", "gp_ts", horizon, 1000 + seed
            pairs.append([sum(task(*case)[1]) for task in (played, from_whole)])
        ours, exact = np.array(pairs).T
        gaps = (ours - exact) / exact.mean()
        print(
            f"3. {count:,} arms in {dimension}-d, T = {horizon}, {seeds} seeds: regret over exact "
            f"{ours.mean() / exact.mean():.3f} +- {gaps.std(ddof=1) / seeds**0.5:.3f} "
            f"(exact {exact.mean() / horizon:.3f} a round)",
            flush=True,
        )


@bench.command(__doc__)
def main(options):
    if options.only in (None, "asks"):
        asks(options.rounds, options.cases)
    if options.only in (None, "whole"):
        whole(options.whole, options.dimensions)
    if options.only in (None, "regret"):
        regret(options.whole, options.horizon, options.seeds, options.dimensions)
