"""Posterior at points in a span of finitely many functions: kernels of finite rank, exactly; others by a sketch.

| symbol | name | meaning | shape |
|---|---|---|---|
| z(x) | `span.features` | features of a point | (r,) |
| W, w | `weights` | root of the covariance, and mean, of their weights | (r, r), (r,) |
| mu | `predict` | z^T w | (n,) |
| sigma^2 | `predict` | |z^T W|^2 + what is outside of the span | (n,) |

An observation and a question cost O(r^2), however many there have been. Of a kernel of finite rank (`Kernel.features`)
the span is all there is, and the posterior exact. Of a sketch it is that of inducing points, drawn anew from time to
time (`inducing`, which also says how far it may be off): what comes in between is taken in at once, in the span that
there is.
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
from .at_points import AtPoints, Gradients
from .factorization import ROUNDING, covariance_root
from .inducing import Terms, drawn
from .observations import Observations
from .protocol import LEAST_REGULARIZATION
from .spans import InducedSpan, KernelSpan, Span
from .spectrum import MappedRows, Spectrum, spectrum_of_gram
from .weights import Weights, root_of_rows

MOST_FEATURES = 128  # of a kernel of finite rank; beyond, a factor of the points observed is as quick for long
REFINE_EVERY = 256  # observations between two refinements of the mean, at least
CHUNK = 2048  # points predicted at a time, which bounds the memory of a prediction
ALL_AT_ONCE = 64  # observations that come together for which a sketch is made anew once, not on the way


@final
class SpannedPosterior(AtPoints):
    """Posterior at O(r^2) an observation and a question; made by `posterior_at_points`.

    Args:
        kernel: prior covariance.
        dimension: number of columns of a point.
        regularization: lambda, reward units squared.
        span: of a kernel of finite rank; None for a sketch.
        terms: of a sketch; None for a kernel of finite rank.
    """

    OWNED = ("_seen", "_weights", "_gram")

    def __init__(
        self, kernel: Kernel, dimension: int, regularization: float, span: KernelSpan | None, terms: Terms | None
    ) -> None:
        self.kernel, self.dimension = kernel, dimension
        self.regularization = number("regularization", regularization, low=0.0, open_low=True)
        self.count = 0
        self._terms = terms
        self._span: Span = InducedSpan(kernel, np.zeros((0, dimension)), 0.0, 0) if span is None else span
        self._weights = Weights(self._span.size, self.regularization)
        self._seen = Observations(dimension)
        self._changes = 0  # observations added and taken out in all: what draws are keyed by
        self._since = 0  # of them since the mean was refined
        self._outside = 0.0  # D^2 of a sketch
        self._limit = 0.0  # D^2 at which inducing points are drawn anew
        self._frozen = self._weights.root  # W when they were drawn
        self._grown = 1.0  # 1 + sum of s^2 / lambda since, with that W
        self._gram: Array | None = None  # Z^T N Z, once it has been asked for
        if terms is not None:
            self._limit = terms.accuracy**2 * self.regularization

    @property
    def rank(self) -> int:
        """Number of features r."""
        return self._span.size

    @property
    def span(self) -> Span:
        """In which f is looked for."""
        return self._span

    @property
    def weights(self) -> Weights:
        """What is known of the weights of its features; not to be changed."""
        return self._weights

    # -- history -------------------------------------------------------------------------------------------------

    def append(self, point: npt.ArrayLike, target: float) -> None:
        """Add one observation. O(r^2)."""
        self.extend(np.reshape(point, (1, -1)), [target])

    def extend(self, points: npt.ArrayLike, targets: npt.ArrayLike) -> None:
        """Add observations at `(m, d)` points, targets `(m,)`. O(r^2) each."""
        X = points_array("points", points, dimension=self.dimension) + 0.0
        y = finite_array("targets", targets)
        if y.shape != (len(X),):
            raise InvalidInput(f"`targets` has shape {y.shape}: it must be ({len(X)},), one target for each.")
        if self._terms is None:
            z = self._span.features(X)
            self._check_ridge(float(np.einsum("ij,ij->i", z, z).max(initial=0.0)))
            for x, target, features in zip(X, y.tolist(), z, strict=True):
                self._seen.add(x, target)
                self.count += 1
                self._take(features, target)
                self._changed()
            return
        priors = self.kernel.diagonal(X)
        self._check_ridge(float(priors.max(initial=0.0)))
        if len(X) >= ALL_AT_ONCE:
            self._take_all(self._terms, X, y)
            return
        for x, target, prior in zip(X, y.tolist(), priors.tolist(), strict=True):
            self._seen.add(x, target)
            self.count += 1
            self._take_outside(x, target, prior)
            self._changed()

    def _check_ridge(self, prior: float) -> None:
        if self.regularization < LEAST_REGULARIZATION * prior:
            raise InvalidInput(
                f"`regularization` is {self.regularization:g} where the prior variance is {prior:g}: below "
                f"{LEAST_REGULARIZATION:g} of it, rounding in the kernel matrix is larger than the noise. Use at least "
                "that, or a smaller `scale` in the kernel."
            )

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
        # BBKB (Calandriello et al. 2020): until then variances at the draw are at most C times those of now.
        self._grown += (float(half @ half) + left) / self.regularization
        self._take(z, target)

    def _changed(self) -> None:
        self._changes += 1
        self._since += 1
        if self._terms is not None:
            if self._outside > self._limit or self._grown > self._terms.growth:
                self._draw_anew(self._terms)
        elif self._since >= max(REFINE_EVERY, self._seen.size):  # seldom enough to cost O(r) an observation
            self._refine()

    def _refine(self) -> None:
        self._since = 0
        self._weights.refine(self._span.features(self._seen.points), self._seen.plays, self._seen.average)

    def _draw_anew(self, terms: Terms) -> None:
        rng = sketch_generator(terms.seed, self._changes)
        before = (self._span, self._weights)
        found = drawn(self.kernel, self._seen, self.regularization, before, terms, rng)  # type: ignore[arg-type]  # of a sketch
        self._span, self._weights, self._outside = found
        # Where even as many points as there may be leave more out, another draw has to wait for news.
        self._limit = max(terms.accuracy**2 * self.regularization, 2.0 * self._outside)
        self._frozen, self._grown, self._gram = self._weights.root.copy(order="F"), 1.0, None

    def revise(self, point: npt.ArrayLike, old: float, new: float) -> None:
        """Change the target of one observation from `old` to `new`. O(r^2)."""
        x, old, new = self._row(point), number("old", old), number("new", new)
        self._seen.revise(x, old, new)
        self._weights.revise(self._span.features(x[None])[0], new - old)

    def revise_all(self, points: Sequence[Any], old: Sequence[float], new: Sequence[float]) -> None:
        """Change the targets of several observations. O(r^2), and O(r) each."""
        rows = np.array([self._row(point) for point in points])
        changes = finite_array("new", new) - finite_array("old", old)
        for row, before, after in zip(rows, old, new, strict=True):
            self._seen.revise(row, before, after)
        self._weights.revise(changes @ self._span.features(rows), 1.0)

    def forget(self, point: npt.ArrayLike, target: float) -> None:
        """Take one observation with this target back out. O(r^2); now and then O(n r^2)."""
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
        """The root afresh from what was observed: what is left cannot be had by subtraction."""
        seen = self._seen
        rows = self._span.features(seen.points) * np.sqrt(seen.plays / self.regularization)[:, None]
        self._weights.renew(root_of_rows(rows, self.rank))
        self._refine()  # from 0 a step is a solve
        self._refine()

    def _row(self, point: npt.ArrayLike) -> Array:
        row = np.asarray(points_array("point", np.reshape(point, (1, -1)), dimension=self.dimension)[0] + 0.0)
        self._seen.place(row)
        return row

    # -- answers -------------------------------------------------------------------------------------------------

    @property
    def points(self) -> Array:
        """The distinct points observed, `(n, d)`."""
        return self._seen.points

    @property
    def plays(self) -> npt.NDArray[np.int64]:
        """Observations of each distinct point, `(n,)`."""
        return self._seen.plays

    @property
    def average(self) -> Array:
        """Average target of each distinct point, `(n,)`."""
        return self._seen.average

    @property
    def noisy(self) -> bool:
        """Whether points that came again had several targets, or none came again."""
        return self._seen.noisy

    @property
    def landmarks(self) -> Array:
        """All distinct points; the inducing ones of a sketch."""
        return self._span.points if isinstance(self._span, InducedSpan) else self._seen.points

    def landmark_means(self) -> Array:
        """Posterior mean at each landmark."""
        return self.mean(self.landmarks)

    def mean(self, points: npt.ArrayLike) -> Array:
        """Posterior mean alone, `(m,)`."""
        X = points_array("points", points, dimension=self.dimension)
        parts = [self._span.features(X[i : i + CHUNK]) @ self._weights.mean for i in range(0, len(X), CHUNK)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def means_of(self, points: npt.ArrayLike) -> Array:
        """Posterior mean at `(m, d)` points, `(m,)`."""
        return self.mean(points)

    def predict(self, points: npt.ArrayLike | None = None) -> tuple[Array, Array]:
        """Posterior mean and standard deviation of f at `(m, d)` points, each `(m,)`."""
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
        if not self._span.whole:
            variance += self._span.left_out(X, z)
        return z @ self._weights.mean, variance

    def mean_gradient(self, points: npt.ArrayLike) -> tuple[Array, Array]:
        """Mean alone at `(m, d)` points and its gradient."""
        X = points_array("points", points, dimension=self.dimension)
        mean = self._weights.mean
        return self._span.features(X) @ mean, self._span.gradient(X, np.broadcast_to(mean, (len(X), len(mean))))

    def gradients(self, points: npt.ArrayLike) -> Gradients:
        """Mean and std at `(m, d)` points with their gradients."""
        X = points_array("points", points, dimension=self.dimension)
        mean, mean_gradient = self.mean_gradient(X)
        z = self._span.features(X)
        half = z @ self._weights.root
        std = np.sqrt(np.einsum("ij,ij->i", half, half) + self._span.left_out(X, z))
        towards = half @ self._weights.root.T
        if self._span.whole:
            slope = 2.0 * self._span.gradient(X, towards)
        else:
            slope = self.kernel.diagonal_gradient(X) + 2.0 * self._span.gradient(X, towards - z)
        flat = std[:, None] <= 0.0
        return Gradients(mean, std, mean_gradient, np.where(flat, 0.0, slope / np.where(flat, 1.0, 2.0 * std[:, None])))

    def covariance(self, points: npt.ArrayLike) -> Array:
        """Joint posterior covariance of f at `m` points, `(m, m)`."""
        X = points_array("points", points, dimension=self.dimension)
        z = self._span.features(X)
        half = z @ self._weights.root
        return np.asarray(half @ half.T + self._span.rest(X, X, z, z))

    def cross_covariance(self, points: npt.ArrayLike, others: npt.ArrayLike) -> Array:
        """Posterior covariance of f between `n` points and `k` others, `(n, k)`."""
        X = points_array("points", points, dimension=self.dimension)
        Y = points_array("others", others, dimension=self.dimension)
        z, towards = self._span.features(X), self._span.features(Y)
        inside = (z @ self._weights.root) @ (towards @ self._weights.root).T
        return np.asarray(inside + self._span.rest(X, Y, z, towards))

    def sample(self, rng: np.random.Generator, points: npt.ArrayLike | None = None, *, size: int = 1) -> Array:
        """Joint samples of f at `(m, d)` points, `(size, m)`."""
        if points is None:
            raise InvalidInput("A posterior on a continuous domain samples at points: give them, `(n, d)`.")
        X = points_array("points", points, dimension=self.dimension)
        root = covariance_root(self.covariance(X))
        return self.mean(X) + rng.standard_normal((size, root.shape[1])) @ root.T

    def spectrum(self) -> Spectrum:
        """What was observed, diagonalised: O(n r + r^3); the first time, and after a draw, O(n r^2)."""
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
        """y^T (Q + lambda I)^{-1} y = |y - mu|^2 / lambda + |w|^2: a sum of squares, O(n r)."""
        seen, mean = self._seen, self._weights.mean
        misfit = seen.scatter + float(seen.plays @ (seen.average - self.mean(seen.points)) ** 2)
        return misfit / self.regularization + float(mean @ mean)

    @property
    def mean_norm(self) -> float:
        """||mu||_k = |w|."""
        return float(np.linalg.norm(self._weights.mean))

    @property
    def log_determinant_ratio(self) -> float:
        """Log det(I + K / lambda); of a sketch the upper bound log det(I + Q / lambda) + tr(K - Q) / lambda."""
        return self._weights.log_ratio + self._outside / self.regularization
