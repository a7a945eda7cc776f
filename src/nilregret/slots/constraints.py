"""In which sense constraints must hold, where each has a posterior of its own: every round, on average, or safely.

| symbol | name | meaning | shape |
|---|---|---|---|
| g_j | `trial.constraints` | constraint values, satisfied when <= 0 | (m,) |
| U, L | `envelope.upper`, `envelope.lower` | bounds of one g_j | (n,) |
| s_j | `view.limit_sizes` | prior standard deviation of g_j, what violations are compared by | (m,) |
| phi | `books.prices` | what a violation costs in this round, reward units per unit of g_j | (m,) |

A channel is one function that is learned: the reward is channel 0, constraint j channel j. The worlds differ in what
they make of the bounds of the channels; nothing that was learned is weighed anew.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from .._utils.checks import (
    LARGEST_REWARD,
    LARGEST_VARIANCE,
    Array,
    frozen,
    integer,
    many,
    number,
    one_of,
    settle,
    shown,
)
from .._utils.errors import InvalidInput
from .._utils.serialize import described
from ..domains.domain import Domain
from ..domains.search.acquisition import AcquisitionFunction
from ..kernels import Kernel, check_kernel
from ..storage.record import Trial
from .acquisition import PointView, TableView
from .base import Combination, Part
from .constraint_state import DualState, Expected
from .envelope import Confidence, ConstantWidth, Envelope
from .feasibility import less, log_probability, moved_inside, penalised, violation, with_probability
from .objective import MOST_CONSTRAINTS
from .pending import Hallucinated, Ignored, Pending

LEAST_RIDGE = 1e-6  # of the prior variance, where constraint values have no noise


@dataclass(frozen=True, kw_only=True)
class Constraints(Part):
    """m constraints, each with a posterior of its own.

    Attributes:
        count: m, how many constraint values each trial has.
        kernel: of every g_j, or a tuple of m; None for the policy's.
        noise: standard deviation of the constraint values' noise, in units of g; one number or a tuple of m; None for
            the policy's. 0 where they are exact.
        regularization: lambda of every g_j, likewise; None for noise^2, or a millionth of the prior variance if that is
            more; where `noise` is not given either, the policy's.
        prior_mean: what a constraint value is expected to be before anything is seen, likewise. 0, the border, unless
            given.
        confidence: which bounds hold for each g_j, each with its own delta; None for the policy's, with the noise and
            the lambda of g_j. A number is a constant multiple of the standard deviation, for which nothing is proved.
        pending: what a value of g_j counts as that has not been told, a part, or a tuple of m, in units of g. None: for
            the variance alone, where unanswered trials count as anything in the policy.
            `nr.slots.Imputed(minimum=-1.0)`
            where nothing is ever told of those worth -1: a discount that is only given with a purchase.
    """

    count: int = 1
    kernel: Kernel | tuple[Kernel, ...] | None = None
    noise: float | tuple[float, ...] | None = None
    regularization: float | tuple[float, ...] | None = None
    prior_mean: float | tuple[float, ...] = 0.0
    confidence: Confidence | None = None
    pending: Pending | tuple[Pending | None, ...] | None = None

    on_average: ClassVar[bool] = False  # whether some rounds may make up for others
    by_sign: ClassVar[bool] = False  # whether it matters only where bounds lie above 0, and not how far
    hallucinates: ClassVar[bool] = True  # whether unanswered trials may count for the variance of a constraint

    def __post_init__(self) -> None:
        why = "It is the number of constraint values of each trial."
        settle(self, count=integer("count", self.count, low=1, high=MOST_CONSTRAINTS, why=why))
        each = {"low": 0.0, "high": LARGEST_REWARD}
        settle(
            self,
            noise=None if self.noise is None else self._numbers("noise", self.noise, **each),
            prior_mean=self._numbers("prior_mean", self.prior_mean, low=-LARGEST_REWARD, high=LARGEST_REWARD),
        )
        if self.regularization is not None:
            ridge = self._numbers("regularization", self.regularization, low=0.0, high=LARGEST_VARIANCE, open_low=True)
            object.__setattr__(self, "regularization", ridge)
        if self.kernel is not None:
            for kernel in self._listed("kernel", self.kernel):
                check_kernel("kernel", kernel)
            object.__setattr__(self, "kernel", self._each("kernel", self.kernel))
        self._check_pending()
        given: Any = self.confidence
        if isinstance(given, int | float | np.integer | np.floating) and not isinstance(given, bool):
            width = number("confidence", given, low=0.0, high=LARGEST_REWARD, why="It multiplies the std.")
            object.__setattr__(self, "confidence", ConstantWidth(value=width))
        elif not isinstance(given, Confidence | None):
            raise InvalidInput(
                f"`confidence` is {shown(given)}: it must be a part that makes bounds, or a number, which multiplies "
                "the standard deviation.",
                advice="Such parts are in `nilregret.slots.envelope`.",
            )

    def _check_pending(self) -> None:
        if self.pending is None:
            return
        for part in self._listed("pending", self.pending):
            if not isinstance(part, Pending | None) or (part is not None and part.in_time):
                raise InvalidInput(
                    f"`pending` is {shown(part)}: it must be a part that does not look at the clock, in units of the "
                    "constraint.",
                    advice="Such as `nr.slots.Imputed(minimum=-1.0)`.",
                )
        if not self.hallucinates:
            raise InvalidInput(
                f"`{type(self).__name__}` certifies by answers alone: leave `pending` out, or take `EveryRound`."
            )
        object.__setattr__(self, "pending", self._each("pending", self.pending))

    def pending_of(self, policy: Combination, j: int) -> Pending:
        """What a value of constraint j, counted from 0, counts as that has not been told.

        What fails says nothing of a constraint, and what stands in for rewards is in other units: of a policy's own
        rule only whether unanswered trials count for the variance is taken over.
        """
        part: Pending | None = one_for(self.pending, j)
        if part is not None:
            return replace(part, failed="aside")
        return Ignored() if isinstance(policy.pending, Ignored) or not self.hallucinates else Hallucinated()

    def _listed(self, name: str, value: Any) -> list[Any]:
        """One for each constraint, or the one for all."""
        if not isinstance(value, tuple | list):
            return [value]
        if len(value) != self.count:
            raise InvalidInput(
                f"`{name}` has {many(len(value), 'entry')} for {many(self.count, 'constraint')}: give one for all, or "
                "one for each."
            )
        return list(value)

    def _each(self, name: str, value: Any) -> Any:
        listed = self._listed(name, value)
        return tuple(listed) if isinstance(value, tuple | list) else listed[0]

    def _numbers(self, name: str, value: Any, **limits: Any) -> Any:
        listed = [number(name, each, **limits) for each in self._listed(name, value)]
        return tuple(listed) if isinstance(value, tuple | list) else listed[0]

    def check(self, policy: Combination) -> None:
        """Refuse what treats constraints a second time."""
        super().check(policy)
        if policy.objective.constraints:
            raise InvalidInput(
                f"`{type(policy.objective).__name__}` charges for violations in what is learned, and "
                f"`{type(self).__name__}` gives each constraint a posterior of its own: one of the two, not both. With "
                "`constraints` take any other algorithm, such as `gp_ucb`."
            )
        if self.confidence is None and policy.confidence.recent is not None:
            raise InvalidInput(
                f"The bounds of `{type(policy.confidence).__name__}` are for censored rewards, and constraint values "
                f"are not censored: say which hold for them, `{type(self).__name__}(confidence=...)`."
            )

    @property
    def movable(self) -> bool:
        """Whether a search may end beside the point that is `placed`, where that was tried before."""
        return False

    def of_channel(self, policy: Combination, j: int) -> dict[str, Any]:
        """What constraint j, counted from 0, has of its own, by the slots of a policy."""
        kernel, noise = self.kernel_of(policy, j), policy.noise if self.noise is None else one_for(self.noise, j)
        own = self.regularization is not None or not self.takes_ridge(policy)
        if self.regularization is not None:
            ridge = one_for(self.regularization, j)
        elif not own:
            ridge = policy.regularization
        else:
            row = np.zeros((1, policy.domain.dimension + (0 if policy.context is None else policy.context.dimension)))
            ridge = max(noise**2, LEAST_RIDGE * float(kernel.diagonal(row)[0]), LEAST_RIDGE * LEAST_RIDGE)
        confidence = policy.confidence if self.confidence is None else self.confidence
        if self.confidence is None and (own or self.noise is not None):
            unknown = self.noise is None and getattr(confidence, "noise", noise) is None
            confidence = confidence.for_noise(None if unknown else noise, ridge)
        return {
            "kernel": kernel, "noise": noise, "regularization": ridge, "prior_mean": one_for(self.prior_mean, j),
            "memory": policy.memory.keeping_ridge() if own else policy.memory, "confidence": confidence,
        }  # fmt: skip

    def kernel_of(self, policy: Combination, j: int) -> Kernel:
        """Of constraint j, counted from 0."""
        kernel: Kernel = policy.kernel if self.kernel is None else one_for(self.kernel, j)
        return kernel

    def takes_ridge(self, policy: Combination) -> bool:  # noqa: ARG002 - mostly by what is given
        """Whether lambda is the policy's, where none is given."""
        return self.noise is None

    def learns(self, j: int) -> bool:  # noqa: ARG002 - mostly it is told, or fitted with the rest
        """Whether the size of constraint j, counted from 0, is learned with caution."""
        return False

    def within(self, domain: Domain) -> Constraints:  # noqa: ARG002 - mostly there are no points in it
        """The same, with its points as a domain has them."""
        return self

    def begin(self) -> DualState:
        """Books before the first round; mostly nothing is kept in them."""
        return DualState()

    # -- what becomes of a score ---------------------------------------------------------------------------------

    @abstractmethod
    def judged(self, scores: Array, view: TableView | PointView) -> Array:
        """Scores of the n candidates of a view that may be all that is played, a fresh array `(n,)`.

        Args:
            scores: of the score `(n,)`; -inf where nothing may be played.
            view: of the round.
        """

    @abstractmethod
    def on_points(self, surface: AcquisitionFunction, view: PointView) -> AcquisitionFunction:
        """What is maximised over a continuous domain."""

    def placed(self, point: Array, surface: AcquisitionFunction, view: PointView) -> Array:  # noqa: ARG002 - mostly that one
        """The point `(d,)` that is played where the search has found this one."""
        return point

    def beside(self, score: Part) -> Constraints:  # noqa: ARG002 - mostly any
        """What judges another score than the policy's, that of a forced round."""
        return self

    def certain(self, limits: Sequence[Envelope], points: Array, books: DualState, context: Array | None) -> Array:  # noqa: ARG002
        """What is known of candidates satisfying all constraints, `(n,)`: the posterior probability of it.

        As if the constraints were independent; of the noiseless g_j.
        """
        return np.asarray(np.exp(log_probability(limits)))


