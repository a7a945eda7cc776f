"""Sample paths: functions drawn from the posterior, which can be evaluated and differentiated anywhere.

Pathwise conditioning (Matheron's rule, Wilson et al. 2021): with g a path of the prior,

    f(x) = g(x) + k(x, U) M^{-1} (ybar - g(U) - eps),    eps_i ~ N(0, lambda / n_i),

is a path of the posterior, exactly if g is exact. `prior_path` draws g. It uses random waves if the
kernel's spectrum can be drawn from, and otherwise samples jointly at the points that are asked for.

A `PriorPath` is a function drawn from the prior.

| symbol | name | meaning | shape |
|---|---|---|---|
| g | | a function drawn from GP(0, k) | |
| m | `waves` | number of waves in a sum of waves | |
| Z | `_pivots` | points whose joint sample determines g elsewhere | (r, d) |
| L | `_root` | Cholesky factor of k(Z, Z) | (r, r) |
| xi | `_normals` | standard normal | (r,) |

Kernels whose spectrum can be drawn from (`Spectral.frequencies`) and their products have sums of m random waves (Rahimi
and Recht 2007),

    g(x) = sqrt(scale / m) sum_j a_j cos(omega_j x) + b_j sin(omega_j x),    a_j, b_j ~ N(0, 1),

with frequencies laid out by a scrambled Sobol sequence. In few dimensions the covariance of g is then right to a few
thousandths already at m = 1,024. Linear kernels have a random slope, sums of kernels independent paths.

All others are sampled jointly at the points that are asked for: g(x) = k(x, Z) L^{-T} xi. The pivots Z are chosen
greedily among these points until the residual variance is at most `LEFT_OUT` of the prior variance (pivoted Cholesky).
The covariance is that of the kernel to `LEFT_OUT`, in any dimension, until `MOST` pivots are used up. From there on g
lacks the residual variance, which in rough kernels may be noticeable. A pivot that comes later changes g where it was
evaluated before by about sqrt(LEFT_OUT) standard deviations.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import singledispatch
from typing import NamedTuple, Self, cast, final

import numpy as np

from .._utils.checks import Array, integer, shown
from .._utils.copying import independent
from .._utils.randomness import Rng, sobol_points
from ..errors import InvalidInput
from ..kernels import Active, Kernel, Linear, Mixture, PointKernel, Product, Spectral, Sum, Tied
from ..kernels.factorization import first_largest
from .feature_maps import NystromFeatures
from .points import PointPosterior
from .protocol import AtPoints
from .weight_space import WeightSpacePosterior

LEFT_OUT = 1e-9  # share of the largest prior variance that joint samples may lack
MOST = 512  # largest number of pivots: 2 MB, and about as much work for a point as a thousand waves

Columns = tuple[int, ...]


class PriorPath(ABC):
    """A function drawn from GP(0, k)."""

    @abstractmethod
    def plus(self, others: Array, points: Array) -> Array:
        """Returns values at `(m, d)` points, added to those of other paths, `(m,)`."""

    @abstractmethod
    def gradients(self, points: Array) -> Array:
        """Returns gradients at `(m, d)` points, `(m, d)`."""

    @abstractmethod
    def widened(self, factor: float) -> Self:
        """Returns the function times a number."""

    def fix(self, points: Array) -> None:  # noqa: B027 - most are fixed from the beginning
        """Fixes the function for all later points, so that it is right at these points `(m, d)`."""


@final
class Slopes(PriorPath):
    """A linear function through the origin."""

    def __init__(self, slopes: Array) -> None:
        self._slopes = slopes

    def plus(self, others: Array, points: Array) -> Array:
        """Returns values at `(m, d)` points, added to those of other paths, `(m,)`."""
        return np.asarray(others + points @ self._slopes)

    def gradients(self, points: Array) -> Array:
        """Returns the slopes, at every point."""
        return np.broadcast_to(self._slopes, points.shape)

    def widened(self, factor: float) -> Slopes:
        """Returns the function times a number."""
        return Slopes(factor * self._slopes)


@final
class Waves(PriorPath):
    """A sum of waves.

    Args:
        frequencies: `(m, d)`.
        cosines: amplitudes of the cosines, `(m,)`.
        sines: amplitudes of the sines, `(m,)`.
    """

    def __init__(self, frequencies: Array, cosines: Array, sines: Array) -> None:
        self._frequencies, self._cosines, self._sines = frequencies, cosines, sines

    def plus(self, others: Array, points: Array) -> Array:
        """Returns values at `(m, d)` points, added to those of other paths, `(m,)`."""
        phases = points @ self._frequencies.T
        return np.asarray(others + np.cos(phases) @ self._cosines + np.sin(phases) @ self._sines)

    def gradients(self, points: Array) -> Array:
        """Returns gradients at `(m, d)` points, `(m, d)`."""
        phase = points @ self._frequencies.T
        return np.asarray((self._sines * np.cos(phase) - self._cosines * np.sin(phase)) @ self._frequencies)

    def widened(self, factor: float) -> Waves:
        """Returns the function times a number."""
        return Waves(self._frequencies, factor * self._cosines, factor * self._sines)


@final
class Joint(PriorPath):
    """A function sampled jointly at the points asked for, which depends on these points and their order."""

    def __init__(self, kernel: Kernel, dimension: int, rng: Rng, *, factor: float = 1.0) -> None:
        self._kernel, self._factor = kernel, factor
        self._normals = rng.standard_normal(MOST)
        self._pivots = np.zeros((0, dimension))
        self._root = np.zeros((0, 0), order="F")
        self._largest = 0.0  # prior variance seen so far
        self._weights = np.zeros(0)
        self._most = MOST

    def plus(self, others: Array, points: Array) -> Array:
        """Returns values at `(m, d)` points, added to those of other paths, `(m,)`."""
        self._grow(points)
        if not len(self._pivots):
            return others
        return np.asarray(others + self._factor * (self._kernel(points, self._pivots) @ self._weights))

    def gradients(self, points: Array) -> Array:
        """Returns gradients at `(m, d)` points, `(m, d)`."""
        self._grow(points)
        if not len(self._pivots):
            return np.zeros(points.shape)
        weights = np.broadcast_to(self._factor * self._weights, (len(points), len(self._weights)))
        return self._kernel.input_gradient(points, self._pivots, weights)

    def widened(self, factor: float) -> Joint:
        """Returns the function times a number, which from here on has its own pivots."""
        return independent(self, fresh={"_factor": factor * self._factor})

    def fix(self, points: Array) -> None:
        """Chooses pivots among these points, and among no others afterwards."""
        self._grow(points)
        self._most = len(self._pivots)

    def _grow(self, points: Array) -> None:
        """Adds the missing pivots among the points, by continuing the pivoted Cholesky factorisation."""
        from scipy.linalg import solve_triangular

        known = len(self._pivots)
        if known == self._most:
            return
        variances = self._kernel.diagonal(points)
        features: Array = np.zeros((known, len(points)))
        if known:
            features = solve_triangular(self._root, self._kernel(self._pivots, points), lower=True, check_finite=False)
        left = variances - np.einsum("ij,ij->j", features, features)
        self._largest = max(self._largest, float(variances.max(initial=0.0)))
        chosen: list[int] = []
        room = np.zeros((min(self._most - known, len(points)), len(points)))
        while len(chosen) < len(room) and left.max() > LEFT_OUT * self._largest:
            pivot, count = first_largest(left, self._largest), len(chosen)
            new = self._kernel(points[pivot][None], points)[0]
            new = new - features[:, pivot] @ features - room[:count, pivot] @ room[:count]
            room[count] = new / math.sqrt(left[pivot])
            left -= room[count] ** 2
            left[pivot] = 0.0
            chosen.append(pivot)
        if chosen:
            self._extend(points[chosen], np.concatenate([features, room[: len(chosen)]])[:, chosen])

    def _extend(self, pivots: Array, columns: Array) -> None:
        from scipy.linalg import solve_triangular

        known, count = len(self._pivots), len(self._pivots) + len(pivots)
        root = np.zeros((count, count))
        root[:known, :known] = self._root
        root[known:] = np.tril(columns.T, known)
        self._root, self._pivots = root, np.concatenate([self._pivots, pivots])
        self._weights = solve_triangular(root, self._normals[:count], lower=True, trans="T", check_finite=False)


class Factor(NamedTuple):
    """A factor of a product of kernels, and the columns that it sees."""

    kernel: Spectral
    columns: Columns


@singledispatch
def summands(kernel: Kernel, columns: Columns) -> list[tuple[Kernel, Columns]]:
    """Returns the terms of a sum, and the columns that each term sees."""
    return [(kernel, columns)]


@summands.register(Sum)
def _sum(kernel: Sum, columns: Columns) -> list[tuple[Kernel, Columns]]:
    return [*summands(kernel.left, columns), *summands(kernel.right, columns)]


@summands.register(Active)
def _active_sum(kernel: Active, columns: Columns) -> list[tuple[Kernel, Columns]]:
    return list(summands(kernel.kernel, tuple(columns[i] for i in kernel.dimensions)))


@summands.register(Mixture)
def _mixture(kernel: Mixture, columns: Columns) -> list[tuple[Kernel, Columns]]:
    return list(summands(kernel.expanded, columns))


@singledispatch
def factors(kernel: Kernel, columns: Columns) -> list[Factor] | None:  # noqa: ARG001 - has no spectrum
    """Returns the factors of a product of kernels whose spectra can all be drawn from, otherwise None."""
    return None


@factors.register(Spectral)
def _spectral(kernel: Spectral, columns: Columns) -> list[Factor] | None:
    known = kernel.frequencies(np.full((1, len(columns) + 1), 0.5)) is not None
    return [Factor(kernel, columns)] if known else None


@factors.register(Product)
def _product(kernel: Product, columns: Columns) -> list[Factor] | None:
    left, right = factors(kernel.left, columns), factors(kernel.right, columns)
    return None if left is None or right is None else left + right


@factors.register(Active)
def _active(kernel: Active, columns: Columns) -> list[Factor] | None:
    found: list[Factor] | None = factors(kernel.kernel, tuple(columns[i] for i in kernel.dimensions))
    return found


@factors.register(Tied)
def _tied(kernel: Tied, columns: Columns) -> list[Factor] | None:
    found: list[Factor] | None = factors(kernel.expanded, columns)
    return found


@singledispatch
def prior_path(
    kernel: Kernel,
    columns: Columns,  # noqa: ARG001 - kernels without coordinates have no path
    dimension: int,  # noqa: ARG001
    waves: int,  # noqa: ARG001
    rng: Rng,  # noqa: ARG001
) -> PriorPath:
    """Returns a function drawn from GP(0, k), for a kernel that sees some columns of points.

    A kernel of your own may have a better one: `prior_path.register(MyKernel)`.

    Args:
        kernel: k.
        columns: columns that the kernel sees.
        dimension: number of columns of the points.
        waves: m.
        rng: source of randomness.
    """
    raise InvalidInput(
        f"Paths are drawn for kernels of the points' coordinates, not for {shown(kernel)}. On arms, joint samples need "
        "no path."
    )


@prior_path.register(PointKernel)
@prior_path.register(Product)
def _by_spectrum_or_jointly(kernel: Kernel, columns: Columns, dimension: int, waves: int, rng: Rng) -> PriorPath:
    spectral = factors(kernel, columns)
    if spectral is None:
        return Joint(kernel if columns == tuple(range(dimension)) else kernel.on(*columns), dimension, rng)
    frequencies = _frequencies(spectral, dimension, waves, rng)
    scale = math.prod(factor.kernel.scale for factor in spectral)
    return Waves(frequencies, *(np.sqrt(scale / waves) * rng.standard_normal((2, waves))))


@prior_path.register(Linear)
def _linear(
    kernel: Linear,
    columns: Columns,
    dimension: int,
    waves: int,  # noqa: ARG001 - has none
    rng: Rng,
) -> PriorPath:
    slopes = np.zeros(dimension)
    slopes[list(columns)] = np.sqrt(kernel.scale) * rng.standard_normal(len(columns))
    return Slopes(slopes)


def _frequencies(spectral: list[Factor], d: int, count: int, rng: Rng) -> Array:
    """Returns frequencies `(count, d)` of a product, the sums of its factors' frequencies."""
    # All factors share one sequence. Two scrambled sequences share their first digits, so the frequencies of two
    # factors would have equal signs.
    wanted = [len(factor.columns) + 1 for factor in spectral]
    unit = np.clip(sobol_points(sum(wanted), count, rng), 1e-12, 1.0 - 1e-12)
    frequencies = np.zeros((count, d))
    for factor, part in zip(spectral, np.split(unit, np.cumsum(wanted)[:-1], axis=1), strict=True):
        drawn = factor.kernel.frequencies(part)
        if drawn is not None:  # guaranteed by `factors`
            frequencies[:, list(factor.columns)] += drawn
    return frequencies


