"""Priors of hyperparameters, in logarithms.

| symbol | name | meaning | shape |
|---|---|---|---|
| theta | | `kernel.log_parameters`, then log noise variance | (p + 1,) |

Hvarfner, Hellsten & Nardi 2024, "Vanilla Bayesian optimization performs great in high dimensions".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, IndexArray, finite_array, number, one_of, shown
from ..errors import InvalidInput
from ..kernels import Hyperparameter, Kernel
from .likelihood import LOG_2PI

PERIOD_SPREAD = 0.1  # prior standard deviation of the logarithm of a fitted period, about the given period
BOUNDED = ("lengthscale", "scale", "noise", "period", "angle", "odds")


class LogNormals(NamedTuple):
    """Prior densities of the unit cube and standardised rewards, as (location, spread) of logarithms.

    Attributes:
        lengthscale: of a kernel that sees one column. The location of d columns is higher by log(d) / 2.
        noise: of the noise variance.
        least: smallest noise variance.
        related: standard deviations of log lengthscales of single columns about their average, and of the average,
            with the modes of independent ones. None if they are independent.
    """

    lengthscale: tuple[float, float]
    noise: tuple[float, float]
    least: float
    related: tuple[float, float] | None = None


PRIORS = {
    "hvarfner": LogNormals((math.sqrt(2.0), math.sqrt(3.0)), (-4.0, 1.0), 1e-4),
    "moderate": LogNormals((0.14, 0.7), (0.0, 3.0), 1e-6),
    "related": LogNormals((math.sqrt(2.0), math.sqrt(3.0)), (0.0, 3.0), 1e-10, related=(0.5, 1.0)),
}


class Prior(NamedTuple):
    """A normal prior of theta within bounds, with all arrays `(p + 1,)`.

    Attributes:
        location: mean.
        spread: standard deviation.
        low: lower bounds.
        high: upper bounds.
        informative: False if the prior only draws starts and is no part of the posterior.
        related: positions of the log lengthscales whose average has a standard deviation of its own.
        shared: this standard deviation.
    """

    location: Array
    spread: Array
    low: Array
    high: Array
    informative: bool
    related: IndexArray = np.zeros(0, dtype=np.intp)
    shared: float = 1.0

    @property
    def mode(self) -> Array:
        """Most likely theta, of the log-normal density of exp(theta) if the prior is informative."""
        return self.location - self.spread**2 if self.informative else self.location

    def with_noise(self, value: float) -> Prior:
        """Returns the same prior with a known log noise variance."""
        low, high = np.append(self.low[:-1], value), np.append(self.high[:-1], value)
        return self._replace(low=low, high=high)

    def log_density(self, theta: Array) -> tuple[float, Array]:
        """Returns the log density of exp(theta), log-normal, and its gradient in theta.

        With related lengthscales it is the density up to a constant factor.
        """
        if not self.informative:
            return 0.0, np.zeros(len(theta))
        z = (theta - self.location) / self.spread
        value = -0.5 * float(z @ z) - float(np.sum(theta + np.log(self.spread))) - 0.5 * len(theta) * LOG_2PI
        gradient = -z / self.spread - 1.0
        if count := len(self.related):  # The average has this variance in place of a share of the others'.
            spread, average = float(self.spread[self.related[0]]), float((theta - self.mode)[self.related].mean())
            excess = count / spread**2 - 1.0 / self.shared**2
            value += 0.5 * excess * average**2 + math.log(spread / (self.shared * math.sqrt(count)))
            gradient[self.related] += excess * average / count
        return value, gradient

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Returns random parameters `(count, p + 1)` for starts, which may be out of bounds.

        The average of related ones varies by a little more than `shared`.
        """
        drawn = self.location + self.spread * rng.standard_normal((count, len(self.location)))
        if len(self.related):
            drawn[:, self.related] += self.shared * rng.standard_normal((count, 1))
        return drawn


