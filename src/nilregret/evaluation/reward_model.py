"""Cross-fitted ridge regressions of the reward on the context: one for all actions, and one for what each action adds.

| symbol | name | meaning | shape |
|---|---|---|---|
| x | features | a 1 and the standardised columns of the context | (n, p) |
| theta_0 | pooled | coefficients shared by all actions | (p,) |
| theta_a | own | what an action adds to them, shrunk to 0 | (N, p) |

The prediction for a row comes from the other folds, so its own reward has no part in it. Prediction errors cost
precision. Where propensities are right, they do not bias a doubly robust estimate of a log of independent rows. In an
adaptive log later rows depend a little on earlier rewards, also in other folds.
"""

from __future__ import annotations

from typing import final

import numpy as np

from .._utils.checks import Array, IndexArray

FOLDS = 5
RIDGE = 1.0  # weight of the prior, in rows
MOST_NUMBERS = 20_000_000  # in the matrices of all actions, beyond which an action adds a constant alone


@final
class RewardModel:
    """The cross-fitted predictions for a log.

    Args:
        features: columns of the contexts, without missing values, `(n, c)`.
        actions: taken, as indices, `(n,)`.
        rewards: `(n,)`.
        count: number of actions, N.
    """

    def __init__(self, features: Array, actions: IndexArray, rewards: Array, count: int) -> None:
        n = len(features)
        spread = features.std(axis=0)
        scaled = (features - features.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        self._x = np.column_stack([np.ones(n), scaled[:, spread > 0.0]])
        # Folds at random, because a log may have a rhythm of its own.
        self._folds = np.random.default_rng(0).permutation(n) % min(FOLDS, n)
        self._fits = [self._fitted(self._folds != fold, actions, rewards, count) for fold in range(min(FOLDS, n))]

    def _fitted(self, rows: Array, actions: IndexArray, rewards: Array, count: int) -> tuple[Array, Array]:
        """Returns the coefficients, pooled `(p,)` and of each action `(N, q)`, from some rows."""
        x, y, taken = self._x[rows], rewards[rows], actions[rows]
        if not len(x):
            return np.zeros(self._x.shape[1]), np.zeros((count, 1))
        p = x.shape[1]
        penalty = RIDGE * np.eye(p)
        penalty[0, 0] = 1e-9  # The mean reward is not shrunk.
        pooled = np.linalg.solve(x.T @ x + penalty, x.T @ y)
        q = p if count * p * p <= MOST_NUMBERS else 1
        gaps, own = y - x @ pooled, np.zeros((count, q))
        order = np.argsort(taken, kind="stable")
        ends = np.searchsorted(taken[order], np.arange(count + 1))
        for action in np.flatnonzero(np.diff(ends)):
            of = order[ends[action] : ends[action + 1]]
            z = x[of, :q]
            own[action] = np.linalg.solve(z.T @ z + RIDGE * np.eye(q), z.T @ gaps[of])
        return pooled, own

    def predict(self, rows: slice = slice(None)) -> Array:
        """Returns the predicted reward of each action in some rows, `(n, N)`, of all by default."""
        x, folds = self._x[rows], self._folds[rows]
        found = np.empty((len(x), len(self._fits[0][1])))
        for fold, (pooled, own) in enumerate(self._fits):
            at = folds == fold
            found[at] = (x[at] @ pooled)[:, None] + x[at, : own.shape[1]] @ own.T
        return found
