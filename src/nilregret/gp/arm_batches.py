"""The posteriors of many worlds on the same arms, which advance together.

| symbol | name | meaning | shape |
|---|---|---|---|
| S | | worlds, each with observations of its own | |
| Phi | `_features`, `_columns` | as in `LowRankPosterior`, the same in all worlds, and its transpose | (N, r), (r, N) |
| W | `_root` | W W^T is the posterior covariance of the weights | (S, r, r) |
| mu, sigma^2 | `_mean`, `_variance` | posterior of every arm | (S, N) |
| n, n ybar | `_plays`, `_sums` | number of plays of each arm, sum of its targets | (S, N) |

The formulas are those of `LowRankPosterior`. It computes everything again from the sums, as often as in one world.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from .._utils.checks import Array, IndexArray
from .arms import ArmPosterior
from .low_rank_arms import LowRankPosterior

ALL = slice(None)


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
        self._outer = np.empty_like(self._root)
        self._mean, self._variance = np.zeros((worlds, arms)), np.tile(empty.prior.variance, (worlds, 1))
        self._std = np.empty_like(self._mean)
        self._log_ratio = np.zeros(worlds)
        self._plays, self._sums = np.zeros((worlds, arms), dtype=np.int64), np.zeros((worlds, arms))
        self.count, self._updates = np.zeros(worlds, dtype=np.int64), np.zeros(worlds, dtype=np.int64)

    # -- observations --------------------------------------------------------------------------------------------

    def append(self, arms: IndexArray, targets: Array, worlds: IndexArray | None = None) -> None:
        """Adds one observation to each of k worlds. O(N r + r^2) each.

        Args:
            arms: `(k,)`.
            targets: `(k,)`.
            worlds: `(k,)`, each once.
        """
        at: slice | IndexArray = ALL if worlds is None else worlds
        cells = self._starts[at] + arms
        root = self._root[at]
        z = np.matmul(self._features[arms][:, None, :], root)
        direction = np.matmul(root, z.transpose(0, 2, 1))
        variance = np.matmul(z, z.transpose(0, 2, 1))[:, 0, 0]
        total = self.regularization + variance
        factor = total + np.sqrt(self.regularization * total)
        root -= np.multiply(direction, z / factor[:, None, None], out=self._outer[: len(root)])
        edge = np.sqrt(total)
        g = (direction[:, :, 0] / edge[:, None]) @ self._columns  # cov(., a) / sqrt(lambda + s^2)
        surprise = (targets - self._mean.take(cells)) / edge
        if worlds is not None:  # A list of worlds has made a copy.
            self._root[worlds] = root
        self._mean[at] += g * surprise[:, None]
        np.multiply(g, g, out=g)
        self._variance[at] -= g
        self._log_ratio[at] += np.log1p(variance / self.regularization)
        self._plays.reshape(-1)[cells] += 1
        self._sums.reshape(-1)[cells] += targets
        self.count[at] += 1
        self._updates[at] += 1
        self._renew_due()

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
        root = self._root[at]
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
        for world in np.flatnonzero(self._updates >= least).tolist():
            self._updates[world] -= least
            plays, sums = self._plays[world], self._sums[world]
            average = np.divide(sums, plays, out=np.zeros(len(sums)), where=plays > 0)
            fresh = self._empty.of_sums(plays, average)
            self._root[world], self._log_ratio[world] = fresh.root, fresh.log_determinant_ratio
            self._mean[world], self._variance[world] = fresh.moments

    # -- predictions ---------------------------------------------------------------------------------------------

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

    def deviate(self, generators: Sequence[np.random.Generator], cells: IndexArray | None = None) -> Array:
        """Returns joint samples of f - mu at some arms of each world, `(S, n)`, or at all (see `predict`)."""
        rank = self._features.shape[1]
        normal = np.array([generator.standard_normal(rank) for generator in generators])
        return self._deviation(normal, cells)

    def _deviation(self, normal: Array, cells: IndexArray | None) -> Array:
        weights = np.matmul(self._root, normal[:, :, None])
        if cells is None:
            return np.asarray(weights[:, :, 0] @ self._columns)
        return np.asarray(np.matmul(self._features[cells], weights)[:, :, 0])


def batch_of(posterior: ArmPosterior, worlds: int) -> ArmBatch | None:
    """Returns the posteriors of several worlds, or None if they cannot advance together.

    They can if the features have a low rank.

    Args:
        posterior: the posterior of each world before the first observation.
        worlds: S.
    """
    return ArmBatch(posterior, worlds) if isinstance(posterior, LowRankPosterior) else None