WAVES = 1024


@final
class Path:
    """A function drawn from the posterior by `sample_path`.

    f(x) = g(x) + z(x)^T w with g a sum of prior paths, z features of a point, and w weights.

    Args:
        values: function of `(m, d)` points and w that returns z^T w, `(m,)`.
        slopes: function of `(m, d)` points and w that returns the gradients of z^T w, `(m, d)`.
        parts: prior paths, whose sum is g.
        weights: w.
        mean: weights of the posterior mean mu(x) = z(x)^T `mean`, of the shape of w.
    """

    def __init__(
        self,
        values: Callable[[Array, Array], Array],
        slopes: Callable[[Array, Array], Array],
        parts: list[PriorPath],
        weights: Array,
        mean: Array,
    ) -> None:
        self._values, self._slopes, self._parts = values, slopes, parts
        self._weights, self._mean = weights, mean

    def widened(self, factor: float) -> Path:
        """Returns the path mu + factor (f - mu): a draw from GP(mu, factor^2 cov)."""
        weights = factor * self._weights + (1.0 - factor) * self._mean
        parts = [part.widened(factor) for part in self._parts]
        return Path(self._values, self._slopes, parts, weights, self._mean)

    def __call__(self, points: Array) -> Array:
        """Returns values at `(m, d)` points, `(m,)`."""
        return sum_of_paths(self._parts, points) + self._values(points, self._weights)

    def slope(self, point: Array) -> tuple[float, Array]:
        """Returns value and gradient `(d,)` at one point `(d,)`."""
        values, gradients = self.slopes(point[None])
        return float(values[0]), gradients[0]

    def slopes(self, points: Array) -> tuple[Array, Array]:
        """Returns values `(m,)` and gradients `(m, d)` at `(m, d)` points."""
        gradients = self._slopes(points, self._weights)
        for part in self._parts:
            gradients = gradients + part.gradients(points)
        return self(points), gradients

    def fix(self, points: Array) -> Path:
        """Fixes the function at these points, smooth between them, and returns the path itself.

        Paths of kernels that are sampled jointly depend on the points asked for until then. Other paths are fixed from
        the beginning.
        """
        for part in self._parts:
            part.fix(points)
        return self


