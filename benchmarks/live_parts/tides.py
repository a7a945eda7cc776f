"""Row tides: a common level moves all arms, and one of the worse arms may be played on the good days above all.

The best of three arms is 3 points of clicks better than the others at any time. The level stands (.20), steps once from
.10 to .30, has eight waves or three, or rises slowly. "Joins, good days": a worse arm joins half-way, after a step
up. "Joins, bad days": the best arm joins half-way, after a step down. "Own change": the level stands, and the best arm
loses 8 points after a third, which is no tide. With contexts (two columns) the best arm is better by 0 to 6 points, by
the first column.

Shown are the mean regret of a run, and in brackets the share of runs that play the best arm less than half of the time
in the last tenth. Discounted Thompson sampling keeps .995 a round (Raj & Kalyani 2017).
"""

import numpy as np
from bench import difference, quiet

import nilregret as nr

GAP, ARMS = 0.03, 3
WORLDS = ("still", "one step", "8 waves", "3 waves", "slow rise", "joins, good days", "joins, bad days", "own change")
UNDER_CONTEXTS = ("still", "8 waves", "joins, good days", "joins, bad days")
RULES = {"Thompson": None, "discounted": None, "auto": "stationary", "drifting": "drifting", "tidal": "tidal"}
CONTEXT = nr.Box([0.0, 0.0], [1.0, 1.0])
TIMES = {False: 4, True: 2}  # times as many seeds, by whether there are contexts, since a run has few clicks


def rates(world, rounds, rng):
    """Rates of all arms in each round, NaN before an arm is there. The last arm is the one that joins."""
    t, best = np.arange(rounds), rng.integers(ARMS)
    joins = world.startswith("joins")
    if joins:
        best = ARMS - 1 if world.endswith("bad days") else rng.integers(ARMS - 1)
    waves = {"8 waves": 8, "3 waves": 3}.get(world)
    level = np.full(rounds, 0.20)
    if waves:
        level = 0.20 + 0.10 * np.sin(2.0 * np.pi * (waves * t / rounds + rng.random()))
    elif world == "slow rise":
        level = 0.10 + 0.20 * t / rounds
    elif world in ("one step", "joins, good days"):
        level = np.where(t < rounds // 3, 0.10, 0.30)
    elif joins:
        level = np.where(t < rounds // 3, 0.30, 0.10)
    found = np.tile(level[:, None] - GAP, (1, ARMS))
    found[:, best] += GAP
    if world == "own change":
        found[rounds // 3 :, best] -= 0.08
    if joins:
        found[: rounds // 2, -1] = np.nan
    return found


class Beta:
    """Thompson sampling with beta distributions."""

    def __init__(self, keep, arms, rng):
        self.yes, self.no, self.keep, self.rng = np.zeros(arms), np.zeros(arms), keep, rng

    def ask(self, _):
        return None, int(self.rng.beta(1.0 + self.yes, 1.0 + self.no).argmax())

    def tell(self, arm, click):
        self.yes, self.no = self.keep * self.yes, self.keep * self.no
        (self.yes if click else self.no)[arm] += 1.0

    def join(self):
        self.yes, self.no = np.append(self.yes, 0.0), np.append(self.no, 0.0)


class Auto:
    """`nr.auto` for clicks in some world."""

    def __init__(self, world, arms, seed, context):
        self._study = quiet(nr.auto(nr.Arms(range(arms)), context=context, reward="bernoulli", world=world), seed=seed)

    def ask(self, context):
        self._trial = self._study.ask(context)
        return self._trial, self._trial.arm

    def tell(self, _, click):
        self._study.tell(self._trial, float(click))

    def join(self):
        self._study.add_arms([[self._study.policy.domain.points.shape[0]]])


def play(world, rule, seed, rounds, *, contexts):
    """Returns the regret of a run, and whether it ends on a worse arm."""
    rng = np.random.default_rng([seed, 44])
    values, columns, luck = rates(world, rounds, rng), rng.random((rounds, 2)), rng.random(rounds)
    if contexts:
        values = values + (columns[:, :1] - 0.5) * 2.0 * GAP * (values == np.nanmax(values, axis=1, keepdims=True))
    first = ARMS - int(np.isnan(values[0]).any())
    if RULES[rule] is None:
        player = Beta(0.995 if rule == "discounted" else 1.0, first, rng)
    else:
        player = Auto(RULES[rule], first, seed, CONTEXT if contexts else None)
    lost = np.zeros(rounds)
    for t, row in enumerate(values):
        if t == rounds // 2 and first < ARMS:
            player.join()
        _, arm = player.ask(columns[t] if contexts else None)
        player.tell(arm, bool(luck[t] < row[arm]))
        lost[t] = np.nanmax(row) - row[arm]
    return lost.sum(), (lost[-max(rounds // 10, 1) :] > 0.0).mean() > 0.5


def tides(report):
    """Row tides: regret and worse ends in each world, without contexts and with."""
    rounds = report.rounds or 3000
    for contexts, worlds in ((False, WORLDS), (True, UNDER_CONTEXTS)):
        seeds = report.seeds(TIMES[contexts])
        rows, rules = [], [rule for rule in RULES if not contexts or rule in ("auto", "tidal")]
        for world in worlds:
            found = {
                rule: np.array([play(world, rule, seed, rounds, contexts=contexts) for seed in seeds]).T
                for rule in rules
            }
            for rule, (regret, worse) in found.items():
                report.keep("tides", f"{world}{', contexts' * contexts}", rule, seeds, regret=regret, worse=worse)
            shown = [f"{regret.mean():.1f} ({worse.mean():.2f})" for regret, worse in found.values()]
            rows.append([world, *shown, difference(found["tidal"][0], found["auto"][0])])
        head = ["with contexts" if contexts else "no contexts", *rules, "tidal less auto"]
        report.show(f"Regret over {rounds} rounds (share of runs that end worse), {len(seeds)} seeds", head, rows)
