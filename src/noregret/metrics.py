"""What a run is judged by. Rounds are along the last axis, so replicates may be along the first.

| symbol | name | meaning | shape |
|---|---|---|---|
| r_t = f(x*) - f(x_t) | `regret` | regret of each round | (..., T) |
| R_t | `cumulative_regret` | sum of r_1 .. r_t | (..., T) |
| R_t / t | `average_regret` | goes to 0 for a no-regret policy | (..., T) |
| | `simple_regret` | f(x*) minus the best f among plays answered by the end of their round | (..., T) |
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .checks import Array


def cumulative_regret(regret: npt.ArrayLike) -> Array:
    """R_t = r_1 + ... + r_t (Srinivas et al. 2010, section 2)."""
    return np.cumsum(np.asarray(regret, dtype=np.float64), axis=-1)


def average_regret(regret: npt.ArrayLike) -> Array:
    """R_t / t."""
    total = cumulative_regret(regret)
    return np.asarray(total / np.arange(1, total.shape[-1] + 1))


def simple_regret(regret: npt.ArrayLike, *, answered: npt.ArrayLike | None = None) -> Array:
    """The smallest regret of an answered round so far; infinite before the first answer.

    Args:
        regret: per round, `(..., T)`.
        answered: True where the round's answer was there by its end, `(..., T)`; all of them unless given.
    """
    values = np.asarray(regret, dtype=np.float64)
    if answered is not None:
        values = np.where(np.asarray(answered, dtype=bool), values, np.inf)
    return np.asarray(np.minimum.accumulate(values, axis=-1))
