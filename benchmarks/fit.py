"""Speed of fitting, as ratios within one run.

    python benchmarks/fit.py
    python benchmarks/fit.py --cost
    python benchmarks/fit.py --auto
    python benchmarks/fit.py --regret 6
    python benchmarks/fit.py --noise 4

Maximum likelihood of seven kernel parameters (six lengthscales of a Matern-5/2 kernel and its scale) and the noise, n
points in the unit cube, here and with scikit-learn's GaussianProcessRegressor. Same data, same start, same bounds, one
BLAS thread each; both must reach the same optimum. scikit-learn starts once; here once, and three times (the default).
Times are the best of three runs, two for scikit-learn.

`--cost` is what a fit of a study costs (`nr.slots.Refit`) with ever more points, and once with all of 2,000.

`--auto` is the fit that `nr.auto` makes, on n points of a smooth function of six dimensions with noise. Beside it every
start climbs to its end: in turn, median ratios of CPU time over ten data sets (three beyond 200 points).

`--regret` plays `nr.auto` on Hartmann's function of six dimensions, noise .3, for 600 rounds: fits to all points, and
fits that work with 200. The same seeds; until the 200th answer the two are the same.

`--noise` asks whether fits find the noise. Of 28 BBOB problems (14 functions in 2 and 5 dimensions) and of samples of a
process there are 60 random points, as many sets as it says, with noise of 20%, 5% and none. "within" is the share of
fits whose noise is within a factor of two of the truth, "none" the median standard deviation that is found where there
is none, and the share above a tenth of the standard deviation of the rewards, with warps of `auto` and without. Beside
the prior of `auto` there is that of Hvarfner et al. Needs the wheel `coco-experiment`.
"""

import argparse
import os
import re

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import time
import tracemalloc
import warnings

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

import nilregret as nr
from nilregret.environments import hartmann6
from nilregret.gp import fitting
from nilregret.slots import refit as refits

DIMENSION = 6


def rewards(n, seed):
    """Standardised draws of a Matern process of six lengthscales, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, DIMENSION))
    matrix = nr.Matern(2.5, np.geomspace(0.3, 3.0, DIMENSION))(X, X)
    y = np.linalg.cholesky(matrix + 1e-10 * np.eye(n)) @ rng.standard_normal(n) + 0.1 * rng.standard_normal(n)
    return X, nr.gp.Standardization.of(y).to(y)


def timed(call, runs):
    """The shortest time, and the last result."""
    seconds, result = [], None
    for _ in range(runs):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def peer(X, y):
    structure = sk.ConstantKernel(1.0, (1e-4, 1e4)) * sk.Matern([0.5] * DIMENSION, (1e-3, 1e3), nu=2.5)
    with warnings.catch_warnings():  # that a lengthscale sits at its bound
        warnings.simplefilter("ignore")
        return GaussianProcessRegressor(structure + sk.WhiteKernel(0.01, (1e-6, 10.0)), alpha=1e-12).fit(X, y)


def main(sizes, repeats):
    kernel = nr.Matern(2.5, [0.5] * DIMENSION)
    for n in sizes:
        X, y = rewards(n, seed=1)
        once, found = timed(lambda X=X, y=y: nr.gp.fit(kernel, X, y, prior=None, noise=0.1, restarts=0), repeats)
        default, best = timed(lambda X=X, y=y: nr.gp.fit(kernel, X, y, prior=None, noise=0.1), repeats)
        mapped, _ = timed(lambda X=X, y=y: nr.gp.fit(kernel, X, y), repeats)
        theirs, regressor = timed(lambda X=X, y=y: peer(X, y), max(repeats - 1, 1))
        reached = regressor.log_marginal_likelihood_value_
        if min(found.log_likelihood, best.log_likelihood) < reached - 1e-3:
            raise SystemExit(f"n = {n}: {found.log_likelihood} here, {reached} with scikit-learn")
        print(
            f"n = {n:5}: one start {once:6.3f} s, three starts {default:6.3f} s, three with the prior {mapped:6.3f} s; "
            f"scikit-learn, one start {theirs:6.3f} s: {theirs / once:.1f}x, {theirs / default:.1f}x"
        )
        print(f"    log likelihood {best.log_likelihood:.4f}, scikit-learn {reached:.4f}")


def smooth(n, seed=1):
    """Cheap rewards of a smooth function with noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, DIMENSION))
    return X, np.sin(5 * X[:, 0]) + np.cos(4 * X[:, 1]) * X[:, 2] + 0.3 * X[:, 3] ** 2 + 0.1 * rng.standard_normal(n)


def bounded(sizes):
    """What a fit costs when a study has this many answers."""
    kernel, refit, most = nr.Matern(2.5, [0.5] * DIMENSION), nr.slots.Refit(), fitting.MOST
    for n, bound in [*((n, most) for n in sizes), (2 * most, 2 * most)]:
        X, y = smooth(n)
        fitting.MOST = bound
        tracemalloc.start()
        start = time.process_time()
        refit(kernel, X, y, np.ones(DIMENSION), noise=0.1, seed=0)
        seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1] / 1e9
        tracemalloc.stop()
        fitting.MOST = most
        print(f"a fit to {min(n, bound):5} of {n:5} points: {seconds:6.2f} s of the processor, {peak:.2f} GB")


