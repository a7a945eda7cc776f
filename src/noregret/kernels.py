"""Kernels: how the rewards of two points relate.

| symbol | name | meaning | shape |
|---|---|---|---|
| k | `kernel(A, B)` | covariance of f between the rows of A and B | (n, m) |
| k(x, x) | `kernel.diagonal(A)` | prior variance, `scale` for stationary kernels | (n,) |
| l | `lengthscale` | distance over which f changes; one number or one for each dimension | scalar or (d,) |

Kernels are frozen and comparable; `+` and `*` combine them. Formulas: Srinivas et al. 2010, section 5.2.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Literal, final

import numpy as np
import numpy.typing as npt

from .checks import Array, IndexArray, finite_array, frozen, number, points_array
from .errors import InvalidInput
from .serialize import described

Rows = IndexArray | slice
Metric = Literal["euclidean", "sqeuclidean"]
ALL = slice(None)
FAR = 1e5  # s / nu beyond which every Matern kernel is 0 to the last digit
DEBYE_FROM = 100.0  # beyond this nu the Bessel function overflows where the kernel is still far from 1


class Kernel(ABC):
    """A covariance function. `kernel(A, B)` takes `(n, d)` and `(m, d)` and returns `(n, m)`."""

    @abstractmethod
    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """The covariances between the rows of A and of B, `(n, m)`."""

    @abstractmethod
    def diagonal(self, A: npt.ArrayLike) -> Array:
        """The prior variances k(x, x) of the rows of A, `(n,)`, without the whole matrix."""

    @abstractmethod
    def between_arms(self, points: Array, rows: Rows, columns: Rows) -> Array:
        """The covariances between arms given by index, where `points` `(N, d)` holds all arms."""

    @abstractmethod
    def arm_variances(self, points: Array) -> Array:
        """The prior variance of every arm, `(N,)`."""

    def __add__(self, other: Kernel) -> Sum:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel) -> Product:
        return Product(self, other) if isinstance(other, Kernel) else NotImplemented


class PointKernel(Kernel):
    """A kernel that needs nothing of an arm but its coordinates."""

    @final
    def between_arms(self, points: Array, rows: Rows, columns: Rows) -> Array:
        """The covariances between arms given by index."""
        return self(points[rows], points[columns])

    @final
    def arm_variances(self, points: Array) -> Array:
        """The prior variance of every arm, `(N,)`."""
        return self.diagonal(points)


def _scale(value: object) -> float:
    return number("scale", value, low=0.0, open_low=True, why="It is the prior variance k(x, x).")


def _lengthscale(value: object) -> float | tuple[float, ...]:
    why = "It is the distance over which the reward changes noticeably."
    if np.ndim(value) == 0:  # type: ignore[arg-type]  # anything else than a number is refused by `number`
        return number("lengthscale", value, low=0.0, open_low=True, why=why)
    values = tuple(number("lengthscale", v, low=0.0, open_low=True, why=why) for v in np.asarray(value).tolist())
    if not values:
        raise InvalidInput("`lengthscale` is empty: give one number, or one for each dimension.")
    return values


def _pair(A: npt.ArrayLike, B: npt.ArrayLike) -> tuple[Array, Array]:
    first = points_array("A", A)
    second = first if B is A else points_array("B", B)
    if first.shape[1] != second.shape[1]:
        raise InvalidInput(
            f"A has {first.shape[1]} columns and B has {second.shape[1]}: both are points of one domain."
        )
    return first, second


def _scaled_distances(
    A: npt.ArrayLike, B: npt.ArrayLike, lengthscale: float | tuple[float, ...], metric: Metric
) -> Array:
    """Euclidean (or squared) distances after division by the lengthscale."""
    from scipy.spatial.distance import cdist  # here because it is not needed to import the package

    first, second = _pair(A, B)
    if isinstance(lengthscale, tuple) and len(lengthscale) != first.shape[1]:
        raise InvalidInput(
            f"The kernel has {len(lengthscale)} lengthscales and the points have {first.shape[1]} dimensions. "
            "Give one number for all dimensions, or one for each (a choice of k options takes k of them)."
        )
    # Differences first, squares after: coincident points get exactly 0, which |a|^2 + |b|^2 - 2ab would not give.
    scale = np.asarray(lengthscale, dtype=np.float64)
    return cdist(first / scale, second / scale, metric)


@final
@described
@dataclass(frozen=True)
class SquaredExponential(PointKernel):
    """k(x, x') = scale * exp(-r^2 / 2), r = |(x - x') / lengthscale|. Functions of any smoothness."""

    lengthscale: float | tuple[float, ...] = 1.0
    scale: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", _lengthscale(self.lengthscale))
        object.__setattr__(self, "scale", _scale(self.scale))

    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """The covariances between the rows of A and of B, `(n, m)`."""
        return self.scale * np.exp(-0.5 * _scaled_distances(A, B, self.lengthscale, "sqeuclidean"))

    def diagonal(self, A: npt.ArrayLike) -> Array:
        """`scale` for every row."""
        return np.full(len(points_array("A", A)), self.scale)


@final
@described
@dataclass(frozen=True)
class Matern(PointKernel):
    """The Matern kernel of any smoothness nu > 0, with r = |(x - x') / lengthscale| and s = sqrt(2 nu) r.

    k(x, x') = scale * 2^(1 - nu) / Gamma(nu) * s^nu * K_nu(s), K_nu the modified Bessel function of the second kind.
    nu = 1/2, 3/2 and 5/2 use their closed forms.
    """

    nu: float = 2.5
    lengthscale: float | tuple[float, ...] = 1.0
    scale: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        why = "It is the smoothness; 2.5 is a common choice, and beyond 1e100 use SquaredExponential."
        nu = number("nu", self.nu, low=0.0, high=1e100, open_low=True, why=why)
        object.__setattr__(self, "nu", nu)
        object.__setattr__(self, "lengthscale", _lengthscale(self.lengthscale))
        object.__setattr__(self, "scale", _scale(self.scale))

    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """The covariances between the rows of A and of B, `(n, m)`."""
        s = math.sqrt(2.0 * self.nu) * _scaled_distances(A, B, self.lengthscale, "euclidean")
        s = np.minimum(s, FAR * max(self.nu, 1.0))  # the kernel is 0 there, but its factors would overflow
        if self.nu == 0.5:
            return self.scale * np.exp(-s)
        if self.nu == 1.5:
            return self.scale * (1.0 + s) * np.exp(-s)
        if self.nu == 2.5:
            return self.scale * (1.0 + s + s * s / 3.0) * np.exp(-s)
        return self.scale * (_matern_debye(self.nu, s) if self.nu > DEBYE_FROM else _matern_bessel(self.nu, s))

    def diagonal(self, A: npt.ArrayLike) -> Array:
        """`scale` for every row."""
        return np.full(len(points_array("A", A)), self.scale)


def _matern_bessel(nu: float, s: Array) -> Array:
    """2^(1 - nu) / Gamma(nu) s^nu K_nu(s), in logarithms; 1 at s = 0."""
    from scipy.special import gammaln, kve

    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log = (1.0 - nu) * math.log(2.0) - float(gammaln(nu)) + nu * np.log(s) + np.log(kve(nu, s)) - s
        value = np.exp(log)
    # Where K_nu overflows, s is so small that two terms of the series about 0 are exact (it needs nu > 2, and
    # smaller nu overflow only at s < 1e-100).
    tiny = ~np.isfinite(value)
    near = s[tiny] ** 2 / (4.0 * (nu - 1.0)) if nu > 2.0 else np.zeros(np.count_nonzero(tiny))
    value[tiny] = 1.0 - near + (near * near * (nu - 1.0) / (2.0 * (nu - 2.0)) if nu > 2.0 else 0.0)
    return np.minimum(value, 1.0)


def _matern_debye(nu: float, s: Array) -> Array:
    """The same for large nu by the uniform expansion of K_nu (DLMF 10.41.4), relative error below 3e-10."""
    z = s / nu
    root = np.sqrt(1.0 + z * z)
    p = 1.0 / root
    u1 = (3.0 * p - 5.0 * p**3) / 24.0
    u2 = (81.0 * p**2 - 462.0 * p**4 + 385.0 * p**6) / 1152.0
    u3 = (30375.0 * p**3 - 369603.0 * p**5 + 765765.0 * p**7 - 425425.0 * p**9) / 414720.0
    series = 1.0 - (u1 - (u2 - u3 / nu) / nu) / nu
    at_zero = 1.0 + (1.0 / 12.0 + (1.0 / 288.0 - 139.0 / 51840.0 / nu) / nu) / nu
    # nu eta + nu log(z): what remains of the exponent after s^nu and Stirling's formula have cancelled.
    x = z * z / (1.0 + root)  # root - 1 without cancellation
    exponent = -nu * (x - np.log1p(x / 2.0))
    return np.minimum(np.exp(exponent) * np.sqrt(p) * series / at_zero, 1.0)


@final
@described
@dataclass(frozen=True)
class Linear(PointKernel):
    """k(x, x') = scale * x^T x': random linear functions through the origin."""

    scale: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _scale(self.scale))

    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """The covariances between the rows of A and of B, `(n, m)`."""
        first, second = _pair(A, B)
        return self.scale * (first @ second.T)

    def diagonal(self, A: npt.ArrayLike) -> Array:
        """Scale * |x|^2 of every row."""
        points = points_array("A", A)
        return np.asarray(self.scale * np.einsum("ij,ij->i", points, points))


@final
@described
@dataclass(frozen=True, eq=False)
class Empirical(Kernel):
    """A given covariance matrix `(N, N)` over finite arms, one row for each arm (a sensor network's readings, say).

    Its points are arm indices: `kernel([0, 3], [1])` is the covariance of arms 0 and 3 with arm 1. On `Arms` it takes
    the arms' numbers by itself, whatever their coordinates.
    """

    covariance: Array

    def __post_init__(self) -> None:
        matrix = finite_array("covariance", self.covariance)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
            raise InvalidInput(f"`covariance` has shape {matrix.shape}: it must be square, one row for each arm.")
        size = float(np.abs(matrix).max())
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
            # Negative by more than rounding: a factorisation would amplify it, so it is set to zero.
            matrix = (vectors * np.maximum(values, 0.0)) @ vectors.T
            matrix = (matrix + matrix.T) / 2.0
        object.__setattr__(self, "covariance", frozen(matrix))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Empirical) and np.array_equal(self.covariance, other.covariance)

    def __hash__(self) -> int:
        return hash(self.covariance.tobytes())

    def __repr__(self) -> str:
        return f"Empirical({len(self.covariance)} arms)"

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
        """The covariances between arms, given by index."""
        return self.covariance[np.ix_(self._arms("A", A), self._arms("B", B))]

    def diagonal(self, A: npt.ArrayLike) -> Array:
        """The variances of arms, given by index."""
        return self.covariance.diagonal()[self._arms("A", A)]

    def between_arms(self, points: Array, rows: Rows, columns: Rows) -> Array:
        """The covariances between arms given by index; errors unless there is one row for each arm."""
        self._fits(points)
        return self.covariance[rows][:, columns]

    def arm_variances(self, points: Array) -> Array:
        """The variance of every arm, `(N,)`."""
        self._fits(points)
        return self.covariance.diagonal().copy()

    def _fits(self, points: Array) -> None:
        if len(points) != len(self.covariance):
            raise InvalidInput(
                f"The Empirical kernel has {len(self.covariance)} rows and the domain has {len(points)} arms: "
                "it needs exactly one row for each arm, in the same order."
            )


@final
@described
@dataclass(frozen=True)
class Sum(Kernel):
    """k(x, x') = left(x, x') + right(x, x'): rewards that are sums of independent effects."""

    left: Kernel
    right: Kernel

    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """The covariances between the rows of A and of B, `(n, m)`."""
        return self.left(A, B) + self.right(A, B)

    def diagonal(self, A: npt.ArrayLike) -> Array:
        """The sum of both diagonals."""
        return self.left.diagonal(A) + self.right.diagonal(A)

    def between_arms(self, points: Array, rows: Rows, columns: Rows) -> Array:
        """The covariances between arms given by index."""
        return self.left.between_arms(points, rows, columns) + self.right.between_arms(points, rows, columns)

    def arm_variances(self, points: Array) -> Array:
        """The prior variance of every arm, `(N,)`."""
        return self.left.arm_variances(points) + self.right.arm_variances(points)


@final
@described
@dataclass(frozen=True)
class Product(Kernel):
    """k(x, x') = left(x, x') * right(x, x'): two points are alike only if both factors say so."""

    left: Kernel
    right: Kernel

    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """The covariances between the rows of A and of B, `(n, m)`."""
        return self.left(A, B) * self.right(A, B)

    def diagonal(self, A: npt.ArrayLike) -> Array:
        """The product of both diagonals."""
        return self.left.diagonal(A) * self.right.diagonal(A)

    def between_arms(self, points: Array, rows: Rows, columns: Rows) -> Array:
        """The covariances between arms given by index."""
        return self.left.between_arms(points, rows, columns) * self.right.between_arms(points, rows, columns)

    def arm_variances(self, points: Array) -> Array:
        """The prior variance of every arm, `(N,)`."""
        return self.left.arm_variances(points) * self.right.arm_variances(points)
