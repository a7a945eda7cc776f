"""Scores: the value of a candidate, which the search maximises, made from a view of the round.

| symbol | name | meaning | shape |
|---|---|---|---|
| mu, sigma | `envelope.mean`, `envelope.std` | posterior of f | (n,) |
| f_best | `incumbent` | value that an improvement exceeds, reward units | scalar |
| xi | `margin` | least improvement, reward units | scalar |
| z | | (mu - f_best - xi) / sigma | (n,) |
| phi, Phi | | density and distribution function of the standard normal | |
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import LARGEST_REWARD, Array, IndexArray, flag, frozen, number, one_of, settle
from .._utils.copying import take_back
from .._utils.dataclass import dataclass, replace
from .._utils.randomness import Randomness
from ..domains.domain import Arms, Domain
from ..domains.search.arms import best_on_grid
from ..domains.search.boxes import AcquisitionFunction
from ..errors import InvalidInput
from ..serialize import description
from ..theory.fronts import FAR_OUT, LEAST_STD, LOG_SQRT_2PI, MOST, log_distribution, log_h
from .base import Part, Policy
from .envelope import DualState, Envelope

if TYPE_CHECKING:
    from .propensities import DrawnLine, IndependentNormals, ScoreLaw

Mask = npt.NDArray[np.bool_]

LOG_RESOLUTION = 0.003  # nats: a third of a percent of an expected improvement is not worth another step


class Pointwise(Protocol):
    """A score of the bounds at one point, with derivatives in mean and standard deviation if these are known."""

    def __call__(self, envelope: Envelope, incumbent: float | None = None) -> Array:
        """Returns the scores `(n,)`."""

    def with_partials(self, envelope: Envelope, incumbent: float | None = None) -> tuple[Array, Array, Array] | None:
        """Returns the scores and their derivatives in mean and in standard deviation, each `(n,)`, or None."""


class Known(NamedTuple):
    """The objectives at the points that were tried.

    Attributes:
        points: distinct points of answered and open trials, `(n, d)`.
        means: posterior mean of each objective there, `(n, k)`, in the units of the models.
        feasible: whether they satisfy all constraints in the posterior mean, `(n,)`.
        observed: average of the answers at each point, `(n, k)`, in the same units, or nan before the first one.
    """

    points: Array
    means: Array
    feasible: Mask
    observed: Array


class AcquisitionContext(ABC):
    """A round as a score sees it, under the context of the trial. Rewards are in the user's units.

    Attributes:
        round: t, counted from 1 since the last restart.
        width: multiplier of the standard deviation in draws: that of the score (`Score.own_width`), else of the bounds.
            None if the bounds have another form.
        randomness: random numbers of the trial. `randomness.draws` is made at its first use.
        norm_growth: ratio of the current guess of the norm to the first guess, where the norm is guessed.
        points: the points that may be played, `(n, d)`. On a continuous domain these are the candidates with which the
            search begins. Acquisition values at these candidates are cheap.
        context: context of the trial, or None.
        dual_state: run-time state of the constraint rule, such as prices.
        limit_sizes: prior standard deviation of each constraint in its units, `(m,)`.
    """

    norm_growth: float
    round: int
    width: float | None
    randomness: Randomness
    points: Array
    context: Array | None = None
    dual_state: DualState = DualState()  # Without constraints there is no state.
    limit_sizes: Array = frozen(np.zeros(0))

    @abstractmethod
    def limits(self) -> list[Envelope]:
        """Returns the bounds of each constraint at the points that may be played, `(n,)` each.

        The list is empty without constraints.
        """

    @abstractmethod
    def objectives(self) -> list[Envelope]:
        """Returns the bounds of each objective at the points that may be played, fresh arrays `(n,)` each.

        All objectives are maximised, in the units of their models less their centres.
        """

    def known_objectives(self) -> Known:
        """Returns the objectives at the points that were tried. There are none before the first answer."""
        return Known(self.points[:0], np.zeros((0, 1)), np.zeros(0, dtype=bool), np.zeros((0, 1)))

    @property
    def given_reference(self) -> Array | None:
        """The reference point of the rule, `(k,)`, in the units of `objectives`, or None if none is given."""
        return None

    @abstractmethod
    def informs(self, places: IndexArray, goals: IndexArray) -> Array:
        """Returns how far a reward at some points would move each constraint at others, `(m, p, g)`.

        The unit is the prior standard deviation.

        Args:
            places: indices of the p points that would be played.
            goals: indices of the g points whose constraints would move.
        """

    @abstractmethod
    def moments(self) -> tuple[Array, Array]:
        """Returns posterior mean and standard deviation of f at the points that may be played, `(n,)` each."""

    def law_of_draw(self) -> ScoreLaw | None:
        """Returns the law of a draw from GP(mu, width^2 cov) at these points, or None if it is not known."""
        return None

    def drawn(self, width: Callable[[int, Randomness], float]) -> float:
        """Returns a random width of the round. `width` is a function of the round and its randomness."""
        return width(self.round, self.randomness)

    @abstractmethod
    def best_mean(self) -> float:
        """Returns the highest known posterior mean over the domain, or the prior mean before the first reward."""

    def best_pending_mean(self) -> float:
        """Returns the highest posterior mean at pending points that `best_mean` is not over, -inf without any."""
        return -math.inf

    @abstractmethod
    def best_reward(self) -> float:
        """Returns the highest reward observed under this very context, or the prior mean before the first."""


class TableView(AcquisitionContext):
    """A round on finitely many arms."""

    @abstractmethod
    def envelope(self) -> Envelope:
        """Returns the bounds of every arm that may be played, as fresh arrays `(n,)`."""

    def moments(self) -> tuple[Array, Array]:
        """Returns posterior mean and standard deviation of f at these arms, `(n,)` each."""
        found = self.envelope()
        return found.mean, found.std

    @abstractmethod
    def draw(self) -> Array:
        """Returns a draw from GP(mu, width^2 cov) at these arms, `(n,)`."""

    def objectives(self) -> list[Envelope]:
        """Returns the bounds of each objective at these arms."""
        return [self.envelope()]

    def objective_draws(self) -> list[Array]:
        """Returns a draw of each objective at these arms, `(n,)` each. The objectives are independent."""
        return [self.draw()]


class PointView(AcquisitionContext):
    """A round on a continuous domain, or on arms under continuous contexts.

    Attributes:
        domain: the domain that is searched.
        sides: side lengths of the domain, `(d,)`.
        limits_symmetric: True if the bounds of all constraints are multiples of the standard deviation.
    """

    domain: Domain
    sides: Array
    limits_symmetric: bool

    @abstractmethod
    def limits(self, points: Array | None = None) -> list[Envelope]:
        """Returns the bounds of each constraint at points `(n, d)`, or at the points of the view."""

    @abstractmethod
    def limit_slopes(self, points: Array) -> list[tuple[Envelope, Array, Array]]:
        """Returns for each constraint the bounds at points `(n, d)`, with gradients of mean and std.

        Each gradient has the shape `(n, d)`.
        """

    @abstractmethod
    def objectives(self, points: Array | None = None) -> list[Envelope]:
        """Returns the bounds of each objective at points `(n, d)`, or at the points of the view."""

    @abstractmethod
    def objective_slopes(self, points: Array) -> list[tuple[Envelope, Array, Array]]:
        """Returns for each objective the bounds at points `(n, d)`, with gradients of mean and std, each `(n, d)`."""

    @abstractmethod
    def objective_paths(self) -> list[AcquisitionFunction]:
        """Returns a drawn function for each objective, with its gradients. The objectives are independent."""

    @property
    @abstractmethod
    def objectives_symmetric(self) -> bool:
        """True if the bounds of all objectives are multiples of the standard deviation."""

    @abstractmethod
    def without_failed(self, points: Array, scores: Array) -> Array:
        """Returns the scores `(n,)` of points `(n, d)`, with -inf near trials that have only failed.

        The other methods of a view that return an acquisition function do so themselves.
        """

    @abstractmethod
    def of_candidates(self, surface: AcquisitionFunction) -> Array:
        """Returns the values of an acquisition function at the points of the view, `(n,)`.

        Rounding may differ between a run and its replay.
        """

    @abstractmethod
    def tried(self) -> Array:
        """Returns the distinct points of the trials that count, `(n, d)`."""

    @abstractmethod
    def at(self, points: Array) -> PointView:
        """Returns the same round in which only these points `(n, d)` may be played."""

    @abstractmethod
    def envelope(self, points: Array) -> Envelope:
        """Returns the bounds at points `(m, d)`, as fresh arrays `(m,)`."""

    @abstractmethod
    def leading(self, points: Array, factors: Array) -> Array | None:
        """Returns mean + factor * std at points `(m, d)`, exact where one may be the largest, `(m,)`.

        None if it would not be quicker than `envelope`.
        """

    def moments(self) -> tuple[Array, Array]:
        """Returns posterior mean and standard deviation of f at the points of the view, `(n,)` each."""
        found = self.envelope(self.points)
        return found.mean, found.std

    @abstractmethod
    def surface(self, score: Pointwise, incumbent: float | None) -> AcquisitionFunction:
        """Returns the acquisition function of a score of mean and standard deviation, with gradients."""

    @abstractmethod
    def path(self) -> AcquisitionFunction:
        """Returns a function drawn from GP(mu, width^2 cov), with its gradients."""

    @abstractmethod
    def without_slopes(self, values: Callable[[Array], Array]) -> AcquisitionFunction:
        """Returns the acquisition function of any function `(m, d)` -> `(m,)`.

        Gradients are finite differences, at d + 1 evaluations for each point.
        """


class Score(Part):
    """A number for each candidate, of which the largest wins."""

    in_rewards: ClassVar[bool] = True  # True in reward units, False for a pure number
    logarithm: ClassVar[bool] = False  # True for the logarithm of an expectation, to which logarithms may be added
    highest_bound: ClassVar[bool] = False  # True if it is the upper bound of f, which arms are then compared by
    draws: ClassVar[bool] = False  # True if it draws f from a view (`draw`, `path`)
    widens: ClassVar[bool] = False  # True if the score has a width of its own in place of the bounds' (`drawn_width`)
    of_front: ClassVar[bool] = False  # True if it scores the outputs of several objectives together (`Pareto`)
    cost: str | None = None  # Name of the metric by which trials are paid for, whose values `of_round` reads

    def __init_subclass__(cls) -> None:
        """Takes back `highest_bound` and `law` where the scores are overridden."""
        super().__init_subclass__()
        take_back(cls, "highest_bound", False, ("__call__", "on_table"))
        take_back(cls, "law", Score.law, ("on_table", "on_points", "drawn_width"))

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if a score draws f and the bounds are no multiple of the standard deviation."""
        if self.draws and self.own_width is None and not policy.confidence.multiple:
            raise InvalidInput(
                f"`{type(self).__name__}` widens its draws by a multiple of the standard deviation, and the bounds of "
                f"`{type(policy.confidence).__name__}` are none: give the policy a `Width`, or another score."
            )

    @property
    def own_width(self) -> float | None:
        """Multiplier of the standard deviation in the draws of `AcquisitionContext`, or None for that of the bounds."""
        return None

    @abstractmethod
    def on_table(self, view: TableView) -> Array:
        """Returns the scores of all arms, a fresh array `(N,)`.

        Args:
            view: the round, with bounds and draws at every arm.
        """

    @abstractmethod
    def on_points(self, view: PointView) -> AcquisitionFunction:
        """Returns the acquisition function over a continuous domain.

        Args:
            view: the round, with bounds and draws at any points.
        """

    def law(self, view: TableView | PointView) -> ScoreLaw | None:  # noqa: ARG002
        """Returns the joint law of the scores at the points of the view, given all but the random numbers of the trial.

        None stands for a score without random numbers, whose arms of the largest score share the choice, and for a law
        that is not known. Then nothing is said of the probability of a choice that random numbers have made.

        Args:
            view: the round on finitely many points.
        """
        return None

    def of_round(self, situation: Any) -> Score:  # noqa: ARG002
        """Returns the score of a round, which may depend on the record. It is asked for if there is a `cost`.

        Args:
            situation: a `Situation`, with the answered trials.
        """
        return self

    def incumbents(self, view: PointView, *, dense: bool) -> Array | None:  # noqa: ARG002
        """Returns points near which a search starts, too, `(n, d)`, or None for those of the best posterior means.

        Args:
            view: the round.
            dense: whether candidates are dense, so that a start costs one evaluation, and nothing is tried around it.
        """
        return None

    def drawn_width(self, t: int, randomness: Randomness) -> float | None:  # noqa: ARG002
        """Returns the random multiplier of the standard deviation in round t, or None without one."""
        return None

    def placed(self, point: Array, surface: AcquisitionFunction, view: PointView) -> Array:  # noqa: ARG002
        """Returns the point that is played, a fresh array `(d,)`.

        Args:
            point: the point that the search has found, `(d,)`.
            surface: the acquisition function that was maximised.
            view: the round.
        """
        return point.copy()


