"""What an ask of `nr.auto` costs, and how well it searches.

    python benchmarks/asks.py [searches|auto|example|options|best|long ...] --seeds 5 --sizes 20 60 200 1000
        --asks 15 --example 300 --repeats 3 --long 2000 5000 --jobs 1

- searches: Hartmann's function of six dimensions with noise 0.05, a run of `--asks` for each seed and number of random
  observations known before. Printed is the score (log EI, nats) of the point that was found at every third trial, less
  that of a search that takes some twenty times as long.
- auto: CPU time of an ask in such runs over that of a floor: thirty times a kernel matrix of all points, its factor
  and its inverse. Printed are the median and the mean over all asks, and the share of the fits in the mean.
- example: the service's first example, a price under the hour of the day. CPU time of an ask after `--example` trials,
  over that of an ask with the search of 1,024 candidates that `maximize` uses. Both see the same worlds, whose regret
  is printed, with the standard error of the difference.
- options: CPU time of five decisions after twenty with a choice of many options, over that with a choice of five: the
  least of `--repeats`.
- best: CPU time of `study.best()` over that of the round before it, medians of 15 rounds, and again when nothing was
  told since. Warped rewards and limits on 100 arms, 10 contexts of 100 arms, and a space.
- long: `--asks` rounds after `--long` trials, half of them at random and half around their best, noise 0.05. Starts of
  the search climb by the 250 most related points, or by all, as by default ("exact"). Printed is the CPU time of an ask
  without a fit (median), its ratio to an ask after 200 trials, the regret of the best trial by the posterior mean, and
  the difference of its logarithm (base 10) to that of the exact search, with the standard error over seeds.
"""

import statistics
import time
from dataclasses import replace
from unittest import mock

import bench
import numpy as np
from benchmarks.tuning_parts.functions import ackley_10, levy
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.spatial.distance import pdist, squareform

import nilregret as nr
from nilregret.domains.search.boxes import PointSearch
from nilregret.environments import hartmann6
from nilregret.slots import refit

NOISE = 0.05
LONG = PointSearch(candidates=4096, around=1000, starts=16, evaluations=60, mutations=1000, incumbents=5)
HOUR, PRICE = nr.Space(hour=nr.Float(0, 24)), nr.Space(price=nr.Float(1, 9))
PRICES = np.linspace(1, 9, 401)
OPTIONS = (5, 10, 100, 500, 1000)
RELATED = 250


def reward(points, rng):
    """What is observed at `(n, 6)` points."""
    return hartmann6(points) + NOISE * rng.standard_normal(len(points))


def known(n, seed):
    """Returns a study with n random observations, and the generator of further noise."""
    rng = np.random.default_rng([n, seed])
    X, study = rng.uniform(size=(n, 6)), nr.Study(nr.auto(nr.Box(np.zeros(6), np.ones(6))), seed=seed)
    for x, value in zip(X, reward(X, rng), strict=True):
        study.add(x, value)
    return study, rng


def floor(n):
    """Returns CPU seconds of the floor with n points."""
    points = np.random.default_rng(0).uniform(size=(n, 6))
    begun = time.process_time()
    for _ in range(30):
        K = np.exp(-pdist(points, "sqeuclidean"))
        dpotri(dpotrf(squareform(K) + 1.1 * np.eye(n), lower=1)[0], lower=1)
    return time.process_time() - begun


def auto(given):
    """CPU time of an ask beside fixed arithmetic, and the share of the fits."""
    rows, fit, fits = [], refit.fit, []

    def timed(*args, **more):
        begun = time.process_time()
        found = fit(*args, **more)
        fits.append(time.process_time() - begun)
        return found

    def answered(study, rng, asks):
        """Returns CPU seconds of the asks, and of the fits in them."""
        fits.clear()
        times = []
        for _ in range(asks):
            begun = time.process_time()
            trial = study.ask()
            times.append(time.process_time() - begun)
            study.tell(trial, reward(trial.point[None], rng)[0])
        return times, sum(fits)

    with mock.patch.object(refit, "fit", timed):
        answered(*known(12, 0), 4)  # imports
        for n in given.sizes:
            asks, fitting, least = [], 0.0, min(floor(n) for _ in range(5))
            for seed in range(given.seeds):
                study, rng = known(n, seed)
                answered(study, rng, 1)  # what is computed once of all that was added
                times, spent = answered(study, rng, given.asks)
                asks, fitting = asks + times, fitting + spent
            middle, mean = np.median(asks), np.mean(asks)
            rows.append([n, 1e3 * middle, middle / least, mean / least, fitting / sum(asks)])
    header = ["observations", "ms an ask", "median / floor", "mean / floor", "share of fits"]
    bench.table("", header, rows, floatfmt=("", ".2f", ".1f", ".1f", ".2f"))


