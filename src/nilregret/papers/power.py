"""Power laws y = C x^c fitted to means over replicates.

| symbol | name | meaning | shape |
|---|---|---|---|
| x | `x` | where | (n,) |
| y_ij | `values` | replicate i at x_j | (replicates, n) |
| C, c | `constant`, `exponent` | of the fit | |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array
from .._utils.errors import InvalidInput
from ..study.curves import Interval, interval


class PowerFit(NamedTuple):
    """C x^c, and the 95% interval of c over the replicates."""

    constant: float
    exponent: Interval

    def __call__(self, x: npt.ArrayLike) -> Array:
        """The fitted curve."""
        return self.constant * np.asarray(x, dtype=np.float64) ** self.exponent.mean

    def words(self, symbol: str) -> str:
        """Such as "1.86 T^0.74"."""
        return f"{self.constant:.3g} {symbol}^{self.exponent.mean:.3g}"


def fit_power(x: Array, values: Array) -> PowerFit:
    """Least squares on the logarithms of the means over replicates.

    The interval is of the linearised exponent: c moves by sum_j w_j (y_ij / mean_j - 1) / replicates with replicate i,
    w being the weights of the slope. So it does not matter that a replicate's values at different x hang together.
    """
    means = values.mean(axis=0)
    if len(x) < 2 or not (means > 0.0).all() or not (x > 0.0).all():
        raise InvalidInput("A power law is fitted to two or more positive means at positive x.")
    log_x, log_y = np.log(x), np.log(means)
    weights = (log_x - log_x.mean()) / np.square(log_x - log_x.mean()).sum()
    exponent = interval(float(weights @ log_y) + (values / means) @ weights)
    return PowerFit(float(np.exp(log_y.mean() - exponent.mean * log_x.mean())), exponent)
