"""What fits cost, what regret fits to a part of the points cost, and whether fits find the noise.

    python benchmarks/fit.py [--cost] [--regret N] [--noise N] --rounds 600

`--cost` is what a fit of a study costs (`nr.slots.Refit`) with ever more points, and once with all of 2,000.

`--regret` plays `nr.auto` on Hartmann's function of six dimensions, noise .3, for `--rounds` rounds, on so many seeds:
fits to all points, and fits that work with 200. The same seeds; until the 200th answer the two are the same.

`--noise` asks whether fits find the noise. Of 28 BBOB problems (14 functions in 2 and 5 dimensions) and of samples of a
process there are 60 random points, as many sets as it says, with noise of 20%, 5% and none. "within" is the share of
fits whose noise is within a factor of two of the truth, "none" the median standard deviation that is found where there
is none, and the share above a tenth of the standard deviation of the rewards, with warps of `auto` and without. Beside
the prior of `auto` there is that of Hvarfner et al. Needs the wheel `coco-experiment`.

How quick a fit is beside BoTorch and scikit-learn, `boxes.py --only fit` says.
"""

import tracemalloc

import bench
import numpy as np

import nilregret as nr
from nilregret.environments import hartmann6
from nilregret.gp import fitting

DIMENSION = 6


def bounded(sizes):
    """What a fit costs when a study has this many answers, which are those of a smooth function with noise."""
    kernel, refit, most = nr.Matern(2.5, [0.5] * DIMENSION), nr.slots.Refit(), fitting.MOST
    for n, bound in [*((n, most) for n in sizes), (2 * most, 2 * most)]:
        rng, fitting.MOST = np.random.default_rng(1), bound
        X = rng.uniform(size=(n, DIMENSION))
        y = np.sin(5 * X[:, 0]) + np.cos(4 * X[:, 1]) * X[:, 2] + 0.3 * X[:, 3] ** 2 + 0.1 * rng.standard_normal(n)
        tracemalloc.start()
        (seconds,), _ = bench.timed(lambda X=X, y=y: refit(kernel, X, y, np.ones(DIMENSION), noise=0.1, seed=0))
        peak = tracemalloc.get_traced_memory()[1] / 1e9
        tracemalloc.stop()
        fitting.MOST = most
        print(f"a fit to {min(n, bound):5} of {n:5} points: {seconds:6.2f} s of the processor, {peak:.2f} GB")


def regret_of_parts(seeds, rounds):
    """Regret of rounds 201 to 600, whose fits have more than 200 points before them."""
    most, totals = fitting.MOST, {}
    for bound in (most, 200):
        fitting.MOST = bound
        for seed in range(seeds):
            rng, total = np.random.default_rng(1000 + seed), 0.0
            study = bench.quiet(nr.auto(nr.Box(np.zeros(6), np.ones(6))), seed=seed)
            for _ in range(rounds):
                trial = study.ask()
                value = float(hartmann6(trial.point[None])[0])
                study.tell(trial, value + 0.3 * rng.standard_normal())
                total += (hartmann6.best - value) * (trial.number >= 200)
            totals.setdefault(bound, []).append(total)
    fitting.MOST = most
    print(
        f"regret of rounds 201 to {rounds}: fits to all {np.round(totals[most], 1)}, to 200 {np.round(totals[200], 1)}"
    )


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


@bench.command(__doc__)
def main(options):
    if options.noise:
        noise_found(options.noise)
    elif options.regret:
        regret_of_parts(options.regret, options.rounds)
    else:
        bounded([500, 1000, 2000, 3000, 10_000])
