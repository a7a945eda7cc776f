"""Kernels that are no functions of a distance, and kernels of finite rank that stand for stationary ones.

`RandomFeatures` are random cosines and sines:

| symbol | name | meaning | shape |
|---|---|---|---|
| m | `count` | number of frequencies | scalar |
| omega | `frequencies` | frequencies, drawn from the spectrum of the kernel | (m, d) |
| z(x) | `features` | sqrt(scale / m) (cos(omega x), sin(omega x)) | (2 m,) |
| k' | | z(x)^T z(x') = scale / m sum_j cos(omega_j (x - x')) | |

Rahimi & Recht 2007 draw the frequencies independently. Here those of a group of d are orthogonal, with the lengths that
independent ones have, which lowers the error (Yu, Suresh, Choromanski, Holtmann-Rice & Kumar 2016). Mixture variables,
such as those of a Matern kernel, are stratified.

Of m independent frequencies, |k' - k| exceeds epsilon at one pair of points with probability 2 exp(-m epsilon^2 / (2
scale^2)) at most (Hoeffding). `error` measures the error of the frequencies that were drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Never, Self, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import LARGEST_REWARD, Array, IndexArray, finite_array, frozen, integer, many, points_array, shown
from .._utils.dataclass import dataclass, field, replace
from .._utils.randomness import Draws, sobol_points
from ..errors import InvalidInput
from ..serialize import description
from .base import (
    Derivatives,
    Hyperparameter,
    Kernel,
    PointKernel,
    Pullback,
    Rows,
    check_kernel,
    parameter_values,
    points_pair,
    scale_number,
    weights_array,
)
from .stationary import Stationary


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


MOST = 4096  # largest number of frequencies
DIFFERENCES = 4096  # differences of points at which `error` is measured, a power of two


@final
@description(frozen=True)
class RandomFeatures(PointKernel):
    """A kernel of rank 2 m that stands for a stationary kernel: m random frequencies, each a cosine and a sine.

    A posterior under it costs O(m^2) a round on boxes and under contexts, whatever the number of rounds. The prior
    variance is the same as that of the stationary kernel. Other covariances differ by some `error`. Posteriors are
    exact for this kernel, which has no more than 2 m functions, so that far more than 2 m rewards can make it too sure
    of itself. Therefore nothing is proved for bounds under it: `valid_for` is "none".

    >>> import nilregret as nr
    >>> smooth = nr.kernels.RandomFeatures(nr.Matern(2.5, 0.4), count=64)
    >>> smooth.rank(2)
    128

    Attributes:
        kernel: a `Stationary` kernel whose frequencies can be drawn.
        count: m.
        seed: of the frequencies, which depend on nothing else but the kernel and the number of columns.
    """

    kernel: Stationary
    count: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        check_kernel("kernel", self.kernel)
        known = isinstance(self.kernel, Stationary)
        lengths = self.kernel.lengthscale if known else 1.0
        columns = len(lengths) if isinstance(lengths, tuple) else 1
        if not known or self.kernel.frequencies(np.full((1, columns + 1), 0.5)) is None:
            raise InvalidInput(
                f"`kernel` is {shown(self.kernel)}: its frequencies cannot be drawn. Random features are of one "
                "stationary kernel each.",
                advice="Such as RandomFeatures(Matern(2.5)).on(0) + Linear().",
            )
        object.__setattr__(self, "count", integer("count", self.count, low=1, high=MOST))
        object.__setattr__(self, "seed", integer("seed", self.seed, low=0))

    def frequencies(self, dimension: int) -> Array:
        """Returns omega `(m, d)` for points of d columns, in radians per unit of length."""
        return _frequencies(self.kernel, self.count, self.seed, dimension)

    def error(self, lower: npt.ArrayLike, upper: npt.ArrayLike) -> float:
        """Returns the largest |k' - k| at 4,096 differences of two points of a box: an estimate of the supremum.

        Args:
            lower: lower ends of the box, `(d,)`.
            upper: upper ends of the box, `(d,)`.
        """
        side = np.atleast_1d(finite_array("upper", upper) - finite_array("lower", lower))
        drawn = sobol_points(2 * len(side), DIFFERENCES, Draws(f"differences {self.seed}"))
        unit, signs = np.hsplit(drawn, 2)
        # Half of the differences are of all sizes down to a thousandth of the box, the others uniform.
        unit[::2] *= 10.0 ** (-3.0 * (np.arange(0, DIFFERENCES, 2) / DIFFERENCES))[:, None]
        differences, origin = unit * side * np.where(signs > 0.5, 1.0, -1.0), np.zeros((1, len(side)))
        return float(np.abs(self(differences, origin) - self.kernel(differences, origin)).max())

    @property
    def approximates(self) -> bool:
        """True, since it stands for another kernel."""
        return True

    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """Returns the covariances between the rows of A and of B, `(n, m)`."""
        first, second = points_pair(A, B)
        z = self.features(first)
        return np.asarray(z @ (z if second is first else self.features(second)).T)

    def diagonal(self, A: npt.ArrayLike) -> Array:
        """Returns the scale of the kernel for every row."""
        return self.kernel.diagonal(A)

    def input_gradient(self, X: npt.ArrayLike, B: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns rows sum_j weights[i, j] * d k(x_i, b_j) / d x_i, `(m, d)`."""
        first, second = points_pair(X, B)
        return self.feature_gradient(first, weights_array(weights, (len(first), len(second))) @ self.features(second))

    @property
    def variance(self) -> float:
        """Scale of the kernel."""
        return self.kernel.variance

    @property
    def log_parameters(self) -> Array:
        """Log lengthscales of the kernel, then its log scale."""
        return self.kernel.log_parameters

    def hyperparameters(self, columns: Sequence[int]) -> tuple[Hyperparameter, ...]:
        """Returns the hyperparameters of the kernel."""
        return self.kernel.hyperparameters(columns)

    def with_log_parameters(self, values: npt.ArrayLike) -> RandomFeatures:
        """Returns the features of the kernel with these log parameters, with the same draws."""
        return replace(self, kernel=self.kernel.with_log_parameters(values))

    def matrix_and_pullback(self, X: npt.ArrayLike) -> tuple[Array, Pullback]:
        """Returns K, and the pullback by log lengthscales, by which frequencies are divided, and log scale."""
        points = points_array("X", X)
        z, frequencies = self.features(points), self.frequencies(points.shape[1])
        matrix, (cosines, sines) = z @ z.T, np.hsplit(z, 2)

        def pullback(weights: Array) -> Array:
            of_cosines, of_sines = np.hsplit((weights + weights.T) @ z, 2)
            columns = ((points.T @ (of_cosines * sines - of_sines * cosines)) * frequencies.T).sum(axis=1)
            each_own = isinstance(self.kernel.lengthscale, tuple)
            return np.append(columns if each_own else columns.sum(), np.vdot(weights, matrix))

        return np.asarray(matrix), pullback

    def scaled(self, factor: float) -> RandomFeatures:
        """Returns the features of the kernel with `factor` times the scale."""
        return replace(self, kernel=self.kernel.scaled(factor))

    def derivatives(self, lower: Array, upper: Array) -> Derivatives:  # noqa: ARG002 - the same on every box
        """Returns variances from the moments of the frequencies."""
        squares = self.frequencies(len(lower)) ** 2
        scale = self.kernel.scale
        second = scale * (squares.T @ squares) / self.count
        return Derivatives(scale, scale * squares.mean(axis=0), second, stationary=True)

    def rank(self, dimension: int) -> int:  # noqa: ARG002 - the same for all
        """Returns 2 m."""
        return 2 * self.count

    def features(self, points: npt.ArrayLike) -> Array:
        """Returns all cosines, then all sines, times the root of scale / m, `(n, 2 m)`."""
        X = points_array("points", points)
        found = np.empty((len(X), 2 * self.count))
        write_waves(X, self.frequencies(X.shape[1]).T, found)
        found *= math.sqrt(self.kernel.scale / self.count)
        return found

    def feature_gradient(self, X: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns rows d (weights[i]^T z(x_i)) / d x_i, `(m, d)`."""
        points = points_array("X", X)
        cosines, sines = np.hsplit(self.features(points), 2)
        of_cosines, of_sines = np.hsplit(np.asarray(weights), 2)
        return np.asarray((of_sines * cosines - of_cosines * sines) @ self.frequencies(points.shape[1]))


def write_waves(points: Array, frequencies: Array, out: Array) -> None:
    """Writes the cosines, then the sines, of points `(..., d)` times frequencies `(d, m)` to `out`, `(..., 2 m)`."""
    phases, count = points @ frequencies, frequencies.shape[1]
    np.cos(phases, out=out[..., :count])
    np.sin(phases, out=out[..., count:])


@lru_cache(maxsize=64)
def _frequencies(kernel: Stationary, count: int, seed: int, dimension: int) -> Array:
    from scipy.special import ndtr

    rng = Draws(f"frequencies {seed} {dimension}")
    groups = []
    for _ in range(-(-count // dimension)):
        turn, upper = np.linalg.qr(rng.standard_normal((dimension, dimension)))
        lengths = np.linalg.norm(rng.standard_normal((dimension, dimension)), axis=1)
        groups.append(lengths[:, None] * (turn * np.sign(upper.diagonal())).T)
    strata = (rng.permutation(count) + rng.random(count)) / count
    unit = np.column_stack([ndtr(np.concatenate(groups)[:count]), strata])
    found = kernel.frequencies(np.clip(unit, 1e-12, 1.0 - 1e-12))
    return frozen(np.asarray(found, dtype=np.float64))
