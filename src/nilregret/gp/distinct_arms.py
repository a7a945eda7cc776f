"""Posterior on arms through the distinct arms played (function-space view).

| symbol | name | meaning | shape |
|---|---|---|---|
| U | `_arms` | distinct arms played, in order of first play | u |
| n, ybar | `plays`, `_average` | number of plays of each arm, average of its targets | (N,) |
| G | `_kernel_columns` | K(all arms, U), column-major with room to grow | (N, u) |
| M | | K(U, U) + lambda diag(1 / n): repeats merged exactly | (u, u) |
| F | `_root` | F^T F = M^{-1} | (u, u) |

mu = G M^{-1} ybar and cov = K - G M^{-1} G^T. F is updated and not M^{-1}, since its entries stay below sqrt(n /
lambda). So rounding costs 1e-16 sqrt(n / lambda), where an explicit inverse would lose 1e-16 n / lambda at every step.
For an arm a = U_i already played, cov(., a) = (lambda / n_i) G M^{-1} e_i, without cancellation.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self, final

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from .._utils.checks import Array
from .._utils.randomness import Rng
from ..kernels.factorization import MANY, covariance_root, draws_of_root
from .arms import MOST_JOINT, ArmIndices, ArmPosterior, Column, Prior, Span
from .spectrum import Spectrum, spectrum_of_points

ROUNDED_AWAY = 1.001  # (lambda / n_i) (M^{-1})_ii is at most 1, and the factor is renewed beyond this value
FEW = 0.25  # largest share of the arms whose joint sample is drawn from their own covariance
FIRST_ROOM = 32  # distinct arms for which memory is allocated at first, and doubled when it is used up
ROOM_OF_MANY = 512  # the same on many arms, where copying costs, and memory that is not filled is not taken


class _Some(NamedTuple):
    """Rows `(N, ...)` of all arms, from which rows of some arms are taken."""

    rows: Array

    def of(self, arms: Any) -> Array:
        """Returns rows of some arms, or of all if `arms` is None, with arms as the last axis."""
        return (self.rows if arms is None else self.rows[arms]).T


@final
class DistinctArmsPosterior(ArmPosterior):
    """An exact posterior on arms at O(N u + u^2) a round, u the number of distinct arms played."""

    OWNED = (*ArmPosterior.OWNED, "_arms", "_position", "_entered", "_root_room")

    def __init__(self, prior: Prior, regularization: float) -> None:
        super().__init__(prior, regularization)
        self._arms: list[int] = []
        self._position: dict[int, int] = {}
        self._entered: list[int] = []  # arms ever played, in order of first play
        self._span: Span | None = None  # of a number of these
        self._columns_room = np.zeros((len(prior.points), 0), order="F")
        self._root_room = np.zeros((0, 0))

    @property
    def rank(self) -> int:
        """Number of distinct arms played u."""
        return len(self._arms)

    grows = True

    def _enter(self, arms: list[int]) -> None:
        for arm, k in zip(arms, self.prior.columns(arms).T, strict=True):
            self._enter_with(arm, k)

    def _enter_with(self, arm: int, k: Array) -> None:
        """Makes room for an arm with these prior covariances with all arms."""
        self._make_room()
        u = len(self._arms)
        self._columns_room[:, u] = k
        self._root_room[u, : u + 1] = self._root_room[:u, u] = 0.0
        self._position[arm] = u
        self._arms.append(arm)
        if len(self._entered) >= FIRST_ROOM and len(self._entered) >= 2 * len(self._arms):
            self._entered = list(self._arms)  # Most have been forgotten since.
        elif arm not in self._entered:
            self._entered.append(arm)

    def _spanned(self) -> Span:
        """Returns features in whose span are all arms that were ever played.

        It depends on the order of first plays and not on when it was asked for.
        """
        prior, span = self.prior, self._span
        if span is None or span.played != tuple(self._entered[: len(span.played)]):
            span = prior.span()
        self._span = span.following(prior.kernel, prior.points, self._entered)
        return self._span

    @property
    def _kernel_columns(self) -> Array:
        return self._columns_room[:, : len(self._arms)]

    @property
    def _root(self) -> Array:
        return self._root_room[: len(self._arms), : len(self._arms)]

    def _column(self, arm: int) -> Column:
        return self._played_column(arm)[0]

    def _played_column(self, arm: int, count: float = 1.0) -> tuple[Column, Array, Array, Array]:
        """Returns the column, p = F e_i, q = M^{-1} e_i and F of an arm played before.

        The slack of the column is that of `count` plays.
        """
        noise = self.regularization / self.plays.item(arm)
        root = self._root
        p = root[:, self._position[arm]].copy()
        q_ii = float(p.dot(p))
        if noise * q_ii > ROUNDED_AWAY:
            self._refactor()
            p = root[:, self._position[arm]].copy()
            q_ii = float(p.dot(p))
        q = p.dot(root)
        # s^2 = (lambda / n)(1 - (lambda / n) q_ii), and for n = 1 lambda - s^2 = lambda^2 q_ii exactly.
        taken = min(noise * q_ii, 1.0)
        variance = noise * (1.0 - taken)
        slack = self.regularization / count - noise + noise * taken
        return Column(noise * self._columns_room[:, : len(root)].dot(q), variance, slack), p, q, root

    def _add(self, arm: int, count: float) -> tuple[Array, float]:
        if arm not in self._position:
            return self._add_new(arm, count)
        column, p, q, root = self._played_column(arm)
        plays = self.plays.item(arm)
        self._rescale(root, arm, p, q, delta=self.regularization * count / (plays * (plays + count)))
        return column.covariance, column.variance

    def _add_new(self, arm: int, count: float) -> tuple[Array, float]:
        k = self.prior.columns([arm])[:, 0]
        half = self._root @ k[self._arms]
        weights = half @ self._root  # M^{-1} k(U, a)
        g = k - self._kernel_columns @ weights if self._arms else k.copy()
        variance = max(float(g[arm]), 0.0)
        edge = math.sqrt(self.regularization / count + variance)  # of the Schur complement: never below sqrt(lambda/n)
        u = len(self._arms)
        self._enter_with(arm, k)
        self._root_room[u, :u] = -weights / edge
        self._root_room[u, u] = 1.0 / edge
        return g, variance

    def _remove(self, arm: int, count: float, *, last: bool) -> Column:
        column, p, q, root = self._played_column(arm, count)
        plays = self.plays.item(arm)
        if last:
            self._drop(arm, p)
            return column
        self._rescale(root, arm, p, q, delta=-self.regularization * count / (plays * (plays - count)))
        return column

    def _rescale(self, root: Array, arm: int, p: Array, q: Array, *, delta: float) -> None:
        """Applies M_ii -= delta: M^{-1} gains delta q q^T / (1 - delta q_ii), and the root is now (I + tau p p^T) F."""
        q_ii = min(float(p.dot(p)), self.plays.item(arm) / self.regularization)  # a bound that rounding must not cross
        gain = delta / (1.0 - delta * q_ii)
        # (1 + tau q_ii)^2 = 1 + gain q_ii, without cancellation where gain is small.
        tau = gain / (1.0 + math.sqrt(1.0 + gain * q_ii))
        root += np.outer(p, tau * q)

    def _drop(self, arm: int, p: Array) -> None:
        """Removes row and column i of M, after a reflection that takes F e_i to the last axis."""
        i, u = self._position.pop(arm), len(self._arms)
        reflector = p.copy()
        reflector[-1] += math.copysign(float(np.linalg.norm(p)), p[-1])
        reflected = self._root - np.outer(reflector, (2.0 / float(reflector @ reflector)) * (reflector @ self._root))
        self._root_room[: u - 1, : u - 1] = np.delete(reflected[:-1], i, axis=1)
        self._columns_room[:, i : u - 1] = self._columns_room[:, i + 1 : u].copy()
        del self._arms[i]
        for later in self._arms[i:]:
            self._position[later] -= 1

    def _make_room(self) -> None:
        u, room = len(self._arms), self._root_room.shape[0]
        if u < room:
            return
        room = min(max(FIRST_ROOM if len(self.plays) <= MANY else ROOM_OF_MANY, 2 * room), len(self.plays))
        root = np.zeros((room, room))
        root[:u, :u] = self._root
        self._columns_room, self._root_room = self._columns_with_room(room), root

    def _columns_with_room(self, room: int) -> Array:
        columns = np.zeros((len(self.plays), room), order="F")
        columns[:, : len(self._arms)] = self._kernel_columns
        return columns

    def _follow(self, steps: Array) -> Array:
        """Returns the product with Cov(., U) = G M^{-1} diag(lambda / n)."""
        weights = self.regularization / self.plays[self._arms] * steps[self._arms]
        return np.asarray(self._kernel_columns @ ((self._root @ weights) @ self._root))

    def _move_mean(self, step: float) -> None:
        """Leaves all as it is, since the mean G M^{-1} ybar is kept nowhere else."""

    def _recompute(self) -> tuple[Array, Array]:
        mean = self._kernel_columns @ ((self._root @ self._average[self._arms]) @ self._root)
        variance = self.prior.variance.copy()
        for start in range(0, len(variance), MANY):  # at a time, which bounds the memory
            half = self._root @ self._kernel_columns[start : start + MANY].T
            variance[start : start + MANY] -= np.einsum("ij,ij->j", half, half)
        return mean, variance

    def _refactor(self) -> float:
        if not self._arms:
            return 0.0
        plays = self.plays[self._arms]
        noise = self.regularization / plays
        M = self._kernel_columns[self._arms] + np.diag(noise)
        factor, not_definite = dpotrf(M, lower=1, clean=1)
        if not not_definite:
            self._root[...] = dtrtri(factor, lower=1)[0]
            log_det = 2.0 * float(np.log(factor.diagonal()).sum())
        else:
            # With tiny noise and a smooth kernel, rounding can make M indefinite. Its eigenvalues are at least this.
            values, vectors = np.linalg.eigh(M)
            values = np.maximum(values, noise.min())
            self._root[...] = (vectors / np.sqrt(values)).T
            log_det = float(np.log(values).sum())
        return log_det + float(np.log(plays / self.regularization).sum())

    def _diagonalised(self) -> Spectrum:
        columns, arms = self._kernel_columns.copy(), self._arms.copy()
        return spectrum_of_points(
            columns[arms], self.plays[arms], self._average[arms], self.scatter_within_arms,
            covariance=_Some(columns).of, variance=_Some(self.prior.variance).of,
        )  # fmt: skip

    @property
    def quadratic_form(self) -> float:
        """Quadratic form y^T (K + lambda I)^{-1} y = scatter within arms / lambda + |F ybar|^2, a sum of squares."""
        half = self._root @ self._average[self._arms]
        return self.scatter_within_arms / self.regularization + float(half @ half)

    @property
    def mean_norm(self) -> float:
        """RKHS norm ||mu||_k = sqrt(alpha^T mu(U)), alpha = M^{-1} ybar."""
        alpha = (self._root @ self._average[self._arms]) @ self._root
        return math.sqrt(max(float(alpha @ self._mean[self._arms]), 0.0))

    def covariance(self, points: ArmIndices) -> Array:
        """Returns the joint posterior covariance of f at `n` arms, `(n, n)`."""
        arms = self._indices(points)
        half = self._root @ self._kernel_columns[arms].T
        return self.prior.kernel.between_arms(self.prior.points, arms, arms) - half.T @ half

    def cross_covariance(self, points: ArmIndices, others: ArmIndices) -> Array:
        """Returns posterior covariances of f between arms, `(n, k)`. O(n u k), u the number of arms played."""
        arms, apart = self._indices(points), self._indices(others)
        half = self._root.T @ (self._root @ self._kernel_columns[apart].T)
        return self.prior.kernel.between_arms(self.prior.points, arms, apart) - self._kernel_columns[arms] @ half

    def sample(self, rng: Rng, points: ArmIndices | None = None, *, size: int = 1) -> Array:
        """Returns joint samples of f, `(size, n)`: prior samples corrected by Matheron's rule.

        The first call factors the kernel matrix of all N arms in O(N^3) time and O(N^2) memory. Later calls are O(N^2).
        If few arms are listed, such as those of one context, their own covariance is factored instead: O(n^2 u + n^3).
        Of more than `MOST_JOINT` arms mean and variance are exact, and covariances are not (see `Span`).
        """
        asked = len(self.plays) if points is None else len(points)
        if points is not None and asked <= FEW * len(self.plays) and asked <= MOST_JOINT:
            root = covariance_root(self.covariance(points))
            return self.predict(points)[0] + draws_of_root(root, rng, size)
        if len(self.plays) > MOST_JOINT:
            where = None if points is None else self._indices(points)
            noise = np.sqrt(self.regularization / self.plays[self._arms])
            drawn = self._spanned().deviations(rng, np.array(self._arms, dtype=np.intp), self._root, noise, where, size)
            return drawn + self.predict(points)[0]
        root = self.prior.root()
        prior = draws_of_root(root, rng, size)
        noise = rng.standard_normal((size, len(self._arms))) * np.sqrt(self.regularization / self.plays[self._arms])
        gap = self._average[self._arms] - prior[:, self._arms] - noise
        samples = prior + (gap @ self._root.T @ self._root) @ self._kernel_columns.T
        return samples if points is None else samples[:, self._indices(points)]

    def copy(self) -> Self:
        """Returns an independent posterior in the same state, which copies the columns that are filled."""
        other = super().copy()
        other._columns_room = self._columns_with_room(self._columns_room.shape[1])
        return other
