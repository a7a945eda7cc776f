"""Constraints that have a posterior each: in every round, on average, or without any violation.

| symbol | name | meaning | shape |
|---|---|---|---|
| g_j | `trial.constraints` | constraint values, satisfied when <= 0 | (m,) |
| U, L | `envelope.upper`, `envelope.lower` | bounds of one g_j | (n,) |
| s_j | `view.limit_sizes` | prior standard deviation of g_j, the unit of violations | (m,) |
| phi | `dual_state.prices` | price of a violation in this round, reward units per unit of g_j | (m,) |

An output is one function that is learned. The reward is output 0, and constraint j is output j. Constraint rules differ
only in how they use the bounds of the outputs. No observation is reweighted.

Searches stay within what is feasible under the bounds of the constraints. L_j is `limit.lower` there.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import numpy as np
import numpy.typing as npt

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
from .._utils.copying import Copyable
from .._utils.dataclass import dataclass, replace
from .._utils.process_setting import with_one_thread
from ..domains.domain import Domain, Space
from ..domains.search.boxes import AcquisitionFunction
from ..errors import InvalidInput
from ..kernels import Kernel, check_kernel
from ..serialize import description
from ..storage.record import Trial
from ..theory.fronts import LEAST_STD, hazard, log_distribution
from .base import Part, Policy
from .envelope import Confidence, ConstantWidth, DualState, Envelope, Expected
from .objective import MOST_CONSTRAINTS
from .pending import Hallucinated, Ignored, Pending
from .refit import Learning, with_factor
from .scores import PointView, TableView

if TYPE_CHECKING:
    from ..domains.search.cones import Cones

STIFF = 10.0  # penalty for a violation of one prior deviation, in ranges of the score
AROUND = 64  # number of points near an infeasible one among which a feasible one is sought
ANCHORS = 4  # number of these from which segments begin
STEPS_BACK = np.unique(np.concatenate([0.5 ** np.arange(24.0), np.linspace(0.0, 1.0, 17)]))[::-1, None, None]

Mask = npt.NDArray[np.bool_]


def admitted(limits: Sequence[Envelope]) -> Mask:
    """Returns a mask `(n,)` of the candidates that satisfy all constraints in the posterior mean."""
    return np.asarray(np.max([limit.mean for limit in limits], axis=0) <= 0.0)


def hopeless(limits: Sequence[Envelope]) -> Mask:
    """Returns a mask `(n,)` of the candidates that violate some constraint even at its lower bound."""
    return np.asarray(np.max([limit.lower for limit in limits], axis=0) > 0.0)


def violation(limits: Sequence[Envelope], sizes: Array) -> Array:
    """Returns max_j L_j / s_j, `(n,)`."""
    return np.asarray(np.max([limit.lower / size for limit, size in zip(limits, sizes, strict=True)], axis=0))


def log_probability(limits: Sequence[Envelope]) -> Array:
    """Returns sum_j log P(g_j <= 0), `(n,)`."""
    return np.asarray(sum(log_distribution(-limit.mean / np.maximum(limit.std, LEAST_STD)) for limit in limits))


def minus_charge(
    surface: AcquisitionFunction, view: PointView, charge: Callable[[Array], Array],
    slopes: Callable[[Array], Array], cones: Cones | None = None,
) -> AcquisitionFunction:  # fmt: skip
    """Returns an acquisition function minus a charge `(n,)` for lower bounds `(m, n)`.

    `slopes` gives the derivatives of the charge in the bounds, `(m, n)`. Bounds by slopes narrow those of posteriors.
    """

    def values(points: Array) -> Array:
        lower = np.array([limit.lower for limit in view.limits(points)])
        lower = lower if cones is None else cones.narrowed(points, lower)
        return np.asarray(surface.values(points) - charge(lower))

    def rises(points: Array) -> tuple[Array, Array]:
        scores, gradients = surface.slopes(points)
        found = view.limit_slopes(points)
        lower = np.array([limit.lower for limit, _, _ in found])
        each = [by_mean - (limit.width or 0.0) * by_std for limit, by_mean, by_std in found]
        if cones is not None:
            lower, each = cones.narrowed_slopes(points, lower, each)
        for by_lower, slope in zip(each, slopes(lower), strict=True):
            gradients = gradients - slope[:, None] * by_lower
        return np.asarray(scores - charge(lower)), gradients

    return AcquisitionFunction(values, rises) if view.limits_symmetric else view.without_slopes(values)


def penalised(surface: AcquisitionFunction, view: PointView, cones: Cones | None = None) -> AcquisitionFunction:
    """Returns the acquisition function minus an exact penalty for violations, steeper than any likely score."""
    # The last digits of scores depend on rounding. A power of two removes that dependence.
    scores = view.of_candidates(surface)
    finite = scores[np.isfinite(scores)]
    extent = float(np.ptp(finite)) if len(finite) else 1.0
    price = STIFF * 2.0 ** float(np.ceil(np.log2(max(extent, 1e-100)))) / view.limit_sizes

    def charge(lower: Array) -> Array:
        return np.asarray(price @ np.maximum(lower, 0.0))

    return minus_charge(surface, view, charge, lambda lower: price[:, None] * (lower > 0.0), cones)


def with_probability(surface: AcquisitionFunction, view: PointView) -> AcquisitionFunction:
    """Returns the acquisition function plus the log probability that all constraints are satisfied."""

    def values(points: Array) -> Array:
        return np.asarray(surface.values(points) + log_probability(view.limits(points)))

    def rises(points: Array) -> tuple[Array, Array]:
        scores, gradients = surface.slopes(points)
        for limit, by_mean, by_std in view.limit_slopes(points):
            std = np.maximum(limit.std, LEAST_STD)
            z = -limit.mean / std
            scores = scores + log_distribution(z)
            gradients = gradients + (hazard(z) / std)[:, None] * (-by_mean - z[:, None] * by_std)
        return scores, gradients

    return AcquisitionFunction(values, rises, surface.resolution)


def between(point: Array, anchors: Array, view: PointView) -> Array:
    """Returns points `(k, d)` on the segments from a point to anchors, ever closer to the point.

    The anchors are among them.
    """
    rows = (point + STEPS_BACK * (anchors - point)).reshape(-1, len(point))
    return view.domain.snap(rows) if isinstance(view.domain, Space) else rows


def nearest(point: Array, points: Array, view: PointView, count: int) -> Array:
    """Returns the points that are nearest to a given point, in units of the sides."""
    far = np.linalg.norm((points - point) / view.sides, axis=1)
    return np.asarray(points[np.argsort(far, kind="stable")[:count]])


def moved_inside(point: Array, surface: AcquisitionFunction, view: PointView) -> Array:
    """Returns the point, or the best point on segments to points where no lower bound is above 0.

    Returns the point itself if there is no such point.
    """

    def within(points: Array) -> Array:
        return points[violation(view.limits(points), view.limit_sizes) <= 0.0]

    if len(within(point[None])):
        return point
    everywhere = np.concatenate([view.tried(), view.points])
    inside = within(nearest(point, everywhere, view, AROUND))
    inside = inside if len(inside) else within(everywhere)
    if not len(inside):
        return point
    rows = within(between(point, nearest(point, inside, view, ANCHORS), view))
    return np.asarray(rows[int(surface.values(rows).argmax())].copy()) if len(rows) else point


def risk(limits: Sequence[Envelope]) -> Array:
    """Returns sum_j P(g_j > 0), `(n,)`."""
    from scipy.special import ndtr  # slow to import, and few rules need it

    return np.asarray(sum(ndtr(limit.mean / np.maximum(limit.std, LEAST_STD)) for limit in limits))


LEAST_RIDGE = 1e-6  # share of the prior variance, used as lambda where constraint values have no noise


@dataclass(frozen=True, kw_only=True)
class Constraints(Part):
    """m constraints, each with a posterior of its own.

    Attributes:
        count: m, the number of constraint values of each trial.
        kernel: kernel of every g_j, or a tuple of m kernels. None uses the policy's kernel.
        noise: standard deviation of the noise of the constraint values in units of g, one number or a tuple of m. 0 is
            for exact values. None uses the policy's noise.
        regularization: lambda of every g_j, or a tuple of m. None uses noise^2, but at least a millionth of the prior
            variance. If `noise` is None too, lambda is the policy's.
        prior_mean: prior mean of every g_j, or a tuple of m. The default 0 is the border.
        confidence: bounds of each g_j, each with its own delta. None uses the policy's bounds with the noise and lambda
            of g_j. A number is a constant multiple of the standard deviation, for which nothing is proved.
        pending: imputation of constraint values that have not come, a part or a tuple of m, in units of g. None changes
            the variance alone, if the policy imputes pending trials at all. `nr.slots.Imputed(minimum=-1.0)` suits a
            discount that is given only with a purchase, whose value without one is -1.
    """

    count: int = 1
    kernel: Kernel | tuple[Kernel, ...] | None = None
    noise: float | tuple[float, ...] | None = None
    regularization: float | tuple[float, ...] | None = None
    prior_mean: float | tuple[float, ...] = 0.0
    confidence: Confidence | None = None
    pending: Pending | tuple[Pending | None, ...] | None = None

    on_average: ClassVar[bool] = False  # True if some rounds may make up for others
    by_sign: ClassVar[bool] = False  # True if only the sign of the bounds matters
    certifies: ClassVar[bool] = False  # True if nothing may be played that is not `certain`, not even once more
    hallucinates: ClassVar[bool] = True  # True if pending trials may shrink the variance of a constraint

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
            settle(self, regularization=ridge)
        if self.kernel is not None:
            for kernel in self._listed("kernel", self.kernel):
                check_kernel("kernel", kernel)
            settle(self, kernel=self._each("kernel", self.kernel))
        self._check_pending()
        given: Any = self.confidence
        if isinstance(given, int | float | np.integer | np.floating) and not isinstance(given, bool):
            width = number("confidence", given, low=0.0, high=LARGEST_REWARD, why="It multiplies the std.")
            settle(self, confidence=ConstantWidth(value=width))
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
        settle(self, pending=self._each("pending", self.pending))

    @property
    def fitted(self) -> bool:
        """True unless kernel and noise must be given, since they certify."""
        return True

    @property
    def objectives(self) -> int:
        """k: outputs 1 to k - 1 are objectives, and those after them are constraints."""
        return 1

    @property
    def reference(self) -> tuple[float, ...] | None:
        """The worst values that count, from which the volume of a front is measured."""
        return None

    @property
    def goals(self) -> tuple[str, ...] | None:
        """The goal of each objective, or None if the goal of the study says all."""
        return None

    def with_goals(self, goals: Sequence[str]) -> Constraints:  # noqa: ARG002
        """Returns this rule with the goal of each of several objectives."""
        return self

    def pending_of(self, policy: Policy, j: int) -> Pending:
        """Returns the imputation for a pending value of constraint j, counted from 0.

        A failed trial tells nothing about a constraint, and the policy's imputed rewards are in other units. So only
        whether pending trials shrink the variance is taken from the policy.
        """
        part: Pending | None = one_for(self.pending, j)
        if part is not None:
            return replace(part, failed="aside")
        return Ignored() if isinstance(policy.pending, Ignored) or not self.hallucinates else Hallucinated()

    def _listed(self, name: str, value: Any) -> list[Any]:
        """Returns a list with one value for each constraint, or with the one value for all."""
        if not isinstance(value, tuple | list):
            return [value]
        if len(value) != self.count:
            raise InvalidInput(
                f"`{name}` has {many(len(value), 'entry')} for {many(self.count, 'constraint')}: give one for all, or "
                "one for each, or another `count`."
            )
        return list(value)

    def _each(self, name: str, value: Any, checked: Callable[[Any], Any] = lambda each: each) -> Any:
        """Returns a tuple with one checked value for each constraint, or the one value for all."""
        listed = [checked(each) for each in self._listed(name, value)]
        return tuple(listed) if isinstance(value, tuple | list) else listed[0]

    def _numbers(self, name: str, value: Any, **limits: Any) -> Any:
        return self._each(name, value, lambda each: number(name, each, **limits))

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if the objective already charges for violations, or if bounds are for rewards only."""
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
        """True if a search may end next to a point from `placed` that was tried before."""
        return False

    def of_channel(self, policy: Policy, j: int) -> dict[str, Any]:
        """Returns the parts that constraint j, counted from 0, has of its own, by slot of a policy."""
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

    def refit_of(self, refit: Learning, j: int) -> Learning:  # noqa: ARG002
        """Returns the fits of constraint j, counted from 0. A given noise is the reward's, unless theirs is given."""
        return refit.of_constraint(warp="signed-log" if self.by_sign else "none", given=self.noise is not None)

    def turned(self) -> Constraints:
        """Returns the rule for objectives that are all maximised."""
        return self

    def kernel_of(self, policy: Policy, j: int) -> Kernel:
        """Returns the kernel of constraint j, counted from 0."""
        kernel: Kernel = policy.kernel if self.kernel is None else one_for(self.kernel, j)
        return kernel

    def takes_ridge(self, policy: Policy) -> bool:  # noqa: ARG002
        """Returns True if lambda is the policy's unless it is given."""
        return self.noise is None

    def learns(self, j: int) -> bool:  # noqa: ARG002
        """Returns True if the scale of constraint j, counted from 0, is learned cautiously."""
        return False

    def within(self, domain: Domain) -> Constraints:  # noqa: ARG002
        """Returns the same constraints with their points encoded by the domain."""
        return self

    def begin(self, policy: Policy) -> DualState:  # noqa: ARG002
        """Returns the state before the first round. Most rules have an empty state."""
        return DualState()

    @abstractmethod
    def judged(self, scores: Array, view: TableView | PointView) -> Array:
        """Returns the scores of the n candidates of a view under the constraints, a fresh array `(n,)`.

        Args:
            scores: scores without constraints `(n,)`, -inf where a candidate may not be played.
            view: the round, in which only these candidates may be played.
        """

    def added(self, view: TableView | PointView) -> Array | None:  # noqa: ARG002
        """Returns what `judged` adds to scores, `(n,)`, -inf if a point is ruled out, or None if it is no such sum."""
        return None

    @abstractmethod
    def on_points(self, surface: AcquisitionFunction, view: PointView) -> AcquisitionFunction:
        """Returns the acquisition function under the constraints, which is maximised over a continuous domain.

        Args:
            surface: acquisition function of the score alone.
            view: the round, with bounds of the constraints at any points.
        """

    def placed(self, point: Array, surface: AcquisitionFunction, view: PointView) -> Array:  # noqa: ARG002
        """Returns the point that is played, `(d,)`.

        Args:
            point: the point that the search has found, `(d,)`.
            surface: acquisition function of the score alone.
            view: the round.
        """
        return point

    def beside(self, score: Part) -> Constraints:  # noqa: ARG002
        """Returns the rule for another score than the policy's, as in forced rounds."""
        return self

    def certain(self, limits: Sequence[Envelope], points: Array, state: DualState, context: Array | None) -> Array:  # noqa: ARG002
        """Returns the posterior probability that each candidate satisfies all constraints, `(n,)`.

        The constraints are treated as independent, and the g_j are noiseless.

        Args:
            limits: bounds of each constraint at the candidates.
            points: the candidates, `(n, d)`.
            state: run-time state of this rule.
            context: context of the trial, or None.
        """
        return np.asarray(np.exp(log_probability(limits)))