def searches(given):
    """How far the found score is below that of a long search."""
    gaps, number, maximize = [], 0, PointSearch.maximize

    def compared(self, surface, domain, *, candidates, scores, incumbents, rng):
        nonlocal number
        found = maximize(self, surface, domain, candidates=candidates, scores=scores, incumbents=incumbents, rng=rng)
        if number % 3 == 0:
            points = np.concatenate([LONG.candidate_points(domain, 1), candidates])
            exact = surface._replace(resolution=0.0, rough=None)
            best = maximize(
                LONG, exact, domain, candidates=points, scores=surface.values(points), incumbents=incumbents,
                rng=lambda: np.random.default_rng(0),
            )  # fmt: skip
            gaps.append(found.value - best.value)
        number += 1
        return found

    with mock.patch.object(PointSearch, "maximize", compared):
        for seed, n in ((seed, n) for seed in range(given.seeds) for n in given.sizes):
            number, (study, rng) = 0, known(n, seed)
            bench.play(study, given.asks, lambda trial, rng=rng: reward(trial.point[None], rng)[0])
    quantiles = ", ".join(f"{value:+.4f}" for value in np.quantile(gaps, [0, 0.05, 0.25, 0.5, 0.75, 0.95, 1]))
    print(f"log EI found less that of a long search, {len(gaps)} searches, nats")
    print(f"   mean {np.mean(gaps):+.4f}; quantiles 0, 5, 25, 50, 75, 95, 100%: {quantiles}", flush=True)


def takings(price, hour):
    return price * np.exp(-(((price - 5 - 2 * np.sin(hour / 24 * 2 * np.pi)) / 2) ** 2))


