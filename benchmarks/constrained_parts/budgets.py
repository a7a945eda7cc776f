"""Runs of `auto` under a budget on average, with the warp of rewards and without."""

from dataclasses import dataclass, replace

import bench
import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import linprog

import nilregret as nr

WARPS = ("half-rank", "none")
ACTIONS = 30


@dataclass
class Budget:
    """Reward f and use above the budget g on a line, the best reward of a mixture, and the price of a unit of g."""

    line: np.ndarray
    f: np.ndarray
    g: np.ndarray
    noise: tuple

    def __post_init__(self):
        found = linprog(-self.f, A_ub=[self.g], b_ub=[0.0], A_eq=np.ones((1, len(self.f))), b_eq=[1.0])
        self.best, self.price = -found.fun, -found.ineqlin.marginals[0]

    def play(self, boxed, warp, step, seed, rounds):
        """Returns regret against the mixture, violation and both at the price, all a round."""
        domain = nr.Box(self.line[:1], self.line[-1:]) if boxed else nr.Arms(self.line[:, None])
        policy = nr.auto(domain, constraints=nr.OnAverage(step=step))
        study = bench.quiet(policy.using(refit=replace(policy.refit, warp=warp)), seed=seed)
        f, g = (CubicSpline(self.line, each) for each in (self.f, self.g))
        rng, total = np.random.default_rng([seed, 5]), np.zeros(2)
        for _ in range(rounds):
            trial = study.ask()
            truth = np.array([float(f(trial.point[0])), float(g(trial.point[0]))])
            reward, use = truth + self.noise * rng.standard_normal(2)
            study.tell(trial, reward, constraints=[use])
            total += truth
        regret, violation = self.best - total[0] / rounds, max(total[1] / rounds, 0.0)
        return regret, violation, regret + self.price * violation


def coupons(seed, cliff=0.0):  # noqa: ARG001
    x = np.arange(11.0)
    return Budget(x, 20.0 * (1.0 - np.exp(-x / 4.0)), x - 3.0, (1.0, 0.0))


def drawn(seed, cliff=0.0):
    """Draws a world as those of `average`, without contexts, whose best action exceeds the budget."""
    x, rng = np.linspace(0, 1, ACTIONS), np.random.default_rng([seed, 77])
    root = bench.root(nr.SquaredExponential(0.2), x[:, None])
    while True:
        f, g = root @ rng.standard_normal(ACTIONS), root @ rng.standard_normal(ACTIONS)
        if g.min() < -0.3 and g[f.argmax()] > 0.3:
            return Budget(x, f - cliff * (x < 0.2), g, (0.1, 0.1))


def report(seeds, rounds):
    print(f"budgets: `auto`, T = {rounds}, {len(seeds)} runs; less is better; none less half-rank with 95%")
    print("world                   step  regret, half-rank    none  V_T / T, half-rank    none  difference, priced")
    for title, world, boxed, steps, cliff in (
        ("coupons, arms", coupons, False, (0.1, 1.0), 0.0), ("coupons, continuous", coupons, True, (0.1, 1.0), 0.0),
        ("drawn, arms", drawn, False, (0.03, 0.1), 0.0), ("drawn, continuous", drawn, True, (0.03, 0.1), 0.0),
        ("a cliff of 30, arms", drawn, False, (0.1,), 30.0),
    ):  # fmt: skip
        for step in steps:
            found = np.array([
                [world(seed, cliff).play(boxed, warp, step, seed, rounds) for warp in WARPS] for seed in seeds
            ])  # fmt: skip
            (regret, violation, _), (bare, over, _) = found.mean(axis=0)
            by = bench.difference(found[:, 1, 2], found[:, 0, 2])
            print(f"{title:22s} {step:5g} {regret:18.3f} {bare:7.3f} {violation:19.3f} {over:7.3f}  {by}", flush=True)
