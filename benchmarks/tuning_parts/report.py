"""What the runs say."""

import numpy as np

from .problems import PROBLEMS

DRAWS = 4000  # of a bootstrap interval
TINY = 1e-12


def found(run, trials):
    """What a user is left with: the noiseless value of the trial whose told value is the best."""
    told = np.array(run["told"][:trials])
    return float(run["values"][int(told.argmax())])


class Table:
    """Normalised regret of methods `(problems, methods, seeds)` at a number of trials.

    Regret: the optimum less what was found (see `found`). The optimum of a model is the highest value that any run in
    the cache has had, of whatever method. Normalised by the regret of the median random search with equal trials: 0 is
    the optimum, 1 is random search.
    """

    def __init__(self, cache, problems, methods, seeds, trials):
        self.problems, self.methods, self.trials = list(problems), list(methods), trials
        shape = (len(self.problems), len(self.methods), len(seeds))
        self.regret, self.wall, self.cpu = (np.full(shape, np.nan) for _ in range(3))
        for i, problem in enumerate(self.problems):
            best = optimum(cache, problem)
            plain = [optimum_gap(cache, problem, "random", seed, trials, best) for seed in all_seeds(cache, problem)]
            scale = max(float(np.nanmedian(plain)), TINY) if np.isfinite(plain).any() else np.nan
            for j, method in enumerate(self.methods):
                for k, seed in enumerate(seeds):
                    self.regret[i, j, k] = optimum_gap(cache, problem, method, seed, trials, best) / scale
                    if cache.has(problem, method, seed, trials):
                        run = cache.runs[problem, method, seed]
                        self.wall[i, j, k], self.cpu[i, j, k] = run["wall"][trials - 1], run["cpu"][trials - 1]

    def ranks(self):
        """Mean rank on each problem `(problems, methods)`, 1 the best, ties shared; of seeds that all methods have."""
        from scipy.stats import rankdata

        result = np.full(self.regret.shape[:2], np.nan)
        for i, rows in enumerate(self.regret):
            whole = rows[:, np.isfinite(rows).all(axis=0)]
            if whole.size:
                result[i] = rankdata(np.round(whole, 9), axis=0).mean(axis=1)
        return result


def all_seeds(cache, problem):
    return sorted({key[2] for key in cache.runs if key[0] == problem and key[1] == "random"})


def optimum(cache, problem):
    """The known optimum; of a model the best value seen, if that is higher."""
    known = PROBLEMS[problem]
    seen = [max(run["values"]) for key, run in cache.runs.items() if key[0] == problem] if known.model else []
    return max([known.best, *seen])


def optimum_gap(cache, problem, method, seed, trials, best):
    return (
        best - found(cache.runs[problem, method, seed], trials) if cache.has(problem, method, seed, trials) else np.nan
    )


def bootstrap(rows, rng):
    """95% interval of the mean over problems of the mean over seeds; seeds are drawn anew within each problem."""
    rows = [row[np.isfinite(row)] for row in rows if np.isfinite(row).any()]
    if not rows:
        return np.nan, np.nan
    means = np.mean([rng.choice(row, (DRAWS, len(row))).mean(axis=1) for row in rows], axis=0)
    return np.percentile(means, 2.5), np.percentile(means, 97.5)


def bootstrap_ranks(ranks, rng):
    """95% interval of the mean rank; problems are drawn anew, `(problems,)`."""
    ranks = ranks[np.isfinite(ranks)]
    if not len(ranks):
        return np.nan, np.nan
    means = rng.choice(ranks, (DRAWS, len(ranks))).mean(axis=1)
    return np.percentile(means, 2.5), np.percentile(means, 97.5)


def show(table, title):
    """Print regrets by problem, then a line for each method."""
    rng = np.random.default_rng(0)
    wide = max(len(name) for name in table.problems) + 2
    print(
        f"\n{title}, {table.trials} trials: normalised regret, mean over seeds (1 = median random search, 0 = optimum)"
    )
    print(" " * wide + "".join(f"{name:>12}" for name in table.methods))
    for i, problem in enumerate(table.problems):
        cells = [_mean(row) for row in table.regret[i]]
        print(f"{problem:{wide}}" + "".join(f"{cell:12.3f}" for cell in cells), flush=True)
    ranks = table.ranks()
    head = f"{'method':12}{'mean regret [95%]':>26}{'median':>9}{'mean rank [95%]':>24}"
    print(head + f"{'wall s':>9}{'CPU s':>9}{'runs':>7}")
    for j, method in enumerate(table.methods):
        regrets = table.regret[:, j]
        means = np.array([_mean(row) for row in regrets])
        low, high = bootstrap(regrets, rng)
        rank_low, rank_high = bootstrap_ranks(ranks[:, j], rng)
        print(
            f"{method:12}{_mean(means):10.3f} [{low:5.3f}, {high:5.3f}]{_median(means):9.3f}"
            f"{_mean(ranks[:, j]):9.2f} [{rank_low:4.2f}, {rank_high:4.2f}]"
            f"{_mean(table.wall[:, j]):9.2f}{_mean(table.cpu[:, j]):9.2f}{np.isfinite(regrets).sum():7}"
        )
    _differences(table, rng)


def _differences(table, rng):
    """The paired difference of the first method to each other."""
    first = table.methods[0]
    for j in range(1, len(table.methods)):
        low, high = bootstrap(table.regret[:, 0] - table.regret[:, j], rng)
        apart = _mean(np.array([_mean(row) for row in table.regret[:, 0] - table.regret[:, j]]))
        print(f"   {first} less {table.methods[j]}, paired by seed: {apart:+.3f} [{low:+.3f}, {high:+.3f}]", flush=True)


def _mean(values):
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else np.nan


def _median(values):
    values = values[np.isfinite(values)]
    return float(np.median(values)) if len(values) else np.nan
