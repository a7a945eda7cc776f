"""How long an answer takes: drawn anew for each trial.

A delay of d rounds means that d further questions are asked before the answer is known (Verma, Dai & Low 2022, section
3.1, "the number of new queries that need to be started before observing its feedback"): at 0 it is known before the
next question, infinity is never. A delay in time is counted on the simulated clock, which moves on by the environment's
`interval` from one question to the next (their appendix A.4).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, final

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array, integer, number, shown
from ..._utils.delays import Delay, FixedDelay, GeometricDelay, HeavyTailedDelay, PoissonDelay, amount
from ..._utils.errors import InvalidInput

__all__ = [
    "Delay",
    "FixedDelay",
    "GeometricDelay",
    "HeavyTailedDelay",
    "NeverAnswered",
    "PoissonDelay",
    "SilentNo",
    "TimeDelay",
    "answer_probability",
    "make_delay",
]


@final
@dataclass(frozen=True)
class SilentNo(Delay):
    """A non-answer that means no: rewards below the threshold are never reported, the others after another delay.

    Attributes:
        threshold: reward units.
        other: delay of the answers that come, or None for at once.
    """

    threshold: float
    other: Delay | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", number("threshold", self.threshold))
        _check_other(self.other)

    def draw(self, rng: np.random.Generator, point: Array, reward: float) -> float:
        """Infinity below the threshold."""
        later = 0.0 if self.other is None else self.other.draw(rng, point, reward)
        return math.inf if reward < self.threshold else later


@final
@dataclass(frozen=True)
class NeverAnswered(Delay):
    """Each answer is lost with this probability, whatever it is; the others come after another delay."""

    probability: float
    other: Delay | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "probability", number("probability", self.probability, low=0.0, high=1.0))
        _check_other(self.other)

    def draw(self, rng: np.random.Generator, point: Array, reward: float) -> float:
        """Infinity, or the other delay."""
        lost = rng.random() < self.probability
        later = 0.0 if self.other is None else self.other.draw(rng, point, reward)
        return math.inf if lost else later

    def within(self, window: float) -> float | None:
        """Not lost, and not too late."""
        other = 1.0 if self.other is None else self.other.within(window)
        return None if other is None else (1.0 - self.probability) * other


@final
class _Function(Delay):
    """Any function `delay(rng, point, reward)`: delays that depend on what was played, or on the reward."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._takes = len(inspect.signature(function).parameters)

    def draw(self, rng: np.random.Generator, point: Array, reward: float) -> float:
        value = self._function(*(rng, point, reward)[: self._takes])
        return amount("delay(...)", value)

    @property
    def sees_reward(self) -> bool:
        return self._takes > 2


@final
class _Time(Delay):
    """A fixed time."""

    in_time = True

    def __init__(self, duration: timedelta) -> None:
        self._seconds = amount("delay", duration.total_seconds())

    def draw(self, rng: np.random.Generator, point: Array, reward: float) -> float:  # noqa: ARG002 - always the same
        return self._seconds

    def within(self, window: float) -> float:
        """0 or 1."""
        return float(self._seconds <= window)


@final
@dataclass(frozen=True)
class TimeDelay(Delay):
    """Delays in time: the seconds that a function `seconds(rng, point, reward)` returns."""

    seconds: Callable[..., float]

    in_time = True

    def draw(self, rng: np.random.Generator, point: Array, reward: float) -> float:
        """Seconds."""
        return amount("seconds(...)", self.seconds(rng, point, reward))


def _check_other(delay: object) -> None:
    if not isinstance(delay, Delay | None):
        raise InvalidInput(
            f"`other` is {shown(delay)}: it must be a delay of the answers that come, such as `GeometricDelay(3.0)` or "
            "`FixedDelay(3)`, or None for at once."
        )


def make_delay(delay: Any, *, name: str = "delay") -> Delay:
    """A delay from what a user may give: a part, a number of rounds, a `timedelta`, or a function."""
    if isinstance(delay, Delay):
        return delay
    if isinstance(delay, timedelta):
        return _Time(delay)
    if callable(delay):
        return _Function(delay)
    return FixedDelay(amount(name, delay))


def answer_probability(
    delay: Any, window: float | timedelta, *, points: npt.ArrayLike | None = None, draws: int = 1000, seed: int = 0
) -> float:
    """rho_m = min_x P(delay at x <= m), of delays that may depend on the point (Verma, Dai & Low 2022, section 3.3).

    Exact where the distribution is known. Of a function `delay(rng, point)` it is the least relative frequency over
    the points, which is a little low (about sqrt(log(number of points) / draws)), as a bound should be.

    Args:
        delay: as `Environment` takes it.
        window: m, in rounds; a `timedelta` for delays in time.
        points: where to look, `(n, d)`: all arms, or a grid; only for functions of the point.
        draws: how many delays are drawn at each.
        seed: of the draws.

    Delays that depend on the reward have no such probability, and the theorems are not about them: an error.
    """
    part, in_time = make_delay(delay), isinstance(window, timedelta)
    if part.in_time != in_time:
        kinds = ("a number of rounds", "a time")
        raise InvalidInput(f"The window is {kinds[in_time]} and the delay is {kinds[part.in_time]}: give both alike.")
    m = number("window", window.total_seconds() if isinstance(window, timedelta) else window, low=0.0)
    known = part.within(m)
    if known is not None:
        return known
    if not isinstance(part, _Function) or part.sees_reward:
        raise InvalidInput(
            "This delay may depend on the reward, so that an answer within the window has no probability of its own, "
            "and the theorems are not about it. Give a delay without the reward, such as `lambda rng, point: ...`."
        )
    integer("draws", draws, low=1)
    if points is None:
        raise InvalidInput("This delay is a function of the point: say at which `points`, `(n, d)`, such as all arms.")
    rng, where = np.random.default_rng(seed), np.atleast_2d(np.asarray(points, dtype=float))
    return min(float(np.mean([part.draw(rng, x, math.nan) <= m for _ in range(draws)])) for x in where)
