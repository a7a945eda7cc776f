"""Squared distances of mean functions over a domain.

| symbol | name | meaning | shape |
|---|---|---|---|
| mu(x) | | sum_i a_i k(x, x_i), a posterior mean | |
| a | `weights` | of a mean function, or of the difference of two | (n,) |
| g(u, v) | `overlaps` | integral over the domain of k(x, u) k(x, v), or 1 / abs(D) times it | (n, m) |
| | `places` | points as the geometry handles them: arm numbers, or coordinates | (n,), (n, d) |
| | `traces` | factors of overlaps: k(., u) at nodes, or u itself | (n, q) |

The squared L2 distance of two mean functions is a^T g a, with a the weights of one and minus those of the other. It is
exact on arms, and on boxes if `box_averages` knows g. Elsewhere it is quasi-Monte Carlo with a standard error.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import singledispatch
from typing import Any, final

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array, IndexArray, finite_array, many, one_of
from ..._utils.randomness import Draws, sobol_points
from ...domains.domain import Arms, Box, Domain, Space, check_domain, enclosing_box
from ...errors import InvalidInput
from ...kernels import ALL, Active, Kernel, Linear, Matern, Product, SquaredExponential, Tied, check_kernel

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


SCRAMBLES = 8  # number of independent sets of nodes, whose spread gives the error
NODES = 512  # number of nodes in each set, a power of two

Places = Array | IndexArray


class Geometry(ABC):
    """A kernel over a domain, with the integrals of its products."""

    kernel: Kernel
    volume: float  # factor of averages: 1, or abs(D)
    exact: bool  # True if exact to rounding, False with a standard error

    @property
    @abstractmethod
    def variance(self) -> float:
        """Prior variance, averaged over the domain."""

    @abstractmethod
    def place(self, name: str, points: Any) -> Places:
        """Returns the places of points, checked."""

    @abstractmethod
    def covariances(self, first: Places, second: Places) -> Array:
        """Returns the kernel between places, `(n, m)`."""

    @abstractmethod
    def traces(self, places: Places) -> Array:
        """Returns the traces of places, `(n, q)`."""

    def overlaps(self, first: Array, second: Array) -> Array:
        """Returns the overlaps g between the places of two sets of traces, `(n, m)`."""
        return np.asarray(first @ second.T)

    @abstractmethod
    def squared_norm(self, weights: Array, traces: Array) -> tuple[float, float]:
        """Returns a^T g a and its standard error, which is 0 if it is exact to rounding."""


def make_geometry(
    kernel: Kernel, domain: Domain, *, distance: str = "average", weights: npt.ArrayLike | None = None
) -> Geometry:
    """Returns the geometry for a kernel and a domain.

    Args:
        kernel: prior covariance.
        domain: domain of the distance.
        distance: "average" (1 / abs(D) times the integral) or "integral". Arms without weights stand for the box around
            them. The volume of a `Space` is 1.
        weights: weights of the arms as nodes of a quadrature rule, `(N,)`, nonnegative. "average" divides by their sum.
    """
    check_domain("domain", domain)
    check_kernel("kernel", kernel)
    integral = one_of("distance", distance, ["average", "integral"]) == "integral"
    if isinstance(domain, Arms):
        return ArmGeometry(kernel, domain, _arm_weights(domain, weights, integral=integral))
    if weights is not None:
        raise InvalidInput("`weights` are weights of arms; on a box or a space the distance is a plain integral.")
    volume = float(np.prod(domain.upper - domain.lower)) if integral and isinstance(domain, Box) else 1.0
    if isinstance(domain, Box) or all(p.real for p in domain.parameters.values()):
        average = product_average(kernel, domain.lower, domain.upper)
        if average is not None:
            return ClosedGeometry(kernel, domain, average, volume)
    return SampledGeometry(kernel, domain, volume)


def _arm_weights(domain: Arms, weights: npt.ArrayLike | None, *, integral: bool) -> Array:
    if weights is None:
        box = enclosing_box(domain)
        volume = float(np.prod(box.upper - box.lower)) if integral else 1.0
        return np.full(len(domain), volume / len(domain))
    given = finite_array("weights", weights)
    if given.shape != (len(domain),) or (given < 0.0).any() or given.sum() <= 0.0:
        raise InvalidInput(
            f"`weights` must be {many(len(domain), 'number')}, one for each arm, none of them negative and not all "
            "0: the weights of a quadrature rule with the arms as nodes."
        )
    return given if integral else given / given.sum()


@final
class ArmGeometry(Geometry):
    """Arms, over which the integral is a weighted sum. Places are arm numbers."""

    def __init__(self, kernel: Kernel, domain: Arms, weights: Array) -> None:
        self.kernel, self.domain, self.volume, self.exact = kernel, domain, float(weights.sum()), True
        self._roots = np.sqrt(weights)
        variances = kernel.arm_variances(domain.points)  # Raises an error if the kernel does not fit the arms.
        self._variance = float(variances @ (weights / weights.sum()))

    @property
    def variance(self) -> float:
        """Prior variance, averaged over the arms."""
        return self.kernel.variance or self._variance

    def place(self, name: str, points: Any) -> Places:  # noqa: ARG002 - errors about arms need no other name
        """Returns the numbers of the arms."""
        return self.domain.index(points)

    def covariances(self, first: Places, second: Places) -> Array:
        """Returns the kernel between arms."""
        return self.kernel.between_arms(self.domain.points, first.astype(np.intp), second.astype(np.intp))

    def traces(self, places: Places) -> Array:
        """Returns sqrt(weight) * k(., u) at all arms, `(n, N)`."""
        return (self._roots[:, None] * self.kernel.between_arms(self.domain.points, ALL, places.astype(np.intp))).T

    def squared_norm(self, weights: Array, traces: Array) -> tuple[float, float]:
        """Returns a sum of squares, which is exact."""
        values = weights @ traces
        return float(values @ values), 0.0


class _PointGeometry(Geometry):
    """A geometry whose places are points of a box or a space."""

    domain: Box | Space

    def place(self, name: str, points: Any) -> Places:
        """Returns the points, checked."""
        return self.domain.inside(name, points)

    def covariances(self, first: Places, second: Places) -> Array:
        """Returns the kernel between points."""
        return self.kernel(first, second)


@final
class ClosedGeometry(_PointGeometry):
    """A box or a space of `Float`s, with a kernel whose products have closed integrals.

    Places and traces are points.
    """

    def __init__(self, kernel: Kernel, domain: Box | Space, average: Average, volume: float) -> None:
        self.kernel, self.domain, self.volume, self.exact = kernel, domain, volume, True
        self._average = average

    @property
    def variance(self) -> float:
        """Prior variance, averaged over quasi-random points if it varies."""
        return self.kernel.variance or float(self.kernel.diagonal(_nodes(self.domain)).mean())

    def traces(self, places: Places) -> Array:
        """Returns the points."""
        return places.astype(np.float64)

    def overlaps(self, first: Array, second: Array) -> Array:
        """Returns the closed forms."""
        return self.volume * self._average(first, second)

    def squared_norm(self, weights: Array, traces: Array) -> tuple[float, float]:
        """Returns the quadratic form, never negative, which is exact."""
        return max(float(weights @ self.overlaps(traces, traces) @ weights), 0.0), 0.0


@final
class SampledGeometry(_PointGeometry):
    """Quasi-Monte Carlo with several scrambled Sobol sets, for all other cases.

    In a space the nodes are rounded to valid points.
    """

    def __init__(self, kernel: Kernel, domain: Box | Space, volume: float) -> None:
        self.kernel, self.domain, self.volume, self.exact = kernel, domain, volume, False
        self._nodes = _nodes(domain)
        self._variance = kernel.variance or float(kernel.diagonal(self._nodes).mean())

    @property
    def variance(self) -> float:
        """Prior variance, averaged over the nodes."""
        return self._variance

    def traces(self, places: Places) -> Array:
        """Returns sqrt(volume / nodes) * k(., u) at all nodes, `(n, SCRAMBLES * NODES)`."""
        return float(np.sqrt(self.volume / len(self._nodes))) * self.kernel(places, self._nodes)

    def squared_norm(self, weights: Array, traces: Array) -> tuple[float, float]:
        """Returns the mean over the scrambles, and its standard error by their spread."""
        values = (weights @ traces).reshape(SCRAMBLES, NODES)
        each = SCRAMBLES * np.einsum("ij,ij->i", values, values)
        return float(each.mean()), float(each.std(ddof=1)) / SCRAMBLES**0.5


def _nodes(domain: Box | Space) -> Array:
    """Returns scrambled Sobol points of the domain, one set after the other, `(SCRAMBLES * NODES, d)`."""
    unit = np.concatenate(
        [sobol_points(domain.dimension, NODES, Draws(f"nodes {scramble}")) for scramble in range(SCRAMBLES)]
    )
    points = domain.lower + unit * (domain.upper - domain.lower)
    return domain.snap(points) if isinstance(domain, Space) else points
