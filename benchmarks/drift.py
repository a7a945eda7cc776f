"""Clicks whose rates drift, switch or stay: `nr.auto` beside Thompson sampling that forgets in other ways.

    python benchmarks/drift.py --jobs 2            # 12 seeds of 3,000 rounds: some minutes
    python benchmarks/drift.py --seeds 2 --rounds 300

Ten arms. Printed: the mean cumulative regret of plain Thompson sampling (Beta posteriors, all answers count), and of the
others the ratio to it, paired, with 95% bootstrap intervals. The drift: rate = 1 / (1 + e^{-f}) with f a stationary
Gaussian process in time, of which a thousandth is new in each round (`nr.environments.drifting_samples`). Three
switches: other rates, uniform in [0, 1], after each quarter. Arms are alike where they are neighbours ("related": f of
lengthscale 0.3 of the whole) or strangers to each other. Seeds from 1000 on were not looked at before.

The others are as their papers print them: Raj & Kalyani 2017 (discount 0.99); Trovo et al. 2020 (window of
4 sqrt(T log T) rounds); Bifet & Gavalda 2007 (an adaptive window for each arm, delta = 0.002).
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import math

import numpy as np
from common_parts import mapped, ratio
from tabulate import tabulate

import noregret as nr

ARMS = nr.Arms.grid(0, 1, 10)
RATE = 1e-3  # of the drift
WORLDS = ("drift", "three switches", "still")
STRANGERS = "strangers"


class Beta:
    """Thompson sampling of clicks: all answers, or those that a rule of its own leaves."""

    def __init__(self, rounds, keep=1.0, window=None):
        self.yes, self.no = np.zeros(len(ARMS)), np.zeros(len(ARMS))
        self.keep, self.window, self.seen = keep, window, []

    def arm(self, rng):
        return int(rng.beta(1.0 + self.yes, 1.0 + self.no).argmax())

    def tell(self, arm, click):
        self.yes *= self.keep
        self.no *= self.keep
        (self.yes if click else self.no)[arm] += 1.0
        self.seen.append((arm, click))
        if self.window is not None and len(self.seen) > self.window:
            arm, click = self.seen.pop(0)
            (self.yes if click else self.no)[arm] -= 1.0


class Adwin:
    """Likewise, of a window for each arm, whose older part goes where its mean differs from that of the newer one."""

    def __init__(self, rounds, delta=0.002):
        self.each, self.delta = [[] for _ in ARMS.points], delta

    def arm(self, rng):
        yes, count = (np.array([function(each) for each in self.each], dtype=float) for function in (sum, len))
        return int(rng.beta(1.0 + yes, 1.0 + count - yes).argmax())

    def tell(self, arm, click):
        self.each[arm].append(click)
        while self._shrunk(arm):
            pass

    def _shrunk(self, arm):
        window = np.array(self.each[arm], dtype=float)
        older = np.arange(1, len(window))
        if not len(older):
            return False
        sums, newer = np.cumsum(window)[:-1], len(window) - older
        m, log = 1.0 / (1.0 / older + 1.0 / newer), math.log(2.0 * math.log(len(window) + 1.0) / self.delta)
        cut = np.sqrt(2.0 / m * window.var() * log) + 2.0 / (3.0 * m) * log  # their eq. 3.1
        differs = np.flatnonzero(np.abs(sums / older - (window.sum() - sums) / newer) > cut)
        if len(differs):
            self.each[arm] = self.each[arm][int(differs[-1]) + 1 :]
        return len(differs) > 0


class Auto:
    """`nr.auto` for clicks."""

    def __init__(self, rounds, **options):
        self.study = nr.Study(nr.auto(ARMS, reward="bernoulli", **options))

    def arm(self, rng):
        self.trial = self.study.ask()
        return self.trial.arm

    def tell(self, arm, click):
        self.study.tell(self.trial, float(click))


RULES = {
    "Thompson": Beta,
    "discounted": lambda rounds: Beta(rounds, keep=0.99),
    "sliding window": lambda rounds: Beta(rounds, window=round(4.0 * math.sqrt(rounds * math.log(rounds)))),
    "ADWIN": Adwin,
    "auto": Auto,
    'auto(world="switching")': lambda rounds: Auto(rounds, world="switching"),
    'auto(world="drifting")': lambda rounds: Auto(rounds, world="drifting"),
}


def rates_of(world, likeness, rounds, seed):
    """Of each round and arm, `(rounds, arms)`."""
    rng = np.random.default_rng(seed)
    related = nr.SquaredExponential(0.3 if likeness == "related" else 1e-3)
    root = np.linalg.cholesky(related(ARMS.points, ARMS.points) + 1e-9 * np.eye(len(ARMS)))
    news = rng.standard_normal((rounds, len(ARMS))) @ root.T
    if world == "drift":
        f = np.empty_like(news)
        f[0] = news[0]
        for t in range(1, rounds):
            f[t] = math.sqrt(1.0 - RATE) * f[t - 1] + math.sqrt(RATE) * news[t]
    else:
        periods = 4 if world == "three switches" else 1
        f = np.repeat(news[:periods], math.ceil(rounds / periods), axis=0)[:rounds]
    return 1.0 / (1.0 + np.exp(-f))


def regret(name, world, likeness, rounds, seed):
    """Cumulative."""
    rates, rule = rates_of(world, likeness, rounds, seed), RULES[name](rounds)
    rng, clicks = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2]).random(rounds)
    lost = 0.0
    for t in range(rounds):
        arm = rule.arm(rng)
        lost += rates[t].max() - rates[t, arm]
        rule.tell(arm, bool(clicks[t] < rates[t, arm]))
    return lost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=12, help="worlds of each kind (default 12)")
    parser.add_argument("--first", type=int, default=1000, help="the first seed (default 1000: held out)")
    parser.add_argument("--rounds", type=int, default=3000, help="(default 3,000)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    tasks = [
        (name, world, likeness, options.rounds, seed)
        for likeness in ("related", STRANGERS) for world in WORLDS for name in RULES for seed in seeds
    ]  # fmt: skip
    found = np.array(mapped(options.jobs, regret, tasks)).reshape(2, len(WORLDS), len(RULES), len(seeds))
    heads = [f"{world}, {likeness}" for likeness in ("related", STRANGERS) for world in WORLDS]
    flat = found.reshape(-1, len(RULES), len(seeds))
    rows = [["Thompson, regret", *(f"{each[0].mean():.0f}" for each in flat)]]
    rows += [[name, *(ratio(each[i], each[0]) for each in flat)] for i, name in enumerate(RULES) if i]
    print(tabulate(rows, ["", *heads], tablefmt="github" if options.markdown else "simple", disable_numparse=True))


if __name__ == "__main__":
    main()
