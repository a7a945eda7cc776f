"""What the runs say, as numbers; `show.py` prints them."""

from dataclasses import dataclass

import numpy as np

from .problems import PROBLEMS
from .runs import parts

DRAWS = 4000  # of a bootstrap interval
TINY = 1e-12
LAST = 3  # asks, of which the dearest counts: a refit every three answers is among them


def found(run, trials):
    """What a user is left with: the noiseless value of the trial whose told value is the best."""
    told = np.array(run["told"][:trials])
    return float(run["values"][int(told.argmax())])


class Table:
    """Normalised regret of methods `(problems, methods, seeds)` at a number of trials, NaN where there is no run.

    Regret: the optimum less what was found (see `found`). The optimum of a model is the highest value that any run in
    the cache has had, of whatever method. Normalised by the regret of the median random search with equal trials: 0 is
    the optimum, 1 is random search. `plain`: that of random search itself, of all its seeds, by problem.

    `wall` and `cpu`: seconds of a run; `ask`: CPU seconds of the dearest of the last three asks, what is done when
    their predecessors are told included.
    """

    def __init__(self, cache, problems, methods, seeds, trials):
        self.problems, self.methods, self.trials = list(problems), list(methods), trials
        shape = (len(self.problems), len(self.methods), len(seeds))
        self.regret, self.wall, self.cpu, self.ask = (np.full(shape, np.nan) for _ in range(4))
        self.plain = []
        for i, problem in enumerate(self.problems):
            best = optimum(cache, problem)
            plain = [optimum_gap(cache, problem, "random", seed, trials, best) for seed in all_seeds(cache, problem)]
            scale = max(float(np.nanmedian(plain)), TINY) if np.isfinite(plain).any() else np.nan
            self.plain.append(np.array(plain) / scale)
            for j, method in enumerate(self.methods):
                for k, seed in enumerate(seeds):
                    self.regret[i, j, k] = optimum_gap(cache, problem, method, seed, trials, best) / scale
                    if cache.has(problem, method, seed, trials):
                        run = cache.runs[problem, method, seed]
                        self.wall[i, j, k], self.cpu[i, j, k] = run["wall"][trials - 1], run["cpu"][trials - 1]
                        final = LAST + parts(method)[1] - 1  # while several workers finish nothing is asked
                        self.ask[i, j, k] = np.diff(run["cpu"][:trials], prepend=0.0)[-final:].max()

    def ranks(self):
        """Mean rank on each problem `(problems, methods)`: 1 the best, ties shared.

        One more than the methods that do better, each counted as the share of the seeds that both have; NaN on problems
        where some two have no seed in common. With all runs there, the mean over seeds of the rank.
        """
        return np.array(
            [_ranks(self._beaten(i), np.ones((1, self.regret.shape[2])))[0] for i in range(len(self.plain))]
        )

    def rank_draws(self, rng):
        """Mean ranks `(draws, methods)` of problems drawn anew, and of seeds drawn anew within each."""
        seeds = self.regret.shape[2]
        drawn = []
        for i in range(len(self.problems)):
            beaten = self._beaten(i)
            there = np.isfinite(self.regret[i]).sum(axis=0) >= min(2, len(self.methods))
            weights = np.zeros((DRAWS, seeds))
            if there.any():
                weights[:, there] = rng.multinomial(there.sum(), np.full(there.sum(), 1.0 / there.sum()), DRAWS)
            drawn.append(_ranks(beaten, weights))
        drawn = np.array(drawn)  # (problems, draws, methods)
        there = np.isfinite(drawn).any(axis=(1, 2))
        if not there.any():
            return np.full(drawn.shape[1:], np.nan)
        times = rng.multinomial(there.sum(), np.full(there.sum(), 1.0 / there.sum()), DRAWS).T[:, :, None]
        kept = np.where(np.isfinite(drawn[there]), times, 0)
        with np.errstate(invalid="ignore"):
            return (kept * np.nan_to_num(drawn[there])).sum(axis=0) / kept.sum(axis=0)

    def _beaten(self, i):
        """Whether the second method does better than the first `(seeds, methods, methods)`; one half of a tie."""
        regret = np.round(self.regret[i].T, 9)
        beaten = 0.5 + 0.5 * np.sign(regret[:, :, None] - regret[:, None, :])
        same = np.arange(len(self.methods))
        beaten[:, same, same] = 0.0
        return beaten


def _ranks(beaten, weights):
    """Ranks `(draws, methods)` of seeds with weights `(draws, seeds)`."""
    there = np.isfinite(beaten).astype(float)
    with np.errstate(invalid="ignore"):
        shares = np.tensordot(weights, np.nan_to_num(beaten), 1) / np.tensordot(weights, there, 1)
    return 1.0 + shares.sum(axis=2)