def prior_of(
    kernel: Kernel, X: Array, variance: float, name: str | None, bounds: Mapping[str, tuple[float, float]]
) -> Prior:
    """Returns the prior of the kernel's log parameters and of log noise variance."""
    known = kernel.hyperparameters(range(X.shape[1]))
    if name is None:
        rows = [_vague(parameter, X, variance) for parameter in known]
        rows.append((math.log(0.01 * variance), 2.0, 1e-6 * variance, 10.0 * variance))
    else:
        rows = [_expected(parameter, PRIORS[name]) for parameter in known]
        rows.append((*PRIORS[name].noise, PRIORS[name].least, 10.0))
    location, spread, low, high = np.array(rows).T
    low, high = np.log(low), np.log(high)
    for index, (parameter, value) in enumerate(zip(known, kernel.log_parameters, strict=True)):
        if parameter.kind == "period":  # usually known, and its likelihood has many maxima
            location[index] = low[index] = high[index] = value
    kinds = ["scale" if parameter.kind == "slope" else parameter.kind for parameter in known] + ["noise"]
    for kind, given in bounds.items():
        one_of("bounds", kind, BOUNDED)
        ends = _bounds(kind, given)
        for index in [index for index, each in enumerate(kinds) if each == kind]:
            low[index], high[index] = np.log(ends) * (2.0 if kind == "noise" else 1.0)  # theta has the variance
    believed = Prior(location, spread, low, high, informative=name is not None)
    related = None if name is None else PRIORS[name].related
    return believed if related is None else _related(believed, known, *related)


def _related(prior: Prior, known: Sequence[Hyperparameter], apart: float, shared: float) -> Prior:
    """Returns the prior with lengthscales of single columns about their average, which has the old mode."""
    single = [parameter.kind == "lengthscale" and len(parameter.columns) == 1 for parameter in known]
    if sum(single) < 2:
        return prior
    which, location, spread = np.flatnonzero(single), prior.location.copy(), prior.spread.copy()
    location[which] = prior.mode[which] + apart**2
    spread[which] = apart
    return prior._replace(location=location, spread=spread, related=which, shared=shared)


def _bounds(kind: str, given: tuple[float, float]) -> tuple[float, float]:
    ends = finite_array(f"bounds[{kind!r}]", given)
    if ends.shape != (2,):
        raise InvalidInput(f"The bounds of {kind!r} are {shown(given)}: give two numbers, (low, high).")
    low = number(f"bounds[{kind!r}][0]", ends[0], low=1e-100, high=LARGEST_REWARD)
    return low, number(f"bounds[{kind!r}][1]", ends[1], low=low, high=LARGEST_REWARD)


def _expected(parameter: Hyperparameter, prior: LogNormals) -> tuple[float, float, float, float]:
    """Returns location and spread of the logarithm, and bounds, for the unit cube and standardised rewards."""
    if parameter.kind == "period":
        return 0.0, PERIOD_SPREAD, 1.0, 1.0  # about the period that is given, which `prior_of` puts in
    if parameter.kind in ("lengthscale", "angle"):  # a circle of radius 1 is about as large as the unit cube
        location, spread = prior.lengthscale
        return location + 0.5 * math.log(parameter.dimension), spread, 0.025, 1e3
    return 1.0, 1.0, 1e-3, 1e3


def _vague(parameter: Hyperparameter, X: Array, variance: float) -> tuple[float, float, float, float]:
    """Returns location and spread of the logarithm, and bounds, for points and rewards in any units."""
    columns = X[:, list(parameter.columns)]
    if parameter.kind == "period":
        return 0.0, PERIOD_SPREAD, 1.0, 1.0
    if parameter.kind == "odds":
        return 0.0, 1.0, 1e-3, 1e3
    if parameter.kind == "angle":
        return math.log(0.6 * math.sqrt(parameter.dimension)), 1.0, 2e-3, 2e3  # a circle's diameter for the span
    if parameter.kind == "lengthscale":
        span = float(np.ptp(columns, axis=0).max()) if len(X) else 0.0
        span = span or 1.0  # a constant column says nothing about its lengthscale
        return math.log(0.3 * math.sqrt(parameter.dimension) * span), 1.0, 1e-3 * span, 1e3 * span
    if parameter.kind == "slope":
        square = float(np.mean(np.sum(columns**2, axis=1))) if len(X) else 0.0
        variance /= square or 1.0
    return math.log(variance), 1.0, 1e-4 * variance, 1e4 * variance
