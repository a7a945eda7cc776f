"""What an engine is asked and what it answers.

An engine knows a domain: where a belief finds a trial, and which point of the domain has the best score. What is
believed is kept elsewhere (`posterior.Belief`); what an engine keeps besides is a cache.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, Self, TypeVar, final

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array, IndexArray, frozen, many
from ..._utils.errors import InvalidInput, NoRegretError
from ..._utils.randomness import Randomness
from ...domains.domain import Arms, Domain
from ...domains.search.arms import best_arm, tied
from ...gp import Bank, Belief, RatePrior
from ...gp.warping import AnyWarp
from ...kernels import Kernel
from ...slots.constraint_state import DualState
from ...slots.constraints import Constraints
from ...slots.envelope import Bounds, Envelope
from ...slots.feasibility import admitted
from ...slots.memory import Drift
from ...slots.scores import Score
from ...storage.record import Trial
from ...storage.trial import Fit
from ..availability import Available, without


class Decision(NamedTuple):
    """What to play next."""

    point: Array
    arm: int | None
    explored: bool
    repeats: int = 1  # times to play it before the next decision
    fits: tuple[Fit, ...] | None = None  # that come into force with it; None where nothing is fitted


class Compared(NamedTuple):
    """What a decision was made from.

    Attributes:
        points: that were compared, `(n, d)`; of a continuous domain some of them, the one asked about first.
        arms: which arms they are, `(n,)`; None on other domains.
        scores: of each, as it decided, `(n,)`; -inf where it had failed or was ruled out.
        tied: which of them share a draw among the best; None where a search went on from them.
    """

    points: Array
    arms: IndexArray | None
    scores: Array
    tied: IndexArray | None


class Units(NamedTuple):
    """What the numbers of a posterior are in rewards.

    Where rewards are warped, all that decides is in warped rewards, which are the rewards themselves from their median
    up; what is shown, and what stands in for an answer, is in rewards.
    """

    center: float = 0.0  # the (warped) reward at which the posterior is 0
    unit: float = 1.0  # reward units of one unit of the posterior
    warp: AnyWarp | None = None

    def warped(self, reward: float) -> float:
        """A reward as it decides."""
        return reward if self.warp is None else float(self.warp.to(np.array(reward)))

    def scaled(self, reward: float) -> float:
        """A reward, in units of the posterior."""
        return (self.warped(reward) - self.center) / self.unit

    def scaled_all(self, rewards: Sequence[float | None]) -> list[float | None]:
        """Rewards, some of which are not known, likewise."""
        known = np.array([reward for reward in rewards if reward is not None])
        if self.warp is not None:
            known = self.warp.to(known)
        scaled = iter(((known - self.center) / self.unit).tolist())
        return [None if reward is None else next(scaled) for reward in rewards]

    def back(self, numbers: Array) -> Array:
        """Numbers of the posterior, as rewards."""
        rewards = numbers * self.unit + self.center
        return rewards if self.warp is None else self.warp.back(rewards)

    def shown(self, envelope: Envelope) -> Envelope:
        """The same belief, in rewards: the normal distribution that decides goes through the map, and so do bounds."""
        if self.warp is None:
            return envelope
        lower, upper = self.warp.back(envelope.lower), self.warp.back(envelope.upper)
        moments = self.warp.moments(envelope.mean, envelope.std)
        return Envelope(*moments, None, envelope.valid_for, lower=lower, upper=upper)

    def rewards(self, mean: Array, std: Array) -> tuple[Array, Array]:
        """Mean and std in (warped) rewards; the arrays are taken over."""
        if self.unit != 1.0:
            mean *= self.unit
            std *= self.unit
        if self.center:
            mean += self.center
        return mean, std


class Limit(NamedTuple):
    """What is believed of one constraint."""

    belief: Any  # of the engine's kind
    bounds: Bounds
    units: Units


class Limits(NamedTuple):
    """What is believed of all constraints, and in which sense they must hold."""

    rule: Constraints
    each: tuple[Limit, ...]
    dual: DualState


BestReward = Callable[[Array | None], float | None]  # of a context; None before the first


class Question(NamedTuple):
    """What is to be decided.

    Attributes:
        round: t, from 1, since the last restart.
        bounds: of f in this round.
        units: of the belief.
        context: known before the decision, or None.
        last: the point asked for before this one, or None.
        best_reward: gives the best reward that counts under a context, or None before the first.
        randomness: of the trial.
        score: what makes a point attractive in this round.
        norm_growth: how many times larger the guess of the norm in force is than the first, where it is guessed.
        limits: of the constraints that have posteriors of their own; None where there are none.
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

    def centred(self) -> Question:
        """The same question about rewards less the centre, which would only cost digits, where the bounds allow it."""
        center, best_reward = self.units.center, self.best_reward
        if not center or not self.bounds.moves:
            return self

        def centred(context: Array | None) -> float | None:
            best = best_reward(context)
            return None if best is None else best - center

        return self._replace(units=self.units._replace(center=0.0), best_reward=centred)


