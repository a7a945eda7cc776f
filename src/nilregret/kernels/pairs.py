"""Distances between all pairs of some points, for kernels whose lengthscales change and whose points stay.

| symbol | name | meaning | shape |
|---|---|---|---|
| l | `unit` | lengthscales, one or one for each column | (1,) or (d,) |
| r^2 | `squares` | sum over k of (x_k - x'_k)^2 / l_k^2, of each pair once | (n (n - 1) / 2,) |

Pairs have the order of `scipy.spatial.distance.pdist`.
"""

from __future__ import annotations

from typing import final

import numpy as np

from .._utils.checks import Array

MOST_KEPT = 2**15  # squared differences that are kept: more take longer to read than to compute again
MOST_LENGTHS = 1e150  # lengthscales in a span, whose square is finite: every kernel is 0 there


@final
class Pairs:
    """The pairs of points `(n, d)`.

    Few points keep the squared differences of each column, so that distances and sums are products of a vector and a
    matrix.
    """

    def __init__(self, points: Array) -> None:
        from scipy.spatial.distance import pdist, squareform  # slow to import

        self._pdist, self._squareform = pdist, squareform
        self._points = points - points[:1]  # an origin among the points
        n, d = points.shape
        self._kept: Array | None = None
        if n * (n - 1) // 2 * d <= MOST_KEPT:
            spans = np.ptp(points, axis=0) if n else np.ones(d)
            self._spans = np.where(spans > 0.0, spans, 1.0)
            columns = (self._points / self._spans).T
            self._kept = np.array([pdist(column[:, None], "sqeuclidean") for column in columns])

    def squares(self, unit: Array) -> Array:
        """Returns r^2 of each pair, as a fresh array."""
        if self._kept is None:
            return np.asarray(self._pdist(self._points / unit, "sqeuclidean"))
        return np.asarray(self._rates(unit) @ self._kept)

    def sums(self, values: Array, weights: Array, unit: Array) -> Array:
        """Returns sum_ij weights_ij * value_ij * (x_ik - x_jk)^2 / l_k^2 of each column k, `(d,)`.

        Args:
            values: of the pairs.
            weights: `(n, n)`.
            unit: lengthscales.
        """
        if self._kept is None:
            scaled = self._points / unit
            # squareform leaves 0 on the diagonal, where (x - x)^2 would otherwise be a difference of large numbers.
            G = self._squareform(values, checks=False)
            G *= weights
            sums = (G.sum(axis=0) + G.sum(axis=1)) @ scaled**2
            sums -= 2.0 * np.einsum("ik,ik->k", scaled, G @ scaled)
            return np.asarray(sums)
        values = values * self._squareform(weights + weights.T, checks=False)
        return np.asarray(self._rates(unit) * (self._kept @ values))

    def _rates(self, unit: Array) -> Array:
        """Returns the square of the number of lengthscales in the span of each column, `(d,)`."""
        return np.square(np.minimum(self._spans / unit, MOST_LENGTHS))
