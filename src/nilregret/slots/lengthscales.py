"""Several lengthscales at once, for a kernel whose lengthscale is unknown.

| symbol | name | meaning |
|---|---|---|
| theta_0 | | lengthscales of the policy's kernel |
| theta_j / theta_0 | `factors` | candidates, as multiples of these lengthscales |
| w_j | `Lengthscales.weights` | weight of a candidate, by its predictions |
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, listed, number, settle, shown
from .._utils.dataclass import replace
from ..domains.domain import sides
from ..errors import InvalidInput
from ..gp import Bank
from ..kernels import Kernel
from ..serialize import description
from ..theory.rates import information_gain_rate
from .base import Policy
from .envelope import checked_delta
from .refit import Learning, Refit

LENGTHS = ("lengthscale", "angle")  # kinds of hyperparameters that are lengths
MOST = 64  # largest number of candidates, each with a posterior of its own
FARTHEST = 1e6
HALVES = (0.5, 0.5**0.5, 1.0, 2.0**0.5, 2.0)  # Steps of sqrt 2 leave no lengthscale far from a candidate.


class Lengthscales(NamedTuple):
    """Candidates for the lengthscales and their weights.

    Attributes:
        factors: multiplier of the kernel's lengthscales, of each candidate, `(m,)`.
        weights: weight of each candidate by its predictions of the rewards, `(m,)`. They sum to 1.
        kernels: kernel of each candidate.
        leader: index of the one candidate that decides the next round (`RegretBalancing`), or None.
        eliminated: indices of the candidates that decide no more rounds (`RegretBalancing`).
    """

    factors: tuple[float, ...]
    weights: Array
    kernels: tuple[Kernel, ...]
    leader: int | None = None
    eliminated: tuple[int, ...] = ()


def with_factor(kernel: Kernel, factor: float, columns: int) -> Kernel:
    """Returns the kernel with its lengthscales multiplied by a factor.

    Periods, scales and all other hyperparameters stay.
    """
    if factor == 1.0:
        return kernel
    known = kernel.hyperparameters(range(columns))
    steps = [math.log(factor) if parameter.kind in LENGTHS else 0.0 for parameter in known]
    return kernel.with_log_parameters(kernel.log_parameters + np.array(steps))


def _check_lengths(policy: Policy) -> None:
    columns = len(sides(policy.domain, policy.context))
    if not any(parameter.kind in LENGTHS for parameter in policy.kernel.hyperparameters(range(columns))):
        raise InvalidInput(
            f"The {type(policy.kernel).__name__} kernel has no lengthscale, so that there is nothing to compare: leave "
            "`refit` out, or take a kernel that has one.",
            advice="Such as `nr.Matern(2.5, 0.3)`.",
        )


def _checked_factors(factors: object) -> tuple[float, ...]:
    why = "Each is what the kernel's lengthscales are multiplied with."
    found = tuple(
        number("factors", factor, low=1.0 / FARTHEST, high=FARTHEST, why=why)
        for factor in listed("factors", factors, why=why)
    )
    if not 1 <= len(found) <= MOST or len(set(found)) < len(found):
        raise InvalidInput(
            f"`factors` are {shown(list(found))}: give one to {MOST} different ones, such as (0.5, 0.71, 1, 1.41, 2), "
            "which are what the kernel's lengthscales are multiplied with."
        )
    return found


@final
@description(frozen=True, kw_only=True)
class LengthscaleBank(Learning):
    """A posterior for each of several lengthscales, averaged by their predictions (`nilregret.gp.mixture`).

    This is Bayesian model averaging on a grid. Scores see the mean and standard deviation of the mixture, and Thompson
    sampling first draws a lengthscale. Unlike a fit, the bank never settles on one lengthscale after few observations,
    and drops none. A round costs as much as the rounds of all candidates together. `study.lengthscales` shows the
    weights. The confidence bounds of theorems are for a given kernel, so they are not called valid here.

    Predictions are weighted by the stated noise, even if the regularizer is another number (`igp_ucb`, `gp_ts`). A
    round then costs twice as much. A bank is refused where f drifts (`Discount`, `DriftBank`), as fits are.

    Attributes:
        factors: multipliers of all lengthscales of the policy's kernel. Use a geometric grid in steps of about sqrt 2
            over the plausible range. The default is from a half to twice.
        weight: weight of the stated scale of kernel and noise, as a number of observations, or None if the scale is
            known to be right.
        around: fits of the kernel, the noise and the units on their schedule, or None if kernel and noise are given.
            The candidates are then multiples of the last fitted lengthscales, and are weighted again after each fit.
    """

    factors: tuple[float, ...] = HALVES
    weight: float | None = 10.0
    around: Refit | None = None

    def __post_init__(self) -> None:
        why = "It counts answers; None for a scale that is right."
        weight = None if self.weight is None else number("weight", self.weight, low=0.0, open_low=True, why=why)
        settle(self, factors=_checked_factors(self.factors), weight=weight)
        if not isinstance(self.around, Refit | None):
            raise InvalidInput(
                f"`around` is {shown(self.around)}: it must be a `Refit`, or nothing.",
                advice="It is made by `nr.slots.Refit(...)`.",
            )

    @property
    def fitting(self) -> Refit | None:
        """The fits around which the bank lies, or None."""
        return self.around

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if the kernel has no lengthscale, or no fit is possible."""
        _check_lengths(policy)
        if self.around is not None:
            self.around.check(policy)

    def bank(self, kernel: Kernel, columns: int, more: int, noise_variance: float | None) -> Bank:  # noqa: ARG002
        """Returns a candidate for each factor."""
        kernels = tuple(with_factor(kernel, factor, columns) for factor in self.factors)
        return Bank(kernels, self.factors, self.weight, noise_variance)

    def of_constraint(self, *, warp: str, given: bool) -> LengthscaleBank:
        """Returns a bank with the same factors for the kernel of a constraint."""
        return replace(self, around=None if self.around is None else self.around.of_constraint(warp=warp, given=given))


