"""Rewards of arms on a common level that moves, so that no arm is credited for the days on which it was played.

| symbol | name | meaning | unit |
|---|---|---|---|
| y_s | target | reward of trial s | reward |
| f | `arms` | what an arm, or an arm under a context, gives beyond the level | reward |
| l_s | `Level.at` | level at trial s: y_s = f + l_s + noise | reward |
| g | `GAINS` | share of a new residual in the level | 1 |

Trials are cut into periods of `PERIOD` decisions by their numbers, which follow the time at which they were asked for.
The level of a period is fixed before the first of its rewards is learned, from the residuals y - f of trials before the
period. Their weights fade by 1 - g for each trial between. This exponential smoothing is the stationary Kalman filter
of a random walk (Muth 1960). The posterior of the arms learns y_s - l_s. So a late reward is compared with the level of
its own period. A reward that is changed or removed keeps its level.

The gain g is that of the best one-step predictions of rewards so far, in nats under normal noise. One gain is 0, and
the others start `BEHIND`. So on a level that stands, the arms learn the rewards themselves. No gain falls
back by more than `FARTHEST`, so a level that begins to move late is followed soon (as in Herbster & Warmuth 1998).

f and the level are known up to a constant only. Predictions are of f on the average level of all rewards learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, cast, final

import numpy as np

from .._utils.checks import Array, number
from .._utils.copying import Copyable
from .._utils.randomness import Rng
from ..domains.domain import Arms
from .arms import Prior
from .binomial_counts import RatePosterior
from .context_bank import ContextPosterior
from .protocol import Posterior

PERIOD = 10  # decisions
GAINS = np.array([0.0, 0.01, 0.03, 0.1])
BEHIND, FARTHEST = 3.0, 10.0  # nats
FIRST = 10.0  # rewards before which there is no level, since the arms are not known
MEMORY = 100  # periods before its own that the level of a period depends on
NONE = np.zeros(len(GAINS))


@final
class Level(Copyable):
    """A common level of rewards that moves from period to period.

    Attributes:
        mean: average level of all rewards learned, reward units.
    """

    OWNED = ("_sums", "_levels", "_behind")

    def __init__(self) -> None:
        self._sums: dict[int, tuple[float, float]] = {}  # sum of the residuals, and of the weights, by period
        self._levels: dict[int, tuple[float, Array]] = {}  # level in use, and that of each gain, by period
        self._behind = np.where(GAINS > 0.0, BEHIND, 0.0)
        self._weight = self._total = 0.0  # of all rewards, and their levels
        self._squares = 0.0  # of the errors of predictions

    @property
    def mean(self) -> float:
        """Average level of all rewards learned."""
        return self._total / self._weight if self._weight > 0.0 else 0.0

    @property
    def gain(self) -> float:
        """Gain in use."""
        return float(GAINS[self._behind.argmin()])

    def at(self, trial: int) -> float:
        """Returns the level at a trial, which is fixed from now on."""
        return self._of(trial // PERIOD)[0]

    def _of(self, period: int) -> tuple[float, Array]:
        found = self._levels.get(period)
        if found is None:
            each = self._smoothed(period)
            found = self._levels[period] = float(each[self._behind.argmin()]), each
        return found

    def _smoothed(self, period: int) -> Array:
        """Returns the level of a period by each gain."""
        before = [self._sums.get(each) for each in range(period - 1, max(period - 1 - MEMORY, -1), -1)]
        known = np.array([sums for sums in before if sums is not None and sums[1] > 0.0])
        if not len(known):
            return NONE
        sums, weights = known.T
        after = np.append(0.0, weights.cumsum())  # of the residuals between a period and this one
        fade = (1.0 - GAINS[:, None]) ** after
        return np.asarray((fade[:, :-1] - fade[:, 1:]) @ (sums / weights))

    def learn(self, trial: int, target: float, mean: float, weight: float) -> None:
        """Learns from the reward of a trial, whose arm was thought to give `mean` beyond the level."""
        level, each = self._of(trial // PERIOD)
        if self._weight >= FIRST:
            errors = (target - mean - each) ** 2
            self._squares += weight * errors.item(int(self._behind.argmin()))
            variance = self._squares / (self._weight + weight - FIRST)
            if variance > 0.0:
                behind = self._behind + 0.5 * weight * errors / variance
                self._behind = np.minimum(behind - behind.min(), FARTHEST)
            self._add(trial, target - mean, weight)
        self._weight += weight
        self._total += weight * level

    def _add(self, trial: int, residual: float, weight: float) -> None:
        total, many = self._sums.get(trial // PERIOD, (0.0, 0.0))
        self._sums[trial // PERIOD] = total + weight * residual, many + weight

    def change(self, trial: int, by: float) -> None:
        """Takes over a reward that has changed."""
        if trial // PERIOD in self._sums:
            self._add(trial, by, 0.0)

    def forget(self, trial: int, weight: float) -> None:
        """Removes the reward of a trial, and its share of the residuals of its period."""
        self._weight -= weight
        self._total -= weight * self.at(trial)
        total, many = self._sums.get(trial // PERIOD, (0.0, 0.0))
        self._sums[trial // PERIOD] = (total * (1.0 - weight / many), many - weight) if many > weight else (0.0, 0.0)


@final
class TidalPosterior(Posterior):
    """A posterior of arms beside a level that moves.

    Observations are of entries: `entry(cell, trial)` in a table, and rows `(trial, context, point)` elsewhere. All else
    is asked for at the cells or rows of the posterior of the arms.

    Args:
        arms: posterior of the arms without observations, which is owned from now on.
    """

    OWNED = ("arms", "level")

    def __init__(self, arms: RatePosterior | ContextPosterior) -> None:
        self.arms, self.level = cast("Any", arms), Level()
        self.regularization = arms.regularization
        self._cells = len(arms.plays) if isinstance(arms, RatePosterior) else 0

    @property
    def count(self) -> float:  # type: ignore[override]  # that of the arms
        """Observations taken in."""
        return float(self.arms.count)

    @property
    def prior(self) -> Prior:
        """Prior of the arms in a table."""
        return cast("Prior", self.arms.prior)

    def size_at(self, points: Array) -> float:
        """Returns the unit of differences between arms (see `ContextPosterior.size_at`)."""
        return float(self.arms.size_at(points))

    # -- observations --------------------------------------------------------------------------------------------

    def _split(self, entry: Any) -> tuple[int, Any]:
        """Returns the trial of an entry, and its cell or row."""
        if self._cells:
            return divmod(int(entry), self._cells)
        row = np.asarray(entry, dtype=float)
        return int(row[0]), row[1:]

    def append(self, point: Any, target: float, *, weight: float = 1) -> None:
        """Adds the reward of an entry, or a share of it."""
        trial, cell = self._split(point)
        at, target = [cell] if self._cells else cell[None], number("target", target)
        level, mean = self.level.at(trial), float(self.arms.predict(at)[0][0])
        self.arms.append(cell, target - level, weight=weight)
        self.level.learn(trial, target, mean, weight)
        self._lift()

    def extend(self, points: Any, targets: Any) -> None:
        """Adds the rewards of entries, in their order."""
        self.append_all(points, np.asarray(targets, dtype=float).tolist())

    def revise(self, point: Any, old: float, new: float) -> None:
        """Replaces the reward of an entry."""
        self.revise_all([point], [old], [new])

    def revise_all(self, points: Sequence[Any], old: Sequence[float], new: Sequence[float]) -> None:
        """Replaces the rewards of several entries."""
        trials, cells = zip(*map(self._split, points), strict=True)
        levels = [self.level.at(trial) for trial in trials]
        before, after = ([y - level for y, level in zip(each, levels, strict=True)] for each in (old, new))
        self.arms.revise_all(cells, before, after)
        for trial, was, now in zip(trials, old, new, strict=True):
            self.level.change(trial, now - was)

    def forget(self, point: Any, target: float, *, weight: float = 1) -> None:
        """Removes the reward of an entry, or a share of it."""
        trial, cell = self._split(point)
        self.arms.forget(cell, target - self.level.at(trial), weight=weight)
        self.level.forget(trial, weight)
        self._lift()

    def _lift(self) -> None:
        if isinstance(self.arms, RatePosterior):
            self.arms.lifted = self.level.mean

    def add_arms(self, arms: Arms) -> bool:
        """Takes over more arms (see `ContextPosterior.add_arms`)."""
        return isinstance(self.arms, ContextPosterior) and self.arms.add_arms(arms)

    # -- predictions ---------------------------------------------------------------------------------------------

    def predict(self, points: Any = None) -> tuple[Array, Array]:
        """Returns mean and standard deviation of f on the average level, each `(n,)`, as fresh arrays."""
        mean, std = self.arms.predict(points)
        mean += self.level.mean
        return mean, std

    def mean(self, points: Any) -> Array:
        """Returns the mean, `(n,)`."""
        return self.predict(points)[0]

    def means_of(self, points: Any) -> Array:
        """Returns the mean at points that mostly were observed, `(n,)`."""
        return self.predict(points)[0]

    def covariance(self, points: Any) -> Array:
        """Returns the joint covariance of f, `(n, n)`."""
        return np.asarray(self.arms.covariance(points))

    def sample(self, rng: Rng, points: Any = None, *, size: int = 1) -> Array:
        """Returns joint samples of f on the average level, `(size, n)`."""
        return np.asarray(self.arms.sample(rng, points, size=size) + self.level.mean)

    @property
    def mean_norm(self) -> float:
        """Norm of the mean of the arms."""
        return float(self.arms.mean_norm)

    @property
    def log_determinant_ratio(self) -> float:
        """Log determinant ratio of the arms."""
        return float(self.arms.log_determinant_ratio)

    # -- beliefs with pending trials -----------------------------------------------------------------------------

    def variance_only(self) -> Self:
        """Returns a copy that learns nothing from its targets, of arms in a table."""
        other = self.copy()
        other.arms = self.arms.variance_only()
        return other

    def deviations_from(self, observed: TidalPosterior) -> RatePosterior:
        """Returns the posterior of f less the mean of another posterior (see `RatePosterior.deviations_from`)."""
        return cast("RatePosterior", self.arms.deviations_from(observed.arms))


def rates_of(posterior: Any) -> RatePosterior | None:
    """Returns the posterior of rates that this one is, or that it has beside a level, or None."""
    found = posterior.arms if isinstance(posterior, TidalPosterior) else posterior
    return found if isinstance(found, RatePosterior) else None
