"""Several lengthscales at once, for a kernel of which nobody knows the right one.

| symbol | name | meaning |
|---|---|---|
| theta_0 | | lengthscales of the policy's kernel |
| theta_j / theta_0 | `factors` | candidates, shares of those |
| w_j | `Lengthscales.weights` | share of a candidate, by how well it has predicted |
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, listed, number, settle, shown
from .._utils.errors import InvalidInput
from .._utils.serialize import described
from ..domains.domain import sides
from ..gp import Bank
from ..kernels import Kernel
from ..theory.rates import information_gain_rate
from .base import Combination
from .envelope import checked_delta
from .refit import Learning, Refit

LENGTHS = ("lengthscale", "angle")  # kinds of hyperparameters that are lengthscales
MOST = 64  # candidates: each is a posterior of its own
FARTHEST = 1e6
HALVES = (0.5, 0.5**0.5, 1.0, 2.0**0.5, 2.0)  # steps of sqrt 2: what lies between two candidates is close to both


class Lengthscales(NamedTuple):
    """What is believed of the lengthscales.

    Attributes:
        factors: of each candidate, what the kernel's lengthscales are multiplied with, `(m,)`.
        weights: of each, by how well it has predicted the answers, `(m,)`, adding up to 1.
        kernels: the candidates.
        leader: which one decides the next round, where one alone does (`RegretBalancing`); else None.
        eliminated: which ones decide no more, likewise.
    """

    factors: tuple[float, ...]
    weights: Array
    kernels: tuple[Kernel, ...]
    leader: int | None = None
    eliminated: tuple[int, ...] = ()


def with_factor(kernel: Kernel, factor: float, columns: int) -> Kernel:
    """The kernel with its lengthscales multiplied by a factor; all else stays, periods and scales too."""
    if factor == 1.0:
        return kernel
    known = kernel.hyperparameters(range(columns))
    steps = [math.log(factor) if parameter.kind in LENGTHS else 0.0 for parameter in known]
    return kernel.with_log_parameters(kernel.log_parameters + np.array(steps))


def _check_lengths(policy: Combination) -> None:
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
@described
@dataclass(frozen=True, kw_only=True)
class LengthscaleBank(Learning):
    """A posterior for each of several lengthscales, averaged by how well each has predicted (`posterior.averaged`).

    Bayesian model averaging on a grid: what a score sees has the mean and the standard deviation of the mixture, and
    Thompson sampling draws a lengthscale first. No lengthscale is ever settled on by a few answers, as a fit does it,
    and none is lost. A round costs as much as one of each. `study.lengthscales` shows the weights. The confidence
    bounds of a theorem are for a kernel that is given, so they are not called valid here.

    Answers are weighed by the noise that was told, also where the regulariser is another number (`igp_ucb`, `gp_ts`):
    a round then costs twice as much.

    Where f drifts (`Discount`, `DriftBank`) it is refused as fits are.

    Attributes:
        factors: what the lengthscales of the policy's kernel are multiplied with, all of them together: a geometric
            grid in steps of sqrt 2 or so, over what they may be; unless given from a half to twice.
        weight: how many answers the scale that kernel and noise say is worth, against what the answers say of both;
            None where it is known to be right.
        around: fits of the kernel, the noise and the units on their schedule; the candidates are then factors of what
            the last fit found, and weighed anew after each. None where kernel and noise are given.
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
        """Of what the bank surrounds."""
        return self.around

    def check(self, policy: Combination) -> None:
        """A kernel with lengthscales, and what a fit needs where there is one."""
        _check_lengths(policy)
        if self.around is not None:
            self.around.check(policy)

    def bank(self, kernel: Kernel, columns: int, more: int, noise_variance: float | None) -> Bank:  # noqa: ARG002 - none are added
        """A candidate for each factor."""
        kernels = tuple(with_factor(kernel, factor, columns) for factor in self.factors)
        return Bank(kernels, self.factors, self.weight, noise_variance)

    def of_constraint(self, *, warp: str, given: bool) -> LengthscaleBank:
        """The same factors of its kernel."""
        return replace(self, around=None if self.around is None else self.around.of_constraint(warp=warp, given=given))


@final
@described
@dataclass(frozen=True, kw_only=True)
class RegretBalancing(Learning):
    """A lengthscale decides each round: the one whose regret bound is smallest so far (LB-GP-UCB).

    Ziomek, Adachi & Osborne 2024, Algorithm 1: candidates q(i) = theta_0 e^{-i/d}, longest first; each decides by its
    own posterior, all posteriors have all answers. What is refuted decides no more. Made by `nr.algorithms.lb_gp_ucb`.

    Attributes:
        factors: theta_j / theta_0 from the beginning, descending.
        norm_bound: N, a bound on ||f||_k of the longest lengthscale that suits f, reward units.
        noise: sub-Gaussian constant of the noise, reward units.
        growth: a in g(t) = t^a / (the least factor): candidates down to 1 / g(t) are added as t grows; 0 for none.
        delta: probability that what is refuted is not false, half of it for the widths.
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
        """Nothing is fitted."""

    def check(self, policy: Combination) -> None:
        """A kernel with lengthscales, of which it is known how its information gain grows; and one best value."""
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
        """With so many that were added: q(i + 1) = q(i) e^{-1/d}."""
        return self.factors + tuple(self.factors[-1] * math.exp(-i / columns) for i in range(1, more + 1))

    def added_by(self, t: int, columns: int) -> int:
        """How many are added by round t: all q(i) >= theta_0 / g(t)  (line 14)."""
        room = MOST - len(self.factors)
        return min(math.floor(self.growth * math.log(max(t, 1)) * columns + 1e-9), room)

    def bank(self, kernel: Kernel, columns: int, more: int, noise_variance: float | None) -> Bank:  # noqa: ARG002 - shares decide nothing
        """A candidate for each factor."""
        factors = self.all_factors(columns, more)
        return Bank(tuple(with_factor(kernel, factor, columns) for factor in factors), factors, None)

    def of_constraint(self, *, warp: str, given: bool) -> LengthscaleBank:  # noqa: ARG002 - nothing is fitted
        """Constraints are not balanced: there the same candidates are averaged."""
        return LengthscaleBank(factors=self.factors)
