"""Logs whose last decisions are still waited for: a yes comes after a delay of at most W decisions, a no never comes.

Two arms are shown at random, and both have a rate of 5%. The study has the deadline W and the default reward 0. Each
rule takes other decisions for the sample: those with an answer (a no is told at W), all with 0 for the open ones, or
those that `nilregret.study.waiting` counts. Intervals are mean +- 1.96 standard errors. The last column is that of
`nr.evaluate` for the uniform policy, on the same studies.
"""

from __future__ import annotations

import math

import numpy as np
from tabulate import tabulate
from tqdm import tqdm

import nilregret as nr
from nilregret.study.waiting import counted_trials

RATE, EARLY = 0.05, 5.0  # early delays have a mean of W / 5
ROWS = ((400, 300, "uniform"), (400, 300, "early"), (2000, 500, "uniform"), (2000, 500, "early"))
RULES = ("answered only", "open ones are 0", "wait is over")


def one(decisions, wait, law, seed):
    """The rewards that each rule takes, `(n,)` each, and the interval of `nr.evaluate`."""
    rng = np.random.default_rng([11, seed])
    yes, delays = rng.random(decisions) < RATE, rng.random(decisions) * wait
    if law == "early":
        delays = np.minimum(rng.exponential(wait / EARLY, decisions), wait)
    now = [0.0]
    policy = nr.gp_ts(nr.Arms([[0.0], [1.0]]), nr.SquaredExponential(0.1), noise=0.5, norm_bound=1.0)
    rule = {"deadline": float(wait), "on_deadline": "reward", "default_reward": 0.0, "late": "drop"}
    study = nr.Study(
        policy.using(explore=nr.slots.Uniform(1.0)), seed=seed, propensities=True, about={"service": rule},
        clock=lambda: now[0],
    )  # fmt: skip
    study.quiet = True
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


def show(logs):
    """Prints bias and coverage of each rule."""
    table = []
    for decisions, wait, law in ROWS:
        each = [one(decisions, wait, law, seed) for seed in tqdm(range(logs), leave=False)]
        cells = []
        for i in range(len(RULES)):
            bias = np.mean([samples[i].mean() for samples, _ in each]) - RATE
            cells.append(f"{bias:+.3f}, {np.mean([holds(samples[i]) for samples, _ in each]):.2f}")
        bias = np.mean([value for _, (value, _, _) in each]) - RATE
        cells.append(f"{bias:+.3f}, {np.mean([low <= RATE <= high for _, (_, low, high) in each]):.2f}")
        table.append([f"{decisions}, {wait}, {law}", *cells])
    print(f"rate {RATE:g}, {logs} logs: bias, and share of 95% intervals that hold")
    print(tabulate(table, ["decisions, W, delays", *RULES, "nr.evaluate"], disable_numparse=True))
