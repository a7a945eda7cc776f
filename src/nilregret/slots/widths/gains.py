"""Information gains for widths: the realised gain, a bound on the largest possible gain, or a rate.

| symbol | name | meaning | shape |
|---|---|---|---|
| gamma_t | | maximum information gain after t observations, nats | scalar |
| I(y_A; f) | `posterior.information_gain` | gain of the observations so far, 1/2 log det(I + K / lambda) | scalar |
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import final

import numpy as np

from ..._utils.checks import LARGEST_REWARD, Array, integer, number, settle, shown
from ...errors import InvalidInput
from ...gp import ArmPosterior, Posterior
from ...gp.protocol import RevisablePosterior
from ...kernels import Kernel
from ...serialize import description
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
@description(frozen=True)
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
@description(frozen=True)
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
@description(frozen=True, kw_only=True)
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
@description(frozen=True, kw_only=True)
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


SCALES = 2.0 ** np.array([-5, -4, -3, -2, -1, 0, 1, 2, 4, 6, 9, 14, 20, 40])  # the large ones serve the first rewards
UNKNOWN = 1e50  # reward units, the bound without any information


def noise_bound(posterior: Posterior, delta: float) -> float:
    """Returns an upper bound of R that holds in all rounds with probability 1 - delta.

    Before the first reward it is 0, when there is no noise yet.

    Args:
        posterior: posterior of the rewards.
        delta: failure probability.
    """
    if not isinstance(posterior, RevisablePosterior) or not posterior.count:
        return 0.0 if isinstance(posterior, RevisablePosterior) else UNKNOWN
    n, least = posterior.count, 2.0 * math.log(2.0 * len(SCALES) / delta)
    squares = posterior.regularization * posterior.quadratic_form
    spread = n * np.log1p(2.0 * SCALES * math.exp(-posterior.log_determinant_ratio / n))
    found = _least(squares, spread - least)
    if isinstance(posterior, ArmPosterior) and (several := posterior.plays[posterior.plays > 1]).size:
        found = min(found, _least(posterior.scatter_within_arms, _of_replicates(several) - least))
    return math.sqrt(found)


def bounded_noise(noise: float | None, delta: float, progress: Progress) -> tuple[float, float]:
    """Returns R in the units of the targets, and the failure probability that is left for the width.

    If R is unknown, the first is an upper bound of R, which takes half of delta.
    """
    if noise is not None:
        return progress.noise_factor * noise, delta
    answers = progress.posterior if progress.answers is None else progress.answers
    return noise_bound(answers, 0.5 * delta), 0.5 * delta


def _least(squares: float, rest: Array) -> float:
    """Returns the least bound on R^2 over the informative scales."""
    said = rest > 0.0
    return float((2.0 * SCALES[said] * max(squares, 0.0) / rest[said]).min()) if said.any() else UNKNOWN**2


def _of_replicates(plays: Array) -> Array:
    """Returns the sum of ln(1 + 2 s (k - 1) / k) over k = 2, ..., n of arms of n plays, `(J,)`."""
    from scipy.special import gammaln

    counts, arms = np.unique(plays, return_counts=True)
    q = (2.0 * SCALES / (1.0 + 2.0 * SCALES))[:, None]
    each = (counts - 1.0) * np.log1p(2.0 * SCALES)[:, None] + gammaln(counts + 1.0 - q) - gammaln(2.0 - q)
    return np.asarray((each - gammaln(counts + 1.0)) @ arms)
