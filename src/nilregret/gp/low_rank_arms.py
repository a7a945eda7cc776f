"""Posterior on arms through features of low rank (weight-space view).

| symbol | name | meaning | shape |
|---|---|---|---|
| Phi | `_features` | row x is phi(x), k = phi^T phi to the tolerance of `factorization` | (N, r) |
| W | `_root` | W W^T is the posterior covariance of the weights | (r, r) |
| w | `_weights` | posterior mean of the weights | (r,) |

W is updated by Potter's square-root form of Bayes' rule. With z = W^T phi(a), s^2 = |z|^2:

    W <- W (I - z z^T / (lambda + s^2 + sqrt(lambda (lambda + s^2)))),

after which z is a z, W z is a^2 W z and cov(., a) is a^2 cov(., a), where a^2 = lambda / (lambda + s^2). A root makes
every variance a sum of squares, which is never negative, and halves the digits that rounding can take. Errors of size
1e-16 in W leave s right to 1e-16, where errors in W W^T would leave only s^2 right to 1e-16.

An `ArmBatch` has the posteriors of many worlds on the same arms, which advance together.

| symbol | name | meaning | shape |
|---|---|---|---|
| S | | worlds, each with observations of its own | |
| Phi | `_features`, `_columns` | as in `LowRankPosterior`, the same in all worlds, and its transpose | (N, r), (r, N) |
| W | `_root` | W W^T is the posterior covariance of the weights | (S, r, r) |
| mu, sigma^2 | `_mean`, `_variance` | posterior of every arm | (S, N) |
| n, n ybar | `_plays`, `_sums` | number of plays of each arm, sum of its targets | (S, N) |

The formulas are those of `LowRankPosterior`. Everything is computed again from the sums as often as there.
"""

from __future__ import annotations

import math
from typing import final

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import daxpy, dger, dscal

from .._utils.checks import Array, IndexArray
from .._utils.randomness import Rng
from ..kernels.factorization import PivotedCholesky, normals
from .arm_blocks import largest_first, root_of_rows, triangle_of
from .arms import LITTLE_SLACK, ArmIndices, ArmPosterior, Column, Prior
from .spectrum import Spectrum, spectrum_of_features

MAX_RANK = 128  # features of higher rank cost more a round than the arms played usually do
NONE = -1  # In place of an arm: no column is kept.