def as_auto_fits(sizes):
    """The fit of `auto`, and the same where every start climbs to its end."""
    kernel, found, fit = nr.kernel_for(nr.Box([0] * DIMENSION, [1] * DIMENSION), lengthscale=0.5), [], refits.fit
    refit = nr.slots.Refit(every=3, growth=0.1, warp="half-rank", noise="unknown")
    refits.fit = lambda *given, **named: found.append(fit(*given, **named)) or found[-1]
    ours, whole = (fitting.ROUGHLY, fitting.HOPEFUL, fitting.NEAR), (fitting.TOLERANCE, np.inf, -np.inf)
    for n in sizes:
        rows = {ours: [], whole: []}
        for seed in range(10 if n <= 200 else 3):
            X, y = smooth(n, seed)
            for way, measured in rows.items():
                fitting.ROUGHLY, fitting.HOPEFUL, fitting.NEAR = way
                start = time.process_time()
                refit(kernel, X, y, np.ones(DIMENSION), noise=0.1, seed=seed)
                seconds, steps = time.process_time() - start, re.search(r"(\d+) evaluations", found[-1].message)
                measured.append((seconds, found[-1].log_posterior, int(steps[1])))
        (new, high, steps), (old, before, others) = (np.transpose(measured) for measured in rows.values())
        higher = np.round(np.quantile(high - before, [0.0, 0.5, 1.0]), 4).tolist()
        print(
            f"n = {n:5}: {1e3 * np.median(new):8.1f} ms, {np.median(steps):3.0f} evaluations; to each end "
            f"{np.median(old / new):4.1f} times the CPU time, {np.median(others):3.0f} evaluations; "
            f"log posterior higher by {higher} (least, median, most)"
        )


def regret_of_parts(seeds):
    """Regret of rounds 201 to 600, whose fits have more than 200 points before them."""
    most, totals = fitting.MOST, {}
    for bound in (most, 200):
        fitting.MOST = bound
        for seed in range(seeds):
            rng, total = np.random.default_rng(1000 + seed), 0.0
            study = nr.Study(nr.auto(nr.Box(np.zeros(6), np.ones(6))), seed=seed)
            study.quiet = True
            for _ in range(600):
                trial = study.ask()
                value = float(hartmann6(trial.point[None])[0])
                study.tell(trial, value + 0.3 * rng.standard_normal())
                total += (hartmann6.best - value) * (trial.number >= 200)
            totals.setdefault(bound, []).append(total)
    fitting.MOST = most
    print(f"regret of rounds 201 to 600: fits to all {np.round(totals[most], 1)}, to 200 {np.round(totals[200], 1)}")


def noisy_sets(percent, seeds):
    """Pairs of 60 random points of the unit cube with their rewards, by kind of function, and the noise of each set."""
    from tuning_parts import coco

    for name in coco.names("bbob", coco.DEVELOPED_ON, (2, 5), noise=percent or None):
        problem = coco.problem(name)
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            points = rng.uniform(problem.space.lower, problem.space.upper, (60, problem.space.dimension))
            values = np.array([problem.value(problem.space.decode(point)) for point in points])
            X = (points - problem.space.lower) / (problem.space.upper - problem.space.lower)
            yield "bbob", X, values + problem.noise * rng.standard_normal(60), problem.noise
    for dimension, lengthscale in ((1, 0.15), (2, 0.3), (5, 0.7), (5, 2.0)):
        for seed in range(5 * seeds):
            rng = np.random.default_rng(seed)
            X = rng.uniform(size=(60, dimension))
            matrix = nr.Matern(2.5, lengthscale)(X, X) + 1e-10 * np.eye(60)
            values, noise = np.linalg.cholesky(matrix) @ rng.standard_normal(60), percent / 100 * 2.0
            yield "samples", X, values + noise * rng.standard_normal(60), noise


def noise_found(seeds):
    """How often a fit finds the noise within a factor of two, and what noise it finds where there is none."""
    ways = [(prior, warp) for prior in ("hvarfner", "moderate") for warp in ("half-rank", "none")]
    for percent in (20, 5, 0):
        found = {}
        for kind, X, y, noise in noisy_sets(percent, seeds):
            kernel = nr.kernel_for(nr.Box([0] * X.shape[1], [1] * X.shape[1]), lengthscale=0.5)
            for prior, warp in ways:
                refit = nr.slots.Refit(every=3, prior=prior, warp=warp, noise="unknown")
                fitted = refit(kernel, X, y, np.ones(X.shape[1]), noise=0.1, seed=0)
                share = np.sqrt(fitted.regularization)
                found.setdefault((kind, prior, warp), []).append(share * fitted.scale.std / noise if noise else share)
        for (kind, prior, warp), ratios in found.items():
            ratio = np.array(ratios)
            share, middle = np.mean(np.abs(np.log2(ratio)) <= 1.0), np.median(ratio)
            within = f"{share:.0%} within a factor of two, median {middle:.2f}"
            none = f"median {middle:.4f} where there is none, {np.mean(ratio > 0.1):.0%} above 0.1"
            print(f"noise {percent:2}%, {kind:7}, {prior:8}, warp {warp:9}: {within if percent else none}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[60, 200, 1000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cost", action="store_true", help="of a study's fits instead")
    parser.add_argument("--auto", action="store_true", help="the fits of auto instead")
    parser.add_argument("--regret", type=int, metavar="SEEDS", help="compare regret instead")
    parser.add_argument("--noise", type=int, metavar="SETS", help="compare the noise that is found instead")
    options = parser.parse_args()
    if options.noise:
        noise_found(options.noise)
    elif options.regret:
        regret_of_parts(options.regret)
    elif options.auto:
        as_auto_fits([10, 20, 60, 125, 200, 500, 1000])
    elif options.cost:
        bounded([500, 1000, 2000, 3000, 10_000])
    else:
        main(options.sizes, options.repeats)
