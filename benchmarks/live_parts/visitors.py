"""Visitors that come back and keep their arm: what intervals of an evaluation hold, and what bounds of the model hold.

Row visitors: 200 units, each with a rate of its own for each arm, from a beta distribution with the mean of the arm.
Two visits of a unit have the correlation .3. A log's policy plays the best arm so far with probability .8, and draws
once for each unit. Visits of units come in random order. Intervals of 95% are of the value of the best arm and its gain
over the log's policy. "naive" ones count each visit for itself. The normal interval of a weighted mean is given by
clusters, too (Liang & Zeger, 1986).

Row revisits: `nr.auto` on two equal arms, `Study(sticky=True)`: how often the bounds of an arm hold its rate, and how
often one of the equal arms is called the best, by this study and by one that was told the same without units. Ranges of
Worth, the page of the dashboard, should hold the cost of learning about 95 times in 100.
"""

import numpy as np
from bench import quiet

import nilregret as nr
from nilregret.evaluation.estimators import gain_interval, mean_interval
from nilregret.serve.dashboard.views.comparison import compare
from nilregret.study.visits import error_of_mean

RATES, ALIKE, UNITS, GREEDY, DELTA = np.array([0.1, 0.2, 0.3]), 0.3, 200, 0.8, 0.05
VISITS = (1, 2, 5, 10, 20, "1 to 20")
SURE, DECISIONS = 0.95, 1000
QUANTILE = 1.959964  # of the normal law, for 95%


def rates_of(rng, units, means):
    """Rates of units at arms, `(units, arms)`, whose visits have the correlation `ALIKE`."""
    size = 1.0 / ALIKE - 1.0
    return rng.beta(size * means, size * (1.0 - means), (units, len(means)))


def order_of(rng, visits, units):
    """The unit of each visit, in random order."""
    each = rng.integers(1, 21, units) if visits == "1 to 20" else np.full(units, visits)
    return rng.permutation(np.repeat(np.arange(units), each))


def log_of(seed, visits, units):
    """Arms, propensities, rewards and units of the visits of one world, and the value of the log's own policy."""
    rng = np.random.default_rng([seed, 44])
    rates, of = rates_of(rng, units, RATES), order_of(rng, visits, units)
    drawn, chance, own = np.full(units, -1), np.zeros(units), np.zeros(units)
    told, wins = np.ones(len(RATES)), np.zeros(len(RATES))
    rewards = np.zeros(len(of))
    for row, unit in enumerate(of):
        if drawn[unit] < 0:
            p = np.full(len(RATES), (1.0 - GREEDY) / len(RATES))
            p[(wins / told).argmax()] += GREEDY
            drawn[unit] = np.searchsorted(p.cumsum(), rng.random() * p.sum())
            chance[unit], own[unit] = p[drawn[unit]], p @ RATES
        arm = drawn[unit]
        rewards[row] = rng.random() < rates[unit, arm]
        told[arm], wins[arm] = told[arm] + 1.0, wins[arm] + rewards[row]
    return drawn[of], chance[of], rewards, of, own[of].mean()


def measured(seed, visits, units):
    """Whether each interval holds the truth, and its width, by name."""
    arms, chance, rewards, of, own = log_of(seed, visits, units)
    weights = (arms == 2) / chance
    truth, found = RATES[2], {}
    for name, by in (("ours", of), ("naive", None)):
        value = mean_interval(weights, rewards, DELTA, units=by)
        gain = gain_interval(weights, rewards, DELTA, units=by)
        found[f"value, {name}"] = (truth, *value)
        found[f"gain, {name}"] = (truth - own, *gain)
        half = QUANTILE * error_of_mean(weights * rewards, by)
        centre = (weights * rewards).mean()
        found[f"normal, {name}"] = (truth, centre - half, centre + half)
    return {name: (low <= true <= high, high - low) for name, (true, low, high) in found.items()}


def visitors(report):
    """Row visitors, with eighty times as many worlds."""
    rows, seeds = [], report.seeds(80)
    for visits in VISITS:
        worlds = [measured(seed, visits, report.rounds or UNITS) for seed in seeds]
        cells = [str(visits)]
        for name in worlds[0]:
            held, width = (
                np.array(column, dtype=float) for column in zip(*(each[name] for each in worlds), strict=True)
            )
            cells.append(f"{held.mean():.3f} {width.mean():.3f}")
            report.keep("visitors", f"{visits} visits", name, seeds, held=held, width=width)
        rows.append([cells[0], *(cells[i] for i in (1, 4, 2, 5, 3, 6))])
    head = ["visits", "value", "naive", "gain", "naive", "normal by clusters", "naive"]
    report.show(
        f"Coverage and width of 95% intervals, {len(seeds)} worlds of {report.rounds or UNITS} units", head, rows
    )


def revisited(seed, visits, decisions):
    """Whether studies with units and without are sure of one of two equal arms and know the cost; bounds that hold."""
    rng, means = np.random.default_rng([seed, 45]), np.array([0.2, 0.2])
    units = max(decisions // visits, 1)
    rates, of = rates_of(rng, units, means), order_of(rng, visits, units)
    policy = nr.auto(nr.Arms(np.arange(2.0)[:, None]), reward="bernoulli")
    study, plain = quiet(policy, seed=seed, sticky=True), quiet(policy, seed=seed)
    for unit in of:
        trial = study.ask(unit=str(unit))
        told = study.tell(trial, float(rng.random() < rates[unit, trial.arm]))
        plain.tell(plain.ask(among=[told.arm]), told.reward)
    lower, upper = study.bounds()
    sure = [each.certainty().probability > SURE for each in (study, plain)]
    costs = []
    for each in (study, plain):
        found = compare(each)
        cost, half = found.cost
        costs.append(abs(means[0] * len(of) - found.total - cost) <= half)
    return *sure, *costs, np.mean((lower <= means) & (means <= upper))


def revisits(report):
    """Row revisits, with forty times as many seeds."""
    rows, seeds = [], report.seeds(40)
    for visits in (1, 2, 5, 20):
        each = [revisited(seed, visits, report.rounds or DECISIONS) for seed in seeds]
        names = ("sure", "naively sure", "cost", "naive cost", "bounds")
        columns = [np.array(column, dtype=float) for column in zip(*each, strict=True)]
        rows.append([str(visits), *(f"{column.mean():.3f}" for column in columns)])
        report.keep("revisits", f"{visits} visits", "auto", seeds, **dict(zip(names, columns, strict=True)))
    head = [
        "visits",
        f"certainty over {SURE:g}",
        "without units",
        "range of Worth holds",
        "without units",
        "bounds hold",
    ]
    report.show(f"`nr.auto`, two arms of .2, {report.rounds or DECISIONS} decisions, {len(seeds)} seeds", head, rows)
