"""Rates by the rewards of each arm alone, for intervals and for the certainty of the best arm.

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
from typing import TYPE_CHECKING, Any, final

import numpy as np

from .._utils.checks import Array, IndexArray

if TYPE_CHECKING:
    from .binomial_counts import RatePosterior

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

    def draws(self, rng: np.random.Generator, cells: IndexArray, size: int) -> Array:
        """Returns draws that say how sure the best arm is, in units of the posterior, `(size, n)`.

        An arm is given up after bad luck, so its average is too low in expectation (Nie, Tian, Taylor & Zou 2018,
        Theorem 1). A sum of rewards therefore counts `UNLUCKY` deviations more, unless the prior adds as much. Then
        one of several equal arms is seldom called the best (benchmarks/live.py).
        """
        first, second, means = self._first[cells], self._second[cells], self._means[cells]
        shape = (size, len(cells))
        drawn = rng.gamma(first, 1.0 / second, shape) if self._counts else rng.beta(first, second, shape)
        lucky = self._sign * (means - self._shares[cells])
        more = np.maximum(UNLUCKY * math.sqrt(self._variance) / np.maximum(self._plays[cells], 1.0) - lucky, 0.0)
        wide = means + TWO_SIDED * (drawn - means) + self._sign * np.where(self._plays[cells] > 0, more, 0.0)
        return np.asarray(self._told(wide) - self._center)

    def _told(self, shares: Array) -> Array:
        return np.asarray(self._sign * (self._low + self._span * shares))