class PointwiseScore(Score):
    """A score that is a function of the bounds at one point, and possibly of an incumbent."""

    @abstractmethod
    def __call__(self, envelope: Envelope, incumbent: float | None = None) -> Array:
        """Returns the scores of n candidates, `(n,)`.

        Args:
            envelope: bounds at the candidates.
            incumbent: value of `incumbent_in`, reward units.
        """

    def partials(
        self,
        envelope: Envelope,  # noqa: ARG002
        incumbent: float | None = None,  # noqa: ARG002
    ) -> tuple[Array, Array] | None:
        """Returns the derivatives of the scores in mean and standard deviation, each `(n,)`.

        None means finite differences.
        """
        return None

    def with_partials(self, envelope: Envelope, incumbent: float | None = None) -> tuple[Array, Array, Array] | None:
        """Returns the scores and their derivatives, each `(n,)`, or None if `partials` does.

        A score that shares much between them overrides this.
        """
        found = self.partials(envelope, incumbent)
        return None if found is None else (self(envelope, incumbent), *found)

    def incumbent_in(self, view: AcquisitionContext) -> float | None:  # noqa: ARG002
        """Returns the value that candidates are compared with, reward units, or None.

        A score of improvement overrides this, for example by `return view.best_mean()`.
        """
        return None

    @final
    def on_table(self, view: TableView) -> Array:
        """Returns the scores of all arms."""
        return self(view.envelope(), self.incumbent_in(view))

    @final
    def on_points(self, view: PointView) -> AcquisitionFunction:
        """Returns the acquisition function with its gradients."""
        return view.surface(self, self.incumbent_in(view))


