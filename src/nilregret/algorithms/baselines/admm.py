"""ADMMBO: constrained Bayesian optimisation by the alternating direction method of multipliers.

| symbol | name | meaning | shape |
|---|---|---|---|
| x | `x` | result of the optimality step | (d,) |
| z_i | `z` | results of the feasibility steps | (N, d) |
| y_i | `y` | multipliers of x = z_i | (N, d) |
| rho | `rho` | price of x != z_i | |
| M | `price` | price of infeasibility | |
| phi = -f, c_i | | minimised, and to be at most 0 | |

The method of Ariafar, Coll-Font, Brooks & Dy 2019 looks for one good feasible point with few evaluations. It does not
limit the violations of the evaluated points.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import final

import numpy as np

from ..._utils.checks import LARGEST_REWARD, Array, frozen, integer, number, settle, shown
from ..._utils.randomness import Draws
from ...domains.domain import Box, Space
from ...domains.search.boxes import MOST_LOOKS
from ...domains.search.designs import uniform
from ...errors import InvalidInput
from ...gp import PointPosterior
from ...gp.fitting import fit
from ...kernels import Kernel, Matern
from ...policy.scripted import Answers, Play, Script, ScriptedPolicy
from ...serialize import description
from ...slots.objective import MOST_CONSTRAINTS
from ...storage.record import Trial

FEASIBLE = 0.01  # The largest c_i of an incumbent.
ABSOLUTE, RELATIVE = 0.05, 1.5 * 0.05  # Tolerances of the residuals.
SMALLEST_NOISE = 1e-6  # A variance, in units of the kernel's scale.
EVERY = 5  # The number of new points between two fits.


@final
@description(frozen=True, kw_only=True)
class Admmbo(ScriptedPolicy):
    """The policy that `admmbo` returns."""

    domain: Box | Space
    constraints: int
    rho: float
    price: float
    first: tuple[int, int]
    more: tuple[int, int]
    start: int
    steps: int
    candidates: int
    algorithm: str = "admmbo"

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Box | Space):
            raise InvalidInput(
                f"This method draws points: `domain` must be a `Box` or a `Space`, not {type(self.domain).__name__}."
            )
        if self.domain.limits is not None:
            raise InvalidInput(
                "This method keeps no known limits: its steps know only ranges. Take the policy `auto`, or a "
                "space without `where`."
            )
        for name in ("constraints", "start", "steps", "candidates"):
            high = MOST_CONSTRAINTS if name == "constraints" else MOST_LOOKS
            settle(self, **{name: integer(name, getattr(self, name), low=1, high=high)})
        for name in ("first", "more"):
            pair = getattr(self, name)
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise InvalidInput(
                    f"`{name}` is {shown(pair)}: it must be two numbers of trials, (optimality, feasibility)."
                )
            f, c = pair
            settle(self, **{name: (integer(name, f, low=1), integer(name, c, low=1))})
        for name in ("rho", "price"):
            settle(self, **{name: number(name, getattr(self, name), low=1e-100, high=LARGEST_REWARD)})

    def begin(self) -> Script:
        """Returns a new run."""
        return _Alternation(self)


def admmbo(
    domain: Box | Space,
    *,
    constraints: int = 1,
    rho: float = 0.1,
    price: float = 50.0,
    first: tuple[int, int] = (10, 50),
    more: tuple[int, int] = (5, 5),
    start: int = 2,
    steps: int = 15,
    candidates: int = 10_000,
) -> Admmbo:
    """Returns ADMMBO (Ariafar et al. 2019), for comparison, with a tenth of the candidates of the authors' code.

    ADMMBO is constrained Bayesian optimisation. Each outer iteration looks for a good point near the feasible ones
    (optimality step). Then, for each constraint, it looks for a feasible point near the good one (feasibility step).
    Both steps maximise the expected improvement, on Gaussian processes fitted by maximum likelihood. When the points
    agree, or after `steps` iterations, the search stops. From then on the policy asks for its best point.

    Args:
        domain: a box, or a space of parameters. Points of a space are drawn in the encoding and moved to the nearest
            valid points.
        constraints: N, the number of constraint values of each trial.
        rho: the first penalty, reward units over squared units of the box.
        price: M.
        first: trials of the first optimality step and of the first feasibility step of each constraint.
        more: trials of the later steps.
        start: uniform points at the beginning.
        steps: the largest number of outer iterations.
        candidates: uniform points among which expected improvement is maximised (1e5 in the authors' code).
    """
    return Admmbo(
        domain=domain, constraints=constraints, rho=rho, price=price, first=first, more=more, start=start, steps=steps,
        candidates=candidates,
    )  # fmt: skip


class _Surrogate:
    """A Gaussian process of mean 0 on the observations of one function."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self.points, self.values = np.zeros((0, dimension)), np.zeros(0)
        self._kernel: Kernel = Matern(2.5, lengthscale=0.25, scale=1.0)
        self._noise, self._fitted = 0.1, 0

    def add(self, point: Array, value: float) -> None:
        self.points = np.vstack([self.points, point])
        self.values = np.append(self.values, value)

    def predict(self, at: Array) -> tuple[Array, Array]:
        """Returns mean and standard deviation, `(n,)` each."""
        self._fit()
        ridge = max(self._noise**2, SMALLEST_NOISE * float(self._kernel.diagonal(at[:1])[0]))
        posterior = PointPosterior(self._kernel, self._dimension, ridge)
        if len(self.values):
            posterior.extend(self.points, self.values)
        return posterior.predict(at)

    def _fit(self) -> None:
        count = len(self.values)
        few = len(np.unique(self.points, axis=0)) < 3 or np.ptp(self.values) == 0.0
        if few or (self._fitted and count < self._fitted + EVERY):
            return
        found = fit(self._kernel, self.points, self.values, noise=self._noise, prior=None, restarts=0)
        self._kernel, self._noise, self._fitted = found.kernel, found.noise, count


class _Alternation(Script):
    """A run of ADMMBO."""

    def __init__(self, policy: Admmbo) -> None:
        self._policy = policy
        d, n = policy.domain.dimension, policy.constraints
        self.multipliers = frozen(np.full(n, math.nan))  # ADMMBO has multipliers of x = z, and none of the constraints.
        self._objective = _Surrogate(d)
        self._constraints = [_Surrogate(d) for _ in range(n)]
        self._y = np.zeros((n, d))
        self._z = np.repeat(policy.domain.upper[None], n, axis=0)
        self._rho = policy.rho
        self._results: list[tuple[float, float, Array]] = []  # (worst c, -f, point) of each step.
        self._evaluated: dict[bytes, tuple[float, float]] = {}  # point -> (worst c, -f)

    def play(self, first: Answers) -> Play:
        policy = self._policy
        rng = first.randomness.draws
        trials, randomness = yield uniform(policy.domain, policy.start, rng)
        for trial in trials:  # Both steps share these.
            self._learn(trial, [self._objective], [0])
            self._learn(trial, self._constraints, range(1, 1 + policy.constraints))
        rng = randomness.draws
        for iteration in range(policy.steps):
            budget = policy.first if iteration == 0 else policy.more
            rng = yield from self._optimality(budget[0], rng)
            x = self._best_of(self._objective, self._augmented(self._objective.points) + self._objective.values)
            before = self._z.copy()
            for i in range(policy.constraints):
                rng = yield from self._feasibility(i, x, budget[1], rng)
                surrogate = self._constraints[i]
                self._z[i] = self._best_of(surrogate, (surrogate.values > 0.0) + self._apart(i, x, surrogate.points))
            self._y += self._rho * (x - self._z)
            if self._converged(x, before):
                break
        best = self._incumbent()
        while True:
            yield best[None]

    def _optimality(self, budget: int, rng: Draws) -> Generator[Array, Answers, Draws]:
        """Minimises u(x) = phi(x) + (N rho / 2) |x - zbar + ybar / rho|^2 by expected improvement."""
        from scipy.special import ndtr

        surrogate = self._objective
        for _ in range(budget):
            at = uniform(self._policy.domain, self._policy.candidates, rng)
            choice = at[0]
            if len(surrogate.values):
                mean, std = surrogate.predict(at)  # They are of u - quadratic, since the prior mean is the quadratic.
                least = float((surrogate.values + self._augmented(surrogate.points)).min())
                gain = least - mean - self._augmented(at)
                score = gain / np.maximum(std, 1e-12)
                choice = at[int((gain * ndtr(score) + std * np.exp(-0.5 * score**2) / math.sqrt(2 * math.pi)).argmax())]
            trials, randomness = yield choice[None]
            self._learn(trials[0], [surrogate], [0])
            rng = randomness.draws
        return rng

    def _feasibility(self, i: int, x: Array, budget: int, rng: Draws) -> Generator[Array, Answers, Draws]:
        """Minimises h(z) = 1[c_i(z) > 0] + (rho / 2M) |x - z + y_i / rho|^2 by expected improvement."""
        from scipy.special import ndtr

        surrogate = self._constraints[i]
        for _ in range(budget):
            at = uniform(self._policy.domain, self._policy.candidates, rng)
            choice = at[0]
            if len(surrogate.values):
                mean, std = surrogate.predict(at)
                p = ndtr(-mean / np.maximum(std, 1e-12))  # P(c_i <= 0). The authors' code divides by the variance.
                least = float(((surrogate.values > 0.0) + self._apart(i, x, surrogate.points)).min())
                q = least - self._apart(i, x, at)
                choice = at[int(np.where(q < 0.0, 0.0, np.where(q < 1.0, q * p, q - (1.0 - p))).argmax())]
            trials, randomness = yield choice[None]
            self._learn(trials[0], [surrogate], [1 + i])
            rng = randomness.draws
        return rng

    def _valid(self, point: Array) -> Array:
        domain = self._policy.domain
        return domain.snap(point[None])[0] if isinstance(domain, Space) else point

    def _augmented(self, points: Array) -> Array:
        """Returns (N rho / 2) |x - zbar + ybar / rho|^2, `(n,)`."""
        offset = points - self._z.mean(axis=0) + self._y.mean(axis=0) / self._rho
        return np.asarray(0.5 * len(self._z) * self._rho * (offset**2).sum(axis=1))

    def _apart(self, i: int, x: Array, points: Array) -> Array:
        """Returns (rho / 2M) |x - z + y_i / rho|^2, `(n,)`."""
        offset = x - points + self._y[i] / self._rho
        return np.asarray(self._rho / (2.0 * self._policy.price) * (offset**2).sum(axis=1))

    def _learn(self, trial: Trial, surrogates: list[_Surrogate], values: range | list[int]) -> None:
        """Records an answer. A failed trial, or one without constraint values, is ignored."""
        if trial.reward is None or trial.constraints is None:
            return
        values_told = np.concatenate([[-trial.reward], trial.constraints])
        self._evaluated[trial.point.tobytes()] = (float(trial.constraints.max()), -trial.reward)
        for surrogate, value in zip(surrogates, values, strict=True):
            surrogate.add(trial.point, float(values_told[value]))

    def _best_of(self, surrogate: _Surrogate, scores: Array) -> Array:
        """Returns the evaluated point with the smallest score, which is the result of a step."""
        if not len(scores):
            return np.asarray(self._z.mean(axis=0))
        point = np.asarray(surrogate.points[int(scores.argmin())])
        self._results.append((*self._evaluated[point.tobytes()], point))
        return point

    def _converged(self, x: Array, before: Array) -> bool:
        """Returns whether the residuals are small. If not, adapts rho."""
        absolute = math.sqrt(len(x)) * ABSOLUTE
        primal = np.linalg.norm(x - self._z, axis=1)
        dual = self._rho * np.linalg.norm(self._z - before, axis=1)
        size = np.maximum(np.linalg.norm(x), np.linalg.norm(self._z, axis=1))
        pull = np.linalg.norm(self._rho * self._y, axis=1)
        if (primal < absolute + RELATIVE * size).all() and (dual < absolute + RELATIVE * pull).all():
            return True
        if primal.mean() > 10.0 * dual.mean():
            self._rho *= 2.0
        elif dual.mean() > 10.0 * primal.mean():
            self._rho /= 2.0
        return False

    def _incumbent(self) -> Array:
        """Returns the best (nearly) feasible result of a step, or else the one that violates least."""
        if not self._results:
            return self._valid(np.asarray(self._z.mean(axis=0)))
        feasible = [result for result in self._results if result[0] <= FEASIBLE]
        if feasible:
            return min(feasible, key=lambda result: result[1])[2]
        return min(self._results, key=lambda result: result[0])[2]
