"""The greedy design of experiments: its speed, and how close the bounds of the information gain are.

    python benchmarks/information.py --naive 50 --long 30000 --repeats 3

1. `GreedyDesign` against the same rule by dense log-determinants, one for each candidate (100 arms): equal gains.
2. T = 30,000 greedy points on 100 arms, then the bound of every round as a policy asks for it.
3. All bounds over the greedy gain I_T (gamma_T >= I_T), T = 1 .. 30,000.
"""

import statistics
import sys
import time

import bench
import numpy as np

import nilregret as nr

RIDGE = 0.025


def seconds(function, repeats=1):
    """Median time, and the result."""
    times, result = bench.timed(function, repeats, clock=time.perf_counter)
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


def tightness(largest):
    arms = nr.Arms.grid(0, 1, 100)
    print("3. bounds over the greedy gain, 100 arms: greedy 5.1, sharp, eq. 8, eq. 8 without its constant, Theorem 4")
    for kernel in (nr.SquaredExponential(0.2), nr.Matern(2.5, 0.2)):
        design, spectrum = nr.theory.GreedyDesign(kernel, arms, RIDGE), nr.theory.Spectrum.of(kernel, arms, RIDGE)
        for count in (1, 10, 100, 1000, 30_000):
            if count <= largest:
                values = [design.bound(count), design.sharp_bound(count)]
                values += [spectrum.bound(count), spectrum.gain(count), spectrum.split_bound(count)]
                ratios = "  ".join(f"{value / design.gain(count):7.2f}" for value in values)
                print(f"   {type(kernel).__name__:18s} T = {count:6d}, I = {design.gain(count):6.2f}: {ratios}")


@bench.command(__doc__)
def main(options):
    against_naive(options.naive, options.repeats)
    many_rounds(options.long, options.repeats)
    tightness(options.long)
