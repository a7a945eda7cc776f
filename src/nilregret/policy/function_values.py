"""Values of an output by its posterior: medians, quantiles and draws. The gain of the reward over the best point.

All numbers are in units of the output. A warp maps quantiles and draws, and its median is the mapped posterior mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, cast, final

import numpy as np

from .._utils.checks import Array
from .._utils.randomness import Randomness, Rng
from ..domains.search.boxes import AcquisitionFunction
from ..gp.fitting import Standardization, drawn
from ..slots.envelope import Envelope, Symmetric
from ..slots.scores import ExpectedImprovement, PointView, Score, TableView, UpperConfidenceBound
from .decide import pose
from .engines import Units, row_of
from .state import State

Cells = tuple[Array, Array | None]  # points `(n, d)` and the context of each `(n, c)`, or None
Beliefs = Sequence[tuple[Any, Units]]  # posteriors of one function, each with its units
BLOCK = 64  # pairs whose covariance matrix is made at once
LEAST_VARIANCE = 1e-300  # against a division by zero
FAR, STEPS = 9.0, 4001  # standard deviations and places of an integral
PLACES = np.linspace(-6.0, 6.0, 61)  # places of an integral over f at one point, standard deviations
TOGETHER = 1024  # points whose covariances with the best point are computed at once


def medians(state: State, channel: int, points: Array, contexts: Array | None) -> Array:
    """Returns the posterior medians of f, `(n,)`.

    Args:
        state: a state that has learned all outcomes.
        channel: number of the output: objectives first, then constraints.
        points: points of the domain, `(n, d)`.
        contexts: the context of each point, `(n, c)`, or None.
    """
    posterior = state.outputs.each[channel].posterior
    return posterior.units.back(posterior.belief.mean(state.outputs.engine.cells_of(points, contexts)))


def plausible(state: State, channel: int) -> Beliefs:
    """Returns the posterior of f under several plausible kernels and noises, each with its units.

    A fit takes one kernel for certain, so its bands are too narrow where trials are few. The posterior is the only one
    if nothing was fitted, or by maximum likelihood.

    Args:
        state: a state that has learned all outcomes. It is copied.
        channel: see `medians`.
    """
    data, found = state.copy().outputs.each[channel].data, []
    posterior, refit, sides = data.posterior, data.policy.fitting, data.policy.sides
    center, unit, warp = posterior.units
    everything = refit is not None and refit.outputs == "own"  # Such a fit sees imputed values, too.
    seen = [e for n, e in posterior.entries.items() if everything or data.pending.is_answer(n)]
    answers = [e for e in seen if e.target is not None]
    alone = posterior.bank is None and posterior.models is None and posterior.begun > 1
    if answers and alone and refit is not None and refit.prior != "none" and refit.standardize:
        rows, targets = np.array([row_of(e.trial) for e in answers]), np.array([e.target for e in answers])
        told = [
            math.nan if t.std is None else posterior.noise.variance(cast(float, t.reward), t.std) for t, _ in answers
        ]
        now = Standardization.of(targets)  # The units in use are of the answers that the last fit saw.
        scale = Standardization(center + now.mean * unit, now.std * unit)
        for one, ridge, mean in drawn(
            posterior.in_use.rescaled(1.0 / sides), rows / sides, now.to(targets), np.sqrt(told) / now.std,
            prior=refit.prior, noise=math.sqrt(posterior.ridge) / now.std, fit_noise=refit.noise != "given",
            bounds=refit.bounds(posterior.in_use, sides), seed=state.rounds.seed,
        ):  # fmt: skip
            data.rebuild(one.rescaled(sides), ridge, Standardization(float(scale.back(mean)), scale.std), warp)
            found.append((posterior.belief, posterior.units))
    return found or [(posterior.belief, posterior.units)]


def quantiles(beliefs: Beliefs, cells: Any, levels: Sequence[float]) -> Array:
    """Returns quantiles of f at cells, `(levels, n)`, of the normal law that has the moments of all beliefs.

    A warp maps the quantiles of this law.

    Args:
        beliefs: by `plausible`.
        cells: of the engine, n of them.
        levels: probabilities between 0 and 1.
    """
    from scipy.special import ndtri

    each = [units.rewards(*belief.predict(cells)) for belief, units in beliefs]
    means, stds = (np.stack(found) for found in zip(*each, strict=True))
    mean, warp = means.mean(axis=0), beliefs[0][1].warp
    std = np.sqrt((stds**2 + (means - mean) ** 2).mean(axis=0))
    found = mean + ndtri(np.asarray(levels, dtype=np.float64))[:, None] * std
    return found if warp is None else warp.back(found)


def draws(beliefs: Beliefs, cells: Any, rng: Rng, size: int) -> Array:
    """Returns functions drawn from beliefs (see `plausible`) in turn, jointly at n cells, `(size, n)`."""
    each = (beliefs[i % len(beliefs)] for i in range(size))
    return np.stack([units.back(belief.draw_at(rng, cells)) for belief, units in each])


def expected_gain(state: State, best: Cells, *, per_cost: bool = False) -> float:
    """Returns max_x E max(f(x) - f(b), 0) over points x, reward units.

    The search of the policy finds x. If constraints have posteriors of their own, the rule judges the points of this
    search. The gain counts only with the probability of feasibility.

    Args:
        state: a state that has learned all outcomes. This call uses it up.
        best: the point b, `(1, d)`, and the context under which both points are compared, `(1, c)`, or None.
        per_cost: True for max_x E max(f(x) - f(b), 0) / c(x), if the score has a posterior of the cost c (`PerCost`).
    """
    rounds, context = state.rounds, None if best[1] is None else best[1][0]
    randomness = Randomness(rounds.seed, rounds.count)
    _, question, _ = pose(state.memory, context, randomness, now=math.inf, available=None, forcing=None)
    if question is None:
        return 0.0
    score, costs, limits = _Gain(state, best), cast(Any, question.score), question.limits
    searched: Score = costs.of(score) if per_cost else score
    limits = None if limits is None else limits._replace(rule=limits.rule.beside(searched))
    engine, posterior = state.outputs.engine, state.reward.posterior
    with engine.blas:
        point = engine.choose(posterior.belief, question._replace(score=searched, limits=limits), None).point[None]
        gain = score.in_rewards_at(point, posterior.units) / (costs.at(point) if per_cost else 1.0)
    return gain if limits is None else gain * float(state.certain(point, context)[0])


def shortfall(state: State, best: Cells) -> float:
    """Returns max_x U(x) - L(b), reward units: with the confidence of its bounds, b loses at most this much.

    The search of the policy finds the largest upper bound U of a box or space. The arguments are those of
    `expected_gain`.
    """
    rounds, context = state.rounds, None if best[1] is None else best[1][0]
    randomness = Randomness(rounds.seed, rounds.count)
    _, question, _ = pose(state.memory, context, randomness, now=math.inf, available=None, forcing=None)
    if question is None:
        return math.inf
    engine, posterior = state.outputs.engine, state.reward.posterior
    with engine.blas:
        highest = engine.choose(posterior.belief, question._replace(score=UpperConfidenceBound()), None).point
        found = state.envelope(np.stack([highest, best[0][0]]), context)
    return float(found.upper.max() - found.lower[1])


@final
class _Gain(Score):
    """The score log E max(f(x) - f(b), 0) of a state, in units of the posterior, for a point b (see `expected_gain`).

    Where f(b) is known it is expected improvement.
    """

    in_rewards: ClassVar[bool] = False
    logarithm: ClassVar[bool] = True

    def __init__(self, state: State, best: Cells) -> None:
        self._engine, self._belief = state.outputs.engine, state.reward.posterior.belief
        self._context, self._cell = best[1], self._engine.cells_of(*best)
        self._mean, self._std = self._belief.predict(self._cell)

    def _moments(self, points: Array) -> tuple[Array, Array, Array]:
        """Returns mean and std of f at points `(n, d)`, and the covariance with f(b), each `(n,)`."""
        contexts = None if self._context is None else np.repeat(self._context, len(points), axis=0)
        cells, spread = self._engine.cells_of(points, contexts), self._belief.spread
        parts = (cells[i : i + TOGETHER] for i in range(0, len(cells), TOGETHER))
        shared = np.concatenate([spread.cross_covariance(part, self._cell)[:, 0] for part in parts])
        return *self._belief.predict(cells), shared

    def values(self, points: Array) -> Array:
        """Returns the scores of points `(n, d)`, `(n,)`."""
        mean, std, shared = self._moments(points)
        apart = np.sqrt(np.maximum(std**2 + self._std**2 - 2.0 * shared, 0.0))
        return ExpectedImprovement()(Envelope(mean - self._mean, apart, 0.0), 0.0)

    def in_rewards_at(self, point: Array, units: Units) -> float:
        """Returns E max(f(x) - f(b), 0) at a point `(1, d)`, reward units. Under a warp it is integrated over f(b)."""
        if units.warp is None:
            return units.unit * float(np.exp(self.values(point))[0])
        mean, std, shared = (float(each[0]) for each in self._moments(point))
        slope = shared / max(float(self._std[0]) ** 2, LEAST_VARIANCE)
        left = math.sqrt(max(std**2 - slope * shared, 0.0))  # std of f(x) given f(b)
        moved, weights = float(self._std[0]) * PLACES, np.exp(-0.5 * PLACES**2)
        known = zip(units.back(self._mean + moved).tolist(), (mean + slope * moved).tolist(), strict=True)
        gains = np.array([gain_over(value, given, left, units) for value, given in known])
        return float(gains @ weights / weights.sum())

    def on_table(self, view: TableView) -> Array:
        """Returns the scores of all arms."""
        return self.values(view.points)

    def on_points(self, view: PointView) -> AcquisitionFunction:
        """Returns the scores as a function, with numerical gradients."""
        return view.without_slopes(self.values)


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


def correlations(state: State, channel: int, left: Cells, right: Cells) -> Array:
    """Returns prior correlations of f between n pairs of points, each under its context, `(n,)`.

    Args:
        state: see `medians`.
        channel: see `medians`.
        left: points `(n, d)` and their contexts `(n, c)`, or None.
        right: the same of the other points.
    """
    engine, kernel = state.outputs.engine, state.outputs.each[channel].posterior.in_use
    mine, others = engine.cells_of(*left), engine.cells_of(*right)
    found = []
    for i in range(0, len(mine), BLOCK):
        a, b = list(mine[i : i + BLOCK]), list(others[i : i + BLOCK])
        between, one, two = (engine.prior_covariance(kernel, *pair).diagonal() for pair in ((a, b), (a, a), (b, b)))
        found.append(between / np.sqrt(np.maximum(one * two, LEAST_VARIANCE)))
    return np.concatenate(found) if found else np.zeros(0)
