"""Posterior at arbitrary points (function-space view): boxes, spaces of parameters, contexts.

| symbol | name | meaning | shape |
|---|---|---|---|
| U | `points` | distinct points observed, in order of first observation | (n, d) |
| N, ybar | `plays`, `average` | number of observations of each by their weights, weighted average of targets | (n,) |
| M | | K(U, U) + lambda N^{-1}: repeats merged exactly | (n, n) |
| L | `_factor` | M = L L^T, grows in place | (n, n) |
| half | `half` | L^{-1} ybar | (n,) |
| alpha | `weights` | M^{-1} ybar | (n,) |

mu(x) = k(x)^T alpha = half^T L^{-1} k(x) and sigma^2(x) = k(x, x) - |L^{-1} k(x)|^2. A round costs O(n^2), n the number
of *distinct* points.

New points enter L when it is next read. Points that were added together enter together, in level-3 arithmetic. Once a
block of L is full, all its rows are computed again, together. So the rounding of L depends on which points were added
in which order, and not on the times at which L was read. A replay that reads L at its end computes full blocks at once.

`CandidateMoments` are mean and variance of fixed candidate points, updated at O(n) a candidate an observation.

Without these updates a maximiser would pay O(n^2) for the variance of every candidate at every decision, which is most
of the cost of a decision.
"""

from __future__ import annotations

import weakref
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, Self, final

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dtrsm

from .._utils.checks import Array, IndexArray, number, points_array
from .._utils.process_setting import with_one_thread
from ..errors import InvalidInput
from ..kernels import Kernel
from . import triangle
from .observations import FIRST_ROOM, Observations
from .protocol import AtPoints, CountingPosterior, Gradients, check_regularization, std_gradient
from .spectrum import Spectrum, spectrum_of_points
from .triangle import GrowingTriangle, Rotations

MOST_ROTATIONS = 64  # largest number of rotations kept for `CandidateMoments`, which otherwise starts again
LOCAL, LARGE = 64, 300  # observed points used by a rough prediction, and of which there must be for it to pay
CHUNK = 2048  # points predicted at a time, which bounds the memory of a prediction


SHARP = 1e-8  # share of the prior variance by which a rough variance may miss where it is exact


class Related(NamedTuple):
    """Observed points from which standard deviations are computed roughly, and points Z at which these are exact.

    With c = (k(near, x), W^T k(U, x)) and A = ((M_near, k(near, Z)), (k(Z, near), k(Z, U) W)) the variance is at most
    k(x, x) - c^T A^{-1} c: the share of k(x)^T M^{-1} k(x) in the span of the columns of I_near and W.

    Attributes:
        near: positions of these observed points among the distinct points, ascending, `(k,)`.
        weights: W = M^{-1} k(U, Z), `(n, z)`.
        factor: the factor of A.
    """

    near: IndexArray
    weights: Array
    factor: GrowingTriangle

    def rows(self, cross: Array) -> Array:
        """Returns the root of A^{-1} times c, `(k + z, m)`, by covariances with all points `(n, m)`."""
        return self.factor.solve(np.concatenate([cross[self.near], self.weights.T @ cross]))

    def transposed(self, rows: Array) -> Array:
        """Returns weights of all points in place of M^{-1} k(U, x), `(n, m)`, by the result of `rows`."""
        found = self.factor.solve_transposed(rows)
        result = np.asarray(self.weights @ found[len(self.near) :])
        result[self.near] += found[: len(self.near)]
        return result


