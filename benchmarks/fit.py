"""Speed of fitting, as ratios within one run.

    python benchmarks/fit.py
    python benchmarks/fit.py --cost
    python benchmarks/fit.py --auto
    python benchmarks/fit.py --regret 6
    python benchmarks/fit.py --noise 20
    python benchmarks/fit.py --folds 8

Maximum likelihood of seven kernel parameters (six lengthscales of a Matern-5/2 kernel and its scale) and the noise, n
points in the unit cube, here and with scikit-learn's GaussianProcessRegressor. Same data, same start, same bounds, one
BLAS thread each; both must reach the same optimum. scikit-learn starts once; here once, and three times (the default).
Times are the best of three runs, two for scikit-learn.

`--cost` is what a fit of a study costs (`nr.slots.Refit`) with ever more points, and once with all of 2,000.

`--auto` is the fit that `nr.auto` makes, on n points of a smooth function of six dimensions with noise. Beside it every
start climbs to its end: in turn, median ratios of CPU time over ten data sets (three beyond 200 points).

`--regret` plays `nr.auto` on Hartmann's function of six dimensions, noise .3, for 600 rounds: fits to all points, and
fits that work with 200. The same seeds; until the 200th answer the two are the same.

`--noise` is what it is worth to tell the noise of each answer. `nr.auto` has 40 trials of Branin, Hartmann-3 and
Hartmann-6, less their mean and divided by their standard deviation. Half of the answers have a noise of .05, the others
of 1. The same seeds: without `std`, with `std`, and with the mean of both noises for all. Regret is of the recommended
point, `study.best()`.

`--folds` is what `fold_noise` of the scikit-learn search is worth: 20 candidates of two parameters, 5 folds, on four
data sets of 150 to 600 rows. The candidate of `study.best()` is valued by 10 times 5 other folds. The difference is in
standard deviations of the scores of all candidates.
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
from common_parts import ratio
from sklearn import datasets
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.model_selection import RepeatedKFold, cross_val_score
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import nilregret as nr
from nilregret.gp import fitting
from nilregret.integrations.sklearn import NoRegretSearchCV
from nilregret.simulation.environments import branin, hartmann3, hartmann6
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


PROBLEMS = {"Branin": branin, "Hartmann-3": hartmann3, "Hartmann-6": hartmann6}
STDS, TRIALS = (0.05, 1.0), 40


def regret_of_recommended(problem, way, seed):
    """Regret of the recommended point, in standard deviations of the problem over its box."""
    f = PROBLEMS[problem]
    low, high = f.domain.lower, f.domain.upper
    values = f(low + (high - low) * np.random.default_rng(0).uniform(size=(4000, len(low))))
    mean, std = values.mean(), values.std()
    rng, study = np.random.default_rng(2000 + seed), nr.Study(nr.auto(f.domain, budget=TRIALS), seed=seed)
    study.quiet = True
    for _ in range(TRIALS):
        trial, noise = study.ask(), float(rng.choice(STDS))
        reward = (float(f(trial.point[None])[0]) - mean) / std + noise * rng.standard_normal()
        told = {"untold": None, "told": noise, "alike": float(np.sqrt(np.mean(np.square(STDS))))}[way]
        study.tell(trial, reward, std=told)
    return (f.best - float(f(study.best().point[None])[0])) / std


def worth_of_noise(seeds):
    """Regret with and without the noise of each answer."""
    every, ways = {}, ("untold", "told", "alike")
    for problem in PROBLEMS:
        for way in ways:
            found = [regret_of_recommended(problem, way, seed) for seed in range(seeds)]
            every.setdefault(way, []).append(np.array(found))
        untold, told, alike = (every[way][-1] for way in ways)
        print(f"{problem:10}: regret {untold.mean():.3f} untold; told over untold {ratio(told, untold)}, "
              f"all alike over untold {ratio(alike, untold)}")  # fmt: skip
    untold, told, alike = (np.mean(every[way], axis=0) for way in ways)
    print(f"all       : told over untold {ratio(told, untold)}, all alike over untold {ratio(alike, untold)}")


def searched(data, fold_noise, seed):
    """The search on a data set, and what its choice is worth on many other folds."""
    X, y, estimator, space = data
    search = NoRegretSearchCV(estimator, space, n_iter=20, cv=5, random_state=seed, fold_noise=fold_noise)
    search.fit(X, y)
    study = nr.Study(search.policy_, seed=0)
    study.quiet = True
    for trial in search.trials_:
        study.add(trial.parameters, trial.reward, std=trial.std)
    chosen = clone(estimator).set_params(**study.best().parameters)
    scores = cross_val_score(chosen, X, y, cv=RepeatedKFold(n_splits=5, n_repeats=10, random_state=99))
    return float(scores.mean()), float(np.std([trial.reward for trial in search.trials_]))


def worth_of_folds(seeds):
    """How much better the chosen candidate is with the noise of its folds than without."""
    svm = {"C": nr.Float(1e-2, 1e3, log=True), "gamma": nr.Float(1e-5, 1e1, log=True)}
    trees = {"max_depth": nr.Int(1, 12), "min_samples_leaf": nr.Int(1, 30)}
    cancer, wine, digits, diabetes = (load(return_X_y=True) for load in (
        datasets.load_breast_cancer, datasets.load_wine, datasets.load_digits, datasets.load_diabetes))  # fmt: skip
    problems = {
        "cancer, SVM": (*cancer, SVC(), svm), "wine, SVM": (*wine, SVC(), svm),
        "digits, tree": (digits[0][:600], digits[1][:600], DecisionTreeClassifier(random_state=0), trees),
        "diabetes, tree": (*diabetes, DecisionTreeRegressor(random_state=0), trees),
    }  # fmt: skip
    gains = []
    for name, data in problems.items():
        pairs = np.array([[searched(data, each, seed) for each in (False, True)] for seed in range(seeds)])
        gains.append((pairs[:, 1, 0] - pairs[:, 0, 0]) / pairs[:, :, 1].mean())
        print(f"{name:15}: with fold_noise better by {gains[-1].mean():+.3f} standard deviations of the scores")
    every, drawn = np.mean(gains, axis=0), np.random.default_rng(0).integers(seeds, size=(4000, seeds))
    low, high = np.quantile(every[drawn].mean(axis=1), [0.025, 0.975])
    print(f"all            : better by {every.mean():+.3f} [{low:+.3f}, {high:+.3f}]")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[60, 200, 1000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cost", action="store_true", help="of a study's fits instead")
    parser.add_argument("--auto", action="store_true", help="the fits of auto instead")
    parser.add_argument("--regret", type=int, metavar="SEEDS", help="compare regret instead")
    parser.add_argument("--noise", type=int, metavar="SEEDS", help="compare regret with and without told noise instead")
    parser.add_argument(
        "--folds", type=int, metavar="SEEDS", help="what the noise of folds is worth to a search instead"
    )
    options = parser.parse_args()
    if options.folds:
        worth_of_folds(options.folds)
    elif options.noise:
        worth_of_noise(options.noise)
    elif options.regret:
        regret_of_parts(options.regret)
    elif options.auto:
        as_auto_fits([10, 20, 60, 125, 200, 500, 1000])
    elif options.cost:
        bounded([500, 1000, 2000, 3000, 10_000])
    else:
        main(options.sizes, options.repeats)
