"""Evaluation of other policies on a log: whether intervals hold, how wide they are, and what a floor costs the logger.

    python benchmarks/evaluation.py --worlds 400 --rounds 400 --floors 0.0 0.05 0.2 --large 0 --open 0
    python benchmarks/evaluation.py --worlds 20      # a look
    python benchmarks/evaluation.py --large 1000000  # time and memory of a log of a million rows, besides
    python benchmarks/evaluation.py --open 400       # only logs whose last decisions are still waited for

Each world has three contexts and five arms with click rates drawn from [.1, .9]. The logger is Thompson sampling with
Gaussian draws, whose propensities are exact by quadrature, and a floor of uniform decisions. Four policies are
evaluated on each log: uniform, one arm, the best arm of each context, and a random one. Their true value is that over
the contexts of the log. Coverage and mean width of 95% intervals: `nr.evaluate` without and with the floor told; the
percentile bootstraps of IPS and SNIPS, as `obp` has them; and empirical Bernstein with the bound of the weights
(Maurer & Pontil, 2009). The least coverage that 95% allows in so many worlds has probability .99. RMSE: of each
estimator. Where `obp` is installed, its estimators are compared with ours in the same run.

`--open` has two arms of 5%, shown at random; a yes comes after a delay of at most W decisions, a no never comes, and
the study has the deadline W and the default reward 0. Each rule takes other decisions for the sample: those with an
answer (a no is told at W), all with 0 for the open ones, or those that `nilregret.study.waiting` counts. Intervals are
mean +- 1.96 standard errors. The last column is that of `nr.evaluate` for the uniform policy, on the same studies.
"""

from __future__ import annotations

import math
import time
import warnings

import bench
import numpy as np
from scipy.special import ndtr
from scipy.stats import binom
from tqdm import tqdm

import nilregret as nr
from nilregret.evaluation.estimators import estimates
from nilregret.study.waiting import counted_trials

CONTEXTS, ARMS, NODES, RESAMPLES = 3, 5, 64, 200
TARGETS = ("uniform", "one arm", "best", "random")
METHODS = ("betting", "betting, floor told", "bootstrap of IPS", "bootstrap of SNIPS", "empirical Bernstein")


def propensities_of(mean, std):
    """The probability that each of the arms has the highest of independent Gaussian draws, `(worlds, ARMS)`."""
    nodes = (np.arange(NODES) + 0.5) / NODES * 12 - 6
    weight = np.exp(-0.5 * nodes**2)
    at = mean[:, :, None] + std[:, :, None] * nodes
    below = ndtr((at[:, :, None, :] - mean[:, None, :, None]) / std[:, None, :, None])
    below[:, np.arange(ARMS), np.arange(ARMS)] = 1.0
    found = (below.prod(axis=2) * weight).sum(axis=2)
    return found / found.sum(axis=1, keepdims=True)


def logged(worlds, rounds, floor):
    """Contexts, arms, propensities, rewards, the logger's expected rewards, each `(worlds, rounds)`, and the rates."""
    rng = np.random.default_rng(1)
    rates = rng.uniform(0.1, 0.9, (worlds, CONTEXTS, ARMS))
    wins, losses = np.ones((2, worlds, CONTEXTS, ARMS))
    rows, found = np.arange(worlds), [np.zeros((worlds, rounds)) for _ in range(5)]
    for t in range(rounds):
        context = rng.integers(0, CONTEXTS, worlds)
        a, b = wins[rows, context], losses[rows, context]
        p = propensities_of(a / (a + b), np.sqrt(a * b / (a + b + 1)) / (a + b))
        p = (1 - floor) * p + floor / ARMS
        arm = np.minimum((p.cumsum(1) < rng.random((worlds, 1))).sum(1), ARMS - 1)
        reward = rng.random(worlds) < rates[rows, context, arm]
        own = (p * rates[rows, context]).sum(1)
        np.add.at(wins, (rows, context, arm), reward)
        np.add.at(losses, (rows, context, arm), ~reward)
        for column, value in zip(found, (context, arm, p[rows, arm], reward, own), strict=True):
            column[:, t] = value
    return found[0].astype(int), found[1].astype(int), *found[2:], rates


def targets_of(rates, world):
    """Probabilities of each policy, `(CONTEXTS, ARMS)`."""
    one = np.zeros((CONTEXTS, ARMS))
    one[:, world % ARMS] = 1.0
    random = np.random.default_rng([2, world]).dirichlet(np.ones(ARMS), CONTEXTS)
    return dict(zip(TARGETS, [np.full_like(one, 1 / ARMS), one, np.eye(ARMS)[rates.argmax(1)], random], strict=True))


def bootstrapped(w, r, rng):
    """Percentile intervals of IPS and SNIPS from the same resamples."""
    counts = rng.multinomial(len(w), np.full(len(w), 1 / len(w)), RESAMPLES)
    top, bottom = counts @ (w * r), counts @ w
    ips, snips = top / len(w), np.divide(top, bottom, out=np.zeros(RESAMPLES), where=bottom > 0)
    return np.quantile(ips, [0.025, 0.975]), np.quantile(snips, [0.025, 0.975])


