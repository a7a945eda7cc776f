"""Clicks whose rates drift, switch or stay: `nr.auto` beside Thompson sampling that forgets in other ways.

    python benchmarks/drift.py --seeds 12 --first 1000 --rounds 3000 --jobs 1 --likeness strangers related
    python benchmarks/drift.py --jobs 2              # 12 seeds of 3,000 rounds: half an hour
    python benchmarks/drift.py --seeds 2 --rounds 300

Ten arms. Printed: the mean cumulative regret of plain Thompson sampling (Beta posteriors, all answers count), and of
the others the ratio to it, paired, with 95% bootstrap intervals. Rates are 1 / (1 + e^{-f}), f normal: of the drift a
thousandth of f is new in each round, as of `nr.environments.drifting_samples`; of the switches all of it after each
quarter. Neighbouring arms are related (f of lengthscale 0.3 of the whole), or all are strangers. Seeds from 1000 on
were not looked at before.

The others are as of their papers: a discount of 0.99 in each round (Raj & Kalyani 2017); a window of 4 sqrt(T log T)
rounds (Trovo et al. 2020); an adaptive window for each arm, delta = 0.002 (ADWIN, Bifet & Gavalda 2007).
"""

import math

import bench
import numpy as np

import nilregret as nr

ARMS = nr.Arms.grid(0, 1, 10)
RATE = 1e-3  # of the drift
WORLDS = ("drift", "three switches", "still")


class Beta:
    """Thompson sampling of clicks: all answers, or those that a rule of its own leaves."""

    def __init__(self, keep=1.0, window=None):
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

    def __init__(self, delta=0.002):
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

    def __init__(self, **options):
        self.study = nr.Study(nr.auto(ARMS, reward="bernoulli", **options))

    def arm(self, _):
        self.trial = self.study.ask()
        return self.trial.arm

    def tell(self, _, click):
        self.study.tell(self.trial, float(click))


RULES = {
    "Thompson": lambda _: Beta(),
    "discounted": lambda _: Beta(keep=0.99),
    "sliding window": lambda rounds: Beta(window=round(4.0 * math.sqrt(rounds * math.log(rounds)))),
    "ADWIN": lambda _: Adwin(),
    "`auto`": lambda _: Auto(),
    '`auto(world="switching")`': lambda _: Auto(world="switching"),
    '`auto(world="drifting")`': lambda _: Auto(world="drifting"),
}


def rates_of(likeness, world, rounds, seed):
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


def regret(cell, name, seed, rounds):
    """Cumulative."""
    rates, rule = rates_of(*cell, rounds, seed), RULES[name](rounds)
    rng, clicks = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2]).random(rounds)
    lost = 0.0
    for t in range(rounds):
        arm = rule.arm(rng)
        lost += rates[t].max() - rates[t, arm]
        rule.tell(arm, bool(clicks[t] < rates[t, arm]))
    return lost


@bench.command(__doc__)
def main(options):
    seeds, rows = range(options.first, options.first + options.seeds), []
    cells = [(likeness, world) for likeness in options.likeness for world in WORLDS]
    found = bench.regrets(options.jobs, regret, cells, RULES, seeds, options.rounds)
    for cell, (plain, *others) in zip(cells, found, strict=True):
        rows.append([*cell, f"{plain.mean():.0f}", *(bench.ratio(each, plain) for each in others)])
    bench.table("", ["arms", "world", "Thompson, regret", *list(RULES)[1:]], rows, markdown=True)
