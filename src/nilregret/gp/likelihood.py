"""Log marginal likelihood of a kernel and a noise with its gradient, and priors of hyperparameters.

| symbol | name | meaning | shape |
|---|---|---|---|
| theta | | `kernel.log_parameters`, then log noise variance | (p + 1,) |
| K | | kernel matrix of the u distinct points | (u, u) |
| s | `noise_variance` | variance of the reward noise | reward units^2 |
| m_i | `counts` | number of observations of distinct point i | (u,) |
| ybar_i | `means` | average of its rewards | (u,) |
| S_i | `scatters` | sum of the squared differences from this average; S is their sum | (u,) |
| v_i | `known` | variance of the noise of a single reward where it is known | (u,) |
| C | | K + diag(s / m_i), or v_i in place of s / m_i, the covariance of the averages | (u, u) |
| alpha | | C^{-1} ybar | (u,) |

Repeats are merged, exactly. m rewards of one value f of the function have the density
prod_j N(y_j | f, s) = N(ybar | f, s / m) * (2 pi s)^{-(m-1)/2} m^{-1/2} exp(-S_i / (2 s)), so for n rewards in all

    log p(y) = log N(ybar | 0, C) - (n - u)/2 log(2 pi s) - 1/2 sum_i log m_i - S / (2 s).

The gradient is 1/2 sum_ij (alpha alpha^T - C^{-1})_ij dC_ij / dtheta (Rasmussen & Williams 2006, eq. 5.9) plus the
derivatives of the last terms. Both cost O(u^3 + u^2 d), whatever the number of repeats. A reward of known noise counts
as a point of its own.

A `Prior` of hyperparameters is in logarithms.

| symbol | name | meaning | shape |
|---|---|---|---|
| theta | | `kernel.log_parameters`, then log noise variance | (p + 1,) |

Hvarfner, Hellsten & Nardi 2024, "Vanilla Bayesian optimization performs great in high dimensions".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import LARGEST_REWARD, Array, IndexArray, finite_array, many, number, one_of, points_array, shown
from .._utils.randomness import Draws
from ..errors import InvalidInput
from ..kernels import Hyperparameter, Kernel, check_kernel
from ..kernels.stationary import varying

LOG_2PI = math.log(2.0 * math.pi)
LEAST_KNOWN = 1e-10  # smallest known noise variance: exact rewards of one point would make C singular


class Likelihood(NamedTuple):
    """A log marginal likelihood and its gradient.

    Attributes:
        value: nats.
        gradient: with respect to `kernel.log_parameters` and log noise variance, `(p + 1,)`.
    """

    value: float
    gradient: Array


class Data(NamedTuple):
    """Rewards at distinct points, in the symbols of the head of this module.

    Attributes:
        points: `(u, d)`.
        means: ybar.
        counts: m.
        scatters: S.
        known: v, nan where it is unknown. None if it is unknown everywhere.
    """

    points: Array
    means: Array
    counts: Array
    scatters: Array
    known: Array | None = None

    def part(self, chosen: IndexArray) -> Data:
        """Returns the rewards at some of the points."""
        return Data(*(None if each is None else each[chosen] for each in self))  # type: ignore[arg-type]  # only `known`


def log_marginal_likelihood(kernel: Kernel, X: npt.ArrayLike, y: npt.ArrayLike, noise_variance: float) -> Likelihood:
    """Returns the log density of rewards y at points X under a GP of mean 0, and its gradient.

    Args:
        kernel: prior covariance of the reward function.
        X: `(n, d)`. Repeated rows cost nothing.
        y: `(n,)`.
        noise_variance: s, reward units^2.

    Raises:
        InvalidInput: values that are not finite, shapes that do not fit, or a noise variance that is not positive.
            Also a noise variance so small beside the prior variance that the covariance of the rewards is singular
            to rounding.
    """
    check_kernel("kernel", kernel)
    data = merged(*checked(X, y))
    s = number("noise_variance", noise_variance, low=0.0, open_low=True, why="It is the variance of the reward noise.")
    result = Marginal(kernel, data, ridges=(0.0,))(np.append(kernel.log_parameters, math.log(s)))
    if result is None:
        raise InvalidInput(
            f"The covariance of the rewards is singular to rounding at noise variance {s:g}. Usually points nearly "
            "coincide and the noise is tiny beside the prior variance: raise the noise, or leave out such points."
        )
    return Likelihood(result.value, result.gradient())


def checked(X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Array, Array]:
    """Returns points and their rewards as arrays that fit each other, or raises an error."""
    points, rewards = points_array("X", X), finite_array("y", y)
    if rewards.shape != (len(points),):
        raise InvalidInput(
            f"`y` has shape {rewards.shape} and X {many(len(points), 'row')}: it must be ({len(points)},), "
            "one reward for each row of X."
        )
    if np.abs(rewards).max(initial=0.0) > LARGEST_REWARD:
        raise InvalidInput(f"A reward is beyond {LARGEST_REWARD:g}, where its square may overflow: change the unit.")
    return points, rewards


def merged(points: Array, y: Array, stds: npt.ArrayLike | None = None) -> Data:
    """Returns the rewards by distinct points. `stds` `(n,)` is the noise of each, nan where it is unknown."""
    if stds is not None:
        noise = np.asarray(stds, dtype=np.float64)
        alone = ~np.isnan(noise)
        rest, known = merged(points[~alone], y[~alone]), np.maximum(noise[alone] ** 2, LEAST_KNOWN)
        ones = np.ones(len(known))
        own = Data(points[alone], y[alone], ones, 0.0 * ones, known)
        unknown = np.full(len(rest.means), np.nan)
        return Data(*(np.concatenate(pair) for pair in zip(rest._replace(known=unknown), own, strict=True)))  # type: ignore[arg-type]
    differing = points[:, varying(points, points[:0])]  # Of hundreds of options few were tried.
    _, first, which = np.unique(differing, axis=0, return_index=True, return_inverse=True)
    distinct = points[first]
    which = which.ravel()

    def totals(values: Array) -> Array:
        return np.bincount(which, weights=values, minlength=len(distinct)).astype(np.float64)

    counts = totals(np.ones(len(y)))
    means = totals(y) / counts
    return Data(distinct, means, counts, totals((y - means[which]) ** 2))


class Evaluated(NamedTuple):
    """A likelihood and its circumstances.

    Attributes:
        value: nats.
        gradient: a function that returns the gradient `(p + 1,)`, to be called once at most.
        mean: mu, reward units.
        ridge: added to C, relative to the mean prior variance.
    """

    value: float
    gradient: Callable[[], Array]
    mean: float
    ridge: float


@final
class Marginal:
    """The log marginal likelihood of some rewards as a function of theta.

    Args:
        kernel: structure.
        data: rewards by distinct points.
        ridges: relative to the mean prior variance, tried in this order.
        fit_mean: True for the constant mean of highest likelihood, otherwise the mean is 0.
    """

    _known: Array | None

    def __init__(self, kernel: Kernel, data: Data, *, ridges: tuple[float, ...], fit_mean: bool = False) -> None:
        from scipy.linalg.blas import dsyr  # slow to import
        from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

        self._dsyr, self._dpotrf, self._dpotri, self._dpotrs = dsyr, dpotrf, dpotri, dpotrs
        self._matrices, self._ridges, self._fit_mean = kernel.matrices(data.points), ridges, fit_mean
        self._means, self._shares = data.means, 1.0 / data.counts
        self._ones, self._known = np.ones(len(data.means)), None
        if data.known is not None:
            self._shares = np.where(np.isnan(data.known), self._shares, 0.0)
            self._known = np.nan_to_num(data.known)
        self._scatter = float(data.scatters.sum())
        self._repeats = float(np.sum(data.counts - 1.0))
        self._fixed = float(np.log(data.counts).sum()) + (len(data.means) + self._repeats) * LOG_2PI

    def __call__(self, theta: Array) -> Evaluated | None:
        """Returns the likelihood under C plus the first ridge that factorizes, or None if no ridge is enough."""
        if not len(self._means):
            return Evaluated(0.0, lambda: np.zeros(len(theta)), 0.0, 0.0)
        log_s = theta.item(-1)
        s = math.exp(log_s)
        K, pullback = self._matrices(theta[:-1])
        noise = s * self._shares
        factor, ridge = self._factor(K, noise if self._known is None else noise + self._known)
        if factor is None:
            return None
        mean, centred = 0.0, self._means
        if self._fit_mean:
            ones, _ = self._dpotrs(factor, self._ones, lower=1)
            mean = float(ones @ centred) / float(ones.sum())
            centred = centred - mean
        alpha, _ = self._dpotrs(factor, centred, lower=1)
        determinant = 2.0 * float(np.log(factor.diagonal()).sum())
        within = self._repeats * log_s + self._scatter / s
        value = -0.5 * (float(centred @ alpha) + determinant + within + self._fixed)

        def gradient() -> Array:
            inverse, _ = self._dpotri(factor, lower=1, overwrite_c=1)
            # C^{-1} - alpha alpha^T below the diagonal and 0 above it. Every pair counts once and the diagonal by a
            # half, which is the 1/2 of eq. 5.9.
            below = self._dsyr(-1.0, alpha, lower=1, a=inverse, overwrite_a=1).T
            halved = _diagonal(below)
            halved *= 0.5
            result = np.empty(len(theta))
            np.negative(pullback(below), out=result[:-1])
            result[-1] = 0.5 * (self._scatter / s - self._repeats) - s * float(halved @ self._shares)
            return result

        return Evaluated(value, gradient, mean, ridge)

    def _factor(self, K: Array, noise: Array) -> tuple[Array | None, float]:
        """Returns the lower Cholesky factor of K + diag(noise) + ridge, zero above the diagonal, and the ridge."""
        for ridge in self._ridges:
            C = K.copy()
            diagonal = _diagonal(C)
            diagonal += noise + ridge * float(K.diagonal().mean()) if ridge else noise
            # LAPACK is column-major and C is symmetric, so LAPACK works on the transpose in place.
            factor, failed = self._dpotrf(C.T, lower=1, overwrite_a=1)
            if not failed:
                return factor, ridge
        return None, math.inf


def _diagonal(matrix: Array) -> Array:
    """Returns a view of the diagonal of a C-contiguous matrix."""
    return matrix.reshape(-1)[:: len(matrix) + 1]


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


Density = Callable[[Array], tuple[float, Array]]


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

    def density(self) -> Density:
        """Returns the log density of exp(theta), log-normal, and its gradient in theta, as a function of theta.

        With related lengthscales it is the density up to a constant factor.
        """
        if not self.informative:
            return lambda theta: (0.0, np.zeros(len(theta)))
        location, spread, logs, mode = self.location, self.spread, np.log(self.spread), self.mode
        related, constant = self.related, 0.5 * len(self.location) * LOG_2PI
        if count := len(related):  # The average has a variance of its own in place of a share of the others'.
            one = float(spread[related[0]])
            excess, change = count / one**2 - 1.0 / self.shared**2, math.log(one / (self.shared * math.sqrt(count)))

        def density(theta: Array) -> tuple[float, Array]:
            z = (theta - location) / spread
            value = -0.5 * float(z @ z) - float((theta + logs).sum()) - constant
            gradient = -z / spread - 1.0
            if count:
                average = float((theta - mode)[related].sum()) / count
                value += 0.5 * excess * average**2 + change
                gradient[related] += excess * average / count
            return value, gradient

        return density

    def draw(self, count: int, rng: Draws) -> Array:
        """Returns random parameters `(count, p + 1)` for starts, which may be out of bounds.

        The average of related ones varies by a little more than `shared`.
        """
        drawn = self.location + self.spread * rng.standard_normal((count, len(self.location)))
        if len(self.related):
            drawn[:, self.related] += self.shared * rng.standard_normal((count, 1))
        return np.asarray(drawn)


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
