"""How long an answer takes: drawn anew for each trial.

A delay of d rounds means that d further questions are asked before the answer is known (Verma, Dai & Low 2022, section
3.1, "the number of new queries that need to be started before observing its feedback"): at 0 it is known before the
next question, infinity is never. A delay in time is counted on the simulated clock, which moves on by the environment's
`interval` from one question to the next (their appendix A.4).
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, final

import numpy as np

from ..checks import Array, number
from ..errors import InvalidInput


class Delay(ABC):
    """A distribution of delays; `in_time` where they are seconds and not rounds."""

    in_time: bool = False

    @abstractmethod
    def draw(self, rng: np.random.Generator, point: Array, reward: float) -> float:
        """The delay of one trial, in rounds (or seconds); infinity for an answer that never comes."""


@final
@dataclass(frozen=True)
class FixedDelay(Delay):
    """Always the same number of rounds; b - 1 makes batches of b, asked one by one."""

    rounds: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", _amount("rounds", self.rounds))

    def draw(self, rng: np.random.Generator, point: Array, reward: float) -> float:  # noqa: ARG002 - always the same
        """The number."""
        return self.rounds


@final
@dataclass(frozen=True)
class PoissonDelay(Delay):
    """Poisson with this mean (Verma et al., section 6)."""

    mean: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", number("mean", self.mean, low=0.0))

    def draw(self, rng: np.random.Generator, point: Array, reward: float) -> float:  # noqa: ARG002 - depends on neither
        """A draw."""
        return float(rng.poisson(self.mean))


@final
@dataclass(frozen=True)
class GeometricDelay(Delay):
    """Geometric on 0, 1, 2, ... with this mean."""

    mean: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", number("mean", self.mean, low=0.0))

    def draw(self, rng: np.random.Generator, point: Array, reward: float) -> float:  # noqa: ARG002 - depends on neither
        """A draw."""
        return float(rng.geometric(1.0 / (1.0 + self.mean)) - 1)


@final
@dataclass(frozen=True)
class HeavyTailedDelay(Delay):
    """P(delay >= d) = (1 + d / scale)^{-tail}, rounded down: for tail <= 1 the mean is infinite (Pareto, Lomax)."""

    scale: float
    tail: float = 1.0

    def __post_init__(self) -> None:
        for name in ("scale", "tail"):
            object.__setattr__(self, name, number(name, getattr(self, name), low=0.0, open_low=True))

    def draw(self, rng: np.random.Generator, point: Array, reward: float) -> float:  # noqa: ARG002 - depends on neither
        """A draw."""
        return math.floor(self.scale * rng.pareto(self.tail))


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

    def draw(self, rng: np.random.Generator, point: Array, reward: float) -> float:
        """Infinity, or the other delay."""
        lost = rng.random() < self.probability
        later = 0.0 if self.other is None else self.other.draw(rng, point, reward)
        return math.inf if lost else later


@final
class _Function(Delay):
    """Any function `delay(rng, point, reward)`: delays that depend on what was played, or on the reward."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._takes = len(inspect.signature(function).parameters)

    def draw(self, rng: np.random.Generator, point: Array, reward: float) -> float:
        value = self._function(*(rng, point, reward)[: self._takes])
        return _amount("delay(...)", value)


@final
class _Time(Delay):
    """A fixed time."""

    in_time = True

    def __init__(self, duration: timedelta) -> None:
        self._seconds = _amount("delay", duration.total_seconds())

    def draw(self, rng: np.random.Generator, point: Array, reward: float) -> float:  # noqa: ARG002 - always the same
        return self._seconds


@final
@dataclass(frozen=True)
class TimeDelay(Delay):
    """Delays in time: the seconds that a function `seconds(rng, point, reward)` returns."""

    seconds: Callable[..., float]

    in_time = True

    def draw(self, rng: np.random.Generator, point: Array, reward: float) -> float:
        """Seconds."""
        return _amount("seconds(...)", self.seconds(rng, point, reward))


def make_delay(delay: Any) -> Delay:
    """A delay from what a user may give: a part, a number of rounds, a `timedelta`, or a function."""
    if isinstance(delay, Delay):
        return delay
    if isinstance(delay, timedelta):
        return _Time(delay)
    if callable(delay):
        return _Function(delay)
    return FixedDelay(delay)


def _amount(name: str, value: Any) -> float:
    if isinstance(value, float | np.floating) and value == math.inf:
        return math.inf
    try:
        return number(name, value, low=0.0)
    except InvalidInput as error:
        raise InvalidInput(
            f"{error} A delay is a number of rounds >= 0; infinity for an answer that never comes."
        ) from None
