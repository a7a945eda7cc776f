"""Standard test functions with a known maximum, and problems with constraints and known optima.

| name | f(x) | domain | maximum |
|---|---|---|---|
| `rosenbrock` | 10 - 100 (x_2 - x_1^2)^2 - (1 - x_1)^2 | [0, 1]^2 | 10 |
| `hartmann3` | sum_i omega_i exp(-sum_j A_ij (x_j - P_ij)^2) | [0, 1]^3 | 3.862780 |
| `hartmann6` | the same in six dimensions | [0, 1]^6 | 3.322368 |
| `branin` | -v^2 - 10 (1 - 1 / (8 pi)) cos x_1 - 10 | [-5, 10] x [0, 15] | -0.397887 |

with v = x_2 - 5.1 x_1^2 / (4 pi^2) + 5 x_1 / pi - 6.
Rosenbrock and Hartmann have the signs of Azimi et al. (2012). The constants of Hartmann and Branin are those of Dixon
and Szego (1978).

Problems with constraints that hold on average, and with known optima (Shi & Eryilmaz 2022, appendix E).

| symbol | name | meaning | shape |
|---|---|---|---|
| f | `reward` | maximised | (n, d) -> (n,) |
| g | `constraint` | satisfied when <= 0 | (n, d) -> (n, 1) |
| x* | `argmax` | the best point with g <= 0 | (d,) |
| U_i(x_i) | | utility of server i at data rate x_i; U_i(0) = 0, U_i(2) = 1 | |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, finite_array, frozen, points_array, shown
from ..domains.domain import Arms, Box
from ..errors import InvalidInput
from .environment import Environment


@final
class KnownFunction:
    """A function of points `(n, d)` with its domain and its maximum.

    Attributes:
        domain: the box on which the function is usually maximised.
        argmax: every maximiser in the box, `(m, d)`.
        best: the maximum.
    """

    def __init__(
        self, name: str, formula: Callable[[Array], Array], *, domain: Box, argmax: npt.ArrayLike, best: float
    ) -> None:
        self._name, self._formula = name, formula
        self.domain, self.best = domain, best
        self.argmax = frozen(points_array("argmax", argmax, dimension=domain.dimension))

    def __call__(self, points: npt.ArrayLike) -> Array:
        """Values at points `(n, d)`, `(n,)`, also outside the box."""
        return self._formula(points_array("points", points, dimension=self.domain.dimension))

    def __repr__(self) -> str:
        return self._name

    def environment(self, *, noise: float = 0.0, arms: Arms | None = None) -> Environment:
        """Returns an environment on the box, or on arms in the box (`function.domain.sample(200, seed=0)`)."""
        if arms is None:
            return Environment(self, domain=self.domain, noise=noise, best=self.best)
        if not isinstance(arms, Arms) or arms.dimension != self.domain.dimension:
            raise InvalidInput(f"`arms` must be Arms of dimension {self.domain.dimension}, not {shown(arms)}.")
        return Environment(self, domain=arms, noise=noise)


def _rosenbrock(x: Array) -> Array:
    return np.asarray(10.0 - 100.0 * (x[:, 1] - x[:, 0] ** 2) ** 2 - (1.0 - x[:, 0]) ** 2)


def _branin(x: Array) -> Array:
    valley = x[:, 1] - 5.1 / (4.0 * math.pi**2) * x[:, 0] ** 2 + 5.0 / math.pi * x[:, 0] - 6.0
    return np.asarray(-(valley**2) - 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * np.cos(x[:, 0]) - 10.0)


def _hartmann(A: Array, P: Array) -> Callable[[Array], Array]:
    omega = np.array([1.0, 1.2, 3.0, 3.2])

    def formula(x: Array) -> Array:
        squares = (x[:, None, :] - P) ** 2  # (n, 4, d)
        return np.asarray(np.exp(-(A * squares).sum(axis=2)) @ omega)

    return formula


_A3 = np.array([[3.0, 10.0, 30.0], [0.1, 10.0, 35.0], [3.0, 10.0, 30.0], [0.1, 10.0, 35.0]])
_P3 = np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]) / 1e4
_A6 = np.array(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
_P6 = (
    np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    )
    / 1e4
)


def _unit(dimension: int) -> Box:
    return Box(np.zeros(dimension), np.ones(dimension))


rosenbrock = KnownFunction("rosenbrock", _rosenbrock, domain=_unit(2), argmax=[[1.0, 1.0]], best=10.0)
# The maximisers of Hartmann are zeros of the gradient, found by Newton's method in double precision.
hartmann3 = KnownFunction(
    "hartmann3",
    _hartmann(_A3, _P3),
    domain=_unit(3),
    argmax=[[0.114588876655069, 0.555648894616930, 0.852546984686677]],
    best=3.862779787332663,
)
hartmann6 = KnownFunction(
    "hartmann6",
    _hartmann(_A6, _P6),
    domain=_unit(6),
    argmax=[
        [
            0.201689511006705,
            0.150010691823458,
            0.476873974221897,
            0.275332430494056,
            0.311651616600113,
            0.657300534065621,
        ]
    ],
    best=3.322368011415515,
)
branin = KnownFunction(
    "branin",
    _branin,
    domain=Box([-5.0, 0.0], [10.0, 15.0]),
    argmax=[[-math.pi, 12.275], [math.pi, 2.275], [3.0 * math.pi, 2.475]],  # cos x_1 = -1 and v = 0.
    best=-10.0 / (8.0 * math.pi),
)


PRICES, FIXED, BUDGET = np.array([0.2, 0.4, 0.8, 1.2]), 1.0, 3.0  # Electricity h(x) = 1 + prices . x is at most 3.
FASTEST = 2.0  # The highest data rate.
CELLS = 2000  # The number of cells of the budget in dynamic programming.


@final
class ConstrainedProblem:
    """A reward and a constraint on a box.

    Attributes:
        domain: the box.
        argmax: the best point that satisfies the constraint, `(d,)`.
        best: the reward of this point.
    """

    def __init__(
        self,
        name: str,
        *,
        domain: Box,
        reward: Callable[[Array], Array],
        constraint: Callable[[Array], Array],
        argmax: npt.ArrayLike,
    ) -> None:
        self._name, self._reward, self._constraint, self.domain = name, reward, constraint, domain
        self.argmax = frozen(finite_array("argmax", argmax))
        self.best = float(reward(self.argmax[None])[0])

    def reward(self, points: npt.ArrayLike) -> Array:
        """Returns expected rewards at points `(n, d)`, `(n,)`."""
        return self._reward(points_array("points", points, dimension=self.domain.dimension))

    def constraint(self, points: npt.ArrayLike) -> Array:
        """Returns expected constraint values at points `(n, d)`, `(n, 1)`."""
        return self._constraint(points_array("points", points, dimension=self.domain.dimension))[:, None]

    def __repr__(self) -> str:
        return self._name

    def environment(self, *, noise: float = 0.1, constraint_noise: Any = 0.0) -> Environment:
        """Returns an environment on the box, with regret measured against `best`."""
        return Environment(
            self.reward,
            domain=self.domain,
            noise=noise,
            constraints=self.constraint,
            constraint_noise=constraint_noise,
            best=self.best,
        )


small_feasible_region = ConstrainedProblem(
    "small_feasible_region",
    domain=Box(np.zeros(2), np.full(2, 6.0)),
    reward=lambda x: np.asarray(-np.sin(x[:, 0]) - x[:, 1]),
    constraint=lambda x: np.asarray(np.sin(x[:, 0]) * np.sin(x[:, 1]) + 0.95),
    argmax=[1.5 * math.pi, math.asin(0.95)],  # f = 1 - arcsin(0.95), with the least possible x_2.
)


def data_rates(
    a: Sequence[float] = (10.0, 10.0, 10.0, 10.0), b: Sequence[float] = (1.0, 1.0, 1.0, 1.0)
) -> ConstrainedProblem:
    """Returns the problem of four servers' data rates under a budget of electricity.

    The electricity is h(x) = 1 + 0.2 x_1 + 0.4 x_2 + 0.8 x_3 + 1.2 x_4 <= 3. Servers 1 and 3 have utility
    c (1 / (1 + exp(-a (x - b))) + d), servers 2 and 4 c (ln(a x + b) + d), for x in [0, 2]. The constants c and d make
    the utility 0 at 0 and 1 at 2. The paper takes the constants of Lee, Mazumdar & Shroff (2005), which were not found.
    The defaults of `a` and `b` are our own.

    Args:
        a: steepness for each server, positive.
        b: for servers 1 and 3 the rate in the middle of the step, for servers 2 and 4 a positive number.
    """
    steep, place = (finite_array(name, value) for name, value in (("a", a), ("b", b)))
    if steep.shape != (4,) or place.shape != (4,) or (steep <= 0.0).any() or (place[[1, 3]] <= 0.0).any():
        raise InvalidInput(f"`a` and `b` are four positive numbers each, not {shown(a)} and {shown(b)}.")

    def utilities(x: Array) -> Array:
        """Returns the utility of each server, `(n, 4)`."""
        shape = np.where([True, False, True, False], _logistic(steep * (x - place)), _log(steep * x, place))
        ends = [
            np.where([True, False, True, False], _logistic(steep * (end - place)), _log(steep * end, place))
            for end in (0.0, FASTEST)
        ]
        return np.asarray((shape - ends[0]) / (ends[1] - ends[0]))

    return ConstrainedProblem(
        f"data_rates(a={tuple(steep.tolist())}, b={tuple(place.tolist())})",
        domain=Box(np.zeros(4), np.full(4, FASTEST)),
        reward=lambda x: np.asarray(utilities(x).sum(axis=1)),
        constraint=lambda x: np.asarray(FIXED + x @ PRICES - BUDGET),
        argmax=_best_rates(utilities),
    )


def _logistic(t: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * t)))


def _log(t: Array, place: Array) -> Array:
    # `np.where` also evaluates this for servers with a sigmoid, where t + place may be negative and the value unused.
    return np.log(np.maximum(t + place, 1e-300))


def _best_rates(utilities: Callable[[Array], Array]) -> Array:
    """Returns the best rates within the budget, by dynamic programming over its cells and a local search."""
    from scipy.optimize import LinearConstraint, minimize

    money = np.linspace(0.0, BUDGET - FIXED, CELLS + 1)
    rates = np.minimum(
        money[:, None] / PRICES, FASTEST
    )  # The rate of each server for each amount of money, (cells, 4).
    worth = utilities(rates)
    total, choices = worth[:, 0], []
    for server in range(1, 4):
        padded = np.concatenate([np.full(CELLS, -np.inf), total])
        left = np.lib.stride_tricks.sliding_window_view(padded, CELLS + 1)[:, ::-1]  # left[i, j] = total[i - j].
        spent = (left + worth[:, server]).argmax(axis=1)
        choices.append(spent)
        total = left[np.arange(CELLS + 1), spent] + worth[spent, server]
    left_over, x = CELLS, np.zeros(4)
    for server in (3, 2, 1):
        spent = int(choices[server - 1][left_over])
        x[server], left_over = rates[spent, server], left_over - spent
    x[0] = rates[left_over, 0]

    def loss(x: Array) -> float:
        return -float(utilities(x[None]).sum())

    polished = minimize(
        loss,
        x,
        method="SLSQP",
        bounds=[(0.0, FASTEST)] * 4,
        constraints=LinearConstraint(PRICES, -np.inf, BUDGET - FIXED),
        options={"ftol": 1e-12},
    )
    within = np.clip(polished.x, 0.0, FASTEST)
    within *= min(1.0, (BUDGET - FIXED) / float(within @ PRICES))
    return within if utilities(within[None]).sum() >= utilities(x[None]).sum() else x
