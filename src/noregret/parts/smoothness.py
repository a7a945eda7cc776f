"""How steep samples of a Gaussian process are: the constants a and b of Srinivas et al. 2010, Theorem 2.

The theorem needs P(sup_x |df/dx_j| > L) <= a exp(-(L / b)^2) and leaves a and b to the reader. They are derived here
from the kernel. g = df/dx_j is itself a stationary Gaussian process, with variance s^2 (the spectral moment of
omega_j^2), and g(x) - g(x') has standard deviation at most Lambda |x - x'|, Lambda^2 = sum_i E[omega_i^2 omega_j^2]:

1. E sup g <= m by Dudley's entropy integral with the constant of Boucheron, Lugosi and Massart (2013), Corollary 13.2:
   m = 12 int_0^s sqrt(log N(u)) du, N(u) <= prod_i (1 + sqrt(d) Lambda r_i / (2 u)) balls of radius u covering the box;
2. P(sup |g| > L) <= 2 exp(-(L - m)^2 / (2 s^2)) for L > m, by the Borell-TIS inequality (their Theorem 5.8);
3. (L - m)^2 >= L^2 / 2 - m^2, hence a = 2 exp(m^2 / (2 s^2)) and b = 2 s, valid for every L > 0.

a enters beta_t only through log log, so that a loose m costs almost nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..checks import Array
from ..errors import InvalidInput
from ..kernels import Kernel, Linear, Matern, SquaredExponential, Sum


class Moments(NamedTuple):
    """Spectral moments of a stationary kernel: variances of first and second derivatives of its samples."""

    first: Array  # Var df/dx_j, (d,)
    second: Array  # Var d^2 f / dx_i dx_j, (d, d)


class Tail(NamedTuple):
    """P(sup |df/dx_j| > L) <= a exp(-(L / b)^2) for every j. `log_a` because a itself may overflow."""

    log_a: float
    b: float


def derivative_tail(kernel: Kernel, lower: Array, upper: Array) -> Tail:
    """A valid pair (a, b) for a kernel on a box; errors where samples are not smooth enough (Matern nu <= 2)."""
    with np.errstate(over="ignore", under="ignore", divide="ignore"):  # what comes of it is checked in `_tail`
        moments = _moments(kernel, len(lower))
        sides = upper - lower
        tails = [_tail(float(moments.first[j]), float(moments.second[j].sum()), sides) for j in range(len(lower))]
    return Tail(max(tail.log_a for tail in tails), max(tail.b for tail in tails))


def _tail(variance: float, modulus: float, sides: Array) -> Tail:
    from scipy.integrate import quad

    s, slope = math.sqrt(variance), math.sqrt(modulus) * math.sqrt(len(sides))
    if not (0.0 < s < math.inf and np.isfinite(slope * sides).all()):
        raise InvalidInput(
            "The slopes that this kernel expects are too small or too large for a float: its lengthscale is out of all "
            "proportion to the domain. Check the units of both."
        )

    def entropy(u: float) -> float:
        return math.sqrt(float(np.log1p(slope * sides / (2.0 * u)).sum()))

    m = 12.0 * float(quad(entropy, 0.0, s)[0])
    return Tail(math.log(2.0) + m**2 / (2.0 * variance), 2.0 * s)


def _moments(kernel: Kernel, d: int) -> Moments:
    if isinstance(kernel, Sum):
        left, right = _moments(kernel.left, d), _moments(kernel.right, d)
        return Moments(left.first + right.first, left.second + right.second)  # independent summands
    if isinstance(kernel, Linear):
        return Moments(np.full(d, kernel.scale), np.zeros((d, d)))
    if not isinstance(kernel, SquaredExponential | Matern):
        raise InvalidInput(
            f"The constants a and b of Theorem 2 cannot be derived for {kernel!r}: give `a` and `b` yourself, such "
            "that P(sup |df/dx_j| > L) <= a exp(-(L / b)^2) on the domain."
        )
    inverse = 1.0 / np.broadcast_to(np.asarray(kernel.lengthscale, dtype=np.float64), (d,)) ** 2
    first, second = 1.0, 1.0  # of a Gaussian spectrum
    if isinstance(kernel, Matern):
        if kernel.nu <= 2.0:
            raise InvalidInput(
                "Theorem 2 needs sample paths with continuous derivatives: a kernel four times differentiable, such as "
                f"Matern with nu > 2, not nu = {kernel.nu:g}. Use nu = 2.5, or a grid of arms with width='finite'."
            )
        # The spectrum is a multivariate t distribution with 2 nu degrees of freedom.
        first, second = kernel.nu / (kernel.nu - 1.0), kernel.nu**2 / ((kernel.nu - 1.0) * (kernel.nu - 2.0))
    pairs = np.outer(inverse, inverse) * (1.0 + 2.0 * np.eye(d))  # E z_i^2 z_j^2 = 1, and 3 for i = j
    return Moments(kernel.scale * first * inverse, kernel.scale * second * pairs)