@final
@description(frozen=True, kw_only=True)
class RegretBalancing(Learning):
    """LB-GP-UCB: each round is decided by the lengthscale with the smallest regret bound so far.

    Ziomek, Adachi & Osborne 2024, Algorithm 1: candidates q(i) = theta_0 e^{-i/d}, longest first. Each candidate
    decides by its own posterior, and all posteriors have all observations. A refuted candidate decides no more rounds.
    The part is made by `nr.algorithms.lb_gp_ucb`.

    Attributes:
        factors: theta_j / theta_0 at the beginning, descending.
        norm_bound: N, a bound on ||f||_k for the longest lengthscale that suits f, reward units.
        noise: sub-Gaussian constant of the noise, reward units.
        growth: a in g(t) = t^a / (the least factor). Candidates down to 1 / g(t) are added as t grows. 0 adds none.
        delta: probability that a candidate is wrongly refuted. Half of it is for the widths.
    """

    factors: tuple[float, ...]
    norm_bound: float
    noise: float
    growth: float = 0.0
    delta: float = 0.1

    balances: ClassVar[bool] = True

    def __post_init__(self) -> None:
        settle(
            self,
            factors=_checked_factors(self.factors),
            norm_bound=number("norm_bound", self.norm_bound, low=0.0, high=LARGEST_REWARD, open_low=True),
            noise=number("noise", self.noise, low=0.0, high=LARGEST_REWARD),
            growth=number("growth", self.growth, low=0.0, high=1.0, why="It is the power of t in g(t)."),
            delta=checked_delta(self.delta),
        )
        if list(self.factors) != sorted(self.factors, reverse=True):
            raise InvalidInput(
                f"`factors` are {shown(list(self.factors))}: they must descend, the longest lengthscale first, which "
                "is the one that is trusted most."
            )

    @property
    def fitting(self) -> None:
        """None, since nothing is fitted."""

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` for contexts, kernels without lengthscales, and kernels without a known gain rate."""
        if policy.context is not None:
            raise InvalidInput(
                "`lb_gp_ucb` (`RegretBalancing`) compares what candidates earned on average in different rounds, and "
                "under contexts the best that can be earned differs from round to round: who had the better contexts "
                "would refute the others. Leave out `context`, or take a `LengthscaleBank` for `refit` instead.",
                advice="That is `refit=nr.slots.LengthscaleBank()`.",
            )
        _check_lengths(policy)
        information_gain_rate(policy.kernel, len(sides(policy.domain, policy.context)), 2.0, source="vakili")

    def all_factors(self, columns: int, more: int) -> tuple[float, ...]:
        """Returns the factors with `more` added ones: q(i + 1) = q(i) e^{-1/d}."""
        return self.factors + tuple(self.factors[-1] * math.exp(-i / columns) for i in range(1, more + 1))

    def added_by(self, t: int, columns: int) -> int:
        """Returns how many candidates are added by round t: all q(i) >= theta_0 / g(t) (line 14)."""
        room = MOST - len(self.factors)
        return min(math.floor(self.growth * math.log(max(t, 1)) * columns + 1e-9), room)

    def bank(self, kernel: Kernel, columns: int, more: int, noise_variance: float | None) -> Bank:  # noqa: ARG002
        """Returns a candidate for each factor."""
        factors = self.all_factors(columns, more)
        return Bank(tuple(with_factor(kernel, factor, columns) for factor in factors), factors, None)

    def of_constraint(self, *, warp: str, given: bool) -> LengthscaleBank:  # noqa: ARG002
        """Returns a bank that averages the same candidates, since constraints are not balanced."""
        return LengthscaleBank(factors=self.factors)
