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
the residuals of arms never played, at most sqrt(E_x E_x') between two. Where it is positive, the maximum of a draw is
stochastically larger without it (Slepian's inequality): draws then explore more, not less.

The proof for GP-TS (Chowdhury & Gopalan 2017, Theorem 4) uses of a draw only its distribution at single arms. At the
best arm a draw exceeds f with at least a constant probability. No draw is far from the mean at any arm, by a union over
the arms. Both hold as they stand, so the theorem does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._utils.checks import Array, IndexArray
from ..kernels import ALL, Kernel
from ..kernels.factorization import factor_of_sample, features_of_pivots

MOST_JOINT = 4096  # arms whose joint covariance is factored: a second of arithmetic, and some 400 MB
PIVOTS = 192  # largest number of pivots besides the arms played
ENOUGH = 1e-6  # share of the largest prior variance below which no pivot is added
SPANNED = 1e-12  # the same for an arm played, whose residual counts as 0 below it
ROOM = 256  # columns for which memory is set aside at a time, which none of them takes before it is filled


class _Columns:
    """Columns of features, which the spans of several posteriors share as far as they agree.

    Attributes:
        room: `(N, most)`, column-major.
        pivots: whose column each is. Those of the prior are first.
    """

    def __init__(self, known: Array, pivots: list[int]) -> None:
        self.room = np.empty((len(known), known.shape[1] + ROOM), order="F")
        self.room[:, : known.shape[1]] = known
        self.pivots = pivots

    def put(self, column: Array, pivot: int) -> None:
        """Adds a column."""
        size = len(self.pivots)
        if size == self.room.shape[1]:
            wider = np.empty((len(column), size + ROOM), order="F")
            wider[:, :size] = self.room
            self.room = wider
        self.room[:, size] = column
        self.pivots.append(pivot)


class Span(NamedTuple):
    """Features of all arms, and what they leave out.

    Attributes:
        columns: the features of this span, and possibly those of longer ones.
        size: number of features r + u.
        left_out: E, `(N,)`.
        played: arms that were added to the pivots, in order.
        negligible: variance below which a residual counts as 0.
    """

    columns: _Columns
    size: int
    left_out: Array
    played: tuple[int, ...]
    negligible: float

    @property
    def features(self) -> Array:
        """Phi, `(N, r + u)`, not to be changed."""
        return self.columns.room[:, : self.size]

    def with_arm(self, kernel: Kernel, points: Array, arm: int) -> Span:
        """Returns the span with one more arm among the pivots. O(N (r + u))."""
        columns, size, played = self.columns, self.size, (*self.played, arm)
        left = float(self.left_out[arm])
        if left <= self.negligible:
            return self._replace(played=played)
        if columns.pivots[size : size + 1] != [arm]:
            k = kernel.between_arms(points, ALL, np.array([arm]))[:, 0]
            if len(columns.pivots) > size:  # Another posterior went on with another arm.
                columns = _Columns(self.features, columns.pivots[:size])
            columns.put((k - self.features @ self.features[arm]) / np.sqrt(left), arm)
        left_out = np.maximum(self.left_out - columns.room[:, size] ** 2, 0.0)
        left_out[arm] = 0.0
        return Span(columns, size + 1, left_out, played, self.negligible)

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
        features, left_out = self.features, self.left_out
        seen = features[arms]
        weights = rng.standard_normal((size, self.size))
        gap = weights @ seen.T + rng.standard_normal((size, len(arms))) * noise
        weights -= (gap @ root.T @ root) @ seen  # Matheron's rule
        if points is not None:
            features, left_out = features[points], left_out[points]
        own = rng.standard_normal((size, len(left_out))) * np.sqrt(left_out)
        return np.asarray(own + np.stack([features @ each for each in weights]))


def span_of_prior(kernel: Kernel, points: Array, variance: Array) -> Span:
    """Returns features in the span of pivots chosen in a sample of the arms.

    Args:
        kernel: prior covariance.
        points: of all arms, `(N, d)`.
        variance: prior variances, `(N,)`.
    """
    size = float(variance.max())
    sample = factor_of_sample(kernel, points, tol=ENOUGH * size, max_rank=PIVOTS)
    features = features_of_pivots(kernel, points, sample)
    left_out = np.maximum(variance - np.einsum("ij,ij->i", features, features), 0.0)
    left_out[sample.pivots] = 0.0
    columns = _Columns(features, sample.pivots.tolist())
    return Span(columns, features.shape[1], left_out, (), SPANNED * size)
