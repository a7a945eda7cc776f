"""The noise of answers whose standard deviation is told: their weights in a posterior, and who may have them.

| symbol | name | meaning | unit |
|---|---|---|---|
| s | `trial.std` | standard deviation of the noise of one answer, as told | reward |
| R | `Policy.noise` | noise of the answers without one | reward |
| w | `weight` | R^2 / s^2 | 1 |

An answer of weight w counts as w answers with the common noise, at every lambda: its noise variance is lambda / w. If
lambda is R^2, that is s^2. With fits, lambda is the fitted noise variance in the units of the posterior, and R^2 is
lambda. So s = R changes nothing.

A warp changes the noise by its slope (`gp.warping.warped_std`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, cast, final

import numpy as np

from ..errors import InvalidInput
from ..gp import RepeatedPlays
from ..gp.warping import warped_std
from ..kernels.factorization import LEAST_REGULARIZATION
from ..storage.trial import Trial
from .engines import Engine, Units
from .policy import Policy

LEAST, MOST = 1e-9, 1e6  # weights: a sum of both keeps either to some digits
EXACT = 10.0 * LEAST_REGULARIZATION  # share of the prior variance that the noise variance of an exact answer has


def refuse_std(policy: object) -> None:
    """Raises `InvalidInput` if a policy cannot weigh answers by their noise."""
    why = _objection(policy)
    if why:
        raise InvalidInput(
            f"`std` is given, and this policy cannot use it: {why}.",
            advice="Leave `std` out, or take `nr.auto`, `nr.gp_ucb` or `nr.expected_improvement`.",
            topic="std",
        )


def _objection(policy: object) -> str:
    """Returns the reason why a policy cannot weigh answers by their noise, or nothing."""
    if not isinstance(policy, Policy):
        return "its script sees rewards alone"
    if policy.models is not None:
        return "it compares linear models of arms, which take all answers to be equally noisy"
    if policy.objective.learned(policy) is not None:
        return "it learns from clicks or counts, whose noise follows from what they are"
    if not policy.objective.is_reward:
        return "it learns from rewards less the charges of constraints, whose noise is not known"
    if policy.refit is not None and policy.refit.balances:
        return "its test of lengthscales is for one noise of all answers"
    if not policy.memory.weighs:
        return "its test for changes is for one noise of all answers"
    if not policy.confidence.weighs:
        return f"its bounds ({type(policy.confidence).__name__}) are for one noise of all answers"
    return ""


@final
class AnswerNoise:
    """The noise of answers in the units of one posterior.

    Args:
        policy: the policy of the output.
        ridge: lambda of the posterior.
        units: the units of the posterior.
        size: returns the largest prior variance of f, squared units of the posterior.
        noisy: answers with a noise of their own that the posterior begins with, by which imputed values are weighed.
    """

    def __init__(
        self, policy: Policy, ridge: float, units: Units, size: Callable[[], float], noisy: Sequence[Trial] = ()
    ) -> None:
        fitted = policy.fitting is not None or policy.noise == 0.0
        self._common = ridge if fitted else (policy.noise / units.unit) ** 2
        self._ridge, self.units, self._size = ridge, units, size
        self._imputed = self._weight_of_imputed(noisy)

    @cached_property
    def _most(self) -> float:
        """The weight of an exact answer. A larger one would be lost in rounding."""
        return min(MOST, self._ridge / (EXACT * self._size()))

    def variance(self, reward: float, std: float) -> float:
        """Returns the noise variance of an answer, squared units of the posterior."""
        return float(warped_std(self.units.warp, np.array(reward), np.array(std)) / self.units.unit) ** 2

    def weight(self, trial: Trial) -> float:
        """Returns the weight of a trial with a reward and a known noise."""
        variance = self.variance(cast(float, trial.reward), cast(float, trial.std))
        return self._most if variance * self._most <= self._common else max(self._common / variance, LEAST)

    def _weight_of_imputed(self, noisy: Sequence[Trial]) -> float:
        """Returns the weight of values that no answer told, at most 1 (`Pending.failed`)."""
        if not noisy:
            return 1.0
        told = [self.variance(cast(float, trial.reward), cast(float, trial.std)) for trial in noisy]
        between = math.sqrt(float(np.median(told)) * self._size())  # Exact answers make it 0.
        return 1.0 if between <= self._common else max(self._common / between, LEAST)

    def is_lighter(self, trial: Trial) -> bool:
        """Returns whether a trial stands for an imputed value whose weight is less than 1."""
        return trial.reward is None and self._imputed < 1.0

    def entry(self, engine: Engine[Any], trial: Trial) -> Any:
        """Returns the entry of a trial in a belief, with its weight."""
        entry = engine.entry(trial)
        if trial.std is None and not self.is_lighter(trial):
            return entry
        weight = self._imputed if trial.std is None else self.weight(trial)
        return entry._replace(weight=weight) if type(entry) is RepeatedPlays else RepeatedPlays(entry, weight=weight)
