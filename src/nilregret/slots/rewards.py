"""Reward models: clicks, counts, and numbers between two bounds.

| symbol | name | meaning | unit |
|---|---|---|---|
| p | | expected reward | reward |
| p_max | `ceiling` | no expected reward is larger | reward |
| R | `noise` | sub-Gaussian constant of reward - p, if it exists | reward |

E exp(s (Y - p)) <= exp(s^2 R^2 / 2) for all s:

- low <= Y <= high: R = (high - low) / 2 (Hoeffding 1963), so 1/2 for clicks.
- Clicks with p <= p_max <= 1/2: R^2 = (1 - 2 p_max) / (2 ln((1 - p_max) / p_max)) (Kearns & Saul 1998). This is the
  best constant at p_max (Buldygin & Moskvichova 2013). It grows with p up to 1/2, so it holds below p_max, too.
- Counts: there is no R. ln E exp(s (Y - p)) = p (e^s - 1 - s) outgrows every parabola. sqrt(p_max), the largest
  standard deviation, is at best a guess. With it nothing is proved except by likelihood ratios.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Self, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, IndexArray, flag, number, one_of, settle, shown
from .._utils.dataclass import dataclass, replace
from .._utils.numerals import exact, numeral
from ..errors import InvalidInput
from ..serialize import description
from ..storage.record import Trial
from .base import Policy
from .objective import Objective

NEAR_HALF = 1e-6  # distance from 1/2 within which R^2 is 1/4 to the last digit
LEAST_SHARE = 0.2  # share of the average rate, the least rate from which the variance of an arm is computed
TYPICAL = 10.0  # weight of the common variance of all arms, as a number of rewards of each arm
NAMES = ("bernoulli", "poisson", "bounded")


class KnownReward(Objective):
    """The reward, with a known support.

    Attributes:
        losses: True if the posterior learns minus the observed values, in a study that minimises.
    """

    losses: bool

    revises: ClassVar[bool] = False
    is_reward: ClassVar[bool] = True
    # True for the likelihood of counts, False for that of clicks, which is a bound for other rewards.
    counts: ClassVar[bool] = False

    @property
    @abstractmethod
    def noise(self) -> float:
        """R, or a typical standard deviation if there is no R, reward units."""

    @property
    @abstractmethod
    def span(self) -> tuple[float, float]:
        """Smallest reward, and the distance to the largest, which is 1 if there is no largest."""

    @property
    @abstractmethod
    def top(self) -> float | None:
        """Upper bound of the expected reward, or None."""

    @property
    @abstractmethod
    def start(self) -> tuple[float, float, float]:
        """Prior mean, its scale and the noise variance, see `nilregret.gp.binomial_counts.Rates`."""

    @abstractmethod
    def variances(self, mean: Array, plays: IndexArray, scatter: Array) -> Array:
        """Returns the noise variance of each arm, see `nilregret.gp.binomial_counts.Rates`."""

    def unit(self, mean: float, variance: float) -> float:  # noqa: ARG002
        """Returns the unit of differences between arms, see `nilregret.gp.binomial_counts.Rates`.

        For clicks and counts the unit is the variance, since small rates differ by less. Rates near 3% differ by some
        percent, rates near 50% by tens of percent.
        """
        return variance

    @property
    def proved(self) -> bool:
        """True. `admits` tells for which bounds."""
        return True

    def admits(self, confidence: Any) -> bool:
        """Returns True for likelihood ratios, and for bounds under sub-Gaussian noise unless rewards are counts."""
        return bool(confidence.likelihood or (confidence.sub_gaussian and not self.counts))

    @final
    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if the noise is smaller than that of these rewards."""
        if policy.refit is None and not policy.noise >= self.noise:
            raise InvalidInput(
                f"`noise` is {shown(policy.noise)}, and for {self} it is {numeral(self.noise, 6)}: leave it out, it "
                "follows from what the rewards are. A smaller one follows from a `ceiling`, where one is known."
            )

    @final
    def target(self, trial: Trial, charges: Array) -> float | None:  # noqa: ARG002
        """Returns the reward."""
        return trial.reward

    @final
    def learned(self, policy: Policy) -> Self | None:
        """Returns the part itself if arms have a variance each and scales are learned, else None.

        Proofs for fixed scales, fits, constraints and drifts need the plain posterior.
        """
        fixed = policy.confidence.sub_gaussian or policy.refit is not None or policy.constraints is not None
        return self if policy.finite and not fixed and policy.memory.drift() is None else None

    @final
    def turned(self) -> Self:
        """Returns the part for a study of losses."""
        return replace(self, losses=not self.losses)  # type: ignore[type-var]  # those that are made are dataclasses

    @final
    def _mirrored(self, mean: Array) -> Array:
        return -mean if self.losses else mean

    @final
    def _signed(self, start: tuple[float, float, float]) -> tuple[float, float, float]:
        return (-start[0], *start[1:]) if self.losses else start


