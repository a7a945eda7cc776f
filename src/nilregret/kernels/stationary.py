"""Stationary kernels: functions of the distance r between two points, measured in lengthscales.

| symbol | name | meaning | shape |
|---|---|---|---|
| l | `lengthscale` | distance over which f changes; one number or one for each dimension | scalar or (d,) |
| r^2 | `squares` | sum over the dimensions k of (x_k - x'_k)^2 / l_k^2 | any |
| kappa | value | k(x, x') / scale, 1 at r = 0 | as r^2 |
| g | slope | -kappa'(r) / r, so that d kappa / d x = -g (x - x') / l^2 | as r^2 |

With G = weights * g, both gradients are matrix products. That of inputs is (G B - rowsum(G) x) / l^2. That of log l_k
is sum_ij G_ij (x_ik - x_jk)^2 / l_k^2 with the square multiplied out.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Self, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, frozen, number, points_array
from .._utils.dataclass import field, replace
from ..errors import InvalidInput
from ..serialize import description
from .base import (
    Derivatives,
    Hyperparameter,
    Matrices,
    PointKernel,
    Pullback,
    checked_lengths,
    parameter_values,
    points_pair,
    points_to_read,
    scale_number,
    squared_distances,
    weights_array,
)

MOST_KEPT = 2**15  # squared differences that are kept: more take longer to read than to compute again
WIDE = 64  # columns beyond which those that do not differ are left out, as of options that no point has
FEW_PAIRS = 1000  # pairs below which it is quicker to go through many columns than to merge them
MOST_LENGTHS = 1e150  # lengthscales in a span, whose square is finite: every kernel is 0 there


def varying(first: Array, second: Array) -> IndexArray | slice:
    """Returns the columns in which rows of `first` and of `second` may differ, or all if they are few or rows many."""
    if first.shape[1] <= max(WIDE, len(first) + len(second)) or not len(first):
        return slice(None)
    differing = np.flatnonzero((first != first[0]).any(axis=0) | (second != first[0]).any(axis=0))
    return differing if len(differing) else np.arange(1)  # at least one column, as numpy and scipy need


def merged(first: Array, second: Array, unit: Array) -> tuple[Array, Array, Array]:
    """Returns rows in few columns, with their lengthscales, whose distances are those of the given ones to the bit.

    Of a choice of many options, the columns of all options that no row of the fewer rows has are as good as one. In a
    run of columns that are 0 or one number under one lengthscale, the terms of a distance are equal. A sum of equal
    terms does not depend on their order.

    Args:
        first: `(n, d)`.
        second: `(m, d)`.
        unit: lengthscales, `(d,)`.
    """
    few, many = (first, second) if len(first) < len(second) else (second, first)
    if first.shape[1] <= WIDE or not len(few) or (len(few) > 1 and len(few) * len(many) < FEW_PAIRS):
        return first, second, unit
    edges = np.concatenate([[0], np.flatnonzero(np.diff(unit)) + 1, [len(unit)]])
    long = np.flatnonzero(np.diff(edges) > WIDE)
    if not len(long):
        return first, second, unit
    ends = np.unique(np.concatenate([[0], edges[long], edges[long + 1], [len(unit)]]))
    parts = [(few[:, run], many[:, run], unit[run]) for run in map(slice, ends[:-1], ends[1:])]
    found = [_merged_run(*part) if len(part[2]) > WIDE and np.ptp(part[2]) == 0.0 else part for part in parts]
    rows, others, units = (np.concatenate(each, axis=-1) for each in zip(*found, strict=True))
    return (rows, others, units) if few is first else (others, rows, units)


def _merged_run(few: Array, many: Array, unit: Array) -> tuple[Array, Array, Array]:
    """Returns the rows of a run of columns under one lengthscale, in few columns if all are 0 or one number."""
    value = float(few.max() or many.max())
    if any(np.count_nonzero((rows == 0.0) | (rows == value)) < rows.size for rows in (few, many)):
        return few, many, unit
    seen = few.any(axis=0)
    counts = np.rint(many @ np.where(seen, 0.0, 1.0) / value) if value else np.zeros(len(many))
    more = np.arange(int(counts.max()))
    apart, ones = np.zeros((len(few), len(more))), np.where(more < counts[:, None], value, 0.0)
    rows, others = np.hstack([few[:, seen], apart]), np.hstack([many[:, np.flatnonzero(seen)], ones])
    return rows, others, unit[: rows.shape[1]]


@final
class Pairs:
    """The pairs of points `(n, d)`.

    Few points keep the squared differences of each column, so that distances and sums are products of a vector and a
    matrix.
    """

    _kept: Array | None

    def __init__(self, points: Array) -> None:
        self._width, self._varying = points.shape[1], varying(points, points[:0])
        self._all = isinstance(self._varying, slice)
        points = points[:, self._varying]
        self._points = points - points[:1]  # an origin among the points
        n, d = points.shape
        self._count, self._kept = n, None
        if n * (n - 1) // 2 * d > MOST_KEPT:
            from scipy.spatial.distance import pdist, squareform  # slow to import

            self._pdist, self._squareform = pdist, squareform
            return
        first, second = np.triu_indices(n, 1)
        self._above, self._below = n * first + second, n * second + first  # positions of the pairs in a flat matrix
        spans = np.ptp(points, axis=0) if n else np.ones(d)
        self._spans = np.where(spans > 0.0, spans, 1.0)
        columns = np.ascontiguousarray((self._points / self._spans).T)
        self._kept = np.square(columns.take(first, axis=1) - columns.take(second, axis=1))

    def squares(self, unit: Array) -> Array:
        """Returns r^2 of each pair, as a fresh array."""
        unit = self._of_varying(unit)
        if self._kept is None:
            return np.asarray(self._pdist(self._points / unit, "sqeuclidean"))
        return np.asarray(np.dot(self._rates(unit), self._kept))

    def matrix(self, values: Array, diagonal: float) -> Array:
        """Returns the symmetric matrix `(n, n)` of values of the pairs."""
        if self._kept is None:
            matrix: Array = self._squareform(values, checks=False)
            flat = matrix.reshape(-1)
        else:
            flat = np.empty(self._count**2)
            flat[self._above] = flat[self._below] = values
        flat[:: self._count + 1] = diagonal
        return flat.reshape(self._count, self._count)

    def sums(self, values: Array, weights: Array, unit: Array) -> Array:
        """Returns sum_ij weights_ij * value_ij * (x_ik - x_jk)^2 / l_k^2 of each column k, `(d,)`.

        Args:
            values: of the pairs.
            weights: `(n, n)`.
            unit: lengthscales.
        """
        if self._all:
            return self._sums(values, weights, unit)
        result = np.zeros(self._width)
        result[self._varying] = self._sums(values, weights, self._of_varying(unit))
        return result

    def _of_varying(self, unit: Array) -> Array:
        return unit if self._all or len(unit) != self._width else unit[self._varying]

    def _sums(self, values: Array, weights: Array, unit: Array) -> Array:
        if self._kept is None:
            scaled = self._points / unit
            # squareform leaves 0 on the diagonal, where (x - x)^2 would otherwise be a difference of large numbers.
            G = self._squareform(values, checks=False)
            G *= weights
            sums = (G.sum(axis=0) + G.sum(axis=1)) @ scaled**2
            sums -= 2.0 * np.einsum("ik,ik->k", scaled, G @ scaled)
            return np.asarray(sums)
        flat = weights.ravel()
        both = flat.take(self._above) + flat.take(self._below)
        both *= values
        return np.asarray(self._rates(unit) * np.dot(self._kept, both))

    def _rates(self, unit: Array) -> Array:
        """Returns the square of the number of lengthscales in the span of each column, `(d,)`."""
        rates = self._spans / unit
        np.minimum(rates, MOST_LENGTHS, out=rates)
        rates *= rates
        return rates


FAR = 1e5  # s / nu beyond which every Matern kernel is 0 to the last digit
DEBYE_FROM = 100.0  # beyond this nu the Bessel function overflows where the kernel is still far from 1
DISTANCE = "It is the distance over which the reward changes noticeably."
Profile = tuple[Array, Callable[[], Array]]  # kappa, and a function that returns g


class Spectral(PointKernel):
    """A stationary kernel k(x, x') = scale * E cos(omega^T (x - x')) (Bochner). Subclasses are dataclasses."""

    scale: float

    def frequencies(self, unit: Array) -> Array | None:  # noqa: ARG002 - needs a spectrum that can be drawn from
        """Returns frequencies omega `(m, d)`, in radians per unit of length.

        None for every `unit` means that they cannot be drawn. Sample paths are then joint samples (`gp.paths`).

        Args:
            unit: uniform numbers in (0, 1), `(m, d + 1)`.
        """
        return None

    @property
    @final
    def variance(self) -> float:
        """Scale."""
        return self.scale

    @final
    def scaled(self, factor: float) -> Self:
        """Returns the same kernel with `factor` times the scale."""
        return replace(self, scale=factor * self.scale)  # type: ignore[type-var]  # all are dataclasses

    @final
    def diagonal(self, A: npt.ArrayLike) -> Array:
        """Returns `scale` for every row."""
        return np.full(len(points_to_read("A", A)), self.scale)


class Stationary(Spectral):
    """k(x, x') = scale * kappa(r), r = |(x - x') / lengthscale|. Subclasses are dataclasses with both fields.

    A kernel of your own is a frozen dataclass decorated with `nilregret.slots.described`. It has the fields
    `lengthscale` and `scale` and any others that it needs. Only `profile` is **needed**. With `frequencies` sample
    paths are waves, faster than joint samples. With `moments` Theorem 2 of Srinivas et al. is proved for the kernel on
    boxes. `smoothness` sets the schedules of `gp_ucb_cpd`. `PointKernel` lists further methods.

    >>> from dataclasses import dataclass
    >>> import numpy as np, nilregret as nr
    >>> from nilregret.slots import described
    >>> @described
    ... @dataclass(frozen=True)
    ... class Smooth(nr.kernels.Stationary):
    ...     lengthscale: float = 1.0
    ...     scale: float = 1.0
    ...     def profile(self, squares):
    ...         value = np.exp(-squares / 2.0)
    ...         return value, lambda: value
    >>> policy = nr.gp_ts(nr.Box(0, 1), Smooth(0.2), noise=0.1, norm_bound=1.0)
    """

    lengthscale: float | tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("lengthscale", "scale"):
            if not hasattr(self, name):
                raise InvalidInput(
                    f"`{type(self).__name__}` has no field `{name}`, which every stationary kernel has.",
                    advice=f"Add `{name}: float = 1.0` to the dataclass: docs/extending.md, Kernels.",
                )
        object.__setattr__(self, "lengthscale", checked_lengths("lengthscale", self.lengthscale, why=DISTANCE))
        object.__setattr__(self, "scale", scale_number(self.scale))

    @property
    def moments(self) -> tuple[float, float]:
        """Moments E omega_j^2 and E omega_i^2 omega_j^2 (i != j) for lengthscale 1.

        A moment is infinite if it does not exist or is unknown. The spectrum is the same in all directions, so E
        omega_j^4 is three times the second moment. (In one dimension the second moment is a third of E omega^4.) By
        default the first is g(0) = -kappa''(0), and the second is unknown.
        """
        slope = float(self.profile(np.zeros(1))[1]()[0])
        return slope if 0.0 < slope < math.inf else math.inf, math.inf

    @final
    def derivatives(self, lower: Array, upper: Array) -> Derivatives:  # noqa: ARG002 - the same on every box
        """Returns variances from the moments of the spectrum: Var df/dx_j = scale E omega_j^2, and so on."""
        d = len(lower)
        inverse = np.broadcast_to(1.0 / self._unit(lower[None]) ** 2, (d,))
        first, second = self.moments
        pairs = np.outer(inverse, inverse) * (1.0 + 2.0 * np.eye(d))  # E z_i^2 z_j^2 = 1, and 3 for i = j
        return Derivatives(self.scale, self.scale * first * inverse, self.scale * second * pairs, stationary=True)

    @abstractmethod
    def profile(self, squares: Array) -> Profile:
        """Returns kappa at these r^2, and the function that returns g there (0 where g is infinite, at r = 0).

        The memory of `squares` may be overwritten, since large fresh arrays cost more than arithmetic.
        """

    @final
    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """Returns the covariances between the rows of A and of B, `(n, m)`."""
        value, _ = self.profile(self._squares(*points_pair(A, B)))
        value *= self.scale
        return value

    @final
    def input_gradient(self, X: npt.ArrayLike, B: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns rows sum_j weights[i, j] * d k(x_i, b_j) / d x_i, `(m, d)`."""
        first, second = points_pair(X, B)
        squares = self._squares(first, second)
        given = weights_array(weights, squares.shape)[None]
        moved: Array = self._moved(given, self.profile(squares)[1](), first, second)[0]
        return moved

    @final
    def cross_and_pullback(self, B: Array, X: Array) -> tuple[Array, Pullback]:
        """Returns k(B, X) and its pullback by X, from the same distances."""
        value, slope = self.profile(self._squares(B, X))
        # The product is a fresh array, since the slope may need the memory of the value.
        return self.scale * value, lambda weights: self._moved(weights, slope().T, X, B)

    def _moved(self, weights: Array, slope: Array, X: Array, B: Array) -> Array:
        """Returns sums of weighted gradients, `(k, m, d)`, by weights `(k, m, n)` and g `(m, n)`."""
        G = np.multiply(weights, slope, order="C")
        # With an origin among the points, the terms that cancel below are no larger than distances of the points.
        origin, unit = B[:1].sum(axis=0), self._unit(X)
        k, m, n = G.shape
        rows = G.reshape(k * m, n)
        products = (rows @ ((B - origin) / unit)).reshape(k, *X.shape)
        differences = products - rows.sum(axis=1).reshape(k, m, 1) * ((X - origin) / unit)
        return np.asarray(self.scale * differences / unit)

    @property
    @final
    def log_parameters(self) -> Array:
        """Log lengthscales, then log scale."""
        parameters = np.append(np.atleast_1d(self.lengthscale), self.scale)
        return np.asarray(np.log(parameters), dtype=np.float64)

    @final
    def hyperparameters(self, columns: Sequence[int]) -> tuple[Hyperparameter, ...]:
        """Returns one lengthscale of all columns or one for each, then the scale."""
        groups = [(column,) for column in columns] if isinstance(self.lengthscale, tuple) else [tuple(columns)]
        scale = Hyperparameter("scale", tuple(columns), len(columns))
        return (*(Hyperparameter("lengthscale", group, len(columns)) for group in groups), scale)

    @final
    def with_log_parameters(self, values: npt.ArrayLike) -> Self:
        """Returns the same kernel with these lengthscales and scale, given by their logarithms."""
        given = np.exp(parameter_values(values, len(self.log_parameters))).tolist()
        lengthscale = tuple(given[:-1]) if isinstance(self.lengthscale, tuple) else given[0]
        return replace(self, lengthscale=lengthscale, scale=given[-1])  # type: ignore[type-var]  # all are dataclasses

    @final
    def matrices(self, X: npt.ArrayLike) -> Matrices:
        """Returns K, and the pullback by log lengthscales and log scale, by log parameters."""
        points = points_array("X", X)
        self._unit(points)  # lengthscales must be as many as columns
        pairs, each_own = Pairs(points), isinstance(self.lengthscale, tuple)

        def at(values: Array) -> tuple[Array, Pullback]:
            given = np.exp(values)
            unit, scale = given[:-1], given.item(-1)
            value, slope = self.profile(pairs.squares(unit))
            matrix = pairs.matrix(value if scale == 1.0 else value * scale, scale)

            def pullback(weights: Array) -> Array:
                columns = pairs.sums(slope(), weights, unit)
                result = np.empty(len(values))
                result[:-1] = scale * (columns if each_own else columns.sum())
                result[-1] = np.vdot(weights, matrix)
                return result

            return matrix, pullback

        return at

    def _unit(self, points: Array) -> Array:
        if isinstance(self.lengthscale, tuple) and len(self.lengthscale) != points.shape[1]:
            raise InvalidInput(
                f"The kernel has {len(self.lengthscale)} lengthscales and the points have {points.shape[1]} "
                "dimensions. Give one number for all dimensions, or one for each (a choice of k options takes k)."
            )
        return self._lengths

    @cached_property
    def _lengths(self) -> Array:
        return frozen(np.asarray(self.lengthscale, dtype=np.float64))

    def _squares(self, first: Array, second: Array) -> Array:
        unit, columns = self._unit(first), varying(first, second)
        if not unit.ndim:
            return squared_distances(first[:, columns] / unit, second[:, columns] / unit)
        rows, others, unit = merged(first[:, columns], second[:, columns], unit[columns])
        return squared_distances(rows / unit, others / unit)


