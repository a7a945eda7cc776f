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
from .._utils.checks import Array, finite_array, number, points_array
from .._utils.errors import InvalidInput
from ..kernels import Kernel
from . import triangle
from .at_points import AtPoints, Gradients
from .factorization import covariance_root
from .protocol import LEAST_REGULARIZATION, CountingPosterior
from .spectrum import Spectrum, spectrum_of_points
from .triangle import GrowingTriangle, Rotations

FIRST_ROOM = 64  # distinct points for which room is made at first; doubled when it is used up
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

    OWNED = ("rotations", "_position", "_points", "_plays", "_average", "_scatter", "_grown", "_ends", "_half")

    def __init__(self, kernel: Kernel, dimension: int, regularization: float) -> None:
        self.kernel = kernel
        self.dimension = dimension
        self.regularization = number("regularization", regularization, low=0.0, open_low=True)
        self.count = 0
        self.removals = 0  # of rows from the factor: what was derived from its rows must be made anew
        self.rotations: list[Rotations] = []  # other changes of its rows, in order
        self.target_changes = 0  # of points observed before
        self._position: dict[bytes, int] = {}
        self._points = np.zeros((FIRST_ROOM, dimension))
        self._plays = np.zeros(FIRST_ROOM, dtype=np.int64)
        self._average = np.zeros(FIRST_ROOM)
        self._scatter = np.zeros(FIRST_ROOM)
        self._rank = 0
        self._grown = GrowingTriangle()  # L, as far as it has been read
        self._ends: list[int] = []  # numbers of distinct points after each addition that L is still to take in
        self._blocks = 0  # of L that have been full
        self._half = np.zeros(FIRST_ROOM)
        self._half_known = 0  # leading entries of `_half` that are up to date
        self._weights: Array | None = None
        self._spectrum: Spectrum | None = None  # until something changes

    @property
    def rank(self) -> int:
        """Number of distinct points n."""
        return self._rank

    @property
    def points(self) -> Array:
        """The distinct points, `(n, d)`."""
        return self._points[: self.rank]

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
        X = points_array("points", points, dimension=self.dimension) + 0.0
        y = finite_array("targets", targets)
        if y.shape != (len(X),):
            raise InvalidInput(f"`targets` has shape {y.shape}: it must be ({len(X)},), one target for each.")
        keys = [x.tobytes() for x in X]
        many = [1] * len(X) if counts is None else counts
        within = [0.0] * len(X) if scatters is None else scatters
        repeats: Counter[bytes] = Counter()
        new: Counter[bytes] = Counter()
        for key, count in zip(keys, many, strict=True):
            (repeats if key in self._position else new)[key] += count
        first = dict(zip(reversed(keys), reversed(range(len(X))), strict=True))
        some = X[[first[key] for key in new]]
        self._check(some)
        for key, more in repeats.items():
            i = self._position[key]
            plays = int(self._plays[i])
            self._changed(self._factor.add_to_diagonal(i, -self.regularization * more / (plays * (plays + more))))
        self._grow(some)
        for key, target, count, scatter in zip(keys, y.tolist(), many, within, strict=True):
            i = self._position[key]
            self._plays[i] += count
            change = target - self._average[i]
            self._average[i] += change * count / self._plays[i]
            self._scatter[i] += change * (target - self._average[i]) * count + scatter
            self._outdated(i)
        self.count += sum(many)

    def revise(self, point: npt.ArrayLike, old: float, new: float) -> None:
        """Change the target of one observation from `old` to `new`. O(n^2) at the next question."""
        i, old, new = self._known(point), number("old", old), number("new", new)
        before = self._average[i]
        self._average[i] += (new - old) / self._plays[i]
        self._scatter[i] += (new - old) * ((new - self._average[i]) + (old - before))
        self._outdated(i)

    def forget(self, point: npt.ArrayLike, target: float, *, count: int = 1, scatter: float = 0.0) -> None:
        """Take `count` observations with this average back out. O(n^2)."""
        i, target = self._known(point), number("target", target)
        plays = int(self._plays[i])
        if plays < count:
            raise InvalidInput(f"The point {self._points[i].tolist()} has fewer than {count} observations to forget.")
        self.count -= count
        if plays == count:
            self._drop(i)
            return
        left = plays - count
        self._changed(self._factor.add_to_diagonal(i, self.regularization * count / (plays * left)))
        change = target - self._average[i]
        self._plays[i] = left
        self._average[i] -= change * count / left
        self._scatter[i] -= change * (target - self._average[i]) * count + scatter
        if left == 1:
            self._scatter[i] = 0.0
        self._outdated(i)

    def _check(self, X: Array) -> None:
        prior = float(self.kernel.diagonal(X).max(initial=0.0))
        if self.regularization < LEAST_REGULARIZATION * prior:
            raise InvalidInput(
                f"`regularization` is {self.regularization:g} where the prior variance is {prior:g}: below "
                f"{LEAST_REGULARIZATION:g} of it, rounding in the kernel matrix is larger than the noise. Use at least "
                "that, or a smaller `scale` in the kernel."
            )

    def _grow(self, X: Array) -> None:
        """Room for new points, whose rows of the factor are computed when it is read."""
        if not len(X):
            return
        n = self._rank
        self._rank = n + len(X)
        self._ends.append(self._rank)
        self._make_room(self._rank)
        self._points[n : self._rank] = X
        for array in (self._plays, self._average, self._scatter):
            array[n : self._rank] = 0
        self._position.update((x.tobytes(), n + j) for j, x in enumerate(X))

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
        while (low := factor.size) < self._rank:
            block = low // size
            full = (block + 1) * size
            if block < self._blocks or full > self._rank:  # a block is computed again once, not after each removal
                self._add(low, min(full, ends[bisect_right(ends, low)]))
                continue
            factor.keep_blocks(block)
            self._add(block * size, full)
            self._blocks = block + 1
            self._half_known = min(self._half_known, block * size)
        self._ends = []

    def _add(self, low: int, high: int) -> None:
        """Rows `low` .. `high` of the factor."""
        some = self._points[low:high]
        rows = self._grown.solve(self.kernel(self._points[:low], some))
        residual = self.kernel(some, some) - rows.T @ rows
        self._grown.extend(rows.T, residual, self.regularization / self._plays[low:high])

    def _drop(self, i: int) -> None:
        n = self.rank
        self.removals += 1
        del self._position[self._points[i].tobytes()]
        self._factor.remove(i)
        self._rank = n - 1
        for array in (self._points, self._plays, self._average, self._scatter):
            array[i : n - 1] = array[i + 1 : n].copy()
        for key, position in self._position.items():
            if position > i:
                self._position[key] = position - 1
        self._outdated(i)

    def _changed(self, rotations: Rotations) -> None:
        self.rotations.append(rotations)
        if len(self.rotations) > MOST_ROTATIONS:  # nobody follows them, or not closely
            self.rotations.clear()
            self.removals += 1

    def _outdated(self, position: int) -> None:
        self.target_changes += position < self._half_known
        self._half_known = min(self._half_known, position)
        self._weights = self._spectrum = None

    def _make_room(self, size: int) -> None:
        while len(self._plays) < size:
            for name in ("_points", "_plays", "_average", "_scatter", "_half"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros_like(array)]))

    def _row(self, point: npt.ArrayLike) -> Array:
        return np.asarray(points_array("point", np.reshape(point, (1, -1)), dimension=self.dimension)[0] + 0.0)

    def _known(self, point: npt.ArrayLike) -> int:
        row = self._row(point)
        i = self._position.get(row.tobytes())
        if i is None:
            raise InvalidInput(f"The point {row.tolist()} has no observation to change or forget.")
        return i

    # -- answers -------------------------------------------------------------------------------------------------

    @property
    def half(self) -> Array:
        """L^{-1} ybar, `(n,)`: only the rows after the last change are solved for."""
        if self._half_known < self.rank:
            self._catch_up()  # which may take some of it back
            self._grown.substitute(self._average, self._half, start=self._half_known)
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
        flat = std[:, None] <= 0.0
        std_gradient = np.where(flat, 0.0, variance_gradient / np.where(flat, 1.0, 2.0 * std[:, None]))
        return Gradients(self.weights @ cross, std, mean_gradient, std_gradient)

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

    def sample(self, rng: np.random.Generator, points: npt.ArrayLike | None = None, *, size: int = 1) -> Array:
        """Joint samples of f at `(m, d)` points, `(size, m)`, exact: O(n^2 m + m^3)."""
        if points is None:
            raise InvalidInput("A posterior on a continuous domain samples at points: give them, `(n, d)`.")
        X = points_array("points", points, dimension=self.dimension)
        root = covariance_root(self.covariance(X))
        return self.mean(X) + rng.standard_normal((size, root.shape[1])) @ root.T

    def solve_targets(self, targets: Array) -> Array:
        """M^{-1} v for `(n,)` values at the distinct points."""
        return self._factor.solve_transposed(self._factor.solve(targets))

    def observed_means(self) -> Array:
        """Posterior mean at the distinct points, `(n,)`: ybar - (lambda / n) alpha, O(n) once alpha is known."""
        return self.average - self.regularization / self.plays * self.weights

    @property
    def landmarks(self) -> Array:
        """All distinct points, `(n, d)`."""
        return self.points

    def landmark_means(self) -> Array:
        """Posterior mean at each of them."""
        return self.observed_means()

    def means_of(self, points: npt.ArrayLike) -> Array:
        """Posterior mean at `(m, d)` points, `(m,)`: O(1) where they were observed, once the weights are known."""
        X = points_array("points", points, dimension=self.dimension) + 0.0
        positions = np.array([self._position.get(x.tobytes(), -1) for x in X], dtype=np.intp)
        known = positions >= 0
        means = np.empty(len(X))
        means[known] = self.observed_means()[positions[known]]
        means[~known] = self.mean(X[~known])
        return means

    @property
    def plays(self) -> npt.NDArray[np.int64]:
        """Observations of each distinct point, `(n,)`."""
        return self._plays[: self.rank]

    @property
    def average(self) -> Array:
        """Average target of each distinct point, `(n,)`."""
        return self._average[: self.rank]

    @property
    def noisy(self) -> bool:
        """Whether points that came again had several targets, or none came again."""
        again = self._plays[: self.rank] > 1
        return not again.any() or bool(self._scatter[: self.rank][again].any())

    def spectrum(self) -> Spectrum:
        """What was observed, diagonalised: O(n^3) once after each change."""
        if self._spectrum is None:
            kernel, points = self.kernel, self.points.copy()
            self._spectrum = spectrum_of_points(
                kernel(points, points), self.plays.copy(), self.average.copy(), self._scatter_within_points(),
                covariance=partial(kernel.__call__, points), variance=kernel.diagonal,
            )  # fmt: skip
        return self._spectrum

    def _scatter_within_points(self) -> float:
        return float(np.maximum(self._scatter[: self.rank], 0.0).sum())

    @property
    def quadratic_form(self) -> float:
        """y^T (K + lambda I)^{-1} y = scatter within points / lambda + |half|^2: a sum of squares."""
        return self._scatter_within_points() / self.regularization + float(self.half @ self.half)

    @property
    def mean_norm(self) -> float:
        """||mu||_k = sqrt(alpha^T mu(X))."""
        return float(np.sqrt(max(float(self.weights @ self.observed_means()), 0.0)))

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