@final
@described
@dataclass(frozen=True, kw_only=True)
class EveryRound(Constraints):
    """Each round should satisfy all constraints; what violates is visited only as long as it may well satisfy them.

    Optimistic feasibility (CONFIG, Xu et al. 2023): the best score among the points whose lower bounds L_j are all at
    most 0. If L <= truth <= U holds everywhere, the best feasible point is among them, so the violations of all rounds
    sum to no more than the widths U - L at the points played. Where no point is left, none satisfies the constraints
    as far as the bounds hold (`study.infeasible`), and the one that may come closest is played.

    Attributes:
        rule: "optimistic"; or "probability", for tuning: the logarithm of the probability to satisfy all constraints is
            added to the score, which must be a logarithm (`ExpectedImprovement`: the constrained EI of Schonlau et al.
            1998, in logarithms as by Ament et al. 2023), and nothing is proved. Improvements are over the best
            posterior mean of the arms, or points tried, that satisfy the constraints in the mean; the worst one, where
            none does. Forced rounds whose score is no logarithm follow "optimistic"; among places of their own
            (`CoordinateSearch`) the policy's score decides.
    """

    rule: str = "optimistic"

    by_sign: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, rule=one_of("rule", self.rule, ["optimistic", "probability"]))

    def check(self, policy: Combination) -> None:
        """A probability goes with a score that is a logarithm."""
        super().check(policy)
        if self.rule == "probability" and not getattr(policy.score, "logarithm", False):
            raise InvalidInput(
                f"`rule` 'probability' adds a log probability, and `{type(policy.score).__name__}` is no logarithm: "
                "take `ExpectedImprovement`, or the rule 'optimistic'."
            )

    def beside(self, score: Part) -> EveryRound:
        """Optimism, where a log probability and the score would be in different units."""
        if self.rule == "probability" and not getattr(score, "logarithm", False):
            return replace(self, rule="optimistic")
        return self

    @property
    def movable(self) -> bool:
        """Where the score knows of the constraints what there is to know."""
        return self.rule == "probability"

    def judged(self, scores: Array, view: TableView | PointView) -> Array:
        """Those that may satisfy all constraints; where there are none, how close the others may come."""
        limits = view.limits()
        if self.rule == "probability":
            return np.asarray(scores + log_probability(limits))
        worst = violation(limits, view.limit_sizes)
        inside = np.where(worst <= 0.0, scores, -np.inf)
        if np.isfinite(inside).any():
            return inside
        return np.where(np.isneginf(scores), -np.inf, -worst)

    def on_points(self, surface: AcquisitionFunction, view: PointView) -> AcquisitionFunction:
        """The score less an exact penalty for lower bounds above 0, whose slopes lead along the border."""
        if self.rule == "probability":
            return with_probability(surface, view)
        return penalised(surface, view)

    def placed(self, point: Array, surface: AcquisitionFunction, view: PointView) -> Array:
        """The point, or where it is a little outside, one inside next to it."""
        return point if self.rule == "probability" else moved_inside(point, surface, view)