@final
@description(frozen=True)
class UpperConfidenceBound(PointwiseScore):
    """Optimism: the upper bound of f (Srinivas et al. 2010, eq. 6).

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1).using(score=nr.slots.UpperConfidenceBound())
    >>> nr.Study(policy, seed=0).ask().number
    0
    """

    highest_bound: ClassVar[bool] = True
    batched = True

    def __call__(self, envelope: Envelope, incumbent: float | None = None) -> Array:  # noqa: ARG002
        """Returns mu + width * sigma, `(n,)`."""
        return envelope.upper

    def partials(self, envelope: Envelope, incumbent: float | None = None) -> tuple[Array, Array] | None:  # noqa: ARG002
        """Returns 1 and the width, or None if the bounds are no multiple of the standard deviation."""
        if envelope.width is None:
            return None
        return np.ones_like(envelope.mean), np.full_like(envelope.std, envelope.width)


@final
@description(frozen=True, kw_only=True)
class RandomisedBound(Score):
    """Randomised optimism: mu + zeta_t^{1/2} sigma, IRGP-UCB (Takeno, Inatsu & Karasuyama 2023).

    zeta_t = shift + growth log t + E, with E exponential of mean 2, drawn independently in each round. A normal f(x) is
    above mu + c sigma with probability at most exp(-c^2 / 2) / 2. So max_x f(x) over N points is above max_x (mu + (2
    log(N / (2 u)))^{1/2} sigma) with probability at most u. With u uniform, 2 log(N / (2 u)) = 2 log(N / 2) + E. If all
    u-quantiles of one maximum lie below those of another, so does its mean: E max f <= E max (mu + zeta^{1/2} sigma).
    The mean regret over f, noise and zeta together is therefore at most sqrt(C_1 (2 + 2 log(N / 2)) T gamma_T). No
    bound on it with probability 1 - delta is proved. The width does not grow with t.

    The bounds that a study shows are still those of the policy's `confidence`, which hold whatever is played.

    Attributes:
        shift: 2 log(N / 2) for N arms. For a box see `nilregret.algorithms.takeno`.
        growth: 0 for arms. For a box of d dimensions 4 d, since the grid of the proof becomes finer with t^2.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1).using(score=nr.slots.RandomisedBound(shift=3.4))
    >>> nr.Study(policy, seed=0).ask().number
    0
    """

    shift: float
    growth: float = 0.0

    widens: ClassVar[bool] = True
    batched = True

    def __post_init__(self) -> None:
        why = "It is the least zeta in the first round, 2 log(N / 2) of N arms."
        settle(
            self,
            shift=number("shift", self.shift, low=-LARGEST_REWARD, high=LARGEST_REWARD, why=why),
            growth=number("growth", self.growth, low=0.0, high=LARGEST_REWARD, why="It multiplies log t."),
        )

    def drawn_width(self, t: int, randomness: Randomness) -> float:
        """Returns zeta_t^{1/2}, or 0 if zeta_t is negative, as is possible for a single arm."""
        return math.sqrt(max(self._least(t) - 2.0 * math.log(randomness.uniform), 0.0))

    def _least(self, t: int) -> float:
        return self.shift + self.growth * math.log(t)

    def law(self, view: TableView | PointView) -> DrawnLine:
        """Returns the law of the lines mu + w sigma, where P(w > x) = exp(-(x^2 - shift - growth log t) / 2)."""
        from .propensities import DrawnLine

        least = self._least(view.round)
        return DrawnLine(*view.moments(), lambda x: np.exp(0.5 * (least - x**2)), math.sqrt(max(least, 0.0)))

    def for_arms(self, before: int, after: int) -> RandomisedBound:
        """Returns the score with log(N / 2) of more arms, as often as the shift has that of so many."""
        known = math.log(before) - math.log(2.0)
        multiple = self.shift / known if known else 2.0
        return replace(self, shift=multiple * (math.log(after) - math.log(2.0)) if multiple > 0.0 else self.shift)

    def on_table(self, view: TableView) -> Array:
        """Returns mu + zeta_t^{1/2} sigma of all arms."""
        envelope = view.envelope()
        return envelope.mean + view.drawn(self.drawn_width) * envelope.std

    def on_points(self, view: PointView) -> AcquisitionFunction:
        """Returns mu + zeta_t^{1/2} sigma, with gradients."""
        return view.surface(_Widened(self.drawn_width(view.round, view.randomness)), None)


