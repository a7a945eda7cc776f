"""Runs of `nr.Safe(slope=)` on machines without a grid: how much of what is reachable is found and played."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
from scipy.optimize import minimize

import nilregret as nr
from nilregret.slots import safe, slopes
from nilregret.slots.envelope import ConstantWidth


@dataclass
class Machine:
    """A reward, a constraint g and slopes that it keeps, of points or of dictionaries of parameters."""

    domain: nr.Box | nr.Space
    reward: Callable
    g: Callable
    slope: dict | list
    start: dict | list
    bound: float  # of the noise of g
    noise: float  # of the reward
    best: float

    def policy(self, algorithm, factor):
        slope = self.slope
        told = {k: factor * v for k, v in slope.items()} if isinstance(slope, dict) else [factor * v for v in slope]
        part = nr.Safe(start=[self.start], slope=told, noise=self.bound)
        if algorithm == "auto":
            return nr.auto(self.domain, constraints=part)
        kernel = self.best**2 / 4 * nr.kernel_for(self.domain)
        policy = nr.gp_ucb(self.domain, kernel, noise=self.noise, prior_mean=self.best / 2, constraints=part)
        return policy.using(confidence=ConstantWidth(value=1.5))


def heater(seed):  # noqa: ARG001  always the same
    """Returns the heater of docs/constraints.md: degrees by power, and a fan."""
    return Machine(
        nr.Space(power=nr.Float(0, 100), fan=nr.Choice("low", "high")),
        lambda p: p["power"] / 100 - 0.1 * (p["fan"] == "high"),
        lambda p: 0.9 * p["power"] - 8 * (p["fan"] == "high") - 50,
        {"power": 0.9, "fan": 8.0}, {"power": 20, "fan": "low"}, 1.5, 0.1, 50 / 90,
    )  # fmt: skip


def milling(seed):  # noqa: ARG001  always the same
    """Returns the milling machine of the tutorial: vibration by speed and feed."""

    def vibration(p):
        x, y = (p["speed"] - 2000.0) / 10_000.0, (p["feed"] - 100.0) / 1100.0
        return 5.0 * y + 4.0 * np.exp(-(((x - 0.45) / 0.22) ** 2)) * (0.3 + y) + 3.0 * x * y + 2.5 * x**2 - 4.0

    def removal(p):
        return p["feed"] / 100.0 * (0.6 + 0.6 * (p["speed"] - 2000.0) / 10_000.0)

    space = nr.Space(speed=nr.Float(2000, 12_000), feed=nr.Float(100, 1200))
    speed, feed = np.meshgrid(np.linspace(2000, 12_000, 801), np.linspace(100, 1200, 801), indexing="ij")
    every = {"speed": speed, "feed": feed}
    level = vibration(every)
    steepest = [np.abs(np.diff(level, axis=axis)).max() for axis in (0, 1)]
    slope = {"speed": steepest[0] / 12.5, "feed": steepest[1] / 1.375}
    best = float(removal(every)[level <= 0.0].max())
    return Machine(space, removal, vibration, slope, {"speed": 3250, "feed": 237.5}, 0.4, 0.3, best)


def six(seed):
    """Returns a hill over six parameters whose top is too hot."""
    rng = np.random.default_rng([seed, 6])
    top, steep, heat = rng.uniform(0.55, 0.95, 6), rng.uniform(0.5, 1.5, 6), rng.uniform(0.2, 0.6, 6)
    start = np.full(6, 0.15)

    def reward(x):
        return float(np.exp(-np.sum(steep * np.square((x - top) / 0.5)) / 3.0))

    def degrees(x):
        return float(x @ heat + 0.3 * np.sin(3.0 * x[0] + seed) * x[1])

    limit = 0.4 * degrees(start) + 0.6 * degrees(top)
    rules = {"type": "ineq", "fun": lambda x: limit - degrees(x)}
    ends = [
        minimize(lambda x: -reward(x), at, bounds=[(0, 1)] * 6, constraints=rules)
        for at in [start, *rng.uniform(0.0, 0.6, (6, 6))]
    ]
    best = max(reward(end.x) for end in ends if degrees(end.x) <= limit + 1e-6)
    slope = (heat + np.array([0.9, 0.3, 0, 0, 0, 0])).tolist()
    return Machine(
        nr.Box(np.zeros(6), np.ones(6)), reward, lambda x: degrees(x) - limit, slope, start.tolist(), 0.02, 0.05, best
    )


def _at_random(point, surface, view, judged):  # noqa: ARG001  of `certified_point`
    """Returns a random certified point, mostly on the border."""
    search = slopes.CertifiedSearch(view.domain, slopes.cones_of(view.dual_state, view.context))
    centres = search.centres(surface, point[None])
    found = np.concatenate([centres, search.border(centres, point[None])])
    return found[view.randomness.draws.integers(len(found))].copy()


def _kept(*_):
    """Returns None: no step pays."""


RULES = {  # what stands in the place of what
    "steps": nullcontext,
    "no steps": lambda: patch.object(slopes, "_step", _kept),
    "random": lambda: patch.object(safe, "certified_point", _at_random),
}


def _run(machine, policy, rounds, seed):
    """Returns shares of the best reward `(rounds,)`, the largest g, and seconds of CPU time of each ask."""
    study, rng = nr.Study(policy, seed=seed), np.random.default_rng(seed)
    shares, largest, seconds = [], -np.inf, []
    for _ in range(rounds):
        begun = time.process_time()
        trial = study.ask()
        seconds.append(time.process_time() - begun)
        at = trial.parameters or trial.point
        reward, g = machine.reward(at), machine.g(at)
        shares.append(reward / machine.best)
        largest = max(largest, g)
        told = g + machine.bound * rng.uniform(-1, 1)
        study.tell(trial, reward + machine.noise * rng.standard_normal(), constraints=[told])
    return np.array(shares), largest, seconds


def report(seeds, rounds):
    print(f"machines without a grid, {rounds} rounds, {len(seeds)} runs: shares of the best safe reward")
    print("machine  algorithm slopes told  rule       best by 40%, all   mean of last half   largest g   ms an ask")
    for make in (heater, milling, six):
        for algorithm in ("gp_ucb", "auto"):
            for factor, rule in ((1.0, "steps"), (1.0, "no steps"), (1.0, "random"), (2.0, "steps")):
                runs = []
                for seed in seeds:
                    machine = make(seed)
                    with RULES[rule]():
                        runs.append(_run(machine, machine.policy(algorithm, factor), rounds, seed))
                shares, largest, seconds = (np.array(each) for each in zip(*runs, strict=True))
                early = shares[:, : max(2 * rounds // 5, 1)].max(axis=1).mean()
                print(
                    f"{make.__name__:8s} {algorithm:9s} x {factor:g}          {rule:9s} {early:8.1%} "
                    f"{shares.max(axis=1).mean():8.1%} {shares[:, rounds // 2 :].mean():16.1%} {largest.max():16.3f} "
                    f"{1e3 * seconds.mean():8.0f}",
                    flush=True,
                )
