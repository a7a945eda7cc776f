"""Values of f by the posterior of the reward: medians, quantiles, draws, and the gain that one more trial is worth.

All numbers are in reward units. A warp maps quantiles and draws, and its median is the mapped posterior mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .._utils.checks import Array
from .._utils.randomness import Randomness
from ..slots.envelope import Symmetric
from ..slots.scores import ExpectedImprovement
from .decide import posed
from .engines import Units
from .state import State

Cells = tuple[Array, Array | None]  # points `(n, d)` and the context of each `(n, c)`, or None
BLOCK = 64  # pairs whose covariance matrix is made at once
LEAST_VARIANCE = 1e-300  # against a division by zero
FAR, STEPS = 9.0, 4001  # standard deviations and places of an integral


def medians(state: State, points: Array, contexts: Array | None) -> Array:
    """Returns the posterior medians of f, `(n,)`.

    Args:
        state: a state that has learned all outcomes.
        points: points of the domain, `(n, d)`.
        contexts: the context of each point, `(n, c)`, or None.
    """
    posterior = state.reward.posterior
    return posterior.units.back(posterior.belief.mean(state.outputs.engine.cells_of(points, contexts)))


def quantiles(state: State, points: Array, contexts: Array | None, levels: Sequence[float]) -> Array:
    """Returns quantiles of the posterior of f, `(levels, n)`.

    Args:
        state: see `medians`.
        points: see `medians`.
        contexts: see `medians`.
        levels: probabilities between 0 and 1.
    """
    from scipy.special import ndtri

    posterior = state.reward.posterior
    mean, std = posterior.belief.predict(state.outputs.engine.cells_of(points, contexts))
    return posterior.units.back(mean + ndtri(np.asarray(levels, dtype=np.float64))[:, None] * std)


def draws(state: State, points: Array, contexts: Array | None, rng: np.random.Generator, size: int) -> Array:
    """Returns functions drawn from the posterior of f, jointly at n points, `(size, n)`.

    Args:
        state: see `medians`.
        points: see `medians`.
        contexts: see `medians`.
        rng: source of randomness.
        size: number of functions.
    """
    posterior = state.reward.posterior
    cells = state.outputs.engine.cells_of(points, contexts)
    return posterior.units.back(np.stack([posterior.belief.draw_at(rng, cells) for _ in range(size)]))


def expected_gain(state: State, incumbent: float) -> float:
    """Returns the largest expected improvement of f over a value, reward units, at least 0.

    The search of the policy finds the point of the largest expected improvement. If constraints have posteriors of
    their own, the rule judges the points of this search. The gain counts only with the probability of feasibility.

    Args:
        state: a state without contexts. This call uses it up.
        incumbent: the value of f to improve on, reward units.
    """
    score, rounds = ExpectedImprovement(), state.rounds
    randomness = Randomness(rounds.seed, rounds.count)
    _, question, _ = posed(state.memory, None, None, randomness, now=math.inf, available=None)
    if question is None:
        return 0.0
    limits = question.limits
    limits = None if limits is None else limits._replace(rule=limits.rule.beside(score))
    engine, posterior = state.outputs.engine, state.reward.posterior
    with engine.blas:
        point = engine.choose(posterior.belief, question._replace(score=score, limits=limits), None).point[None]
    mean, std = (float(each[0]) for each in posterior.belief.predict(engine.cells_of(point, None)))
    gain = gain_over(incumbent, mean, std, posterior.units)
    return gain if limits is None else gain * float(state.certain(point, None)[0])


def gain_over(incumbent: float, mean: float, std: float, units: Units) -> float:
    """Returns the expected improvement of a reward over a value, reward units.

    Under a warp it is the integral of P(reward > y) over y above the value, by the trapezoidal rule.

    Args:
        incumbent: the value to improve on, reward units.
        mean: mean of the reward in the units of the posterior, where it is normal.
        std: its standard deviation.
        units: of the posterior.
    """
    from scipy.special import ndtr

    if units.warp is None:
        found = Symmetric(1.0)(*units.rewards(np.array([mean]), np.array([max(std, LEAST_VARIANCE)])))
        return float(np.exp(ExpectedImprovement()(found, incumbent))[0])
    least = max((float(units.scaled(incumbent)) - mean) / max(std, LEAST_VARIANCE), -FAR)
    if least > FAR:
        return 0.0
    places = np.linspace(least, FAR, STEPS)
    rewards, above = units.back(mean + std * places), ndtr(-places)
    below = float(rewards[0]) - incumbent  # of the part that is certain
    return max(below, 0.0) + float((np.diff(rewards) * (above[1:] + above[:-1])).sum()) / 2.0


def correlations(state: State, left: Cells, right: Cells) -> Array:
    """Returns prior correlations of f between n pairs of points, each under its context, `(n,)`.

    Args:
        state: see `medians`.
        left: points `(n, d)` and their contexts `(n, c)`, or None.
        right: the same of the other points.
    """
    engine, kernel = state.outputs.engine, state.reward.posterior.in_use
    mine, others = engine.cells_of(*left), engine.cells_of(*right)
    found = []
    for i in range(0, len(mine), BLOCK):
        a, b = list(mine[i : i + BLOCK]), list(others[i : i + BLOCK])
        between, one, two = (engine.prior_covariance(kernel, *pair).diagonal() for pair in ((a, b), (a, a), (b, b)))
        found.append(between / np.sqrt(np.maximum(one * two, LEAST_VARIANCE)))
    return np.concatenate(found) if found else np.zeros(0)
