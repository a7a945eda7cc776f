"""Standard test functions with a known maximum.

| name | f(x) | domain | maximum |
|---|---|---|---|
| `rosenbrock` | 10 - 100 (x_2 - x_1^2)^2 - (1 - x_1)^2 | [0, 1]^2 | 10 |
| `hartmann3` | sum_i omega_i exp(-sum_j A_ij (x_j - P_ij)^2) | [0, 1]^3 | 3.862780 |
| `hartmann6` | the same in six dimensions | [0, 1]^6 | 3.322368 |
| `branin` | -v^2 - 10 (1 - 1 / (8 pi)) cos x_1 - 10 | [-5, 10] x [0, 15] | -0.397887 |

with v = x_2 - 5.1 x_1^2 / (4 pi^2) + 5 x_1 / pi - 6.
Rosenbrock and Hartmann have the signs of Azimi et al. (2012). The constants of Hartmann and Branin are those of Dixon
and Szego (1978).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, frozen, points_array, shown
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
