"""Averages over a box of products of kernel functions, in closed form.

| symbol | name | meaning | shape |
|---|---|---|---|
| g(u, v) | `average(U, V)` | 1 / (b - a) * integral over x in [a, b] of k(x, u) k(x, v) | (n, m) |
| delta | `delta` | abs(u - v) in the kernel's unit | (n, m) |
| p | `p` | Matern polynomial: k = scale * p(s) exp(-s), s = sqrt(2 nu) r / l, coefficients by power | (nu + 1/2,) |

Squared exponential: k(x, u) k(x, v) = exp(-(u - v)^2 / (4 l^2)) exp(-(x - (u + v) / 2)^2 / l^2) in each dimension, an
error function. Matern of half-integer nu in one dimension: outside of [u, v] the product is a polynomial times exp(-2 s
- delta), an incomplete gamma function. Between them it is a polynomial times exp(-delta), a beta function. All terms of
all sums are positive, so nothing cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch

import numpy as np

from ..._utils.checks import Array
from ...kernels import Active, Kernel, Linear, Matern, Product, SquaredExponential, Tied

Average = Callable[[Array, Array], Array]

MOST_NU = 10.5  # largest half-integer nu
FARTHEST = 1e3  # delta at which exp(-delta) is 0
FLATTEST = 1e-100  # smallest length of the box in the kernel's unit, below which powers would underflow


@singledispatch
def product_average(kernel: Kernel, lower: Array, upper: Array) -> Average | None:  # noqa: ARG001 - none is known
    """Returns the function g for points inside the box, or None without a closed form.

    `product_average.register(MyKernel)` adds a kernel of your own. Without it distances are quasi-Monte Carlo.
    """
    return None


@product_average.register
def _active(kernel: Active, lower: Array, upper: Array) -> Average | None:
    columns = list(kernel.dimensions)
    inner = product_average(kernel.kernel, lower[columns], upper[columns]) if max(columns) < len(lower) else None
    return None if inner is None else lambda U, V: inner(U[:, columns], V[:, columns])


@product_average.register
def _product(kernel: Product, lower: Array, upper: Array) -> Average | None:
    if kernel.left.columns(len(lower)) & kernel.right.columns(len(lower)):
        return None
    left, right = (product_average(factor, lower, upper) for factor in (kernel.left, kernel.right))
    if left is None or right is None:
        return None
    return lambda U, V: left(U, V) * right(U, V)


@product_average.register
def _tied(kernel: Tied, lower: Array, upper: Array) -> Average | None:
    found: Average | None = product_average(kernel.expanded, lower, upper)
    return found


@product_average.register
def _squared_exponential(kernel: SquaredExponential, lower: Array, upper: Array) -> Average | None:
    lengths = np.asarray(kernel.lengthscale, dtype=np.float64)
    if lengths.ndim and len(lengths) != len(lower):
        return None  # The kernel itself raises the error.
    lengths = np.broadcast_to(lengths, lower.shape)

    def average(U: Array, V: Array) -> Array:
        result = np.full((len(U), len(V)), kernel.scale**2)
        for u, v, length, a, b in zip(U.T, V.T, lengths, lower, upper, strict=True):
            middle = (u[:, None] + v) / 2.0
            gap = (u[:, None] - v) / length
            mass = _error_function(b - middle, length) + _error_function(middle - a, length)
            result *= np.exp(-0.25 * gap * gap) * (math.sqrt(math.pi) / 2.0) * mass / (b - a)
        return result

    return average


def _error_function(side: Array, length: Array) -> Array:
    """Returns length * erf(side / length), also if the quotient underflows."""
    from scipy.special import erf

    t = side / length
    return side * np.where(t > 1e-8, erf(t) / np.maximum(t, 1e-8), 2.0 / math.sqrt(math.pi))


@product_average.register
def _linear(kernel: Linear, lower: Array, upper: Array) -> Average:
    middle = (lower + upper) / 2.0
    moments = np.outer(middle, middle) + np.diag((upper - lower) ** 2 / 12.0)  # E x x^T of uniform x, (d, d)
    return lambda U, V: np.asarray(kernel.scale**2 * (U @ moments @ V.T))


@product_average.register
def _matern(kernel: Matern, lower: Array, upper: Array) -> Average | None:
    if len(lower) != 1 or kernel.nu > MOST_NU or (2.0 * kernel.nu) % 2.0 != 1.0:
        return None
    p = _matern_polynomial(round(kernel.nu - 0.5))
    unit = math.sqrt(2.0 * kernel.nu) / float(np.atleast_1d(kernel.lengthscale)[0])
    a, b = float(lower[0]), float(upper[0])
    if not FLATTEST < unit * (b - a) < math.inf:
        return None
    inside = _convolution(p)

    def average(U: Array, V: Array) -> Array:
        u, v = U[:, 0][:, None], V[:, 0]
        low, high = np.minimum(u, v), np.maximum(u, v)
        delta = np.minimum(unit * (high - low), FARTHEST)
        terms = _product_terms(p, delta)
        integral = _outside(terms, unit * (low - a)) + _outside(terms, unit * (b - high))
        integral += np.polynomial.polynomial.polyval(delta, inside)
        return np.asarray(kernel.scale**2 * np.exp(-delta) * integral / (unit * (b - a)))

    return average


def _outside(terms: list[Array], length: Array) -> Array:
    """Returns the integral of sum_k terms[k] s^k exp(-2 s) for s from 0 to `length`."""
    from scipy.special import gammainc

    total = np.zeros_like(length)
    for k, term in enumerate(terms):
        total += term * (math.factorial(k) / 2.0 ** (k + 1)) * gammainc(k + 1, 2.0 * length)
    return total


def _matern_polynomial(order: int) -> Array:
    """Returns the coefficients of p for nu = order + 1/2 (Rasmussen & Williams 2006, eq. 4.16)."""
    f = math.factorial
    return np.array(
        [
            f(order) / f(2 * order) * f(2 * order - power) / (f(order - power) * f(power)) * 2.0**power
            for power in range(order + 1)
        ]
    )


def _product_terms(p: Array, delta: Array) -> list[Array]:
    """Returns the coefficients by power of s of p(s) p(s + delta)."""
    shifted = [
        sum((p[k] * math.comb(k, j) * delta ** (k - j) for k in range(j, len(p))), np.zeros_like(delta))
        for j in range(len(p))
    ]
    return [
        sum((p[i] * shifted[k - i] for i in range(len(p)) if 0 <= k - i < len(p)), np.zeros_like(delta))
        for k in range(2 * len(p) - 1)
    ]


def _convolution(p: Array) -> Array:
    """Returns the coefficients by power of delta of the integral of p(s) p(delta - s) for s from 0 to delta."""
    result = np.zeros(2 * len(p))
    for i, first in enumerate(p):
        for j, second in enumerate(p):
            beta = math.factorial(i) * math.factorial(j) / math.factorial(i + j + 1)
            result[i + j + 1] += first * second * beta
    return result
