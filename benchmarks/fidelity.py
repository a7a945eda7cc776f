"""Settings that make trials cheaper: regret at the full setting, at equal cost, with and without `fidelity=`.

    python benchmarks/fidelity.py --seeds 5 --trials 60 [--problems NAME ...]
    python benchmarks/fidelity.py --seeds 20 --problems branin shifted misleading

One run of `nr.auto(space, fidelity=..., budget=trials)`, of the rule "boca" in its place, and of `nr.auto` at the full
setting alone, which has as many trials as the first run's cost pays for, rounded up. Regret is that of `study.best()`
at the full setting, over the standard deviation of the objective there.

- branin: two coordinates; a cheap setting adds a tilt and noise-free waves that fade.
- shifted: the optimum moves by a fifth of the range between the cheapest setting and the full one.
- misleading: cheap settings show minus the objective: a wrong tool by construction.
- digits: a support vector machine of scikit-learn on its digits, rows from 60 to 1,200, error on the other 597. The
  regret is over the best of all runs.
"""

import math

import bench
import numpy as np

import nilregret as nr

SPACE = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))
ROWS = nr.Fidelity("rows", 100, 100_000)


def gap(rows):
    """Returns 0 at the full setting and 1 at the cheapest."""
    return 1.0 - math.log(rows / 100) / math.log(1000)


def branin_full(x, y):
    a, b = 15 * x - 5, 15 * y
    return (b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10


def branin(x, y, rows):
    return branin_full(x, y) + gap(rows) * (20 * x - 10 * y + 15 * math.sin(9 * x + 4 * y))


def bowl(x, y):
    return 3 * (x - 0.3) ** 2 + 2 * (y - 0.6) ** 2


def shifted(x, y, rows):
    return bowl(x - 0.2 * gap(rows), y + 0.2 * gap(rows)) + 0.3 * gap(rows)


def misleading(x, y, rows):
    return bowl(x, y) * (1.0 - 2.0 * gap(rows))


def digits():
    from sklearn.datasets import load_digits
    from sklearn.svm import SVC

    points, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    points, labels = points[order] / 16.0, labels[order]

    def error(C, gamma, rows):
        model = SVC(C=C, gamma=gamma).fit(points[:rows], labels[:rows])
        return float(1.0 - model.score(points[1200:], labels[1200:]))

    return error


def problem(name):
    """Returns space, setting, objective, and the least value and the deviation at the full setting (or None)."""
    if name == "digits":
        space = nr.Space(C=nr.Float(1e-2, 1e3, log=True), gamma=nr.Float(1e-4, 10.0, log=True))
        return space, nr.Fidelity("rows", 60, 1200), digits(), None, 0.35
    of = {"branin": branin, "shifted": shifted, "misleading": misleading}[name]
    grid = np.linspace(0, 1, 401)
    full = (branin_full if name == "branin" else bowl)(*np.meshgrid(grid, grid))
    return SPACE, ROWS, of, 0.397887 if name == "branin" else 0.0, float(full.std())


def played(policy, objective, seed, trials):
    """Returns the value of the recommended point at the full setting, and the cost."""
    study, spent = bench.quiet(policy, seed=seed, goal="minimize"), 0.0
    full = policy.fidelity.high if policy.fidelity is not None else None
    name = "rows"
    for _ in range(trials):
        trial = study.ask()
        spent += 1.0 if full is None else policy.fidelity.cost_at(trial.context)
        rows = trial.context_parameters[name] if full is not None else FULL[0]
        study.tell(trial, objective(**trial.parameters, rows=rows))
    best = study.best().parameters
    return objective(**best, rows=FULL[0]), spent


FULL = [0]  # The full setting of the problem that is played.


@bench.command(__doc__)
def main(options):
    rows = []
    for name in options.problems or ["branin", "shifted", "misleading", "digits"]:
        space, setting, objective, least, scale = problem(name)
        FULL[0] = setting.high
        found = {"information": [], "boca": [], "full only": []}
        costs = {method: [] for method in found}
        for seed in range(options.seeds):
            for rule in ("information", "boca"):
                fidelity = nr.Fidelity(setting.name, setting.low, setting.high, rule=rule)
                policy = nr.auto(space, fidelity=fidelity, budget=options.trials)
                value, cost = played(policy, objective, seed, options.trials)
                found[rule].append(value)
                costs[rule].append(cost)
            trials = math.ceil(costs["information"][-1])
            value, cost = played(nr.auto(space, budget=trials), objective, seed, trials)
            found["full only"].append(value)
            costs["full only"].append(cost)
        zero = min(map(min, found.values())) if least is None else least
        for method, values in found.items():
            regrets = (np.array(values) - zero) / scale
            better = int(np.sum(regrets < (np.array(found["full only"]) - zero) / scale))
            rows.append(
                [name, method, f"{np.mean(costs[method]):.1f}", f"{regrets.mean():.4f}", f"{np.median(regrets):.4f}",
                 f"{regrets.max():.4f}", "" if method == "full only" else f"{better} of {len(values)}"]
            )  # fmt: skip
    head = ["problem", "rule", "cost, full trials", "mean regret", "median", "worst", "ahead of full only"]
    bench.table("Regret at the full setting", head, rows)
