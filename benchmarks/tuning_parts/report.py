"""What the runs say, as numbers; `show.py` prints them."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from .methods import METHODS, OfPolicy
from .problems import PROBLEMS
from .runs import parts

DRAWS = 4000  # of a bootstrap interval
TINY = 1e-12
FLOOR = 1e-8  # of a gap whose logarithm is taken
MEASURES = {
    "regret": "normalised regret (1 = median random search, 0 = optimum)",
    "gap": "gap to the optimum",
    "log gap": f"log10 of the gap to the optimum, at least {FLOOR:g}",
}
LAST = 3  # asks, of which the dearest counts: a refit every three answers is among them


def found(run, trials):
    """The noiseless value that a user is left with: of the point that the method recommends, where the run says so.

    Otherwise it is that of the trial whose told value is the best.
    """
    if (value := run.get("recommended", {}).get(str(trials))) is not None:
        return float(value)
    return float(run["values"][int(np.array(run["told"][:trials]).argmax())])


class Table:
    """Regret of methods `(problems, methods, seeds)` at a number of trials, NaN where there is no run.

    Regret: the optimum less what was found (see `found`). The optimum of a model is the highest value that any run in
    the cache has had, of whatever method. As a measure says (`MEASURES`) it is normalised by the regret of the median
    random search with equal trials, left as it is, or its logarithm is taken. `plain`: that of random search itself, of
    all its seeds, by problem. Intervals are over seeds, and, with `redraw`, over problems as well.

    `wall` and `cpu`: seconds of a run; `ask`: CPU seconds of the dearest of the last three asks, what is done when
    their predecessors are told included.
    """

    def __init__(self, cache, problems, methods, seeds, trials, *, measure="regret", redraw=False):
        self.problems, self.methods, self.trials = list(problems), list(methods), trials
        self.measure, self.redraw = measure, redraw
        shape = (len(self.problems), len(self.methods), len(seeds))
        self.regret, self.wall, self.cpu, self.ask = (np.full(shape, np.nan) for _ in range(4))
        self.plain = []
        for i, problem in enumerate(self.problems):
            best = optimum(cache, problem)
            plain = [optimum_gap(cache, problem, "random", seed, trials, best) for seed in all_seeds(cache, problem)]
            scale = max(float(np.nanmedian(plain)), TINY) if np.isfinite(plain).any() else np.nan
            self.plain.append(measured(np.array(plain), measure, scale))
            for j, method in enumerate(self.methods):
                for k, seed in enumerate(seeds):
                    gap = optimum_gap(cache, problem, method, seed, trials, best)
                    self.regret[i, j, k] = measured(gap, measure, scale)
                    if cache.has(problem, method, seed, trials):
                        run = cache.runs[problem, method, seed]
                        self.wall[i, j, k], self.cpu[i, j, k] = run["wall"][trials - 1], run["cpu"][trials - 1]
                        final = LAST + parts(method)[1] - 1  # while several workers finish nothing is asked
                        self.ask[i, j, k] = np.diff(run["cpu"][:trials], prepend=0.0)[-final:].max()

    def ranks(self):
        """Mean rank on each problem `(problems, methods)`: 1 the best, ties shared.

        One more than the methods that do better, each counted as the share of the seeds that both have; NaN on problems
        where some two have no seed in common. With all runs there, the mean over seeds of the rank. A method with runs
        on less than half of the problems has no rank, and counts for none.
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
            there = np.isfinite(self.regret[i, self.ranked()]).sum(axis=0) >= min(2, len(self.methods))
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

    def ranked(self):
        """Whether a method has runs on at least half of the problems, `(methods,)`."""
        there = np.isfinite(self.regret).any(axis=2).sum(axis=0)
        return 2 * there >= max(there, default=0)

    def _beaten(self, i):
        """Whether the second method does better than the first `(seeds, methods, methods)`; one half of a tie."""
        regret = np.round(self.regret[i].T, 9)
        beaten = 0.5 + 0.5 * np.sign(regret[:, :, None] - regret[:, None, :])
        same, ranked = np.arange(len(self.methods)), self.ranked()
        beaten[:, same, same] = 0.0
        beaten[:, :, ~ranked], beaten[:, ~ranked] = 0.0, np.nan
        return beaten


def measured(gaps, measure, scale):
    """Gaps to the optimum in a measure; `scale` is that of the median random search."""
    if measure == "log gap":
        return np.log10(np.maximum(gaps, FLOOR))
    return gaps / scale if measure == "regret" else gaps


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
    interval, result = partial(bootstrap, rng=rng, redraw=table.redraw), []
    for j, method in enumerate(table.methods):
        regrets = table.regret[:, j]
        apart = table.regret[:, 0] - regrets
        means = by_problem(regrets)
        result.append(
            Row(
                method=method, regret=mean(means), interval=interval(regrets), median=median(means),
                rank=mean(ranks[:, j]), rank_interval=spread(draws[:, j]),
                less=mean(by_problem(apart)), less_interval=interval(apart),
                rank_less=mean(ranks[:, 0] - ranks[:, j]), rank_less_interval=spread(draws[:, 0] - draws[:, j]),
                worse=worse_than_random(table, j, rng), wall=mean(table.wall[:, j]), cpu=mean(table.cpu[:, j]),
                ask=mean(table.ask[:, j]), problems=int(np.isfinite(means).sum()),
                runs=int(np.isfinite(regrets).sum()),
            )
        )  # fmt: skip
    return result


def best_peer(every):
    """The row of the peer that stands best against the first method, in the runs that both have, or None.

    Peers are neither random search nor policies of this library.
    """
    peers = [row for row in every[1:] if row.method != "random" and np.isfinite(row.less)]
    peers = [row for row in peers if not isinstance(METHODS.get(parts(row.method)[0]), OfPolicy)]
    return max(peers, key=lambda row: row.less, default=None)


def worse_than_random(table, j, rng):
    """Problems on which a method's mean regret is above that of random search, by more than the 95% interval."""
    result = []
    for i, problem in enumerate(table.problems):
        mine, plain = finite(table.regret[i, j]), finite(table.plain[i])
        if min(len(mine), len(plain)) > 1:
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
    there = cache.has(problem, method, seed, trials)
    return best - found(cache.runs[problem, method, seed], trials) if there else np.nan


def bootstrap(rows, rng, *, redraw=False):
    """95% interval of the mean over problems of the mean over seeds; seeds are drawn anew within each problem.

    With `redraw`, and more than one problem, problems are drawn anew too.
    """
    rows = [finite(row) for row in rows if np.isfinite(row).any()]
    if not rows:
        return np.nan, np.nan
    drawn, count = np.array([redrawn(row, rng) for row in rows]), len(rows)
    times = rng.multinomial(count, np.full(count, 1.0 / count), DRAWS).T if redraw else 1.0
    return spread((times * drawn).mean(axis=0))


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
    values = np.asarray(values, dtype=float)
    return values[np.isfinite(values)]


def mean(values):
    return float(values.mean()) if len(values := finite(values)) else np.nan


def median(values):
    return float(np.median(values)) if len(values := finite(values)) else np.nan