def _normal(unit: Array, lengthscale: float | tuple[float, ...]) -> Array:
    """Returns normal frequencies `(m, d)` from uniform numbers `(m, d + 1)`, whose last column is for mixtures."""
    from scipy.special import ndtri

    return np.asarray(ndtri(unit[:, :-1]) / np.asarray(lengthscale))


@final
@description(frozen=True)
class SquaredExponential(Stationary):
    """k(x, x') = scale * exp(-r^2 / 2), r = |(x - x') / lengthscale|. Samples are infinitely smooth.

    >>> import nilregret as nr
    >>> nr.SquaredExponential(0.5)([[0.0]], [[0.0], [0.5], [1.0]]).round(3)
    array([[1.   , 0.607, 0.135]])
    """

    lengthscale: float | tuple[float, ...] = 1.0
    scale: float = field(default=1.0, kw_only=True)

    if TYPE_CHECKING:  # arguments are converted

        def __init__(self, lengthscale: npt.ArrayLike = 1.0, *, scale: float = 1.0) -> None: ...

    def profile(self, squares: Array) -> Profile:
        """Returns kappa = exp(-r^2 / 2) = g."""
        squares *= -0.5
        value = np.exp(squares, out=squares)
        return value, lambda: value

    @property
    def smoothness(self) -> float:
        """Infinity."""
        return math.inf

    @property
    def moments(self) -> tuple[float, float]:
        """Moments of the standard normal distribution."""
        return 1.0, 1.0

    def frequencies(self, unit: Array) -> Array:
        """Returns normal frequencies."""
        return _normal(unit, self.lengthscale)