@final
class LowRankPosterior(ArmPosterior):
    """An exact posterior on arms at O(N r + r^2) a round, whatever the number of rounds and of arms played."""

    OWNED = (*ArmPosterior.OWNED, "_root", "_weights", "_g", "_z", "_along")

    def __init__(self, prior: Prior, factor: PivotedCholesky, regularization: float) -> None:
        super().__init__(prior, regularization)
        self._features = np.asfortranarray(factor.features)  # column-major: a round's product with all arms is faster
        self._left_out = np.maximum(prior.variance - np.einsum("ij,ij->i", factor.features, factor.features), 0.0)
        self._root = np.eye(self.rank, order="F")
        self._weights = np.zeros(self.rank)
        self._direction = np.zeros(self.rank)  # W z of the last column, along which the weights move
        # The arm played last, its a^2, and its column, z and W z from before that play.
        self._last, self._share = NONE, 1.0
        self._g, self._z, self._along = self._direction, self._direction, self._direction

    @property
    def rank(self) -> int:
        """Number of features r."""
        return int(self._features.shape[1])

    grows = False

    def _enter(self, arms: list[int]) -> None:
        """Leaves all as it is, since all arms have their features."""

    def _column(self, arm: int) -> Column:
        g, _, variance = self._projected(arm)
        return Column(g, variance, self.regularization - variance)

    def _projected(self, arm: int) -> tuple[Array, Array, float]:
        """Returns g, z and s^2 of an arm, along whose W z the weights move next."""
        # On short vectors the operator `@` costs twice as much as the method `dot`.
        z = self._features[arm].dot(self._root)
        self._direction = direction = self._root.dot(z)
        return self._features.dot(direction), z, float(z.dot(z))

    def _add(self, arm: int, count: float) -> tuple[Array, float]:
        if arm == self._last:  # This is usual, and saves the product with all arms, half the time of an update.
            z, share = self._z, self._share
            dscal(share, self._g)
            if len(z):
                dscal(math.sqrt(share), z)
                dscal(share, self._along)
            self._direction = self._along
            variance = float(z.dot(z))
        else:
            self._g, z, variance = self._projected(arm)
            self._last, self._z, self._along = arm, z, self._direction
        noise = self.regularization / count
        total = noise + variance
        self._share = noise / total  # a^2
        self._add_outer(-1.0 / (total + math.sqrt(noise * total)), z)
        return self._g, variance

    def _remove(self, arm: int, count: float, *, last: bool) -> Column:  # noqa: ARG002 - the rank stays
        self._last = NONE
        g, z, variance = self._projected(arm)
        noise = self.regularization / count
        column = Column(g, variance, noise - variance)
        if column.slack < LITTLE_SLACK * noise:
            return column  # the caller renews the factor
        # The inverse of `_add` has lambda - s^2 for lambda + s^2 and the other sign.
        self._add_outer(1.0 / (column.slack + math.sqrt(noise * column.slack)), z)
        return column

    def _add_outer(self, factor: float, z: Array) -> None:
        # The root is column-major, so BLAS writes into it.
        if len(z):
            dger(factor, self._direction, z, 1, 1, self._root, 1, 1, 1)

    def _follow(self, steps: Array) -> Array:
        """Returns the product with Cov = Phi W W^T Phi^T."""
        direction = self._root @ (self._root.T @ (steps @ self._features))
        self._weights = self._weights + direction
        return np.asarray(self._features @ direction)

    def _move_mean(self, step: float) -> None:
        if len(self._direction):
            daxpy(self._direction, self._weights, len(self._direction), step)

    def _refactor(self) -> float:
        self._last = NONE
        upper = root_of_rows(self.rows_of(self.plays), self.rank)  # R^T R = I + Phi^T N Phi / lambda
        self._root = np.asfortranarray(solve_triangular(upper, np.eye(self.rank)))
        self._weights = np.zeros(self.rank)
        self._refine_weights()  # From 0, one refinement is a solve, and `_recompute` refines again.
        return 2.0 * float(np.log(np.abs(upper.diagonal())).sum())

    def _refine_weights(self) -> None:
        """Applies one step of iterative refinement to w, which solves Phi^T N (ybar - Phi w) / lambda = w."""
        played = np.flatnonzero(self.plays)
        phi = self._features[played]
        misfit = self.plays[played] * (self._average[played] - phi @ self._weights)
        gradient = phi.T @ misfit / self.regularization - self._weights
        self._weights = self._weights + self._root @ (self._root.T @ gradient)

    def _recompute(self) -> tuple[Array, Array]:
        self._last = NONE  # Its column was computed from the old factor.
        self._refine_weights()
        half = self._features @ self._root
        return self._features @ self._weights, self._left_out + np.einsum("ij,ij->i", half, half)

    def _diagonalised(self) -> Spectrum:
        return spectrum_of_features(self._features, self._left_out, self.plays, self._average, self.scatter_within_arms)

    # -- many worlds (`ArmBatch`) --------------------------------------------------------------------------------

    @property
    def features(self) -> Array:
        """Features phi(x) of every arm, `(N, r)`."""
        return self._features

    @property
    def left_out(self) -> Array:
        """Prior variance of every arm that its features leave out, `(N,)`."""
        return np.asarray(self._left_out)

    def rows_of(self, plays: Array | IndexArray) -> Array:
        """Returns sqrt(n / lambda) phi of the p arms that were played, `(p, r)`.

        Args:
            plays: n, number of plays of every arm, `(N,)`.
        """
        played = np.flatnonzero(plays)
        return np.asarray(self._features[played] * np.sqrt(plays[played] / self.regularization)[:, None])

    @property
    def quadratic_form(self) -> float:
        """Quadratic form y^T (K + lambda I)^{-1} y = |y - mu|^2 / lambda + |w|^2, a sum of squares."""
        misfit = self.scatter_within_arms + float(self.plays @ (self._average - self._mean) ** 2)
        return misfit / self.regularization + float(self._weights @ self._weights)

    @property
    def mean_norm(self) -> float:
        """RKHS norm ||mu||_k = |w|."""
        return float(np.linalg.norm(self._weights))

    def covariance(self, points: ArmIndices) -> Array:
        """Returns the joint posterior covariance of f at `n` arms, `(n, n)`."""
        half = self._features[self._indices(points)] @ self._root
        return np.asarray(half @ half.T)

    def cross_covariance(self, points: ArmIndices, others: ArmIndices) -> Array:
        """Returns posterior covariances of f between arms, `(n, k)`. O(n r k)."""
        half = self._root @ (self._features[self._indices(others)] @ self._root).T
        return np.asarray(self._features[self._indices(points)] @ half)

    def sample(self, rng: Rng, points: ArmIndices | None = None, *, size: int = 1) -> Array:
        """Returns joint samples mu + Phi W xi of f at all arms, or those listed, `(size, n)`. O(N r) each."""
        features, mean = self._features, self._mean
        if points is not None:
            arms = self._indices(points)
            features, mean = features[arms], mean[arms]
        normal = normals(rng, size, self.rank)
        return mean + (normal @ self._root.T) @ features.T