@final
class PointPosterior(AtPoints, CountingPosterior):
    """An exact posterior at O(n^2) a query, n the number of distinct points observed.

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
        self.removals = 0  # rows removed from the factor, after which quantities derived from its rows are invalid
        self.rotations: list[Rotations] = []  # other changes of the rows of the factor, in order
        self.target_changes = 0  # changes of the average target of points in `half`
        self._seen = Observations(dimension, ordered=True)
        self._grown = GrowingTriangle()  # L, up to the points of the last read
        self._ends: list[int] = []  # numbers of distinct points after each addition that L does not have yet
        self._blocks = 0  # blocks of L that have been full
        self._half = np.zeros(0)
        self._half_known = 0  # number of leading entries of `_half` that are up to date
        self._weights: Array | None = None
        self._spectrum: Spectrum | None = None  # cached until an observation changes

    @property
    def rank(self) -> int:
        """Number of distinct points n."""
        return self._seen.size

    # -- observations --------------------------------------------------------------------------------------------

    def append(
        self, point: npt.ArrayLike, target: float, *, weight: float = 1.0, count: int = 1, scatter: float = 0.0
    ) -> None:
        """Adds `count` observations with this average and scatter. O(n^2)."""
        self.extend(np.reshape(point, (1, -1)), [target], counts=[count], scatters=[scatter], weight=weight)

    def extend(
        self,
        points: npt.ArrayLike,
        targets: npt.ArrayLike,
        *,
        counts: Sequence[int] | None = None,
        scatters: Sequence[float] | None = None,
        weight: float = 1.0,
    ) -> None:
        """Adds observations at `(m, d)` points with targets `(m,)`.

        New points cost O(n^2 m + m^3), in level-3 arithmetic. The result equals that of adding observations one by one,
        except for rounding, which depends on the grouping.

        Args:
            points: points of the observations.
            targets: of one observation each, or the averages of `counts` observations.
            counts: number of observations that each target stands for, 1 by default.
            scatters: sums of squared deviations from these averages, 0 by default.
            weight: of each observation.
        """
        X, y = self._checked(points, targets)
        many = [1] * len(X) if counts is None else counts
        within = [0.0] * len(X) if scatters is None else scatters
        repeats: Counter[int] = Counter()  # by weight
        new = np.ones(len(X), dtype=bool)
        for row, (x, count) in enumerate(zip(X, many, strict=True)):
            place = self._seen.find(x)
            if place is not None:
                repeats[place] += count * weight  # type: ignore[assignment]  # a weight is no whole number
                new[row] = False
        check_regularization(self.regularization, float(self.kernel.diagonal(X[new]).max(initial=0.0)))
        for i, more in repeats.items():
            plays = self.plays.item(i)
            self._changed(self._factor.add_to_diagonal(i, -self.regularization * more / (plays * (plays + more))))
        for x, target, count, scatter in zip(X, y.tolist(), many, within, strict=True):
            self._outdated(self._seen.add(x, target, count=count, scatter=scatter, weight=weight))
        if new.any():
            self._ends.append(self.rank)  # the factor takes these points in when it is next read
        self.count += sum(many)

    def revise(self, point: npt.ArrayLike, old: float, new: float) -> None:
        """Replaces the target of one observation. O(n^2) at the next query."""
        old, new = number("old", old), number("new", new)
        self._outdated(self._seen.revise(self._as_row(point), old, new))

    def forget(
        self, point: npt.ArrayLike, target: float, *, weight: float = 1.0, count: int = 1, scatter: float = 0.0
    ) -> None:
        """Removes `count` observations with this average. O(n^2)."""
        row, target = self._as_row(point), number("target", target)
        i = self._seen.place(row)
        plays, told, worth = self.plays.item(i), self._seen.told(i), count * weight
        if told < count:
            raise InvalidInput(f"The point {row.tolist()} has fewer than {count} observations to forget.")
        self.count -= count
        if told == count:
            self.removals += 1
            self._factor.remove(i)
        else:
            amount = self.regularization * worth / (plays * (plays - worth))
            self._changed(self._factor.add_to_diagonal(i, amount))
        self._seen.remove(row, target, count=count, scatter=scatter, weight=weight)
        self._outdated(i)

    @property
    def _factor(self) -> GrowingTriangle:
        """L, up to date."""
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
            if block < self._blocks or full > self.rank:  # a block is computed again only once
                self._add(low, min(full, ends[bisect_right(ends, low)]))
                continue
            factor.keep_blocks(block)
            self._add(block * size, full)
            self._blocks = block + 1
            self._half_known = min(self._half_known, block * size)
        self._ends = []

    def _add(self, low: int, high: int) -> None:
        """Computes the rows `low` .. `high` of the factor."""
        some = self.points[low:high]
        rows = self._grown.solve(self.kernel(self.points[:low], some))
        residual = self.kernel(some, some) - rows.T @ rows
        self._grown.extend(rows.T, residual, self.regularization / self.plays[low:high])

    def _changed(self, rotations: Rotations) -> None:
        self.rotations.append(rotations)
        if len(self.rotations) > MOST_ROTATIONS:  # No reader follows the posterior, so the list would only grow.
            self.rotations.clear()
            self.removals += 1

    def _outdated(self, position: int) -> None:
        self.target_changes += position < self._half_known
        self._half_known = min(self._half_known, position)
        self._weights = self._spectrum = None

    # -- predictions ---------------------------------------------------------------------------------------------

    @property
    def half(self) -> Array:
        """L^{-1} ybar, `(n,)`. Only the rows after the last change are solved for."""
        if self._half_known < self.rank:
            self._catch_up()  # This may reset `_half_known`.
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
        """Returns the posterior mean, `(m,)`. O(n) a point."""
        X = points_array("points", points, dimension=self.dimension)
        parts = [self.kernel(X[i : i + CHUNK], self.points) @ self.weights for i in range(0, len(X), CHUNK)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def predict(self, points: npt.ArrayLike | None = None, *, weights: Array | None = None) -> tuple[Array, Array]:
        """Returns posterior mean and standard deviation of f at `(m, d)` points, each `(m,)`.

        Args:
            points: `(m, d)`.
            weights: the mean is k(x)^T `weights`, `(n,)`, in place of k(x)^T alpha.
        """
        if points is None:
            raise InvalidInput("A posterior on a continuous domain predicts at points: give them, `(n, d)`.")
        X = points_array("points", points, dimension=self.dimension)
        means, stds = [np.zeros(0)], [np.zeros(0)]
        for i in range(0, len(X), CHUNK):
            cross = self.kernel(self.points, X[i : i + CHUNK])
            rows = self._factor.solve(cross)
            # The own weights would cost another pass over the factor.
            means.append(self.half @ rows if weights is None else weights @ cross)
            variance = self._prior_variance(X[i : i + CHUNK]) - np.einsum("ij,ij->j", rows, rows)
            stds.append(np.sqrt(np.maximum(variance, 0.0)))
        return np.concatenate(means), np.concatenate(stds)

    def _prior_variance(self, X: Array) -> Array | float:
        """Returns the prior variance at points, `(m,)`, or a number if it is the same everywhere."""
        variance = self.kernel.variance
        return self.kernel.diagonal(X) if variance is None else variance

    @property
    def large(self) -> bool:
        """True if `predict_roughly` is much quicker than `predict`."""
        return self.rank >= LARGE

    def related(self, points: npt.ArrayLike, count: int) -> Related:
        """Returns the `count` observed points to which the prior relates Z, `(z, d)`, most. O(n^2) for each of Z."""
        cross = self.kernel(self.points, points)
        near, _, factor = self._related(cross, count)
        half = self._factor.solve(cross)
        rows = factor.solve(cross[near])
        ridge = SHARP * self.kernel.diagonal(points_array("points", points))
        factor.extend(rows.T.copy(), half.T @ half - rows.T @ rows, ridge)
        return Related(near, self._factor.solve_transposed(half), factor)

    def _related(self, cross: Array, count: int) -> Related:
        related = np.einsum("ij,ij->i", cross, cross)
        near = np.sort(np.argpartition(related, -count)[-count:])
        some, factor = self.points[near], GrowingTriangle()
        factor.extend(np.zeros((len(near), 0)), self.kernel(some, some), self.regularization / self.plays[near])
        return Related(near, np.zeros((self.rank, 0)), factor)

    def predict_roughly(
        self, points: npt.ArrayLike, *, weights: Array | None = None, given: Related | None = None
    ) -> tuple[Array, Array]:
        """Returns the mean and an upper bound of the standard deviation at `(m, d)` points, each `(m,)`. O(n) a point.

        The bound is the standard deviation given some observed points only (see `Related`).

        Args:
            points: `(m, d)`.
            weights: the mean is k(x)^T `weights`, `(n,)`, in place of k(x)^T alpha.
            given: these points. None for the `LOCAL` ones to which the prior relates `points` most.
        """
        X = points_array("points", points, dimension=self.dimension)
        cross = self.kernel(self.points, X)
        rows = (given or self._related(cross, LOCAL)).rows(cross)
        variance = self.kernel.diagonal(X) - np.einsum("ij,ij->j", rows, rows)
        alpha = self.weights if weights is None else weights
        return alpha @ cross, np.sqrt(np.maximum(variance, 0.0))

    def mean_gradient(self, points: npt.ArrayLike) -> tuple[Array, Array]:
        """Returns the mean at `(m, d)` points and its gradient. O(n) a point."""
        X = points_array("points", points, dimension=self.dimension)
        both = np.broadcast_to(self.weights, (len(X), self.rank))
        return self.weights @ self.kernel(self.points, X), self.kernel.input_gradient(X, self.points, both)

    def gradients(
        self, points: npt.ArrayLike, *, weights: Array | None = None, given: Related | None = None
    ) -> Gradients:
        """Returns mean and std at `(m, d)` points with their gradients, by two substitutions for all points.

        Args:
            points: `(m, d)`.
            weights: the mean is k(x)^T `weights`, `(n,)`, in place of k(x)^T alpha.
            given: the points from which the std is computed, in place of all observed ones.
        """
        X = points_array("points", points, dimension=self.dimension)
        alpha = self.weights if weights is None else weights
        cross, pullback = self.kernel.cross_and_pullback(self.points, X)
        rows = self._factor.solve(cross) if given is None else given.rows(cross)
        std = np.sqrt(np.maximum(self._prior_variance(X) - np.einsum("ij,ij->j", rows, rows), 0.0))
        solved = self._factor.solve_transposed(rows) if given is None else given.transposed(rows)
        both = np.empty((2, *cross.T.shape))  # one call for both gradients, since most are small
        both[0], both[1] = alpha, solved.T  # M^{-1} k(U, X)
        mean_gradient, covariance_gradient = pullback(both)
        prior_gradient = self.kernel.diagonal_gradient(X) if self.kernel.variance is None else 0.0
        variance_gradient = prior_gradient - 2.0 * covariance_gradient
        return Gradients(alpha @ cross, std, mean_gradient, std_gradient(std, variance_gradient))

    def places(self, points: Array) -> IndexArray:
        """Returns the position of observed points `(m, d)` among the distinct points, `(m,)`."""
        return np.array([self._seen.place(x) for x in points], dtype=np.intp)

    def rotate(self, weights: Array) -> Array:
        """Returns L^T `weights`, `(n,)`: with it in the place of `half`, the mean is k(x)^T `weights`."""
        return self._factor.times_transposed(weights)

    @property
    def blocks(self) -> int:
        """Number of blocks of the factor that have been full, and whose rows were computed again."""
        self._catch_up()
        return self._blocks

    def factor_rows(self, low: int, high: int) -> Array:
        """Returns the rows `low` .. `high` of L, up to column `high`, `(high - low, high)`."""
        return self._factor.part(low, high)

    def covariance(self, points: npt.ArrayLike) -> Array:
        """Returns the joint posterior covariance of f at `m` points, `(m, m)`."""
        X = points_array("points", points, dimension=self.dimension)
        rows = self._factor.solve(self.kernel(self.points, X))
        return np.asarray(self.kernel(X, X) - rows.T @ rows)

    def cross_covariance(self, points: npt.ArrayLike, others: npt.ArrayLike) -> Array:
        """Returns posterior covariances between `n` points and `k` others, `(n, k)`. O(n r k), r distinct points."""
        X = points_array("points", points, dimension=self.dimension)
        Z = points_array("others", others, dimension=self.dimension)
        weights = self._factor.solve_transposed(self._factor.solve(self.kernel(self.points, Z)))
        return np.asarray(self.kernel(X, Z) - self.kernel(X, self.points) @ weights)

    def solve_targets(self, targets: Array) -> Array:
        """Returns M^{-1} v for `(n,)` values at the distinct points."""
        return self._factor.solve_transposed(self._factor.solve(targets))

    @property
    def landmarks(self) -> Array:
        """All distinct points, `(n, d)`."""
        return self.points

    def landmark_means(self) -> Array:
        """Returns posterior means at the distinct points, ybar - (lambda / n) alpha. O(n) once alpha is known."""
        return self.average - self.regularization / self.plays * self.weights

    def means_of(self, points: npt.ArrayLike) -> Array:
        """Returns the posterior mean at `(m, d)` points, `(m,)`. O(1) for observed points with known weights."""
        X = points_array("points", points, dimension=self.dimension) + 0.0
        positions = self._seen.find_all(X)
        known = positions >= 0
        means = np.empty(len(X))
        means[known] = self.landmark_means()[positions[known]]
        means[~known] = self.mean(X[~known])
        return means

    def most_deviations(self, points: npt.ArrayLike) -> Array:
        """Returns upper bounds of the standard deviation at `(m, d)` points, those given their own answers alone."""
        X = points_array("points", points, dimension=self.dimension) + 0.0
        plays = np.append(self.plays, 0.0)[self._seen.find_all(X)]
        variance = self.kernel.diagonal(X)
        return np.asarray(np.sqrt(variance / (1.0 + plays * variance / self.regularization)))

    def spectrum(self) -> Spectrum:
        """Returns the diagonalised observations. O(n^3) once after each change."""
        if self._spectrum is None:
            kernel, points = self.kernel, self.points.copy()
            self._spectrum = spectrum_of_points(
                kernel(points, points), self.plays.copy(), self.average.copy(), self._seen.scatter,
                covariance=partial(kernel.__call__, points), variance=kernel.diagonal,
            )  # fmt: skip
        return self._spectrum

    @property
    def quadratic_form(self) -> float:
        """Quadratic form y^T (K + lambda I)^{-1} y = scatter within points / lambda + |half|^2, a sum of squares."""
        return self._seen.scatter / self.regularization + float(self.half @ self.half)

    @property
    def mean_norm(self) -> float:
        """RKHS norm ||mu||_k = sqrt(alpha^T mu(X))."""
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


ROWS = 256  # of V in a block


class CandidateMoments:
    """Posterior mean and std at fixed points X, where V = L^{-1} k(U, X) grows by one row for each new point.

    Args:
        posterior: posterior whose changes are followed from now on, while somebody else keeps it.
        points: X, `(m, d)`.
    """

    def __init__(self, posterior: PointPosterior, points: Array) -> None:
        self._posterior = weakref.proxy(posterior)
        self.points = points
        self._prior = posterior.kernel.diagonal(points)
        self._restart()

    def _restart(self) -> None:
        self._rows: list[Array] = []
        self._known = 0
        self._variance = self._prior.copy()
        self._mean = np.zeros(len(self.points))
        self._removals, self._blocks = self._posterior.removals, self._posterior.blocks
        self._posterior.rotations.clear()  # Only this class reads them.
        self._target_changes = self._posterior.target_changes

    def predict(self, *, weights: Array | None = None) -> tuple[Array, Array]:
        """Returns posterior mean and standard deviation at the points, each `(m,)`, as fresh arrays.

        Args:
            weights: the mean is k(x)^T `weights`, `(n,)`, in place of the posterior's own.
        """
        if self._removals != self._posterior.removals:
            self._restart()
        if self._blocks != self._posterior.blocks:
            self._rewind(self._blocks * triangle.BLOCK)
            self._blocks = self._posterior.blocks
        for rotations in self._posterior.rotations:
            self._turn(rotations)
        self._posterior.rotations.clear()
        for low in range(self._known, self._posterior.rank, ROWS):
            self._follow(low, min(low + ROWS, self._posterior.rank), moves=weights is None)
        if weights is not None:
            self._mean = self._of_halves(self._posterior.rotate(weights))
            self._target_changes = -1  # The mean is not the posterior's own.
        elif self._target_changes != self._posterior.target_changes:
            self._target_changes = self._posterior.target_changes
            self._mean = self._of_halves(self._posterior.half)
        return self._mean.copy(), np.sqrt(np.maximum(self._variance, 0.0))

    def _of_halves(self, half: Array) -> Array:
        """Returns half^T V, `(m,)`."""
        mean = np.zeros(len(self.points))
        for place, rows in enumerate(self._rows):
            part = half[place * ROWS : (place + 1) * ROWS]
            mean += part @ rows[: len(part)]
        return mean

    def _rewind(self, known: int) -> None:
        """Drops all but the first `known` rows, since the others of the factor have changed."""
        self._known = min(self._known, known)
        del self._rows[-(-self._known // ROWS) :]
        self._variance = self._prior.copy()
        for place, rows in enumerate(self._rows):
            part = rows[: self._known - place * ROWS]
            self._variance -= np.einsum("ij,ij->j", part, part)
        self._target_changes = -1

    def _turn(self, rotations: Rotations) -> None:
        """Applies a rotation of the factor to the known rows."""
        extra = np.zeros(len(self.points))
        for place, block in enumerate(self._rows):
            low, high = max(place * ROWS, rotations.start), min((place + 1) * ROWS, self._known)
            if low < high:
                rows = block[low - place * ROWS : high - place * ROWS]
                self._variance += np.einsum("ij,ij->j", rows, rows)
                rotations.turn(rows, extra, low)
                self._variance -= np.einsum("ij,ij->j", rows, rows)

    def _follow(self, low: int, high: int, *, moves: bool) -> None:
        """Adds the rows `low` .. `high` of V, at most one block of them, and to the mean if it `moves`."""
        posterior = self._posterior
        cross = posterior.kernel(posterior.points[low:high], self.points)
        factor = posterior.factor_rows(low, high)
        for place, rows in enumerate(self._rows):
            start, end = place * ROWS, min((place + 1) * ROWS, low)
            cross -= factor[:, start:end] @ rows[: end - start]
        # The transposed system needs no copy of the many columns.
        new = dtrsm(1.0, factor[:, low:high], cross.T, side=1, lower=1, trans_a=1, overwrite_b=1).T
        for offset, row in enumerate(new):
            block, inside = divmod(low + offset, ROWS)
            if inside == 0 and block == len(self._rows):
                self._rows.append(np.zeros((triangle.FIRST, len(self.points))))
            elif inside == len(self._rows[block]):
                self._rows[block] = triangle.doubled(self._rows[block])
            self._rows[block][inside] = row
        self._variance -= np.einsum("ij,ij->j", new, new)
        if moves:
            self._mean += posterior.half[low:high] @ new
        self._known = high