@final
@description(frozen=True)
class RationalQuadratic(Stationary):
    """k(x, x') = scale * (1 + r^2 / (2 alpha))^-alpha, r = |(x - x') / lengthscale|: a mixture of lengthscales.

    It is a squared exponential kernel averaged over 1 / lengthscale^2, a gamma variable of shape alpha. For large alpha
    it is `SquaredExponential` (Rasmussen & Williams 2006, eq. 4.19). Fits do not change alpha.

    >>> import nilregret as nr
    >>> nr.kernels.RationalQuadratic(1.0, 0.5)([[0.0]], [[0.0], [0.5]]).round(3)
    array([[1.   , 0.667]])
    """

    alpha: float = 1.0
    lengthscale: float | tuple[float, ...] = 1.0
    scale: float = field(default=1.0, kw_only=True)

    if TYPE_CHECKING:  # arguments are converted

        def __init__(self, alpha: float = 1.0, lengthscale: npt.ArrayLike = 1.0, *, scale: float = 1.0) -> None: ...

    def __post_init__(self) -> None:
        why = "The smaller it is, the more long lengthscales are in the mixture."
        object.__setattr__(self, "alpha", number("alpha", self.alpha, low=1e-100, high=1e100, why=why))
        super().__post_init__()

    def profile(self, squares: Array) -> Profile:
        """Returns kappa = u^-alpha and g = u^-(alpha + 1), u = 1 + r^2 / (2 alpha)."""
        squares *= 0.5 / self.alpha
        logarithm = np.log1p(squares, out=squares)
        value = np.exp(-self.alpha * logarithm)
        return value, lambda: np.exp(-(self.alpha + 1.0) * logarithm)

    @property
    def moments(self) -> tuple[float, float]:
        """Moments of a normal distribution whose precision is a gamma variable of mean 1.

        The square of the precision has mean 1 + 1/alpha.
        """
        return 1.0, 1.0 + 1.0 / self.alpha

    def frequencies(self, unit: Array) -> Array:
        """Returns normal frequencies, times the root of a gamma variable of shape alpha and mean 1."""
        from scipy.special import gammaincinv

        mixed = np.sqrt(gammaincinv(self.alpha, unit[:, -1]) / self.alpha)
        return np.asarray(_normal(unit, self.lengthscale) * mixed[:, None])


