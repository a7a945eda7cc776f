"""Distributions of delays, for simulations and for policies.

A delay of d rounds means that d further trials are asked for before the reward is known (Verma, Dai & Low 2022, section
3.1). At 0 the reward is known before the next trial, and an infinite delay never ends.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, final

import numpy as np

from .._utils.checks import Array, number
from ..errors import InvalidInput
from ..serialize import description

LONGEST = 1e15  # largest mean of a delay, beyond which no reward would ever be observed


class Delay(ABC):
    """A distribution of delays.

    Attributes:
        in_time: True if delays are seconds and not rounds.
    """

    in_time: bool = False

    @abstractmethod
    def draw(self, rng: np.random.Generator, point: Array, reward: float) -> float:
        """Returns the delay of one trial, in rounds (or seconds), or infinity for a reward that never comes."""

    def within(self, window: float) -> float | None:  # noqa: ARG002 - most know none
        """Returns P(delay <= window) if it is known and the same for all points and rewards, otherwise None."""
        return None


@final
@description(frozen=True)
class FixedDelay(Delay):
    """A constant number of rounds. With b - 1 rounds, trials come in batches of b, asked for one by one."""

    rounds: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", amount("rounds", self.rounds))

    def draw(self, rng: np.random.Generator, point: Array, reward: float) -> float:  # noqa: ARG002 - always the same
        """Returns the number of rounds."""
        return self.rounds

    def within(self, window: float) -> float:
        """Returns 0 or 1."""
        return float(self.rounds <= window)


@final
@description(frozen=True)
class PoissonDelay(Delay):
    """A Poisson distribution with this mean (Verma et al., section 6)."""

    mean: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", number("mean", self.mean, low=0.0, high=LONGEST))

    def draw(self, rng: np.random.Generator, point: Array, reward: float) -> float:  # noqa: ARG002 - depends on neither
        """Returns a draw."""
        return float(rng.poisson(self.mean))

    def within(self, window: float) -> float:
        """Returns the distribution function."""
        from scipy.special import pdtr  # slow to import, and no simulation needs it

        return float(pdtr(math.floor(window), self.mean)) if window < math.inf else 1.0


@final
@description(frozen=True)
class GeometricDelay(Delay):
    """A geometric distribution on 0, 1, 2, ... with this mean."""

    mean: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", number("mean", self.mean, low=0.0, high=LONGEST))

    def draw(self, rng: np.random.Generator, point: Array, reward: float) -> float:  # noqa: ARG002 - depends on neither
        """Returns a draw."""
        return float(rng.geometric(1.0 / (1.0 + self.mean)) - 1)

    def within(self, window: float) -> float:
        """Returns 1 - (mean / (1 + mean))^{window + 1}, with the window rounded down."""
        return 1.0 - (self.mean / (1.0 + self.mean)) ** (math.floor(window) + 1) if window < math.inf else 1.0


@final
@description(frozen=True)
class HeavyTailedDelay(Delay):
    """A Pareto (Lomax) distribution, rounded down: P(delay >= d) = (1 + d / scale)^{-tail}.

    For tail <= 1 the mean is infinite.
    """

    scale: float
    tail: float = 1.0

    def __post_init__(self) -> None:
        for name in ("scale", "tail"):
            object.__setattr__(self, name, number(name, getattr(self, name), low=0.0, open_low=True))

    def draw(self, rng: np.random.Generator, point: Array, reward: float) -> float:  # noqa: ARG002 - depends on neither
        """Returns a draw."""
        wait = self.scale * float(rng.pareto(self.tail))
        return math.floor(wait) if wait < math.inf else wait

    def within(self, window: float) -> float:
        """Returns 1 - P(delay >= window + 1), with the window rounded down."""
        return 1.0 - (1.0 + (math.floor(window) + 1) / self.scale) ** -self.tail if window < math.inf else 1.0


def amount(name: str, value: Any) -> float:
    """Returns a delay, or raises an error."""
    if isinstance(value, float | np.floating) and value == math.inf:
        return math.inf
    try:
        return number(name, value, low=0.0)
    except InvalidInput as error:
        raise InvalidInput(
            f"{error} A delay is a number of rounds >= 0; infinity for an answer that never comes."
        ) from None
