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
"""

from __future__ import annotations

import math
from typing import final

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import daxpy, dger, dscal

from .._utils.checks import Array, IndexArray
from ..kernels.factorization import PivotedCholesky, normals
from .arm_blocks import root_of_rows
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

    @property
    def normals(self) -> int:
        """Number of normal numbers that a draw takes."""
        return max(min(len(self._features), MAX_RANK), self.rank)

    grows = False

    def _enter(self, arms: list[int]) -> None:
        """Leaves all as it is, since all arms have their features."""

    def _column(self, arm: int) -> Column:
        return self._column_and_z(arm)[0]

    def _column_and_z(self, arm: int) -> tuple[Column, Array]:
        # On short vectors the operator `@` costs twice as much as the method `dot`.
        z = self._features[arm].dot(self._root)
        self._direction = self._root.dot(z)
        variance = float(z.dot(z))
        return Column(self._features.dot(self._direction), variance, self.regularization - variance), z

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
            column, z = self._column_and_z(arm)
            self._last, self._g, self._z, self._along = arm, column.covariance, z, self._direction
            variance = column.variance
        noise = self.regularization / count
        total = noise + variance
        self._share = noise / total  # a^2
        self._add_outer(-1.0 / (total + math.sqrt(noise * total)), z)
        return self._g, variance

    def _remove(self, arm: int, count: float, *, last: bool) -> Column:  # noqa: ARG002 - the rank stays
        self._last = NONE
        column, z = self._column_and_z(arm)
        noise = self.regularization / count
        column = column._replace(slack=noise - column.variance)
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

    # -- many worlds (`arm_batches`) -----------------------------------------------------------------------------

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

    def sample(self, rng: np.random.Generator, points: ArmIndices | None = None, *, size: int = 1) -> Array:
        """Returns joint samples mu + Phi W xi of f at all arms, or those listed, `(size, n)`. O(N r) each."""
        features, mean = self._features, self._mean
        if points is not None:
            arms = self._indices(points)
            features, mean = features[arms], mean[arms]
        normal = normals(rng, size, self.rank, most=self.normals)
        return mean + (normal @ self._root.T) @ features.T