def sum_of_paths(parts: list[PriorPath], points: Array) -> Array:
    """Returns the values of a sum of prior paths at `(m, d)` points, `(m,)`."""
    values = np.zeros(len(points))
    for part in parts:
        values = part.plus(values, points)
    return values


class _Covariances(NamedTuple):
    """Prior covariances k(x, U) with fixed points U `(n, d)`, as features of x."""

    kernel: Kernel
    points: Array

    def values(self, points: Array, weights: Array) -> Array:
        return np.asarray(self.kernel(points, self.points) @ weights)

    def slopes(self, points: Array, weights: Array) -> Array:
        every = np.broadcast_to(weights, (len(points), len(weights)))
        return self.kernel.input_gradient(points, self.points, every)


def _path_at_points(posterior: PointPosterior, parts: list[PriorPath], rng: Rng) -> Path:
    """Returns f(x) = g(x) + k(x, U) M^{-1} (ybar - g(U) - eps)."""
    kernel, points = posterior.kernel, posterior.points.copy()
    noise = rng.standard_normal(posterior.rank) * np.sqrt(posterior.regularization / posterior.plays)
    weights = posterior.solve_targets(posterior.average - sum_of_paths(parts, points) - noise)
    known = _Covariances(kernel, points)
    return Path(known.values, known.slopes, parts, weights, posterior.weights)


