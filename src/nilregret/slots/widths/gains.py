"""Information gains for widths: the realised gain, a bound on the largest possible gain, or a rate.

| symbol | name | meaning | shape |
|---|---|---|---|
| gamma_t | | maximum information gain after t observations, nats | scalar |
| I(y_A; f) | `posterior.information_gain` | gain of the observations so far, 1/2 log det(I + K / lambda) | scalar |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from ..._utils.checks import LARGEST_REWARD, integer, number, settle, shown
from ..._utils.errors import InvalidInput
from ..._utils.serialize import described
from ...kernels import Kernel
from ...theory.rates import information_gain_rate
from ..envelope import Progress


class Gain(ABC):
    """An information gain after `count` observations, nats."""

    proved: bool  # True if a theorem may use the gain. A constant of unknown size may not be used.
    batched: bool = False  # True if it may be called for several worlds at once (see `Part.batched`)

    @abstractmethod
    def __call__(self, count: int, progress: Progress) -> float:
        """Returns the gain after `count` observations."""


@final
@described
@dataclass(frozen=True)
class RealisedGain(Gain):
    """The gain 1/2 log det(I + K / lambda) of the observations so far, at most gamma_t.

    The self-normalised inequality of Chowdhury & Gopalan 2017, Theorem 1, is about this determinant itself. Their
    widths therefore hold with it, and are narrower than with gamma_t.
    """

    proved = True
    batched = True

    def __call__(self, count: int, progress: Progress) -> float:  # noqa: ARG002
        """Returns the posterior's running sum (Srinivas et al. 2010, Lemma 5.3)."""
        return progress.posterior.information_gain


@final
@described
@dataclass(frozen=True)
class GreedyGain(Gain):
    """The upper bound (1 - 1/e)^{-1} I(greedy design of that size) on gamma_t (Srinivas et al. 2010, section 5.1)."""

    proved = True
    batched = True

    def __call__(self, count: int, progress: Progress) -> float:
        """Returns the bound on gamma_count, over the arms (and contexts) of the domain."""
        if progress.design is None:
            raise InvalidInput("The greedy bound needs finitely many arms: use `information_gain` 'realised'.")
        return progress.design().bound(count)


@final
@described
@dataclass(frozen=True, kw_only=True)
class RateGain(Gain):
    """The growth rate of gamma_t with a constant chosen by hand (Srinivas et al. 2010, Theorem 5).

    The theorem leaves the constant open, so nothing is proved with it. The experiments of Chowdhury & Gopalan 2017 use
    such a rate.

    Attributes:
        kernel: kernel of the rate.
        dimension: d, of the points.
        constant: multiplier of the rate.
    """

    kernel: Kernel
    dimension: int
    constant: float = 1.0

    proved = False
    batched = True

    def __post_init__(self) -> None:
        settle(
            self,
            constant=number("constant", self.constant, low=0.0, high=LARGEST_REWARD),
            dimension=integer("dimension", self.dimension, low=1),
        )
        information_gain_rate(self.kernel, self.dimension, 2.0)  # Raises an error for a kernel without a rate.

    def __call__(self, count: int, progress: Progress) -> float:  # noqa: ARG002
        """Returns the rate after `count` observations."""
        return information_gain_rate(self.kernel, self.dimension, count, constant=self.constant)


@final
@described
@dataclass(frozen=True, kw_only=True)
class ConstantGain(Gain):
    """A number chosen by hand, such as one found by cross-validation (Chowdhury & Gopalan 2017, section 6: 1)."""

    value: float

    proved = False
    batched = True

    def __post_init__(self) -> None:
        settle(self, value=number("information_gain", self.value, low=0.0, high=LARGEST_REWARD))

    def __call__(self, count: int, progress: Progress) -> float:  # noqa: ARG002
        """Returns the given number."""
        return self.value


def checked_gain(value: object) -> Gain:
    """Returns a valid gain, or raises `InvalidInput`."""
    if not isinstance(value, Gain):
        raise InvalidInput(
            f"`gain` must be a bound of the information gain, not {shown(value)}.",
            advice="They are in `nilregret.slots.widths.gains`.",
        )
    return value
