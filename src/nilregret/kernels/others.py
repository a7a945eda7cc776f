"""Kernels that are not functions of a distance: linear functions, intercepts, and a given covariance matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Never, Self, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import LARGEST_REWARD, Array, IndexArray, finite_array, frozen, many, points_array
from .._utils.dataclass import dataclass, field, replace
from ..errors import InvalidInput
from ..serialize import description
from .base import (
    Derivatives,
    Hyperparameter,
    Kernel,
    PointKernel,
    Pullback,
    Rows,
    parameter_values,
    points_pair,
    scale_number,
    weights_array,
)


@dataclass(frozen=True)
class Scaled(PointKernel):
    """A kernel whose only parameter is its scale."""

    scale: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", scale_number(self.scale))

    @property
    @final
    def log_parameters(self) -> Array:
        """Log scale."""
        return np.log([self.scale])

    @final
    def with_log_parameters(self, values: npt.ArrayLike) -> Self:
        """Returns the same kernel with this scale, given by its logarithm."""
        return replace(self, scale=float(np.exp(parameter_values(values, 1))[0]))

    @final
    def scaled(self, factor: float) -> Self:
        """Returns the same kernel with `factor` times the scale."""
        return replace(self, scale=factor * self.scale)

    @final
    def matrix_and_pullback(self, X: npt.ArrayLike) -> tuple[Array, Pullback]:
        """Returns K, which is also its own derivative with respect to log scale."""
        matrix = self(X, X)
        return matrix, lambda weights: np.array([np.vdot(weights, matrix)])


@final
@description(frozen=True)
class Linear(Scaled):
    """k(x, x') = scale * x^T x': random linear functions through the origin.

    >>> import nilregret as nr
    >>> nr.Linear()([[2.0]], [[0.5], [1.0]])
    array([[1., 2.]])
    """

    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """Returns the covariances between the rows of A and of B, `(n, m)`."""
        first, second = points_pair(A, B)
        return self.scale * (first @ second.T)

    def diagonal(self, A: npt.ArrayLike) -> Array:
        """Returns scale * |x|^2 of every row."""
        points = points_array("A", A)
        return np.asarray(self.scale * np.einsum("ij,ij->i", points, points))

    def input_gradient(self, X: npt.ArrayLike, B: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns rows scale * sum_j weights[i, j] * b_j, `(m, d)`."""
        first, second = points_pair(X, B)
        return self.scale * (weights_array(weights, (len(first), len(second))) @ second)

    def diagonal_gradient(self, X: npt.ArrayLike) -> Array:
        """Returns 2 * scale * x of every row, `(m, d)`."""
        return 2.0 * self.scale * points_array("X", X)

    def hyperparameters(self, columns: Sequence[int]) -> tuple[Hyperparameter, ...]:
        """Returns the description of the scale, which is the prior variance of the function's slopes."""
        return (Hyperparameter("slope", tuple(columns), len(columns)),)

    def derivatives(self, lower: Array, upper: Array) -> Derivatives:
        """Returns constant variances of slopes, and the variance of values, which is largest in a corner."""
        d = len(lower)
        largest = self.scale * float((np.maximum(np.abs(lower), np.abs(upper)) ** 2).sum())
        return Derivatives(largest, np.full(d, self.scale), np.zeros((d, d)), stationary=False)

    def rank(self, dimension: int) -> int:
        """Returns the number of columns."""
        return dimension

    def features(self, points: npt.ArrayLike) -> Array:
        """Returns the coordinates, times the root of the scale."""
        return np.asarray(np.sqrt(self.scale) * points_array("points", points))

    def feature_gradient(self, X: npt.ArrayLike, weights: npt.ArrayLike) -> Array:  # noqa: ARG002 - the same everywhere
        """Returns the weights, times the root of the scale, `(m, d)`."""
        return np.asarray(np.sqrt(self.scale) * np.asarray(weights))


@final
@description(frozen=True)
class Intercept(Scaled):
    """k(x, x') = scale: one unknown number, the same at every point. `Intercept() + Linear()` is affine.

    >>> import nilregret as nr
    >>> (nr.Linear() + nr.kernels.Intercept())([[2.0]], [[0.5]])
    array([[2.]])
    """

    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """Returns `scale` for every pair of rows of A and of B, `(n, m)`."""
        first, second = points_pair(A, B)
        return np.full((len(first), len(second)), self.scale)

    def diagonal(self, A: npt.ArrayLike) -> Array:
        """Returns `scale` for every row."""
        return np.full(len(points_array("A", A)), self.scale)

    def input_gradient(self, X: npt.ArrayLike, B: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns zeros, `(m, d)`."""
        first, second = points_pair(X, B)
        weights_array(weights, (len(first), len(second)))
        return np.zeros(first.shape)

    def hyperparameters(self, columns: Sequence[int]) -> tuple[Hyperparameter, ...]:
        """Returns the description of the scale."""
        return (Hyperparameter("scale", tuple(columns), len(columns)),)

    def rescaled(self, factors: Array) -> Intercept:  # noqa: ARG002 - it has no lengths
        """Returns the kernel itself."""
        return self

    def derivatives(self, lower: Array, upper: Array) -> Derivatives:  # noqa: ARG002 - the same on every box
        """Returns the variance of values, and no variance of slopes."""
        d = len(lower)
        return Derivatives(self.scale, np.zeros(d), np.zeros((d, d)), stationary=True)

    @property
    def variance(self) -> float:
        """Scale."""
        return self.scale

    @property
    def smoothness(self) -> float:
        """Infinity."""
        return math.inf

    def rank(self, dimension: int) -> int:  # noqa: ARG002 - the same for all
        """Returns 1."""
        return 1

    def features(self, points: npt.ArrayLike) -> Array:
        """Returns the root of the scale."""
        return np.full((len(points_array("points", points)), 1), math.sqrt(self.scale))

    def feature_gradient(self, X: npt.ArrayLike, weights: npt.ArrayLike) -> Array:  # noqa: ARG002 - none moves it
        """Returns zeros, `(m, d)`."""
        return np.zeros(points_array("X", X).shape)

    def columns(self, dimension: int) -> frozenset[int]:  # noqa: ARG002 - sees none
        """Returns no column."""
        return frozenset()


@final
@description(frozen=True, eq=False)
class Empirical(Kernel):
    """A given covariance matrix `(N, N)` over finite arms, one row for each arm (such as a sensor network's readings).

    Its points are arm indices: `kernel([0, 3], [1])` is the covariance of arms 0 and 3 with arm 1. On `Arms` the kernel
    uses the numbers of the arms, whatever their coordinates.

    >>> import nilregret as nr
    >>> nr.kernels.Empirical([[1.0, 0.5], [0.5, 1.0]])
    Empirical(2 arms)
    """

    covariance: Array

    def __post_init__(self) -> None:
        matrix = finite_array("covariance", self.covariance)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
            raise InvalidInput(f"`covariance` has shape {matrix.shape}: it must be square, one row for each arm.")
        size = float(np.abs(matrix).max())
        if size > LARGEST_REWARD:
            raise InvalidInput(f"`covariance` has an entry beyond {LARGEST_REWARD:g}: change the unit of the rewards.")
        if size == 0.0:
            raise InvalidInput("`covariance` is zero everywhere: then every arm's reward is known to be zero.")
        gap = float(np.abs(matrix - matrix.T).max())
        if gap > 1e-8 * size:
            raise InvalidInput(
                f"`covariance` is not symmetric (entries differ by up to {gap:g}). "
                "Usually rows and columns were put in different orders."
            )
        matrix = (matrix + matrix.T) / 2.0
        values, vectors = np.linalg.eigh(matrix)
        smallest = float(values[0])
        if smallest < -1e-8 * size:
            raise InvalidInput(
                f"`covariance` is not positive semi-definite: its smallest eigenvalue is {smallest:g}. Usually its "
                "entries were estimated from different rows (pairwise deletion) or edited by hand. Estimate all of "
                "them from the same complete rows, or set the negative eigenvalues to zero."
            )
        if smallest < -1e-14 * size * len(matrix):
            # A factorisation would amplify eigenvalues that are negative by more than rounding, so they become 0.
            matrix = (vectors * np.maximum(values, 0.0)) @ vectors.T
            matrix = (matrix + matrix.T) / 2.0
        object.__setattr__(self, "covariance", frozen(matrix))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Empirical) and np.array_equal(self.covariance, other.covariance)

    def __hash__(self) -> int:
        return hash(self.covariance.tobytes())

    def __repr__(self) -> str:
        return f"Empirical({many(len(self.covariance), 'arm')})"

    def _arms(self, name: str, value: npt.ArrayLike) -> IndexArray:
        values = points_array(name, value, dimension=1)[:, 0]
        arms = values.astype(np.intp)
        if (arms != values).any() or (arms < 0).any() or (arms >= len(self.covariance)).any():
            raise InvalidInput(
                f"The points of an Empirical kernel are arm indices 0 .. {len(self.covariance) - 1}; "
                f"`{name}` has others."
            )
        return arms

    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """Returns the covariances between arms, given by index."""
        return self.covariance[np.ix_(self._arms("A", A), self._arms("B", B))]

    def diagonal(self, A: npt.ArrayLike) -> Array:
        """Returns the variances of arms, given by index."""
        return self.covariance.diagonal()[self._arms("A", A)]

    def between_arms(self, points: Array, rows: Rows, columns: Rows) -> Array:
        """Returns the covariances between arms given by index, or raises an error unless each arm has a row."""
        self._fits(points)
        return self.covariance[rows][:, columns]

    def arm_variances(self, points: Array) -> Array:
        """Returns the variance of every arm, `(N,)`."""
        self._fits(points)
        return self.covariance.diagonal().copy()

    def input_gradient(self, X: npt.ArrayLike, B: npt.ArrayLike, weights: npt.ArrayLike) -> Never:  # noqa: ARG002
        """Raises an error, since arms given by a matrix have no coordinates."""
        raise _no_coordinates()

    def diagonal_gradient(self, X: npt.ArrayLike) -> Never:  # noqa: ARG002
        """Raises an error, since arms given by a matrix have no coordinates."""
        raise _no_coordinates()

    @property
    def log_parameters(self) -> Array:
        """Empty array, since the matrix is fixed."""
        return np.empty(0)

    def hyperparameters(self, columns: Sequence[int]) -> tuple[Hyperparameter, ...]:  # noqa: ARG002
        """Returns an empty tuple, since the matrix is fixed."""
        return ()

    def scaled(self, factor: float) -> Empirical:
        """Returns the kernel with the matrix multiplied."""
        return Empirical(factor * self.covariance)

    def rescaled(self, factors: Array) -> Empirical:  # noqa: ARG002 - has no coordinates
        """Returns the kernel itself, since indices have no unit."""
        return self

    def rank(self, dimension: int) -> int:  # noqa: ARG002 - has no coordinates
        """Returns the number of arms, an upper bound."""
        return len(self.covariance)

    def with_log_parameters(self, values: npt.ArrayLike) -> Empirical:
        """Returns the kernel itself."""
        parameter_values(values, 0)
        return self

    def matrix_and_pullback(self, X: npt.ArrayLike) -> tuple[Array, Pullback]:
        """Returns the covariances between arms, given by index, and an empty pullback."""
        return self(X, X), lambda _: np.empty(0)

    def _fits(self, points: Array) -> None:
        if len(points) != len(self.covariance):
            raise InvalidInput(
                f"The Empirical kernel has {many(len(self.covariance), 'row')} and the domain has "
                f"{many(len(points), 'arm')}: it needs exactly one row for each arm, in the same order."
            )


def _no_coordinates() -> InvalidInput:
    return InvalidInput(
        "An Empirical kernel has no gradient: its arms are rows of a matrix and have no coordinates. Usually a "
        "method for continuous domains was used on arms: choose among the arms instead."
    )