def _path_in_span(posterior: WeightSpacePosterior, parts: list[PriorPath], rng: Rng) -> Path:
    """Returns f(x) = z(x)^T (w + W xi), and for a sketch g(x) - z(x)^T L^{-1} g(S) in addition.

    That term is what is left of a prior path g when g is known in the span. It is independent of the first term.
    """
    span, known = posterior.span, posterior.weights
    weights = known.mean + known.from_halves(np.arange(known.count), rng.standard_normal(known.mean.shape))
    if isinstance(span, NystromFeatures):
        weights = weights - span.solve(sum_of_paths(parts, span.points))
    return Path(span.values, span.slopes, parts, weights, known.mean.copy())


def drawn_path(posterior: AtPoints, rng: Rng) -> Path:
    """Returns a function drawn from the posterior of f.

    Raises:
        InvalidInput: the posterior has a model for each arm, which are not drawn together.
    """
    if not isinstance(posterior, WeightSpacePosterior):
        if not hasattr(posterior, "dimension"):
            raise InvalidInput(
                "The policy has a model for each arm, so no function of arms and contexts together can be drawn.",
                advice="`nr.plots.history` and `study.predict` show what is known.",
            )
        return sample_path(cast(PointPosterior, posterior), rng)
    return _path_in_span(posterior, [] if posterior.span.exact else _prior_parts(posterior, WAVES, rng), rng)


def sample_path(posterior: PointPosterior, rng: Rng, *, waves: int = WAVES) -> Path:
    """Returns a function drawn from the posterior of f.

    Args:
        posterior: at points.
        rng: source of all randomness.
        waves: m, a power of two. If the prior path is made of waves, its covariance is right to about 1 / m in few
            dimensions.
    """
    integer("waves", waves, low=2)
    return _path_at_points(posterior, _prior_parts(posterior, waves, rng), rng)


def _prior_parts(posterior: AtPoints, waves: int, rng: Rng) -> list[PriorPath]:
    d = posterior.dimension
    terms = summands(posterior.kernel, tuple(range(d)))
    parts = [prior_path(kernel, columns, d, waves, rng) for kernel, columns in terms]
    # Slopes come first, since the order of a sum affects its rounding.
    return sorted(parts, key=lambda part: not isinstance(part, Slopes))
