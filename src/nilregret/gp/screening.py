"""Variances of many blocks in single precision, by which a decision among many arms finds the few that may win.

| symbol | name | meaning | shape |
|---|---|---|---|
| z | | features of a context | (p,) |
| P_k | | covariance of the weights of block k (`arm_blocks`) | (K, p, p) |
| w | | products z_i z_j for i >= j, twice those with i > j | (m,), m = p (p + 1) / 2 |
| S | `_lower` | lower triangles of the covariances in single precision | (K, m) |

The variance of block k is z^T P_k z = S_k w. Reading S takes a quarter of the time of reading P. Rounding of products,
sums and inputs adds at most (m + 3) u sum_ij |z_i z_j P_kij|, u = 2^-24 (Higham 2002, section 3.1). By Cauchy-Schwarz
that sum is at most (sum_i |z_i| sqrt(P_kii))^2.
"""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from .._utils.checks import Array, IndexArray

LARGE = 1e6  # numbers in the covariances of a model, from which a prediction waits for the memory
UNIT = 2.0**-24  # of the rounding of single precision
MARGIN = 1e-9  # standard units by which the best arms are found exactly, far more than the size of a tie
SHARE = 0.25  # of the arms that may win, beyond which all are predicted exactly


@final
class RoughVariances:
    """A cache of covariances in single precision. Blocks are read again after they changed.

    A copy is empty, since most copies make no decision.
    """

    def __init__(self) -> None:
        self._lower = np.zeros((0, 0), dtype=np.float32)
        self._deviations = np.zeros((0, 0), dtype=np.float32)
        self._pairs: tuple[IndexArray, IndexArray, Array] = np.arange(0), np.arange(0), np.zeros(0)
        self._stale: set[int] = set()

    def copy(self) -> RoughVariances:
        """Returns an empty cache."""
        return RoughVariances()

    def changed(self, block: int) -> None:
        """Notes that a block has another covariance."""
        if len(self._lower):
            self._stale.add(block)

    def at(self, z: Array, covariances: Array) -> tuple[Array, Array]:
        """Returns z^T P_k z of all blocks, and bounds on the errors, `(K,)` each.

        Args:
            z: features `(p,)`.
            covariances: P, `(K, p, p)`, of which the lower triangles are read.
        """
        if len(self._lower) != len(covariances):
            size = len(z)
            i, j = np.tril_indices(size)
            self._pairs = i, j, np.where(i == j, 1.0, 2.0)
            self._lower = np.empty((len(covariances), len(i)), dtype=np.float32)
            self._deviations = np.empty((len(covariances), size), dtype=np.float32)
            self._stale = set(range(len(covariances)))
        i, j, times = self._pairs
        for block in self._stale:
            self._lower[block] = covariances[block][i, j]
            self._deviations[block] = np.sqrt(np.maximum(covariances[block].diagonal(), 0.0))
        self._stale = set()
        found = (self._lower @ (z[i] * z[j] * times).astype(np.float32)).astype(float)
        spread = (self._deviations @ np.abs(z).astype(np.float32)).astype(float)
        return found, (len(i) + 3) * UNIT * (1.01 * spread) ** 2


class Moments(NamedTuple):
    """Means and variances of arms, with bounds on the errors of the variances, `(n,)` each."""

    mean: Array
    variance: Array
    error: Array

    def scores(self, factors: Array) -> tuple[Array, IndexArray | None]:
        """Returns approximate values of mean + factor * std, and the places of which one has the largest.

        The places are None if they are too many for an exact prediction of each to be quicker than one of all.
        """
        low, std, high = (np.sqrt(np.maximum(self.variance + more, 0.0)) for more in (-self.error, 0.0, self.error))
        ends = factors * low, factors * high
        lower, upper = self.mean + np.minimum(*ends), self.mean + np.maximum(*ends)
        best = float(lower.max())
        places = np.flatnonzero(upper >= best - MARGIN * (1.0 + abs(best)))
        return self.mean + factors * std, None if len(places) > SHARE * len(upper) else places
