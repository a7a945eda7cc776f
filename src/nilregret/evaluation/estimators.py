"""Estimates of the value of a policy from the log of another.

| symbol | name | meaning | shape |
|---|---|---|---|
| r | rewards | rewards on the log | (n,) |
| w | weights | pi(a_t given x_t) over the propensity of a_t | (n,) |
| q(a_t) | taken | predicted reward of the action that was taken | (n,) |
| q(pi) | expected | predicted reward of the policy: sum_a pi(a given x_t) q(x_t, a) | (n,) |

Each is the mean of one number for each row, so their formulas are those of the literature and of `obp`.
"""

from __future__ import annotations

from typing import Literal, final

import numpy as np

from .._utils.checks import Array, IndexArray

Estimator = Literal["snips", "dr", "ips", "switch"]
ESTIMATORS: tuple[Estimator, ...] = ("snips", "dr", "ips", "switch")


def estimates(rewards: Array, weights: Array, taken: Array, expected: Array, *, most: float) -> dict[str, float]:
    """Returns the estimates by name.

    - "ips": mean of w r (Horvitz & Thompson, 1952).
    - "snips": sum of w r over sum of w (Swaminathan & Joachims, 2015). NaN if all weights are 0.
    - "dr": mean of q(pi) + w (r - q(a)) (Dudik, Langford & Li, 2011).
    - "switch": as "dr", with the second term only where w is at most `most` (Wang, Agarwal & Dudik, 2017).
    - "model": mean of q(pi), the reward model alone.

    Args:
        rewards: `(n,)`.
        weights: at least 0, `(n,)`.
        taken: predicted rewards of the logged actions, `(n,)`.
        expected: predicted rewards of the policy, `(n,)`.
        most: largest weight that "switch" uses.
    """
    total, residuals = float(weights.sum()), weights * (rewards - taken)
    return {
        "snips": float(weights @ rewards) / total if total > 0.0 else float("nan"),
        "dr": float(np.mean(expected + residuals)),
        "ips": float(np.mean(weights * rewards)),
        "switch": float(np.mean(expected + np.where(weights <= most, residuals, 0.0))),
        "model": float(np.mean(expected)),
    }


def effective_sample_size(weights: Array) -> float:
    """Returns (sum w)^2 / sum w^2: the number of rows of equal weight that say as much. It is 0 without any weight."""
    largest = float(weights.max(initial=0.0))
    if largest == 0.0:
        return 0.0
    shares = weights / largest  # Squares of large weights would overflow.
    return float(shares.sum() ** 2 / (shares @ shares))


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
