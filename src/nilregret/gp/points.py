"""Posterior at arbitrary points (function space): boxes, spaces of parameters, contexts.

| symbol | name | meaning | shape |
|---|---|---|---|
| U | `points` | distinct points observed, in order of first observation | (n, d) |
| N, ybar | `_plays`, `_average` | observations of each, average of their targets | (n,) |
| M | | K(U, U) + lambda N^{-1}: repeats merged exactly | (n, n) |
| L | `_factor` | M = L L^T, grows in place | (n, n) |
| half | `_half` | L^{-1} ybar | (n,) |
| alpha | `weights` | M^{-1} ybar | (n,) |

mu(x) = k(x)^T alpha = half^T L^{-1} k(x) and sigma^2(x) = k(x, x) - |L^{-1} k(x)|^2. A round costs O(n^2), n the number
of *distinct* points.

New points enter L when it is next read. Those that came together enter together, in level-3 arithmetic. Once a block
of L is full, all its rows are computed again, together. So how L rounds depends on what came and in which order, and
not on when it was read. A replay that reads L at its end computes full blocks at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Self, final

import numpy as np
import numpy.typing as npt

from .._utils.blas import with_one_thread
from .._utils.checks import Array, number, points_array
from .._utils.errors import InvalidInput
from ..kernels import Kernel
from . import triangle
from .at_points import AtPoints, Gradients, std_gradient
from .observations import FIRST_ROOM, Observations
from .protocol import CountingPosterior, check_regularization
from .spectrum import Spectrum, spectrum_of_points
from .triangle import GrowingTriangle, Rotations

MOST_ROTATIONS = 64  # kept for those who follow the factor's rows, before they have to start anew
CHUNK = 2048  # points predicted at a time, which bounds the memory of a prediction


@final
class PointPosterior(AtPoints, CountingPosterior):
    """Exact posterior at O(n^2) a query, n the number of distinct points observed.

    Args:
        kernel: prior covariance.
        dimension: number of columns of a point.
        regularization: lambda, reward units squared.
    """

    OWNED = ("rotations", "_seen", "_grown", "_ends", "_half")

    def __init__(self, kernel: Kernel, dimension: int, regularization: float) -> None:
        self.kernel = kernel
        self.dimension = dimension
        self.regularization = number("regularization", regularization, low=0.0, open_low=True)
        self.count = 0
        self.removals = 0  # of rows from the factor: what was derived from its rows must be made anew
        self.rotations: list[Rotations] = []  # other changes of its rows, in order
        self.target_changes = 0  # of points observed before
        self._seen = Observations(dimension, ordered=True)
        self._grown = GrowingTriangle()  # L, as far as it has been read
        self._ends: list[int] = []  # numbers of distinct points after each addition that L is still to take in
        self._blocks = 0  # of L that have been full
        self._half = np.zeros(0)
        self._half_known = 0  # leading entries of `_half` that are up to date
        self._weights: Array | None = None
        self._spectrum: Spectrum | None = None  # until something changes

    @property
    def rank(self) -> int:
        """Number of distinct points n."""
        return self._seen.size

    @property
    def points(self) -> Array:
        """The distinct points, `(n, d)`."""
        return self._seen.points

    # -- history -------------------------------------------------------------------------------------------------

    def append(self, point: npt.ArrayLike, target: float, *, count: int = 1, scatter: float = 0.0) -> None:
        """Add `count` observations with this average and scatter about it. O(n^2)."""
        self.extend(np.reshape(point, (1, -1)), [target], counts=[count], scatters=[scatter])

    def extend(
        self,
        points: npt.ArrayLike,
        targets: npt.ArrayLike,
        *,
        counts: Sequence[int] | None = None,
        scatters: Sequence[float] | None = None,
    ) -> None:
        """Add observations at `(m, d)` points, targets `(m,)`: new points by level-3 arithmetic, O(n^2 m + m^3).

        The result is that of adding them one by one, but for rounding, which depends on what is added together.

        Args:
            points: where.
            targets: of one observation each; of `counts` of them the averages.
            counts: how many each stands for; 1 unless given.
            scatters: the sums of squared deviations from these averages; 0 unless given.
        """
        X, y = self._checked(points, targets)
        many = [1] * len(X) if counts is None else counts
        within = [0.0] * len(X) if scatters is None else scatters
        repeats: Counter[int] = Counter()
        new = np.ones(len(X), dtype=bool)
        for row, (x, count) in enumerate(zip(X, many, strict=True)):
            place = self._seen.find(x)
            if place is not None:
                repeats[place] += count
                new[row] = False
        check_regularization(self.regularization, float(self.kernel.diagonal(X[new]).max(initial=0.0)))
        for i, more in repeats.items():
            plays = int(self.plays[i])
            self._changed(self._factor.add_to_diagonal(i, -self.regularization * more / (plays * (plays + more))))
        for x, target, count, scatter in zip(X, y.tolist(), many, within, strict=True):
            self._outdated(self._seen.add(x, target, count=count, scatter=scatter))
        if new.any():
            self._ends.append(self.rank)  # the factor takes these points in when it is next read
        self.count += sum(many)

    def revise(self, point: npt.ArrayLike, old: float, new: float) -> None:
        """Change the target of one observation from `old` to `new`. O(n^2) at the next question."""
        old, new = number("old", old), number("new", new)
        self._outdated(self._seen.revise(self._as_row(point), old, new))

    def forget(self, point: npt.ArrayLike, target: float, *, count: int = 1, scatter: float = 0.0) -> None:
        """Take `count` observations with this average back out. O(n^2)."""
        row, target = self._as_row(point), number("target", target)
        i = self._seen.place(row)
        plays = int(self.plays[i])
        if plays < count:
            raise InvalidInput(f"The point {row.tolist()} has fewer than {count} observations to forget.")
        self.count -= count
        if plays == count:
            self.removals += 1
            self._factor.remove(i)
        else:
            amount = self.regularization * count / (plays * (plays - count))
            self._changed(self._factor.add_to_diagonal(i, amount))
        self._seen.remove(row, target, count=count, scatter=scatter)
        self._outdated(i)

    @property
    def _factor(self) -> GrowingTriangle:
        """L, with all that was added."""
        self._catch_up()
        return self._grown

    def _catch_up(self) -> None:
        if self._ends:
            self._enter()

    @with_one_thread
    def _enter(self) -> None:
        factor, ends, size = self._grown, self._ends, triangle.BLOCK
        while (low := factor.size) < self.rank:
            block = low // size
            full = (block + 1) * size
            if block < self._blocks or full > self.rank:  # a block is computed again once, not after each removal
                self._add(low, min(full, ends[bisect_right(ends, low)]))
                continue
            factor.keep_blocks(block)
            self._add(block * size, full)
            self._blocks = block + 1
            self._half_known = min(self._half_known, block * size)
        self._ends = []

    def _add(self, low: int, high: int) -> None:
        """Rows `low` .. `high` of the factor."""
        some = self.points[low:high]
        rows = self._grown.solve(self.kernel(self.points[:low], some))
        residual = self.kernel(some, some) - rows.T @ rows
        self._grown.extend(rows.T, residual, self.regularization / self.plays[low:high])

    def _changed(self, rotations: Rotations) -> None:
        self.rotations.append(rotations)
        if len(self.rotations) > MOST_ROTATIONS:  # nobody follows them, or not closely
            self.rotations.clear()
            self.removals += 1

    def _outdated(self, position: int) -> None:
        self.target_changes += position < self._half_known
        self._half_known = min(self._half_known, position)
        self._weights = self._spectrum = None

    # -- answers -------------------------------------------------------------------------------------------------

    @property
    def half(self) -> Array:
        """L^{-1} ybar, `(n,)`: only the rows after the last change are solved for."""
        if self._half_known < self.rank:
            self._catch_up()  # which may take some of it back
            if len(self._half) < self.rank:
                self._half = np.concatenate([self._half, np.zeros(max(self.rank, FIRST_ROOM))])
            self._grown.substitute(self.average, self._half, start=self._half_known)
            self._half_known = self.rank
        return self._half[: self.rank]

    @property
    def weights(self) -> Array:
        """Alpha, `(n,)`: the posterior mean is k(x)^T alpha."""
        if self._weights is None:
            self._weights = self._factor.solve_transposed(self.half)
        return self._weights

    def mean(self, points: npt.ArrayLike) -> Array:
        """Posterior mean alone, `(m,)`: O(n) a point."""
        X = points_array("points", points, dimension=self.dimension)
        parts = [self.kernel(X[i : i + CHUNK], self.points) @ self.weights for i in range(0, len(X), CHUNK)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def predict(self, points: npt.ArrayLike | None = None) -> tuple[Array, Array]:
        """Posterior mean and standard deviation of f at `(m, d)` points, each `(m,)`."""
        if points is None:
            raise InvalidInput("A posterior on a continuous domain predicts at points: give them, `(n, d)`.")
        X = points_array("points", points, dimension=self.dimension)
        means, stds = [np.zeros(0)], [np.zeros(0)]
        for i in range(0, len(X), CHUNK):
            cross = self.kernel(self.points, X[i : i + CHUNK])
            rows = self._factor.solve(cross)
            means.append(self.half @ rows)  # the weights would cost another pass over the factor
            variance = self.kernel.diagonal(X[i : i + CHUNK]) - np.einsum("ij,ij->j", rows, rows)
            stds.append(np.sqrt(np.maximum(variance, 0.0)))
        return np.concatenate(means), np.concatenate(stds)

    def mean_gradient(self, points: npt.ArrayLike) -> tuple[Array, Array]:
        """Mean alone at `(m, d)` points and its gradient: O(n) a point."""
        X = points_array("points", points, dimension=self.dimension)
        both = np.broadcast_to(self.weights, (len(X), self.rank))
        return self.weights @ self.kernel(self.points, X), self.kernel.input_gradient(X, self.points, both)

    def gradients(self, points: npt.ArrayLike) -> Gradients:
        """Mean and std at `(m, d)` points with their gradients; two substitutions for all points together."""
        X = points_array("points", points, dimension=self.dimension)
        cross = self.kernel(self.points, X)
        rows = self._factor.solve(cross)
        std = np.sqrt(np.maximum(self.kernel.diagonal(X) - np.einsum("ij,ij->j", rows, rows), 0.0))
        solved = self._factor.solve_transposed(rows)  # M^{-1} k(U, X)
        weights = np.concatenate([np.broadcast_to(self.weights, (len(X), self.rank)), solved.T])
        both = self.kernel.input_gradient(np.concatenate([X, X]), self.points, weights)  # in one call: most are small
        mean_gradient = both[: len(X)]
        variance_gradient = self.kernel.diagonal_gradient(X) - 2.0 * both[len(X) :]
        return Gradients(self.weights @ cross, std, mean_gradient, std_gradient(std, variance_gradient))

    @property
    def blocks(self) -> int:
        """Of the factor, that have been full: their rows have been computed again."""
        self._catch_up()
        return self._blocks

    def factor_rows(self, low: int, high: int) -> Array:
        """Rows `low` .. `high` of L, up to column `high`, `(high - low, high)`."""
        return self._factor.part(low, high)

    def covariance(self, points: npt.ArrayLike) -> Array:
        """Joint posterior covariance of f at `m` points, `(m, m)`."""
        X = points_array("points", points, dimension=self.dimension)
        rows = self._factor.solve(self.kernel(self.points, X))
        return np.asarray(self.kernel(X, X) - rows.T @ rows)

    def cross_covariance(self, points: npt.ArrayLike, others: npt.ArrayLike) -> Array:
        """Posterior covariance of f between `n` points and `k` others, `(n, k)`: O(n r k), r distinct points."""
        X = points_array("points", points, dimension=self.dimension)
        Z = points_array("others", others, dimension=self.dimension)
        weights = self._factor.solve_transposed(self._factor.solve(self.kernel(self.points, Z)))
        return np.asarray(self.kernel(X, Z) - self.kernel(X, self.points) @ weights)

    def solve_targets(self, targets: Array) -> Array:
        """M^{-1} v for `(n,)` values at the distinct points."""
        return self._factor.solve_transposed(self._factor.solve(targets))

    @property
    def landmarks(self) -> Array:
        """All distinct points, `(n, d)`."""
        return self.points

    def landmark_means(self) -> Array:
        """Returns the posterior mean at each of them: ybar - (lambda / n) alpha, O(n) once alpha is known."""
        return self.average - self.regularization / self.plays * self.weights

    def means_of(self, points: npt.ArrayLike) -> Array:
        """Posterior mean at `(m, d)` points, `(m,)`: O(1) where they were observed, once the weights are known."""
        X = points_array("points", points, dimension=self.dimension) + 0.0
        found = [self._seen.find(x) for x in X]
        positions = np.array([-1 if place is None else place for place in found], dtype=np.intp)
        known = positions >= 0
        means = np.empty(len(X))
        means[known] = self.landmark_means()[positions[known]]
        means[~known] = self.mean(X[~known])
        return means

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

    def spectrum(self) -> Spectrum:
        """What was observed, diagonalised: O(n^3) once after each change."""
        if self._spectrum is None:
            kernel, points = self.kernel, self.points.copy()
            self._spectrum = spectrum_of_points(
                kernel(points, points), self.plays.copy(), self.average.copy(), self._seen.scatter,
                covariance=partial(kernel.__call__, points), variance=kernel.diagonal,
            )  # fmt: skip
        return self._spectrum

    @property
    def quadratic_form(self) -> float:
        """y^T (K + lambda I)^{-1} y = scatter within points / lambda + |half|^2: a sum of squares."""
        return self._seen.scatter / self.regularization + float(self.half @ self.half)

    @property
    def mean_norm(self) -> float:
        """||mu||_k = sqrt(alpha^T mu(X))."""
        return float(np.sqrt(max(float(self.weights @ self.landmark_means()), 0.0)))

    @property
    def log_determinant_ratio(self) -> float:
        """Log det(I + K / lambda) = log det M + sum log(n_i / lambda)."""
        diagonal = self._factor.diagonal()
        return float(2.0 * np.log(diagonal).sum() + np.log(self.plays / self.regularization).sum())

    def copy(self) -> Self:
        """Returns an independent posterior in the same state.

        Full blocks of the factor are shared until one of the two posteriors changes them.
        """
        self._catch_up()  # Otherwise both would compute the same rows.
        return super().copy()
