"""How right are the Sobol indices of `study.importance()`, and how often do their 90% intervals hold the truth?

    python benchmarks/importance.py --trials 16 32 64 --seeds 4
    python benchmarks/importance.py --trials 15 --seeds 1 # a look

Each study is a search for the minimum (`nr.auto`), or as many points spread evenly. Values worse than the worst one
told count as that one, in the truth too. The error is that of the total index of the value.
"""

import bench
import numpy as np
from scipy.stats import qmc

import nilregret as nr
from nilregret.study.importance import _among_best, _first_and_total, _shares

POINTS = 16384  # Of the truth.
CENTRES = np.random.default_rng(0).random((4, 6))  # of Gaussian wells
WEIGHTS = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)


def ishigami(u):
    a, b, c = (2.0 * np.pi * u - np.pi).T
    return np.sin(a) + 7.0 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a)


def branin(u):
    x, y = 15.0 * u[:, 0] - 5.0, 15.0 * u[:, 1]
    bowl = (y - 5.1 / (4.0 * np.pi**2) * x**2 + 5.0 / np.pi * x - 6.0) ** 2
    return bowl + 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * np.cos(x) + 10.0


def wells(u):
    return -np.exp(-(WEIGHTS * (u[:, None] - CENTRES) ** 2).sum(axis=-1)) @ np.array([1.0, 1.2, 3.0, 3.2])


def bowl(u):
    return (u - 0.3) ** 2 @ np.arange(1.0, 5.0)


def waves(u):
    x = 6.0 * u - 3.0
    return (x**2 - 3.0 * np.cos(4.0 * x)).sum(axis=-1)


FUNCTIONS = {branin: 2, waves: 3, ishigami: 3, bowl: 4, wells: 6}


def study_of(f, count, trials, seed, design):
    names = [f"x{i}" for i in range(count)]
    space = nr.Space(**{name: nr.Float(0, 1) for name in names})

    def loss(**parameters):
        return float(f(np.array([[parameters[name] for name in names]]))[0])

    if design == "search":
        return nr.minimize(loss, space, trials=trials, seed=seed, progress=False).study
    study = bench.quiet(nr.auto(space), goal="minimize", seed=seed)
    for row in qmc.Sobol(count, rng=np.random.default_rng(seed)).random(trials):
        parameters = dict(zip(names, row.tolist(), strict=True))
        study.add(parameters, loss(**parameters))
    return study


def judged(f, count, study):
    """The mean error of the total indices, and the shares of indices inside: alone, total, total of the best tenth."""
    shares = _shares(count, POINTS, both=False)
    values = f(shares.reshape(-1, count)).reshape(1, count + 2, POINTS)
    values = np.minimum(values, max(trial.reward for trial in study.trials))
    truths = *_first_and_total(values, count), _first_and_total(_among_best(-values), count)[1]
    found = study.importance()
    intervals = found.value.first_interval, found.value.total_interval, found.best.total_interval
    inside = [((low <= a[0]) & (a[0] <= high)).mean() for a, (low, high) in zip(truths, intervals, strict=True)]
    return np.abs(found.value.total - truths[1][0]).mean(), *inside


@bench.command(__doc__)
def main(given):
    print("                            inside the 90% interval")
    print("points  trials  mean error  alone  total  best tenth")
    for design in ("search", "spread"):
        for trials in given.trials:
            found = [
                judged(f, count, study_of(f, count, trials, seed, design))
                for f, count in FUNCTIONS.items() for seed in range(given.seeds)
            ]  # fmt: skip
            error, alone, total, best = np.mean(found, axis=0)
            print(f"{design}  {trials:6}  {error:10.2f}  {alone:5.0%}  {total:5.0%}  {best:10.0%}", flush=True)