@final
@described
@dataclass(frozen=True, kw_only=True)
class OnAverage(Constraints):
    """The average over the run must satisfy the constraints: budgets, energy. Some rounds may make up for others.

    The best U - sum_j phi_j L_j: a Lagrangian is linear in the channels, so that a new price weighs no old trial anew.
    After each epoch of S rounds phi_j <- clip(phi_j + step * g_j, 0, most), g_j the sum of what was told in it over S:
    Shi & Eryilmaz 2022, Algorithm 3, with what was told late in the epoch in which it was told. So the average of all
    that was told is at most phi_T S / (step T) where no price was clipped at `most`. Prices fall as they rise: where
    the world gets easier they recover.

    Attributes:
        step: reward units per unit of g; the theory takes O(1 / sqrt(T / S)).
        epoch: S, rounds; 1, a step after each trial, unless given.
        most: the largest price, reward units per unit of g. A price that bounds what a violation can earn is enough;
            the smaller it is, the sooner prices recover.
    """

    on_average: ClassVar[bool] = True

    step: float = 0.01
    epoch: int = 1
    most: float = 1e3

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(
            self,
            step=number("step", self.step, low=0.0, high=LARGEST_REWARD, open_low=True),
            epoch=integer("epoch", self.epoch, low=1, why="It is the number of rounds S of an epoch."),
            most=number("most", self.most, low=0.0, high=LARGEST_REWARD, open_low=True),
        )

    def check(self, policy: Combination) -> None:
        """Prices are in reward units, and so must scores be."""
        super().check(policy)
        if not policy.score.in_rewards:
            raise InvalidInput(
                f"`OnAverage` takes prices off a score in reward units, and `{type(policy.score).__name__}` is a pure "
                "number: take an upper confidence bound or Thompson sampling, or `EveryRound`."
            )

    def begin(self) -> DualState:
        """Prices of zero."""
        return _Dual(self)

    def judged(self, scores: Array, view: TableView | PointView) -> Array:
        """Less what the most favourable violation costs."""
        lower = np.array([limit.lower for limit in view.limits()])
        return np.asarray(scores - view.books.prices @ lower)

    def on_points(self, surface: AcquisitionFunction, view: PointView) -> AcquisitionFunction:
        """Likewise."""
        return less(
            surface,
            view,
            lambda lower: np.asarray(view.books.prices @ lower),
            lambda lower: np.ones_like(lower) * view.books.prices[:, None],
        )


