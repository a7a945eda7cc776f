"""Power laws y = C x^c fitted to means over replicates.

| symbol | name | meaning | shape |
|---|---|---|---|
| x | `x` | positions | (n,) |
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
        """Returns the law as text, such as "1.86 T^0.74"."""
        return f"{self.constant:.3g} {symbol}^{self.exponent.mean:.3g}"


def fit_power(x: Array, values: Array) -> PowerFit:
    """Returns the least-squares fit to the logarithms of the means over replicates.

    The interval is that of the linearised exponent. Replicate i changes c by
    sum_j w_j (y_ij / mean_j - 1) / replicates, where w are the weights of the slope. The interval is therefore valid
    if values of a replicate at different x are dependent.
    """
    means = values.mean(axis=0)
    if len(x) < 2 or not (means > 0.0).all() or not (x > 0.0).all():
        raise InvalidInput("A power law is fitted to two or more positive means at positive x.")
    log_x, log_y = np.log(x), np.log(means)
    weights = (log_x - log_x.mean()) / np.square(log_x - log_x.mean()).sum()
    exponent = interval(float(weights @ log_y) + (values / means) @ weights)
    return PowerFit(float(np.exp(log_y.mean() - exponent.mean * log_x.mean())), exponent)