@final
@description(frozen=True)
class Matern(Stationary):
    """The Matern kernel of any smoothness nu > 0, with r = |(x - x') / lengthscale| and s = sqrt(2 nu) r.

    k(x, x') = scale * 2^(1 - nu) / Gamma(nu) * s^nu * K_nu(s), K_nu the modified Bessel function of the second kind. nu
    = 1/2, 3/2 and 5/2 use their closed forms. Fits do not change nu.

    >>> import nilregret as nr
    >>> nr.Matern(2.5, 0.5)([[0.0]], [[0.0], [0.5], [1.0]]).round(3)
    array([[1.   , 0.524, 0.139]])
    """

    nu: float = 2.5
    lengthscale: float | tuple[float, ...] = 1.0
    scale: float = field(default=1.0, kw_only=True)

    if TYPE_CHECKING:  # arguments are converted

        def __init__(self, nu: float = 2.5, lengthscale: npt.ArrayLike = 1.0, *, scale: float = 1.0) -> None: ...

    def __post_init__(self) -> None:
        why = "It is the smoothness; 2.5 is a common choice, and beyond 1e100 use SquaredExponential."
        nu = number("nu", self.nu, low=0.0, high=1e100, open_low=True, why=why)
        object.__setattr__(self, "nu", nu)
        super().__post_init__()

    def profile(self, squares: Array) -> Profile:
        """Returns kappa and g. The derivative of s^nu K_nu(s) is -s^nu K_(nu-1)(s) (DLMF 10.29.4)."""
        s = np.sqrt(squares, out=squares)
        s *= math.sqrt(2.0 * self.nu)
        np.minimum(s, FAR * max(self.nu, 1.0), out=s)  # the kernel is 0 there, but its factors would overflow
        if self.nu in (0.5, 1.5, 2.5):
            return _matern_closed(self.nu, s)
        value = _matern_debye(self.nu, s) if self.nu > DEBYE_FROM else _matern_bessel(self.nu, s)
        return value, lambda: _matern_slope(self.nu, s)

    @property
    def smoothness(self) -> float:
        """Smoothness nu."""
        return self.nu

    @property
    def moments(self) -> tuple[float, float]:
        """Moments of the multivariate t distribution with 2 nu degrees of freedom."""
        nu = self.nu
        first = nu / (nu - 1.0) if nu > 1.0 else math.inf
        return first, nu**2 / ((nu - 1.0) * (nu - 2.0)) if nu > 2.0 else math.inf

    def frequencies(self, unit: Array) -> Array:
        """Returns multivariate t frequencies with 2 nu degrees of freedom."""
        from scipy.special import gammaincinv

        # chi^2 with 2 nu degrees of freedom, divided by 2 nu, is a gamma variable of shape nu and mean 1.
        return np.asarray(
            _normal(unit, self.lengthscale) / np.sqrt(gammaincinv(self.nu, unit[:, -1]) / self.nu)[:, None]
        )


