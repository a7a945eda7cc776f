"""Estimates of the value of a policy from the log of another.

| symbol | name | meaning | shape |
|---|---|---|---|
| r | rewards | rewards on the log | (n,) |
| w | weights | pi(a_t given x_t) over the propensity of a_t | (n,) |
| q(a_t) | taken | predicted reward of the action that was taken | (n,) |
| q(pi) | expected | predicted reward of the policy: sum_a pi(a given x_t) q(x_t, a) | (n,) |

Each is the mean of one number for each row, so their formulas are those of the literature and of `obp`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, final, get_args

import numpy as np

from .._utils.checks import Array, IndexArray
from .._utils.randomness import Draws
from ..study.visits import sums

Estimator = Literal["snips", "dr", "ips", "switch", "model"]
ESTIMATORS: tuple[Estimator, ...] = get_args(Estimator)


def estimates(rewards: Array, weights: Array, taken: Array, expected: Array, *, most: float) -> dict[str, float]:
    """Returns the estimates by name.

    - "ips": mean of w r (Horvitz & Thompson, 1952).
    - "snips": sum of w r over sum of w (Swaminathan & Joachims, 2015). NaN if all weights are 0.
    - "dr": mean of q(pi) + w (r - q(a)) (Dudik, Langford & Li, 2011).
    - "switch": as "dr", with the second term only where w is at most `most` (Wang, Agarwal & Dudik, 2017).
    - "model": mean of q(pi), the reward model alone.

    Args:
        rewards: `(n,)`.
        weights: at least 0, `(n,)`.
        taken: predicted rewards of the logged actions, `(n,)`.
        expected: predicted rewards of the policy, `(n,)`.
        most: largest weight that "switch" uses.
    """
    total, residuals = float(weights.sum()), weights * (rewards - taken)
    return {
        "snips": float(weights @ rewards) / total if total > 0.0 else float("nan"),
        "dr": float(np.mean(expected + residuals)),
        "ips": float(np.mean(weights * rewards)),
        "switch": float(np.mean(expected + np.where(weights <= most, residuals, 0.0))),
        "model": float(np.mean(expected)),
    }


def effective_sample_size(weights: Array, units: IndexArray | None = None) -> float:
    """Returns (sum w)^2 / sum w^2: the number of rows of equal weight that say as much. It is 0 without any weight.

    Args:
        weights: at least 0, `(n,)`.
        units: of the rows, `(n,)`. Then w are sums of each unit, and the number is one of units.
    """
    weights = weights if units is None else sums(weights, units)
    largest = float(weights.max(initial=0.0))
    if largest == 0.0:
        return 0.0
    shares = weights / largest  # Squares of large weights would overflow.
    return float(shares.sum() ** 2 / (shares @ shares))


FOLDS = 5
RIDGE = 1.0  # weight of the prior, in rows
MOST_NUMBERS = 20_000_000  # in the matrices of all actions, beyond which an action adds a constant alone


@final
class RewardModel:
    """The cross-fitted predictions for a log.

    Args:
        features: columns of the contexts, without missing values, `(n, c)`.
        actions: taken, as indices, `(n,)`.
        rewards: `(n,)`.
        count: number of actions, N.
        units: of the rows, `(n,)`, or None. Rows of one unit are in one fold.
    """

    def __init__(
        self, features: Array, actions: IndexArray, rewards: Array, count: int, units: IndexArray | None = None
    ) -> None:
        n = len(features)
        spread = features.std(axis=0)
        scaled = (features - features.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        self._x = np.column_stack([np.ones(n), scaled[:, spread > 0.0]])
        # Folds at random, because a log may have a rhythm of its own.
        codes = np.arange(n) if units is None else np.unique(units, return_inverse=True)[1]
        several = int(codes.max()) + 1
        self._folds = (Draws("folds").permutation(several) % min(FOLDS, several))[codes]
        fits = range(min(FOLDS, several))
        self._fits = [self._fitted(self._folds != fold, actions, rewards, count) for fold in fits]

    def _fitted(self, rows: Array, actions: IndexArray, rewards: Array, count: int) -> tuple[Array, Array]:
        """Returns the coefficients, pooled `(p,)` and of each action `(N, q)`, from some rows."""
        x, y, taken = self._x[rows], rewards[rows], actions[rows]
        if not len(x):
            return np.zeros(self._x.shape[1]), np.zeros((count, 1))
        p = x.shape[1]
        penalty = RIDGE * np.eye(p)
        penalty[0, 0] = 1e-9  # The mean reward is not shrunk.
        pooled = np.linalg.solve(x.T @ x + penalty, x.T @ y)
        q = p if count * p * p <= MOST_NUMBERS else 1
        gaps, own = y - x @ pooled, np.zeros((count, q))
        order = np.argsort(taken, kind="stable")
        ends = np.searchsorted(taken[order], np.arange(count + 1))
        for action in np.flatnonzero(np.diff(ends)):
            of = order[ends[action] : ends[action + 1]]
            z = x[of, :q]
            own[action] = np.linalg.solve(z.T @ z + RIDGE * np.eye(q), z.T @ gaps[of])
        return pooled, own

    def predict(self, rows: slice = slice(None)) -> Array:
        """Returns the predicted reward of each action in some rows, `(n, N)`, of all by default."""
        x, folds = self._x[rows], self._folds[rows]
        found = np.empty((len(x), len(self._fits[0][1])))
        for fold, (pooled, own) in enumerate(self._fits):
            at = folds == fold
            found[at] = (x[at] @ pooled)[:, None] + x[at, : own.shape[1]] @ own.T
        return found


MOST = 0.95  # The largest bet keeps a twentieth of the capital.
BETS = MOST * 0.5 ** np.arange(14)  # The smallest, 1e-4, suits a million rows with weights near 100.
PRIOR = 0.8 ** np.abs(np.arange(14) - 4)  # Logs of a thousand rows want bets near 0.06.
ROWS = 1 << 15  # rows at once, so that memory stays flat
TOLERANCE = 1e-6  # relative error of a bound
LOWEST = 1e-4  # A bound below this share of the sample mean is 0.


class Interval(NamedTuple):
    """A confidence interval.

    Attributes:
        lower: lower end.
        upper: upper end.
    """

    lower: float
    upper: float


def lower_bound(
    values: Array, alpha: float, *, zeros: int = 0, weights: Array | None = None, largest: float | None = None,
    units: IndexArray | None = None,
) -> float:  # fmt: skip
    """Returns a number that exceeds the mean of the values with probability alpha at most.

    With J units of n_j rows the game bets on their sums S_j (Waudby-Smith & Ramdas, 2024, for one row each). A factor
    is 1 + b (S_j / m - n_j) J / n, and linear in the rows of a unit. So the expected capital at the mean m of all rows
    is the product of the factors with E S_j in place of S_j. It does not matter whether visits of units alternate, or
    one draw decides all visits of a unit. The product is at most 1, as log(1 + x) <= x and the sum of E S_j is n m.
    Expectations are over draws of arms for given rewards of all arms, or over independent units. The number of visits
    of a unit must not depend on the draws.

    Args:
        values: at least 0, of any size, `(n,)`.
        alpha: probability of an error.
        zeros: number of further values that are 0. Not used with units.
        weights: at least 0 with mean 1, `(n,)`. Used with `largest` alone.
        largest: bound of the weights by design, or None.
        units: of the rows, `(n,)`, or None if each row is a unit.
    """
    known = [] if largest is None or weights is None else [(weights, max(largest, 1.0))]
    if units is not None:
        sizes = sums(np.ones(len(units)), units)
        scale, most = len(sizes) / len(units), float(sizes.max())
        values = sums(values, units) * scale
        known = [(sums(each, units) * scale, bound * most * scale) for each, bound in known]
        known.append((sizes * scale, most * scale))
    return _Bet(values, zeros, known).bound(alpha)


def mean_interval(
    weights: Array, rewards: Array, delta: float, *, largest: float | None = None, units: IndexArray | None = None
) -> Interval:
    """Returns an interval that holds the mean of weight times reward with probability 1 - delta or more.

    The upper bound is one minus the lower bound of weight times (1 - reward), because weights have the mean 1. If the
    bounds cross, that mean is refuted, and the interval is [0, 1].

    Args:
        weights: at least 0 with mean 1, `(n,)`.
        rewards: within [0, 1], `(n,)`.
        delta: probability of an error.
        largest: bound of the weights by design, or None.
        units: of the rows, `(n,)`, or None.
    """
    lower = lower_bound(weights * rewards, delta / 2.0, weights=weights, largest=largest, units=units)
    upper = 1.0 - lower_bound(weights * (1.0 - rewards), delta / 2.0, weights=weights, largest=largest, units=units)
    if lower > upper:  # Weights whose mean is not 1: nothing is known.
        return Interval(0.0, 1.0)
    return Interval(min(lower, 1.0), max(upper, 0.0))


def gain_interval(weights: Array, rewards: Array, delta: float, *, units: IndexArray | None = None) -> Interval:
    """Returns an interval of the mean of (weight - 1) times reward: the policy's value less that of the log's own.

    Both values rest on the same rewards. So the interval is narrower than those of both values suggest. It bets on
    1 + (w - 1) r and on 1 + (w - 1) (1 - r), which are at least 0.

    Args:
        weights: at least 0 with mean 1, `(n,)`.
        rewards: within [0, 1], `(n,)`.
        delta: probability of an error.
        units: of the rows, `(n,)`, or None.
    """
    lower = lower_bound(1.0 + (weights - 1.0) * rewards, delta / 2.0, units=units) - 1.0
    upper = 1.0 - lower_bound(1.0 + (weights - 1.0) * (1.0 - rewards), delta / 2.0, units=units)
    return Interval(lower, upper) if lower <= upper else Interval(-1.0, 1.0)


def bounded_interval(
    values: Array, zeros: int, largest: float, delta: float, *, units: IndexArray | None = None
) -> Interval:
    """Returns an interval of the mean of values within [0, largest].

    Args:
        values: `(n,)`. Larger ones are cut.
        zeros: number of further values that are 0.
        largest: bound of the values, above 0.
        delta: probability of an error.
        units: of the values, if there are no zeros, `(n,)`, or None.
    """
    shares = np.minimum(values / largest, 1.0)
    below = lower_bound(shares, delta / 2.0, zeros=zeros, units=units)
    above = 1.0 - lower_bound(np.append(1.0 - shares, np.ones(zeros)), delta / 2.0, units=units)
    return Interval(float(largest * below), float(largest * above))


@final
class _Bet:
    """The capital as a function of the hypothetical mean.

    Args:
        values: at least 0.
        zeros: number of further values that are 0.
        known: columns with the mean 1 that rise and fall with the values, and the largest possible entry of each. A
            bet on 1 + b (value / m - column) needs less luck than one on 1 + b (value / m - 1).
    """

    def __init__(self, values: Array, zeros: int, known: Sequence[tuple[Array, float]]) -> None:
        # Clicks and rows that the policy would not have chosen have few distinct values.
        if len(known) < 2:
            pairs, counts = np.unique(values + 1j * known[0][0] if known else values, return_counts=True)
            pairs, counts = (np.append(pairs, 0.0), np.append(counts, zeros)) if zeros else (pairs, counts)
            columns = [pairs.real, pairs.imag][: 1 + len(known)]
        else:
            rows = np.column_stack([values, *(each for each, _ in known)])
            rows, counts = np.unique(rows, axis=0, return_counts=True)
            columns = list(rows.T)
        self._values, self._known = columns[0], columns[1:]
        self._bets = [BETS, *(np.minimum(BETS, MOST / bound) for _, bound in known)]
        self._counts = counts.astype(np.float64)

    def bound(self, alpha: float) -> float:
        """Returns the mean at which the capital is 1 / alpha, or 0 if it is less everywhere."""
        enough, total = math.log(1.0 / alpha), self._counts.sum()
        high = float(self._counts @ self._values / max(total, 1.0))
        if high <= 0.0 or not math.isfinite(high):
            return 0.0
        # The capital is at most 1 at the sample mean and at the self-normalised ones.
        high = max([high, *(high * total / float(self._counts @ each) for each in self._known)])
        low = high * LOWEST
        at_low = self._log_capital(low) - enough
        return 0.0 if at_low < 0.0 else float(self._crossing(enough, low, at_low, high))

    def _crossing(self, enough: float, low: float, at_low: float, high: float) -> float:
        """Returns the mean at which the capital is just enough, from below, by the Illinois rule of false position."""
        at_high, kept = self._log_capital(high) - enough, 0
        while high - low > TOLERANCE * high:
            step = (high - low) * min(max(at_low / (at_low - at_high), 0.01), 0.99)
            at = self._log_capital(low + step) - enough
            if at >= 0.0:
                low, at_low, at_high = low + step, at, at_high * (0.5 if kept == 1 else 1.0)
                kept = 1
            else:
                high, at_high, at_low = low + step, at, at_low * (0.5 if kept == -1 else 1.0)
                kept = -1
        return low

    def _log_capital(self, m: float) -> float:
        logs = np.zeros((len(self._bets), len(BETS)))
        for start in range(0, len(self._values), ROWS):
            part = slice(start, start + ROWS)
            ratio, counts = self._values[part] / m, self._counts[part]
            for game, (bets, known) in enumerate(zip(self._bets, [None, *self._known], strict=True)):
                centre = 1.0 if known is None else known[part]
                logs[game] += np.log1p(bets[:, None] * (ratio - centre)) @ counts
        best = logs.max()
        return float(best + math.log(np.average(np.exp(logs - best).ravel(), weights=np.resize(PRIOR, logs.size))))
