"""Variances of samples of a Gaussian process and of their first two derivatives, for the constants of theorems.

| symbol | name | meaning | shape |
|---|---|---|---|
| | `value` | sup over the box of Var f(x) = k(x, x) | scalar |
| L_j^2 | `first` | sup of Var df/dx_j = d^2 k(p, q) / dp_j dq_j at p = q = x | (d,) |
| | `second` | sup of Var d^2 f / dx_i dx_j | (d, d) |

All are upper bounds, exact for stationary kernels, and infinite if such a derivative does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._utils.checks import Array


class Derivatives(NamedTuple):
    """Largest variances over a box.

    Attributes:
        value: of f.
        first: of the slopes, `(d,)`.
        second: of the second derivatives, `(d, d)`.
        stationary: True if the kernel is stationary with a spectrum that is symmetric in every coordinate. Then f
            and its slopes at one point are uncorrelated, and so are slopes in different coordinates.
    """

    value: float
    first: Array
    second: Array
    stationary: bool

    def plus(self, other: Derivatives) -> Derivatives:
        """Returns the variances of a sum of independent processes, which add."""
        return Derivatives(
            self.value + other.value,
            self.first + other.first,
            self.second + other.second,
            self.stationary and other.stationary,
        )

    def times(self, other: Derivatives) -> Derivatives:
        """Returns the variances for a product of kernels, the covariance of f g for independent f and g of mean 0.

        For stationary kernels, frequencies of the product are sums of independent ones, so E (a + b)_i^2 (a + b)_j^2 is
        multiplied out. For other kernels, the bound is the product rule and Minkowski's inequality for standard
        deviations.
        """
        a, b = self, other
        with np.errstate(invalid="ignore"):
            if a.stationary and b.stationary:
                first = a.first * b.value + a.value * b.first
                mixed = np.outer(a.first, b.first)
                second = a.second * b.value + a.value * b.second + mixed + mixed.T + 4.0 * np.diag(a.first * b.first)
            else:
                f, g = np.sqrt(a.value), np.sqrt(b.value)
                first = (np.sqrt(a.first) * g + f * np.sqrt(b.first)) ** 2
                mixed = np.outer(np.sqrt(a.first), np.sqrt(b.first))
                second = (np.sqrt(a.second) * g + f * np.sqrt(b.second) + mixed + mixed.T) ** 2
        # 0 times infinity is NaN, and stands for a derivative that does not exist.
        first, second = (np.where(np.isnan(each), np.inf, each) for each in (first, second))
        return Derivatives(a.value * b.value, first, second, a.stationary and b.stationary)

    def on(self, columns: Sequence[int], dimension: int) -> Derivatives:
        """Returns the variances of a process that sees only these columns of `dimension` columns."""
        first, second = np.zeros(dimension), np.zeros((dimension, dimension))
        first[list(columns)] = self.first
        second[np.ix_(columns, columns)] = self.second
        return Derivatives(self.value, first, second, self.stationary)


def unknown(dimension: int) -> Derivatives:
    """Returns infinite variances, for an unknown process."""
    return Derivatives(np.inf, np.full(dimension, np.inf), np.full((dimension, dimension), np.inf), False)
