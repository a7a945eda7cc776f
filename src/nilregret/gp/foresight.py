"""Foresight: how well fits to the first answers predict the later ones.

A fit interpolates jagged rewards: lengthscales become short, and the noise small. Where the search goes next, rewards
are then many standard deviations below their predictions. Leaving one answer out does not show this, and nor does the
likelihood. Both see parameters that were fitted to that very answer. Predictions of what came later show it.

| symbol | name | meaning | shape |
|---|---|---|---|
| m | `first` | number of rewards that the fit has seen | |
| C | | K plus the noise variance, of all n points | (n, n) |
| L | | lower factor of C | (n, n) |
| w | | L^{-1} (y - mean): each reward less its prediction from those before it, in deviations | (n,) |
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular

from .._utils.checks import Array
from .fitting import Fit

SHARE = 3  # One in so many rewards, the last ones, is predicted.
FEWEST = 20  # rewards below which surprises of a search that moves on are too frequent to tell
NATS = 2.0  # by which the predictions of rough fits must be better

Fitted = Callable[[Array, Array], Fit]


def foreseen(fit: Fit, X: Array, y: Array, first: int) -> float:
    """Returns the log density of the rewards after the first ones, each predicted from all before it, in nats.

    The densities are Cauchy's in place of normal ones, less a constant. A single surprise, such as a better region,
    then costs a few nats and decides nothing.

    Args:
        fit: to the first rewards.
        X: `(n, d)`.
        y: `(n,)`.
        first: number of rewards that the fit has seen.
    """
    L = np.linalg.cholesky(fit.kernel(X, X) + fit.noise**2 * np.eye(len(X)))
    w = solve_triangular(L, y - fit.mean, lower=True)[first:]
    return -float(np.sum(np.log(np.diag(L)[first:]) + np.log1p(w**2)))


def rougher(smooth: Fitted, rough: Fitted, X: Array, y: Array) -> bool:
    """Returns True if rough fits foresee the last third of the rewards better than smooth ones.

    Args:
        smooth: returns the fit to points `(m, d)` with rewards `(m,)`.
        rough: the same with more noise.
        X: `(n, d)`, in the order of the rewards.
        y: `(n,)`.
    """
    if len(y) < FEWEST:
        return False
    first = len(y) - len(y) // SHARE
    plain, other = (foreseen(way(X[:first], y[:first]), X, y, first) for way in (smooth, rough))
    return other > plain + NATS
