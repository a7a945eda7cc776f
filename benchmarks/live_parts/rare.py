"""Rows with clicks without contexts, or with some that say nothing.

Row clicks: rates of 1% to 5%, regret over that of Thompson sampling with beta distributions. The worlds and the plays
are those of `benchmarks/clicks.py`. Related rates are a sample of a squared exponential kernel of lengthscale .2 on a
line, scaled to end at 1% and 5%. Unrelated ones are uniform. `nr.auto` is told neither.

Row rare: events of .5% to 5%, three arms, the best of which has four times (faults: a quarter of) the rate of the
others, and the first 50 answers are 0. `nr.auto` is told events as they are: their number is maximised or minimised.
"""

import numpy as np
from bench import difference, quiet, ratio
from clicks import regret

import nilregret as nr

from .classified import Ours, Problem

WORLDS = {  # name: (kind, arms, goal)
    "100 related arms": ("sampled", 100, 0.3),
    "100 unrelated arms": ("unrelated", 100, 0.9),
    "1,000 related arms": ("sampled", 1000, 0.35),
}
ROUNDS = {0.005: 4000, 0.01: 2500, 0.02: 1500, 0.05: 800}  # by the rate of all arms but one
ZEROS, COLUMNS, TIMES = 50, 4, 4.0
SEEDS = {True: 1, False: 4}  # times as many seeds, by whether there are contexts: without them a run costs less


def clicks(report):
    """Row clicks, with four times as many seeds, since a run has some hundred clicks alone."""
    rounds, seeds, rows = report.rounds or 4000, report.seeds(4), []
    for name, (kind, arms, goal) in WORLDS.items():
        each = {}
        for rule in ("auto", "beta"):
            each[rule] = np.array([regret((kind, 0.01, 0.05), rule, seed, rounds, arms) for seed in seeds])
            report.keep("clicks", name, rule, seeds, regret=each[rule])
        means = (f"{each[rule].mean():.0f}" for rule in ("beta", "auto"))
        rows.append([name, *means, ratio(each["auto"], each["beta"]), f"{goal:g}"])
    head = ["clicks of 1% to 5%", "beta, its regret", "auto", "auto over beta", "goal"]
    report.show(f"Regret over {rounds} rounds, {len(seeds)} seeds", head, rows)


def world(rate, rounds, seed, *, zeros, faults):
    """Rates of events of three arms in each round, 0 in the first rounds."""
    rng = np.random.default_rng([seed, 14])
    rates = np.full(3, TIMES * rate if faults else rate)
    rates[seed % 3] = rate if faults else TIMES * rate
    values = np.tile(rates, (rounds, 1))
    values[:zeros] = 0.0
    return Problem(values, rng.random((rounds, COLUMNS)), rng.random(rounds), limits=(0.0, 1.0))


class Live(Ours):
    """`nr.auto` with contexts or without."""

    def __init__(self, problem, seed, *, contexts, faults):
        box = nr.Box(np.zeros(COLUMNS), np.ones(COLUMNS)) if contexts else None
        policy = nr.auto(nr.Arms(range(problem.arms)), context=box, regret="cumulative")
        self._contexts, self._study = contexts, quiet(policy, seed=seed, goal="minimize" if faults else "maximize")

    def ask(self, context):
        return super().ask(context if self._contexts else None)


def rare(report):
    """Row rare: the share of the best arm with the zeros and without."""
    rows = []
    for contexts, faults in ((True, False), (True, True), (False, False), (False, True)):
        seeds = report.seeds(SEEDS[contexts])
        for rate, rounds in ROUNDS.items():
            rounds = report.rounds or rounds
            what = f"{'contexts' if contexts else 'no contexts'}, {'faults' if faults else 'clicks'}, {100 * rate:g}%"
            each = {}
            for zeros in (0, min(ZEROS, rounds // 2)):
                problems = {seed: world(rate, rounds, seed, zeros=zeros, faults=faults) for seed in seeds}
                played = {s: p.played(Live(p, s, contexts=contexts, faults=faults)) for s, p in problems.items()}
                each[zeros] = np.array([(arms[-rounds // 4 :] == s % 3).mean() for s, arms in played.items()])
                report.keep("rare", what, f"auto, {zeros} zeros", seeds, share=each[zeros])
            plain, some = each.values()
            rows.append([what, len(seeds), f"{plain.mean():.3f}", f"{some.mean():.3f}", difference(some, plain)])
    head = ["events", "seeds", "no zeros", "50 zeros", "difference (goal: above -.03)"]
    report.show("Share of the best arm in the last quarter, 50 equal answers first", head, rows)
