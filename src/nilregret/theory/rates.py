"""Rates of the maximum information gain, without their constants.

| symbol | name | meaning |
|---|---|---|
| gamma_t | `information_gain_rate` | maximum information gain after t observations, up to a constant |
| d | `dimension` | number of columns of a point that the kernel sees |
| nu | `Matern.nu` | smoothness |

These are orders of growth on compact convex sets under k(x, x) <= 1, not bounds. The theorems hide constants that
depend on kernel, domain and noise. `information_gain` gives numbers.
"""

from __future__ import annotations

import math
from functools import singledispatch

from .. import kernels
from .._utils.checks import LARGEST_REWARD, integer, number, one_of, shown
from ..errors import InvalidInput

SOURCES = ("srinivas", "vakili")


def information_gain_rate(
    kernel: kernels.Kernel, dimension: int, t: float, *, source: str = "srinivas", constant: float = 1.0
) -> float:
    """Returns the order of gamma_t, times `constant`, or 0 for t <= 1. Nothing is proved about its size.

    - `Linear`: d log t. `Empirical` has the same rate with d its number of arms (Srinivas et al. 2010, Theorem 5.1).
    - `SquaredExponential`: (log t)^{d+1} (Theorem 5.2).
    - `Periodic`: the same. In each dimension the harmonics beyond m carry a share of the variance that falls faster
      than any geometric series. So (2 m + 1)^d harmonics with m = O(log t) leave out less than 1/t, and each of them
      gains O(log t).
    - `Matern`: source "srinivas" has t^{d(d+1) / (2 nu + d(d+1))} log t for nu > 1 (Theorem 5.3). Source "vakili" has
      t^{d / (2 nu + d)} (log t)^{2 nu / (2 nu + d)} for nu > 1/2 (Vakili, Khezeli & Picheny 2021).
    - Sums: the sum of both rates, as log det(I + A + B) <= log det(I + A) + log det(I + B).
    - Products with a factor of finite rank r, such as `Linear` or `Empirical`: r times the other's rate plus r log t
      (Krause & Ong 2011, Theorem 2).
    - Kernels of your own: r log t if they have a finite `rank`, or the rate given by
      `rates.growth_rate.register(MyKernel)`.

    Args:
        kernel: prior covariance. Other kernels have no rate.
        dimension: number of columns of the points.
        t: number of observations.
        source: theorem for Matern kernels.
        constant: multiplier of the order.

    >>> import nilregret as nr
    >>> round(nr.theory.information_gain_rate(nr.Matern(2.5, 0.2), 1, 1000), 1)
    49.7
    """
    kernels.check_kernel("kernel", kernel)
    d = integer("dimension", dimension, low=1, why="It is the number of columns of a point.")
    time = number("t", t, low=0.0, why="It is a number of observations.")
    one_of("source", source, SOURCES)
    constant = number("constant", constant, low=0.0, high=LARGEST_REWARD)
    return constant * growth_rate(kernel, d, max(time, 1.0), source)


@singledispatch
def growth_rate(kernel: kernels.Kernel, d: int, t: float, source: str) -> float:  # noqa: ARG001 - of Matern kernels
    """Returns the rate of a kernel on `d` columns at t >= 1.

    `growth_rate.register(MyKernel)` adds the rate of a kernel of your own.
    """
    rank = kernel.rank(d)
    if rank is not None:
        return rank * math.log(t)
    raise InvalidInput(
        f"No rate is known for {shown(kernel)}. Known are Linear, Empirical, SquaredExponential, Periodic and Matern, "
        "their sums, and products in which a factor is Linear or Empirical. A product of SquaredExponential kernels "
        "on different columns is one SquaredExponential with a lengthscale for each column. Or bound the gain "
        "numerically, with `information_gain` on a grid."
    )


@growth_rate.register(kernels.SquaredExponential)
@growth_rate.register(kernels.Periodic)
def _geometric(kernel: kernels.Kernel, d: int, t: float, source: str) -> float:  # noqa: ARG001
    return math.log(t) ** (d + 1)


@growth_rate.register(kernels.Active)
def _active(kernel: kernels.Active, d: int, t: float, source: str) -> float:  # noqa: ARG001 - it sees its own columns
    return growth_rate(kernel.kernel, len(kernel.dimensions), t, source)


@growth_rate.register(kernels.Multiplied)
@growth_rate.register(kernels.Stretched)
@growth_rate.register(kernels.Tied)
def _wrapped(kernel: kernels.Multiplied | kernels.Stretched | kernels.Tied, d: int, t: float, source: str) -> float:
    return growth_rate(kernel.kernel, d, t, source)


@growth_rate.register(kernels.Sum)
def _sum(kernel: kernels.Sum, d: int, t: float, source: str) -> float:
    return growth_rate(kernel.left, d, t, source) + growth_rate(kernel.right, d, t, source)


@growth_rate.register(kernels.Mixture)
def _mixture(kernel: kernels.Mixture, d: int, t: float, source: str) -> float:
    return growth_rate(kernel.expanded, d, t, source)


@growth_rate.register(kernels.Product)
def _product(kernel: kernels.Product, d: int, t: float, source: str) -> float:
    both = kernel.rank(d)
    if both is not None:
        return both * math.log(t)
    for factor, other in ((kernel.left, kernel.right), (kernel.right, kernel.left)):
        rank = factor.rank(d)
        if rank is not None:
            return rank * (growth_rate(other, d, t, source) + math.log(t))
    unknown: float = growth_rate.dispatch(kernels.Kernel)(kernel, d, t, source)
    return unknown


@growth_rate.register(kernels.Matern)
def _matern(kernel: kernels.Matern, d: int, t: float, source: str) -> float:
    nu, least = kernel.nu, 1.0 if source == "srinivas" else 0.5
    if nu <= least:
        raise InvalidInput(
            f'The rate of source "{source}" needs a Matern kernel of nu > {least:g}, and nu is {nu:g}. '
            + ('Try source="vakili" (nu > 1/2).' if nu > 0.5 else "Bound the gain with `information_gain` on a grid.")
        )
    if source == "srinivas":
        return float(t ** (d * (d + 1) / (2.0 * nu + d * (d + 1))) * math.log(t))
    return float(t ** (d / (2.0 * nu + d)) * math.log(t) ** (2.0 * nu / (2.0 * nu + d)))