B = TypeVar("B", bound=Belief[Any])


class Engine(ABC, Generic[B]):
    """A domain, and the choice of a point in it."""

    domain: Domain
    context: Domain | None
    outputs: int = 1  # functions that are learned, the reward among them
    drifts: bool = False  # whether these functions are others in each round
    runs: bool = False  # whether points are played many times at once
    now: int = 0  # the round that is asked about, where they are

    @abstractmethod
    def fresh(
        self,
        kernel: Kernel,
        regularization: float,
        *,
        apart: bool,
        drift: Drift,
        known: RatePrior | None = None,
        bank: Bank | None = None,
        noise_variance: float | None = None,
    ) -> B:
        """A belief that has learned nothing (see `Belief` for `apart`).

        Args:
            kernel: prior covariance.
            regularization: lambda.
            apart: whether questions may enter without a value.
            drift: the share of f that is new in each round.
            known: what is known of rewards beyond their size, where that makes another posterior.
            bank: kernels of which all are kept, averaged; None for the one.
            noise_variance: by which several rates of drift are weighed; None for lambda.
        """

    @abstractmethod
    def cell(self, trial: Trial) -> Any:
        """Where a belief in one function finds a trial."""

    @abstractmethod
    def entry(self, trial: Trial) -> Any:
        """Where a trial enters a belief: its cell, and its round where functions drift."""

    @abstractmethod
    def here(self, trial: Trial) -> Any:
        """Where a belief finds the point of a trial as it is now."""

    @abstractmethod
    def between(self, kernel: Kernel, cells: list[Any], others: list[Any]) -> Array:
        """Prior covariance between cells, `(a, b)`."""

    @abstractmethod
    def largest_variance(self, kernel: Kernel) -> float:
        """The largest prior variance of f in the domain (of a box, at its ends)."""

    joins = False  # whether several calls of `put` may be made one

    @abstractmethod
    def put(self, belief: B, cells: list[Any], values: list[float | None]) -> None:
        """Let a belief take in several trials, in order."""

    @abstractmethod
    def fill(self, belief: B, cells: list[Any], values: list[float | None]) -> None:
        """Give values to several trials that were taken in without one."""

    @abstractmethod
    def revise(self, belief: B, cell: Any, old: float | None, new: float | None) -> None:
        """Change what a trial counts as."""

    @abstractmethod
    def revise_all(self, belief: B, cells: list[Any], old: list[float | None], new: list[float | None]) -> None:
        """Change what several trials count as."""

    @abstractmethod
    def drop(self, belief: B, cell: Any, value: float | None) -> None:
        """Take a trial back out."""

    @abstractmethod
    def means(self, belief: B, trials: list[Trial]) -> Array:
        """Posterior mean at answered trials, `(n,)`."""

    @abstractmethod
    def deviations(self, belief: B, trials: list[Trial]) -> Array:
        """Posterior std of f at trials, `(n,)`."""

    @abstractmethod
    def envelope(self, belief: B, bounds: Bounds, units: Units, points: Any, context: Array | None) -> Envelope:
        """The bounds of f at points of the domain (all arms, where it has them and None is given)."""

    @abstractmethod
    def candidates(self) -> Array | None:
        """Points `(n, d)` that stand for the domain; None for all arms."""

    @abstractmethod
    def fail(self, trial: Trial) -> None:
        """Set the point of a trial aside, until it is forgiven; the same maximum would be asked for forever."""

    @abstractmethod
    def forgive(self, trial: Trial) -> None:
        """Set the point of a trial aside no more."""

    @abstractmethod
    def forgive_all(self) -> None:
        """Set nothing aside any more."""

    @abstractmethod
    def choose(self, belief: B, question: Question, available: Available | None) -> Decision:
        """The point of the best score; of those available, ties broken at random, where only some are."""

    @abstractmethod
    def scores(self, belief: B, question: Question, available: Available | None) -> tuple[Array, float]:
        """Of finitely many points, all or those available, `(n,)`; and what their differences are measured against."""

    @abstractmethod
    def searched(self, belief: B, question: Question, point: Array) -> tuple[Array, Array]:
        """Of a continuous domain this point `(d,)` and what a search begins with, `(n, d)`, and their scores `(n,)`."""

    @final
    def compared(self, belief: B, question: Question, available: Available | None, point: Array) -> Compared:
        """What `choose` compares, for whoever asks why; of a continuous domain this point `(d,)` among others."""
        everything = self._everything(available)
        if everything is None:
            points, scores = self.searched(belief, question, point)
            return Compared(points, None, scores, None)
        scores, size = self.scores(belief, question, available)
        scores = np.where(self.failed_among(everything), -np.inf, scores)
        return Compared(everything.points, everything.arms, scores, tied(scores, size))

    @final
    def left(self, available: Available | None) -> Available | None:
        """What a forced uniform round draws from; None on continuous domains."""
        everything = self._everything(available)
        return None if everything is None else without(everything, self.failed_among(everything))

    def _everything(self, available: Available | None) -> Available | None:
        if available is None and isinstance(self.domain, Arms):
            return Available(self.domain.points, np.arange(len(self.domain)))
        return available

    @abstractmethod
    def anywhere(self, randomness: Randomness, available: Available | None) -> Decision:
        """A uniformly drawn point, for a forced round."""

    @abstractmethod
    def failed_among(self, available: Available) -> npt.NDArray[np.bool_]:
        """Which of the available points have been set aside, `(n,)`."""

    @final
    def best_among(self, scores: Array, size: float, randomness: Randomness, available: Available) -> Decision:
        """The available point of the largest score, scores given for each, failed or not, and taken over."""
        scores[self._set_aside(available)] = -np.inf
        return _decision(available, best_arm(scores, size, randomness), explored=False)

    @final
    def anywhere_among(self, randomness: Randomness, available: Available) -> Decision:
        """A uniformly drawn one of the available points."""
        left = np.flatnonzero(~self._set_aside(available))
        return _decision(available, int(left[randomness.generator.integers(len(left))]), explored=True)

    def _set_aside(self, available: Available) -> npt.NDArray[np.bool_]:
        """Which of the available points have failed; errors if all have."""
        failed = self.failed_among(available)
        if failed.all():
            raise NoRegretError(
                f"Everything that may be played now ({many(len(failed), 'point')}) has failed, and a point that has "
                "only failed is not asked for again. Ask when others are available, or look at the reasons.",
                advice="They are in `study.trials`.",
                topic="all_failed",
            )
        return failed

    @abstractmethod
    def copy(self) -> Self:
        """An independent engine in the same state."""


