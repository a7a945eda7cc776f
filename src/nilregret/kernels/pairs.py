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

from .._utils.checks import Array, IndexArray

MOST_KEPT = 2**15  # squared differences that are kept: more take longer to read than to compute again
WIDE = 64  # columns beyond which those that do not differ are left out, as of options that no point has
MOST_LENGTHS = 1e150  # lengthscales in a span, whose square is finite: every kernel is 0 there


def varying(first: Array, second: Array) -> IndexArray | slice:
    """Returns the columns in which rows of `first` and of `second` may differ, or all if they are few or rows many."""
    if first.shape[1] <= max(WIDE, len(first) + len(second)) or not len(first):
        return slice(None)
    differing = np.flatnonzero((first != first[0]).any(axis=0) | (second != first[0]).any(axis=0))
    return differing if len(differing) else np.arange(1)  # at least one column, as numpy and scipy need


@final
class Pairs:
    """The pairs of points `(n, d)`.

    Few points keep the squared differences of each column, so that distances and sums are products of a vector and a
    matrix.
    """

    def __init__(self, points: Array) -> None:
        from scipy.spatial.distance import pdist, squareform  # slow to import

        self._pdist, self._squareform = pdist, squareform
        self._width, self._varying = points.shape[1], varying(points, points[:0])
        points = points[:, self._varying]
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
        unit = self._of_varying(unit)
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
        result = np.zeros(self._width)
        result[self._varying] = self._sums(values, weights, self._of_varying(unit))
        return result

    def _of_varying(self, unit: Array) -> Array:
        return unit[self._varying] if len(unit) == self._width else unit

    def _sums(self, values: Array, weights: Array, unit: Array) -> Array:
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
