"""How much samples of a Gaussian process vary, and their first two derivatives: for the constants of theorems.

| symbol | name | meaning | shape |
|---|---|---|---|
| | `value` | sup over the box of Var f(x) = k(x, x) | scalar |
| L_j^2 | `first` | sup of Var df/dx_j = d^2 k(p, q) / dp_j dq_j at p = q = x | (d,) |
| | `second` | sup of Var d^2 f / dx_i dx_j | (d, d) |

All are upper bounds, exact for stationary kernels; infinite where such a derivative does not exist.
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
        stationary: whether the kernel is stationary with a spectrum that is symmetric in every coordinate: then f and
            its slopes at one point are uncorrelated, and so are slopes in different coordinates.
    """

    value: float
    first: Array
    second: Array
    stationary: bool

    def plus(self, other: Derivatives) -> Derivatives:
        """Of a sum of independent processes: variances add."""
        return Derivatives(
            self.value + other.value,
            self.first + other.first,
            self.second + other.second,
            self.stationary and other.stationary,
        )

    def times(self, other: Derivatives) -> Derivatives:
        """Of a product of kernels, which is the covariance of f g for independent f and g of mean 0.

        Stationary: frequencies of the product are sums of independent ones, E (a + b)_i^2 (a + b)_j^2 multiplied out.
        Else the product rule and Minkowski's inequality for the standard deviations.
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
        # 0 times infinity: a derivative that does not exist, whatever it is multiplied with.
        first, second = (np.where(np.isnan(each), np.inf, each) for each in (first, second))
        return Derivatives(a.value * b.value, first, second, a.stationary and b.stationary)

    def on(self, columns: Sequence[int], dimension: int) -> Derivatives:
        """Of a process that sees these columns of `dimension` only: it does not vary along the others."""
        first, second = np.zeros(dimension), np.zeros((dimension, dimension))
        first[list(columns)] = self.first
        second[np.ix_(columns, columns)] = self.second
        return Derivatives(self.value, first, second, self.stationary)


def unknown(dimension: int) -> Derivatives:
    """Of a process of which nothing is known."""
    return Derivatives(np.inf, np.full(dimension, np.inf), np.full((dimension, dimension), np.inf), False)
