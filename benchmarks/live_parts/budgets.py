"""Row together: a budget that holds on average, an unannounced switch and late answers, each alone and all at once.

12 contexts and 20 actions. Reward and cost are samples of a product squared exponential kernel of lengthscale .2, with
mean .5 and standard deviation .25, correlation .6, and noise .1 on both. The budget is .4 a round. Shortfall is what
the best mixture under the budget earns a round, by linear programming, less what was earned; overspend is the positive
part of the average cost less the budget; the net loss adds the two at the price that the linear program has for it.
"""

import numpy as np
from bench import difference, quiet, root
from scipy.optimize import linprog

import nilregret as nr

CONTEXTS, ACTIONS, LENGTH, SIZE, NOISE, BUDGET, DELAY = 12, 20, 0.2, 0.25, 0.1, 0.4, 10.0
WORLDS = {"budget": {}, "and a switch": {"switch": True}, "and delays": {"late": True}}
WORLDS["all at once"] = {"switch": True, "late": True}
PRICE = 0.05  # step of the prices, if nothing else is said
KERNEL = nr.SquaredExponential([LENGTH, LENGTH], scale=SIZE**2)


class World:
    """One seed: tables of each period, contexts, noise and delays."""

    def __init__(self, seed, rounds, *, switch=False, late=False):
        rng = np.random.default_rng([seed, 31])
        grids = np.meshgrid(np.linspace(0, 1, CONTEXTS), np.linspace(0, 1, ACTIONS), indexing="ij")
        cells = np.stack([each.ravel() for each in grids], axis=1)
        of_kernel = root(KERNEL, cells)
        self.rounds, self.period = rounds, (np.arange(rounds) >= rounds // 2) * int(switch)
        periods = []
        while len(periods) < 2:
            cost, own = (of_kernel @ rng.standard_normal((len(cells), 2))).T.reshape(2, CONTEXTS, ACTIONS)
            tables = 0.5 + 0.6 * cost + 0.8 * own, 0.5 + cost
            if best_on_average(*tables)[1] > 0.0:  # it can be satisfied, and binds
                periods.append(tables)
        self.f, self.cost = (np.array(tables) for tables in zip(*periods, strict=True))
        self.contexts = rng.integers(CONTEXTS, size=rounds)
        self.noise = NOISE * rng.standard_normal((2, rounds))
        self.delays = (rng.geometric(1 / (1 + DELAY), size=rounds) - 1) * int(late)
        self.best = [best_on_average(*tables) for tables in zip(self.f, self.cost, strict=True)]


def best_on_average(f, cost):
    """The largest average reward of a mixture within the budget, and the price of the budget: 0 if there is none."""
    one_each = np.kron(np.eye(CONTEXTS), np.ones((1, ACTIONS)))
    spent = cost.reshape(1, -1) / CONTEXTS
    found = linprog(-f.ravel() / CONTEXTS, A_ub=spent, b_ub=[BUDGET], A_eq=one_each, b_eq=np.ones(CONTEXTS))
    return (-found.fun, -found.ineqlin.marginals[0]) if found.success else (np.nan, 0.0)


class Ours:
    """Draws under a price for the budget."""

    def __init__(self, part, *, adaptive):
        policy = nr.gp_ts(
            nr.Arms.grid(0, 1, ACTIONS),
            KERNEL,
            noise=NOISE,
            v=1.0,
            prior_mean=0.5,
            regularization=NOISE**2,
            context=nr.Arms.grid(0, 1, CONTEXTS),
            constraints=part,
            pending="hallucinate",
            memory="adaptive" if adaptive else None,
        )
        self._study = quiet(policy, seed=0)

    def ask(self, z):
        trial = self._study.ask([z / (CONTEXTS - 1)])
        return trial, trial.arm

    def tell(self, trial, reward, cost):
        self._study.tell(trial, reward, constraints=[cost - BUDGET])


def played(world, learner):
    """Shortfall, signed overspend and net loss, each a round."""
    found, due = np.zeros(3), {}
    for t in range(world.rounds):
        z, p = world.contexts[t], world.period[t]
        token, arm = learner.ask(z)
        f, cost, (best, price) = world.f[p, z, arm], world.cost[p, z, arm], world.best[p]
        found += [best - f, cost - BUDGET, best - f + price * (cost - BUDGET)]
        answer = token, f + world.noise[0, t], cost + world.noise[1, t]
        due.setdefault(t + int(world.delays[t]), []).append(answer)
        for told in due.pop(t, []):
            learner.tell(*told)
    return found / world.rounds


METHODS = {  # name: what makes it of whether the world switches
    "gp_ts, OnAverage(step=.1)": lambda switch: Ours(nr.OnAverage(step=0.1), adaptive=switch),
    "gp_ts, OnAverage(step=.05)": lambda switch: Ours(nr.OnAverage(step=PRICE), adaptive=switch),
}


def together(report):
    """Row together: shortfall and overspend in each world."""
    rounds = report.rounds or 1000
    for name, told in WORLDS.items():
        seeds, rows, first = report.seeds(4), [], None
        worlds = [World(seed, rounds, **told) for seed in seeds]
        for method, make in METHODS.items():
            found = np.array([played(world, make(bool(told.get("switch")))) for world in worlds])
            short, over, net = found[:, 0], np.maximum(found[:, 1], 0.0), found[:, 2]
            report.keep("together", name, method, seeds, shortfall=short, overspend=over, signed=found[:, 1], net=net)
            first = net if first is None else first
            means = (f"{each.mean():.4f}" for each in (short, over, net))
            rows.append([method, *means, difference(net, first, places=4)])
        head = ["policy", "shortfall", "overspend", "net loss", "net loss less the first's"]
        report.show(f"{name}, {rounds} rounds, {len(worlds)} seeds", head, rows)