ALL = slice(None)
ROOM = 500_000  # numbers in one array when everything is computed again
FEW = 16_384  # numbers in the outer products of an update, which then stay in the processor's nearest cache


@final
class ArmBatch:
    """The posteriors of several worlds. Without a list of worlds a method is for all.

    Args:
        empty: the posterior of each world before the first observation.
        worlds: S.

    Attributes:
        regularization: lambda.
        count: number of observations of each world, `(S,)`.
    """

    shortfall = 0.0  # The posteriors are exact.

    def __init__(self, empty: LowRankPosterior, worlds: int) -> None:
        self._empty = empty
        self.regularization = empty.regularization
        self._features = np.ascontiguousarray(empty.features)
        self._columns = np.ascontiguousarray(empty.features.T)
        arms = len(self._features)
        self._starts = np.arange(worlds) * arms  # place of each world's first arm in arrays of all arms
        self._root = np.tile(np.eye(empty.rank), (worlds, 1, 1))
        self._outer = np.empty((max(1, FEW // empty.rank**2), empty.rank, empty.rank))
        self._mean, self._variance = np.zeros((worlds, arms)), np.tile(empty.prior.variance, (worlds, 1))
        self._std, self._squares = np.empty_like(self._mean), np.empty_like(self._mean)
        # The arm that each world played last, and its z, W z, s^2 and column from before the plays that followed each
        # other. They stand for one play with noise lambda / times, which the root has not seen yet.
        self._last, self._times, self._first = np.full(worlds, NONE), np.zeros(worlds, dtype=np.int64), np.zeros(worlds)
        self._z, self._direction = np.zeros((worlds, empty.rank)), np.zeros((worlds, empty.rank))
        self._g = np.zeros_like(self._mean)
        self._log_ratio = np.zeros(worlds)
        self._plays, self._sums = np.zeros((worlds, arms), dtype=np.int64), np.zeros((worlds, arms))
        self.count, self._updates = np.zeros(worlds, dtype=np.int64), np.zeros(worlds, dtype=np.int64)

    # -- observations --------------------------------------------------------------------------------------------

    def append(self, arms: IndexArray, targets: Array, worlds: IndexArray | None = None) -> None:
        """Adds one observation to each of k worlds. O(N) each, and O(N r + r^2) if the arm is not the last one.

        Args:
            arms: `(k,)`.
            targets: `(k,)`.
            worlds: `(k,)`, each once.
        """
        at: slice | IndexArray = ALL if worlds is None else worlds
        self._turn(arms, at)
        cells, times, first = self._starts[at] + arms, self._times[at], self._first[at]
        precision = self.regularization + times * first  # lambda / precision is a^2 of the plays since the last turn.
        variance = self.regularization * first / precision
        edge = np.sqrt(self.regularization + variance)
        surprise = (targets - self._mean.take(cells)) / edge
        g = np.multiply(self._g[at], (self.regularization / (precision * edge))[:, None], out=self._std[: len(cells)])
        if worlds is None:
            self._variance -= np.multiply(g, g, out=self._squares)
            self._mean += np.multiply(g, surprise[:, None], out=g)
        else:
            self._variance[worlds] -= g * g
            self._mean[worlds] += np.multiply(g, surprise[:, None], out=g)
        self._log_ratio[at] += np.log1p(variance / self.regularization)
        self._times[at] += 1
        self._plays.reshape(-1)[cells] += 1
        self._sums.reshape(-1)[cells] += targets
        self.count[at] += 1
        self._updates[at] += 1
        self._renew_due()

    def _turn(self, arms: IndexArray, at: slice | IndexArray) -> None:
        """Computes the columns of the arms that differ from the last ones, as most worlds play an arm many times."""
        moved = np.flatnonzero(self._last[at] != arms)
        if not len(moved):
            return
        everywhere = len(moved) == len(self._last)
        worlds = ALL if everywhere else moved if isinstance(at, slice) else at[moved]
        arms = arms if everywhere else arms[moved]
        root = self._settle(worlds)
        z = np.matmul(self._features.take(arms, axis=0)[:, None, :], root)
        direction = np.matmul(root, z.transpose(0, 2, 1))[:, :, 0]
        self._last[worlds], self._z[worlds], self._direction[worlds] = arms, z[:, 0], direction
        self._first[worlds] = np.matmul(z, z.transpose(0, 2, 1))[:, 0, 0]
        self._g[worlds] = direction @ self._columns

    def _settle(self, worlds: slice | IndexArray) -> Array:
        """Applies the plays since the last turn to the root of k worlds. Returns the root, `(k, r, r)`."""
        root = self._root[worlds]
        z, direction = self._z[worlds] * self._step(worlds), self._direction[worlds]
        for low in range(0, len(root), len(self._outer)):
            some, part = root[low : low + len(self._outer)], slice(low, low + len(self._outer))
            np.subtract(some, np.einsum("si,sj->sij", direction[part], z[part], out=self._outer[: len(some)]), out=some)
        if not isinstance(worlds, slice):
            self._root[worlds] = root
        self._last[worlds], self._times[worlds] = NONE, 0
        return root

    def _step(self, worlds: slice | IndexArray) -> Array:
        """Returns the share of W z z^T by which the plays since the last turn lower W, `(k, 1)`."""
        times = self._times[worlds]
        precision = self.regularization + times * self._first[worlds]
        return np.asarray(times / (precision + np.sqrt(self.regularization * precision)))[:, None]

    def revise(self, worlds: IndexArray, arms: IndexArray, changes: Array, updates: IndexArray) -> None:
        """Replaces the targets of k observations. O(N r + r^2) for each world.

        Args:
            worlds: `(k,)`, in which worlds may repeat.
            arms: `(k,)`.
            changes: the new targets less the old ones, `(k,)`.
            updates: the number of updates of each world that this stands for, `(S,)`.
        """
        steps = np.zeros((len(self._root), 1, self._features.shape[1]))
        np.add.at(steps[:, 0], worlds, self._features[arms] * (changes / self.regularization)[:, None])
        at = np.unique(worlds)
        root = self._settle(at)
        direction = np.matmul(root, np.matmul(steps[at], root).transpose(0, 2, 1))
        self._mean[at] += direction[:, :, 0] @ self._columns
        np.add.at(self._sums, (worlds, arms), changes)
        self._updates += updates
        self._renew_due()

    def _renew_due(self) -> None:
        """Computes everything from the sums in the worlds where this is due."""
        least = self._empty.renewed_after
        if self._updates.max() < least:
            return
        due = np.flatnonzero(self._updates >= least)
        self._updates[due] -= least
        many = max(1, ROOM // self._features.size)
        for first in range(0, len(due), many):
            self._renew(due[first : first + many])

    def _renew(self, worlds: IndexArray) -> None:
        """Computes everything from the sums in k worlds."""
        plays, rank = self._plays[worlds], self.rank
        rows = [largest_first(self._empty.rows_of(each)) for each in plays]
        stacked = np.zeros((len(worlds), max(map(len, rows)) + rank, rank))
        for place, own in zip(stacked, rows, strict=True):
            place[: len(own)] = own
            place[len(own) : len(own) + rank] = np.eye(rank)
        upper = triangle_of(stacked)  # Zeros at the end leave R as it is in one world.
        root = np.linalg.inv(upper)
        average = self._sums[worlds] / np.maximum(plays, 1)
        weights = np.zeros((len(worlds), rank))
        for _ in range(2):
            misfit = plays * (average - weights @ self._columns)
            gradient = misfit @ self._features / self.regularization - weights
            weights = weights + np.matmul(root, np.matmul(gradient[:, None], root).transpose(0, 2, 1))[:, :, 0]
        half = np.matmul(self._features, root)
        self._root[worlds], self._last[worlds], self._times[worlds] = root, NONE, 0
        self._mean[worlds] = weights @ self._columns
        self._variance[worlds] = self._empty.left_out + np.einsum("snr,snr->sn", half, half)
        self._log_ratio[worlds] = 2.0 * np.log(np.abs(np.diagonal(upper, axis1=1, axis2=2))).sum(axis=1)

    # -- predictions ---------------------------------------------------------------------------------------------

    @property
    def size(self) -> float:
        """Largest prior standard deviation, the same in all worlds."""
        return self._empty.prior.size

    def predict(self, cells: IndexArray | None = None) -> tuple[Array, Array]:
        """Returns posterior mean and std of f at some arms of each world, `(S, n)`, or at all.

        Those of all arms are overwritten by the next call or observation.

        Args:
            cells: arms of each world, `(S, n)`, or None for all.
        """
        if cells is None:
            std = np.maximum(self._variance, 0.0, out=self._std)
            return self._mean, np.sqrt(std, out=std)
        places = self._starts[:, None] + cells
        return self._mean.take(places), np.sqrt(np.maximum(self._variance.take(places), 0.0))

    @property
    def log_determinant_ratio(self) -> Array:
        """Log det(I + K / lambda) of each world, `(S, 1)`."""
        return self._log_ratio[:, None]

    @property
    def information_gain(self) -> Array:
        """Realised information gain of each world, nats, `(S, 1)`."""
        return 0.5 * self.log_determinant_ratio

    @property
    def rank(self) -> int:
        """Number of features r."""
        return self._empty.rank

    def deviations(self, normal: Array, cells: IndexArray | None = None) -> Array:
        """Returns joint samples of f - mu at some arms of each world, `(S, n)`, or at all (see `predict`).

        Args:
            normal: standard normal numbers, `(S, r)`.
            cells: see `predict`.
        """
        weights = np.matmul(self._root, normal[:, :, None])
        along = np.matmul(self._z[:, None, :], normal[:, :, None])[:, :, 0] * self._step(ALL)
        weights[:, :, 0] -= along * self._direction
        if cells is None:
            return np.asarray(weights[:, :, 0] @ self._columns)
        return np.asarray(np.matmul(self._features[cells], weights)[:, :, 0])


@final
class ArmBeliefs:
    """The beliefs of several worlds (see `TableBelief`).

    Args:
        empty: the posterior of each world before the first observation.
        worlds: S.
        apart: True if trials may lower the variance alone.

    Attributes:
        observed: the posteriors of the trials that have a value.
        with_pending: the posteriors of all trials. The same object unless they are `apart`.
    """

    def __init__(self, empty: LowRankPosterior, worlds: int, *, apart: bool) -> None:
        self.observed = ArmBatch(empty, worlds)
        self.with_pending = ArmBatch(empty, worlds) if apart else self.observed

    def predict(self, cells: IndexArray | None = None) -> tuple[Array, Array]:
        """Returns mean and standard deviation of f, each `(S, n)` (see `ArmBatch.predict`)."""
        mean, std = self.observed.predict(cells)
        return mean, std if self.with_pending is self.observed else self.with_pending.predict(cells)[1]

    def draw(self, normal: Array, cells: IndexArray | None, *, width: float) -> Array:
        """Returns a draw from GP(mu, width^2 cov) of each world, `(S, n)`.

        Args:
            normal: standard normal numbers, `(S, r)`.
            cells: see `ArmBatch.predict`.
            width: multiplier of the standard deviation.
        """
        observed, spread = self.observed, self.with_pending
        drawn = spread.deviations(normal, cells)
        if spread is not observed:  # Without pending trials a world draws from the observed ones, as it does alone.
            same = spread.count == observed.count
            drawn[same] = observed.deviations(normal, cells)[same]
        return np.asarray(observed.predict(cells)[0] + width * drawn)


def low_rank(posterior: ArmPosterior) -> LowRankPosterior | None:
    """Returns the posterior if many worlds of it can advance together, for which it needs features of low rank."""
    return posterior if isinstance(posterior, LowRankPosterior) and posterior.rank else None