def bernstein(w, r, floor):
    """The interval of Maurer & Pontil (2009), Theorem 4, on both sides, cut at 0 and 1."""
    if not floor:
        return 0.0, 1.0
    n, x, log = len(w), w * r, np.log(4 / 0.05)
    half = np.sqrt(2 * x.var(ddof=1) * log / n) + 7 * (ARMS / floor) * log / (3 * (n - 1))
    return max(x.mean() - half, 0.0), min(x.mean() + half, 1.0)


def one_world(columns, target, floor, rng):
    """Intervals by method, errors by estimator, the result, its CPU time, and whether its `gain` holds."""
    context, arm, p, r, own, rates = columns
    table = target[context]
    truth = (table * rates[context]).sum(1).mean()
    w = table[np.arange(len(arm)), arm] / p
    log = {"context": np.eye(CONTEXTS)[context], "action": arm, "propensity": p, "reward": r}
    began = time.process_time()
    plain = nr.evaluate(log, table, actions=range(ARMS))
    seconds = time.process_time() - began
    told = nr.evaluate(log, table, actions=range(ARMS), floor=floor / ARMS) if floor else plain
    found = [(plain.lower, plain.upper), (told.lower, told.upper), *bootstrapped(w, r, rng), bernstein(w, r, floor)]
    gained = plain.gain.lower <= truth - own.mean() <= plain.gain.upper
    errors = {name: value - truth for name, value in plain.estimates.items()}
    return [(low <= truth <= high, high - low) for low, high in found], errors, plain, seconds, gained


def measured(worlds, rounds, floor):
    """Coverage and width of each method, RMSE of each estimator, regret, and shares of logs that pass the check."""
    rng = np.random.default_rng(3)
    context, arm, p, r, own, rates = logged(worlds, rounds, floor)
    hits, errors, seconds, gains, passed, caught = {name: [] for name in TARGETS}, [], [], [], 0, 0
    for world in range(worlds):
        columns = (context[world], arm[world], p[world], r[world], own[world], rates[world])
        for name, target in targets_of(rates[world], world).items():
            found, wrong, result, took, gained = one_world(columns, target, floor, rng)
            hits[name].append(found)
            errors.append(wrong)
            seconds.append(took)
            gains.append(gained)
        passed += result.check.passed
        log = {"action": arm[world], "propensity": np.full(rounds, 1 / ARMS), "reward": r[world]}
        caught += not nr.evaluate(log, "uniform", actions=range(ARMS)).check.passed
    shown = np.take_along_axis(rates[np.arange(worlds)[:, None], context], arm[:, :, None], 2)[:, :, 0]
    regret = (rates.max(2)[np.arange(worlds)[:, None], context] - shown).sum(1)
    names = list(errors[0])
    rmse = {name: np.sqrt(np.nanmean([each[name] ** 2 for each in errors])) for name in names}
    return {name: np.array(each) for name, each in hits.items()}, rmse, regret, seconds, gains, passed, caught


def compare_with_obp():
    """The largest difference between our estimators and those of `obp` on five random logs, or None without it."""
    try:
        from obp.ope import estimators as peers
    except ImportError:
        return None
    most, n = 0.0, 300
    for seed in range(5):
        rng = np.random.default_rng(seed)
        arm, p, r = rng.integers(0, ARMS, n), rng.uniform(0.02, 1, n), rng.normal(size=n)
        pi, q, rows = rng.dirichlet(np.ones(ARMS), n), rng.normal(size=(n, ARMS)), np.arange(n)
        ours = estimates(r, pi[rows, arm] / p, q[rows, arm], (pi * q).sum(1), most=3.0)
        facts = {"reward": r, "action": arm, "pscore": p, "action_dist": pi[:, :, None], "position": np.zeros(n, int)}
        model = {"estimated_rewards_by_reg_model": q[:, :, None]}
        theirs = {
            "snips": peers.SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**facts),
            "ips": peers.InverseProbabilityWeighting().estimate_policy_value(**facts),
            "dr": peers.DoublyRobust().estimate_policy_value(**facts, **model),
            "switch": peers.SwitchDoublyRobust(tau=3.0).estimate_policy_value(**facts, **model),
        }
        most = max(most, *(abs(ours[name] - value) for name, value in theirs.items()))
    return most


# -- decisions that are still waited for -------------------------------------------------------------------------------

RATE, EARLY = 0.05, 5.0  # early delays have a mean of W / 5
ROWS = ((400, 300, "uniform"), (400, 300, "early"), (2000, 500, "uniform"), (2000, 500, "early"))
RULES = ("answered only", "open ones are 0", "wait is over")


