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

from typing import Literal

import numpy as np

from .._utils.checks import Array

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