@dataclass(frozen=True, kw_only=True)
class Row:
    """What is said about a method: means over problems of means over seeds, and 95% intervals `(low, high)`.

    `less` and `rank_less` are the first method's number less this one's, in regret (seeds that both have) and in mean
    rank: below 0 the first one does better. `worse` has the problems on which random search does better: (problem,
    interval of the difference).
    """

    method: str
    regret: float
    interval: tuple[float, float]
    median: float
    rank: float
    rank_interval: tuple[float, float]
    less: float
    less_interval: tuple[float, float]
    rank_less: float
    rank_less_interval: tuple[float, float]
    worse: list[tuple[str, tuple[float, float]]]
    wall: float
    cpu: float
    ask: float
    problems: int
    runs: int


def rows(table):
    """A `Row` for each method."""
    rng = np.random.default_rng(0)
    draws, ranks = table.rank_draws(rng), table.ranks()
    result = []
    for j, method in enumerate(table.methods):
        regrets = table.regret[:, j]
        apart = table.regret[:, 0] - regrets
        means = by_problem(regrets)
        result.append(
            Row(
                method=method, regret=mean(means), interval=bootstrap(regrets, rng), median=median(means),
                rank=mean(ranks[:, j]), rank_interval=spread(draws[:, j]),
                less=mean(by_problem(apart)), less_interval=bootstrap(apart, rng),
                rank_less=mean(ranks[:, 0] - ranks[:, j]), rank_less_interval=spread(draws[:, 0] - draws[:, j]),
                worse=worse_than_random(table, j, rng), wall=mean(table.wall[:, j]), cpu=mean(table.cpu[:, j]),
                ask=mean(table.ask[:, j]), problems=int(np.isfinite(means).sum()),
                runs=int(np.isfinite(regrets).sum()),
            )
        )  # fmt: skip
    return result


def worse_than_random(table, j, rng):
    """Problems on which a method's mean regret is above that of random search, by more than the 95% interval."""
    result = []
    for i, problem in enumerate(table.problems):
        mine, plain = finite(table.regret[i, j]), finite(table.plain[i])
        if len(mine) and len(plain):
            interval = spread(redrawn(mine, rng) - redrawn(plain, rng))
            if interval[0] > 0.0:
                result.append((problem, interval))
    return result


def worker_ratios(one, many):
    """By method: the mean regret with several workers over that with one, and its interval; of seeds that both have.

    `one` and `many` are tables of the same problems, methods and seeds.
    """
    rng = np.random.default_rng(0)
    result = []
    for j in range(len(one.methods)):
        both = np.isfinite(one.regret[:, j]) & np.isfinite(many.regret[:, j])
        pairs = [(one.regret[i, j, there], many.regret[i, j, there]) for i, there in enumerate(both) if there.any()]
        if not pairs:
            result.append((np.nan, (np.nan, np.nan), 0))
            continue
        picks = [rng.integers(len(single), size=(DRAWS, len(single))) for single, _ in pairs]
        below, above = (
            sum(pair[side][pick].mean(axis=1) for pair, pick in zip(pairs, picks, strict=True)) for side in (0, 1)
        )
        ratio = sum(pair[1].mean() for pair in pairs) / max(sum(pair[0].mean() for pair in pairs), TINY)
        result.append((float(ratio), spread(above / np.maximum(below, TINY)), int(both.sum())))
    return result


def present(cache, problems, methods, seeds, trials):
    """The methods of which there are runs."""
    return [m for m in methods if any(cache.has(p, m, seed, trials) for p in problems for seed in seeds)]


def reached(cache, problem, method, seeds, trials, within):
    """In how many runs what was found is so close to the maximum, of how many, and Wilson's 95% interval."""
    from scipy.stats import binomtest

    best = optimum(cache, problem)
    gaps = finite(np.array([optimum_gap(cache, problem, method, seed, trials, best) for seed in seeds]))
    hits = int((gaps <= within).sum())
    if not len(gaps):
        return 0, 0, (np.nan, np.nan)
    interval = binomtest(hits, len(gaps)).proportion_ci(method="wilson")
    return hits, len(gaps), (float(interval.low), float(interval.high))


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
    rows = [finite(row) for row in rows if np.isfinite(row).any()]
    return spread(np.mean([redrawn(row, rng) for row in rows], axis=0)) if rows else (np.nan, np.nan)


def redrawn(row, rng):
    """Means of the row drawn anew."""
    return rng.choice(row, (DRAWS, len(row))).mean(axis=1)


def spread(draws):
    draws = finite(draws)
    low, high = np.percentile(draws, [2.5, 97.5]) if len(draws) else (np.nan, np.nan)
    return float(low), float(high)


def by_problem(rows):
    return np.array([mean(row) for row in rows])


def finite(values):
    return values[np.isfinite(values)]


def mean(values):
    values = finite(values)
    return float(values.mean()) if len(values) else np.nan


def median(values):
    values = finite(values)
    return float(np.median(values)) if len(values) else np.nan
