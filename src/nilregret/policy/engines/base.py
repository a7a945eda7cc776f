"""Engines: the questions that they are asked, and the decisions that they return.

An engine knows a domain: the cell of a trial in a belief, and the point with the best score. Beliefs are kept elsewhere
(`gp.Belief`). An engine keeps only caches and the points that are set aside.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, final

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array, IndexArray, frozen, many
from ..._utils.copying import Copyable
from ..._utils.process_setting import with_one_thread
from ..._utils.randomness import Randomness
from ...domains.domain import Arms, Domain, Space, within
from ...domains.search.arms import best_arm, tied
from ...errors import InvalidInput, NoRegretError
from ...gp import Bank, Belief, RatePrior
from ...gp.arms import MOST_JOINT
from ...gp.mixture import Ensemble
from ...gp.warping import AnyWarp
from ...kernels import Kernel
from ...slots.constraints import Constraints, admitted
from ...slots.envelope import Bounds, DualState, Envelope
from ...slots.memory import Drift
from ...slots.scores import Known, PointView, Score, TableView
from ...storage.record import Trial
from ...storage.trial import Fit
from ..availability import Available, without

if TYPE_CHECKING:
    from ...gp.linear_model import Candidate
    from ...slots.propensities import ScoreLaw


class Decision(NamedTuple):
    """The point to play next.

    Attributes:
        point: the point, `(d,)`.
        arm: its arm, or None on other domains.
        explored: whether the round was a forced uniform one.
        repeats: the number of plays before the next decision.
        fits: fits that come into force with the decision. None if nothing is fitted.
    """

    point: Array
    arm: int | None
    explored: bool
    repeats: int = 1
    fits: tuple[Fit, ...] | None = None


class Compared(NamedTuple):
    """The points that a decision compared.

    Attributes:
        points: the points, `(n, d)`. On a continuous domain these are some points, the chosen point first.
        arms: their arms, `(n,)`, or None on other domains.
        scores: their scores, `(n,)`: -inf if a point had failed or was ruled out.
        tied: indices of the best points, of which one was drawn. None if a search continued from the points.
    """

    points: Array
    arms: IndexArray | None
    scores: Array
    tied: IndexArray | None


class Units(NamedTuple):
    """The units of a posterior.

    If rewards are warped, decisions are made in warped rewards, which equal the rewards from their median up. Users see
    rewards, and imputed values are rewards.

    Attributes:
        center: the (warped) reward at which the posterior is 0.
        unit: the reward units of one unit of the posterior.
        warp: the map of rewards, or None.
    """

    center: float = 0.0
    unit: float = 1.0
    warp: AnyWarp | None = None

    def warped(self, reward: float) -> float:
        """Returns the warped reward."""
        return reward if self.warp is None else float(self.warp.to(np.array(reward)))

    def scaled(self, reward: float) -> float:
        """Returns a reward in units of the posterior."""
        return (self.warped(reward) - self.center) / self.unit

    def scaled_all(self, rewards: Sequence[float | None]) -> list[float | None]:
        """Returns rewards, of which some are None, in units of the posterior."""
        known = np.array([reward for reward in rewards if reward is not None])
        if self.warp is not None:
            known = self.warp.to(known)
        scaled = iter(((known - self.center) / self.unit).tolist())
        return [None if reward is None else next(scaled) for reward in rewards]

    def back(self, numbers: Array) -> Array:
        """Returns numbers of the posterior as rewards."""
        rewards = numbers * self.unit + self.center
        return rewards if self.warp is None else self.warp.back(rewards)

    def shown(self, envelope: Envelope) -> Envelope:
        """Returns a prediction in rewards. The warp maps its normal distribution and its bounds."""
        if self.warp is None:
            return envelope
        lower, upper = self.warp.back(envelope.lower), self.warp.back(envelope.upper)
        moments = self.warp.moments(envelope.mean, envelope.std)
        return Envelope(*moments, None, envelope.valid_for, lower=lower, upper=upper)

    def rewards(self, mean: Array, std: Array) -> tuple[Array, Array]:
        """Returns mean and std in (warped) rewards. The arrays are changed in place."""
        if self.unit != 1.0:
            mean *= self.unit
            std *= self.unit
        if self.center:
            mean += self.center
        return mean, std


class Limit(NamedTuple):
    """The belief about one constraint, with its bounds and units."""

    belief: Any  # of the engine's kind
    bounds: Bounds
    units: Units


class Front(NamedTuple):
    """The points of a front, and its reference.

    Attributes:
        points: the distinct points of answered and open trials, `(n, d)`.
        observed: average of the answers at each, `(n, k)`, in the units of the models less their centres, or nan.
        reference: the reference that is given, `(k,)`, in the units of the models less their centres, or None.
    """

    points: Array
    observed: Array
    reference: Array | None


class Limits(NamedTuple):
    """The beliefs about all outputs but the reward.

    Attributes:
        rule: the sense in which the constraints must hold.
        each: the belief about each of these outputs.
        dual: the run-time state of the rule.
        front: the points of a front of several objectives, or None.
    """

    rule: Constraints
    each: tuple[Limit, ...]
    dual: DualState
    front: Front | None = None

    @property
    def objectives(self) -> tuple[Limit, ...]:
        """The beliefs about the objectives after the first."""
        return self.each[: self.rule.objectives - 1]

    @property
    def constraints(self) -> tuple[Limit, ...]:
        """The beliefs about the constraints."""
        return self.each[self.rule.objectives - 1 :]


BestReward = Callable[[Array | None], float | None]  # returns the best reward under a context


class Question(NamedTuple):
    """The question of one round.

    Attributes:
        round: t, from 1, since the last restart.
        bounds: the bounds of f in this round.
        units: the units of the belief.
        context: the context of the round, or None.
        last: the point of the latest trial, or None.
        best_reward: returns the best reward that counts under a context, or None before the first.
        randomness: the random numbers of the round.
        score: the score of the round.
        norm_growth: the guess of the norm divided by the first guess. It is 1 if the norm is given.
        limits: the beliefs about constraints with posteriors of their own, or None.
        tried: returns the points that a search leaves to play others, `(k, d)`.
    """

    round: int
    bounds: Bounds
    units: Units
    context: Array | None
    last: Array | None
    best_reward: BestReward
    randomness: Randomness
    score: Score
    norm_growth: float = 1.0
    limits: Limits | None = None
    tried: Callable[[], Array] = lambda: np.zeros((0, 0))

    @property
    def width(self) -> float | None:
        """The multiplier of the standard deviation in draws: that of the score, or of the bounds."""
        own = self.score.own_width
        return self.bounds.width if own is None else own

    def aims(self, belief: Any) -> tuple[Limit, ...]:
        """Returns the beliefs about all objectives, of which `belief` is the first, in units without a centre."""
        others = () if self.limits is None else self.limits.objectives
        each = (Limit(belief, self.bounds, self.units), *others)
        return tuple(one._replace(units=one.units._replace(center=0.0)) for one in each)

    @property
    def front(self) -> Front | None:
        """The points of a front, or None if the policy has a single objective."""
        return None if self.limits is None else self.limits.front

    def known_objectives(self, belief: Any, cells_of: Callable[[Array], Any]) -> Known:
        """Returns the objectives at the points that were tried.

        Args:
            belief: about the first objective.
            cells_of: returns the cells of points `(n, d)` under the context of the round.
        """
        aims, front = self.aims(belief), self.front
        if front is None or self.limits is None or not len(front.points):
            none = np.zeros((0, len(aims)))
            return Known(np.zeros((0, 0)) if front is None else front.points, none, np.zeros(0, dtype=bool), none)
        cells = cells_of(front.points)
        means = [one.units.rewards(one.belief.mean(cells), np.zeros(0))[0] for one in aims]
        limits = [b(*units.rewards(*each.predict(cells)), cells) for each, b, units in self.limits.constraints]
        inside = admitted(limits) if limits else np.ones(len(front.points), dtype=bool)
        return Known(front.points, np.stack(means, axis=1), inside, front.observed)

    def centred(self) -> Question:
        """Returns the question for rewards less the centre, if the bounds allow that. The centre would cost digits."""
        center, best_reward = self.units.center, self.best_reward
        if not center or not self.bounds.moves:
            return self

        def centred(context: Array | None) -> float | None:
            best = best_reward(context)
            return None if best is None else best - center

        return self._replace(units=self.units._replace(center=0.0), best_reward=centred)


REWARDS = Units()  # of a posterior in the units of rewards, the same object for all


class Prior(NamedTuple):
    """The prior of one output.

    Attributes:
        kernel: the prior covariance.
        regularization: lambda.
        drift: the share of f that is new in each round, or None.
        known: prior knowledge of rewards that needs another posterior, or None.
        bank: kernels to average, or None for `kernel` alone.
        noise_variance: the noise by which several rates of drift are weighed. None for lambda.
        models: linear models of arms that take the place of the kernel, or None.
    """

    kernel: Kernel
    regularization: float
    drift: Drift = None
    known: RatePrior | None = None
    bank: Bank | Ensemble | None = None
    noise_variance: float | None = None
    models: tuple[Candidate, ...] | None = None


B = TypeVar("B", bound=Belief[Any])


class Engine(Copyable, ABC, Generic[B]):
    """The choice of points in a domain.

    Attributes:
        domain: the domain of decisions.
        context: the domain of contexts, or None.
        outputs: the number of functions that are learned, the reward among them.
        drifts: whether these functions change in each round.
        tides: whether a common level of the rewards moves.
        runs: whether a point is played many times in a row.
        now: the round of predictions, if functions drift.
        blas: the context of a decision and its updates, which sets the number of BLAS threads where that matters.
    """

    domain: Domain
    context: Domain | None
    outputs: int = 1
    drifts: bool = False
    tides: bool = False
    runs: bool = False
    now: int = 0
    blas: AbstractContextManager[object] = nullcontext()

    def inside(self, points: Array) -> npt.NDArray[np.bool_]:
        """Returns which points `(n, d)` of trials the domain has, `(n,)`. Those of a changed space may be outside."""
        return within(self.domain, points) if isinstance(self.domain, Space) else np.ones(len(points), dtype=bool)

    def kept(self, points: Array) -> Array:
        """Returns the points `(n, d)` of trials that may be played again, `(m, d)`."""
        return points[self.inside(points)] if self.strays else points

    @property
    def strays(self) -> bool:
        """True if trials may lie outside of the domain, since it has changed."""
        return isinstance(self.domain, Space) and self.domain.changed

    @abstractmethod
    def fresh(self, prior: Prior, *, apart: bool = False) -> B:
        """Returns an empty belief. If it is `apart`, trials may enter without a value (see `Belief`)."""

    @abstractmethod
    def cell(self, trial: Trial) -> Any:
        """Returns the cell of a trial in a belief that does not drift."""

    def cell_at(self, arm: int, context: Array | None) -> int:  # noqa: ARG002
        """Returns the cell of an arm under a context, or raises an error where arms are no cells."""
        raise InvalidInput("On a continuous domain, or under continuous contexts, arms have no cells.")

    @abstractmethod
    def entry(self, trial: Trial) -> Any:
        """Returns the entry of a trial in a belief: its cell, with its round if functions drift or a level moves."""

    @abstractmethod
    def cell_now(self, trial: Trial) -> Any:
        """Returns the cell at which a belief predicts f now at the point of a trial."""

    @abstractmethod
    def cells_of(self, points: Array, contexts: Array | None) -> Any:
        """Returns the cells at which a belief predicts f now at points `(n, d)`, each under its context `(n, c)`."""

    @abstractmethod
    def prior_covariance(self, kernel: Kernel, cells: list[Any], others: list[Any]) -> Array:
        """Returns the prior covariance between cells, `(a, b)`."""

    @abstractmethod
    def largest_variance(self, kernel: Kernel) -> float:
        """Returns the largest prior variance of f in the domain. On a box it is that at the ends."""

    @abstractmethod
    def means(self, belief: B, trials: list[Trial]) -> Array:
        """Returns posterior means at answered trials, `(n,)`."""

    @abstractmethod
    def deviations(self, belief: B, trials: list[Trial]) -> Array:
        """Returns posterior deviations of f at trials, `(n,)`."""

    @abstractmethod
    def most_deviations(self, belief: B, trials: list[Trial]) -> Array:
        """Returns upper bounds of the posterior deviations at answered trials, `(n,)`, which cost little."""

    @abstractmethod
    def envelope(self, belief: B, bounds: Bounds, units: Units, points: Any, context: Array | None) -> Envelope:
        """Returns the bounds of f at points of the domain. None stands for all arms."""

    @abstractmethod
    def candidates(self) -> Array | None:
        """Returns points `(n, d)` that represent the domain, or None for all arms."""

    @abstractmethod
    def set_aside(self, trial: Trial) -> None:
        """Sets the point of a failed trial aside. Otherwise the same maximum would be played forever."""

    @abstractmethod
    def allow(self, trial: Trial) -> None:
        """Allows the point of a trial again."""

    @abstractmethod
    def allow_all(self) -> None:
        """Allows all points again."""

    @abstractmethod
    def choose(self, belief: B, question: Question, available: Available | None) -> Decision:
        """Returns the point with the best score. If only some points are available, ties are broken at random."""

    @abstractmethod
    def scores(self, belief: B, question: Question, available: Available | None) -> tuple[Array, float]:
        """Returns the scores of finitely many points, `(n,)`, and the size by which score differences are judged."""

    @abstractmethod
    def view(self, belief: B, question: Question, available: Available | None) -> TableView | PointView:
        """Returns the view of a round on finitely many points."""

    @abstractmethod
    def size(self, belief: B, question: Question, available: Available | None) -> float:
        """Returns the size by which score differences are judged."""

    @final
    def law(self, belief: B, question: Question, available: Available | None) -> tuple[IndexArray, ScoreLaw] | None:
        """Returns the numbers of the points of which `choose` plays one, and the law of their scores.

        The number of an arm is its index, and that of an available point on another domain is its place.

        None on continuous domains, and if random numbers decide by a law that is not known.
        """
        from ...slots.propensities import KnownScores

        everything, question = self._everything(available), question.centred()
        if everything is None:
            return None
        failed, view = self.failed_among(everything), self.view(belief, question, available)
        law = question.score.law(view)
        if law is None:
            scores, _ = self.scores(belief, question, available)
            known = None if question.randomness.used else KnownScores(np.where(failed, -np.inf, scores))
            return None if known is None else (everything.numbers, known)
        added = np.zeros(len(failed)) if question.limits is None else question.limits.rule.added(view)
        if added is None:
            return None
        left = np.flatnonzero(~failed & np.isfinite(added))
        return (everything.numbers[left], law.restricted(left, added[left])) if len(left) else None

    @abstractmethod
    def searched(self, belief: B, question: Question, point: Array) -> tuple[Array, Array]:
        """Returns the point `(d,)` with the first points of a search, `(n, d)`, and the scores of all, `(n,)`."""

    @final
    def compared(self, belief: B, question: Question, available: Available | None, point: Array) -> Compared:
        """Returns what `choose` compares, for explanations. On a continuous domain `point` comes first."""
        everything = self._everything(available)
        if everything is None:
            points, scores = self.searched(belief, question, point)
            return Compared(points, None, scores, None)
        scores, size = self.scores(belief, question, available)
        scores = np.where(self.failed_among(everything), -np.inf, scores)
        return Compared(everything.points, everything.arms, scores, tied(scores, size))

    @final
    def remaining(self, available: Available | None) -> Available | None:
        """Returns the points of which a uniform round draws one, or None on continuous domains."""
        everything = self._everything(available)
        return None if everything is None else without(everything, self.failed_among(everything))

    def _everything(self, available: Available | None) -> Available | None:
        if available is None and isinstance(self.domain, Arms):
            return Available(self.domain.points, np.arange(len(self.domain)))
        return available

    @abstractmethod
    def draw_uniform(self, randomness: Randomness, available: Available | None) -> Decision:
        """Returns a uniformly drawn point, for a forced round."""

    @abstractmethod
    def failed_among(self, available: Available) -> npt.NDArray[np.bool_]:
        """Returns True for available points that are excluded because their trials failed, `(n,)`."""

    @final
    def best_among(self, scores: Array, size: float, randomness: Randomness, available: Available) -> Decision:
        """Returns the available point with the largest score. The array of scores is changed."""
        scores[self._failed_of(available)] = -np.inf
        return _decision(available, best_arm(scores, size, randomness), explored=False)

    @final
    def draw_uniform_among(self, randomness: Randomness, available: Available) -> Decision:
        """Returns a uniformly drawn available point."""
        left = np.flatnonzero(~self._failed_of(available))
        return _decision(available, int(left[randomness.draws.integers(len(left))]), explored=True)

    def _failed_of(self, available: Available) -> npt.NDArray[np.bool_]:
        """Returns True for available points that are excluded because their trials failed.

        Raises:
            NoRegretError: if all are.
        """
        failed = self.failed_among(available)
        if failed.all():
            raise NoRegretError(
                f"Everything that may be played now ({many(len(failed), 'point')}) has failed, and a point that has "
                "only failed is not asked for again. Ask when others are available, or look at the reasons.",
                advice="They are in `study.trials`.",
                topic="all_failed",
            )
        return failed


def _decision(available: Available, place: int, *, explored: bool) -> Decision:
    arm = None if available.arms is None else int(available.arms[place])
    return Decision(frozen(available.points[place].copy()), arm, explored)


def row_of(trial: Trial) -> Array:
    """Returns the row of a trial for a kernel: (context, point)."""
    return np.asarray(rows_of(trial.context, trial.point[None])[0])


def rows_of(context: Array | None, points: Array) -> Array:
    """Returns the rows of points `(n, d)` under a context for a kernel: (context, point), `(n, c + d)`."""
    if context is None:
        return points
    rows = np.empty((len(points), len(context) + points.shape[1]))
    rows[:, : len(context)], rows[:, len(context) :] = context, points
    return rows


def table(domain: Domain, context: Domain | None) -> Arms:
    """Returns every (context, arm), ordered by context first.

    Raises:
        InvalidInput: if there are infinitely many.
    """
    if not isinstance(domain, Arms) or not isinstance(context, Arms | None):
        raise InvalidInput("There is no table of all (context, arm) on a continuous domain.")
    if context is None:
        return domain
    return Arms(np.concatenate([rows_of(each, domain.points) for each in context.points]))


def none_left(is_so: bool) -> None:
    """Raises an error if every point has failed."""
    if is_so:
        raise nothing_left()


def nothing_left() -> NoRegretError:
    """Returns the error of a round in which every point has failed."""
    return NoRegretError(
        "Everything that could be asked for has failed, so there is nothing left: usually the objective cannot run at "
        "all. Look at the reasons; after mending it, start a study with a new name.",
        advice="They are in `study.trials`.",
        topic="all_failed",
    )


def multiple(width: float | None) -> float:
    """Returns the width of a draw.

    Raises:
        InvalidInput: if the bounds are no multiple of the standard deviation.
    """
    if width is None:
        raise InvalidInput(
            "Thompson sampling widens its draws by a multiple of the standard deviation, and the bounds of this policy "
            "are none: give it a `Width`, or another score."
        )
    return width


@with_one_thread
def law_of_draw(belief: Belief[Any], cells: Any, width: float | None, unit: float) -> ScoreLaw | None:
    """Returns the law of a draw at n cells, reward units, or None if n is above `MOST_JOINT`.

    Args:
        belief: the belief about f.
        cells: arms of a table, or rows.
        width: the multiplier of the standard deviation.
        unit: the reward units of one unit of the belief.
    """
    from ...slots.propensities import JointNormals, Mixture

    if len(cells) > MOST_JOINT:
        return None
    parts = belief.laws_of_draw(cells, width=multiple(width))
    laws = [JointNormals(unit * mean, unit**2 * covariance) for _, mean, covariance in parts]
    return laws[0] if len(laws) == 1 else Mixture(tuple(share for share, _, _ in parts), tuple(laws))


def moved(belief: Belief[Any], places: Any, goals: Any) -> Array:
    """Returns the effect of an answer at each place on the mean at each goal, `(p, g)`.

    The effect is |cov(x, y)| / sqrt(var(x) + lambda), the standard deviation of the change of the mean at y.
    """
    count = len(places)
    covariance = belief.observed.covariance(np.concatenate([places, goals]))
    variances = np.maximum(covariance.diagonal()[:count], 0.0)
    return np.asarray(np.abs(covariance[:count, count:]) / np.sqrt(variances + belief.observed.regularization)[:, None])


def best_admitted(means: Array, limits: list[Envelope]) -> float:
    """Returns the best mean among points that satisfy all constraints in the mean, or the worst mean if none does."""
    inside = means[admitted(limits)]
    return float(inside.max() if len(inside) else means.min())
