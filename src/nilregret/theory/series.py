"""Shares of delta over the rounds: the pi_t of Srinivas et al. 2010, Lemma 5.1.

| symbol | name | meaning |
|---|---|---|
| pi_t | `exp(series.log(t))` | round t may fail with probability delta / pi_t, where sum_t 1 / pi_t = 1 |

The lemma takes any such sequence, and the theorems take pi_t = pi^2 t^2 / 6. beta_t is 2 log(|D| pi_t / delta).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import final

from .._utils.checks import integer, number, settle, shown
from ..errors import InvalidInput
from ..serialize import description


class Series(ABC):
    """A sequence pi_t > 0 with sum over t >= 1 of 1 / pi_t at most 1."""

    @abstractmethod
    def log(self, t: int) -> float:
        """Returns log pi_t for t from 1."""


@final
@description(frozen=True)
class PowerSeries(Series):
    """pi_t = zeta(power) t^power, which is that of the theorems for 2.

    A smaller power gives wider bounds at first and narrower ones later.
    """

    power: float = 2.0

    def __post_init__(self) -> None:
        why = "Above 1 the sum of t^-power converges; near 1 its sum is large."
        settle(self, power=number("power", self.power, low=1.001, high=100.0, why=why))

    def log(self, t: int) -> float:
        """Returns log zeta(power) + power log t."""
        from scipy.special import zeta

        return math.log(float(zeta(self.power))) + self.power * math.log(t)


@final
@description(frozen=True)
class EvenSeries(Series):
    """Rounds 1 to T share half of delta evenly (pi_t = 2 T), later rounds the other half (pi_t = pi^2 (t - T)^2 / 3).

    This is for runs of about known length: beta_t is the same in all T rounds.
    """

    rounds: int  # T

    def __post_init__(self) -> None:
        settle(self, rounds=integer("rounds", self.rounds, low=1, high=None))

    def log(self, t: int) -> float:
        """Returns log 2 T up to round T."""
        if t <= self.rounds:
            return math.log(2.0) + math.log(self.rounds)
        return math.log(math.pi**2 / 3.0) + 2.0 * math.log(t - self.rounds)


def checked_series(value: object) -> Series | None:
    """Returns the pi_t of Lemma 5.1, or None for those of the theorem."""
    if not isinstance(value, Series | None):
        raise InvalidInput(
            f"`series` must be a part that shares out delta, not {shown(value)}.",
            advice="Such as `nr.slots.PowerSeries(1.5)`.",
        )
    return value
