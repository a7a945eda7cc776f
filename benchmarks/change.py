"""The change detector of Avanesov's Algorithm 2: speed as ratios within one run, and how often it is wrong.

    python benchmarks/change.py

Matern-5/2, lengthscale 1, 1,000 arms on [0, 5], noise 0.05, threshold 2.6 n^{-6/7}: the paper's experiments.

1. A series of 100 uniform pairs: the detector against Algorithm 1 afresh for every half-size after every pair, as
   `detect_change` and, for a harder peer, on kernel and overlap matrices of all arms that are given to it for nothing.
   Same verdicts and distances. One BLAS thread.
2. What the checks of a run of T = 2,400 rounds cost without any detection (85 uniform pairs).
3. False alarms within 30 and 60 uniform pairs of one function, and changes after 30 pairs missed in 60 more, against
   the constant c of the ridge, for averaged and integrated distances. Functions are samples of the prior.
4. The threshold's constant by `calibrate_threshold`, and the false alarms it has on fresh runs.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import math
import sys
import time

import numpy as np

import nilregret as nr
from nilregret.theory.change.schedules import detection_ridge, detection_threshold, uniform_count

NOISE = 0.05
KERNEL = nr.Matern(2.5, 1.0)
DOMAIN = nr.Arms.grid(0, 5, 1000)
THETA, RIDGE = detection_threshold(2.5, 1), detection_ridge(2.5, 1, constant=2.0)


class Samples:
    """Functions on the arms drawn from the prior."""

    def __init__(self):
        values, vectors = np.linalg.eigh(KERNEL(DOMAIN.points, DOMAIN.points))
        self.root = vectors * np.sqrt(np.maximum(values, 0.0))

    def draw(self, rng):
        return self.root @ rng.standard_normal(len(DOMAIN))


def pairs(functions, counts, rng):
    """Uniform pairs of each function, one after the other."""
    arms = rng.integers(len(DOMAIN), size=sum(counts))
    f = np.repeat(functions, counts, axis=0)[np.arange(sum(counts)), arms]
    return DOMAIN.points[arms], f + NOISE * rng.standard_normal(sum(counts))


def with_detector(points, rewards):
    detector, distances = nr.theory.ChangeDetector(KERNEL, domain=DOMAIN, threshold=THETA, ridge=RIDGE), []
    verdicts = []
    for point, reward in zip(points, rewards, strict=True):
        verdicts.append(detector.add(point, reward).changed)
        distances.append(detector.distances)
    return verdicts, distances


def afresh(points, rewards):
    verdicts, distances = [], []
    for m in range(1, len(points) + 1):
        tests = [
            nr.theory.detect_change(
                points[m - 2 * n : m], rewards[m - 2 * n : m], KERNEL, domain=DOMAIN, threshold=THETA, ridge=RIDGE
            )
            for n in range(1, m // 2 + 1)
        ]
        verdicts.append(any(tests))
        distances.append(np.array([test.distance for test in tests]))
    return verdicts, distances


def on_given_matrices(points, rewards, K, overlaps):
    arms = DOMAIN.index(points)
    verdicts, distances = [], []
    for m in range(1, len(points) + 1):
        found = []
        for n in range(1, m // 2 + 1):
            tail, y = arms[m - 2 * n : m], rewards[m - 2 * n : m]
            first, second = (
                np.linalg.solve(K[np.ix_(tail[half], tail[half])] + RIDGE(n) * np.eye(n), y[half])
                for half in (slice(n), slice(n, 2 * n))
            )
            a = np.concatenate([first, -second])
            found.append(a @ overlaps[np.ix_(tail, tail)] @ a)
        distances.append(np.array(found))
        verdicts.append(any(d > THETA(n) for n, d in enumerate(found, 1)))
    return verdicts, distances


def timed(function, *arguments, repeats=1):
    best = math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        result = function(*arguments)
        best = min(best, time.perf_counter() - start)
    return best, result


def speed(count, samples):
    rng = np.random.default_rng(0)
    points, rewards = pairs([samples.draw(rng)], [count], rng)
    K = KERNEL(DOMAIN.points, DOMAIN.points)
    overlaps = K @ K / len(DOMAIN)
    own, ours = timed(with_detector, points, rewards, repeats=5)
    naive, theirs = timed(afresh, points, rewards)
    given, others = timed(on_given_matrices, points, rewards, K, overlaps)
    same = ours[0] == theirs[0] == others[0]
    gap = max(
        float(np.abs(a - b).max(initial=0.0))
        for peer in (theirs, others)
        for a, b in zip(ours[1], peer[1], strict=True)
    )
    print(f"1. {count} uniform pairs, all half-sizes after each: {own * 1e3:.1f} ms")
    print(f"   detect_change each time {naive * 1e3:.0f} ms: {naive / own:.0f} times faster")
    print(f"   solves on given matrices {given * 1e3:.0f} ms: {given / own:.0f} times faster")
    print(f"   same verdicts: {'yes' if same else 'NO'}; distances differ by at most {gap:.1e}")
    if not same:
        sys.exit("The verdicts differ.")


def whole_run(rounds, samples):
    rng = np.random.default_rng(1)
    count = uniform_count(rounds)
    points, rewards = pairs([samples.draw(rng)], [count], rng)

    def run():
        detector = nr.theory.ChangeDetector(KERNEL, domain=DOMAIN, threshold=math.inf)
        for point, reward in zip(points, rewards, strict=True):
            detector.add(point, reward)

    seconds, _ = timed(run, repeats=5)
    print(f"2. T = {rounds} without a detection, {count} uniform pairs: all checks take {seconds * 1e3:.0f} ms")


def alarm_at(detector, points, rewards):
    """After how many pairs a change is reported; infinite if never."""
    detector.reset()
    for m, (point, reward) in enumerate(zip(points, rewards, strict=True), 1):
        if detector.add(point, reward):
            return m
    return math.inf


def errors(runs, samples):
    print(f"3. {runs} runs: alarms within 30 / 60 pairs without a change; changes after 30 pairs missed in 60 more")
    for distance, constants in (("integral", [0.1, 1, 5, 10]), ("average", [0.1, 1, 2, 5])):
        for c in constants:
            detector = nr.theory.ChangeDetector(
                KERNEL,
                domain=DOMAIN,
                threshold=THETA,
                ridge=detection_ridge(2.5, 1, constant=c),
                distance=distance,
            )
            alarms, missed, valid = [], 0, 0
            for run in range(runs):
                rng = np.random.default_rng([3, run])
                f = [samples.draw(rng), samples.draw(rng)]
                alarms.append(alarm_at(detector, *pairs(f[:1], [60], rng)))
                found = alarm_at(detector, *pairs(f, [30, 60], rng))
                valid += found > 30
                missed += found == math.inf
            early, late = (np.mean([alarm <= count for alarm in alarms]) for count in (30, 60))
            error = math.sqrt(late * (1 - late) / runs)
            share = f"{missed / valid:.2f} (of {valid})" if valid else "-"
            print(f"   {distance:8s} c = {c:4.1f}: {early:.2f} / {late:.2f} (+- {error:.2f}), missed {share}")


def calibrated(runs, fresh):
    for rate in (0.2, 0.05):
        if runs < 1 / rate:
            continue
        start = time.perf_counter()
        found = nr.theory.calibrate_threshold(KERNEL, domain=DOMAIN, noise=NOISE, horizon=800, rate=rate, runs=runs)
        seconds = time.perf_counter() - start
        check = nr.theory.calibrate_threshold(
            KERNEL, domain=DOMAIN, noise=NOISE, horizon=800, rate=0.5, runs=fresh, seed=1
        ).maxima
        print(
            f"4. {runs} runs of {found.count} pairs, rate {rate:.2f} +- {found.rate_error:.3f}: constant "
            f"{found.constant:.2f} ({found.lower:.2f} to {found.upper:.2f}) in {seconds:.1f} s; "
            f"alarms in {fresh} fresh runs: {np.mean(check > found.constant):.3f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="pairs of the series that is timed (default 100)")
    parser.add_argument("--rounds", type=int, default=2400, help="rounds of the run (default 2,400)")
    parser.add_argument("--runs", type=int, default=500, help="runs for each row of 3 and for 4 (default 500)")
    options = parser.parse_args()
    samples = Samples()
    speed(options.count, samples)
    whole_run(options.rounds, samples)
    errors(options.runs, samples)
    calibrated(options.runs, 2 * options.runs)