@final
@description(frozen=True, kw_only=True)
class EveryRound(Constraints):
    """Each round should satisfy all constraints. A point is played only if its bounds allow that it does.

    Optimistic feasibility (CONFIG, Xu et al. 2023) plays the best score among the points whose lower bounds L_j are all
    at most 0. If L <= truth <= U holds everywhere, the best feasible point is one of these. The violations of all
    rounds then sum to at most the widths U - L at the points played. If no such point is left, the constraints are
    infeasible as far as the bounds hold (`study.infeasible`). The point with the smallest possible violation is then
    played.

    Attributes:
        rule: "optimistic", or "probability" for tuning. "probability" adds the log probability of satisfying all
            constraints to the score. The score must then be a logarithm (`ExpectedImprovement`, which gives the
            constrained EI of Schonlau et al. 1998 in the logarithms of Ament et al. 2023). Nothing is proved for
            "probability". Improvements are over the best posterior mean of the arms, or points tried, that satisfy the
            constraints in the mean. If there are none, they are over the worst posterior mean. Forced rounds whose
            score is no logarithm follow "optimistic". Among places of their own (`CoordinateSearch`) the policy's score
            decides.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1, constraints=nr.EveryRound(noise=0.05))
    >>> study = nr.Study(policy)
    >>> _ = study.add([0.2], 1.0, constraints=[-0.5])
    >>> study.feasible([[0.2]]).round(2)
    array([1.])
    """

    rule: Literal["optimistic", "probability"] = "optimistic"

    by_sign: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, rule=one_of("rule", self.rule, ["optimistic", "probability"]))

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if a log probability would be added to a score that is no logarithm."""
        super().check(policy)
        if self.rule == "probability" and not getattr(policy.score, "logarithm", False):
            raise InvalidInput(
                f"`rule` 'probability' adds a log probability, and `{type(policy.score).__name__}` is no logarithm: "
                "take `ExpectedImprovement`, or the rule 'optimistic'."
            )

    def beside(self, score: Part) -> EveryRound:
        """Returns the optimistic rule if a log probability would not have the units of the score."""
        if self.rule == "probability" and not getattr(score, "logarithm", False):
            return replace(self, rule="optimistic")
        return self

    @property
    def movable(self) -> bool:
        """True if the score contains all that is known about the constraints."""
        return self.rule == "probability"

    def judged(self, scores: Array, view: TableView | PointView) -> Array:
        """Returns the scores of the points that may be feasible, or minus the violations if there are none."""
        added = self.added(view)
        if self.rule == "probability" or np.isfinite(scores + added).any():
            return np.asarray(scores + added)
        return np.where(np.isneginf(scores), -np.inf, -violation(view.limits(), view.limit_sizes))

    def added(self, view: TableView | PointView) -> Array:
        """Returns the log probability of all constraints, or 0 for points that may be feasible and -inf for others."""
        limits = view.limits()
        if self.rule == "probability":
            return log_probability(limits)
        return np.where(violation(limits, view.limit_sizes) <= 0.0, 0.0, -np.inf)

    def on_points(self, surface: AcquisitionFunction, view: PointView) -> AcquisitionFunction:
        """Returns the score minus an exact penalty for lower bounds above 0.

        Its gradients lead along the border.
        """
        if self.rule == "probability":
            return with_probability(surface, view)
        return penalised(surface, view)

    def placed(self, point: Array, surface: AcquisitionFunction, view: PointView) -> Array:
        """Returns the point, or a nearby point inside if it is slightly infeasible."""
        return point if self.rule == "probability" else moved_inside(point, surface, view)


@final
@description(frozen=True, kw_only=True)
class OnAverage(Constraints):
    """The average over the run must satisfy the constraints, as for budgets or energy. Some rounds may offset others.

    Each round plays the best U - sum_j phi_j L_j. This Lagrangian is linear in the outputs, so a new price reweights no
    old trial. After each epoch of S rounds phi_j <- clip(phi_j + step * g_j, 0, most). Here g_j is the sum of the
    values that came in the epoch, divided by S (Shi & Eryilmaz 2022, Algorithm 3). Late values count in the epoch in
    which they come. The average of all observed values is at most phi_T S / (step T), if no price was clipped at
    `most`. Prices fall as they rise, so they recover when the constraints get easier.

    Attributes:
        step: reward units per unit of g. The theory takes O(1 / sqrt(T / S)).
        epoch: S, rounds. The default 1 takes a step after each trial.
        most: largest price, reward units per unit of g. It should bound the reward that a violation can earn. Prices
            recover sooner from a smaller bound.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1, constraints=nr.OnAverage(step=0.5))
    >>> study = nr.Study(policy)
    >>> _ = study.add([0.2], 1.0, constraints=[0.4])
    >>> study.multipliers.round(2)  # the price has risen by step times the value
    array([0.2])
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

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if the score is not in reward units, as prices are."""
        super().check(policy)
        if not policy.score.in_rewards:
            raise InvalidInput(
                f"`OnAverage` takes prices off a score in reward units, and `{type(policy.score).__name__}` is a pure "
                "number: take an upper confidence bound or Thompson sampling, or `EveryRound`."
            )

    def begin(self, policy: Policy) -> DualState:  # noqa: ARG002
        """Returns a state with prices of zero."""
        return _Prices(self)

    def judged(self, scores: Array, view: TableView | PointView) -> Array:
        """Returns the scores minus the prices of the lower bounds."""
        return np.asarray(scores + self.added(view))

    def added(self, view: TableView | PointView) -> Array:
        """Returns minus the prices of the lower bounds."""
        return np.asarray(-view.dual_state.prices @ np.array([limit.lower for limit in view.limits()]))

    def on_points(self, surface: AcquisitionFunction, view: PointView) -> AcquisitionFunction:
        """Returns the score minus the prices of the lower bounds."""
        return minus_charge(
            surface,
            view,
            lambda lower: np.asarray(view.dual_state.prices @ lower),
            lambda lower: np.ones_like(lower) * view.dual_state.prices[:, None],
        )


@final
class _Prices(Copyable, DualState):
    """Dual prices, one for each constraint."""

    def __init__(self, rule: OnAverage) -> None:
        self._rule = rule
        self.prices = frozen(np.zeros(rule.count))
        self._sum = np.zeros(rule.count)  # sum of the values since the last step
        self._epoch = 0  # current epoch

    def hear(self, trial: Trial, expected: Callable[[], list[Expected]]) -> None:  # noqa: ARG002
        """Adds the constraint values of a trial to the sum of the epoch."""
        if trial.constraints is not None:
            self._sum = self._sum + trial.constraints

    def due(self, rounds: int) -> bool:
        """Returns True if another epoch begins."""
        return rounds // self._rule.epoch != self._epoch

    def advance(self, rounds: int) -> None:
        """Sets phi_j <- clip(phi_j + step g_j, 0, most) if another epoch begins."""
        rule = self._rule
        if not self.due(rounds):
            return
        self._epoch = rounds // rule.epoch
        self.prices = frozen(np.clip(self.prices + rule.step / rule.epoch * self._sum, 0.0, rule.most))
        self._sum = np.zeros(rule.count)


def objective_names(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """Returns the names of several objectives, which are numbered if none are given."""
    return tuple(names) if names else tuple(f"objective {i + 1}" for i in range(count))


def one_for(value: Any, j: int) -> Any:
    """Returns the value of constraint j, counted from 0, from one value for all or a tuple."""
    return value[j] if isinstance(value, tuple) else value


SIZES = 2.0 ** np.arange(-2.0, 2.5, 0.5)
FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0)
SHARES = np.array([0.02, 0.06, 0.27, 0.5, 0.15])  # prior probability of each factor, highest near the given lengthscale
SHORT, LARGE = 0.1, 0.9  # quantiles of theta and of s
LEAST_SHARE = 1e-3  # share of r, the noise of exact values


@with_one_thread
def cautious_scale(kernel: Kernel, rows: Array, means: Array, counts: Array, *, noise: float) -> tuple[float, float]:
    """Returns a short lengthscale, as a factor of the kernel's, and a large standard deviation of g.

    Args:
        kernel: kernel with prior variance 1.
        rows: distinct (context, point), `(u, c + d)`.
        means: y, `(u,)`.
        counts: number of values in each average, `(u,)`.
        noise: standard deviation of a value.
    """
    typical = max(math.sqrt(float(means @ means) / len(means)), noise)
    if typical == 0.0:
        return min(FACTORS), 0.0
    # Steps keep the estimate the same when values change little.
    typical = 2.0 ** (0.5 * math.ceil(2.0 * math.log2(typical)))
    sizes = typical * SIZES
    roots = np.sqrt(counts) / max(noise, LEAST_SHARE * typical)
    log_w = np.zeros((len(FACTORS), len(sizes)))
    for i, factor in enumerate(FACTORS):
        each = with_factor(kernel, factor, rows.shape[1])
        spectrum, vectors = np.linalg.eigh(roots[:, None] * each(rows, rows) * roots)
        ratios = 1.0 + sizes[:, None] ** 2 * np.maximum(spectrum, 0.0)  # variances of the values over that of the noise
        along = vectors.T @ (roots * means)
        log_w[i] = math.log(SHARES[i]) - 0.5 * (np.log(ratios).sum(axis=1) + (along**2 / ratios).sum(axis=1))
    w = np.exp(log_w - log_w.max())
    short = int(np.searchsorted(np.cumsum(w.sum(axis=1)), SHORT * w.sum()))
    large = int(np.searchsorted(np.cumsum(w[short]), LARGE * w[short].sum()))
    return FACTORS[short], float(sizes[min(large, len(sizes) - 1)])
