"""Periodic kernels: hours, weekdays, angles.

| symbol | name | meaning | shape |
|---|---|---|---|
| p | `period` | distance after which f repeats; one number or one for each dimension | scalar or (d,) |
| l | `lengthscale` | lengthscale of f on a circle of radius 1, a pure number | scalar or (d,) |
| theta | `angles` | 2 pi x / p | (n, d) |

k is a squared exponential kernel of (sin theta, cos theta): |(sin a, cos a) - (sin b, cos b)| = 2 |sin((a - b) / 2)|.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, many, points_array
from .._utils.dataclass import field
from ..errors import InvalidInput
from ..serialize import description
from .base import (
    Derivatives,
    Hyperparameter,
    Pullback,
    checked_lengths,
    parameter_values,
    points_pair,
    scale_number,
    squared_distances,
    weights_array,
)
from .stationary import Spectral

FAR_OUT = 12.0  # standard deviations beyond which a harmonic is never drawn
MANY = 1e6  # variance of the harmonics beyond which rounded normal variables replace them


@final
@description(frozen=True)
class Periodic(Spectral):
    """k(x, x') = scale * exp(-2 sum_j sin^2(pi (x_j - x'_j) / period_j) / lengthscale_j^2) (MacKay 1998).

    Samples repeat exactly. For effects that fade, multiply with another kernel:
    `Periodic(24.0).on(0) * Matern(2.5, 200.0).on(0)`. A fit keeps the period unless `bounds` has one for "period".

    >>> import nilregret as nr
    >>> daily = nr.kernels.Periodic(period=24.0)
    >>> daily([[9.0]], [[9.0], [33.0]]).round(3)  # the same hour of the next day
    array([[1., 1.]])
    """

    period: float | tuple[float, ...] = 1.0
    lengthscale: float | tuple[float, ...] = 1.0
    scale: float = field(default=1.0, kw_only=True)

    if TYPE_CHECKING:  # arguments are converted

        def __init__(
            self, period: npt.ArrayLike = 1.0, lengthscale: npt.ArrayLike = 1.0, *, scale: float = 1.0
        ) -> None: ...

    def __post_init__(self) -> None:
        why = "It is the distance after which the reward repeats, in the units of the points."
        object.__setattr__(self, "period", checked_lengths("period", self.period, why=why))
        why = "It is a pure number: about 1 for one rise and fall in a period, smaller for more."
        object.__setattr__(self, "lengthscale", checked_lengths("lengthscale", self.lengthscale, why=why))
        object.__setattr__(self, "scale", scale_number(self.scale))

    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """Returns the covariances between the rows of A and of B, `(n, m)`."""
        first, second = points_pair(A, B)
        return self._values(self._angles(first), self._angles(second))

    def _values(self, first: Array, second: Array) -> Array:
        unit = np.broadcast_to(self.lengthscale, (first.shape[1],))
        here, there = (np.hstack([np.sin(angles) / unit, np.cos(angles) / unit]) for angles in (first, second))
        squares = squared_distances(here, there)
        squares *= -0.5
        value = np.exp(squares, out=squares)
        value *= self.scale
        return np.asarray(value)

    def _angles(self, points: Array) -> Array:
        for name, value in (("periods", self.period), ("lengthscales", self.lengthscale)):
            if isinstance(value, tuple) and len(value) != points.shape[1]:
                raise InvalidInput(
                    f"The kernel has {len(value)} {name} and the points have "
                    f"{many(points.shape[1], 'dimension')}: give one number for all dimensions, or one for each."
                )
        period = np.asarray(self.period)
        return np.asarray(2.0 * np.pi * (np.remainder(points, period) / period))  # large angles would cost digits

    def input_gradient(self, X: npt.ArrayLike, B: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns rows -2 pi / (p l^2) sum_j weights[i, j] k(x_i, b_j) sin(theta_i - theta_j), `(m, d)`."""
        first, second = (self._angles(points) for points in points_pair(X, B))
        values = self._values(first, second)
        G = weights_array(weights, values.shape) * values
        sines = np.sin(first) * (G @ np.cos(second)) - np.cos(first) * (G @ np.sin(second))
        return np.asarray(-2.0 * np.pi * sines / (np.asarray(self.period) * np.square(self.lengthscale)))

    @property
    def log_parameters(self) -> Array:
        """Log periods, then log lengthscales, then log scale."""
        parameters = [*np.atleast_1d(self.period), *np.atleast_1d(self.lengthscale), self.scale]
        return np.asarray(np.log(parameters), dtype=np.float64)

    def hyperparameters(self, columns: Sequence[int]) -> tuple[Hyperparameter, ...]:
        """Returns one period of all columns or one for each, then lengthscales in the same way, then the scale."""
        d, everything = len(columns), tuple(columns)
        single = [(column,) for column in columns]
        periods = single if isinstance(self.period, tuple) else [everything]
        angles = single if isinstance(self.lengthscale, tuple) else [everything]
        return (
            *(Hyperparameter("period", group, d) for group in periods),
            *(Hyperparameter("angle", group, d) for group in angles),
            Hyperparameter("scale", everything, d),
        )

    def with_log_parameters(self, values: npt.ArrayLike) -> Periodic:
        """Returns the same kernel with these periods, lengthscales and scale, given by their logarithms."""
        given = np.exp(parameter_values(values, len(self.log_parameters))).tolist()
        periods = len(np.atleast_1d(self.period))
        period, lengthscale = given[:periods], given[periods:-1]
        return Periodic(
            tuple(period) if isinstance(self.period, tuple) else period[0],
            tuple(lengthscale) if isinstance(self.lengthscale, tuple) else lengthscale[0],
            scale=given[-1],
        )

    def matrix_and_pullback(self, X: npt.ArrayLike) -> tuple[Array, Pullback]:
        """Returns K, and the pullback by log periods, log lengthscales and log scale."""
        points = points_array("X", X)
        angles = self._angles(points)
        matrix = self._values(angles, angles)
        d = points.shape[1]

        def pullback(weights: Array) -> Array:
            G = weights * matrix
            squares = 1.0 / np.broadcast_to(self.lengthscale, (d,)) ** 2
            periods, lengthscales = np.empty(d), np.empty(d)
            for j, period in enumerate(np.broadcast_to(self.period, (d,))):
                turns = np.pi * (points[:, j, None] - points[:, j]) / period
                periods[j] = 2.0 * squares[j] * np.vdot(G, turns * np.sin(2.0 * turns))
                lengthscales[j] = 4.0 * squares[j] * np.vdot(G, np.sin(turns) ** 2)
            groups = ((self.period, periods), (self.lengthscale, lengthscales))
            each = [slopes if isinstance(value, tuple) else slopes.sum(keepdims=True) for value, slopes in groups]
            return np.concatenate([*each, [np.vdot(weights, matrix)]])

        return matrix, pullback

    def derivatives(self, lower: Array, upper: Array) -> Derivatives:  # noqa: ARG002 - the same on every box
        """Returns variances from the moments of the harmonics.

        A harmonic is a Skellam variable of variance z = 1 / l^2: E J^2 = z and E J^4 = 3 z^2 + z.
        """
        d = len(lower)
        self._angles(lower[None])  # checks the number of periods
        z = 1.0 / np.broadcast_to(self.lengthscale, (d,)) ** 2
        squares = (2.0 * np.pi / np.broadcast_to(self.period, (d,))) ** 2
        first = squares * z
        second = np.outer(first, first) + np.diag(squares**2 * (2.0 * z**2 + z))
        return Derivatives(self.scale, self.scale * first, self.scale * second, stationary=True)

    def frequencies(self, unit: Array) -> Array:
        """Returns harmonics 2 pi J / p with P(J = j) = exp(-z) I_j(z), z = 1 / l^2.

        This is the Fourier series of the kernel.
        """
        from scipy.special import ive, ndtri

        d = unit.shape[1] - 1
        harmonics = np.empty((len(unit), d))
        for j, z in enumerate(1.0 / np.broadcast_to(self.lengthscale, (d,)) ** 2):
            if z > MANY:
                harmonics[:, j] = np.round(np.sqrt(z) * ndtri(unit[:, j]))
                continue
            most = int(FAR_OUT * (np.sqrt(z) + 1.0)) + 1
            which = np.arange(-most, most + 1)
            chances = np.cumsum(ive(np.abs(which), z))
            drawn = np.searchsorted(chances / chances[-1], unit[:, j])
            harmonics[:, j] = which[np.minimum(drawn, len(which) - 1)]
        return harmonics * (2.0 * np.pi / np.asarray(self.period))
