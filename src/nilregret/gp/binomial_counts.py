"""Posteriors on arms for clicks, counts and other rewards whose noise differs between arms.

| symbol | name | meaning | shape |
|---|---|---|---|
| f | | m + g + h: common mean, smooth part, and independent part of each arm | (N,) |
| Phi | `_features` | row x is phi(x), scaled: g = Phi w, w ~ N(0, I) | (N, r) |
| tau | `_apart` | prior variance of h | (N,) |
| v | `_noise` | variance of one reward of each arm | (N,) |
| n, ybar | `plays`, `_average` | number of rewards of each arm, and their average | (N,) |
| d | | tau + v / n, the variance of ybar given g | (N,) |
| C | `_covariance` | (I + Phi^T D^{-1} Phi)^{-1}, over the arms played | (r, r) |
| b | `_data` | Phi^T D^{-1} (ybar - m) | (r,) |

Given w, the average of an arm is N(m + g, d). With c = tau / d (0 for arms that were not played),

    w ~ N(C b, C),    f = m + (1 - c) g + c (ybar - m) + h',    h' ~ N(0, c v / n)    (N(0, tau) if not played).

This is exact and costs O(N r) a reward, whatever the number of rewards, since the sums of the rewards suffice.

The parameters of the model are learned from the same sums, on a schedule. The mean m is estimated by generalised
least squares, and v from the posterior mean (mu (1 - mu) for clicks, mu for counts). The scales of g and h are chosen
by their marginal likelihood over a grid with weak priors. So one posterior serves both similar and unrelated arms.

`OwnRates` are rates by the rewards of each arm alone, for intervals and for the certainty of the best arm.

| symbol | name | meaning | shape |
|---|---|---|---|
| n, ybar | | number of rewards of each arm, and their average as a share of the span | (N,) |
| s^2 | `_variance` | pooled variance of a reward, by deviations from the averages | scalar |
| k | | clicks that a reward is worth: 1 for clicks, the mean of ybar (1 - ybar) over s^2 for bounded ones | scalar |
| a, b | | posterior of each rate: Beta(a, b), or Gamma(a, rate b) for counts | (N,) |

Draws of `RatePosterior` decide well, and are too sure of what they have decided. It takes the variance of an arm from
the arm's own mean, and luck for a difference between arms. The posteriors here start from one success and share nothing
between arms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, cast, final

import numpy as np
from scipy.linalg.blas import daxpy
from scipy.linalg.lapack import dpotrf

from .._utils.checks import Array, IndexArray, number
from .._utils.randomness import Rng, gammas
from ..kernels import Kernel
from ..kernels.factorization import normals, pivoted_cholesky
from .arms import ArmIndices, Prior, revise_sums
from .protocol import RevisablePosterior

MOST_FEATURES = 128
LEFT_OUT = 1e-4  # share of the prior variance that features may leave out, which counts as part of h
FIRST, GROWTH = 10, 0.15  # rewards until the first fit, and share of the rewards so far from one fit to the next
ROUNDING = 1e-9  # plays of an arm that are none but for rounding
REFRESH = 256  # rewards between two computations of everything from the sums
SMOOTH = np.array([0.05, 0.1, 0.2, 0.4, 0.8, 1.6])  # standard deviations of g, as shares of `Rates.unit`
OWN = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.8])  # of h
LIKELY_SMOOTH, LIKELY_OWN, SURE = 0.4, 0.05, 1.0  # medians of their log-normal priors, and the deviation of these


class Rates(Protocol):
    """A kind of rewards."""

    @property
    def start(self) -> tuple[float, float, float]:
        """Mean of f, standard deviation of f, and variance of a reward, before any reward is known."""

    def variances(self, mean: Array, plays: IndexArray, scatter: Array) -> Array:
        """Returns the variance of one reward of each arm, `(N,)`, or zeros as long as it is unknown.

        Args:
            mean: posterior mean of each arm, reward units, `(N,)`.
            plays: number of rewards of each arm, `(N,)`.
            scatter: sum of squared deviations of the rewards from their average, `(N,)`.
        """

    def unit(self, mean: float, variance: float) -> float:
        """Returns the unit of differences between arms, reward units."""


class RatePrior(NamedTuple):
    """A kind of rewards, and the center that was subtracted from each reward to make a target, reward units."""

    rates: Rates
    center: float


class _Scales(NamedTuple):
    """Parameters of the prior.

    Attributes:
        mean: m.
        smooth: standard deviation of g.
        own: standard deviation of h.
    """

    mean: float
    smooth: float
    own: float


@final
class RatePosterior(RevisablePosterior):
    """An exact posterior on arms under learned variances and scales, at O(N r + r^2) a reward.

    Args:
        kernel: of g, up to its scale.
        points: of the arms, `(N, d)`.
        known: kind of rewards.
        regularization: variance that a theorem assumes, on which nothing here depends.
    """

    OWNED = (
        "plays", "_average", "_scatter", "_weight", "_pull", "_taken", "_left", "_offset", "_covariance", "_data",
        "_mean", "_spread",
    )  # fmt: skip

    def __init__(self, kernel: Kernel, points: Array, known: RatePrior, *, regularization: float) -> None:
        self.prior, self.regularization = Prior(kernel, points), regularization
        self._rates, self._center = known
        size = max(self.prior.size, math.sqrt(np.finfo(float).tiny))
        rank = min(len(points), MOST_FEATURES)
        found = pivoted_cholesky(kernel, points, tol=LEFT_OUT * size**2, max_rank=rank).features
        self._shape = np.asfortranarray(found / size)
        self._rest = np.maximum(self.prior.variance / size**2 - np.einsum("nr,nr->n", self._shape, self._shape), 0.0)
        arms = len(points)
        self._due: float = FIRST
        self._since = 0
        self.count: float = 0  # sum of the weights of the rewards, and of all changes of them
        self._changes: float = 0
        self.plays = np.zeros(arms, dtype=np.int64)
        self._average, self._scatter = np.zeros(arms), np.zeros(arms)
        self._learns = True
        self.lifted = 0.0  # average level of the rewards, which the targets lack (`nilregret.gp.tidal`), reward units
        mean, scale, variance = self._rates.start
        self._noise = np.full(arms, variance)
        self._scales = _Scales(mean - self._center, scale, scale * float(LIKELY_OWN / LIKELY_SMOOTH))
        self._build()

    # -- observations --------------------------------------------------------------------------------------------

    def append(self, point: Any, target: float, *, weight: float = 1) -> None:
        """Adds a reward of an arm, or a share of it."""
        self._changed(self._sum_up(point, target, weight), weight)

    def _sum_up(self, point: Any, target: float, weight: float = 1) -> int:
        arm, target = int(point), number("target", target)
        if weight != 1 and self.plays.dtype != float:
            self.plays = self.plays.astype(float)
        plays, average = self.plays.item(arm) + weight, self._average.item(arm)
        change = target - average
        average += weight * change / plays
        self._put(arm, plays, average, self._scatter.item(arm) + weight * change * (target - average))
        self.count += weight
        return arm

    def append_all(self, points: Sequence[Any], targets: Sequence[float]) -> None:
        """Adds several rewards.

        Rewards before the last computation from the sums change only the sums.
        """
        first, last = 0, len(points)
        while first < last:
            until_fit, until_build = math.ceil(self._due - self._changes), REFRESH - self._since
            end = first + until_build
            if until_build < until_fit and end <= last:
                for point, target in zip(points[first:end], targets[first:end], strict=True):
                    self._sum_up(point, target)
                self._changes += until_build
                self._build()
            else:
                end = min(first + max(until_fit, 1), last)
                for point, target in zip(points[first:end], targets[first:end], strict=True):
                    self.append(point, target)
            first = end

    def forget(self, point: Any, target: float, *, weight: float = 1) -> None:
        """Removes a reward of an arm, or a share of it."""
        arm, target = int(point), number("target", target)
        left_over, average = self.plays.item(arm) - weight, self._average.item(arm)
        plays: float = 0 if left_over < ROUNDING else left_over  # Sums of shares are rounded.
        change = weight * (target - average)
        left = average - change / plays if plays else 0.0
        self._put(arm, plays, left, self._scatter.item(arm) - change * (target - left) if plays > 1 else 0.0)
        self.count -= weight
        self._changed(arm, weight)

    def revise(self, point: Any, old: float, new: float) -> None:
        """Replaces a reward of an arm."""
        self.revise_all([point], [old], [new])

    def revise_all(self, points: Sequence[Any], old: Sequence[float], new: Sequence[float]) -> None:
        """Replaces several rewards at once. A replaced reward does not count as new and makes no fit due."""
        arms = np.asarray(points, dtype=np.intp)
        moved = revise_sums(arms, old, new, self.plays, self._average, self._scatter)
        np.maximum(self._scatter, 0.0, out=self._scatter)
        self._since += 1
        if self._since >= REFRESH:
            self._build()
            return
        pulled = moved * self._weight  # The numbers of rewards, and so the variances, do not change.
        self._pull += pulled
        self._offset += moved * self._taken
        self._data += pulled @ self._features
        self._mean = self._features.dot(self._covariance.dot(self._data))

    def _put(self, arm: int, plays: float, average: float, scatter: float) -> None:
        self.plays[arm], self._average[arm], self._scatter[arm] = plays, average, max(scatter, 0.0)

    def _changed(self, arm: int, weight: float) -> None:
        self._changes += weight
        self._since += 1
        if self._changes >= self._due:
            self._due = self._changes + max(1, int(GROWTH * self.count))
            self._fit()
        elif self._since >= REFRESH:
            self._build()
        else:
            self._follow(arm)

    def _follow(self, arm: int) -> None:
        """Updates C and b after the sums of one arm have changed, by the Sherman-Morrison formula."""
        phi, before, moved = self._features[arm], self._weight.item(arm), self._pull.item(arm)
        self._weigh(arm)
        gained = self._weight.item(arm) - before
        self._data += (self._pull.item(arm) - moved) * phi
        direction = self._covariance.dot(phi)
        scale = gained / (1.0 + gained * float(phi.dot(direction)))
        self._covariance -= (scale * direction)[:, None] * direction
        reach = self._features.dot(direction)
        self._mean = self._features.dot(self._covariance.dot(self._data))
        np.multiply(reach, reach, out=reach)
        daxpy(reach, self._spread, a=-scale)  # spread -= scale * reach^2, in place

    def _weigh(self, arm: int) -> None:
        """Updates weight, offset and variance of one arm from its sums, as `_build` does for all arms."""
        plays, apart = self.plays.item(arm), self._apart.item(arm)
        if not plays:
            self._weight[arm] = self._pull[arm] = self._taken[arm] = 0.0
            self._offset[arm], self._left[arm] = self._scales.mean, apart
            return
        error = self._noise.item(arm) / plays
        total, beyond = apart + error, self._average.item(arm) - self._scales.mean
        self._weight[arm], self._pull[arm] = 1.0 / total, beyond / total
        taken = apart / total
        self._taken[arm], self._left[arm] = taken, taken * error
        self._offset[arm] = self._scales.mean + taken * beyond

    def _build(self) -> None:
        """Computes everything from the sums."""
        self._since = 0
        mean, smooth, own = self._scales
        self._features = smooth * self._shape
        self._apart = own**2 + smooth**2 * self._rest
        played = self.plays > 0
        error = np.divide(self._noise, self.plays, out=np.full(len(played), np.inf), where=played)
        beyond = np.where(played, self._average - mean, 0.0)
        self._weight = 1.0 / (self._apart + error)  # 1 / d, and 0 for arms that were not played
        self._pull = beyond * self._weight
        self._taken = self._apart * self._weight  # c
        self._left = np.where(played, self._taken * np.where(played, error, 0.0), self._apart)
        self._offset = mean + self._taken * beyond
        self._covariance = np.linalg.inv(self._precision())
        self._data = self._features.T @ self._pull
        self._mean = self._features @ (self._covariance @ self._data)
        self._spread: Array = np.einsum("nr,nr->n", self._features @ self._covariance, self._features)

    def _precision(self) -> Array:
        rank = self._features.shape[1]
        return np.asarray(np.eye(rank) + (self._features.T * self._weight) @ self._features)

    # -- parameters ----------------------------------------------------------------------------------------------

    def _fit(self) -> None:
        """Estimates variances from the mean, then m and the scales of g and h, and computes everything again."""
        if self._learns and self.count > 0:
            believed = self.predict()[0] + self._center + self.lifted
            noise = self._rates.variances(believed, self.plays, self._scatter)
            if (noise > 0.0).all():
                self._noise = noise
                self._scales = self._likeliest()
        self._build()

    def _likeliest(self) -> _Scales:
        played = np.flatnonzero(self.plays)
        plays, averages = self.plays[played], self._average[played]
        error = self._noise[played] / plays
        pooled = float(plays @ averages / plays.sum())
        unit = self._rates.unit(pooled + self._center + self.lifted, float(plays @ self._noise[played] / plays.sum()))
        best, found = -math.inf, self._scales
        shape, rest = self._shape[played], self._rest[played]
        for smooth in SMOOTH:
            apart = (unit * OWN[:, None]) ** 2 + (unit * smooth) ** 2 * rest
            fits, means = _likelihoods(averages, apart + error, unit * smooth * shape)
            fits -= 0.5 * (math.log(smooth / LIKELY_SMOOTH) ** 2 + np.log(OWN / LIKELY_OWN) ** 2) / SURE**2
            j = int(fits.argmax())
            if fits[j] > best:
                mean = min(max(float(means[j]), float(averages.min())), float(averages.max()))
                best, found = float(fits[j]), _Scales(mean, unit * float(smooth), unit * float(OWN[j]))
        return found

    def variance_only(self) -> RatePosterior:
        """Returns a copy that learns nothing from its targets."""
        other = self.copy()
        other._learns = False
        return other

    def deviations_from(self, observed: RatePosterior) -> RatePosterior:
        """Returns the posterior of f less the mean of another posterior, so that its own mean is 0.

        Plays are those of this posterior, and learned parameters are those of the other one.

        Args:
            observed: the other posterior.
        """
        other = observed.copy()
        other.plays, other.count = self.plays, self.count
        other._average = np.zeros(len(self.plays))
        other._scales = observed._scales._replace(mean=0.0)
        other._build()
        return other

    @property
    def scales(self) -> tuple[float, float, float]:
        """M in reward units, and the standard deviations of g and h in use."""
        return self._scales.mean + self._center + self.lifted, self._scales.smooth, self._scales.own

    @property
    def rates(self) -> Rates:
        """Kind of rewards."""
        return self._rates

    @property
    def center(self) -> float:
        """Center that was subtracted from each reward, reward units."""
        return self._center

    @property
    def averages(self) -> Array:
        """Average reward of each arm, reward units, `(N,)`."""
        return self._average + self._center + self.lifted

    @property
    def scatter(self) -> Array:
        """Sum of squared deviations of the rewards of each arm from their average, `(N,)`."""
        return self._scatter

    @property
    def reward_means(self) -> Array:
        """Posterior mean of each arm, reward units, `(N,)`."""
        return np.asarray(self._offset + (1.0 - self._taken) * self._mean + self._center + self.lifted)

    # -- predictions ---------------------------------------------------------------------------------------------

    def predict(self, points: ArmIndices | None = None) -> tuple[Array, Array]:
        """Returns mean and standard deviation of f at all arms, or at those listed, as fresh arrays."""
        keep = 1.0 - self._taken
        mean = self._offset + keep * self._mean
        std = np.sqrt(np.maximum(keep * keep * self._spread + self._left, 0.0))
        if points is None:
            return mean, std
        arms = np.asarray(points, dtype=np.intp)
        return mean[arms], std[arms]

    def covariance(self, points: ArmIndices) -> Array:
        """Returns the joint posterior covariance, `(n, n)`."""
        arms = cast("IndexArray", np.asarray(points, dtype=np.intp))
        rows = (1.0 - self._taken[arms])[:, None] * self._features[arms]
        return np.asarray(rows @ self._covariance @ rows.T + (arms[:, None] == arms) * self._left[arms])

    def sample(self, rng: Rng, points: ArmIndices | None = None, *, size: int = 1) -> Array:
        """Returns joint samples, `(size, n)`."""
        rank, arms = len(self._data), len(self.plays)
        root = dpotrf(self._covariance, lower=1, clean=1)[0]
        own = rng.standard_normal((size, arms)) * np.sqrt(self._left)
        normal = normals(rng, size, rank)
        weights = self._covariance.dot(self._data) + normal.dot(root.T)
        drawn = self._offset + (1.0 - self._taken) * weights.dot(self._features.T) + own
        return np.asarray(drawn if points is None else drawn[:, np.asarray(points, dtype=np.intp)])

    @property
    def quadratic_form(self) -> float:
        """Quadratic form (ybar - m)^T cov(ybar)^{-1} (ybar - m), over the arms played."""
        beyond = self._average - self._scales.mean
        return max(float(beyond @ self._pull - self._data @ self._covariance @ self._data), 0.0)

    @property
    def mean_norm(self) -> float:
        """Norm ||mu - m|| in the RKHS of the prior covariance of g + h."""
        weights = self._covariance @ self._data
        own = self._taken * (self._average - self._scales.mean - self._mean)
        return math.sqrt(float(weights @ weights) + float((own**2 / np.maximum(self._apart, 1e-300)).sum()))

    @property
    def log_determinant_ratio(self) -> float:
        """Log det(I + K / v), over all rewards."""
        own = np.log1p(self._apart * self.plays / self._noise).sum()
        return float(own + np.linalg.slogdet(self._precision())[1])


def _likelihoods(averages: Array, totals: Array, features: Array) -> tuple[Array, Array]:
    """Returns log marginal likelihoods and means m of averages, with m integrated out.

    Args:
        averages: `(n,)`.
        totals: variances of the averages given g, `(J, n)`.
        features: of the arms, `(n, r)`.
    """
    scaled = features.T / totals[:, None, :]
    root = np.linalg.cholesky(scaled @ features + np.eye(features.shape[1]))
    both = np.stack([averages, np.ones(len(averages))], axis=1)
    half = np.linalg.solve(root, scaled @ both)
    gram = both.T @ (both / totals[:, :, None]) - half.transpose(0, 2, 1) @ half
    means = gram[:, 0, 1] / gram[:, 1, 1]
    misfit = gram[:, 0, 0] - means * gram[:, 0, 1]
    spread = np.log(totals).sum(axis=1) + 2.0 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    return -0.5 * (misfit + spread + np.log(gram[:, 1, 1])), means


WEAK = 0.1  # weight of the prior of counts, as a number of rewards of the pooled rate 1
UNLUCKY = 2.0  # standard deviations of a reward by which the sum of an arm was too low when it was given up
NO_SUCCESS = 1e-9  # successes that are none but for rounding
TWO_SIDED = 1.15  # by which deviations count, between 1 and that of a two-sided test, 1.96 / 1.64


@final
class OwnRates:
    """The rates of arms, each by its own rewards.

    Args:
        posterior: whose sums of rewards are used. Imputed rewards are among them.
    """

    def __init__(self, posterior: RatePosterior) -> None:
        kind: Any = posterior.rates
        (self._low, self._span), self._counts = kind.span, kind.counts
        self._sign, self._center = -1.0 if kind.losses else 1.0, posterior.center
        plays, total = posterior.plays, float(posterior.plays.sum())
        self._plays, played = plays, plays > 0
        shares = (self._sign * posterior.averages - self._low) / self._span
        if posterior.lifted:  # The arm of a bad day, on an average day, may be beyond what is possible.
            shares = np.clip(shares, 0.0, math.inf if self._counts else 1.0)
        sums = np.where(played, plays * shares, 0.0)
        pooled = (float(sums.sum()) + 0.5) / (total + 1.0)
        scatter = float(posterior.scatter.sum()) / self._span**2
        self._variance = scatter / max(total - float(played.sum()), 1.0)
        if self._counts:
            self._first, self._second = 1.0 + sums, WEAK / pooled + plays
            self._means = self._first / self._second
        else:
            bounded = not kind.clicks
            within = float((sums * (1.0 - np.where(played, shares, 0.0))).sum()) / max(total, 1.0)
            each = max(within / self._variance, 1.0) if bounded and self._variance > 0.0 else 1.0
            top = 1.0 if bounded or kind.top is None else kind.top  # The prior mean of clicks is half of it.
            self._first, self._second = 1.0 + each * sums, 2.0 / top - 1.0 + each * np.maximum(plays - sums, 0.0)
            self._means = self._first / (self._first + self._second)
        self._shares = np.where(played, shares, self._means)

    def quantiles(self, deviations: float, cells: IndexArray | None) -> tuple[Array, Array]:
        """Returns lower and upper quantiles of the rates, reward units, `(n,)` each.

        Lower ones start from no success, and upper ones of clicks from no failure (Clopper & Pearson 1934, counts:
        Garwood 1936). One start for both would move both towards 1/2, where averages of losses are too high already.

        Args:
            deviations: the interval has the probability of so many standard deviations of a normal law to either side.
            cells: arms, or None for all.
        """
        from scipy.special import betaincinv, gammaincinv, ndtr

        at = slice(None) if cells is None else cells
        first, second = self._first[at], self._second[at]
        tails = float(ndtr(-deviations)), float(ndtr(deviations))
        least, last = np.maximum(first - 1.0, NO_SUCCESS), np.maximum(second - 1.0, NO_SUCCESS)
        if self._counts:
            low, high = gammaincinv(least, tails[0]) / second, gammaincinv(first, tails[1]) / second
        else:
            low, high = betaincinv(least, second, tails[0]), betaincinv(first, last, tails[1])
        ends = self._told(low), self._told(high)
        return ends if self._sign > 0.0 else (ends[1], ends[0])

    def draws(self, rng: Rng, cells: IndexArray, size: int) -> Array:
        """Returns draws that say how sure the best arm is, in units of the posterior, `(size, n)`.

        An arm is given up after bad luck, so its average is too low in expectation (Nie, Tian, Taylor & Zou 2018,
        Theorem 1). A sum of rewards therefore counts `UNLUCKY` deviations more, unless the prior adds as much. Then
        one of several equal arms is seldom called the best (benchmarks/live.py).
        """
        first, second, means = self._first[cells], self._second[cells], self._means[cells]
        shape = (size, len(cells))
        drawn = gammas(rng, first, shape)
        drawn = drawn / second if self._counts else drawn / (drawn + gammas(rng, second, shape))
        lucky = self._sign * (means - self._shares[cells])
        more = np.maximum(UNLUCKY * math.sqrt(self._variance) / np.maximum(self._plays[cells], 1.0) - lucky, 0.0)
        wide = means + TWO_SIDED * (drawn - means) + self._sign * np.where(self._plays[cells] > 0, more, 0.0)
        return np.asarray(self._told(wide) - self._center)

    def _told(self, shares: Array) -> Array:
        return np.asarray(self._sign * (self._low + self._span * shares))
