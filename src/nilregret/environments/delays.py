"""Delays of answers, drawn anew for each trial.

With a delay of d rounds, d further questions are asked before the answer is known (Verma, Dai & Low 2022, section 3.1).
With 0 the answer is known before the next question. Infinity means never. A delay in time is counted on the simulated
clock. The clock moves on by the environment's `interval` between questions (appendix A.4 of the paper).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, integer, number, shown
from .._utils.dataclass import dataclass
from ..errors import InvalidInput
from ..theory.delays import Delay, FixedDelay, GeometricDelay, HeavyTailedDelay, PoissonDelay, amount

__all__ = [
    "Delay",
    "FixedDelay",
    "GeometricDelay",
    "HeavyTailedDelay",
    "PoissonDelay",
    "SilentNo",
    "answer_probability",
    "make_delay",
]


@final
@dataclass(frozen=True)
class SilentNo(Delay):
    """A delay law in which silence means no: rewards below a threshold are never reported.

    Attributes:
        threshold: threshold, reward units.
        other: delay of the other answers, or None for no delay.
    """

    threshold: float
    other: Delay | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", number("threshold", self.threshold))
        _check_other(self.other)

    def draw(self, rng: np.random.Generator, point: Array, reward: float) -> float:
        """Returns infinity below the threshold, else the other delay."""
        later = 0.0 if self.other is None else self.other.draw(rng, point, reward)
        return math.inf if reward < self.threshold else later


@final
class _Function(Delay):
    """A delay law by any function `delay(rng, point, reward)` of the point and the reward."""

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
    """A fixed delay in time."""

    in_time = True

    def __init__(self, duration: timedelta) -> None:
        self._seconds = amount("delay", duration.total_seconds())

    def draw(self, rng: np.random.Generator, point: Array, reward: float) -> float:  # noqa: ARG002 - The delay is constant.
        return self._seconds

    def within(self, window: float) -> float:
        """Returns 1 if the delay is within the window, else 0."""
        return float(self._seconds <= window)


def _check_other(delay: object) -> None:
    if not isinstance(delay, Delay | None):
        raise InvalidInput(
            f"`other` is {shown(delay)}: it must be a delay of the answers that come, such as `GeometricDelay(3.0)` or "
            "`FixedDelay(3)`, or None for at once."
        )


def make_delay(delay: Any, *, name: str = "delay") -> Delay:
    """Returns the delay law for an argument: a part, a number of rounds, a `timedelta`, or a function."""
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
    """Returns rho_m = min_x P(delay at x <= m) (Verma, Dai & Low 2022, section 3.3).

    The value is exact if the distribution is known. For a function `delay(rng, point)` it is the least relative
    frequency over the points. This is low by about sqrt(log(number of points) / draws), so it is a safe bound.

    Args:
        delay: the delay, as of `Environment`.
        window: m, in rounds, or a `timedelta` for delays in time.
        points: points to try, `(n, d)`, such as all arms or a grid. Only for functions of the point.
        draws: number of delays that are drawn at each point.
        seed: seed of the draws.

    Raises:
        InvalidInput: for delays that depend on the reward, which the theorems do not cover.
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
