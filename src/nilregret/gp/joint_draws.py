"""Joint draws of f at many arms, exact at each arm.

A joint draw at N arms wants a root of their kernel matrix: N^3 operations and N^2 numbers. Here the prior is split,

| symbol | name | meaning | shape |
|---|---|---|---|
| Phi | `Span.features` | features in the span of r pivots and of the u arms played | (N, r + u) |
| E | `Span.left_out` | prior variance outside of the span, k(x, x) - |phi(x)|^2 | (N,) |
| U, M, G | | arms played, K(U, U) + lambda diag(1 / n), K(., U), as in `distinct_arms` | |

    f(x) = phi(x)^T w + e(x),    w ~ N(0, I),    e(x) ~ N(0, E_x), independent of all others.

The arms played are pivots, so e is 0 there and phi(x)^T phi(a) = k(x, a) for every arm x and every arm a played. Hence
the posterior of this prior has the mean of the exact posterior, G M^{-1} ybar, and its covariance is

    Phi Phi^T + diag(E) - G M^{-1} G^T = K - G M^{-1} G^T - (off-diagonal entries of the residual matrix).

Mean and variance of every draw at every arm are the exact ones, whatever the pivots. What is lost is the correlation of
the residuals of arms never played, at most sqrt(E_x E_x') between two. If all these correlations are positive, the
maximum of a draw is stochastically larger without them (Slepian's inequality).

An arm played whose residual variance is below `SPANNED` counts as spanned, since dividing by less would amplify
rounding. This neglects covariances of at most sqrt(`SPANNED`) of the prior variance, where arms nearly coincide.

The proof for GP-TS (Chowdhury & Gopalan 2017, Theorem 4) uses of a draw only its distribution at single arms. At the
best arm a draw exceeds f with at least a constant probability (Lemma 8). No draw is far from the mean at any arm, by a
union over the arms (Lemma 5). Lemmas 9 and 10 follow from these events for every f that is drawn. All hold as they
stand, so the theorem does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from .._utils.checks import Array, IndexArray
from ..kernels import ALL, Kernel
from ..kernels.factorization import factor_of_sample, features_of_pivots, normals

MOST_JOINT = 4096  # arms whose joint covariance is factored: a second of arithmetic, and some 400 MB
PIVOTS = 192  # largest number of pivots besides the arms played
ENOUGH = 1e-6  # share of the largest prior variance below which no pivot is added
SPANNED = 1e-12  # the same for an arm played, whose residual counts as 0 below it
BLOCK = 8  # arms played whose features are computed together, in a third of the time
ROOM = 256  # columns for which memory is set aside at a time, which none of them takes before it is filled


class _Columns:
    """Columns of features, which the spans of several posteriors share as far as they agree.

    Attributes:
        room: `(N, most)`, column-major.
        pivots: whose column each is. Those of the prior are first.
    """

    def __init__(self, room: Array, pivots: list[int]) -> None:
        self.room, self.pivots = room, pivots

    def put(self, columns: Array, pivots: list[int]) -> None:
        """Adds columns."""
        size = len(self.pivots)
        if size + len(pivots) > self.room.shape[1]:
            self.room = _widened(self.room[:, :size])
        self.room[:, size : size + len(pivots)] = columns
        self.pivots += pivots


def _widened(known: Array) -> Array:
    room = np.empty((len(known), known.shape[1] + ROOM), order="F")
    room[:, : known.shape[1]] = known
    return room


class Span(NamedTuple):
    """Features of all arms, and what they leave out.

    Arms played enter in blocks of `BLOCK`, and those after the last full block one by one. When their block is full it
    replaces them. So how a span rounds depends on the order of the arms, and not on when it was asked for.

    Attributes:
        columns: features of the prior's pivots and of full blocks. Those of longer spans may follow.
        size: number of these features.
        left_out: E, `(N,)`.
        played: arms that were added to the pivots, in order.
        negligible: variance below which a residual counts as 0.
        last: features of the arms after the last full block, each `(N,)`.
        full: the span of the full blocks alone, if arms follow them.
    """

    columns: _Columns
    size: int
    left_out: Array
    played: tuple[int, ...]
    negligible: float
    last: tuple[Array, ...] = ()
    full: Span | None = None

    def rows(self, arms: IndexArray) -> Array:
        """Returns the features of some arms, `(n, r + u)`."""
        return np.column_stack([self.columns.room[arms, : self.size], *(column[arms] for column in self.last)])

    def following(self, kernel: Kernel, points: Array, arms: list[int]) -> Span:
        """Returns the span of the prior's pivots and these arms, of which this span may have the first.

        O(N (r + u)) for each arm that is new.
        """
        span, count = self, len(arms)
        while len(span.played) < count:
            full = span.full or span
            begun = len(full.played)
            if begun + BLOCK <= count:
                span = full._with_block(kernel, points, arms[begun : begun + BLOCK])
            else:
                span = span._with_arm(kernel, points, arms[len(span.played)])
        return span

    def _with_block(self, kernel: Kernel, points: Array, arms: list[int]) -> Span:
        columns, size, block = self.columns, self.size, np.array(arms)
        rows = columns.room[block, :size]
        within = kernel.between_arms(points, block, block) - rows @ rows.T
        kept, root = _independent(within, self.negligible)
        new = block[kept].tolist()
        if columns.pivots[size : size + len(new)] != new:
            k = kernel.between_arms(points, ALL, block[kept])
            residual = k - columns.room[:, :size] @ rows[kept].T
            if len(columns.pivots) > size:  # Another posterior went on with other arms.
                columns = _Columns(_widened(columns.room[:, :size]), columns.pivots[:size])
            columns.put(solve_triangular(root, residual.T, lower=True).T, new)
        added = columns.room[:, size : size + len(new)]
        left_out = np.maximum(self.left_out - np.einsum("ij,ij->i", added, added), 0.0)
        left_out[block] = 0.0
        return Span(columns, size + len(new), left_out, (*self.played, *arms), self.negligible)

    def _with_arm(self, kernel: Kernel, points: Array, arm: int) -> Span:
        left, last, full, played = float(self.left_out[arm]), self.last, self.full or self, (*self.played, arm)
        if left <= self.negligible:
            return self._replace(played=played, full=full)
        column = kernel.between_arms(points, ALL, np.array([arm]))[:, 0]
        column = column - self.columns.room[:, : self.size] @ self.columns.room[arm, : self.size]
        for other in last:
            column -= other * other[arm]
        column /= np.sqrt(left)
        left_out = np.maximum(self.left_out - column**2, 0.0)
        left_out[arm] = 0.0
        return self._replace(left_out=left_out, played=played, last=(*last, column), full=full)

    def deviations(
        self,
        rng: np.random.Generator,
        arms: IndexArray,
        root: Array,
        noise: Array,
        points: IndexArray | None,
        size: int,
    ) -> Array:
        """Returns joint draws of f - mu at all arms, or at those listed, `(size, n)`. O(N (r + u)) each.

        Args:
            rng: random numbers.
            arms: U, all of which are among the pivots, `(u,)`.
            root: F with F^T F = M^{-1}, `(u, u)`.
            noise: sqrt(lambda / n) of these arms, `(u,)`.
            points: arms asked for.
            size: number of draws.
        """
        seen, some = self.rows(arms), slice(None) if points is None else points
        weights = normals(rng, size, seen.shape[1], most=PIVOTS + len(arms))
        gap = weights @ seen.T + rng.standard_normal((size, len(arms))) * noise
        weights = weights - (gap @ root.T @ root) @ seen  # Matheron's rule
        drawn = rng.standard_normal((size, len(self.left_out[some]))) * np.sqrt(self.left_out[some])
        features = self.columns.room[some, : self.size]
        for draw, each in zip(drawn, weights, strict=True):
            draw += features @ each[: self.size]
            for column, weight in zip(self.last, each[self.size :], strict=True):
                draw += weight * column[some]
        return drawn


def _independent(matrix: Array, negligible: float) -> tuple[list[int], Array]:
    """Returns the places of rows with a residual variance, and the Cholesky factor of these rows."""
    kept: list[int] = []
    factor = np.zeros_like(matrix)
    for place in range(len(matrix)):
        left = matrix[place, place] - factor[place] @ factor[place]
        if left > negligible:
            column = len(kept)
            rest = slice(place, None)
            factor[rest, column] = (matrix[rest, place] - factor[rest] @ factor[place]) / np.sqrt(left)
            kept.append(place)
    return kept, factor[kept, : len(kept)]


def span_of_prior(kernel: Kernel, points: Array, variance: Array) -> Span:
    """Returns features in the span of pivots chosen in a sample of the arms.

    Args:
        kernel: prior covariance.
        points: of all arms, `(N, d)`.
        variance: prior variances, `(N,)`.
    """
    size = float(variance.max())
    sample = factor_of_sample(kernel, points, tol=ENOUGH * size, max_rank=PIVOTS)
    rank = len(sample.pivots)
    room = features_of_pivots(kernel, points, sample, room=rank + ROOM)
    features = room[:, :rank]
    left_out = np.maximum(variance - np.einsum("ij,ij->i", features, features), 0.0)
    left_out[sample.pivots] = 0.0
    return Span(_Columns(room, sample.pivots.tolist()), rank, left_out, (), SPANNED * size)
