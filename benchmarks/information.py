"""The greedy design of experiments: its speed, and how close the bounds of the information gain are.

    python benchmarks/information.py

1. `GreedyDesign` against the same rule by dense log-determinants, one for each candidate (100 arms): equal gains.
2. T = 30,000 greedy points on 100 arms, then the bound of every round as a policy asks for it.
3. Many arms and few points: one update of every arm's variance a point, against lazy evaluation (Minoux 1978), which
   recomputes only the arms whose old variance, an upper bound by submodularity, is still among the largest.
4. All bounds over the greedy gain I_T (gamma_T >= I_T), T = 1 .. 30,000.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import statistics
import sys
import time

import numpy as np
from scipy.linalg import solve_triangular

import nilregret as nr
from nilregret.gp import DistinctArmsPosterior
from nilregret.gp.arms import Prior

RIDGE = 0.025


def seconds(function, repeats=1):
    """Median time, and the result."""
    times, result = [], None
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return statistics.median(times), result


def naive_gain(kernel, points, count):
    """Rule (4) by brute force."""
    K, arms, best = kernel(points, points), [], 0.0
    for _ in range(count):
        gains = []
        for arm in range(len(points)):
            trial = [*arms, arm]
            gains.append(0.5 * np.linalg.slogdet(np.eye(len(trial)) + K[np.ix_(trial, trial)] / RIDGE)[1])
        arm = int((np.array(gains) - best >= (max(gains) - best) * (1 - 1e-9)).argmax())
        arms.append(arm)
        best = gains[arm]
    return best


def lazy_gain(kernel, points, count, batch):
    """Rule (4), recomputing `batch` variances at a time until the largest is up to date; evaluations counted too."""
    variance, seen = kernel.diagonal(points), np.zeros(len(points), dtype=int)
    factor, arms, gain, evaluations = np.zeros((count, count)), [], 0.0, 0
    batch = min(batch, len(points) - 1)
    for t in range(count):
        while True:
            top = np.argpartition(-variance, batch)[:batch]
            arm = int(top[variance[top].argmax()])
            if seen[arm] == t:
                break
            stale = top[seen[top] < t]
            half = solve_triangular(factor[:t, :t], kernel(points[arms], points[stale]), lower=True)
            variance[stale] = kernel.diagonal(points[stale]) - np.einsum("ij,ij->j", half, half)
            seen[stale] = t
            evaluations += len(stale)
        if t:
            factor[t, :t] = solve_triangular(factor[:t, :t], kernel(points[arms], points[[arm]])[:, 0], lower=True)
        factor[t, t] = np.sqrt(RIDGE + max(variance[arm], 0.0))
        arms.append(arm)
        gain += 0.5 * np.log1p(variance[arm] / RIDGE)
    return gain, evaluations


def full_gain(kernel, points, count):
    """Rule (4), the variance of every arm up to date at every point."""
    posterior = DistinctArmsPosterior(Prior(kernel, points), RIDGE)
    for _ in range(count):
        posterior.append(int(posterior.predict()[1].argmax()), 0.0)
    return posterior.information_gain


def against_naive(count, repeats):
    points = np.random.default_rng(0).uniform(0, 1, (100, 2))
    print(f"1. 100 arms in 2 dimensions, T = {count}: dense log-determinants against the grown design")
    for kernel in (nr.SquaredExponential(0.3), nr.Matern(2.5, 0.3)):
        theirs, expected = seconds(lambda kernel=kernel: naive_gain(kernel, points, count))
        ours, gain = seconds(lambda kernel=kernel: nr.theory.GreedyDesign(kernel, points, RIDGE).gain(count), repeats)
        same = abs(gain - expected) <= 1e-9 * expected
        print(f"   {type(kernel).__name__}: {theirs / ours:.0f} times faster; same: {'yes' if same else 'NO'}")
        if not same:
            sys.exit("The two gains differ.")


def many_rounds(count, repeats):
    arms, kernel = nr.Arms(np.random.default_rng(0).uniform(0, 1, (100, 1))), nr.SquaredExponential(0.2)
    grown, _ = seconds(lambda: nr.theory.GreedyDesign(kernel, arms, RIDGE).gain(count), repeats)
    print(f"2. SE, 100 arms, T = {count}: {grown / count * 1e6:.0f} us a point")
    design = nr.theory.GreedyDesign(kernel, arms, RIDGE)
    half, _ = seconds(lambda: design.gain(count // 2))
    rest, _ = seconds(lambda: design.gain(count))
    print(f"   second half over first half: {rest / half:.2f}")
    asked, _ = seconds(lambda: [design.bound(t) for t in range(count)])
    sharp, _ = seconds(lambda: [design.sharp_bound(t) for t in range(count)])
    print(f"   once grown: bound {asked / count * 1e6:.2f} us, sharp_bound {sharp / count * 1e6:.1f} us")


def many_arms(size, repeats):
    print(f"3. {size} arms, T = 50, over full updates: lazy evaluation, and (variances recomputed a point)")
    for d, kernel in ((2, nr.SquaredExponential(0.2)), (2, nr.Matern(2.5, 0.1)), (6, nr.Matern(2.5, 1.0))):
        points = np.random.default_rng(0).uniform(0, 1, (size, d))
        full, _ = seconds(lambda k=kernel, p=points: full_gain(k, p, 50), repeats)
        parts = []
        for batch in (16, 128, 1024):
            lazy, (_, evaluations) = seconds(lambda k=kernel, p=points, b=batch: lazy_gain(k, p, 50, b), repeats)
            parts.append(f"batches of {batch} {lazy / full:.1f} ({evaluations / 50:.0f})")
        grown, _ = seconds(lambda k=kernel, p=points: nr.theory.GreedyDesign(k, p, RIDGE).gain(50), repeats)
        parts.append(f"GreedyDesign, its search for features included, {grown / full:.1f}")
        print(f"   {type(kernel).__name__}, {d} dimensions, {full * 1e3:.0f} ms: {', '.join(parts)}")


def tightness(largest):
    arms = nr.Arms.grid(0, 1, 100)
    print("4. bounds over the greedy gain, 100 arms: greedy 5.1, sharp, eq. 8, eq. 8 without its constant, Theorem 4")
    for kernel in (nr.SquaredExponential(0.2), nr.Matern(2.5, 0.2)):
        design, spectrum = nr.theory.GreedyDesign(kernel, arms, RIDGE), nr.theory.Spectrum.of(kernel, arms, RIDGE)
        for count in (1, 10, 100, 1000, 30_000):
            if count <= largest:
                values = [design.bound(count), design.sharp_bound(count)]
                values += [spectrum.bound(count), spectrum.gain(count), spectrum.split_bound(count)]
                ratios = "  ".join(f"{value / design.gain(count):7.2f}" for value in values)
                print(f"   {type(kernel).__name__:18s} T = {count:6d}, I = {design.gain(count):6.2f}: {ratios}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--naive", type=int, default=50, help="points against the naive design (default 50)")
    parser.add_argument("--long", type=int, default=30_000, help="points of the long design (default 30,000)")
    parser.add_argument("--many", type=int, default=20_000, help="arms of the lazy comparison (default 20,000)")
    parser.add_argument("--repeats", type=int, default=3, help="repeats of what is timed (default 3)")
    options = parser.parse_args()
    against_naive(options.naive, options.repeats)
    many_rounds(options.long, options.repeats)
    many_arms(options.many, options.repeats)
    tightness(options.long)
