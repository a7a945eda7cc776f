"""Posterior at points in weight space: exact for kernels of finite rank, a sketch for other kernels.

| symbol | name | meaning | shape |
|---|---|---|---|
| z(x) | `span.features` | features of a point | (r,) |
| W, w | `weights` | root of the covariance, and mean, of their weights | (r, r), (r,) |
| mu | `predict` | z^T w | (n,) |
| sigma^2 | `predict` | |z^T W|^2 + variance outside of the span | (n,) |

An observation and a query cost O(r^2), whatever the number of observations. For a kernel of finite rank
(`Kernel.features`) the features span all of f, and the posterior is exact. A sketch has the features of inducing
points, which are drawn again from time to time (`inducing`, which also bounds the error). Observations in between are
added at once, in the present span.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, finite_array, number, points_array
from .._utils.errors import InvalidInput
from .._utils.randomness import sketch_generator
from ..kernels import Kernel
from ..kernels.factorization import ROUNDING
from .at_points import AtPoints, Gradients, std_gradient
from .feature_maps import FeatureMap, KernelFeatures, NystromFeatures
from .inducing import Terms, draw_sketch
from .observations import Observations
from .protocol import check_regularization
from .spectrum import MappedRows, Spectrum, spectrum_of_gram
from .weights import Weights, root_of_rows

MOST_FEATURES = 128  # largest rank of a kernel for which features are faster than a factor of the points observed
REFINE_EVERY = 256  # observations between two refinements of the mean, at least
CHUNK = 2048  # points predicted at a time, which bounds the memory of a prediction
ALL_AT_ONCE = 64  # number of observations added together from which a sketch is drawn only once, after all


@final
class WeightSpacePosterior(AtPoints):
    """A posterior at O(r^2) an observation and a query, made by `posterior_at_points`.

    Args:
        kernel: prior covariance.
        dimension: number of columns of a point.
        regularization: lambda, reward units squared.
        span: features of a kernel of finite rank, or None for a sketch.
        terms: of a sketch, or None for a kernel of finite rank.
    """

    OWNED = ("_seen", "_weights", "_gram")

    def __init__(
        self, kernel: Kernel, dimension: int, regularization: float, span: KernelFeatures | None, terms: Terms | None
    ) -> None:
        self.kernel, self.dimension = kernel, dimension
        self.regularization = number("regularization", regularization, low=0.0, open_low=True)
        self.count = 0
        self._terms = terms
        self._span: FeatureMap = NystromFeatures(kernel, np.zeros((0, dimension)), 0.0, 0) if span is None else span
        self._weights = Weights(self._span.size, self.regularization)
        self._seen = Observations(dimension)
        self._changes = 0  # observations added and removed in all, the key of the next draw
        self._since = 0  # observations added and removed since the mean was refined
        self._outside = 0.0  # D^2 of a sketch
        self._limit = 0.0  # D^2 above which inducing points are drawn again
        self._frozen = self._weights.root  # W when the inducing points were drawn
        self._grown = 1.0  # 1 + sum of s^2 / lambda since, with that W
        self._gram: Array | None = None  # Z^T N Z, from its first use on
        if terms is not None:
            self._limit = terms.accuracy**2 * self.regularization

    @property
    def rank(self) -> int:
        """Number of features r."""
        return self._span.size

    @property
    def span(self) -> FeatureMap:
        """Features of points."""
        return self._span

    @property
    def weights(self) -> Weights:
        """Posterior of the weights of the features, not to be changed."""
        return self._weights

    # -- observations --------------------------------------------------------------------------------------------

    def append(self, point: npt.ArrayLike, target: float) -> None:
        """Adds one observation. O(r^2)."""
        self.extend(np.reshape(point, (1, -1)), [target])

    def extend(self, points: npt.ArrayLike, targets: npt.ArrayLike) -> None:
        """Adds observations at `(m, d)` points with targets `(m,)`. O(r^2) each."""
        X, y = self._checked(points, targets)
        if self._terms is None:
            z = self._span.features(X)
            check_regularization(self.regularization, float(np.einsum("ij,ij->i", z, z).max(initial=0.0)))
            for x, target, features in zip(X, y.tolist(), z, strict=True):
                self._seen.add(x, target)
                self.count += 1
                self._take(features, target)
                self._changed()
            return
        priors = self.kernel.diagonal(X)
        check_regularization(self.regularization, float(priors.max(initial=0.0)))
        if len(X) >= ALL_AT_ONCE:
            self._take_all(self._terms, X, y)
            return
        for x, target, prior in zip(X, y.tolist(), priors.tolist(), strict=True):
            self._seen.add(x, target)
            self.count += 1
            self._take_outside(x, target, prior)
            self._changed()

    def _take_all(self, terms: Terms, X: Array, y: Array) -> None:
        for x, target in zip(X, y.tolist(), strict=True):
            self._seen.add(x, target)
        self.count += len(X)
        self._changes += len(X)
        self._draw_anew(terms)

    def _take(self, z: Array, target: float) -> None:
        self._weights.add(z, target)
        if self._gram is not None:
            self._gram += np.multiply.outer(z, z)

    def _take_outside(self, x: Array, target: float, prior: float) -> None:
        z = self._span.features(x[None])[0]
        left = max(prior - float(z @ z), ROUNDING * prior)
        half = z @ self._frozen
        self._outside += left
        # Until 1 + sum exceeds C, variances at the draw are at most C times the present ones (BBKB, Calandriello et
        # al. 2020).
        self._grown += (float(half @ half) + left) / self.regularization
        self._take(z, target)

    def _changed(self) -> None:
        self._changes += 1
        self._since += 1
        if self._terms is not None:
            if self._outside > self._limit or self._grown > self._terms.growth:
                self._draw_anew(self._terms)
        elif self._since >= max(REFINE_EVERY, self._seen.size):  # amortised O(r) an observation
            self._refine()

    def _refine(self) -> None:
        self._since = 0
        self._weights.refine(self._span.features(self._seen.points), self._seen.plays, self._seen.average)

    def _draw_anew(self, terms: Terms) -> None:
        rng = sketch_generator(terms.seed, self._changes)
        before = (self._span, self._weights)
        found = draw_sketch(self.kernel, self._seen, self.regularization, before, terms, rng)  # type: ignore[arg-type]  # of a sketch
        self._span, self._weights, self._outside = found
        # If the largest number of points leaves out more, the next draw waits for more observations.
        self._limit = max(terms.accuracy**2 * self.regularization, 2.0 * self._outside)
        self._frozen, self._grown, self._gram = self._weights.root.copy(order="F"), 1.0, None

    def revise(self, point: npt.ArrayLike, old: float, new: float) -> None:
        """Replaces the target of one observation. O(r^2)."""
        x, old, new = self._row(point), number("old", old), number("new", new)
        self._seen.revise(x, old, new)
        self._weights.revise(self._span.features(x[None])[0], new - old)

    def revise_all(self, points: Sequence[Any], old: Sequence[float], new: Sequence[float]) -> None:
        """Replaces the targets of several observations. O(r^2), and O(r) each."""
        rows = np.array([self._row(point) for point in points])
        changes = finite_array("new", new) - finite_array("old", old)
        for row, before, after in zip(rows, old, new, strict=True):
            self._seen.revise(row, before, after)
        self._weights.revise(changes @ self._span.features(rows), 1.0)

    def forget(self, point: npt.ArrayLike, target: float) -> None:
        """Removes one observation with this target. O(r^2), and occasionally O(n r^2)."""
        x, target = self._row(point), number("target", target)
        self._seen.remove(x, target)
        self.count -= 1
        z = self._span.features(x[None])[0]
        if self._gram is not None:
            self._gram -= np.multiply.outer(z, z)
        if self._terms is not None:
            prior = float(self.kernel.diagonal(x[None])[0])
            self._outside = max(self._outside - max(prior - float(z @ z), ROUNDING * prior), 0.0)
        if self._weights.remove(z, target):
            self._changed()
            return
        self._changes += 1
        if self._terms is not None:
            self._draw_anew(self._terms)
        else:
            self._refactor()

    def _refactor(self) -> None:
        """Computes the root from the observations, when subtraction would cancel what is left."""
        seen = self._seen
        rows = self._span.features(seen.points) * np.sqrt(seen.plays / self.regularization)[:, None]
        self._weights.renew(root_of_rows(rows, self.rank))
        self._refine()  # From 0, one refinement is a solve.
        self._refine()

    def _row(self, point: npt.ArrayLike) -> Array:
        row = self._as_row(point)
        self._seen.place(row)
        return row

    # -- predictions ---------------------------------------------------------------------------------------------

    @property
    def landmarks(self) -> Array:
        """All distinct points, or the inducing points of a sketch."""
        return self._span.points if isinstance(self._span, NystromFeatures) else self._seen.points

    def landmark_means(self) -> Array:
        """Returns the posterior mean at each landmark."""
        return self.mean(self.landmarks)

    def mean(self, points: npt.ArrayLike) -> Array:
        """Returns the posterior mean, `(m,)`."""
        X = points_array("points", points, dimension=self.dimension)
        parts = [self._span.features(X[i : i + CHUNK]) @ self._weights.mean for i in range(0, len(X), CHUNK)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def means_of(self, points: npt.ArrayLike) -> Array:
        """Returns the posterior mean at `(m, d)` points, `(m,)`."""
        return self.mean(points)

    def predict(self, points: npt.ArrayLike | None = None) -> tuple[Array, Array]:
        """Returns posterior mean and standard deviation of f at `(m, d)` points, each `(m,)`."""
        if points is None:
            raise InvalidInput("A posterior on a continuous domain predicts at points: give them, `(n, d)`.")
        X = points_array("points", points, dimension=self.dimension)
        if len(X) <= CHUNK:
            mean, variance = self._moments(X)
            return mean, np.sqrt(variance)
        parts = [self._moments(X[i : i + CHUNK]) for i in range(0, len(X), CHUNK)]
        return np.concatenate([mean for mean, _ in parts]), np.sqrt(np.concatenate([var for _, var in parts]))

    def _moments(self, X: Array) -> tuple[Array, Array]:
        z = self._span.features(X)
        half = z @ self._weights.root
        variance = np.einsum("ij,ij->i", half, half)
        if not self._span.exact:
            variance += self._span.left_out(X, z)
        return z @ self._weights.mean, variance

    def mean_gradient(self, points: npt.ArrayLike) -> tuple[Array, Array]:
        """Returns the mean at `(m, d)` points and its gradient."""
        X = points_array("points", points, dimension=self.dimension)
        mean = self._weights.mean
        return self._span.features(X) @ mean, self._span.gradient(X, np.broadcast_to(mean, (len(X), len(mean))))

    def gradients(self, points: npt.ArrayLike) -> Gradients:
        """Returns mean and std at `(m, d)` points with their gradients."""
        X = points_array("points", points, dimension=self.dimension)
        mean, mean_gradient = self.mean_gradient(X)
        z = self._span.features(X)
        half = z @ self._weights.root
        std = np.sqrt(np.einsum("ij,ij->i", half, half) + self._span.left_out(X, z))
        towards = half @ self._weights.root.T
        if self._span.exact:
            slope = 2.0 * self._span.gradient(X, towards)
        else:
            slope = self.kernel.diagonal_gradient(X) + 2.0 * self._span.gradient(X, towards - z)
        return Gradients(mean, std, mean_gradient, std_gradient(std, slope))

    def covariance(self, points: npt.ArrayLike) -> Array:
        """Returns the joint posterior covariance of f at `m` points, `(m, m)`."""
        X = points_array("points", points, dimension=self.dimension)
        z = self._span.features(X)
        half = z @ self._weights.root
        return np.asarray(half @ half.T + self._span.rest(X, X, z, z))

    def cross_covariance(self, points: npt.ArrayLike, others: npt.ArrayLike) -> Array:
        """Returns the posterior covariance of f between `n` points and `k` others, `(n, k)`."""
        X = points_array("points", points, dimension=self.dimension)
        Y = points_array("others", others, dimension=self.dimension)
        z, towards = self._span.features(X), self._span.features(Y)
        inside = (z @ self._weights.root) @ (towards @ self._weights.root).T
        return np.asarray(inside + self._span.rest(X, Y, z, towards))

    def spectrum(self) -> Spectrum:
        """Returns the diagonalised observations. O(n r + r^3), and O(n r^2) the first time and after a draw."""
        z = self._span.features(self._seen.points)
        if self._gram is None:
            self._gram = (z * self._seen.plays[:, None]).T @ z
        return spectrum_of_gram(
            self._gram, z.T @ (self._seen.plays * self._seen.average), self._sum_of_squares(),
            lambda vectors: MappedRows(self._span.features, self._span.left_out, vectors),
        )  # fmt: skip

    def _sum_of_squares(self) -> float:
        return self._seen.scatter + float(self._seen.plays @ self._seen.average**2)

    @property
    def quadratic_form(self) -> float:
        """Quadratic form y^T (Q + lambda I)^{-1} y = |y - mu|^2 / lambda + |w|^2, a sum of squares. O(n r)."""
        seen, mean = self._seen, self._weights.mean
        misfit = seen.scatter + float(seen.plays @ (seen.average - self.mean(seen.points)) ** 2)
        return misfit / self.regularization + float(mean @ mean)

    @property
    def mean_norm(self) -> float:
        """RKHS norm ||mu||_k = |w|."""
        return float(np.linalg.norm(self._weights.mean))

    @property
    def log_determinant_ratio(self) -> float:
        """Log det(I + K / lambda).

        For a sketch this is the upper bound log det(I + Q / lambda) + tr(K - Q) / lambda.
        """
        return self._weights.log_ratio + self._outside / self.regularization