@dataclass(frozen=True, kw_only=True)
class UpToCeiling(KnownReward):
    """Rewards from 0 on, with an optional upper bound of their expectation.

    Attributes:
        ceiling: upper bound of the expected reward, or None.
        losses: True if the posterior learns minus the observed values. A study that minimises sets it.
    """

    highest: ClassVar[float]  # largest useful ceiling
    why: ClassVar[str]  # explanation of a ceiling in errors

    ceiling: float | None = None
    losses: bool = False

    @final
    def __post_init__(self) -> None:
        if self.ceiling is not None:
            high = self.highest
            settle(self, ceiling=number("ceiling", self.ceiling, low=0.0, high=high, open_low=True, why=self.why))
        settle(self, losses=flag("losses", self.losses))

    @property
    @final
    def span(self) -> tuple[float, float]:
        """0 and 1."""
        return 0.0, 1.0

    @property
    @final
    def top(self) -> float | None:
        """The ceiling."""
        return self.ceiling

    @property
    @final
    def start(self) -> tuple[float, float, float]:
        """Half of the possible rate."""
        top = 1.0 if self.ceiling is None else self.ceiling
        mean = 0.5 * top
        return self._signed((mean, 0.3 * top, mean if self.counts else mean * (1.0 - mean)))


@final
@description(frozen=True, kw_only=True)
class Bernoulli(UpToCeiling):
    """Clicks, conversions, successes: rewards of 0 and 1.

    Attributes:
        ceiling: upper bound of the expected reward, at most 1/2, or None. A ceiling makes the noise smaller.
        losses: True if the posterior learns minus the observed values. A study that minimises sets it.

    >>> import nilregret as nr
    >>> nr.slots.Bernoulli().noise, round(nr.slots.Bernoulli(ceiling=0.05).noise, 3)
    (0.5, 0.391)
    """

    clicks: ClassVar[bool] = True
    highest: ClassVar[float] = 0.5
    why: ClassVar[str] = "No expected reward is larger; above 1/2 it would say nothing of the noise: then leave it out."

    @property
    def noise(self) -> float:
        """1/2, or Kearns & Saul's constant at the ceiling."""
        p = self.ceiling
        if p is None or 0.5 - p < NEAR_HALF:
            return 0.5
        return math.sqrt((1.0 - 2.0 * p) / (2.0 * (math.log1p(-p) - math.log(p))))

    def check_told(self, value: float) -> None:
        """Raises `InvalidInput` unless the reward is 0 or 1."""
        if value not in (0.0, 1.0):
            raise InvalidInput(
                f"The reward {exact(value)} is neither 0 nor 1, as the policy was told they all are (`reward` "
                "'bernoulli'). Usually it is an average or a rate: tell each success or failure by itself (in a "
                "simulation, draw it with that probability), or take `reward` 'bounded'."
            )

    def variances(self, mean: Array, plays: IndexArray, scatter: Array) -> Array:  # noqa: ARG002
        """Returns mu (1 - mu) of the posterior mean. An arm with ten failures is not sure to fail."""
        mean = self._mirrored(mean)
        pooled = min(max(float(plays @ mean / plays.sum()), 0.0), 1.0)
        mean = np.clip(mean, LEAST_SHARE * pooled, 1.0 - LEAST_SHARE * (1.0 - pooled))
        return np.asarray(mean * (1.0 - mean))


