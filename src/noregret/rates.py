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

from .checks import LARGEST_REWARD, integer, number, one_of, shown
from .errors import InvalidInput
from .kernels import Active, Empirical, Kernel, Linear, Matern, Periodic, Product, SquaredExponential, Sum, check_kernel

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
    - products with a `Linear` or `Empirical` factor of rank r: r times the other's rate plus r log t (Krause & Ong
      2011, Theorem 2).

    Args:
        kernel: prior covariance; others than these have no rate here.
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
    return constant * _rate(kernel, d, max(time, 1.0), source)


def _rate(kernel: Kernel, d: int, t: float, source: str) -> float:
    if isinstance(kernel, Active):
        return _rate(kernel.kernel, len(kernel.dimensions), t, source)
    if isinstance(kernel, SquaredExponential | Periodic):
        return math.log(t) ** (d + 1)
    if isinstance(kernel, Matern):
        return _matern(kernel.nu, d, t, source)
    if isinstance(kernel, Sum):
        return _rate(kernel.left, d, t, source) + _rate(kernel.right, d, t, source)
    rank = _rank(kernel, d)
    if rank is not None:
        return rank * math.log(t)
    if isinstance(kernel, Product):
        for factor, other in ((kernel.left, kernel.right), (kernel.right, kernel.left)):
            rank = _rank(factor, d)
            if rank is not None:
                return rank * (_rate(other, d, t, source) + math.log(t))
    raise InvalidInput(
        f"No rate is known for {shown(kernel)}. Known are Linear, Empirical, SquaredExponential, Periodic and Matern, "
        "their sums, and products in which a factor is Linear or Empirical. A product of SquaredExponential kernels "
        "on different columns is one SquaredExponential with a lengthscale for each column. Or bound the gain "
        "numerically, with `information_gain` on a grid."
    )


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


def _rank(kernel: Kernel, d: int) -> int | None:
    """The rank of kernels of finite rank."""
    if isinstance(kernel, Active):
        return _rank(kernel.kernel, len(kernel.dimensions))
    if isinstance(kernel, Linear):
        return d
    if isinstance(kernel, Empirical):
        return len(kernel.covariance)
    if isinstance(kernel, Product):
        left, right = _rank(kernel.left, d), _rank(kernel.right, d)
        return None if left is None or right is None else left * right
    return None
