"""The change detector of Avanesov's Algorithm 2: speed as ratios within one run, and how often it is wrong.

    python benchmarks/change.py --count 100 --rounds 2400 --runs 500

Matern-5/2, lengthscale 1, 1,000 arms on [0, 5], noise 0.05, threshold 2.6 n^{-6/7}: the paper's experiments.

1. A series of 100 uniform pairs: the detector against Algorithm 1 afresh for every half-size after every pair, as
   `detect_change` and, for a harder peer, on kernel and overlap matrices of all arms that are given to it for nothing.
   Same verdicts and distances. One BLAS thread.
2. What the checks of a run of T = 2,400 rounds cost without any detection (85 uniform pairs).
3. False alarms within 30 and 60 uniform pairs of one function, and changes after 30 pairs missed in 60 more, against
   the constant c of the ridge, for averaged and integrated distances. Functions are samples of the prior.
4. The threshold's constant by `calibrate_threshold`, and the false alarms it has on fresh runs.
"""

import math
import sys
from functools import cache, partial

import bench
import numpy as np

import nilregret as nr
from nilregret.theory.change.schedules import detection_ridge, detection_threshold, uniform_count

NOISE = 0.05
KERNEL = nr.Matern(2.5, 1.0)
DOMAIN = nr.Arms.grid(0, 5, 1000)
THETA, RIDGE = detection_threshold(2.5, 1), detection_ridge(2.5, 1, constant=2.0)


@cache
def root():
    return bench.root(KERNEL, DOMAIN.points)


def drawn(rng):
    """A function on the arms drawn from the prior."""
    return root() @ rng.standard_normal(len(DOMAIN))


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


def speed(count):
    rng = np.random.default_rng(0)
    points, rewards = pairs([drawn(rng)], [count], rng)
    K = KERNEL(DOMAIN.points, DOMAIN.points)
    overlaps = K @ K / len(DOMAIN)
    own, ours = bench.timed(partial(with_detector, points, rewards), 5)
    naive, theirs = bench.timed(partial(afresh, points, rewards))
    given, others = bench.timed(partial(on_given_matrices, points, rewards, K, overlaps))
    own, naive, given = min(own), naive[0], given[0]
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


def whole_run(rounds):
    rng = np.random.default_rng(1)
    count = uniform_count(rounds)
    points, rewards = pairs([drawn(rng)], [count], rng)

    def run():
        detector = nr.theory.ChangeDetector(KERNEL, domain=DOMAIN, threshold=math.inf)
        for point, reward in zip(points, rewards, strict=True):
            detector.add(point, reward)

    seconds = min(bench.timed(run, 5)[0])
    print(f"2. T = {rounds} without a detection, {count} uniform pairs: all checks take {seconds * 1e3:.0f} ms")


def alarm_at(detector, points, rewards):
    """After how many pairs a change is reported; infinite if never."""
    detector.reset()
    for m, (point, reward) in enumerate(zip(points, rewards, strict=True), 1):
        if detector.add(point, reward):
            return m
    return math.inf


def errors(runs):
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
                f = [drawn(rng), drawn(rng)]
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
        calibrate = partial(nr.theory.calibrate_threshold, KERNEL, domain=DOMAIN, noise=NOISE, horizon=800)
        (seconds,), found = bench.timed(partial(calibrate, rate=rate, runs=runs))
        check = calibrate(rate=0.5, runs=fresh, seed=1).maxima
        print(
            f"4. {runs} runs of {found.count} pairs, rate {rate:.2f} +- {found.rate_error:.3f}: constant "
            f"{found.constant:.2f} ({found.lower:.2f} to {found.upper:.2f}) in {seconds:.1f} s; "
            f"alarms in {fresh} fresh runs: {np.mean(check > found.constant):.3f}"
        )


@bench.command(__doc__)
def main(options):
    speed(options.count)
    whole_run(options.rounds)
    errors(options.runs)
    calibrated(options.runs, 2 * options.runs)
