"""Posterior at points in weight space: exact for kernels of finite rank, a sketch for other kernels.

| symbol | name | meaning | shape |
|---|---|---|---|
| z(x) | `span.features` | features of a point, in its block | (r,) |
| K | `span.blocks` | number of blocks, such as arms | |
| W, w | `weights` | roots of the covariances, and means, of their weights | (K, r, r), (K, r) |
| mu | `predict` | z^T w | (n,) |
| sigma^2 | `predict` | |z^T W|^2 + variance outside of the span | (n,) |

An observation and a query cost O(r^2), whatever the number of observations. One of weight w is that of sqrt(w) z. For a
kernel of finite rank (`Kernel.features`) the features span all of f, and the posterior is exact. If f is an independent
function for each arm, each arm has a block of r features with observations of its own. A sketch has the
features of inducing points, which are drawn again from time to time (`draw_sketch`).
Observations in between are added at once, in the present span.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, finite_array, number, points_array
from .._utils.randomness import Draws
from ..errors import InvalidInput
from ..kernels import Kernel
from ..kernels.factorization import ROUNDING
from .arm_blocks import ArmBlocks, root_of_rows
from .feature_maps import FeatureMap, NystromFeatures, Terms, draw_sketch
from .observations import Observations
from .protocol import AtPoints, Gradients, check_regularization, std_gradient
from .spectrum import MappedRows, Spectrum, spectrum_of_grams

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

    OWNED = ("_seen", "_weights", "_gram", "_since")

    def __init__(
        self, kernel: Kernel, dimension: int, regularization: float, span: FeatureMap | None, terms: Terms | None
    ) -> None:
        self.kernel, self.dimension = kernel, dimension
        self.regularization = number("regularization", regularization, low=0.0, open_low=True)
        self.count = 0
        self._terms = terms
        self._span: FeatureMap = NystromFeatures(kernel, np.zeros((0, dimension)), 0.0, 0) if span is None else span
        self._weights = ArmBlocks(self._span.blocks, self._span.size, self.regularization)
        self._seen = Observations(dimension)
        self._changes = 0  # observations added and removed in all, the key of the next draw
        self._since = np.zeros(self._span.blocks, dtype=np.int64)  # since the mean of a block was refined
        self._outside = 0.0  # D^2 of a sketch
        self._limit = 0.0  # D^2 above which inducing points are drawn again
        self._frozen = self._weights  # those when the inducing points were drawn
        self._grown = 1.0  # 1 + sum of s^2 / lambda since, with that W
        self._gram: Array | None = None  # Z^T N Z of each block, from its first use on
        if terms is not None:
            self._limit = terms.accuracy**2 * self.regularization

    @property
    def rank(self) -> int:
        """Number of features of all blocks."""
        return self._span.blocks * self._span.size

    @property
    def span(self) -> FeatureMap:
        """Features of points."""
        return self._span

    @property
    def weights(self) -> ArmBlocks:
        """Posterior of the weights of the features, not to be changed."""
        return self._weights

    # -- observations --------------------------------------------------------------------------------------------

    def append(self, point: npt.ArrayLike, target: float, *, weight: float = 1.0) -> None:
        """Adds one observation of this weight. O(r^2)."""
        self.extend(np.reshape(point, (1, -1)), [target], weight=weight)

    def extend(self, points: npt.ArrayLike, targets: npt.ArrayLike, *, weight: float = 1.0) -> None:
        """Adds observations of this weight at `(m, d)` points with targets `(m,)`. O(r^2) each."""
        X, y = self._checked(points, targets)
        if self._terms is None:
            z = self._span.features(X)
            check_regularization(self.regularization, float(np.einsum("ij,ij->i", z, z).max(initial=0.0)))
            for x, target, block, features in zip(X, y.tolist(), self._span.blocks_of(X).tolist(), z, strict=True):
                self._seen.add(x, target, weight=weight)
                self.count += 1
                self._take(block, features, target, weight)
                self._changed(block)
            return
        priors = self.kernel.diagonal(X)
        check_regularization(self.regularization, float(priors.max(initial=0.0)))
        if len(X) >= ALL_AT_ONCE:
            self._take_all(self._terms, X, y, weight)
            return
        for x, target, prior in zip(X, y.tolist(), priors.tolist(), strict=True):
            self._seen.add(x, target, weight=weight)
            self.count += 1
            self._take_outside(x, target, prior, weight)
            self._changed(0)

    def _take_all(self, terms: Terms, X: Array, y: Array, weight: float) -> None:
        for x, target in zip(X, y.tolist(), strict=True):
            self._seen.add(x, target, weight=weight)
        self.count += len(X)
        self._changes += len(X)
        self._draw_anew(terms)

    def _take(self, block: int, z: Array, target: float, weight: float) -> None:
        root = math.sqrt(weight)
        z = root * z
        self._weights.add(block, z, root * target)
        if self._gram is not None:
            self._gram[block] += np.multiply.outer(z, z)

    def _take_outside(self, x: Array, target: float, prior: float, weight: float) -> None:
        z = self._span.features(x[None])[0]
        left = max(prior - float(z @ z), ROUNDING * prior)
        half = self._frozen.halves(np.zeros(1, dtype=np.intp), z[None])[0]
        self._outside += weight * left
        # Until 1 + sum exceeds C, variances at the draw are at most C times the present ones (BBKB, Calandriello et
        # al. 2020).
        self._grown += weight * (float(half @ half) + left) / self.regularization
        self._take(0, z, target, weight)

    def _changed(self, block: int) -> None:
        self._changes += 1
        if self._terms is not None:
            if self._outside > self._limit or self._grown > self._terms.growth:
                self._draw_anew(self._terms)
            return
        self._since[block] += 1
        # Half of the points of an average block: O(r) an observation, and O(K r) where one block has most points.
        if self._since[block] >= max(REFINE_EVERY, self._seen.size // (2 * self._span.blocks)):
            self._refine(block)

    def _refine(self, block: int) -> None:
        self._since[block] = 0
        self._weights.refine(block, *self._observed_in(block))

    def _observed_in(self, block: int) -> tuple[Array, Array, Array]:
        """Returns features, plays and average targets of the points in a block."""
        seen = self._seen
        if self._span.blocks == 1:
            return self._span.features(seen.points), seen.plays, seen.average
        own = self._span.members(seen.points, block)
        return self._span.features(seen.points[own]), seen.plays[own], seen.average[own]

    def _draw_anew(self, terms: Terms) -> None:
        rng = Draws(f"sketch {terms.seed} {self._changes}")
        before = (self._span, self._weights)
        found = draw_sketch(self.kernel, self._seen, self.regularization, before, terms, rng)  # type: ignore[arg-type]  # of a sketch
        self._span, self._weights, self._outside = found
        # If the largest number of points leaves out more, the next draw waits for more observations.
        self._limit = max(terms.accuracy**2 * self.regularization, 2.0 * self._outside)
        self._frozen, self._grown, self._gram = self._weights.copy(), 1.0, None

    def revise(self, point: npt.ArrayLike, old: float, new: float) -> None:
        """Replaces the target of one observation. O(r^2)."""
        x, old, new = self._row(point), number("old", old), number("new", new)
        self._seen.revise(x, old, new)
        self._weights.revise(int(self._span.blocks_of(x[None])[0]), self._span.features(x[None])[0], new - old)

    def revise_all(self, points: Sequence[Any], old: Sequence[float], new: Sequence[float]) -> None:
        """Replaces the targets of several observations. O(r^2), and O(r) each."""
        rows = np.array([self._row(point) for point in points])
        changes = finite_array("new", new) - finite_array("old", old)
        for row, before, after in zip(rows, old, new, strict=True):
            self._seen.revise(row, before, after)
        blocks, z = self._span.blocks_of(rows), self._span.features(rows)
        for block in np.unique(blocks).tolist():
            own = blocks == block
            self._weights.revise(block, changes[own] @ z[own], 1.0)

    def forget(self, point: npt.ArrayLike, target: float, *, weight: float = 1.0) -> None:
        """Removes one observation with this target and weight. O(r^2), and occasionally O(n r^2)."""
        x, target = self._row(point), number("target", target)
        self._seen.remove(x, target, weight=weight)
        self.count -= 1
        root, z, block = math.sqrt(weight), self._span.features(x[None])[0], int(self._span.blocks_of(x[None])[0])
        if self._terms is not None:
            prior = float(self.kernel.diagonal(x[None])[0])
            self._outside = max(self._outside - weight * max(prior - float(z @ z), ROUNDING * prior), 0.0)
        z = root * z
        if self._gram is not None:
            self._gram[block] -= np.multiply.outer(z, z)
        if self._weights.remove(block, z, root * target):
            self._changed(block)
            return
        self._changes += 1
        if self._terms is not None:
            self._draw_anew(self._terms)
        else:
            self._refactor(block)

    def _refactor(self, block: int) -> None:
        """Computes the root of a block from its observations, when subtraction would cancel what is left."""
        z, plays, _ = self._observed_in(block)
        rows = z * np.sqrt(plays / self.regularization)[:, None]
        self._weights.renew(block, root_of_rows(rows, self._span.size))
        self._refine(block)  # From 0, one refinement is a solve.
        self._refine(block)

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
        parts = [self._span.values(X[i : i + CHUNK], self._weights.mean) for i in range(0, len(X), CHUNK)]
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
        z, blocks = self._span.features(X), self._span.blocks_of(X)
        half = self._weights.halves(blocks, z)
        variance = np.einsum("ij,ij->i", half, half)
        if not self._span.exact:
            variance += self._span.left_out(X, z)
        return self._weights.means(blocks, z), variance

    def size_at(self, points: Array) -> float:
        """Returns the largest prior standard deviation at points `(m, d)`."""
        if self._span.blocks == 1:
            return super().size_at(points)
        z = self._span.features(points)  # The features of the context of a decision are known.
        return float(np.sqrt(np.einsum("ij,ij->i", z, z).max()))

    def mean_gradient(self, points: npt.ArrayLike) -> tuple[Array, Array]:
        """Returns the mean at `(m, d)` points and its gradient."""
        X = points_array("points", points, dimension=self.dimension)
        mean = self._weights.mean
        return self._span.values(X, mean), self._span.slopes(X, mean)

    def gradients(self, points: npt.ArrayLike) -> Gradients:
        """Returns mean and std at `(m, d)` points with their gradients."""
        X = points_array("points", points, dimension=self.dimension)
        mean, mean_gradient = self.mean_gradient(X)
        z, blocks = self._span.features(X), self._span.blocks_of(X)
        half = self._weights.halves(blocks, z)
        std = np.sqrt(np.einsum("ij,ij->i", half, half) + self._span.left_out(X, z))
        towards = self._weights.from_halves(blocks, half)
        if self._span.exact:
            slope = 2.0 * self._span.gradient(X, towards)
        else:
            slope = self.kernel.diagonal_gradient(X) + 2.0 * self._span.gradient(X, towards - z)
        return Gradients(mean, std, mean_gradient, std_gradient(std, slope))

    def covariance(self, points: npt.ArrayLike) -> Array:
        """Returns the joint posterior covariance of f at `m` points, `(m, m)`."""
        X = points_array("points", points, dimension=self.dimension)
        z, blocks = self._span.features(X), self._span.blocks_of(X)
        half = self._weights.halves(blocks, z)
        return np.asarray((blocks[:, None] == blocks) * (half @ half.T) + self._span.rest(X, X, z, z))

    def cross_covariance(self, points: npt.ArrayLike, others: npt.ArrayLike) -> Array:
        """Returns the posterior covariance of f between `n` points and `k` others, `(n, k)`."""
        X = points_array("points", points, dimension=self.dimension)
        Y = points_array("others", others, dimension=self.dimension)
        z, towards = self._span.features(X), self._span.features(Y)
        blocks, others_blocks = self._span.blocks_of(X), self._span.blocks_of(Y)
        inside = self._weights.halves(blocks, z) @ self._weights.halves(others_blocks, towards).T
        return np.asarray((blocks[:, None] == others_blocks) * inside + self._span.rest(X, Y, z, towards))

    def spectrum(self) -> Spectrum:
        """Returns the diagonalised observations. O(n r + K r^3), and O(n r^2) the first time and after a draw."""
        z, blocks = self._span.features(self._seen.points), self._span.blocks_of(self._seen.points)
        owned, plays = [blocks == block for block in range(self._span.blocks)], self._seen.plays
        if self._gram is None:
            self._gram = np.stack([(z[own] * plays[own, None]).T @ z[own] for own in owned])
        weighted = plays * self._seen.average
        right = np.stack([weighted[own] @ z[own] for own in owned])
        return spectrum_of_grams(
            self._gram, right, self._sum_of_squares(),
            lambda vectors: MappedRows(self._span.features, self._span.left_out, self._span.blocks_of, vectors),
        )  # fmt: skip

    def _sum_of_squares(self) -> float:
        return self._seen.scatter + float(self._seen.plays @ self._seen.average**2)

    @property
    def quadratic_form(self) -> float:
        """Quadratic form y^T (Q + lambda I)^{-1} y = |y - mu|^2 / lambda + |w|^2, a sum of squares. O(n r)."""
        seen, mean = self._seen, self._weights.mean.ravel()
        misfit = seen.scatter + float(seen.plays @ (seen.average - self.mean(seen.points)) ** 2)
        return misfit / self.regularization + float(mean @ mean)

    @property
    def mean_norm(self) -> float:
        """RKHS norm ||mu||_k = |w|."""
        return float(np.linalg.norm(self._weights.mean.ravel()))

    @property
    def log_determinant_ratio(self) -> float:
        """Log det(I + K / lambda).

        For a sketch this is the upper bound log det(I + Q / lambda) + tr(K - Q) / lambda.
        """
        return self._weights.log_ratio + self._outside / self.regularization