def _matern_closed(nu: float, s: Array) -> Profile:
    """Returns exp(-s), (1 + s) exp(-s), (1 + s + s^2 / 3) exp(-s) for nu = 1/2, 3/2, 5/2, and g."""
    decay = np.negative(s)
    np.exp(decay, out=decay)
    if nu == 0.5:
        return decay, lambda: np.divide(decay, s, out=np.zeros_like(s), where=s > 0.0)
    if nu == 1.5:
        s += 1.0
        s *= decay
        return s, lambda: 3.0 * decay
    value = s * s
    value /= 3.0
    s += 1.0
    value += s
    value *= decay
    return value, lambda: 5.0 / 3.0 * s * decay


def _matern_slope(nu: float, s: Array) -> Array:
    """Returns g = 2 nu * 2^(1 - nu) / Gamma(nu) s^(nu-1) K_(nu-1)(s).

    For nu > 1 it is proportional to the kernel of nu - 1.
    """
    if nu > 1.0:
        lower = _matern_debye(nu - 1.0, s) if nu - 1.0 > DEBYE_FROM else _matern_bessel(nu - 1.0, s)
        return nu / (nu - 1.0) * lower
    from scipy.special import gammaln, kve

    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log = (1.0 - nu) * math.log(2.0) - float(gammaln(nu)) + (nu - 1.0) * np.log(s) + np.log(kve(nu - 1.0, s)) - s
        value = 2.0 * nu * np.exp(log)
    return np.where(np.isfinite(value), value, 0.0)


