"""What one question of `nr.auto` costs on a box of six dimensions, as a ratio of Optuna's GPSampler in the same run.

    python benchmarks/asks.py
    python benchmarks/asks.py --sizes 20 60 --asks 12 --blocks 2
    python benchmarks/asks.py --searches 5

The peer needs Optuna and torch.

Hartmann's function of six dimensions with noise 0.05, one BLAS thread, CPU time. At each n both studies know the same
n random observations, and are asked and told in turn, in blocks of several trials. An ask of `auto` contains what was
told since, and a fit where one is due; what the fits took is said too. Every fifth trial of `auto` changes one
parameter alone and is cheap; it counts. The ratio is that of the mean times of a block; the median of the blocks is
printed, with the least and the largest.

`--searches` compares what the searches find, and needs no peer: the score (log EI, nats) of the point that was found
at every third trial of several runs, less that of a search that takes some twenty times as long.
"""

import argparse
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import statistics
import time
from unittest import mock

import numpy as np
from tuning_parts.peers import Optuna

import nilregret as nr
from nilregret.domains.search.boxes import PointSearch
from nilregret.environments import hartmann6
from nilregret.slots.refit import Refit

NOISE = 0.05
SPACE = nr.Space(**{f"x{i}": nr.Float(0.0, 1.0) for i in range(6)})
LONG = PointSearch(candidates=4096, around=1000, starts=16, evaluations=60, mutations=1000, incumbents=5)


def reward(points, rng):
    """What is observed at `(n, 6)` points."""
    return hartmann6(points) + NOISE * rng.standard_normal(len(points))


class Timed:
    """CPU seconds of the calls of a method."""

    def __init__(self, function):
        self.seconds = 0.0

        def timed(*args, **kwargs):
            begun = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds += time.process_time() - begun

        self.method = timed


class Own:
    """A study of `auto` that knows some observations."""

    def __init__(self, X, y, seed):
        self.study = nr.Study(nr.auto(nr.Box(np.zeros(6), np.ones(6))), seed=seed)
        for x, value in zip(X, y, strict=True):
            self.study.add(x, value)

    def play(self, rng):
        begun = time.process_time()
        trial = self.study.ask()
        spent = time.process_time() - begun
        self.study.tell(trial, reward(trial.point[None], rng)[0])
        return spent


class Peer:
    """A study of Optuna's GPSampler that knows the same."""

    def __init__(self, X, y, seed):
        import optuna

        self.method = Optuna(SPACE, seed, "GPSampler")
        for x, value in zip(X, y, strict=True):
            parameters = {f"x{i}": float(v) for i, v in enumerate(x)}
            self.method.study.add_trial(
                optuna.trial.create_trial(
                    params=parameters, distributions=self.method.distributions, value=float(value)
                )
            )

    def play(self, rng):
        begun = time.process_time()
        parameters = self.method.suggest()
        spent = time.process_time() - begun
        self.method.tell(parameters, reward(np.array([list(parameters.values())]), rng)[0])
        return spent


def asks(options):
    print("asks of auto on [0, 1]^6 and suggestions of GPSampler, CPU ms a trial (means)")
    for n in options.sizes:
        rng = np.random.default_rng([n, options.seed])
        X = rng.uniform(size=(n, 6))
        y = reward(X, rng)
        own, peer = Own(X, y, options.seed), Peer(X, y, options.seed)
        for each in (own, peer):
            each.play(rng)  # whatever is set up on the first call
        fit, rows = Timed(Refit.__call__), []
        with mock.patch.object(Refit, "__call__", fit.method):
            for _ in range(options.blocks):
                fit.seconds = 0.0
                mine = [own.play(rng) for _ in range(options.asks)]
                theirs = [peer.play(rng) for _ in range(max(options.asks // 5, 2))]
                rows.append((statistics.mean(mine), fit.seconds / options.asks, statistics.mean(theirs)))
        mine, fits, theirs = (1e3 * statistics.median(column) for column in zip(*rows, strict=True))
        ratios = [row[2] / row[0] for row in rows]
        print(
            f"   n = {n:5}: auto {mine:6.1f}, of these fits {fits:5.1f}; GPSampler {theirs:7.1f}: "
            f"{statistics.median(ratios):.1f} times ({min(ratios):.1f} to {max(ratios):.1f})",
            flush=True,
        )


def searches(options):
    """How far the found score is below that of a long search."""
    gaps = []
    maximize = PointSearch.maximize

    def compared(self, surface, domain, *, candidates, scores, incumbents, rng):
        found = maximize(self, surface, domain, candidates=candidates, scores=scores, incumbents=incumbents, rng=rng)
        if compared.number % 3 == 0:
            points = np.concatenate([LONG.candidate_points(domain, 1), candidates])
            exact = surface._replace(resolution=0.0, rough=None)
            best = maximize(
                LONG, exact, domain, candidates=points, scores=surface.values(points), incumbents=incumbents,
                rng=lambda: np.random.default_rng(0),
            )  # fmt: skip
            gaps.append(found.value - best.value)
        compared.number += 1
        return found

    with mock.patch.object(PointSearch, "maximize", compared):
        for seed in range(options.searches):
            for n in options.sizes:
                compared.number, rng = 0, np.random.default_rng([n, seed])
                X = rng.uniform(size=(n, 6))
                own = Own(X, reward(X, rng), seed)
                for _ in range(options.asks):
                    own.play(rng)
    quantiles = ", ".join(f"{value:+.4f}" for value in np.quantile(gaps, [0, 0.05, 0.25, 0.5, 0.75, 0.95, 1]))
    print(f"log EI found less that of a long search, {len(gaps)} searches, nats")
    print(f"   mean {np.mean(gaps):+.4f}; quantiles 0, 5, 25, 50, 75, 95, 100%: {quantiles}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 60, 200, 1000])
    parser.add_argument("--asks", type=int, default=15, help="trials of a block")
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--searches", type=int, default=0, metavar="SEEDS", help="compare what is found instead")
    options = parser.parse_args()
    (searches if options.searches else asks)(options)


if __name__ == "__main__":
    main()
