"""Bounds of clicks, counts and bounded rewards: quantiles of each arm's rate by its own rewards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from ..._utils.checks import LARGEST_REWARD, Array, number, settle
from ..._utils.serialize import described
from ...gp import RatePosterior
from ...gp.own_rates import OwnRates
from ..envelope import Bounds, Confidence, Envelope, Progress, Symmetric


@final
@described
@dataclass(frozen=True, kw_only=True)
class RateQuantiles(Confidence):
    """Bounds of a rate that an arm's own rewards leave possible, for which nothing is proved.

    They are those of exact intervals of clicks (Clopper & Pearson 1934) or counts (Garwood 1936). They are widened to
    the posterior mean, and forget that the policy chose what was played. They stay within the possible
    rates. Where no `RatePosterior` learns the rewards, they are that many standard deviations.

    Attributes:
        deviations: the bounds have the probability of so many standard deviations of a normal law to either side.
    """

    deviations: float = 2.0

    def __post_init__(self) -> None:
        why = "It is how far to either side the bounds reach."
        settle(self, deviations=number("deviations", self.deviations, low=0.0, high=LARGEST_REWARD, why=why))

    def bounds(self, t: int, progress: Progress) -> Bounds:  # noqa: ARG002
        """Returns the quantiles of the rates of all rewards so far."""
        answers = progress.posterior if progress.answers is None else progress.answers
        return (
            _Quantiles(answers, self.deviations) if isinstance(answers, RatePosterior) else Symmetric(self.deviations)
        )


@final
class _Quantiles(Bounds):
    """The quantiles of one round."""

    pointwise: ClassVar[bool] = False
    moves: ClassVar[bool] = True

    def __init__(self, posterior: RatePosterior, deviations: float) -> None:
        self._posterior, self._deviations = posterior, deviations

    def __call__(self, mean: Array, std: Array, rows: Any = None) -> Envelope:
        known = self._posterior.reward_means
        cells = None if rows is None else np.asarray(rows, dtype=np.intp)
        low, high = OwnRates(self._posterior).quantiles(self._deviations, cells)
        known = known if cells is None else known[cells]
        lower, upper = mean + np.minimum(low - known, 0.0), mean + np.maximum(high - known, 0.0)
        return Envelope(mean, std, lower=lower, upper=upper)