def _decision(available: Available, place: int, *, explored: bool) -> Decision:
    arm = None if available.arms is None else int(available.arms[place])
    return Decision(frozen(available.points[place].copy()), arm, explored)


def row_of(trial: Trial) -> Array:
    """What a kernel sees of a trial: (context, point)."""
    return np.asarray(rows_of(trial.context, trial.point[None])[0])


def rows_of(context: Array | None, points: Array) -> Array:
    """What a kernel sees of points `(n, d)` under a context: (context, point), `(n, c + d)`."""
    if context is None:
        return points
    return np.asarray(np.concatenate([np.broadcast_to(context, (len(points), len(context))), points], axis=1))


def table(domain: Domain, context: Domain | None) -> Arms:
    """Every (context, arm), contexts outermost; errors where there are infinitely many."""
    if not isinstance(domain, Arms) or not isinstance(context, Arms | None):
        raise InvalidInput("There is no table of all (context, arm) on a continuous domain.")
    if context is None:
        return domain
    return Arms(np.concatenate([rows_of(each, domain.points) for each in context.points]))


def none_left(is_so: bool) -> None:
    """An error where everything has failed."""
    if is_so:
        raise nothing_left()


def nothing_left() -> NoRegretError:
    """That error."""
    return NoRegretError(
        "Everything that could be asked for has failed, so there is nothing left: usually the objective cannot run at "
        "all. Look at the reasons; after mending it, start a study with a new name.",
        advice="They are in `study.trials`.",
        topic="all_failed",
    )


def multiple(width: float | None) -> float:
    """The width of a draw, which is a multiple of the standard deviation or nothing."""
    if width is None:
        raise InvalidInput(
            "Thompson sampling widens its draws by a multiple of the standard deviation, and the bounds of this policy "
            "are none: give it a `Width`, or another score."
        )
    return width


def moved(belief: Belief[Any], places: Any, goals: Any) -> Array:
    """How far an answer at each of the places would move the mean at each of the goals, `(p, g)`.

    |cov(x, y)| / sqrt(var(x) + lambda) is the standard deviation of the change of the mean at y.
    """
    count = len(places)
    covariance = belief.answered.covariance(np.concatenate([places, goals]))
    variances = np.maximum(covariance.diagonal()[:count], 0.0)
    return np.asarray(np.abs(covariance[:count, count:]) / np.sqrt(variances + belief.answered.regularization)[:, None])


def best_admitted(means: Array, limits: list[Envelope]) -> float:
    """The best of the means where all constraints are satisfied in the mean; where none is, the worst of them."""
    inside = means[admitted(limits)]
    return float(inside.max() if len(inside) else means.min())
