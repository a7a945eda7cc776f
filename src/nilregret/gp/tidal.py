"""Rewards of arms on a common level that moves, so that no arm is credited for the days on which it was played.

| symbol | name | meaning | unit |
|---|---|---|---|
| y_s | target | reward of trial s | reward |
| f | `arms` | what an arm, or an arm under a context, gives beyond the level | reward |
| l_s | `Level.at` | level at trial s: y_s = f + l_s + noise | reward |
| g | `GAIN` | share of a new residual in the level | 1 |
| E | `_evidence` | evidence that the level moves | nats |

Trials are cut into periods of `PERIOD` decisions by their numbers, which follow the time at which they were asked for.
The level of a period is fixed before the first of its rewards is learned, from the residuals y - f of trials before the
period. Their weights fade by 1 - g for each trial between. This exponential smoothing is the stationary Kalman filter
of a random walk (Muth 1960). The posterior of the arms learns y_s - l_s. So a late reward is compared with the level of
its own period. A reward that is changed or removed keeps its level.

A second posterior of the arms learns the rewards themselves, as without a level. It is in use until the evidence for a
level reaches `ENOUGH`. The evidence is the log ratio of the densities by which both predicted each reward, under
normal noise, and at least `LEAST` (as in Page 1954). From then on the first posterior is in use, whose arms were never
credited for the level. There is no way back: after a step, the arm that is played may explain it as well as a level.

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
GAIN = 0.05
ENOUGH, LEAST = 3.0, -3.0  # nats
FIRST = 10.0  # rewards before which there is no level, since the arms are not known
MEMORY = 100  # periods before its own that the level of a period depends on


@final
class Level(Copyable):
    """A common level of rewards that moves from period to period.

    Args:
        moves: False for a level that stands at 0.
    """

    OWNED = ("_sums", "_levels")

    def __init__(self, *, moves: bool) -> None:
        self._moves = moves
        self._sums: dict[int, tuple[float, float]] = {}  # sum of the residuals, and of the weights, by period
        self._levels: dict[int, float] = {}  # by period
        self._weight = self._total = 0.0  # of all rewards, and their levels

    @property
    def mean(self) -> float:
        """Average level of all rewards learned."""
        return self._total / self._weight if self._weight > 0.0 else 0.0

    def at(self, trial: int) -> float:
        """Returns the level at a trial, which is fixed from now on."""
        if not self._moves:
            return 0.0
        period = trial // PERIOD
        if period not in self._levels:
            self._levels[period] = self._smoothed(period)
        return self._levels[period]

    def _smoothed(self, period: int) -> float:
        level, fade = 0.0, 1.0
        for before in range(period - 1, max(period - 1 - MEMORY, -1), -1):
            total, many = self._sums.get(before, (0.0, 0.0))
            if many > 0.0:
                kept = (1.0 - GAIN) ** many
                level += fade * (1.0 - kept) * total / many
                fade *= kept
        return level

    def learn(self, trial: int, residual: float, weight: float) -> None:
        """Learns the residual of a trial, which is its reward less what its arm was thought to give."""
        self._weight += weight
        self._total += weight * self.at(trial)
        if self._moves and self._weight > FIRST:
            total, many = self._sums.get(trial // PERIOD, (0.0, 0.0))
            self._sums[trial // PERIOD] = total + weight * residual, many + weight

    def change(self, trial: int, by: float) -> None:
        """Takes over a reward that has changed."""
        if trial // PERIOD in self._sums:
            total, many = self._sums[trial // PERIOD]
            self._sums[trial // PERIOD] = total + by, many

    def forget(self, trial: int, weight: float) -> None:
        """Removes the reward of a trial, and its share of the residuals of its period."""
        self._weight -= weight
        self._total -= weight * self.at(trial)
        total, many = self._sums.get(trial // PERIOD, (0.0, 0.0))
        self._sums[trial // PERIOD] = (total * (1.0 - weight / many), many - weight) if many > weight else (0.0, 0.0)


@final
class TidalPosterior(Posterior):
    """A posterior of arms beside a level that may move.

    Observations are of entries: `entry(cell, trial)` in a table, and rows `(trial, context, point)` elsewhere. All else
    is asked for at the cells or rows of the posterior of the arms.

    Args:
        arms: posterior of the arms without observations, which is owned from now on.

    Attributes:
        moves: True once there was enough evidence that the level moves.
    """

    OWNED_EACH = ("_arms", "_levels")

    def __init__(self, arms: RatePosterior | ContextPosterior) -> None:
        self._arms: list[Any] = [arms, arms.copy()]
        self._levels = [Level(moves=False), Level(moves=True)]
        self._evidence, self.moves = 0.0, False
        self._squares = 0.0  # of the errors of the posterior in use
        self.regularization = arms.regularization
        self._cells = len(arms.plays) if isinstance(arms, RatePosterior) else 0

    @property
    def arms(self) -> Any:
        """Posterior of the arms in use."""
        return self._arms[self.moves]

    @property
    def level(self) -> Level:
        """Level in use."""
        return self._levels[self.moves]

    @property
    def count(self) -> float:  # type: ignore[override]  # that of the arms
        """Observations taken in."""
        return float(self._arms[0].count)

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
        errors, count = [], self.count
        for arms, level in zip(self._arms, self._levels, strict=True):
            residual, now = target - arms.predict(at)[0].item(0), level.at(trial)
            errors.append((residual - now) ** 2)
            arms.append(cell, target - now, weight=weight)
            level.learn(trial, residual, weight)
            self._lift(arms, level)
        if count >= FIRST:
            self._judge(errors, weight)

    def _judge(self, errors: list[float], weight: float) -> None:
        """Compares both posteriors by the squared errors of their predictions."""
        self._squares += weight * errors[self.moves]
        if self.count > FIRST and self._squares > 0.0:
            gained = 0.5 * weight * (errors[0] - errors[1]) * (self.count - FIRST) / self._squares
            self._evidence = max(self._evidence + gained, LEAST)
            self.moves = self.moves or self._evidence >= ENOUGH

    def extend(self, points: Any, targets: Any) -> None:
        """Adds the rewards of entries, in their order."""
        self.append_all(points, np.asarray(targets, dtype=float).tolist())

    def revise(self, point: Any, old: float, new: float) -> None:
        """Replaces the reward of an entry."""
        self.revise_all([point], [old], [new])

    def revise_all(self, points: Sequence[Any], old: Sequence[float], new: Sequence[float]) -> None:
        """Replaces the rewards of several entries."""
        trials, cells = zip(*map(self._split, points), strict=True)
        for arms, level in zip(self._arms, self._levels, strict=True):
            now = [level.at(trial) for trial in trials]
            arms.revise_all(cells, *([y - at for y, at in zip(each, now, strict=True)] for each in (old, new)))
            for trial, before, after in zip(trials, old, new, strict=True):
                level.change(trial, after - before)

    def forget(self, point: Any, target: float, *, weight: float = 1) -> None:
        """Removes the reward of an entry, or a share of it."""
        trial, cell = self._split(point)
        for arms, level in zip(self._arms, self._levels, strict=True):
            arms.forget(cell, target - level.at(trial), weight=weight)
            level.forget(trial, weight)
            self._lift(arms, level)

    @staticmethod
    def _lift(arms: Any, level: Level) -> None:
        if isinstance(arms, RatePosterior):
            arms.lifted = level.mean

    def add_arms(self, arms: Arms) -> bool:
        """Takes over more arms (see `ContextPosterior.add_arms`)."""
        if self._cells:
            return False
        grown = [each.add_arms(arms) for each in self._arms]  # all of them, or none for want of waves
        return all(grown)

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
        other._arms = [each.variance_only() for each in self._arms]
        return other

    def deviations_from(self, observed: TidalPosterior) -> RatePosterior:
        """Returns the posterior of f less the mean of another posterior (see `RatePosterior.deviations_from`)."""
        return cast("RatePosterior", self.arms.deviations_from(observed.arms))


def rates_of(posterior: Any) -> RatePosterior | None:
    """Returns the posterior of rates that this one is, or that it has beside a level, or None."""
    found = posterior.arms if isinstance(posterior, TidalPosterior) else posterior
    return found if isinstance(found, RatePosterior) else None
