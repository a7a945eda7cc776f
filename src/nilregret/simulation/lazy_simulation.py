"""Simulations of policies that decide rarely, with one step for each decision."""

from __future__ import annotations

import math

import numpy as np

from .._utils.errors import InvalidInput
from .._utils.randomness import simulation_generator
from ..policy.policy import Policy
from ..study.play_rewards import Rewards
from ..study.study import Study
from .environments import Environment
from .results import Entries, Run

AT_ONCE = 65_536  # The number of rewards drawn at a time, which bounds the memory of a long run.


def simulate_lazily(policy: Policy, env: Environment, rounds: int, *, seed: int) -> tuple[Run, dict[str, str]]:
    """Returns the run, and the warnings of its study.

    The noise of round t is the same in every simulation with this seed.
    """
    if not env.still or env.delay is not None or env.constraint_count:
        raise InvalidInput(
            "A policy with `switching` plays a choice for many rounds, and this environment has delays, constraints, "
            "contexts or changes, in which each round is another one: take an environment without, or a policy "
            "without `switching`."
        )
    now = 0.0
    study = Study(policy, seed=seed, clock=lambda: now)
    study.quiet = True
    rng, t = simulation_generator(seed, "rewards"), 0
    regret, expected = [], []
    while t < rounds:
        trial = study.ask()
        count = min(trial.repeats, rounds - t)
        value, best = env.expected(trial)
        total, squares = _noise(rng, count, env.noise)
        if count == 1:
            study.tell(trial.number, value + total)
        else:
            study.tell(trial.number, Rewards(count=count, sum=total, squares=squares, about=value))
        expected.append(value)
        regret.append(best - value)
        t += count
        now += env.interval * count
    trials = study.trials
    entries = Entries(
        points=np.array([trial.point for trial in trials]),
        arms=np.array([-1 if trial.arm is None else trial.arm for trial in trials], dtype=np.intp),
        explored=np.array([trial.explored for trial in trials]),
        plays=np.array([trial.times for trial in trials], dtype=np.int64),
        means=np.array([trial.reward for trial in trials]),
        scatters=np.array([trial.scatter for trial in trials]),
        expected=np.array(expected),
        regret=np.array(regret),
        noise=env.noise,
        seed=seed,
    )
    return Run.of(entries), study.held_warnings


def _noise(rng: np.random.Generator, count: int, noise: float) -> tuple[float, float]:
    """Returns the sum and the sum of squares of the noise of `count` rounds."""
    sums, squares = [], []
    for start in range(0, count, AT_ONCE):
        drawn = noise * rng.standard_normal(min(AT_ONCE, count - start))
        sums.append(float(drawn.sum()))
        squares.append(float(drawn @ drawn))
    return math.fsum(sums), math.fsum(squares)
