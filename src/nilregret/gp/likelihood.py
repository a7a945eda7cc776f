"""Log marginal likelihood of a kernel and a noise, and its gradient.

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
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import LARGEST_REWARD, Array, IndexArray, finite_array, many, number, points_array
from ..errors import InvalidInput
from ..kernels import Kernel, check_kernel
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

    def __init__(self, kernel: Kernel, data: Data, *, ridges: tuple[float, ...], fit_mean: bool = False) -> None:
        from scipy.linalg.blas import dsyr  # slow to import
        from scipy.linalg.lapack import dpotri, dpotrs

        self._dsyr, self._dpotri, self._dpotrs = dsyr, dpotri, dpotrs
        self._matrices, self._ridges, self._fit_mean = kernel.matrices(data.points), ridges, fit_mean
        self._means, self._shares = data.means, 1.0 / data.counts
        self._known: Array | float = 0.0
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
        factor, ridge = _factor(K, s * self._shares + self._known, self._ridges)
        if factor is None:
            return None
        mean, centred = 0.0, self._means
        if self._fit_mean:
            ones, _ = self._dpotrs(factor, np.ones(len(centred)), lower=1)
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
            below = self._dsyr(-1.0, alpha, lower=1, a=inverse, overwrite_a=1)
            halved = np.einsum("ii->i", below)  # a view
            halved *= 0.5
            by_noise = 0.5 * (self._scatter / s - self._repeats) - s * float(halved @ self._shares)
            return np.append(-pullback(below.T), by_noise)

        return Evaluated(value, gradient, mean, ridge)


def _factor(K: Array, noise: Array, ridges: tuple[float, ...]) -> tuple[Array | None, float]:
    """Returns the lower Cholesky factor of K + diag(noise) + ridge, zero above the diagonal, and the ridge."""
    from scipy.linalg.lapack import dpotrf

    for ridge in ridges:
        C = K.copy()
        np.einsum("ii->i", C)[:] += noise + ridge * float(K.diagonal().mean()) if ridge else noise
        # LAPACK is column-major and C is symmetric, so LAPACK works on the transpose in place.
        factor, failed = dpotrf(C.T, lower=1, overwrite_a=1)
        if not failed:
            return factor, ridge
    return None, math.inf