def one_log(decisions, wait, law, seed):
    """The rewards that each rule takes, `(n,)` each, and the interval of `nr.evaluate`."""
    rng = np.random.default_rng([11, seed])
    yes, delays = rng.random(decisions) < RATE, rng.random(decisions) * wait
    if law == "early":
        delays = np.minimum(rng.exponential(wait / EARLY, decisions), wait)
    now = [0.0]
    policy = nr.gp_ts(nr.Arms([[0.0], [1.0]]), nr.SquaredExponential(0.1), noise=0.5, norm_bound=1.0)
    rule = {"deadline": float(wait), "on_deadline": "reward", "default_reward": 0.0, "late": "drop"}
    more = {"propensities": True, "about": {"service": rule}, "clock": lambda: now[0]}
    study = bench.quiet(policy.using(explore=nr.slots.Uniform(1.0)), seed=seed, **more)
    for i in range(decisions):
        now[0] = float(i)
        study.ask()
    now[0] = float(decisions - 1)
    age = decisions - 1 - np.arange(decisions)
    told = yes & (delays <= age)
    study.tell_many([(int(number), 1.0) for number in np.flatnonzero(told)])
    counted = np.array([trial.reward for trial in counted_trials(study).answered])
    found = nr.evaluate(study, "uniform")
    samples = (told[told | (age >= wait)].astype(float), told.astype(float), counted)
    return samples, (found.value, found.lower, found.upper)


def holds(sample):
    """Whether the usual interval of a mean holds the rate. A rate of 0 has the variance of half a click."""
    n, mean = len(sample), sample.mean()
    value = max(mean, 0.5 / n)
    return abs(mean - RATE) <= 1.96 * math.sqrt(value * max(1.0 - mean, 0.5 / n) / n)


def waited_for(logs):
    """Prints bias and coverage of each rule."""
    table = []
    for decisions, wait, law in ROWS:
        each = [one_log(decisions, wait, law, seed) for seed in tqdm(range(logs), leave=False)]
        cells = []
        for i in range(len(RULES)):
            bias = np.mean([samples[i].mean() for samples, _ in each]) - RATE
            cells.append(f"{bias:+.3f}, {np.mean([holds(samples[i]) for samples, _ in each]):.2f}")
        bias = np.mean([value for _, (value, _, _) in each]) - RATE
        cells.append(f"{bias:+.3f}, {np.mean([low <= RATE <= high for _, (_, low, high) in each]):.2f}")
        table.append([f"{decisions}, {wait}, {law}", *cells])
    title = f"rate {RATE:g}, {logs} logs: bias, and share of 95% intervals that hold"
    bench.table(title, ["decisions, W, delays", *RULES, "nr.evaluate"], table)


def large(rows):
    """CPU seconds and megabytes of an evaluation of many rows."""
    rng = np.random.default_rng(0)
    log = {
        "context": rng.normal(size=(rows, 8)), "action": rng.integers(0, 10, rows),
        "propensity": np.full(rows, 0.1), "reward": rng.random(rows),
    }  # fmt: skip
    before = bench.peak()
    (seconds,), _ = bench.timed(lambda: nr.evaluate(log, "uniform"))
    print(f"{rows} rows, 8 columns, 10 actions: {seconds:.1f} s CPU, {bench.peak() - before:.0f} MB more")


@bench.command(__doc__)
def main(options):
    warnings.simplefilter("ignore", nr.errors.NoRegretWarning)
    if options.open:
        waited_for(options.open)
        return
    fewest = int(binom.ppf(0.01, options.worlds, 0.95))
    print(f"{options.worlds} worlds, {options.rounds} rounds; 95% allows from {fewest / options.worlds:.3f} on\n")
    costs, first = [], None
    for floor in options.floors:
        hits, rmse, regret, seconds, gains, passed, caught = measured(options.worlds, options.rounds, floor)
        table = [
            [name, *(f"{hit:.3f} {width:.3f}" for hit, width in found.mean(axis=0))] for name, found in hits.items()
        ]
        bench.table(f"floor {floor:g}: coverage and width", ["policy", *METHODS], table)
        print("RMSE: " + ", ".join(f"{name} {value:.3f}" for name, value in rmse.items()))
        print(f"intervals of the gain over the logger: coverage {np.mean(gains):.3f}")
        print(
            f"check of propensities: right ones pass {passed / options.worlds:.3f}, uniform ones told instead are "
            f"found {caught / options.worlds:.3f}; an evaluation takes {1e3 * np.median(seconds):.1f} ms CPU\n"
        )
        first = regret.mean() if first is None else first
        costs.append([f"{floor:g}", f"{regret.mean():.1f} ± {bench.error(regret):.1f}", f"{regret.mean() / first:.3f}"])
    bench.table("", ["floor", "regret of the logger", "over the first"], costs)
    most = compare_with_obp()
    print("obp is not installed" if most is None else f"largest difference from obp's estimators: {most:.1e}")
    if options.large:
        large(options.large)