@final
@description(frozen=True, kw_only=True)
class GaussianDraws(Score):
    """Thompson sampling with a draw for each arm by itself: N(mu, (width sigma)^2), independent between arms.

    The draws cost nothing beyond mean and deviation, and the probability of a choice follows from these by quadrature.
    The bounds that a study shows are still those of the policy's `confidence`.

    Attributes:
        width: multiple of the posterior deviation. Below 1 there is less exploration than of Thompson sampling.
    """

    width: float = 0.3

    widens: ClassVar[bool] = True

    def __post_init__(self) -> None:
        settle(self, width=number("width", self.width, low=0.0, high=LARGEST_REWARD, open_low=True))

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` on continuous domains, where independent draws have no maximum."""
        super().check(policy)
        if not isinstance(policy.domain, Arms):
            raise InvalidInput(
                "`GaussianDraws` draws a value for each of finitely many arms.",
                advice="Elsewhere take `nr.slots.ThompsonSample()`.",
            )

    def law(self, view: TableView | PointView) -> IndependentNormals:
        """Returns the law of the draws."""
        from .propensities import IndependentNormals

        mean, std = view.moments()
        return IndependentNormals(mean, self.width * std)

    def on_table(self, view: TableView) -> Array:
        """Returns the draws of all arms."""
        envelope = view.envelope()
        return self._at(envelope, view.randomness.draws.standard_normal(len(envelope.mean)))

    def on_points(self, view: PointView) -> AcquisitionFunction:
        """Returns the draws at the arms that may be played."""
        normal = view.randomness.draws.standard_normal(len(view.points))  # One for each arm.

        def values(points: Array) -> Array:
            found = view.leading(points, self.width * normal)
            return self._at(view.envelope(points), normal) if found is None else found

        return view.without_slopes(values)

    def _at(self, envelope: Envelope, normal: Array) -> Array:
        return np.asarray(envelope.mean + self.width * envelope.std * normal)


@final
class _Widened:
    """The score mu + width * sigma, for a width other than that of the bounds."""

    def __init__(self, width: float) -> None:
        self._width = width

    def __call__(self, envelope: Envelope, incumbent: float | None = None) -> Array:  # noqa: ARG002
        return envelope.mean + self._width * envelope.std

    def with_partials(self, envelope: Envelope, incumbent: float | None = None) -> tuple[Array, Array, Array]:
        return self(envelope, incumbent), np.ones_like(envelope.mean), np.full_like(envelope.std, self._width)


@final
@description(frozen=True)
class PosteriorMean(PointwiseScore):
    """Exploitation alone (Srinivas et al. 2010, section 6, "mean only").

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1).using(score=nr.slots.PosteriorMean())
    >>> nr.Study(policy, seed=0).ask().number
    0
    """

    batched = True

    def __call__(self, envelope: Envelope, incumbent: float | None = None) -> Array:  # noqa: ARG002
        """Returns mu, `(n,)`."""
        return envelope.mean

    def partials(self, envelope: Envelope, incumbent: float | None = None) -> tuple[Array, Array]:  # noqa: ARG002
        """Returns 1 and 0."""
        return np.ones_like(envelope.mean), np.zeros_like(envelope.std)


@final
@description(frozen=True)
class PosteriorDeviation(PointwiseScore):
    """Exploration alone: the greedy experimental design (Srinivas et al. 2010, eq. 4, "variance only").

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1).using(score=nr.slots.PosteriorDeviation())
    >>> nr.Study(policy, seed=0).ask().number
    0
    """

    batched = True

    def __call__(self, envelope: Envelope, incumbent: float | None = None) -> Array:  # noqa: ARG002
        """Returns sigma, `(n,)`."""
        return envelope.std

    def partials(self, envelope: Envelope, incumbent: float | None = None) -> tuple[Array, Array]:  # noqa: ARG002
        """Returns 0 and 1."""
        return np.zeros_like(envelope.mean), np.ones_like(envelope.std)


@dataclass(frozen=True, kw_only=True)
class Improvement(PointwiseScore):
    """A score of the improvement over an incumbent.

    Attributes:
        incumbent: "mean" is the highest posterior mean over the domain, under the context of the trial. On arms it is
            over all arms, and on a continuous domain over the search's candidates and the observed points. "reward" is
            the highest reward observed under that very context. Under noise it gets stuck, and with contexts that never
            repeat there is none. Before the first reward both are the prior mean. Under constraints with posteriors of
            their own, "mean" is over the points that are feasible in the mean. As "mean" is over the domain, arms and a
            box with as many candidates follow one rule. A context that never changes then changes nothing. "pending" is
            "mean", on continuous domains over pending points as well, under a part that hallucinates. Several workers
            then do not improve on the same point twice.
        margin: xi, reward units.
    """

    incumbent: str = "mean"
    margin: float = 0.0

    in_rewards: ClassVar[bool] = False

    def __post_init__(self) -> None:
        settle(self, incumbent=one_of("incumbent", self.incumbent, ["mean", "reward", "pending"]))
        settle(self, margin=number("margin", self.margin, low=0.0, high=LARGEST_REWARD))

    @final
    def incumbent_in(self, view: AcquisitionContext) -> float:
        """Returns the best mean, or the best reward."""
        if self.incumbent == "pending":
            return max(view.best_mean(), view.best_pending_mean())
        return view.best_mean() if self.incumbent == "mean" else view.best_reward()


@final
@description(frozen=True, kw_only=True)
class ExpectedImprovement(Improvement):
    """The logarithm of E max(f - f_best - xi, 0) = sigma (phi(z) + z Phi(z)) (Mockus et al. 1978).

    The logarithm has the same maximiser. Far from the incumbent it neither underflows nor loses its gradient (Ament et
    al. 2023).

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1).using(score=nr.slots.ExpectedImprovement())
    >>> nr.Study(policy, seed=0).ask().number
    0
    """

    logarithm: ClassVar[bool] = True
    batched = True

    def __call__(self, envelope: Envelope, incumbent: float | None = None) -> Array:
        """Returns log EI in nats, `(n,)`."""
        z, std = _standardized(envelope, incumbent, self.margin)
        return np.asarray(np.log(std) + log_h(z))

    def partials(self, envelope: Envelope, incumbent: float | None = None) -> tuple[Array, Array]:
        """Returns Phi(z) / EI and phi(z) / EI."""
        return self.with_partials(envelope, incumbent)[1:]

    def with_partials(self, envelope: Envelope, incumbent: float | None = None) -> tuple[Array, Array, Array]:
        """Returns log EI, Phi(z) / EI and phi(z) / EI."""
        z, std = _standardized(envelope, incumbent, self.margin)
        near = np.maximum(z, FAR_OUT)  # Beyond FAR_OUT the difference of the logarithms would be rounding error.
        log_gain = log_h(near)
        by_mean = np.exp(log_distribution(near) - log_gain)
        by_std = np.exp(-0.5 * near**2 - LOG_SQRT_2PI - log_gain)
        far = z <= FAR_OUT
        if np.count_nonzero(far):
            log_gain = log_h(z)
            by_mean, by_std = np.where(far, -z, by_mean), np.where(far, z**2, by_std)
        return np.log(std) + log_gain, by_mean / std, by_std / std


@final
@description(frozen=True, kw_only=True)
class ProbabilityOfImprovement(Improvement):
    """The number z, with the same maximiser as P(f > f_best + xi) = Phi(z), which never saturates (Kushner 1964).

    Without a margin and with the best posterior mean as incumbent, it plays the best mean and does not explore.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1).using(score=nr.slots.ProbabilityOfImprovement())
    >>> nr.Study(policy, seed=0).ask().number
    0
    """

    batched = True

    def __call__(self, envelope: Envelope, incumbent: float | None = None) -> Array:
        """Returns z, `(n,)`."""
        return _standardized(envelope, incumbent, self.margin)[0]

    def partials(self, envelope: Envelope, incumbent: float | None = None) -> tuple[Array, Array]:
        """Returns 1 / sigma and -z / sigma."""
        z, std = _standardized(envelope, incumbent, self.margin)
        return 1.0 / std, -z / std


@final
@description(frozen=True, kw_only=True)
class ThompsonSample(Score):
    """A function drawn from GP(mu, v^2 cov), with v the width (Chowdhury & Gopalan 2017, Algorithm 2).

    On arms this is an exact joint sample. Of more than 4,096 arms under a rough kernel mean and variance are exact, and
    correlations are not (`nilregret.gp.arms`). On continuous domains it is a sample path (`nilregret.gp.paths`),
    maximised with gradients.

    Attributes:
        grid: points along each side of the decision set D_t at t = 1. In the theorem it is B L r d: D_t has (B L r d
            t^2)^d points so that |f(x) - f([x]_t)| <= 1 / t^2. Here B bounds the norm, L is the kernel's Lipschitz
            constant (section 4.2 of the paper) and r the side of the box. None, the default, plays the maximum of the
            path itself.
        growth: D_t has grid * t^growth points along each side. The theorem has 2.
        per_norm: True if `grid` is for the first guess of B and grows with the guess.
        width: v. None, the default, takes the width of the policy's bounds.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1).using(score=nr.slots.ThompsonSample())
    >>> nr.Study(policy, seed=0).ask().number
    0
    """

    grid: float | None = None
    growth: float = 2.0
    per_norm: bool = True
    width: float | None = None

    draws: ClassVar[bool] = True
    batched = True

    def __post_init__(self) -> None:
        if self.grid is not None:
            settle(self, grid=number("grid", self.grid, low=0.0, open_low=True))
        settle(self, per_norm=flag("per_norm", self.per_norm))
        why = "It is the power of t that the points along a side grow with; 0 for the same grid in every round."
        settle(self, growth=number("growth", self.growth, low=0.0, high=100.0, why=why))
        if self.width is not None:
            settle(self, width=number("width", self.width, low=0.0, high=LARGEST_REWARD))

    @property
    def own_width(self) -> float | None:
        """The width v of the draws, or None for that of the bounds."""
        return self.width

    def per_side(self, t: int, *, norm_growth: float) -> float:
        """Returns the number of points of D_t along each side before rounding up, infinite without a grid."""
        if self.grid is None:
            return math.inf
        return self.grid * math.pow(t, self.growth) * (norm_growth if self.per_norm else 1.0)

    def on_table(self, view: TableView) -> Array:
        """Returns a draw at every arm."""
        return view.draw()

    def law(self, view: TableView | PointView) -> ScoreLaw | None:
        """Returns the law of the draw. That of a sample path is approximate, as the path is."""
        return view.law_of_draw()

    def on_points(self, view: PointView) -> AcquisitionFunction:
        """Returns a sample path."""
        return view.path()

    def placed(self, point: Array, surface: AcquisitionFunction, view: PointView) -> Array:
        """Returns the point, or the best point of the discretisation D_t if there is a grid."""
        domain = view.domain
        if self.grid is None or isinstance(domain, Arms):
            return point.copy()
        count = self.per_side(view.round, norm_growth=view.norm_growth)
        return best_on_grid(surface.values, domain, point, view.points, count)


def _standardized(envelope: Envelope, incumbent: float | None, margin: float) -> tuple[Array, Array]:
    if incumbent is None:
        raise InvalidInput(
            "An improvement is measured against the best so far, and nothing has been observed yet. Tell a first "
            "reward, or pass the incumbent."
        )
    std = np.maximum(envelope.std, LEAST_STD)
    z = (envelope.mean - incumbent - margin) / std
    return np.minimum(np.maximum(z, -MOST), MOST), std  # in a third of the time of `np.clip` for few values
