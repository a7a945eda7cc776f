"""Row "rare": clicks and faults of .5% to 5% whose first 50 answers are all equal, against runs without these.

Three arms, of which one has four times the rate of the others (clicks, maximised) or a quarter (faults, minimised). The
contexts are four numbers that say nothing. Without contexts the arms are 0, 1 and 2 on a line, and the best is each in
turn. Under contexts `nr.auto` decides alike for clicks and for plain numbers, which a test checks. Without contexts the
rewards are plain numbers, with `regret="cumulative"`: no kind of reward is told.
"""

from __future__ import annotations

import numpy as np

import nilregret as nr

from .peers import DRAWS, Beta, Linear
from .problems import Problem
from .report import paired
from .runs import Ours, played

ROUNDS = {0.005: 4000, 0.01: 2500, 0.02: 1500, 0.05: 800}  # by the rate of all arms but one
ZEROS, COLUMNS, TIMES = 50, 4, 4.0
SEEDS = {True: 1, False: 4}  # times as many seeds, by whether there are contexts: without them a run costs less


def world(rate, rounds, seed, *, zeros, faults):
    """Rates of events of three arms in each round, 0 in the first rounds."""
    rng = np.random.default_rng([seed, 14])
    rates = np.full(3, TIMES * rate if faults else rate)
    rates[seed % 3] = rate if faults else TIMES * rate
    values = np.tile(rates, (rounds, 1))
    values[:zeros] = 0.0
    return Problem(values, rng.random((rounds, COLUMNS)), rng.random(rounds), limits=(0.0, 1.0))


class Live(Ours):
    """`nr.auto` with contexts or without, told events as they are: their number is maximised or minimised."""

    def __init__(self, problem, seed, *, contexts, faults):
        box = nr.Box(np.zeros(COLUMNS), np.ones(COLUMNS)) if contexts else None
        policy = nr.auto(nr.Arms(range(problem.arms)), context=box, regret="cumulative")
        self._contexts = contexts
        self._study = nr.Study(policy, seed=seed, goal="minimize" if faults else "maximize")
        self._study.quiet = True

    def ask(self, context):
        return super().ask(context if self._contexts else None)


class Peer:
    """A peer, for which a fault is no reward."""

    def __init__(self, learner, *, faults):
        self._learner, self._faults, self.ask = learner, faults, learner.ask

    def tell(self, token, event):
        self._learner.tell(token, 1.0 - event if self._faults else event)


def shares(make, rate, rounds, seeds, *, zeros, faults):
    """Share of the best arm in the last quarter of each run."""
    found = []
    for seed in seeds:
        problem = world(rate, rounds, seed, zeros=zeros, faults=faults)
        chosen, _ = played(make(problem, seed), problem, rounds)
        found.append(float((chosen[-rounds // 4 :] == seed % 3).mean()))
    return np.array(found)


def rare(args):
    """Row "rare": our share with the zeros and without, and that of the peers with them."""
    found, rows = [], []
    for contexts, faults in ((True, False), (True, True), (False, False), (False, True)):
        seeds = range(args.first, args.first + args.seeds * SEEDS[contexts])
        for rate, rounds in ROUNDS.items():
            rounds = args.rounds or rounds

            def ours(problem, seed, contexts=contexts, faults=faults):
                return Live(problem, seed, contexts=contexts, faults=faults)

            makes = {"auto without zeros": (ours, 0), "auto": (ours, ZEROS)}
            if not args.alone:
                makes["beta"] = lambda p, s, f=faults: Peer(Beta(p, s), faults=f), ZEROS
                for v in DRAWS if contexts else ():
                    makes[f"LinTS {v:g}"] = lambda p, s, v=v, f=faults: Peer(Linear(p, s, drawn=v), faults=f), ZEROS
            each = {
                name: shares(make, rate, rounds, seeds, zeros=min(zeros, rounds // 2), faults=faults)
                for name, (make, zeros) in makes.items()
            }
            what = f"{'contexts' if contexts else 'no contexts'}, {'faults' if faults else 'clicks'}, {100 * rate:g}%"
            for name, some in each.items():
                found += [{"row": "rare", "problem": what, "method": name, "seed": s, "share": x}
                          for s, x in zip(seeds, some.tolist(), strict=True)]  # fmt: skip
            means = {name: some.mean() for name, some in each.items()}
            middle, low, high = paired(each["auto"], each["auto without zeros"])
            linear = max((mean for name, mean in means.items() if name.startswith("LinTS")), default=np.nan)
            numbers = means["auto without zeros"], means["auto"], means.get("beta", np.nan), linear
            shown = ["" if np.isnan(x) else f"{x:.3f}" for x in numbers]
            rows.append([what, len(seeds), *shown[:2], f"{middle:+.3f} [{low:+.3f}, {high:+.3f}]", *shown[2:]])
    head = ["events", "seeds", "no zeros", "50 zeros", "difference (goal: above -.03)", "beta", "best LinTS"]
    args.show("Share of the best arm in the last quarter, 50 equal answers first", head, rows)
    return found
