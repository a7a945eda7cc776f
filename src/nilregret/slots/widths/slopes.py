"""Slopes of samples of a Gaussian process: the constants a and b of Srinivas et al. 2010, Theorem 2.

The theorem needs P(sup_x |df/dx_j| > L) <= a exp(-(L / b)^2) and leaves a and b to the reader. They are derived here
from the kernel. g = df/dx_j is itself a Gaussian process, with variance at most s^2. The standard deviation of g(x) -
g(x') is at most Lambda |x - x'|, with Lambda^2 = sum_i sup Var d^2 f / dx_i dx_j. Both come from the kernel's own
`derivatives`, also for sums, products and kernels on some columns (`nilregret.kernels.base`).

1. E sup g <= m by Dudley's entropy integral with the constant of Boucheron, Lugosi and Massart (2013), Corollary 13.2.
   Here m = 12 int_0^s sqrt(log N(u)) du, where N(u) <= prod_i (1 + sqrt(d) Lambda r_i / (2 u)) balls of radius u cover
   the box.
2. P(sup |g| > L) <= 2 exp(-(L - m)^2 / (2 s^2)) for L > m, by the Borell-TIS inequality (their Theorem 5.8).
3. (L - m)^2 >= L^2 / 2 - m^2, hence a = 2 exp(m^2 / (2 s^2)) and b = 2 s, valid for every L > 0.

a enters beta_t only through log log, so that a loose m costs almost nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..._utils.checks import Array, shown
from ...errors import InvalidInput
from ...kernels import Kernel

CLOSE = 1e-3  # share of a side, the step of finite differences


class Tail(NamedTuple):
    """P(sup |df/dx_j| > L) <= a exp(-(L / b)^2) for every j. It holds `log_a`, because a itself may overflow."""

    log_a: float
    b: float


def derivative_tail(kernel: Kernel, lower: Array, upper: Array) -> Tail | None:
    """Returns a valid pair (a, b) for a kernel on a box, or None.

    There is no pair if samples are too rough (Matern nu <= 2).
    """
    sides = upper - lower
    try:
        with np.errstate(over="raise", divide="raise", under="ignore"):
            at_most = kernel.derivatives(lower, upper)
    except FloatingPointError:
        raise _out_of_proportion() from None
    if np.isinf(at_most.second).any():
        return None
    with np.errstate(over="ignore", under="ignore", divide="ignore"):  # `_tail` checks the result
        # The slope is 0 along columns that the kernel does not see. If it sees none, `_tail` raises an error.
        columns = np.flatnonzero(at_most.first) if at_most.first.any() else range(len(sides))
        tails = [_tail(float(at_most.first[j]), float(at_most.second[j].sum()), sides) for j in columns]
    return Tail(max(tail.log_a for tail in tails), max(tail.b for tail in tails))


def assumed_tail(kernel: Kernel, lower: Array, upper: Array) -> Tail:
    """Returns a pair (a, b) for a kernel without a valid one: a = 2, and b twice the std of a slope.

    The slope is between points a thousandth of each side apart, at both ends and in the middle of the box. Nothing is
    proved.
    """
    steps = np.diag(CLOSE * (upper - lower))
    steepest = 0.0
    for at in (lower, 0.5 * (lower + upper), upper - steps.diagonal()):
        here, there = at[None], at + steps
        variances = kernel.diagonal(there) + kernel.diagonal(here) - 2.0 * kernel(there, here)[:, 0]
        slopes = np.sqrt(np.maximum(variances, 0.0)) / steps.diagonal()
        steepest = max(steepest, float(slopes.max()))
    return Tail(math.log(2.0), 2.0 * steepest)


def lipschitz_constant(kernel: Kernel, lower: Array, upper: Array) -> float:
    """Returns L = sup_x max_j (d^2 k(p, q) / dp_j dq_j)^{1/2} at p = q = x (Chowdhury & Gopalan 2017, section 4.2).

    Then |f(x) - f(x')| <= ||f||_k L |x - x'|_1. For products with a linear kernel the result is an upper bound of L.

    Raises:
        InvalidInput: if the kernel is too rough (Matern nu <= 1).
    """
    with np.errstate(over="ignore", divide="ignore"):
        L = math.sqrt(float(kernel.derivatives(lower, upper).first.max()))
    if not 0.0 < L < math.inf:
        raise InvalidInput(
            f"No function of {shown(kernel)} has a Lipschitz constant that could be derived: its derivatives at "
            "coinciding points are infinite, 0, or not said (`derivatives` of a kernel of your own). Use a Matern "
            "kernel of nu > 1, or give `lipschitz` as a number."
        )
    return L


def _tail(variance: float, modulus: float, sides: Array) -> Tail:
    from scipy.integrate import quad

    s, slope = math.sqrt(variance), math.sqrt(modulus) * math.sqrt(len(sides))
    if not (0.0 < s < math.inf and np.isfinite(slope * sides).all()):
        raise _out_of_proportion()

    def entropy(u: float) -> float:
        return math.sqrt(float(np.log1p(slope * sides / (2.0 * u)).sum()))

    m = 12.0 * float(quad(entropy, 0.0, s)[0])
    return Tail(math.log(2.0) + m**2 / (2.0 * variance), 2.0 * s)


def _out_of_proportion() -> InvalidInput:
    return InvalidInput(
        "The slopes that this kernel expects are too small or too large for a float: its lengthscale is out of all "
        "proportion to the domain. Check the units of both."
    )