@final
@description(frozen=True, kw_only=True)
class Poisson(UpToCeiling):
    """Counts: whole numbers from 0 on, whose variance is their expectation.

    They have no sub-Gaussian constant. Among the bounds, only likelihood ratios (`width="lr"`) are proved for them.

    Attributes:
        ceiling: upper bound of the expected count, or None. Where a noise is needed without
        a ceiling, 1 is assumed.
        losses: as in `Bernoulli`.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, reward=nr.slots.Poisson(ceiling=4))
    >>> policy.noise  # the root of the ceiling
    2.0
    """

    highest: ClassVar[float] = LARGEST_REWARD
    why: ClassVar[str] = "No expected count is larger."
    counts: ClassVar[bool] = True

    @property
    def noise(self) -> float:
        """sqrt(ceiling), which is no sub-Gaussian constant but the largest standard deviation."""
        return math.sqrt(1.0 if self.ceiling is None else self.ceiling)

    def check_told(self, value: float) -> None:
        """Raises `InvalidInput` unless the reward is a whole number from 0 on."""
        if value < 0.0 or value != math.floor(value):
            raise InvalidInput(
                f"The reward {exact(value)} is no count, as the policy was told they all are (`reward` 'poisson'): "
                "counts are whole numbers from 0 on. Usually it is a rate: tell the counts, each of an equal time, "
                "instead."
            )

    def variances(self, mean: Array, plays: IndexArray, scatter: Array) -> Array:  # noqa: ARG002
        """Returns mu, the posterior mean."""
        mean = self._mirrored(mean)
        return np.asarray(np.maximum(mean, LEAST_SHARE * max(float(plays @ mean / plays.sum()), 0.0)))


@final
@description(frozen=True, kw_only=True)
class Bounded(KnownReward):
    """Numbers between two bounds: ratings, shares, profits of one sale.

    Attributes:
        low, high: no reward is outside.
        losses: as in `Bernoulli`.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, reward=nr.slots.Bounded(low=-1, high=2))
    >>> policy.noise  # half of the range
    1.5
    """

    low: float = 0.0
    high: float = 1.0
    losses: bool = False

    def __post_init__(self) -> None:
        low = number("low", self.low, low=-LARGEST_REWARD, high=LARGEST_REWARD)
        why = "It is the largest reward there is, above `low`."
        high = number("high", self.high, low=low, high=LARGEST_REWARD, open_low=True, why=why)
        settle(self, low=low, high=high, losses=flag("losses", self.losses))

    @property
    def noise(self) -> float:
        """(high - low) / 2."""
        return 0.5 * (self.high - self.low)

    @property
    def span(self) -> tuple[float, float]:
        """Smallest reward and the distance to the largest."""
        return self.low, self.high - self.low

    @property
    def top(self) -> float | None:
        """Largest reward."""
        return self.high

    def check_told(self, value: float) -> None:
        """Raises `InvalidInput` unless the reward lies between the bounds."""
        if not self.low <= value <= self.high:
            raise InvalidInput(
                f"The reward {exact(value)} is outside of [{exact(self.low)}, {exact(self.high)}], where the policy "
                "was told they all are. Give the bounds that hold.",
                advice="They are `reward=nr.slots.Bounded(low=..., high=...)`.",
                topic="bounded",
            )

    @property
    def start(self) -> tuple[float, float, float]:
        """The middle between the bounds."""
        width = self.high - self.low
        return self._signed((self.low + 0.5 * width, 0.3 * width, 0.25 * width**2))

    def variances(self, mean: Array, plays: IndexArray, scatter: Array) -> Array:  # noqa: ARG002
        """Returns the sample variance of each arm, shrunk to that of all arms."""
        again = float(np.maximum(plays - 1, 0).sum())
        pooled = float(scatter.sum()) / again if again else 0.0
        return np.asarray((scatter + TYPICAL * pooled) / (np.maximum(plays - 1, 0) + TYPICAL))

    def unit(self, mean: float, variance: float) -> float:  # noqa: ARG002
        """Returns the standard deviation."""
        return math.sqrt(variance)


def chosen_reward(reward: object) -> KnownReward:
    """Returns the reward model of that name, or the part itself."""
    if isinstance(reward, KnownReward):
        return reward
    named: dict[str, KnownReward] = {"bernoulli": Bernoulli(), "poisson": Poisson(), "bounded": Bounded()}
    return named[one_of("reward", reward, NAMES, advice="Or give a part, such as `nr.slots.Bernoulli(ceiling=0.1)`.")]
