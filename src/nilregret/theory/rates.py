"""How fast the maximum information gain grows: rates without their constants.

| symbol | name | meaning |
|---|---|---|
| gamma_t | `information_gain_rate` | maximum information gain after t observations, up to a constant |
| d | `dimension` | number of columns of a point that the kernel sees |
| nu | `Matern.nu` | smoothness |

These are orders of growth on compact convex sets under k(x, x) <= 1, not bounds: the theorems hide constants that
depend on kernel, domain and noise. Numbers come from `information_gain`.
"""

from __future__ import annotations

import math
from functools import singledispatch

from .._utils.checks import LARGEST_REWARD, integer, number, one_of, shown
from .._utils.errors import InvalidInput
from ..kernels import (
    Active,
    Kernel,
    Matern,
    Mixture,
    Multiplied,
    Periodic,
    Product,
    SquaredExponential,
    Stretched,
    Sum,
    Tied,
    check_kernel,
)

SOURCES = ("srinivas", "vakili")


def information_gain_rate(
    kernel: Kernel, dimension: int, t: float, *, source: str = "srinivas", constant: float = 1.0
) -> float:
    """The order of gamma_t, times `constant`; 0 for t <= 1, and nothing is proved about its size.

    - `Linear`: d log t, and `Empirical` likewise with d its number of arms (Srinivas et al. 2010, Theorem 5.1).
    - `SquaredExponential`: (log t)^{d+1} (Theorem 5.2).
    - `Periodic`: the same. Its harmonics beyond m in some dimension carry a share of its variance that falls faster
      than any geometric series; (2 m + 1)^d harmonics with m = O(log t) leave out less than 1/t, and each of those kept
      gains O(log t).
    - `Matern`: source "srinivas" t^{d(d+1) / (2 nu + d(d+1))} log t for nu > 1 (Theorem 5.3); source "vakili"
      t^{d / (2 nu + d)} (log t)^{2 nu / (2 nu + d)} for nu > 1/2 (Vakili, Khezeli & Picheny 2021).
    - sums: the sum of both rates, as log det(I + A + B) <= log det(I + A) + log det(I + B);
    - products with a factor of finite rank r, such as `Linear` or `Empirical`: r times the other's rate plus r log t
      (Krause & Ong 2011, Theorem 2);
    - kernels of your own: r log t where they have a finite `rank`, or what `rates.growth_rate.register(MyKernel)` says.

    Args:
        kernel: prior covariance; others than these have no rate.
        dimension: number of columns of the points.
        t: number of observations.
        source: which theorem for Matern kernels.
        constant: what the order is multiplied with.
    """
    check_kernel("kernel", kernel)
    d = integer("dimension", dimension, low=1, why="It is the number of columns of a point.")
    time = number("t", t, low=0.0, why="It is a number of observations.")
    one_of("source", source, SOURCES)
    constant = number("constant", constant, low=0.0, high=LARGEST_REWARD)
    return constant * growth_rate(kernel, d, max(time, 1.0), source)


@singledispatch
def growth_rate(kernel: Kernel, d: int, t: float, source: str) -> float:  # noqa: ARG001 - of Matern kernels
    """The rate of a kernel on `d` columns at t >= 1; a kernel of your own joins by `growth_rate.register(MyKernel)`."""
    rank = kernel.rank(d)
    if rank is not None:
        return rank * math.log(t)
    raise InvalidInput(
        f"No rate is known for {shown(kernel)}. Known are Linear, Empirical, SquaredExponential, Periodic and Matern, "
        "their sums, and products in which a factor is Linear or Empirical. A product of SquaredExponential kernels "
        "on different columns is one SquaredExponential with a lengthscale for each column. Or bound the gain "
        "numerically, with `information_gain` on a grid."
    )


@growth_rate.register(SquaredExponential)
@growth_rate.register(Periodic)
def _geometric(kernel: Kernel, d: int, t: float, source: str) -> float:  # noqa: ARG001
    return math.log(t) ** (d + 1)


@growth_rate.register(Active)
def _active(kernel: Active, d: int, t: float, source: str) -> float:  # noqa: ARG001 - it sees its own columns
    return growth_rate(kernel.kernel, len(kernel.dimensions), t, source)


@growth_rate.register(Multiplied)
@growth_rate.register(Stretched)
@growth_rate.register(Tied)
def _wrapped(kernel: Multiplied | Stretched | Tied, d: int, t: float, source: str) -> float:
    return growth_rate(kernel.kernel, d, t, source)


@growth_rate.register(Sum)
def _sum(kernel: Sum, d: int, t: float, source: str) -> float:
    return growth_rate(kernel.left, d, t, source) + growth_rate(kernel.right, d, t, source)


@growth_rate.register(Mixture)
def _mixture(kernel: Mixture, d: int, t: float, source: str) -> float:
    return growth_rate(kernel.expanded, d, t, source)


@growth_rate.register(Product)
def _product(kernel: Product, d: int, t: float, source: str) -> float:
    both = kernel.rank(d)
    if both is not None:
        return both * math.log(t)
    for factor, other in ((kernel.left, kernel.right), (kernel.right, kernel.left)):
        rank = factor.rank(d)
        if rank is not None:
            return rank * (growth_rate(other, d, t, source) + math.log(t))
    unknown: float = growth_rate.dispatch(Kernel)(kernel, d, t, source)
    return unknown


@growth_rate.register(Matern)
def _of_matern(kernel: Matern, d: int, t: float, source: str) -> float:
    return _matern(kernel.nu, d, t, source)


def _matern(nu: float, d: int, t: float, source: str) -> float:
    least = 1.0 if source == "srinivas" else 0.5
    if nu <= least:
        raise InvalidInput(
            f'The rate of source "{source}" needs a Matern kernel of nu > {least:g}, and nu is {nu:g}. '
            + ('Try source="vakili" (nu > 1/2).' if nu > 0.5 else "Bound the gain with `information_gain` on a grid.")
        )
    if source == "srinivas":
        return float(t ** (d * (d + 1) / (2.0 * nu + d * (d + 1))) * math.log(t))
    return float(t ** (d / (2.0 * nu + d)) * math.log(t) ** (2.0 * nu / (2.0 * nu + d)))