def _matern_bessel(nu: float, s: Array) -> Array:
    """Returns 2^(1 - nu) / Gamma(nu) s^nu K_nu(s), computed in logarithms, and 1 at s = 0."""
    from scipy.special import gammaln, kve

    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log = (1.0 - nu) * math.log(2.0) - float(gammaln(nu)) + nu * np.log(s) + np.log(kve(nu, s)) - s
        value = np.exp(log)
    # Where K_nu overflows, s is so small that two terms of the series about 0 are exact. The series needs nu > 2, and
    # smaller nu overflow only at s < 1e-100.
    tiny = ~np.isfinite(value)
    near = s[tiny] ** 2 / (4.0 * (nu - 1.0)) if nu > 2.0 else np.zeros(np.count_nonzero(tiny))
    value[tiny] = 1.0 - near + (near * near * (nu - 1.0) / (2.0 * (nu - 2.0)) if nu > 2.0 else 0.0)
    return np.minimum(value, 1.0)


def _matern_debye(nu: float, s: Array) -> Array:
    """Returns the same for large nu by the uniform expansion of K_nu (DLMF 10.41.4), relative error below 3e-10."""
    z = s / nu
    root = np.sqrt(1.0 + z * z)
    p = 1.0 / root
    u1 = (3.0 * p - 5.0 * p**3) / 24.0
    u2 = (81.0 * p**2 - 462.0 * p**4 + 385.0 * p**6) / 1152.0
    u3 = (30375.0 * p**3 - 369603.0 * p**5 + 765765.0 * p**7 - 425425.0 * p**9) / 414720.0
    series = 1.0 - (u1 - (u2 - u3 / nu) / nu) / nu
    at_zero = 1.0 + (1.0 / 12.0 + (1.0 / 288.0 - 139.0 / 51840.0 / nu) / nu) / nu
    # nu eta + nu log(z) remains of the exponent after s^nu and Stirling's formula have cancelled.
    x = z * z / (1.0 + root)  # root - 1 without cancellation
    exponent = -nu * (x - np.log1p(x / 2.0))
    return np.minimum(np.exp(exponent) * np.sqrt(p) * series / at_zero, 1.0)