def example(given):
    """CPU time of an ask and regret in the service's first example, with the search of `auto` and a dense one."""
    policy = nr.auto(PRICE, context=HOUR)
    policies = [policy, policy.using(search=PointSearch(incumbents=5, apart=0.001))]
    times, regrets = [[], []], np.zeros((given.seeds, 2))
    for seed in range(given.seeds):
        studies, rng = [nr.Study(each, seed=seed) for each in policies], np.random.default_rng([0, seed])
        for number in range(given.example + given.example // 5):
            hour, noise = rng.uniform(0, 24), 0.3 * rng.standard_normal()
            for i, study in enumerate(studies):
                begun = time.process_time()
                trial = study.ask({"hour": hour})
                if number >= given.example and not trial.fits:
                    times[i].append(time.process_time() - begun)
                value = takings(trial.parameters["price"], hour)
                regrets[seed, i] += takings(PRICES, hour).max() - value
                study.tell(trial, value + noise)
    own, other = (1e3 * statistics.median(each) for each in times)
    mean, apart = regrets.mean(axis=0), regrets[:, 0] - regrets[:, 1]
    print(f"the service's first example after {given.example} trials, CPU ms an ask without a fit (median)")
    print(f"   auto {own:.2f}, with 1,024 candidates {other:.2f}: {own / other:.2f} of it")
    print(f"   regret {mean[0]:.1f} and {mean[1]:.1f}, difference {apart.mean():+.2f} (error {bench.error(apart):.2f})")


def five_decisions(options):
    """Returns CPU seconds of five decisions after twenty."""
    values = np.random.default_rng(0).normal(size=options)
    space = nr.Space(kind=nr.Choice(*[f"o{i}" for i in range(options)]), x=nr.Float(0, 1))
    study = bench.quiet(nr.auto(space), goal="maximize", seed=0)
    found = bench.play(study, 25, lambda t: values[int(t.parameters["kind"][1:])] - t.parameters["x"])
    return found[1][20:].sum()


def options(given):
    five_decisions(OPTIONS[0])
    costs = np.min([[five_decisions(each) for each in OPTIONS] for _ in range(given.repeats)], axis=0)
    rows = [[each, 1e3 * cost / 5, cost / costs[0]] for each, cost in zip(OPTIONS, costs, strict=True)]
    bench.table("", ["options", "ms of a decision", "ratio"], rows, floatfmt=("", ".1f", ".1f"))


def best(_):
    """CPU time of `best()`, in rounds."""
    arms, kernel, space = nr.Arms.grid(0, 1, 100), nr.SquaredExponential(0.1), nr.Space(x=nr.Float(0, 1))
    contexts = nr.gp_ucb(arms, kernel.on(0) * kernel.on(1), noise=0.1, context=nr.Arms.grid(0, 1, 10))
    kinds = [("warped rewards", nr.auto(arms)), ("limits", nr.auto(arms, constraints=nr.EveryRound()))]
    kinds += [("contexts", contexts), ("a space", nr.auto(space))]
    sizes = {"a space": (300, 1000)}
    rows = [[name, n, *of_a_round(policy, n)] for name, policy in kinds for n in sizes.get(name, (1000, 10_000))]
    bench.table("", ["best()", "trials", "rounds", "again"], rows, floatfmt=("", ".0f", ".2f", ".2f"))


def of_a_round(policy, size):
    """Returns CPU time of `best()` in rounds, right after a round and once more."""
    study, rng, took = bench.quiet(policy, goal="maximize", seed=0), np.random.default_rng(0), []

    def under():
        return {} if policy.context is None else {"context": policy.context.points[rng.integers(10)]}

    def told(point):
        limits = {"constraints": [rng.normal() - 0.5]} if policy.constraint_count else {}
        return {"reward": float(np.sin(5.0 * point[0]) + 0.1 * rng.standard_normal())} | limits

    for x in rng.random(size):
        point = policy.domain.points[int(100 * x)] if isinstance(policy.domain, nr.Arms) else np.array([x])
        study.add(point, **told(point), **under())
    study.best()
    for _ in range(18):
        begun = time.process_time()
        trial = study.ask(**under())
        study.tell(trial, **told(trial.point))
        spent = [time.process_time() - begun, *(bench.timed(study.best)[0][0] for _ in range(2))]
        took += [spent] * (not trial.fits)
    whole, first, again = np.median(took[3:], axis=0)
    return first / whole, again / whole


def values(formula, points):
    """Returns the values at points `(n, d)` of a function of parameters by name."""
    return np.array([formula({f"x{i}": x for i, x in enumerate(point)}) for point in points])


WORLDS = {  # by name: function, sides of the box, dimension, maximum
    "Hartmann-6": (hartmann6, (0.0, 1.0), 6, hartmann6.best),
    "Levy-6": (lambda points: values(levy, points), (-10.0, 10.0), 6, 0.0),
    "Ackley-10": (lambda points: values(ackley_10, points), (-10.0, 15.0), 10, 0.0),
}


def continued(world, n, related, seed, asks):
    """Returns the regret of the best trial of a run after n trials, and the median ms of an ask without a fit."""
    function, (low, high), d, best = WORLDS[world]
    rng = np.random.default_rng([n, seed])
    points = low + (high - low) * rng.uniform(size=(n, d))
    found = points[: n // 2][function(points[: n // 2]).argmax()]
    points[n // 2 :] = found + 0.05 * (high - low) * rng.standard_normal((n - n // 2, d))
    points = np.clip(points, low, high)
    policy = nr.auto(nr.Box(np.full(d, low), np.full(d, high)))
    study = bench.quiet(policy.using(search=replace(policy.search, related=related)), seed=seed)
    for point, value in zip(points, function(points) + NOISE * rng.standard_normal(n), strict=True):
        study.add(point, value)
    times = []
    for _ in range(asks):
        (seconds,), trial = bench.timed(study.ask)
        times += [] if trial.fits else [1e3 * seconds]
        study.tell(trial, function(trial.point[None])[0] + NOISE * rng.standard_normal())
    return best - function(study.best().point[None])[0], statistics.median(times)


def long(given):
    short = continued("Hartmann-6", 200, RELATED, 0, given.asks)[1]
    rows = []
    for world in WORLDS:
        for n in given.long:
            tasks = [(world, n, related, seed, given.asks) for related in (RELATED, 0) for seed in range(given.seeds)]
            found = np.reshape(bench.mapped(given.jobs, continued, tasks), (2, given.seeds, 2))
            (own, exact), (ms, of_exact) = found[..., 0], np.median(found[..., 1], axis=1)
            apart = np.log10(np.maximum(own, 1e-9)) - np.log10(np.maximum(exact, 1e-9))
            rows.append([
                world, n, ms, of_exact, ms / short, own.mean(), exact.mean(), apart.mean(), bench.error(apart)
            ])  # fmt: skip
    head = ["", "trials", "ms of an ask", "exact", "over 200 trials", "regret", "exact", "log10 apart", "error"]
    bench.table("", head, rows, floatfmt=("", "", ".1f", ".1f", ".1f", ".4f", ".4f", "+.3f", ".3f"))


PARTS = (searches, auto, example, options, best, long)


@bench.command(__doc__)
def main(given):
    for part in PARTS:
        if not given.parts or part.__name__ in given.parts:
            part(given)
