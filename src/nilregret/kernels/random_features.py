"""Kernels of finite rank that stand for stationary kernels: random cosines and sines.

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
from typing import final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, finite_array, frozen, integer, points_array, shown
from .._utils.dataclass import replace
from .._utils.randomness import Draws, sobol_points
from ..errors import InvalidInput
from ..serialize import description
from .base import Derivatives, Hyperparameter, PointKernel, Pullback, check_kernel, points_pair, weights_array
from .stationary import Stationary

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