@final
class _Dual(DualState):
    """One price for each constraint."""

    def __init__(self, world: OnAverage) -> None:
        self._world = world
        self.prices = frozen(np.zeros(world.count))
        self._told = np.zeros(world.count)  # sum of what was told since the last step
        self._epoch = 0  # that is going on

    def hear(self, trial: Trial, expected: Callable[[], list[Expected]]) -> None:  # noqa: ARG002 - as a sum alone
        """What was told in this epoch."""
        if trial.constraints is not None:
            self._told = self._told + trial.constraints

    def due(self, rounds: int) -> bool:
        """Whether another epoch begins."""
        return rounds // self._world.epoch != self._epoch

    def advance(self, rounds: int) -> None:
        """phi_j <- clip(phi_j + step g_j, 0, most), where another epoch begins."""
        world = self._world
        if not self.due(rounds):
            return
        self._epoch = rounds // world.epoch
        self.prices = frozen(np.clip(self.prices + world.step / world.epoch * self._told, 0.0, world.most))
        self._told = np.zeros(world.count)

    def copy(self) -> _Dual:
        """An independent copy."""
        other = _Dual(self._world)
        other.prices, other._told, other._epoch = self.prices, self._told, self._epoch
        return other


def one_for(value: Any, j: int) -> Any:
    """Of constraint j, counted from 0, where there is one for all or one for each."""
    return value[j] if isinstance(value, tuple) else value
